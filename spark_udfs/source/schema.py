"""Arrow schemas as Spark has them, and batches as Spark takes them.

Spark knows times to the microsecond only: nanoseconds are cut off. All else is the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark

from msmqwire.columnar import COLUMNS, arrow_schema
from spark_udfs.source.options import BadOption

_TYPES: Final[dict[Any, Any]] = {
    pa.string(): spark.StringType(),
    pa.binary(): spark.BinaryType(),
    pa.bool_(): spark.BooleanType(),
    pa.int32(): spark.IntegerType(),
    pa.int64(): spark.LongType(),
}
TIME: Final = pa.timestamp("us", "UTC")


def packet_schema(*, raw: bool = False) -> pa.Schema:
    """The Arrow schema of packets, ``raw`` only on request."""
    return arrow_schema([column for column in COLUMNS if raw or column.name != "raw"])


def chosen(known: pa.Schema, columns: Iterable[str]) -> pa.Schema:
    """The columns of a schema that the option ``columns`` asks for, in its order.

    Raises:
        BadOption: there is no such column.
    """
    names = list(columns)
    if unknown := [name for name in names if name not in known.names]:
        raise BadOption(
            f"option columns: there is no {', '.join(unknown)}; there are {', '.join(known.names)}"
        )
    return pa.schema([known.field(name) for name in names])


def spark_type(kind: Any) -> Any:
    """The Spark type for an Arrow type."""
    return spark.TimestampType() if pa.types.is_timestamp(kind) else _TYPES[kind]


def spark_schema(schema: pa.Schema) -> Any:
    """The Spark schema for an Arrow schema, with the meanings of the columns as comments."""
    fields = []
    for field in schema:
        comment = (field.metadata or {}).get(b"comment", b"").decode()
        fields.append(spark.StructField(field.name, spark_type(field.type), True, {"comment": comment}))
    return spark.StructType(fields)


def wanted_columns(given: Any, known: pa.Schema, corrupt_column: str | None) -> list[str]:
    """The names of the columns of a Spark schema, each of which must be known with its type.

    Args:
        given: the schema, of the data source or of the user.
        known: the columns that there are.
        corrupt_column: one more, of type BINARY.

    Raises:
        BadOption: a column is not known, or has another type.
    """
    for field in given.fields:
        if field.name == corrupt_column:
            right: Any = spark.BinaryType()
        elif field.name in known.names:
            right = spark_type(known.field(field.name).type)
        else:
            raise BadOption(f"there is no column {field.name}; there are {', '.join(known.names)}")
        if field.dataType != right:
            wrong = field.dataType.simpleString()
            raise BadOption(f"column {field.name} is of type {right.simpleString()}, not {wrong}")
    return [field.name for field in given.fields]


def arrow_fields(schema: Any) -> pa.Schema:
    """The Arrow schema in which Spark takes the columns of a schema made of our types."""
    arrow = {kind: of for of, kind in _TYPES.items()}
    return pa.schema(
        [pa.field(field.name, arrow.get(field.dataType, TIME), field.nullable) for field in schema.fields]
    )


def as_spark(arrays: Iterable[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Columns, in the order of a schema of `arrow_fields`, as the batch that Spark takes."""
    cast = [
        pc.cast(array, TIME, safe=False) if pa.types.is_timestamp(field.type) else array
        for array, field in zip(arrays, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(cast, schema=schema)
