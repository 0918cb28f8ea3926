"""Watches the resident memory of the peer, and finds the case that makes it grow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from fuzz.peer.failure import PeerFailure
from fuzz.peer.performing import Stage
from fuzz.peer.steps import Case

ALLOWED: Final = 64 << 20
"""Bytes by which the memory of a peer may grow for whatever reason after the first cases."""
FACTOR: Final = 8
"""Bytes that a peer may have for each byte that it was sent: it may keep messages in memory."""
_SUSPECTS: Final = 6
_REPEATS: Final = 20
_ALLOWED_EACH: Final = 64 << 10
"""Bytes by which one performance of a case may make it grow, and more by `FACTOR`."""


def resident_bytes(pid: int) -> int | None:
    """Return the resident memory of a process of this computer; None if it can't be seen."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return None


class MemoryWatch:
    """The memory of one process over a run.

    Attributes:
        first, last: what it had after the first cases and has now, in bytes; None if it can't be seen.
        found: whether growth was reported; it is reported once.
    """

    def __init__(self, pid: int, stage: Stage) -> None:
        self._pid, self._stage = pid, stage
        self.first: int | None = None
        self.last: int | None = None
        self.found = False
        self._sent_before = 0
        self._suspects: list[tuple[int, Sequence[Case]]] = []

    def begin(self) -> None:
        """The peer has done the first cases: what it has now is where growth is counted from."""
        if self.first is None:
            self.first = self.last = resident_bytes(self._pid)
            self._sent_before = self._stage.size

    def note(self, cases: Sequence[Case]) -> bool:
        """Look at the memory after some cases; return whether it has grown too much."""
        now = resident_bytes(self._pid)
        if now is None or self.last is None or self.first is None:
            self.last = now
            return False
        self._suspects = sorted([*self._suspects, (now - self.last, cases)], key=lambda s: -s[0])[:_SUSPECTS]
        self.last = now
        allowed = ALLOWED + FACTOR * (self._stage.size - self._sent_before)
        return not self.found and now - self.first > allowed

    def blame(self, usable: Callable[[], bool]) -> tuple[Case, PeerFailure] | None:
        """Return the case that makes the memory grow most when it is repeated, if one does."""
        self.found = True
        best: tuple[int, Case, PeerFailure] | None = None
        for case in [case for _, cases in self._suspects for case in cases]:
            before, size = resident_bytes(self._pid), self._stage.size
            for _ in range(_REPEATS):
                self._stage.perform(case)
            after = resident_bytes(self._pid)
            if before is None or after is None or not usable():
                return None
            growth = after - before
            allowed = _REPEATS * _ALLOWED_EACH + FACTOR * (self._stage.size - size)
            if growth > allowed and (best is None or growth > best[0]):
                note = next((step.note for step in reversed(case.steps) if step.breaks), "a session")
                text = f"resident memory grows by {growth // _REPEATS:,} bytes with each {note or 'session'}"
                ids = next((step.breaks for step in reversed(case.steps) if step.breaks), case.requirements)
                best = growth, case, PeerFailure(ids, text, "memory")
        return None if best is None else best[1:]
