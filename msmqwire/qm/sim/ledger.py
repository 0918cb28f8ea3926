"""What applications did and what became of each message: the memory that the invariants are checked against.

What happens inside a queue manager is a note of the step it happens in. A note holds for good once the step
is durable, and is undone when a crash loses the step.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from msmqwire.constants import MessageClass
from msmqwire.headers.acknowledgements import ACK_LABEL, FINAL_ACK_BODY
from msmqwire.qm.core import Core
from msmqwire.qm.model.changes import Changes, Table
from msmqwire.qm.model.elements import OutgoingQueue, Queue
from msmqwire.qm.model.enumerations import AcknowledgementsRequested as Asked
from msmqwire.qm.model.enumerations import QueueManagerState
from msmqwire.qm.model.message import Message, ObjectId
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.protocols.binary import transfer_rows
from msmqwire.qm.rules import serialization, stored_rows
from msmqwire.qm.sim import tracked as states
from msmqwire.qm.sim.tracked import EXPRESS, TRANSACTIONAL, Tracked
from msmqwire.qm.sim.violation import Violated

if TYPE_CHECKING:
    from msmqwire.qm.sim.node import Node
    from msmqwire.qm.sim.world import World

_TAG: Final = re.compile(rb"#(\d+);")
_RECEIVED: Final = MessageClass.MQMSG_CLASS_ACK_RECEIVE
_ABOUT_RECEIVING: Final = 0x4000
_NEGATIVE: Final = 0x8000
OUTGOING, USER, JOURNAL, DEADLETTER, OTHER = "outgoing", "user", "journal", "dead-letter", "other"

ONCE: Final = "transactional messages arrive exactly once"
IN_ORDER: Final = "transactional messages arrive in order"
NOT_BOTH: Final = "none is both consumed and dead-lettered"
HELD: Final = "none is lost while its sender holds it"
NOT_TWICE: Final = "recoverable messages arrive once"
SENT_ONLY: Final = "only what was sent arrives"
ACKNOWLEDGED: Final = "acknowledgements are sent at most as often as allowed"
DURABLE: Final = "nothing is acknowledged before it is durable"
NUMBERED: Final = "a message keeps its number, and no two have one"
RECEIVED_ONCE: Final = "a message is received once"
JOURNALED_ONCE: Final = "a message is journaled once, if asked for"


class Note(NamedTuple):
    """What a step means for a message: how it is undone, and what holds once it is durable."""

    undo: Callable[[], None]
    durable: Callable[[], None] | None = None


class Place(NamedTuple):
    """Where a store has a message."""

    tracked: Tracked
    kind: str
    queue: int


def tag(message: Message) -> int | None:
    """The number of a message of an application; None for those of the system."""
    if message.message_class != MessageClass.MQMSG_CLASS_NORMAL:
        return None
    found = _TAG.match(message.body)
    return int(found[1]) if found else None


class Ledger:
    """All messages of a run.

    Attributes:
        messages: by number.
        places: by name of the node and number of the position: what its store has.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.messages: dict[int, Tracked] = {}
        self.places: dict[str, dict[int, Place]] = {name: {} for name in world.plan.nodes}
        self._by_identifier: dict[bytes, Tracked] = {}
        self._being_sent: Tracked | None = None  # it may be received before `send` returns
        self._arrived: dict[tuple[str, str], list[Tracked]] = {}  # transactional ones, by stream
        self._numbers: dict[tuple[str, int, int, int], Tracked] = {}
        self._sequences: dict[tuple[str, int, int], str] = {}
        self._acknowledgements_arrived: set[tuple[str, ObjectId]] = set()
        self._numbered_here: dict[tuple[str, int], Tracked] = {}  # by node and position
        self._made: set[ObjectId] = set()  # administration acknowledgements
        self._restored: dict[str, set[int]] = {}  # by node: the numbers of what its present life began with
        self._index = 0

    # -- what applications do ---------------------------------------------------------------------------

    def index(self) -> int:
        """The next place in the order of what applications do."""
        self._index += 1
        return self._index

    def add(self, tracked: Tracked) -> None:
        """A message is about to be sent."""
        tracked.sent_index = tracked.committed_index = self.index()
        self.messages[tracked.number] = self._being_sent = tracked

    def sent(self, tracked: Tracked, identifier: ObjectId) -> None:
        """Its queue manager has it; a crash before it is durable loses it."""
        tracked.identifier, self._being_sent = identifier, None
        self._by_identifier[bytes(identifier)] = tracked
        if tracked.kind != EXPRESS:
            self._note(tracked.node, Note(lambda: setattr(tracked, "state", states.LOST)))

    def committed(self, node: Node, messages: list[Tracked], otherwise: str) -> None:
        """The transaction that sends these is committed; a crash before it is durable gives another state."""
        for tracked in messages:
            tracked.state = states.COMMITTED
            tracked.committed_index = self.index()
            self._note(node, Note(partial(setattr, tracked, "state", otherwise)))

    # -- notes ------------------------------------------------------------------------------------------

    def _note(self, node: Node, note: Note) -> None:
        node.notes.append(note)

    def durable(self, node: Node, notes: list[Note]) -> None:
        """These can't be undone any more."""
        for note in notes:
            if note.durable is not None:
                note.durable()

    def undone(self, node: Node, notes: list[Note]) -> None:
        """A crash has lost these, given in their order."""
        for note in reversed(notes):
            note.undo()

    # -- what queue managers do: in memory --------------------------------------------------------------

    def available(self, node: Node, queue: Queue, position: MessagePosition) -> None:
        """A message can be taken from a queue: it has come, or was given back."""
        message = position.message
        number = tag(message)
        if number is None:
            self._system_message(node, queue, position, message)
            return
        tracked = self.messages[number]
        if tracked.state in (states.OPEN, states.ABORTED, states.LOST, states.REFUSED):
            raise Violated(SENT_ONLY, f"{tracked}, which is {tracked.state}, is in a queue of {node}")
        self._numbered_here[node.name, position.number] = tracked
        if place_kind(queue) is USER:
            self._arrives(node, tracked, position)

    def _arrives(self, node: Node, tracked: Tracked, position: MessagePosition) -> None:
        place = self._place(node, tracked, position.number)
        if place in tracked.arrivals or (-node.epoch, position.number) in tracked.arrivals:
            return
        if node is not tracked.to:
            raise Violated(SENT_ONLY, f"{tracked} has come to {node}")
        if tracked.kind == TRANSACTIONAL:
            self._in_its_order(tracked, position.number)
        elif tracked.arrivals and self._once(node, tracked, place[0]):
            raise Violated(NOT_TWICE, f"{tracked} has come again")
        self._world.counts["arrivals"] += 1
        self._world.tell(node.name, f"{tracked} is in the queue")
        tracked.arrivals.append(place)
        if tracked.kind != EXPRESS:
            self._note(node, Note(lambda: tracked.arrivals.remove(place)))

    def _place(self, node: Node, tracked: Tracked, number: int) -> tuple[int, int]:
        """Where a message has come to, and for an express one in which life of the node.

        Negative for one that was restored: a prepared transaction stores also express messages, but they are
        not in MessageIDHistoryTable after a restart.
        """
        if tracked.kind != EXPRESS:
            return 0, number
        starting = node.core is None or node.core.queue_manager.state is not QueueManagerState.READY
        restored = starting or number in self._restored.get(node.name, ())
        return (-node.epoch if restored else node.epoch), number

    def _once(self, node: Node, tracked: Tracked, epoch: int) -> bool:
        """Whether a message that is not transactional may not come again.

        MessageIDHistoryTable is bounded, [MS-MQQB] 3.1.1.3; what it has of express messages does not survive.
        """
        if node.world.plan.settings.remove_duplicate_size < 100:
            return False
        return tracked.kind != EXPRESS or any(before == epoch for before, _ in tracked.arrivals)

    def _in_its_order(self, tracked: Tracked, number: int) -> None:
        # By the numbers of positions: a reader that waits may take a message before its arrival is told.
        if tracked.arrivals:
            raise Violated(ONCE, f"{tracked} has come again")
        if tracked.deadlettered:
            raise Violated(NOT_BOTH, f"{tracked} has come, and is in the dead-letter queue of its sender")
        stream = self._arrived.setdefault((tracked.node.name, tracked.name), [])
        for other in stream:
            if tracked.precedes(other) and number > other.arrivals[0][1]:
                raise Violated(IN_ORDER, f"{tracked} has come after {other}")
        stream.append(tracked)
        self._note(tracked.to, Note(lambda: stream.remove(tracked)))

    def deleted(self, node: Node, queue: Queue, position: MessagePosition, reason: int) -> None:
        """A message leaves a queue for a reason."""
        number = tag(position.message)
        if number is None or place_kind(queue) is not USER:
            return
        tracked = self.messages[number]
        self._arrives(node, tracked, position)  # one that a waiting reader took was never available
        if reason == _RECEIVED:
            if tracked.received >= len(tracked.arrivals) and tracked.kind != EXPRESS:
                raise Violated(RECEIVED_ONCE, f"{tracked} is received again")
            self._world.counts["received"] += 1
            self._world.tell(node.name, f"{tracked} is received")
            tracked.received += 1
            self._note(node, Note(lambda: setattr(tracked, "received", tracked.received - 1)))
            if tracked.deadlettered and tracked.kind == TRANSACTIONAL:
                raise Violated(NOT_BOTH, f"{tracked} is received, and in the dead-letter queue of its sender")
        else:
            self._world.tell(node.name, f"{tracked} is removed, class {reason:#x}")
            before, tracked.failed = tracked.failed, reason
            self._note(node, Note(lambda: setattr(tracked, "failed", before)))

    def _system_message(self, node: Node, queue: Queue, position: MessagePosition, message: Message) -> None:
        """An acknowledgement is made, or has come."""
        if message.label == ACK_LABEL:
            if message.message_class & _NEGATIVE and message.source_machine_identifier == node.identifier:
                self._refused(node, message)
            return
        # A message lost by a crash leaves its identifier to the next one: that one is meant while it is sent.
        about, new = self._by_identifier.get(message.correlation_identifier), self._being_sent
        if new is not None and message.label == new.label:
            about = new
        if about is None:
            return
        if message.source_machine_identifier == node.identifier and message.identifier not in self._made:
            self._made.add(message.identifier)
            self._note(node, Note(lambda: self._made.discard(message.identifier)))
            self._acknowledges(node, about, message.message_class)
        if place_kind(queue) is USER and message.recoverable:
            self._acknowledgement_arrives(node, about, position, message)

    def _refused(self, node: Node, message: Message) -> None:
        body = FINAL_ACK_BODY.parse(message.body)
        about = self._by_identifier.get(bytes(ObjectId(body.SourceGUID, body.MessageID)))
        if about is not None and not message.message_class & _ABOUT_RECEIVING:
            before, about.refusal = about.refusal, message.message_class
            self._world.tell(node.name, f"{about} is refused, class {message.message_class:#x}")
            self._note(node, Note(lambda: setattr(about, "refusal", before)))

    def _acknowledges(self, node: Node, about: Tracked, kind: int) -> None:
        asked = Asked(int(str(about.wishes.get("acks", 0))))
        wanted = {
            (False, False): Asked.ACK_POS_ARRIVAL,
            (True, False): Asked.ACK_NEG_ARRIVAL,
            (False, True): Asked.ACK_POS_RECEIVE,
            (True, True): Asked.ACK_NEG_RECEIVE,
        }[bool(kind & _NEGATIVE), bool(kind & _ABOUT_RECEIVING)]
        if not asked & wanted:
            raise Violated(ACKNOWLEDGED, f"{about} did not ask for class {kind:#x}")
        made = about.acknowledgements
        of_this = [one for one, _ in made if (one ^ kind) & _ABOUT_RECEIVING == 0]
        if about.kind != TRANSACTIONAL:
            # Figures 5 and 7 of [MS-MQQB] 3.1.1.1: it expires also while it may have arrived, so that every
            # queue manager on the way may tell it, and the last one that it has come.
            of_this = [one for one, maker in made if (one, maker) == (kind, node.name)]
        free = about.kind == EXPRESS or node.world.plan.settings.remove_duplicate_size < 100
        if of_this and not free:
            raise Violated(ACKNOWLEDGED, f"{about} has class {kind:#x} after {of_this[-1]:#x}")
        self._world.counts["acknowledgements"] += 1
        made.append((kind, node.name))
        if about.kind != EXPRESS:
            self._note(node, Note(lambda: made.remove((kind, node.name))))

    def _acknowledgement_arrives(
        self, node: Node, about: Tracked, position: MessagePosition, message: Message
    ) -> None:
        key = (f"{node.name} {position.number}", message.identifier)
        if key in self._acknowledgements_arrived:
            return
        again = any(identifier == message.identifier for _, identifier in self._acknowledgements_arrived)
        if again and node.world.plan.settings.remove_duplicate_size >= 100:
            raise Violated(NOT_TWICE, f"class {message.message_class:#x} about {about} has come again")
        self._acknowledgements_arrived.add(key)
        self._note(node, Note(lambda: self._acknowledgements_arrived.discard(key)))

    # -- what queue managers send -----------------------------------------------------------------------

    def transmitted(self, node: Node, message: Message) -> Tracked | None:
        """A message goes over a connection; gives it if it is one of an application."""
        number = tag(message)
        tracked = self.messages.get(number) if number is not None else None
        if tracked is None:
            return None
        if tracked.state != states.COMMITTED:
            raise Violated(SENT_ONLY, f"{tracked}, which is {tracked.state}, is sent by {node}")
        if tracked.kind != EXPRESS and node.name not in tracked.stored_by:
            raise Violated(DURABLE, f"{tracked} is sent by {node} before it is in its store")
        tracked.transmitted_by.add(node.name)
        if message.transactional and node is tracked.node:
            self._numbered(tracked, message)
        return tracked

    def _numbered(self, tracked: Tracked, message: Message) -> None:
        identifier = message.transactional_message_sequence_identifier
        assert identifier is not None, "asked of transactional messages"
        sequence = (*identifier, message.transaction_sequence_number)
        if tracked.sequence is not None and tracked.sequence != sequence:
            raise Violated(NUMBERED, f"{tracked} is sent as {sequence} after {tracked.sequence}")
        tracked.sequence = sequence
        sender = tracked.node.name
        if self._numbers.setdefault((sender, *sequence), tracked) is not tracked:
            raise Violated(NUMBERED, f"{tracked} is sent as {sequence}, which is another one's number")
        self._sequences[sender, identifier.time_stamp, identifier.ordinal] = tracked.name

    def order_acknowledged(self, source: UUID, sender: UUID, sequence: tuple[int, int], number: int) -> None:
        """An order acknowledgement goes out: the place in the sequence must be durable where it is from."""
        nodes = {one.identifier: one for one in self._world.nodes.values()}
        name = self._sequences.get((nodes[sender].name, *sequence))
        if name is None:
            return
        key = sender.bytes + name.encode()
        row = nodes[source].store.row(Table.INCOMING, key)
        if row is not None:
            _, info = transfer_rows.read_incoming(key, row, {})
            if (info.sequence_identifier, info.sequence_number) >= (sequence, number):
                return
        what = f"{nodes[source]} acknowledges {number} of {nodes[sender]} to {name}, which is not stored"
        raise Violated(DURABLE, what)

    # -- what stores have -------------------------------------------------------------------------------

    def stored(self, node: Node, changes: Changes) -> None:
        """A commit is durable."""
        core = node.core
        assert core is not None, "only one that is up commits"
        places = self.places[node.name]
        for key in changes.rows.get(Table.HISTORY, ()):
            assert isinstance(key, bytes)
            if (taken := self._by_identifier.get(key)) is not None:
                taken.stored_by.add(node.name)
        if changes.rows.get(Table.INCOMING):
            self._taken_in_order(node, changes)
        packets = changes.rows.get(Table.PACKET, {})
        for key, row in changes.rows.get(Table.MESSAGE, {}).items():
            assert isinstance(key, int)
            before = places.pop(key, None)
            now = None
            if (
                before is None
                and row is None
                and (gone := self._numbered_here.get((node.name, key))) is not None
            ):
                gone.stored_by.add(node.name)  # it came and went in one commit
            if row is not None:
                tracked = before.tracked if before is not None else self._of(packets.get(key), node)
                if tracked is None:
                    continue
                number = stored_rows.read_message(row).queue
                queue = core.queue_manager.queues.get(number)  # outgoing ones go when they are empty
                now = Place(tracked, place_kind(queue) if queue is not None else OUTGOING, number)
                places[key] = now
                tracked.stored_by.add(node.name)
            if before is not None and (now is None or now.kind is not before.kind):
                self._moved(node, before, now)
            elif before is None and now is not None and now.kind in (JOURNAL, DEADLETTER):
                self._put_aside(node, now.tracked, now.kind)

    def forget(self, node: Node) -> None:
        """A node that is down loses some of the transactional messages that it was to pass on."""
        lost = Changes()
        for number, place in list(self.places[node.name].items()):
            tracked = place.tracked
            passed_on = tracked.kind == TRANSACTIONAL and tracked.node is not node and place.kind is OUTGOING
            if passed_on and self._world.rng.random() < 0.5:
                self._world.tell(node.name, f"forgets {tracked}")
                del self.places[node.name][number]
                lost.delete(Table.MESSAGE, number)
                lost.delete(Table.PACKET, number)
        node.store.commit(lost)

    def _of(self, packet: bytes | None, node: Node) -> Tracked | None:
        if packet is None:
            return None
        number = tag(serialization.from_stored(packet, node.identifier))
        return self.messages[number] if number is not None else None

    def _taken_in_order(self, node: Node, changes: Changes) -> None:
        for key, row in changes.rows[Table.INCOMING].items():
            assert isinstance(key, bytes)
            if row is None:
                continue
            _, info = transfer_rows.read_incoming(key, row, {})
            for tracked in self.messages.values():
                of_this = tracked.node.identifier.bytes + tracked.name.encode() == key
                place = (*info.sequence_identifier, info.sequence_number)
                if of_this and tracked.to is node and tracked.sequence and tracked.sequence <= place:
                    tracked.stored_by.add(node.name)

    def _moved(self, node: Node, before: Place, now: Place | None) -> None:
        """A message was in one place of a store, and is in another, or in none."""
        tracked = before.tracked
        if before.kind is USER and now is None:
            ended = tracked.received or tracked.failed or tracked.state == states.ABORTED
            if tracked.kind != EXPRESS and not ended:  # express ones are stored as long as they are prepared
                raise Violated(HELD, f"{tracked} is gone from the queue of {node}")
        elif before.kind is OUTGOING:
            if now is not None and now.kind in (JOURNAL, DEADLETTER):
                self._put_aside(node, tracked, now.kind)
            if now is None or now.kind is JOURNAL:
                self._leaves(node, tracked)
        elif before.kind in (JOURNAL, DEADLETTER):
            raise Violated(HELD, f"{tracked} is gone from the {before.kind} queue of {node}")

    def _leaves(self, node: Node, tracked: Tracked) -> None:
        """A message is not on its way from a node any more: others must have it."""
        if tracked.kind == TRANSACTIONAL:
            # Its sender holds it until its destination has it: [MS-MQQB] 3.1.5.6.
            at_sender = self.places[tracked.node.name].values() if node is not tracked.node else ()
            kept = tracked.to.name in tracked.stored_by or any(one.tracked is tracked for one in at_sender)
        else:
            kept = any(name != node.name for name in tracked.stored_by - {tracked.node.name})
        in_doubt = tracked.kind == TRANSACTIONAL and node.name in tracked.transmitted_by
        if kept or tracked.state == states.ABORTED:
            return
        if tracked.expired(node.decided_utc) and not in_doubt:
            tracked.expired_at = node.name
        elif not (tracked.refusal or node.world.plan.settings.remove_duplicate_size < 100):
            raise Violated(HELD, f"{node} has given up {tracked}, which nobody has")

    def _put_aside(self, node: Node, tracked: Tracked, kind: str) -> None:
        if kind is JOURNAL:
            tracked.journaled += 1
            # One that stays where it was sent is journaled as soon as it is in its queue.
            early = tracked.kind == TRANSACTIONAL and not tracked.received and tracked.to is not tracked.node
            if tracked.journaled > 1 or not tracked.wishes.get("journal") or early:
                raise Violated(JOURNALED_ONCE, f"{tracked} is journaled, {tracked.journaled} times")
            return
        if node is not tracked.node:
            return  # refused for a quota: [MS-MQQB] 3.1.5.8.8
        tracked.deadlettered += 1
        if tracked.deadlettered > 1 or not tracked.wishes.get("deadletter"):
            raise Violated(JOURNALED_ONCE, f"{tracked} is dead-lettered, {tracked.deadlettered} times")
        if tracked.kind == TRANSACTIONAL:
            if tracked.arrivals and not tracked.failed:
                raise Violated(NOT_BOTH, f"{tracked} is dead-lettered, and in its queue or received")
            in_doubt = node.name in tracked.transmitted_by and not (tracked.refusal or tracked.failed)
            if in_doubt or not (tracked.refusal or tracked.failed or tracked.expired(node.decided_utc)):
                raise Violated(NOT_BOTH, f"{tracked} is dead-lettered while its destination may have it")
        elif not tracked.expired(node.decided_utc):
            raise Violated(HELD, f"{tracked} is dead-lettered for no reason")

    def restarted(self, node: Node, core: Core) -> None:
        """A queue manager has come back: it must have what its store has."""
        found = set()
        for queue in core.queue_manager.queues.values():
            for position in queue.positions:
                found.add(position.number)
        self._restored[node.name] = found
        for number, place in self.places[node.name].items():
            if number not in found and not (place.kind is USER and place.tracked.failed):
                raise Violated(HELD, f"{place.tracked} is not there after a restart of {node}")


