"""The items of captures by the compiled scan: the same as those of the generic reader, and their findings.

An item of a session parses its packet when it is asked for it. With lint, the findings are made at once,
as they depend on the packets before; see `msmqwire.tables.row_judge`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from msmqwire.analysis.dissection import Dissection, Item
from msmqwire.analysis.dissection.lazy_item import UNREAD, LazyItem
from msmqwire.analysis.lint import Finding
from msmqwire.capture.ip import Datagram
from msmqwire.capture.record import time_or_none
from msmqwire.capture.tunnels import encapsulation_of
from msmqwire.tables.arrow.batch import BatchMaker
from msmqwire.tables.arrow.refusals import error_of_row, words_of_row
from msmqwire.tables.arrow.tunnel_columns import TunnelTexts
from msmqwire.tables.compiled import engine
from msmqwire.tables.compiled import state as entry
from msmqwire.tables.compiled.packet import BAD, KINDS, SKIPPED
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.decoder import Decoder
from msmqwire.tables.row_choice import RowChoice
from msmqwire.tables.row_judge import RowJudge, Sender
from msmqwire.tables.scanning.flow_keys import address_of
from msmqwire.tables.session_rows import Places, SessionRows

_FRAMES: Final = 1 << 12
"""Frames of packets that came in several for which there is room at first."""


class _ItemsKept:
    """In place of the maker of batches: items stay as they are."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.tunnels = TunnelTexts()
        self.needs_fields = False

    def extra(self, item: Item) -> Item:
        """An item of the generic reader stays as it is."""
        return item

    keeps_items: Final = True
    shows_findings: Final = False


