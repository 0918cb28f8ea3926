"""An observer of one direction of a connection: names its packets, and checks their acknowledgements."""

from __future__ import annotations

from typing import Final

from msmqwire.framing import Framer
from msmqwire.packets import parse
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.protocols.binary.session import COUNTS
from msmqwire.qm.rules import serialization
from msmqwire.qm.sim.environment import Environment
from msmqwire.qm.sim.ledger import MessageLedger
from msmqwire.qm.sim.plan import identifier_of
from msmqwire.qm.sim.protection import check_sent
from msmqwire.qm.sim.store_contents import StoreContents
from msmqwire.qm.sim.tracked import Tracked
from msmqwire.qm.sim.violation import Invariant
from msmqwire.schema import Record
from msmqwire.service.virtual.violation import Violation

_HALF: Final = COUNTS >> 1
_FLAG_BITS: Final = 32


class PacketObserver:
    """Sees the packets that one node sends to another over a connection.

    Args:
        environment: the environment of the run.
        ledger: records the messages that are sent.
        contents: the durable messages, which may be acknowledged.
        source, target: names of the nodes.
    """

    def __init__(
        self,
        environment: Environment,
        ledger: MessageLedger,
        contents: StoreContents,
        source: str,
        target: str,
    ) -> None:
        self._environment, self._ledger, self._contents = environment, ledger, contents
        self._source, self._target = source, target
        self._framer = Framer()
        # Sent packets, by their RecoverableSequenceNumber less 1; None for messages of the system.
        self._recoverable: list[Tracked | None] = []
        self._acknowledged = 0  # all recoverable ones up to this number

    def sent(self, data: bytes, opposite: PacketObserver) -> None:
        """Observe bytes that are passed to the transport; `opposite` observes the other direction."""
        for packet in self._framer.feed(data):
            self._observe(packet, parse(packet), opposite)

    def _observe(self, data: bytes, packet: Record, opposite: PacketObserver) -> None:
        kind = packet.schema.name
        self._environment.counts["packets"] += 1
        text = kind
        tracked = None
        match kind:
            case "UserMessage":
                message = serialization.deserialize(packet, data)
                tracked = self._ledger.transmitted(self._source, message)
                if tracked is not None:
                    check_sent(tracked, message, data)
                text = f"UserMessage {tracked or f'of class {message.message_class:#x}'}"
                if message.transactional:
                    text += f" tx {message.transaction_previous_sequence_number}"
                    text += f"->{message.transaction_sequence_number}"
            case "OrderAck":
                body = packet.OrderAckBody
                text = f"OrderAck tx {body.TxSequenceNumber}"
                sequence = (body.TxSequenceID.TimeStamp, body.TxSequenceID.Ordinal)
                header = packet.UserHeader
                sender = header.QueueManagerAddress
                if sender == NULL_GUID:
                    sender = identifier_of(self._target)
                self._contents.check_order_ack(
                    header.SourceQueueManager, sender, sequence, body.TxSequenceNumber
                )
            case "FinalAck":
                text = f"FinalAck tx {packet.FinalAckBody.TxSequenceNumber}"
                text += f" class {packet.MessagePropertiesHeader.MessageClass:#x}"
        if kind in ("UserMessage", "OrderAck", "FinalAck") and packet.UserHeader.Flags.DM:
            self._recoverable.append(tracked)
        session = getattr(packet, "SessionHeader", None)
        if session is not None:
            text += f" [ack {session.AckSequenceNumber}, saved {session.RecoverableMsgAckSeqNumber}"
            text += f" {session.RecoverableMsgAckFlags:b}]"
            opposite.acknowledged(session.RecoverableMsgAckSeqNumber, session.RecoverableMsgAckFlags)
        self._environment.log(self._source, text, self._target)

    def acknowledged(self, base: int, flags: int) -> None:
        """Check the messages of this direction that the target reports as saved: they must be durable there.

        Args:
            base: RecoverableMsgAckSeqNumber, the number of the first flag; earlier ones are saved as well.
            flags: RecoverableMsgAckFlags.
        """
        if not base or not flags:
            return
        for bit in range(_FLAG_BITS):
            if flags >> bit & 1:
                self._check_saved((base + bit) % COUNTS)
        for number in range(self._acknowledged + 1, self._acknowledged + 1 + _HALF):
            if (number % COUNTS - base) % COUNTS < _HALF:
                break
            self._check_saved(number % COUNTS)
            self._acknowledged = number

    def _check_saved(self, number: int) -> None:
        index = (number - 1) % COUNTS
        if index >= len(self._recoverable):
            raise Violation(
                Invariant.DURABLE,
                f"{self._target} acknowledges number {number} of {self._source}, which was not sent",
            )
        tracked = self._recoverable[index]
        if tracked is not None and not self._may_acknowledge(tracked):
            raise Violation(
                Invariant.DURABLE, f"{self._target} reports {tracked} as saved, which is not in its store"
            )

    def _may_acknowledge(self, tracked: Tracked) -> bool:
        """Whether a session acknowledgement of the target is right.

        At the destination of a transactional message it proves nothing: a message out of sequence counts as
        well, [MS-MQQB] 3.1.5.8.6. There the order acknowledgement counts.
        """
        if tracked.is_transactional and self._target == tracked.destination:
            return True
        return self._target in tracked.stored_by or self._environment.plan.short_history
