"""Texts that are not UTF-16, have a null inside or none at the end: cells without the generic reader."""

from __future__ import annotations

import struct
from unittest import mock

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import example, given

import msmqwire
from msmqwire.tables import read_packets
from msmqwire.tables.arrow import batch
from msmqwire.tables.arrow.rows import value_of_packet
from msmqwire.tables.columns import BY_NAME
from tests.support import handmade as h

UNITS = st.sampled_from([0, 0x41, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xFFFF])
COLUMNS = ["label", "provider", "destination", "admin_queue", "response_queue"]


def messages(text: bytes, odd: bytes) -> list[bytes]:
    """Messages with the text as label, as name of a provider and as direct name."""
    label = h.properties_header(label_length=len(text) // 2)[:56] + text
    name = text + b"\0\0"
    direct = 7, h.padded(struct.pack("<H", len(name)) + name)
    security = h.security_header(flags=0x80, provider=struct.pack("<L", 1) + text + odd)
    return [
        h.user_message(properties=h.padded(label)),
        h.user_message(security=security),
        h.user_message(user=h.user_header(destination=direct)),
        h.user_message(user=h.user_header(admin=direct, response=(1, b""))),
    ]


@given(units=st.lists(UNITS, max_size=12), odd=st.binary(max_size=1))
@example(units=[0xD800], odd=b"A")
@example(units=[0xD800, 0xD800, 0xDC00], odd=b"")
@example(units=[0x41, 0, 0x42, 0], odd=b"")
def test_ill_formed_texts_are_replaced_as_by_the_generic_reader(units: list[int], odd: bytes) -> None:
    packets = messages(struct.pack(f"<{len(units)}H", *units), odd)
    records = [msmqwire.parse(packet) for packet in packets]
    with mock.patch.object(batch, "parse", side_effect=AssertionError("the generic reader was asked")):
        rows = read_packets(pa.array(packets), columns=COLUMNS).to_pylist()
    assert rows == [{name: value_of_packet(BY_NAME[name], record) for name in COLUMNS} for record in records]
