"""``msmqwire receive | peek | purge | move --remote``: queues of other computers, by remote read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NamedTuple

from click import BadParameter

from msmqwire.cli.confirm import Yes, confirm
from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.messages import show
from msmqwire.cli.options import Argument, Option
from msmqwire.cli.passwords import password_of
from msmqwire.constants import HResult
from msmqwire.errors import InvalidValue, QueueError, ReadTimeout
from msmqwire.json_text import dumps
from msmqwire.names.meant import wanted_format_name
from msmqwire.names.printable import safe
from msmqwire.qm.client.queue import Queue
from msmqwire.qm.client.received_message import ReceivedMessage
from msmqwire.qm.client.remote_options import AUTH_LEVELS, RemoteOptions, credentials_of, readable
from msmqwire.qm.client.remote_reading import RemoteReading
from msmqwire.qm.client.sending import ReadOnlySending
from msmqwire.qm.client.synchronous_queue import SyncQueue
from msmqwire.rpc.constants import ENDPOINT_MAPPER_PORT
from msmqwire.service.loop_thread import SyncConnection

_PORT_MAX = 0xFFFF

IsRemote = Annotated[
    bool,
    Option("--remote", help=r"QUEUE is one of another computer: 'DIRECT=OS:host\private$\orders'."),
]
RpcPort = Annotated[
    int | None,
    Option(
        min=1,
        max=_PORT_MAX,
        metavar="PORT",
        help="With --remote: port of remote read; else the endpoint mapper is asked.",
    ),
]
MapperPort = Annotated[
    int, Option(min=1, max=_PORT_MAX, metavar="PORT", help="With --remote: port of the endpoint mapper.")
]
User = Annotated[str | None, Option(metavar=r"DOMAIN\NAME", help="With --remote: the user that reads.")]
PasswordFile = Annotated[
    Path | None,
    Option(help="With --remote: file with the password; a newline at its end is not part of it."),
]
Auth = Annotated[
    str | None,
    Option(
        metavar="|".join(AUTH_LEVELS),
        help="With --remote: protection of the calls, by default privacy with a user, none without.",
    ),
]


class Remote(NamedTuple):
    """The options of a command on a queue of another computer."""

    rpc_port: int | None = None
    mapper_port: int = ENDPOINT_MAPPER_PORT
    user: str | None = None
    password_file: Path | None = None
    auth: str | None = None

    def options(self, host: str) -> RemoteOptions:
        """Return them as the client takes them. Raises BadParameter, NoInput and InvalidValue."""
        password = None if self.password_file is None else password_of(self.password_file)
        try:
            credentials = credentials_of(self.user, password, self.auth)
        except InvalidValue as exc:
            option = {"password": "password-file"}.get(exc.path, exc.path)
            raise BadParameter(exc.why, param_hint=f"--{option}") from None
        return RemoteOptions(host, self.rpc_port, self.mapper_port, credentials)


@contextmanager
def _opened(name: str, remote: Remote) -> Iterator[SyncQueue]:
    """Open a queue of another computer, to be read."""
    direct = readable(wanted_format_name(name))
    if direct is None:
        code = HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION
        raise QueueError(f"{name}: neither DIRECT=OS: nor DIRECT=TCP:", code)
    host = "127.0.0.1" if direct.host == "." else direct.host
    reading = RemoteReading(direct, remote.options(host))
    connection = SyncConnection()

    async def open_queue() -> Queue:
        return Queue(ReadOnlySending(str(direct)), lambda: reading)

    queue = SyncQueue(connection, connection.start(open_queue()))
    try:
        yield queue
    finally:
        connection.stop(reading.close())


def receive(name: str, remote: Remote, count: int, timeout: float, as_json: bool, *, decode: bool) -> None:
    """Print messages, each before it is acknowledged: if that fails, it may be back in its queue."""

    def run() -> None:
        with _opened(name, remote) as queue:
            for _ in range(count):
                try:
                    with queue.receiving(timeout) as message:
                        show(message.to_json(), as_json, decode=decode)
                except ReadTimeout:
                    return

    run_reporting_errors(run)


def peek(name: str, remote: Remote, count: int, timeout: float, as_json: bool, *, decode: bool) -> None:
    """Print messages and leave them in their queue."""

    def run() -> None:
        with _opened(name, remote) as queue:
            try:
                if count == 1:
                    show(queue.peek(timeout).to_json(), as_json, decode=decode)
                    return
                with queue.cursor() as cursor:
                    show(cursor.peek(timeout).to_json(), as_json, decode=decode)
                    for _ in range(count - 1):
                        show(cursor.peek_next(0).to_json(), as_json, decode=decode)
            except ReadTimeout:
                return

    run_reporting_errors(run)


def move(name: str, to: str, remote: Remote, count: int, identifier: str | None, as_json: bool) -> None:
    """Move the first messages of a queue, or that with an identifier, to a subqueue or back."""

    def run() -> None:
        with _opened(name, remote) as queue:
            for _ in range(count if identifier is None else 1):
                message = _found(queue, identifier)
                if message is None:
                    return
                queue.move(message, to)
                text_only = sys.stdout.isatty() and not as_json
                moved = {"identifier": message.identifier, "to": to}
                print(message.identifier if text_only else dumps(moved), flush=True)

    run_reporting_errors(run)


def _found(queue: SyncQueue, identifier: str | None) -> ReceivedMessage | None:
    """Return the message that is to be moved next, None if there is none."""
    if identifier is None:
        try:
            return queue.peek(0)
        except ReadTimeout:
            return None
    with queue.cursor() as cursor:
        return next((message for message in cursor if message.identifier == identifier.lower()), None)


def purge(
    queue: Annotated[str, Argument(metavar="QUEUE", help=r"Its name: 'DIRECT=OS:host\private$\orders'.")],
    is_remote: IsRemote = False,
    rpc_port: RpcPort = None,
    endpoint_mapper: MapperPort = ENDPOINT_MAPPER_PORT,
    user: User = None,
    password_file: PasswordFile = None,
    auth: Auth = None,
    yes: Yes = False,
    as_json: Annotated[bool, Option("--json", help="One JSON object.")] = False,
) -> None:
    """Delete the messages of a queue of another computer; see queue purge for those of a folder."""
    if not is_remote:
        raise BadParameter("it is missing: queue purge is for the queues of a folder", param_hint="--remote")
    remote = Remote(rpc_port, endpoint_mapper, user, password_file, auth)

    def run() -> None:
        if not yes:  # there may be none: remote read has no call that counts them
            confirm(f"Delete all messages of {safe(queue)}", f"all messages of {queue} would be deleted")
        with _opened(queue, remote) as opened:
            opened.purge()
        text_only = sys.stdout.isatty() and not as_json
        print(f"{safe(queue)}: purged" if text_only else dumps({"queue": queue}))

    run_reporting_errors(run)
