"""A stretch of a capture file as a capture of its own."""

from __future__ import annotations

from dataclasses import dataclass
from io import RawIOBase
from typing import TYPE_CHECKING

from msmqwire.errors import CaptureError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


@dataclass(frozen=True, slots=True)
class Window:
    """A small virtual capture file: what a reader must know beforehand, then bytes of a file.

    Attributes:
        path: the file.
        head: the header of a pcap file; the section header and the interfaces that a pcapng file has
            described so far. Empty at the start of a file.
        start: the byte of the file at which the stretch starts: 0, or where a record does.
        end: the byte of the file after the stretch.
        tails: places near its end where records start, each with the head of a window that starts there, as
            far as they have been noted.
    """

    path: str
    head: bytes
    start: int
    end: int
    tails: tuple[tuple[int, bytes], ...] = ()

    def open(self) -> WindowStream:
        """The window as a binary stream whose ``name`` is the path.

        Raises:
            OSError: the file can't be opened.
        """
        return WindowStream(self)

    def located(self, error: CaptureError) -> CaptureError:
        """An error of reading the window's stream, with the place in the file."""
        return CaptureError(error.why, file=error.file, offset=self.place(error.offset), cut=error.cut)

    def place(self, offset: int) -> int:
        """The place in the file of a byte of the (unpacked) stream."""
        return offset - len(self.head) + self.start


class WindowStream(RawIOBase):
    """The bytes of a window.

    Attributes:
        name: the file.
        window: the window.
    """

    def __init__(self, window: Window) -> None:
        super().__init__()
        self.name = window.path
        self.window = window
        self._head = window.head
        self._left = window.end - window.start
        self._file = open(window.path, "rb", buffering=0)  # noqa: SIM115 - closed by close()
        self._file.seek(window.start)

    def located(self, error: CaptureError) -> CaptureError:
        """An error of reading the stream, with the place in the file."""
        return self.window.located(error)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        if self._head:
            size = min(len(view), len(self._head))
            view[:size], self._head = self._head[:size], self._head[size:]
            return size
        size = self._file.readinto(view[: self._left]) or 0
        self._left -= size
        return size

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
