"""Conditions on columns: those that are checked before a packet is decoded into columns, and the others."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.columnar.arrow.rows import value_of
from msmqwire.columnar.columns import BY_NAME, WHERE, Column
from msmqwire.columnar.expression import Compared, Expression, OneOf
from msmqwire.columnar.expression_parser import parse_expression
from msmqwire.dissection import Item

SimpleCondition = tuple[str, str, Any]
"""A column, one of ``== != < <= > >= in``, and a value (a list for ``in``)."""
Condition = SimpleCondition | Expression
Where = Sequence[Condition] | str
"""Conditions all of which are to be met; or an expression as text."""

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
    """All conditions of a query together.

    Raises:
        ValueError: an unknown column or operator, an expression that can't be read.
    """

    def __init__(self, where: Where) -> None:
        simple, self._late = _separated(conditions_of(where))
        self._early = [
            (BY_NAME[name], _OPERATORS[op], _comparable(name, value)) for name, op, value in simple
        ]

    @property
    def columns(self) -> list[Column]:
        """The columns of the conditions on fields, each once."""
        return columns_of(self._late)

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


def conditions_of(where: Where) -> Sequence[Condition]:
    """Return conditions, of an expression itself. Raises ValueError if it can't be read."""
    return [parse_expression(where)] if isinstance(where, str) else where


def columns_of(conditions: Iterable[Condition]) -> list[Column]:
    """Return the columns of conditions, each once."""
    columns = (
        condition.columns() if isinstance(condition, Expression) else [BY_NAME[condition[0]]]
        for condition in conditions
    )
    return list(dict.fromkeys(column for found in columns for column in found))


def _separated(conditions: Sequence[Condition]) -> tuple[list[SimpleCondition], list[Condition]]:
    """Return the conditions on where-columns, those in expressions too, and all others."""
    early: list[SimpleCondition] = []
    late: list[Condition] = []
    for condition in conditions:
        if isinstance(condition, Expression):
            found, rest = _demands(condition)
            early += found
            late += [condition] if rest else []
            continue
        name, op, _ = condition
        if name not in BY_NAME:
            raise ValueError(f"no column {name}")
        if op not in _OPERATORS:
            raise ValueError(f"{op} is none of {' '.join(_OPERATORS)}")
        (early if name in _EARLY else late).append(condition)
    return early, late


def _demands(expression: Expression) -> tuple[list[SimpleCondition], bool]:
    """Return conditions on where-columns that an expression demands, and whether it demands more."""
    found: list[SimpleCondition] = []
    rest = False
    for node in expression.demands():
        if isinstance(node, Compared) and node.column.name in _EARLY:
            found.append((node.column.name, node.operator, node.operand))
        elif isinstance(node, OneOf) and node.column.name in _EARLY:
            found.append((node.column.name, "in", list(node.operands)))
        else:
            rest = True
    return found, rest


def meeting(batch: Any, conditions: Sequence[Condition]) -> Any:
    """Return the rows of a batch, which has all columns, that meet conditions; null meets none."""
    for condition in conditions:
        if isinstance(condition, Expression):
            batch = batch.filter(condition.mask(batch))
            continue
        name, op, operand = condition
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
