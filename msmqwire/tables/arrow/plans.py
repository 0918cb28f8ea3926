"""Plans of columns: the way to make the cells of a column, and the place of its field.

All offsets come from `generated.FIELD_SLOTS`, all masks from the schemas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from msmqwire.constants import class_name
from msmqwire.headers import SECURITY_HEADER, USER_HEADER
from msmqwire.headers.queue_names import admin_queue, destination, response_queue
from msmqwire.packets import (
    CONNECTION_PARAMETERS,
    ESTABLISH_CONNECTION,
    SESSION_ACK,
    USER_MESSAGE,
)
from msmqwire.ping import PING
from msmqwire.schema.nodes import Flags, Guid, Header, Maybe, Packet, Part, Text, inner_headers
from msmqwire.tables.arrow import values
from msmqwire.tables.columns import CONTENT_GROUP, EXAMINED, FINDING_IDS, GENERIC_GROUPS, Column
from msmqwire.tables.compiled import fixed_cells
from msmqwire.tables.compiled import variable_cells as vc
from msmqwire.tables.compiled.fixed_cells import BOOL, INT32, INT64, FieldPlan
from msmqwire.tables.compiled.generated import FIELD_SLOTS
from msmqwire.tables.compiled.packet import LAYOUTS

Form = Literal[
    "integer", "guid", "text", "bytes", "queue", "sender", "class", "where", "examined", "generic", "content",
    "findings",
]  # fmt: skip

_SCHEMAS: Final[dict[str, Packet]] = {
    packet.name: packet
    for packet in (USER_MESSAGE, SESSION_ACK, ESTABLISH_CONNECTION, CONNECTION_PARAMETERS, PING)
}
_FORMS: Final[dict[Any, Form]] = {
    destination: "queue",
    admin_queue: "queue",
    response_queue: "queue",
    values.sender_id: "sender",
    class_name: "class",
}
_VARIABLE_WIDTH: Final[dict[Form, int]] = {
    "where": vc.RAW,
    "bytes": vc.BYTES,
    "guid": vc.GUID,
    "text": vc.TEXT,
    "queue": vc.QUEUE_NAME,
    "sender": vc.SENDER,
}
_NO_LIMIT: Final = 1 << 62  # more bytes than any body has
_SENDER: Final = "SecurityHeader.SecurityData.SecurityID"
_QUEUES: Final[dict[Any, tuple[str, str]]] = {
    destination: ("DestinationQueue", "Flags.DQ"),
    admin_queue: ("AdminQueue", "Flags.AQ"),
    response_queue: ("ResponseQueue", "Flags.RQ"),
}


def _node(layout: str, path: str) -> tuple[Part, str]:
    """Return the part to which the path of a column leads, and its named bits, if any."""
    header: Header = _SCHEMAS[layout]
    names = path.split(".")
    for i, name in enumerate(names):
        part: Part = header.part(name)
        part = part.node if isinstance(part, Maybe) else part
        if isinstance(part, Flags) or i == len(names) - 1:
            return part, ".".join(names[i + 1 :])
        header = inner_headers(part)[0]
    raise KeyError(path)


def form_of(column: Column) -> Form:
    """Return how the cells of a column are made."""
    if column.group == "where":
        return "where"
    if column.name in EXAMINED:
        return "examined"
    if column.name == FINDING_IDS:
        return "findings"
    if column.group in GENERIC_GROUPS:
        return "generic"
    if column.group == CONTENT_GROUP:
        return "content"
    if column.convert in _FORMS:
        return _FORMS[column.convert]
    node = _node(*_first(column))[0]
    if isinstance(node, Guid):
        return "guid"
    if isinstance(node, Text):
        return "text"
    return "bytes" if column.type == pa.binary() else "integer"


def _first(column: Column) -> tuple[str, str]:
    for path in column.paths:
        for layout in FIELD_SLOTS:
            if _has(layout, path):
                return layout, path
    raise KeyError(column.name)


def _has(layout: str, path: str) -> bool:
    names = path.split(".")
    return any(".".join(names[: i + 1]) in FIELD_SLOTS[layout] for i in range(len(names)))


def field_bounds(layout: str, path: str) -> tuple[int, int, int, int] | None:
    """Return slot and distance of both ends of a field; None if the packet does not have it."""
    field = FIELD_SLOTS[layout].get(path)
    if field is None:
        return None
    if len(field) == 3:
        slot, distance, size = field
        return slot, distance, slot, distance + size
    slot, distance, end_slot, end_distance = field
    return slot, distance, end_slot, end_distance


class FixedWidthPlan(NamedTuple):
    """The ways to make the cells of columns of fixed width.

    Attributes:
        fields: the fields of each kind of packet.
        columns: for each column its type, its number among the columns of this type, and the row of
            `FixedWidthCells.valid` with its validity. Columns whose fields are in the same part of packets
            share such a row.
        counts: the number of columns of each type.
        valid: the number of rows of `FixedWidthCells.valid`.
    """

    fields: FieldPlan
    columns: dict[str, tuple[int, int, int]]
    counts: list[int]
    valid: int


def fixed_width_plan(columns: Sequence[Column]) -> FixedWidthPlan:
    """Return the plan of columns of fixed width."""
    kinds, width = len(LAYOUTS), max(1, len(columns))
    types = {pa.bool_(): BOOL, pa.int32(): INT32, pa.int64(): INT64, pa.timestamp("s", tz="UTC"): INT64}
    numbers: dict[str, tuple[int, int, int]] = {}
    counts = [0] * 3
    valid: dict[tuple[int, ...], int] = {}
    fields_of_kind: list[list[tuple[int, ...]]] = [[] for _ in range(kinds)]
    for column in columns:
        fields = [_fixed_width_field(column, layout) for layout in LAYOUTS]
        slots = tuple(-1 if field is None else field[0] for field in fields)
        form = types[column.type]
        numbers[column.name] = form, counts[form], valid.setdefault(slots, len(valid))
        for kind, field in enumerate(fields):
            if field is not None:
                fields_of_kind[kind].append((counts[form], form, *field))
        counts[form] += 1
    plan = FieldPlan(
        np.zeros((kinds, width, fixed_cells.PLAN_FIELDS), np.int64),
        np.zeros(kinds, np.int64),
        np.zeros((kinds, width, 2), np.int64),
        np.zeros(kinds, np.int64),
    )
    for kind in range(kinds):
        for row in sorted(fields_of_kind[kind], key=lambda field: field[fixed_cells.P_SLOT]):
            plan.fields[kind, plan.counts[kind]] = row
            plan.counts[kind] += 1
        for slots, number in valid.items():
            if slots[kind] >= 0:
                plan.valid_fields[kind, plan.valid_counts[kind]] = number, slots[kind]
                plan.valid_counts[kind] += 1
    return FixedWidthPlan(plan, numbers, counts, len(valid))


def _fixed_width_field(column: Column, layout: str) -> tuple[int, int, int, int, int] | None:
    """Return slot, distance and size of a column's field in a kind of packet, and its shift and mask."""
    for path in column.paths:
        if not _has(layout, path):
            continue
        node, name = _node(layout, path)
        word = path.removesuffix(f".{name}") if name else path
        slot, distance, size = FIELD_SLOTS[layout][word]
        if not name:
            return slot, distance, size, 0, (1 << 8 * size) - 1
        assert isinstance(node, Flags)
        part = next(p for p in node.parts if p.name == name)
        return slot, distance, size, part.shift, part.mask >> part.shift
    return None


