"""Options of the commands that send to other computers: their addresses, TLS and multicast."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from click import BadParameter

from msmqwire.cli.options import Option
from msmqwire.cli.serving import parse_endpoint
from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.multicast.options import UDP_PORT

Pgm = Annotated[
    str | None,
    Option(
        metavar="raw|udp[:MULTICAST[:UNICAST]]|off",
        help="Transport of multicast messages: raw, IP protocol 113; udp, with its ports "
        f"({UDP_PORT}, {UDP_PORT}); or off. By default raw where the process may, else udp.",
    ),
]
PgmInterface = Annotated[
    str | None, Option(metavar="ADDR", help="Address of the interface for multicast messages.")
]
TlsAuthorities = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="PEM: the authorities of other computers' certificates, instead of those of the system.",
    ),
]
TlsVerify = Annotated[
    bool,
    Option("--tls-verify/--tls-no-verify", help="Verify the certificates of other computers, or accept any."),
]


def address_overrides(hosts: list[str], port: int, ping_port: int) -> AddressOverrides:
    """Parse ``NAME=ADDRESS[:PORT]`` options. Raises BadParameter."""
    overrides: dict[str, tuple[str, int | None]] = {}
    for text in hosts:
        name, equals, rest = text.partition("=")
        if not (name and equals and rest):
            raise BadParameter(f"{text!r} is not NAME=ADDRESS[:PORT]")
        try:
            address, number = parse_endpoint(rest, 0)
        except BadParameter:
            raise BadParameter(f"{text!r} is not NAME=ADDRESS[:PORT]") from None
        overrides[name.lower()] = address, number or None
    return AddressOverrides(port, ping_port, overrides)
