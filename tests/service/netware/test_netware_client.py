"""The client of NetWare queues against a hand-made server, one that behaves and one that does not."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

import msmqwire.netware
from msmqwire.errors import (
    InvalidValue,
    MalformedPacket,
    MsmqError,
    NcpLoginRefused,
    NcpRefused,
    Unreachable,
)
from msmqwire.ncp.constants import QueueStatus
from msmqwire.netware.client import FileServer, Queue, file_server, servicing
from msmqwire.netware.client.connection import open_connection
from tests.support.netware.netware_peer import HALTED, NetwarePeer
from tests.support.patience import happens
from tests.support.sending import run

LASER, MATRIX = 0x015D0300, 0x025D0300
CREATE, WRITE, START, REMOVE = (23, 121), (73,), (23, 127), (23, 128)
SERVICE, SIZE, FINISH, ABORT = (23, 124), (23, 135), (23, 131), (23, 132)
READ = (72,)


@asynccontextmanager
async def logged_in(
    peer: NetwarePeer, name: str = "ALICE", *, timeout: float = 20.0
) -> AsyncIterator[tuple[FileServer, Queue]]:
    type_ = "print-server" if name == "PS1" else "user"
    async with (
        peer.listening() as address,
        msmqwire.netware.connect(address, name=name, type=type_, timeout=timeout) as server,
    ):
        yield server, await server.queue("laser")


def clients(
    scenario: Callable[[FileServer, Queue], Awaitable[None]],
    peer: NetwarePeer,
    name: str = "ALICE",
    *,
    timeout: float = 20.0,
) -> None:
    async def work() -> None:
        async with logged_in(peer, name, timeout=timeout) as (server, queue):
            await scenario(server, queue)

    run(work())


async def refused(work: Awaitable[Any]) -> int:
    """The completion code of a refusal."""
    with pytest.raises(NcpRefused) as caught:
        await work
    return caught.value.code


# -- queues and jobs ------------------------------------------------------------------------------------


def test_an_operator_controls_a_queue() -> None:
    async def scenario(server: FileServer, queue: Queue) -> None:
        first, second = [(await queue.submit(text)).number for text in (b"1", b"2")]
        await queue.set_position(second, 1)
        assert await queue.numbers() == [second, first]
        assert (await queue.job(second)).job_position == 1
        assert await queue.file_size(second) == 1
        matrix = await server.queue("MATRIX")
        moved = await queue.move(first, matrix)
        assert await matrix.numbers() == [moved]
        await queue.set_status(QueueStatus.QS_CANT_ADD_JOBS | QueueStatus.QS_CANT_SERVICE_JOBS)
        report = await queue.status()
        assert (report.jobs, report.to_json()["queue_status"]) == (
            1,
            ["QS_CANT_ADD_JOBS", "QS_CANT_SERVICE_JOBS"],
        )
        with pytest.raises(InvalidValue):
            await queue.set_position(second, 0)

    peer = NetwarePeer()
    clients(scenario, peer, "OPERATOR")
    assert [len(queue.jobs) for queue in peer.queues.values()] == [1, 1, 0]


def test_holds_of_owners_and_operators() -> None:
    peer = NetwarePeer()
    numbers: list[int] = []

    async def owner(server: FileServer, queue: Queue) -> None:
        if not numbers:
            numbers.append((await queue.submit(b"", restart=True)).number)
        held = await queue.hold(numbers[0])
        assert held.flags[:2] == ["NWCF_SERVICE_RESTART", "NWCF_USER_HOLD"]
        assert held.current_state.value == "held"

    async def operator(server: FileServer, queue: Queue) -> None:
        assert (await queue.hold(numbers[0])).flags[1:] == ["NWCF_USER_HOLD", "NWCF_OPERATOR_HOLD"]
        assert (await queue.release(numbers[0], by_operator=False)).flags[1:] == ["NWCF_OPERATOR_HOLD"]
        changed = await queue.change(numbers[0], description="new", restart=False, hold=True, at=None)
        assert (changed.description, changed.flags) == ("new", ["NWCF_USER_HOLD", "NWCF_OPERATOR_HOLD"])
        with pytest.raises(InvalidValue, match="job_number"):
            await queue.change(numbers[0], job_number=7)

    async def owner_again(server: FileServer, queue: Queue) -> None:
        assert (await queue.release(numbers[0])).flags == ["NWCF_OPERATOR_HOLD"]
        assert (await queue.release(numbers[0], by_operator=True)).flags == ["NWCF_OPERATOR_HOLD"]

    clients(owner, peer)
    clients(operator, peer, "OPERATOR")
    clients(owner_again, peer)


def test_a_list_of_more_jobs_than_a_reply_holds() -> None:
    peer = NetwarePeer()

    async def scenario(server: FileServer, queue: Queue) -> None:
        await queue.submit(b"")
        (job,) = peer.queues[LASER].jobs
        peer.queues[LASER].jobs = [
            type(job)(job.entry[:38] + struct.pack("<I", number) + job.entry[42:]) for number in range(1, 301)
        ]
        peer.requests.clear()
        assert await queue.numbers() == list(range(1, 301))
        starts = [struct.unpack("<I", data[4:])[0] for data in peer.sent(23, 129)]
        assert starts == [1, 126, 251]

    clients(scenario, peer)


def test_jobs_that_leave_while_they_are_listed() -> None:
    peer = NetwarePeer()

    async def scenario(server: FileServer, queue: Queue) -> None:
        kept, gone = [(await queue.submit(b"")).number for _ in range(2)]
        listed = struct.pack("<IIII", 2, 2, kept, gone)
        peer.answers[(23, 129)] = listed
        await queue.remove(gone)
        assert [entry.job_number async for entry in queue.jobs()] == [kept]

    clients(scenario, peer)


def test_calls_made_together_go_one_after_the_other() -> None:
    peer = NetwarePeer()
    peer.busy = 2

    async def scenario(server: FileServer, queue: Queue) -> None:
        jobs = await asyncio.gather(*(queue.submit(bytes([number]) * 70_000) for number in range(5)))
        assert [bytes(job.data) for job in peer.queues[LASER].jobs] == [
            bytes([number]) * 70_000 for number in range(5)
        ]
        assert sorted(job.number for job in jobs) == await queue.numbers()

    clients(scenario, peer)
    sequence = [packet[2] for packet in peer.requests]
    assert sequence == [number & 0xFF for number in range(len(sequence))]


def test_a_server_with_other_byte_orders() -> None:
    peer = NetwarePeer()

    async def work() -> None:
        readings = {"job_number": "high-low"}
        async with (
            peer.listening() as address,
            msmqwire.netware.connect(address, name="ALICE", readings=readings) as server,
        ):
            queue = await server.queue("LASER")
            assert (await queue.submit(b"")).number == 1
            assert await queue.numbers() == [1]
            assert (await queue.hold(1)).job_number == 1

    run(work())
    assert {data[4:8] for data in (*peer.sent(*START), *peer.sent(23, 122))} == {b"\0\1\0\0"}
    with pytest.raises(InvalidValue, match="job_numbers"):
        msmqwire.netware.connect("h", name="ALICE", readings={"job_numbers": "big"})


def test_without_await() -> None:
    peer = NetwarePeer()
    with peer.in_thread() as address:
        with msmqwire.netware.connect(address, name="OPERATOR") as server:
            assert server.own.id == server.object_named("operator").id == 0x0A0B0C02
            assert server.object_of_id(0x0A0B0C03).name == "PS1"
            laser, matrix, compiling = server.queues()
            assert (repr(compiling), laser.id) == ("<Queue COMPILE job 035D0300>", LASER)
            with laser.new_job(description="one") as opened:
                opened.write(b"first")
                assert opened.size == 5
            second = laser.submit(b"second", restart=True).number
            assert [entry.description for entry in laser.jobs()] == ["one", ""]
            laser.hold(second)
            assert laser.release(second).current_state.value == "ready"
            laser.set_position(second, 1)
            moved = laser.move(opened.number, matrix)
            assert (matrix.numbers(), matrix.file_size(moved)) == ([moved], 5)
            with pytest.raises(NcpRefused), laser.service():
                pytest.fail("an operator is not a queue server")
            connection = msmqwire.netware.connect(address, name="PS1", type="print-server")
        with pytest.raises(InvalidValue, match="it was left"):
            laser.numbers()
        with connection as server:
            queue = server.queue("LASER")
            with suppress(KeyError), queue.service() as job:
                assert b"".join(job.blocks()) == job.read() == b"second"
                raise KeyError
            with queue.service() as job, job.client_rights():
                assert (job.number, job.size, job.entry.job_number) == (second, 6, second)
            assert queue.status().jobs == 0
        with pytest.raises(InvalidValue, match="entered before"), connection:
            pytest.fail("it was left")
        with pytest.raises(NcpLoginRefused), msmqwire.netware.connect(address, name="BOB"):
            pytest.fail("it was refused")
    assert peer.calls().count(ABORT) == 1
    assert peer.calls().count((23, 112)) == 1


def test_what_is_not_there() -> None:
    async def scenario(server: FileServer, queue: Queue) -> None:
        assert await refused(server.queue("NOPE")) == 0xFC
        assert await refused(server.queue("LASER", "job")) == 0xFC
        assert await refused(server.object_of_id(5)) == 0xFC
        assert await refused(queue.job(77)) == 0xD5
        assert await refused(queue.remove(77)) == 0xD5
        assert await refused(queue.set_position(77, 1)) == 0xD5

    clients(scenario, NetwarePeer())


def test_a_login_that_is_refused_gives_the_connection_back() -> None:
    peer = NetwarePeer()

    async def work(name: str) -> None:
        async with peer.listening() as address, msmqwire.netware.connect(address, name=name):
            pytest.fail("it was not refused")

    with pytest.raises(NcpLoginRefused, match="refuses the login: NO_SUCH_OBJECT"):
        run(work("BOB"))
    assert peer.requests[-1][:2] == b"\x55\x55"
    peer.answers[(0x1111,)] = 0xF9
    with pytest.raises(NcpLoginRefused, match="NO_FREE_CONNECTION_SLOTS"):
        run(work("ALICE"))


# -- service --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("restart", [False, True])
def test_an_exception_aborts_the_service(restart: bool) -> None:
    peer = NetwarePeer()

    async def scenario(server: FileServer, queue: Queue) -> None:
        with pytest.raises(KeyError):
            async with queue.service():
                raise KeyError
        assert len(await queue.numbers()) == restart

    clients(lambda server, queue: queue.submit(b"", restart=restart), peer)
    clients(scenario, peer, "PS1")
    assert (FINISH in peer.calls(), ABORT in peer.calls()) == (False, True)


def test_waiting_for_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servicing, "_POLL_S", 0.01)
    peer = NetwarePeer()

    async def scenario(server: FileServer, queue: Queue) -> None:
        assert await refused(queue.service(7, wait=0.02).__aenter__()) == 0xD5

        async def submit() -> None:
            async with msmqwire.netware.connect(peer.address, name="ALICE") as other:
                await (await other.queue("LASER")).submit(b"late", job_type=7)

        task = asyncio.create_task(submit())
        async with queue.service(7, wait=60) as job:
            assert await job.read() == b"late"
        await task
        peer.queues[LASER].status = 4
        assert await refused(queue.service(wait=60).__aenter__()) == HALTED

    clients(scenario, peer, "PS1")


def test_a_connection_is_kept_alive_while_a_job_is_processed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servicing, "_KEEP_ALIVE_S", 0.005)
    peer = NetwarePeer()
    peer.answers[(23, 125)] = 0xD3  # no rights are needed for it

    async def scenario(server: FileServer, queue: Queue) -> None:
        async with queue.service() as job:
            await happens(lambda: peer.calls().count((23, 125)) >= 3, "three calls keep it alive")
            assert not job.lost.done()
        count = peer.calls().count((23, 125))
        await asyncio.sleep(0.02)  # in which four calls were due
        assert peer.calls().count((23, 125)) == count

    clients(lambda server, queue: queue.submit(b""), peer)
    clients(scenario, peer, "PS1")


def test_the_status_of_a_queue_server() -> None:
    async def scenario(server: FileServer, queue: Queue) -> None:
        assert await refused(queue.set_server_status(b"x")) == 0xD9
        await queue.attach()
        await queue.attach()
        await queue.set_server_status(b"ready")
        ((server_id, station),) = (await queue.status()).servers
        assert await queue.server_status(server_id, station) == b"ready".ljust(64, b"\0")
        with pytest.raises(InvalidValue):
            await queue.set_server_status(bytes(65))
        await queue.detach()
        await queue.detach()
        assert (await queue.status()).servers == ()

    clients(scenario, NetwarePeer(), "PS1")


# -- what is cancelled ----------------------------------------------------------------------------------


async def cancelled_at(peer: NetwarePeer, call: tuple[int, ...], work: Awaitable[Any]) -> None:
    """Cancel work while the server takes its time to answer a call, and let it answer then."""
    gate = peer.gates[call] = asyncio.Event()
    task = asyncio.ensure_future(work)
    await happens(lambda: call in peer.calls(), f"the call {call}")
    task.cancel()
    await asyncio.sleep(0)
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    del peer.gates[call]


@pytest.mark.parametrize("call", [CREATE, WRITE, START], ids=["create", "write", "start"])
def test_nothing_stays_of_a_submission_that_is_cancelled(call: tuple[int, ...]) -> None:
    peer = NetwarePeer()

    async def scenario(server: FileServer, queue: Queue) -> None:
        await cancelled_at(peer, call, queue.submit(b"body", auto_start=True))
        assert await queue.numbers() == []

    clients(scenario, peer)


@pytest.mark.parametrize("call", [SERVICE, SIZE], ids=["service", "size"])
def test_a_job_taken_for_a_cancelled_call_is_aborted(call: tuple[int, ...]) -> None:
    peer = NetwarePeer()

    async def scenario(server: FileServer, queue: Queue) -> None:
        await cancelled_at(peer, call, queue.service().__aenter__())
        (number,) = await queue.numbers()
        assert not (await queue.job(number)).in_service

    clients(lambda server, queue: queue.submit(b"", restart=True), peer)
    clients(scenario, peer, "PS1")


# -- servers that fail ----------------------------------------------------------------------------------


def test_a_submission_that_is_refused_halfway_is_removed() -> None:
    peer = NetwarePeer()

    async def scenario(server: FileServer, queue: Queue) -> None:
        for call in (WRITE, START):
            peer.answers[call] = 0x01
            assert await refused(queue.submit(b"body")) == 0x01
            del peer.answers[call]
            assert await queue.numbers() == []

    clients(scenario, peer)


def test_a_server_that_gives_less_at_once_than_was_asked_for() -> None:
    """At an odd offset the data of a reply begin after a byte of padding."""
    peer, body = NetwarePeer(), bytes(range(100))

    def read(data: bytes) -> bytes:
        offset = int.from_bytes(data[7:11], "big")
        part = body[offset : offset + 7]
        return struct.pack(">H", len(part)) + b"\xee" * (offset & 1) + part

    peer.answers[READ] = read

    async def scenario(server: FileServer, queue: Queue) -> None:
        async with queue.service() as job:
            assert await job.read() == body

    clients(lambda server, queue: queue.submit(body), peer)
    clients(scenario, peer, "PS1")


@pytest.mark.parametrize("told", [0xFFFFFFFF, 5])
def test_a_file_that_is_shorter_than_its_size(told: int) -> None:
    async def serviced(queue: Queue) -> None:
        async with queue.service() as job:
            assert [block async for block in job.blocks()] == [b"body"]

    peer = NetwarePeer()
    peer.answers[SIZE] = lambda data: data + struct.pack(">I", told)

    async def scenario(server: FileServer, queue: Queue) -> None:
        with pytest.raises(MalformedPacket, match="ends at byte 4"):
            await serviced(queue)
        with pytest.raises(InvalidValue if told > 5 else MalformedPacket):
            async with queue.service() as job:
                await job.read()

    clients(lambda server, queue: queue.submit(b"body", restart=True), peer)
    clients(scenario, peer, "PS1")
    assert peer.calls().count(ABORT) == 2


@pytest.mark.parametrize(
    "answer",
    [struct.pack(">H", 5) + b"body", struct.pack(">H", 0xFFFF) + bytes(0xFFFF), b"\0"],
    ids=["cut", "more than asked for", "nothing"],
)
def test_data_that_are_not_what_was_asked_for(answer: bytes) -> None:
    peer = NetwarePeer()
    peer.answers[READ] = answer

    async def scenario(server: FileServer, queue: Queue) -> None:
        with pytest.raises(MalformedPacket):
            async with queue.service() as job:
                await job.read()

    clients(lambda server, queue: queue.submit(b"12345", restart=True), peer)
    clients(scenario, peer, "PS1")


def test_lists_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = NetwarePeer()
    peer.answers[(23, 129)] = struct.pack("<II", 0xFFFFFFFF, 125) + bytes(500)

    async def scenario(server: FileServer, queue: Queue) -> None:
        with pytest.raises(MalformedPacket, match="more than 8,190 jobs"):
            await queue.numbers()
        peer.answers[(23, 129)] = struct.pack("<II", 0xFFFFFFFF, 0)
        assert await queue.numbers() == []
        count = iter(range(1, 10_000))

        def one_more(data: bytes) -> bytes:
            return struct.pack(">IH48sBBB", next(count), 3, b"Q", 0, 0x30, 0xFF)

        peer.answers[(23, 55)] = one_more
        monkeypatch.setattr(file_server, "OBJECTS_MAX", 50)
        with pytest.raises(MalformedPacket, match="without end"):
            await server.queues()
        peer.answers[(23, 55)] = one_more(b"")
        with pytest.raises(MalformedPacket, match="without end"):
            await server.queues()

    clients(scenario, peer)


@pytest.mark.parametrize("call", [CREATE, (23, 122), (23, 125), (23, 53)], ids=str)
def test_replies_of_every_wrong_length(call: tuple[int, ...]) -> None:
    """A reply that is cut raises MalformedPacket, and what came before it stays as it was."""
    peer = NetwarePeer()

    async def scenario(server: FileServer, queue: Queue) -> None:
        job = await queue.submit(b"")
        whole: dict[tuple[int, ...], Callable[[], Awaitable[Any]]] = {
            CREATE: lambda: queue.submit(b""),
            (23, 122): lambda: queue.job(job.number),
            (23, 125): queue.status,
            (23, 53): lambda: server.queue("LASER"),
        }
        peer.spoil = lambda unit: struct.pack(">4sI", b"tNcP", len(unit) - 1) + unit[8:-1]
        with pytest.raises(MalformedPacket):
            await whole[call]()
        with pytest.raises(MalformedPacket):  # the connection has ended
            await queue.numbers()

    clients(scenario, peer)


def test_a_silent_server() -> None:
    peer = NetwarePeer()

    async def scenario(server: FileServer, queue: Queue) -> None:
        peer.spoil = lambda unit: None
        with pytest.raises(Unreachable, match="does not answer"):
            await queue.submit(b"body")

    clients(scenario, peer, timeout=0.4)
    peer = NetwarePeer()
    peer.spoil = lambda unit: None
    with pytest.raises(Unreachable, match="does not answer"):
        clients(scenario, peer, timeout=0.4)


def test_a_server_that_is_busy_for_ever() -> None:
    peer = NetwarePeer()

    async def work() -> None:
        async with peer.listening() as address:
            host, _, port = address.rpartition(":")
            connection = await open_connection(host, int(port), answer_s=20, whole_answer_s=0.1)
            peer.busy = 1 << 30
            with pytest.raises(Unreachable, match="does not answer"):
                await connection.call("ReadQueueCurrentStatus", QueueID=LASER)

    run(work())


@pytest.mark.parametrize(
    "unit",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"tNcP\x7f\xff\xff\xff",
        b"tNcP\x00\x00\x00\x09\x33",
        struct.pack(">4sIHBBBBBB", b"tNcP", 16, 0x3333, 9, 1, 1, 0, 0, 0),
        b"\0" * 100_000,
    ],
    ids=["http", "giant", "short", "sequence", "nulls"],
)
def test_a_server_that_does_not_speak_ncp(unit: bytes) -> None:
    peer = NetwarePeer()
    peer.spoil = lambda _: unit

    async def work() -> None:
        async with peer.listening() as address:
            with pytest.raises(MalformedPacket):
                await msmqwire.netware.connect(address, name="ALICE").__aenter__()

    run(work())


def test_a_server_that_is_gone() -> None:
    peer = NetwarePeer()

    async def work() -> None:
        async with peer.listening() as address:
            connection = msmqwire.netware.connect(address, name="ALICE")
            server = await connection.__aenter__()
            with pytest.raises(InvalidValue, match="entered before"):
                await connection.__aenter__()
        with pytest.raises(Unreachable, match="closed the connection"):
            await server.queue("LASER")
        await connection.__aexit__(None, None, None)
        with pytest.raises(Unreachable, match="can't be reached"):
            await msmqwire.netware.connect(address, name="ALICE").__aenter__()

    run(work())


def test_spoilt_bytes_raise_our_errors_only() -> None:
    """Each byte of every reply of a session is another one, once."""

    async def session(peer: NetwarePeer) -> None:
        async with logged_in(peer, "PS1", timeout=5) as (_, queue):
            async with queue.service() as job:
                await job.read()
            await queue.status()

    async def work() -> None:
        whole: list[int] = []
        for at in range(0, 900, 29):
            peer = NetwarePeer()
            async with logged_in(peer) as (_, queue):
                await queue.submit(b"body", restart=True)
            sent = 0

            def spoil(unit: bytes, at: int = at) -> bytes:
                nonlocal sent
                start, sent = sent, sent + len(unit)
                if not start <= at < sent or at - start in (4, 5, 6, 7):  # a length would be waited for
                    return unit
                data = bytearray(unit)
                data[at - start] ^= 0x81
                return bytes(data)

            peer.spoil = spoil
            with suppress(MsmqError):
                await session(peer)
            whole.append(sent)
        assert max(whole) > 600

    run(work())
