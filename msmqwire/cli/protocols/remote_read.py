"""Remote read on the command line."""

from __future__ import annotations

from typing import Final

from msmqwire.cli.protocols.protocol import CliProtocol

PROTOCOL: Final = CliProtocol(name="remote_read", order=31, words={"calls": "remote read"})
