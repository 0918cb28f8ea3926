"""The client of NetWare queues and the server, together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

import msmqwire.netware
from msmqwire.errors import NcpLoginRefused, NcpRefused
from msmqwire.ncp.constants import ObjectType, QueueStatus
from msmqwire.netware.client import FileServer, Queue
from tests.support.netware.netware_running import InMemory, in_memory
from tests.support.netware.netware_station import MemoryServer
from tests.support.running import Run, called
from tests.support.sending import run

BODY = bytes(range(256)) * 40


@pytest.fixture
def running() -> Iterator[InMemory]:
    """A server with two print queues; Alice and Bob may use them, Olga operates them, PS1 serves them."""
    server = MemoryServer()
    users = [server.add(name) for name in ("ALICE", "BOB")]
    operator, printer = server.add("OLGA"), server.add("PS1", ObjectType.NWOT_PRINT_SERVER)
    for name in ("LASER", "MATRIX"):
        queue = server.queue(name)
        server.admit(queue, "Q_USERS", *users)
        server.admit(queue, "Q_OPERATORS", operator)
        server.admit(queue, "Q_SERVERS", printer)
    server.add("EVE")
    with in_memory(server) as running:
        yield running


def scenario(
    running: InMemory, name: str, work: Callable[[FileServer, Queue], Awaitable[None]], queue: str = "LASER"
) -> None:
    """Run a scenario as a client."""
    type_ = "print-server" if name == "PS1" else "user"
    address = f"{running.address}:{running.port}"

    async def logged_in() -> None:
        async with msmqwire.netware.connect(address, name=name, type=type_) as server:
            await work(server, await server.queue(queue))

    run(logged_in())


async def code(work: Awaitable[object]) -> str:
    """The name of the code by which a call is refused."""
    with pytest.raises(NcpRefused) as caught:
        await work
    return caught.value.name


def test_a_job_from_its_user_to_its_queue_server(running: InMemory) -> None:
    numbers: list[int] = []

    async def user(server: FileServer, queue: Queue) -> None:
        job = await queue.submit(
            BODY, description="caf\xe9", job_type=7, restart=True, queue_record=bytes(range(152))
        )
        numbers.append(job.number)
        assert (job.entry.job_position, job.entry.job_file_name) == (1, f"Q${queue.id & 0xFFFF:04X}.001")
        entry = await queue.job(job.number)
        assert (entry.description, entry.job_type, entry.queue_record) == ("caf\xe9", 7, bytes(range(152)))
        assert entry.current_state.value == "ready"
        assert entry.client_id == server.own.id
        assert entry.entry_time == running.server.now
        assert await queue.file_size(job.number) == len(BODY)
        assert (await queue.status()).jobs == 1

    async def printer(server: FileServer, queue: Queue) -> None:
        assert await code(queue.service(6).__aenter__()) == "ERR_NO_Q_JOB"
        with suppress(KeyError):
            async with queue.service(7) as job:
                assert (job.number, job.size) == (numbers[0], len(BODY))
                assert (await queue.job(job.number)).current_state.value == "in service"
                async with job.client_rights():
                    assert await job.read() == BODY
                raise KeyError
        assert (await queue.job(numbers[0])).current_state.value == "ready"
        async with queue.service() as job:
            assert b"".join([block async for block in job.blocks()]) == BODY
        assert await queue.numbers() == []

    scenario(running, "ALICE", user)
    scenario(running, "PS1", printer)
    assert running.server.files == {}


def test_holds_changes_positions_moves_and_removal(running: InMemory) -> None:
    async def owner(server: FileServer, queue: Queue) -> None:
        first, second = [(await queue.submit(text)).number for text in (b"1", b"22")]
        assert (await queue.hold(first)).flags == ["NWCF_USER_HOLD"]
        assert (await queue.release(first)).flags == []
        late = running.server.now + timedelta(days=1)
        changed = await queue.change(first, description="new", at=late, job_type=9, restart=True)
        assert (changed.description, changed.execution_time, changed.job_type) == ("new", late, 9)
        assert await code(queue.set_position(second, 1)) == "ERR_NO_Q_JOB_RIGHTS"

    async def operator(server: FileServer, queue: Queue) -> None:
        first, second = await queue.numbers()
        await queue.set_position(second, 1)
        assert [entry.job_number async for entry in queue.jobs()] == [second, first]
        assert (await queue.hold(first)).flags == ["NWCF_SERVICE_RESTART", "NWCF_OPERATOR_HOLD"]
        matrix = await server.queue("matrix")
        moved = await queue.move(second, matrix)
        assert await matrix.file_size(moved) == 2
        assert await queue.numbers() == [first]
        await matrix.remove(moved)
        await queue.set_status(QueueStatus.QS_CANT_ADD_JOBS)

    async def other_user(server: FileServer, queue: Queue) -> None:
        (number,) = await queue.numbers()
        assert await code(queue.hold(number)) == "ERR_NO_Q_JOB_RIGHTS"
        assert await code(queue.remove(number)) == "ERR_NO_Q_JOB_RIGHTS"
        assert (await queue.status()).status == QueueStatus.QS_CANT_ADD_JOBS
        assert await code(queue.submit(b"")) == "ERR_Q_HALTED"
        assert await code(queue.attach()) == "ERR_NO_Q_RIGHTS"

    async def nobody(server: FileServer, queue: Queue) -> None:
        assert [found.name for found in await server.queues()] == ["LASER", "MATRIX"]
        assert await code(queue.status()) == "ERR_NO_Q_RIGHTS"
        assert await code(queue.numbers()) == "ERR_NO_Q_RIGHTS"

    for name, work in (("ALICE", owner), ("OLGA", operator), ("BOB", other_user), ("EVE", nobody)):
        scenario(running, name, work)


def test_queue_servers_are_seen_and_go(running: InMemory) -> None:
    async def printer(server: FileServer, queue: Queue) -> None:
        await queue.attach()
        await queue.set_server_status(b"ready")

        async def user(_: FileServer, other: Queue) -> None:
            ((server_id, station),) = (await other.status()).servers
            assert server_id == server.own.id
            assert await other.server_status(server_id, station) == b"ready".ljust(64, b"\0")

        await asyncio.to_thread(scenario, running, "ALICE", user)

    async def nobody_is_attached(server: FileServer, queue: Queue) -> None:
        assert (await queue.status()).servers == ()

    scenario(running, "PS1", printer)
    scenario(running, "ALICE", nobody_is_attached)


def test_who_is_not_let_in(running: InMemory) -> None:
    for name in ("MALLORY", "PS1\0", "A" * 60):
        with pytest.raises(NcpLoginRefused):
            scenario(running, name, None)  # type: ignore[arg-type]


def commands(running: InMemory, *arguments: str, by: str = "ALICE", data: bytes = b"") -> Run:
    address = f"{running.address}:{running.port}"
    return called("netware", *arguments, "--connect", address, "--as", by, "--json", data=data)


def test_the_commands(running: InMemory, tmp_path: Path) -> None:
    submitted = commands(running, "submit", "LASER", "--body-file", "-", "--description", "Report",
                         "--job-type", "7", data=BODY).one  # fmt: skip
    number = str(submitted["job"])
    assert commands(running, "jobs", "LASER").one["job_description"] == "Report"
    assert commands(running, "show", "LASER", number).one["state"] == "ready"
    assert commands(running, "hold", "LASER", number).one["state"] == "held"
    assert commands(running, "release", "LASER", number).one["state"] == "ready"
    assert commands(running, "position", "LASER", number, "5", by="OLGA").one["job_position"] == 1
    moved = commands(running, "move", "LASER", number, "MATRIX", by="OLGA").one
    out = tmp_path / "out"
    serviced = commands(
        running, "service", "MATRIX", "--command", f"cat > {out}", "--job-type", "7", by="PS1:print-server"
    )
    assert serviced.one == {"job": moved["job"], "queue": "MATRIX", "bytes": len(BODY), "status": 0,
                            "finished": True}  # fmt: skip
    assert out.read_bytes() == BODY
    again = str(commands(running, "submit", "LASER", "--body-file", "-").one["job"])
    assert commands(running, "remove", "LASER", again, by="BOB").error(69)["name"] == "ERR_NO_Q_JOB_RIGHTS"
    assert commands(running, "remove", "LASER", again).one["job"] == int(again)
    assert [queue["jobs"] for queue in commands(running, "queues").lines] == [0, 0]
