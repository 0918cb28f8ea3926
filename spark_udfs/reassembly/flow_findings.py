"""Findings of segments sorted by flow: the compiled scan says which packets may have any, lint says which.

Each run of segments is judged as a capture of its own, as a separate tracker would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Self, cast

import numpy as np

from msmqwire.analysis.dissection import Item
from msmqwire.analysis.lint import Finding
from msmqwire.capture.record import NO_TIME
from msmqwire.tables.compiled import grouped_scan
from msmqwire.tables.compiled import state as entry
from msmqwire.tables.compiled.packet import KINDS
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.row_judge import RowJudge, Sender
from msmqwire.tables.scanning.flow_keys import address_of
from spark_udfs.reassembly.chunks import OFFSET_BITS
from spark_udfs.reassembly.flow_decoder import FlowDecoder

FRAMES: Final = 1 << 12
"""Frames of packets that came in several for which there is room at first."""
_TRANSPORTS: Final = ("tcp", "udp", "pgm")


class _NoCells:
    """In place of the maker of batches: none are made."""

    keeps_items: Final = True
    needs_fields: Final = False

    def __init__(self) -> None:
        self.files: list[str] = []
        self.tunnels: Any = None

    def extra(self, item: Item) -> None:
        """Of an item only its row is needed."""

    def finish(self) -> Iterator[Any]:
        """No batches are left."""
        return iter(())


class FlowFindings(FlowDecoder):
    """Judges segments that are sorted by flow, whose flows are not divided.

    Args:
        ports, end_ns: as for `FlowDecoder`.

    Attributes:
        packets, bytes: the number of packets of each kind, and their bytes.
    """

    _lints = True

    def __init__(self, *, ports: Collection[int] = (), end_ns: int = 0) -> None:
        super().__init__(cast(Any, _NoCells()), ports=ports, end_ns=end_ns)
        self._state[entry.KEEPS_ORIGINS] = 1
        self._frame_lists = np.zeros(FRAMES, np.int64)
        self._judge = RowJudge(self.tcp_ports)
        self._found: dict[int, Sequence[Finding]] = {}  # by row
        self.packets, self.bytes = Counter[str](), Counter[str]()

    def findings(self, batches: Iterable[Any]) -> Iterator[tuple[dict[str, Any], list[Finding]]]:
        """Yield the cells of each packet with findings, and these, from the batches of `packet_batches`.

        The cells are those of columns of these names; ``frame_offset`` is the place of the frame in its file.
        """
        yield from self.batches(batches)

    def _locate(self, positions: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        return self._tables.files[positions[-1] >> OFFSET_BITS], tuple(map(_FrameOffset, positions))

    def _frame_code(self, item: Item) -> int:
        frame = item.frames[-1]
        assert isinstance(frame, _FrameOffset)
        return self._encapsulations.code(frame.position)

    def _add_item(self, item: Item) -> None:
        if item.findings:
            self._found[int(self._state[entry.ROWS])] = item.findings
        super()._add_item(item)

    def _end_run(self) -> Iterator[Any]:
        yield from super()._end_run()
        self._judge.restart()

    def _number_rows(self) -> None:
        first, last = int(self._run[grouped_scan.RENUMBERED]), int(self._state[entry.ROWS])
        if first < last:
            block = RowBlock(self.rows[first:last], self.field_offsets[first:last], self.memory)
            for r, suspect in self._judge.suspects(block):
                findings = self._judge.findings(suspect, partial(self._sender, block.rows[r]))
                if findings:
                    self._found[first + r] = findings
        super()._number_rows()

    def _sender(self, row: Any) -> Sender:
        file, (frame,) = self._locate((int(row[entry.R_FRAME]),))
        return Sender(_address(row, entry.R_SRC_HIGH), file, frame)

    def _make_columns(self, block: RowBlock) -> Iterator[Any]:
        kinds, sizes = block.rows[:, entry.R_KIND], block.rows[:, entry.R_SIZE]
        for kind in np.unique(kinds).tolist():
            of_kind = kinds == kind
            self.packets[KINDS[kind]] += int(np.count_nonzero(of_kind))
            self.bytes[KINDS[kind]] += int(sizes[of_kind].sum())
        found, self._found = self._found, {}
        for r in sorted(found):
            yield self._cells(block.rows[r]), found[r]

    def _cells(self, row: Any) -> dict[str, Any]:
        time_ns, stream = int(row[entry.R_TIME]), int(row[entry.R_STREAM])
        return {
            "time": None if time_ns == NO_TIME else time_ns,
            "file": self._maker.files[row[entry.R_FILE]],
            "transport": _TRANSPORTS[max(0, -stream)],
            "stream": stream if stream >= 0 else None,
            "src": _address(row, entry.R_SRC_HIGH),
            "src_port": int(row[entry.R_PORTS]) >> 16,
            "dst": _address(row, entry.R_DST_HIGH),
            "dst_port": int(row[entry.R_PORTS]) & 0xFFFF,
            "kind": KINDS[row[entry.R_KIND]],
            "size": int(row[entry.R_SIZE]),
            "frame_offset": int(row[entry.R_FRAME]) >> entry.TUNNEL_BITS,
        }


class _FrameOffset(int):
    """The place of a frame in its file.

    Attributes:
        position: its place in the capture; see `spark_udfs.reassembly.chunks.position_of`.
    """

    position: int

    def __new__(cls, position: int) -> Self:
        """Take the place of a frame in the capture."""
        self = super().__new__(cls, position & (1 << OFFSET_BITS) - 1)
        self.position = position
        return self


def _address(row: Any, side: int) -> str:
    return address_of(int(row[side]), int(row[side + 1]), int(row[entry.R_IPV6]))
