"""The columns of exact packets, and the rows that report damaged files."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import pyarrow as pa

from msmqwire.tables.columns import INT64, UNJUDGED, USUAL, arrow_schema, refuse_findings, unknown_column

FRAME_OFFSET: Final = pa.field(
    "frame_offset",
    INT64,
    metadata={
        "comment": "The byte of the unpacked file at which the record of the frame starts.",
        "group": "where",
    },
)


def packet_schema(columns: Collection[str] | None = None) -> Any:
    """Return the Arrow schema of `packets`.

    Raises:
        InvalidArgument: a column does not exist, or is that of findings.
    """
    names = columns
    if names is None:
        names = [column.name for column in USUAL] + [FRAME_OFFSET.name]
    refuse_findings(names)
    fields = {**{field.name: field for field in arrow_schema(UNJUDGED)}, FRAME_OFFSET.name: FRAME_OFFSET}
    for name in names:
        if name not in fields:
            raise unknown_column(name, known=fields)
    return pa.schema([fields[name] for name in names])


def damage_row(file: str, offset: int, why: str) -> dict[str, Any]:
    """Return the cells of the row that reports where a file could not be read further, and why."""
    return {"file": file, "kind": "Skipped", "error": f"byte {offset}: {why}"}
