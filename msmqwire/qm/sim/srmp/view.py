"""The content of a request of SRMP, read without the code under test."""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from uuid import UUID
from xml.etree import ElementTree

from msmqwire.qm.model.message import ObjectId

_END_OF_ENVELOPE: Final = re.compile(rb"</[^>]*Envelope>")
_ENVELOPE: Final = b"<se:Envelope"
_NAMESPACE: Final = re.compile(r"\{[^}]*\}")
_TAG: Final = re.compile(rb"#(\d+);")
_LOW: Final = 0xFFFFFFFF


class StreamPosition(NamedTuple):
    """A position in a stream.

    Attributes:
        owner: the queue manager that began it.
        time_stamp, ordinal: its identifier.
        number: the number of a message.
    """

    owner: UUID
    time_stamp: int
    ordinal: int
    number: int


class SrmpView(NamedTuple):
    """A message in a request.

    Attributes:
        identifier: the identifier of the message. message_class: its Class.
        number: its number in the run, for a message of an application.
        stream: its place in a stream.
        previous: the number of the message before it; 0 for none.
        receipt_for: the stream, and its last message, that a stream receipt or a final one names.
        arrived: the message that a delivery receipt is about.
        decided: the message that a commitment receipt or a final stream receipt is about.
        positive: its decision.
    """

    identifier: ObjectId
    message_class: int
    number: int | None
    stream: StreamPosition | None
    previous: int
    receipt_for: StreamPosition | None
    arrived: ObjectId | None
    decided: ObjectId | None
    positive: bool

    def __str__(self) -> str:
        if self.decided is not None:
            decision = "positive" if self.positive else "negative"
            return f"{decision} {'final' if self.receipt_for else 'commitment'} receipt"
        if self.receipt_for is not None:
            return f"stream receipt to {self.receipt_for.number}"
        return "delivery receipt" if self.arrived is not None else f"class {self.message_class:#x}"


def view(data: bytes) -> SrmpView:
    """Read a request."""
    start = data.index(_ENVELOPE)
    end = _END_OF_ENVELOPE.search(data, start)
    assert end is not None, "an envelope ends"
    root = ElementTree.fromstring(data[start : end.end()])
    found: dict[str, str] = {}
    _collect(root, "", found)
    message_class = int(found.get("Msmq.Class", "0"))
    tag = _TAG.search(data, end.end()) if not message_class else None
    decision = found.get("commitmentReceipt.decision")
    return SrmpView(
        _identifier(found["path.id"]),
        message_class,
        int(tag[1]) if tag else None,
        _stream(found, "stream.streamId", "stream.current"),
        int(found.get("stream.previous", "0")),
        _stream(found, "streamReceipt.streamId", "streamReceipt.lastOrdinal"),
        _identifier(found["deliveryReceipt.id"]) if "deliveryReceipt.id" in found else None,
        _identifier(found["commitmentReceipt.id"]) if decision is not None else None,
        decision == "positive",
    )


def _collect(element: ElementTree.Element, path: str, found: dict[str, str]) -> None:
    """Collect the texts of elements by the path of their names below Header."""
    for child in element:
        name = _NAMESPACE.sub("", child.tag)
        inner = "" if name in ("Header", "Body") else f"{path}.{name}" if path else name
        if child.text:
            found[inner] = child.text
        _collect(child, inner, found)


def _identifier(text: str) -> ObjectId:
    number, _, lineage = text.removeprefix("uuid:").partition("@")
    return ObjectId(UUID(lineage), int(number))


def _stream(found: dict[str, str], identifier: str, number: str) -> StreamPosition | None:
    """Return a position in a stream, whose identifier is TimeStamp << 32 | Ordinal."""
    if identifier not in found:
        return None
    owner, _, ordinal = found[identifier].rpartition("\\")
    both = int(ordinal)
    return StreamPosition(UUID(owner.removeprefix("uid:")), both >> 32, both & _LOW, int(found[number]))
