"""Commands on a terminal: their output there, and their input."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.support.running import PATIENCE_S, command_line, environment

_STYLES = re.compile(r"\x1b\[[0-9;]*m")


class OnTerminal:
    """A command that runs on a terminal.

    Attributes:
        process: the command; its standard output if that is not a terminal.
    """

    def __init__(self, outer: int, process: subprocess.Popen[bytes]) -> None:
        self._outer, self.process = outer, process
        self._seen = b""

    def type(self, text: str) -> None:
        """Type a text."""
        os.write(self._outer, text.encode())

    def shown(self, text: str = "") -> str:
        """Wait until `text` is shown, or for the end; return the output so far, without styles."""
        while not text or text not in self._plain():
            try:
                chunk = os.read(self._outer, 1 << 16)
            except OSError:  # on Linux, when the other side is closed
                break
            if not chunk:
                break
            self._seen += chunk
        assert text in self._plain(), self._seen
        return self._plain()

    def _plain(self) -> str:
        return _STYLES.sub("", self._seen.decode(errors="replace")).replace("\r\n", "\n")

    def ended(self) -> int:
        """Wait for the end, and return the exit status."""
        self.shown()
        return self.process.wait(PATIENCE_S)


@contextmanager
def terminal(*arguments: str | Path, out: IO[bytes] | int | None = None) -> Iterator[OnTerminal]:
    """Run a command on a terminal; `out` is its standard output if it is another one."""
    outer, inner = pty.openpty()
    shown = {"TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        command_line(*arguments),
        stdin=inner, stdout=inner if out is None else out, stderr=inner,
        env={**environment(), **shown},
    ) as process:  # fmt: skip
        os.close(inner)
        try:
            yield OnTerminal(outer, process)
        finally:
            if process.poll() is None:
                process.kill()
            os.close(outer)


def on_a_terminal(*arguments: str | Path, status: int = 0) -> str:
    """The output of a command on a terminal, without styles, that ends with a status."""
    with terminal(*arguments) as run:
        output = run.shown()
        assert run.ended() == status, output
    return output
