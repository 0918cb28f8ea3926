"""A client of the stream of messages of the API, and raw requests to it."""

from __future__ import annotations

import json
import socket
import time
from typing import Any
from urllib.parse import quote

from tests.support.qm.api_client import ApiClient
from tests.support.running import PATIENCE_S


def raw_request(client: ApiClient, method: str, path: str, told: object = None) -> bytes:
    """Return the bytes of a request with the token of a client."""
    body = b"" if told is None else json.dumps(told).encode()
    head = (
        f"{method} /api/v1{path} HTTP/1.1\r\nHost: {client.address}:{client.port}\r\n"
        f"Authorization: Bearer {client.token}\r\n"
    )
    if told is not None:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def connected(client: ApiClient, receive_buffer: int = 0) -> socket.socket:
    """Return a new connection; `receive_buffer` limits the bytes that the system takes without a reader."""
    connection = socket.socket()
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(PATIENCE_S)
    connection.connect((client.address, client.port))
    return connection


class EventStream:
    """A stream of messages, which is read event by event.

    Attributes:
        status: the status of the answer.
        head: the bytes of its head.
    """

    def __init__(self, client: ApiClient, queue: str, query: str = "", receive_buffer: int = 0) -> None:
        self._connection = connected(client, receive_buffer)
        path = f"/queues/{quote(queue, safe='')}/events{query}"
        self._connection.sendall(raw_request(client, "GET", path))
        self._file = self._connection.makefile("rb")
        head = []
        while (line := self._file.readline()) not in (b"\r\n", b""):
            head.append(line)
        self.head = b"".join(head)
        self.status = int(self.head.split()[1]) if head else 0
        self._text = b""

    def _chunk(self) -> bool:
        """Read a chunk; return False at the end."""
        size = int(self._file.readline() or b"0", 16)
        self._text += self._file.read(size)
        self._file.readline()
        return size > 0

    def event(self) -> tuple[str, Any] | None:
        """Return the name and the JSON of the next event, a comment as ``":"``; None at the end."""
        while b"\n\n" not in self._text:
            if not self._chunk():
                return None
        text, _, self._text = self._text.partition(b"\n\n")
        if text.startswith(b":"):
            return ":", None
        fields = dict(line.split(b": ", 1) for line in text.split(b"\n"))
        return fields[b"event"].decode(), json.loads(fields[b"data"])

    def message(self) -> dict[str, Any]:
        """Return the next message; comments are skipped."""
        while True:
            event = self.event()
            assert event is not None
            if event[0] != ":":
                assert event[0] == "message", event
                told: dict[str, Any] = event[1]
                return told

    def is_silent(self, seconds: float) -> bool:
        """Whether nothing but comments comes for some seconds."""
        self._connection.settimeout(seconds)
        until = time.monotonic() + seconds
        try:
            while time.monotonic() < until:
                event = self.event()
                if event is None or event[0] != ":":
                    return False
        except TimeoutError:
            pass
        finally:
            self._connection.settimeout(PATIENCE_S)
        return True

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._connection.close()

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
