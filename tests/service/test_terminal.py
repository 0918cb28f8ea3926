"""The output of commands on a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.running import LEDGER, ORDERS, PATIENCE_S, arguments, called, command, environment, process

TO_ORDERS = rf"DIRECT=OS:.\{ORDERS}"
EVIL = "\x1b]0;owned\x07\x1b[2J[red]not red[/red]\u202e"
SHOWN = r"\x1b]0;owned\x07\x1b[2J[red]not red[/red]\u202e"
STYLES = re.compile(r"\x1b\[[0-9;]*m")


def on_a_terminal(*given: str | Path) -> str:
    """What a command shows, without bold letters and the like."""
    outer, inner = pty.openpty()
    more = {"TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        arguments(*given), stdin=inner, stdout=inner, stderr=inner, env={**environment(), **more}
    ) as run:
        os.close(inner)
        found = b""
        while True:
            try:
                piece = os.read(outer, 1 << 16)
            except OSError:  # of Linux, when the other side is closed
                break
            if not piece:
                break
            found += piece
        os.close(outer)
        assert run.wait(PATIENCE_S) == 0, found
    return STYLES.sub("", found.decode()).replace("\r\n", "\n")


@pytest.fixture
def folder(data: Path) -> Path:
    called("queue", "create", ORDERS, "--data", data, "--label", EVIL)
    called("queue", "create", LEDGER, "--data", data, "--transactional", "--journal")
    return data


def test_queues_are_a_table_with_their_labels_as_they_are(folder: Path) -> None:
    called("send", TO_ORDERS, "--recoverable", "--data", folder)
    head, *rows = on_a_terminal("queue", "list", "--data", folder).splitlines()
    assert head.split() == ["queue", "kind", "messages", "bytes", "notes"]
    assert [row.split()[:3] for row in rows] == [
        [LEDGER, "private", "0"],
        [ORDERS, "private", "1"],
        ["system$;deadletter", "system", "0"],
        ["system$;deadxact", "system", "0"],
        ["system$;journal", "system", "0"],
    ]
    assert rows[0].rstrip().endswith("transactional, journal")
    assert SHOWN in rows[1]


def test_no_name_is_cut(folder: Path) -> None:
    name = "private$\\" + "x" * 110
    called("queue", "create", name, "--data", folder)
    shown = on_a_terminal("queue", "list", "--data", folder)
    assert shown.count("x") >= 110
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown


def test_a_queue_is_shown_line_by_line(folder: Path) -> None:
    called("send", TO_ORDERS, "--recoverable", "--data", folder)
    called("move", ORDERS, f"{ORDERS};late", "--data", folder)
    lines = on_a_terminal("queue", "show", ORDERS, "--data", folder).splitlines()
    shown = {name: value for name, _, value in (re.split(r"( +)", line, maxsplit=1) for line in lines)}
    assert shown["queue"] == ORDERS
    assert shown["label"] == SHOWN
    assert (shown["transactional"], shown["quota"], shown["subqueues"]) == ("no", "-", "late: 1")


def test_what_was_done_is_said_in_words(folder: Path) -> None:
    called("send", TO_ORDERS, "--recoverable", "--count", "3", "--data", folder)
    assert on_a_terminal("queue", "purge", ORDERS, "--data", folder) == f"{ORDERS}: messages deleted: 3\n"
    assert on_a_terminal("queue", "delete", ORDERS, "--data", folder) == (
        f"{ORDERS}: deleted, messages in it: 0\n"
    )


def test_a_message_is_two_lines_that_do_nothing_to_the_terminal(folder: Path) -> None:
    called("send", TO_ORDERS, "--recoverable", "--label", EVIL, "--body", "[b]x[/b]", "--data", folder)
    called("send", TO_ORDERS, "--recoverable", "--body", "x" * 300, "--data", folder)
    lines = on_a_terminal("receive", ORDERS, "--count", "2", "--data", folder).splitlines()
    assert re.fullmatch(r"[0-9a-f-]{36}\\1  \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  recoverable", lines[0])
    assert lines[1] == f"  {SHOWN}: [b]x[/b]"
    assert lines[3] == f"  (no label): {'x' * 200}..."
    assert len(lines) == 4


def test_json_is_the_same_on_a_terminal(folder: Path) -> None:
    plain = command("queue", "show", ORDERS, "--data", folder).out
    assert on_a_terminal("queue", "show", ORDERS, "--data", folder, "--json") == plain


def test_sending_straight_to_another_computer_says_what_became_of_it(data: Path) -> None:
    with process(data, "--queue", ORDERS) as found:
        to = rf"DIRECT=TCP:{found.address}\{ORDERS}"
        port = ("--port", str(found.port))
        given = ("send", to, *port, "--body", "x", "--recoverable", "--ack", "full_reach_queue")
        shown = on_a_terminal(*given)
        assert re.fullmatch(r"[0-9a-f-]{36}\\1 ACK_REACH_QUEUE\n", shown)
        told = command(*given).one
        assert told["acknowledgements"] == ["ACK_REACH_QUEUE"]
        sent = command("send", to, *port, "--count", "3", "--file", "-", data=b"body").lines
        assert len(sent) == 3
        received = command("receive", ORDERS, "--data", data, "--count", "9", "--timeout", "1").lines
        assert [one["body"] for one in received] == ["eA=="] * 2 + ["Ym9keQ=="] * 3


def test_sending_to_a_computer_that_is_not_there_says_so() -> None:
    given = ("send", r"DIRECT=TCP:127.0.0.99\private$\x", "--port", "1", "--timeout", "0.5", "--recoverable")
    error = command(*given).error(69)
    assert "SocketConnectFailure at 127.0.0.99" in error["error"]
