"""A capture file that something else is still writing."""

from __future__ import annotations

import os
import select
from io import RawIOBase
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_POLL_S: Final = 0.2
"""How often a file is looked at for more: it can't be waited for."""
_READ_MAX: Final = 1 << 16


class FollowedFile(RawIOBase):
    """A file as a stream that waits at its end for what is appended, until `stop`.

    It ends by itself if the file becomes shorter than what was read, or another one takes its name.

    Attributes:
        name: its path.
        is_stopped: whether it was stopped.
        lost: why it ended by itself; empty if it did not.
    """

    def __init__(self, path: str) -> None:
        """Open a file. Raises OSError."""
        super().__init__()
        self.name, self.is_stopped, self.lost = path, False, ""
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed with the stream
        self._wake_reader, self._wake_writer = os.pipe()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read what is there, waiting for something; 0 after `stop`, and once the file is lost."""
        while not self.is_stopped:
            if count := self._file.readinto(buffer):
                return count
            # What was appended before the file got another name is read first.
            if self.lost:
                break
            self.lost = self._why_lost()
            if not self.lost:
                select.select([self._wake_reader], [], [], _POLL_S)
        return 0

    def read(self, size: int = -1) -> bytes:
        """Return what is there, waiting for something; nothing after `stop`, and once the file is lost."""
        buffer = bytearray(_READ_MAX if size < 0 else min(size, _READ_MAX))
        return bytes(memoryview(buffer)[: self.readinto(buffer)])

    def stop(self) -> None:
        """End the stream. Signal handlers may call it."""
        if not self.is_stopped:
            self.is_stopped = True
            os.write(self._wake_writer, b"\0")

    def close(self) -> None:
        if not self.closed:
            self._file.close()
            os.close(self._wake_reader)
            os.close(self._wake_writer)
        super().close()

    def _why_lost(self) -> str:
        opened = os.fstat(self._file.fileno())
        if opened.st_size < self._file.tell():
            return "became shorter"
        try:
            named = os.stat(self.name)
        except OSError:
            return "is gone"
        return "" if os.path.samestat(opened, named) else "was replaced by another file"
