"""From columns to plans: how a column's cells are made, and where its field stands.

All places come from `generated.PLACES`, all masks from the schemas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from msmqwire.columnar.arrow import values
from msmqwire.columnar.columns import Column
from msmqwire.columnar.compiled import fixed_cells
from msmqwire.columnar.compiled import variable_cells as cells
from msmqwire.columnar.compiled.fixed_cells import BOOL, INT32, INT64
from msmqwire.columnar.compiled.generated import PLACES
from msmqwire.columnar.compiled.packet import LAYOUTS
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

Form = Literal["integer", "guid", "text", "bytes", "queue", "sender", "class", "where"]

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
_SPANS: Final[dict[Form, int]] = {
    "where": cells.RAW,
    "bytes": cells.BYTES,
    "guid": cells.GUID,
    "text": cells.TEXT,
    "queue": cells.QUEUE_NAME,
    "sender": cells.SENDER,
}
_SENDER: Final = "SecurityHeader.SecurityData.SecurityID"
_QUEUES: Final[dict[Any, tuple[str, str]]] = {
    destination: ("DestinationQueue", "Flags.DQ"),
    admin_queue: ("AdminQueue", "Flags.AQ"),
    response_queue: ("ResponseQueue", "Flags.RQ"),
}


def _node(layout: str, path: str) -> tuple[Part, str]:
    """The part that a path of a column leads to, and the named bits of it, if any."""
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
    """How the cells of a column are made."""
    if column.group == "where":
        return "where"
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
        for layout in PLACES:
            if _has(layout, path):
                return layout, path
    raise KeyError(column.name)


def _has(layout: str, path: str) -> bool:
    names = path.split(".")
    return any(".".join(names[: i + 1]) in PLACES[layout] for i in range(len(names)))


def place(layout: str, path: str) -> tuple[int, int, int, int] | None:
    """Where a field starts and ends: slot and distance of both; None when the packet has none."""
    found = PLACES[layout].get(path)
    if found is None:
        return None
    if len(found) == 3:
        return found[0], found[1], found[0], found[1] + found[2]
    slot, plus, end_slot, end_plus = found
    return slot, plus, end_slot, end_plus


class IntegerPlan(NamedTuple):
    """For `extract.integers`: the fields of each kind of packet, and what tells that they are there.

    Attributes:
        columns: of each column its type, its place among those of this type, and which cells tell what of
            it is there: those are the same for columns that stand in the same part of packets.
        counts: how many columns of each type.
        valid: how many cells tell what is there.
    """

    fields: Any
    field_counts: Any
    there: Any
    there_counts: Any
    columns: dict[str, tuple[int, int, int]]
    counts: list[int]
    valid: int


def integer_plan(columns: Sequence[Column]) -> IntegerPlan:
    """The plan of some columns."""
    kinds, width = len(LAYOUTS), max(1, len(columns))
    types = {pa.bool_(): BOOL, pa.int32(): INT32, pa.int64(): INT64, pa.timestamp("s", tz="UTC"): INT64}
    places: dict[str, tuple[int, int, int]] = {}
    counts = [0] * 3
    valid: dict[tuple[int, ...], int] = {}
    fields: list[list[tuple[int, ...]]] = [[] for _ in range(kinds)]
    for column in columns:
        found = [_integer(column, layout) for layout in LAYOUTS]
        slots = tuple(-1 if field is None else field[0] for field in found)
        form = types[column.type]
        places[column.name] = form, counts[form], valid.setdefault(slots, len(valid))
        for kind, field in enumerate(found):
            if field is not None:
                fields[kind].append((counts[form], form, *field))
        counts[form] += 1
    plan = np.zeros((kinds, width, fixed_cells.PLAN_FIELDS), np.int64)
    there = np.zeros((kinds, width, 2), np.int64)
    field_counts, there_counts = np.zeros(kinds, np.int64), np.zeros(kinds, np.int64)
    for kind in range(kinds):
        for row in sorted(fields[kind], key=lambda field: field[fixed_cells.P_SLOT]):
            plan[kind, field_counts[kind]] = row
            field_counts[kind] += 1
        for slots, number in valid.items():
            if slots[kind] >= 0:
                there[kind, there_counts[kind]] = number, slots[kind]
                there_counts[kind] += 1
    return IntegerPlan(plan, field_counts, there, there_counts, places, counts, len(valid))


def _integer(column: Column, layout: str) -> tuple[int, int, int, int, int] | None:
    """Slot and distance of a column's field in a kind of packet, its size, and its shift and mask."""
    for path in column.paths:
        if not _has(layout, path):
            continue
        node, name = _node(layout, path)
        word = path.removesuffix(f".{name}") if name else path
        slot, plus, size = PLACES[layout][word]
        if not name:
            return slot, plus, size, 0, (1 << 8 * size) - 1
        assert isinstance(node, Flags)
        part = next(p for p in node.parts if p.name == name)
        return slot, plus, size, part.shift, part.mask >> part.shift
    return None


