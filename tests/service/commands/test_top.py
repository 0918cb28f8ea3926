"""``msmqwire top``: once, as JSON, and on a terminal until q is pressed."""

from __future__ import annotations

import os
import re
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from msmqwire.cli.top import Figures
from msmqwire.qm.runtime.local import attach
from tests.support.running import (
    LEDGER,
    ORDERS,
    PATIENCE_S,
    called,
    command_line,
    environment,
    message,
    options,
    put,
    recoverable,
    served,
)

TO = r"DIRECT=OS:nowhere.invalid\PRIVATE$\x"
EVIL = "\x1b]0;owned\x07\x1b[2J[red]x[/red]\u202e"
STYLES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|[=>])")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


# -- once -----------------------------------------------------------------------------------------------


def test_one_object_of_json_through_the_server(data: Path) -> None:
    with served(options(data, ORDERS, f"{LEDGER};transactional")):
        with attach(data) as local:
            put(local, ORDERS, *recoverable(b"1", b"2", b"3"))
            local.call("send", to=TO, messages=recoverable(b"1"))
        told = called("top", "--data", data, "--json").one
    assert (told["name"], told["served"], told["messages"], told["transactions_total"]) == (
        "alpha",
        True,
        4,
        0,
    )
    queues = {queue["queue"]: queue for queue in told["queues"]}
    assert [queues[ORDERS][name] for name in ("messages", "put", "taken")] == [3, 3, 0]
    assert queues[TO]["group"] == "outgoing"
    assert (told["groups"]["application"]["messages"], told["groups"]["outgoing"]["messages"]) == (3, 1)
    assert (told["counters"]["put"], told["counters"]["taken"]) == (4, 0)
    assert told["sessions_total"] == len(told["sessions"]) == 1


def test_a_folder_without_a_server_has_counts_only(data: Path) -> None:
    called("queue", "create", ORDERS, "--data", data)
    called("send", rf"DIRECT=OS:.\{ORDERS}", "--data", data, "--recoverable", "--body", "x")
    told = called("top", "--data", data, "--json").one
    assert (told["served"], told["messages"], told["sessions"]) == (False, 1, [])
    assert "bytes_received" not in told["counters"]
    shown = called("top", "--data", data, "--once").out
    assert "no server runs: counts only" in shown
    assert "commits" not in shown
    assert re.search(rf"^{re.escape(ORDERS)} +1 ", shown, re.MULTILINE)


def test_output_that_is_no_terminal_is_json(data: Path) -> None:
    called("queue", "create", ORDERS, "--data", data)
    assert called("top", "--data", data).one["messages"] == 0


def test_tables_once(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "240")
    with served(options(data, ORDERS, f"{LEDGER};transactional")):
        with attach(data) as local:
            local.call("set", queue=ORDERS, label=EVIL, journal=True)
            put(local, ORDERS, *recoverable(b"1", b"2"))
            local.call("send", to=TO, messages=recoverable(bytes(2000)))
            (taken,) = local.call("receive", queue=ORDERS)["messages"]
            local.call("end", done=[taken["receipt"]])
        shown = called("top", "--data", data, "--once").out
    assert re.search(r"^alpha  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$", shown, re.MULTILINE)
    assert re.search(r"^3 messages, .* of 8.0 GiB, 1 session, 0 transactions$", shown, re.MULTILINE)
    assert re.search(r"^put 4, taken 1, commits \d+, received 0 B, sent 0 B$", shown, re.MULTILINE)
    label = r"\x1b]0;owned\x07\x1b[2J[red]x[/red]\u202e"
    assert re.search(rf"^{re.escape(ORDERS)} +1 +\d+ B +1 +{re.escape(label)} *$", shown, re.MULTILINE)
    assert re.search(rf"^{re.escape(LEDGER)} +transactional +0 ", shown, re.MULTILINE)
    assert re.search(rf"^{re.escape(TO)} +\w+ +1 +2\.\d KiB", shown, re.MULTILINE)
    assert re.search(rf"^{re.escape(ORDERS)};journal +1 ", shown, re.MULTILINE)
    assert re.search(r"^nowhere.invalid +initiator ", shown, re.MULTILINE)


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    error = called("top", "--data", tmp_path / "none").error(66)
    assert error["error"] == f"{tmp_path / 'none'}: there is no queue manager in this folder"
    assert not (tmp_path / "none").exists()


def test_an_interval_that_is_too_short(data: Path) -> None:
    assert called("top", "--data", data, "--interval", "0").status == 2


