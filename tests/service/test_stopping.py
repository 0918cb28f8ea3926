"""How a server ends: shut down in good order, or killed."""

from __future__ import annotations

import json
import signal
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from msmqwire.errors import Unreachable
from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.data_folder import CONTROL, STORE
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.server import SETTINGS
from tests.support.running import (
    LEDGER,
    ORDERS,
    PATIENCE_S,
    Process,
    begun,
    bodies,
    called,
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

TO_BETA = r"DIRECT=OS:beta\private$\orders"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order(data: Path, number: int) -> None:
    with process(data, "--queue", ORDERS) as server:
        socket_path = Path(json.loads((data / CONTROL).read_text())["path"])
        assert socket_path.is_socket()
        server.stop(number)
        assert server.process.stdout is not None
        assert server.process.stdout.read() == ""
        assert server.events() == ["ready", "stops", "stopped"]
    assert not socket_path.exists()
    assert not (data / CONTROL).exists()


def test_a_second_signal_does_not_disturb_the_end(data: Path) -> None:
    with process(data, "--queue", ORDERS) as server:
        with attach(data) as local:
            put(local, ORDERS, *recoverable(*(b"%d" % n for n in range(1000))))
        for _ in range(5):
            server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE_S) == 0
        assert server.events()[-1] == "stopped"


def test_what_was_taken_and_not_ended_is_back_after_a_stop(data: Path) -> None:
    queues = ("--queue", ORDERS, "--queue", f"{LEDGER};transactional")
    with process(data, *queues) as server, attach(data) as local:
        put(local, ORDERS, *recoverable(b"1", b"2", b"3"))
        put(local, LEDGER, *[message(b"4", delivery="transactional")])
        received = local.call("receive", queue=ORDERS, count=2)["messages"]
        assert bodies(local.call("receive", queue=LEDGER)["messages"]) == [b"4"]
        local.call("end", done=[received[0]["receipt"]])
        server.stop()
        with pytest.raises(Unreachable, match="the server has gone"):
            local.call("status")
    assert peeked(data, ORDERS) == [b"2", b"3"]
    assert peeked(data, LEDGER) == [b"4"]
    with process(data):
        assert peeked(data, ORDERS) == [b"2", b"3"]


def test_express_messages_end_with_the_server_and_others_stay(data: Path) -> None:
    with process(data, "--queue", ORDERS) as server:
        with attach(data) as local:
            put(local, ORDERS, message(b"express"), *recoverable(b"stays"))
        assert peeked(data, ORDERS) == [b"express", b"stays"]
        server.stop()
    with process(data):
        assert peeked(data, ORDERS) == [b"stays"]


def test_a_waiting_command_reports_that_the_server_is_gone(alpha: Process) -> None:
    waiting = begun("receive", ORDERS, "--data", alpha.data, "--timeout", "5")
    until(lambda: listed(alpha.data)[ORDERS]["open"] == 1, "the command waits")
    alpha.stop()
    assert waiting.poll() is None
    error = ended(waiting).error(69)["error"]
    assert error == f"the server has gone, and is not back: no server runs for {alpha.data}"


def test_received_recoverable_messages_are_acked_at_the_stop(data: Path, tmp_path: Path) -> None:
    slow = replace(
        SETTINGS, recoverable_ack_delay_ms=600_000, ack_delay_ms=600_000, ack_wait_timeout_ms=120_000
    )
    beta = tmp_path / "beta"
    receiver = served(options(beta, ORDERS, address="127.0.0.32", name="beta", settings=slow))
    with ExitStack() as stack:
        port = stack.enter_context(receiver).port
        overrides = AddressOverrides(hosts={"beta": ("127.0.0.32", port)})
        with served(options(data, settings=slow, overrides=overrides)), attach(data) as local:
            local.call("send", to=TO_BETA, messages=recoverable(*(b"%d" % n for n in range(10))))
            until(lambda: len(peeked(beta, ORDERS)) == 10, "all messages have arrived")
            assert outgoing(data) == 10
            stack.close()  # beta stops, and nothing can be sent again
            until(lambda: outgoing(data) == 0, "all messages are acknowledged")
    assert peeked(beta, ORDERS) == [b"%d" % n for n in range(10)]


