"""Receiving SRMP messages, and the receipts for them: [MC-MQSRM] 3.1.5.1 and 3.1.6.3."""

from __future__ import annotations

import base64
import ipaddress
import struct
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import UUID
from xml.sax.saxutils import escape

from tests.support.broken_peers.envelope import (
    MSMQ,
    ROUTING,
    SIGNATURE,
    SOAP,
    SRMP,
    Element,
    read_date,
    read_entity,
    read_header,
    read_identifier,
)
from tests.support.broken_peers.wire import Malformed

if TYPE_CHECKING:
    from tests.support.broken_peers.manager import Manager, Queue

OK, BAD_REQUEST = 200, 400
RECEIPT_S = 0.5
STREAMS_MAX, HISTORY_MAX = 1_024, 4_096
OBJECT_ID_SIZE = 20
_NULL = str(UUID(int=0))
_NEVER = "20380119T031407"
_RECEIPT = (
    f'<se:Envelope xmlns:se="{SOAP}" xmlns="{SRMP}"><se:Header><path xmlns="{ROUTING}" se:mustUnderstand="1">'
    "<action>{action}</action><to>{to}</to><id>uuid:{number}@{guid}</id>"
    '<rev><via>{about}</via></rev></path><properties se:mustUnderstand="1">'
    "<expiresAt>{never}</expiresAt><sentAt>{sent}</sentAt></properties>{receipt}"
    f'<Msmq xmlns="{MSMQ}"><Class>{{kind}}</Class><Priority>{{priority}}</Priority>'
    "<Correlation>{correlation}</Correlation><App>0</App><BodyType>0</BodyType><HashAlgorithm>0</HashAlgorithm>"
    "<SourceQmGuid>{guid}</SourceQmGuid><TTrq>{reach}</TTrq></Msmq></se:Header><se:Body></se:Body></se:Envelope>"
)


@dataclass
class Stream:
    """An incoming stream: the last number accepted, and where its receipts go."""

    identifier: str
    number: int
    receipts: str
    about: str
    due: bool = False


