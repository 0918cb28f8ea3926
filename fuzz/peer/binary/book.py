"""The messages that were sent, and their acknowledgements, over any connection."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from fuzz.peer.binary.expecting import ARRIVED, Expectation
from fuzz.peer.binary.messages import NA, NR, PA, PR, class_name
from fuzz.peer.binary.sequences import Sequences
from fuzz.peer.failure import NO_QUEUE, PeerFailure
from msmqwire.names.header_names import DIRECT
from msmqwire.schema import Record

NO_ACKNOWLEDGEMENT: Final = "no acknowledgement"
"""The kind of the failure that an administration acknowledgement is missing."""
RECEIVED: Final = 0x4000
"""MQMSG_CLASS_ACK_RECEIVE."""
_NEGATIVE: Final = 0x8000
_BAD_DST_Q: Final = 0x8000
"""MQMSG_CLASS_NACK_BAD_DST_Q."""
_GONE: Final = 0xC000
"""The lowest class that says that a message has left its queue without being received."""
_ASKED_BY: Final = {
    PA: "MQMQ-2.2.19.3-02",
    PR: "MQMQ-2.2.19.3-03",
    NA: "MQMQ-2.2.19.3-04",
    NR: "MQMQ-2.2.19.3-05",
}
_MISSING: Final = {
    ARRIVED: "MQQB-3.1.5.8.10-01",
    0x8002: "MQQB-3.1.5.8-04",
    0x8005: "MQQB-3.1.5.8.2-18",
    0x8009: "MQQB-3.1.5.8.2-11",
    0x800A: "MQQB-3.1.5.8.2-13",
}
_FINAL_MISSING: Final = {
    0x8000: "MQQB-3.1.5.8.2-10",
    0x8009: "MQQB-3.1.5.8.2-12",
    0xC002: "MQQB-3.1.7.2.2-01",
}


_ORDER: Final = ("MQQB-3.1.5.8.6-05", "MQQB-3.1.5.8.1-01")
"""The requirements that a transactional message is delivered once, chosen by its place in a sequence."""


@dataclass(slots=True)
class Sent:
    """A message sent under one MessageID, with its copies.

    Attributes:
        number: the MessageID. note: a description, for people.
        requirements: the ids that are tested with it.
        wants: the acknowledgements that it asks for, of `PA`, `PR`, `NA`, `NR`.
        admin: the name of the administration queue, if that is at this side.
        copies: the number of times it was sent.
        known: whether its outcome is known. due: the number of administration acknowledgements of each class
            that are to come.
        allowed: the classes that may come besides.
        finals_due: the number of FinalAcks of each class that are to come.
        journaled: whether a FinalAck is asked for.
        place: its sequence, number and previous number, if it is transactional.
        came, finals: the acknowledgements that came, by class.
    """

    number: int
    note: str
    requirements: tuple[str, ...]
    wants: int = 0
    admin: str = ""
    copies: int = 0
    known: bool = True
    due: Counter[int] = field(default_factory=Counter)
    allowed: set[int] = field(default_factory=set)
    finals_due: Counter[int] = field(default_factory=Counter)
    journaled: bool = False
    place: tuple[int, int, int] | None = None
    came: Counter[int] = field(default_factory=Counter)
    finals: Counter[int] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        """A description, for people."""
        return self.note or f"message {self.number}"


@dataclass(slots=True)
class Book:
    """All messages of a performance.

    Attributes:
        identity: the identity of the sending queue manager.
        address: its address: acknowledgements to it come to this side.
        reachable: whether the peer can open a session to this side: otherwise a missing acknowledgement
            proves nothing.
        confused: whether bytes were sent that the peer may read as messages unknown here.
        sent: the messages by MessageID.
        sequences: the sequences of transactional messages.
    """

    identity: UUID
    address: str
    reachable: bool
    confused: bool = False
    sent: dict[int, Sent] = field(default_factory=dict)
    sequences: Sequences = field(default_factory=Sequences)
    _seen: set[tuple[UUID, int, int]] = field(default_factory=set)
    _foreign: set[UUID] = field(default_factory=set)

    # -- sending -----------------------------------------------------------------------------------------

    def note(self, packet: Record, expected: Expectation, note: str, requirements: tuple[str, ...]) -> None:
        """Take down a message that is sent."""
        user, properties = packet.UserHeader, packet.MessagePropertiesHeader
        if user.SourceQueueManager != self.identity:
            self._foreign.add(user.SourceQueueManager)
            return
        sent = self.sent.setdefault(user.MessageID, Sent(user.MessageID, note, requirements))
        first = sent.copies == 0
        sent.copies += 1
        sent.known = sent.known and expected.known
        sent.note, sent.requirements = note or sent.note, requirements or sent.requirements
        if user.Flags.AQ:
            sent.wants |= int(properties.Flags) & (PA | PR | NA | NR)
        name = user.AdminQueue.get("DirectFormatName") if user.Flags.AQ == DIRECT else None
        if isinstance(name, str) and f":{self.address}\\" in name:
            sent.admin = name
        taken = expected.taken
        if packet.TransactionHeader is not None:
            taken = self._in_sequence(packet, sent, expected)
        elif not first:
            taken = False
        sent.allowed.update(expected.maybe)
        if taken and sent.wants & PA:
            self._expect(sent, ARRIVED)
        for number in expected.classes if sent.wants & NA else ():
            self._expect(sent, number)
        for number in expected.finals:
            sent.finals_due[number] += 1

    def _expect(self, sent: Sent, number: int) -> None:
        """Expect an administration acknowledgement, if it is to come to this side."""
        if sent.admin:
            sent.due[number] = 1 if number == ARRIVED else sent.due[number] + 1
        else:
            sent.allowed.add(number)

    def _in_sequence(self, packet: Record, sent: Sent, expected: Expectation) -> bool:
        header, flags = packet.TransactionHeader, packet.UserHeader.Flags
        identifier = header.TxSequenceID.TimeStamp << 32 | header.TxSequenceID.Ordinal
        number, previous = header.TxSequenceNumber, header.PreviousTxSequenceNumber
        sent.place = identifier, number, previous
        sent.journaled = sent.journaled or bool(flags.JN or flags.JP or header.Flags.FA)
        if expected.taken:
            return self.sequences.accept(identifier, number, previous)
        self.sequences.doubt(identifier, number)
        return False

    def ask(self, number: int) -> None:
        """Take down a message that asks for an acknowledgement of its arrival, which may stay away."""
        self.sent[number] = Sent(number, "", (), wants=PA, copies=1, known=False)

    def arrived(self, number: int) -> bool:
        """Return whether the arrival of a message is acknowledged."""
        return number in self.sent and bool(self.sent[number].came[ARRIVED])

    # -- receiving --------------------------------------------------------------------------------------

    def receive(self, packet: Record) -> None:
        """Record a packet of the peer. Raises PeerFailure if a correct peer would not send it."""
        user, kind = packet.UserHeader, packet.schema.name
        number = packet.MessagePropertiesHeader.MessageClass
        key = user.SourceQueueManager, user.MessageID, number
        if key in self._seen:
            return  # sent again, as its acknowledgement was lost
        self._seen.add(key)
        if kind == "OrderAck":
            self._order_ack(packet.OrderAckBody)
        elif kind == "FinalAck":
            self._final_ack(packet.FinalAckBody, number)
        elif number == ARRIVED or number >= RECEIVED:
            self._administration(packet, number)

    def _administration(self, packet: Record, number: int) -> None:
        correlation = packet.MessagePropertiesHeader.CorrelationID
        source, message_id = UUID(bytes_le=correlation[:16]), int.from_bytes(correlation[16:], "little")
        sent = self.sent.get(message_id) if source == self.identity else None
        if source in self._foreign:
            return
        user = packet.UserHeader
        name = user.DestinationQueue.get("DirectFormatName") if user.Flags.DQ == DIRECT else None
        if sent is None:
            if isinstance(name, str) and str(self.identity) in name.lower() and not self.confused:
                text = f"CorrelationID of a {class_name(number)} is {correlation.hex()}, of no message sent"
                raise PeerFailure(("MQMQ-2.2.19.3-11", "MQQB-3.1.7.15-11"), text, "acknowledgement")
            return
        sent.came[number] += 1
        if isinstance(name, str) and sent.admin and name.lower() != sent.admin.lower():
            text = f"the acknowledgement of {sent.name} goes to {name!r} instead of {sent.admin!r}"
            raise PeerFailure(("MQQB-3.1.7.15-10",), text, "acknowledgement")
        self._judge(sent, number)

    def _judge(self, sent: Sent, number: int) -> None:
        """Judge that an administration acknowledgement of this class has come."""
        asked = next(flag for flag in (PA, PR, NA, NR) if _answers(number, flag))
        if not sent.wants & asked:
            text = f"{class_name(number)} comes for {sent.name}, which does not ask for it"
            raise PeerFailure((_ASKED_BY[asked],), text, "unasked")
        if not sent.known:
            most = sent.copies
        elif number in sent.due:
            most = sent.due[number]
        elif number >= _GONE or number == RECEIVED or number in sent.allowed:
            most = 1
        else:
            due = " or ".join(class_name(other) for other in {*sent.due, *sent.allowed}) or "none"
            ids = sent.requirements or tuple(_MISSING[other] for other in sent.due if other in _MISSING)
            text = f"{class_name(number)} comes for {sent.name} instead of {due}"
            raise PeerFailure(ids, text, _kind(number, "acknowledgement"))
        if sent.came[number] > most:
            ids = (_MISSING.get(number, _ASKED_BY[asked]),)
            if sent.copies > 1:
                ids = ("MQQB-3.1.5.8.1-02",) if sent.place is None else _ORDER
            text = f"{class_name(number)} comes {sent.came[number]} times for {sent.name}"
            raise PeerFailure(ids, text, "doubled")

    def _order_ack(self, body: Record) -> None:
        identifier = body.TxSequenceID.TimeStamp << 32 | body.TxSequenceID.Ordinal
        number, sequences = body.TxSequenceNumber, self.sequences
        if identifier not in sequences.accepted:
            sequences.foreign.append((identifier, number))
            if identifier in self._places():
                text = f"an OrderAck has number {number} of a sequence of which no message is accepted"
                raise PeerFailure(("MQQB-3.1.5.8.6-05",), text, "order")
            return
        if number > sequences.accepted[identifier] and not self.confused:
            text = (
                f"an OrderAck has number {number}, but {sequences.accepted[identifier]} is the last accepted"
            )
            raise PeerFailure(("MQQB-3.1.1.6.2-03", "MQQB-3.1.5.8.6-05"), text, "order")
        sequences.acknowledge(identifier, number)

    def _places(self) -> set[int]:
        return {sent.place[0] for sent in self.sent.values() if sent.place is not None}

    def _final_ack(self, body: Record, number: int) -> None:
        sent = self.sent.get(body.MessageID)
        identifier = body.TxSequenceID.TimeStamp << 32 | body.TxSequenceID.Ordinal
        if body.SourceGUID != self.identity:
            if identifier in self._places() and body.SourceGUID not in self._foreign:
                text = f"SourceGUID of a FinalAck is {body.SourceGUID}, not that of the sender"
                raise PeerFailure(("MQQB-2.2.5.1-05",), text, "final")
            return
        if sent is None or sent.place is None:
            if not self.confused:
                text = f"MessageID of a FinalAck is {body.MessageID}, of no transactional message sent"
                raise PeerFailure(("MQQB-2.2.5.1-06",), text, "final")
            return
        place = identifier, body.TxSequenceNumber, body.TxPreviousSequenceNumber
        if place != sent.place:
            text = "the FinalAck of {} has sequence {:#x}, number {} and previous {}, not {:#x}, {} and {}"
            ids = ("MQQB-2.2.5.1-02", "MQQB-2.2.5.1-03", "MQQB-2.2.5.1-04")
            raise PeerFailure(ids, text.format(sent.name, *place, *sent.place), "final")
        sent.finals[number] += 1
        if not sent.known:
            return
        if number not in sent.finals_due and not (sent.journaled and _after_arrival(number)):
            text = f"a FinalAck of class {class_name(number)} comes for {sent.name}"
            raise PeerFailure(sent.requirements or ("MQQB-2.2.5-02",), text, _kind(number, "final"))
        if sent.finals[number] > max(1, sent.copies):
            text = f"{sent.finals[number]} FinalAcks of class {class_name(number)} come for {sent.name}"
            raise PeerFailure(sent.requirements or ("MQQB-2.2.5-02",), text, "doubled")

    # -- missing acknowledgements ------------------------------------------------------------------------

    def all_arrived(self) -> bool:
        """Return whether no acknowledgement of an arrival is outstanding."""
        return not self.reachable or all(
            sent.came[ARRIVED] >= sent.due[ARRIVED] for sent in self.sent.values() if ARRIVED in sent.due
        )

    def missing(self, *, specific: bool = False) -> PeerFailure | None:
        """Return the acknowledgement that has not come so far; None if all have.

        Args:
            specific: whether other messages are acknowledged, so that the failure concerns the requirement
                tested with this one.
        """
        if not self.reachable:
            return None
        for sent in self.sent.values():
            for number, count in sent.due.items():
                if sent.came[number] < count:
                    ids = (_MISSING[number],) if number in _MISSING else sent.requirements
                    ids = sent.requirements if specific and sent.requirements else ids
                    text = f"no acknowledgement of class {class_name(number)} comes for {sent.name}"
                    return PeerFailure(ids, text, NO_ACKNOWLEDGEMENT)
            for number, count in sent.finals_due.items():
                if sent.finals[number] < count:
                    ids = (_FINAL_MISSING[number],) if number in _FINAL_MISSING else sent.requirements
                    text = f"no FinalAck of class {class_name(number)} comes for {sent.name}"
                    return PeerFailure(ids, text, "no final acknowledgement")
        outstanding = self.sequences.outstanding
        if outstanding is None:
            return None
        text, ids = f"no OrderAck comes for number {outstanding}", ("MQQB-3.1.5.8.6-02",)
        if self.sequences.foreign:
            identifier, got = self.sequences.foreign[-1]
            text, ids = f"{text}, but one of sequence {identifier:#x}, number {got}", ("MQQB-2.2.4.1-02",)
        return PeerFailure(ids, text, "no order acknowledgement")


def _kind(number: int, otherwise: str) -> str:
    """Return the kind of the failure that an acknowledgement of this class comes."""
    return NO_QUEUE if number == _BAD_DST_Q else otherwise


def _answers(number: int, flag: int) -> bool:
    """Return whether a class answers the request of a flag."""
    if number == ARRIVED:
        return flag == PA
    if number < _NEGATIVE:
        return flag == PR
    return flag == (NR if number >= _GONE else NA)


def _after_arrival(number: int) -> bool:
    """Return whether a FinalAck of this class tells how an accepted message left its queue."""
    return number >= _GONE or number == RECEIVED
