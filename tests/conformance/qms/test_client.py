"""What the chapter asks of clients and queue servers, by the requests that a hand-made server gets."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta, timezone

import pytest

from msmqwire.errors import InvalidValue, NcpRefused
from msmqwire.ncp.print_record import PRINT_RECORD
from msmqwire.netware import connect
from msmqwire.netware.client import FileServer, Queue
from tests.support.netware.netware_peer import RESTART, NetwarePeer
from tests.support.sending import run

QUEUE = bytes.fromhex("015d0300")
CREATE, READ, CHANGE, SERVICE, START, REMOVE = ((23, number) for number in (121, 122, 123, 124, 127, 128))
WRITE_FILE, READ_FILE = (73,), (72,)


@asynccontextmanager
async def connected(
    peer: NetwarePeer, name: str = "ALICE", type_: str = "user"
) -> AsyncIterator[tuple[FileServer, Queue]]:
    async with peer.listening() as address, connect(address, name=name, type=type_) as server:
        yield server, await server.queue("LASER")


def as_client(scenario: Callable[[FileServer, Queue], Awaitable[None]], name: str = "ALICE") -> NetwarePeer:
    """Run a scenario as a client of a server; return the server."""
    peer = NetwarePeer()
    kind = "print-server" if name == "PS1" else "user"

    async def work() -> None:
        async with connected(peer, name, kind) as (server, queue):
            await scenario(server, queue)

    run(work())
    return peer


def served(
    scenario: Callable[[FileServer, Queue], Awaitable[None]], *bodies: bytes, flags: int = 0
) -> NetwarePeer:
    """Run a scenario as a queue server, with jobs of these bodies waiting; return the server."""
    peer = NetwarePeer()

    async def work() -> None:
        async with peer.listening() as address:
            async with connect(address, name="ALICE") as server:
                for body in bodies:
                    await (await server.queue("LASER")).submit(body, restart=flags == RESTART, job_type=7)
            peer.requests.clear()
            async with connect(address, name="PS1", type="print-server") as server:
                await scenario(server, await server.queue("LASER"))

    run(work())
    return peer


@pytest.mark.requirement("QMS-jobfields-19", "QMS-manage-01", "QMS-jobstruct-01", "QMS-createqs-03")
@pytest.mark.requirement(*(f"QMS-jobfields-{number:02}" for number in (5, 6, 9, 11, 17, 18)))
def test_the_application_fills_its_fields_and_qms_the_others() -> None:
    seen = {}

    async def scenario(server: FileServer, queue: Queue) -> None:
        target = (await server.object_named("PS1", "print-server")).id
        job = await queue.submit(
            b"body",
            description="Report",
            job_type=0x0102,
            hold=True,
            auto_start=True,
            restart=True,
            target_server_id=target,
            at=datetime(2030, 1, 1, 1, 0, tzinfo=timezone(timedelta(hours=2))),
            queue_record=b"record",
        )
        seen.update((await queue.job(job.number)).to_json())

    (created,) = as_client(scenario).sent(*CREATE)
    assert created[:4] == QUEUE
    entry = bytearray(created[4:])
    filled = {
        22: bytes.fromhex("0a0b0c03"),
        26: bytes((29, 12, 31, 23, 0, 0)),
        32: b"\xff" * 6,
        42: b"\x01\x02",
        46: b"\x58\x00",
        78: b"Report",
        128: b"record",
    }
    for offset, value in filled.items():
        assert entry[offset : offset + len(value)] == value, offset
        entry[offset : offset + len(value)] = bytes(len(value))
    assert not any(entry), "nothing else is filled in by the client"
    assert seen["client_id"] == "0A0B0C01"
    assert seen["job_entry_time"] == "2026-11-23T08:30:15"
    assert (seen["job_position"], seen["job_file_name"]) == (1, "Q$0300.001")
    assert bytes.fromhex(seen["queue_record"]) == b"record".ljust(152, b"\0")


@pytest.mark.requirement("QMS-jobfields-30")
def test_a_default_job_fits_any_server_and_starts_at_once() -> None:
    """It has no type, no target server and no time."""

    async def scenario(server: FileServer, queue: Queue) -> None:
        await queue.submit(b"body")

    (created,) = as_client(scenario).sent(*CREATE)
    assert created[4 + 22 : 4 + 38] == b"\xff" * 16
    assert created[4 + 42 : 4 + 44] == b"\0\0"


@pytest.mark.requirement("QMS-jobfields-29")
@pytest.mark.parametrize("job_type", [-1, 0xFFFF])
def test_no_job_has_the_type_that_stands_for_any(job_type: int) -> None:
    async def scenario(server: FileServer, queue: Queue) -> None:
        with pytest.raises(InvalidValue, match="job_type"):
            await queue.submit(b"body", job_type=job_type)
        await queue.submit(b"body", job_type=0)
        kept = await queue.submit(b"body", job_type=0xFFFE)
        with pytest.raises(InvalidValue, match="job_type"):
            await queue.change(kept.number, job_type=job_type)

    created = as_client(scenario).sent(*CREATE)
    assert [entry[4 + 42 : 4 + 44] for entry in created] == [b"\0\0", b"\xff\xfe"]


@pytest.mark.requirement("QMS-submit-02", "QMS-submit-05", "QMS-jobfields-34")
def test_a_job_is_created_written_by_its_handle_and_started() -> None:
    body = bytes(range(256)) * 300

    async def scenario(server: FileServer, queue: Queue) -> None:
        async with queue.new_job() as job:
            await job.write(body[:60_000])
            await job.write(body[60_000:])
            assert repr(job) == f"<OpenJob {job.number}, 76,800 bytes>"
            assert (await queue.job(job.number)).current_state.value == "open"
        assert (await queue.job(job.number)).current_state.value == "ready"

    peer = as_client(scenario)
    steps = [call for call in peer.calls() if call in (CREATE, WRITE_FILE, START)]
    assert steps == [CREATE, WRITE_FILE, WRITE_FILE, WRITE_FILE, START]
    handle = struct.pack("<H", 0x1001 + 1) + struct.pack("<I", 0x1001)
    assert {data[1:7] for data in peer.sent(*WRITE_FILE)} == {handle}
    sizes = [int.from_bytes(data[11:13], "big") for data in peer.sent(*WRITE_FILE)]
    assert sizes == [32_768, 60_000 - 32_768, len(body) - 60_000]
    assert peer.queues[0x015D0300].jobs[0].data == body


@pytest.mark.requirement("QMS-jobfields-27")
def test_a_job_is_named_by_the_number_that_the_server_gave() -> None:
    """The four bytes come back as they are, whatever the number in them."""

    async def scenario(server: FileServer, queue: Queue) -> None:
        job = await queue.submit(b"body")
        assert [number async for number in _numbers(queue)] == [job.number]
        await queue.hold(job.number)
        await queue.remove(job.number)

    peer = as_client(scenario)
    token = b"\0\1\0\0"
    for call in (START, READ, REMOVE):
        assert peer.sent(*call)
        assert {data[4:8] for data in peer.sent(*call)} == {token}
    assert {data[4 + 38 : 4 + 42] for data in peer.sent(*CHANGE)} == {token}


async def _numbers(queue: Queue) -> AsyncIterator[int]:
    async for entry in queue.jobs():
        yield entry.job_number


@pytest.mark.requirement("QMS-submit-10")
@pytest.mark.parametrize("auto_start", [False, True])
def test_a_job_is_removed_after_an_error(auto_start: bool) -> None:
    async def scenario(server: FileServer, queue: Queue) -> None:
        def parts() -> Iterator[bytes]:
            yield b"half of it"
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await queue.submit(parts(), auto_start=auto_start)

    peer = as_client(scenario)
    assert peer.queues[0x015D0300].jobs == []
    assert peer.sent(*START) == []


@pytest.mark.requirement("QMS-qobject-03")
def test_equal_names_on_two_servers_are_two_queues() -> None:
    one, other = NetwarePeer(), NetwarePeer()

    async def work() -> None:
        async with connected(one) as (_, here), connected(other) as (_, there):
            assert (here.name, here.id) == (there.name, there.id)
            await here.submit(b"here")
            assert await there.numbers() == []

    run(work())
    assert [len(peer.queues[0x015D0300].jobs) for peer in (one, other)] == [1, 0]


@pytest.mark.requirement("QMS-using-01", "QMS-service-01", "QMS-qservers-04", "QMS-service-15")
def test_a_queue_server_finds_its_queue_attaches_and_detaches() -> None:
    async def scenario(server: FileServer, queue: Queue) -> None:
        assert [found.name for found in await server.queues()] == ["LASER", "MATRIX", "COMPILE"]
        await queue.attach()
        assert [server_id for server_id, _ in (await queue.status()).servers] == [0x0A0B0C03]

    peer = as_client(scenario, "PS1")
    assert peer.requests[0][:2] == b"\x11\x11"
    assert peer.calls()[0] == (23, 20)
    assert peer.sent(23, 20) == [b"\0\7\3PS1\0"]
    assert peer.calls()[-2:] == [(23, 112), (25,)]
    assert peer.requests[-1][:2] == b"\x55\x55"
    assert peer.queues[0x015D0300].servers == {}


@pytest.mark.requirement("QMS-service-04", "QMS-service-09")
def test_a_queue_server_takes_reads_and_finishes_jobs() -> None:
    bodies = [bytes(range(256)) * 33, b""]
    got: list[bytes] = []

    async def scenario(server: FileServer, queue: Queue) -> None:
        await queue.attach()
        for _ in bodies:
            assert not (await queue.status()).status
            for number in await queue.numbers():
                assert (await queue.job(number)).current_state.value == "ready"
            async with queue.service(7) as job:
                got.append(await job.read())
        with pytest.raises(NcpRefused) as caught:
            async with queue.service(7):
                pass
        assert caught.value.name == "ERR_NO_Q_JOB"

    peer = served(scenario, *bodies)
    assert got == bodies
    steps = iter(peer.calls())
    chapter = [(23, 125), (23, 129), (23, 122), (23, 124), (23, 135), (72,), (23, 131)]
    for step in [(23, 111), *chapter, *(call for call in chapter if call != READ_FILE)]:
        assert step in steps, step  # each after the one before
    assert peer.queues[0x015D0300].jobs == []


@pytest.mark.requirement("QMS-service-10", "QMS-service-11")
@pytest.mark.parametrize("fails", [False, True])
def test_client_rights_are_taken_before_and_restored_after(fails: bool) -> None:
    async def scenario(server: FileServer, queue: Queue) -> None:
        try:
            async with queue.service() as job, job.client_rights():
                assert repr(job) == f"<ServicedJob {job.number}, 4 bytes>"
                await job.read()
                if fails:
                    raise KeyError
        except KeyError:
            assert fails

    peer = served(scenario, b"body", flags=RESTART)
    end = (23, 132) if fails else (23, 131)
    calls = peer.calls()
    assert calls[calls.index((23, 133)) :] == [(23, 133), (72,), (23, 117), end, (23, 112), (25,)]
    assert len(peer.queues[0x015D0300].jobs) == fails


@pytest.mark.requirement("QMS-submit-03", "QMS-monitor-15")
def test_print_job_records_are_built_and_read_by_their_schema() -> None:
    form = {"Version": 1, "TabSize": 8, "Copies": 2, "FormName": "LETTER", "BannerUser": "ALICE"}
    record = PRINT_RECORD.build(form)
    assert record[:4] == bytes([1, 8, 0, 2])

    async def scenario(server: FileServer, queue: Queue) -> None:
        job = await queue.submit(b"", queue_record=record)
        assert job.entry.queue_record == b"", "the reply to a creation has none"
        read = PRINT_RECORD.parse((await queue.job(job.number)).queue_record)
        assert {name: read[name] for name in form} == form

    as_client(scenario)


@pytest.mark.requirement("QMS-monitor-15")
def test_queue_record_is_returned_as_it_was_given() -> None:
    record = bytes(reversed(range(152)))

    async def scenario(server: FileServer, queue: Queue) -> None:
        job = await queue.submit(b"", queue_record=record)
        assert (await queue.job(job.number)).queue_record == record
        assert (await queue.change(job.number, description="other")).queue_record == record

    as_client(scenario)
