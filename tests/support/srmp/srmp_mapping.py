"""Envelopes of messages that a queue manager takes, one part changed at a time."""

from __future__ import annotations

from msmqwire.qm.model.message import Message
from msmqwire.qm.protocols.srmp.deserializing import deserialize
from msmqwire.srmp.message import SrmpMessage, parse_message
from tests.support.srmp.srmp_envelopes import GUID, STREAM_ID, xml

ARRIVAL = 1_182_300_000  # 2007-06-20T00:40:00
SENT = 1_182_200_814  # 2007-06-18T21:06:54, sentAt
DAY = 86_400


def path(
    action: str = "MSMQ:l", to: str = "http://h/msmq/q", identifier: str = f"uuid:7@{GUID}", rev: str = ""
) -> str:
    return (
        f'<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1"><action>{action}</action>'
        f"<to>{to}</to><id>{identifier}</id>{rev}</path>"
    )


def via(text: str) -> str:
    return path(rev=f"<rev><via>{text}</via></rev>")


def properties(expires: str = "20070619T210654", sent: str | None = "20070618T210654") -> str:
    sent_at = "" if sent is None else f"<sentAt>{sent}</sentAt>"
    return f'<properties se:mustUnderstand="1"><expiresAt>{expires}</expiresAt>{sent_at}</properties>'


def services(inner: str) -> str:
    return f'<services se:mustUnderstand="1">{inner}</services>'


def delivery_request(uri: str = "http://a/msmq/arrived") -> str:
    return f"<deliveryReceiptRequest><sendTo>{uri}</sendTo></deliveryReceiptRequest>"


def commitment_request(inner: str = "", uri: str = "http://a/msmq/decided") -> str:
    return f"<commitmentReceiptRequest><sendTo>{uri}</sendTo>{inner}</commitmentReceiptRequest>"


def stream(current: int = 42, inner: str = "") -> str:
    return (
        f'<stream se:mustUnderstand="1"><streamId>{STREAM_ID}</streamId><current>{current}</current>'
        f"{inner}</stream>"
    )


def msmq(
    inner: str = "",
    number: int = 0,
    priority: int = 3,
    body_type: int = 0,
    source: object = GUID,
    limit: str = "20070622T210654",
) -> str:
    return (
        f'<Msmq xmlns="msmq.namespace.xml"><Class>{number}</Class><Priority>{priority}</Priority>{inner}'
        f"<BodyType>{body_type}</BodyType><SourceQmGuid>{source}</SourceQmGuid><TTrq>{limit}</TTrq></Msmq>"
    )


def request(*groups: str) -> SrmpMessage:
    return parse_message(xml(*groups))


def message(*groups: str) -> Message:
    """The message of an envelope with these groups, path and properties in front."""
    front = [] if groups and groups[0].startswith("<path") else [path()]
    if not any(group.startswith("<properties") for group in groups):
        front.append(properties())
    return deserialize(request(*front, *groups), ARRIVAL)
