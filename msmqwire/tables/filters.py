"""Conditions on columns: those checked before a packet is decoded into columns, and those checked after."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from numbers import Real
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.analysis.dissection import Item
from msmqwire.errors import InvalidArgument
from msmqwire.names.nearest import unknown_name
from msmqwire.tables.arrow.rows import value_of
from msmqwire.tables.columns import (
    BINARY,
    BOOL,
    BY_NAME,
    FINDING_IDS,
    INT32,
    INT64,
    SECONDS,
    TEXT,
    TEXTS,
    TIME,
    TUNNEL,
    WHERE,
    Column,
    unknown_column,
)
from msmqwire.tables.expression import Compared, Expression, OneOf
from msmqwire.tables.expression_parser import parse_expression
from msmqwire.tables.possible_values import EQUALITIES, PATH, not_compared, refuse_impossible

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
_PARTS: Final = 3
_KINDS: Final = {
    TEXT: "text",
    INT32: "a number of 32 bits",
    INT64: "a number of 64 bits",
    BOOL: "true or false",
    BINARY: "bytes",
    TIME: "a time, a datetime or text as 2026-03-01T12:00:00",
    SECONDS: "a time, a datetime",
}
_EARLY: Final = {column.name for column in WHERE} - {"error", "error_path", "error_offset", "raw", *TUNNEL}


class Filter:
    """All conditions of a query together.

    Raises:
        InvalidArgument: an unknown column or operator, a value that the column can't have, an expression that
            can't be read.
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
    """Return conditions, of an expression itself. Raises InvalidExpression if it can't be read."""
    return [parse_expression(where)] if isinstance(where, str) else where


def refuse_wrong(condition: Any) -> None:
    """Raise InvalidArgument for a value that is not a condition, or a comparison with an impossible value."""
    if isinstance(condition, Expression):
        return
    if isinstance(condition, str) or not isinstance(condition, Sequence) or len(condition) != _PARTS:
        why = f"a condition is (column, operator, value), not {condition!r:.80}"
        raise InvalidArgument(why, path=PATH)
    name, op, operand = condition
    if name not in BY_NAME:
        raise unknown_column(name, PATH)
    if op not in _OPERATORS:
        raise unknown_name(op, _OPERATORS, "operator of a condition", path=PATH)
    column = BY_NAME[name]
    if column.type == TEXTS:
        raise InvalidArgument(not_compared(column), path=PATH)
    if op == "in" and (isinstance(operand, str | bytes) or not isinstance(operand, Collection)):
        raise InvalidArgument(f"{name} in: a list of values is wanted, not {operand!r:.80}", path=PATH)
    for value in operand if op == "in" else (operand,):
        if not _is_comparable(column, value):
            what = "nothing" if value is None else f"{value!r:.80}"
            raise InvalidArgument(f"{name} is {_KINDS[column.type]}, not {what}", path=PATH)
        if op in EQUALITIES:
            refuse_impossible(column, value)


def _is_comparable(column: Column, value: Any) -> bool:
    """Whether a value is of a type that a column is compared with."""
    if column.type == TEXT:
        return isinstance(value, str)
    if column.type in (INT32, INT64):
        if not isinstance(value, Real):
            return False
        bits = column.type.bit_width
        return column.name in _EARLY or -(1 << bits - 1) <= value < 1 << bits - 1
    try:
        comparable = _comparable(column.name, value)
        if column.name == "time":  # one beyond the range of the column is a bound, too
            return isinstance(comparable, Real)
        pa.scalar(comparable, column.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return False
    return value is not None


def columns_of(conditions: Iterable[Condition]) -> list[Column]:
    """Return the columns of conditions, each once."""
    columns = (
        condition.columns() if isinstance(condition, Expression) else [BY_NAME[condition[0]]]
        for condition in conditions
    )
    return list(dict.fromkeys(column for found in columns for column in found))


def need_findings(columns: Collection[str], where: Iterable[Condition]) -> bool:
    """Whether columns or conditions need the findings of packets; wrong conditions do not."""
    return FINDING_IDS in columns or any(
        BY_NAME[FINDING_IDS] in condition.columns()
        if isinstance(condition, Expression)
        else isinstance(condition, Sequence) and FINDING_IDS in condition[:1]
        for condition in where
    )


def _separated(conditions: Sequence[Condition]) -> tuple[list[SimpleCondition], list[Condition]]:
    """Return the conditions on where-columns, those in expressions too, and all other conditions."""
    early: list[SimpleCondition] = []
    late: list[Condition] = []
    for condition in conditions:
        if isinstance(condition, Expression):
            found, rest = _demands(condition)
            early += found
            late += [condition] if rest else []
            continue
        refuse_wrong(condition)
        (early if condition[0] in _EARLY else late).append(condition)
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
