"""Sessions of a capture: TCP connections, and for datagrams pairs of computers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from msmqwire.analysis.dissection.item import Item
from msmqwire.analysis.dissection.msmq_connection import MSMQ_PORT
from msmqwire.analysis.report.alike import Alike
from msmqwire.analysis.report.facts import Group, Protocol
from msmqwire.analysis.report.limits import Limits

Key = tuple[object, ...]


@dataclass(slots=True)
class Session:
    """One session.

    Attributes:
        stream: the number of the TCP connection; None without TCP.
        left, right: address and port of both ends, that of the first sender first.
        start_ns, end_ns: the earliest and the latest time of a packet; None if no packet has one.
        protocols: the number of packets of each.
        groups: the number of packets of each.
        packets, bytes: to the right, and to the left.
        findings: departures from the specifications.
        again: packets that were sent again.
        state: the end of its handshake.
        managers: the queue managers at both ends, as far as they are known.
    """

    stream: int | None
    left: str
    right: str
    start_ns: int | None = None
    end_ns: int | None = None
    protocols: Counter[str] = field(default_factory=Counter)
    groups: Counter[Group] = field(default_factory=Counter)
    packets: list[int] = field(default_factory=lambda: [0, 0])
    bytes: list[int] = field(default_factory=lambda: [0, 0])
    findings: int = 0
    again: int = 0
    state: str = ""
    managers: list[str] = field(default_factory=lambda: ["", ""])

    def add(self, alike: Alike, sender: str) -> None:
        """Count packets of a sender."""
        to_left = sender != self.left
        self.start_ns, self.end_ns = span_with(self.start_ns, self.end_ns, alike.start_ns, alike.end_ns)
        self.protocols[alike.protocol] += alike.packets
        self.groups[alike.group] += alike.packets
        self.packets[to_left] += alike.packets
        self.bytes[to_left] += alike.bytes
        self.findings += alike.findings
        self.again += alike.again

    def note_handshake(self, item: Item, *, to_left: bool) -> None:
        """Note the queue managers in an EstablishConnection."""
        packet: Any = item.packet
        header = packet.EstablishConnectionHeader
        if is_by_initiator(item, is_first_sender=not to_left):
            self.managers[to_left] = str(header.ClientGuid)
            self.state = self.state or "asked for"
        else:
            self.managers[to_left] = str(header.ServerGuid)
            self.state = "refused" if packet.InternalHeader.Flags.CS else "accepted"

    @property
    def protocol(self) -> str:
        """The protocol of most packets that were read."""
        read = [
            (count, protocol) for protocol, count in self.protocols.items() if protocol != Protocol.UNREAD
        ]
        return max(read)[1] if read else Protocol.UNREAD

    def to_json(self) -> dict[str, Any]:
        """Return the row of the session."""
        return {
            "stream": self.stream,
            "left": self.left,
            "right": self.right,
            "start": split_time(self.start_ns),
            "end": split_time(self.end_ns),
            "protocol": self.protocol,
            "groups": dict(self.groups),
            "packets": self.packets,
            "bytes": self.bytes,
            "findings": self.findings,
            "again": self.again,
            "state": self.state,
            "managers": self.managers,
        }


def span_with(
    start_ns: int | None, end_ns: int | None, first_ns: int | None, last_ns: int | None
) -> tuple[int | None, int | None]:
    """Return the earliest and the latest time of two spans together; None for none."""
    if first_ns is None or last_ns is None:
        return start_ns, end_ns
    if start_ns is None or end_ns is None:
        return first_ns, last_ns
    return min(start_ns, first_ns), max(end_ns, last_ns)


def split_time(time_ns: int | None) -> list[int] | None:
    """Return a time as seconds and nanoseconds, which JavaScript has no integers large enough for."""
    return None if time_ns is None else list(divmod(time_ns, 1_000_000_000))


def is_by_initiator(item: Item, *, is_first_sender: bool) -> bool:
    """Return whether the opener of a session has sent an item.

    A capture may lack the beginning of a session: the end at the port of MSMQ is the one that was called. If
    both ends or none are there, the first sender has called.
    """
    at_port, to_port = item.src_port == MSMQ_PORT, item.dst_port == MSMQ_PORT
    return is_first_sender if at_port == to_port else to_port


def session_key(alike: Alike | Item, ends: tuple[str, str]) -> Key:
    """Return the key that the packets of one session have in common."""
    return ("tcp", alike.stream) if alike.stream is not None else (alike.transport, *sorted(ends))


class Sessions:
    """The sessions of captures.

    Attributes:
        sessions: the sessions by number.
        left_out: packets of sessions beyond the limit.
    """

    def __init__(self, limits: Limits) -> None:
        self.sessions: list[Session] = []
        self.left_out = 0
        self._numbers: dict[Key, int] = {}
        self._max = limits.sessions

    def number_of(self, item: Item, ends: tuple[str, str]) -> int:
        """Return the number of the session of an item that was counted; -1 beyond the limit."""
        return self._numbers.get(session_key(item, ends), -1)

    def of(self, alike: Alike, ends: tuple[str, str]) -> int:
        """Return the number of the session of packets between two ends; -1 beyond the limit."""
        key = session_key(alike, ends)
        number = self._numbers.get(key)
        if number is not None:
            return number
        if len(self.sessions) == self._max:
            self.left_out += alike.packets
            return -1
        number = self._numbers[key] = len(self.sessions)
        self.sessions.append(Session(alike.stream, *ends))
        return number