class ItemReader(Decoder):
    """Reads the items of a dissection, in place of its own reader.

    Args:
        dissection: the captures; nothing was read of them.
        only_findings: whether only items with findings are wanted.
    """

    def __init__(self, dissection: Dissection, *, only_findings: bool = False) -> None:
        self._kept = _ItemsKept()
        super().__init__(dissection, cast(Any, self._kept))
        self._only_findings = only_findings
        self._state[entry.KEEPS_ORIGINS] = 1
        self._frame_lists = np.zeros(_FRAMES, np.int64)
        self._keeps_rows = False
        self._batch_maker: BatchMaker | None = None
        self._choice: RowChoice | None = None
        if dissection.choice is not None:
            self._choice = RowChoice(dissection, *dissection.choice)
        self.judge = RowJudge(self.tcp_ports) if dissection.tracker.lints else None

    def items(self) -> Iterator[Item]:
        """Yield the items."""
        yield from self.batches()

    def parts(self) -> Iterator[Item | SessionRows]:
        """Yield the items, rows of sessions that follow each other together; see `Dissection.parts`."""
        self._keeps_rows = True
        yield from self.batches()

    def parts_and_batches(self, maker: BatchMaker) -> Iterator[Item | SessionRows | pa.RecordBatch]:
        """Yield the parts as `parts` does, and the record batches of the same packets, each after them."""
        maker.files, maker.tunnels = self._maker.files, self._maker.tunnels
        self._batch_maker, self._kept.needs_fields = maker, True
        yield from self.parts()

    # -- in place of the parts of `Decoder` that make columns -----------------------------------------

    def _finish_columns(self) -> Iterator[Any]:
        return iter(()) if self._batch_maker is None else self._batch_maker.finish()

    def _find_files(self) -> None:
        """Frames are located by their numbers in all files together."""

    def _take_segment(self, datagram: Datagram) -> Iterator[Any]:
        if len(datagram.frames) > 1:
            self._dissection.tracker.fragments.add(datagram.frames)
        yield from super()._take_segment(datagram)

    def _make_columns(self, block: RowBlock) -> Iterator[Any]:
        """Yield the items of a block of rows, or its parts."""
        if self._choice is not None:
            found = {} if self.judge is None else dict(self._judged(block))
            for r in self._chosen(self._choice, block):
                item = self._item(block.rows[r].tolist(), block, r, *found.get(r, ([], UNREAD)))
                if item.findings or not self._only_findings:
                    yield item
        elif self._keeps_rows:
            yield from self._parts(block)
            if self._batch_maker is not None:
                yield from self._batches_of(block, self._batch_maker)
        elif self.judge is None:
            yield from self._all(block, {})
        elif not self._only_findings:
            yield from self._all(block, dict(self._judged(block)))
        else:
            found = dict(self._judged(block))
            given = np.flatnonzero(block.rows[:, entry.R_EXTRA] >= 0).tolist()
            chosen = sorted([r for r, (findings, _) in found.items() if findings] + given)
            rows = block.rows[chosen].tolist()
            for r, row in zip(chosen, rows, strict=True):
                item = self._item(row, block, r, *found.get(r, ([], UNREAD)))
                if item.findings:
                    yield item

    def _chosen(self, choice: RowChoice, block: RowBlock) -> list[int]:
        """Return the rows that are wanted; count the others."""
        chosen = choice.of(
            block, self._extras, lambda r: self._item(block.rows[r].tolist(), block, r, [], UNREAD)
        )
        self._dissection.left_out += len(block.rows) - len(chosen)
        return chosen

    def _judged(self, block: RowBlock) -> Iterator[tuple[int, tuple[list[Finding], Any]]]:
        """Yield the rows that may have findings, with these and the packet, if it was parsed."""
        assert self.judge is not None
        for r, suspect in self.judge.suspects(block):
            findings = self.judge.findings(suspect, partial(self._sender, block, r))
            yield r, (findings, suspect.packet if suspect.was_parsed else UNREAD)

    def _sender(self, block: RowBlock, r: int) -> Sender:
        row = block.rows[r].tolist()
        file, frames = self._dissection.locate(self._frames_of(row))
        return Sender(_address(row), file, frames[-1])

    def _all(self, block: RowBlock, found: dict[int, tuple[list[Finding], Any]]) -> Iterator[Item]:
        for r, row in enumerate(block.rows.tolist()):
            yield self._item(row, block, r, *found.get(r, ([], UNREAD)))

    def _parts(self, block: RowBlock) -> Iterator[Item | SessionRows]:
        found = {} if self.judge is None else dict(self._judged(block))

        def item(r: int) -> Item:
            return self._item(block.rows[r].tolist(), block, r, *found.get(r, ([], UNREAD)))

        findings = {r: of_row for r, (of_row, _) in found.items() if of_row}
        first = 0
        for r in [*np.flatnonzero(block.rows[:, entry.R_EXTRA] >= 0).tolist(), len(block.rows)]:
            if first < r:
                yield SessionRows(block, range(first, r), findings, item, partial(self._places, block))
            if r < len(block.rows):
                yield item(r)
            first = r + 1

    def _batches_of(self, block: RowBlock, maker: BatchMaker) -> Iterator[Any]:
        """Yield the batches that a block of rows fills; it is changed, as nobody needs it any more."""
        super()._find_files()
        extras: list[Any] = []
        for r in np.flatnonzero(block.rows[:, entry.R_EXTRA] >= 0).tolist():
            row = block.rows[r]
            item = self._extras[row[entry.R_EXTRA]]
            row[entry.R_EXTRA] = entry.NO_EXTRA
            if not self._is_in_its_bytes(item):
                row[entry.R_EXTRA] = len(extras)
                extras.append(maker.extra(item))
        yield from maker.add(block, extras)

    def _item(self, row: list[int], block: RowBlock, r: int, findings: list[Finding], packet: Any) -> Item:
        extra = row[entry.R_EXTRA]
        if extra >= 0:
            item: Item = self._extras[extra]
            return item
        kind, start = row[entry.R_KIND], row[entry.R_START]
        carriers = self._frames_of(row)
        file, frames = self._dissection.locate(carriers)
        raw, reason, error = b"", "", None
        if kind == SKIPPED:
            packet, reason = None, words_of_row(block.field_offsets[r].tolist()).why
        else:
            raw = block.memory[start : start + row[entry.R_LENGTH]].tobytes()
            if kind == BAD:
                packet, error = None, error_of_row(block.field_offsets[r].tolist())
        ports = row[entry.R_PORTS]
        return LazyItem(
            file, time_or_none(row[entry.R_TIME]), frames, "tcp", row[entry.R_STREAM],
            _address(row), ports >> 16, _address(row, entry.R_DST_HIGH), ports & 0xFFFF,
            packet, KINDS[kind], row[entry.R_SIZE], findings, error, raw, reason,
            None, None, self._dissection.examiner, None, encapsulation_of(carriers[-1]),
        )  # fmt: skip

    def _places(self, block: RowBlock, within: range) -> Places:
        """Return where rows without an item of the generic reader were captured."""
        rows, dissection = block.rows[within.start : within.stop], self._dissection
        first = (rows[:, entry.R_FRAME] >> entry.TUNNEL_BITS) + self._frames_before
        last = first.copy()
        if dissection.tracker.fragments.has_any:
            for r, row in enumerate(rows.tolist()):
                frames = self._frames_of(row)
                first[r], last[r] = frames[0], frames[-1]
        else:
            several = np.flatnonzero(rows[:, entry.R_FRAMES] >= 0)
            at = rows[several, entry.R_FRAMES] + 1
            bounds = np.column_stack([at, at + self._frame_lists[at - 1]]).ravel()
            codes = np.append(self._frame_lists, 0)  # a bound may be the end of the array
            first[several] = np.minimum.reduceat(codes, bounds)[::2] >> entry.TUNNEL_BITS
            last[several] = np.maximum.reduceat(codes, bounds)[::2] >> entry.TUNNEL_BITS
        if len(dissection.files) == 1 or dissection.numbers_across:
            return Places(dissection.files[-1:], np.zeros(len(rows), np.int64), first, last)
        (_, before), (file, before_last) = (
            np.array([dissection.file_of(frame) for frame in frames.tolist()]).T for frames in (first, last)
        )
        return Places(dissection.files, file, first - before, last - before_last)

    def _frames_of(self, row: list[int]) -> tuple[int, ...]:
        """Return the frames that carried a row, numbered through all files, in the order of the capture."""
        at = row[entry.R_FRAMES]
        if at < 0:
            codes: Sequence[int] = (row[entry.R_FRAME] + (self._frames_before << entry.TUNNEL_BITS),)
        else:
            codes = sorted(set(self._frame_lists[at + 1 : at + 1 + int(self._frame_lists[at])].tolist()))
        frames = tuple(map(self._encapsulations.frame, codes))
        return self._dissection.tracker.fragments.of(frames)


def _address(row: list[int], side: int = entry.R_SRC_HIGH) -> str:
    return address_of(row[side], row[side + 1], row[entry.R_IPV6])


def usual_reader(dissection: Dissection, *, only_findings: bool) -> ItemReader | None:
    """Return the reader of a dissection; None if the generic one is faster: without the compiled library."""
    if engine.chosen().name == engine.PORTABLE:
        return None
    return ItemReader(dissection, only_findings=only_findings)
