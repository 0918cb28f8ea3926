"""The text form of addresses in OutgoingQueue.NextHops: [MS-MQMQ] 2.3.12.12."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import MappingProxyType
from typing import Final
from uuid import UUID

from msmqwire.errors import InvalidValue

Address = IPv4Address | IPv6Address | UUID
"""Where a message goes next: an IP address, or the queue manager of a foreign system."""

_READERS: Final[Mapping[str, Callable[[str], Address]]] = MappingProxyType(
    {"IP": IPv4Address, "IPV6": IPv6Address, "FOREIGN": UUID}
)


def address_text(address: str | Address) -> str:
    """The text of an address: ``IP=10.0.0.5``, ``IPv6=fd00::5`` or ``FOREIGN=`` and a GUID.

    Args:
        address: an IP address, as text too, or a GUID. The zone of an IPv6 address is left out, because the
            text has no place for it.

    Raises:
        InvalidValue: the text is no IP address.
    """
    if isinstance(address, UUID):
        return f"FOREIGN={str(address).upper()}"
    try:
        found = ip_address(address)
    except ValueError as error:
        raise InvalidValue(f"{address!a} is no IP address", path="NextHops") from error
    return f"IP={found}" if found.version == 4 else f"IPv6={IPv6Address(int(found))}"


def parse_address(text: str) -> Address:
    """The address that a text stands for.

    Raises:
        InvalidValue: it breaks the grammar of [MS-MQMQ] 2.3.12.12.
    """
    prefix, equals, rest = text.partition("=")
    reader = _READERS.get(prefix.upper()) if equals and prefix.isascii() else None
    if reader is None:
        raise InvalidValue(f"{text!a} does not begin with IP=, IPv6= or FOREIGN=", path="NextHops")
    try:
        found = reader(rest)
    except ValueError as error:
        raise InvalidValue(f"{rest!a} is no address of its kind", path="NextHops") from error
    if (isinstance(found, UUID) and rest.lower() != str(found)) or "%" in rest:
        raise InvalidValue(f"{rest!a} is no address of its kind", path="NextHops")
    return found
