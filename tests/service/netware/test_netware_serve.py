"""``msmqwire netware serve``: from its start to its end, and what lasts."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from socket import create_server

import pytest

from msmqwire.errors import StoreRefused
from msmqwire.netware.runtime.server import NetwareOptions, NetwareServer
from msmqwire.service.store.sqlite import SqliteStore
from tests.support.netware.netware_running import LOOPBACK, RawNcp
from tests.support.netware.netware_station import (
    PRINT_QUEUE,
    PRINT_SERVER,
    be16,
    be32,
    le32,
    named,
    new_job,
    six_bytes,
)
from tests.support.running import PATIENCE_S, called, command_line, environment

READY = re.compile(r"ready netware tcp=(?P<address>\S+):(?P<port>\d+) data=(?P<data>.*)\n")
AUTO_START, RESTART, OPEN = 0x08, 0x10, 0x20
WRITE = 73


@contextmanager
def process(data: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int, list[str]]]:
    """A server as a process, its port, and at the end of the block its log."""
    log: list[str] = []
    with tempfile.TemporaryFile("w+") as errors:
        started = subprocess.Popen(
            command_line("netware", "serve", "--data", str(data), "--listen", f"{LOOPBACK}:0", *options),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment(), text=True,
        )  # fmt: skip
        try:
            assert started.stdout is not None
            ready = READY.fullmatch(started.stdout.readline())
            assert ready, errors.seek(0) or errors.read()
            assert (ready["address"], ready["data"]) == (LOOPBACK, str(data))
            yield started, int(ready["port"]), log
        finally:
            if started.poll() is None:
                started.kill()
            started.communicate(timeout=PATIENCE_S)
            errors.seek(0)
            log += errors.readlines()


@contextmanager
def in_thread(options: NetwareOptions) -> Iterator[NetwareServer]:
    """A server in a thread of this process."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> NetwareServer:
        server = NetwareServer(options)
        await server.start()
        return server

    try:
        server = asyncio.run_coroutine_threadsafe(start(), loop).result(PATIENCE_S)
        yield server
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(PATIENCE_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()


@pytest.mark.requirement("QMS-flags-01", "QMS-flags-02", "QMS-flags-03", "QMS-service-16", "QMS-service-17")
def test_what_was_acknowledged_outlasts_a_kill(data: Path) -> None:
    with process(data) as (server, port, _):
        second = called("netware", "serve", "--data", data, "--listen", f"{LOOPBACK}:0")
        assert "another process has the store open" in second.error(69)["error"]
        for name, kind in (("ALICE", "user"), ("PS1", "print-server")):
            called("netware", "object", "create", name, "--type", kind, "--data", data)
        roles = ("--user", "ALICE", "--operator", "ALICE", "--server", "PS1")
        created = called("netware", "queue", "create", "PRINTQ", "--type", "print", "--path", "SYS:SYSTEM",
                         *roles, "--data", data, "--json")  # fmt: skip
        alice, ps1 = RawNcp(LOOPBACK, port).login("ALICE"), RawNcp(LOOPBACK, port).login("PS1", PRINT_SERVER)
        queue = alice.call(53, named(PRINT_QUEUE, "PRINTQ"))[:4]
        assert queue.hex() == created.one["id"]
        for flags, starts in ((0, True), (RESTART, True), (0, True), (AUTO_START, False), (0, False)):
            job = alice.call(121, queue + new_job(flags=flags))
            write = b"\0" + six_bytes(job[62:66]) + be32(0) + be16(4) + b"data"
            assert alice.exchange(alice.packet(0x2222, write, function=WRITE))[6:] == b"\0\0"
            if starts:
                alice.call(127, queue + job[38:42])
        ps1.call(111, queue)
        for number in (1, 2):
            assert ps1.call(124, queue + b"\xff\xff")[38:42] == le32(number)
        server.kill()
        server.wait(PATIENCE_S)
    with in_thread(NetwareOptions(data, (LOOPBACK, 0))) as again:
        with RawNcp(*again.listen).login("ALICE") as alice:
            assert alice.call(129, queue + le32(1)) == le32(3, 3, 2, 3, 4), "1 was in service, 5 was open"
            for number, flags in ((2, RESTART), (3, 0), (4, AUTO_START)):
                entry = alice.call(122, queue + le32(number))
                assert (entry[46:48], entry[74:78]) == (bytes((flags, 0)), bytes(4))
        with RawNcp(*again.listen).login("PS1", PRINT_SERVER) as ps1:
            ps1.call(111, queue)
            job = ps1.call(124, queue + b"\xff\xff")
            read = ps1.packet(0x2222, b"\0" + six_bytes(job[62:66]) + be32(0) + be16(99), function=72)
            assert ps1.exchange(read)[8:] == be16(4) + b"data"


def test_stopping_by_a_signal(data: Path) -> None:
    with process(data, "--max-connections", "1", "--reading", "queue_id=little") as (server, port, log):
        client = RawNcp(LOOPBACK, port).login("SUPERVISOR")
        with RawNcp(LOOPBACK, port, attach=False) as late:
            assert late.exchange(b"\x11\x11\0\xff\0\xff\0")[6] == 0xF9
        path = b"\x0aSYS:SYSTEM"
        queue = client.call(100, be16(PRINT_QUEUE) + b"\1Q\0" + path)
        assert int.from_bytes(queue, "little") < 10
        server.send_signal(signal.SIGTERM)
        assert client.has_ended()
        client.close()
        assert server.wait(PATIENCE_S) == 0
    assert [json.loads(line)["event"] for line in log] == ["ready", "stops", "stopped"]


@pytest.mark.parametrize(
    "options",
    [
        ("--listen", "nowhere:x"),
        ("--max-jobs", "251"),
        ("--max-connections", "0"),
        ("--idle", "nan"),
        ("--reading", "queue_id"),
        ("--reading", "queue_id=middle"),
        ("--log", "loud"),
        ("--data",),
    ],
    ids=" ".join,
)
def test_wrong_options(data: Path, options: tuple[str, ...]) -> None:
    assert called("netware", "serve", "--data", data, *options).status == 2
    assert not data.exists()


def test_an_address_that_is_taken(data: Path) -> None:
    with closing(create_server((LOOPBACK, 0))) as taken:
        run = called("netware", "serve", "--data", data, "--listen", f"{LOOPBACK}:{taken.getsockname()[1]}")
    assert "can't listen" in run.error(69)["error"]


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    run = called("netware", "serve", "--data", tmp_path / "file", "--listen", f"{LOOPBACK}:0")
    run.error(74)


def test_after_a_disk_that_refused_clients_begin_anew(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with in_thread(NetwareOptions(data, (LOOPBACK, 0))) as server:
        first, idle = (RawNcp(*server.listen).login("SUPERVISOR") for _ in range(2))
        create = b"\0\x31" + named(1, "ALICE")
        with monkeypatch.context() as patch:
            patch.setattr(SqliteStore, "commit", refuse)
            first.call(50, create, code=0xD0)
        first.call(53, named(1, "SUPERVISOR"), code=0xFC)  # nobody is logged in any more
        assert first.has_ended()
        assert idle.has_ended()
        first.close()
        idle.close()
        with RawNcp(*server.listen).login("SUPERVISOR") as again:
            again.call(53, named(1, "ALICE"), code=0xFC)
            again.call(50, create)
            again.call(53, named(1, "ALICE"))


def refuse(*_: object) -> None:
    raise StoreRefused("no space left on the device", file="the store")
