"""Parts of captures as captures again: the frames that carry the packets which are wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from msmqwire.analysis.dissection import Dissection
from msmqwire.analysis.dissection.item import Item
from msmqwire.capture import IpDecoder
from msmqwire.capture.record import Record
from msmqwire.capture.tunnels import network_of_text

CONNECTIONS_MAX: Final = 1 << 20
"""Connections that can be written whole."""


class TooManyConnections(Exception):
    """More connections are to be written whole than there is room for."""


class FrameSet:
    """A set of frame numbers, of a bit for each frame up to the last."""

    def __init__(self) -> None:
        self._bits = bytearray()
        self.count = 0

    def add(self, number: int) -> None:
        at, bit = number >> 3, 1 << (number & 7)
        if at >= len(self._bits):
            self._bits.extend(bytes(at + 1 - len(self._bits)))
        if not self._bits[at] & bit:
            self._bits[at] |= bit
            self.count += 1

    def __contains__(self, number: int) -> bool:
        at = number >> 3
        return at < len(self._bits) and bool(self._bits[at] & 1 << (number & 7))


class Found(NamedTuple):
    """The selection of packets and frames in captures.

    Attributes:
        packets: the number of packets wanted.
        frames: the frames that carry them, numbered on from file to file.
        connections: transport, endpoints and network of those packets.
    """

    packets: int
    frames: FrameSet
    connections: set[tuple[str, frozenset[tuple[str, int]], int]]


def find(dissection: Dissection, is_wanted: Callable[[Item], bool]) -> Found:
    """Find the frames of the wanted packets.

    Args:
        dissection: the dissection of the captures; their frames become `numbers_across` them.
        is_wanted: whether a packet is wanted.

    Raises:
        TooManyConnections: their packets belong to more than `CONNECTIONS_MAX` connections.
    """
    dissection.numbers_across = True
    found = Found(0, FrameSet(), set())
    packets, last, last_ends = 0, tuple[int, ...](), tuple[object, ...]()
    for item in dissection:
        if not is_wanted(item):
            continue
        packets += 1
        if item.frames is not last:  # the packets of a segment in many fragments share them
            for number in item.frames:
                found.frames.add(number)
        last = item.frames
        if len(found.connections) >= CONNECTIONS_MAX:
            raise TooManyConnections(f"more than {CONNECTIONS_MAX} connections")
        ends = item.src, item.src_port, item.dst, item.dst_port, item.transport, item.encapsulation
        if ends != last_ends:  # one packet of a connection often follows another
            last_ends = ends
            found.connections.add(_key(item))
    return found._replace(packets=packets)


def frames_of_connections(records: Iterator[Record], found: Found) -> None:
    """Add all frames between the endpoints of the wanted packets to the frames found.

    Of ports that are used again, the frames of all their connections are added.
    """
    decoder = IpDecoder()
    for record in records:
        for datagram in decoder.feed(record):
            if _key(datagram) in found.connections:
                for number in datagram.frames:
                    found.frames.add(number)


def _key(end_to_end: Any) -> tuple[str, frozenset[tuple[str, int]], int]:
    """Return transport, endpoints and network of an item or a datagram, the same in both directions."""
    ends = ((end_to_end.src, end_to_end.src_port), (end_to_end.dst, end_to_end.dst_port))
    return end_to_end.transport, frozenset(ends), network_of_text(end_to_end.encapsulation.text)
