"""The tunnels in which frames were, by number, and codes of frames: their numbers with those of tunnels."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

import numpy as np

from msmqwire.capture.ip import Datagram
from msmqwire.capture.tunnels import PLAIN, Encapsulation, Path, encapsulation_of, frame_in_tunnel
from msmqwire.tables.arrow.tunnel_columns import TunnelTexts
from msmqwire.tables.compiled import tunnelled
from msmqwire.tables.compiled.flow_table import new_seed
from msmqwire.tables.compiled.network import IS_NEW
from msmqwire.tables.compiled.state import TUNNEL_BITS, TUNNEL_MASK
from msmqwire.tables.compiled.tunnelled import (
    KIND_SHIFT,
    KINDS,
    P_DST_HIGH,
    P_SRC_HIGH,
    P_TUNNELS,
    P_VERSION,
    P_WORDS,
    PATH_WORDS,
    TunnelArrays,
)

_INITIAL_PATHS: Final = 64
"""Paths for which there is room at first."""
_LOW: Final = (1 << 64) - 1


class Encapsulations:
    """The tunnels of a capture: those that have a number, at most `TUNNEL_MASK`, and their values in rows.

    Frames in more different ones are as if they were in none, which only concerns the columns.

    Attributes:
        texts: their texts in rows.
        arrays: the paths of tunnels that the scan finds by itself.
    """

    def __init__(self) -> None:
        self.texts = TunnelTexts()
        self._known: list[Encapsulation] = [PLAIN]
        self._numbers = {PLAIN: 0}
        self.arrays = TunnelArrays(
            np.zeros(PATH_WORDS, np.int64),
            np.full(4 * _INITIAL_PATHS, -1, np.int32),
            np.zeros((_INITIAL_PATHS, PATH_WORDS), np.int64),
            np.zeros(_INITIAL_PATHS, np.int64),
            np.array([new_seed()], np.int64),
        )

    def number(self, encapsulation: Encapsulation) -> int:
        """Return the number of some tunnels; 0 for none, and if no number is left."""
        number = self._numbers.get(encapsulation)
        if number is None:
            number = len(self._known)
            if number > TUNNEL_MASK:
                return 0
            self.texts.add(encapsulation)
            self._known.append(encapsulation)
            self._numbers[encapsulation] = number
        return number

    def code(self, frame: int) -> int:
        """Return the code of a frame."""
        return int(frame) << TUNNEL_BITS | self.number(encapsulation_of(frame))

    def frame(self, code: int) -> int:
        """Return the frame with a code."""
        number, tunnel = code >> TUNNEL_BITS, code & TUNNEL_MASK
        return frame_in_tunnel(number, self._known[tunnel]) if tunnel else number

    def note_path(self, header: Any, datagram: Datagram) -> None:
        """Let the scan find the tunnels of a datagram by itself, if they are new to it, by its header."""
        if not header[IS_NEW] or datagram.encapsulation is PLAIN:
            return
        path = _path_of(self.arrays.path.tolist())
        if path.encapsulation() != datagram.encapsulation:
            return  # read otherwise, as where the bytes after a label seem to be another protocol
        number = self.number(datagram.encapsulation)
        if not number:
            return
        while number >= len(self.arrays.paths):
            self._grow()
        if not self.arrays.paths[number, P_WORDS]:
            self.arrays.paths[number] = self.arrays.path
            self.arrays.networks[number] = path.network()
            tunnelled.add_path(self.arrays, number)

    def _grow(self) -> None:
        path, _, paths, networks, seed = self.arrays
        paths, networks = (np.concatenate([array, np.zeros_like(array)]) for array in (paths, networks))
        self.arrays = TunnelArrays(path, np.full(4 * len(paths), -1, np.int32), paths, networks, seed)
        for number in np.flatnonzero(paths[:, P_WORDS]).tolist():
            tunnelled.add_path(self.arrays, number)


class Positions(Encapsulations):
    """Frames that have no code, as the positions of segments that are sorted by flow."""

    def code(self, frame: int) -> int:
        """Return the position of a frame."""
        return int(frame)

    def frame(self, code: int) -> int:
        """Return the frame at a position."""
        return code


def _path_of(words: list[int]) -> Path:
    """Return a path that the scan has written down; see `msmqwire.tables.compiled.tunnelled`."""
    names, numbers, at = [], [], P_TUNNELS
    while at < words[P_WORDS]:
        kind, count = words[at] >> KIND_SHIFT, words[at] & (1 << KIND_SHIFT) - 1
        names.append(KINDS[kind])
        numbers.append(tuple(words[at + 1 : at + 1 + count]))
        at += 1 + count
    src, dst = (_address(words[P_VERSION], *words[at : at + 2]) for at in (P_SRC_HIGH, P_DST_HIGH))
    return Path(tuple(names), tuple(numbers), src, dst)


def _address(version: int, high: int, low: int) -> bytes:
    if not version:
        return b""
    return IPv4Address(low).packed if version == 4 else IPv6Address((high & _LOW) << 64 | low & _LOW).packed
