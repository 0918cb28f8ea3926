"""The folders of a lake: by date, and by choice by kind or queue.

Their names are ``key=value`` as Hive has them. Values may come from captures: all but plain characters are
escaped, so that no value leads elsewhere, and long ones are cut. Dates are those of UTC.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, Literal, NamedTuple
from urllib.parse import quote

import numpy as np

Keys = dict[str, str | None]
"""The values of a partition: a date as ISO text, a kind, a queue. None stands for null."""
By = Literal["kind", "destination"]
COLUMN_KEYS: Final[dict[By | None, str | None]] = {None: None, "kind": "kind", "destination": "queue"}
"""The name of the second key. A destination stays a column too: its key may be cut, or stand for several."""
PARTITIONS_MAX: Final = 256
"""Largest number of partitions of a part; rows of further ones go to those without date or queue."""
OTHER_QUEUES: Final = "~other"
"""Stands for queues beyond `PARTITIONS_MAX`; no other value starts with ``~``."""
NULL: Final = "__HIVE_DEFAULT_PARTITION__"
DAY_NS: Final = 86_400_000_000_000
_SAFE: Final = " $()+,;@!"
_LENGTH_MAX: Final = 100
_CUT_LENGTH: Final = 60


class Partition(NamedTuple):
    """The partition of a row.

    Attributes:
        day: days since 1970; None for rows without a time.
        value: the kind or the queue; None for null, or if there is no second key.
        is_other: whether it stands for the queues beyond `PARTITIONS_MAX`.
    """

    day: int | None
    value: str | None
    is_other: bool = False

    def overflow(self, by: By | None) -> Partition:
        """Return the partition for rows of this one where there are too many."""
        if by == "destination" and self.value is not None:
            return Partition(None, None, is_other=True)
        return Partition(None, self.value)

    def keys(self, by: By | None) -> Keys:
        """Return the keys, as readers see them."""
        keys: Keys = {"date": None if self.day is None else str(np.datetime64(self.day, "D"))}
        key = COLUMN_KEYS[by]
        if key is not None:
            value = self.value or None  # an empty one is null in Delta tables
            keys[key] = value if by == "kind" or value is None else queue_key(value)
            if self.is_other:
                keys[key] = OTHER_QUEUES
        return keys


def queue_key(destination: str) -> str:
    """Return the value of the key ``queue`` for a destination: itself, unless that would be too long a name.

    Then it is the beginning, ``~``, and a digest of it.
    """
    if len(_escaped(destination)) <= _LENGTH_MAX and not destination.startswith("~"):
        return destination
    digest = blake2b(destination.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    start = destination.lstrip("~")
    while len(_escaped(start)) > _CUT_LENGTH:
        start = start[:-1] if len(start) <= _CUT_LENGTH else start[:_CUT_LENGTH]
    return f"{start}~{digest}"


def folder_of(keys: Keys) -> str:
    """Return the path of a partition below the lake."""
    return "/".join(f"{name}={NULL if value is None else _escaped(value)}" for name, value in keys.items())


def _escaped(value: str) -> str:
    """Text as Hive, Spark and DuckDB unescape it: UTF-8 as ``%XX``."""
    return quote(value, safe=_SAFE, errors="surrogatepass") or NULL
