"""``msmqwire peek | receive | move``: the messages of a queue of a folder, or of another computer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

from click import BadParameter

from msmqwire.cli import remote_reading
from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.messages import show
from msmqwire.cli.options import Argument, Option
from msmqwire.cli.remote_reading import Auth, IsRemote, MapperPort, PasswordFile, Remote, RpcPort, User
from msmqwire.errors import ChangeWaits, EndUnknown, Unreachable
from msmqwire.json_text import dumps
from msmqwire.names.printable import counted
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.waiting import WaitingLocal
from msmqwire.rpc.constants import ENDPOINT_MAPPER_PORT
from msmqwire.service.control.client import GONE
from msmqwire.service.control.server import BATCH_MAX

_BATCH: Final = 100

Data = Annotated[Path | None, Option(help="Folder of the queue manager.")]
Name = Annotated[
    str,
    Argument(
        metavar="QUEUE",
        help=r"private$\orders, with ;name for a subqueue, ;journal for its journal; see --remote.",
    ),
]
Timeout = Annotated[
    float, Option(min=0, metavar="SECONDS", help="Time to wait for a message; 0 does not wait.")
]
AsJson = Annotated[bool, Option("--json", help="One JSON object a message.")]
Decode = Annotated[
    bool, Option("--decode", help="Decode the body, too: format, value, headers; docs/bodies.md.")
]


def _folder(data: Path | None) -> Path:
    if data is None:
        raise BadParameter("a folder, or --remote for a queue of another computer", param_hint="--data")
    return data


@contextmanager
def _waiting(folder: Path) -> Iterator[WaitingLocal]:
    """Attach to a folder; say on a terminal when its server is waited for."""

    def waits(seconds: float) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            print(f"the server of {folder} has gone: waiting up to {seconds:.0f} s for it", file=sys.stderr)

    with WaitingLocal(folder, waits) as local:
        yield local


def _receive(
    local: WaitingLocal, queue: str, count: int, timeout: float, as_json: bool, *, decode: bool
) -> None:
    """Print messages and confirm those printed, even if interrupted: messages not printed return to the
    queue.

    They are confirmed before any wait, so that their end is known if the server goes meanwhile.
    """
    printed: dict[int, str] = {}
    remaining = count
    try:
        while remaining:
            batch, messages = min(remaining, _BATCH), []
            if printed:
                done, printed = printed, {}  # the request confirms them, even if it is interrupted
                messages = _ending(local, "receive", done, queue=queue, count=batch)["messages"]
            if not messages:
                messages = local.wait("receive", timeout, queue=queue, count=batch)
            if not messages:
                break
            for message in messages:
                receipt = message["receipt"]
                show(message, as_json, decode=decode)
                printed[receipt] = message["identifier"]
                remaining -= 1
    finally:
        if printed:
            _ending(local, "end", printed)


def _ending(local: WaitingLocal, op: str, printed: dict[int, str], **request: Any) -> dict[str, Any]:
    """Make a request that deletes messages which were printed. Raises EndUnknown if the server has gone,
    or its disk is full.
    """
    try:
        return local.call(op, done=list(printed), **request)
    except Unreachable as exc:
        why = exc if isinstance(exc, ChangeWaits) else GONE
        which = f"{counted(len(printed), 'message')} printed may be back in the queue"
        raise EndUnknown(f"{why}; {which}: {', '.join(printed.values())}") from None


def receive(
    queue: Name,
    data: Data = None,
    count: Annotated[int, Option(min=1, help="Largest number of messages.")] = 1,
    timeout: Timeout = 0,
    is_remote: IsRemote = False,
    rpc_port: RpcPort = None,
    endpoint_mapper: MapperPort = ENDPOINT_MAPPER_PORT,
    user: User = None,
    password_file: PasswordFile = None,
    auth: Auth = None,
    decode: Decode = False,
    as_json: AsJson = False,
) -> None:
    """Take messages out of a queue and print them; nothing is printed if none arrives in time."""
    if is_remote:
        remote = Remote(rpc_port, endpoint_mapper, user, password_file, auth)
        remote_reading.receive(queue, remote, count, timeout, as_json, decode=decode)
        return
    folder = _folder(data)

    def run() -> None:
        with _waiting(folder) as local:
            _receive(local, queue, count, timeout, as_json, decode=decode)

    run_reporting_errors(run)


def peek(
    queue: Name,
    data: Data = None,
    count: Annotated[int, Option(min=1, help="Largest number of messages.")] = 1,
    timeout: Timeout = 0,
    is_remote: IsRemote = False,
    rpc_port: RpcPort = None,
    endpoint_mapper: MapperPort = ENDPOINT_MAPPER_PORT,
    user: User = None,
    password_file: PasswordFile = None,
    auth: Auth = None,
    decode: Decode = False,
    as_json: AsJson = False,
) -> None:
    """Print messages of a queue and leave them there."""
    if is_remote:
        remote = Remote(rpc_port, endpoint_mapper, user, password_file, auth)
        remote_reading.peek(queue, remote, count, timeout, as_json, decode=decode)
        return
    folder = _folder(data)

    def run() -> None:
        with _waiting(folder) as local:
            messages = local.wait("peek", timeout, queue=queue, count=min(count, _BATCH))
            remaining = count
            while messages:
                for message in messages:
                    show(message, as_json, decode=decode)
                remaining -= len(messages)
                if not remaining:
                    break
                batch, after = min(remaining, _BATCH), messages[-1]["lookup_identifier"]
                messages = local.call("peek", queue=queue, count=batch, after=after)["messages"]

    run_reporting_errors(run)


def move(
    queue: Name,
    to: Annotated[str, Argument(metavar="TO", help=r"A subqueue of the same queue: private$\orders;poison.")],
    data: Data = None,
    count: Annotated[int, Option(min=1, max=BATCH_MAX, help="Largest number of messages.")] = 1,
    identifier: Annotated[
        str | None, Option(metavar=r"GUID\NUMBER", help="Only the message with this identifier.")
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
