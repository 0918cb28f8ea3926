"""The columns of a lake: those that its table has, and those that a later version adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from msmqwire.errors import LakeMismatch
from msmqwire.tables.columns import BY_NAME
from msmqwire.tables.lake.part_writer import lake_schema
from msmqwire.tables.lake.partitions import COLUMN_KEYS, By
from msmqwire.tables.lake.table import LakeTable, delta_schema

DATE = pa.field("date", pa.date32())


def table_schema(columns: Sequence[str], by: By | None) -> tuple[pa.Schema, tuple[str, ...]]:
    """Return the schema of the rows of a lake, and the names of the keys of partitions, its last columns.

    Args:
        columns: names of `COLUMNS`.
        by: the second key of partitions; None for none.
    """
    key = COLUMN_KEYS[by]
    keys = [DATE] + ([pa.field(key, pa.string())] if key else [])
    return pa.schema([*lake_schema(columns, by), *keys]), tuple(field.name for field in keys)


def read_schema(table: LakeTable) -> pa.Schema:
    """Return the schema of the rows as it is read: with our types, and what the columns mean.

    Raises:
        LakeMismatch: somebody has changed a column, or the partitions.
    """
    if not table.keys or table.keys[0] != DATE.name or table.keys[1:] not in {(), ("kind",), ("queue",)}:
        raise LakeMismatch(
            f"the lake is partitioned by {', '.join(table.keys) or 'nothing'}: somebody else has changed it",
            file=table.place.shown,
        )
    known = {field.name: field for field in lake_schema(list(BY_NAME))} | {DATE.name: DATE}
    fields = []
    for field in table.schema:
        ours = known.get(field.name)
        if ours is not None and not _is_same(delta_schema(pa.schema([ours])).field(0).type, field.type):
            raise LakeMismatch(
                f"the column {field.name} is {field.type}, not {ours.type}: somebody else has changed it",
                file=table.place.shown,
            )
        fields.append(ours or field)
    return pa.schema(fields)


def table_with_columns(table: LakeTable, columns: Sequence[str], by: By | None) -> LakeTable:
    """Return the table with these columns: those that it has not are added.

    Raises:
        LakeMismatch: it has other columns of their names.
        Refused: another commit came before.
    """
    present = set(read_schema(table).names)
    schema, keys = table_schema(columns, by)
    if keys != table.keys:
        raise LakeMismatch(
            f"the lake is partitioned by {', '.join(table.keys)}: somebody else has changed it",
            file=table.place.shown,
        )
    missing = [field for field in delta_schema(schema) if field.name not in present]
    return table.add_columns(missing) if missing else table


def _is_same(ours: pa.DataType, other: Any) -> bool:
    """Whether types are the same; those of the parts of a map have several names."""
    return bool(ours == other or (pa.types.is_map(ours) and pa.types.is_map(other)))
