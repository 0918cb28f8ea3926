"""The facts of a report about one packet, whatever its protocol."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from msmqwire.analysis.dissection.item import Item
from msmqwire.analysis.dissection.summaries import summary
from msmqwire.analysis.protocols import protocol_of
from msmqwire.headers.message_summary import queue_text
from msmqwire.headers.queue_names import text
from msmqwire.names.printable import safe
from msmqwire.schema import Record


class Group(StrEnum):
    """The purpose of a packet: the colours of the ladder and the charts go by it."""

    HANDSHAKE = "handshake"
    MESSAGE = "message"
    ACKNOWLEDGEMENT = "acknowledgement"
    CALL = "call"
    ANSWER = "answer"
    OTHER = "other"
    MALFORMED = "malformed"
    GAP = "gap"


class Protocol(StrEnum):
    """The protocols of a report that do not register."""

    MSMQ = "MSMQ session"
    PING = "MSMQ ping"
    UNREAD = "Not read"


GROUPS: Final = tuple(Group)
_OF_KIND: Final = {
    "EstablishConnection": Group.HANDSHAKE,
    "ConnectionParameters": Group.HANDSHAKE,
    "UserMessage": Group.MESSAGE,
    "SessionAck": Group.ACKNOWLEDGEMENT,
    "OrderAck": Group.ACKNOWLEDGEMENT,
    "FinalAck": Group.ACKNOWLEDGEMENT,
    "Malformed": Group.MALFORMED,
    "Skipped": Group.GAP,
}


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about a packet in the tables.

    Attributes:
        group: its purpose.
        protocol: the protocol it belongs to.
        about: a summary in one line.
        queue: the queue it is about; empty if there is none.
        label: the label of the message in it; empty if there is none.
        body_size: bytes of the body of the message that it carries; None if it carries none.
        identity: distinguishes a message from other messages; None if nothing does.
        is_again: whether its protocol says that it was sent before.
    """

    group: Group
    protocol: str
    about: str
    queue: str = ""
    label: str = ""
    body_size: int | None = None
    identity: tuple[str, int] | None = None
    is_again: bool = False


def facts_of(item: Item) -> Facts:
    """Return the facts about an item in the tables."""
    about, packet = summary(item), item.packet
    match packet:
        case None:
            return Facts(_OF_KIND[item.kind], Protocol.UNREAD, about)
        case Record():
            if item.kind == "Ping":
                return Facts(Group.OTHER, Protocol.PING, about)
            return _session(item.kind, packet, about)
    protocol = protocol_of(packet)
    assert protocol is not None
    found = protocol.packets.facts(packet, item.transport)
    return Facts(
        Group(found.group), found.protocol, about, found.queue, found.label, found.body_size, found.identity,
        found.is_again,
    )  # fmt: skip


def _session(kind: str, packet: Record, about: str) -> Facts:
    group = _OF_KIND[kind]
    user = packet.get("UserHeader")
    if user is None:
        return Facts(group, Protocol.MSMQ, about)
    properties = packet.MessagePropertiesHeader
    if properties.MessageClass:
        group = Group.ACKNOWLEDGEMENT
    return Facts(
        group,
        Protocol.MSMQ,
        about,
        queue=queue_text(packet),
        label=_label(properties.Label),
        body_size=int(properties.MessageSize),
        identity=(str(user.SourceQueueManager), int(user.MessageID)) if user.MessageID else None,
    )


def _label(value: Any) -> str:
    return safe(text(value) or "")
