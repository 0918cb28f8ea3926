"""The output of commands on a terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.running import (
    LEDGER,
    ORDERS,
    called,
    command,
    process,
)
from tests.support.terminal import on_a_terminal

TO_ORDERS = rf"DIRECT=OS:.\{ORDERS}"
EVIL = "\x1b]0;owned\x07\x1b[2J[red]not red[/red]\u202e"
SHOWN = r"\x1b]0;owned\x07\x1b[2J[red]not red[/red]\u202e"


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
    assert on_a_terminal("queue", "purge", ORDERS, "--yes", "--data", folder) == (
        f"{ORDERS}: messages deleted: 3\n"
    )
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


def test_a_direct_send_reports_its_outcome(data: Path) -> None:
    with process(data, "--queue", ORDERS) as server:
        to = rf"DIRECT=TCP:{server.address}\{ORDERS}"
        port = ("--port", str(server.port))
        arguments = ("send", to, *port, "--body", "x", "--recoverable", "--ack", "full_reach_queue")
        shown = on_a_terminal(*arguments)
        assert re.fullmatch(r"[0-9a-f-]{36}\\1 confirmed ACK_REACH_QUEUE\n", shown)
        reported = command(*arguments).one
        assert reported["acknowledgements"] == ["ACK_REACH_QUEUE"]
        sent = command("send", to, *port, "--count", "3", "--file", "-", data=b"body").lines
        assert len(sent) == 3
        received = command("receive", ORDERS, "--data", data, "--count", "9", "--timeout", "1").lines
        assert [message["body"] for message in received] == ["eA=="] * 2 + ["Ym9keQ=="] * 3


def test_sending_to_a_computer_that_is_not_there_says_so() -> None:
    arguments = (
        "send",
        r"DIRECT=TCP:127.0.0.99\private$\x",
        "--port",
        "1",
        "--timeout",
        "0.5",
        "--recoverable",
    )
    error = command(*arguments).error(69)
    assert error["error"] == "the message was not sent: nobody listens at 127.0.0.99:1"


def test_a_terminal_sees_what_is_waited_for(data: Path) -> None:
    nobody = ("send", r"DIRECT=TCP:127.0.0.99\private$\x", "--port", "1", "--timeout")
    waiting = "nobody listens at 127.0.0.99:1: waiting for 127.0.0.99, 5 s at most"
    first, last = on_a_terminal(*nobody, "5", status=69).splitlines()
    assert (first, last.startswith("error: ")) == (waiting, True)
    assert waiting not in on_a_terminal(*nobody, "1", status=69)
    assert waiting not in command(*nobody, "5").err
    with process(data, "--queue", ORDERS) as server:
        to = rf"DIRECT=TCP:{server.address}\private$\nothing"
        arguments = ("send", to, "--port", str(server.port), "--recoverable", "--confirm", "3")
        first, second, last = on_a_terminal(*arguments, status=75).splitlines()
        limit = "waiting for its queue's acknowledgement, 3 s at most"
        assert first == f"{server.address} has it: {limit}"
        assert re.fullmatch(r"[0-9a-f-]{36}\\1 transferred", second)
        assert last.startswith(f"warning: {server.address} has the message; ")
