"""Filters of Spark as conditions on columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msmqwire.columnar import Condition

_OPERATORS: Final = {
    "EqualTo": "==",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "In": "in",
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def pushed(filters: Iterable[Any], columns: Collection[str]) -> tuple[list[Condition], list[Any]]:
    """The conditions that filters stand for, and the filters that Spark has still to apply.

    Args:
        filters: of `pyspark.sql.datasource`.
        columns: the columns on which there can be conditions.
    """
    conditions: list[Condition] = []
    left = []
    for given in filters:
        column = ".".join(getattr(given, "attribute", ()))
        operator = _OPERATORS.get(type(given).__name__)
        if operator is None or column not in columns or given.value is None:
            left.append(given)
        elif column == "time":
            conditions += _on_time(operator, given.value)
            left.append(given)  # Spark's times are cut to microseconds, and so is what it compares
        elif operator == "in":
            values = [value for value in given.value if value is not None]
            conditions.append((column, "in", values))
        else:
            conditions.append((column, operator, given.value))
    return conditions, left


def _on_time(operator: str, value: Any) -> list[Condition]:
    """Conditions in nanoseconds that let through at least the times meant."""
    if not isinstance(value, datetime):
        return []
    moment = value if value.tzinfo is not None else value.astimezone()
    start = (moment - _EPOCH) // timedelta(microseconds=1) * 1000
    end = start + 1000
    return {
        "==": [("time", ">=", start), ("time", "<", end)],
        ">": [("time", ">=", end)],
        ">=": [("time", ">=", start)],
        "<": [("time", "<", start)],
        "<=": [("time", "<", end)],
    }.get(operator, [])