def variable_width_plans(columns: Sequence[Column], body_limit: int | None) -> tuple[Any, Any]:
    """Return the initial state of each column for `variable_cells.write_cells`, and its plan."""
    states = np.zeros((len(columns), vc.COLUMN_FIELDS), np.int64)
    plans = np.full((len(columns), len(LAYOUTS), vc.PLAN_FIELDS), -1, np.int64)
    for column, state, plan in zip(columns, states, plans, strict=True):
        form = form_of(column)
        state[vc.C_FORM] = _VARIABLE_WIDTH[form]
        limit = _NO_LIMIT if body_limit is None or column.name != "body" else body_limit
        state[vc.C_SIZE_MAX] = min(limit, _NO_LIMIT)
        state[vc.C_NULL_IF_EMPTY] = column.convert is not None
        if form == "queue":
            _plan_queue(column, plan)
        elif form != "where":
            _plan_bounds(_SENDER if form == "sender" else column.paths[0], plan)
        if form == "sender":
            slot, distance, _ = FIELD_SLOTS["UserMessage"]["SecurityHeader.Flags"]
            mask = SECURITY_HEADER.bits("Flags.ST").mask
            plan[:, [vc.T_SLOT, vc.T_DISTANCE, vc.T_MASK]] = slot, distance, mask
        kinds = np.flatnonzero(plan[:, vc.SLOT] >= 0)
        state[vc.C_KINDS] = -1 if form == "where" else (1 << kinds).sum()
    return states, plans


def _plan_bounds(path: str, plan: Any) -> None:
    """Fill the plan of a field of bytes, a text or a GUID."""
    for kind, layout in enumerate(LAYOUTS):
        bounds = field_bounds(layout, path)
        if bounds is not None:
            plan[kind, :4] = bounds


def _plan_queue(column: Column, plan: Any) -> None:
    """Fill the plan of a queue of the UserHeader."""
    name, word = _QUEUES[column.convert]
    for kind, layout in enumerate(LAYOUTS):
        fields = FIELD_SLOTS[layout]
        if f"UserHeader.{name}" not in fields:
            continue
        plan[kind, [vc.Q_FLAGS_SLOT, vc.Q_FLAGS]] = fields["UserHeader.Flags"][:2]
        plan[kind, vc.Q_SOURCE] = fields["UserHeader.SourceQueueManager"][1]
        plan[kind, vc.Q_TARGET] = fields["UserHeader.QueueManagerAddress"][1]
        plan[kind, vc.Q_SHIFT] = USER_HEADER.bits(word).shift
        plan[kind, [vc.Q_SLOT, vc.Q_DISTANCE]] = fields[f"UserHeader.{name}"][:2]
        if column.convert is response_queue:
            plan[kind, vc.Q_ADMIN_SHIFT] = USER_HEADER.bits("Flags.AQ").shift
            plan[kind, [vc.Q_ADMIN_SLOT, vc.Q_ADMIN_DISTANCE]] = fields["UserHeader.AdminQueue"][:2]
