"""The sizes in packets that stand in front of the data they count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msmqwire.headers import (
    COMPOUND_MESSAGE_HEADER,
    DEAD_LETTER_HEADER,
    EXTENDED_ADDRESS_HEADER,
    EXTENSION_HEADER,
    MESSAGE_PROPERTIES_HEADER,
    MQF_SIGNATURE_HEADER,
    SECURITY_HEADER,
    SOAP_HEADER,
    SRMP_ENVELOPE_HEADER,
    SUBQUEUE_HEADER,
)
from msmqwire.schema import Header, UInt, field_offset, head_size


@dataclass(frozen=True, slots=True)
class Sized:
    """A size in front of the data it counts.

    Attributes:
        header, name, at, width: the field: its header, its offset there and its size in bytes.
        head: the offset in that header from which it counts: after the fixed part, or the start.
        req: the id of the rule about it.
        times: bytes that it counts by one.
    """

    header: str
    name: str
    at: int
    width: int
    head: int
    req: str
    times: int = 1


def _sized(header: Header, name: str, req: str, times: int = 1) -> Sized:
    field = header.part(name)
    assert isinstance(field, UInt)
    head = 0 if field.size_of == "header" else head_size(header)
    return Sized(header.name, name, field_offset(header, name), field.size, head, req, times)


LABEL_LENGTH: Final = _sized(MESSAGE_PROPERTIES_HEADER, "LabelLength", "MQMQ-2.2.19.3-07-SIZE", 2)
MESSAGE_SIZE: Final = _sized(MESSAGE_PROPERTIES_HEADER, "MessageSize", "MQMQ-2.2.19.3-15")
EXTENSION_SIZE: Final = _sized(MESSAGE_PROPERTIES_HEADER, "ExtensionSize", "MQMQ-2.2.19.3-41")
DATA_LENGTH: Final = _sized(SRMP_ENVELOPE_HEADER, "DataLength", "MQRR-2.2.5.1.2.1-04", 2)
HTTP_BODY: Final = _sized(COMPOUND_MESSAGE_HEADER, "HTTPBodySize", "MQRR-2.2.5.1.2.2-04")
SIGNATURE_SIZE: Final = _sized(MQF_SIGNATURE_HEADER, "Size", "MQMQ-2.2.20.3-03")
SIZES: Final = (
    LABEL_LENGTH,
    MESSAGE_SIZE,
    _sized(MESSAGE_PROPERTIES_HEADER, "AllocationBodySize", "MQMQ-2.2.19.3-16-SIZE"),
    EXTENSION_SIZE,
    _sized(SECURITY_HEADER, "SenderIdSize", "MQMQ-2.2.20.6-15"),
    _sized(SECURITY_HEADER, "EncryptionKeySize", "MQMQ-2.2.20.6-16"),
    _sized(SECURITY_HEADER, "SignatureSize", "MQMQ-2.2.20.6-17"),
    _sized(SECURITY_HEADER, "SenderCertSize", "MQMQ-2.2.20.6-18-SIZE"),
    _sized(SECURITY_HEADER, "ProviderInfoSize", "MQMQ-2.2.20.6-19"),
    _sized(SOAP_HEADER, "HeaderDataLength", "MQMQ-2.2.20.7-03", 2),
    _sized(DEAD_LETTER_HEADER, "HeaderSize", "MQRR-2.2.5.4-01"),
    _sized(SUBQUEUE_HEADER, "HeaderSize", "MQRR-2.2.5.3-01"),
    _sized(EXTENDED_ADDRESS_HEADER, "HeaderSize", "MQRR-2.2.5.5-01"),
    _sized(EXTENSION_HEADER, "HeaderSize", "MQRR-2.2.5.2-01"),
    _sized(EXTENSION_HEADER, "RemainingHeadersSize", "MQRR-2.2.5.2-02"),
)
