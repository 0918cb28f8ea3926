"""[MC-NMF]: the records that frame messages of WCF, and the preamble of a body in a queue.

A body of net.msmq has version, mode, via and encoding records. In the mode SingletonSized the rest is the
message; a session (Simplex) has its messages in sized envelopes and ends with an end record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from msmqwire.bodies.wcf.fault import Fault, announced, build_size, read_size

MODES: Final[Mapping[int, str]] = MappingProxyType(
    {1: "SingletonUnsized", 2: "Duplex", 3: "Simplex", 4: "SingletonSized"}  # NMF-2.2.3.2-01
)
"""The values of a ModeRecord; bodies of queues have SingletonSized, those of transactions Simplex."""

ENCODINGS: Final[Mapping[int, str]] = MappingProxyType(
    {
        0: "SOAP 1.1, UTF-8",
        1: "SOAP 1.1, UTF-16",
        2: "SOAP 1.1, UTF-16 little-endian",
        3: "SOAP 1.2, UTF-8",
        4: "SOAP 1.2, UTF-16",
        5: "SOAP 1.2, UTF-16 little-endian",
        6: "SOAP 1.2, MTOM",
        7: "SOAP 1.2, binary",
        8: "SOAP 1.2, binary with an in-band dictionary",
    }
)
"""The values of a KnownEncodingRecord."""

SINGLETON_UNSIZED, DUPLEX, SIMPLEX, SINGLETON_SIZED = MODES

VIA_MAX: Final = 2048  # NMF-3.1.4.5-01
CONTENT_TYPE_MAX: Final = 256  # NMF-3.1.4.6-01
UPGRADE_MAX: Final = 256  # NMF-3.1.4.7-01
SIZE_MAX: Final = 0xFFFF_FFFF  # NMF-2.2.2-01


class Kind(IntEnum):
    """Types of records: [MC-NMF] 2.2.1."""

    VERSION = 0
    MODE = 1
    VIA = 2
    KNOWN_ENCODING = 3
    EXTENSIBLE_ENCODING = 4  # NMF-2.2.3.4.2-01
    UNSIZED_ENVELOPE = 5
    SIZED_ENVELOPE = 6
    END = 7  # NMF-2.2.3.9-01
    FAULT = 8  # NMF-2.2.5-01
    UPGRADE_REQUEST = 9  # NMF-2.2.3.5-01
    UPGRADE_RESPONSE = 10  # NMF-2.2.3.6-01
    PREAMBLE_ACK = 11  # NMF-2.2.3.8-01
    PREAMBLE_END = 12  # NMF-2.2.3.7-01

    @property
    def record(self) -> str:
        """The name of the record in the text: ``ViaRecord``."""
        return "".join(part.capitalize() for part in self.name.split("_")) + "Record"


KINDS: Final[Mapping[int, Kind]] = MappingProxyType({int(kind): kind for kind in Kind})
_TEXTS: Final = frozenset({Kind.VIA, Kind.EXTENSIBLE_ENCODING, Kind.FAULT, Kind.UPGRADE_REQUEST})

Value: TypeAlias = "int | str | bytes | tuple[Any, ...] | None"


@dataclass(frozen=True, slots=True)
class Record:
    """One record.

    Attributes:
        kind: its type.
        value: major and minor number of a version, the number of a mode or encoding, a text, the bytes of a
            sized envelope, the chunks of an unsized one; None of a record without data.
    """

    kind: Kind
    value: Value = None


@dataclass(frozen=True, slots=True)
class NmfMessage:
    """The records before the message, and the message.

    Attributes:
        version: major and minor number of the framing.
        mode: the number of the mode, see `MODES`.
        via: the URI that the message was sent to.
        encoding: the number of the encoding, see `ENCODINGS`; None when a content type names it.
        content_type: the content type of an encoding without a number.
        message: the bytes after the preamble.
    """

    version: tuple[int, int]
    mode: int
    via: str
    encoding: int | None
    content_type: str | None
    message: bytes

    @property
    def summary(self) -> str:
        """Via and encoding in one line."""
        encoding = self.content_type if self.encoding is None else ENCODINGS[self.encoding]
        return f"{self.via} ({encoding})"


def read_record(data: bytes, at: int) -> tuple[Record, int]:
    """Read a record; return it and where the next one begins. Raises Fault."""
    if at >= len(data):
        raise Fault("the bytes end before a record", at)
    kind = KINDS.get(data[at])
    if kind is None:
        raise Fault(f"0x{data[at]:02X} is the type of no record", at)  # NMF-2.2.1-01
    start, at = at, at + 1
    value: Value = None
    if kind is Kind.VERSION:
        value, at = (_byte(data, at, kind), _byte(data, at + 1, kind)), at + 2  # NMF-2.2.3.1-01
    elif kind is Kind.MODE or kind is Kind.KNOWN_ENCODING:
        value, at = _byte(data, at, kind), at + 1
    elif kind in _TEXTS:
        start, at = sized(data, at, kind)
        try:
            value = data[start:at].decode("utf-8")
        except UnicodeDecodeError as exc:
            raise Fault("the text is not UTF-8", start + exc.start, kind.record) from None  # NMF-2.2.3.3-02
    elif kind is Kind.SIZED_ENVELOPE:
        start, at = sized(data, at, kind)
        value = data[start:at]
    elif kind is Kind.UNSIZED_ENVELOPE:
        places = list(chunks_of(data, at))
        if not places:
            raise Fault("an envelope of no chunks", at, kind.record)  # NMF-2.2.4.3-01
        value, at = tuple(data[start:end] for start, end in places), places[-1][1] + 1
    return Record(kind, value), at


def _byte(data: bytes, at: int, kind: Kind) -> int:
    if at >= len(data):
        raise Fault("the bytes end within a record", len(data), kind.record)
    return data[at]


def sized(data: bytes, at: int, kind: Kind) -> tuple[int, int]:
    """Return where the content of a record begins and ends."""
    try:
        size, start = read_size(data, at, SIZE_MAX)
    except Fault as exc:
        raise Fault(exc.why, exc.offset, f"{kind.record}.Size") from None
    if size == 0 or data[start - 1] == 0:  # NMF-3.1.1.2-05: the last byte of a size is not zero
        # NMF-3.1.4.1-01, NMF-2.2.3.3-01 and NMF-2.2.4.1-01
        raise Fault("a size of zero, or with a zero after it", at, f"{kind.record}.Size")
    if size > len(data) - start:
        raise Fault(
            announced(size, len(data) - start),
            at,
            f"{kind.record}.Size",
        )
    return start, start + size


def chunks_of(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Give where each chunk of an unsized envelope begins and ends. Raises Fault."""
    while _byte(data, at, Kind.UNSIZED_ENVELOPE):  # NMF-3.1.4.12-01
        start, at = sized(data, at, Kind.UNSIZED_ENVELOPE)
        yield start, at  # NMF-2.2.4.2-01


