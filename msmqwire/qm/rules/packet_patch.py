"""Where fields and bits of a UserMessage packet stand, read off the schemas, and what is set in place.

A packet is built once. What is only known when it goes out (its number, its place in a transactional
sequence, the session it takes) is then written over the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from struct import error as StructError
from types import MappingProxyType
from typing import Final

from msmqwire.errors import InvalidValue
from msmqwire.headers import BASE_HEADER, TRANSACTION_HEADER, USER_HEADER
from msmqwire.packets import USER_MESSAGE
from msmqwire.qm.model.message import Message
from msmqwire.schema import Bits, Flags, Header, UInt
from msmqwire.schema.layout import layout


def bits(header: Header, name: str, word: str = "Flags") -> Bits:
    """The named bits of a flag word. Raises KeyError."""
    part = header.part(word)
    if isinstance(part, Flags):
        for found in part.parts:
            if found.name == name:
                return found
    raise KeyError(name)


def masks(header: Header, names: str) -> list[int]:
    """The masks of several, their names with blanks between them."""
    return [bits(header, name).mask for name in names.split()]


def _fields() -> Mapping[str, tuple[int, Struct]]:
    """By path: the place of every integer that no variable part precedes, and how it is written.

    Those of the TransactionHeader, which follows the names of queues, are counted from its start.
    """
    shape = USER_MESSAGE.make({"UserHeader": {"DestinationQueue": None}, "TransactionHeader": {}})
    codes = {8: "<B", 16: "<H", 32: "<I"}
    found: dict[str, tuple[int, Struct]] = {}
    start = 0
    for field in layout(shape):
        if field.path == "TransactionHeader.Flags":
            start = field.offset
        if field.path.startswith("MessagePropertiesHeader"):
            break
        if isinstance(field.node, (UInt, Flags)):
            found[field.path] = (field.offset - start, Struct(codes[field.node.bits]))
    return MappingProxyType(found)


_FIELDS: Final = _fields()
_BASE_FLAGS, _BASE_FLAGS_FORM = _FIELDS["BaseHeader.Flags"]
_PACKET_SIZE, _PACKET_SIZE_FORM = _FIELDS["BaseHeader.PacketSize"]
_SENT_TIME, _SENT_TIME_FORM = _FIELDS["UserHeader.SentTime"]
_MESSAGE_ID, _MESSAGE_ID_FORM = _FIELDS["UserHeader.MessageID"]
_USER_FLAGS, _USER_FLAGS_FORM = _FIELDS["UserHeader.Flags"]
_SEQUENCE: Final = tuple(
    _FIELDS[f"TransactionHeader.{name}"]
    for name in (
        "TxSequenceID.Ordinal",
        "TxSequenceID.TimeStamp",
        "TxSequenceNumber",
        "PreviousTxSequenceNumber",
    )
)
_USER_HEADER: Final = BASE_HEADER.size or 0
_SESSION: Final = bits(BASE_HEADER, "SH").mask
_TRANSACTION: Final = bits(USER_HEADER, "TH").mask
_HOPS: Final = bits(USER_HEADER, "RC").mask
_TRANSACTION_FLAGS, _TRANSACTION_FLAGS_FORM = _FIELDS["TransactionHeader.Flags"]
_NUMBER: Final = bits(TRANSACTION_HEADER, "ID")
_FIRST, _LAST = masks(TRANSACTION_HEADER, "FM LM")


def patch_transit_fields(packet: bytes, message: Message) -> bytes:
    """A packet with what changes while its message is on the way, all else as it is.

    That is the hop count, MessageID, SentTime and, in a TransactionHeader that is there, TxSequenceID and
    the two numbers. Raises InvalidValue for what does not fit.
    """
    made: bytearray | None = None
    (word,) = _USER_FLAGS_FORM.unpack_from(packet, _USER_FLAGS)
    if not 0 <= message.hop_count <= _HOPS:
        raise InvalidValue(f"{message.hop_count} is not in 0..{_HOPS}", path="UserHeader.Flags.RC")
    wanted = [
        (_USER_FLAGS, _USER_FLAGS_FORM, word & ~_HOPS | message.hop_count),
        (_MESSAGE_ID, _MESSAGE_ID_FORM, message.identifier.uniquifier),
        (_SENT_TIME, _SENT_TIME_FORM, message.sent_time),
    ]
    sequence = message.transactional_message_sequence_identifier
    if word & _TRANSACTION and sequence is not None:
        _, start = USER_HEADER.read(packet, _USER_HEADER)
        numbers = (
            sequence.ordinal,
            sequence.time_stamp,
            message.transaction_sequence_number,
            message.transaction_previous_sequence_number,
        )
        wanted += [(start + at, form, value) for (at, form), value in zip(_SEQUENCE, numbers, strict=True)]
    for offset, form, value in wanted:
        if form.unpack_from(packet, offset)[0] == value:
            continue
        if made is None:
            made = bytearray(packet)
        try:
            form.pack_into(made, offset, value)
        except StructError:
            raise InvalidValue(f"{value} does not fit", path=USER_MESSAGE.name, offset=offset) from None
    return packet if made is None else bytes(made)


def in_transaction(packet: bytes, message: Message) -> bytes:
    """A packet with the number of its message's transaction, and whether it is the first and last there."""
    made = bytearray(packet)
    _, start = USER_HEADER.read(packet, _USER_HEADER)
    at = start + _TRANSACTION_FLAGS
    (word,) = _TRANSACTION_FLAGS_FORM.unpack_from(made, at)
    word &= ~(_NUMBER.mask | _FIRST | _LAST)
    word |= message.transaction_number << _NUMBER.shift
    word |= _FIRST if message.first_in_transaction else 0
    word |= _LAST if message.last_in_transaction else 0
    _TRANSACTION_FLAGS_FORM.pack_into(made, at, word)
    return bytes(made)


def add_session_header(packet: bytes, header: bytes) -> bytes:
    """A packet that has no SessionHeader with one at its end, which PacketSize does not count."""
    made = bytearray(packet)
    (word,) = _BASE_FLAGS_FORM.unpack_from(made, _BASE_FLAGS)
    assert not word & _SESSION, "there is a SessionHeader"
    _BASE_FLAGS_FORM.pack_into(made, _BASE_FLAGS, word | _SESSION)
    made += header
    return bytes(made)


def without_session_header(packet: bytes) -> bytes:
    """The packet as it was before a SessionHeader was put at its end."""
    (word,) = _BASE_FLAGS_FORM.unpack_from(packet, _BASE_FLAGS)
    if not word & _SESSION:
        return packet
    (size,) = _PACKET_SIZE_FORM.unpack_from(packet, _PACKET_SIZE)
    made = bytearray(packet[:size])
    _BASE_FLAGS_FORM.pack_into(made, _BASE_FLAGS, word & ~_SESSION)
    return bytes(made)
