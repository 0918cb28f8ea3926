"""Checks of packets against the specifications: which requirement is broken, and where.

`lint_packet` checks one packet, `SessionLint` the order of the packets on a connection, `PingLint` ping
requests and responses, `lint_malformed` bytes that are no packet; `lint_srmp` a message of SRMP,
`lint_malformed_srmp` bytes that are none; `lint_rpc` a call or answer of remote read, `RemoteReadLint` their
order, `lint_malformed_rpc` bytes of RPC that can't be read; `NcpLint` packets of NCP and their order,
`lint_malformed_ncp` bytes that are none. `checks` lists all rules.
"""

from __future__ import annotations

from typing import Literal

from msmqwire.errors import MalformedPacket
from msmqwire.lint.attacks import lint_malformed
from msmqwire.lint.finding import Finding, Severity
from msmqwire.lint.ncp_attacks import lint_malformed_ncp
from msmqwire.lint.ncp_session import NcpLint
from msmqwire.lint.packet import checks, lint_packet
from msmqwire.lint.pings import PingLint
from msmqwire.lint.registry import Check
from msmqwire.lint.remote_read_calls import lint_malformed_rpc, lint_rpc
from msmqwire.lint.remote_read_session import RemoteReadLint
from msmqwire.lint.security import lint_wrong_signature
from msmqwire.lint.session import SessionLint
from msmqwire.lint.srmp import lint_srmp
from msmqwire.lint.srmp_attacks import lint_malformed_srmp
from msmqwire.packets import Protocol, parse
from msmqwire.schema import Record
from msmqwire.srmp.message import SrmpMessage, parse_message

__all__ = [
    "Check",
    "Finding",
    "NcpLint",
    "PingLint",
    "RemoteReadLint",
    "SessionLint",
    "Severity",
    "checks",
    "lint",
    "lint_malformed",
    "lint_malformed_ncp",
    "lint_malformed_rpc",
    "lint_malformed_srmp",
    "lint_packet",
    "lint_rpc",
    "lint_srmp",
    "lint_wrong_signature",
]


def lint(
    data: bytes | Record | SrmpMessage, *, protocol: Protocol | Literal["srmp"] = "session"
) -> list[Finding]:
    """Return the departures from the specifications in one packet or message, or in malformed bytes.

    `protocol` says what bytes are.
    """
    if isinstance(data, Record):
        return lint_packet(data)
    if isinstance(data, SrmpMessage):
        return lint_srmp(data)
    data = bytes(data)
    if protocol == "srmp":
        try:
            return lint_srmp(parse_message(data))
        except MalformedPacket as error:
            return lint_malformed_srmp(data, error)
    try:
        packet = parse(data, protocol=protocol)
    except MalformedPacket as error:
        return lint_malformed(data, error, protocol)
    return lint_packet(packet, data)
