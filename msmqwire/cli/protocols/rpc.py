"""DCE/RPC on the command line: PDUs in files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msmqwire.cli.protocols.protocol import CliProtocol, Format


def _parse(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the PDUs that stand one after the other. Raises MalformedPacket."""
    from msmqwire.errors import MalformedPacket
    from msmqwire.rpc.pdu import parse_header, parse_pdu

    start = 0
    while not start or start < len(data):
        try:
            end = start + parse_header(data[start:]).frag_length
            pdu = parse_pdu(data[start:end])
        except MalformedPacket as exc:
            offset = None if exc.offset is None else start + exc.offset
            raise MalformedPacket(exc.why, path=exc.path, offset=offset) from None
        yield pdu.to_json()
        start = end


PROTOCOL: Final = CliProtocol(
    name="rpc",
    order=30,
    words={
        "over": "RPC",
        "parsed": "RPC each PDU as an object",
        "bytes": "PDUs of RPC",
    },
    format=Format(name="rpc", title="RPC", parse=_parse),
)
