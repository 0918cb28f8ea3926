"""Captures as columns: Arrow tables with one row for each packet, malformed packet or skipped range."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final, overload

from msmqwire.extras import importing

with importing():
    import pyarrow as pa

from msmqwire.analysis.dissection import Dissection, Source, dissect
from msmqwire.analysis.dissection.message_security import NOTHING_GIVEN, Examiner, FileContent
from msmqwire.analysis.protocols.readings import PROPOSED, NcpReadings
from msmqwire.capture.not_read import warn_of
from msmqwire.capture.record import RECORD_SIZE_MAX
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import CaptureWarning, InvalidArgument
from msmqwire.names.nearest import unknown_name
from msmqwire.names.printable import counted
from msmqwire.tables.columns import (
    BY_NAME,
    COLUMNS,
    FINDING_IDS,
    GENERIC_GROUPS,
    USUAL,
    Column,
    arrow_schema,
    unknown_column,
)
from msmqwire.tables.expression import Expression
from msmqwire.tables.expression_parser import InvalidExpression, parse_expression
from msmqwire.tables.filters import Condition, Filter, Where, conditions_of, need_findings

__all__ = [
    "COLUMNS",
    "PACKET_COLUMNS",
    "CaptureWarning",
    "Column",
    "Condition",
    "Expression",
    "InvalidExpression",
    "Where",
    "arrow_schema",
    "parse_expression",
    "read_capture",
    "read_packets",
    "record_batches",
]

BATCH_ROWS = 65_536
PACKET_COLUMNS: Final[tuple[Column, ...]] = (
    *(BY_NAME[name] for name in ("kind", "size", "error", "error_path", "error_offset")),
    *(column for column in USUAL if column.group not in ("where", *GENERIC_GROUPS)),
)
"""The columns that depend only on the bytes of a packet, not on a capture or a request before it."""


def chosen_columns(names: Collection[str] | None) -> list[Column]:
    """Return the columns with these names, in their order; those of `USUAL` for None.

    Raises InvalidArgument for an unknown one, which names the nearest ones.
    """
    if names is None:
        return list(USUAL)
    if isinstance(names, str):
        raise InvalidArgument(f"a list of names is wanted, not {names!r:.80}", path="columns")
    for name in names:
        if name not in BY_NAME:
            raise unknown_column(name)
    return [BY_NAME[name] for name in names]


def record_batches(
    dissection: Dissection,
    *,
    columns: Collection[str] | None = None,
    where: Where = (),
    batch_rows: int = BATCH_ROWS,
    body_limit: int | None = None,
    workers: int = 1,
) -> Iterator[Any]:
    """Yield the record batches of a dissection; see `read_capture`.

    Raises InvalidArgument: findings are asked for, and the dissection does not judge packets, or not from
    the beginning of a capture.
    """
    from msmqwire.tables.arrow.batch import BatchMaker
    from msmqwire.tables.compiled import engine
    from msmqwire.tables.decoder import Decoder
    from msmqwire.tables.parallel_decoder import ParallelDecoder
    from msmqwire.tables.portable import portable_batches

    chosen = chosen_columns(columns)
    finds = need_findings(columns or (), conditions_of(where))
    if finds:
        _refuse_warm_up(dissection.warm_up)
        if not dissection.tracker.lints:
            raise InvalidArgument("the packets are not judged: lint is off", path=FINDING_IDS)
    # With keys there are findings about signatures, which the compiled judge does not know.
    if engine.chosen().name == engine.PORTABLE or (finds and dissection.examiner.was_given_any):
        return portable_batches(dissection, chosen, Filter(where), batch_rows, body_limit)

    def maker(examiner: Examiner) -> BatchMaker:
        return BatchMaker(chosen, Filter(where), batch_rows, body_limit, examiner)

    if workers == 1:
        return Decoder(dissection, maker(dissection.examiner)).batches()
    makers = [maker(dissection.examiner.separate()) for _ in range(workers)]
    return ParallelDecoder(dissection, makers, batch_rows).batches()


def _refuse_warm_up(warm_up: int) -> None:
    """Raise InvalidArgument for a capture of which findings are wanted, but not from its beginning."""
    if warm_up:
        raise InvalidArgument(
            "sessions are judged from the beginning of a capture: leave out warm_up", path=FINDING_IDS
        )


@overload
def read_capture(
    sources: Source | Iterable[Source],
    *,
    columns: Collection[str] | None = None,
    where: Where = (),
    batch_rows: None = None,
    ports: Collection[int] = (),
    body_limit: int | None = None,
    flush: bool = True,
    warm_up: int = 0,
    record_size_max: int = RECORD_SIZE_MAX,
    storage_options: StorageOptions = NO_OPTIONS,
    keys: FileContent | Iterable[FileContent] = (),
    certificates: FileContent | Iterable[FileContent] = (),
    readings: Readings = DEFAULT,
    ncp_readings: NcpReadings = PROPOSED,
    workers: int = 1,
) -> pa.Table: ...


@overload
def read_capture(
    sources: Source | Iterable[Source],
    *,
    columns: Collection[str] | None = None,
    where: Where = (),
    batch_rows: int,
    ports: Collection[int] = (),
    body_limit: int | None = None,
    flush: bool = True,
    warm_up: int = 0,
    record_size_max: int = RECORD_SIZE_MAX,
    storage_options: StorageOptions = NO_OPTIONS,
    keys: FileContent | Iterable[FileContent] = (),
    certificates: FileContent | Iterable[FileContent] = (),
    readings: Readings = DEFAULT,
    ncp_readings: NcpReadings = PROPOSED,
    workers: int = 1,
) -> pa.RecordBatchReader: ...


def read_capture(
    sources: Source | Iterable[Source],
    *,
    columns: Collection[str] | None = None,
    where: Where = (),
    batch_rows: int | None = None,
    ports: Collection[int] = (),
    body_limit: int | None = None,
    flush: bool = True,
    warm_up: int = 0,
    record_size_max: int = RECORD_SIZE_MAX,
    storage_options: StorageOptions = NO_OPTIONS,
    keys: FileContent | Iterable[FileContent] = (),
    certificates: FileContent | Iterable[FileContent] = (),
    readings: Readings = DEFAULT,
    ncp_readings: NcpReadings = PROPOSED,
    workers: int = 1,
) -> Any:
    """Read captures as an Arrow table, or as a reader of record batches in bounded memory.

    Args:
        sources: as for `msmqwire.dissect`.
        columns: names of `COLUMNS`; by default all but ``raw``, ``body_format``, ``body_text``, ``headers``
            and ``finding_ids``. With the latter, also in conditions, the packets are judged.
        where: conditions that all rows meet: ``[("kind", "==", "UserMessage"), ("dst_port", "in", [1801])]``.
            Those on time, endpoints and kind are applied before a packet's fields are read. Or an expression:
            ``"kind == 'UserMessage' and label like 'order%'"``, see `parse_expression`.
        batch_rows: rows of a batch; with it the result is a `pyarrow.RecordBatchReader`.
        ports: as for `msmqwire.dissect`.
        body_limit: bytes of ``body``, at most; ``body_size`` is the full size.
        flush, warm_up, record_size_max, storage_options: as for `msmqwire.dissect`.
        keys, certificates, readings, ncp_readings: as for `msmqwire.dissect`. ``body`` and ``body_size`` are
            of the body in clear where it could be decrypted.
        workers: threads that make the columns; they take turns at following the connections. The rows and
            their order are the same for any number; with more than one, batches may be smaller, and the
            sources are read ahead in these threads.

    A truncated or damaged file is reported by a `CaptureWarning` when its end is reached, and so are frames
    that were not read though packets may be in them, as those of unknown link types and in tunnels; files in
    a folder that are not captures are passed over, and named by one warning at once.

    Raises:
        FileNotFoundError: a path or pattern names no file.
        UnsupportedStore: the store of a URL can't be used.
        OSError: a file can't be read.
        InvalidArgument: no such column or operator, a value that a column can't have, an expression that
            can't be read, no such port, or no worker. Its text names the nearest right ones.
        InvalidValue: something is not a private key, or no certificate.
    """
    schema = arrow_schema(tuple(chosen_columns(columns)))
    where = conditions_of(where)
    Filter(where)  # raises now, not with the first batch
    if workers < 1:
        raise InvalidArgument(f"at least one is wanted, not {workers}", path="workers")
    finds = need_findings(columns or (), where)
    if finds:
        _refuse_warm_up(warm_up)
    if body_limit is not None and body_limit < 0:
        raise InvalidArgument(f"a body has at least 0 bytes, not {body_limit}", path="body_limit")
    dissection = dissect(
        sources,
        ports=ports,
        lint=finds,
        flush=flush,
        warm_up=warm_up,
        record_size_max=record_size_max,
        storage_options=storage_options,
        keys=keys,
        certificates=certificates,
        readings=readings,
        ncp_readings=ncp_readings,
    )

    def rows() -> Iterator[Any]:
        yield from record_batches(
            dissection,
            columns=columns,
            where=where,
            batch_rows=batch_rows or BATCH_ROWS,
            body_limit=body_limit,
            workers=workers,
        )
        for error in dissection.errors:
            warnings.warn(CaptureWarning(error), stacklevel=3)
        warn_of(dissection.frames_not_read, stacklevel=4)

    reader = pa.RecordBatchReader.from_batches(schema, rows())
    return reader if batch_rows else reader.read_all()


def read_packets(
    raw: Any,
    *,
    columns: Sequence[str] | None = None,
    protocols: Any = None,
    examiner: Examiner = NOTHING_GIVEN,
) -> Any:
    """Return the columns of whole packets, one in each value of an array.

    Args:
        raw: a `pyarrow.Array` or `pyarrow.ChunkedArray` of bytes.
        columns: names of `PACKET_COLUMNS`; by default all.
        protocols: an array of text of the same length: for each value ``session``, ``ping`` or
            ``remote_read``. For null, and for None, a value with the size and the signature of a Ping is one,
            and any other is a packet of a session.
        examiner: decrypts bodies and verifies signatures.

    Returns:
        A `pyarrow.ChunkedArray` of structs with a field for each column; null where the value is null.
        Malformed packets have the kind Malformed, and ``error`` says why.

    Raises:
        InvalidArgument: no such column, or none at all; not as many protocols as values.
    """
    from msmqwire.tables.packet_array import PacketReader

    names = [column.name for column in PACKET_COLUMNS] if columns is None else columns
    chosen = chosen_columns(names)
    if not chosen:
        raise InvalidArgument("columns of packets are wanted, not none", path="columns")
    for column in chosen:
        if column not in PACKET_COLUMNS:
            raise unknown_name(
                column.name, (one.name for one in PACKET_COLUMNS), "column of packets alone",
                path="columns", see="those of the capture are for read_capture",
            )  # fmt: skip
    if protocols is not None and len(protocols) != len(raw):
        raise InvalidArgument(
            f"{counted(len(protocols), 'protocol')} for {counted(len(raw), 'value')}", path="protocols"
        )
    arrays: list[Any] = []
    first = 0
    for chunk in raw.chunks if isinstance(raw, pa.ChunkedArray) else [raw]:
        part = None if protocols is None else protocols.slice(first, len(chunk))
        if isinstance(part, pa.ChunkedArray):
            part = part.combine_chunks()
        first += len(chunk)
        if len(chunk):
            arrays.extend(PacketReader(chunk, chosen, part, BATCH_ROWS, examiner).arrays())
    return pa.chunked_array(arrays, pa.struct(list(arrow_schema(tuple(chosen)))))
