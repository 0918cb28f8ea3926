"""Commits of several writers: who is refused, as another one came before, plans again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

from msmqwire.errors import LakeError
from msmqwire.tables.lake.delta_errors import Refused
from msmqwire.tables.lake.place import Place
from msmqwire.tables.lake.state import LakeState
from msmqwire.tables.lake.table import LakeTable, opened

T = TypeVar("T")
_IN_VAIN_MAX: Final = 5
"""Refusals after which a writer gives up if no other commit has come."""
_WAIT_S: Final = 0.05


def until_accepted(place: Place, attempt: Callable[[tuple[LakeTable, LakeState] | None], T]) -> T:
    """Return what an attempt does to the last version of a lake, repeated until no other writer comes before.

    Args:
        place: where the lake is.
        attempt: gets the last version with its state, None if there is no lake yet; raises `Refused` if
            another commit has come since.

    Raises:
        LakeError: it is refused though there is no other commit.
        Whatever else `attempt` and `msmqwire.tables.lake.table.opened` raise.
    """
    last, in_vain = None, 0
    while True:
        found = opened(place)
        try:
            return attempt(found)
        except Refused as exc:
            version = -1 if found is None else found[0].version
            in_vain = in_vain + 1 if version == last else 0
            last = version
            if in_vain == _IN_VAIN_MAX:
                raise LakeError(f"the commit is refused: {exc}", file=place.shown) from None
            time.sleep(random.uniform(0, _WAIT_S))
