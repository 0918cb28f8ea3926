"""Subscriptions of local clients: messages are pushed to them as they arrive, up to a window of messages not
ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from msmqwire.constants import MQ_OK, HResult
from msmqwire.errors import InvalidValue, ManagerStopped, MsmqError, QueueError
from msmqwire.qm.model.effects import ReadCompleted
from msmqwire.qm.model.elements import OpenQueueDescriptor
from msmqwire.qm.model.enumerations import PositionState, QueueAccessType
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules.read_results import PENDING
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.control_frames import message_frame
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.held_messages import HeldMessages
from msmqwire.qm.runtime.message_json import number
from msmqwire.qm.runtime.reasons import reason
from msmqwire.service.control.server import WINDOW_MAX, Sink

SUBSCRIPTIONS_MAX: Final = 1000
"""Limit of the subscriptions that one session may have."""
_NUMBER_MAX: Final = 0xFFFFFFFF
_RECEIPT_MAX: Final = (1 << 53) - 1
_WRITE_BYTES: Final = 64 << 10
"""Bytes pushed before the sink is asked again for room."""

Request = Mapping[str, Any]
Answer = dict[str, Any]


class Subscription:
    """The messages that one subscription has received and not ended.

    It takes messages only while all available ones are durable, so that it need not wait for a commit, and
    receiving does not change the store.

    Attributes:
        number: its number, which its client has chosen.
        descriptor: its open queue.
    """

    def __init__(
        self,
        driver: EngineDriver,
        held: HeldMessages,
        sink: Sink,
        number: int,
        queue: tuple[str, OpenQueueDescriptor],
        window: int,
        failed: Callable[[Subscription, MsmqError], None],
        frame: Callable[[int, int, Message], bytes] = message_frame,
        has_room: Callable[[], bool] = lambda: True,
    ) -> None:
        """`queue` is its name, as clients know it, and the open queue; `failed` is called when it fails;
        `frame` returns the bytes of a message with the numbers of the subscription and of its receipt;
        `has_room` is whether a message may be taken that was awaited, while the sink is writable.
        """
        self._driver, self._held, self._sink, self.number = driver, held, sink, number
        self._name, self.descriptor = queue
        self._window, self._failed, self._frame_of = window, failed, frame
        self._has_room = has_room
        self._messages = driver.core.messages
        self._receipts: dict[int, None] = {}  # in order
        self._last = 0
        self._waiting = 0  # the number of the read that waits for a message
        self._comes_back = False  # continues once messages are durable, the sink has room, or soon
        self._closed = self._drains = False
        held.reserved += window
        self._soon()

    # -- pushing ------------------------------------------------------------------------------------------

    def _soon(self) -> None:
        """Push in the next turn, after the changes of this one."""
        if not self._comes_back:
            self._comes_back = True
            asyncio.get_running_loop().call_soon(self._again)

    def _again(self) -> None:
        self._comes_back = False
        self.push()

    def push(self) -> None:
        """Push available messages, up to the window and while the sink has room; then wait for one."""
        driver, sink = self._driver, self._sink
        try:
            while not (self._closed or self._waiting or self._comes_back):
                if self._drains:
                    self._end_if_drained()
                    return
                if len(self._receipts) >= self._window:
                    return
                if not sink.writable:
                    self._comes_back = True
                    sink.when_writable(self._again)
                elif not driver.settled:
                    self._comes_back = True
                    driver.when_settled(self._again)
                elif frames := driver.defer_commit(self._take):
                    sink.push(frames)
        except QueueError as exc:
            self._failed(self, exc)
        except MsmqError:
            pass  # the driver has ended, and its clients end

    def drain(self, *, on: bool) -> None:
        """Push no more messages, in a call of the driver, and end with the last one pushed; or resume."""
        self._drains = on
        reader = self.descriptor.waiting.get(self._waiting)
        if on and reader is not None:
            self._messages.waiting_reads.stop(reader, HResult.MQ_ERROR_OPERATION_CANCELLED)
        self._soon()

    def _end_if_drained(self) -> None:
        if not self._receipts:
            why = "the server drains before a stop: no more messages come"
            self._failed(self, ManagerStopped(why, HResult.MQ_ERROR_OPERATION_CANCELLED))

    def _take(self) -> list[bytes]:
        """Receive available messages, as frames; begin to wait if there are no more.

        Raises QueueError if the queue was deleted.
        """
        descriptor, dequeue_begin = self.descriptor, self._messages.dequeue_begin
        frames: list[bytes] = []
        room, size = self._window - len(self._receipts), 0
        while len(frames) < room and size < _WRITE_BYTES:
            read = dequeue_begin(descriptor)
            if read.position is None or read.message is None:
                if read.status != PENDING:
                    raise QueueError(reason(read.status, self._name), read.status)
                self._waiting = read.request
                self._driver.on_read(read.request, self._completed)
                break
            frame = self._frame(read.position, read.message)
            frames.append(frame)
            size += len(frame)
        return frames

    def _frame(self, position: MessagePosition, message: Message) -> bytes:
        self._last = receipt = self._held.hold(self.descriptor, position, owner=self, pushed=True)
        self._held.reserved -= 1
        self._receipts[receipt] = None
        return self._frame_of(self.number, receipt, message)

    def _completed(self, read: ReadCompleted) -> None:
        """Push the awaited message, which is now durable, and further available ones."""
        self._waiting = 0
        position = read.position
        if self._closed:
            self._give_back(position)
        elif self._drains and read.status == HResult.MQ_ERROR_OPERATION_CANCELLED:
            self._soon()
        elif read.status != MQ_OK or position is None or read.message is None:
            self._failed(self, QueueError(reason(read.status, self._name), read.status))
        elif not self._has_room():
            self._give_back(position)
            self._comes_back = True
            self._sink.when_writable(self._again)
        else:
            self._sink.push([self._frame(position, read.message)])
            self.push()

    def _give_back(self, position: MessagePosition | None) -> None:
        """Return a message that was awaited, and is not wanted any more."""
        if position is not None and position.state is PositionState.LOCKED and not position.transaction:
            end = partial(self._messages.dequeue_end, self.descriptor, position, delete=False)
            self._driver.notify(end)

    # -- the ends of messages -----------------------------------------------------------------------------

    def done(self, upto: int) -> None:
        """Delete the messages up to and including a receipt, without waiting until that is durable.

        No further messages are pushed. Raises InvalidValue for a receipt that was not given.
        """
        if upto > self._last:
            raise InvalidValue(f"no message with the receipt {upto} was pushed", path="upto")
        ended = []
        for receipt in self._receipts:
            if receipt > upto:
                break
            ended.append(receipt)
        before, self._comes_back = self._comes_back, True
        try:
            self._driver.defer_commit(self._held.end, ended, [])
        finally:
            self._comes_back = before

    def message_ended(self, receipt: int) -> None:
        """Note that one of its messages has ended, in any way."""
        del self._receipts[receipt]
        self._held.reserved += 1
        if not self._closed:
            self._soon()

    def close(self, back: int | None = None) -> int:
        """Return the messages not ended to the queue, in a call of the driver; return their number.

        `back` is the receipt of the one that the program had, if any.
        """
        self._stop()
        receipts = list(self._receipts)
        if back in self._receipts:
            self._held.end([], [back])
        self._held.end([], list(self._receipts), named=False)
        self._held.reserved -= self._window
        return len(receipts)

    def leave(self) -> None:
        """Push no more messages, in a call of the driver; those not ended are still held."""
        self._stop()
        self._held.reserved -= self._window - len(self._receipts)
        for receipt in self._receipts:
            self._held.disown(receipt)
        self._receipts.clear()

    def _stop(self) -> None:
        self._closed = True
        reader = self.descriptor.waiting.get(self._waiting)
        if reader is not None:
            self._messages.waiting_reads.stop(reader, HResult.MQ_ERROR_OPERATION_CANCELLED)


class Subscriptions:
    """The subscriptions of one session, by the numbers that its client gives them."""

    def __init__(
        self,
        driver: EngineDriver,
        held: HeldMessages,
        sink: Sink | None,
        opened: Callable[[Request, QueueAccessType], OpenQueueDescriptor],
    ) -> None:
        """`opened` returns the open queue of a request. Without a sink there are no subscriptions."""
        self._driver, self._held, self._sink, self._opened = driver, held, sink, opened
        self._subscriptions: dict[int, Subscription] = {}
        self._stopped = False

    async def subscribe(self, request: Request) -> Answer:
        """Push messages of a queue from this answer on."""
        subscription = _number(request)
        window = number(request.get("window"), "window", WINDOW_MAX, 1)
        if self._sink is None:
            raise InvalidValue("messages can't be pushed here", path="op")
        if subscription in self._subscriptions:
            raise InvalidValue(f"there is a subscription {subscription} already", path="subscription")
        if self._stopped:
            code = HResult.MQ_ERROR_OPERATION_CANCELLED
            raise ManagerStopped(reason(code, queues.text(request, "queue")), code)
        if len(self._subscriptions) >= SUBSCRIPTIONS_MAX or self._held.room() < window:
            why = "too many messages are received and not ended, or may be pushed"
            raise QueueError(why, HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)
        descriptor = self._driver.call(self._opened, request, QueueAccessType.RECEIVE_ACCESS)
        self._subscriptions[subscription] = Subscription(
            self._driver, self._held, self._sink, subscription, (queues.text(request, "queue"), descriptor),
            window, self._failed,
        )  # fmt: skip
        return {"subscription": subscription}

    async def unsubscribe(self, request: Request) -> Answer:
        """Stop pushing; return the messages not ended to the queue, but delete those up to ``upto``.

        The one with the receipt ``back`` was with the program, so that its return is a delivery.
        """
        subscription = self._subscriptions.get(_number(request))
        if subscription is None:
            why = f"there is no subscription {_number(request)}"
            raise QueueError(why, HResult.MQ_ERROR_INVALID_HANDLE)
        if request.get("upto") is not None:
            subscription.done(_upto(request))
        back = None
        if request.get("back") is not None:
            back = number(request["back"], "back", _RECEIPT_MAX, 1)
        del self._subscriptions[subscription.number]
        returned = self._driver.call(subscription.close, back)
        await self._driver.durable()
        return {"returned": returned}

    async def done_durably(self, request: Request) -> Answer:
        """End messages as `done` does, and wait until that is durable."""
        if not self.done(request):
            why = f"there is no subscription {_number(request)}"
            raise QueueError(why, HResult.MQ_ERROR_INVALID_HANDLE)
        await self._driver.durable()
        return {}

    def done(self, request: Request) -> bool:
        """Delete the messages of a subscription up to a receipt; return whether the subscription exists.

        The change need not be durable yet. Raises InvalidValue.
        """
        subscription = self._subscriptions.get(_number(request))
        if subscription is not None:
            subscription.done(_upto(request))
            subscription.push()
        return subscription is not None

    def drain(self, *, on: bool) -> None:
        """Push no more messages, in a call of the driver, and refuse new subscriptions; or resume."""
        self._stopped = on
        for subscription in self._subscriptions.values():
            subscription.drain(on=on)

    def stop(self) -> None:
        """End all subscriptions, and refuse new ones; notify the client."""
        self._stopped = True
        code = HResult.MQ_ERROR_OPERATION_CANCELLED
        for subscription in list(self._subscriptions.values()):
            self._failed(subscription, ManagerStopped("the queue manager stops", code))

    def _failed(self, subscription: Subscription, error: MsmqError) -> None:
        assert self._sink is not None, "there is a subscription"
        if self._subscriptions.pop(subscription.number, None) is not None:
            self._driver.notify(subscription.close)
            self._sink.subscription_ended(subscription.number, error)

    def close(self) -> None:
        """End all subscriptions, in a call of the driver."""
        for subscription in self._subscriptions.values():
            subscription.close()
        self._subscriptions.clear()


def _number(request: Request) -> int:
    return number(request.get("subscription"), "subscription", _NUMBER_MAX, 1)


def _upto(request: Request) -> int:
    return number(request.get("upto"), "upto", _RECEIPT_MAX)
