"""Search for a record of a pcap file from any offset.

A pcap file has no record markers: any bytes whose size field is within the limit could be a header. So
every offset at which the next record can start is a candidate, and from each the chain of records that
would follow is traced. Bytes that are not a header soon end a chain, by a size over the limit; chains that
meet continue as one. The true chain continues as long as the file is intact, so that the last chain left
is the true one, whatever the records carry, even captures.

One false chain never ends: 4 bytes after the true one, where the length on the wire, equal to the captured
size, is taken for the size. Of such a pair the first is chosen, if all of its headers are plausible.
"""

from __future__ import annotations

from struct import Struct
from typing import BinaryIO, Final

import numpy as np

from msmqwire.capture.pcap import FILE_HEADER_SIZE, MAGICS
from msmqwire.capture.record import record_limit

SEARCH_MAX: Final = 4 << 20
"""Bytes within which a single chain must be left; otherwise the search fails."""
CONFIRMED: Final = 64
"""Plausible records that must follow, unless the file ends before."""


def find_record(file: BinaryIO, head: bytes, offset: int) -> int | None:
    """Find the first record of a pcap file at or after an offset.

    Args:
        file: the file, seekable.
        head: its header.
        offset: the start of the search.

    Returns:
        The offset of the record; None if the bytes are ambiguous. They always are if the file may have
        records as large as `SEARCH_MAX`, or if fewer bytes follow than the largest record has.
    """
    order, _, header_size = MAGICS[head[:4]]
    size_at = Struct(order + "8xI").unpack_from
    (snaplen,) = size_at(head, 8)
    limit = record_limit(snaplen)
    reach = header_size + limit
    offset = max(offset, FILE_HEADER_SIZE)
    file.seek(offset)
    data = file.read(SEARCH_MAX) if reach < SEARCH_MAX else b""
    if len(data) < reach + header_size:
        return None
    # The next record starts within the first `reach` bytes: a chain starts at each possible header.
    sizes = np.ndarray((reach,), np.dtype(order + "u4"), data, 8, (1,))
    chain = bytearray(len(data) - header_size + 1)  # 1 where a chain has a record
    chain[:reach] = (sizes <= limit).tobytes()
    chains = chain.count(1)
    at = chain.find(1)
    while at >= 0:
        if chains == 1 or (chains == 2 and chain[at + 4 : at + 5] == b"\1"):
            return offset + at if _is_plausible(file, offset + at, limit, MAGICS[head[:4]]) else None
        chains -= 1
        (size,) = size_at(data, at)
        following = at + header_size + size
        if size > limit:
            pass  # not a header: the chain ends
        elif following >= len(chain):
            return None  # more than one chain may continue beyond the bytes read
        elif not chain[following]:
            chain[following] = 1
            chains += 1
        at = chain.find(1, at + 1)
    return None


def _is_plausible(file: BinaryIO, at: int, limit: int, variant: tuple[str, int, int]) -> bool:
    """Whether plausible records start here, `CONFIRMED` of them or all to the end of the file."""
    order, unit, header_size = variant
    fields = Struct(order + "4xIII").unpack_from
    end = file.seek(0, 2)
    for number in range(CONFIRMED):
        file.seek(at)
        header = file.read(header_size)
        if len(header) < header_size:
            return number > 0
        fraction, size, length = fields(header)
        if size > limit or size > length or fraction * unit >= 1_000_000_000:
            return False
        at += header_size + size
        if at > end:
            return number > 0
    return True
