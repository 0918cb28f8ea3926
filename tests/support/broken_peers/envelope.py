"""The entity of an SRMP request: MIME parts and the SOAP envelope, [MC-MQSRM] 2.2."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID
from xml.parsers import expat

from tests.support.broken_peers.wire import Crash, Hang, Makes, Malformed

SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
ROUTING = "http://schemas.xmlsoap.org/rp/"
SRMP = "http://schemas.xmlsoap.org/srmp/"
MSMQ = "msmq.namespace.xml"
SIGNATURE = "http://www.w3.org/2000/02/xmldsig#"
_DEPTH_MAX, _STACK = 64, 1_000
_ENTITIES_MAX = 10 << 20
_U64 = 1 << 64
_HEADERS = {f"{ROUTING}}}path", f"{MSMQ}}}Msmq", f"{SIGNATURE}}}Signature"} | {
    f"{SRMP}}}{name}"
    for name in (
        "properties", "services", "stream", "Stream", "deliveryReceipt", "commitmentReceipt", "streamReceipt",
    )
}  # fmt: skip


@dataclass
class Element:
    """An element; `name` and the names of attributes are ``namespace}name``."""

    name: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def find(self, name: str) -> Element | None:
        """The only child of a name; None if there is none. Raises Malformed for several."""
        found = [child for child in self.children if child.name == name]
        if len(found) > 1:
            raise Malformed(f"{len(found)} elements {name}")
        return found[0] if found else None

    def one(self, name: str) -> Element:
        """The only child of a name. Raises Malformed."""
        found = self.find(name)
        if found is None:
            raise Malformed(f"no {name}")
        return found

    def content(self, name: str) -> str:
        """The text of the only child of a name, without white space around it. Raises Malformed."""
        return self.one(name).text.strip()

    def number(self, name: str, below: int = _U64) -> int:
        """The unsigned number in a child. Raises Malformed."""
        text = self.content(name)
        if not re.fullmatch(r"[0-9]{1,20}", text) or int(text) >= below:
            raise Malformed(f"{name}: {text:.99}")
        return int(text)

    def must_be_understood(self) -> bool:
        """Whether se:mustUnderstand is 1."""
        return self.attributes.get(f"{SOAP}}}mustUnderstand") == "1"


def read_xml(data: bytes, makes: Makes) -> Element:
    """Parse a document. Raises Malformed, Crash and Hang."""
    root = Element("", {})
    open_: list[Element] = [root]

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(open_) > _STACK and makes("http_nesting_crashes"):
            raise Crash("each element is read by a function that calls itself")
        if len(open_) > _DEPTH_MAX and not makes("http_nesting_crashes"):
            raise Malformed("elements in elements")
        element = Element(name, attributes)
        open_[-1].children.append(element)
        open_.append(element)

    def text(data: str) -> None:
        open_[-1].text += data

    def doctype(*_: Any) -> None:
        if not makes("http_expands_entities"):
            raise Malformed("SOAP has no document type")

    if makes("http_expands_entities"):
        _expand(data)
    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartElementHandler, parser.CharacterDataHandler = start, text
    parser.EndElementHandler = lambda _: open_.pop()
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError) as exc:
        raise Malformed(str(exc)) from exc
    return root.children[0]


def _expand(data: bytes) -> None:
    """Work out how long the entities of a document type are, as whoever expands them would find out."""
    text = data.decode("latin-1")
    entities = dict(re.findall(r"<!ENTITY\s+(\w+)\s+\"([^\"]*)\"", text))
    sizes: dict[str, int] = {}
    for _ in entities:
        for name, value in entities.items():
            sizes[name] = len(value) + sum(sizes.get(used, 0) for used in re.findall(r"&(\w+);", value))
    if sum(sizes.get(used, 0) for used in re.findall(r"&(\w+);", text)) > _ENTITIES_MAX:
        raise Hang("entities are expanded until the memory is full")


def read_entity(content_type: str, entity: bytes, makes: Makes) -> tuple[bytes, bytes]:
    """Return the envelope and the payload. Raises Malformed and Crash."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "text/xml":
        return entity, b""
    if kind != "multipart/related":
        raise Malformed(f"Content-Type {kind:.99}")
    found = re.search(r'boundary\s*=\s*("([^"]+)"|[^\s;"]+)', content_type, re.IGNORECASE)
    if found is None:
        if makes("http_crashes_without_boundary"):
            raise Crash("the boundary is looked for with a null pointer")
        raise Malformed("no boundary")
    delimiter = b"--" + (found[2] or found[1]).encode("latin-1")
    envelope, payload, at = None, b"", 0
    while not entity.startswith(delimiter + b"--", at):
        end = entity.find(b"\r\n\r\n", at)
        if not entity.startswith(delimiter + b"\r\n", at) or end < 0:
            raise Malformed("delimiter")
        fields = _fields(entity[at:end])
        length = fields.get("content-length", "")
        if not re.fullmatch(r"[0-9]{1,9}", length):
            raise Malformed("Content-Length of a part")
        at = end + 4 + int(length)
        if at > len(entity) and not makes("http_trusts_part_length"):
            raise Malformed("a part goes on behind the entity")
        content = entity[end + 4 : at]
        if envelope is None:
            if not fields.get("content-type", "").lower().startswith("text/xml"):
                raise Malformed("the first part is not an envelope")
            envelope = content
        elif fields.get("content-id", "").strip("<> ").startswith("body@"):
            payload = content
        if at >= len(entity) and makes("http_trusts_part_length"):
            break
        at += 2 * entity.startswith(b"\r\n--", at)
    if envelope is None:
        raise Malformed("no parts")
    return envelope, payload


