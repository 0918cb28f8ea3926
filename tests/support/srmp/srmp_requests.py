"""Another queue manager that speaks SRMP, as bytes: requests written as text, with nothing of the engine."""

from __future__ import annotations

import itertools
import time
from uuid import UUID

from tests.support.engine_harness import PEER_ADDRESS, PEER_ID, START_UTC
from tests.support.srmp.srmp_harness import SrmpHarness

NEVER = "20380119T031407"
HERE = "http://here/msmq/private$/orders"
ORDER_QUEUE = "http://here/msmq/private$/order_queue$"
RECEIPTS = "http://there/msmq/private$/order_queue$"
"""The destination of the peer's stream receipts."""
ADMIN = "http://there/msmq/private$/admin"
"""The destination of its other receipts."""
DAY = 86_400
ORDINAL = 0x6553F10000000001
"""The ordinal of its first stream: the second at which harnesses start, and 1."""


def date(utc: int) -> str:
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(utc))


def path(to: str, identifier: str, label: str = "label", rev: str = "") -> str:
    return (
        '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
        f"<action>MSMQ:{label}</action><to>{to}</to><id>{identifier}</id>{rev}</path>"
    )


def stream_receipt(stream_id: str, last: int) -> str:
    return f"<streamReceipt><streamId>{stream_id}</streamId><lastOrdinal>{last}</lastOrdinal></streamReceipt>"


def envelope(*groups: str) -> bytes:
    return (
        '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
        f'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>{"".join(groups)}</se:Header>'
        "<se:Body></se:Body></se:Envelope>"
    ).encode()


def http_request(
    text: bytes, body: bytes | None = None, *, target: str = "/msmq/private$/orders", fields: str = ""
) -> bytes:
    """A request with an envelope and, in a part of its own, a body."""
    if body is None:
        kind, entity = 'text/xml; charset="utf-8"', text
    else:
        delimiter = b"--MSMQ - SOAP boundary, 7"
        kind = 'multipart/related; boundary="MSMQ - SOAP boundary, 7"; type=text/xml'
        entity = (
            delimiter
            + b"\r\nContent-Type: text/xml; charset=UTF-8\r\nContent-Length: %d\r\n\r\n" % len(text)
            + text + delimiter
            + b"\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n" % len(body)
            + b"Content-Id: body@00000000-0000-0000-0000-0000000000b2\r\n\r\n"
            + body + delimiter + b"--\r\n"
        )  # fmt: skip
    head = (
        f"POST {target} HTTP/1.1\r\nHost: here\r\nContent-Type: {kind}\r\nContent-Length: {len(entity)}\r\n"
        f'SOAPAction: "MSMQMessage"\r\nProxy-Accept: NonInteractiveClient\r\n{fields}\r\n'
    )
    return head.encode() + entity


