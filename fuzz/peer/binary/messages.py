"""The packets that are sent to a peer, built from the schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fuzz.peer.steps import IDENTITY
from fuzz.peer.target import Target
from msmqwire.errors import MalformedPacket
from msmqwire.packets import CONNECTION_PARAMETERS, ESTABLISH_CONNECTION, SESSION_ACK, USER_MESSAGE, parse
from msmqwire.schema import Record

TIME_STAMP: Final = 0x12345678
ACK_TIMEOUT_MS: Final = 20_000
"""The smallest that [MS-MQQB] 3.1.1.6.2 has."""
RECOVERABLE_ACK_TIMEOUT_MS: Final = 500
"""The smallest that [MS-MQQB] 3.1.1.6.2 has: the peer is to acknowledge recoverable messages soon."""
WINDOW: Final = 64
INFINITE: Final = 0xFFFFFFFF
PADDING: Final = b"\x5a" * 512
_SERVER_NOT_PINGED: Final = {"SE": 1}


def merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested fields with others put over them."""
    result = dict(base)
    for name, value in more.items():
        old = result.get(name)
        result[name] = (
            merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
        )
    return result


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


def message(
    target: Target,
    number: int,
    fields: Mapping[str, Any] | None = None,
    *,
    queue: str | None = None,
    recoverable: bool = False,
) -> Record:
    """Return a UserMessage for a queue of the peer: [MS-MQMQ] 2.2.20.

    Args:
        target: the peer.
        number: MessageID, by which the message is known.
        fields: put over the usual ones.
        queue: the path name of the queue without the computer; the usual queue of the target for None.
        recoverable: whether it is to be stored.
    """
    name = f"TCP:{target.host}\\{queue or target.queue}"
    usual = {
        "BaseHeader": {"TimeToReachQueue": INFINITE, "Flags": {"PR": 3}},
        "UserHeader": {
            "SourceQueueManager": IDENTITY,
            "TimeToBeReceived": INFINITE,
            "MessageID": number,
            "Flags": {"DM": int(recoverable)},
            "DestinationQueue": {"DirectFormatName": name},
        },
        "MessagePropertiesHeader": {"Label": "msmqwire", "MessageBody": b"msmqwire"},
    }
    packet: Record = USER_MESSAGE.make(merged(usual, fields or {}))
    return packet


def administration(target: Target, wants: int) -> dict[str, Any]:
    """Return the fields of a message that asks for acknowledgements.

    `wants` is MessagePropertiesHeader.Flags: positive and negative, arrival and receive.
    """
    name = f"TCP:{target.own}\\private$\\msmqwire_admin"
    return {
        "UserHeader": {"AdminQueue": {"DirectFormatName": name}},
        "MessagePropertiesHeader": {
            "Flags": {bit: wants >> at & 1 for at, bit in enumerate(("PA", "PR", "NA", "NR"))}
        },
    }


def kind(data: bytes) -> str:
    """Return the kind of a packet; of several in a row that of the first."""
    try:
        return parse(data).schema.name
    except MalformedPacket:
        return "Malformed"
