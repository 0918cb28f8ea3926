"""Expressions over columns, as `parse_expression` reads them, judged for one item or for a batch of rows.

Logic is that of SQL, with three values: a comparison with null is null, and a row is wanted only if the whole
expression is true. Both ways of judging agree on every row.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.tables.columns import Column

Values = Callable[[Column], Any]
"""Returns the value of a column for one item; None for null."""

_COMPARISONS: Final[dict[str, tuple[Callable[[Any, Any], bool], str]]] = {
    "==": (operator.eq, "equal"),
    "!=": (operator.ne, "not_equal"),
    "<": (operator.lt, "less"),
    "<=": (operator.le, "less_equal"),
    ">": (operator.gt, "greater"),
    ">=": (operator.ge, "greater_equal"),
}


@dataclass(frozen=True, slots=True)
class Conjunction:
    """``part and part and ...``."""

    parts: tuple[Node, ...]

    def columns(self) -> Iterator[Column]:
        for part in self.parts:
            yield from part.columns()

    def judge(self, values: Values) -> bool | None:
        result: bool | None = True
        for part in self.parts:
            judged = part.judge(values)
            if judged is False:
                return False
            if judged is None:
                result = None
        return result

    def mask(self, batch: Any) -> Any:
        return reduce(pc.and_kleene, (part.mask(batch) for part in self.parts))


@dataclass(frozen=True, slots=True)
class Disjunction:
    """``part or part or ...``."""

    parts: tuple[Node, ...]

    def columns(self) -> Iterator[Column]:
        for part in self.parts:
            yield from part.columns()

    def judge(self, values: Values) -> bool | None:
        result: bool | None = False
        for part in self.parts:
            judged = part.judge(values)
            if judged is True:
                return True
            if judged is None:
                result = None
        return result

    def mask(self, batch: Any) -> Any:
        return reduce(pc.or_kleene, (part.mask(batch) for part in self.parts))


@dataclass(frozen=True, slots=True)
class Not:
    """``not inner``."""

    inner: Node

    def columns(self) -> Iterator[Column]:
        yield from self.inner.columns()

    def judge(self, values: Values) -> bool | None:
        inner = self.inner.judge(values)
        return None if inner is None else not inner

    def mask(self, batch: Any) -> Any:
        return pc.invert(self.inner.mask(batch))


@dataclass(frozen=True, slots=True)
class Compared:
    """``column < operand``; times are integers in the unit of the column."""

    column: Column
    operator: str
    operand: Any

    def columns(self) -> Iterator[Column]:
        yield self.column

    def judge(self, values: Values) -> bool | None:
        value = _comparable(values(self.column))
        return None if value is None else _COMPARISONS[self.operator][0](value, self.operand)

    def mask(self, batch: Any) -> Any:
        cells = _comparable_cells(batch, self.column)
        return getattr(pc, _COMPARISONS[self.operator][1])(cells, pa.scalar(self.operand, cells.type))


@dataclass(frozen=True, slots=True)
class OneOf:
    """``column in (operand, ...)``."""

    column: Column
    operands: tuple[Any, ...]

    def columns(self) -> Iterator[Column]:
        yield self.column

    def judge(self, values: Values) -> bool | None:
        value = _comparable(values(self.column))
        return None if value is None else value in self.operands

    def mask(self, batch: Any) -> Any:
        cells = _comparable_cells(batch, self.column)
        return _null_where_null(pc.is_in(cells, value_set=pa.array(self.operands, cells.type)), cells)


@dataclass(frozen=True, slots=True)
class Matching:
    """``column like 'order%'`` and ``column matches 'order [0-9]+'``.

    Patterns are Arrow's, of RE2, whose time is linear in the text: the text comes from unauthenticated
    senders.

    Attributes:
        regular: whether the pattern is a regular expression that is searched for, not one of ``like``.
    """

    column: Column
    pattern: str
    regular: bool = False
    ignore_case: bool = False

    def columns(self) -> Iterator[Column]:
        yield self.column

    def judge(self, values: Values) -> bool | None:
        value = values(self.column)
        return None if value is None else self._matches(pa.scalar(value, pa.string())).as_py()

    def mask(self, batch: Any) -> Any:
        return self._matches(batch.column(self.column.name))

    def _matches(self, texts: Any) -> Any:
        function = pc.match_substring_regex if self.regular else pc.match_like
        return function(texts, self.pattern, ignore_case=self.ignore_case)


@dataclass(frozen=True, slots=True)
class Containing:
    """``column contains 'text'``: any of some texts, or byte strings, is part of the value."""

    column: Column
    parts: tuple[Any, ...]

    def columns(self) -> Iterator[Column]:
        yield self.column

    def judge(self, values: Values) -> bool | None:
        value = values(self.column)
        return None if value is None else any(part in value for part in self.parts)

    def mask(self, batch: Any) -> Any:
        cells = batch.column(self.column.name)
        mask = pc.match_substring(cells, self.parts[0])
        for part in self.parts[1:]:
            mask = pc.or_(mask, pc.match_substring(cells, part))
        return mask


@dataclass(frozen=True, slots=True)
class Absent:
    """``column is null``."""

    column: Column

    def columns(self) -> Iterator[Column]:
        yield self.column

    def judge(self, values: Values) -> bool | None:
        return values(self.column) is None

    def mask(self, batch: Any) -> Any:
        return pc.is_null(batch.column(self.column.name))


Node = Conjunction | Disjunction | Not | Compared | OneOf | Matching | Containing | Absent


@dataclass(frozen=True, slots=True)
class Expression:
    """A whole expression.

    Attributes:
        text: the text as it was written.
        root: its outermost node.
    """

    text: str
    root: Node

    def columns(self) -> list[Column]:
        """Return its columns, each once."""
        return list(dict.fromkeys(self.root.columns()))

    def accepts(self, values: Values) -> bool:
        """Whether an item with these values is wanted."""
        return self.root.judge(values) is True

    def mask(self, batch: Any) -> Any:
        """Return which rows of a record batch, which has all columns of the expression, are wanted."""
        return pc.fill_null(self.root.mask(batch), False)

    def nodes(self) -> Iterator[Node]:
        """Yield all nodes."""
        waiting: list[Node] = [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            if isinstance(node, Conjunction | Disjunction):
                waiting += reversed(node.parts)
            elif isinstance(node, Not):
                waiting.append(node.inner)

    def demands(self) -> Iterator[Node]:
        """Yield nodes all of which must be true: the parts that ``and`` joins."""
        waiting: list[Node] = [self.root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Conjunction):
                waiting += reversed(node.parts)
            else:
                yield node


def _comparable_cells(batch: Any, column: Column) -> Any:
    """Return the cells of a column; times as integers in the unit of the column."""
    cells = batch.column(column.name)
    return cells.cast(pa.int64()) if pa.types.is_timestamp(cells.type) else cells


def _comparable(value: Any) -> Any:
    """Return the value of one item as `_comparable_cells` has it."""
    return int(value.timestamp()) if isinstance(value, datetime) else value


def _null_where_null(mask: Any, cells: Any) -> Any:
    return pc.if_else(pc.is_valid(cells), mask, pa.scalar(None, pa.bool_()))
