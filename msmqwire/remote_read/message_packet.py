"""The message packet, the form in which a remote reader gets a message: [MS-MQRR] 2.2.5.

It is the message's UserMessage packet with some fields overridden, and after it headers with the queue
manager's state of the message. Those are always sent; older servers send none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Final
from uuid import UUID

from msmqwire.constants import AddressType
from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.headers import (
    BASE_HEADER,
    DEAD_LETTER_HEADER,
    EXTENDED_ADDRESS_HEADER,
    EXTENSION_HEADER,
    SOURCE_ADDRESS,
    SUBQUEUE_HEADER,
    USER_HEADER,
    source_address,
)
from msmqwire.headers.base import (
    BASE_HEADER_SIZE,
    FLAGS_OFFSET,
    INFINITE,
    PACKET_SIZE_OFFSET,
    SESSION_HEADER_BIT,
)
from msmqwire.headers.remote import SUBQUEUE_NAME_SIZE
from msmqwire.headers.session import SESSION_HEADER_SIZE
from msmqwire.names.header_names import DIRECT
from msmqwire.packets import headers_end, is_extension, packet_length, parse
from msmqwire.schema import Record, field_offset

NO_ADDRESS: Final = 0
"""ExtendedAddressHeader.AddressType of a header to be ignored."""

_NO_HOST: Final = IPv4Address(0)
_TIME_TO_REACH_QUEUE: Final = field_offset(BASE_HEADER, "TimeToReachQueue")
_ADDRESS: Final = BASE_HEADER_SIZE + field_offset(USER_HEADER, "QueueManagerAddress")


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageState:
    """A queue manager's state of a message, beyond its UserMessage packet.

    Attributes:
        address: the address of the host that the message came from; None if it is unknown.
        acknowledgement_class: MQMSG_CLASS_* that an application has set for it.
        abort_count: failed attempts in a row to read or move it.
        move_count: the number of times it was moved.
        last_move_time: local time in milliseconds since 1970-01-01 modulo 2^32; 0 if it was never moved.
        subqueue: the subqueue that it is in.
        target_subqueue: the subqueue that an undecided transaction moves it to.
        dead_letter_queue: the application's dead-letter queue.
        dead_letter_invalid: that queue can't be used.
    """

    address: IPv4Address | IPv6Address | None = None
    acknowledgement_class: int = 0
    abort_count: int = 0
    move_count: int = 0
    last_move_time: int = 0
    subqueue: str = ""
    target_subqueue: str = ""
    dead_letter_queue: str = ""
    dead_letter_invalid: bool = False


def message_packet(
    data: bytes,
    state: MessageState,
    *,
    sender: UUID | None = None,
    source: IPv4Address | IPv6Address | None = None,
) -> bytes:
    """Return the message packet of a message.

    TimeToReachQueue becomes the time at which it expires. For a direct destination the address that the
    message came from takes the place of QueueManagerAddress. A SessionHeader and bytes after the last header
    are left out: they belong to the session that the message came over.

    Args:
        data: the UserMessage packet, for an SRMP message with both SRMP headers.
        state: the values of the headers after it.
        sender: the GUID of the host that the message came from, which takes the place of QueueManagerAddress
            for any other destination; None leaves that as it is.
        source: the address for a direct destination if of that in `state` the first 8 bytes at most are
            known; without either it is 0.0.0.0, as there has to be one.

    Raises MalformedPacket for data that is not such a packet, InvalidValue for a state that does not fit.
    """
    base, _ = BASE_HEADER.read(data)
    packet_length(data)
    end = headers_end(data[: base.PacketSize])
    packet = bytearray(data[:end])
    packet[FLAGS_OFFSET] &= ~SESSION_HEADER_BIT  # MQRR-2.2.5.1-13
    packet[PACKET_SIZE_OFFSET : PACKET_SIZE_OFFSET + 4] = end.to_bytes(4, "little")
    user, _ = USER_HEADER.read(data, BASE_HEADER_SIZE)
    expiry = expiry_time(user.SentTime, base.TimeToReachQueue)
    # MQRR-2.2.5.1-03, MQRR-3.1.4.7-37, MQRR-3.1.4.13-26
    packet[_TIME_TO_REACH_QUEUE : _TIME_TO_REACH_QUEUE + 4] = expiry.to_bytes(4, "little")
    if user.Flags.DQ == DIRECT:  # MQRR-2.2.5.1-04
        sender = source_address(source or state.address or _NO_HOST)
    if sender is not None:  # MQRR-2.2.5.1-05
        packet[_ADDRESS : _ADDRESS + 16] = sender.bytes_le
    return bytes(packet) + _headers(state)


def expiry_time(sent_time: int, time_to_reach_queue: int) -> int:
    """Return TimeToReachQueue of a message packet: seconds since 1970-01-01 UTC, 0xFFFFFFFF for never.

    The specification leaves open the meaning of a sum beyond 32 bits and of an unlimited time: both never
    expire.
    """
    return INFINITE if time_to_reach_queue == INFINITE else min(sent_time + time_to_reach_queue, INFINITE)


def time_to_reach_queue(sent_time: int, expiry: int) -> int:
    """Return the seconds after `sent_time` in which a message has to reach its queue, 0xFFFFFFFF for any."""
    return INFINITE if expiry == INFINITE else max(0, expiry - sent_time)


@lru_cache(maxsize=256)  # of messages in one queue they differ little
def _headers(state: MessageState) -> bytes:
    for field in ("subqueue", "target_subqueue", "dead_letter_queue"):
        if "\0" in getattr(state, field):
            raise InvalidValue("a null in the name", path=field)
    for field in ("subqueue", "target_subqueue"):
        if len(getattr(state, field).encode("utf-16-le", "surrogatepass")) >= SUBQUEUE_NAME_SIZE:
            raise InvalidValue("longer than 31 characters", path=field)
    subqueue = SUBQUEUE_HEADER.build(
        {
            "Flags": {"AcknowledgementClass": state.acknowledgement_class},
            "AbortCounter": state.abort_count,
            "MoveCounter": state.move_count,
            "LastMoveTime": state.last_move_time,
            "SubqueueName": state.subqueue,
            "TargetSubqueueName": state.target_subqueue,
        }
    )
    dead_letter = b""
    if state.dead_letter_queue:
        dead_letter = DEAD_LETTER_HEADER.build({"DeadLetterPathName": state.dead_letter_queue})
    behind = subqueue + dead_letter + EXTENDED_ADDRESS_HEADER.build(_address_fields(state.address))
    flags = {
        "DL": bool(dead_letter),
        "SQ": True,
        "DI": bool(dead_letter) and state.dead_letter_invalid,
        "EA": True,
    }
    return EXTENSION_HEADER.build({"RemainingHeadersSize": len(behind), "Flags": flags}) + behind


def _address_fields(address: IPv4Address | IPv6Address | None) -> dict[str, object]:
    if address is None:
        return {"AddressType": NO_ADDRESS}
    fields = SOURCE_ADDRESS.parse(source_address(address).bytes_le)
    return {**dict(fields), "Address": address.packed.ljust(16, b"\0")}


# -- reading -------------------------------------------------------------------------------------------


def read_message_packet(data: bytes) -> Record:
    """Return the RemoteReadMessage in these bytes.

    If PacketSize counts the headers after the UserMessage too, they are found there.
    Raises MalformedPacket.
    """
    packet = parse(data, protocol="remote_read")
    extension = packet.TrailingData
    if packet.ExtensionHeader is not None or not extension or not is_extension(extension):
        return packet
    size = packet.BaseHeader.PacketSize
    end = size - len(extension)
    session = data[size : size + SESSION_HEADER_SIZE] if packet.BaseHeader.Flags.SH else b""
    moved = bytearray(data[:end] + session + extension)
    moved[PACKET_SIZE_OFFSET : PACKET_SIZE_OFFSET + 4] = end.to_bytes(4, "little")
    return parse(bytes(moved), protocol="remote_read")


def state_of(packet: Record) -> MessageState:
    """Return the state in the headers after a message. Raises MalformedPacket for a name that is not text."""
    state = MessageState(address=_address(packet.ExtendedAddressHeader))
    header = packet.SubqueueHeader
    if header is not None and _name(header, "SubqueueName"):  # MQRR-2.2.5.3-02
        state = replace(
            state,
            acknowledgement_class=header.Flags.AcknowledgementClass,
            abort_count=header.AbortCounter,
            move_count=header.MoveCounter,
            last_move_time=header.LastMoveTime,
            subqueue=_name(header, "SubqueueName"),
            target_subqueue=_name(header, "TargetSubqueueName"),
        )
    header = packet.DeadLetterHeader
    if header is not None and _name(header, "DeadLetterPathName"):  # MQRR-2.2.5.2-07
        state = replace(
            state,
            dead_letter_queue=_name(header, "DeadLetterPathName"),
            dead_letter_invalid=packet.ExtensionHeader.Flags.DI,
        )
    return state


def _name(header: Record, field: str) -> str:
    name = header[field]
    if not isinstance(name, str):
        raise MalformedPacket("not UTF-16 with a null after it", path=f"{header.schema.name}.{field}")
    return name


def _address(header: Record | None) -> IPv4Address | IPv6Address | None:
    """Return the address in an ExtendedAddressHeader, None for one of no known type: MQRR-2.2.5.5-04."""
    if header is None:
        return None
    match header.AddressType:
        case AddressType.IP_ADDRESS_TYPE:
            return IPv4Address(header.Address[:4])
        case AddressType.IPV6_ADDRESS_TYPE:
            address = IPv6Address(header.Address)
            return IPv6Address(f"{address}%{header.AddressScope}") if header.AddressScope else address
    return None
