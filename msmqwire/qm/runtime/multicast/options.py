"""The use of multicast by a server: the options ``--pgm`` and ``--pgm-interface``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address
from typing import Any, Final

from msmqwire.errors import InvalidValue
from msmqwire.pgm.constants import TXW_MAX_RTE

UDP_PORT: Final = 3055
"""The port of PGM in UDP, for multicast and for packets to one computer."""
TTL: Final = 16
_FORMS: Final = "raw, udp[:MULTICAST[:UNICAST]] or off"


class PgmMode(Enum):
    """The carrier of PGM packets."""

    AUTO = "auto"  # IP if the process is permitted to, else UDP
    RAW = "raw"
    UDP = "udp"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class PgmOptions:
    """Options for sending and receiving multicast messages.

    Attributes:
        mode: the carrier of the packets.
        multicast_port: the UDP port of groups.
        unicast_port: the UDP port of sources, for packets to one computer.
        interface: the address of the interface for joining groups and sending packets; None for the system's
            choice for each group.
        ttl: the largest number of routers that packets may pass, plus one.
        rate: bytes sent to one group in a second, TXW_MAX_RTE.
    """

    mode: PgmMode = PgmMode.AUTO
    multicast_port: int = UDP_PORT
    unicast_port: int = UDP_PORT
    interface: IPv4Address | None = None
    ttl: int = TTL
    rate: float = TXW_MAX_RTE

    def __post_init__(self) -> None:
        for name in ("multicast_port", "unicast_port"):
            _check(getattr(self, name), 1, 0xFFFF, name)
        _check(self.ttl, 1, 255, "ttl")
        _check(self.rate, 1, 1e9, "rate")


def _check(value: float, least: int, most: float, path: str) -> None:
    if not least <= value <= most:
        raise InvalidValue(f"{value} is not in {least}..{int(most)}", path=path)


def parse_pgm_options(
    text: str | None = None,
    interface: str | None = None,
    *,
    ttl: int = TTL,
    rate: float = TXW_MAX_RTE,
) -> PgmOptions:
    """Return the options of a command line: ``raw``, ``udp``, ``udp:3055``, ``udp:3055:3056`` or ``off``.

    None lets the server choose: raw if it is permitted to, else UDP. Raises InvalidValue.
    """
    mode, ports = PgmMode.AUTO, [UDP_PORT, UDP_PORT]
    if text is not None:
        kind, *numbers = text.lower().split(":")
        if kind not in ("raw", "udp", "off") or (numbers and kind != "udp") or len(numbers) > len(ports):
            raise InvalidValue(f"{text!r:.80} is none of {_FORMS}", path="pgm")
        mode = PgmMode(kind)
        for place, number in enumerate(numbers):
            ports[place] = _port(number, text)
    return PgmOptions(
        mode,
        ports[0],
        ports[1],
        None if interface is None else _address(interface),
        ttl,
        rate,
    )


def _port(number: str, text: str) -> int:
    if not (number.isascii() and number.isdigit() and len(number) <= 5 and 0 < int(number) <= 0xFFFF):
        raise InvalidValue(f"{text!r:.80}: {number!r:.20} is not a port, 1 to 65535", path="pgm")
    return int(number)


def _address(text: str) -> IPv4Address:
    try:
        address = IPv4Address(text)
    except ValueError:
        raise InvalidValue(f"{text!r:.80} is not an IPv4 address", path="pgm_interface") from None
    if address.is_multicast or address.is_unspecified or address.is_reserved:
        raise InvalidValue(f"{text} is not the address of an interface", path="pgm_interface")
    return address


def client_options(arguments: Mapping[str, Any]) -> PgmOptions:
    """Return the options of a program that sends, from arguments of `msmqwire.connect`.

    Raises InvalidValue.
    """
    return parse_pgm_options(arguments["pgm"], arguments["pgm_interface"])
