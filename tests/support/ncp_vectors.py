"""The queue calls of tests/vectors/ncp: data written by hand, and the packets that carry them."""

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
}


class CallVector(NamedTuple):
    """A request or reply of a queue call.

    Attributes:
        length: the length word of a request, as descriptions of the call print it.
        data: what follows the headers.
        fields: the values in the data; those of a structure are its bytes.
    """

    number: int
    name: str
    direction: str
    length: int
    data: bytes
    fields: dict[str, Any]

    @property
    def packet(self) -> bytes:
        """The whole packet, with sequence number 7 and connection 0x0102."""
        if self.direction == "reply":
            return struct.pack(">HBBBBBB", 0x3333, 7, 0x02, 1, 0x01, 0, 0) + self.data
        head = struct.pack(">HBBBBB", 0x2222, 7, 0x02, 5, 0x01, 23)
        return head + struct.pack(">HB", self.length, self.number) + self.data


def calls() -> Iterator[CallVector]:
    """The requests and replies of all queue calls."""
    with (_FOLDER / "queue-calls.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            words = [] if row["bytes"] == "-" else row["bytes"].split()
            data = b"".join(_NAMED[word] if word in _NAMED else bytes.fromhex(word) for word in words)
            values = {
                name: _NAMED[value] if isinstance(value, str) and value in _NAMED else value
                for name, value in json.loads(row["fields"]).items()
            }
            yield CallVector(
                int(row["call"]), row["name"], row["direction"], int(row["length"] or 0), data, values
            )


def request_of(number: int, data: str) -> bytes:
    """A request with other data than those of the vectors."""
    content = bytes.fromhex(data)
    return CallVector(number, "", "request", len(content) + 1, content, {}).packet


def reply_of(data: str, completion: int = 0) -> bytes:
    """A reply with other data."""
    head = struct.pack(">HBBBBBB", 0x3333, 7, 0x02, 1, 0x01, completion, 0)
    return head + bytes.fromhex(data)
