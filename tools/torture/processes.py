"""The processes of the torture run, which are killed and restarted."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Final

ROOT: Final = Path(__file__).resolve().parents[2]
_KILLED_S: Final = 60.0


class Broken(Exception):
    """A process has ended that was not killed, or does not end."""


class Supervised:
    """A process that is killed and restarted.

    Args:
        name: the name of the process and of its log.
        logs: folder of the logs.
        command: returns the command of a life, by its number.
        defers_sigterm: whether the process starts with SIGTERM blocked, and unblocks it.
    """

    def __init__(
        self, name: str, logs: Path, command: Callable[[int], Sequence[str]], *, defers_sigterm: bool = False
    ) -> None:
        self.name, self._command, self._defers_sigterm = name, command, defers_sigterm
        self._log = logs / f"{name}.log"
        self.lives = 0
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the process."""
        self.lives += 1
        # A process inherits the mask: SIGTERM waits until its handler is set, however slow the machine is.
        blocked = {signal.SIGTERM} if self._defers_sigterm else set()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        try:
            with self._log.open("a") as log:
                self.process = subprocess.Popen(
                    self._command(self.lives),
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1,
                    env={**os.environ, "PYTHONPATH": str(ROOT)},
                )  # fmt: skip
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    @property
    def status(self) -> int | None:
        """Exit status; None while it runs."""
        assert self.process is not None, "it was started"
        return self.process.poll()

    def check(self) -> None:
        """Raises Broken if it has ended."""
        if self.status is not None:
            raise Broken(f"{self.name} has ended with {self.status}: {self.last_words()}")

    def send(self, number: int) -> None:
        """Send it a signal."""
        assert self.process is not None, "it was started"
        self.process.send_signal(number)

    def ended(self) -> int:
        """Wait for its end; return the exit status. Raises Broken if it does not end."""
        assert self.process is not None, "it was started"
        try:
            status = self.process.wait(_KILLED_S)
        except subprocess.TimeoutExpired:
            raise Broken(f"{self.name} does not end") from None
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status

    def kill(self) -> None:
        """End it at once."""
        self.send(signal.SIGKILL)
        self.ended()

    def line(self, wait: float) -> str:
        """Return a line that it prints within `wait` seconds; empty if it does not, or has ended."""
        assert self.process is not None
        out: IO[str] | None = self.process.stdout
        assert out is not None
        return out.readline() if select.select([out], [], [], wait)[0] else ""

    def last_words(self) -> str:
        """Return the end of its log."""
        return self._log.read_text()[-2000:] if self._log.exists() else ""
