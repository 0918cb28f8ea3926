"""The calls of tests/vectors/ncp: data written by hand, and the packets that carry them."""

from __future__ import annotations

import csv
import json
import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from tests.support.paths import VECTORS

_FOLDER: Final = VECTORS / "ncp"


def structure(name: str) -> bytes:
    """The bytes of ``old-job``, ``new-job`` or ``server-status``."""
    return bytes.fromhex((_FOLDER / f"{name}.hex").read_text())


_NAMED: Final = {
    "OLD": structure("old-job"),
    "OLDHEAD": structure("old-job")[:54],
    "NEW": structure("new-job"),
    "NEWHEAD": structure("new-job")[:78],
    "STATUS": structure("server-status"),
    "NAME48": b"PRNT".ljust(48, b"\0"),
    "SEGMENT": bytes(range(128)),
    "HANDLE": bytes.fromhex("020001000000"),
    "DATA": b"ABC",
    "PADDED": b"\0ABC",
    "RESERVED48": bytes(48),
    "NODE": bytes.fromhex("00001B0A0B0C"),
    "KEY": bytes.fromhex("0102030405060708"),
}


class CallVector(NamedTuple):
    """A request or reply.

    Attributes:
        number: the subfunction, or the function if it has none.
        length: the length word of a request in descriptions of the call.
        data: the bytes after the headers.
        fields: the values in the data; those of a structure are its bytes.
    """

    number: int
    name: str
    direction: str
    length: int
    data: bytes
    fields: dict[str, Any]
    function: int = 23

    @property
    def packet(self) -> bytes:
        """The whole packet, with sequence number 7 and connection 0x0102."""
        if self.direction == "reply":
            return struct.pack(">HBBBBBB", 0x3333, 7, 0x02, 1, 0x01, 0, 0) + self.data
        head = struct.pack(">HBBBBB", 0x2222, 7, 0x02, 5, 0x01, self.function)
        if self.function not in (22, 23):
            return head + self.data
        return head + struct.pack(">HB", self.length, self.number) + self.data


def calls() -> Iterator[CallVector]:
    """The requests and replies of all queue calls."""
    return _table("queue-calls.tsv")


def other_calls() -> Iterator[CallVector]:
    """The vectors of the bindery, file and server calls; replies without data are left out for most."""
    return _table("other-calls.tsv")


def _table(name: str) -> Iterator[CallVector]:
    with (_FOLDER / name).open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            words = [] if row["bytes"] == "-" else row["bytes"].split()
            data = b"".join(_NAMED[word] if word in _NAMED else bytes.fromhex(word) for word in words)
            values = {
                name: _NAMED[value] if isinstance(value, str) and value in _NAMED else value
                for name, value in json.loads(row["fields"]).items()
            }
            function = int(row.get("function") or 23)
            number, length = int(row["call"] or function), int(row["length"] or 0)
            yield CallVector(number, row["name"], row["direction"], length, data, values, function)


def request_of(number: int, data: str) -> bytes:
    """A request with other data than in the vectors."""
    content = bytes.fromhex(data)
    return CallVector(number, "", "request", len(content) + 1, content, {}).packet


def reply_of(data: str, completion: int = 0) -> bytes:
    """A reply with other data."""
    head = struct.pack(">HBBBBBB", 0x3333, 7, 0x02, 1, 0x01, completion, 0)
    return head + bytes.fromhex(data)
