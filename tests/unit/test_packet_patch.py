"""Patching flags of a packet: the same bytes as building it with these values."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from msmqwire.names import parse_format_name
from msmqwire.packets import USER_MESSAGE
from msmqwire.qm.model.enumerations import AuthenticationLevel
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.rules import serialization
from msmqwire.qm.rules.packet_patch import mark_clear, mark_verified, patch_transaction_flags

NAMES = st.sampled_from([r"DIRECT=TCP:10.0.0.5\q", r"DIRECT=OS:a-longer-name.example.com\private$\orders"])
FLAGS = st.tuples(st.integers(0, (1 << 20) - 1), st.booleans(), st.booleans())


def message(name: str, label: str, body: bytes, flags: tuple[int, bool, bool], final: bool) -> Message:
    """A message of a transaction with this Flags.ID, FM and LM."""
    number, first, last = flags
    return Message(
        destination=parse_format_name(name),
        label=label,
        body=body,
        transaction_identifier=UUID(int=7),
        transaction_number=number,
        first_in_transaction=first,
        last_in_transaction=last,
        final_ack_required=final,
    )


@given(NAMES, st.text("abc", max_size=9), st.binary(max_size=40), FLAGS, FLAGS, st.booleans())
def test_a_patched_packet_equals_one_built_with_the_same_flags(
    name: str,
    label: str,
    body: bytes,
    before: tuple[int, bool, bool],
    after: tuple[int, bool, bool],
    final: bool,
) -> None:
    built = serialization.to_packet(message(name, label, body, before, final))
    expected = message(name, label, body, after, final)
    assert patch_transaction_flags(built, expected) == serialization.to_packet(expected)


@given(
    NAMES, st.binary(max_size=40), st.booleans(), st.sampled_from([NULL_GUID, UUID(int=9)]), st.booleans(),
    st.sampled_from(AuthenticationLevel),
)  # fmt: skip
def test_security_flags_of_the_store_are_where_the_schema_has_them(
    name: str, body: bytes, transactional: bool, connector: UUID, secured: bool, kind: AuthenticationLevel
) -> None:
    sent = Message(
        destination=parse_format_name(name), body=body, connector_queue_manager_identifier=connector,
        transaction_identifier=UUID(int=7) if transactional else None, privacy_level=5 if secured else 0,
        sender_identifier=b"sid" if secured else b"",
    )  # fmt: skip
    packet = serialization.to_packet(sent)
    expected = USER_MESSAGE.parse(packet)
    if secured:
        expected.SecurityHeader.Flags = expected.SecurityHeader.Flags.replace(EB=0, AU=1, AS=kind)
    assert mark_verified(mark_clear(packet), kind, authenticated=True) == expected.to_bytes()
