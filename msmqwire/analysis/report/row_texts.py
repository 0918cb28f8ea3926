"""Labels and summaries of rows of sessions: one text for all rows that have the same.

Packets of kinds of which there are few, and those with a SecurityHeader, are summarised as items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from msmqwire.analysis.dissection.summaries import order_ack_summary, session_ack_summary, summary
from msmqwire.analysis.report.grouped import grouped_by
from msmqwire.analysis.report.row_columns import RowColumns
from msmqwire.headers import USER_HEADER
from msmqwire.headers.acknowledgements import ORDER_ACK_BODY
from msmqwire.headers.message_summary import summary_of
from msmqwire.headers.queue_names import text
from msmqwire.names.printable import safe
from msmqwire.schema import field_offset
from msmqwire.schema.utf16 import text_exact
from msmqwire.tables.compiled.generated import FIELD_SLOTS
from msmqwire.tables.compiled.packet import ACK, USER
from msmqwire.tables.row_headers import structure_of

_MESSAGE: Final = FIELD_SLOTS["UserMessage"]
SECURITY: Final = _MESSAGE["SecurityHeader.Flags"][0]
_BODY: Final = _MESSAGE["MessagePropertiesHeader.MessageBody"][0]
_TRANSACTION: Final = _MESSAGE["TransactionHeader.Flags"][0]
_IN_SEQUENCE: Final = structure_of("TransactionHeader", {"TxSequenceNumber": "<u4"})
_IS_RECOVERABLE: Final = USER_HEADER.bits("Flags.DM").mask
_ACKNOWLEDGED: Final = (
    "AckSequenceNumber",
    "RecoverableMsgAckSeqNumber",
    "RecoverableMsgAckFlags",
    "WindowSize",
)
_SESSION: Final = structure_of(
    "SessionHeader", dict(zip(_ACKNOWLEDGED, ("<u2", "<u2", "<u4", "<u2"), strict=True)), "SessionAck"
)
_ORDER_FIELDS: Final = ("TxSequenceNumber", "TxPreviousSequenceNumber")
_ORDER: Final = np.dtype(
    {
        "names": list(_ORDER_FIELDS),
        "formats": ["<u4", "<u4"],
        "offsets": [field_offset(ORDER_ACK_BODY, name) for name in _ORDER_FIELDS],
    }
)


def labels(rows: RowColumns) -> tuple[list[str], Any]:
    """Return the labels of rows for people, empty without one, and for each row the place of its own."""
    codes = np.zeros(len(rows), np.int64)
    if not len(rows.users):
        return [""], codes
    codes[rows.users] = rows.by_label.numbers + 1
    return ["", *(safe(text(text_exact(label)) or "") for label in rows.by_label.keys)], codes


def summaries(rows: RowColumns) -> tuple[list[str], Any]:
    """Return the summaries of rows, and for each row the place of its own among them."""
    made = _Summaries(rows)
    of_users = np.flatnonzero(rows.slots(SECURITY, rows.users) < 0)
    is_message = rows.kinds[rows.users[of_users]] == USER
    made.add_messages(of_users[is_message])
    made.add_order_acks(of_users[~is_message])
    made.add_session_acks(np.flatnonzero(rows.kinds == ACK))
    made.add_others()
    return made.texts, made.codes


class _Summaries:
    """The summaries of rows, kind by kind.

    Attributes:
        texts: the summaries so far.
        codes: for each row the place of its own among them; -1 if it has none yet.
    """

    def __init__(self, rows: RowColumns) -> None:
        self.texts: list[str] = []
        self.codes = np.full(len(rows), -1)
        self._rows = rows

    def add_messages(self, of_users: Any) -> None:
        """Summarise messages, given by their places in `RowColumns.users`."""
        rows = self._rows
        at = rows.users[of_users]
        if not len(at):
            return
        properties, transactions = rows.properties[of_users], rows.slots(_TRANSACTION, at)
        numbers = np.full(len(at), -1)
        is_in_sequence = transactions >= 0
        in_sequence = rows.headers(_IN_SEQUENCE, at[is_in_sequence], _TRANSACTION)
        numbers[is_in_sequence] = in_sequence["TxSequenceNumber"]
        columns = (
            rows.by_queue.numbers[of_users], properties["MessageClass"], rows.by_label.numbers[of_users],
            numbers, properties["MessageSize"], rows.user_headers["Flags"][of_users] & _IS_RECOVERABLE,
        )  # fmt: skip
        names, labels = rows.queue_names, [text_exact(label) for label in rows.by_label.keys]

        def summarise(
            queue: int, message_class: int, label: int, number: int, size: int, recoverable: int
        ) -> str:
            return summary_of(
                names[queue], message_class, labels[label], None if number < 0 else number, size,
                is_recoverable=bool(recoverable),
            )  # fmt: skip

        self._add_by(at, columns, summarise)

    def add_order_acks(self, of_users: Any) -> None:
        """Summarise order acknowledgements and final ones, given as messages are."""
        rows = self._rows
        at = rows.users[of_users]
        if not len(at):
            return
        bodies = rows.headers(_ORDER, at, _BODY)
        columns = rows.properties["MessageClass"][of_users], *(bodies[name] for name in _ORDER_FIELDS)
        self._add_by(at, columns, order_ack_summary)

    def add_session_acks(self, at: Any) -> None:
        """Summarise rows that are SessionAcks."""
        if len(at):
            headers = self._rows.headers(_SESSION, at)
            self._add_by(at, [headers[name] for name in _ACKNOWLEDGED], session_ack_summary)

    def _add_by(self, at: Any, columns: Sequence[Any], summarise: Callable[..., str]) -> None:
        """Summarise rows by columns of integers."""
        alike = grouped_by(columns)
        self.codes[at] = alike.numbers + len(self.texts)
        self.texts += map(summarise, *(column[alike.first].tolist() for column in columns))

    def add_others(self) -> None:
        """Summarise the rest as items."""
        for r in np.flatnonzero(self.codes < 0).tolist():
            self.codes[r] = len(self.texts)
            self.texts.append(summary(self._rows.item(r)))
