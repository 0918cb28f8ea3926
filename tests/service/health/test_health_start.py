"""The health of a server from its first moment on, while its store is being restored, and later."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from msmqwire.errors import ManagerStopped, StoreDamaged
from msmqwire.qm.rules.recovery import Recovery
from msmqwire.qm.runtime.console import ConsoleOptions
from msmqwire.qm.runtime.data_folder import STORE
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.server import Server
from msmqwire.qm.store import open_store
from msmqwire.service.tasks import cancel_other_tasks
from tests.support.patience import happens, limit
from tests.support.running import ADDRESS, ORDERS, called, command, options, process, put, recoverable

CHECKS = ["store", "disk", "listeners", "oldest_unsynced_change", "drain"]


class Held:
    """A restoring that goes on until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go, self.begun = threading.Event(), threading.Event()
        self.failure: Exception | None = None
        restore = Recovery.restore

        def held(recovery: Recovery) -> None:
            self.begun.set()
            assert self.go.wait(limit(60))
            if self.failure is not None:
                raise self.failure
            restore(recovery)

        monkeypatch.setattr(Recovery, "restore", held)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    one = Held(monkeypatch)
    yield one
    one.go.set()


def asked(port: int, path: str) -> tuple[int, dict[str, str], Any]:
    """Status, header fields and JSON of an answer."""
    try:
        with urlopen(f"http://{ADDRESS}:{port}{path}", timeout=limit(60)) as answer:
            return answer.status, dict(answer.headers), json.load(answer)
    except HTTPError as answer:
        with answer:
            return answer.code, dict(answer.headers), json.load(answer)


def with_console(data: Path) -> Server:
    pages = {"console": ConsoleOptions((ADDRESS, 0)), "metrics": (ADDRESS, 0)}
    return Server(options(data, ORDERS, **pages))


async def elsewhere(action: Callable[..., Any], *args: Any) -> Any:
    """Run a blocking call beside the loop."""
    return await asyncio.to_thread(action, *args)


def _run(work: Coroutine[Any, Any, None], held: Held) -> None:
    """Run a scenario; one that fails leaves no thread waiting."""

    async def run() -> None:
        try:
            await work
        finally:
            held.go.set()
            await cancel_other_tasks()

    asyncio.run(run())


def failed(report: dict[str, Any]) -> list[str]:
    return [check["name"] for check in report["checks"] if not check["ok"]]


def test_it_answers_while_the_store_is_restored(data: Path, held: Held) -> None:
    async def start() -> None:
        server = with_console(data)
        starting = asyncio.ensure_future(server.start())
        await happens(held.begun.is_set, "the store is being restored")
        assert server.console is not None
        for port in (server.console[1], server._metrics_port):
            status, fields, report = await elsewhere(asked, port, "/readyz")
            assert (status, fields["Retry-After"], report["ok"]) == (503, "1", False)
            assert [check["name"] for check in report["checks"]] == CHECKS
            assert failed(report) == ["store", "listeners"]
            assert report["checks"][0]["detail"].startswith("is being restored, for ")
            assert (await elsewhere(asked, port, "/healthz"))[::2] == (200, {"ok": True})
            status, fields, problem = await elsewhere(asked, port, "/api/v1/queues")
            assert (status, fields["Content-Type"], fields["Retry-After"], problem["status"]) == (
                503, "application/problem+json", "1", 503,
            )  # fmt: skip
        run = await elsewhere(called, "check", data, "--json")
        assert (run.status, json.loads(run.out)["checks"][2]) == (69, report["checks"][2])
        waiting = asyncio.ensure_future(elsewhere(names_of_queues, data))
        await happens(lambda: server._control is not None and server._control.clients == 1, "a command waits")
        held.go.set()
        await starting
        assert ORDERS in await waiting
        status, _, report = await elsewhere(asked, server.console[1], "/readyz")
        assert (status, report["ok"], failed(report)) == (200, True, [])
        assert (await elsewhere(called, "check", data, "--json")).one["ok"]
        status, _, problem = await elsewhere(asked, server.console[1], "/api/v1/queues")
        assert (status, problem["name"]) == (401, "Unauthorized")
        await server.stop()

    _run(start(), held)


