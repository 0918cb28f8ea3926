"""`attach` and the commands when the disk refuses, or a request is interrupted or fails."""

from __future__ import annotations

import json
import signal
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msmqwire.cli import reading
from msmqwire.errors import InvalidValue, StoreRefused, Unreachable
from msmqwire.qm.runtime import local as local_module
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.waiting import WaitingLocal
from msmqwire.service.control.server import REQUEST_MAX
from msmqwire.service.store.sqlite import SqliteStore
from tests.support.running import (
    ORDERS,
    InThread,
    Process,
    begun,
    called,
    ended,
    listed,
    options,
    peeked,
    put,
    recoverable,
    served,
    until,
)

OTHER = r"private$\other"


@pytest.fixture(params=["served", "store"])
def folder(request: pytest.FixtureRequest, data: Path) -> Iterator[Path]:
    """A folder with a queue, with and without a server."""
    with served(options(data, ORDERS)):
        if request.param == "served":
            yield data
    if request.param == "store":
        yield data


@pytest.fixture
def store(data: Path) -> Path:
    """A folder with a queue and no server."""
    with attach(data, create=True) as local:
        local.call("create", queue=ORDERS)
    return data


# -- the disk -------------------------------------------------------------------------------------------


def refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every commit fail, and shorten the wait for the disk."""

    def commit(*_: object) -> None:
        raise StoreRefused("No space left on device", file="store")

    monkeypatch.setattr(SqliteStore, "commit", commit)
    monkeypatch.setattr(local_module, "DISK_S", 0.3)


def test_a_disk_that_refuses_is_not_waited_for_for_ever(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = attach(store)
    with monkeypatch.context() as patch:
        refuse(patch)
        with pytest.raises(StoreRefused, match="does not take") as caught:
            local.call("create", queue=OTHER)
        assert caught.value.file == str(store / "queues.msmq")
        with pytest.raises(StoreRefused):
            local.call("list")
        local.close()
    assert OTHER not in listed(store)  # the store is free again, and has no refused change


def test_a_disk_that_refuses_at_the_end(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = attach(store)
    put(local, ORDERS, *recoverable(b"x"), computer=local.call("status")["name"])
    with monkeypatch.context() as patch:
        refuse(patch)
        with pytest.raises(StoreRefused):
            local.close()
    assert peeked(store, ORDERS) == [b"x"]


def test_a_disk_that_recovers_in_time(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, refusals = SqliteStore.commit, [1, 2]

    def hesitant(self: SqliteStore, changes: Any) -> None:
        if refusals:
            refusals.pop()
            raise StoreRefused("No space left on device", file="store")
        commit(self, changes)

    with attach(store) as local:
        monkeypatch.setattr(SqliteStore, "commit", hesitant)
        local.call("create", queue=OTHER)
    assert refusals == []
    assert OTHER in listed(store)


def test_a_command_says_that_the_disk_refuses(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch)
    error = called("queue", "create", OTHER, "--data", store).error(74)
    assert "the disk does not take" in error["error"]


# -- requests over the control channel ------------------------------------------------------------------


class _Interrupted:
    """A file that is interrupted while it is read."""

    def __init__(self, file: Any) -> None:
        self.close = file.close

    def readline(self) -> bytes:
        raise KeyboardInterrupt


def test_after_a_request_that_was_interrupted_there_is_no_other(server: InThread) -> None:
    with attach(server.data) as local:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(local, "_file", _Interrupted(vars(local)["_file"]))
            with pytest.raises(KeyboardInterrupt):
                local.call("list")
        for _ in range(2):
            with pytest.raises(Unreachable, match="was interrupted"):
                local.call("status")


def test_what_an_interrupted_receive_took_goes_back(server: InThread) -> None:
    with attach(server.data) as local:
        put(local, ORDERS, *recoverable(b"x"))
    with attach(server.data) as local, pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "_file", _Interrupted(vars(local)["_file"]))
        with pytest.raises(KeyboardInterrupt):
            local.call("receive", queue=ORDERS)
        until(lambda: peeked(server.data, ORDERS) == [b"x"], "the message is given back")


def test_a_request_that_is_too_long_is_refused_before_it_is_sent(server: InThread) -> None:
    body = b64encode(b"x" * REQUEST_MAX).decode()
    with attach(server.data) as local:
        with pytest.raises(InvalidValue, match=f"and may have {REQUEST_MAX:,}"):
            local.call("send", to=rf"DIRECT=OS:.\{ORDERS}", messages=[{"body": body}])
        assert local.call("status")["name"] == "alpha"


def test_a_fault_of_the_server_is_not_a_wrong_value(
    server: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("nobody expected this")

    monkeypatch.setattr(queues, "listed", fail)
    with attach(server.data) as local:
        with pytest.raises(RuntimeError, match=r"a fault of msmqwire itself: .*nobody expected this"):
            local.call("list")
        assert local.call("status")["name"] == "alpha"
    result = called("queue", "list", "--data", server.data)
    assert result.status == 70
    assert "nobody expected this" in json.loads(result.err.splitlines()[-1])["error"]


# -- what was printed is not given back -----------------------------------------------------------------


def fill(data: Path, *contents: bytes) -> None:
    """Put messages into the queue."""
    with attach(data) as local:
        put(local, ORDERS, *recoverable(*contents), computer=local.call("status")["name"])


@pytest.mark.parametrize("failure", [KeyboardInterrupt, BrokenPipeError])
def test_what_was_printed_before_an_interruption_is_gone(
    folder: Path, failure: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(folder, b"1", b"2", b"3", b"4")
    shown: list[str] = []

    def show(message: dict[str, Any], _: bool, *, decode: bool) -> None:
        if len(shown) == 2:
            raise failure
        shown.append(message["identifier"])

    monkeypatch.setattr(reading, "show", show)
    with pytest.raises(failure), WaitingLocal(folder, lambda _: None) as local:
        reading._receive(local, ORDERS, 4, 0, True, decode=False)
    assert peeked(folder, ORDERS) == [b"3", b"4"]


def test_printed_messages_are_removed_if_the_wait_is_interrupted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(folder, b"1", b"2")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def receive(local: WaitingLocal) -> None:
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 1)
            reading._receive(local, ORDERS, 4, 1000, True, decode=False)
        finally:
            signal.signal(signal.SIGALRM, before)

    monkeypatch.setattr(reading, "show", lambda *_, decode: None)
    with pytest.raises(KeyboardInterrupt), WaitingLocal(folder, lambda _: None) as local:
        receive(local)
    until(lambda: listed(folder)[ORDERS]["messages"] == 0, "both messages are removed")


def test_who_reads_no_more_of_a_pipe_has_what_it_read(alpha: Process) -> None:
    contents = [bytes([letter]) * 300_000 for letter in b"abc"]  # more than a pipe can buffer
    fill(alpha.data, *contents)
    run = begun("receive", ORDERS, "--data", alpha.data, "--count", "3")
    assert run.stdout is not None
    assert json.loads(run.stdout.readline())["body"] == b64encode(contents[0]).decode()
    run.stdout.close()
    run.stdout = None
    assert ended(run).status == 1
    until(lambda: peeked(alpha.data, ORDERS) == contents[1:], "the other messages are given back")


def test_a_command_that_is_interrupted_ends(alpha: Process) -> None:
    fill(alpha.data, b"1")
    run = begun("receive", ORDERS, "--data", alpha.data, "--count", "3", "--timeout", "1000")
    assert run.stdout is not None
    run.stdout.readline()
    until(lambda: listed(alpha.data)[ORDERS]["messages"] == 0, "the message is confirmed")
    run.send_signal(signal.SIGINT)
    assert "Traceback" not in ended(run).err
    assert peeked(alpha.data, ORDERS) == []
