"""A small server of HTTP/1.1 for one page: whoever reaches its port can cost little."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

CONNECTIONS_MAX: Final = 32
"""Limit of connections; further ones are closed at once."""
REQUEST_MAX: Final = 8192
"""Limit of a request with its headers in bytes."""
REQUEST_S: Final = 10.0
"""Seconds in which a request has to be complete, and again in which its answer has to be read."""


class PageServer:
    """Answers GET and HEAD of one path with a page that is made for each request."""

    def __init__(self, path: str, content_type: str, page: Callable[[], bytes]) -> None:
        self._path, self._type, self._page = path, content_type, page
        self._server: asyncio.Server | None = None
        self._clients: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def start(self, address: str, port: int) -> int:
        """Listen; return the port. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, address, port, limit=REQUEST_MAX)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening, and end all connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._clients.values():
            writer.transport.abort()
        if self._clients:
            await asyncio.wait(self._clients)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._clients) >= CONNECTIONS_MAX:
            writer.transport.abort()
            return
        self._clients[task] = writer
        try:
            async with asyncio.timeout(REQUEST_S):
                answer = await self._answer(reader)
            writer.write(answer)
            async with asyncio.timeout(REQUEST_S):
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # it says nothing, or does not read
        finally:
            del self._clients[task]
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return _response("431 Request Header Fields Too Large", b"")
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        target, _, version = rest.rpartition(" ")
        if not version.startswith("HTTP/1."):
            return _response("400 Bad Request", b"")
        if target.partition("?")[0] != self._path:
            return _response("404 Not Found", b"")
        if method not in ("GET", "HEAD"):
            return _response("405 Method Not Allowed", b"", "Allow: GET, HEAD\r\n")
        page = self._page()
        return _response("200 OK", page, f"Content-Type: {self._type}\r\n", head_only=method == "HEAD")


def _response(status: str, body: bytes, headers: str = "", *, head_only: bool = False) -> bytes:
    head = f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode("latin-1") + (b"" if head_only else body)
