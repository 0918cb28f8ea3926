"""Queue management on the command line."""

from __future__ import annotations

from typing import Final

from msmqwire.cli.protocols.protocol import CliProtocol

PROTOCOL: Final = CliProtocol(name="management", order=32, words={"calls": "queue management"})