def place_kind(queue: Queue) -> str:
    """What a queue is to a message."""
    if isinstance(queue, OutgoingQueue):
        return OUTGOING
    path = queue.pathname.lower()
    if path.endswith("system$;journal"):
        return JOURNAL
    if path.endswith((";deadletter", ";deadxact")):
        return DEADLETTER
    return USER if "\\private$\\" in path and queue.owner_queue is None and "_queue$" not in path else OTHER


class Watcher:
    """Tells the ledger what happens in a queue manager, as a protocol beside the others."""

    def __init__(self, ledger: Ledger, node: Node) -> None:
        self._ledger, self._node = ledger, node

    def message_position_available(self, queue: Queue, position: MessagePosition) -> None:
        """A message can be taken."""
        self._ledger.available(self._node, queue, position)

    def message_position_deleted(self, queue: Queue, position: MessagePosition, reason: int) -> None:
        """A message leaves its queue."""
        self._ledger.deleted(self._node, queue, position, reason)

    def queue_paused(self, queue: OutgoingQueue) -> None:
        """Says nothing about messages."""

    def queue_resumed(self, queue: OutgoingQueue) -> None:
        """Says nothing about messages."""

    def send_user_message(self, position: MessagePosition, protocol_data: object) -> None:
        """Is seen on the wire."""