class SrmpPeer:
    """A queue manager that sends the messages of a test to a harness.

    Attributes:
        harness: the receiver.
        identifier: the identifier of this queue manager.
        ordinal: the ordinal of its present stream.
    """

    def __init__(self, harness: SrmpHarness, identifier: UUID = PEER_ID, address: str = PEER_ADDRESS) -> None:
        self.harness, self.identifier, self.address = harness, identifier, address
        self.ordinal = ORDINAL
        self._numbers = itertools.count(1)

    # -- messages

    def message(
        self,
        body: bytes | None = b"m",
        *extra: str,
        to: str = HERE,
        number: int | None = None,
        sent: int | None = None,
        reach_queue: int | None = DAY,
        be_received: int | None = None,
        services: str = "",
        msmq: str | None = "",
        message_class: int = 0,
        label: str = "label",
        fields: str = "",
        change: tuple[str, str] = ("", ""),
    ) -> bytes:
        """A request with a user message.

        Args:
            body: None for a request that is not multipart.
            extra: groups between services and Msmq.
            number: of the message; the next one by default.
            sent: seconds since 1970; now by default.
            reach_queue, be_received: seconds after that, None for no limit.
            services: the content of that element.
            msmq: elements after Priority; None for no Msmq element.
            change: replacements in the envelope.
        """
        number = next(self._numbers) if number is None else number
        sent = self.harness.utc if sent is None else sent
        expires = NEVER if be_received is None else date(sent + be_received)
        limit = NEVER if reach_queue is None else date(sent + reach_queue)
        groups = [
            path(to, f"uuid:{number}@{self.identifier}", label),
            f'<properties se:mustUnderstand="1"><expiresAt>{expires if msmq is not None else limit}'
            f"</expiresAt><sentAt>{date(sent)}</sentAt></properties>",
            f'<services se:mustUnderstand="1">{services}</services>' if services else "",
            *extra,
        ]
        if msmq is not None:
            groups.append(
                f'<Msmq xmlns="msmq.namespace.xml"><Class>{message_class}</Class><Priority>3</Priority>'
                f"{msmq}<BodyType>0</BodyType><SourceQmGuid>{self.identifier}</SourceQmGuid>"
                f"<TTrq>{limit}</TTrq></Msmq>"
            )
        old, new = change
        text = envelope(*groups).decode()
        assert old in text, old
        return http_request(text.replace(old, new).encode() if old else text.encode(), body, fields=fields)

    def send(self, body: bytes | None = b"m", *extra: str, **attributes: object) -> int:
        """Send a message; return the status of the response."""
        return self.harness.post(self.message(body, *extra, **attributes), self.address)  # type: ignore[arg-type]

    # -- streams

    def stream_id(self, ordinal: int | None = None) -> str:
        return f"uid:{self.identifier}\\{self.ordinal if ordinal is None else ordinal}"

    def stream(
        self,
        current: int,
        previous: int | None = None,
        *,
        start: str | None = None,
        ordinal: int | None = None,
    ) -> str:
        """The stream element; `start` is the destination of receipts, by default only from the first message
        on.
        """
        if start is None and current == 1:
            start = RECEIPTS
        begins = f"<start><sendReceiptsTo>{start}</sendReceiptsTo></start>" if start else ""
        before = "" if previous is None else f"<previous>{previous}</previous>"
        return (
            f'<stream se:mustUnderstand="1"><streamId>{self.stream_id(ordinal)}</streamId>'
            f"<current>{current}</current>{before}{begins}</stream>"
        )

    def send_in_stream(
        self, current: int, previous: int | None = None, *, body: bytes | None = None, **attributes: object
    ) -> int:
        """Send a message of a stream; return the status of the response."""
        names = ("start", "ordinal")
        of_stream = {name: attributes.pop(name) for name in names if name in attributes}
        attributes.setdefault("services", "<durable/>")
        stream = self.stream(current, previous, **of_stream)  # type: ignore[arg-type]
        return self.send(b"s%d" % current if body is None else body, stream, **attributes)

    # -- receipts

    def stream_receipt(
        self,
        stream_id: str,
        last: int,
        *,
        to: str = ORDER_QUEUE,
        label: str = "QM Ordering Ack",
        **attributes: object,
    ) -> int:
        """Send a stream receipt; return the status of the response."""
        receipt = stream_receipt(stream_id, last)
        attributes.setdefault("message_class", 0xFF)
        return self.send(None, receipt, to=to, label=label, **attributes)

    def final_receipt(
        self,
        stream_id: str,
        last: int,
        message_class: int = 0x4000,
        decision: str = "positive",
        *,
        identifier: str = f"uuid:0@{PEER_ID}",
        **attributes: object,
    ) -> int:
        """Send a final stream receipt for the message `identifier`; return the status of the response."""
        commitment = (
            f"<commitmentReceipt><decidedAt>{date(START_UTC)}</decidedAt><decision>{decision}</decision>"
            f"<id>{identifier}</id></commitmentReceipt>"
        )
        attributes.setdefault("to", ORDER_QUEUE)
        attributes.setdefault("label", "QM Ordering Ack")
        receipts = stream_receipt(stream_id, last) + commitment
        return self.send(None, receipts, message_class=message_class, **attributes)
