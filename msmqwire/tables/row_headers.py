"""Headers of the packets of rows, some of their fields column by column."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.headers import USER_HEADER
from msmqwire.names.header_names import AT_DESTINATION, DIRECT, PUBLIC
from msmqwire.tables.compiled.generated import FIELD_SLOTS

_MESSAGE: Final = FIELD_SLOTS["UserMessage"]
_QUEUE_AT: Final = _MESSAGE["UserHeader.DestinationQueue"][1]
_QUEUE_KIND: Final = USER_HEADER.bits("Flags.DQ")
_COUNT_SIZE: Final = 2
"""Bytes of the length of a direct name, before it."""
_SIZES: Final = np.zeros(1 << _QUEUE_KIND.width, np.int64)
"""The size of the only field of a destination by the kind of the queue; 0 if it has none of a fixed size."""
_SIZES[AT_DESTINATION], _SIZES[PUBLIC] = 4, 16


def structure_of(header: str, fields: dict[str, str], packet: str = "UserMessage") -> Any:
    """Return the structure of fields of a header of a packet, by the name and the type of each."""
    places = [FIELD_SLOTS[packet][f"{header}.{name}"] for name in fields]
    formats = list(fields.values())
    size = max(place[1] + np.dtype(kind).itemsize for place, kind in zip(places, formats, strict=True))
    return np.dtype(
        {"names": list(fields), "formats": formats, "offsets": [one[1] for one in places], "itemsize": size}
    )


USER: Final = structure_of(
    "UserHeader",
    {"SourceQueueManager": "V32", "QueueManagerAddress": "V16", "MessageID": "<u4", "Flags": "<u4",
     "DestinationQueue": "<u2"},
)  # fmt: skip
"""Of a UserHeader; of the first GUID with the second, and of a direct name its length."""


def structures_at(memory: Any, starts: Any, kind: Any) -> Any:
    """Return the structures of a kind that begin at some places in memory."""
    return np.lib.stride_tricks.sliding_window_view(memory, kind.itemsize)[starts].view(kind)[:, 0]


def queues_of(headers: Any, starts: Any) -> tuple[Any, Any, Any]:
    """Return the kinds of the destinations in `USER` headers of packets, where they start, and their sizes.

    A direct name begins with its length; the size is 0 for kinds of names that have none.
    """
    kinds = headers["Flags"] >> _QUEUE_KIND.shift & (1 << _QUEUE_KIND.width) - 1
    of_direct = _COUNT_SIZE + headers["DestinationQueue"].astype(np.int64)
    return kinds, starts + _QUEUE_AT, np.where(kinds == DIRECT, of_direct, _SIZES[kinds])
