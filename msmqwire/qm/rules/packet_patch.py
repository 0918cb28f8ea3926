"""Offsets of fields and bits of a UserMessage packet, taken from the schemas, and patches in place.

A packet is built once. Values known only when it is sent (its number, its position in a transactional
sequence, its session) are then patched into the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct
from struct import error as StructError
from types import MappingProxyType
from typing import Final

from msmqwire.errors import InvalidValue
from msmqwire.headers import BASE_HEADER, SECURITY_HEADER, SESSION_HEADER, TRANSACTION_HEADER, USER_HEADER
from msmqwire.packets import USER_MESSAGE
from msmqwire.qm.model.enumerations import AuthenticationLevel
from msmqwire.qm.model.message import Message
from msmqwire.schema import Flags, Header, UInt
from msmqwire.schema.layout import layout

_CODES: Final = {8: "B", 16: "H", 32: "I"}


def masks(header: Header, names: str) -> list[int]:
    """Return the masks of several flags, whose names are separated by blanks."""
    return [header.bits(f"Flags.{name}").mask for name in names.split()]


def _fields() -> Mapping[str, tuple[int, Struct]]:
    """Return offset and format, by path, of every integer that no variable part precedes.

    Offsets in the TransactionHeader, which follows the names of queues, are relative to its start.
    """
    sample = USER_MESSAGE.make({"UserHeader": {"DestinationQueue": None}, "TransactionHeader": {}})
    fields: dict[str, tuple[int, Struct]] = {}
    start = 0
    for field in layout(sample):
        if field.path == "TransactionHeader.Flags":
            start = field.offset
        if field.path.startswith("MessagePropertiesHeader"):
            break
        if isinstance(field.node, (UInt, Flags)):
            fields[field.path] = (field.offset - start, Struct(f"<{_CODES[field.node.bits]}"))
    return MappingProxyType(fields)


_FIELDS: Final = _fields()
_SESSION_HEADER_STRUCT: Final = Struct(
    "<" + "".join(_CODES[part.bits] for part in SESSION_HEADER.parts if isinstance(part, UInt))
)
_BASE_FLAGS, _BASE_FLAGS_STRUCT = _FIELDS["BaseHeader.Flags"]
_PACKET_SIZE, _PACKET_SIZE_STRUCT = _FIELDS["BaseHeader.PacketSize"]
_SENT_TIME, _SENT_TIME_STRUCT = _FIELDS["UserHeader.SentTime"]
_MESSAGE_ID, _MESSAGE_ID_STRUCT = _FIELDS["UserHeader.MessageID"]
_USER_FLAGS, _USER_FLAGS_STRUCT = _FIELDS["UserHeader.Flags"]
_NAMES: Final = _USER_FLAGS + _USER_FLAGS_STRUCT.size
"""The offset at which the names of queues begin: UserHeader.Flags are the last field of fixed size."""
_NAMES_MAX: Final = 64
_NAMES_SIZE_MAX: Final = 2048
_names_by_flags: Final[dict[int, bytes]] = {}
"""The names of the last packet with such UserHeader.Flags, without the hop count."""
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
_SESSION: Final = BASE_HEADER.bits("Flags.SH").mask
_TRANSACTION: Final = USER_HEADER.bits("Flags.TH").mask
_HOPS: Final = USER_HEADER.bits("Flags.RC").mask
_TRANSACTION_FLAGS, _TRANSACTION_FLAGS_STRUCT = _FIELDS["TransactionHeader.Flags"]
_NUMBER: Final = TRANSACTION_HEADER.bits("Flags.ID")
_FIRST, _LAST = masks(TRANSACTION_HEADER, "FM LM")
_SECURITY: Final = USER_HEADER.bits("Flags.SH").mask
_SECURITY_FLAGS_STRUCT: Final = Struct("<H")  # the first field of a SecurityHeader
_EB, _AU = masks(SECURITY_HEADER, "EB AU")
_AS: Final = SECURITY_HEADER.bits("Flags.AS")


def patch_transit_fields(packet: bytes, message: Message) -> bytes:
    """Return a packet with the fields that change in transit set from its message.

    These are the hop count, MessageID, SentTime and, if it has a TransactionHeader, TxSequenceID and the two
    numbers. Raises InvalidValue for a value that does not fit.
    """
    patched: bytearray | None = None
    (word,) = _USER_FLAGS_STRUCT.unpack_from(packet, _USER_FLAGS)
    if not 0 <= message.hop_count <= _HOPS:
        raise InvalidValue(f"{message.hop_count} is not in 0..{_HOPS}", path="UserHeader.Flags.RC")
    patches = [
        (_USER_FLAGS, _USER_FLAGS_STRUCT, word & ~_HOPS | message.hop_count),
        (_MESSAGE_ID, _MESSAGE_ID_STRUCT, message.identifier.uniquifier),
        (_SENT_TIME, _SENT_TIME_STRUCT, message.sent_time),
    ]
    sequence = message.transactional_message_sequence_identifier
    if word & _TRANSACTION and sequence is not None:
        start = _transaction_header(packet, word)
        numbers = (
            sequence.ordinal,
            sequence.time_stamp,
            message.transaction_sequence_number,
            message.transaction_previous_sequence_number,
        )
        patches += [
            (start + at, integer, value) for (at, integer), value in zip(_SEQUENCE, numbers, strict=True)
        ]
    for offset, integer, value in patches:
        if integer.unpack_from(packet, offset)[0] == value:
            continue
        if patched is None:
            patched = bytearray(packet)
        try:
            integer.pack_into(patched, offset, value)
        except StructError:
            raise InvalidValue(f"{value} does not fit", path=USER_MESSAGE.name, offset=offset) from None
    return packet if patched is None else bytes(patched)


def _transaction_header(packet: bytes, word: int) -> int:
    """Return the offset of the TransactionHeader in a packet whose UserHeader.Flags are `word`.

    It follows the names of queues, and a few names recur: their length depends only on the flags and the
    names, so that packets with the same flags and names need not be read again.
    """
    names = _names_by_flags.get(word & ~_HOPS)
    if names is not None and packet.startswith(names, _NAMES):
        return _NAMES + len(names)
    _, end = USER_HEADER.read(packet, _USER_HEADER)
    if end - _NAMES <= _NAMES_SIZE_MAX:
        if len(_names_by_flags) >= _NAMES_MAX:
            _names_by_flags.clear()
        _names_by_flags[word & ~_HOPS] = packet[_NAMES:end]
    return end


def patch_transaction_flags(packet: bytes, message: Message) -> bytes:
    """Return a packet with ID, FM and LM of TransactionHeader.Flags set from its message."""
    patched = bytearray(packet)
    (word,) = _USER_FLAGS_STRUCT.unpack_from(packet, _USER_FLAGS)
    offset = _transaction_header(packet, word) + _TRANSACTION_FLAGS
    (word,) = _TRANSACTION_FLAGS_STRUCT.unpack_from(patched, offset)
    word &= ~(_NUMBER.mask | _FIRST | _LAST)
    word |= message.transaction_number << _NUMBER.shift
    word |= _FIRST if message.first_in_transaction else 0
    word |= _LAST if message.last_in_transaction else 0
    _TRANSACTION_FLAGS_STRUCT.pack_into(patched, offset, word)
    return bytes(patched)


def mark_clear(packet: bytes) -> bytes:
    """Return a packet for the store, marked as having its body in clear, whatever PrivacyLevel asks for."""
    return _with_security_flags(packet, _EB, 0)


def mark_verified(packet: bytes, kind: AuthenticationLevel, *, authenticated: bool) -> bytes:
    """Return a packet for the store with the result of verification: on the wire AU and AS are 0."""
    return _with_security_flags(packet, _AU | _AS.mask, kind << _AS.shift | (_AU if authenticated else 0))


def _with_security_flags(packet: bytes, mask: int, bits: int) -> bytes:
    """Return a packet with these bits of SecurityHeader.Flags, if it has one."""
    user, offset = USER_HEADER.read(packet, _USER_HEADER)
    if not user.Flags & _SECURITY:
        return packet
    if user.Flags & _TRANSACTION:
        _, offset = TRANSACTION_HEADER.read(packet, offset)
    (word,) = _SECURITY_FLAGS_STRUCT.unpack_from(packet, offset)
    changed = _SECURITY_FLAGS_STRUCT.pack(word & ~mask | bits)
    return b"".join((packet[:offset], changed, packet[offset + _SECURITY_FLAGS_STRUCT.size :]))


def session_header(fields: Sequence[int]) -> bytes:
    """Return a SessionHeader with these fields in their order, without Reserved: [MS-MQMQ] 2.2.20.4."""
    return _SESSION_HEADER_STRUCT.pack(*fields, 0)


def add_session_header(packet: bytes, header: bytes) -> bytes:
    """Append a SessionHeader, which PacketSize does not include, to a packet that has none."""
    extended = bytearray(packet)
    (word,) = _BASE_FLAGS_STRUCT.unpack_from(extended, _BASE_FLAGS)
    assert not word & _SESSION, "the packet has a SessionHeader"
    _BASE_FLAGS_STRUCT.pack_into(extended, _BASE_FLAGS, word | _SESSION)
    extended += header
    return bytes(extended)


def without_session_header(packet: bytes) -> bytes:
    """Remove the SessionHeader from the end of a packet, if it has one."""
    (word,) = _BASE_FLAGS_STRUCT.unpack_from(packet, _BASE_FLAGS)
    if not word & _SESSION:
        return packet
    (size,) = _PACKET_SIZE_STRUCT.unpack_from(packet, _PACKET_SIZE)
    stripped = bytearray(packet[:size])
    _BASE_FLAGS_STRUCT.pack_into(stripped, _BASE_FLAGS, word & ~_SESSION)
    return bytes(stripped)
