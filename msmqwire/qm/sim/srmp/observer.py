"""An observer of SRMP between nodes: checks the content of requests, receipts and responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.qm.model.message import ObjectId
from msmqwire.qm.sim.environment import Environment
from msmqwire.qm.sim.ledger import MessageLedger, NodeView
from msmqwire.qm.sim.plan import SMALL_TRANSACTIONAL, TRANSACTIONAL
from msmqwire.qm.sim.srmp.view import SrmpView, StreamPosition, view
from msmqwire.qm.sim.store_contents import StoreContents
from msmqwire.qm.sim.tracked import Tracked
from msmqwire.qm.sim.violation import Invariant
from msmqwire.service.virtual.violation import Violation

_ACCEPTED: Final = 200
_REFUSED: Final = range(400, 500)


class SrmpObserver:
    """Sees all requests and responses of a run.

    Args:
        environment: the environment of the run.
        ledger: records the messages that are sent.
        contents: the durable messages, which may be acknowledged.
        nodes: the nodes, by name.
    """

    def __init__(
        self,
        environment: Environment,
        ledger: MessageLedger,
        contents: StoreContents,
        nodes: Mapping[str, NodeView],
    ) -> None:
        self._environment, self._ledger, self._contents = environment, ledger, contents
        self._nodes = nodes

    def requested(self, source: str, target: str, data: bytes) -> SrmpView:
        """Observe a request that a node hands to the transport; return its content."""
        environment, seen = self._environment, view(data)
        environment.counts["requests"] += 1
        tracked = self._tracked(seen)
        text = f"request {tracked or seen}"
        if tracked is not None:
            self._check_message(source, tracked, seen)
            if seen.stream is not None:
                text += f" stream {seen.previous}->{seen.stream.number}"
        elif seen.receipt_for is not None and seen.decided is None:
            self._check_stream_receipt(source, seen.receipt_for)
        else:
            self._check_receipt(source, seen)
        environment.log(source, text, target)
        return seen

    def responded(self, source: str, sender: str, seen: SrmpView, status: int) -> None:
        """Observe a response that a node hands to the transport, to a request of `sender`."""
        self._environment.counts[f"responses {status}"] += 1
        tracked = self._tracked(seen)
        if status in _REFUSED:
            if tracked is None:
                raise Violation(Invariant.REFUSED, f"{source} answers {status} to {seen} of {sender}")
            queue_is_transactional = tracked.queue in (TRANSACTIONAL, SMALL_TRANSACTIONAL)
            if queue_is_transactional == tracked.is_transactional:
                raise Violation(Invariant.REFUSED, f"{source} answers {status} to {tracked}")
            tracked.refusal = status
        elif status == _ACCEPTED and tracked is not None and not tracked.is_transactional:
            is_stored = tracked.is_express or source in tracked.stored_by or tracked.may_be_dropped
            if not (is_stored or self._environment.plan.short_history):
                raise Violation(
                    Invariant.DURABLE, f"{source} answers {status} to {tracked}, which is not in its store"
                )

    def _tracked(self, seen: SrmpView) -> Tracked | None:
        return None if seen.number is None else self._ledger.messages[seen.number]

    def _check_message(self, source: str, tracked: Tracked, seen: SrmpView) -> None:
        self._ledger.sent_by(source, tracked)
        if seen.identifier != tracked.identifier:
            raise Violation(
                Invariant.NUMBERED, f"{tracked} is sent as {seen.identifier}, it is {tracked.identifier}"
            )
        if tracked.has_expired(self._nodes[source].effect_utc):
            raise Violation(Invariant.IN_TIME, f"{tracked} is sent by {source}")
        if tracked.is_transactional != (seen.stream is not None):
            raise Violation(Invariant.NUMBERED, f"{tracked} is sent with the stream {seen.stream}")
        if seen.stream is not None and source == tracked.sender:
            self._ledger.numbered(tracked, seen.stream[1:])

    def _check_stream_receipt(self, source: str, last: StreamPosition) -> None:
        """Check that all messages of a stream up to one are durable at the node that sends the receipt."""
        sequence = last.time_stamp, last.ordinal
        sender = next(node.name for node in self._nodes.values() if node.identifier == last.owner)
        for tracked in self._ledger.of_sequence(sender, sequence, last.number):
            if source not in tracked.stored_by and not tracked.is_given_up:
                raise Violation(
                    Invariant.DURABLE, f"{source} acknowledges {tracked}, which is not in its store"
                )
        self._contents.check_order_ack(
            self._nodes[source].identifier, last.owner, sequence, last.number, stream=True
        )

    def _check_receipt(self, source: str, seen: SrmpView) -> None:
        """Check that a receipt about one message reports its fate at the node that the receipt comes from."""
        about = seen.arrived or seen.decided
        tracked = self._about(about)
        if tracked is None or tracked.destination != source:
            raise Violation(Invariant.TRUTHFUL, f"{source} sends {seen} about {about}: {tracked}")
        if seen.arrived is not None:
            true = bool(tracked.arrivals) and (tracked.is_express or source in tracked.stored_by)
        elif seen.positive:
            true = bool(tracked.received)
        else:
            true = bool(tracked.failed)
        if not true:
            raise Violation(Invariant.TRUTHFUL, f"{source} sends {seen} about {tracked}")

    def _about(self, identifier: ObjectId | None) -> Tracked | None:
        return None if identifier is None else self._ledger.by_identifier.get(bytes(identifier))
