"""The outcome of a message that was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from msmqwire.constants import class_name, is_about_receive, is_negative
from msmqwire.errors import InvalidValue, MsmqError, NotDelivered
from msmqwire.qm.model.enumerations import AcknowledgementsRequested


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """An administration acknowledgement: [MS-MQDMPR] 3.1.1.12, Class.

    Attributes:
        message_class: MESSAGE_CLASS_VALUES.
        time: when the other side created it, in seconds since 1970-01-01 UTC.
    """

    message_class: int
    time: int

    @property
    def class_name(self) -> str:
        """Its name without prefix: ``ACK_REACH_QUEUE``, ``ACK_RECEIVE``, ``NACK_BAD_DST_Q``."""
        return class_name(self.message_class)

    @property
    def negative(self) -> bool:
        """Whether it reports a failure."""
        return is_negative(self.message_class)

    @property
    def about_receive(self) -> bool:
        """Whether it reports the reception of the message, not its arrival."""
        return is_about_receive(self.message_class)


def given_up_reason(final: int | str | None) -> str:
    """Return why a message was given up: a text, or by the class of its final acknowledgement."""
    if isinstance(final, str):
        return final
    return "it was given up" if final is None else class_name(final)


class Sent:
    r"""A message that was sent.

    Attributes:
        identifier: its identifier, ``guid\number``.
        copies: number of destination queues; each sends the acknowledgements requested.
        acknowledgements: those received, in order of arrival.
    """

    __slots__ = (
        "__weakref__", "_delivered", "_ended", "_final", "_obstacle", "_report", "_requested", "_waiting",
        "acknowledgements", "copies", "identifier",
    )  # fmt: skip

    def __init__(
        self,
        identifier: str,
        requested: AcknowledgementsRequested,
        copies: int,
        obstacle: Callable[[], str],
        report: Callable[[str], None],
    ) -> None:
        """`obstacle` tells why messages are not transferred; `report` is called when a failure is told."""
        self.identifier, self.copies, self._obstacle, self._report = identifier, copies, obstacle, report
        self.acknowledgements: list[Acknowledgement] = []
        self._requested = requested
        self._delivered: bool | None = None
        self._final: int | str | None = None
        self._ended: Callable[[], MsmqError] | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def __repr__(self) -> str:
        return f"<Sent {self.identifier}>"

    # -- events ---------------------------------------------------------------------------------------------

    def set_outcome(self, delivered: bool, final: int | str | None = None) -> None:
        """Record that all copies were transferred, or that one was given up.

        `final` is the class of the final acknowledgement that gives the reason, or the reason itself.
        """
        if self._delivered is None:
            self._delivered, self._final = delivered, final
            self._wake()

    def acknowledge(self, acknowledgement: Acknowledgement) -> None:
        """Record an acknowledgement."""
        self.acknowledgements.append(acknowledgement)
        self._wake()

    def end(self, error: Callable[[], MsmqError]) -> None:
        """Stop waiting for events; `error` creates the exception for those who still wait."""
        if self._ended is None:
            self._ended = error
            self._wake()

    # -- waiting --------------------------------------------------------------------------------------------

    async def transferred(self, timeout: float | None = None) -> None:
        """Wait until the other side has it: on disk, if it is recoverable or transactional.

        Raises NotDelivered if it was given up (its time to reach the queue is over, say) or refused (it is
        transactional and its queue is not, say); TimeoutError; Unreachable if the connection is left before.
        """
        if self._delivered is None:
            await self._until(self._outcome_is_known, timeout)
        if not self._delivered:
            raise self._given_up()

    def _outcome_is_known(self) -> bool:
        return self._delivered is not None

    async def arrived(self, timeout: float | None = None) -> Acknowledgement:
        """Wait for the acknowledgement that it has reached its queue, or the last of its queues.

        Raises what `acknowledged` raises, and NotDelivered for a negative one.
        """
        return await self._positive(AcknowledgementsRequested.ACK_POS_ARRIVAL, "pos_arrival", False, timeout)

    async def received(self, timeout: float | None = None) -> Acknowledgement:
        """Wait for the acknowledgement that it was received, from the last of its queues.

        Raises what `acknowledged` raises, and NotDelivered for a negative one.
        """
        return await self._positive(AcknowledgementsRequested.ACK_POS_RECEIVE, "pos_receive", True, timeout)

    async def acknowledged(self, *classes: int, timeout: float | None = None) -> Acknowledgement:
        """Wait for an acknowledgement of one of these classes, or of any class if none is given.

        Raises InvalidValue if none was requested, TimeoutError, and Unreachable if the connection is left
        before.
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
            obstacle = "" if self._delivered else self._obstacle()
            raise TimeoutError(f"{self.identifier}: {what} within {timeout:g} s{obstacle}") from None

    async def _changes_until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            if self._ended is not None:
                raise self._ended()
            change = asyncio.get_running_loop().create_future()
            self._waiting.append(change)
            await change

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for change in waiting:
            if not change.done():
                change.set_result(None)
