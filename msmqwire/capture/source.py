"""The bytes of a capture file, unpacked when it is compressed, a piece at a time.

Compression is recognised by its magic number, never by the name of the file. Whatever the input,
at most a few MiB of it are held, however far a hostile file would expand.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

from msmqwire.errors import CaptureError

CHUNK_SIZE: Final = 1 << 20
"""Bytes read from the file, and bytes unpacked, in one step."""

GZIP_MAGIC: Final = b"\x1f\x8b"
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
ZSTD_SKIPPABLE_MAGICS: Final = tuple(bytes([0x50 + n]) + b"\x2a\x4d\x18" for n in range(16))
ZSTD_BLOCK_MAX: Final = 1 << 17
"""No block of a zstd frame takes, or expands to, more than this (RFC 8878, 3.1.1.2.4)."""


class Broken(Exception):
    """The packed bytes end too early or are damaged: no more can be unpacked."""


class Buffer:
    """A window on the bytes of one file.

    Attributes:
        file: its name, for errors.
        data: the bytes held at present.
        at: the place in ``data`` of the next byte to be read; the reader moves it.
        start: the offset in the file, unpacked, of ``data[0]``.
    """

    __slots__ = ("_broken", "_pieces", "_plain", "at", "data", "file", "start")

    def __init__(self, stream: BinaryIO, file: str) -> None:
        self.file = file
        self.data = b""
        self.at = self.start = 0
        self._broken: str | None = None
        self._pieces = _raw(stream)
        self._plain: BinaryIO | None = stream
        self.fill(4)
        if self.data.startswith(GZIP_MAGIC):
            self._unpack(_gunzip)
        elif self.data.startswith((ZSTD_MAGIC, *ZSTD_SKIPPABLE_MAGICS)):
            self._unpack(_unzstd)

    @classmethod
    def over(cls, data: bytes, file: str, start: int) -> Buffer:
        """A window on some bytes of a file, and nothing beyond them."""
        buffer = cls.__new__(cls)
        buffer.file, buffer.data, buffer.at, buffer.start = file, data, 0, start
        buffer._broken, buffer._pieces, buffer._plain = None, iter(()), None
        return buffer

    def _unpack(self, unpack: Callable[[Iterator[bytes], bytes], Iterator[bytes]]) -> None:
        self._pieces, self._plain = unpack(self._pieces, self.data), None
        self.data = b""

    def fill(self, size: int) -> bool:
        """Have ``size`` bytes from ``at`` on in ``data``; False where the file ends before."""
        have = len(self.data) - self.at
        if have >= size:
            return True
        held = [self.data[self.at :]]
        try:
            while have < size and (piece := next(self._pieces, None)) is not None:
                held.append(piece)
                have += len(piece)
        except Broken as exc:
            self._broken = str(exc)
        self.start += self.at
        self.data, self.at = b"".join(held), 0
        return have >= size

    def skip(self, size: int) -> bool:
        """Move ``size`` bytes on without holding them; False where the file ends before."""
        while (have := len(self.data) - self.at) < size:
            self.at += have
            size -= have
            if not self.fill(1):
                return False
        self.at += size
        return True

    def readinto(self, view: memoryview) -> int:
        """Fill a part of ``view`` from ``at`` on, and move on; 0 at the end of the file.

        The bytes go there at once where nothing is held and the file can do it.
        """
        into = getattr(self._plain, "readinto", None)
        if into is not None and self.at == len(self.data):
            self.start += self.at
            self.data, self.at = b"", 0
            count: int = into(view) or 0
            self.start += count
            return count
        if not self.fill(1):
            return 0
        count = min(len(view), len(self.data) - self.at)
        view[:count] = self.data[self.at : self.at + count]
        self.at += count
        return count

    def put_back(self, data: bytes) -> None:
        """Have bytes that ``readinto`` gave last be the next ones again."""
        self.start += self.at - len(data)
        self.data, self.at = data + self.data[self.at :], 0

    def ended(self) -> bool:
        """Whether the file properly ends at ``at``."""
        return not self.fill(1) and self._broken is None

    def error(self, why: str, *, offset: int | None = None) -> CaptureError:
        """The error for what stands at ``at``, or at ``offset`` in the unpacked file."""
        return CaptureError(why, file=self.file, offset=self.start + self.at if offset is None else offset)

    def cut(self, what: str, *, offset: int | None = None) -> CaptureError:
        """The error for a file that ends within ``what``, which starts at ``at`` or ``offset``."""
        error = self.error(self._broken or f"the file ends within {what}", offset=offset)
        error.cut = self._broken is None
        return error


def _raw(stream: BinaryIO) -> Iterator[bytes]:
    while piece := stream.read(CHUNK_SIZE):
        yield piece


def _gunzip(pieces: Iterator[bytes], packed: bytes) -> Iterator[bytes]:
    while packed:
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            if not packed and not (packed := next(pieces, b"")):
                raise Broken("the gzip stream is cut off")
            try:
                data = member.decompress(packed, CHUNK_SIZE)
            except zlib.error as exc:
                raise Broken(f"the gzip stream is damaged: {exc}") from exc
            packed = member.unconsumed_tail
            if data:
                yield data
        packed = member.unused_data.lstrip(b"\0")  # zeros pad the last member to a block of a tape
        while not packed and (piece := next(pieces, b"")):
            packed = piece.lstrip(b"\0")


def _unzstd(pieces: Iterator[bytes], packed: bytes) -> Iterator[bytes]:
    """The contents of the frames. They are walked block by block, as only this bounds what one
    step unpacks to, and tells a frame that was cut from one that ended."""
    take = _Taker(pieces, packed)
    while magic := take.some(4):
        if magic in ZSTD_SKIPPABLE_MAGICS:
            left = int.from_bytes(take(4), "little")
            while left:
                left -= len(take(min(left, CHUNK_SIZE)))
            continue
        if magic != ZSTD_MAGIC:
            raise Broken("bytes that are no zstd frame follow one")
        decompress = _zstd_decompressor()
        descriptor = take(1)
        single, checksum = descriptor[0] & 0x20, descriptor[0] & 0x04
        size_length = (1 if single else 0, 2, 4, 8)[descriptor[0] >> 6]
        rest = take((0 if single else 1) + (0, 1, 2, 4)[descriptor[0] & 3] + size_length)
        yield from decompress(magic + descriptor + rest)
        last = False
        while not last:
            head = take(3)
            block = int.from_bytes(head, "little")
            last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
            if kind == 3 or size > ZSTD_BLOCK_MAX:
                raise Broken("the zstd stream is damaged: a block with a bad header")
            yield from decompress(head + take(1 if kind == 1 else size))
        if checksum:
            yield from decompress(take(4))


class _Taker:
    """Takes exact numbers of bytes from pieces of any size."""

    def __init__(self, pieces: Iterator[bytes], held: bytes) -> None:
        self._pieces, self._held, self._at = pieces, held, 0

    def some(self, size: int) -> bytes:
        """Up to ``size`` bytes: fewer only at the end."""
        stop = self._at + size
        while stop > len(self._held) and (piece := next(self._pieces, b"")):
            self._held, stop, self._at = self._held[self._at :] + piece, stop - self._at, 0
        data = self._held[self._at : stop]
        self._at += len(data)
        return data

    def __call__(self, size: int) -> bytes:
        data = self.some(size)
        if len(data) < size:
            raise Broken("the zstd stream is cut off")
        return data


def _zstd_decompressor() -> Callable[[bytes], Iterator[bytes]]:
    try:
        import zstandard
    except ImportError:
        raise Broken("it is packed with zstd: install the package zstandard to read it") from None
    frame = zstandard.ZstdDecompressor().decompressobj()

    def decompress(packed: bytes) -> Iterator[bytes]:
        try:
            data = frame.decompress(packed)
        except zstandard.ZstdError as exc:
            raise Broken(f"the zstd stream is damaged: {exc}") from exc
        if data:
            yield data

    return decompress
