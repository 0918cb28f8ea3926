"""Fields and bytes of single packets, in compressed pieces that the page unpacks one by one."""

from __future__ import annotations

import base64
import gzip
import json
from itertools import islice
from typing import Any, Final

from msmqwire.analysis.dissection.contents import MessageBody, decoded, message_body
from msmqwire.analysis.dissection.item import Item
from msmqwire.analysis.dissection.placed_fields import placed_fields
from msmqwire.analysis.report.limits import Limits
from msmqwire.bodies import plain, whole_text
from msmqwire.names.printable import cut, safe
from msmqwire.schema import Record

PIECE: Final = 64
"""Packets in one piece."""


def compressed(text: str) -> str:
    """Return text for the page to unpack: gzip, in base64."""
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 4, mtime=0)).decode("ascii")


def json_of(data: Any) -> str:
    """Return the shortest JSON of data."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


class Details:
    """The fields and bytes of packets, in the order in which the packets came.

    Attributes:
        rows: the rows of these packets in the table of packets.
        pieces: compressed pieces of `PIECE` packets each.
        is_full: whether no more fit.
    """

    def __init__(self, limits: Limits) -> None:
        self.rows: list[int] = []
        self.pieces: list[str] = []
        self.is_full = False
        self._limits, self._room = limits, limits.detail_bytes
        self._piece: list[dict[str, Any]] = []

    def add(self, row: int, item: Item) -> bool:
        """Add the packet of a row; return whether it did fit."""
        if self.is_full:
            return False
        self.rows.append(row)
        self._piece.append(detail_of(item, self._limits))
        if len(self._piece) == PIECE:
            self.end_piece()
        return True

    def end_piece(self) -> None:
        """Compress the packets since the last piece."""
        if self._piece:
            self.pieces.append(compressed(json_of(self._piece)))
            self._room -= len(self.pieces[-1])
            self.is_full = self._room <= 0
            self._piece = []


def detail_of(item: Item, limits: Limits) -> dict[str, Any]:
    """Return the details of one packet, shown when it is opened.

    ``fields`` are [path, offset, size, text], ``findings`` [id, severity, path, offset, message]; ``bytes``
    and ``decrypted_bytes`` are base64, cut at a limit; ``body`` is the message's, for reading.
    """
    fields = list(islice(placed_fields(item), limits.fields + 1))
    result: dict[str, Any] = {
        "fields": fields[: limits.fields],
        "bytes": base64.b64encode(item.raw[: limits.bytes]).decode("ascii"),
        "size": len(item.raw),
    }
    if len(fields) > limits.fields:
        result["fields_left_out"] = True
    if item.findings:
        result["findings"] = [
            [finding.id, finding.severity, finding.path, finding.offset, safe(finding.message)]
            for finding in item.findings[: limits.fields]
        ]
    if item.error is not None:
        result["error"] = safe(str(item.error))
    if (message := message_body(item.packet, item.examiner)) is not None:
        result["body"] = _body(message, limits)
    if (status := item.signature_status) is not None:
        result["signature"] = str(status)
    if is_encrypted(item):
        result["encrypted"] = True
        result["decrypted"] = item.decrypted
    if item.body is not None:
        result["decrypted_bytes"] = base64.b64encode(item.body[: limits.bytes]).decode("ascii")
    return result


def is_encrypted(item: Item) -> bool:
    """Return whether an item is a message whose body was sent encrypted."""
    security = item.packet.get("SecurityHeader") if isinstance(item.packet, Record) else None
    return security is not None and bool(security.Flags.EB)


def _body(message: MessageBody, limits: Limits) -> dict[str, Any]:
    """Return the details of a body: its format, and as far as there are any headers, text, value, problems.

    Text of XML and JSON is whole; other formats have one line and the value as JSON. Bytes are base64.
    """
    found = decoded(message)
    result: dict[str, Any] = {"format": found.format, "size": message.size}
    text = whole_text(message.body, found)
    if text is not None:
        result["text"] = cut(printable_lines(text[: 2 * limits.body_text]), limits.body_text)
        result["cut"] = len(text) > limits.body_text
    else:
        result["bytes"] = base64.b64encode(message.body[: limits.bytes]).decode("ascii")
    if plain.has_parts(found.value):
        value = plain.beginning(found.value, limits.body_text)
        if text is None or "".join(value.split()) != "".join(text.split()):
            result["value"] = printable_lines(value)
    if found.headers_format is not None:
        result["headers_format"] = found.headers_format
        result["headers"] = [
            [safe(cut(name, limits.text)), safe(cut(value, limits.text))]
            for name, value in islice(found.headers.items(), limits.fields)
        ]
    if found.problems:
        result["problems"] = [
            safe(cut(str(problem), limits.text)) for problem in found.problems[: limits.problems]
        ]
    return result


def printable_lines(text: str) -> str:
    """Return text whose characters can all be seen, line ends and tabs as they are."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(safe, line.split("\t"))) for line in lines)
