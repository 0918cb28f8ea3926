"""Messages that a session has received and not ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from msmqwire.errors import ChangeWaits, InvalidValue
from msmqwire.qm.model.elements import OpenQueueDescriptor, Transaction
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.runtime.message_json import number

if TYPE_CHECKING:
    from msmqwire.qm.core import Core
    from msmqwire.qm.runtime.engine_driver import EngineDriver

HELD_MAX: Final = 10_000
"""Limit of messages received and not ended by one session."""
_RECEIPT_MAX: Final = (1 << 53) - 1


class HoldOwner(Protocol):
    """The part of the session that has received a message."""

    def message_ended(self, receipt: int) -> None:
        """Notify it that one of its messages has ended."""


class _Held(NamedTuple):
    descriptor: OpenQueueDescriptor
    position: MessagePosition
    transaction: Transaction | None
    owner: HoldOwner | None
    pushed: bool


class HeldMessages:
    """The messages that one session has received and not ended, by receipt.

    Attributes:
        reserved: the number of further messages for which there must always be room, for subscriptions.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._held: dict[int, _Held] = {}
        self._last = 0
        self.reserved = 0

    def __len__(self) -> int:
        return len(self._held)

    def room(self) -> int:
        """Return the number of messages that may still be received."""
        return HELD_MAX - len(self._held) - self.reserved

    def hold(
        self,
        descriptor: OpenQueueDescriptor,
        position: MessagePosition,
        transaction: Transaction | None = None,
        owner: HoldOwner | None = None,
        *,
        pushed: bool = False,
    ) -> int:
        """Hold a message that was received, in a transaction or not; return its receipt.

        Its return is a delivery, unless it is only `pushed` ahead to a program and that does not name it when
        it gives it back.
        """
        self._last += 1
        self._held[self._last] = _Held(descriptor, position, transaction, owner, pushed)
        if not pushed:
            self._core.messages.deliveries.handed_out(position)
        return self._last

    def receipts_of(self, request: Mapping[str, Any]) -> tuple[list[int], list[int]]:
        """Return the receipts that a request deletes and returns. Raises InvalidValue for unknown ones."""
        done, back = _receipts(request, "done"), _receipts(request, "back")
        for path, receipts in (("done", done), ("back", back)):
            for receipt in receipts:
                if receipt not in self._held:
                    raise InvalidValue(f"no message with the receipt {receipt} is taken", path=path)
        if len({*done, *back}) < len(done) + len(back):
            raise InvalidValue("a receipt is there twice", path="done")
        return done, back

    async def durable(self, driver: EngineDriver, receipts: list[int]) -> None:
        """Wait until changes are durable; messages that were received meanwhile return if they can't be, or
        if nobody waits for them any more.
        """
        try:
            await driver.durable()
        except (ChangeWaits, asyncio.CancelledError):
            driver.call(self.withdraw, [receipt for receipt in receipts if receipt in self._held])
            raise

    def withdraw(self, receipts: list[int]) -> None:
        """Return messages that no program got."""
        for receipt in receipts:
            self._core.messages.deliveries.hand_outs.withdraw(self._held[receipt].position.lookup_identifier)
        self.end([], receipts, named=False)

    def end(self, done: list[int], back: list[int], *, named: bool = True) -> None:
        """Delete messages, and return some to their queues.

        A message received in a transaction is deleted at the commit; it leaves the transaction on return.
        `named` is whether a program gives back just these messages: it has had pushed ones as well then.
        """
        messages = self._core.messages
        for receipts, delete in ((done, True), (back, False)):
            for receipt in receipts:
                descriptor, position, transaction, owner, pushed = self._held.pop(receipt)
                if pushed and named and not delete:
                    messages.deliveries.handed_out(position)
                if owner is not None:
                    owner.message_ended(receipt)
                if transaction is not None:
                    if delete:
                        continue
                    operations = transaction.operations
                    operations[:] = [entry for entry in operations if entry.position is not position]
                messages.dequeue_end(descriptor, position, delete=delete)

    def disown(self, receipt: int) -> None:
        """Hold a message without the part of the session that has received it."""
        self._held[receipt] = self._held[receipt]._replace(owner=None)

    def descriptors(self) -> set[OpenQueueDescriptor]:
        """Return the open queues of the messages."""
        return {held[0] for held in self._held.values()}

    def forget(self, transaction: Transaction) -> None:
        """Forget the messages of a transaction that has ended."""
        ended = [receipt for receipt, held in self._held.items() if held.transaction is transaction]
        for receipt in ended:
            del self._held[receipt]

    def return_all(self) -> None:
        """Return all messages to their queues."""
        self.end([], list(self._held), named=False)


def _receipts(request: Mapping[str, Any], name: str) -> list[int]:
    receipts = request.get(name, [])
    if not isinstance(receipts, list):
        raise InvalidValue("not a list of receipts", path=name)
    return [number(receipt, name, _RECEIPT_MAX, 1) for receipt in receipts]
