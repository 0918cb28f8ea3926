"""``msmqwire build``: one JSON object to the bytes of the packet."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, BinaryIO, TextIO

from click.exceptions import Exit

from msmqwire.cli.common import EX_DATAERR, EX_NOINPUT, NoInput, read_input, say
from msmqwire.cli.options import Argument, Option
from msmqwire.cli.protocols import protocols
from msmqwire.errors import LocatedError
from msmqwire.names.json_words import why_not_json
from msmqwire.packets import build


def run(text: bytes, out: BinaryIO, err: TextIO, *, hex_text: bool = False) -> int:
    """Write the bytes of the packet; return the exit status."""
    try:
        packet = json.loads(text)
    except (ValueError, RecursionError) as exc:
        offset = getattr(exc, "pos", getattr(exc, "start", None))
        say(why_not_json(exc), err, offset=offset)
        return EX_DATAERR
    try:
        data = _build(packet)
    except LocatedError as exc:
        say(exc, err)
        return EX_DATAERR
    out.write(data.hex().encode() + b"\n" if hex_text else data)
    out.flush()
    return 0


def _build(packet: Any) -> bytes:
    name = str(packet.get("packet")) if isinstance(packet, dict) else ""
    for protocol in protocols():
        joined = protocol.format
        if joined is not None and joined.build is not None and joined.is_built(name):
            return joined.build(packet)
    return build(packet)


def command(
    file: Annotated[
        str, Argument(metavar="PATH", help="File with one JSON object; - is standard input.")
    ] = "-",
    hex_text: Annotated[bool, Option("--hex", help="Write hex text.")] = False,
) -> None:
    """Build the bytes of a packet from the JSON object that parse prints.

    Fields that can be computed (sizes, counts, presence bits, padding) may be left out; values that are given
    are written, even if they are wrong.
    """
    try:
        text = read_input(file)
    except NoInput as exc:
        say(str(exc))
        raise Exit(EX_NOINPUT) from None
    raise Exit(run(text, sys.stdout.buffer, sys.stderr, hex_text=hex_text))
