"""A range of a capture file as a capture of its own."""

from __future__ import annotations

from dataclasses import dataclass
from io import RawIOBase
from typing import TYPE_CHECKING

from msmqwire.errors import CaptureError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


@dataclass(frozen=True, slots=True)
class Window:
    """A virtual capture file: the head that a reader needs, then a range of the file.

    Attributes:
        path: the file.
        head: the header of a pcap file; the section header and the interfaces that a pcapng file has
            described so far. Empty at the start of a file.
        start: the offset in the file at which the range starts: 0, or that of a record.
        end: the offset in the file after the range.
        tails: known offsets of records near its end, each with the head of a window that starts there.
    """

    path: str
    head: bytes
    start: int
    end: int
    tails: tuple[tuple[int, bytes], ...] = ()

    def open(self) -> WindowStream:
        """Open the window as a binary stream whose ``name`` is the path.

        Raises:
            OSError: the file can't be opened.
        """
        return WindowStream(self)

    def located(self, error: CaptureError) -> CaptureError:
        """Return an error in reading the window's stream with its offset in the file."""
        return CaptureError(error.why, file=error.file, offset=self.file_offset(error.offset), cut=error.cut)

    def file_offset(self, offset: int) -> int:
        """Return the offset in the file of an offset in the (uncompressed) stream."""
        return offset - len(self.head) + self.start


class WindowStream(RawIOBase):
    """The bytes of a window as a binary stream.

    Attributes:
        name: the file.
        window: the window.
    """

    def __init__(self, window: Window) -> None:
        super().__init__()
        self.name = window.path
        self.window = window
        self._head = window.head
        self._remaining = window.end - window.start
        self._file = open(window.path, "rb", buffering=0)  # noqa: SIM115 - closed by close()
        self._file.seek(window.start)

    def located(self, error: CaptureError) -> CaptureError:
        """Return an error in reading the stream with its offset in the file."""
        return self.window.located(error)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        if self._head:
            size = min(len(view), len(self._head))
            view[:size], self._head = self._head[:size], self._head[size:]
            return size
        size = self._file.readinto(view[: self._remaining]) or 0
        self._remaining -= size
        return size

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
