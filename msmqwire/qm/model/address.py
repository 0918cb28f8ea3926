"""Addresses of peers: their text form in OutgoingQueue.NextHops, [MS-MQMQ] 2.3.12.12."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import MappingProxyType
from typing import Final
from uuid import UUID

from msmqwire.errors import InvalidValue

Address = IPv4Address | IPv6Address | UUID
"""A next hop: an IP address, or the queue manager of a foreign system."""

_READERS: Final[Mapping[str, Callable[[str], Address]]] = MappingProxyType(
    {"IP": IPv4Address, "IPV6": IPv6Address, "FOREIGN": UUID}
)


def address_text(address: str | Address) -> str:
    """Return the text of an address: ``IP=10.0.0.5``, ``IPv6=fd00::5`` or ``FOREIGN=`` and a GUID.

    Args:
        address: an IP address, also as text, or a GUID. The zone of an IPv6 address is omitted, because the
            format does not provide for it.

    Raises:
        InvalidValue: the text is not an IP address.
    """
    if isinstance(address, UUID):
        return f"FOREIGN={str(address).upper()}"  # MQMQ-2.3.12.12-02
    try:
        ip = ip_address(address)
    except ValueError as error:
        raise InvalidValue(f"{address!a} is not an IP address", path="NextHops") from error
    return f"IP={ip}" if ip.version == 4 else f"IPv6={IPv6Address(int(ip))}"


def parse_address(text: str) -> Address:
    """Parse the text of an address.

    Raises:
        InvalidValue: it violates the grammar of [MS-MQMQ] 2.3.12.12.
    """
    prefix, equals, rest = text.partition("=")
    reader = _READERS.get(prefix.upper()) if equals and prefix.isascii() else None
    if reader is None:
        raise InvalidValue(f"{text!a} does not begin with IP=, IPv6= or FOREIGN=", path="NextHops")
    try:
        address = reader(rest)
    except ValueError as error:
        raise InvalidValue(f"{rest!a} is not an address of its kind", path="NextHops") from error
    if (isinstance(address, UUID) and rest.lower() != str(address)) or "%" in rest:  # MQMQ-2.3.12.12-02
        raise InvalidValue(f"{rest!a} is not an address of its kind", path="NextHops")
    return address
