"""The outcome of a message that was sent."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from msmqwire.constants import class_name, is_about_receive, is_negative
from msmqwire.errors import InvalidValue, MsmqError, NotDelivered
from msmqwire.names.class_words import class_with_words
from msmqwire.names.printable import in_seconds
from msmqwire.qm.model.enumerations import AcknowledgementsRequested

_ACKNOWLEDGEMENTS_MAX: Final = 32
"""Limit of acknowledgements kept for one message and each of its queues; an honest queue sends two."""
_POSITIVE: Final = AcknowledgementsRequested.ACK_POS_ARRIVAL | AcknowledgementsRequested.ACK_POS_RECEIVE

OutcomeName = Literal["confirmed", "refused", "transferred", "unknown", "stored"]


class Outcome(NamedTuple):
    """The outcome of a message, as far as is known.

    Attributes:
        name: ``confirmed``, its queue has acknowledged it, or an HTTP server has accepted it; ``refused``, it
            was refused by a negative acknowledgement, an HTTP status or the end of the session;
            ``transferred``, the peer has acknowledged its packet, which says nothing about the queue;
            ``unknown``, no acknowledgement has come: it may be in its queue if it was sent; ``stored``, the
            queue manager of this computer has it, and sends it.
        reason: the answer, or the missing answer, in words; None if the name is enough.
    """

    name: OutcomeName
    reason: str | None = None


class Obstacle(NamedTuple):
    """The obstacle that keeps messages from being transferred.

    Attributes:
        words: its description; empty if there is none.
        refuses: whether the peer refuses them, by an answer or the end of each session.
    """

    words: str
    refuses: bool = False

    @property
    def aside(self) -> str:
        """The words in parentheses after a space, or nothing."""
        return f" ({self.words})" if self.words else ""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """An administration acknowledgement: [MS-MQDMPR] 3.1.1.12, Class.

    Attributes:
        message_class: MESSAGE_CLASS_VALUES.
        time: its time of creation at the peer, in seconds since 1970-01-01 UTC.
        peer: the address that it came from, the /64 network for IPv6; empty for one that was made here.
    """

    message_class: int
    time: int
    peer: str = ""

    @property
    def class_name(self) -> str:
        """Its name without prefix: ``ACK_REACH_QUEUE``, ``ACK_RECEIVE``, ``NACK_BAD_DST_Q``."""
        return class_name(self.message_class)

    @property
    def negative(self) -> bool:
        """Whether the acknowledgement reports a failure."""
        return is_negative(self.message_class)

    @property
    def about_receive(self) -> bool:
        """Whether the acknowledgement reports the reception of the message, not its arrival."""
        return is_about_receive(self.message_class)


def given_up_reason(final: int | str | None) -> str:
    """Return why a message was given up: a text, or by the class of its final acknowledgement."""
    if isinstance(final, str):
        return final
    return "it was given up" if final is None else class_name(final)


class Sent:
    r"""A message that was sent, and its outcome.

    `outcome` waits for it and raises nothing about it. The other methods wait for one event each, and raise
    NotDelivered if it can't come any more: `transferred` for the other computer, `arrived` for the queue,
    `received` for a program that takes the message from it. The last two need the request for an
    acknowledgement (``acknowledge="full_receive"``). A message that a queue manager of this computer has, by
    `attach`, is ``stored``, and its acknowledgements go to the queue ``admin_queue`` alone.

    Timeouts are in seconds; None waits without limit.

    Attributes:
        identifier: its identifier, ``guid\number``; empty before the commit of its transaction.
        copies: number of destination queues; each sends the acknowledgements requested.
        acknowledgements: the acknowledgements received, in order of arrival, without duplicates.
    """

    __slots__ = (
        "__weakref__", "_delivered", "_ended", "_final", "_obstacle", "_places", "_report", "_requested",
        "_transferred", "_transferred_at", "_waiting", "acknowledgements", "copies", "identifier",
    )  # fmt: skip

    def __init__(
        self,
        identifier: str,
        requested: AcknowledgementsRequested,
        copies: int,
        obstacle: Callable[[], Obstacle],
        report: Callable[[str], None],
        transferred: OutcomeName = "transferred",
    ) -> None:
        """`obstacle` returns the reason why messages are not transferred; `report` is called when a failure
        is reported.

        `transferred` is the outcome of a message that is transferred and not acknowledged by its queue.
        """
        self.identifier, self.copies, self._obstacle, self._report = identifier, copies, obstacle, report
        self.acknowledgements: list[Acknowledgement] = []
        self._requested = requested
        self._transferred: OutcomeName = transferred
        self._transferred_at = 0.0
        self._places: dict[int, str] = {}
        self._delivered: bool | None = None
        self._final: int | str | None = None
        self._ended: Callable[[], MsmqError] | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def __repr__(self) -> str:
        return f"<Sent {self.identifier}>"

    # -- events ---------------------------------------------------------------------------------------------

    def set_outcome(self, delivered: bool, final: int | str | None = None) -> None:
        """Record that all copies were transferred, or that one was given up.

        `final` is the class of the final acknowledgement, or the reason itself.
        """
        if self._delivered is None:
            self._delivered, self._final = delivered, final
            self._transferred_at = asyncio.get_running_loop().time()
            self._wake()

    def set_transmitted(self, queue: int, origin: str) -> None:
        """Record that a copy leaves an outgoing queue, by its number, over a connection with an origin."""
        self._places[queue] = origin

    def acknowledge(self, acknowledgement: Acknowledgement) -> None:
        """Record an acknowledgement.

        A queue sends each only once: a peer that repeats or invents them can't fill the memory.
        """
        about, peer = acknowledgement.message_class, acknowledgement.peer
        same = sum(ack.message_class == about and ack.peer == peer for ack in self.acknowledgements)
        if same < self.copies and len(self.acknowledgements) < _ACKNOWLEDGEMENTS_MAX * self.copies:
            self.acknowledgements.append(acknowledgement)
            self._wake()

    def end(self, error: Callable[[], MsmqError]) -> None:
        """Stop waiting for events; `error` creates the exception for the tasks that still wait."""
        if self._ended is None:
            self._ended = error
            self._wake()

    # -- waiting --------------------------------------------------------------------------------------------

    async def transferred(self, timeout: float | None = None) -> None:
        """Wait until the peer has it, on disk if it is recoverable or transactional.

        That says nothing about the queue: a queue manager accepts a message for a queue that is missing or
        full, and discards it. `outcome` waits for the acknowledgement of the queue.

        Args:
            timeout: seconds to wait at most; None for no limit.

        Raises:
            NotDelivered: it was given up (its time to reach the queue is over, for example) or refused (it is
                transactional and its queue is not, for example).
            TimeoutError: neither is known in time.
            Unreachable: the connection was left before.
        """
        if self._delivered is None:
            await self._until(self._outcome_is_known, timeout)
        if not self._delivered:
            raise self._given_up()

    def _outcome_is_known(self) -> bool:
        return self._delivered is not None

    @property
    def transmitted(self) -> bool:
        """Whether the message has left over a connection at least once, acknowledged or not."""
        return bool(self._places) or self._delivered is True

    async def outcome(self, timeout: float | None = None, *, confirm: float | None = None) -> Outcome:
        """Wait until the outcome of the message is known, and return it; nothing about it is raised.

        The acknowledgement of its arrival decides if the message asks for one
        (``acknowledge="full_reach_queue"``) to come here, else that of its reception if it asks for that
        alone. A message that asks for neither is ``transferred`` at best, over HTTP ``confirmed``. Once
        `timeout` is over, or the connection was left, the outcome is as far as known; while the connection is
        open it may still change.

        Args:
            timeout: seconds to wait at most; None for no limit.
            confirm: seconds to wait for the queue's acknowledgement from the transfer on; `timeout` limits
                the time until the transfer only then. None for no such limit.
        """
        loop = asyncio.get_running_loop() if self._ended is None else None
        start = loop.time() if loop is not None else 0.0
        while (known := self._decided()) is None and loop is not None and self._ended is None:
            end = None if timeout is None else start + timeout
            if confirm is not None and self._delivered:
                end = self._transferred_at + confirm
            try:
                async with asyncio.timeout_at(end):
                    await self._change()
            except TimeoutError:
                break
        outcome = known or self._decided() or self._undecided()
        if outcome.name == "refused":
            self._report(self.identifier)
        return outcome

    def _decided(self) -> Outcome | None:
        """Return the outcome that no event can change any more; None if there is none yet."""
        counted = list(self._counted())
        for ack in counted:
            if ack.negative:
                return Outcome("refused", class_with_words(ack.class_name))
        if len(counted) == self.copies:
            return Outcome("confirmed")
        if self._delivered is None:
            return None
        if self._delivered:
            return None if self._requested & _POSITIVE else Outcome(self._transferred)
        if self._final is None and self._places:
            return Outcome("unknown", "its time was over before it was acknowledged")
        if isinstance(self._final, int):
            return Outcome("refused", class_with_words(class_name(self._final)))
        return Outcome("refused", self._final or "it was given up: its time to reach the queue was over")

    def _counted(self) -> Iterator[Acknowledgement]:
        """Yield the acknowledgements that decide: from each origin at most the number of copies sent there.

        So no origin decides for the queue of another one or reverses its own answer.
        """
        requested = self._requested
        about_receive = not requested & AcknowledgementsRequested.ACK_POS_ARRIVAL and bool(
            requested & AcknowledgementsRequested.ACK_POS_RECEIVE
        )
        left = Counter(self._places.values())
        for ack in self.acknowledgements:
            if not ack.peer or (ack.about_receive != about_receive and not _refuses_arrival(ack)):
                continue
            if self.copies == 1:  # it may come from another address of the same computer
                yield ack
                return
            if left[ack.peer] > 0:
                left[ack.peer] -= 1
                yield ack

    def _undecided(self) -> Outcome:
        """Return the outcome of a message when the wait for it is over."""
        if self._delivered:
            return Outcome("transferred", "the queue has not acknowledged it")
        obstacle = self._obstacle()
        if obstacle.refuses:
            return Outcome("refused", obstacle.words)
        ended = None if self._ended is None else self._ended()
        if isinstance(ended, NotDelivered):  # its transaction was aborted
            return Outcome("refused", ended.why)
        return Outcome("unknown", obstacle.words or str(ended or "it is not transferred yet"))

    async def arrived(self, timeout: float | None = None) -> Acknowledgement:
        """Wait for the acknowledgement that it has reached its queue, or the last of its queues.

        Args:
            timeout: seconds to wait at most; None for no limit.

        Raises:
            NotDelivered: a negative one has come, or the message was given up.
            InvalidValue: ``pos_arrival`` was not asked for, to come here.
            TimeoutError: none has come in time.
            Unreachable: the connection was left before.
        """
        return await self._positive(AcknowledgementsRequested.ACK_POS_ARRIVAL, "pos_arrival", False, timeout)

    async def received(self, timeout: float | None = None) -> Acknowledgement:
        """Wait for the acknowledgement that it was received, from the last of its queues.

        Args:
            timeout: seconds to wait at most; None for no limit.

        Raises:
            NotDelivered: a negative one has come, or the message was given up.
            InvalidValue: ``pos_receive`` was not asked for, to come here.
            TimeoutError: none has come in time.
            Unreachable: the connection was left before.
        """
        return await self._positive(AcknowledgementsRequested.ACK_POS_RECEIVE, "pos_receive", True, timeout)

    async def acknowledged(self, *classes: int, timeout: float | None = None) -> Acknowledgement:
        """Wait for an acknowledgement of one of these classes, or of any class if none is given.

        Args:
            classes: MessageClass of `msmqwire.constants`, negative ones too, which are returned, not raised.
            timeout: seconds to wait at most; None for no limit.

        Raises:
            InvalidValue: no acknowledgement was asked for, to come here.
            TimeoutError: none has come in time.
            Unreachable: the connection was left before.
        """
        if not self._requested:
            raise InvalidValue("no acknowledgement was asked for, to come here", path="acknowledge")

        def matching() -> list[Acknowledgement]:
            return [ack for ack in self.acknowledgements if not classes or ack.message_class in classes]

        await self._until(lambda: bool(matching()), timeout)
        return matching()[0]

    async def _positive(
        self, kind: AcknowledgementsRequested, name: str, about_receive: bool, timeout: float | None
    ) -> Acknowledgement:
        if not self._requested & kind:
            raise InvalidValue(f"{name} was not asked for, to come here", path="acknowledge")

        def matching() -> list[Acknowledgement]:
            negative = [ack for ack in self.acknowledgements if ack.negative]
            positive = [ack for ack in self.acknowledgements if ack.about_receive == about_receive]
            return negative or positive[self.copies - 1 :]

        await self._until(lambda: bool(matching()) or self._delivered is False, timeout)
        if not matching():
            raise self._given_up()
        acknowledgement = matching()[0]
        if acknowledgement.negative:
            raise self._not_delivered(acknowledgement.class_name, acknowledgement.message_class)
        return acknowledgement

    def _given_up(self) -> NotDelivered:
        final = self._final if isinstance(self._final, int) else None
        return self._not_delivered(given_up_reason(self._final), final)

    def _not_delivered(self, reason: str, message_class: int | None) -> NotDelivered:
        self._report(self.identifier)
        return NotDelivered(reason, identifier=self.identifier, message_class=message_class)

    async def _until(self, holds: Callable[[], bool], timeout: float | None) -> None:
        if timeout is None or holds() or self._ended is not None:  # mostly: saves the cost of a time limit
            await self._changes_until(holds)
            return
        try:
            async with asyncio.timeout(timeout):
                await self._changes_until(holds)
        except TimeoutError:
            what = "no acknowledgement" if self._delivered else "not transferred"
            obstacle = "" if self._delivered else self._obstacle().aside
            raise TimeoutError(f"{self.identifier}: {what} within {in_seconds(timeout)}{obstacle}") from None

    async def _changes_until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            if self._ended is not None:
                raise self._ended()
            await self._change()

    async def _change(self) -> None:
        change = asyncio.get_running_loop().create_future()
        self._waiting.append(change)
        try:
            await change
        finally:
            with suppress(ValueError):  # it is gone once it has been woken
                self._waiting.remove(change)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for change in waiting:
            if not change.done():
                change.set_result(None)


def _refuses_arrival(acknowledgement: Acknowledgement) -> bool:
    """Return whether an acknowledgement reports that the message has not reached its queue."""
    return acknowledgement.negative and not acknowledgement.about_receive
