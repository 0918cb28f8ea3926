"""``msmqwire netware service``: a queue server that gives its jobs to a command."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Annotated, Any, Final

from click.exceptions import Exit

from msmqwire.cli.netware.output import print_one
from msmqwire.cli.netware.session import (
    As,
    Connect,
    PasswordFile,
    QueueName,
    Reading,
    on_server,
    queue_of,
)
from msmqwire.cli.options import Option
from msmqwire.cli.wanted_output import AsJson, AsTable, wants_table
from msmqwire.errors import InvalidValue, NcpRefused
from msmqwire.names.printable import counted
from msmqwire.ncp.constants import ANY_JOB_TYPE, SERVER_STATUS_SIZE, CompletionCode
from msmqwire.netware.client import FileServer, Queue, ServicedJob

EX_COMMAND: Final = 1
"""The exit status after a command that failed."""
_STANDARD_ERROR: Final = 2
_SIGNALLED: Final = 128
_WAIT_MAX: Final = 1e9


class _CommandFailed(Exception):
    """The command has not ended with 0: the job is aborted."""


def command(
    queue: QueueName,
    connect: Connect,
    identity: As,
    program: Annotated[
        str,
        Option(
            "--command",
            metavar="CMD",
            help="Shell command to run for a job, with the job's data on standard input, its fields as "
            "QMS_JOB, QMS_JOB_DESCRIPTION and so on, and QMS_QUEUE. Its output goes to standard "
            "error.",
        ),
    ],
    job_type: Annotated[
        int, Option(min=0, max=ANY_JOB_TYPE, help="Only jobs of this type; 65535 for any.")
    ] = ANY_JOB_TYPE,
    wait: Annotated[
        float, Option(min=0, max=_WAIT_MAX, metavar="SECONDS", help="Time to wait for each job.")
    ] = 0,
    count: Annotated[int, Option(min=1, help="The most jobs to take.")] = 1,
    server_status: Annotated[
        str | None,
        Option(metavar="TEXT", help="Status of this server for users and operators, at most 64 bytes."),
    ] = None,
    password_file: PasswordFile = None,
    reading: Reading = None,
    as_json: AsJson = False,
    as_table: AsTable = False,
) -> None:
    """Service jobs as a queue server, the job at the head of the queue first.

    A job is finished, and removed, when CMD ends with 0; otherwise it is aborted, and stays only if it was
    submitted with --restart. After a CMD that fails no more jobs are taken, and the exit status is 1. Nothing
    is printed if no job comes in time.
    """
    table = wants_table(as_json, as_table)

    async def work(server: FileServer) -> bool:
        with suppress(NotImplementedError, RuntimeError, ValueError):  # not in the main thread, or no signals
            task = asyncio.current_task()
            assert task is not None
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        opened = await queue_of(server, queue)
        if server_status is not None:
            await opened.attach()
            await opened.set_server_status(_status_bytes(server_status))
        for _ in range(count):
            result = await _service(opened, job_type, wait, program)
            if result is None:
                return True
            print_one(result, table)
            if not result["finished"]:
                return False
        return True

    try:
        succeeded = on_server(connect, identity, password_file, reading, work)
    except asyncio.CancelledError:
        raise Exit(_SIGNALLED + signal.SIGTERM) from None
    if not succeeded:
        raise Exit(EX_COMMAND)


def _status_bytes(text: str) -> bytes:
    data = text.encode()
    if len(data) > SERVER_STATUS_SIZE:
        raise InvalidValue(
            f"{counted(len(data), 'byte')}, at most {SERVER_STATUS_SIZE:,}", path="server-status"
        )
    return data


async def _service(queue: Queue, job_type: int, wait: float, program: str) -> dict[str, Any] | None:
    """Take a job and give it to the command; return the output, None if no job came."""
    taken: ServicedJob | None = None
    status = 0
    try:
        async with queue.service(job_type, wait=wait) as taken:
            status = await _run(program, queue, taken)
            if status:
                raise _CommandFailed
    except _CommandFailed:
        pass
    except NcpRefused as exc:
        if taken is None and exc.code == CompletionCode.ERR_NO_Q_JOB:
            return None
        raise
    assert taken is not None, "it was serviced"
    return {
        "job": taken.number,
        "queue": queue.name,
        "bytes": taken.size,
        "status": status,
        "finished": not status,
    }


async def _run(program: str, queue: Queue, job: ServicedJob) -> int:
    """Run the command with the data of a job; return its exit status, 128 and the signal that ended it."""
    process = await asyncio.create_subprocess_shell(
        program, stdin=subprocess.PIPE, stdout=_STANDARD_ERROR, env=_environment(queue, job)
    )
    ending = asyncio.create_task(_ended(process, job))
    try:
        await asyncio.wait((ending, job.lost), return_when=asyncio.FIRST_COMPLETED)
        status = await (ending if ending.done() else job.lost)
        assert status is not None, "a loss is raised"
    except BaseException:
        ending.cancel()
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await asyncio.gather(ending, return_exceptions=True)
        raise
    return status if status >= 0 else _SIGNALLED - status


async def _ended(process: asyncio.subprocess.Process, job: ServicedJob) -> int:
    """Write the data of a job to a command, as far as that reads them; return its status as it ends."""
    stream = process.stdin
    assert stream is not None, "a pipe was asked for"
    with suppress(BrokenPipeError, ConnectionResetError):
        async for block in job.blocks():
            if stream.is_closing():
                break
            stream.write(block)
            await stream.drain()
        stream.close()
        await stream.wait_closed()
    return await process.wait()


def _environment(queue: Queue, job: ServicedJob) -> dict[str, str]:
    """Return the environment of a command: this one's, and the fields of the job that mean something.

    QMS_JOB_NUMBER is the former name of QMS_JOB.
    """
    shown = job.entry.to_json()
    fields = {"queue": queue.name, "file_size": job.size, **shown, "job_number": shown["job"]}
    encoding = sys.getfilesystemencoding()
    texts = {
        f"QMS_{name.upper()}": " ".join(value) if isinstance(value, list) else str(value)
        for name, value in fields.items()
        if value is not None
    }
    return os.environ | {
        name: text.encode(encoding, "replace").decode(encoding) for name, text in texts.items()
    }
