"""Arrow schemas and batches in the form that Spark takes them; every room of the package uses them.

Spark's times have microseconds: nanoseconds are truncated. Everything else is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import from_arrow_type

from msmqwire.errors import InvalidArgument
from msmqwire.tables import arrow_schema
from msmqwire.tables.columns import TEXTS, UNJUDGED, USUAL, refuse_findings, unknown_column
from spark_udfs.source.options import BadOption, bad_option

BATCH_ROWS: Final = 8192
"""Rows of a record batch that is made of single rows."""
TIME: Final = pa.timestamp("us", "UTC")
_TYPES: Final[dict[Any, Any]] = {
    pa.string(): spark.StringType(),
    pa.binary(): spark.BinaryType(),
    pa.bool_(): spark.BooleanType(),
    pa.date32(): spark.DateType(),
    pa.int32(): spark.IntegerType(),
    pa.int64(): spark.LongType(),
    TEXTS: spark.MapType(spark.StringType(), spark.StringType()),
}


def packet_schema(*, on_request: bool = False) -> pa.Schema:
    """Return the Arrow schema of packets; the columns that are there on request only if asked for.

    That of findings is never there: tasks begin anywhere in a capture.
    """
    return arrow_schema(UNJUDGED if on_request else USUAL)


def selected(schema: pa.Schema, columns: Iterable[str]) -> pa.Schema:
    """Return the columns of a schema that the option ``columns`` selects, in its order.

    Raises:
        BadOption: a column does not exist.
    """
    names = list(columns)
    try:
        refuse_findings(names)
    except InvalidArgument as exc:
        raise bad_option(exc) from exc
    for name in names:
        if name not in schema.names:
            raise bad_option(unknown_column(name, "columns", schema.names))
    return pa.schema([schema.field(name) for name in names])


def spark_type(kind: Any) -> Any:
    """Return the Spark type for an Arrow type, which may be a struct or a list, or somebody else's."""
    if pa.types.is_struct(kind):
        return spark.StructType([spark.StructField(field.name, spark_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return spark.ArrayType(spark_type(kind.value_type))
    if pa.types.is_timestamp(kind):
        return spark.TimestampType()
    return _TYPES[kind] if kind in _TYPES else from_arrow_type(kind)


def spark_schema(schema: pa.Schema) -> Any:
    """Return the Spark schema for an Arrow schema, with the meanings of the columns as comments."""
    fields = []
    for field in schema:
        comment = (field.metadata or {}).get(b"comment", b"").decode()
        metadata = {"comment": comment} if comment else {}
        fields.append(spark.StructField(field.name, spark_type(field.type), True, metadata))
    return spark.StructType(fields)


def checked_columns(schema: Any, available: pa.Schema, corrupt_column: str | None) -> list[str]:
    """Return the names of the columns of a Spark schema, once their existence and types are checked.

    Args:
        schema: the Spark schema, of the data source or of the user.
        available: the existing columns.
        corrupt_column: the name of one more, of type BINARY.

    Raises:
        BadOption: a column does not exist, or has another type.
    """
    for field in schema.fields:
        if field.name == corrupt_column:
            expected: Any = spark.BinaryType()
        elif field.name in available.names:
            expected = spark_type(available.field(field.name).type)
        else:
            raise bad_option(unknown_column(field.name, "schema", available.names))
        if field.dataType != expected:
            actual = field.dataType.simpleString()
            raise BadOption(f"column {field.name} is of type {expected.simpleString()}, not {actual}")
    return [field.name for field in schema.fields]


def arrow_fields(schema: Any) -> pa.Schema:
    """Return the Arrow schema in which Spark takes the columns of a Spark schema made of our types."""
    arrow_types = {spark_type: arrow_type for arrow_type, spark_type in _TYPES.items()}
    return pa.schema(
        [
            pa.field(field.name, arrow_types.get(field.dataType, TIME), field.nullable)
            for field in schema.fields
        ]
    )


def as_spark(arrays: Iterable[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Return columns as the batch that Spark takes; they are in the order of a schema of `arrow_fields`."""
    cast = [
        pc.cast(array, TIME, safe=False) if pa.types.is_timestamp(field.type) else array
        for array, field in zip(arrays, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(cast, schema=schema)


def spark_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield record batches with one of our Arrow schemas as Spark takes them."""
    for batch in batches:
        yield as_spark(batch.columns, arrow_fields(spark_schema(batch.schema)))


def row_batches(rows: Iterable[dict[str, Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield rows as record batches of up to `BATCH_ROWS`; cells left out are null."""
    pending: list[dict[str, Any]] = []
    for row in rows:
        pending.append(row)
        if len(pending) >= BATCH_ROWS:
            yield pa.RecordBatch.from_pylist(pending, schema=schema)
            pending = []
    if pending:
        yield pa.RecordBatch.from_pylist(pending, schema=schema)
