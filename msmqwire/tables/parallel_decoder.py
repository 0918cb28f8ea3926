"""Captures to record batches, with the columns made by several threads."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np

from msmqwire.analysis.dissection import Dissection
from msmqwire.tables.arrow.batch import BatchMaker
from msmqwire.tables.column_workers import ColumnWorkers, Room, ScannedBlock
from msmqwire.tables.compiled import state as entry
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.decoder import Decoder


class ParallelDecoder(Decoder):
    """A decoder whose rows are those of `Decoder`, in their order; the batches may differ.

    One thread at a time follows the connections as a `Decoder` does, so that nothing depends on how many
    there are. They read ahead of the caller.

    Args:
        dissection: the captures to decode.
        makers: a batch maker for each of the threads.
        batch_rows: rows of a batch.
    """

    def __init__(self, dissection: Dissection, makers: Sequence[BatchMaker], batch_rows: int) -> None:
        super().__init__(dissection, makers[0])
        for maker in makers:
            maker.files, maker.tunnels = dissection.files, self._encapsulations.texts
        self._workers = ColumnWorkers(makers, batch_rows, super().batches())

    def batches(self) -> Generator[Any, None, None]:
        """Yield the record batches of all rows."""
        return self._workers.batches()

    def _make_columns(self, block: RowBlock) -> Iterator[Any]:
        """Yield the block instead of its batches, and continue in other arrays."""
        room = Room(self.memory, self.rows, self.field_offsets)
        yield ScannedBlock(block, self._extras, self._found_in(block), room)
        self._take_room()

    def _finish_columns(self) -> Iterator[Any]:
        return iter(())

    def _take_room(self) -> None:
        """Continue in other arrays, with the rest of the input."""
        before, used = self.memory, slice(int(self._state[entry.POS]), int(self._state[entry.END]))
        fits = (room for room in iter(self._workers.room, None) if self._fits(room))
        room = next(fits, None)
        if room is None:
            empty = np.empty_like(before), np.zeros_like(self.rows), np.zeros_like(self.field_offsets)
            room = Room(*empty)
        self.memory, self.rows, self.field_offsets = room
        self.memory[used] = before[used]

    def _fits(self, room: Room) -> bool:
        """Whether a room has the size of the present one, which may have grown."""
        return len(room.memory) == len(self.memory) and len(room.rows) == len(self.rows)
