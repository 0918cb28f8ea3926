"""A range of a capture file as a capture of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from io import RawIOBase
from typing import TYPE_CHECKING

from msmqwire.capture.paths import open_file
from msmqwire.capture.stores import StorageOptions
from msmqwire.errors import CaptureError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


@dataclass(frozen=True, slots=True)
class Window:
    """A virtual capture file: the head that a reader needs, then a range of the file.

    Attributes:
        path: the file, which may be the URL of a file in a store.
        head: the header of a pcap file; the section header and the interfaces that a pcapng file has
            described so far. Empty at the start of a file.
        start: the offset in the file at which the range starts: 0, or that of a record.
        end: the offset in the file after the range.
        tails: known offsets of records near its end, each with the head of a window that starts there.
        storage_options: the options of the store of a URL; not shown, as they may be credentials.
        version: that of the content that the file of a URL must have; empty for any.
    """

    path: str
    head: bytes
    start: int
    end: int
    tails: tuple[tuple[int, bytes], ...] = ()
    storage_options: StorageOptions = field(default_factory=dict, repr=False, compare=False)
    version: str = ""

    def open(self) -> WindowStream:
        """Open the window as a binary stream whose ``name`` is the path.

        Raises:
            OSError: the file can't be opened; `FileChanged` if it has another version.
        """
        return WindowStream(self)

    def open_file(self) -> RawIOBase:
        """Open the whole file, of which the part up to the end of the window may be read ahead.

        Raises:
            OSError: as `open` does.
        """
        return open_file(self.path, self.storage_options, stop=self.end, version=self.version)

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
        self._file = window.open_file()
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
