"""The peer that is tested, and the extent: the options of a run, and the rules that keep it from other
computers.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from fuzz.peer.steps import ADDRESS
from msmqwire.errors import InvalidValue
from msmqwire.names.nearest import unknown_name
from msmqwire.ping import PING_PORT
from msmqwire.remote_read.constants import DEFAULT_PORT

MSMQ_PORT: Final = 1801
PROTOCOLS: Final = ("binary", "srmp", "remote-read", "ping")
PACKETS_A_SECOND: Final = 5_000
PACKETS_MAX: Final = 10_000_000
"""The limit of any run, whatever its time."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of a peer, by protocol.

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
    """A peer and the facts known about it.

    Attributes:
        host: its IPv4 address.
        ports: the ports that it listens at.
        queue: a non-transactional private queue that it has, by its path name without the computer.
        transactional_queue: a transactional one; empty when it has none.
        bound: seconds within which a fresh session must be answered.
        own: the address of this computer in the bytes of steps, to which the peer sends acknowledgements.
    """

    host: str
    ports: Ports
    queue: str = "private$\\orders"
    transactional_queue: str = ""
    bound: float = 5.0
    own: str = ADDRESS

    def port(self, protocol: str) -> int:
        """Return where the peer listens for a protocol."""
        return int(getattr(self.ports, protocol.replace("-", "_")))

    @property
    def loopback(self) -> bool:
        """Whether the peer is on this computer."""
        return ipaddress.ip_address(self.host).is_loopback


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Settings of the test of a peer.

    Attributes:
        protocols: some of `PROTOCOLS`.
        time: seconds.
        seed: the same seed draws the same inputs.
        out: the folder for findings.
        restart: a shell command that brings the peer back after its end.
        pid: the process whose resident memory is watched.
        failures_max: the number of failures after which the run ends.
    """

    protocols: tuple[str, ...] = ("binary", "ping")
    time: float = 60.0
    seed: int = 0
    out: Path = Path("msmqwire-fuzz")
    restart: str | None = None
    pid: int | None = None
    failures_max: int = 50


def target_of(
    peer: str,
    protocols: Sequence[str],
    ports: Mapping[str, int] | None = None,
    consent: str | None = None,
    **more: Any,
) -> Target:
    """Return the target of ``HOST:PORT``.

    Args:
        peer: the host, and the port of the first protocol.
        protocols: the protocols to test.
        ports: those of further protocols, if they are not the usual ones.
        consent: the host once more, if it is another computer.
        more: other attributes of the target.

    Raises InvalidValue.
    """
    host, colon, port = peer.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise InvalidValue(f"{peer!r} is not HOST:PORT")
    if unknown := [name for name in (*protocols, *(ports or ())) if name not in PROTOCOLS]:
        raise unknown_name(unknown[0], PROTOCOLS, "protocol")
    given = {protocols[0]: int(port), **(ports or {})}
    numbers = {name.replace("-", "_"): number for name, number in given.items()}
    address = _consented(host, consent)
    target = Target(address, Ports(**{"binary": MSMQ_PORT, **numbers}), **more)
    return target if target.loopback else replace(target, own=_own_address(address))


def _consented(host: str, consent: str | None) -> str:
    """Return the address of a host that may be tested: one of this computer, or one named twice."""
    try:
        found = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise InvalidValue(f"{host!r} is not an IPv4 address or name of a host: {exc}") from None
    address = str(found[0][4][0])
    if not ipaddress.ip_address(address).is_loopback and consent != host:
        raise InvalidValue(f"{host} is not this computer: name it once more with --consent {host}")
    return address


def _own_address(peer: str) -> str:
    """Return the address of this computer that another one sees."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect((peer, MSMQ_PORT))
        except OSError as exc:
            raise InvalidValue(f"there is no way to {peer}: {exc.strerror or exc}") from None
        return str(sock.getsockname()[0])


def queue_path(name: str) -> str:
    r"""Return the path name of a queue without its computer: ``private$\orders`` of any form of its name."""
    for prefix in ("DIRECT=TCP:", "DIRECT=OS:"):
        if name.upper().startswith(prefix):
            name = name[len(prefix) :].partition("\\")[2]
    return name.removeprefix(".\\")
