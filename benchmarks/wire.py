"""Benchmark of parsing and building one packet, compared with other libraries.

    python benchmarks/wire.py

The packet is a UserMessage of five headers (Base, User, Transaction, Properties, Session) with a direct
format name, a label and a body of 1 KiB. The reference is the time of construct in the same run for a bare
header of 16 bytes of integers. Prints microseconds (best of several rounds) and the ratio to the reference.
"""

from __future__ import annotations

import struct
import sys
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import construct as cs

import msmqwire
from msmqwire.headers import BASE_HEADER
from msmqwire.packets import USER_MESSAGE

BARE = cs.Struct(
    "VersionNumber" / cs.Int8ul,
    "Reserved" / cs.Int8ul,
    "Flags" / cs.Int16ul,
    "Signature" / cs.Int32ul,
    "PacketSize" / cs.Int32ul,
    "TimeToReachQueue" / cs.Int32ul,
)

MESSAGE = msmqwire.from_json(
    {
        "packet": "UserMessage",
        "fields": {
            "UserHeader": {
                "SourceQueueManager": "557358d1-9150-9595-4997-b6e611ea26c6",
                "DestinationQueue": {"DirectFormatName": "TCP:10.0.0.2\\private$\\orders"},
            },
            "TransactionHeader": {},
            "MessagePropertiesHeader": {"Label": "order 7", "MessageBody": bytes(1024)},
            "SessionHeader": {},
        },
    }
)
DATA = msmqwire.build(MESSAGE)


class ByHand:
    """The same packet parsed field by field with struct, as generated code does, without checks."""

    def __init__(self, data: bytes) -> None:
        self.data, self.offset = data, 0
        self.base = [self.u1(), self.u1(), self.u2(), self.u4(), self.u4(), self.u4()]
        start = self.offset
        self.user: list[Any] = [self.guid(), self.guid(), self.u4(), self.u4(), self.u4(), self.u4()]
        self.queue = self.bytes(self.u2()).decode("utf-16-le")
        self.offset += (start - self.offset) % 4
        self.transaction = [self.u4(), self.u4(), self.u4(), self.u4(), self.u4()]
        self.properties: list[Any] = [self.u1(), self.u1(), self.u2(), self.bytes(20)]
        self.properties += [self.u4() for _ in range(8)]
        self.label = self.bytes(2 * self.properties[1]).decode("utf-16-le")
        self.body = self.bytes(self.properties[6])
        self.offset += -self.offset % 4
        self.session = [self.u2(), self.u2(), self.u4(), self.u2(), self.u2(), self.u2(), self.u2()]
        assert self.offset == len(data)

    def take(self, fmt: str, size: int) -> int:
        (value,) = struct.unpack_from(fmt, self.data, self.offset)
        self.offset += size
        return int(value)

    def u1(self) -> int:
        return self.take("<B", 1)

    def u2(self) -> int:
        return self.take("<H", 2)

    def u4(self) -> int:
        return self.take("<I", 4)

    def bytes(self, size: int) -> bytes:
        self.offset += size
        return self.data[self.offset - size : self.offset]

    def guid(self) -> UUID:
        return UUID(bytes_le=self.bytes(16))


def scapy_base_header() -> tuple[Any, Any]:
    """Return functions that dissect and build the bare header with a scapy layer."""
    from scapy.fields import ByteField, LEIntField, LEShortField
    from scapy.packet import Packet

    class Base(Packet):  # type: ignore[misc]
        fields_desc = [  # noqa: RUF012
            ByteField("VersionNumber", 16),
            ByteField("Reserved", 0),
            LEShortField("Flags", 3),
            LEIntField("Signature", 0x524F494C),
            LEIntField("PacketSize", 16),
            LEIntField("TimeToReachQueue", 0xFFFFFFFF),
        ]

    head = DATA[:16]
    return (lambda: Base(head)), (lambda: bytes(Base(VersionNumber=16, PacketSize=16)))


def best(action: Callable[[], Any]) -> float:
    """Return microseconds per call, the best of seven rounds of at least 50 ms."""
    timer = timeit.Timer(action)
    count, seconds = timer.autorange(lambda _n, _s: None)
    count = max(1, round(count * 0.05 / seconds))
    return min(timer.repeat(7, count)) / count * 1e6


def main() -> None:
    head = DATA[:16]
    bare = BARE.parse(head)
    scapy_parse, scapy_build = scapy_base_header()
    base = BASE_HEADER.read(DATA)[0]
    assert msmqwire.parse(DATA) == MESSAGE
    rows: list[tuple[str, Callable[[], Any], Callable[[], Any] | None]] = [
        ("bare header, construct (the reference)", lambda: BARE.parse(head), lambda: BARE.build(bare)),
        ("bare header, scapy", scapy_parse, scapy_build),
        ("BaseHeader, msmqwire", lambda: BASE_HEADER.read(head), lambda: BASE_HEADER.build(base)),
        (f"UserMessage of {len(DATA)} bytes, msmqwire", lambda: msmqwire.parse(DATA), MESSAGE.to_bytes),
        ("the same, struct by hand, unchecked", lambda: ByHand(DATA), None),
        (
            "the same, construct (the reference reader)",
            lambda: USER_MESSAGE.construct.parse(DATA),
            lambda: USER_MESSAGE.construct.build(MESSAGE),
        ),
        ("the same, msmqwire, to and from JSON", MESSAGE.to_json, lambda: msmqwire.from_json(as_json)),
    ]
    as_json = MESSAGE.to_json()
    reference = [best(action) for action in rows[0][1:] if action]
    print(f"{'':<46} {'parse µs':>9} {'ratio':>7} {'build µs':>9} {'ratio':>7}")
    for name, *actions in rows:
        cells = ""
        for action, reference_us in zip(actions, reference, strict=True):
            elapsed_us = best(action) if action else 0.0
            cells += (
                f" {elapsed_us:>9.2f} {elapsed_us / reference_us:>7.2f}" if action else f" {'':>9} {'':>7}"
            )
        print(f"{name:<46}{cells}")
    print(f"aim: a UserMessage in no more than 5.00 of the reference (Python {sys.version.split()[0]})")


if __name__ == "__main__":
    main()
