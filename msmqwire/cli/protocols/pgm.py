"""PGM on the command line: its packets in captures."""

from __future__ import annotations

from typing import Final

from msmqwire.cli.protocols.protocol import CliProtocol

PROTOCOL: Final = CliProtocol(
    name="pgm",
    order=20,
    words={"over": "PGM"},
    styles={"PgmPacket": "dim"},
)
