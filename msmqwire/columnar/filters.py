"""Conditions on columns: those that are checked before a packet is decoded into columns, and the others."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.columnar.arrow.rows import value_of
from msmqwire.columnar.columns import BY_NAME, WHERE, Column
from msmqwire.dissection import Item

Condition = tuple[str, str, Any]
"""A column, one of ``== != < <= > >= in``, and a value (a list for ``in``)."""

_OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda value, values: value in values,
}
_EARLY: Final = {column.name for column in WHERE} - {"error", "error_path", "error_offset", "raw"}


class Filter:
    """All conditions of a query together. Raises ValueError for an unknown column or operator."""

    def __init__(self, conditions: Sequence[Condition]) -> None:
        for name, op, _ in conditions:
            if name not in BY_NAME:
                raise ValueError(f"no column {name}")
            if op not in _OPERATORS:
                raise ValueError(f"{op} is none of {' '.join(_OPERATORS)}")
        self._early = [
            (BY_NAME[name], _OPERATORS[op], _comparable(name, value))
            for name, op, value in conditions
            if name in _EARLY
        ]
        self._late = [condition for condition in conditions if condition[0] not in _EARLY]

    @property
    def columns(self) -> list[Column]:
        """The columns of the conditions on fields, each once."""
        return [BY_NAME[name] for name in dict.fromkeys(name for name, _, _ in self._late)]

    @property
    def names(self) -> set[str]:
        """The where-columns that `mask` needs."""
        return {column.name for column, _, _ in self._early}

    def mask(self, n: int, values_of: Callable[[str], tuple[Any, Any]]) -> Any:
        """Return which of ``n`` rows meet the conditions on where-columns.

        ``values_of`` returns the values of such a column and their validity; or texts, and the index of the
        text of each row.
        """
        mask = np.ones(n, np.bool_)
        for column, test, operand in self._early:
            values, valid_or_codes = values_of(column.name)
            if isinstance(values, np.ndarray):
                if test is _OPERATORS["in"]:
                    mask &= np.isin(values, list(operand)) & valid_or_codes
                else:
                    mask &= test(values, operand) & valid_or_codes
            else:
                mask &= np.array([test(text, operand) for text in values] or [False], np.bool_)[
                    valid_or_codes
                ]
        return mask

    def lets_through(self, item: Item) -> bool:
        """Whether an item meets the conditions on where-columns."""
        for column, test, operand in self._early:
            value = value_of(column, item)
            if value is None or not test(value, operand):
                return False
        return True

    def rest(self, batch: Any) -> Any:
        """Return the rows of a batch that meet the conditions on fields."""
        return meeting(batch, self._late)


def meeting(batch: Any, conditions: Sequence[Condition]) -> Any:
    """Return the rows of a batch, which has all columns, that meet conditions; null meets none."""
    for name, op, operand in conditions:
        column, value = batch.column(name), _comparable(name, operand)
        if op == "in":
            mask = pc.is_in(column, value_set=pa.array(list(value), column.type))
        else:
            mask = getattr(pc, _FUNCTIONS[op])(column, pa.scalar(value, column.type))
        batch = batch.filter(pc.fill_null(mask, False))
    return batch


_FUNCTIONS: Final = {
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}


def _comparable(name: str, value: Any) -> Any:
    """Return a time, and each of a list of them, as nanoseconds since 1970; other values as they are."""
    if name == "time" and isinstance(value, Collection) and not isinstance(value, str):
        return [_comparable(name, each) for each in value]
    if name != "time" or not isinstance(value, (str, datetime)):
        return value
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    whole = int(moment.replace(microsecond=0).timestamp())
    return whole * 1_000_000_000 + moment.microsecond * 1000
