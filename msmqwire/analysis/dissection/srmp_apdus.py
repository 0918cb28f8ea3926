"""Messages of SRMP that PGM carries: [MC-MQSRM] 2.1.2."""

from __future__ import annotations

from typing import NamedTuple

from msmqwire.analysis.lint import Finding
from msmqwire.analysis.lint.srmp import lint_srmp
from msmqwire.analysis.lint.srmp_attacks import lint_malformed_srmp
from msmqwire.errors import MalformedPacket
from msmqwire.srmp.message import SrmpMessage, parse_multicast
from msmqwire.srmp.message_json import PACKET
from msmqwire.srmp.recognition import is_srmp_apdu


class Apdu(NamedTuple):
    """A message, or the reason for which there is none; the kind of its item, and the findings."""

    message: SrmpMessage | None
    kind: str
    findings: list[Finding]
    error: MalformedPacket | None


def read_apdu(data: bytes, *, lint: bool) -> Apdu | None:
    """Return the message that PGM carries; None if it is not of SRMP."""
    if not is_srmp_apdu(data):
        return None
    try:
        message = parse_multicast(data)
        return Apdu(message, PACKET, lint_srmp(message) if lint else [], None)
    except MalformedPacket as exc:
        error = exc.detached()
        return Apdu(None, "Malformed", lint_malformed_srmp(data, error) if lint else [], error)
