"""Spark filters as conditions on columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msmqwire.errors import InvalidArgument
from msmqwire.tables.columns import BY_NAME
from msmqwire.tables.filters import SimpleCondition, refuse_wrong

_OPERATORS: Final = {
    "EqualTo": "==",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "In": "in",
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def pushed(filters: Iterable[Any], columns: Collection[str]) -> tuple[list[SimpleCondition], list[Any]]:
    """Return the equivalent conditions, and the filters that Spark still has to apply.

    Args:
        filters: of `pyspark.sql.datasource`.
        columns: the columns that support conditions.
    """
    conditions: list[SimpleCondition] = []
    remaining = []
    for pushed_filter in filters:
        column = ".".join(getattr(pushed_filter, "attribute", ()))
        operator = _OPERATORS.get(type(pushed_filter).__name__)
        if operator is None or column not in columns or pushed_filter.value is None:
            remaining.append(pushed_filter)
        elif column == "time":
            conditions += _time_conditions(operator, pushed_filter.value)
            remaining.append(pushed_filter)  # Spark compares times truncated to microseconds
        else:
            value = pushed_filter.value
            if operator == "in":
                value = [one for one in value if one is not None]
            if _is_right(column, operator, value):
                conditions.append((column, operator, value))
            else:
                remaining.append(
                    pushed_filter
                )  # a query with it has no results, which is not an error in SQL
    return conditions, remaining


def _is_right(column: str, operator: str, value: Any) -> bool:
    """Whether a condition applies to packets, or to a column that packets lack."""
    try:
        refuse_wrong((column, operator, value))
    except InvalidArgument:
        return column not in BY_NAME
    return True


def _time_conditions(operator: str, value: Any) -> list[SimpleCondition]:
    """Conditions in nanoseconds that at least the matching times meet."""
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
