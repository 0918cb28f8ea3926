"""Signatures of messages that can be judged without reading a packet anew: nearly all that are not valid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from msmqwire.columnar.compiled.generated import FIELD_SLOTS
from msmqwire.columnar.compiled.scan_arrays import RowBlock
from msmqwire.columnar.compiled.state import R_START
from msmqwire.dissection.message_security import Examiner, SignatureStatus, key_of, status_without_key

STATUSES: Final = (
    "", SignatureStatus.NONE, SignatureStatus.UNKNOWN_SENDER, SignatureStatus.UNSUPPORTED,
    SignatureStatus.INVALID,
)  # fmt: skip
"""Texts by their codes; the first one stands for null."""
_CERTIFICATE: Final = FIELD_SLOTS["UserMessage"]["SecurityHeader.SecurityData.SenderCert"]
_SIGNATURE_SIZE: Final = FIELD_SLOTS["UserMessage"]["SecurityHeader.SignatureSize"]
_HASH_ALGORITHM: Final = FIELD_SLOTS["UserMessage"]["MessagePropertiesHeader.HashAlgorithm"]
_SIGNATURE_OF_LISTS: Final = FIELD_SLOTS["UserMessage"]["MultiQueueFormatHeader.Signature.Signature"]


def has_signature_of_lists(block: RowBlock) -> Any:
    """Return which of the rows, all of them messages, have a signature over several names."""
    return _extents(block, _SIGNATURE_OF_LISTS)[1] > 0


def judged(block: RowBlock, signed: Any, encrypted: Any, examiner: Examiner) -> tuple[Any, Any]:
    """Judge signatures as far as certificates and their keys tell.

    Args:
        block: the rows.
        signed: which of them are messages with a SecurityHeader and a signature, of which no key given
            decrypts the body.
        encrypted: which have an encrypted body.
        examiner: has the certificates given.

    Returns:
        Codes of `STATUSES`, and for which rows: those without a certificate, with one without a key, or with
        a signature by another key. The others may be signed by the owner of their certificate.
    """
    starts, sizes = _extents(block, _CERTIFICATE)
    codes = np.full(len(block.rows), STATUSES.index(status_without_key(b"")), np.int32)
    done = signed & (sizes == 0)
    rows, memory = np.flatnonzero(signed & (sizes > 0)), memoryview(block.memory)
    algorithms, signatures = _numbers(block, rows, _HASH_ALGORITHM), _signatures(block, rows, starts)
    found: dict[bytes, tuple[Any, int]] = {}  # key and status of the certificates
    for i, start, size, (first, last), algorithm, is_encrypted in zip(
        rows.tolist(), starts[rows].tolist(), sizes[rows].tolist(), signatures, algorithms.tolist(),
        encrypted[rows].tolist(), strict=True,
    ):  # fmt: skip
        certificate = bytes(memory[start : start + size])
        if certificate not in found:
            found[certificate] = key_of(certificate), STATUSES.index(status_without_key(certificate))
        key, code = found[certificate]
        if key is not None:
            signature = bytes(memory[first:last])
            status = examiner.status_if_forged(key, signature, algorithm, encrypted=is_encrypted)
            if status is None:
                continue
            code = STATUSES.index(status)
        codes[i], done[i] = code, True
    return codes, done


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
