"""The limits on the resources that clients of a NetWare server may use, and the counters of its traffic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SPARE_CONNECTIONS: Final = 64
"""TCP connections beyond the service connections: their clients get an answer that reports too many
connections.
"""


@dataclass(frozen=True, slots=True)
class NcpLimits:
    """Limits on the resources that clients may use.

    Attributes:
        connections: service connections at once; `SPARE_CONNECTIONS` more TCP connections are accepted.
        connections_per_peer: TCP connections from one IPv4 address or one IPv6 network of 64 bits.
        reserved_percent: percent of the service connections that clients can't have before a login; half of
            it is for known addresses: a client has logged in from there by a password of a supervisor's.
        held_bytes: bytes of incomplete requests, of requests that wait for an earlier one, and of replies
            that clients have not read, of all connections together. In addition each keeps its last reply, of
            at most 64 KiB.
        partial_s: seconds from the first byte of a request to its last one, from a TCP connection to its
            service connection, and without any byte read of the replies that wait for a client.
        idle_s: seconds that a connection may have no request.
        close_s: seconds that a client has to read its data before its connection is closed.
        unwanted_bytes: bytes that a client may send in that time before its connection is closed at once.
    """

    connections: int = 1000
    connections_per_peer: int = 250
    reserved_percent: int = 25
    held_bytes: int = 64 << 20
    partial_s: float = 30.0
    idle_s: float = 3600.0
    close_s: float = 5.0
    unwanted_bytes: int = 1 << 20


@dataclass(slots=True)
class NcpTraffic:
    """Counters of NCP."""

    accepted: int = 0
    refused: int = 0
    evicted: int = 0
    ended: int = 0
    requests: int = 0
    calls_refused: int = 0
    refused_for_share: int = 0
