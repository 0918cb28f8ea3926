"""Signatures of messages that can be judged without reading a packet anew: nearly all that are not valid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from msmqwire.analysis.dissection.message_security import Examiner, key_of
from msmqwire.tables.arrow.signature_codes import STATUSES
from msmqwire.tables.compiled.generated import FIELD_SLOTS
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.compiled.state import R_START

_CERTIFICATE: Final = FIELD_SLOTS["UserMessage"]["SecurityHeader.SecurityData.SenderCert"]
_SIGNATURE_SIZE: Final = FIELD_SLOTS["UserMessage"]["SecurityHeader.SignatureSize"]
_HASH_ALGORITHM: Final = FIELD_SLOTS["UserMessage"]["MessagePropertiesHeader.HashAlgorithm"]
_SIGNATURE_OF_LISTS: Final = FIELD_SLOTS["UserMessage"]["MultiQueueFormatHeader.Signature.Signature"]


def forged(block: RowBlock, rows: Sequence[int], encrypted: Any, examiner: Examiner) -> dict[int, int]:
    """Find signatures by another key than that of their certificate.

    Args:
        block: the rows.
        rows: those of messages with a SecurityHeader, a signature and a certificate with a key, of which no
            key given decrypts the body.
        encrypted: the rows with an encrypted body.
        examiner: has the certificates given.

    Returns:
        Codes of `STATUSES` by row. The remaining ones may be signed by the owner of their certificate.
    """
    numbers = np.array(rows, np.int64)
    starts, sizes = _extents(block, _CERTIFICATE)
    algorithms, signatures = _numbers(block, numbers, _HASH_ALGORITHM), _signatures(block, numbers, starts)
    memory = memoryview(block.memory)
    keys: dict[bytes, Any] = {}
    found: dict[int, int] = {}
    for i, start, size, (first, last), algorithm, is_encrypted in zip(
        rows, starts[numbers].tolist(), sizes[numbers].tolist(), signatures, algorithms.tolist(),
        encrypted[numbers].tolist(), strict=True,
    ):  # fmt: skip
        certificate = bytes(memory[start : start + size])
        if certificate not in keys:
            keys[certificate] = key_of(certificate)
        signature = bytes(memory[first:last])
        status = examiner.status_if_forged(keys[certificate], signature, algorithm, encrypted=is_encrypted)
        if status is not None:
            found[i] = STATUSES.index(status)
    return found


def _extents(block: RowBlock, bounds: Sequence[int]) -> tuple[Any, Any]:
    """Return where a field of each row begins in the memory, and its size, wherever the packet has it."""
    slot, distance, end_slot, end_distance = bounds
    starts, ends = block.field_offsets[:, slot] + distance, block.field_offsets[:, end_slot] + end_distance
    return block.rows[:, R_START] + starts, ends - starts


def _numbers(block: RowBlock, rows: Any, place: Sequence[int]) -> Any:
    """Return a field of some rows that is an integer and that their packets have."""
    slot, distance, size = place
    starts = block.rows[rows, R_START] + block.field_offsets[rows, slot] + distance
    found = np.zeros(len(rows), np.int64)
    for i in range(size):
        found |= block.memory[starts + i].astype(np.int64) << (8 * i)
    return found


def _signatures(block: RowBlock, rows: Any, certificates: Any) -> list[list[int]]:
    """Return where the signatures of messages with a SecurityHeader begin and end in the memory.

    That of SecurityData stands before its certificate, padded to a multiple of 4; where there is none it is
    that over several names.
    """
    sizes = _numbers(block, rows, _SIGNATURE_SIZE)
    starts = certificates[rows] - (sizes + 3 & ~3)
    of_lists, sizes_of_lists = _extents(block, _SIGNATURE_OF_LISTS)
    starts = np.where(sizes > 0, starts, of_lists[rows])
    sizes = np.where(sizes > 0, sizes, sizes_of_lists[rows])
    return np.stack([starts, starts + sizes], axis=1).tolist()  # type: ignore[no-any-return]
