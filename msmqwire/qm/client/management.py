"""The queue manager of another computer, watched and administered by programs: [MS-MQMR]."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, Literal, TypeVar

from msmqwire.errors import AnswerTimeout, InvalidArgument, InvalidValue, Unreachable
from msmqwire.management.constants import Action
from msmqwire.management.reports import MachineReport, QueueReport, machine_report, queue_report
from msmqwire.names import FormatName
from msmqwire.names.printable import in_seconds
from msmqwire.qm.client.entering import EnteredOnce
from msmqwire.qm.client.managed_listing import PRIVATE_QUEUES, Listing, private_computer
from msmqwire.qm.client.managed_names import is_of_asked, managed_queue, of_computer
from msmqwire.qm.client.management_connection import ManagementConnection, open_management
from msmqwire.qm.client.remote_options import RemoteOptions, credentials_of
from msmqwire.rpc.constants import ENDPOINT_MAPPER_PORT
from msmqwire.service.loop_thread import SyncConnection

T = TypeVar("T")
_PORT_MAX: Final = 0xFFFF
TIMEOUT_MAX: Final = 86_400
"""The longest limit of a method, in seconds."""


class ManagedHost:
    """The queue manager of another computer, to which entering `msmqwire.manage` gives access.

    The first method connects; once the connection has ended, the next method opens a new one. Methods may run
    at a time. One that takes longer than the timeout raises AnswerTimeout and ends the connection; others
    under way raise Unreachable then.

    Methods raise Unreachable, RpcRefused, RpcFault and AuthenticationFailed; QueueError for the refusals of
    the queue manager, by its code; and ProtocolViolation, an Unreachable, for answers that are not ones.

    Attributes:
        host: the computer, as it was given.
    """

    def __init__(self, options: RemoteOptions, timeout: float, *, ndr64: bool = False) -> None:
        """Take the address of the computer with the caller, and the seconds for a whole method."""
        self.host = options.host
        self._options, self._timeout, self._ndr64 = options, timeout, ndr64
        self._connection: ManagementConnection | None = None
        self._connecting = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.host}>"

    async def machine(self) -> MachineReport:
        """Return the state of the queue manager: its queues by name, and whether it is online."""

        async def ask(connection: ManagementConnection) -> MachineReport:
            return machine_report(self.host, *await connection.machine_properties())

        return await self._within(ask)

    async def queue(self, name: str) -> QueueReport:
        r"""Return the state of a queue.

        Args:
            name: its path name (``private$\orders``, ``host\orders``; with ``;journal`` its journal), or its
                format name; ``;deadletter``, ``;deadxact`` and ``;journal`` are those of the computer. An
                outgoing queue is known by the format name that messages were sent to.

        Raises InvalidName; QueueError with MQ_ERROR_QUEUE_NOT_FOUND if there is none, and with
        MQ_ERROR_ACCESS_DENIED if the caller may not ask.
        """
        wanted = _name(name)

        async def ask(connection: ManagementConnection) -> QueueReport:
            return queue_report(name, *await connection.queue_properties(await self._of(connection, wanted)))

        return await self._within(ask)

    async def queues(self, names: Iterable[str] = (), *, most: int | None = None) -> list[QueueReport]:
        """Return the state of the private queues, the active queues, and the queues of `names`.

        A computer lists neither public queues that are idle nor journals: they are asked for by name. A queue
        that can't be asked is a row with its `reason`, as is one that has no answer in time, if others have.

        Args:
            names: as for `queue`.
            most: the number of queues to ask about, `names` first; rows of the others have a reason only.
                None for all.
        """
        return await self._listed(lambda listing: listing.all(most), names)

    async def outgoing(self) -> list[QueueReport]:
        """Return the state of the outgoing queues: those of messages on their way to other computers.

        An active queue that can't be asked is a row with its `reason`, as it may be one.
        """
        return await self._listed(Listing.outgoing, ())

    async def pause(self, name: str) -> None:
        """Put an outgoing queue on hold: its messages stay here until `resume`. `name` as for `queue`."""
        await self._act(Action.PAUSE, name)

    async def resume(self, name: str) -> None:
        """End the hold of an outgoing queue. `name` as for `queue`."""
        await self._act(Action.RESUME, name)

    async def resend(self, name: str) -> None:
        """Send the unacknowledged transactional messages of an outgoing queue again: EOD_RESEND."""
        await self._act(Action.EOD_RESEND, name)

    async def connect_network(self) -> None:
        """Bring the queue manager online: it exchanges messages with other computers again."""
        await self._act(Action.CONNECT)

    async def disconnect_network(self) -> None:
        """Take the queue manager offline: messages from and to other computers wait. It stays manageable."""
        await self._act(Action.DISCONNECT)

    async def tidy(self) -> None:
        """Have the files removed that hold no message any more, which is otherwise done every six hours."""
        await self._act(Action.TIDY)

    async def close(self) -> None:
        """End the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.end(Unreachable(f"{self.host}: the connection was left"))

    # -- the connection -----------------------------------------------------------------------------------

    async def _act(self, action: Action, name: str | None = None) -> None:
        wanted = None if name is None else _name(name)

        async def ask(connection: ManagementConnection) -> None:
            await connection.act(action, None if wanted is None else await self._of(connection, wanted))

        await self._within(ask)

    async def _listed(
        self, what: Callable[[Listing], Coroutine[Any, Any, list[QueueReport]]], names: Iterable[str]
    ) -> list[QueueReport]:
        if isinstance(names, str):
            raise InvalidValue("one text; several names are asked for", path="names")
        wanted = list(names)
        until = asyncio.get_running_loop().time() + self._timeout
        return await self._within(lambda connection: what(Listing(connection, self.host, wanted, until)))

    async def _of(self, connection: ManagementConnection, name: FormatName) -> FormatName:
        """Return a name with its computer, which is that of the private queues where it has none."""
        if not is_of_asked(name):
            return name
        if connection.computer is None:
            report = machine_report(self.host, *await connection.machine_properties(PRIVATE_QUEUES))
            connection.computer = private_computer(report.private_queues or (), self.host)
        return of_computer(name, connection.computer)

    async def _within(self, work: Callable[[ManagementConnection], Coroutine[Any, Any, T]]) -> T:
        """Do some work on the connection, in the time of a method."""
        try:
            async with asyncio.timeout(self._timeout) as limit:
                return await work(await self._connected())
        except TimeoutError:
            if not limit.expired():
                raise
        # A call that it has left in the middle has ended the connection.
        raise AnswerTimeout(f"{self.host} has not answered within {in_seconds(self._timeout)}")

    async def _connected(self) -> ManagementConnection:
        async with self._connecting:
            if self._connection is None or self._connection.closed:
                self._connection = await open_management(self._options, ndr64=self._ndr64)
            return self._connection


