"""Both finders of packets beside each other, fed with one stream, and the bytes that they look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from msmqwire.analysis.dissection import finder as finder_module
from msmqwire.analysis.dissection.finder import ScanResult
from msmqwire.analysis.dissection.skip_reasons import Why
from msmqwire.schema import Record
from msmqwire.tables.compiled import finding, pending
from msmqwire.tables.compiled.breaks import end_packets
from msmqwire.tables.compiled.delivery import deliver
from msmqwire.tables.compiled.flow_table import FLOW_FIELDS, IN_DOUBT, LOSS, MODE, MSMQ, SEG_FIELDS
from msmqwire.tables.compiled.generated import SLOTS
from msmqwire.tables.compiled.network import HEADER_FIELDS
from msmqwire.tables.compiled.packet import KINDS
from msmqwire.tables.compiled.scan_arrays import ScanArrays
from msmqwire.tables.compiled.state import (
    ARENA,
    ARENA_END,
    EVENT_FRAME,
    EVENT_NS,
    R_KIND,
    R_SIZE,
    R_TIME,
    ROW,
    ROWS,
    STATE,
    TUNNEL_BITS,
)
from msmqwire.tables.compiled.stop_codes import CONTINUE, StopCode
from tests.support.capture.finders import PacketFinder

Result = tuple[str, int, int, int]
"""A kind of row, its size, when it was completed, and when it was found: by the number of the segment."""


class Work:
    """Counts the bytes that functions are called with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes, self._monkeypatch = 0, monkeypatch

    def watch(self, module: Any, name: str, size_of: Callable[[tuple[Any, ...], Any], int]) -> None:
        """Count the calls of a function of a module; the size is told of the arguments and the result."""
        watched = getattr(module, name)

        def counted(*arguments: Any, **options: Any) -> Any:
            result = watched(*arguments, **options)
            self.bytes += max(0, int(size_of(arguments, result)))
            return result

        self._monkeypatch.setattr(module, name, counted)


class Entries(np.ndarray[Any, Any]):
    """Buffered segments, which count the accesses to each."""

    count = 0

    def __getitem__(self, index: Any) -> Any:
        if np.ndim(self) == 2:
            Entries.count += 1
        return super().__getitem__(index)


class Compiled:
    """The compiled finder, as Python."""

    def __init__(self, work: Work, room: int, *, midstream: bool) -> None:
        self.results = list[Result]()
        self._flow = np.zeros(FLOW_FIELDS, np.int64)
        self._flow[MODE] = MSMQ
        if midstream:
            self._flow[LOSS], self._flow[IN_DOUBT] = int(Why.BEGINS_INSIDE), 1
        state = np.zeros(STATE, np.int64)
        self._arena = 1 << 16
        state[ARENA], state[ARENA_END] = self._arena, self._arena + room
        self._arrays = ScanArrays(
            state, np.zeros(self._arena + room, np.uint8), np.zeros(HEADER_FIELDS, np.int64),
            np.zeros((4096, SEG_FIELDS), np.int64).view(Entries), np.zeros(room, np.uint8),
            np.zeros((8192, ROW), np.int64), np.zeros((8192, SLOTS), np.int32),
            np.zeros(FLOW_FIELDS + STATE, np.int64), np.zeros(0, np.int64),
        )  # fmt: skip
        work.watch(finding, "copy_packet", lambda arguments, _: arguments[-1])
        for module in (finding, pending):
            work.watch(module, "copy", lambda arguments, _: arguments[2])
        work.watch(finding, "find_header", lambda a, at: (a[2] if at < 0 else at) - a[1])
        work.watch(finding, "session_packet", lambda arguments, _: arguments[2] - arguments[1])

    def feed(self, data: bytes, number: int) -> None:
        state = self._arrays.state
        state[EVENT_FRAME], state[EVENT_NS] = number << TUNNEL_BITS, number
        self._arrays.memory[: len(data)] = np.frombuffer(data, np.uint8)
        while (stop_code := deliver(self._arrays, self._flow, 0, len(data))) != CONTINUE:
            self._make_room(stop_code)
        self._take_rows()

    def end(self) -> None:
        while (stop_code := end_packets(self._arrays, self._flow, False)) != CONTINUE:
            self._make_room(stop_code)
        self._take_rows()

    def _make_room(self, stop_code: int) -> None:
        """Double a full list."""
        state, _, _, segments, bytes_, *_ = self._arrays
        if stop_code == StopCode.PENDING_FULL:
            self._arrays = self._arrays._replace(
                pending_segments=np.concatenate([segments, np.zeros_like(segments)]).view(Entries),
                pending_bytes=np.concatenate([bytes_, np.zeros_like(bytes_)]),
            )
            return
        assert stop_code == StopCode.ARENA_FULL
        memory = self._arrays.memory
        self._arrays = self._arrays._replace(memory=np.concatenate([memory, np.zeros_like(memory)]))
        state[ARENA_END] += len(memory)

    def _take_rows(self) -> None:
        state, rows = self._arrays.state, self._arrays.rows
        self.results += [
            (KINDS[row[R_KIND]], int(row[R_SIZE]), int(row[R_TIME]), int(state[EVENT_NS]))
            for row in rows[: state[ROWS]]
        ]
        state[ROWS], state[ARENA] = 0, self._arena


class Portable:
    """The finder in Python."""

    def __init__(self, work: Work, room: int, *, midstream: bool) -> None:
        self.results, self._number = list[Result](), 0
        self._finder = PacketFinder(midstream=midstream)
        work.watch(finder_module, "parse", lambda arguments, _: len(arguments[0]))
        work.watch(finder_module, "may_hide_packet", lambda arguments, _: len(arguments[0]))
        work.watch(finder_module, "well_formed", lambda arguments, _: arguments[2] - arguments[1])
        for name in ("find_header", "find_whole_packet"):
            work.watch(finder_module, name, lambda a, at: (len(a[0]) if at < 0 else at) - a[1])

    def feed(self, data: bytes, number: int) -> None:
        self._number = number
        self._take(self._finder.feed(data, number, number))

    def end(self) -> None:
        self._take(self._finder.end())

    def _take(self, results: list[ScanResult]) -> None:
        for result in results:
            kind = "Skipped" if result.reason else "Malformed"
            if isinstance(result.packet, Record):
                kind = result.packet.schema.name
            self.results.append((kind, result.size, result.time_ns, self._number))


def run(finder: Compiled | Portable, data: bytes, segment: int) -> list[Result]:
    """Feed a stream in segments; return the results."""
    for number, at in enumerate(range(0, len(data), segment), 1):
        finder.feed(data[at : at + segment], number)
    finder.end()
    return finder.results
