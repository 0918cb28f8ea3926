"""The columns that say in which tunnels frames were, by the numbers of these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from msmqwire.capture.tunnels import PLAIN, Encapsulation
from msmqwire.tables.arrow.buffers import SharedTexts
from msmqwire.tables.columns import TUNNEL

_ID: str = TUNNEL[-1]


class TunnelTexts:
    """Values of rows about tunnels, by number: a list for each of `TUNNEL`, which grows. None is number 0."""

    def __init__(self) -> None:
        self.lists: dict[str, list[Any]] = {name: [] for name in TUNNEL}
        self.add(PLAIN)

    def add(self, encapsulation: Encapsulation) -> None:
        """Add tunnels, with the next number."""
        for name, value in zip(TUNNEL, encapsulation, strict=True):
            self.lists[name].append(value)


class TunnelColumns:
    """Makes the columns of `TUNNEL`.

    Attributes:
        texts: the tunnels.
    """

    def __init__(self, texts: TunnelTexts) -> None:
        self.texts, self._lists = texts, texts.lists
        self._shared: dict[str, SharedTexts] = {}

    def array(self, name: str, numbers: Any) -> Any:
        """Return a column from the numbers of the tunnels of each row, some of which are not 0."""
        values = self._lists[name][: int(numbers.max()) + 1]
        valid = np.array([value is not None for value in values])[numbers]
        if name == _ID:
            ids = np.array([value or 0 for value in values], np.int64)
            return pa.array(ids[numbers], mask=~valid)
        shared = self._shared.get(name)
        if shared is None or len(shared.texts) < len(values):
            shared = self._shared[name] = SharedTexts([value or "" for value in values])
        validity = pa.py_buffer(np.packbits(valid, bitorder="little"))
        return shared.array(np.ascontiguousarray(numbers), validity)
