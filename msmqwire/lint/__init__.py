"""Checks of packets against the specifications: which requirement is broken, and where.

`lint_packet` checks one packet, `SessionLint` the order of the packets on a connection, `PingLint` ping
requests and responses, `lint_malformed` bytes that are no packet. `checks` lists all rules.
"""

from __future__ import annotations

from msmqwire.errors import MalformedPacket
from msmqwire.lint.attacks import lint_malformed
from msmqwire.lint.finding import Finding, Severity
from msmqwire.lint.packet import checks, lint_packet
from msmqwire.lint.pings import PingLint
from msmqwire.lint.registry import Check
from msmqwire.lint.session import SessionLint
from msmqwire.packets import Protocol, parse
from msmqwire.schema import Record

__all__ = [
    "Check",
    "Finding",
    "PingLint",
    "SessionLint",
    "Severity",
    "checks",
    "lint",
    "lint_malformed",
    "lint_packet",
]


def lint(data: bytes | Record, *, protocol: Protocol = "session") -> list[Finding]:
    """Return the departures from the specifications in one packet, parsed or not, or in malformed bytes."""
    if isinstance(data, Record):
        return lint_packet(data)
    data = bytes(data)
    try:
        packet = parse(data, protocol=protocol)
    except MalformedPacket as error:
        return lint_malformed(data, error, protocol)
    return lint_packet(packet, data)
