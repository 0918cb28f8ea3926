"""One SRMP message against [MC-MQSRM].

Bytes that a receiver has to refuse are not a message but malformed, see `srmp_attacks.py`. Departures of a
message are accepted all the same. So a statement of fact, which receivers do not insist on, counts as SHOULD.
"""

from __future__ import annotations

from typing import Final

from msmqwire.analysis.lint.finding import Finding, Severity
from msmqwire.analysis.lint.registry import Check, listed
from msmqwire.analysis.lint.srmp_bodies import SRMP, lint_srmp_body
from msmqwire.analysis.lint.srmp_offsets import PartOffsets
from msmqwire.analysis.lint.srmp_rules import broken_rules
from msmqwire.analysis.lint.srmp_signature import broken_signature
from msmqwire.srmp.message import SrmpMessage

_NOTE: Final = {  # the values that receivers are to accept
    "SRMP-2.2.4-05": "Elements of path are not in order",
}
_SHOULD: Final = {
    "SRMP-2.1.1-04": "The request line is not POST, a target and HTTP/1.1",
    "SRMP-2.1.1-05": "Header fields are folded, or in another order than Windows has",
    "SRMP-2.1.1-06": "The request has no Host, or several",
    "SRMP-2.1.1-07": "The request has not the SOAPAction of MSMQ",
    "SRMP-2.1.1-08": "The request has not the Proxy-Accept of MSMQ",
    "SRMP-2.1.1-09": "The Content-Type of a request with parts is not that of Windows",
    "SRMP-2.1.1-10": "The Content-Type of a request without parts is not text/xml",
    "SRMP-2.1.1-11": "No Content-Length counts the entity",
    "SRMP-2.1.1-13": "The response has a status that SRMP has not",
    "SRMP-2.2.2-09": "The part of the envelope has other header fields than Windows",
    "SRMP-2.2.2-10": "The part of the body has other header fields than Windows",
    "SRMP-2.2.2-11": "The Content-Id of the body has no GUID",
    "SRMP-2.2.2-12": "The Content-Id of the extension has no GUID",
    "SRMP-2.2.2-13": "The boundary is not that of Windows",
    "SRMP-2.2.2-14": "Something stands before a delimiter",
    "SRMP-2.2.2-15": "No line break ends the entity",
    "SRMP-2.2.4.3-04": "id and SourceQmGuid have different GUIDs",
    "SRMP-2.2.4.4-05": "An empty via is two tags",
    "SRMP-2.2.5-03": "Elements of the header are not in order",
    "SRMP-2.2.5.3-06": "An element is of the example in 4.4 only",
    "SRMP-2.2.6-04": "Elements of Msmq are not in order",
}
_MUST: Final = {
    "SRMP-2.2.2-04": "The SOAP Body is not empty",
    "SRMP-2.2.2-07": "The parts are not envelope, body and extension",
    "SRMP-2.2.4.1-02": "No MSMQ: stands before the label",
    "SRMP-2.2.5.2.1-02": "A message of a stream is not durable",
    "SRMP-2.2.5.4-03": "Elements of deliveryReceipt are not in order",
    "SRMP-2.2.5.5-03": "Elements of commitmentReceipt are not in order",
    "SRMP-2.2.5.6-02": "Elements of streamReceipt are not in order",
    "SRMP-2.2.6.12-02": "Provider has no Type",
    "SRMP-2.2.6.12-03": "Provider has no Name",
    "SRMP-3.1.7.2.4-08": "Elements of properties are not in order",
    "SRMP-3.1.7.2.4-11": "Elements of services are not in order",
    "SRMP-3.1.7.2.4-13": "Elements of commitmentReceiptRequest are not in order",
    "SRMP-3.1.7.2.4-15": "Elements of stream are not in order",
    "SRMP-3.1.7.2.4-30": "Elements of Eod are not in order",
    "SRMP-3.1.7.2.4-31": "Elements of Provider are not in order",
    "SRMP-3.1.7.2.4-38": "Elements of SignedInfo are not in order",
    "SRMP-3.1.7.2.4-39": "Elements of Reference are not in order",
    "SRMP-3.1.7.2.4-44": "Elements of Signature are not in order",
}
_TITLES: Final[dict[Severity, dict[str, str]]] = {"NOTE": _NOTE, "SHOULD": _SHOULD, "MUST": _MUST}
DEPARTURES: Final[dict[str, Check]] = {
    id: listed(id, title, "", SRMP, severity)
    for severity, titles in _TITLES.items()
    for id, title in titles.items()
}
"""The requirements that a message may break and be read: `SrmpMessage.departures`."""


def lint_srmp(message: SrmpMessage, source: str | None = None) -> list[Finding]:
    """Return the departures of a message from the specification, in the order of its bytes.

    Offsets count from the first byte of the HTTP message, or of an envelope alone; `source` is the address
    that it came from. Raises MalformedPacket for a message that was made with an envelope that can't be
    parsed, InvalidValue for one that can't be built.
    """
    places = PartOffsets(message)
    findings = [
        DEPARTURES[item.requirement].at(item.path, places.of(item.path), item.text)
        for item in message.departures
    ]
    for check, path, text in (*broken_rules(message), *broken_signature(message)):
        findings.append(check.at(path, places.of(path), text))
    findings += lint_srmp_body(message, source)
    findings.sort(key=lambda finding: finding.offset)
    return findings
