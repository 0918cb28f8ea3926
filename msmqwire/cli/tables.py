"""Where rows go that are meant for other programs: Parquet, Arrow and CSV files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from msmqwire.cli.filters import Condition, Filter, meets
from msmqwire.dissection import Dissection


def write(
    dissection: Dissection,
    where: list[Condition],
    wanted: list[Filter],
    sink: Callable[[Any], Any],
    *,
    columns: Collection[str] | None,
    body_limit: int | None,
) -> int:
    """Writes the rows of what meets conditions and is let through by filters; how many there were.

    Filters look at items, so that with any of them packets are read one by one. `sink` takes the Arrow
    schema and gives a context manager with a function for each batch.
    Raises ValueError for a column that does not exist.
    """
    from msmqwire.columnar import BATCH_ROWS, arrow_schema, chosen_columns, record_batches
    from msmqwire.columnar.arrow.rows import batches

    chosen = chosen_columns(columns)
    if wanted:
        tests = [meets(where), *wanted]
        items = (item for item in dissection if all(test(item) for test in tests))
        found = batches(items, chosen, batch_rows=BATCH_ROWS, body_limit=body_limit)
    else:
        found = record_batches(dissection, columns=columns, where=where, body_limit=body_limit)
    rows = 0
    with sink(arrow_schema(chosen)) as put:
        for batch in found:
            put(batch)
            rows += batch.num_rows
    return rows


def to_parquet(folder: str) -> Callable[[Any], Any]:
    """A folder with one Parquet file; made if there is none."""

    @contextmanager
    def sink(schema: Any) -> Iterator[Callable[[Any], None]]:
        from pyarrow import parquet

        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        with parquet.ParquetWriter(path / "packets.parquet", schema, compression="zstd") as writer:
            yield writer.write_batch

    return sink


def to_arrow(file: str) -> Callable[[Any], Any]:
    """An Arrow file (the IPC file format)."""

    @contextmanager
    def sink(schema: Any) -> Iterator[Callable[[Any], None]]:
        from pyarrow import ipc

        with ipc.new_file(file, schema) as writer:
            yield writer.write_batch

    return sink


def to_csv(out: BinaryIO) -> Callable[[Any], Any]:
    """CSV with a header line; bytes as hex."""

    @contextmanager
    def sink(schema: Any) -> Iterator[Callable[[Any], None]]:
        import pyarrow as pa
        from pyarrow import csv

        texts = [pa.field(f.name, pa.string()) if f.type == pa.binary() else f for f in schema]
        shown = pa.schema(texts)
        with csv.CSVWriter(out, shown) as writer:

            def put(batch: Any) -> None:
                cells = [
                    pa.array([None if v is None else v.hex() for v in column.to_pylist()], pa.string())
                    if column.type == pa.binary()
                    else column
                    for column in batch.columns
                ]
                writer.write_batch(pa.RecordBatch.from_arrays(cells, schema=shown))

            yield put

    return sink
