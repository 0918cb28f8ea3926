"""The limits on what peers may use of a server, and the counters of its traffic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the resources that peers may use.

    Attributes:
        connections: TCP connections opened by peers.
        connections_per_peer: the same, from one IPv4 address or one IPv6 network of 64 bits.
        connect_s: seconds after which an attempt to connect is given up.
        close_s: seconds that a peer has to read what was sent before its connection is closed.
        unwanted_bytes: bytes that a peer may send in that time before its connection is closed at once.
        unsent_bytes: bytes that may wait for a peer to read them before its connection is closed.
        partial_bytes: bytes of incomplete packets, of all connections together.
        pings: ping requests answered in a second.
        pings_per_network: the same, of one IPv4 network of 24 bits or one IPv6 network of 64 bits.
        resolutions: host names resolved at once; half of them are kept for names that local applications
            send to.
        resolve_s: seconds after which a name counts as one without address.
    """

    connections: int = 1000
    connections_per_peer: int = 250
    connect_s: float = 20.0
    close_s: float = 5.0
    unwanted_bytes: int = 64 << 20
    unsent_bytes: int = 64 << 20
    partial_bytes: int = 256 << 20
    pings: int = 1000
    pings_per_network: int = 100
    resolutions: int = 16
    resolve_s: float = 10.0


LIMITS: Final = Limits()
"""The defaults."""


@dataclass(slots=True)
class Traffic:
    """Counters of network traffic."""

    bytes_received: int = 0
    bytes_sent: int = 0
    accepted: int = 0
    refused: int = 0
    connected: int = 0
    connect_failed: int = 0
    datagrams_received: int = 0
    pings_answered: int = 0
    partial_closed: int = 0