def test_rates_are_those_since_the_figures_before() -> None:
    def figures(at: float, put: int, taken: int) -> Figures:
        queue = {"queue": ORDERS, "put": put, "taken": taken}
        return Figures(at, {"counters": {"put": put, "taken": taken}, "queues": [queue]})

    later = figures(12.0, 30, 9)
    later.since(figures(10.0, 10, 4))
    assert later.rates == {"put": 10.0, "taken": 2.5}
    assert later.queue_rates == {ORDERS: (10.0, 2.5)}
    restarted = figures(14.0, 1, 0)
    restarted.since(later)
    assert (restarted.rates, restarted.queue_rates) == ({}, {}), "counts of another server"


# -- on a terminal --------------------------------------------------------------------------------------


class Terminal:
    """A command on a terminal.

    Attributes:
        shown: all that it has written, without styles.
    """

    def __init__(self, *arguments: str | Path, lines: int = 40, columns: int = 120) -> None:
        import fcntl
        import pty
        import termios

        self._outer, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.before = termios.tcgetattr(inner)
        self._inner = inner
        environ = {key: value for key, value in environment().items() if key not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            command_line(*arguments),
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env={**environ, "TERM": "xterm"},
        )
        self.shown = ""

    def until(self, pattern: str) -> None:
        """Read until what was written since the last call matches a pattern."""
        end = time.monotonic() + PATIENCE_S
        fresh = ""
        while not re.search(pattern, fresh):
            assert time.monotonic() < end, fresh
            if select.select([self._outer], [], [], 0.2)[0]:
                self.shown += (text := STYLES.sub("", os.read(self._outer, 1 << 16).decode()))
                fresh += text

    def press(self, key: str) -> None:
        """Press a key."""
        os.write(self._outer, key.encode())

    def ended(self) -> int:
        """Wait for the end; return the exit status. The terminal has to be as it was."""
        import termios

        status = self.process.wait(PATIENCE_S)
        assert termios.tcgetattr(self._inner)[3] == self.before[3], "no echo, or no lines"
        return status

    def close(self) -> None:
        """End the command if it runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE_S)
        os.close(self._outer)
        os.close(self._inner)


@contextmanager
def on_a_terminal(*arguments: str | Path, lines: int = 40, columns: int = 120) -> Iterator[Terminal]:
    """Run a command on a terminal."""
    terminal = Terminal(*arguments, lines=lines, columns=columns)
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.mark.parametrize("end", ["q", "Ctrl-C"])
def test_figures_and_rates_until_a_key(data: Path, end: str) -> None:
    looking = ("top", "--data", data, "--interval", "0.2")
    with served(options(data, ORDERS)), attach(data) as local, on_a_terminal(*looking) as terminal:
        terminal.until(rf"{re.escape(ORDERS)} +0 ")
        put(local, ORDERS, *recoverable(*(b"x" for _ in range(50))))
        terminal.until(rf"{re.escape(ORDERS)} +50 +[1-9][\d,.]* +0\.0 ")
        terminal.until(rf"{re.escape(ORDERS)} +50 +0\.0 +0\.0 ")
        if end == "q":
            terminal.press(end)
        else:
            terminal.process.send_signal(signal.SIGINT)
        assert terminal.ended() == 0


def test_only_what_fits_is_shown(data: Path) -> None:
    with served(options(data, *(rf"private$\q{number:03}" for number in range(60)))), attach(data) as local:
        put(local, r"private$\q042", message(b"x"))
        with on_a_terminal("top", "--data", data, "--interval", "0.2", lines=20, columns=70) as terminal:
            terminal.until(r"Queues  14 of 60(.|\n)*private\$\\q012")
            first = terminal.shown.index("private$\\q")
            assert terminal.shown[first:].startswith(r"private$\q042"), "the one with the most messages"
            assert r"private$\q013" not in terminal.shown
            terminal.press("q")
            assert terminal.ended() == 0


def test_a_server_that_goes_and_comes_again(data: Path) -> None:
    with served(options(data, ORDERS)):
        terminal = Terminal("top", "--data", data, "--interval", "0.2")
        terminal.until(rf"{re.escape(ORDERS)} +0 ")
    try:
        terminal.until("no server runs: counts only")
        with served(options(data, ORDERS)):
            terminal.until(r"UTC +\r?\n0 messages(.|\n)*commits")
            terminal.press("q")
            assert terminal.ended() == 0
    finally:
        terminal.close()
