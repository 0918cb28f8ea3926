"""The stream of samples: each sample of the counters, as soon as it is taken."""

from __future__ import annotations

import asyncio
import json
import socket
from collections import Counter
from typing import Final

from aiohttp import web

from msmqwire.qm.runtime.api.guard import CALLER, SESSION, Guard
from msmqwire.qm.runtime.api.problems import Problem
from msmqwire.qm.runtime.api.rights import Caller
from msmqwire.qm.runtime.console.options import ConsoleLimits
from msmqwire.qm.runtime.console.samples import Samples
from msmqwire.service.logs import RecentRecords

_SEND_S: Final = 10.0
"""Seconds after which a reader that reads nothing loses the stream."""


class SampleStream:
    """Streams of server-sent events with samples, of pages and of programs."""

    def __init__(self, guard: Guard, samples: Samples, records: RecentRecords, limits: ConsoleLimits) -> None:
        self._guard, self._samples, self._records, self._limits = guard, samples, records, limits
        self._streams: Counter[str] = Counter()  # of programs, by key of the token
        self._revoked: set[str] = set()  # keys of tokens with streams that have to end
        guard.tokens.on_revoked.append(self._note_revoked)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """Send an event ``sample`` for each sample, until the token, the login or the server ends.

        Raises Problem for one stream too many.
        """
        session, key = request.get(SESSION), request[CALLER].key
        streams = self._streams[key] if session is None else session.streams
        if streams >= self._limits.streams:
            raise Problem(429, "too many streams of samples of this login or token")
        self._count(request, 1)
        try:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            response.force_close()
            await response.prepare(request)
            self._limit_buffer(request)
            while not self._samples.closed and self._holds(request):
                if not await self._send(request, response):
                    break
                await self._samples.next()
            return response
        finally:
            self._count(request, -1)

    def _count(self, request: web.Request, more: int) -> None:
        session, key = request.get(SESSION), request[CALLER].key
        if session is not None:
            session.streams += more
            return
        self._streams[key] += more
        if not self._streams[key]:
            del self._streams[key]
            self._revoked.discard(key)

    def _note_revoked(self, caller: Caller) -> None:
        if caller.key in self._streams:
            self._revoked.add(caller.key)

    def _holds(self, request: web.Request) -> bool:
        session = request.get(SESSION)
        if session is not None:
            return self._guard.logins.is_valid(session)
        return request[CALLER].key not in self._revoked

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
