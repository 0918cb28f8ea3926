"""Columns made by several threads from the rows of one scan.

The scan of a capture depends on what came before, and takes less than half of the time; the columns of a
batch depend only on its rows. So one thread scans, and others make the columns, each of one batch at a time.
They run side by side since compiled code holds no lock of the interpreter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import BoundedSemaphore
from typing import Any, Final, NamedTuple

from msmqwire.columnar.arrow.batch import BATCH_BYTES_MAX, BatchMaker, Extra
from msmqwire.columnar.compiled.scan_arrays import RowBlock
from msmqwire.columnar.compiled.state import R_LENGTH

BLOCKS_OF_WORKER: Final = 4
"""Blocks that wait or are worked on, for each worker: about as many as `_BYTES_OF_BATCH` come in."""
_BYTES_OF_BATCH: Final = BATCH_BYTES_MAX // 2
"""Bytes of packets after which another worker gets the next ones: so few blocks wait that they are still in
the processor's cache when their turn comes."""
_ROOM_MAX: Final = 16 << 20
"""Bytes of memory of a block that are kept to be used again; larger ones are exceptions."""


class Room(NamedTuple):
    """The arrays of a block: its memory, and the space for its rows and their fields."""

    memory: Any
    rows: Any
    field_offsets: Any


class _Block(NamedTuple):
    block: RowBlock
    extras: Sequence[Extra]
    room: Room


_Blocks = SimpleQueue[_Block | None]
"""The blocks of a batch, then None."""


class ColumnWorkers:
    """Makes record batches as `BatchMaker` does, in several threads; they come in the order of the rows.

    Memory is bounded by the blocks and batches in the making: for each worker 4 blocks, a batch that is
    finished and one that is not.

    Args:
        makers: a batch maker for each thread, which share nothing that changes.
        batch_rows: rows after which another worker gets the next ones.
    """

    def __init__(self, makers: Sequence[BatchMaker], batch_rows: int) -> None:
        self._workers, self._batch_rows = len(makers), batch_rows
        self._threads = ThreadPoolExecutor(len(makers), thread_name_prefix="msmqwire-columns")
        self._free = BoundedSemaphore(BLOCKS_OF_WORKER * len(makers))
        self._makers: SimpleQueue[BatchMaker] = SimpleQueue()
        for maker in makers:
            self._makers.put(maker)
        self._rooms: deque[Room] = deque()
        self._batches: deque[Future[list[Any]]] = deque()  # in order; the last one may get more blocks
        self._blocks: _Blocks | None = None  # of the last batch, while it gets more
        self._rows = self._bytes = 0  # of the last batch
        self._stopped = False

    def add(self, block: RowBlock, extras: Sequence[Extra], room: Room) -> Iterator[Any]:
        """Add rows, with their arrays, which are not the caller's any more; yield finished batches."""
        self._free.acquire()
        if self._blocks is None:
            self._blocks = SimpleQueue()
            self._batches.append(self._threads.submit(self._make, self._blocks))
        self._blocks.put(_Block(block, extras, room))
        self._rows += len(block.rows)
        self._bytes += int(block.rows[:, R_LENGTH].sum())
        if self._rows >= self._batch_rows or self._bytes >= _BYTES_OF_BATCH:
            self._end_batch()
            while len(self._batches) > self._workers:
                yield from self._batches.popleft().result()

    def finish(self) -> Iterator[Any]:
        """Yield the remaining batches."""
        self._end_batch()
        while self._batches:
            yield from self._batches.popleft().result()

    def stop(self) -> None:
        """End the threads; what they have not finished is lost."""
        self._stopped = True
        self._end_batch()
        self._threads.shutdown(cancel_futures=True)

    def room(self) -> Room | None:
        """Return the arrays of a block that is done, to be used again; None if there are none."""
        return self._rooms.pop() if self._rooms else None

    def _end_batch(self) -> None:
        if self._blocks is not None:
            self._blocks.put(None)
        self._blocks, self._rows, self._bytes = None, 0, 0

    def _make(self, blocks: _Blocks) -> list[Any]:
        """Make the batch of some blocks, or several of them. Runs in a worker's thread."""
        maker, made = self._makers.get(), list[Any]()
        try:
            for job in iter(blocks.get, None):
                try:
                    if not self._stopped:
                        made += maker.add(job.block, job.extras)
                finally:
                    self._done(job)
            made += maker.finish()
        except BaseException:
            for job in iter(blocks.get, None):
                self._done(job)  # or `add` would wait, where the error can't be raised
            raise
        finally:
            self._makers.put(maker)
        return made

    def _done(self, job: _Block) -> None:
        """Keep the arrays of a block to be used again, and let another block wait."""
        if job.room.memory.size <= _ROOM_MAX:
            self._rooms.append(job.room)
        self._free.release()
