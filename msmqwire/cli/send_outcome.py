"""Outcomes of messages that ``msmqwire send`` sends straight to another computer."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from msmqwire.cli.common import EX_TEMPFAIL, EX_UNAVAILABLE, say
from msmqwire.cli.progress import waiting_shown
from msmqwire.errors import NotDelivered, Unreachable
from msmqwire.json_text import dumps
from msmqwire.names import DirectName, FormatName, MultipleElementName
from msmqwire.names.class_words import class_with_words
from msmqwire.names.printable import counted, in_seconds
from msmqwire.qm.client import Connection, Outcome
from msmqwire.qm.client.manager import is_one_way
from msmqwire.qm.client.synchronous import SyncSent
from msmqwire.qm.model.enumerations import AcknowledgementsRequested
from msmqwire.qm.runtime.message_json import ACKNOWLEDGEMENTS

CONFIRM_S: Final = 5.0
"""Seconds that the acknowledgement of the queue is waited for by default."""
ASKED: Final = "full_reach_queue"
"""The acknowledgements that a message asks for of its own accord."""
_STATUSES: Final = {"refused": EX_UNAVAILABLE, "unknown": EX_TEMPFAIL, "transferred": EX_TEMPFAIL}
_RANKS: Final = (0, EX_TEMPFAIL, EX_UNAVAILABLE)
_CAUSES: Final = (
    "perhaps the name of the queue is wrong, or its queue manager sends no negative acknowledgements (serve "
    "does with --insecure-nacks), or none can come back here (--listen); --no-confirm asks for none"
)
_NOT_ASKED: Final = (
    "none is asked for, as one of its queues is reached by HTTP or multicast; --no-confirm expects none"
)


class _Left(Exception):
    """Leaves a connection without waiting for untransferred messages."""


class Confirmation(NamedTuple):
    """The acknowledgements that a message asks its queue for, and those to wait for.

    Attributes:
        asked: whether it asks for an acknowledgement of its own accord.
        needed: whether it has succeeded only once its queues have acknowledged it.
        confirm: seconds to wait for that from the transfer on; None for all the time that there is.
        received: whether an acknowledgement of its reception is waited for, too.
        causes: why its queues may not have acknowledged it.
    """

    asked: bool
    needed: bool
    confirm: float | None
    received: bool = False
    causes: str = _CAUSES

    @classmethod
    def of(
        cls,
        name: FormatName,
        acknowledge: Sequence[str] | None,
        admin_queue: str | None,
        confirm: float | None,
        *,
        without: bool,
    ) -> Confirmation:
        """Return that of a message to a queue, with these options; `without` is ``--no-confirm``."""
        if without or admin_queue is not None:
            return cls(asked=False, needed=False, confirm=0.0)
        if acknowledge:
            flags = AcknowledgementsRequested.NONE
            for one in acknowledge:
                flags |= ACKNOWLEDGEMENTS.get(one, AcknowledgementsRequested.NONE)
            arrival = bool(flags & AcknowledgementsRequested.ACK_POS_ARRIVAL)
            receive = bool(flags & AcknowledgementsRequested.ACK_POS_RECEIVE)
            return cls(asked=False, needed=arrival or receive, confirm=confirm, received=arrival and receive)
        by_session = [not is_one_way(element) for element in _elements(name)]
        asked, limit = all(by_session), CONFIRM_S if confirm is None else confirm
        causes = _CAUSES if asked else _NOT_ASKED
        return cls(asked=asked, needed=any(by_session), confirm=limit, causes=causes)


class DirectSending:
    """Sends messages and waits until their outcomes are known.

    Args:
        name: the queue.
        confirmation: the acknowledgements to wait for.
        timeout: seconds that the transfer may take.
    """

    def __init__(self, name: FormatName, confirmation: Confirmation, timeout: float) -> None:
        self._confirmation, self._timeout = confirmation, timeout
        hosts = [one.host if isinstance(one, DirectName) else str(one) for one in _elements(name)]
        self._place = " and ".join(dict.fromkeys(hosts))
        self._waits_for: SyncSent | None = None

    def send(
        self, connection: Connection, body: bytes, properties: dict[str, Any], count: int, *, as_json: bool
    ) -> int:
        """Send a message a number of times, print the outcome of each, and return the exit status.

        Raises Unreachable if none was sent, and as `connect` and `Queue.send` do.
        """
        sent: list[SyncSent] = []
        outcomes: list[Outcome] = []
        with suppress(_Left), connection as queue:
            sent = [queue.send(body, **properties) for _ in range(count)]
            until = time.monotonic() + self._timeout
            with waiting_shown(self._state):
                outcomes = [self._outcome(message, until) for message in sent]
            raise _Left
        unsent = [
            outcome.name == "unknown" and not message.transmitted
            for message, outcome in zip(sent, outcomes, strict=True)
        ]
        if all(unsent):
            what = "the message was" if count == 1 else f"{counted(count, 'message')} were"
            raise Unreachable(f"{what} not sent: {outcomes[0].reason}")
        outcomes = [
            Outcome("refused", f"not sent: {outcome.reason}") if left_out else outcome
            for left_out, outcome in zip(unsent, outcomes, strict=True)
        ]
        for message, outcome in zip(sent, outcomes, strict=True):
            classes = [ack.class_name for ack in message.acknowledgements]
            print_sent(message.identifier, outcome, classes, as_json=as_json)
        return self._report(sent, outcomes)

    def _outcome(self, message: SyncSent, until: float) -> Outcome:
        self._waits_for = message
        outcome = message.outcome(_remaining(until), confirm=self._confirmation.confirm)
        if outcome.name != "confirmed" or not self._confirmation.received:
            return outcome
        try:
            message.received(_remaining(until))
        except NotDelivered as exc:
            return Outcome("refused", class_with_words(exc.why))
        except TimeoutError:
            return Outcome(
                "transferred", f"its queue has it; it was not received in {in_seconds(self._timeout)}"
            )
        return outcome

    def _state(self) -> str:
        """Return the event that is waited for."""
        message = self._waits_for
        outcome = Outcome("unknown", "sending") if message is None else message.outcome(0)
        if outcome.name in ("transferred", "confirmed"):
            confirm = self._confirmation.confirm
            limit = self._timeout if confirm is None else confirm
            return (
                f"{self._place} has it: waiting for its queue's acknowledgement, {in_seconds(limit)} at most"
            )
        return f"{outcome.reason}: waiting for {self._place}, {in_seconds(self._timeout)} at most"

    def _report(self, sent: list[SyncSent], outcomes: list[Outcome]) -> int:
        """Print errors and warnings, and return the exit status: that of the worst outcome."""
        by_name: dict[str, list[int]] = {}
        for number, outcome in enumerate(outcomes):
            by_name.setdefault(outcome.name, []).append(number)
        refused, unknown = by_name.get("refused", []), by_name.get("unknown", [])
        if refused:
            more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
            say(f"{sent[refused[0]].identifier}: {outcomes[refused[0]].reason}{more}")
        if unknown:
            what = _messages(unknown, outcomes)
            say(f"it is not known whether the queue has {what}: {outcomes[unknown[0]].reason}")
        if not self._confirmation.needed:
            by_name.pop("transferred", None)
        transferred = by_name.get("transferred", [])
        if transferred:
            them = "it" if len(outcomes) == 1 else "them"
            what, causes = _messages(transferred, outcomes), self._confirmation.causes
            say({"warning": f"{self._place} has {what}; the queue has not acknowledged {them}: {causes}"})
        return max((0, *(_STATUSES.get(name, 0) for name in by_name)), key=_RANKS.index)


def print_sent(identifier: str, outcome: Outcome, classes: Sequence[str] = (), *, as_json: bool) -> None:
    """Print a message that was sent."""
    if as_json or not sys.stdout.isatty():
        about = {"outcome": outcome.name, "reason": outcome.reason, "acknowledgements": list(classes)}
        print(dumps({"identifier": identifier, **about}), flush=True)
    else:
        print(" ".join([identifier, outcome.name, *classes]), flush=True)


def _messages(some: list[int], outcomes: list[Outcome]) -> str:
    return "the message" if len(outcomes) == 1 else counted(len(some), "message")


def _remaining(until: float) -> float:
    return max(0.0, until - time.monotonic())


def _elements(name: FormatName) -> Sequence[FormatName]:
    return name.elements if isinstance(name, MultipleElementName) else (name,)
