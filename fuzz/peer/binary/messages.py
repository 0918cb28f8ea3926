"""The packets that are sent to a peer, built from the schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from fuzz.peer.steps import IDENTITY
from fuzz.peer.target import Target
from msmqwire.constants import MessageClass
from msmqwire.errors import MalformedPacket
from msmqwire.headers.acknowledgements import ORDER_QUEUE_IDENTIFIER
from msmqwire.names.header_names import AT_DESTINATION
from msmqwire.packets import (
    CONNECTION_PARAMETERS,
    ESTABLISH_CONNECTION,
    FINAL_ACK,
    ORDER_ACK,
    SESSION_ACK,
    USER_MESSAGE,
    parse,
)
from msmqwire.schema import Record, UInt
from msmqwire.schema.layout import layout

TIME_STAMP: Final = 0x12345678
ACK_TIMEOUT_MS: Final = 20_000
"""The smallest that [MS-MQQB] 3.1.1.6.2 has."""
RECOVERABLE_ACK_TIMEOUT_MS: Final = 500
"""The smallest that [MS-MQQB] 3.1.1.6.2 has: the peer is to acknowledge recoverable messages soon."""
WINDOW: Final = 64
INFINITE: Final = 0xFFFFFFFF
TIME_TO_BE_RECEIVED_S: Final = 20
"""The lifetime of a message in its queue, so that a long run does not fill the queue; no program receives
it.
"""
PADDING: Final = b"\x5a" * 512
PEER: Final = UUID("70656572-2d6f-662d-7468-652d63617365")
"""The queue manager that is tested, in the bytes of steps; its own GUID is put there when they are sent."""
NOW: Final = 0xFD776F6E
"""SentTime in the bytes of steps; the time of sending is put there."""
PA, PR, NA, NR = 1, 2, 4, 8
"""MessagePropertiesHeader.Flags, the acknowledgements that are asked for."""
_SERVER_NOT_PINGED: Final = {"SE": 1}


def merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested fields, overridden by further ones."""
    result = dict(base)
    for name, value in more.items():
        old = result.get(name)
        result[name] = (
            merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
        )
    return result


# -- the session ----------------------------------------------------------------------------------------


def establish(fields: Mapping[str, Any] | None = None) -> Record:
    """Return an EstablishConnection request: [MS-MQQB] 2.2.3; `fields` are put over the usual ones."""
    header = {
        "ClientGuid": IDENTITY,
        "TimeStamp": TIME_STAMP,
        "OperatingSystem": _SERVER_NOT_PINGED,
        "Padding": PADDING,
    }
    packet: Record = ESTABLISH_CONNECTION.make(merged({"EstablishConnectionHeader": header}, fields or {}))
    return packet


def parameters(fields: Mapping[str, Any] | None = None) -> Record:
    """Return a ConnectionParameters request: [MS-MQQB] 2.2.2; `fields` are put over the usual ones."""
    header = {
        "RecoverableAckTimeout": RECOVERABLE_ACK_TIMEOUT_MS,
        "AckTimeout": ACK_TIMEOUT_MS,
        "WindowSize": WINDOW,
    }
    packet: Record = CONNECTION_PARAMETERS.make(merged({"ConnectionParametersHeader": header}, fields or {}))
    return packet


def session_ack(**header: int) -> Record:
    """Return a SessionAck: [MS-MQQB] 2.2.6, with these fields of its SessionHeader."""
    packet: Record = SESSION_ACK.make({"SessionHeader": {"WindowSize": WINDOW, **header}})
    return packet


# -- messages -------------------------------------------------------------------------------------------


def destination(target: Target, queue: str | None = None) -> str:
    """Return the direct format name of a queue of the peer, without ``DIRECT=``."""
    return f"TCP:{target.host}\\{queue or target.queue}"


def message(
    target: Target,
    number: int,
    fields: Mapping[str, Any] | None = None,
    *,
    queue: str | None = None,
    recoverable: bool = False,
    wants: int = 0,
    sequence: tuple[int, int, int] | None = None,
) -> Record:
    """Return a UserMessage for a queue of the peer: [MS-MQMQ] 2.2.20.

    Args:
        target: the peer.
        number: MessageID, by which the message is known.
        fields: put over the usual ones.
        queue: the path name of the queue without the computer; the usual queue of the target for None.
        recoverable: whether it is to be stored.
        wants: the acknowledgements that are asked for, of `PA`, `PR`, `NA` and `NR`.
        sequence: for a transactional message TxSequenceID, TxSequenceNumber and PreviousTxSequenceNumber.
    """
    usual: dict[str, Any] = {
        "BaseHeader": {"TimeToReachQueue": INFINITE, "Flags": {"PR": 0 if sequence else 3}},
        "UserHeader": {
            "SourceQueueManager": IDENTITY,
            "TimeToBeReceived": TIME_TO_BE_RECEIVED_S,
            "SentTime": NOW,
            "MessageID": number,
            "Flags": {"DM": int(recoverable or sequence is not None)},
            "DestinationQueue": {"DirectFormatName": destination(target, queue)},
        },
        "MessagePropertiesHeader": {"Label": "msmqwire", "MessageBody": b"msmqwire"},
    }
    if wants:
        usual = merged(usual, administration(target, wants))
    if sequence is not None:
        usual["TransactionHeader"] = _transaction(*sequence)
    more = dict(fields or {})
    if "DestinationQueue" in more.get("UserHeader", {}):
        del usual["UserHeader"]["DestinationQueue"]
    packet: Record = USER_MESSAGE.make(merged(usual, more))
    return packet


