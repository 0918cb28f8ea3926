"""The trace of refused messages: lines of the log, and JSON."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.names.origins import UNKNOWN_ORIGIN
from msmqwire.names.printable import counted
from msmqwire.qm.model.refusals import OTHER, Refusal, Refusals, shown
from msmqwire.qm.runtime.message_json import identifier_text, time_text
from msmqwire.service.logs import log

_EXPIRED: Final = "_TIMEOUT"
_PEERS: Final = {None: "this computer", OTHER: "several peers", UNKNOWN_ORIGIN: "an unknown peer"}


class RefusalReports:
    """Leaves the trace of refused messages: a `Reporter` of a driver."""

    def __init__(self, refusals: Refusals) -> None:
        self._refusals = refusals

    @property
    def deadline(self) -> int | None:
        return self._refusals.deadline

    def report(self, now_ms: int) -> None:
        """Make the reports that are due."""
        for refusal in self._refusals.due(now_ms):
            log_refusal(refusal)

    def close(self) -> None:
        """Report the remaining ones."""
        for refusal in self._refusals.rest():
            log_refusal(refusal)


def log_refusal(refusal: Refusal) -> None:
    """Report refused messages with the same peer, queue and reason, as one line."""
    key = refusal.key
    ended = "expired" if key.reason.endswith(_EXPIRED) else "refused"
    queue = shown(key.queue)
    of = _PEERS.get(key.peer, key.peer)
    to = "several queues" if key.queue == OTHER else queue or "an unknown queue"
    log.warning(
        f"{counted(refusal.count, 'message')} of {of} for {to} {ended}: {key.reason}",
        extra={
            "peer": key.peer,
            "queue": queue,
            "reason": key.reason,
            "count": refusal.count,
            "label": shown(refusal.label),
            "identifier": _identifier(refusal),
            **({"why": shown(refusal.why)} if refusal.why else {}),
        },
    )


def refused_json(refusals: Refusals) -> list[dict[str, Any]]:
    """Return the refusals that are kept, the latest first."""
    return [_refusal_json(refusal) for refusal in reversed(refusals.kept.values())]


def _refusal_json(refusal: Refusal) -> dict[str, Any]:
    key = refusal.key
    return {
        "peer": key.peer,
        "queue": shown(key.queue),
        "label": shown(refusal.label),
        "identifier": _identifier(refusal),
        "reason": key.reason,
        "count": refusal.count,
        "last": time_text(refusal.last),
    }


def _identifier(refusal: Refusal) -> str | None:
    """Return the identifier of the latest message; None if it has none or it could not be read."""
    identifier = refusal.identifier
    return identifier_text(identifier) if identifier is not None and identifier.uniquifier else None
