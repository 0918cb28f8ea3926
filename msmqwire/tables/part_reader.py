"""The packets of a part of a capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import BinaryIO, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.analysis.dissection import dissect
from msmqwire.analysis.dissection.message_security import Examiner
from msmqwire.analysis.protocols.readings import PROPOSED, NcpReadings
from msmqwire.capture.window import Window
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import CaptureError
from msmqwire.tables import BATCH_ROWS, Condition, chosen_columns, record_batches
from msmqwire.tables.columns import BY_NAME, FINDING_IDS, PAIR_GROUP, refuse_findings
from msmqwire.tables.exact_parts import ExactPart
from msmqwire.tables.filters import Filter, need_findings
from msmqwire.tables.flow_number import FlowNumbers
from msmqwire.tables.parts import Part

ENDPOINTS: Final = ("transport", "src", "src_port", "dst", "dst_port", "tunnel")
"""The columns that flow numbers are made of."""


@dataclass(frozen=True)
class PartReader:
    """Reads the packets of parts, as `msmqwire.read_capture` reads those of a capture.

    With several parts, ``stream`` is the flow number (`flow_number`), ``frame`` is null for files that are
    split, and so are ``exchange`` and ``one_sided``, which depend on earlier frames; exact parts have all of
    them as one reader does.

    Attributes:
        ports: as for `msmqwire.dissect`.
        body_limit: the maximum of bytes in ``body``; None for all.
        batch_rows: rows of a batch.
        keys: contents of files with private keys of receiving queue managers.
        certificates: contents of files with certificates of senders.
        readings: readings of the specification for signatures and session keys.
        ncp_readings: byte orders of the NCP fields that sources dispute.
    """

    ports: tuple[int, ...] = ()
    body_limit: int | None = None
    batch_rows: int = BATCH_ROWS
    keys: tuple[bytes, ...] = field(default=(), repr=False)
    certificates: tuple[bytes, ...] = ()
    readings: Readings = DEFAULT
    ncp_readings: NcpReadings = PROPOSED

    def batches(
        self,
        part: Part | ExactPart,
        columns: Sequence[str],
        where: Sequence[Condition] = (),
        *,
        errors: list[CaptureError] | None = None,
        not_read: Counter[str] | None = None,
        states: list[bytes] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part as record batches with these columns.

        Args:
            part: the part to read.
            columns: names of `COLUMNS`, in their order.
            where: conditions that all rows meet.
            errors: gets the errors in the files of the part, with their offsets there, once all is read.
            not_read: gets the counts of frames of the part that were not read, by reason; likewise.
            states: gets the state after an exact part, for that of the one that follows it; likewise.

        Raises:
            OSError: a file can't be read.
            ValueError: no such column or operator; findings, for a part that does not begin where its
                capture does.
        """
        finds = need_findings(columns, where)
        if finds and not _is_beginning(part):
            refuse_findings([FINDING_IDS])
        if isinstance(part, ExactPart):
            yield from self._exact_batches(part, columns, where, errors, not_read, states)
            return
        flows = None if part.is_only else FlowNumbers()
        decoded = list(columns)
        if "frame" in columns and part.split_files:
            decoded.append("file")
        if "stream" in columns and flows is not None:
            decoded += ENDPOINTS
        with ExitStack() as stack:
            warm_up = part.warm_up_windows()
            streams = [stack.enter_context(window.open()) for window in (*warm_up, *part.windows)]
            dissection = dissect(
                cast(list[BinaryIO], streams),
                ports=self.ports,
                lint=finds,
                flush=part.is_last,
                warm_up=len(warm_up),
                successor_ns=0 if part.is_last else part.joined_ns(),
                keys=self.keys,
                certificates=self.certificates,
                readings=self.readings,
                ncp_readings=self.ncp_readings,
            )
            batches = record_batches(
                dissection,
                columns=list(dict.fromkeys(decoded)),
                where=where,
                batch_rows=self.batch_rows,
                body_limit=self.body_limit,
            )
            for batch in batches:
                arrays = [_column(name, batch, part, flows) for name in columns]
                yield pa.RecordBatch.from_arrays(
                    arrays, schema=pa.schema([batch.schema.field(name) for name in columns])
                )
            if errors is not None:
                located = (_located_in(part.windows, error) for error in dissection.errors)
                errors += [error for error in located if error is not None]
            if not_read is not None:
                not_read += dissection.decoder.frames_not_read()

    def _exact_batches(
        self,
        part: ExactPart,
        columns: Sequence[str],
        where: Sequence[Condition],
        errors: list[CaptureError] | None,
        not_read: Counter[str] | None,
        states: list[bytes] | None,
    ) -> Iterator[pa.RecordBatch]:
        from msmqwire.tables.arrow.batch import BatchMaker
        from msmqwire.tables.resumable_decoder import ResumableDecoder

        examiner = Examiner.from_files(self.keys, self.certificates, self.readings)
        maker = BatchMaker(chosen_columns(columns), Filter(where), self.batch_rows, self.body_limit, examiner)
        if part.state:
            decoder = ResumableDecoder.resume(part.state, maker)
        else:
            dissection = dissect([], ports=self.ports, lint=False, ncp_readings=self.ncp_readings)
            decoder = ResumableDecoder(dissection, maker, by_offset=part.by_offset)
        yield from decoder.read(part.windows)
        yield from decoder.finish(at_end=part.is_last)
        if errors is not None:
            errors += decoder.dissection.errors
        if not_read is not None:
            not_read += decoder.dissection.decoder.frames_not_read()
        if states is not None:
            states.append(decoder.save())


def _is_beginning(part: Part | ExactPart) -> bool:
    """Whether a part begins where its capture does, and is for a reader that judges from there on."""
    return isinstance(part, Part) and not part.file_index and not part.windows[0].start


def _column(name: str, batch: pa.RecordBatch, part: Part, flows: FlowNumbers | None) -> pa.Array:
    if name == "frame" and part.split_files:
        is_split = pc.is_in(batch.column("file"), value_set=pa.array(sorted(part.split_files)))
        return pc.if_else(is_split, pa.scalar(None, pa.int64()), batch.column("frame"))
    if name == "stream" and flows is not None:
        return flows.column(batch)
    if BY_NAME[name].group == PAIR_GROUP and flows is not None:
        return pa.nulls(batch.num_rows, BY_NAME[name].type)
    return batch.column(name)


def _located_in(windows: Sequence[Window], error: CaptureError) -> CaptureError | None:
    """An error in one of these windows, with its offset in the file; None for one in another file."""
    for window in windows:
        if window.path == error.file:
            return window.located(error)
    return None
