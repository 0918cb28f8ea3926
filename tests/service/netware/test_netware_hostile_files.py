"""A client that fills the room for files: honest ones are served, and the administrator sees who it is."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.job import JobRequest
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.service import QueueService
from tests.service.netware.test_netware_administration import served
from tests.support.netware.netware_folder import NOON
from tests.support.netware.netware_running import RawNcp, in_memory
from tests.support.netware.netware_station import REQUEST, MemoryServer, be16, be32, new_job, six_bytes
from tests.support.own_addresses import own_loopback
from tests.support.patience import limit
from tests.support.running import called

ROOM, BLOCK = 1 << 20, 8_192
OK, FULL = 0, 1


def write(client: RawNcp, handle: bytes, offset: int, size: int = BLOCK) -> int:
    """Write zeros to a file; return the completion code."""
    data = b"\0" + handle + be32(offset) + be16(size) + bytes(size)
    return client.exchange(client.packet(REQUEST, data, function=73))[6]


@pytest.mark.usefixtures("computers")
def test_an_honest_client_beside_one_that_fills_the_disk() -> None:
    server = MemoryServer(settings=Settings(files_bytes_max=ROOM))
    members = [server.add(name) for name in ("MALLORY", "TRUDY", "ALICE")]
    queue = server.queue()
    server.admit(queue, "Q_USERS", *members)
    server.service.take()
    with in_memory(server) as running, running.connect(source=own_loopback(2)) as alice:
        alice.login("ALICE")
        own = six_bytes(alice.call(121, be32(queue) + new_job())[62:66])
        taken, waited = 0, 0.0
        for name in ("MALLORY", "TRUDY"):
            with running.connect(source=own_loopback(3)) as hostile:
                hostile.login(name)
                handle = six_bytes(hostile.call(121, be32(queue) + new_job(flags=0x08))[62:66])
                at = 0
                while write(hostile, handle, at) == OK:
                    at += BLOCK
                    taken += BLOCK
                assert [write(hostile, handle, at) for _ in range(3)] == [FULL] * 3
                began = time.monotonic()
                assert write(alice, own, 0) == OK
                waited = max(waited, time.monotonic() - began)
        assert taken == ROOM // 4, "both objects together, from one address"
        assert waited < limit(5)
        assert running.do(lambda: running.listener.traffic.refused_for_share) == 8
        at = BLOCK
        while write(alice, own, at) == OK:
            at += BLOCK
        assert at == ROOM // 4, "the honest client has as much"


def test_an_administrator_sees_whose_the_files_are(tmp_path: Path) -> None:
    data = tmp_path / "data"
    called("netware", "object", "create", "MALLORY", "--type", "user", "--data", data)
    called("netware", "queue", "create", "Q", "--type", "print", "--path", "SYS:", "--user", "MALLORY",
           "--data", data)  # fmt: skip
    shown = called("netware", "files", "--data", data, "--json").one
    assert shown == {
        "bytes": 0, "limit": 4 << 30, "share": 1 << 30, "known_bytes": 0, "objects": [], "addresses": [],
    }  # fmt: skip
    with served(data) as (driver, loop):

        def do(work: object) -> object:
            return asyncio.run_coroutine_threadsafe(work, loop).result(limit(60))  # type: ignore[arg-type]

        mallory = Caller(1, object_id=2, origin="10.0.0.1")

        def submitted(service: QueueService) -> object:
            (queue_id,) = service.queue_table
            job = service.jobs.create(mallory, queue_id, JobRequest(job_control_flags=0x08), NOON)
            return service.files.write(mallory, job.job_file_handle, 0, 700)

        access = do(driver.run(submitted))
        do(driver.write_file(access.file, 0, bytes(700)))  # type: ignore[attr-defined]
        shown = called("netware", "files", "--data", data, "--json").one
        assert shown["objects"] == [{"object": "MALLORY:user", "bytes": 700}]
        assert shown["addresses"] == [{"address": "10.0.0.1", "bytes": 700}]
    shown = called("netware", "files", "--data", data, "--json").one
    assert (shown["bytes"], shown["known_bytes"]) == (700, 0)
    assert (shown["objects"], shown["addresses"]) == ([{"object": "MALLORY:user", "bytes": 700}], [])
