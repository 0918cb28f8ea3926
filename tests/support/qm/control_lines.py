"""The control channel as a program in another language sees it: lines written and read, and frames."""

from __future__ import annotations

import json
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msmqwire.qm.runtime.data_folder import DataFolder
from tests.support.running import PATIENCE_S


@dataclass(frozen=True)
class Frame:
    """A message that came as a frame.

    Attributes:
        subscription, receipt: 0 for none.
        record: its record.
    """

    subscription: int
    receipt: int
    record: bytes

    @property
    def body(self) -> bytes:
        """Its body, whose length is at 96, after the fixed part of 128 bytes."""
        (size,) = struct.unpack_from("<I", self.record, 96)
        return self.record[128 : 128 + size]


class Lines:
    """One connection to the control channel of the server of a folder.

    Attributes:
        token: the token of the folder, needed over TCP; empty with a Unix socket.
        frames: the messages that came before the answers that were read.
        notices: the lines that answer no request.
    """

    def __init__(self, data: Path) -> None:
        address = DataFolder(data).control()
        assert address is not None, "no server has written its address"
        self.token = address.token
        if address.path:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.settimeout(PATIENCE_S)
            self.socket.connect(address.path)
        else:
            self.socket = socket.create_connection(("127.0.0.1", address.port), PATIENCE_S)
        self._file = self.socket.makefile("rb")
        self.frames: list[Frame] = []
        self.notices: list[dict[str, Any]] = []

    def write(self, *requests: object) -> None:
        """Send requests without waiting for answers."""
        self.raw(b"".join(json.dumps(request).encode() + b"\n" for request in requests))

    def raw(self, data: bytes) -> None:
        """Send bytes."""
        self.socket.sendall(data)

    def read(self) -> dict[str, Any]:
        """Read the next answer."""
        while True:
            while self._file.peek(1)[:1] == b"\0":
                self._read_frame()
            line = self._file.readline()
            assert line.endswith(b"\n"), "the server has ended the connection"
            answer: dict[str, Any] = json.loads(line)
            if "id" in answer:
                return answer
            self.notices.append(answer)

    def _read_frame(self) -> None:
        null, kind, zero, length, subscription, receipt = struct.unpack("<BBHIIQ", self._file.read(20))
        assert (null, kind, zero) == (0, 1, 0)
        self.frames.append(Frame(subscription, receipt, self._file.read(length)))

    def pushed(self, count: int) -> list[Frame]:
        """Read a number of messages that are pushed or follow an answer; return and forget them."""
        while len(self.frames) < count:
            assert self._file.peek(1)[:1] == b"\0", self._file.readline()
            self._read_frame()
        frames, self.frames = self.frames, []
        assert len(frames) == count
        return frames

    def notice(self) -> dict[str, Any]:
        """Read the next line that answers no request."""
        while not self.notices:
            line = self.line()
            assert line is not None, "the server has ended the connection"
            assert "id" not in line
            self.notices.append(line)
        return self.notices.pop(0)

    def line(self) -> dict[str, Any] | None:
        """Read the next answer; None at the end of the connection."""
        line = self._file.readline()
        return json.loads(line) if line else None

    def ask(self, request: object) -> dict[str, Any]:
        """Send a request and read one answer."""
        self.write(request)
        return self.read()

    def error(self, request: object) -> dict[str, Any]:
        """Send a request that fails; return the error."""
        answer = self.ask(request)
        assert set(answer) == {"id", "error"}, answer
        error: dict[str, Any] = answer["error"]
        assert isinstance(error["error"], str)
        assert error["error"]
        assert {"path", "offset"} <= set(error)
        return error

    def is_ended(self) -> bool:
        """Wait for the next line; return whether the connection ended instead."""
        try:
            return self._file.readline() == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        """End the connection."""
        self._file.close()
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
