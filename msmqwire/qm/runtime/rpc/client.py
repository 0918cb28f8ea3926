"""The client's end of remote calls over TCP: one connection, any number of calls at a time."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msmqwire.errors import HostNotFound, MsmqError, ProtocolViolation, RpcFault, Unreachable
from msmqwire.qm.runtime.rpc.credentials import ANONYMOUS, Credentials
from msmqwire.rpc.client_association import STUB_MAX, ClientAssociation
from msmqwire.rpc.constants import NDR20, NDR64, SyntaxId, status_name
from msmqwire.rpc.endpoint_mapper import ENDPOINT_MAPPER, EPT_MAP, map_request, mapped_port
from msmqwire.rpc.events import Answered, Bound, ClientEvent, Closed, Faulted
from msmqwire.service.keep_alive import keep_alive

ANSWER_S: Final = 20.0
"""Seconds without a byte from the server after which an overdue call has failed."""
WHOLE_ANSWER_S: Final = 300.0  # MQRR-3.1.2.1-01
"""Seconds for a whole answer, however slowly its bytes come: [MS-MQRR] 3.1.2.1."""


@dataclass(slots=True, eq=False)
class RpcCall:
    """A call that is under way.

    Attributes:
        number: its number in the association.
        until: the time from which its answer is due, by the clock of the loop; None if it may wait forever.
    """

    number: int
    until: float | None
    answer: asyncio.Future[Answered]
    timer: asyncio.TimerHandle | None = None


class RpcClient(asyncio.Protocol):
    """A connection to a server. Once it has ended, all calls raise the reason.

    Attributes:
        error: the reason for its end; None before.
    """

    def __init__(self, association: ClientAssociation, server: str) -> None:
        """Take an association that has not begun, and the name of the server in errors."""
        self._association, self._server = association, server
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._calls: dict[int, RpcCall] = {}
        self._bound: asyncio.Future[None] = self._loop.create_future()
        self._heard = self._loop.time()
        self._flushing = False
        self.error: MsmqError | None = None

    @property
    def closed(self) -> bool:
        """Whether the connection has ended."""
        return self.error is not None

    @property
    def multiplexed(self) -> bool:
        """Whether the server takes several calls at a time; if not, later calls wait for earlier ones."""
        return self._association.multiplexed

    @property
    def transfer_syntax(self) -> SyntaxId:
        """The transfer syntax of arguments."""
        return self._association.transfer_syntax

    # -- calls --------------------------------------------------------------------------------------------

    async def bind(self) -> None:
        """Begin the association. Raises RpcRefused, AuthenticationFailed and Unreachable."""
        self._association.bind()
        self._flush()
        await self._bound

    def begin(self, opnum: int, stub: bytes, *, wait: float | None = 0.0) -> RpcCall:
        """Call a method that may take `wait` seconds to answer, None for no limit; see `answer`.

        Raises the error that has ended the connection, and AuthenticationFailed.
        """
        if self.error is not None:
            raise self.error
        number = self._association.call(opnum, stub)
        self._flush_soon()
        until = None if wait is None else self._loop.time() + wait
        call = self._calls[number] = RpcCall(number, until, self._loop.create_future())
        self._set_timer(call)
        return call

    async def answer(self, call: RpcCall) -> Answered:
        """Return the results of a call.

        Raises RpcFault, and Unreachable if none come in time: the connection is closed then.
        """
        try:
            return await call.answer
        finally:
            self._calls.pop(call.number, None)
            if call.timer is not None:
                call.timer.cancel()

    def make_due(self, call: RpcCall) -> None:
        """Make the answer of a call due at once, for example after its cancellation."""
        if call.number in self._calls:
            call.until = self._loop.time()
            self._set_timer(call)

    def _set_timer(self, call: RpcCall) -> None:
        if call.timer is not None:
            call.timer.cancel()
        if call.until is not None:
            due = min(max(call.until, self._heard) + ANSWER_S, call.until + WHOLE_ANSWER_S)
            call.timer = self._loop.call_at(due, self._check, call)

    def _check(self, call: RpcCall) -> None:
        """Give up a call whose time is over, and the connection: its effect on the server is unknown."""
        now = self._loop.time()
        if call.until is None or call.answer.done():
            return
        if not self.multiplexed and next(iter(self._calls.values())) is not call:
            call.until = now  # it has not been sent: an earlier one waits
        if now - max(call.until, self._heard) < ANSWER_S and now - call.until < WHOLE_ANSWER_S:
            self._set_timer(call)
            return
        self.end(Unreachable(f"{self._server} does not answer"))

    # -- the connection -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "it is a stream"
        self._transport = transport
        keep_alive(transport.get_extra_info("socket"))  # a call may wait without limit

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        for event in self._association.received(data):
            self._on_event(event)
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        reason = "" if exc is None else f": {exc}"
        self.end(Unreachable(f"{self._server} has closed the connection{reason}"))

    def _on_event(self, event: ClientEvent) -> None:
        match event:
            case Bound():
                if not self._bound.done():
                    self._bound.set_result(None)
            case Answered(call):
                self._set(call, event)
            case Faulted(call, status):
                self._set(call, RpcFault(status, status_name(status)))
            case Closed(error):
                self._flush()
                if isinstance(error, ValueError):  # MalformedPacket: it does not speak DCE/RPC as it should
                    error = ProtocolViolation(f"{self._server} breaks the protocol: {error}")
                self.end(error)

    def _set(self, number: int, result: Answered | RpcFault) -> None:
        call = self._calls.get(number)
        if call is None or call.answer.done():  # no task waits for it any more
            return
        if isinstance(result, RpcFault):
            call.answer.set_exception(result)
        else:
            call.answer.set_result(result)

    def _flush_soon(self) -> None:
        """Send at the end of this turn of the loop, with the other calls that begin in it."""
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        data = self._association.data_to_send()
        if data and self._transport is not None:
            self._transport.write(data)

    def end(self, error: MsmqError) -> None:
        """Close the connection; calls that have no answer raise `error`. Nothing if it has ended."""
        if self.error is not None:
            return
        self.error = error
        if self._transport is not None:
            self._transport.abort() if isinstance(error, Unreachable) else self._transport.close()
        for call in self._calls.values():
            if not call.answer.done():
                call.answer.set_exception(error)
                call.answer.exception()  # the task that waits for it may be gone
        if not self._bound.done():
            self._bound.set_exception(error)
            self._bound.exception()


async def open_rpc(
    host: str,
    port: int,
    interface: SyntaxId,
    credentials: Credentials = ANONYMOUS,
    *,
    transfer_syntaxes: Sequence[SyntaxId] = (NDR64, NDR20),
    stub_max: int = STUB_MAX,
    held_max: int | None = None,
) -> RpcClient:
    """Return a connection to the server of an interface.

    `transfer_syntaxes`, `stub_max` and `held_max` are those of `ClientAssociation`.

    Raises:
        Unreachable: there is no server, or it does not answer.
        RpcRefused: it does not serve the interface, or refuses the association.
        AuthenticationFailed: it does not accept the caller.
        InvalidValue: the library for authentication is not installed.
    """
    server = f"{host} at port {port}"
    security = credentials.context(host)
    association = ClientAssociation(
        interface,
        transfer_syntaxes=transfer_syntaxes,
        security=security,
        level=credentials.level,
        stub_max=stub_max,
        held_max=held_max,
    )
    client = RpcClient(association, server)
    try:
        async with asyncio.timeout(ANSWER_S):
            await asyncio.get_running_loop().create_connection(lambda: client, host, port)
            await client.bind()  # MQRR-3.2.3-01, MQRR-3.2.4.1-02
    except TimeoutError:
        client.end(Unreachable(f"{server} does not answer"))
    except (socket.gaierror, UnicodeError) as exc:
        client.end(HostNotFound(f"{server} can't be reached: {_reason(exc)}"))
    except OSError as exc:
        client.end(Unreachable(f"{server} can't be reached: {_reason(exc)}"))
    except BaseException:
        client.end(Unreachable(f"{server} was left"))
        raise
    if client.error is not None:
        raise client.error
    return client


async def find_port(host: str, interface: SyntaxId, mapper_port: int) -> int:
    """Return the TCP port at which a host serves an interface, according to its endpoint mapper.

    Raises Unreachable, RpcRefused, RpcFault (EPT_S_NOT_REGISTERED for an unknown interface).
    """
    client = await open_rpc(host, mapper_port, ENDPOINT_MAPPER)
    try:
        stub = map_request(interface, client.transfer_syntax)
        answered = await client.answer(client.begin(EPT_MAP, stub))
        return mapped_port(answered.stub, interface, answered.transfer_syntax, big_endian=answered.big_endian)
    except ValueError as exc:  # MalformedPacket
        raise ProtocolViolation(f"the endpoint mapper of {host} does not give the port: {exc}") from None
    finally:
        client.end(Unreachable("the connection was left"))


def _reason(exc: OSError | UnicodeError) -> str:
    number = getattr(exc, "errno", None) or 0
    return os.strerror(number) if number > 0 else str(getattr(exc, "strerror", None) or exc)
