"""What the numbers in headers count: bytes, characters, seconds or milliseconds."""

from __future__ import annotations

import pytest

import msmqwire
from msmqwire.headers import (
    COMPOUND_MESSAGE_HEADER,
    DEAD_LETTER_HEADER,
    EXTENDED_ADDRESS_HEADER,
    EXTENSION_HEADER,
    MQDSPUBLICKEY,
    MQDSPUBLICKEYS,
    MQUSERSIGNCERTS,
    PUBLICKEYBLOB,
    SOURCE_ADDRESS,
    SRMP_ENVELOPE_HEADER,
    SUBQUEUE_HEADER,
    TA_ADDRESS,
)
from msmqwire.schema import Header, Record
from msmqwire.schema.field_text import field_text
from msmqwire.schema.layout import layout
from tests.support import handmade as h
from tests.support.codec_checks import proving

MESSAGE = h.user_message(
    user=h.user_header(destination=(7, h.direct_name("OS:host\\q"))),
    security=h.security_header(flags=0x81, security_id=bytes(16), provider=h.provider_info(1, "p")),
    properties=h.properties_header(label="l", body=b"body", extension=b"e"),
    soap=h.soap_header("<h/>", "<b/>"),
    multi_queue=h.multi_queue_format_header([h.mqf_direct("OS:a\\b")], [], [], b"signed"),
)
CERTIFICATES = MQUSERSIGNCERTS.parse(b"\1\0\0\0" + bytes(32) + b"\4\0\0\0" + b"cert")
SECURITY, PROPERTIES, SOAP = "SecurityHeader", "MessagePropertiesHeader", "SoapHeader"
SIZE_OF_LIST = ("MQMQ-2.2.20.2-01", "MQMQ-2.2.20.2-07", "MQMQ-2.2.20.2-08")


@pytest.mark.parametrize(
    ("record", "path", "unit"),
    [
        proving(MESSAGE, path, unit, ids=ids, name=path)
        for path, unit, ids in (
            ("BaseHeader.PacketSize", "bytes", ("MQMQ-2.2.19.1-19", "MQMQ-2.2.19.1-20")),
            ("BaseHeader.TimeToReachQueue", "s", "MQMQ-2.2.19.1-22"),
            ("UserHeader.TimeToBeReceived", "s", "MQMQ-2.2.19.2-04"),
            ("UserHeader.SentTime", "s", "MQMQ-2.2.19.2-06"),
            ("UserHeader.DestinationQueue.Count", "bytes", "MQMQ-2.2.18.1.5.2-01"),
            (f"{SECURITY}.SenderIdSize", "bytes", "MQMQ-2.2.20.6-15"),
            (f"{SECURITY}.EncryptionKeySize", "bytes", "MQMQ-2.2.20.6-16"),
            (f"{SECURITY}.SignatureSize", "bytes", "MQMQ-2.2.20.6-17"),
            (f"{SECURITY}.SenderCertSize", "bytes", "MQMQ-2.2.20.6-18"),
            (f"{SECURITY}.ProviderInfoSize", "bytes", "MQMQ-2.2.20.6-19"),
            (f"{PROPERTIES}.LabelLength", "WCHAR", "MQMQ-2.2.19.3-07"),
            (f"{PROPERTIES}.MessageSize", "bytes", "MQMQ-2.2.19.3-15"),
            (f"{PROPERTIES}.AllocationBodySize", "bytes", ("MQMQ-2.2.19.3-16", "MQMQ-2.2.19.3-17")),
            (f"{PROPERTIES}.ExtensionSize", "bytes", "MQMQ-2.2.19.3-41"),
            (f"{SOAP}.HeaderDataLength", "WCHAR", "MQMQ-2.2.20.7-03"),
            (f"{SOAP}.BodyDataLength", "WCHAR", "MQMQ-2.2.20.7-07"),
            ("MultiQueueFormatHeader.Destination.HeaderSize", "bytes", SIZE_OF_LIST),
            ("MultiQueueFormatHeader.Signature.Size", "bytes", "MQMQ-2.2.20.3-03"),
        )
    ]
    + [
        proving(
            CERTIFICATES, "MQUSERSIGNCERTS.Certificates[0].CertificateLength", "bytes", ids="MQMQ-2.2.22-03",
            name="CertificateLength",
        ),
    ],
)  # fmt: skip
def test_a_number_is_shown_with_its_unit(record: bytes | Record, path: str, unit: str) -> None:
    value = msmqwire.parse(record) if isinstance(record, bytes) else record
    shown = {field.path: field_text(field) for field in layout(value)}
    assert shown[path].endswith(f") {unit}")


@pytest.mark.parametrize(
    ("schema", "field", "unit"),
    [
        proving(schema, field, unit, ids=ids, name=f"{schema.name}-{field}")
        for schema, field, unit, ids in (
            (EXTENSION_HEADER, "HeaderSize", "bytes", "MQRR-2.2.5.2-01"),
            (EXTENSION_HEADER, "RemainingHeadersSize", "bytes", "MQRR-2.2.5.2-02"),
            (SUBQUEUE_HEADER, "HeaderSize", "bytes", "MQRR-2.2.5.3-01"),
            (SUBQUEUE_HEADER, "LastMoveTime", "ms", "MQRR-2.2.5.3-08"),
            (DEAD_LETTER_HEADER, "HeaderSize", "bytes", "MQRR-2.2.5.4-01"),
            (EXTENDED_ADDRESS_HEADER, "HeaderSize", "bytes", "MQRR-2.2.5.5-01"),
            (EXTENDED_ADDRESS_HEADER, "AddressLength", "bytes", "MQRR-2.2.5.5-02"),
            (SOURCE_ADDRESS, "AddressLength", "bytes", "MQRR-2.2.5.1-07"),
            (SRMP_ENVELOPE_HEADER, "DataLength", "WCHAR", "MQRR-2.2.5.1.2.1-04"),
            (COMPOUND_MESSAGE_HEADER, "HTTPBodySize", "bytes", "MQRR-2.2.5.1.2.2-04"),
            (COMPOUND_MESSAGE_HEADER, "MsgBodySize", "bytes", "MQRR-2.2.5.1.2.2-05"),
            (COMPOUND_MESSAGE_HEADER, "MsgBodyOffset", "bytes", "MQRR-2.2.5.1.2.2-06"),
            (MQDSPUBLICKEY, "ulKeyLen", "bytes", "MQMQ-2.2.1-01"),
            (MQDSPUBLICKEY, "ulProviderLen", "bytes", "MQMQ-2.2.1-02"),
            (MQDSPUBLICKEYS, "ulLen", "bytes", "MQMQ-2.2.2-01"),
            (TA_ADDRESS, "AddressLength", "bytes", ("MQMQ-2.2.4-01", "MQMQ-2.2.4-02")),
            (PUBLICKEYBLOB, "bitLen", "bits", "MQQB-2.4.1-02"),
        )
    ],
)
def test_a_number_of_a_structure_has_its_unit(schema: Header, field: str, unit: str) -> None:
    units = {part.name: part.unit for part in schema.parts if getattr(part, "unit", "")}
    assert units[field] == unit
