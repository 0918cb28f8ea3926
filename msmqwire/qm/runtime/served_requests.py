"""Requests through the server of a folder, by its control channel."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from json import JSONDecodeError
from typing import Any, Final, cast

from msmqwire.constants import HResult
from msmqwire.errors import InvalidValue, LocatedError, MalformedPacket, MsmqError, QueueError, Unreachable
from msmqwire.names.json_words import why_not_json
from msmqwire.names.printable import counted
from msmqwire.qm.runtime.control_frames import Incoming
from msmqwire.qm.runtime.data_folder import DataFolder
from msmqwire.qm.runtime.pushed import Pushed, Subscribed
from msmqwire.service.control import server as control
from msmqwire.service.control.client import GONE, connection_closed, error_of, lost

_READS_MAX: Final = 900
"""Limit of reads under way, below that of the control channel, which leaves room to cancel one."""


class NotSent(Unreachable):
    """The server had gone before the request, which may be made on another connection."""


class _Records:
    """An answer whose messages follow it as frames."""

    def __init__(self, number: int, response: dict[str, Any], due: int) -> None:
        self.number, self.response, self.due = number, response, due
        self.messages: list[tuple[int, bytes]] = []


class ServedRequests(asyncio.Protocol):
    """Requests through the server of a folder: see `msmqwire.qm.runtime.requests.Requests`."""

    served = True

    def __init__(self, token: str) -> None:
        """Create the client's side of a connection, in the running loop."""
        self._token = token
        self._number = 0
        self._pending: dict[int, asyncio.Future[dict[str, Any] | None]] = {}
        self._subscribed = Subscribed()
        self._incoming = Incoming(self._answered, self._message)
        self._answer: _Records | None = None  # whose frames are due
        self._reads = 0
        self._gone: str | None = None
        self._closed = False
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @classmethod
    async def connect(cls, folder: DataFolder) -> ServedRequests | None:
        """Connect to the server of a folder; return None if none is reachable."""
        address = folder.control()
        if address is None:
            return None
        loop = asyncio.get_running_loop()
        try:
            if address.path:
                _, requests = await loop.create_unix_connection(lambda: cls(address.token), address.path)
            else:
                _, requests = await loop.create_connection(
                    lambda: cls(address.token), "127.0.0.1", address.port
                )
        except OSError:
            return None
        return requests

    # -- requests -----------------------------------------------------------------------------------------

    async def call(self, op: str, /, **request: Any) -> dict[str, Any]:
        if op != "read":
            return await self._call(op, request)
        if self._reads >= _READS_MAX:
            why = f"{_READS_MAX} reads are under way"
            raise QueueError(why, HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)
        self._reads += 1
        try:
            return await self._call(op, request)
        finally:
            self._reads -= 1

    async def _call(self, op: str, request: dict[str, Any]) -> dict[str, Any]:
        if self._closed:
            raise connection_closed()
        if self.lost:
            raise NotSent(self._gone or GONE)
        number = self._number + 1
        line = {"id": number, "op": op, **request}
        if self._token and number == 1:
            line["token"] = self._token
        data = json.dumps(line).encode()
        if len(data) > control.REQUEST_MAX:
            why = f"the request has {counted(len(data), 'byte')}, and may have {control.REQUEST_MAX:,}"
            raise InvalidValue(why, path=op)
        self._number = number
        future = self._pending[number] = asyncio.get_running_loop().create_future()
        try:
            self._write(data + b"\n")
            if self.lost:  # the line is incomplete, and so is not a request
                raise NotSent(self._gone or GONE)
            if not self._writable.is_set():
                await self._writable.wait()
            response = await future
        finally:
            self._pending.pop(number, None)
        if response is None:
            raise lost(op, self._gone or GONE, changes=DataFolder.changes(op, request))
        if "error" in response:
            raise error_of(response["error"])
        answer: dict[str, Any] = response["answer"]
        return answer

    async def subscribe(self, queue: str, window: int) -> Pushed:
        return await self._subscribed.subscribe(self.call, queue, window)

    def done(self, subscription: int, upto: int) -> None:
        self._write(b'{"op":"done","subscription":%d,"upto":%d}\n' % (subscription, upto))

    async def unsubscribe(self, subscription: int, upto: int, back: int = 0) -> None:
        self._subscribed.remove(subscription)
        await self.call("unsubscribe", subscription=subscription, upto=upto, back=back or None)

    def _write(self, data: bytes) -> None:
        if self._transport is not None and self._gone is None:
            self._transport.write(data)

    @property
    def lost(self) -> bool:
        """Whether the server has gone, so that no more requests are possible here."""
        return self._gone is not None or (self._transport is not None and self._transport.is_closing())

    # -- data from the server ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        if self._gone is not None:
            return
        try:
            self._incoming.feed(data)
        except (LocatedError, ValueError, KeyError, TypeError) as exc:  # too long, or not from our server
            reason = f"the answer is not that of our server: {_why(exc)}"
            self._end(Unreachable(reason), reason)

    def _answered(self, line: bytes) -> None:
        response = json.loads(line)
        if "subscription" in response:
            error = error_of(response["error"])
            if not isinstance(error, MsmqError):
                error = Unreachable(str(error))
            self._subscribed.fail(response["subscription"], error)
            return
        number, answer = response["id"], response.get("answer", {})
        if "records" in answer:
            records = _Records(number, response, int(answer["records"]))
            answer["records"] = records.messages
            if records.due:
                self._answer = records
                return
        self._resolve(number, response)

    def _resolve(self, number: int, response: dict[str, Any]) -> None:
        future = self._pending.get(number)
        if future is not None and not future.done():
            future.set_result(response)

    def _message(self, subscription: int, receipt: int, record: bytes) -> None:
        if subscription:
            self._subscribed.add(subscription, receipt, record)
            return
        answer = self._answer
        if answer is None:
            raise MalformedPacket("a message belongs to no answer")
        answer.messages.append((receipt, record))
        if len(answer.messages) == answer.due:
            self._answer = None
            self._resolve(answer.number, answer.response)

    def connection_lost(self, exc: Exception | None) -> None:
        reason = f"{GONE}: {exc.strerror or exc}" if isinstance(exc, OSError) else GONE
        self._end(Unreachable(reason), reason)
        self._writable.set()
        if not self._lost.done():
            self._lost.set_result(None)

    def _end(self, error: MsmqError, reason: str) -> None:
        if self._gone is not None:
            return
        self._gone = reason
        for future in self._pending.values():
            if future.done():
                continue
            if self._closed:
                future.set_exception(error)
            else:
                future.set_result(None)
        self._subscribed.fail_all(error)
        if self._transport is not None:
            self._transport.close()

    async def close(self) -> None:
        self._closed = True
        self._end(QueueError("it was closed", HResult.MQ_ERROR_OPERATION_CANCELLED), "it was closed")
        with suppress(OSError):
            await asyncio.shield(self._lost)


def _why(exc: Exception) -> str:
    """Return the fault of an answer, in words."""
    if isinstance(exc, LocatedError):
        return exc.why
    if isinstance(exc, JSONDecodeError | UnicodeDecodeError):
        return why_not_json(exc)
    return "it answers an unknown request, or in another form"
