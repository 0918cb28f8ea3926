"""A queue manager that takes SRMP and sends receipts, with nothing of this project."""

from __future__ import annotations

import base64
import http.client
import queue
import re
import socket
import threading
import time
import xml.etree.ElementTree as ET
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID

from tests.support.patience import limit

SOAP = "{http://schemas.xmlsoap.org/soap/envelope/}"
PATH = "{http://schemas.xmlsoap.org/rp/}"
SRMP = "{http://schemas.xmlsoap.org/srmp/}"
MSMQ = "{msmq.namespace.xml}"
GUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
NOBODY = f"uuid:1@{UUID(int=0)}"
REASONS = {
    200: "OK",
    400: "Bad Request",
    405: "Method Not Allowed",
    411: "Length Required",
    500: "Internal Server Error",
}
COALESCING_S = 0.05
"""500 ms by the specification; tests do not wait so long."""
ENVELOPE = """\
<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>\
<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1"><action>{action}</action><to>{to}</to>\
<id>uuid:{number}@{guid}</id></path><properties se:mustUnderstand="1"><expiresAt>20380119T031407</expiresAt>\
<sentAt>{now}</sentAt></properties>{receipt}<Msmq xmlns="msmq.namespace.xml"><Class>{kind}</Class>\
<Priority>3</Priority><Correlation>{correlation}</Correlation><BodyType>0</BodyType><SourceQmGuid>{guid}</SourceQmGuid>\
<TTrq>20380119T031407</TTrq></Msmq></se:Header><se:Body></se:Body></se:Envelope>"""


