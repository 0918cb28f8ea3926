"""Packets of captures as a DataFrame whose rows the tasks decode themselves, by ``mapInArrow``.

The driver plans the parts of the captures. This costs the JVM less than the data source ``msmq``, whose rows
are the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from msmqwire.analysis.dissection.message_security import Examiner, FileContent, contents_of
from msmqwire.analysis.protocols.readings import PROPOSED, NcpReadings
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import InvalidArgument
from msmqwire.tables import Condition, Where
from msmqwire.tables.columns import refuse_findings
from msmqwire.tables.filters import Filter, columns_of, conditions_of, meeting
from spark_udfs.source.options import (
    OVERLAP,
    SPLIT_SIZE,
    BadOption,
    Options,
    Paths,
    bad_option,
    paths_option,
)
from spark_udfs.source.packet_reader import PacketReader
from spark_udfs.source.part_tasks import frame_of_parts
from spark_udfs.source.schema import arrow_fields, packet_schema, selected, spark_schema
from spark_udfs.source.survey_tasks import surveys_by_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame(
    spark: SparkSession,
    paths: Paths,
    *,
    columns: Collection[str] | None = None,
    where: Where = (),
    ports: Collection[int] = (),
    body_limit: int | None = None,
    mode: str = "PERMISSIVE",
    split_size: int | str = SPLIT_SIZE,
    splits: str = "walked",
    overlap: int | str = OVERLAP,
    storage_options: StorageOptions = NO_OPTIONS,
    keys: FileContent | Iterable[FileContent] = (),
    certificates: FileContent | Iterable[FileContent] = (),
    readings: Readings = DEFAULT,
    ncp_readings: NcpReadings = PROPOSED,
) -> DataFrame:
    """Return the packets of captures with the rows of the data source ``msmq``, at less cost.

    The captures are divided into parts here, once: a file that is added or grows later changes nothing. They
    are decoded whenever the DataFrame is computed, with all its columns, whatever a query uses: name only the
    needed columns. Any session will do, the data source need not be registered.

    Args:
        spark: the session.
        paths: capture files, patterns, folders or URLs: one capture, in this order.
        columns: names of columns of `msmqwire.tables.COLUMNS`; by default the usual ones.
        where: conditions that all rows meet, as for `msmqwire.read_capture`. Conditions on time, endpoints
            and kind are checked before a packet is decoded. Times are compared in nanoseconds.
        ports: as for `msmqwire.dissect`.
        body_limit: the maximum of bytes in ``body``; None for all.
        mode: ``PERMISSIVE``, ``DROPMALFORMED`` or ``FAILFAST``, as of the data source. With the last one
            conditions are checked after the packets are.
        split_size: bytes of files for one task, also as ``512m``; 0: files are never split nor read together.
        splits: ``walked``, ``searched`` or ``exact``, as of the data source.
        overlap: bytes before a task's own that it reads to learn the state of connections.
        storage_options: as for `msmqwire.dissect`.
        keys, certificates, readings, ncp_readings: as for `msmqwire.dissect`; files are read here, not by the
            tasks.

    Raises:
        BadOption: an argument is not what it should be, a ValueError.
        InvalidValue: something is not a private key, or no certificate.
        FileNotFoundError: a path or pattern names no file.
        UnsupportedStore: the store of a URL can't be used.
        OSError: a file can't be read.
    """
    options = Options.parse(
        {
            "paths": paths_option(paths),
            "ports": ",".join(map(str, ports)),
            "bodyLimit": "none" if body_limit is None else str(body_limit),
            "mode": mode,
            "splitSize": str(split_size),
            "splits": splits,
            "overlap": str(overlap),
        }
    )
    keys, certificates = tuple(contents_of(keys)), tuple(contents_of(certificates))
    Examiner.from_files(keys, certificates)  # refuse an invalid key now, not in a task
    options = replace(
        options,
        keys=keys,
        certificates=certificates,
        readings=readings,
        ncp_readings=ncp_readings,
        storage_options=storage_options,
    )
    schema = spark_schema(_chosen(columns))
    where = _checked(where)
    reader = PacketReader(options, tuple(schema.names), arrow_fields(schema), tuple(where))
    parts = options.parts(surveys_by_tasks(spark) if options.splits == "exact" else None)
    return frame_of_parts(spark, parts, reader.read, schema)


def _chosen(columns: Collection[str] | None) -> pa.Schema:
    """The Arrow schema of these columns. Raises BadOption."""
    if columns is None:
        return packet_schema()
    if not columns or isinstance(columns, str):
        raise BadOption(f"columns: a list of names is wanted, not {columns!r}")
    return selected(packet_schema(on_request=True), columns)


def _checked(where: Where) -> Sequence[Condition]:
    """Return conditions that can't fail a task. Raises BadOption."""
    try:
        conditions = conditions_of(where)
        Filter(conditions)
        refuse_findings([column.name for column in columns_of(conditions)], "where")
    except InvalidArgument as exc:
        raise bad_option(exc) from exc
    nothing = pa.RecordBatch.from_pylist([], packet_schema(on_request=True))
    for condition in conditions:
        try:
            meeting(nothing, [condition])
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as exc:
            raise BadOption(f"where: {condition}: {exc}") from exc
    return conditions
