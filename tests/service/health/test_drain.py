"""Draining: nothing new begins, nothing is lost or refused for good, and what is under way ends."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire.errors import ManagerStopped, QueueError, Unreachable
from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.local import attach
from msmqwire.service.control.client import Local
from tests.support.running import (
    LEDGER,
    ORDERS,
    InThread,
    bodies,
    called,
    options,
    peeked,
    process,
    put,
    recoverable,
    served,
    until,
)

TO_BETA = r"DIRECT=OS:beta\private$\orders"


def test_it_waits_for_what_is_held(data: Path) -> None:
    with served(options(data, ORDERS)), attach(data) as local:
        put(local, ORDERS, *recoverable(b"1", b"2"))
        held = local.call("receive", queue=ORDERS)["messages"][0]["receipt"]
        refused = called("drain", data, "--timeout", "0.3").error(69)
        assert "after 0.3 s 1 message is still held" in refused["error"]
        with pytest.raises(ManagerStopped, match="drains"):
            put(local, ORDERS, *recoverable(b"3"))
        with pytest.raises(ManagerStopped, match="drains"):
            local.call("receive", queue=ORDERS)
        report = json.loads(called("check", data, "--json").out)
        assert [check["name"] for check in report["checks"] if not check["ok"]] == ["drain"]
        assert report["checks"][-1]["detail"] == "1 message is held"
        local.call("end", done=[held])
        assert called("drain", data).one == {"draining": True, "held": 0}
        assert peeked(data, ORDERS) == [b"2"]
        assert called("drain", data, "--cancel").one == {"draining": False, "held": 0}
        put(local, ORDERS, *recoverable(b"3"))
    with served(options(data)), attach(data) as local:
        assert bodies(local.call("receive", queue=ORDERS, count=9)["messages"]) == [b"2", b"3"]


def test_a_start_forgets_it(data: Path) -> None:
    with process(data, "--queue", ORDERS):
        assert called("drain", data).one["draining"]
    with process(data), attach(data) as local:
        put(local, ORDERS, *recoverable(b"1"))
        assert local.call("drain") == {"draining": False, "held": 0}


def test_receives_that_wait_end(data: Path) -> None:
    ended: list[object] = []

    def wait() -> None:
        with attach(data) as waiting:
            try:
                ended.append(waiting.call("read", queue=ORDERS, action="receive", wait_ms=None))
            except QueueError as exc:
                ended.append(exc)

    with served(options(data, ORDERS)) as server, attach(data) as local:
        thread = threading.Thread(target=wait)
        thread.start()
        queue = lambda: local.call("show", queue=ORDERS)  # noqa: E731
        until(lambda: queue()["open"] == 1, "it waits")
        server.do(lambda running: running.driver.call(lambda: running.driver.drain.set(on=True)))
        thread.join()
        (end,) = ended
        assert isinstance(end, ManagerStopped)


def test_pushed_messages_can_be_ended(data: Path) -> None:
    """A program gets what was pushed to it, ends it, and then learns that no more comes."""
    taken: list[object] = []
    with served(options(data, ORDERS)), attach(data) as local:
        put(local, ORDERS, *recoverable(b"1", b"2", b"3", b"4"))
        with (
            msmqwire.attach(data) as manager,
            pytest.raises(Unreachable, match="drains"),
            manager.queue(ORDERS).messages(window=2) as messages,
        ):
            _take_all(messages, taken, lambda: local.call("drain", on=True))
        assert taken == [b"1", b"2"]
        until(lambda: local.call("drain")["held"] == 0, "nothing is held")
        assert peeked(data, ORDERS) == [b"3", b"4"]


def _take_all(messages: Iterable[Any], taken: list[object], after_the_first: Callable[[], object]) -> None:
    for message in messages:
        taken.append(message.body)
        if len(taken) == 1:
            after_the_first()


def test_a_transaction_under_way_is_committed(data: Path) -> None:
    with served(options(data, LEDGER + ";transactional")), attach(data) as local:
        transaction = local.call("begin")["transaction"]
        local.call("drain", on=True)
        (sent,) = local.call(
            "send", to=rf"DIRECT=OS:alpha\{LEDGER}", transaction=transaction,
            messages=[{"body": "", "delivery": "transactional"}],
        )["sent"]  # fmt: skip
        local.call("commit", transaction=transaction)
        assert [m["identifier"] for m in local.call("peek", queue=LEDGER)["messages"]] == [sent]
        with pytest.raises(ManagerStopped):
            local.call("begin")


@pytest.mark.parametrize(
    "queue, delivery", [(ORDERS, "recoverable"), (ORDERS, "express"), (LEDGER, "transactional")]
)
def test_peers_wait_and_lose_nothing(tmp_path: Path, queue: str, delivery: str) -> None:
    beta = tmp_path / "beta"
    with served(
        options(beta, ORDERS, LEDGER + ";transactional", name="beta", address="127.0.0.32")
    ) as receiver:
        overrides = AddressOverrides(hosts={"beta": ("127.0.0.32", receiver.port)})
        with served(options(tmp_path / "alpha", ORDERS, overrides=overrides)) as sender:
            _peers(sender, receiver, queue, delivery)


def _peers(sender: InThread, receiver: InThread, queue: str, delivery: str) -> None:
    def drain(on: bool) -> None:
        receiver.do(lambda running: running.driver.call(lambda: running.driver.drain.set(on=on)))

    with attach(sender.data) as local:

        def send(*numbers: int) -> None:
            messages = [{"body": "", "label": str(n), "delivery": delivery} for n in numbers]
            local.call("send", to=rf"DIRECT=OS:beta\{queue}", messages=messages)

        send(1, 2)
        until(lambda: _labels(receiver.data, queue) == ["1", "2"], "the first ones are there")
        drain(True)
        send(3, 4, 5)
        until(lambda: not receiver.do(lambda running: running.network.connections), "the session is ended")
        assert _labels(receiver.data, queue) == ["1", "2"]
        drain(False)
        until(lambda: _labels(receiver.data, queue) == ["1", "2", "3", "4", "5"], "all are there, once")
        refused = receiver.do(lambda running: dict(running.driver.core.context.refusals.counts))
        assert refused == {}
        until(lambda: _waiting(local) == 0, "all are acknowledged")


def _waiting(local: Local) -> int:
    """The number of messages that are to be sent."""
    queues = local.call("list")["queues"]
    return sum(queue["messages"] for queue in queues if queue["queue"].startswith("DIRECT="))


def _labels(data: Path, queue: str) -> list[str]:
    with attach(data) as local:
        return [message["label"] for message in local.call("peek", queue=queue, count=99)["messages"]]


@pytest.mark.parametrize(
    "arguments, status, told",
    [
        (("none",), 66, "no queue manager in this folder"),
        (("http://127.0.0.1:1",), 69, "refused"),
        ((".", "--timeout", "-1"), 2, "--timeout"),
        ((".", "--token-file", "t"), 2, "is for a URL"),
    ],
)
def test_what_cannot_be_drained(arguments: tuple[str, ...], status: int, told: str) -> None:
    assert told in str(called("drain", *arguments).error(status))


def test_by_url_with_a_token(data: Path, tmp_path: Path) -> None:
    with process(data, "--queue", ORDERS, "--console", "127.0.0.31:0", "--console-write") as server:
        url, token = f"http://127.0.0.31:{server.console_port}", data / "console-token"
        assert called("drain", url, "--token-file", token).one == {"draining": True, "held": 0}
        assert called("check", url, "--json").status == 69
        assert "drains: takes nothing new" in server.events()
        assert called("drain", url, "--token-file", token, "--cancel").one["draining"] is False
        wrong = tmp_path / "wrong"
        wrong.write_text("x" * 43)
        wrong.chmod(0o600)
        assert "401" in called("drain", url, "--token-file", wrong).error(69)["error"]
        assert called("drain", data).one["draining"]
    with process(data, "--console", "127.0.0.31:0") as server:
        url = f"http://127.0.0.31:{server.console_port}"
        assert "403" in called("drain", url, "--token-file", token).error(69)["error"]
