"""A capture file that something else is still writing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from msmqwire.capture.live import QUIET_S, StoppableInput

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_POLL_S: Final = 0.2
"""The interval of looking at a file for more: it can't be waited for."""


class FollowedFile(StoppableInput):
    """A file as a stream that waits at its end for appended bytes, until `stop`.

    It ends by itself if the file becomes shorter than the part read, or another one takes its name.

    Attributes:
        lost: why it ended by itself; empty if it did not.
    """

    def __init__(self, path: str) -> None:
        """Open a file. Raises OSError."""
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed with the stream
        super().__init__(self._file.fileno(), path)
        self.lost = ""

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read the bytes that are there, waiting for some; 0 after `stop`, and once the file is lost."""
        waited = 0.0
        while not self.is_stopped:
            if count := self._file.readinto(buffer):
                return count
            # Bytes appended before the file got another name are read first.
            if self.lost:
                break
            self.lost = self._why_lost()
            if not self.lost:
                self.wait_for_stop(_POLL_S)
                is_quiet = waited < QUIET_S <= waited + _POLL_S
                waited += _POLL_S
                if is_quiet and self.on_quiet is not None:
                    self.on_quiet()
        return 0

    def close(self) -> None:
        self._file.close()
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
