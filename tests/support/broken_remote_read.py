r"""Servers of remote read that make a mistake: that of the library, with one function replaced.

``python -m tests.support.broken_remote_read MISTAKE serve --data DIR --rpc 127.0.0.1:0 ...`` runs the
command line with one of `MISTAKES`, and ``none`` without.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest import mock

from msmqwire.constants import MQ_OK, HResult
from msmqwire.qm.protocols.remote_read import receiving
from msmqwire.qm.protocols.remote_read.calls import Refused
from msmqwire.qm.protocols.remote_read.contexts import QueueContexts
from msmqwire.qm.protocols.remote_read.engine import RemoteReadEngine
from msmqwire.qm.protocols.remote_read.message_sections import MessageSections
from msmqwire.qm.protocols.remote_read.receiving import RemoteReceiving
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.remote_read.constants import Action
from msmqwire.rpc.constants import FaultStatus
from msmqwire.rpc.events import Closed
from msmqwire.rpc.pdu import FRAG_LENGTH_OFFSET
from msmqwire.rpc.server_association import ServerAssociation

ABORTED = 134
_EVERYTHING = 0xFFFFFFFF


class Mistake(NamedTuple):
    """Requirements that are broken, how, and the function that is replaced."""

    requirements: tuple[str, ...]
    sentence: str
    owner: Any
    attribute: str
    replace: Callable[[Any], Any]


def die() -> None:
    """End the process, as a fault of memory does."""
    os._exit(ABORTED)


def _keeps(original: Any) -> Any:
    def end(self: RemoteReceiving, request: Any, *, delete: bool) -> int:
        if delete and request.transaction is None:
            return int(MQ_OK)
        return int(original(self, request, delete=delete))

    return end


def _deletes(original: Any) -> Any:
    return lambda self, request, *, delete: original(self, request, delete=True)


def _not_locked(original: Any) -> Any:
    def lock(self: MessageEvents, position: Any, transaction: Any, reason: int) -> None:
        original(self, position, transaction, reason)
        if transaction is None:
            self.position_available(position.queue, position)

    return lock


def _ends_anything(original: Any) -> Any:
    def end(self: RemoteReceiving, call: Any, arguments: Any, *, transactional: bool) -> Any:
        try:
            return original(self, call, arguments, transactional=transactional)
        except Refused as refused:
            if refused.status not in (
                HResult.MQ_ERROR_INVALID_HANDLE,
                HResult.MQ_ERROR_INVALID_PARAMETER,
            ):
                raise
            return {}

    return end


def _any_action(original: Any) -> Any:
    def checked(arguments: Any) -> Action:
        known = arguments.ulAction in iter(Action)
        return original(arguments) if known else Action.MQ_ACTION_PEEK_CURRENT

    return checked


def _not_found(original: Any) -> Any:
    def refuse(context: Any, call: Any, refused: Refused) -> None:
        if refused.status == HResult.MQ_ERROR_IO_TIMEOUT:
            refused = Refused(HResult.MQ_ERROR_MESSAGE_NOT_FOUND, fault=refused.fault)
        original(context, call, refused)

    return refuse


def _never_stops(original: Any) -> Any:
    def cancel(self: RemoteReceiving, call: Any, arguments: Any) -> Any:
        context = self._contexts.find(call, arguments.phContext)
        return {} if arguments.dwRequestId in context.waiting else original(self, call, arguments)

    return cancel


def _whole(original: Any) -> Any:
    def sections(
        self: Any, message: Any, position: Any, max_body: int, max_compound: int, **more: Any
    ) -> Any:
        return original(self, message, position, _EVERYTHING, _EVERYTHING, **more)

    return sections


def _any_owner(original: Any) -> Any:
    def find(self: QueueContexts, call: Any, handle: Any) -> Any:
        context = self._by_handle.get(handle)
        return context if context is not None else original(self, call, handle)

    return find


def _dies_of_opnums(original: Any) -> Any:
    def refusal(self: ServerAssociation, request: Any, security: Any) -> Any:
        status = original(self, request, security)
        if status == FaultStatus.NCA_S_OP_RNG_ERROR:
            die()
        return status

    return refusal


def _dies_of_malformed(original: Any) -> Any:
    def received(self: ServerAssociation, data: bytes) -> Any:
        events = original(self, data)
        if any(isinstance(event, Closed) and event.error is not None for event in events):
            die()
        return events

    return received


def _a_byte_early(original: Any) -> Any:
    def received(self: ServerAssociation, data: bytes) -> Any:
        length = int.from_bytes(data[FRAG_LENGTH_OFFSET : FRAG_LENGTH_OFFSET + 2], "little")
        return original(self, data + bytes(length == len(data) + 1))

    return received


def _nothing(_original: Any) -> Any:
    return lambda *_args, **_more: None


MISTAKES: Mapping[str, Mistake] = MappingProxyType(
    {
        "keeps_accepted": Mistake(
            ("MQRR-3.1.4.9-05",), "A message that RR_ACK ends stays locked in its queue.",
            RemoteReceiving, "_end_dequeue", _keeps,
        ),
        "deletes_rejected": Mistake(
            ("MQRR-3.1.4.9-06",), "A message that RR_NACK ends is deleted.",
            RemoteReceiving, "_end_dequeue", _deletes,
        ),
        "not_locked": Mistake(
            ("MQRR-3.1.4.7-45",), "A message that one reader has is given to another.",
            MessageEvents, "lock", _not_locked,
        ),
        "ends_anything": Mistake(
            ("MQRR-3.1.4.9-07", "MQRR-3.1.4.9-08"), "R_EndReceive of an unknown request succeeds.",
            RemoteReceiving, "_end", _ends_anything,
        ),
        "any_action": Mistake(
            ("MQRR-3.1.4.7-40",), "An unknown ulAction is a peek.", receiving, "_checked", _any_action,
        ),
        "not_found_for_timeout": Mistake(
            ("MQRR-3.1.4.7-53",), "A read that finds nothing in time returns MQ_ERROR_MESSAGE_NOT_FOUND.",
            receiving, "refuse", _not_found,
        ),
        "cancels_nothing": Mistake(
            ("MQRR-3.1.4.8-08",), "R_CancelReceive succeeds, and the read waits on.",
            RemoteReceiving, "cancel_receive", _never_stops,
        ),
        "ignores_body_limit": Mistake(
            ("MQRR-3.1.4.7-33",), "The whole body is returned whatever dwMaxBodySize is.",
            MessageSections, "of", _whole,
        ),
        "any_client": Mistake(
            ("MQRR-2.2.4.1-02",), "A handle is good for clients that have not opened it.",
            QueueContexts, "find", _any_owner,
        ),
        "forgets_rundown": Mistake(
            ("MQRR-3.1.6.2-03", "MQRR-3.1.6.2-04"), "What a client that is gone had is never given back.",
            RemoteReadEngine, "association_lost", _nothing,
        ),
        "dies_of_opnums": Mistake(
            ("MQRR-3.1.4-03",), "An opnum that there is not ends the process.",
            ServerAssociation, "_refusal", _dies_of_opnums,
        ),
        "dies_of_malformed": Mistake(
            ("MQRR-3.1.4-01",), "A malformed fragment ends the process.",
            ServerAssociation, "received", _dies_of_malformed,
        ),
        "answers_a_byte_early": Mistake(
            ("MQRR-2.1-01",), "A PDU is taken when all but its last byte have come.",
            ServerAssociation, "received", _a_byte_early,
        ),
    }
)  # fmt: skip


@contextmanager
def making(name: str) -> Iterator[None]:
    """Make a mistake for a while."""
    mistake = MISTAKES[name]
    original = getattr(mistake.owner, mistake.attribute)
    with mock.patch.object(mistake.owner, mistake.attribute, mistake.replace(original)):
        yield


if __name__ == "__main__":
    from msmqwire.cli import main

    chosen = sys.argv.pop(1)
    with nullcontext() if chosen == "none" else making(chosen):
        main()