def _transaction(identifier: int, number: int, previous: int) -> dict[str, Any]:
    return {
        "Flags": {"FM": 1, "LM": 1, "ID": number & 0xFFFFF},
        "TxSequenceID": {"Ordinal": identifier & 0xFFFFFFFF, "TimeStamp": identifier >> 32},
        "TxSequenceNumber": number,
        "PreviousTxSequenceNumber": previous,
    }


def administration(target: Target, wants: int) -> dict[str, Any]:
    """Return the fields of a message that asks for acknowledgements.

    `wants` is MessagePropertiesHeader.Flags: positive and negative, arrival and receive. The queue has the
    sender in its name: each performance has its own.
    """
    name = f"TCP:{target.own}\\private$\\{IDENTITY}"
    return {
        "UserHeader": {"AdminQueue": {"DirectFormatName": name}},
        "MessagePropertiesHeader": {
            "Flags": {bit: wants >> at & 1 for at, bit in enumerate(("PA", "PR", "NA", "NR"))}
        },
    }


def order_ack(identifier: int, number: int, fields: Mapping[str, Any] | None = None) -> Record:
    """Return an OrderAck to the peer: [MS-MQQB] 2.2.4."""
    body = {
        "TxSequenceID": {"Ordinal": identifier & 0xFFFFFFFF, "TimeStamp": identifier >> 32},
        "TxSequenceNumber": number,
        "TxPreviousSequenceNumber": number - 1,
    }
    packet: Record = ORDER_ACK.make(merged(_acknowledgement({"OrderAckBody": body}), fields or {}))
    return packet


def final_ack(identifier: int, number: int, fields: Mapping[str, Any] | None = None) -> Record:
    """Return a positive FinalAck to the peer: [MS-MQQB] 2.2.5."""
    body = {
        "TxSequenceID": {"Ordinal": identifier & 0xFFFFFFFF, "TimeStamp": identifier >> 32},
        "TxSequenceNumber": number,
        "TxPreviousSequenceNumber": number - 1,
        "SourceGUID": PEER,
        "MessageID": number,
    }
    packet: Record = FINAL_ACK.make(merged(_acknowledgement({"FinalAckBody": body}), fields or {}))
    return packet


def _acknowledgement(body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "BaseHeader": {"TimeToReachQueue": INFINITE},
        "UserHeader": {
            "SourceQueueManager": IDENTITY,
            "QueueManagerAddress": PEER,
            "TimeToBeReceived": INFINITE,
            "SentTime": NOW,
            "Flags": {"DQ": AT_DESTINATION},
            "DestinationQueue": {"PrivateQueueIdentifier": ORDER_QUEUE_IDENTIFIER},
        },
        **body,
    }


# -- bytes ----------------------------------------------------------------------------------------------


def changed(packet: Record, path: str, value: int) -> bytes:
    """Return the bytes of a packet with another number in one field, and nothing else adapted to it."""
    data = bytearray(packet.to_bytes())
    place = next(place for place in layout(packet) if place.path == path)
    data[place.offset : place.offset + place.size] = (value % (1 << 8 * place.size)).to_bytes(
        place.size, "little"
    )
    return bytes(data)


def places(packet: Record) -> list[tuple[str, int, int]]:
    """Return the path, offset and size of each integer of a packet."""
    return [
        (place.path, place.offset, place.size) for place in layout(packet) if isinstance(place.node, UInt)
    ]


def place(packet: Record, path: str) -> int:
    """Return the offset of a field of a packet."""
    return next(place.offset for place in layout(packet) if place.path == path)


def kind(data: bytes) -> str:
    """Return the kind of a packet; of several in a row that of the first."""
    try:
        return parse(data).schema.name
    except MalformedPacket:
        return "Malformed"


def class_name(number: int) -> str:
    """Return a class of messages for people: its name and number."""
    name = MessageClass(number).name if number in MessageClass._value2member_map_ else "class"
    return f"{name} ({number:#06x})"
