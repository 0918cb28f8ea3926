"""The durable messages of a run: the contents of its stores, commit by commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from msmqwire.qm.model.elements import STREAM
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules import serialization, stored_rows, transfer_rows
from msmqwire.qm.sim.environment import Environment
from msmqwire.qm.sim.ledger import MessageLedger, NodeView, QueueKind, message_number, queue_kind
from msmqwire.qm.sim.plan import identifier_of
from msmqwire.qm.sim.tracked import SendState, Tracked
from msmqwire.qm.sim.violation import Invariant
from msmqwire.service.store.changes import Changes
from msmqwire.service.store.memory import MemoryStore
from msmqwire.service.virtual.violation import Violation

_IDENTIFIER_SIZE: Final = 20


class StoredMessage(NamedTuple):
    """A message in a store.

    Attributes:
        tracked: the message.
        kind: the kind of queue it is in.
        queue: the number of the queue.
    """

    tracked: Tracked
    kind: QueueKind
    queue: int


class StoreContents:
    """The messages that are durable, checked as they come, move and go."""

    def __init__(
        self, environment: Environment, ledger: MessageLedger, nodes: Mapping[str, NodeView]
    ) -> None:
        self._environment, self._plan, self._ledger = environment, environment.plan, ledger
        self._nodes = nodes
        # By name of the node and number of the position.
        self._stored: dict[str, dict[int, StoredMessage]] = {name: {} for name in self._plan.nodes}

    def has_in_user_queue(self, node: str, tracked: Tracked) -> bool:
        """Whether the store of a node has a message in a queue of applications."""
        return any(
            stored.tracked is tracked and stored.kind is QueueKind.USER
            for stored in self._stored[node].values()
        )

    def committed(self, node: NodeView, changes: Changes) -> None:
        """Take note of a commit of a node that is up; check the fate of the messages in it."""
        core = node.core
        assert core is not None, "only a node that is up commits"
        stored_messages = self._stored[node.name]
        for key in changes.rows.get(Table.HISTORY, ()):
            assert isinstance(key, bytes)
            # After the identifier comes the queue of one of several copies.
            if (accepted := self._ledger.by_identifier.get(key[:_IDENTIFIER_SIZE])) is not None:
                accepted.stored_by.add(node.name)
        self._sequences_advanced(node.name, changes)
        packets = changes.rows.get(Table.PACKET, {})
        for key, row in changes.rows.get(Table.MESSAGE, {}).items():
            assert isinstance(key, int)
            before = stored_messages.pop(key, None)
            if row is None:
                now = None
                if before is None and (passed := self._ledger.by_position.get((node.name, key))) is not None:
                    passed.stored_by.add(node.name)  # it came and went in one commit
            else:
                tracked = before.tracked if before is not None else self._parse(packets.get(key), node)
                if tracked is None:
                    continue
                number = stored_rows.read_message(row).queue
                queue = core.queue_manager.queues.get(number)
                # An outgoing queue is deleted when it is empty.
                kind = queue_kind(queue) if queue is not None else QueueKind.OUTGOING
                now = stored_messages[key] = StoredMessage(tracked, kind, number)
                tracked.stored_by.add(node.name)
            if before is not None and (now is None or now.kind is not before.kind):
                self._moved(node, before, now)
            elif before is None and now is not None:
                self._check_copy(node, now)

    def check_sent(self, node: str, tracked: Tracked) -> None:
        """A program knows that a message that it has sent is durable: check it."""
        kept = tracked.state is SendState.COMMITTED and not tracked.is_express
        is_over = tracked.is_given_up or tracked.received or tracked.failed
        if kept and node not in tracked.stored_by and not is_over:
            raise Violation(Invariant.DURABLE, f"{tracked} is acknowledged to its sender, and not stored")

    def check_received(self, node: str, number: int) -> None:
        """A program knows that the end of a receive is durable: check that the message is gone."""
        if number in self._stored[node]:
            raise Violation(Invariant.DURABLE, f"message {number} of {node} is received, and still stored")

    def forget_transactional(self, node: str, store: MemoryStore) -> None:
        """Make a node that is down lose some of the transactional messages that it was to pass on."""
        lost = Changes()
        for number, stored in list(self._stored[node].items()):
            tracked = stored.tracked
            in_transit = (
                tracked.is_transactional and tracked.sender != node and stored.kind is QueueKind.OUTGOING
            )
            if in_transit and self._environment.rng.random() < 0.5:
                self._environment.log(node, f"forgets {tracked}")
                del self._stored[node][number]
                lost.delete(Table.MESSAGE, number)
                lost.delete(Table.PACKET, number)
        store.commit(lost)

    def restarted(self, node: NodeView) -> None:
        """Check that a queue manager that has started again has the content of its store."""
        assert node.core is not None, "it has just started"
        restored = {
            position.number
            for queue in node.core.queue_manager.queues.values()
            for position in queue.positions
        }
        self._ledger.restored[node.name] = restored
        utc = node.core.context.utc
        for number, stored in self._stored[node.name].items():
            if number in restored:
                continue
            tracked = stored.tracked
            is_over = tracked.failed
            if stored.kind is QueueKind.OUTGOING:  # some protocols look for expired messages at once
                is_over = tracked.fates.expires_in_doubt and tracked.has_expired(utc)
            if not is_over:
                raise Violation(Invariant.HELD, f"{tracked} is not there after a restart of {node.name}")

    def check_order_ack(
        self,
        acknowledger: UUID,
        sender: UUID,
        sequence: tuple[int, int],
        number: int,
        *,
        stream: bool = False,
    ) -> None:
        """Check that a position in a sequence is durable at the node whose OrderAck or receipt goes out."""
        nodes = {node.identifier: node for node in self._nodes.values()}
        sender_name = nodes[sender].name
        format_name = self._ledger.format_name(sender_name, sequence)
        if format_name is None:
            return
        node = nodes[acknowledger]
        key = _incoming_key(sender_name, format_name, stream=stream)
        row = node.store.row(Table.INCOMING, key)
        if row is not None:
            info = transfer_rows.read_incoming(key, row, {})
            durable = info.acknowledged if info.is_stream else info.sequence_number
            if (info.sequence_identifier, durable) >= (sequence, number):
                return
        raise Violation(
            Invariant.DURABLE,
            f"{node.name} acknowledges {number} of {sender_name} to {format_name}, which is not stored",
        )

    def _parse(self, packet: bytes | None, node: NodeView) -> Tracked | None:
        """Return the message of a row of packets; None for messages of the system."""
        if packet is None:
            return None
        number = message_number(serialization.from_stored(packet, node.identifier))
        return self._ledger.messages[number] if number is not None else None

    def _sequences_advanced(self, node: str, changes: Changes) -> None:
        """Take note of the messages that a node has accepted, by the sequences that are stored."""
        for key, row in changes.rows.get(Table.INCOMING, {}).items():
            assert isinstance(key, bytes)
            if row is None:
                continue
            info = transfer_rows.read_incoming(key, row, {})
            if info.is_stream:  # a stream may begin without the messages of the one before
                continue
            last = (*info.sequence_identifier, info.sequence_number)
            for tracked in self._ledger.messages.values():
                if tracked.destination != node or _incoming_key(tracked.sender, tracked.format_name) != key:
                    continue
                if tracked.sequence and tracked.sequence <= last:
                    tracked.stored_by.add(node)

    def _moved(self, node: NodeView, before: StoredMessage, now: StoredMessage | None) -> None:
        """Check a message that has moved to another kind of queue, or that is deleted."""
        tracked = before.tracked
        if before.kind is QueueKind.USER and now is None:
            ended = tracked.received or tracked.failed or tracked.state is SendState.ABORTED
            if not (ended or tracked.is_express):  # express messages are stored while they are prepared
                raise Violation(Invariant.HELD, f"{tracked} is gone from the queue of {node.name}")
        elif before.kind is QueueKind.OUTGOING:
            if now is not None:
                self._check_copy(node, now)
            if now is None or now.kind is QueueKind.JOURNAL:
                self._check_leaving(node, tracked, now)
        elif before.kind in (QueueKind.JOURNAL, QueueKind.DEADLETTER):
            raise Violation(Invariant.HELD, f"{tracked} is gone from the {before.kind} queue of {node.name}")

    def _check_leaving(self, node: NodeView, tracked: Tracked, now: StoredMessage | None) -> None:
        """Check a message that leaves the outgoing queue of a node: another node must have it."""
        if tracked.is_transactional:
            # Its sender holds it until its destination has it: [MS-MQQB] 3.1.5.6.
            at_sender = self._stored[tracked.sender].values() if node.name != tracked.sender else ()
            is_held = tracked.destination in tracked.stored_by or any(
                stored.tracked is tracked for stored in at_sender
            )
        else:
            is_held = any(name != node.name for name in tracked.stored_by - {tracked.sender})
        expires_in_doubt = tracked.fates.expires_in_doubt
        in_doubt = tracked.is_transactional and node.name in tracked.transmitted_by and not expires_in_doubt
        gone = now is None and not tracked.options.get("deadletter")
        if expires_in_doubt and gone and tracked.has_expired(node.decided_utc):
            tracked.expired_at = node.name  # possible: it may have been acknowledged in time
        if is_held or tracked.state is SendState.ABORTED:
            return
        if tracked.has_expired(node.decided_utc) and not in_doubt:
            tracked.expired_at = node.name
        elif tracked.fates.drops_only_late and tracked.may_be_dropped:
            return
        elif not (tracked.refusal or self._plan.short_history):
            raise Violation(Invariant.HELD, f"{node.name} has given up {tracked}, which no node has")

    def _check_copy(self, node: NodeView, now: StoredMessage) -> None:
        """Check a message that is new in a journal or a dead-letter queue."""
        if now.kind is QueueKind.JOURNAL:
            self._check_journaled(now.tracked)
        elif now.kind is QueueKind.DEADLETTER and node.name == now.tracked.sender:
            # Elsewhere it was refused for a quota: [MS-MQQB] 3.1.5.8.8.
            self._check_deadlettered(node, now.tracked)

    def _check_journaled(self, tracked: Tracked) -> None:
        tracked.journaled += 1
        # A local message is journaled as soon as it is in its queue.
        is_remote = tracked.destination != tracked.sender
        # With some protocols arrival is enough, unless the message is to be dead-lettered if not received.
        has_come = tracked.received or (
            tracked.fates.receipt_is_enough and tracked.arrivals and not tracked.options.get("deadletter")
        )
        early = tracked.is_transactional and not has_come and is_remote
        if tracked.journaled > 1 or not tracked.options.get("journal") or early:
            raise Violation(Invariant.JOURNALED_ONCE, f"{tracked} is journaled, {tracked.journaled} times")

    def _check_deadlettered(self, node: NodeView, tracked: Tracked) -> None:
        tracked.deadlettered += 1
        if tracked.deadlettered > 1 or not tracked.options.get("deadletter"):
            raise Violation(
                Invariant.JOURNALED_ONCE, f"{tracked} is dead-lettered, {tracked.deadlettered} times"
            )
        expired = tracked.has_expired(node.decided_utc)
        if tracked.fates.expires_in_doubt and expired:  # even if it may have arrived
            tracked.expired_at = node.name
        elif tracked.is_transactional:
            if tracked.arrivals and not tracked.failed:
                raise Violation(
                    Invariant.NOT_BOTH, f"{tracked} is dead-lettered, and in its queue or received"
                )
            refused = tracked.refusal or tracked.failed
            in_doubt = node.name in tracked.transmitted_by and not refused
            if in_doubt or not (refused or expired):
                raise Violation(
                    Invariant.NOT_BOTH, f"{tracked} is dead-lettered while its destination may have it"
                )
        elif not (expired or tracked.refusal):
            raise Violation(Invariant.HELD, f"{tracked} is dead-lettered for no reason")


def _incoming_key(sender: str, format_name: str, *, stream: bool = False) -> bytes:
    """Return the key of `Table.INCOMING` for the messages of a sender to a queue."""
    return identifier_of(sender).bytes + (STREAM if stream else "").encode() + format_name.encode()