class Srmp:
    """Takes the entities of requests.

    Attributes:
        post: sends an envelope to a URL.
    """

    def __init__(self, manager: Manager) -> None:
        self._manager, self._makes = manager, manager.makes
        self._guid = str(UUID(bytes_le=manager.guid))
        self.post: Callable[[str, bytes], None] = lambda _url, _envelope: None
        self._history: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._streams: OrderedDict[tuple[str, str], Stream] = OrderedDict()
        self._number = 0

    def take(self, content_type: str, entity: bytes) -> int:
        """Take a message; return the status of HTTP. Raises Crash and Hang."""
        try:
            envelope, payload = read_entity(content_type, entity, self._makes)
            return self._message(read_header(envelope, self._makes), payload)
        except Malformed:
            if self._makes("http_ok_for_malformed"):
                return OK
            return 500 if self._makes("http_500_for_malformed") else BAD_REQUEST

    def _message(self, header: Element, payload: bytes) -> int:
        path, properties = header.one(f"{ROUTING}}}path"), header.one(f"{SRMP}}}properties")
        services, stream = header.find(f"{SRMP}}}services"), header.find(f"{SRMP}}}stream")
        for element in (path, properties, services, stream):
            if element is not None and not element.must_be_understood():
                raise Malformed(f"{element.name} without mustUnderstand")
        action, to = path.content(f"{ROUTING}}}action"), path.content(f"{ROUTING}}}to")
        msmq = header.find(f"{MSMQ}}}Msmq")
        identifier = self._identifier(path, msmq)
        ends = read_date(properties.content(f"{SRMP}}}expiresAt"), self._makes)
        if (sent := properties.find(f"{SRMP}}}sentAt")) is not None:
            read_date(sent.text, self._makes)
        kind, priority = 0, 3
        if msmq is not None:
            kind, priority = msmq.number(f"{MSMQ}}}Class", 1 << 16), msmq.number(f"{MSMQ}}}Priority", 8)
            msmq.number(f"{MSMQ}}}BodyType", 1 << 32)
            ends = read_date(msmq.content(f"{MSMQ}}}TTrq"), self._makes)
            if (correlation := msmq.find(f"{MSMQ}}}Correlation")) is not None:
                _read_correlation(correlation.text)
        place = self._stream_place(stream, msmq)
        receipt = _delivery_receipt(services)
        if header.find(f"{SIGNATURE}}}Signature") is not None:
            raise Malformed("a signature of nobody that is known")
        queue = self._queue(to)
        unknown = queue is None and not self._makes("http_ok_for_unknown_queue")
        if unknown or (queue is not None and queue.transactional != (stream is not None)):
            return BAD_REQUEST
        if ends < datetime.now(UTC) or header.find(f"{SRMP}}}streamReceipt") is not None:
            return OK
        if place is not None and not self._follows(place, to):
            return OK
        if identifier in self._history and place is None and not self._makes("http_takes_duplicates"):
            return OK
        if identifier != (_NULL, 1):
            self._history[identifier] = None
            if len(self._history) > HISTORY_MAX:
                self._history.popitem(last=False)
        if queue is not None:
            queue.bodies.append(payload[:4_096])
        if receipt and kind == 0 and not self._makes("http_no_delivery_receipt"):
            self._delivered(receipt, action, to, identifier, priority)
        return OK

    def _identifier(self, path: Element, msmq: Element | None) -> tuple[str, int]:
        text = path.content(f"{ROUTING}}}id")
        if msmq is None:
            return _NULL, 1
        number = read_identifier(text, "uuid:", "@", 1 << 32)[1]
        source = msmq.content(f"{MSMQ}}}SourceQmGuid")
        return read_identifier(f"uuid:{number}@{source}", "uuid:", "@", 1 << 32)

    def _queue(self, to: str) -> Queue | None:
        try:
            url = urlsplit(to)
            host = url.hostname or ""
        except ValueError as exc:
            raise Malformed(f"to {to:.99}") from exc
        if url.scheme.lower() not in ("http", "https") and not to.startswith("MSMQ:MULTICAST="):
            raise Malformed(f"to {to:.99}")
        if not _is_here(host):
            return None
        folder, _, path = url.path.removeprefix("/").partition("/")
        return self._manager.queues.get(path.replace("/", "\\").lower()) if folder.lower() == "msmq" else None

    # -- streams ------------------------------------------------------------------------------------------

    def _stream_place(
        self, stream: Element | None, msmq: Element | None
    ) -> tuple[str, str, int, int | None, str] | None:
        """GUID and streamId, current, previous and where receipts go."""
        if stream is None:
            return None
        if msmq is None:
            raise Malformed("stream without Msmq")
        identifier = stream.content(f"{SRMP}}}streamId")
        owner, _ = read_identifier(identifier, "uid:", "\\", 1 << 64)
        before = stream.find(f"{SRMP}}}previous")
        previous = None if before is None else stream.number(f"{SRMP}}}previous")
        start = stream.find(f"{SRMP}}}start")
        receipts = "" if start is None else _receipts(start.content(f"{SRMP}}}sendReceiptsTo"))
        return owner, identifier, stream.number(f"{SRMP}}}current"), previous, receipts

    def _follows(self, place: tuple[str, str, int, int | None, str], to: str) -> bool:
        """Whether a message of a stream is accepted: [MC-MQSRM] 3.1.5.1.6.3."""
        owner, identifier, current, previous, receipts = place
        stream = self._streams.get((owner, to.lower()))
        known = stream is not None and stream.identifier == identifier
        if not known and receipts and current == 1:
            stream = self._streams[owner, to.lower()] = Stream(identifier, 1, receipts, to)
            if len(self._streams) > STREAMS_MAX:
                self._streams.popitem(last=False)
            self._receipt_due(stream)
            return True
        if stream is None or not known:
            return False
        last = stream.number
        bridged = previous is not None and previous <= last
        follows = current == last + 1 or (current > last and (bridged or self._makes("http_takes_gaps")))
        if follows:
            stream.number = current
        self._receipt_due(stream)
        return follows

    def _receipt_due(self, stream: Stream) -> None:
        if not stream.due:
            stream.due = True
            self._manager.loop.call_later(RECEIPT_S, self._stream_receipt, stream)

    def _stream_receipt(self, stream: Stream) -> None:
        stream.due = False
        receipt = (
            f"<streamReceipt><streamId>{escape(stream.identifier)}</streamId>"
            f"<lastOrdinal>{stream.number}</lastOrdinal></streamReceipt>"
        )
        self._send(stream.receipts, "MSMQ:QM Ordering Ack", stream.about, receipt, kind=255, priority=0)

    # -- receipts -----------------------------------------------------------------------------------------

    def _delivered(
        self, url: str, action: str, about: str, identifier: tuple[str, int], priority: int
    ) -> None:
        guid, number = identifier
        told = f"uuid:{number + self._makes('http_receipt_of_the_next')}@{guid}"
        receipt = f"<deliveryReceipt><receivedAt>{_date()}</receivedAt><id>{told}</id></deliveryReceipt>"
        correlation = UUID(guid).bytes_le + struct.pack("<L", number)
        label = action if action.startswith("MSMQ:") else "MSMQ:"
        self._send(url, label, about, receipt, kind=2, priority=priority, correlation=correlation)

    def _send(
        self,
        url: str,
        action: str,
        about: str,
        receipt: str,
        *,
        kind: int,
        priority: int,
        correlation: bytes = bytes(20),
    ) -> None:
        self._number += 1
        envelope = _RECEIPT.format(
            action=escape(action), to=escape(url), number=self._number, guid=self._guid, about=escape(about),
            never=_NEVER, sent=_date(), receipt=receipt, kind=kind, priority=priority,
            correlation=base64.b64encode(correlation).decode(), reach=_date(345_600),
        )  # fmt: skip
        self.post(url, envelope.encode())


def _read_correlation(text: str) -> None:
    """2.2.6.5: the 20 bytes of an identifier in base64. Raises Malformed."""
    try:
        identifier = base64.b64decode(text.strip(), validate=True)
    except ValueError:
        raise Malformed("a Correlation that is not base64") from None
    if len(identifier) != OBJECT_ID_SIZE:
        raise Malformed("a Correlation that is not an identifier of a message")


def _date(later: int = 0) -> str:
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(time.time() + later))


def _delivery_receipt(services: Element | None) -> str:
    """The destination of a delivery receipt; empty if none is asked for. Raises Malformed."""
    places = []
    for name in ("deliveryReceiptRequest", "commitmentReceiptRequest"):
        request = None if services is None else services.find(f"{SRMP}}}{name}")
        places.append("" if request is None else _receipts(request.content(f"{SRMP}}}sendTo")))
    return places[0]


def _receipts(url: str) -> str:
    if not url.lower().startswith(("http://", "https://")):
        raise Malformed(f"receipts to {url:.99}")
    return url


def _is_here(host: str) -> bool:
    """Whether a host is this computer, as far as a peer of tests goes: a loopback address."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