class Refused(Exception):
    """The request is answered with this status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass
class Stream:
    """A stream that comes in."""

    identifier: str
    to: str
    number: int = 0
    acknowledged: int = 0
    due: float = 0.0


@dataclass
class Message:
    """The content of a request."""

    root: ET.Element
    body: bytes | None = None
    header: ET.Element = field(init=False)

    def __post_init__(self) -> None:
        self.header = self.root[0]

    def element(self, *tags: str) -> ET.Element | None:
        return self.header.find("/".join(tags))

    def text(self, *tags: str) -> str:
        found = self.element(*tags)
        return "" if found is None else found.text or ""


def number(text: str, most: int = (1 << 64) - 1) -> int:
    if not re.fullmatch(r"[0-9]{1,30}", text) or int(text) > most:
        raise Refused(400)
    return int(text)


def date(text: str) -> None:
    if not re.fullmatch(r"\d{8}T\d{6}", text):
        raise Refused(400)
    try:
        time.strptime(text, "%Y%m%dT%H%M%S")
    except ValueError:
        raise Refused(400) from None


class IndependentPeer:
    """A right peer that listens in threads of its own; subclasses get something wrong.

    Args:
        address: where.
        orders, ledger: URL paths of its queues; the second one is transactional.
    """

    def __init__(
        self, address: str, orders: str = "private$/orders", ledger: str = "private$/ledger"
    ) -> None:
        self.orders, self.ledger = orders, ledger
        self.guid, self.numbers = UUID(int=0x5EED), 0
        self.seen: set[str] = set()
        self.streams: dict[tuple[str, str], Stream] = {}
        self.lock = threading.Lock()
        self.receipts: queue.Queue[tuple[str, bytes] | None] = queue.Queue()
        self.listener = socket.create_server((address, 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.over = False
        self.connections: set[socket.socket] = set()
        self.threads = [
            threading.Thread(target=work, daemon=True) for work in (self.accept, self.post, self.tick)
        ]

    def __enter__(self) -> Self:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over = True
        self.receipts.put(None)
        with suppress(OSError):
            socket.create_connection(self.listener.getsockname()).close()
        for thread in self.threads:
            thread.join()
        self.listener.close()
        for sock in list(self.connections):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    # -- HTTP

    def accept(self) -> None:
        while not self.over:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.connections.add(sock)
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock: socket.socket) -> None:
        with suppress(OSError), sock, sock.makefile("rb") as file:
            while True:
                try:
                    status, goes_on = self.one(file), True
                except Refused as exc:
                    status, goes_on = exc.status, exc.status in (200, 400) and getattr(exc, "whole", False)
                except EOFError:
                    break
                sock.sendall(self.response(status, goes_on))
                if not goes_on:
                    break
        self.connections.discard(sock)

    def response(self, status: int, goes_on: bool) -> bytes:
        end = "" if goes_on else "Connection: close\r\n"
        return f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Length: 0\r\n{end}\r\n".encode()

    def one(self, file: Any) -> int:
        """Read one request and return the status."""
        lines = []
        while True:
            line = file.readline(20_000)
            if not line.endswith(b"\r\n"):
                if line and len(line) >= 20_000:
                    raise Refused(400)
                raise EOFError
            if line == b"\r\n":
                break
            lines.append(line[:-2].decode("latin-1"))
            if len(lines) > 200:
                raise Refused(400)
        if not lines or not re.fullmatch(r"[!-~]+ [!-~]+ HTTP/1\.[01]", lines[0]):
            raise Refused(400)
        fields: dict[str, str] = {}
        for text in lines[1:]:
            name, colon, value = text.partition(":")
            if not colon or not re.fullmatch(r"[!-9;-~]+", name) or name.lower() in fields:
                raise Refused(400)
            fields[name.lower()] = value.strip()
        if not lines[0].startswith("POST "):
            raise Refused(405)
        if "transfer-encoding" in fields or "content-length" not in fields:
            raise Refused(411)
        size = fields["content-length"]
        if not re.fullmatch(r"\d{1,7}", size):
            raise Refused(400)
        entity = file.read(int(size))
        if len(entity) < int(size):
            raise EOFError
        try:
            with self.lock:
                self.take(self.message(fields.get("content-type", ""), entity))
        except Refused as exc:
            exc.whole = True  # type: ignore[attr-defined]
            raise
        return 200

    # -- content of a request

    def message(self, kind: str, entity: bytes) -> Message:
        body = None
        if kind.startswith("multipart/related"):
            found = re.search(r'boundary="([^"]+)"', kind)
            if not found:
                raise Refused(400)
            entity, body = self.parts(entity, b"--" + found[1].encode())
        elif not kind.startswith("text/xml"):
            raise Refused(400)
        try:
            root = ET.fromstring(entity)
        except (ET.ParseError, ValueError, LookupError):
            raise Refused(400) from None
        return Message(self.checked(root), body)

    def parts(self, entity: bytes, delimiter: bytes) -> tuple[bytes, bytes | None]:
        """Return envelope and body of an entity, cut by the lengths of its parts."""
        found: dict[str, bytes] = {}
        at = 0
        while entity.startswith(delimiter + b"\r\n", at):
            end = entity.find(b"\r\n\r\n", at)
            head = entity[at:end].decode("latin-1").lower()
            length = re.search(r"content-length: (\d{1,7})\r?\n?", head + "\r\n")
            if end < 0 or not length:
                raise Refused(400)
            stop = end + 4 + int(length[1])
            self.check_end(entity, stop)
            name = "envelope" if "text/xml" in head else "body" if "body@" in head else "other"
            found.setdefault(name, entity[end + 4 : stop])
            at = stop
        if not entity.startswith(delimiter + b"--", at) or "envelope" not in found:
            raise Refused(400)
        return found["envelope"], found.get("body")

    def check_end(self, entity: bytes, stop: int) -> None:
        if stop > len(entity):
            raise Refused(400)

    def checked(self, root: ET.Element) -> ET.Element:
        """Refuse requests that do not conform to chapter 2."""
        if root.tag != f"{SOAP}Envelope" or [child.tag for child in root][:2] != [
            f"{SOAP}Header",
            f"{SOAP}Body",
        ]:
            raise Refused(400)
        if len(root) > 2:
            raise Refused(400)
        header = root[0]
        self.once(header, PATH, ["path"], ["action", "to", "id"])
        self.once(header, SRMP, ["properties"], ["expiresAt"])
        for tag in (f"{PATH}path", f"{SRMP}properties", f"{SRMP}services"):
            for element in header.findall(tag):
                self.marked(element)
        for element in header.findall(f"{SRMP}properties/*"):
            if element.tag in (f"{SRMP}expiresAt", f"{SRMP}sentAt"):
                date(element.text or "")
        for rev in header.findall(f"{PATH}path/{PATH}rev"):
            if len(rev.findall(f"{PATH}via")) != 1:
                raise Refused(400)
        for request in ("deliveryReceiptRequest", "commitmentReceiptRequest"):
            for element in header.findall(f"{SRMP}services/{SRMP}{request}"):
                if len(element.findall(f"{SRMP}sendTo")) != 1:
                    raise Refused(400)
        to = header.findtext(f"{PATH}path/{PATH}to") or ""
        if not to.startswith(("http://", "https://", "MSMQ:MULTICAST=")):
            raise Refused(400)
        self.check_msmq(header)
        self.check_stream(header)
        return root

    def once(self, header: ET.Element, namespace: str, groups: list[str], children: list[str]) -> None:
        for name in groups:
            found = header.findall(namespace + name)
            if len(found) != 1 or any(len(found[0].findall(namespace + child)) != 1 for child in children):
                raise Refused(400)

    def marked(self, element: ET.Element) -> None:
        if element.get(f"{SOAP}mustUnderstand") != "1":
            raise Refused(400)

    def check_msmq(self, header: ET.Element) -> None:
        msmq = header.find(f"{MSMQ}Msmq")
        if msmq is None:
            return
        self.once(header, MSMQ, ["Msmq"], ["Class", "Priority", "BodyType", "SourceQmGuid", "TTrq"])
        self.check_id(header.findtext(f"{PATH}path/{PATH}id") or "")
        for name, most in (("Class", 0xFFFF), ("Priority", 7), ("BodyType", 0xFFFF_FFFF)):
            number(msmq.findtext(MSMQ + name) or "", most)
        if not re.fullmatch(GUID, msmq.findtext(f"{MSMQ}SourceQmGuid") or ""):
            raise Refused(400)
        date(msmq.findtext(f"{MSMQ}TTrq") or "")
        correlation = msmq.findtext(f"{MSMQ}Correlation")
        if correlation is not None:
            try:
                good = len(base64.b64decode(correlation, validate=True)) == 20
            except ValueError:
                good = False
            if not good:
                raise Refused(400)
        names = msmq.find(f"{MSMQ}DestinationMqf")
        if names is not None and not (names.text or "").strip():
            raise Refused(400)

    def check_id(self, text: str) -> None:
        found = re.fullmatch(rf"uuid:(\d{{1,20}})@{GUID}", text)
        if not found:
            raise Refused(400)
        number(found[1])

    def check_stream(self, header: ET.Element) -> None:
        stream = header.find(f"{SRMP}stream")
        if stream is None:
            return
        self.once(header, SRMP, ["stream"], ["streamId", "current"])
        if header.find(f"{MSMQ}Msmq") is None:
            raise Refused(400)
        found = re.fullmatch(rf"uid:{GUID}\\(\d{{1,20}})", stream.findtext(f"{SRMP}streamId") or "")
        if not found:
            raise Refused(400)
        number(found[1])
        number(stream.findtext(f"{SRMP}current") or "")
        start = stream.find(f"{SRMP}start")
        if start is not None and len(start.findall(f"{SRMP}sendReceiptsTo")) != 1:
            raise Refused(400)

    # -- handling of a message

    def take(self, message: Message) -> None:
        place = message.text(f"{PATH}path", f"{PATH}to").lower().partition("/msmq/")[2]
        stream = message.element(f"{SRMP}stream")
        if place not in (self.orders, self.ledger) or (place == self.ledger) != (stream is not None):
            raise Refused(400)
        identifier = self.identifier(message)
        if stream is None:
            if self.is_duplicate(identifier):
                return
        elif not self.in_stream(message, stream, place):
            return
        self.seen.add(identifier)
        to = message.text(f"{SRMP}services", f"{SRMP}deliveryReceiptRequest", f"{SRMP}sendTo")
        if to:
            self.deliver(message, identifier, to)

    def identifier(self, message: Message) -> str:
        if message.element(f"{MSMQ}Msmq") is None:
            return NOBODY
        index = message.text(f"{PATH}path", f"{PATH}id")[5:].partition("@")[0]
        return f"uuid:{index}@{message.text(f'{MSMQ}Msmq', f'{MSMQ}SourceQmGuid').lower()}"

    def is_duplicate(self, identifier: str) -> bool:
        return identifier != NOBODY and identifier in self.seen

    def in_stream(self, message: Message, element: ET.Element, place: str) -> bool:
        """Return whether a message of a stream is next."""
        identifier = element.findtext(f"{SRMP}streamId") or ""
        key = identifier.partition("\\")[0], place
        current = int(element.findtext(f"{SRMP}current") or "")
        previous = element.findtext(f"{SRMP}previous")
        start = element.findtext(f"{SRMP}start/{SRMP}sendReceiptsTo")
        stream = self.streams.get(key)
        if start and current == 1 and (stream is None or stream.identifier != identifier):
            stream = self.streams[key] = Stream(identifier, start)
        elif stream is None or stream.identifier != identifier or not self.follows(stream, current, previous):
            return False
        stream.number, stream.due = current, time.monotonic() + COALESCING_S
        return True

    def follows(self, stream: Stream, current: int, previous: str | None) -> bool:
        before = current - 1 if previous is None else int(previous)
        return current > stream.number >= before

    # -- receipts

    def deliver(self, message: Message, identifier: str, to: str) -> None:
        now = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        receipt = f"<deliveryReceipt><receivedAt>{now}</receivedAt><id>{identifier}</id></deliveryReceipt>"
        action = message.text(f"{PATH}path", f"{PATH}action")
        index, _, guid = identifier[5:].partition("@")
        correlation = UUID(guid).bytes_le + (int(index) & 0xFFFF_FFFF).to_bytes(4, "little")
        self.send(to, action if action.startswith("MSMQ:") else "MSMQ:", receipt, 2, correlation)

    def acknowledge(self, stream: Stream) -> None:
        receipt = (
            f"<streamReceipt><streamId>{stream.identifier}</streamId><lastOrdinal>{stream.number}</lastOrdinal>"
            "</streamReceipt>"
        )
        self.send(stream.to, "MSMQ:QM Ordering Ack", receipt, 255, bytes(20))

    def send(self, to: str, action: str, receipt: str, kind: int, correlation: bytes) -> None:
        self.numbers += 1
        text = action.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        envelope = ENVELOPE.format(
            action=text,
            to=to,
            number=self.numbers,
            guid=self.guid,
            receipt=receipt,
            kind=kind,
            now=time.strftime("%Y%m%dT%H%M%S", time.gmtime()),
            correlation=base64.b64encode(correlation).decode(),
        )
        self.receipts.put((to, envelope.encode()))

    def tick(self) -> None:
        """Send due acknowledgements."""
        while not self.over:
            time.sleep(0.01)  # its own timer: acknowledgements are due some time after the messages
            with self.lock:
                for stream in self.streams.values():
                    if stream.number > stream.acknowledged and time.monotonic() >= stream.due:
                        stream.acknowledged = stream.number
                        self.acknowledge(stream)

    def post(self) -> None:
        """Send the receipts that wait."""
        while (item := self.receipts.get()) is not None:
            to, envelope = item
            host, slash, path = to.partition("://")[2].partition("/")
            with suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection(host, timeout=limit(2))
                fields = {
                    "Content-Type": "text/xml",
                    "SOAPAction": '"MSMQMessage"',
                    "Proxy-Accept": "NonInteractiveClient",
                }
                connection.request("POST", slash + path.lower(), envelope, fields)
                connection.getresponse().read()
                connection.close()
