"""Bodies of rows of sessions, those alike together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final

import numpy as np

from msmqwire.analysis.dissection.contents import MessageBody
from msmqwire.analysis.report.body_types import LOOKED_AT, BodyTypes
from msmqwire.analysis.report.grouped import Grouped
from msmqwire.analysis.report.row_columns import RowColumns
from msmqwire.analysis.report.row_texts import SECURITY
from msmqwire.headers import SECURITY_HEADER
from msmqwire.names.printable import cut
from msmqwire.tables.compiled.generated import FIELD_SLOTS
from msmqwire.tables.row_headers import structure_of

_BODY: Final = FIELD_SLOTS["UserMessage"]["MessagePropertiesHeader.MessageBody"]
_EXTENSION: Final = FIELD_SLOTS["UserMessage"]["MessagePropertiesHeader.ExtensionData"]
_SECURITY_FLAGS: Final = structure_of("SecurityHeader", {"Flags": "<u2"})
_IS_ENCRYPTED: Final = SECURITY_HEADER.bits("Flags.EB").mask


def add_bodies(
    types: BodyTypes, rows: RowColumns, again: Any, first: int, examples: Mapping[int, int], text_max: int
) -> None:
    """Count the types of the bodies of rows.

    Args:
        types: counts them.
        rows: the rows.
        again: for each whether it was sent before: its body does not count then.
        first: the row of the first in the table of packets, or -1 if they are not there.
        examples: the rows of the table of those of them that are there all the same.
        text_max: characters of the name of a queue.
    """
    of_users = np.flatnonzero(rows.are_messages & ~again[rows.users])
    at = rows.users[of_users]
    if not len(at):
        return
    shown = np.arange(first, first + len(rows)) if first >= 0 else np.full(len(rows), -1)
    shown[list(examples)] = list(examples.values())
    numbers, of_table = rows.by_queue.numbers[of_users], shown[at]
    bodies = [body[:LOOKED_AT] for body in rows.field_bytes(at, _BODY)]
    columns = numbers.tolist(), rows.properties["BodyType"][of_users].tolist(), (of_table >= 0).tolist()
    keys: list[Hashable] = list(zip(bodies, rows.field_bytes(at, _EXTENSION), *columns, strict=True))
    secured = np.flatnonzero(rows.slots(SECURITY, at) >= 0)
    flags = rows.headers(_SECURITY_FLAGS, at[secured], SECURITY)["Flags"]
    for i in secured[flags & _IS_ENCRYPTED != 0].tolist():
        keys[i] = i  # its item can decrypt it
    alike = Grouped(keys)
    names = [cut(name, text_max) for name in rows.queue_names]
    for key, i, count in zip(alike.keys, alike.first.tolist(), alike.counts.tolist(), strict=True):
        queue, row = names[numbers[i]], int(of_table[i])
        if key == i:
            types.add(rows.item(int(at[i])), queue, row)
        elif queue:
            body, extension, _, body_type, _ = key
            types.add_alike(MessageBody(body, len(body), body_type, extension), queue, row, count)
