"""The bytes of a capture file, decompressed if necessary, a chunk at a time.

Compression is recognised by its magic number, never by the file name. At most a few MiB of any input are
buffered, however far a hostile file would expand.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

from msmqwire.errors import CaptureError
from msmqwire.extras import MissingExtra

CHUNK_SIZE: Final = 1 << 20
"""Bytes read from the file, and bytes decompressed, in one step."""

GZIP_MAGIC: Final = b"\x1f\x8b"
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
ZSTD_SKIPPABLE_MAGICS: Final = tuple(bytes([0x50 + n]) + b"\x2a\x4d\x18" for n in range(16))
EMPTY_MEMBERS_MAX: Final = 1 << 16
"""Gzip members, or zstd frames, without content that may follow each other."""
_JOINED: Final = 1 << 16
"""Bytes to which smaller decompressed pieces are joined."""
_PIECE_MIN: Final = 1 << 9
"""Compressed bytes of a gzip member that zlib gets first; it copies those that belong to the next one."""
ZSTD_WINDOW_MAX: Final = 1 << 27
"""Bytes of the largest window of a zstd frame; those of the program zstd have as many by its own limits."""
ZSTD_BLOCK_MAX: Final = 1 << 17
"""Bytes of the largest block of a zstd frame, compressed or not (RFC 8878, 3.1.1.2.4)."""


class DecompressionError(Exception):
    """The compressed bytes end too early or are damaged."""


class Buffer:
    """A buffer of the (uncompressed) bytes of one file.

    Attributes:
        file: its name, for errors.
        data: the bytes buffered at present.
        at: the index in ``data`` of the next byte to be read; the reader advances it.
        start: the offset in the uncompressed file of ``data[0]``.
    """

    __slots__ = ("_chunks", "_direct", "_error", "at", "data", "file", "start")

    def __init__(self, stream: BinaryIO, file: str) -> None:
        self.file = file
        self.data = b""
        self.at = self.start = 0
        self._error: str | None = None
        self._chunks = _read_chunks(stream)
        self._direct: BinaryIO | None = stream  # unless it is compressed
        self.fill(4)
        if self.data.startswith(GZIP_MAGIC):
            self._decompress(_gunzip)
        elif self.data.startswith((ZSTD_MAGIC, *ZSTD_SKIPPABLE_MAGICS)):
            self._decompress(_unzstd)

    @classmethod
    def over(cls, data: bytes, file: str, start: int) -> Buffer:
        """Return a buffer of just these bytes of a file, which start at an offset."""
        buffer = cls.__new__(cls)
        buffer.file, buffer.data, buffer.at, buffer.start = file, data, 0, start
        buffer._error, buffer._chunks, buffer._direct = None, iter(()), None
        return buffer

    @classmethod
    def inside(cls, stream: BinaryIO, file: str, start: int) -> Buffer:
        """Return a buffer of a file that is not compressed, from an offset on where the stream is."""
        buffer = cls.over(b"", file, start)
        buffer._chunks, buffer._direct = _read_chunks(stream), stream
        return buffer

    def _decompress(self, decompress: Callable[[Iterator[bytes], bytes], Iterator[bytes]]) -> None:
        self._chunks, self._direct = _joined(decompress(self._chunks, self.data)), None
        self.data = b""

    def fill(self, size: int) -> bool:
        """Buffer at least ``size`` bytes from ``at`` on; return False if the file ends before."""
        available = len(self.data) - self.at
        if available >= size:
            return True
        parts = [self.data[self.at :]]
        try:
            while available < size and (chunk := next(self._chunks, None)) is not None:
                parts.append(chunk)
                available += len(chunk)
        except DecompressionError as exc:
            self._error = str(exc)
        self.start += self.at
        self.data, self.at = b"".join(parts) if len(parts) > 1 else parts[0], 0
        return available >= size

    def skip(self, size: int) -> bool:
        """Skip ``size`` bytes without buffering them; return False if the file ends before."""
        while (available := len(self.data) - self.at) < size:
            self.at += available
            size -= available
            if not self.fill(1):
                return False
        self.at += size
        return True

    def readinto(self, view: memoryview) -> int:
        """Read bytes into the start of ``view``; return how many, 0 at the end of the file.

        They are read without a copy if nothing is buffered and the stream supports it.
        """
        readinto = getattr(self._direct, "readinto", None)
        if readinto is not None and self.at == len(self.data):
            self.start += self.at
            self.data, self.at = b"", 0
            count: int = readinto(view) or 0
            self.start += count
            return count
        if not self.fill(1):
            return 0
        count = min(len(view), len(self.data) - self.at)
        view[:count] = self.data[self.at : self.at + count]
        self.at += count
        return count

    def put_back(self, data: bytes) -> None:
        """Push back bytes that ``readinto`` returned last."""
        self.start += self.at - len(data)
        self.data, self.at = data + self.data[self.at :], 0

    def ended(self) -> bool:
        """Whether the file ends at ``at``, undamaged."""
        return not self.fill(1) and self._error is None

    @property
    def is_damaged(self) -> bool:
        """Whether compressed bytes were met that end too early or are damaged."""
        return self._error is not None

    def error(self, why: str, *, offset: int | None = None) -> CaptureError:
        """Return an error at ``at``, or at ``offset`` in the uncompressed file."""
        return CaptureError(why, file=self.file, offset=self.start + self.at if offset is None else offset)

    def cut(self, what: str, *, offset: int | None = None) -> CaptureError:
        """Return the error of a file that ends within ``what``, which starts at ``at`` or ``offset``."""
        error = self.error(self._error or f"the file ends within {what}", offset=offset)
        error.cut = self._error is None
        return error


def _read_chunks(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK_SIZE):
        yield chunk


def _joined(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Join small pieces, so that the work for each piece is for many bytes."""
    parts = bytearray()
    try:
        for piece in pieces:
            parts += piece
            if len(parts) >= _JOINED:
                yield bytes(parts)
                parts.clear()
    except DecompressionError:
        if parts:
            yield bytes(parts)
        raise
    if parts:
        yield bytes(parts)


