"""How a server ends: in good order, or killed."""

from __future__ import annotations

import json
import signal
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from msmqwire.errors import Unreachable
from msmqwire.qm.runtime.folder import CONTROL
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.server import SETTINGS
from msmqwire.qm.runtime.transport import AddressOverrides
from tests.support.running import (
    LEDGER,
    ORDERS,
    PATIENCE_S,
    Process,
    begun,
    bodies,
    command,
    ended,
    listed,
    message,
    options,
    peeked,
    process,
    put,
    recoverable,
    served,
    until,
)

ELSEWHERE = r"DIRECT=OS:beta\private$\orders"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order(data: Path, number: int) -> None:
    with process(data, "--queue", ORDERS) as found:
        socket_path = Path(json.loads((data / CONTROL).read_text())["path"])
        assert socket_path.is_socket()
        found.stop(number)
        assert found.process.stdout is not None
        assert found.process.stdout.read() == ""
        assert found.events() == ["ready", "stops", "stopped"]
    assert not socket_path.exists()
    assert not (data / CONTROL).exists()


def test_a_second_signal_does_not_disturb_the_end(data: Path) -> None:
    with process(data, "--queue", ORDERS) as found:
        with attach(data) as local:
            put(local, ORDERS, *recoverable(*(b"%d" % n for n in range(1000))))
        for _ in range(5):
            found.process.send_signal(signal.SIGTERM)
        assert found.process.wait(PATIENCE_S) == 0
        assert found.events()[-1] == "stopped"


def test_what_was_taken_and_not_ended_is_back_after_a_stop(data: Path) -> None:
    queues = ("--queue", ORDERS, "--queue", f"{LEDGER};transactional")
    with process(data, *queues) as found, attach(data) as local:
        put(local, ORDERS, *recoverable(b"1", b"2", b"3"))
        put(local, LEDGER, *[message(b"4", delivery="transactional")])
        taken = local.call("receive", queue=ORDERS, count=2)["messages"]
        assert bodies(local.call("receive", queue=LEDGER)["messages"]) == [b"4"]
        local.call("end", done=[taken[0]["receipt"]])
        found.stop()
        with pytest.raises(Unreachable, match="the server has gone"):
            local.call("status")
    assert peeked(data, ORDERS) == [b"2", b"3"]
    assert peeked(data, LEDGER) == [b"4"]
    with process(data):
        assert peeked(data, ORDERS) == [b"2", b"3"]


def test_express_messages_end_with_the_server_and_others_stay(data: Path) -> None:
    with process(data, "--queue", ORDERS) as found:
        with attach(data) as local:
            put(local, ORDERS, message(b"express"), *recoverable(b"stays"))
        assert peeked(data, ORDERS) == [b"express", b"stays"]
        found.stop()
    with process(data):
        assert peeked(data, ORDERS) == [b"stays"]


def test_a_command_that_waits_is_told_that_the_server_stops(alpha: Process) -> None:
    waiting = begun("receive", ORDERS, "--data", alpha.data, "--timeout", "3600")
    until(lambda: listed(alpha.data)[ORDERS]["open"] == 1, "the command waits")
    alpha.stop()
    assert ended(waiting).error(69)["error"].startswith("the server has gone")


def test_recoverable_messages_that_have_come_are_acknowledged_at_the_stop(data: Path, tmp_path: Path) -> None:
    slow = replace(
        SETTINGS, recoverable_ack_delay_ms=600_000, ack_delay_ms=600_000, ack_wait_timeout_ms=120_000
    )
    beta = tmp_path / "beta"
    there = served(options(beta, ORDERS, address="127.0.0.32", name="beta", settings=slow))
    with ExitStack() as stack:
        port = stack.enter_context(there).port
        overrides = AddressOverrides(hosts={"beta": ("127.0.0.32", port)})
        with served(options(data, settings=slow, overrides=overrides)), attach(data) as local:
            local.call("send", to=ELSEWHERE, messages=recoverable(*(b"%d" % n for n in range(10))))
            until(lambda: len(peeked(beta, ORDERS)) == 10, "all have come")
            assert on_the_way(data) == 10
            stack.close()  # beta stops, and nothing can be sent again
            until(lambda: on_the_way(data) == 0, "all are acknowledged")
    assert peeked(beta, ORDERS) == [b"%d" % n for n in range(10)]


def on_the_way(data: Path) -> int:
    """How many messages wait in the outgoing queue."""
    return sum(one["messages"] for one in listed(data).values() if one["kind"] == "outgoing")


