"""A listener on one direction of a connection: names its packets, and checks what they acknowledge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msmqwire.framing import Framer
from msmqwire.packets import parse
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.rules import serialization
from msmqwire.qm.sim.violation import Violated
from msmqwire.schema import Record

if TYPE_CHECKING:
    from msmqwire.qm.sim.node import Node
    from msmqwire.qm.sim.tracked import Tracked

_COUNTS: Final = 1 << 16
_HALF: Final = _COUNTS >> 1
_FLAGS: Final = 32


class Listener:
    """Hears what one queue manager sends to another over a connection."""

    def __init__(self, source: Node, target: Node) -> None:
        self._source, self._target = source, target
        self._framer = Framer()
        self._recoverable: list[Tracked | None] = []  # sent, by their RecoverableSequenceNumber less 1
        self._acknowledged = 0  # of them, all up to this one

    def sent(self, data: bytes, opposite: Listener) -> None:
        """Bytes are handed to the transport."""
        for packet in self._framer.feed(data):
            self._packet(packet, parse(packet), opposite)

    def _packet(self, data: bytes, packet: Record, opposite: Listener) -> None:
        world, source = self._source.world, self._source
        kind = packet.schema.name
        world.counts["packets"] += 1
        text = kind
        tracked = None
        if kind == "UserMessage":
            message = serialization.deserialize(packet, data)
            tracked = world.ledger.transmitted(source, message)
            text = f"UserMessage {tracked or f'of class {message.message_class:#x}'}"
            if message.transactional:
                before, number = (
                    message.transaction_previous_sequence_number,
                    message.transaction_sequence_number,
                )
                text += f" tx {before}->{number}"
        elif kind in ("OrderAck", "FinalAck"):
            body = packet.OrderAckBody if kind == "OrderAck" else packet.FinalAckBody
            text = f"{kind} tx {body.TxSequenceNumber}"
            if kind == "OrderAck":
                sequence = (body.TxSequenceID.TimeStamp, body.TxSequenceID.Ordinal)
                origin, to = packet.UserHeader.SourceQueueManager, packet.UserHeader.QueueManagerAddress
                to = self._target.identifier if to == NULL_GUID else to
                world.ledger.order_acknowledged(origin, to, sequence, body.TxSequenceNumber)
            else:
                text += f" class {packet.MessagePropertiesHeader.MessageClass:#x}"
        if kind in ("UserMessage", "OrderAck", "FinalAck") and packet.UserHeader.Flags.DM:
            self._recoverable.append(tracked)
        header = getattr(packet, "SessionHeader", None)
        if header is not None:
            text += f" [ack {header.AckSequenceNumber}, saved {header.RecoverableMsgAckSeqNumber}"
            text += f" {header.RecoverableMsgAckFlags:b}]"
            opposite.acknowledged(header.RecoverableMsgAckSeqNumber, header.RecoverableMsgAckFlags)
        world.tell(source.name, text, self._target.name)

    def acknowledged(self, base: int, flags: int) -> None:
        """The target tells what of this direction it has saved: that must be durable there."""
        if not base or not flags:
            return
        for bit in range(_FLAGS):
            if flags >> bit & 1:
                self._saved((base + bit) % _COUNTS)
        for number in range(self._acknowledged + 1, self._acknowledged + 1 + _HALF):
            if (number % _COUNTS - base) % _COUNTS < _HALF:
                break
            self._saved(number % _COUNTS)  # what comes before the base is saved as well
            self._acknowledged = number

    def _saved(self, number: int) -> None:
        index = (number - 1) % _COUNTS
        if index >= len(self._recoverable):
            raise Violated(
                "nothing is acknowledged before it is durable",
                f"{self._target} acknowledges number {number} of {self._source}, which was not sent",
            )
        tracked = self._recoverable[index]
        if tracked is not None and not tracked.kept_by(self._target):
            raise Violated(
                "nothing is acknowledged before it is durable",
                f"{self._target} says {tracked} is saved, which is not in its store",
            )
