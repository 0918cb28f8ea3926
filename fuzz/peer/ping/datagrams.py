"""The datagrams that are sent to the ping port of a peer."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final
from uuid import UUID

from fuzz.peer.steps import IDENTITY
from msmqwire.errors import MalformedPacket
from msmqwire.ping import PING, PING_SIZE, is_ping
from msmqwire.schema import Record, field_offset

NO_GUID: Final = UUID(int=0)
DATAGRAM_MAX: Final = 65_507
"""The most bytes that a datagram of UDP over IPv4 has."""
_COOKIE: Final = field_offset(PING, "Cookie")


class Manner(Enum):
    """The behaviour of a peer that answers pings for a datagram."""

    ANSWERED = "answered"
    FREE = "answered or not: the specification has no rule"
    IGNORED = "ignored"


def request(cookie: int, **fields: Any) -> bytes:
    """Return a Ping Request: [MS-MQQB] 2.2.7; `fields` are put over the usual ones."""
    return bytes(PING.build({"Cookie": cookie, "QMGuid": IDENTITY, **fields}))


def asked(data: bytes) -> Record | None:
    """Return the Ping Request that a datagram is or begins with; None if it is none."""
    try:
        packet: Record = PING.parse(data[:PING_SIZE])
    except MalformedPacket:
        return None
    return packet


def manner(data: bytes) -> Manner:
    """Return the right behaviour for a datagram.

    Bytes after a Ping Packet may be overlooked, a response (RF set) may be taken for a request, and one
    from nobody (a zero QMGuid) be mistrusted.
    """
    packet = asked(data)
    if packet is None:
        return Manner.IGNORED
    if not is_ping(data) or packet.Flags.RF or packet.QMGuid == NO_GUID:
        return Manner.FREE
    return Manner.ANSWERED


def cookie_of(data: bytes) -> int | None:
    """Return the bytes at the place of the Cookie of a Ping Packet; None if the bytes end before."""
    cookie = data[_COOKIE : _COOKIE + 4]
    return int.from_bytes(cookie, "little") if len(cookie) == 4 else None


def kind(data: bytes) -> str:
    """Return the kind of a datagram, for the counts of the report."""
    return "Ping" if is_ping(data) else "MalformedPing"