def test_after_being_killed_it_starts_again_with_what_was_durable(data: Path) -> None:
    with process(data, "--queue", ORDERS) as found, attach(data) as local:
        put(local, ORDERS, *recoverable(b"1", b"2"))
        local.call("receive", queue=ORDERS)
        found.kill()
    assert (data / CONTROL).exists()  # stale, and so is the socket
    assert (data / "control.sock").exists()
    with process(data) as found:
        assert peeked(data, ORDERS) == [b"1", b"2"]
        with attach(data) as local:
            assert local.served
        found.stop()
    assert not (data / CONTROL).exists()


def test_commands_work_on_the_store_of_a_server_that_was_killed(data: Path) -> None:
    with process(data, "--queue", ORDERS) as found:
        with attach(data) as local:
            put(local, ORDERS, *recoverable(b"1", b"2"))
        found.kill()
    with attach(data) as local:
        assert not local.served
    assert command("receive", ORDERS, "--data", data).one["body"] == "MQ=="
    assert command("queue", "show", ORDERS, "--data", data).one["messages"] == 1


def test_what_waits_for_another_computer_is_sent_after_a_kill(data: Path, tmp_path: Path) -> None:
    beta = tmp_path / "beta"
    with process(beta, "--queue", ORDERS, name="beta", address="127.0.0.32") as there:
        port = there.port
    with process(data) as found:
        with attach(data) as local:
            local.call("send", to=ELSEWHERE, messages=recoverable(*(b"%d" % n for n in range(10))))
        found.kill()
    with (
        process(beta, "--listen", f"127.0.0.32:{port}", name="beta", address="127.0.0.32"),
        process(data, "--host", f"beta=127.0.0.32:{port}"),
    ):
        until(lambda: len(peeked(beta, ORDERS)) == 10, "all have come")
        assert peeked(beta, ORDERS) == [b"%d" % n for n in range(10)]


def test_a_receiver_that_is_killed_gives_back(alpha: Process) -> None:
    """It has taken all three in one go, and prints one after the other."""
    with attach(alpha.data) as local:
        put(local, ORDERS, *recoverable(*(b"x" * 200_000 for _ in range(3))))
        receiver = begun("receive", ORDERS, "--data", alpha.data, "--count", "3")
        until(lambda: not bodies(local.call("peek", queue=ORDERS)["messages"]), "it has taken them")
        receiver.kill()  # its output, which nobody reads, has held it up before the end of the first
        receiver.wait(PATIENCE_S)
        assert receiver.stdout is not None
        assert receiver.stderr is not None
        receiver.stdout.close()
        receiver.stderr.close()
        until(lambda: len(local.call("peek", queue=ORDERS, count=9)["messages"]) == 3, "they are back")


def test_a_waiting_receiver_that_is_interrupted_takes_nothing(alpha: Process) -> None:
    waiting = begun("receive", ORDERS, "--data", alpha.data, "--timeout", "3600")
    until(lambda: listed(alpha.data)[ORDERS]["open"] == 1, "the command waits")
    waiting.send_signal(signal.SIGINT)
    run = ended(waiting)
    assert run.status != 0
    assert "Traceback" not in run.err
    until(lambda: listed(alpha.data)[ORDERS]["open"] == 0, "the queue is closed")
    with attach(alpha.data) as local:
        put(local, ORDERS, *recoverable(b"1"))
    assert peeked(alpha.data, ORDERS) == [b"1"]


def test_a_receiver_that_waits_on_the_store_is_interrupted(data: Path) -> None:
    command("queue", "create", ORDERS, "--data", data)
    waiting = begun("receive", ORDERS, "--data", data, "--timeout", "3600")
    until(lambda: in_use(data), "it has the store open")
    waiting.send_signal(signal.SIGINT)
    run = ended(waiting)
    assert run.status != 0
    assert "Traceback" not in run.err
    assert "Task" not in run.err
    assert listed(data)[ORDERS]["messages"] == 0


def in_use(data: Path) -> bool:
    """Whether somebody has the store open, for a server that wants it."""
    run = command("serve", "--data", data, "--listen", "192.0.2.1:0", "--ping", "off")
    assert run.status == 69
    return "192.0.2.1" not in run.err


def test_the_end_of_standard_output_does_not_end_it(data: Path) -> None:
    with process(data, "--queue", ORDERS) as found:
        assert found.process.stdout is not None
        found.process.stdout.close()
        assert ORDERS in listed(data)
        found.stop()


def test_it_is_ready_when_it_says_so(data: Path) -> None:
    """Commands that begin with its line find it, and so does a signal."""
    for _ in range(3):
        with process(data, "--queue", ORDERS) as found, attach(data) as local:
            assert local.served
            found.stop()
