"""A peer that speaks SRMP with http.client, http.server and templates, and nothing of this project."""

from __future__ import annotations

import base64
import http.client
import re
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID, uuid4

from tests.support.patience import limit

SOAP = "{http://schemas.xmlsoap.org/soap/envelope/}"
PATH = "{http://schemas.xmlsoap.org/rp/}"
SRMP = "{http://schemas.xmlsoap.org/srmp/}"
MSMQ = "{msmq.namespace.xml}"
NEVER = "20380119T031407"
ENVELOPE = """\
<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" xmlns="http://schemas.xmlsoap.org/srmp/">\
<se:Header><path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1"><action>{action}</action>\
<to>{to}</to><id>uuid:{number}@{guid}</id></path>\
<properties se:mustUnderstand="1"><expiresAt>{expires}</expiresAt><sentAt>{sent}</sentAt></properties>\
{services}{more}{msmq}</se:Header><se:Body></se:Body></se:Envelope>"""
MSMQ_ELEMENT = """\
<Msmq xmlns="msmq.namespace.xml"><Class>{kind}</Class><Priority>{priority}</Priority>{flags}\
<BodyType>0</BodyType><SourceQmGuid>{guid}</SourceQmGuid><TTrq>{reach}</TTrq></Msmq>"""
BOUNDARY = "MSMQ - SOAP boundary, 12345"


def date(seconds: float) -> str:
    """A date of SRMP."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds))


def multipart(envelope: bytes, body: bytes | None, guid: UUID) -> tuple[str, bytes]:
    """Content-Type and entity of a request, framed as Windows does: no CRLF before delimiters."""
    if body is None:
        return "text/xml", envelope
    head = b"--" + BOUNDARY.encode() + b"\r\n"
    parts = head + b"Content-Type: text/xml; charset=UTF-8\r\n"
    parts += b"Content-Length: %d\r\n\r\n" % len(envelope) + envelope
    parts += head + b"Content-Type: application/octet-stream\r\nContent-Length: %d\r\n" % len(body)
    parts += b"Content-Id: body@%b\r\n\r\n" % str(guid).encode() + body
    parts += b"--" + BOUNDARY.encode() + b"--\r\n"
    return f'multipart/related; boundary="{BOUNDARY}"; type=text/xml', parts


@dataclass
class Received:
    """A request that came to the peer: its path, header fields, entity and the content of that."""

    path: str
    fields: dict[str, str]
    entity: bytes
    parts: list[bytes] = field(init=False)
    root: ET.Element = field(init=False)

    def __post_init__(self) -> None:
        self.parts = self._parts()
        self.root = ET.fromstring(self.parts[0].decode("utf-8"))

    def _parts(self) -> list[bytes]:
        found = re.search(r'boundary="([^"]*)"', self.fields["Content-Type"])
        if found is None:
            return [self.entity]
        parts, at, delimiter = [], 0, b"--" + found[1].encode()
        while self.entity.startswith(delimiter + b"\r\n", at):
            end = self.entity.index(b"\r\n\r\n", at) + 4
            length = re.search(rb"Content-Length: (\d+)", self.entity[at:end])
            assert length is not None
            parts.append(self.entity[end : end + int(length[1])])
            at = end + int(length[1])
        assert self.entity[at:] == delimiter + b"--\r\n", self.entity[at:]
        return parts

    def text(self, *tags: str) -> str | None:
        """The text of an element of the header, "" if it is empty, None if it is not there."""
        element = self.root.find("/".join((f"{SOAP}Header", *tags)))
        return None if element is None else element.text or ""

    @property
    def body(self) -> bytes:
        return self.parts[1]


class SrmpPeer:
    """Sends requests, and collects incoming ones.

    Attributes:
        guid: the GUID of its queue manager.
        received: incoming requests, in order.
        statuses: the status for each of the next requests; 200 when there are no more.
    """

    def __init__(self, address: str, server: tuple[str, int]) -> None:
        self.guid = uuid4()
        self.received: list[Received] = []
        self.statuses: list[int] = []
        self._server, self._number = server, 0
        peer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                entity = self.rfile.read(int(self.headers["Content-Length"]))
                status = peer.statuses.pop(0) if peer.statuses else 200
                peer.received.append(Received(self.path, dict(self.headers.items()), entity))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._listener = ThreadingHTTPServer((address, 0), Handler)
        self.port = self._listener.server_port
        self.url = f"http://{address}:{self.port}/msmq/private$"
        threading.Thread(target=self._listener.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._listener.shutdown()
        self._listener.server_close()

    def envelope(self, to: str, **changed: Any) -> bytes:
        """An envelope with a number of its own, sent now; arguments replace its parts."""
        self._number += 1
        now = time.time()
        values = {
            "action": "MSMQ:", "to": to, "number": self._number, "guid": self.guid, "expires": NEVER,
            "sent": date(now), "reach": date(now + 86_400), "services": "", "more": "", "kind": 0,
            "priority": 3, "flags": "", **changed,
        }  # fmt: skip
        values.setdefault("msmq", MSMQ_ELEMENT.format(**values))
        return ENVELOPE.format(**values).encode()

    def post(self, envelope: bytes, body: bytes | None = None, path: str = "/msmq/private$/q") -> int:
        """Post a request, and return the status."""
        content_type, entity = multipart(envelope, body, self.guid)
        connection = http.client.HTTPConnection(*self._server, timeout=limit(60))
        try:
            fields = {"Content-Type": content_type, "SOAPAction": '"MSMQMessage"'}
            connection.request("POST", path, entity, fields)
            response = connection.getresponse()
            assert response.read() == b""
            return response.status
        finally:
            connection.close()

    def stream(self, number: int, current: int, previous: int | None = None, start: str = "") -> str:
        """A stream element; `start` is the destination of receipts."""
        begins = f"<start><sendReceiptsTo>{start}</sendReceiptsTo></start>" if start else ""
        before = "" if previous is None else f"<previous>{previous}</previous>"
        return (
            f'<stream xmlns="http://schemas.xmlsoap.org/srmp/" se:mustUnderstand="1">'
            f"<streamId>uid:{self.guid}\\{number}</streamId><current>{current}</current>{before}{begins}"
            "</stream>"
        )

    def correlation(self, number: int) -> str:
        """The Correlation of an answer to a message of this peer."""
        return base64.b64encode(self.guid.bytes_le + number.to_bytes(4, "little")).decode()

    def of(self, element: str) -> list[Received]:
        """The requests with this element in the header."""
        return [received for received in self.received if received.text(element) is not None]

    def wait(self, count: int, until: Callable[[Callable[[], bool], str], object]) -> list[Received]:
        """Wait until a number of requests have come."""
        until(lambda: len(self.received) >= count, f"{count} requests, not {len(self.received)}")
        return self.received


@contextmanager
def srmp_peer(address: str, server: tuple[str, int]) -> Iterator[SrmpPeer]:
    """Run a peer of a server."""
    peer = SrmpPeer(address, server)
    try:
        yield peer
    finally:
        peer.close()