def build_record(record: Record) -> bytes:
    """Return the bytes of a record."""
    kind = bytes((record.kind,))
    match record.value:
        case None:
            return kind
        case int() as number:
            return kind + bytes((number,))
        case str() as text:
            content = text.encode("utf-8")
            return kind + build_size(len(content)) + content
        case bytes() as content:
            return kind + build_size(len(content)) + content
        case tuple() as parts if record.kind is Kind.VERSION:
            return kind + bytes(parts)
        case tuple() as chunks:
            return kind + b"".join(build_size(len(chunk)) + chunk for chunk in chunks) + b"\0"


# Version 1, a mode, and the size of a short via.
_USUAL: Final = re.compile(rb"\x00\x01.\x01[\x01-\x04]\x02[\x01-\x7f]", re.DOTALL)


def read_preamble(data: bytes) -> NmfMessage:
    """Read the records before the message. Raises Fault if they are none that a receiver takes."""
    if _USUAL.match(data):
        end = 7 + data[6]
        if data[end : end + 1] == b"\3" and end + 1 < len(data):
            try:
                via = data[7:end].decode()
            except UnicodeDecodeError:
                pass  # reported below
            else:
                return NmfMessage((1, data[2]), data[4], via, data[end + 1], None, data[end + 2 :])
    version, at = _expected(data, 0, Kind.VERSION)
    if version[0] != 1:  # NMF-2.2.3.1-02 and NMF-3.1.4.3-01
        raise Fault(f"version {version[0]} of the framing is not known", 1, "VersionRecord.MajorVersion")
    mode, at = _expected(data, at, Kind.MODE)
    if mode not in MODES:  # NMF-3.1.4.4-01
        raise Fault(f"{mode} is not a mode", at - 1, "ModeRecord.Mode")
    via, at = _expected(data, at, Kind.VIA)
    start = at
    record, at = read_record(data, at)
    if record.kind is Kind.KNOWN_ENCODING:
        return NmfMessage(version, mode, via, record.value, None, data[at:])  # type: ignore[arg-type]
    if record.kind is Kind.EXTENSIBLE_ENCODING:
        return NmfMessage(version, mode, via, None, record.value, data[at:])  # type: ignore[arg-type]
    raise Fault(f"{record.kind.record} stands where an encoding record should", start)


def _expected(data: bytes, at: int, kind: Kind) -> tuple[Any, int]:
    record, end = read_record(data, at)
    if record.kind is not kind:
        raise Fault(f"{record.kind.record} stands where {kind.record} should", at)  # NMF-2.2.6-01
    return record.value, end


def read_nmf(body: bytes) -> NmfMessage | None:
    """Decode the preamble of a framed message: version, mode, via and encoding records; None if invalid."""
    try:
        message = read_preamble(bytes(body))
    except Fault:
        return None
    if len(message.via.encode()) > VIA_MAX:
        return None
    if message.content_type is not None:
        return message if len(message.content_type.encode()) <= CONTENT_TYPE_MAX else None
    return message if message.encoding in ENCODINGS else None