def outgoing(data: Path) -> int:
    """The number of messages in outgoing queues."""
    return sum(queue["messages"] for queue in listed(data).values() if queue["kind"] == "outgoing")


def test_a_killed_server_restarts_with_its_durable_messages(data: Path) -> None:
    with process(data, "--queue", ORDERS) as server, attach(data) as local:
        put(local, ORDERS, *recoverable(b"1", b"2"))
        local.call("receive", queue=ORDERS)
        server.kill()
    assert (data / CONTROL).exists()  # stale, and so is the socket
    assert (data / "control.sock").exists()
    with process(data) as server:
        assert peeked(data, ORDERS) == [b"1", b"2"]
        with attach(data) as local:
            assert local.served
        server.stop()
    assert not (data / CONTROL).exists()


def test_commands_work_on_the_store_of_a_server_that_was_killed(data: Path) -> None:
    with process(data, "--queue", ORDERS) as server:
        with attach(data) as local:
            put(local, ORDERS, *recoverable(b"1", b"2"))
        server.kill()
    with attach(data) as local:
        assert not local.served
    assert called("receive", ORDERS, "--data", data).one["body"] == "MQ=="
    assert called("queue", "show", ORDERS, "--data", data).one["messages"] == 1


def test_what_waits_for_another_computer_is_sent_after_a_kill(data: Path, tmp_path: Path) -> None:
    beta = tmp_path / "beta"
    with process(beta, "--queue", ORDERS, name="beta", address="127.0.0.32") as receiver:
        port = receiver.port
    with process(data) as server:
        with attach(data) as local:
            local.call("send", to=TO_BETA, messages=recoverable(*(b"%d" % n for n in range(10))))
        server.kill()
    with (
        process(beta, "--listen", f"127.0.0.32:{port}", name="beta", address="127.0.0.32"),
        process(data, "--host", f"beta=127.0.0.32:{port}"),
    ):
        until(lambda: len(peeked(beta, ORDERS)) == 10, "all messages have arrived")
        assert peeked(beta, ORDERS) == [b"%d" % n for n in range(10)]


def test_a_receiver_that_is_killed_gives_back(alpha: Process) -> None:
    """It receives all three with one request, and prints one after the other."""
    with attach(alpha.data) as local:
        put(local, ORDERS, *recoverable(*(b"x" * 200_000 for _ in range(3))))
        receiver = begun("receive", ORDERS, "--data", alpha.data, "--count", "3")
        until(lambda: not bodies(local.call("peek", queue=ORDERS)["messages"]), "it has received them")
        receiver.kill()  # blocked by its unread output, it has not confirmed the first
        receiver.wait(PATIENCE_S)
        assert receiver.stdout is not None
        assert receiver.stderr is not None
        receiver.stdout.close()
        receiver.stderr.close()
        until(lambda: len(local.call("peek", queue=ORDERS, count=9)["messages"]) == 3, "they are given back")


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
    called("queue", "create", ORDERS, "--data", data)
    before = (data / STORE).stat().st_mtime_ns
    waiting = begun("receive", ORDERS, "--data", data, "--timeout", "3600")
    until(lambda: (data / STORE).stat().st_mtime_ns != before, "it has opened the store")
    waiting.send_signal(signal.SIGINT)
    run = ended(waiting)
    assert run.status != 0
    assert "Traceback" not in run.err
    assert "Task" not in run.err
    assert listed(data)[ORDERS]["messages"] == 0


def test_the_end_of_standard_output_does_not_end_it(data: Path) -> None:
    with process(data, "--queue", ORDERS) as server:
        assert server.process.stdout is not None
        server.process.stdout.close()
        assert ORDERS in listed(data)
        server.stop()


def test_it_is_ready_when_it_says_so(data: Path) -> None:
    """Commands and signals that follow its ready line reach it."""
    for _ in range(3):
        with process(data, "--queue", ORDERS) as server, attach(data) as local:
            assert local.served
            server.stop()
