"""Checks of the optional headers of a message: debug, SOAP, several queues, SRMP.

[MS-MQMQ] 2.2.20.1 to 2.2.20.3, 2.2.20.7 and 2.2.20.8; [MS-MQRR] 2.2.5.1.2.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.analysis.lint.registry import MESSAGES, Problem, exactly, listed, rule, unused, value, zero
from msmqwire.headers.multiqueue import ADMINISTRATION_ID, DESTINATION_ID, RESPONSE_ID, SIGNATURE_ID
from msmqwire.headers.soap import BODY_SECTION_ID, HEADER_SECTION_ID
from msmqwire.names.printable import counted
from msmqwire.schema import OddPadding
from msmqwire.schema.texts import encode_text

ASSIGNED: Final = {
    DESTINATION_ID: "the destinations of a MultiQueueFormatHeader",
    ADMINISTRATION_ID: "the administration queues of a MultiQueueFormatHeader",
    RESPONSE_ID: "the response queues of a MultiQueueFormatHeader",
    SIGNATURE_ID: "the signature of a MultiQueueFormatHeader",
    HEADER_SECTION_ID: "the header of a SoapHeader",
    BODY_SECTION_ID: "the body of a SoapHeader",
}

# -- DebugHeader ---------------------------------------------------------------------------------

value(
    "MQMQ-2.2.20.8-02",
    "QT is not 0 or 1",
    "DebugHeader.Flags.QT",
    MESSAGES,
    lambda number: number <= 1,
    "{} is neither 0 nor 1",
)
unused("MQMQ-2.2.20.8-03", "Unused bits are set", "DebugHeader.Flags", 0xFFFC, MESSAGES)
zero("MQMQ-2.2.20.8-04", "Reserved is not 0", "DebugHeader.Reserved", MESSAGES, "SHOULD")

# -- SoapHeader ----------------------------------------------------------------------------------

value(
    "MQMQ-2.2.20.7-01",
    "HeaderSectionID is not 0x0320",
    "SoapHeader.HeaderSectionID",
    MESSAGES,
    lambda number: number == HEADER_SECTION_ID,
    "{:#06x} is not 0x0320",
)
zero("MQMQ-2.2.20.7-02", "Reserved is not 0", "SoapHeader.Reserved", MESSAGES, "SHOULD")
value(
    "MQMQ-2.2.20.7-05",
    "BodySectionID is not 0x0384",
    "SoapHeader.BodySectionID",
    MESSAGES,
    lambda number: number == BODY_SECTION_ID,
    "{:#06x} is not 0x0384",
)
zero("MQMQ-2.2.20.7-06", "Reserved1 is not 0", "SoapHeader.Reserved1", MESSAGES, "SHOULD")


def _ends(text: Any) -> bool:
    return not isinstance(text, bytes)


value(
    "MQMQ-2.2.20.7-04",
    "Header of SoapHeader is not null-terminated text",
    "SoapHeader.Header",
    MESSAGES,
    _ends,
    "no null-terminated UTF-16 text",
)
value(
    "MQMQ-2.2.20.7-08",
    "Body of SoapHeader is not null-terminated text",
    "SoapHeader.Body",
    MESSAGES,
    _ends,
    "no null-terminated UTF-16 text",
)

# -- MultiQueueFormatHeader ----------------------------------------------------------------------

_LISTS = {"Destination": DESTINATION_ID, "Administration": ADMINISTRATION_ID, "Response": RESPONSE_ID}
for _name, _number in _LISTS.items():
    _path = f"MultiQueueFormatHeader.{_name}"
    _title = "HeaderID is not that of its place"
    exactly("MQMQ-2.2.20.2-02", _title, f"{_path}.HeaderID", MESSAGES, _number, "#06x")
    zero("MQMQ-2.2.20.2-03", "Reserved is not 0", f"{_path}.Reserved", MESSAGES, "SHOULD")
value(
    "MQMQ-2.2.20.1-03",
    "Destination has no queue",
    "MultiQueueFormatHeader.Destination.ElementCount",
    MESSAGES,
    bool,
    "no queue is listed",
)
value(
    "MQMQ-2.2.20.3-01",
    "ID of Signature is not 0x015E",
    "MultiQueueFormatHeader.Signature.ID",
    MESSAGES,
    lambda number: number == SIGNATURE_ID,
    "{:#06x} is not 0x015e",
)
zero("MQMQ-2.2.20.3-02", "Reserved is not 0", "MultiQueueFormatHeader.Signature.Reserved", MESSAGES, "SHOULD")

# -- SRMPEnvelopeHeader and CompoundMessageHeader ------------------------------------------------

for _name in ("SRMPEnvelopeHeader", "CompoundMessageHeader"):
    value(
        "MQRR-2.2.5.1.2.1-02" if _name.startswith("SRMP") else "MQRR-2.2.5.1.2.2-02",
        "HeaderId is that of another header",
        f"{_name}.HeaderId",
        MESSAGES,
        lambda number: number not in ASSIGNED,
        "{:#06x} is the id of another header",
        "SHOULD",
    )
value(
    "MQRR-2.2.5.1.2.1-05",
    "Data is not null-terminated UTF-16 text",
    "SRMPEnvelopeHeader.Data",
    MESSAGES,
    lambda text: isinstance(text, str),
    "no null-terminated UTF-16 text",
)


@rule(
    "MQRR-2.2.5.1.2.1-04", "DataLength is not the length of Data", "SRMPEnvelopeHeader.DataLength", MESSAGES
)
def _data_length(packet: Any) -> Problem:
    header = packet.SRMPEnvelopeHeader
    size = len(encode_text(header.Data))
    if size in (header.DataLength, 2 * header.DataLength):
        return None
    return f"{header.DataLength}, but Data has {counted(size, 'byte')}"


@rule(
    "MQRR-2.2.5.1.2.1-04-UNIT",
    "DataLength counts bytes instead of characters",
    "SRMPEnvelopeHeader.DataLength",
    MESSAGES,
    "SHOULD",
)
def _data_unit(packet: Any) -> Problem:
    header = packet.SRMPEnvelopeHeader
    if header.DataLength and len(encode_text(header.Data)) == header.DataLength:
        return f"{header.DataLength} counts bytes"
    return None


def body_problem(http: int, size: int, offset: int) -> str | None:
    """Return why a body of `size` bytes at `offset` is not inside `http` bytes; None if it is."""
    end = offset + size
    if end <= http:
        return None
    wrapped = f", and wraps to {end & 0xFFFF_FFFF} in 32 bits" if end > 0xFFFF_FFFF else ""
    return f"{offset} + {size} of MsgBodySize is past HTTPBodySize, {http}{wrapped}"


def _body(packet: Any) -> Problem:
    header = packet.CompoundMessageHeader
    return body_problem(header.HTTPBodySize, header.MsgBodySize, header.MsgBodyOffset)


rule(
    "MQRR-2.2.5.1.2.2-06",
    "The message body ends past HTTPBodySize",
    "CompoundMessageHeader.MsgBodyOffset",
    MESSAGES,
)(_body)
rule(
    "ATTACK-BODY-RANGE",
    "The message body lies outside its HTTP body",
    "CompoundMessageHeader.MsgBodyOffset",
    MESSAGES,
    "ATTACK",
)(_body)

DATA_PAST_PACKET: Final = listed(
    "ATTACK-SRMP-LENGTH",
    "SRMPEnvelopeHeader.DataLength reaches past the packet (QueueJumper, CVE-2023-21554)",
    "SRMPEnvelopeHeader.DataLength",
    MESSAGES | {"bytes"},
    "ATTACK",
)

# -- padding -------------------------------------------------------------------------------------

_PADDED = (
    ("SoapHeader", "HeaderPadding"),
    ("SoapHeader", "Padding"),
    ("SRMPEnvelopeHeader", "Padding"),
    ("CompoundMessageHeader", "Padding"),
    ("MultiQueueFormatHeader.Destination", "Padding"),
    ("MultiQueueFormatHeader.Administration", "Padding"),
    ("MultiQueueFormatHeader.Response", "Padding"),
    ("MultiQueueFormatHeader.Signature", "Padding"),
)
for _name, _field in _PADDED:
    value(
        "MQMQ-2.2.20-11",
        "A header is not padded to 4 bytes",
        f"{_name}.{_field}",
        MESSAGES,
        lambda padding: not isinstance(padding, OddPadding),
        "padding of another length than the alignment asks for",
    )
