"""Deliberate mistakes of the server of remote read: see `msmqwire.qm.sim.mistakes`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msmqwire.constants import MQ_OK, HResult
from msmqwire.qm.model.effects import RpcAnswer
from msmqwire.qm.protocols.remote_read.opening import Opening
from msmqwire.qm.protocols.remote_read.receiving import RemoteReceiving
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.rules.read_results import ReadOutcome
from msmqwire.qm.rules.transactions import Transactions
from msmqwire.qm.sim.driver_mistakes import effects_at_once
from msmqwire.qm.sim.violation import Invariant
from msmqwire.remote_read.constants import Action
from msmqwire.service.driver import Driver
from msmqwire.service.virtual.mistake import Mistake, nothing


def _kept_when_accepted(original: Any) -> Any:
    def end_dequeue(self: RemoteReceiving, request: Any, *, delete: bool) -> int:
        if delete and request.transaction is None:
            return int(MQ_OK)
        return int(original(self, request, delete=delete))

    return end_dequeue


def _deleted_when_rejected(original: Any) -> Any:
    def end_dequeue(self: RemoteReceiving, request: Any, *, delete: bool) -> int:
        return int(original(self, request, delete=True))

    return end_dequeue


def _deleted_when_gone(original: Any) -> Any:
    def release(self: RemoteReceiving, request: Any) -> None:
        if request.transaction is None and request.position is not None:
            self._messages.dequeue_end(request.context.descriptor, request.position, delete=True)
        original(self, request)

    return release


def _timer_left_running(_original: Any) -> Any:
    def leave(self: RemoteReceiving, request: Any) -> None:
        if request.context.pending.get(request.request_id) is request:
            del request.context.pending[request.request_id]

    return leave


def _released_again(original: Any) -> Any:
    def leave(self: RemoteReceiving, request: Any) -> None:
        original(self, request)
        if request.position is not None and request.transaction is None:
            self._start_cleanup(request, 1_500)  # no reader has it any more, or another one

    return leave


def _not_locked(original: Any) -> Any:
    def lock(self: MessageEvents, position: Any, transaction: Any, reason: int) -> None:
        original(self, position, transaction, reason)
        if transaction is None:
            self.position_available(position.queue, position)

    return lock


def _cursor_skips(original: Any) -> Any:
    def read(self: RemoteReceiving, request: Any, arguments: Any, action: Any, cursor: Any) -> Any:
        read = original(self, request, arguments, action, cursor)
        if cursor is None or action is not Action.MQ_ACTION_PEEK_NEXT or read.status != MQ_OK:
            return read
        skipping = original(self, request, arguments, action, cursor)
        return skipping if skipping.status == MQ_OK else ReadOutcome(HResult.MQ_ERROR_IO_TIMEOUT)

    return read


def _kept_in_the_transaction(_original: Any) -> Any:
    def give_back(self: Transactions, transaction: Any, position: Any) -> bool:
        return True

    return give_back


_GIVEN_BACK: Final = frozenset({Invariant.GIVEN_BACK})
_ONE_READER: Final = frozenset({Invariant.RECEIVED_ONCE})

REMOTE_MISTAKES: Final[Mapping[str, Mistake]] = MappingProxyType(
    {
        "remote: an answer is sent before the commit": Mistake(
            Driver, "part", effects_at_once(RpcAnswer), frozenset({Invariant.DURABLE})
        ),
        "remote: an accepted message stays": Mistake(
            RemoteReceiving, "_end_dequeue", _kept_when_accepted, frozenset({Invariant.ACCEPTED})
        ),
        "remote: a rejected message is deleted": Mistake(
            RemoteReceiving, "_end_dequeue", _deleted_when_rejected, _GIVEN_BACK, first=7
        ),
        "remote: the rundown gives nothing back": Mistake(
            RemoteReceiving, "release_all", nothing, _GIVEN_BACK, first=15
        ),
        "remote: the rundown forgets an open queue": Mistake(
            Opening, "run_down", nothing, _GIVEN_BACK | {Invariant.BOUNDED, Invariant.HANGS}
        ),
        "remote: an open receive of a reader that has gone is deleted": Mistake(
            RemoteReceiving, "_release", _deleted_when_gone, _GIVEN_BACK, first=4
        ),
        "remote: a receive not ended in time stays": Mistake(
            RemoteReceiving, "_clean_up", nothing, _GIVEN_BACK, first=4
        ),
        "remote: the time of a receive goes on after its end": Mistake(
            RemoteReceiving,
            "_leave",
            _timer_left_running,
            _ONE_READER | {Invariant.BOUNDED, Invariant.NO_ERRORS},
        ),
        "remote: a message returns twice": Mistake(
            RemoteReceiving, "_leave", _released_again, _ONE_READER | {Invariant.BOUNDED}
        ),
        "remote: a message that a reader has is not locked": Mistake(
            MessageEvents, "lock", _not_locked, _ONE_READER
        ),
        "remote: a cursor skips messages": Mistake(
            RemoteReceiving, "_read", _cursor_skips, frozenset({Invariant.WALKED}), first=6
        ),
        "remote: the transaction of a reader that has gone keeps its messages": Mistake(
            Transactions, "give_back", _kept_in_the_transaction, _GIVEN_BACK, first=27
        ),
    }
)
