"""A TCP connection in a capture: its protocol, and the bytes skipped before that was known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from msmqwire.analysis.dissection.dissector import Conversation, Dissector, Opening
from msmqwire.analysis.dissection.finder import ScanResult
from msmqwire.analysis.dissection.followed_direction import Ignored
from msmqwire.analysis.dissection.item import Item
from msmqwire.capture import Data, End, Flow, Gap
from msmqwire.capture.events import Endpoint


class Connection:
    """Both directions of a TCP connection.

    Each segment is shown to the dissectors, in their order, until one recognises it, or the port decides;
    none is asked any more then, unless it is given up.

    Args:
        first: the direction that has delivered first.
        dissectors: those of the capture.

    Attributes:
        followed: the conversation as which it was recognised, or None.
        ended: the senders whose directions have ended.
        pending: data too short to be recognised or ruled out, by sender.
        ignored: the number of bytes skipped so far, with their last frame and its time, by sender.
    """

    __slots__ = ("_dissectors", "_first", "_owner", "ended", "followed", "ignored", "pending")

    def __init__(self, first: Flow, dissectors: Sequence[Dissector]) -> None:
        self._first, self._dissectors = first, dissectors
        self._owner = next((dissector for dissector in dissectors if dissector.claims(first)), None)
        self.followed: Conversation | None = None
        self.ended: set[Endpoint] = set()
        self.pending: dict[Endpoint, list[Data]] = {}
        self.ignored: dict[Endpoint, Ignored] = {}

    @property
    def held(self) -> int:
        """The approximate number of bytes of memory that incomplete packets take."""
        return 0 if self.followed is None else self.followed.held

    @property
    def idle(self) -> bool:
        """Whether no direction has delivered anything that is not ended yet."""
        return not self.pending and (self.followed is None or self.followed.idle)

    def between_packets(self, flows: Collection[Flow]) -> bool:
        """Whether nothing has ended, and `flows` are all its directions, each between packets."""
        if self.followed is None or self.ended or self.pending or self.ignored:
            return False
        return self.followed.between_packets(flows)

    def resume(self, flows: Sequence[Flow]) -> None:
        """Resume it with these directions between two packets, as the first dissector that can."""
        resumed = (dissector.resume(flows) for dissector in self._dissectors)
        self.followed = next(conversation for conversation in resumed if conversation is not None)

    def data(self, event: Data) -> Iterable[ScanResult]:
        """Feed the next bytes of a direction; its results are made while they are iterated over."""
        followed = self.followed
        if followed is None:
            return self._first_data(event)
        if self.pending and event.flow.sender in self.pending:
            return self._with_pending(event)
        return followed.data(event) if followed.is_settled else self._unsettled(followed, event)

    def gap(self, event: Gap) -> Iterator[ScanResult]:
        """Report a gap in a direction; yield the results of the bytes before it."""
        self._follow_owner(event.flow)
        if self.followed is not None:
            yield from self._replay(event.flow.sender)
        if self.followed is not None:
            yield from self.followed.gap(event)
        else:
            self._ignore(self.pending.pop(event.flow.sender, []))

    def end(self, event: End) -> Iterator[ScanResult]:
        """End a direction; yield its last results."""
        sender = event.flow.sender
        self.ended.add(sender)
        if sender in self.pending:
            self._follow_owner(event.flow)
        if self.followed is not None:
            yield from self._replay(sender)
        if self.followed is not None:
            yield from self.followed.end(event)
        self.pending.pop(sender, None)

    def item(self, flow: Flow, result: ScanResult) -> Item:
        """Return the item of a result of the last event."""
        assert self.followed is not None
        return self.followed.item(flow, result)

    def discard(self) -> list[tuple[Flow, list[ScanResult]]]:
        """Skip the buffered bytes of both directions to free memory."""
        return [] if self.followed is None else self.followed.discard()

    def _first_data(self, event: Data) -> Iterator[ScanResult]:
        dissector = self._recognised(event)
        if dissector is not None:
            yield from self._begin(dissector, event)

    def _begin(self, dissector: Dissector, event: Data) -> Iterator[ScanResult]:
        """Follow it as the protocol of a dissector; yield the results of the bytes that are recognised.

        These bytes can't leave it: they would be recognised again, and again.
        """
        self.followed = dissector.follow(event.flow, self._first, self.ignored)
        for each in [*self.pending.pop(event.flow.sender, ()), event]:
            yield from self._first_data(each) if self.followed is None else self._fed(self.followed, each)

    def _with_pending(self, event: Data) -> Iterator[ScanResult]:
        """Yield the results of the pending data of a direction that is followed, and of the next bytes."""
        yield from self._replay(event.flow.sender)
        yield from self.data(event)

    def _replay(self, sender: Endpoint) -> Iterator[ScanResult]:
        for earlier in self.pending.pop(sender, ()):
            yield from self.data(earlier)

    def _unsettled(self, followed: Conversation, event: Data) -> Iterator[ScanResult]:
        if followed.is_left_by(event):
            self._abandon(followed)
            yield from self._first_data(event)
            return
        yield from self._fed(followed, event)

    def _fed(self, followed: Conversation, event: Data) -> Iterator[ScanResult]:
        yield from followed.data(event)
        if followed.is_over:
            self._abandon(followed)

    def _abandon(self, followed: Conversation) -> None:
        followed.abandon()
        self.followed = None

    def _follow_owner(self, flow: Flow) -> None:
        """Follow it by the protocol of its port, if none has been recognised."""
        if self.followed is None and self._owner is not None:
            self.followed = self._owner.follow(flow, self._first, self.ignored)

    def _recognised(self, event: Data) -> Dissector | None:
        """Return the dissector that recognises a segment; None if it is to wait, or is ignored."""
        sender, is_claimed = event.flow.sender, self._owner is not None
        pending = self.pending.get(sender, [])
        data = b"".join([*(earlier.data for earlier in pending), event.data])
        opening = Opening(event.flow, data, event.data, is_claimed)
        for dissector in self._dissectors:
            verdict = dissector.recognises(opening)
            if verdict:
                return dissector
            if verdict is None:
                self.pending[sender] = [*pending, event]
                return None
        if self._owner is not None:
            return self._owner
        self._ignore(pending or [event])
        if not pending:
            return None
        del self.pending[sender]  # nothing began in it, but something may begin in this segment
        return self._recognised(event)

    def _ignore(self, events: list[Data]) -> None:
        """Count bytes that are skipped while the connection is not recognised."""
        for event in events:
            size = self.ignored.get(event.flow.sender, (0, 0, 0))[0]
            self.ignored[event.flow.sender] = size + len(event.data), event.frame, event.time_ns
