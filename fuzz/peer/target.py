"""Which peer is tested, and how far: the options of a run, and the rules that keep it from strangers."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fuzz.peer.steps import ADDRESS
from msmqwire.errors import InvalidValue
from msmqwire.ping import PING_PORT
from msmqwire.remote_read.constants import DEFAULT_PORT

PROTOCOLS: Final = ("binary", "srmp", "remote-read", "ping")
PACKETS_A_SECOND: Final = 5_000
PACKETS_MAX: Final = 10_000_000
"""No run sends more, whatever its time."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where a peer listens, by protocol.

    Attributes:
        binary, srmp, remote_read: TCP ports.
        ping: a UDP port.
    """

    binary: int
    srmp: int = 80
    remote_read: int = DEFAULT_PORT
    ping: int = PING_PORT


@dataclass(frozen=True, slots=True)
class Target:
    """A peer and what is known of it.

    Attributes:
        host: its IPv4 address.
        ports: where it listens.
        queue: a non-transactional private queue that it has, by its path name without the computer.
        transactional_queue: a transactional one; None when it has none.
        bound: seconds within which a fresh session must be answered.
        own: the address of this computer in the bytes of steps, to which the peer sends acknowledgements.
    """

    host: str
    ports: Ports
    queue: str = "private$\\orders"
    transactional_queue: str | None = None
    bound: float = 5.0
    own: str = ADDRESS

    @property
    def loopback(self) -> bool:
        """Whether the peer is on this computer."""
        return ipaddress.ip_address(self.host).is_loopback


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a peer is tested.

    Attributes:
        protocols: which, of `PROTOCOLS`.
        time: seconds.
        seed: what is drawn depends on it alone.
        out: the folder for what is found.
        restart: a shell command that brings the peer back after its end.
        pid: the process whose resident memory is watched.
    """

    protocols: tuple[str, ...] = ("binary", "ping")
    time: float = 60.0
    seed: int = 0
    out: Path = Path("msmqwire-fuzz")
    restart: str | None = None
    pid: int | None = None


def consented(host: str, consent: str | None) -> str:
    """Return the address of a host that may be tested: one of this computer, or one named twice.

    Raises InvalidValue.
    """
    try:
        address = str(socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
    except OSError as exc:
        raise InvalidValue(f"{host}: {exc.strerror or exc}") from None
    if not ipaddress.ip_address(address).is_loopback and consent != host:
        raise InvalidValue(f"{host} is another computer: name it again with --consent {host}")
    return address
