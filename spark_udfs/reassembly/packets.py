"""Exact packets, in any number of tasks: by exact parts, or by a shuffle of all segments.

For the shuffle, the segments of a connection, in both directions, are shuffled by their flow number, put in
the order of the capture and scanned as on a single machine. The result for a connection depends only on its
own segments and on the end of the capture, so the rows are the same.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from msmqwire.analysis.dissection import check_ports
from msmqwire.analysis.dissection.message_security import Examiner, FileContent, contents_of
from msmqwire.analysis.protocols.readings import PROPOSED, NcpReadings
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.names.nearest import unknown_name
from msmqwire.names.printable import counted
from msmqwire.tables.arrow.batch import BatchMaker
from msmqwire.tables.columns import BY_NAME, INT64
from msmqwire.tables.filters import Filter
from msmqwire.tables.part_reader import PartReader
from spark_udfs.reassembly.chunks import ChunkBoundaries
from spark_udfs.reassembly.flow_decoder import FlowDecoder
from spark_udfs.reassembly.packet_columns import FRAME_OFFSET, damage_row, packet_schema
from spark_udfs.reassembly.part_packets import packets_of_parts, plan_parts
from spark_udfs.reassembly.shuffle import PIECE_SIZE, Flows, load_flows
from spark_udfs.source.options import BATCH_ROWS as PART_BATCH_ROWS
from spark_udfs.source.options import SPLIT_SIZE, Options, Paths, paths_option
from spark_udfs.source.schema import spark_batches, spark_schema
from spark_udfs.source.survey_tasks import surveys_by_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Reassembly = Literal["auto", "parts", "shuffle"]
BATCH_ROWS: Final = 8192
_REASSEMBLIES: Final = ("auto", "parts", "shuffle")
_LOG: Final = logging.getLogger(__name__)


class ShuffleWarning(UserWarning):
    """Packets come by a shuffle of all segments, though parts were preferred."""


def packets(
    spark: SparkSession,
    paths: Paths,
    *,
    ports: Collection[int] = (),
    columns: Collection[str] | None = None,
    body_limit: int | None = None,
    partitions: int | None = None,
    piece_size: int | None = PIECE_SIZE,
    split_size: int | None = None,
    reassembly: Reassembly = "auto",
    storage_options: StorageOptions = NO_OPTIONS,
    keys: FileContent | Iterable[FileContent] = (),
    certificates: FileContent | Iterable[FileContent] = (),
    readings: Readings = DEFAULT,
    ncp_readings: NcpReadings = PROPOSED,
) -> DataFrame:
    """Return the packets of captures as `msmqwire.read_capture` reads them, however files are split.

    The captures are read once before it returns: by tasks, for exact parts by the driver if fewer than four
    tasks run at a time. The packets are read with the result. A truncated or damaged file has a row of kind
    Skipped with the error, without a time.

    Args:
        spark: a session, for a shuffle one with the data source ``msmq`` (`spark_udfs.register`).
        paths: capture files, patterns, folders or URLs: one capture, in this order.
        ports: as for `msmqwire.dissect`.
        columns: names of columns of `msmqwire.tables.COLUMNS`, and ``frame_offset``; by default all but
            ``raw``. ``stream`` is the flow number, and ``frame`` is null.
        body_limit: the maximum of bytes in ``body``.
        partitions: of a shuffle: the number of tasks that reassemble packets; by default as configured in the
            session.
        piece_size: of a shuffle: bytes of payload above which a connection is divided into chunks of about
            this size, each for a task; None to divide none.
        split_size: bytes of a file that one task reads.
        reassembly: ``parts``: the driver keeps the state of one reader where each task begins, so nothing is
            shuffled. ``shuffle``: segments are shuffled by connection. ``auto``: parts, unless the states of
            the capture take more than `msmqwire.tables.exact_parts.STATES_MAX`; then a `ShuffleWarning`
            says so. With ``parts`` there are fewer and larger ones then.
        storage_options: as for `msmqwire.dissect`, of values that JSON has.
        keys, certificates, readings, ncp_readings: as for `msmqwire.dissect`; files are read here, not by the
            tasks.

    Raises:
        InvalidArgument: a column or port does not exist, or an argument is not what it should be.
        BadOption: likewise; both are a ValueError.
        InvalidValue: something is not a private key, or no certificate.
        FileNotFoundError: a path or pattern names no file.
        OSError: a file can't be read.
    """
    if reassembly not in _REASSEMBLIES:
        raise unknown_name(reassembly, _REASSEMBLIES, "way to put packets together", path="reassembly")
    check_ports(ports)
    schema = packet_schema(columns)  # refuse unknown columns now, not after the survey
    keys, certificates = tuple(contents_of(keys)), tuple(contents_of(certificates))
    Examiner.from_files(keys, certificates)  # and refuse an invalid key
    if reassembly != "shuffle":
        size = SPLIT_SIZE if split_size is None else split_size
        options = Options.parse({"paths": paths_option(paths), "splitSize": str(size)})
        options = replace(
            options, ports=tuple(ports), ncp_readings=ncp_readings, storage_options=storage_options
        )
        plan = plan_parts(options, surveys_by_tasks(spark))
        if reassembly == "parts" or not plan.is_coarse:
            _LOG.info("packets by %d exact parts", len(plan.parts))
            reader = PartReader(
                ports=options.ports,
                body_limit=body_limit,
                batch_rows=PART_BATCH_ROWS,
                keys=keys,
                certificates=certificates,
                readings=readings,
                ncp_readings=ncp_readings,
            )
            return packets_of_parts(spark, plan.parts, reader, schema)
        warnings.warn(
            ShuffleWarning(
                "the state of a reader of this capture is too large to be kept for each task: packets come by"
                f" a shuffle of all segments, not by {counted(len(plan.parts), 'exact part')}"
            ),
            stacklevel=2,
        )
    flows = load_flows(
        spark,
        paths,
        ports=ports,
        piece_size=piece_size,
        split_size=split_size,
        partitions=partitions,
        storage_options=storage_options,
    )
    return packets_of(
        flows,
        columns=columns,
        body_limit=body_limit,
        partitions=partitions,
        keys=keys,
        certificates=certificates,
        readings=readings,
        ncp_readings=ncp_readings,
    )


def packets_of(
    flows: Flows,
    *,
    columns: Collection[str] | None = None,
    body_limit: int | None = None,
    partitions: int | None = None,
    keys: Collection[bytes] = (),
    certificates: Collection[bytes] = (),
    readings: Readings = DEFAULT,
    ncp_readings: NcpReadings = PROPOSED,
) -> DataFrame:
    """Return the packets of flows; see `packets`. Keys and certificates are contents of files."""
    stage = partial(
        _packet_stage,
        ports=flows.ports,
        columns=None if columns is None else tuple(columns),
        body_limit=body_limit,
        end_ns=flows.end_ns,
        boundaries=flows.boundaries,
        keys=tuple(keys),
        certificates=tuple(certificates),
        readings=readings,
        ncp_readings=ncp_readings,
    )
    schema = packet_schema(columns)
    rows = flows.shuffled(partitions).mapInArrow(stage, spark_schema(schema))
    if not flows.damaged:
        return rows
    damage_rows = [damage_row(*damaged) for damaged in flows.damaged]
    cells = [tuple(row.get(name) for name in schema.names) for row in damage_rows]
    return rows.unionAll(rows.sparkSession.createDataFrame(cells, rows.schema))


def _packet_stage(batches: Iterable[Any], **arguments: Any) -> Iterator[Any]:
    return spark_batches(packet_batches(batches, **arguments))


def packet_batches(
    batches: Iterable[Any],
    *,
    ports: Collection[int] = (),
    columns: Collection[str] | None = None,
    body_limit: int | None = None,
    end_ns: int = 0,
    boundaries: ChunkBoundaries | None = None,
    keys: Collection[bytes] = (),
    certificates: Collection[bytes] = (),
    readings: Readings = DEFAULT,
    ncp_readings: NcpReadings = PROPOSED,
) -> Iterator[Any]:
    """Yield the packets of segments as record batches with `packet_schema`; see `packets_of`.

    Args:
        batches: record batches with the columns `SEGMENT_COLUMNS`. All segments of a flow, or of a chunk of
            a divided flow, are consecutive, in the order of the capture.
        ports: as for `msmqwire.dissect`.
        end_ns: the time of the last TCP segment of the whole capture.
        boundaries: the chunk boundaries of divided flows.
    """
    schema = packet_schema(columns)
    # The decoder's frames are offsets; their numbers in the file are unknown.
    sources = {name: "frame" if name == FRAME_OFFSET.name else name for name in schema.names}
    decoded = [BY_NAME[name] for name in dict.fromkeys(sources.values())]
    examiner = Examiner.from_files(keys, certificates, readings)
    maker = BatchMaker(decoded, Filter(()), BATCH_ROWS, body_limit, examiner)
    decoder = FlowDecoder(maker, ports=ports, end_ns=end_ns, boundaries=boundaries, ncp_readings=ncp_readings)
    for batch in decoder.batches(batches):
        arrays = [
            pa.nulls(batch.num_rows, INT64) if name == "frame" else batch.column(sources[name])
            for name in schema.names
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
