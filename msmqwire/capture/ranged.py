"""Files of stores read by ranges: only the bytes that are asked for, and somewhat ahead of them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from functools import cache
from io import SEEK_CUR, SEEK_END, SEEK_SET, RawIOBase
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from _typeshed import WriteableBuffer

FIRST_SIZE: Final = 256 << 10
"""Bytes of the first request at a new place: a look at a header costs no more."""
GROWTH: Final = 4
"""The factor by which each following request is larger, while the file is read on."""
BLOCK_SIZE: Final = 8 << 20
"""Bytes of the largest request."""
AHEAD: Final = 6
"""Requests under way or answered before their bytes are needed. A file takes two blocks more in memory."""
THREADS: Final = 8
"""Requests that a process has under way at once, for all of its files."""

Fetch = Callable[[int, int], bytes]
"""Returns the bytes of a file from an offset, exactly the number asked for. Raises OSError. It is called by
any thread.
"""


class _Block(NamedTuple):
    start: int
    end: int
    data: Future[bytes]


class RangedFile(RawIOBase):
    """A file that is fetched by ranges, as a binary stream that can be positioned.

    Reading on from where the last read ended makes requests larger, up to `BLOCK_SIZE`, and starts up to
    `AHEAD` of them before they are needed. Reading elsewhere begins anew with a small one. A read returns
    as many bytes as were asked for, fewer only at the end.

    Attributes:
        name: its URL.
        size: its bytes.
        version: tells this content of the file from any other.
    """

    def __init__(self, name: str, size: int, version: str, fetch: Fetch, *, stop: int | None = None) -> None:
        """Fetch nothing yet.

        Args:
            name: the URL.
            size: bytes of the file.
            version: the version of its content.
            fetch: fetches a range.
            stop: the offset beyond which nothing is fetched before it is needed.
        """
        super().__init__()
        self.name, self.size, self.version = name, size, version
        self._fetch = fetch
        self._ahead_stop = size if stop is None else min(stop, size)
        self._at = 0
        self._blocks: deque[_Block] = deque()
        self._block_size = FIRST_SIZE

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        base = {SEEK_SET: 0, SEEK_CUR: self._at, SEEK_END: self.size}.get(whence)
        if base is None or base + offset < 0:
            raise ValueError(f"{self.name}: no such position: {offset} with whence {whence}")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        if self.closed:
            raise ValueError("read of a closed file")
        view = memoryview(buffer).cast("B")
        count = 0
        while count < len(view) and self._at < self.size:
            block = self._block(len(view) - count)
            first = self._at - block.start
            piece = memoryview(block.data.result())[first : first + len(view) - count]
            view[count : count + len(piece)] = piece
            count += len(piece)
            self._at += len(piece)
        if self._at >= self._ahead_stop:
            self._drop()  # read to its end: many files may be open, to be read one after the other
        return count

    def close(self) -> None:
        self._drop()
        super().close()

    def _block(self, wanted: int) -> _Block:
        """The block with the next byte; those that follow it are on their way if the file is read on."""
        blocks = self._blocks
        # The block before is kept: readers step back to the start of a record that was cut.
        while len(blocks) > 1 and self._at >= blocks[1].end:
            blocks.popleft()
        for block in blocks:
            if block.start <= self._at < block.end:
                if block is not blocks[0]:
                    self._read_ahead()
                return block
        if not blocks or self._at != blocks[-1].end:
            self._drop()
            self._block_size = min(max(wanted, FIRST_SIZE), BLOCK_SIZE)
            return self._start(self._at, self._block_size)
        self._read_ahead()
        return next(block for block in blocks if block.start <= self._at < block.end)

    def _read_ahead(self) -> None:
        """Start requests for the next bytes."""
        blocks = self._blocks
        while True:
            end = blocks[-1].end
            waiting = sum(block.start > self._at for block in blocks)
            if end != self._at and (waiting >= AHEAD or end >= self._ahead_stop):
                return
            self._block_size = min(self._block_size * GROWTH, BLOCK_SIZE)
            self._start(end, self._block_size, later=True)

    def _start(self, start: int, size: int, *, later: bool = False) -> _Block:
        """Request a block; a `later` one in a thread of its own."""
        limit = self.size if start >= self._ahead_stop else self._ahead_stop
        end = min(start + size, limit)
        if later:
            data = _pool(os.getpid()).submit(self._fetch, start, end - start)
        else:
            from concurrent.futures import Future

            data = Future[bytes]()
            data.set_result(self._fetch(start, end - start))
        block = _Block(start, end, data)
        self._blocks.append(block)
        return block

    def _drop(self) -> None:
        for block in self._blocks:
            block.data.cancel()
        self._blocks.clear()


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads that fetch for a process; those of its parent are not in a fork."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(THREADS, thread_name_prefix="msmqwire-ranges")
