"""From columns to plans: which compiled function writes a column's cells, and where its field stands.

All places come from `generated.PLACES`, all masks from the schemas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from msmqwire.columnar import extract, values
from msmqwire.columnar.columns import Column
from msmqwire.columnar.extract import BOOL, INT32, INT64
from msmqwire.columnar.generated import PLACES
from msmqwire.columnar.packet import LAYOUTS, bits
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


def integer_plan(columns: Sequence[Column]) -> tuple[Any, Any]:
    """For `extract.integers`: the fields of each kind of packet, and how many they are."""
    plan = np.zeros((len(LAYOUTS), max(1, len(columns)), extract.PLAN_FIELDS), np.int64)
    counts = np.zeros(len(LAYOUTS), np.int64)
    types = {pa.bool_(): BOOL, pa.int32(): INT32, pa.int64(): INT64, pa.timestamp("s", tz="UTC"): INT64}
    for number, column in enumerate(columns):
        for kind, layout in enumerate(LAYOUTS):
            for path in column.paths:
                if not _has(layout, path):
                    continue
                node, name = _node(layout, path)
                word = path.removesuffix(f".{name}") if name else path
                slot, plus, size = PLACES[layout][word]
                shift, mask = 0, (1 << 8 * size) - 1
                if name:
                    assert isinstance(node, Flags)
                    part = next(p for p in node.parts if p.name == name)
                    shift, mask = part.shift, part.mask >> part.shift
                row = number, types[column.type], slot, plus, size, shift, mask
                plan[kind, counts[kind]] = row
                counts[kind] += 1
                break
    return plan, counts


def span_plan(column: Column) -> Any:
    """For fields of bytes, texts and GUIDs: where each kind of packet has them."""
    plan = np.full((len(LAYOUTS), 4), -1, np.int64)
    path = _SENDER if form_of(column) == "sender" else column.paths[0]
    for kind, layout in enumerate(LAYOUTS):
        found = place(layout, path)
        if found is not None:
            plan[kind] = found
    return plan


def queue_plan(column: Column) -> Any:
    """For queues of the UserHeader."""
    plan = np.full((len(LAYOUTS), 10), -1, np.int64)
    name, word = _QUEUES[column.convert]
    for kind, layout in enumerate(LAYOUTS):
        places = PLACES[layout]
        if f"UserHeader.{name}" not in places:
            continue
        plan[kind, extract.Q_FLAGS_SLOT] = places["UserHeader.Flags"][0]
        plan[kind, extract.Q_FLAGS] = places["UserHeader.Flags"][1]
        plan[kind, extract.Q_SOURCE] = places["UserHeader.SourceQueueManager"][1]
        plan[kind, extract.Q_TARGET] = places["UserHeader.QueueManagerAddress"][1]
        plan[kind, extract.Q_SHIFT] = bits(USER_HEADER, word).shift
        plan[kind, [extract.Q_SLOT, extract.Q_PLUS]] = places[f"UserHeader.{name}"][:2]
        if column.convert is response_queue:
            plan[kind, extract.Q_ADMIN_SHIFT] = bits(USER_HEADER, "Flags.AQ").shift
            plan[kind, [extract.Q_ADMIN_SLOT, extract.Q_ADMIN_PLUS]] = places["UserHeader.AdminQueue"][:2]
    return plan


def sender_flags() -> tuple[int, int, int]:
    """Slot and distance of the flags of the SecurityHeader, and the mask of ST."""
    slot, plus, _ = PLACES["UserMessage"]["SecurityHeader.Flags"]
    return slot, plus, bits(SECURITY_HEADER, "Flags.ST").mask
