"""``msmqwire peek | receive | move``: the messages of a queue of a folder, or of another computer."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Final

import typer

from msmqwire.cli import remote_reading
from msmqwire.cli.common import dumps
from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.messages import show
from msmqwire.cli.remote_reading import Auth, IsRemote, MapperPort, PasswordFile, Remote, RpcPort, User
from msmqwire.qm.runtime.local import Local, attach
from msmqwire.qm.runtime.operations import BATCH_MAX
from msmqwire.rpc.endpoint_mapper import ENDPOINT_MAPPER_PORT

_BATCH: Final = 100
_SLICE_MS: Final = 60_000

Data = Annotated[Path | None, typer.Option(help="Folder of the queue manager.")]
Name = Annotated[
    str,
    typer.Argument(
        metavar="QUEUE",
        help=r"private$\orders, with ;name for a subqueue, ;journal for its journal; see --remote.",
    ),
]
Timeout = Annotated[
    float, typer.Option(min=0, metavar="SECONDS", help="How long to wait for a message; 0 does not wait.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a message.")]


def _folder(data: Path | None) -> Path:
    if data is None:
        raise typer.BadParameter("a folder, or --remote for a queue of another computer", param_hint="--data")
    return data


class _Deadline:
    """A deadline for several requests; each waits for a part of the time, so that it can be interrupted."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def wait_ms(self) -> int:
        """Return how many milliseconds the next request may wait."""
        remaining = int((self._until - time.monotonic()) * 1000)
        return max(0, min(remaining, _SLICE_MS))


def _receive(local: Local, queue: str, count: int, timeout: float, as_json: bool) -> None:
    """Print messages and confirm those printed, even if interrupted: the others return to the queue."""
    printed: list[int] = []
    remaining, deadline = count, _Deadline(timeout)
    try:
        while remaining:
            wait = deadline.wait_ms()
            batch = min(remaining, _BATCH)
            done, printed = printed, []  # the request confirms them, even if it is interrupted
            messages = local.call("receive", queue=queue, count=batch, wait_ms=wait, done=done)["messages"]
            for message in messages:
                receipt = message["receipt"]
                show(message, as_json)
                printed.append(receipt)
                remaining -= 1
            if not messages and not deadline.wait_ms():
                break
            if messages:
                deadline = _Deadline(timeout)
    finally:
        if printed:
            local.call("end", done=printed)


def receive(
    queue: Name,
    data: Data = None,
    count: Annotated[int, typer.Option(min=1, help="How many messages at most.")] = 1,
    timeout: Timeout = 0,
    is_remote: IsRemote = False,
    rpc_port: RpcPort = None,
    endpoint_mapper: MapperPort = ENDPOINT_MAPPER_PORT,
    user: User = None,
    password_file: PasswordFile = None,
    auth: Auth = None,
    as_json: AsJson = False,
) -> None:
    """Take messages out of a queue and print them; nothing is printed when none comes in time."""
    if is_remote:
        remote = Remote(rpc_port, endpoint_mapper, user, password_file, auth)
        remote_reading.receive(queue, remote, count, timeout, as_json)
        return
    folder = _folder(data)

    def run() -> None:
        with attach(folder) as local:
            _receive(local, queue, count, timeout, as_json)

    run_reporting_errors(run)


def peek(
    queue: Name,
    data: Data = None,
    count: Annotated[int, typer.Option(min=1, help="How many messages at most.")] = 1,
    timeout: Timeout = 0,
    is_remote: IsRemote = False,
    rpc_port: RpcPort = None,
    endpoint_mapper: MapperPort = ENDPOINT_MAPPER_PORT,
    user: User = None,
    password_file: PasswordFile = None,
    auth: Auth = None,
    as_json: AsJson = False,
) -> None:
    """Print messages of a queue and leave them there."""
    if is_remote:
        remote = Remote(rpc_port, endpoint_mapper, user, password_file, auth)
        remote_reading.peek(queue, remote, count, timeout, as_json)
        return
    folder = _folder(data)

    def run() -> None:
        remaining, after, deadline = count, None, _Deadline(timeout)
        with attach(folder) as local:
            while remaining:
                wait = 0 if after is not None else deadline.wait_ms()
                batch = min(remaining, _BATCH)
                messages = local.call("peek", queue=queue, count=batch, wait_ms=wait, after=after)["messages"]
                for message in messages:
                    show(message, as_json)
                remaining -= len(messages)
                if messages:
                    after = messages[-1]["lookup_identifier"]
                elif after is not None or not deadline.wait_ms():
                    break

    run_reporting_errors(run)


def move(
    queue: Name,
    to: Annotated[
        str, typer.Argument(metavar="TO", help=r"A subqueue of the same queue: private$\orders;poison.")
    ],
    data: Data = None,
    count: Annotated[int, typer.Option(min=1, max=BATCH_MAX, help="How many messages at most.")] = 1,
    identifier: Annotated[
        str | None, typer.Option(metavar=r"GUID\NUMBER", help="Only the message with this identifier.")
    ] = None,
    is_remote: IsRemote = False,
    rpc_port: RpcPort = None,
    endpoint_mapper: MapperPort = ENDPOINT_MAPPER_PORT,
    user: User = None,
    password_file: PasswordFile = None,
    auth: Auth = None,
    as_json: AsJson = False,
) -> None:
    """Move messages between a queue and its subqueues, which are made if they are missing."""
    if is_remote:
        remote = Remote(rpc_port, endpoint_mapper, user, password_file, auth)
        remote_reading.move(queue, to, remote, count, identifier, as_json)
        return
    folder = _folder(data)

    def run() -> None:
        with attach(folder) as local:
            moved = local.call("move", queue=queue, to=to, count=count, identifier=identifier)["moved"]
            for moved_id in moved:
                text_only = sys.stdout.isatty() and not as_json
                print(moved_id if text_only else dumps({"identifier": moved_id, "to": to}))

    run_reporting_errors(run)
