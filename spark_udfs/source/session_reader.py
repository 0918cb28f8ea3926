"""The table of sessions, made by a single task from capture files."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from msmqwire.capture import Datagram, IpDecoder, open_records
from msmqwire.capture.record import NO_TIME
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.capture.tcp import IDLE_NS_MAX
from msmqwire.errors import CaptureError
from msmqwire.tables import CaptureWarning
from msmqwire.tables.flow_number import flow_number
from spark_udfs.source.options import Options
from spark_udfs.source.schema import arrow_fields, as_spark, checked_columns, row_batches
from spark_udfs.source.session_table import SESSION_SCHEMA, FlowSessions


class SessionReader(DataSourceReader):
    """Reads the table of sessions, in one task."""

    def __init__(self, options: Options, schema: Any) -> None:
        self._options = options
        self._names = checked_columns(schema, SESSION_SCHEMA, None)
        self._schema = arrow_fields(schema)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for batch in session_batches(
            self._options.files(), self._options.ports, storage_options=self._options.storage_options
        ):
            yield as_spark([batch.column(name) for name in self._names], self._schema)


def session_batches(
    paths: Iterable[str], ports: Collection[int] = (), *, storage_options: StorageOptions = NO_OPTIONS
) -> Iterator[pa.RecordBatch]:
    """Yield the sessions of captures as record batches with `SESSION_SCHEMA`.

    A connection that has been silent for `IDLE_NS_MAX` is reported once a later segment shows it, the others
    at the end. A truncated or damaged file is read as far as possible, with a `CaptureWarning`.

    Args:
        paths: the files of one capture, in order.
        ports, storage_options: as for `msmqwire.dissect`.
    """
    segments = _segments(paths, storage_options)
    yield from row_batches(_session_rows(segments, ports), SESSION_SCHEMA)


def _session_rows(segments: Iterable[Datagram], ports: Collection[int]) -> Iterator[dict[str, Any]]:
    flows = dict[int, FlowSessions]()
    now, next_sweep = NO_TIME, 0
    for segment in segments:
        number = flow_number(*segment.key)
        if number not in flows:
            flows[number] = FlowSessions(number, ports=ports)
        yield from flows[number].feed(segment)
        now = max(now, segment.time_ns)
        if now >= next_sweep:
            next_sweep = now + IDLE_NS_MAX // 8
            for idle in [number for number, flow in flows.items() if now - flow.last_ns >= IDLE_NS_MAX]:
                yield from flows.pop(idle).flush(now)
    for flow in flows.values():
        yield from flow.flush(0 if now == NO_TIME else now)


def _segments(paths: Iterable[str], storage_options: StorageOptions) -> Iterator[Datagram]:
    decoder = IpDecoder()
    for path in paths:
        try:
            for record in open_records(path, on_damage=_warn, storage_options=storage_options):
                segment = decoder.decode(record)
                if segment is not None and segment.transport == "tcp":
                    yield segment
        except CaptureError as error:
            _warn(error)


def _warn(error: CaptureError) -> None:
    warnings.warn(CaptureWarning(error), stacklevel=2)
