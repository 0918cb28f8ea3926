"""``msmqwire parse``: bytes of one packet to one JSON object."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, TextIO, cast, get_args

from click import BadParameter
from click.exceptions import Exit

from msmqwire.cli.common import EX_DATAERR, EX_NOINPUT, NoInput, from_hex, read_input, say
from msmqwire.cli.options import Argument, MoreOptions, Option
from msmqwire.cli.protocols import protocols
from msmqwire.cli.protocols.protocol import Format
from msmqwire.errors import LocatedError
from msmqwire.json_text import dumps
from msmqwire.packets import Protocol, parse
from msmqwire.ping import PING_SIGNATURE, PING_SIZE

AUTO: Final = "auto"
OWN: Final[tuple[str, ...]] = (AUTO, *get_args(Protocol))
"""Automatic detection, and what `msmqwire.parse` reads."""


def formats() -> tuple[Format, ...]:
    """Return the forms of packets in files, of protocols that have joined."""
    return tuple(protocol.format for protocol in protocols() if protocol.format is not None)


def format_of(data: bytes, kind: str) -> Format | None:
    """Return the form of bytes of a protocol that has joined; None for packets of MSMQ."""
    for one in formats():
        if kind == one.name or (kind == AUTO and data.startswith(one.starts)):
            return one
    return None


def protocol_of(data: bytes, kind: str) -> Protocol:
    """Return the protocol of a packet; if detected, 24 bytes with the signature of a ping are a ping."""
    if kind != AUTO:
        return cast(Protocol, kind)
    has_signature = data[2:4] == PING_SIGNATURE.to_bytes(2, "little") and data[4:8] != b"LIOR"
    return "ping" if has_signature and len(data) == PING_SIZE else "session"


def run(
    data: bytes,
    out: TextIO,
    err: TextIO,
    *,
    kind: str = AUTO,
    indent: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> int:
    """Print the packet, or all that a format has in one file; return the exit status.

    Raises BadParameter for options of the format.
    """
    joined = format_of(data, kind)
    packets: Iterable[dict[str, Any]]
    try:
        packets = [_to_json(data, kind)] if joined is None else joined.parse(data, **(options or {}))
        for packet in packets:
            print(dumps(packet, indent=indent), file=out)
    except LocatedError as exc:
        say(exc, err)
        return EX_DATAERR
    return 0


def _to_json(data: bytes, kind: str) -> dict[str, Any]:
    packet = parse(data, protocol=protocol_of(data, kind))
    result = packet.to_json()
    for protocol in protocols():
        enclosed = protocol.enclosed
        if enclosed is not None and getattr(packet, enclosed.header, None) is not None:
            result[protocol.name] = enclosed.to_json(packet)
    return result


def _kinds() -> tuple[str, ...]:
    return (*OWN, *(one.name for one in formats()))


def _options() -> dict[str, Any]:
    return {name: hint for one in formats() for name, hint in one.options.items()}


def _refuse_foreign(kind: str, options: Mapping[str, Any]) -> None:
    """Raise BadParameter for an option of another format."""
    for one in formats():
        given = [name for name in one.options if options.get(name)]
        if given and one.name != kind:
            raise BadParameter(f"for {one.title} only", param_hint=f"--{given[0]}")


def command(
    file: Annotated[
        str,
        Argument(
            metavar="PATH",
            help="File with {bytes}; - is standard input.",
        ),
    ] = "-",
    hex_text: Annotated[bool, Option("--hex", help="The input is hex text.")] = False,
    protocol: Annotated[str, Option(help="Protocol of the bytes.", choices=_kinds)] = AUTO,
    **options: Annotated[Any, MoreOptions(_options)],
) -> None:
    """Parse one packet and print it as one JSON object{parsed}."""
    try:
        data = read_input(file)
        if hex_text:
            data = from_hex(data)
    except NoInput as exc:
        say(str(exc))
        raise Exit(EX_NOINPUT) from None
    except LocatedError as exc:
        say(exc)
        raise Exit(EX_DATAERR) from None
    indent = 2 if sys.stdout.isatty() else None
    _refuse_foreign(protocol, options)
    own = next((one.options for one in formats() if one.name == protocol), ())
    given = {name: options[name] for name in own}
    raise Exit(run(data, sys.stdout, sys.stderr, kind=protocol, indent=indent, options=given))
