"""What the numbers in headers count: bytes, characters, seconds or milliseconds."""

from __future__ import annotations

import pytest

import msmqwire
from msmqwire.headers import MQUSERSIGNCERTS
from msmqwire.schema import Record
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
