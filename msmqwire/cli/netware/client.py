"""``msmqwire netware queues | jobs | show | submit | hold | release | position | move | remove``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, BinaryIO, Final, cast

from click import BadParameter

from msmqwire.cli.common import NoInput, standard_input
from msmqwire.cli.errors import run_reporting_errors, usage
from msmqwire.cli.netware.output import print_one, print_rows
from msmqwire.cli.netware.session import (
    As,
    Connect,
    JobNumber,
    PasswordFile,
    QueueName,
    Reading,
    bytes_of,
    named,
    on_server,
    queue_of,
    time_of,
)
from msmqwire.cli.options import Argument, Option
from msmqwire.cli.passwords import STANDARD_INPUT
from msmqwire.cli.wanted_output import AsJson, AsTable, wants_table
from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import ANY_SERVER, CompletionCode
from msmqwire.ncp.type_names import QUEUE_TYPES, type_number, type_word
from msmqwire.netware.client import FileServer, JobEntry, Queue
from msmqwire.netware.client.files import BLOCK_SIZE, FILE_SIZE_MAX
from msmqwire.netware.client.job import id_text

_IN_MEMORY: Final = 1 << 20
"""Bytes of standard input that are kept in memory; more go to a temporary file."""
_QUEUE_COLUMNS: Final = {
    "queue": "queue",
    "type": "type",
    "id": "id",
    "jobs": "jobs",
    "stopped": "queue_status",
}
_JOB_COLUMNS: Final = {
    "place": "job_position",
    "job": "job",
    "state": "state",
    "type": "job_type",
    "owner": "client_name",
    "entered": "job_entry_time",
    "description": "job_description",
}
ByOperator = Annotated[
    bool | None,
    Option(
        "--operator/--user",
        help="The hold to set or release; by default the user's for a job of the user, else the operator's. "
        "A job is serviced when it has neither.",
    ),
]


def queues(
    connect: Connect,
    identity: As,
    type_: Annotated[
        list[str] | None,
        Option("--type", metavar="TYPE", help=f"Only those: {', '.join(QUEUE_TYPES)}; may be repeated."),
    ] = None,
    password_file: PasswordFile = None,
    reading: Reading = None,
    as_json: AsJson = False,
    as_table: AsTable = False,
) -> None:
    """List the queues of a file server, with the status of those that the user may use."""
    with usage("--type"):
        for one in type_ or ():
            type_number(one, QUEUE_TYPES)

    async def work(server: FileServer) -> list[dict[str, Any]]:
        found = await server.queues(type_ or tuple(QUEUE_TYPES))
        return [await _queue_json(queue) for queue in found]

    print_rows(
        on_server(connect, identity, password_file, reading, work),
        _QUEUE_COLUMNS,
        wants_table(as_json, as_table),
    )


async def _queue_json(queue: Queue) -> dict[str, Any]:
    report: dict[str, Any] = {"queue_status": None, "jobs": None, "servers": None}
    try:
        report = (await queue.status()).to_json()
    except NcpRefused as exc:
        if exc.code != CompletionCode.ERR_NO_Q_RIGHTS:
            raise
    type_ = type_word(queue.type, QUEUE_TYPES)
    return {"queue": queue.name, "type": type_, "id": id_text(queue.id), **report}


class _Names:
    """The names of the owners of jobs, each asked for once."""

    def __init__(self, server: FileServer) -> None:
        self._server = server
        self._known: dict[int, str | None] = {}

    async def job_json(self, entry: JobEntry) -> dict[str, Any]:
        """Return a job as commands print it."""
        owner = entry.client_id
        if owner not in self._known:
            self._known[owner] = await self._name(owner)
        return {**entry.to_json(), "client_name": self._known[owner]}

    async def _name(self, owner: int) -> str | None:
        try:
            return (await self._server.object_of_id(owner)).name
        except NcpRefused:  # it was deleted, or the server does not tell
            return None


def jobs(
    queue: QueueName,
    connect: Connect,
    identity: As,
    password_file: PasswordFile = None,
    reading: Reading = None,
    as_json: AsJson = False,
    as_table: AsTable = False,
) -> None:
    """List the jobs of a queue in their order."""

    async def work(server: FileServer) -> list[dict[str, Any]]:
        names, opened = _Names(server), await queue_of(server, queue)
        return [await names.job_json(entry) async for entry in opened.jobs()]

    print_rows(
        on_server(connect, identity, password_file, reading, work),
        _JOB_COLUMNS,
        wants_table(as_json, as_table),
    )


def show(
    queue: QueueName,
    connect: Connect,
    identity: As,
    job: Annotated[
        int | None, Argument(metavar="[JOB]", min=0, max=0xFFFFFFFF, help="A job's number.")
    ] = None,
    password_file: PasswordFile = None,
    reading: Reading = None,
    as_json: AsJson = False,
    as_table: AsTable = False,
) -> None:
    """Show a queue, or a job of it."""

    async def work(server: FileServer) -> dict[str, Any]:
        opened = await queue_of(server, queue)
        if job is None:
            return await _queue_json(opened)
        return await _Names(server).job_json(await opened.job(job))

    print_one(on_server(connect, identity, password_file, reading, work), wants_table(as_json, as_table))


def submit(
    queue: QueueName,
    connect: Connect,
    identity: As,
    body_file: Annotated[
        str, Option("--body-file", metavar="FILE", help="The data of the job; - for standard input.")
    ],
    description: Annotated[str, Option(help="A text for people, at most 49 characters.")] = "",
    job_type: Annotated[int, Option(help="Type by which queue servers ask for jobs, 0 to 65534.")] = 0,
    hold: Annotated[bool, Option("--hold", help="Do not service the job until it is released.")] = False,
    target_server: Annotated[
        str | None,
        Option(metavar="NAME[:TYPE]", help="The only queue server that may service it; print-server."),
    ] = None,
    at: Annotated[
        str | None,
        Option(
            metavar="TIME",
            help="Earliest time of its service, 2026-11-23T08:30:00 by the clock of the file server; with a "
            "zone it "
            "is converted to UTC, which msmqwire netware serve has. By default at the first opportunity.",
        ),
    ] = None,
    auto_start: Annotated[
        bool,
        Option(
            "--auto-start",
            help="Start the job, instead of removing it, if the connection breaks before.",
        ),
    ] = False,
    restart: Annotated[
        bool,
        Option("--restart", help="Keep the job in the queue, instead of removing it, if its service fails."),
    ] = False,
    queue_record: Annotated[str, Option(metavar="HEX", help="Bytes for the queue server, at most 152.")] = "",
    password_file: PasswordFile = None,
    reading: Reading = None,
    as_json: AsJson = False,
    as_table: AsTable = False,
) -> None:
    """Submit a job. Its number is printed once it is started; after an error nothing of the job stays."""

    async def work(server: FileServer, body: BinaryIO) -> dict[str, Any]:
        opened = await queue_of(server, queue)
        target = ANY_SERVER
        if target_server is not None:
            target = (await server.object_named(*named(target_server, "print-server"))).id
        job = await opened.submit(
            _blocks(body, body_file),
            description=description,
            job_type=job_type,
            hold=hold,
            auto_start=auto_start,
            restart=restart,
            target_server_id=target,
            at=time_of(at),
            queue_record=bytes_of(queue_record, "queue-record"),
        )
        entry = job.entry
        return {
            "job": job.number,
            "queue": opened.name,
            "job_position": entry.job_position,
            "job_file_name": entry.job_file_name,
            "bytes": job.size,
        }

    if body_file == password_file == STANDARD_INPUT:
        raise BadParameter("standard input has the body", param_hint="--password-file")
    with ExitStack() as stack:
        bodies: list[BinaryIO] = []
        run_reporting_errors(lambda: bodies.append(_open(body_file, stack)))
        result = on_server(connect, identity, password_file, reading, lambda server: work(server, bodies[0]))
    print_one(result, wants_table(as_json, as_table))


def _open(name: str, stack: ExitStack) -> BinaryIO:
    """Open a body. Standard input is read to its end before there is a job: it may take its time."""
    try:
        if name != "-":
            return stack.enter_context(Path(name).open("rb"))
        spooled: SpooledTemporaryFile[bytes] = stack.enter_context(
            SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - the stack closes it
        )
        given = standard_input()
        while spooled.tell() <= FILE_SIZE_MAX and (block := given.read(_IN_MEMORY)):
            spooled.write(block)
        spooled.seek(0)
        return cast(BinaryIO, spooled)
    except OSError as exc:
        raise NoInput(f"{name}: {exc.strerror or exc}") from None


def _blocks(body: BinaryIO, name: str) -> Iterator[bytes]:
    """Return the contents of a file in parts. Raises NoInput."""
    try:
        while block := body.read(BLOCK_SIZE):
            yield block
    except OSError as exc:
        raise NoInput(f"{name}: {exc.strerror or exc}") from None


def hold(
    queue: QueueName,
    job: JobNumber,
    connect: Connect,
    identity: As,
    by_operator: ByOperator = None,
    password_file: PasswordFile = None,
    reading: Reading = None,
    as_json: AsJson = False,
    as_table: AsTable = False,
) -> None:
    """Hold a job: it advances in the queue, but is not serviced; for its owner and operators."""

    async def work(server: FileServer) -> dict[str, Any]:
        opened = await queue_of(server, queue)
        return _held_json(opened, await opened.hold(job, by_operator=by_operator))

    print_one(on_server(connect, identity, password_file, reading, work), wants_table(as_json, as_table))


def release(
    queue: QueueName,
    job: JobNumber,
    connect: Connect,
    identity: As,
    by_operator: ByOperator = None,
    password_file: PasswordFile = None,
    reading: Reading = None,
    as_json: AsJson = False,
    as_table: AsTable = False,
) -> None:
    """Release a job that was held; for its owner and operators."""

    async def work(server: FileServer) -> dict[str, Any]:
        opened = await queue_of(server, queue)
        return _held_json(opened, await opened.release(job, by_operator=by_operator))

    print_one(on_server(connect, identity, password_file, reading, work), wants_table(as_json, as_table))


def _held_json(queue: Queue, entry: JobEntry) -> dict[str, Any]:
    return {
        "job": entry.job_number,
        "queue": queue.name,
        "state": entry.current_state.value,
        "job_control_flags": entry.flags,
    }


def position(
    queue: QueueName,
    job: JobNumber,
    place: Annotated[
        int, Argument(metavar="N", min=1, max=0xFFFFFFFF, help="1 is the head; beyond the end is last.")
    ],
    connect: Connect,
    identity: As,
    password_file: PasswordFile = None,
    reading: Reading = None,
    as_json: AsJson = False,
    as_table: AsTable = False,
) -> None:
    """Give a job another place in its queue; for operators."""

    async def work(server: FileServer) -> dict[str, Any]:
        opened = await queue_of(server, queue)
        await opened.set_position(job, place)
        entry = await opened.job(job)
        return {"job": job, "queue": opened.name, "job_position": entry.job_position}

    print_one(on_server(connect, identity, password_file, reading, work), wants_table(as_json, as_table))


def move(
    queue: QueueName,
    job: JobNumber,
    destination: Annotated[str, Argument(metavar="DESTINATION", help="Another queue, NAME[:TYPE].")],
    connect: Connect,
    identity: As,
    password_file: PasswordFile = None,
    reading: Reading = None,
    as_json: AsJson = False,
    as_table: AsTable = False,
) -> None:
    """Move a job to another queue, where it has another number; for operators of both."""

    async def work(server: FileServer) -> dict[str, Any]:
        source, to = await queue_of(server, queue), await queue_of(server, destination)
        number = await source.move(job, to)
        return {"job": number, "queue": to.name, "from_job": job, "from_queue": source.name}

    print_one(on_server(connect, identity, password_file, reading, work), wants_table(as_json, as_table))


def remove(
    queue: QueueName,
    job: JobNumber,
    connect: Connect,
    identity: As,
    password_file: PasswordFile = None,
    reading: Reading = None,
    as_json: AsJson = False,
    as_table: AsTable = False,
) -> None:
    """Remove a job; for its owner and operators. If a queue server has it, its service is aborted."""

    async def work(server: FileServer) -> dict[str, Any]:
        opened = await queue_of(server, queue)
        await opened.remove(job)
        return {"job": job, "queue": opened.name}

    print_one(on_server(connect, identity, password_file, reading, work), wants_table(as_json, as_table))
