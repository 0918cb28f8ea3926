"""Envelopes of SRMP: the ones of [MC-MQSRM] chapter 4, small ones to change, one with all elements."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from uuid import UUID

import pytest

from msmqwire.errors import MalformedPacket
from msmqwire.srmp.envelope import parse_envelope
from msmqwire.srmp.identifiers import MessageIdentifier, StreamIdentifier
from tests.support.paths import VECTORS

PUBLISHED = {path.stem.removeprefix("MC-MQSRM-"): path.read_bytes() for path in VECTORS.glob("srmp/*.xml")}
GUID = UUID("32221eda-9376-46df-b6ed-783091123831")
DATE = datetime(2007, 6, 19, 21, 6, 54, tzinfo=UTC)
STREAM_ID = r"uid:4a85b192-3ccd-4ba2-a0ac-7f0a11be1b08\4839986701558349830"

SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
PATH = (
    '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1"><action>MSMQ:l</action>'
    f"<to>http://h/q</to><id>uuid:7@{GUID}</id></path>"
)
PROPERTIES = '<properties se:mustUnderstand="1"><expiresAt>20070619T210654</expiresAt></properties>'
SERVICES = '<services se:mustUnderstand="1"><durable/></services>'
STREAM = f'<stream se:mustUnderstand="1"><streamId>{STREAM_ID}</streamId><current>42</current></stream>'
MSMQ = (
    '<Msmq xmlns="msmq.namespace.xml"><Class>0</Class><Priority>3</Priority><BodyType>0</BodyType>'
    f"<SourceQmGuid>{GUID}</SourceQmGuid><TTrq>20070619T210654</TTrq></Msmq>"
)
SIGNATURE = (
    '<Signature xmlns="http://www.w3.org/2000/02/xmldsig#"><SignedInfo>'
    '<SignatureMethod Algorithm="http://www.w3.org/2000/02/xmldsig#dsa"></SignatureMethod>'
    f'<Reference URI="cid:body@{GUID}">'
    '<DigestMethod Algorithm="http://www.w3.org/2000/02/xmldsig#sha1"></DigestMethod>'
    "<DigestValue>XU9yAzfwEPuP7L5iOcQY9XRNEWM=</DigestValue></Reference></SignedInfo>"
    "<SignatureValue>ZxvFMInWLSb1+iNj5xA/OhPHE4uzIx4nXOCmoOyGSSyHWEuODsByooS00j9RsMuGN/FmpEEOgJ1NFCBEDaBAag=="
    "</SignatureValue></Signature>"
)


def xml(*groups: str) -> bytes:
    """An envelope with these groups in its header, in the form of 3.1.7.2.4."""
    text = (
        f'<se:Envelope xmlns:se="{SOAP}" xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
        f"{''.join(groups)}</se:Header><se:Body></se:Body></se:Envelope>"
    )
    return text.encode()


SMALL = xml(PATH, PROPERTIES)
WITH_MSMQ = xml(PATH, PROPERTIES, MSMQ)


def refused(data: bytes) -> MalformedPacket:
    with pytest.raises(MalformedPacket) as caught:
        parse_envelope(data)
    return caught.value


def changed(data: bytes, old: str, new: str) -> bytes:
    assert data.count(old.encode()) == 1
    return data.replace(old.encode(), new.encode())


def everything() -> dict[str, object]:
    """A header with all elements. It is not a sensible message."""
    return {
        "path": {
            "action": "MSMQ:a <&> label",
            "to": "https://h/q",
            "id": MessageIdentifier(26626, GUID),
            "rev": {"via": "MSMQ:DIRECT=OS:h\\q"},
        },
        "properties": {"expiresAt": DATE, "sentAt": DATE},
        "services": {
            "durable": True,
            "deliveryReceiptRequest": {"sendTo": "http://h/a"},
            "commitmentReceiptRequest": {"sendTo": "http://h/b", "positiveOnly": True, "negativeOnly": True},
        },
        "stream": {
            "streamId": StreamIdentifier(GUID, 0x432B164300000006),
            "current": 42,
            "previous": 41,
            "start": {"sendReceiptsTo": "http://h/r"},
        },
        "streamReceipt": {"streamId": StreamIdentifier(GUID, 1), "lastOrdinal": 2},
        "deliveryReceipt": {"receivedAt": DATE, "id": MessageIdentifier(1, GUID)},
        "commitmentReceipt": {"decidedAt": DATE, "decision": "negative", "id": MessageIdentifier(1, GUID)},
        "Msmq": {
            "Class": 255,
            "Priority": 7,
            "Journal": True,
            "DeadLetter": True,
            "Correlation": bytes(range(20)),
            "Trace": True,
            "ConnectorType": GUID,
            "App": 36,
            "BodyType": 8,
            "HashAlgorithm": 32772,
            "Eod": {"First": True, "Last": True, "ConnectorId": GUID},
            "Provider": {"Type": 1234, "Name": "ProviderName"},
            "SourceQmGuid": GUID,
            "DestinationMqf": ("http://Machine1/msmq/private$/SimpleQ", "http://Machine2/q"),
            "AdminMqf": ("http://h/a",),
            "ResponseMqf": ("http://h/r",),
            "TTrq": DATE,
        },
        "Signature": {
            "SignedInfo": {
                "SignatureMethod": {"Algorithm": "http://www.w3.org/2000/02/xmldsig#dsa"},
                "Reference": [
                    {"URI": f"cid:body@{GUID}", "DigestMethod": {"Algorithm": "m"}, "DigestValue": b"1"},
                    {"URI": f"cid:extension@{GUID}", "DigestMethod": {"Algorithm": "m"}, "DigestValue": b"2"},
                ],
            },
            "SignatureValue": b"3",
        },
    }


EVERYTHING = (
    f'<se:Envelope xmlns:se="{SOAP}" xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
    '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
    "<action>MSMQ:a &lt;&amp;&gt; label</action>"
    f"<to>https://h/q</to><id>uuid:26626@{GUID}</id><rev><via>MSMQ:DIRECT=OS:h\\q</via></rev></path>"
    '<properties se:mustUnderstand="1"><expiresAt>20070619T210654</expiresAt><sentAt>20070619T210654</sentAt>'
    '</properties><services se:mustUnderstand="1"><durable/><deliveryReceiptRequest><sendTo>http://h/a</sendTo>'
    "</deliveryReceiptRequest><commitmentReceiptRequest><sendTo>http://h/b</sendTo><positiveOnly/><negativeOnly/>"
    f'</commitmentReceiptRequest></services><stream se:mustUnderstand="1"><streamId>uid:{GUID}'
    "\\4839986701558349830</streamId><current>42</current><previous>41</previous><start><sendReceiptsTo>http://h/r"
    f"</sendReceiptsTo></start></stream><streamReceipt><streamId>uid:{GUID}\\1</streamId><lastOrdinal>2"
    "</lastOrdinal></streamReceipt><deliveryReceipt><receivedAt>20070619T210654</receivedAt>"
    f"<id>uuid:1@{GUID}</id></deliveryReceipt><commitmentReceipt><decidedAt>20070619T210654</decidedAt>"
    f"<decision>negative</decision><id>uuid:1@{GUID}</id></commitmentReceipt>"
    '<Msmq xmlns="msmq.namespace.xml"><Class>255</Class><Priority>7</Priority><Journal/><DeadLetter/>'
    f"<Correlation>AAECAwQFBgcICQoLDA0ODxAREhM=</Correlation><Trace/><ConnectorType>{GUID}</ConnectorType>"
    "<App>36</App><BodyType>8</BodyType><HashAlgorithm>32772</HashAlgorithm><Eod><First/><Last/><ConnectorId>"
    f"{GUID}</ConnectorId></Eod><Provider><Type>1234</Type><Name>ProviderName</Name></Provider><SourceQmGuid>{GUID}"
    "</SourceQmGuid><DestinationMqf>http://Machine1/msmq/private$/SimpleQ\nhttp://Machine2/q\n</DestinationMqf>"
    "<AdminMqf>http://h/a\n</AdminMqf><ResponseMqf>http://h/r\n</ResponseMqf><TTrq>20070619T210654</TTrq></Msmq>"
    '<Signature xmlns="http://www.w3.org/2000/02/xmldsig#"><SignedInfo>'
    '<SignatureMethod Algorithm="http://www.w3.org/2000/02/xmldsig#dsa"></SignatureMethod>'
    f'<Reference URI="cid:body@{GUID}"><DigestMethod Algorithm="m"></DigestMethod>'
    "<DigestValue>MQ==</DigestValue>"
    f'</Reference><Reference URI="cid:extension@{GUID}"><DigestMethod Algorithm="m"></DigestMethod>'
    "<DigestValue>Mg==</DigestValue></Reference></SignedInfo><SignatureValue>Mw==</SignatureValue></Signature>"
    "</se:Header><se:Body></se:Body></se:Envelope>"
).encode()


def span(path: str) -> tuple[int, int]:
    """Where an element stands in EVERYTHING."""
    start, end = 0, len(EVERYTHING)
    for name in path.split("."):
        element = re.compile(rf"<{name}(?: [^>]*)?(?:/>|>.*?</{name}>)".encode(), re.DOTALL)
        found = element.search(EVERYTHING, start, end)
        assert found is not None
        start, end = found.span()
    return start, end


def without_and_twice(path: str) -> tuple[bytes, bytes]:
    """EVERYTHING without an element, and with two of it."""
    start, end = span(path)
    return EVERYTHING[:start] + EVERYTHING[end:], EVERYTHING[:end] + EVERYTHING[start:]
