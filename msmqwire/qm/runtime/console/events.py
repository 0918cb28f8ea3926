"""The stream of events of a page: each sample of the counters, as soon as it is taken."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Final

from aiohttp import web

from msmqwire.qm.runtime.api.guard import SESSION, Guard
from msmqwire.qm.runtime.console.options import ConsoleLimits
from msmqwire.qm.runtime.console.samples import Samples
from msmqwire.service.logs import RecentRecords

_SEND_S: Final = 10.0
"""Seconds after which a reader that reads nothing loses the stream."""


class Events:
    """Streams of server-sent events."""

    def __init__(self, guard: Guard, samples: Samples, records: RecentRecords, limits: ConsoleLimits) -> None:
        self._guard, self._samples, self._records, self._limits = guard, samples, records, limits

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """Send an event ``sample`` for each sample, until the login or the server ends."""
        session = request[SESSION]
        if session.streams >= self._limits.streams:
            raise web.HTTPTooManyRequests(text="too many streams of events of this login")
        session.streams += 1
        try:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            response.force_close()
            await response.prepare(request)
            self._limit_buffer(request)
            while not self._samples.closed and self._guard.logins.is_valid(session):
                if not await self._send(request, response):
                    break
                await self._samples.next()
            return response
        finally:
            session.streams -= 1

    def _limit_buffer(self, request: web.Request) -> None:
        """Limit the system's buffer for a slow reader to the size of the one here."""
        found = None if request.transport is None else request.transport.get_extra_info("socket")
        if found is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._limits.unread_bytes)

    async def _send(self, request: web.Request, response: web.StreamResponse) -> bool:
        """Send the latest sample; return False, and end the connection, if its reader reads nothing."""
        transport = request.transport
        if transport is None:
            return False
        latest = {**self._samples.latest(), "log": self._records.last}
        try:
            if transport.get_write_buffer_size() > self._limits.unread_bytes:
                raise TimeoutError
            async with asyncio.timeout(_SEND_S):
                await response.write(f"event: sample\ndata: {json.dumps(latest)}\n\n".encode())
        except TimeoutError:
            transport.abort()
            return False
        except ConnectionError:
            return False
        return True
