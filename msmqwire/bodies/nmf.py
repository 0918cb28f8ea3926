"""Bodies of WCF's net.msmq binding: [MC-NMF] framing, a preamble and then one message.

Only the preamble is decoded: the destination and the encoding of the message. The message itself stays bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

MODES: Final[Mapping[int, str]] = MappingProxyType(
    {1: "SingletonUnsized", 2: "Duplex", 3: "Simplex", 4: "SingletonSized"}
)
"""The values of a ModeRecord; bodies of queues have SingletonSized."""

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

VIA_MAX: Final = 2048
CONTENT_TYPE_MAX: Final = 256

_VERSION, _MODE, _VIA, _KNOWN_ENCODING, _EXTENSIBLE_ENCODING = range(5)
_SIZE_BYTES_MAX = 5


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


class _InvalidRecord(ValueError):
    pass


class _Records:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        if self.at >= len(self.data):
            raise _InvalidRecord
        self.at += 1
        return self.data[self.at - 1]

    def text(self, most: int) -> str:
        """Read UTF-8 text after its size, which has seven bits a byte, low ones first."""
        size = 0
        for index in range(_SIZE_BYTES_MAX):
            part = self.byte()
            size |= (part & 0x7F) << (7 * index)
            if part < 0x80:
                break
        else:
            raise _InvalidRecord
        if not 0 < size <= min(most, len(self.data) - self.at):
            raise _InvalidRecord
        self.at += size
        return self.data[self.at - size : self.at].decode("utf-8")


def read_nmf(body: bytes) -> NmfMessage | None:
    """Decode the preamble of a framed message: version, mode, via and encoding records; None if invalid."""
    try:
        return _read(_Records(body))
    except ValueError:
        return None


def _read(records: _Records) -> NmfMessage:
    if records.byte() != _VERSION:
        raise _InvalidRecord
    version = records.byte(), records.byte()
    if version[0] != 1 or records.byte() != _MODE:
        raise _InvalidRecord
    mode = records.byte()
    if mode not in MODES or records.byte() != _VIA:
        raise _InvalidRecord
    via = records.text(VIA_MAX)
    kind = records.byte()
    encoding, content_type = None, None
    if kind == _KNOWN_ENCODING:
        encoding = records.byte()
    elif kind == _EXTENSIBLE_ENCODING:
        content_type = records.text(CONTENT_TYPE_MAX)
    if content_type is None and encoding not in ENCODINGS:
        raise _InvalidRecord
    return NmfMessage(version, mode, via, encoding, content_type, records.data[records.at :])