def _fields(head: bytes) -> dict[str, str]:
    lines = head.decode("latin-1").split("\r\n")[1:]
    if not all(re.fullmatch(r"[!-9;-~]+:.*", line) for line in lines):
        raise Malformed("header of a part")
    return {line.partition(":")[0].strip().lower(): line.partition(":")[2].strip() for line in lines}


def read_date(text: str, makes: Makes) -> datetime:
    """Read a date: [MC-MQSRM] 2.2.1.2. Raises Malformed and Crash."""
    try:
        if not re.fullmatch(r"[0-9]{8}T[0-9]{6}", text.strip()):
            raise ValueError(text)
        return datetime.strptime(text.strip(), "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    except ValueError as exc:
        if makes("http_crashes_on_a_date"):
            raise Crash("an exception of the date nobody catches") from exc
        raise Malformed(f"date {text:.40}") from exc


def read_identifier(text: str, prefix: str, separator: str, below: int) -> tuple[str, int]:
    """Read ``uuid:number@GUID`` or ``uid:GUID\\number``; return the GUID and the number. Raises Malformed."""
    first, found, second = text.strip().removeprefix(prefix).partition(separator)
    number, guid = (first, second) if separator == "@" else (second, first)
    if not text.strip().startswith(prefix) or not found or not re.fullmatch(r"[0-9]{1,20}", number):
        raise Malformed(f"identifier {text:.99}")
    try:
        if len(guid) != 36 or int(number) >= below:
            raise ValueError(guid)
        return str(UUID(guid)), int(number)
    except ValueError as exc:
        raise Malformed(f"identifier {text:.99}") from exc


def read_header(data: bytes, makes: Makes) -> Element:
    """Return se:Header of an envelope whose parts are where they have to be. Raises Malformed."""
    root = read_xml(data, makes)
    names = [child.name for child in root.children]
    if root.name != f"{SOAP}}}Envelope" or names[:2] != [f"{SOAP}}}Header", f"{SOAP}}}Body"]:
        raise Malformed("Envelope, Header and Body")
    header = root.one(f"{SOAP}}}Header")
    if any(child.must_be_understood() and child.name not in _HEADERS for child in header.children):
        raise Malformed("something else must be understood")
    return header