def span_plans(columns: Sequence[Column], body_limit: int | None) -> tuple[Any, Any]:
    """For `variable_cells.cells`: what it knows of each column, and their plans."""
    found = np.zeros((len(columns), cells.SPAN_FIELDS), np.int64)
    made = np.full((len(columns), len(LAYOUTS), cells.PLAN_FIELDS), -1, np.int64)
    for column, span, plan in zip(columns, found, made, strict=True):
        form = form_of(column)
        span[cells.S_FORM] = _SPANS[form]
        span[cells.S_MOST] = body_limit if column.name == "body" and body_limit is not None else 1 << 62
        span[cells.S_UNLESS_EMPTY] = column.convert is not None
        if form == "queue":
            _plan_queue(column, plan)
        elif form != "where":
            _plan_span(_SENDER if form == "sender" else column.paths[0], plan)
        if form == "sender":
            slot, plus, _ = PLACES["UserMessage"]["SecurityHeader.Flags"]
            mask = SECURITY_HEADER.bits("Flags.ST").mask
            plan[:, [cells.T_SLOT, cells.T_PLUS, cells.T_MASK]] = slot, plus, mask
        kinds = np.flatnonzero(plan[:, cells.SLOT] >= 0)
        span[cells.S_KINDS] = -1 if form == "where" else (1 << kinds).sum()
    return found, made


def _plan_span(path: str, plan: Any) -> None:
    """For fields of bytes, texts and GUIDs: where each kind of packet has them."""
    for kind, layout in enumerate(LAYOUTS):
        found = place(layout, path)
        if found is not None:
            plan[kind, :4] = found


def _plan_queue(column: Column, plan: Any) -> None:
    """For queues of the UserHeader."""
    name, word = _QUEUES[column.convert]
    for kind, layout in enumerate(LAYOUTS):
        places = PLACES[layout]
        if f"UserHeader.{name}" not in places:
            continue
        plan[kind, [cells.Q_FLAGS_SLOT, cells.Q_FLAGS]] = places["UserHeader.Flags"][:2]
        plan[kind, cells.Q_SOURCE] = places["UserHeader.SourceQueueManager"][1]
        plan[kind, cells.Q_TARGET] = places["UserHeader.QueueManagerAddress"][1]
        plan[kind, cells.Q_SHIFT] = USER_HEADER.bits(word).shift
        plan[kind, [cells.Q_SLOT, cells.Q_PLUS]] = places[f"UserHeader.{name}"][:2]
        if column.convert is response_queue:
            plan[kind, cells.Q_ADMIN_SHIFT] = USER_HEADER.bits("Flags.AQ").shift
            plan[kind, [cells.Q_ADMIN_SLOT, cells.Q_ADMIN_PLUS]] = places["UserHeader.AdminQueue"][:2]