class SyncManagedHost:
    """The queue manager of another computer: `ManagedHost` without ``await``, for any number of threads.

    Attributes:
        host: as there.
    """

    def __init__(self, connection: SyncConnection, managed: ManagedHost) -> None:
        self._connection, self._managed = connection, managed
        self.host = managed.host

    def __repr__(self) -> str:
        return f"<SyncManagedHost {self.host}>"

    def machine(self) -> MachineReport:
        """Return the state of the queue manager. See `ManagedHost.machine`."""
        return self._connection.run(self._managed.machine())

    def queue(self, name: str) -> QueueReport:
        """Return the state of a queue. See `ManagedHost.queue`."""
        return self._connection.run(self._managed.queue(name))

    def queues(self, names: Iterable[str] = (), *, most: int | None = None) -> list[QueueReport]:
        """Return the state of many queues. See `ManagedHost.queues`."""
        return self._connection.run(self._managed.queues(names, most=most))

    def outgoing(self) -> list[QueueReport]:
        """Return the state of the outgoing queues. See `ManagedHost.outgoing`."""
        return self._connection.run(self._managed.outgoing())

    def pause(self, name: str) -> None:
        """Put an outgoing queue on hold. See `ManagedHost.pause`."""
        self._connection.run(self._managed.pause(name))

    def resume(self, name: str) -> None:
        """End the hold of an outgoing queue. See `ManagedHost.resume`."""
        self._connection.run(self._managed.resume(name))

    def resend(self, name: str) -> None:
        """Send unacknowledged messages of an outgoing queue again. See `ManagedHost.resend`."""
        self._connection.run(self._managed.resend(name))

    def connect_network(self) -> None:
        """Bring the queue manager online. See `ManagedHost.connect_network`."""
        self._connection.run(self._managed.connect_network())

    def disconnect_network(self) -> None:
        """Take the queue manager offline. See `ManagedHost.disconnect_network`."""
        self._connection.run(self._managed.disconnect_network())

    def tidy(self) -> None:
        """Have files without messages removed. See `ManagedHost.tidy`."""
        self._connection.run(self._managed.tidy())


