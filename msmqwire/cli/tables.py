"""Rows for other programs: Parquet, Arrow and CSV files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from msmqwire.analysis.dissection import Dissection
from msmqwire.capture.paths import is_folder
from msmqwire.capture.store_errors import store_errors, translated
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions, is_url, open_store
from msmqwire.cli.captures.filter_options import Wanted
from msmqwire.json_text import dumps


def write(
    dissection: Dissection,
    packets: Wanted,
    sink: Callable[[Any], Any],
    *,
    columns: Collection[str] | None,
    body_limit: int | None,
    workers: int = 1,
) -> int:
    """Write the rows of the wanted packets; return how many.

    Filters need items, so with any filter packets are decoded one by one. `sink` takes the Arrow schema and
    returns a context manager of a function that writes a batch.
    Without, `workers` threads make the columns.
    Raises ValueError for an unknown column.
    """
    from msmqwire.tables import BATCH_ROWS, Condition, arrow_schema, chosen_columns, record_batches
    from msmqwire.tables.arrow.rows import batches

    chosen = chosen_columns(columns)
    if packets.item_filters:
        items = filter(packets.test(), dissection)
        row_batches = batches(items, chosen, batch_rows=BATCH_ROWS, body_limit=body_limit)
    else:
        conditions: list[Condition] = [*packets.conditions]
        if packets.expression is not None:
            conditions.append(packets.expression)
        row_batches = record_batches(
            dissection, columns=columns, where=conditions, body_limit=body_limit, workers=workers
        )
    rows = 0
    with sink(arrow_schema(chosen)) as write_batch:
        for batch in row_batches:
            write_batch(batch)
            rows += batch.num_rows
    return rows


def to_parquet(path: str, storage_options: StorageOptions = NO_OPTIONS) -> Callable[[Any], Any]:
    """Return a sink to a Parquet file, which may be a URL; folders that are missing are created.

    A path that ends in ``.parquet`` is that of the file, any other that of a folder, where it is
    ``packets.parquet``; so is a folder that is there.
    """
    is_file = path.lower().endswith(".parquet") and not is_folder(path, storage_options)
    target = path if is_file else f"{path.rstrip('/')}/packets.parquet"

    @contextmanager
    def sink(schema: Any) -> Iterator[Callable[[Any], None]]:
        from pyarrow import parquet

        if not is_url(path):
            Path(target).parent.mkdir(parents=True, exist_ok=True)
        with (
            _created(target, storage_options) as file,
            parquet.ParquetWriter(file, schema, compression="zstd") as writer,
        ):
            yield writer.write_batch

    return sink


def to_arrow(path: str, storage_options: StorageOptions = NO_OPTIONS) -> Callable[[Any], Any]:
    """Return a sink to an Arrow file (the IPC file format), which may be a URL."""

    @contextmanager
    def sink(schema: Any) -> Iterator[Callable[[Any], None]]:
        from pyarrow import ipc

        with _created(path, storage_options) as file, ipc.new_file(file, schema) as writer:
            yield writer.write_batch

    return sink


@contextmanager
def _created(path: str, storage_options: StorageOptions) -> Iterator[Any]:
    """Yield a target for pyarrow: a path, or the stream of a URL, whose file is removed after an error."""
    if not is_url(path):
        yield path
        return
    store = open_store(path, storage_options)
    stream = store.create(path)
    try:
        yield stream
    except BaseException as exc:
        with suppress(OSError):
            stream.close()
            store.remove(path)
        if isinstance(exc, OSError) and exc.filename is None:
            raise translated(exc, path, storage_options) from None
        raise
    with store_errors(path, storage_options):
        stream.close()


def to_csv(out: BinaryIO, *, raw: bool = False) -> Callable[[Any], Any]:
    """Return a sink to CSV with a header line; bytes as hex, texts by name as JSON.

    Texts are cells for a spreadsheet, or as they are if they are to be `raw`.
    """

    @contextmanager
    def sink(schema: Any) -> Iterator[Callable[[Any], None]]:
        import pyarrow as pa
        from pyarrow import csv

        from msmqwire.tables.spreadsheet import escaped_column

        shown = {place: text for place, f in enumerate(schema) if (text := _text_of(f.type)) is not None}
        fields = [pa.field(f.name, pa.string()) if place in shown else f for place, f in enumerate(schema)]
        text_schema = pa.schema(fields)
        texts = () if raw else {place for place, f in enumerate(schema) if f.type == pa.string()}
        with csv.CSVWriter(out, text_schema) as writer:

            def write_batch(batch: Any) -> None:
                cells = batch.columns
                for place, text in shown.items():
                    cells[place] = _as_text(cells[place], text)
                for place in texts:
                    cells[place] = escaped_column(cells[place])
                writer.write_batch(pa.RecordBatch.from_arrays(cells, schema=text_schema))

            yield write_batch

    return sink


def _as_text(column: Any, text_of: Callable[[Any], str]) -> Any:
    import pyarrow as pa

    return pa.array([None if value is None else text_of(value) for value in column.to_pylist()], pa.string())


def _text_of(kind: Any) -> Callable[[Any], str] | None:
    """Return the function that formats values of a type that CSV lacks; None for types that CSV has."""
    import pyarrow as pa

    if pa.types.is_map(kind):
        return lambda value: dumps(dict(value))
    return bytes.hex if kind == pa.binary() else None
