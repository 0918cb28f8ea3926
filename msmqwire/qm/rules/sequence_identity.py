"""Identifiers of the transactional sequences that begin here, shared by all protocols."""

from __future__ import annotations

from typing import Final

from msmqwire.qm.model.context import Context
from msmqwire.qm.model.message import TxSequenceId
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules.recovery import Stored

TX_SEQUENCE_ORDINAL: Final = b"OutgoingTxSequenceID"
_ORDINAL_MAX: Final = 0xFFFFFFFF


class SequenceIdentity:
    """Counts sequences: [MS-MQQB] 3.1.1.3.1; StreamIdOrdinal of [MC-MQSRM] 3.1.1.1.5."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._last = TxSequenceId()

    def restore(self, stored: Stored) -> None:
        """Continue after the last stored identifier."""
        row = stored.row(Table.META, TX_SEQUENCE_ORDINAL)
        number = int.from_bytes(row, "little") if row else 0  # SRMP-3.1.3.1-03
        # MQQB-3.1.1.3.1-12, MQMQ-2.2.18.1.2-04
        self._last = TxSequenceId(number >> 32, number & _ORDINAL_MAX)

    def next(self) -> TxSequenceId:
        """Return an identifier greater than all earlier ones."""
        time_stamp, ordinal = self._last
        if not time_stamp:
            time_stamp = self._context.utc & 0xFFFFFFFF  # MQQB-3.1.1.3.1-12
        if ordinal >= _ORDINAL_MAX:
            time_stamp, ordinal = time_stamp + 1, 0  # MQMQ-2.2.18.1.2-04
        # SRMP-3.1.1.1.5-03, MQQB-3.1.1.3.1-12, MQMQ-2.2.18.1.2-04
        self._last = TxSequenceId(time_stamp, ordinal + 1)
        row = (time_stamp << 32 | ordinal + 1).to_bytes(8, "little")  # MQQB-3.1.1.3.1-12
        self._context.changes.put(Table.META, TX_SEQUENCE_ORDINAL, row)  # MQQB-3.1.1.3.1-12
        return self._last
