"""Watches the resident memory of the peer, and finds the case that makes it grow."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from fuzz.peer.failure import PeerFailure
from fuzz.peer.performing import Stage
from fuzz.peer.steps import Case
from msmqwire.names.printable import counted

ALLOWED: Final = 8 << 20
"""Bytes by which memory may grow after the first cases until the last ones are looked at more closely."""
FACTOR: Final = 8
"""Bytes that a peer may have for each byte that it was sent: it may keep messages in memory."""
PROOF: Final = 24 << 20
"""Bytes by which one case that is repeated must make it grow: no warm-up and no late collection does that."""
PROOF_S: Final = 10.0
"""Seconds for the search."""
BLAME_S: Final = 20.0
"""Seconds for looking at the cases."""
QUICK_S: Final = 0.1
"""Seconds that a case may take to be repeated."""
_SUSPECTS: Final = 6
_REPEATS: Final = 10
_PROVED: Final = 2
"""The number of suspects that are watched for long."""


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
        first, last: its memory after the first cases and now, in bytes; None if it can't be seen.
    """

    def __init__(self, pid: int, stage: Stage) -> None:
        self._pid, self._stage = pid, stage
        self.first: int | None = None
        self.last: int | None = None
        self._allowed, self._found = ALLOWED, False
        self._sent_before = 0
        self._suspects: list[tuple[int, Sequence[Case]]] = []

    def note(self, cases: Sequence[Case]) -> bool:
        """Look at the memory after some cases; return whether it has grown too much."""
        now = resident_bytes(self._pid)
        if now is None or self.last is None or self.first is None:
            if self.first is None:
                self.first, self._sent_before = now, self._stage.size
            self.last = now
            return False
        self._suspects = sorted([*self._suspects, (now - self.last, cases)], key=lambda s: -s[0])[:_SUSPECTS]
        self.last = now
        allowed = self._allowed + FACTOR // 2 * (self._stage.size - self._sent_before)
        return not self._found and now - self.first > allowed

    def blame(self, directed: Sequence[Case], usable: Callable[[], bool]) -> tuple[Case, PeerFailure] | None:
        """Return the case that makes the memory grow when it is repeated, if one does.

        `directed` are tried besides the last ones; slow ones are left out.
        """
        self._allowed *= 2  # for the next time, if it is none of them
        deadline = min(time.monotonic() + BLAME_S, self._stage.until)
        growths: list[tuple[int, int]] = []
        cases = [*directed, *(case for _, cases in self._suspects for case in cases)]
        for number, case in enumerate(cases):
            began = time.monotonic()
            if began >= deadline or not usable():
                break
            self._stage.perform(case)
            if time.monotonic() - began < QUICK_S:
                growths.append((self._grown(case, _REPEATS), -number))
        for _, number in sorted(growths, reverse=True)[:_PROVED]:
            failure = self._proved(cases[-number]) if usable() else None
            if failure is not None:
                self._found = True
                return cases[-number], failure
        return None

    def _grown(self, case: Case, repeats: int) -> int:
        """Return the bytes by which repeating a case makes the memory grow beyond the limit."""
        before, size = resident_bytes(self._pid) or 0, self._stage.size
        for _ in range(repeats):
            self._stage.perform(case)
        return (resident_bytes(self._pid) or 0) - before - FACTOR * (self._stage.size - size)

    def _proved(self, case: Case) -> PeerFailure | None:
        growth = repeats = 0
        before = resident_bytes(self._pid) or 0
        deadline = min(time.monotonic() + PROOF_S, self._stage.until)
        while growth < PROOF:
            if time.monotonic() >= deadline:
                return None
            growth += self._grown(case, _REPEATS)
            repeats += _REPEATS
        broken = next((step for step in reversed(case.steps) if step.breaks), None)
        note = broken.note if broken is not None else "session"
        each = ((resident_bytes(self._pid) or 0) - before) // repeats
        text = f"resident memory grows by {counted(each, 'byte')} with each {note}"
        return PeerFailure(broken.breaks if broken is not None else case.requirements, text, "memory")
