"""SRMP on the command line: messages over HTTP in files, and inside of packets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msmqwire.cli.protocols.protocol import CliProtocol, Enclosed, Format

_KIND: Final = "SrmpMessage"


def _packet(data: bytes) -> object:
    from msmqwire.srmp.message import parse_message

    return parse_message(data)


def _parse(data: bytes) -> Iterator[dict[str, Any]]:
    from msmqwire.srmp import message, message_json

    yield message_json.to_json(message.parse_message(data))


def _build(packet: dict[str, Any]) -> bytes:
    from msmqwire.srmp.message_json import from_json

    return from_json(packet).to_bytes()


def _enclosed(packet: Any) -> dict[str, Any] | None:
    from msmqwire.srmp.compound import compound_to_json

    return compound_to_json(packet)


PROTOCOL: Final = CliProtocol(
    name="srmp",
    order=10,
    words={
        "over": "HTTP",
        "judged": "SRMP messages",
        "judged each": "SRMP message",
        "kinds": _KIND,
    },
    styles={_KIND: "bold"},
    format=Format(
        name="srmp",
        title="SRMP",
        parse=_parse,
        build=_build,
        is_built=lambda name: name == _KIND,
        # None of them begins a packet of a session, whose first byte is its version, 0x10.
        starts=(b"POST ", b"HTTP/1.", b"<"),
        packet=_packet,
    ),
    enclosed=Enclosed("CompoundMessageHeader", _enclosed),
)
