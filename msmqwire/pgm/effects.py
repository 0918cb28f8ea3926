"""An effect that a source or a receiver asks for. Its owner carries the effects out in their order."""

from __future__ import annotations

from enum import Enum
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address


class Tsi(NamedTuple):
    """A transport session: the source's GSI and port, RFC 3208 section 2.1."""

    gsi: bytes
    port: int


class Multicast(NamedTuple):
    """Send a packet to the group; `ttl` is None for that of the group."""

    data: bytes
    ttl: int | None = None


class Unicast(NamedTuple):
    """Send a packet to one address."""

    data: bytes
    address: Address


class Transmitted(NamedTuple):
    """All packets of an APDU have gone out for the first time: of the oldest one not reported yet."""


class Finished(NamedTuple):
    """The source has nothing left to send or to repair."""


class Joined(NamedTuple):
    """A receiver follows a source from this sequence number on."""

    tsi: Tsi
    sequence: int


class Deliver(NamedTuple):
    """An APDU, complete and in order."""

    tsi: Tsi
    apdu: bytes


class Lost(NamedTuple):
    """Sequence numbers that can't be recovered, `first` to `last`, with the APDUs that have a part in them.

    Data after them is delivered again from the next beginning of an APDU on.
    """

    tsi: Tsi
    first: int
    last: int


class EndReason(Enum):
    """Why a receiver follows a source no longer."""

    FIN = "all data have been delivered"  # SRMP-2.1.3-10
    RST = "the source has cancelled the session"  # SRMP-2.1.3-11
    SILENT = "nothing has come for too long"
    REPLACED = "there are too many sources"


class Ended(NamedTuple):
    """The session of a source has ended. `error_code` is that of OPT_RST."""

    tsi: Tsi
    reason: EndReason
    error_code: int = 0


SourceEffect: TypeAlias = Multicast | Transmitted | Finished
ReceiverEffect: TypeAlias = Multicast | Unicast | Joined | Deliver | Lost | Ended
