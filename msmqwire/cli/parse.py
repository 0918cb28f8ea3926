"""``msmqwire parse``: bytes of one packet to one JSON object."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, TextIO

from click import BadParameter
from click.exceptions import Exit

from msmqwire.cli.captures.readings import named_values
from msmqwire.cli.common import EX_DATAERR, EX_NOINPUT, NoInput, dumps, from_hex, read_input, say
from msmqwire.cli.errors import usage
from msmqwire.cli.options import Argument, Option
from msmqwire.errors import LocatedError, MalformedPacket
from msmqwire.names.nearest import unknown_name
from msmqwire.packets import Protocol, parse
from msmqwire.ping import PING_SIGNATURE, PING_SIZE


class Kind(StrEnum):
    """The protocol of a packet, or automatic detection."""

    AUTO = "auto"
    SESSION = "session"
    PING = "ping"
    REMOTE_READ = "remote_read"


class AnyKind(StrEnum):
    """The same for a packet or a message of SRMP."""

    AUTO = "auto"
    SESSION = "session"
    PING = "ping"
    REMOTE_READ = "remote_read"
    SRMP = "srmp"


class ParseKind(StrEnum):
    """The same for the other input of `parse`: PDUs of DCE/RPC, packets of NCP."""

    AUTO = "auto"
    SESSION = "session"
    PING = "ping"
    REMOTE_READ = "remote_read"
    SRMP = "srmp"
    RPC = "rpc"
    NCP = "ncp"


# None of them begins a packet of a session, whose first byte is its version, 0x10.
_SRMP_STARTS: Final = (b"POST ", b"HTTP/1.", b"<")


def is_srmp(data: bytes, kind: AnyKind) -> bool:
    """Return whether bytes are to be read as SRMP: an HTTP message or an envelope."""
    return kind is AnyKind.SRMP or (kind is AnyKind.AUTO and data.startswith(_SRMP_STARTS))


def protocol_of(data: bytes, kind: Kind) -> Protocol:
    """Return the protocol of a packet; if detected, 24 bytes with the signature of a ping are a ping."""
    if kind is not Kind.AUTO:
        return kind.value  # type: ignore[return-value]
    has_signature = data[2:4] == PING_SIGNATURE.to_bytes(2, "little") and data[4:8] != b"LIOR"
    return "ping" if has_signature and len(data) == PING_SIZE else "session"


def run(
    data: bytes, out: TextIO, err: TextIO, *, kind: AnyKind = AnyKind.AUTO, indent: int | None = None
) -> int:
    """Print the packet; return the exit status."""
    try:
        packet = _to_json(data, kind)
    except LocatedError as exc:
        say(exc, err)
        return EX_DATAERR
    print(dumps(packet, indent=indent), file=out)
    return 0


def run_rpc(data: bytes, out: TextIO, err: TextIO, *, indent: int | None = None) -> int:
    """Print the PDUs that stand one after the other; return the exit status."""
    from msmqwire.rpc.pdu import parse_header, parse_pdu

    start = 0
    while not start or start < len(data):
        try:
            end = start + parse_header(data[start:]).frag_length
            pdu = parse_pdu(data[start:end])
        except MalformedPacket as exc:
            offset = None if exc.offset is None else start + exc.offset
            say(MalformedPacket(exc.why, path=exc.path, offset=offset), err)
            return EX_DATAERR
        print(dumps(pdu.to_json(), indent=indent), file=out)
        start = end
    return 0


def run_ncp(
    data: bytes,
    out: TextIO,
    err: TextIO,
    *,
    call: str | None = None,
    readings: Mapping[str, str] | None = None,
    indent: int | None = None,
) -> int:
    """Print the packet, or those of units over TCP; return the exit status. Raises BadParameter."""
    from msmqwire.ncp.packet_json import parse_sent
    from msmqwire.ncp.packets import CALLS_BY_NAME
    from msmqwire.ncp.readings import Readings

    if call is not None and call not in CALLS_BY_NAME:
        wrong = unknown_name(call, CALLS_BY_NAME, "call of NCP", see="docs/columns.md#values lists all")
        raise BadParameter(wrong.why, param_hint="--call")
    with usage("--reading"):
        readings_of_ncp = Readings.of(readings or {})
    answered = None if call is None else CALLS_BY_NAME[call]
    try:
        for packet in parse_sent(data, answered, readings_of_ncp):
            print(dumps(packet.to_json(), indent=indent), file=out)
    except MalformedPacket as exc:
        say(exc, err)
        return EX_DATAERR
    return 0


def _to_json(data: bytes, kind: AnyKind) -> dict[str, Any]:
    if is_srmp(data, kind):
        from msmqwire.srmp import message, message_json

        return message_json.to_json(message.parse_message(data))
    packet = parse(data, protocol=protocol_of(data, Kind(kind.value)))
    result = packet.to_json()
    if getattr(packet, "CompoundMessageHeader", None) is not None:
        from msmqwire.srmp.compound import compound_to_json

        result["srmp"] = compound_to_json(packet)
    return result


def command(
    file: Annotated[
        str,
        Argument(
            metavar="PATH",
            help="File with the bytes of one packet, PDUs of RPC or units of NCP; - is standard input.",
        ),
    ] = "-",
    hex_text: Annotated[bool, Option("--hex", help="The input is hex text.")] = False,
    protocol: Annotated[ParseKind, Option(help="Protocol of the bytes.")] = ParseKind.AUTO,
    call: Annotated[
        str | None,
        Option(metavar="NAME", help="The call that a reply of NCP answers, such as ReadQueueJobEntry."),
    ] = None,
    reading: Annotated[
        list[str] | None,
        Option(metavar="NAME=VALUE", help="Byte order of a field of NCP on which sources disagree."),
    ] = None,
) -> None:
    """Parse one packet and print it as one JSON object; of RPC each PDU as an object, of NCP each unit."""
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
    if protocol is ParseKind.NCP:
        readings = named_values(reading)
        raise Exit(run_ncp(data, sys.stdout, sys.stderr, call=call, readings=readings, indent=indent))
    if call is not None or reading:
        raise BadParameter("for NCP only", param_hint="--call" if call else "--reading")
    if protocol is ParseKind.RPC:
        raise Exit(run_rpc(data, sys.stdout, sys.stderr, indent=indent))
    raise Exit(run(data, sys.stdout, sys.stderr, kind=AnyKind(protocol.value), indent=indent))
