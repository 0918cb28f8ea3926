"""Signature status before any is verified: for most signatures in captures it is the final one."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.analysis.dissection.message_security import SignatureStatus, key_of, status_without_key
from msmqwire.tables.compiled import certificates
from msmqwire.tables.compiled.certificates import (
    JUDGED_MAX,
    NOT_JUDGED,
    NOT_VERIFIED,
    SIZE_MAX,
    SLOTS,
    Judged,
)
from msmqwire.tables.compiled.generated import FIELD_SLOTS
from msmqwire.tables.compiled.scan_arrays import RowBlock

STATUSES: Final = (
    "", SignatureStatus.NONE, SignatureStatus.UNKNOWN_SENDER, SignatureStatus.UNSUPPORTED,
    SignatureStatus.INVALID,
)  # fmt: skip
"""Texts by their codes; the first one stands for null."""
_BOUNDS: Final = np.array(
    [
        FIELD_SLOTS["UserMessage"]["SecurityHeader.SecurityData.SenderCert"],
        FIELD_SLOTS["UserMessage"]["MultiQueueFormatHeader.Signature.Signature"],
    ],
    np.int64,
)


class SignatureCodes:
    """Codes of signatures by their certificates, each of which is judged once if there are not too many."""

    def __init__(self) -> None:
        self._judged = Judged(
            np.full(SLOTS, -1, np.int64), np.zeros(JUDGED_MAX, np.int64), np.zeros(JUDGED_MAX, np.int64),
            np.empty(JUDGED_MAX * SIZE_MAX, np.uint8),
        )  # fmt: skip
        self._count = 0

    def write(self, block: RowBlock, signed: Any, secured: Any, codes: Any) -> list[int]:
        """Write the codes of signed rows: of `STATUSES`, or `NOT_VERIFIED`. Return the rows with the latter.

        Args:
            block: the rows.
            signed: the rows with a signature of their own.
            secured: the rows wanted, all of messages with a SecurityHeader.
            codes: the codes of the rows.
        """
        extents = np.empty((len(block.rows), 2), np.int64)
        if not certificates.codes_of(block, signed, secured, _BOUNDS, self._judged, codes, extents):
            return []
        memory = memoryview(block.memory)
        for row in np.flatnonzero(codes == NOT_JUDGED).tolist():
            start, size = extents[row].tolist()
            codes[row] = code = _code(bytes(memory[start : start + size]))
            if size <= SIZE_MAX:
                self._remember(block.memory, start, size, code)
        rows: list[int] = np.flatnonzero(codes == NOT_VERIFIED).tolist()
        return rows

    def _remember(self, memory: Any, start: int, size: int, code: int) -> None:
        if self._count == JUDGED_MAX:
            self._judged.slots[:] = -1
            self._count = 0
        certificates.remember(self._judged, self._count, memory, start, size, code)
        self._count += 1


def _code(certificate: bytes) -> int:
    if certificate and key_of(certificate) is not None:
        return NOT_VERIFIED
    return STATUSES.index(status_without_key(certificate))
