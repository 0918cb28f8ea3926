"""Statistics of the files of a lake, by which readers of its log pass over files.

Of each column that people filter by: the least and the greatest value, and the number of nulls. Texts are cut
at 32 characters and times at milliseconds; a greatest value is rounded up, so that no row is beyond it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

COLUMNS: Final = (
    "time", "time_ns", "kind", "destination", "src", "src_port", "dst", "dst_port", "message_id", "file",
    "part",
)  # fmt: skip
"""The columns that have statistics; the library looks at the first 32 of a table otherwise."""
TEXT_LENGTH: Final = 32
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = 1000
_LAST: Final = chr(0x10FFFF)
_SURROGATES: Final = (0xD800, 0xE000)


def statistics(metadata: Any, schema: pa.Schema) -> str:
    """Return the statistics of a Parquet file as the log has them, in JSON.

    Args:
        metadata: the `pyarrow.parquet.FileMetaData` of the file.
        schema: the schema of its rows; a column that the file has not is null in all of them.
    """
    least, greatest, nulls = dict[str, Any](), dict[str, Any](), dict[str, int]()
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    places = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    for name in COLUMNS:
        if name not in schema.names:
            continue
        if name not in places:
            nulls[name] = metadata.num_rows
            continue
        kind = schema.field(name).type
        found = [group.column(places[name]).statistics for group in groups]
        if any(chunk is None or not chunk.has_null_count for chunk in found):
            continue
        nulls[name] = sum(chunk.null_count for chunk in found)
        bounds = [
            chunk for chunk, group in zip(found, groups, strict=True) if chunk.null_count < group.num_rows
        ]
        if not bounds or not all(chunk.has_min_max for chunk in bounds):
            continue
        if pa.types.is_timestamp(kind):
            least[name] = _milliseconds(min(chunk.min_raw for chunk in bounds) // _MS)
            greatest[name] = _milliseconds(-(-max(chunk.max_raw for chunk in bounds) // _MS))
        elif pa.types.is_string(kind):
            least[name] = min(chunk.min for chunk in bounds)[:TEXT_LENGTH]
            above = text_above(max(chunk.max for chunk in bounds))
            if above is not None:
                greatest[name] = above
        else:
            least[name] = min(chunk.min for chunk in bounds)
            greatest[name] = max(chunk.max for chunk in bounds)
    rows = {"numRecords": metadata.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}
    return json.dumps(rows, separators=(",", ":"))


def text_above(text: str) -> str | None:
    """Return a text of at most 32 characters that no text is beyond which starts like this one; None if there
    is none.
    """
    if len(text) <= TEXT_LENGTH:
        return text
    kept = text[:TEXT_LENGTH].rstrip(_LAST)
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    if following == _SURROGATES[0]:
        following = _SURROGATES[1]
    return kept[:-1] + chr(following)


def _milliseconds(count: int) -> str:
    """A time as text, of a count of milliseconds since 1970."""
    return (_EPOCH + timedelta(milliseconds=count)).strftime("%Y-%m-%dT%H:%M:%S.") + f"{count % 1000:03}Z"
