"""The address part of direct format names, by protocol: [MS-MQMQ] 2.1.2."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from ipaddress import ip_address, ip_network
from types import MappingProxyType
from typing import Final

from msmqwire.errors import InvalidArgument
from msmqwire.names.grammar import COMPUTER_MAX, DIGITS, PORT_MAX, Scanner

# MQMQ-2.1.2-10, MQMQ-2.1.2-11 and SRMP-2.1.1-03
HTTP_PORTS: Final = MappingProxyType({"HTTP": 80, "HTTPS": 443})
HTTP_ROOT: Final = "/MSMQ"  # MQMQ-2.1.2-10

_IPX = re.compile(r"[0-9A-Fa-f]{1,8}:[0-9A-Fa-f]{1,12}")
_SPX = re.compile(r"[0-9A-Fa-f]{8}\.[0-9A-Fa-f]{12}")
# Allowed in a computer name neither by NetBIOS nor by DNS; both allow letters outside ASCII.
_NOT_IN_COMPUTER = frozenset('\\/:*?"<>|,;')


def without_brackets(address: str) -> str:
    """Return an IPv6 address without its brackets, anything else unchanged."""
    return address[1:-1] if address[:1] == "[" and address[-1:] == "]" else address


def captured_address(text: str, path: str) -> str:
    """Return an IP address as captures have it, in its shortest form, for a parameter of this path.

    Raises InvalidArgument for anything else, which no packet comes from or goes to.
    """
    if is_ip(text):
        return str(ip_address(text))
    hint = ""
    with suppress(ValueError):
        ip_network(text, strict=False)
        hint = ", but a network; where \"src like '10.1.%'\" finds the addresses of one"
    raise InvalidArgument(f"{text!r:.80} is not an address{hint}", path=path)


def is_loopback(host: str) -> bool:
    """Whether a host is ``localhost`` or a loopback address, without brackets."""
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def is_ip(text: str) -> bool:
    """Whether a text is an IP address, without brackets and zone."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return "%" not in text  # RFC 3986 has no zone


def _up_to_backslash(scan: Scanner) -> str:
    stop = scan.text.find("\\", scan.position, scan.end)
    if stop < 0:
        scan.fail("no backslash and queue name after the address", scan.end)
    return scan.text[scan.position : stop]


def _computer(scan: Scanner, name: str) -> None:
    if not 1 <= len(name) <= COMPUTER_MAX:
        scan.fail(f"the computer name does not have 1 to {COMPUTER_MAX} characters")
    for position, character in enumerate(name, scan.position):
        if character in _NOT_IN_COMPUTER or character.isspace() or not character.isprintable():
            scan.fail(f"{character!a} can't be in a computer name", position)


def _tcp(scan: Scanner) -> str:
    address = _up_to_backslash(scan)
    inner = without_brackets(address)
    if not is_ip(inner) or (inner != address and ":" not in inner):  # MQMQ-2.1.2-07
        scan.fail("TCP takes an IP address")
    scan.position += len(address)
    return address


def _os(scan: Scanner) -> str:
    address = _up_to_backslash(scan)
    _computer(scan, address)  # MQMQ-2.1.2-09
    scan.position += len(address)
    return address


def _ipx(scan: Scanner) -> str:
    address = _up_to_backslash(scan)
    if not _IPX.fullmatch(address):  # MQMQ-2.1.2-08
        scan.fail("IPX takes a network number, a colon and a host number")
    scan.position += len(address)
    return address


def _spx(scan: Scanner) -> str:
    address = _up_to_backslash(scan)
    if not _SPX.fullmatch(address):
        scan.fail("SPX takes 8 hexadecimal digits, a dot and 12 more")
    scan.position += len(address)
    return address


def _http(scan: Scanner) -> str:
    if not scan.take("//"):
        scan.fail("two slashes are missing after the protocol")
    rest = scan.text[scan.position : scan.end]
    bracketed = re.match(r"\[[^\]\\/]*\]", rest)
    host = bracketed[0] if bracketed else re.split(r"[:/\\]", rest, maxsplit=1)[0]
    if not bracketed:
        _computer(scan, host)
    elif ":" not in host or not is_ip(without_brackets(host)):
        scan.fail("not an IPv6 address")
    scan.position += len(host)
    port = _http_port(scan)
    if not scan.take(HTTP_ROOT):
        scan.fail(f"{HTTP_ROOT} is missing after the host")
    return f"//{host}{'' if port is None else f':{port}'}{HTTP_ROOT}"


def _http_port(scan: Scanner) -> int | None:
    if not scan.take(":"):
        return None
    start = scan.position
    while scan.position < scan.end and scan.text[scan.position] in DIGITS:
        scan.position += 1
    # The grammar does not limit the digits; without leading zeroes they must be a port.
    digits = scan.text[start : scan.position].lstrip("0") or "0"
    if len(digits) > len(str(PORT_MAX)) or int(digits) > PORT_MAX:
        scan.fail(f"the port is greater than {PORT_MAX}", start)
    return int(digits) if scan.position > start else None  # MQMQ-2.1.2-12


ADDRESS_READERS: Final[Mapping[str, Callable[[Scanner], str]]] = MappingProxyType(
    {"TCP": _tcp, "OS": _os, "HTTP": _http, "HTTPS": _http, "IPX": _ipx, "SPX": _spx}
)
"""The scanners of addresses by protocol: each returns the canonical text."""
