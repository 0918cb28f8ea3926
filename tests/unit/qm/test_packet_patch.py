"""Patching flags of a packet: the same bytes as building it with these values."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from msmqwire.names import parse_format_name
from msmqwire.packets import USER_MESSAGE
from msmqwire.qm.model.enumerations import AuthenticationLevel
from msmqwire.qm.model.message import NULL_GUID, Message, TxSequenceId
from msmqwire.qm.rules import serialization
from msmqwire.qm.rules.packet_patch import (
    mark_clear,
    mark_verified,
    patch_transaction_flags,
    patch_transit_fields,
)

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


@st.composite
def numbered(draw: st.DrawFn) -> Message:
    """A message of a sequence, to queues whose names begin alike, or have the same length."""
    long = rf"DIRECT=OS:{'h' * 255}\{'q' * 124}"
    texts = [r"DIRECT=OS:a\q", r"DIRECT=OS:b\q", r"DIRECT=OS:a\qq", f"PUBLIC={UUID(int=5)}", long]
    names = st.sampled_from([parse_format_name(text) for text in texts])
    drawn = Message(
        destination=draw(names),
        administration=draw(st.none() | names),
        response=draw(st.none() | names),
        hop_count=draw(st.integers(0, 29)),
        connector_type_identifier=draw(st.sampled_from([NULL_GUID, UUID(int=9)])),
    )
    return place(drawn, draw(st.integers(1, 0xFFFF)))


def place(message: Message, number: int) -> Message:
    message.transactional_message_sequence_identifier = TxSequenceId(number, 3)
    message.transaction_sequence_number = number + 1
    message.transaction_previous_sequence_number = number
    return message


@given(st.lists(numbered(), min_size=1, max_size=6), st.integers(1, 0xFFFF))
def test_positions_in_a_sequence_are_patched_behind_the_names(sent: list[Message], number: int) -> None:
    """The names of the packet before say nothing of those of this one."""
    for message in sent:
        before = serialization.to_packet(message)
        expected = serialization.to_packet(place(message, number))
        assert patch_transit_fields(before, message) == expected


@given(
    NAMES, st.binary(max_size=40), st.booleans(), st.sampled_from([NULL_GUID, UUID(int=9)]), st.booleans(),
    st.sampled_from(AuthenticationLevel),
)  # fmt: skip
def test_security_flags_in_the_store_are_at_their_schema_bits(
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
