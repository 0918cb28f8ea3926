"""`queue delete`, `queue purge` and their kin: what would delete a queue of messages asks on a terminal."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.qm.runtime.folder import default_name
from msmqwire.qm.runtime.local import attach
from tests.support.running import ORDERS, called, listed, process
from tests.support.terminal import on_a_terminal, terminal

TO_ORDERS = rf"DIRECT=OS:.\{ORDERS}"


def fill(data: Path, count: int = 1) -> None:
    """Send messages to the queue of orders."""
    assert called("send", TO_ORDERS, "--recoverable", "--count", str(count), "--data", data).status == 0


@pytest.fixture
def folder(data: Path) -> Path:
    """A folder that nobody serves, with a queue of 12 messages."""
    called("queue", "create", ORDERS, "--data", data)
    fill(data, 12)
    return data


@pytest.mark.parametrize("command", ["purge", "delete"])
def test_deleting_messages_without_a_terminal_requires_yes(folder: Path, command: str) -> None:
    """The option is --yes, and without it the command ends with status 2."""
    refused = called("queue", command, ORDERS, "--data", folder).error(2)
    assert refused["error"] == f"{ORDERS} has 12 messages; --yes deletes them"
    assert listed(folder)[ORDERS]["messages"] == 12
    done = called("queue", command, ORDERS, "--data", folder, "--yes").one
    assert done == {"queue": ORDERS, {"purge": "purged"}.get(command, "deleted"): 12}
    assert listed(folder).get(ORDERS, {"messages": 0})["messages"] == 0


@pytest.mark.parametrize("command", ["purge", "delete"])
def test_without_messages_nothing_is_asked(data: Path, command: str) -> None:
    called("queue", "create", ORDERS, "--data", data)
    done = called("queue", command, ORDERS, "--data", data).one
    assert done == {"queue": ORDERS, {"purge": "purged"}.get(command, "deleted"): 0}


@pytest.mark.parametrize(
    "command, question",
    [
        ("purge", rf"Delete 12 messages of {ORDERS}? [y/N] "),
        ("delete", rf"Delete {ORDERS} with its 12 messages? [y/N] "),
    ],
)
def test_on_a_terminal_it_is_asked(folder: Path, command: str, question: str) -> None:
    for answer in ("n\n", "\n", "NO\n", "\x04"):
        with terminal("queue", command, ORDERS, "--data", folder) as run:
            run.shown(question)
            run.type(answer)
            assert run.ended() == 1
        assert listed(folder)[ORDERS]["messages"] == 12
    with terminal("queue", command, ORDERS, "--data", folder) as run:
        run.shown(question)
        run.process.send_signal(signal.SIGINT)
        assert run.ended() in (1, 130)
        assert "Traceback" not in run.shown()
    assert listed(folder)[ORDERS]["messages"] == 12
    with terminal("queue", command, ORDERS, "--data", folder, out=subprocess.PIPE) as run:
        run.shown(question)
        run.type("perhaps\n")  # it is asked again
        run.shown(f"perhaps\n{question}")
        run.type("Y\n")
        assert run.process.stdout is not None
        printed = run.process.stdout.read()
        assert run.ended() == 0
    assert json.loads(printed) == {"queue": ORDERS, {"purge": "purged"}.get(command, "deleted"): 12}


def test_the_question_counts_what_else_would_go(data: Path) -> None:
    called("queue", "create", ORDERS, "--data", data, "--journal")
    fill(data, 4)
    assert called("move", ORDERS, f"{ORDERS};late", "--count", "2", "--data", data).status == 0
    assert called("receive", ORDERS, "--data", data).status == 0
    refused = called("queue", "delete", ORDERS, "--data", data)
    there = "1 message, 1 message in its journal and 2 messages in its subqueues"
    assert f"{ORDERS} has {there}; --yes" in refused.error(2)["error"]
    assert called("receive", ORDERS, "--data", data).status == 0
    refused = called("queue", "delete", ORDERS, "--data", data)  # though none is in the queue itself
    there = "2 messages in its journal and 2 messages in its subqueues"
    assert f"{ORDERS} has {there}; --yes" in refused.error(2)["error"]
    assert listed(data)[ORDERS]["journal_messages"] == 2
    assert called("queue", "purge", f"{ORDERS};journal", "--data", data).status == 2
    assert called("queue", "purge", f"{ORDERS};journal", "--data", data, "-y").one["purged"] == 2


def test_messages_arriving_during_the_question_are_asked_about(data: Path) -> None:
    with process(data, "--queue", ORDERS):
        fill(data)
        with terminal("queue", "delete", ORDERS, "--data", data) as run:
            run.shown("with its 1 message? [y/N] ")
            fill(data)
            run.type("y\n")
            run.shown("with its 2 messages? [y/N] ")
            run.type("y\n")
            assert run.ended() == 0
            assert f"{ORDERS}: deleted, messages in it: 2\n" in run.shown()
        assert ORDERS not in listed(data)


def test_nobody_is_kept_out_while_a_question_waits(folder: Path) -> None:
    with terminal("queue", "purge", ORDERS, "--data", folder) as run:
        run.shown("Delete 12 messages")
        with process(folder, name=default_name()) as server:
            run.type("y\n")
            assert run.ended() == 0
            assert listed(folder)[ORDERS]["messages"] == 0
            assert server.process.poll() is None


@pytest.mark.parametrize("op", ["purge", "delete"])
def test_the_queue_manager_deletes_no_more_than_agreed(folder: Path, op: str) -> None:
    with attach(folder) as local:
        with pytest.raises(InvalidValue, match="it has 12 messages by now") as caught:
            local.call(op, queue=ORDERS, at_most=11)
        assert caught.value.path == "at_most"
        for wrong in (-1, True, "12", 1.5):
            with pytest.raises(InvalidValue, match="is not a number") as caught:
                local.call(op, queue=ORDERS, at_most=wrong)
            assert caught.value.path == "at_most"
        assert local.call(op, queue=ORDERS, at_most=12)["queue"] == ORDERS


def test_a_remote_purge_asks_without_a_number() -> None:
    with terminal("purge", "--remote", rf"DIRECT=TCP:127.0.0.1\{ORDERS}", "--rpc-port", "1") as run:
        run.shown(rf"Delete all messages of DIRECT=TCP:127.0.0.1\{ORDERS}? [y/N] ")
        run.type("no\n")
        assert run.ended() == 1  # and nobody was connected to


def test_yes_asks_nothing_on_a_terminal(folder: Path) -> None:
    assert on_a_terminal("queue", "purge", ORDERS, "-y", "--data", folder) == (
        f"{ORDERS}: messages deleted: 12\n"
    )