def names_of_queues(data: Path) -> list[str]:
    with attach(data) as local:
        assert local.served
        return [queue["queue"] for queue in local.call("list")["queues"]]


def test_a_start_that_fails_refuses_who_waits(data: Path, held: Held) -> None:
    async def start() -> None:
        server = with_console(data)
        held.failure = StoreDamaged("a test", file="the store")
        starting = asyncio.ensure_future(server.start())
        await happens(held.begun.is_set, "the store is being restored")
        waiting = asyncio.ensure_future(elsewhere(names_of_queues, data))
        await happens(lambda: server._control is not None and server._control.clients == 1, "a command waits")
        held.go.set()
        with pytest.raises(StoreDamaged, match="a test"):
            await starting
        with pytest.raises(ManagerStopped, match="nothing was done"):
            await waiting
        assert server.console is not None
        with pytest.raises(OSError, match="refused"):
            await elsewhere(asked, server.console[1], "/healthz")

    _run(start(), held)
    open_store(data / STORE).close()  # not locked any more


def test_a_start_that_is_given_up_leaves_nothing_open(data: Path, held: Held) -> None:
    async def start() -> None:
        server = with_console(data)
        starting = asyncio.ensure_future(server.start())
        await happens(held.begun.is_set, "the store is being restored")
        starting.cancel()
        await asyncio.sleep(0)  # the cancellation is delivered
        held.go.set()
        with pytest.raises(asyncio.CancelledError):
            await starting

    _run(start(), held)
    open_store(data / STORE).close()
    assert not (data / "control").exists()


def test_a_second_server_is_refused_while_one_starts(data: Path, held: Held) -> None:
    async def start() -> None:
        starting = asyncio.ensure_future((server := with_console(data)).start())
        await happens(held.begun.is_set, "the store is being restored")
        refused = await elsewhere(
            command, "serve", "--data", data, "--listen", f"{ADDRESS}:0", "--ping", "off"
        )
        assert (refused.status, "has the store open" in refused.err) == (69, True)
        held.go.set()
        await starting
        await server.stop()

    _run(start(), held)


def test_a_server_that_was_killed_is_missed(data: Path) -> None:
    """The stores are read as after a stop; but who watches the server has to learn that it is gone."""
    with process(data, "--queue", ORDERS) as server:
        with attach(data) as local:
            put(local, ORDERS, *recoverable(b"kept"))
        assert called("check", data, "--json").one["ok"]
        server.kill()
    run = called("check", data, "--json")
    assert (run.status, json.loads(run.out)["faults"]) == (69, 0)
    assert "has ended without a stop" in run.err
    with process(data):
        pass
    assert called("check", data, "--json").one["faults"] == 0
    assert "no server runs" in called("check", data, "--server").error(69)["error"]
    assert "no such folder" in called("check", data / "none", "--server").error(66)["error"]


def test_a_url_is_asked_too(data: Path, tmp_path: Path) -> None:
    with process(data, "--console", f"{ADDRESS}:0") as server:
        url = f"http://{ADDRESS}:{server.console_port}"
        assert [check["name"] for check in called("check", url, "--json").one["checks"]] == CHECKS
    assert "refused" in called("check", url, "--json").error(69)["error"]


@pytest.mark.parametrize(
    "arguments, told",
    [
        (("http://127.0.0.1:1/x",), "is not the URL of a console"),
        (("ftp://127.0.0.1",), "is not the URL of a console"),
        (("http://[::1",), "is not the URL of a console"),
        ((".", "--token-file", "t"), "--token-file is for a URL"),
        ((".", "--server", "--stores"), "not together"),
        (("http://127.0.0.1:1", "--accept"), "are for a folder"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], told: str) -> None:
    assert told in called("check", *arguments).error(2)["error"]
