"""Columns made by several threads, which take turns at one scan.

The scan of a capture depends on earlier frames, and takes less than half of the time; the columns of a batch
depend only on its rows. So a thread scans the rows of a batch while no other does, and then makes their
columns itself, while the next one scans: its rows are in the caches of the processor that needs them. They
run side by side since compiled code holds no lock of the interpreter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Lock, Semaphore
from typing import Any, Final, NamedTuple

from msmqwire.tables.arrow.batch import BatchMaker, Extra
from msmqwire.tables.arrow.rows import BATCH_BYTES_MAX
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.compiled.state import R_LENGTH

BLOCKS_OF_TURN: Final = 4
"""Blocks that a thread scans in a turn, at most: about as many as `_BYTES_OF_BATCH` come in."""
TURNS_OF_WORKER: Final = 2
"""Turns whose batches have not been taken, for each worker."""
_BYTES_OF_BATCH: Final = BATCH_BYTES_MAX // 2
"""Bytes of packets that end a turn."""
_ROOM_MAX: Final = 16 << 20
"""Bytes of memory of a block that are kept to be used again; larger ones are exceptions."""


class Room(NamedTuple):
    """The arrays of a block: its memory, and the space for its rows and their fields."""

    memory: Any
    rows: Any
    field_offsets: Any


class ScannedBlock(NamedTuple):
    """Rows of a scan, and their arrays, which the scan does not use until they are given back.

    `block`, `extras` and `found` are for `BatchMaker.add`.
    """

    block: RowBlock
    extras: Sequence[Extra]
    found: Sequence[str]
    room: Room


class ColumnWorkers:
    """Makes record batches as `BatchMaker` does, in several threads; they come in the order of the rows.

    Memory is bounded by the batches that are finished or in the making, two for each worker, and by the
    blocks of one turn of each.

    Args:
        makers: a batch maker for each thread, which share nothing that changes.
        batch_rows: rows that end a turn.
        blocks: the scan, which one thread at a time continues.
    """

    def __init__(
        self, makers: Sequence[BatchMaker], batch_rows: int, blocks: Generator[ScannedBlock, None, None]
    ) -> None:
        self._makers, self._batch_rows, self._blocks = makers, batch_rows, blocks
        self._threads = ThreadPoolExecutor(len(makers), thread_name_prefix="msmqwire-columns")
        self._untaken = Semaphore(TURNS_OF_WORKER * len(makers))
        self._scanning = Lock()
        self._turns: SimpleQueue[Future[list[Any]] | None] = SimpleQueue()  # in order
        self._ended = False  # nothing more is scanned
        self._rooms: deque[Room] = deque()

    def batches(self) -> Generator[Any, None, None]:
        """Yield the batches of all rows."""
        try:
            for maker in self._makers:
                self._threads.submit(self._work, maker)
            for turn in iter(self._turns.get, None):
                yield from turn.result()
                self._untaken.release()
        finally:
            self._ended = True
            self._untaken.release(len(self._makers))
            self._threads.shutdown()
            self._blocks.close()

    def room(self) -> Room | None:
        """Return the arrays of a block that is done, to be used again; None if there are none."""
        return self._rooms.pop() if self._rooms else None

    def _work(self, maker: BatchMaker) -> None:
        """Take turns until the scan ends. Runs in a worker's thread."""
        while True:
            self._untaken.acquire()
            turn = Future[list[Any]]()
            with self._scanning:
                if self._ended:
                    self._turns.put(None)
                    return
                self._turns.put(turn)
                try:
                    blocks = self._scan()
                except BaseException as exc:
                    self._ended = True
                    turn.set_exception(exc)
                    continue
            try:
                turn.set_result(self._make(maker, blocks))
            except BaseException as exc:
                self._ended = True
                turn.set_exception(exc)

    def _scan(self) -> list[ScannedBlock]:
        """Return the blocks of a turn, fewer at the end."""
        blocks, rows, size = list[ScannedBlock](), 0, 0
        while len(blocks) < BLOCKS_OF_TURN and rows < self._batch_rows and size < _BYTES_OF_BATCH:
            scanned = None if self._ended else next(self._blocks, None)
            if scanned is None:
                self._ended = True
                break
            blocks.append(scanned)
            rows += len(scanned.block.rows)
            size += int(scanned.block.rows[:, R_LENGTH].sum())
        return blocks

    def _make(self, maker: BatchMaker, blocks: Sequence[ScannedBlock]) -> list[Any]:
        """Return the batches of some blocks."""
        made = list[Any]()
        for block, extras, found, room in blocks:
            made += maker.add(block, extras, found)
            if room.memory.size <= _ROOM_MAX:
                self._rooms.append(room)
        made += maker.finish()
        return made
