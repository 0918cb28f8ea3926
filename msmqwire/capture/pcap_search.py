"""A record of a pcap file, found from any byte of it.

A pcap file has nothing that marks a record: any bytes whose size field is under the limit could be
the header of one. So every place at which the next record can start is taken for one, and from each
the chain of records that would follow is walked. Bytes that are no header end a chain soon, by a
size over the limit; chains that meet go on as one. The true chain goes on as long as the file is
intact, so that once a single chain is left it is the true one, whatever the records carry, a capture
inside a capture too.

One chain never ends: 4 bytes behind the true one, where the length on the wire, the same as the size
captured, stands in the place of the size. Of such a pair the first is taken, if all of its headers
are those that an honest writer makes.
"""

from __future__ import annotations

from struct import Struct
from typing import BinaryIO, Final

import numpy as np

from msmqwire.capture.pcap import FILE_HEADER_SIZE, MAGICS
from msmqwire.capture.record import record_limit

SEARCH_MAX: Final = 4 << 20
"""Bytes in which the chains must have come to one; otherwise nothing is found."""
CONFIRMED: Final = 64
"""Records that must follow, unless the file ends before."""


def find_record(file: BinaryIO, head: bytes, place: int) -> int | None:
    """Where a record at or behind a byte of a pcap file starts.

    Args:
        file: the file, which can seek.
        head: its header.
        place: the byte.

    Returns:
        The place; None where the bytes leave it open. So it is where the file may have records as
        large as `SEARCH_MAX`, and where fewer bytes follow than the largest record has.
    """
    order, _, header_size = MAGICS[head[:4]]
    size_at = Struct(order + "8xI").unpack_from
    (snaplen,) = size_at(head, 8)
    limit = record_limit(snaplen)
    reach = header_size + limit
    place = max(place, FILE_HEADER_SIZE)
    file.seek(place)
    data = file.read(SEARCH_MAX) if reach < SEARCH_MAX else b""
    if len(data) < reach + header_size:
        return None
    # The next record starts among the first `reach` bytes: chains start at each that can be a header.
    sizes = np.ndarray((reach,), np.dtype(order + "u4"), data, 8, (1,))
    chain = bytearray(len(data) - header_size + 1)  # 1 where a chain has come to
    chain[:reach] = (sizes <= limit).tobytes()
    chains = chain.count(1)
    at = chain.find(1)
    while at >= 0:
        if chains == 1 or (chains == 2 and chain[at + 4 : at + 5] == b"\1"):
            return place + at if _goes_on(file, place + at, limit, MAGICS[head[:4]]) else None
        chains -= 1
        (size,) = size_at(data, at)
        following = at + header_size + size
        if size > limit:
            pass  # no header: the chain ends
        elif following >= len(chain):
            return None  # more than one chain may go on behind what was read
        elif not chain[following]:
            chain[following] = 1
            chains += 1
        at = chain.find(1, at + 1)
    return None


def _goes_on(file: BinaryIO, at: int, limit: int, meaning: tuple[str, int, int]) -> bool:
    """Whether a whole record is there and honest ones follow, as many as are asked for or to the end."""
    order, unit, header_size = meaning
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