class Management(EnteredOnce[ManagedHost, SyncManagedHost]):
    """The result of `msmqwire.manage`, which can be entered once."""

    _path = "management"
    _example = "with msmqwire.manage(...) as host: host"

    def __init__(self, options: RemoteOptions, timeout: float, *, ndr64: bool) -> None:
        super().__init__()
        self._options, self._timeout, self._ndr64 = options, timeout, ndr64
        self._managed: ManagedHost | None = None

    async def _open(self) -> ManagedHost:
        self._managed = ManagedHost(self._options, self._timeout, ndr64=self._ndr64)
        return self._managed

    def _synchronous(self, sync: SyncConnection, opened: ManagedHost) -> SyncManagedHost:
        return SyncManagedHost(sync, opened)

    async def _leave(self, *, wait: bool) -> None:
        assert self._managed is not None, "it was entered"
        await self._managed.close()


def manage(
    host: str,
    *,
    port: int | None = None,
    mapper_port: int = ENDPOINT_MAPPER_PORT,
    user: str | None = None,
    password: str | None = None,
    auth: Literal["none", "connect", "integrity", "privacy"] | None = None,
    timeout: float = 10.0,
    ndr64: bool = False,
) -> Management:
    r"""Return access to the queue manager of a computer, to see and to steer its queues: [MS-MQMR].

    Enter it with ``async with``, which gives a `ManagedHost`, or with ``with``, which gives a
    `SyncManagedHost`: the same without ``await``, for any number of threads. Windows lets administrators of
    the computer in only; ``msmqwire serve`` those that its ``--rpc-manage`` says.

    Args:
        host: the name or address of the computer; ``.`` is this one.
        port: the TCP port of the interface; by default the endpoint mapper of the computer is asked.
        mapper_port: the TCP port of the endpoint mapper.
        user: the caller, ``DOMAIN\user``; None for an anonymous one.
        password: of the user, or ``$NT$`` and the 32 hexadecimal digits of its NT hash.
        auth: the protection of the calls: ``none``; ``connect``, the identity of the user; ``integrity``,
            protection against changes; ``privacy``, encryption as well, the default with a user.
        timeout: the seconds that each method may take as a whole, connecting included.
        ndr64: whether to offer the transfer syntax NDR64 alone, to test a peer: [MS-MQMR] 2.2 has it refuse
            that, as RpcRefused then says.

    Raises InvalidValue for an argument; its name is the path.
    """
    if not isinstance(host, str) or not host.strip() or not host.isprintable():
        raise InvalidArgument(f"{host!r:.100} is not the name or address of a computer", path="host")
    if host.count(":") == 1:  # an IPv6 address has more
        why = f"{host!r:.100} has a port, which is an argument of its own: --rpc-port, in Python port"
        raise InvalidArgument(why, path="host")
    for number, path in ((port, "port"), (mapper_port, "mapper_port")):
        if number is None and path == "port":
            continue
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= _PORT_MAX:
            raise InvalidArgument(f"{number!r:.100} is not a port: 1 to {_PORT_MAX}", path=path)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= TIMEOUT_MAX:
        why = f"{timeout!r:.100} is not a number of seconds: more than 0, {TIMEOUT_MAX:,} at most"
        raise InvalidArgument(why, path="timeout")
    credentials = credentials_of(user, password, auth)
    address = "127.0.0.1" if host == "." else host.removeprefix("[").removesuffix("]")
    return Management(RemoteOptions(address, port, mapper_port, credentials), float(timeout), ndr64=ndr64)


def _name(text: str) -> FormatName:
    if not isinstance(text, str):
        raise InvalidArgument(f"{text!r:.100} is not the name of a queue", path="name")
    return managed_queue(text)
