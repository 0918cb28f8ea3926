"""Security descriptors survive a round trip; hostile ones raise MalformedPacket and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz import strategies
from fuzz.readers import crypto
from msmqwire import MalformedPacket
from msmqwire.headers import ACCESS_ACE_BODY, ACE, ACL, SID
from msmqwire.headers.security_descriptor import (
    TRUSTEE_TYPES,
    DescriptorParts,
    build_descriptor,
    descriptor_parts,
    sid_bytes,
    sid_text,
)

SIDS = strategies.values(SID).map(lambda sid: sid.to_bytes())
BODIES = strategies.values(ACCESS_ACE_BODY).map(lambda body: body.to_bytes()[: len(body.to_bytes()) // 4 * 4])
ACES = st.tuples(st.sampled_from(sorted(TRUSTEE_TYPES)), BODIES) | st.tuples(
    st.sampled_from(sorted({*range(256)} - TRUSTEE_TYPES)),
    st.binary(max_size=24).map(lambda body: body[: len(body) // 4 * 4]),
)
ACLS = st.lists(ACES, max_size=4).map(
    lambda aces: ACL.build({"Aces": [ACE.make(AceType=kind, Body=body) for kind, body in aces]})
)
PARTS = st.builds(
    DescriptorParts,
    st.none() | SIDS,
    st.none() | SIDS,
    st.none() | ACLS,
    st.none() | ACLS,
    st.integers(0, 0xFFFF).map(lambda control: control & ~0x8014),
)


@given(SIDS)
def test_sids_come_back_as_text(sid: bytes) -> None:
    assert sid_bytes(sid_text(sid)) == sid


@given(PARTS)
def test_parts_come_back(parts: DescriptorParts) -> None:
    assert descriptor_parts(build_descriptor(parts)) == parts


@given(st.binary(max_size=120))
def test_any_bytes(data: bytes) -> None:
    crypto.descriptors(data)


@given(PARTS.map(build_descriptor), st.data())
def test_changed_bytes(data: bytes, draw: st.DataObject) -> None:
    changed = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 4))):
        changed[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    crypto.descriptors(bytes(changed[: draw.draw(st.integers(0, len(data)))]))
    crypto.descriptors(bytes(changed))


@given(PARTS)
def test_every_cut_is_refused(parts: DescriptorParts) -> None:
    data = build_descriptor(parts)
    for cut in range(len(data)):
        with pytest.raises(MalformedPacket):
            descriptor_parts(data[:cut])
