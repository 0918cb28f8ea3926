"""The facts of a report about one packet, whatever its protocol."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

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
OF_KIND: Final = {
    "EstablishConnection": Group.HANDSHAKE,
    "ConnectionParameters": Group.HANDSHAKE,
    "UserMessage": Group.MESSAGE,
    "SessionAck": Group.ACKNOWLEDGEMENT,
    "OrderAck": Group.ACKNOWLEDGEMENT,
    "FinalAck": Group.ACKNOWLEDGEMENT,
    "Malformed": Group.MALFORMED,
    "Skipped": Group.GAP,
}
"""The purpose of packets of a session, and of what is no packet."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about a packet in the tables.

    Attributes:
        item: the packet.
        group: its purpose.
        protocol: the protocol it belongs to.
        queue: the queue it is about; empty if there is none.
        of_protocol: the label that its protocol names, if it is none of MSMQ's own.
        body_size: bytes of the body of the message that it carries; None if it carries none.
        identity: distinguishes a message from other messages; None if nothing does.
        is_again: whether its protocol says that it was sent before.
    """

    item: Item
    group: Group
    protocol: str
    queue: str = ""
    of_protocol: str = ""
    body_size: int | None = None
    identity: tuple[str, int] | None = None
    is_again: bool = False

    @property
    def about(self) -> str:
        """A summary in one line. Counts do not need it, and it takes longer than they do."""
        return summary(self.item)

    @property
    def label(self) -> str:
        """The label of the message in it; empty if there is none."""
        packet = self.item.packet
        properties = packet.get("MessagePropertiesHeader") if isinstance(packet, Record) else None
        return self.of_protocol if properties is None else safe(text(properties.Label) or "")


def facts_of(item: Item) -> Facts:
    """Return the facts about an item in the tables."""
    packet = item.packet
    match packet:
        case None:
            return Facts(item, OF_KIND[item.kind], Protocol.UNREAD)
        case Record():
            if item.kind == "Ping":
                return Facts(item, Group.OTHER, Protocol.PING)
            return _session(item, packet)
    protocol = protocol_of(packet)
    assert protocol is not None
    found = protocol.packets.facts(packet, item.transport)
    return Facts(
        item, Group(found.group), found.protocol, found.queue, found.label, found.body_size, found.identity,
        found.is_again,
    )  # fmt: skip


def _session(item: Item, packet: Record) -> Facts:
    user = packet.get("UserHeader")
    if user is None:
        return Facts(item, OF_KIND[item.kind], Protocol.MSMQ)
    properties = packet.MessagePropertiesHeader
    return Facts(
        item,
        group_of(item.kind, properties.MessageClass),
        Protocol.MSMQ,
        queue=queue_text(packet),
        body_size=int(properties.MessageSize),
        identity=(str(user.SourceQueueManager), int(user.MessageID)) if user.MessageID else None,
    )


def group_of(kind: str, message_class: int) -> Group:
    """Return the purpose of a packet of a session that has a message of a class."""
    return Group.ACKNOWLEDGEMENT if message_class else OF_KIND[kind]