class _EmptyMembers:
    """Counts the members in a row that have no content."""

    def __init__(self, what: str) -> None:
        self._what, self._count = what, 0

    def ended(self, *, empty: bool) -> None:
        """Count a member. Raises DecompressionError if there are too many."""
        self._count = self._count + 1 if empty else 0
        if self._count > EMPTY_MEMBERS_MAX:
            raise DecompressionError(f"more than {EMPTY_MEMBERS_MAX} {self._what} in a row are empty")


def _gunzip(chunks: Iterator[bytes], packed: bytes) -> Iterator[bytes]:
    take, members = _Reader(chunks, packed), _EmptyMembers("gzip members")
    while take.available():
        member, size, empty = zlib.decompressobj(wbits=31), _PIECE_MIN, True
        while not member.eof:
            piece = member.unconsumed_tail or take.piece(size)
            if not piece:
                raise DecompressionError("the gzip stream is cut off")
            size = min(2 * size, CHUNK_SIZE)
            before = member.copy()
            try:
                data = member.decompress(piece, CHUNK_SIZE)
            except zlib.error as exc:
                yield from _until_damage(before, piece)
                raise DecompressionError("the gzip stream is damaged") from exc
            if data:
                empty = False
                yield data
        take.put_back(len(member.unused_data))
        members.ended(empty=empty)
        take.skip_zeros()  # they may pad the last member to a tape block


def _until_damage(member: zlib._Decompress, piece: bytes) -> Iterator[bytes]:
    """Decompress the bytes before the damage in a piece, one by one: zlib loses its output when it fails."""
    for at in range(len(piece)):
        try:
            data = member.decompress(piece[at : at + 1])
        except zlib.error:
            return
        if data:
            yield data


def _unzstd(chunks: Iterator[bytes], packed: bytes) -> Iterator[bytes]:
    """Decompress zstd frames.

    They are processed block by block: only this bounds the output of one step, and distinguishes a frame that
    was cut off from one that ended.
    """
    take, frames = _Reader(chunks, packed), _EmptyMembers("zstd frames")
    new_frame = None
    while magic := take.up_to(4):
        empty = True
        if magic in ZSTD_SKIPPABLE_MAGICS:
            frames.ended(empty=True)
            remaining = int.from_bytes(take(4), "little")
            while remaining:
                remaining -= len(take(min(remaining, CHUNK_SIZE)))
            continue
        if magic != ZSTD_MAGIC:
            raise DecompressionError("bytes that are not a zstd frame follow one")
        new_frame = new_frame or _zstd_decompressor()
        decompress = new_frame()
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
                raise DecompressionError("the zstd stream is damaged: a block with a bad header")
            for data in decompress(head + take(1 if kind == 1 else size)):
                empty = False
                yield data
        if checksum:
            yield from decompress(take(4))
        frames.ended(empty=empty)


class _Reader:
    """Reads bytes from chunks of any size."""

    def __init__(self, chunks: Iterator[bytes], data: bytes) -> None:
        self._chunks, self._data, self._at = chunks, data, 0

    def up_to(self, size: int) -> bytes:
        """Return up to ``size`` bytes: fewer only at the end."""
        stop = self._at + size
        while stop > len(self._data) and (chunk := next(self._chunks, b"")):
            self._data, stop, self._at = self._data[self._at :] + chunk, stop - self._at, 0
        data = self._data[self._at : stop]
        self._at += len(data)
        return data

    def __call__(self, size: int) -> bytes:
        data = self.up_to(size)
        if len(data) < size:
            raise DecompressionError("the zstd stream is cut off")
        return data

    def available(self) -> int:
        """Return how many bytes can be read without another chunk; 0 only at the end."""
        while self._at == len(self._data) and (chunk := next(self._chunks, b"")):
            self._data, self._at = chunk, 0
        return len(self._data) - self._at

    def piece(self, size: int) -> bytes:
        """Return up to ``size`` bytes, of one chunk; none only at the end."""
        return self.up_to(min(size, self.available()))

    def put_back(self, count: int) -> None:
        """Put back the last bytes of the last piece."""
        self._at -= count

    def skip_zeros(self) -> None:
        """Skip all zeros that come next."""
        size = _PIECE_MIN
        while self.available() and not self._data[self._at]:
            rest = self._data[self._at : self._at + size]
            self._at += len(rest) - len(rest.lstrip(b"\0"))
            size = min(2 * size, CHUNK_SIZE)


def _zstd_decompressor() -> Callable[[], Callable[[bytes], Iterator[bytes]]]:
    """Return a function that returns one that decompresses the bytes of a frame, part by part."""
    try:
        import zstandard
    except ModuleNotFoundError:
        raise DecompressionError(str(MissingExtra("zstandard", "zstd"))) from None
    context = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_MAX)

    def new_frame() -> Callable[[bytes], Iterator[bytes]]:
        frame = context.decompressobj()

        def decompress(packed: bytes) -> Iterator[bytes]:
            try:
                data = frame.decompress(packed)
            except zstandard.ZstdError as exc:
                raise DecompressionError("the zstd stream is damaged") from exc
            if data:
                yield data

        return decompress

    return new_frame
