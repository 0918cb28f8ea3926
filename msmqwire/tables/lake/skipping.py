"""Files that no row can be in which meets an expression, by their statistics in the log."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.tables.columns import INT32, INT64, TEXT
from msmqwire.tables.expression import Compared, Expression, OneOf
from msmqwire.tables.lake.stored_rows import TIMES
from msmqwire.tables.lake.table import LakeTable


def may_have(table: LakeTable, expression: Expression) -> Any:
    """Return which files may have rows that meet an expression, as a mask over `LakeTable.actions`.

    Comparisons that the whole expression demands are looked at; null meets none of them.
    """
    mask = np.ones(table.actions.num_rows, np.bool_)
    for node in expression.demands():
        if isinstance(node, Compared):
            mask &= _may_meet(table, node.column.name, node.column.type, node.operator, node.operand)
        elif isinstance(node, OneOf):
            name, kind = node.column.name, node.column.type
            found = [_may_meet(table, name, kind, "==", operand) for operand in node.operands]
            mask &= np.logical_or.reduce(found)
    return mask


def _may_meet(table: LakeTable, name: str, kind: pa.DataType, operator: str, operand: Any) -> Any:
    if name in table.keys:
        values = table.actions[f"partition.{name}"]
        return _true(pc.equal(values, operand)) if operator == "==" else _true(pc.is_valid(values))
    if name == "time":
        # The statistics of the other column are cut at milliseconds.
        everywhere_null = table.without(TIMES[0]) & table.without(TIMES[1])
        low, high = table.bounds(TIMES[0])
        low = np.where(table.without(TIMES[0]), np.iinfo(np.int64).min, low)
    elif kind in (INT32, INT64):
        everywhere_null = table.without(name)
        low, high = table.bounds(name)
    elif kind == TEXT:
        return _text_may_meet(table, name, operator, operand) & ~table.without(name)
    else:
        return np.ones(table.actions.num_rows, np.bool_)
    possible = {
        "==": (low <= operand) & (operand <= high),
        "<": low < operand,
        "<=": low <= operand,
        ">": high > operand,
        ">=": high >= operand,
    }
    return possible.get(operator, True) & ~everywhere_null


def _text_may_meet(table: LakeTable, name: str, operator: str, operand: str) -> Any:
    actions = table.actions
    if not {f"min.{name}", f"max.{name}"} <= set(actions.column_names):
        return np.ones(actions.num_rows, np.bool_)
    low, high = actions[f"min.{name}"], actions[f"max.{name}"]
    from_low = _true(pc.less_equal(low, operand), missing=True)
    to_high = _true(pc.greater_equal(high, operand), missing=True)
    if operator == "==":
        return from_low & to_high
    if operator in ("<", "<="):
        return from_low
    return to_high if operator in (">", ">=") else np.ones(actions.num_rows, np.bool_)


def _true(mask: Any, *, missing: bool = False) -> Any:
    return pc.fill_null(mask, missing).to_numpy()
