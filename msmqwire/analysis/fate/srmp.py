"""Messages and receipts of SRMP, with the responses of HTTP to them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from msmqwire.analysis.fate.followers import Follower
from msmqwire.analysis.fate.model import EventKind
from msmqwire.analysis.fate.observations import (
    AboutNumber,
    Numbered,
    Observation,
    Sighting,
    Where,
    identity_of_srmp,
    sequence_group,
)
from msmqwire.analysis.fate.row_attributes import attributes_of
from msmqwire.analysis.fate.rows import Row
from msmqwire.srmp.message_json import PACKET

REQUESTS_MAX: Final = 1 << 10
"""Requests of HTTP on a connection that wait for a response; of more, the oldest are forgotten."""
_ONE_SIDED: Final = "nothing that the other side sent was captured, so an answer may have been missed"
_MISSED: Final = "the capture does not have the whole connection, so an answer may have been missed"
_RECEIPTS: Final = {
    "delivery receipt": EventKind.DELIVERY_RECEIPT,
    "commitment receipt": EventKind.COMMITMENT_RECEIPT,
    "final stream receipt": EventKind.FINAL_STREAM_RECEIPT,
}


class SrmpFollower(Follower):
    """Pairs requests with their responses."""

    kinds = (PACKET,)

    def __init__(self) -> None:
        self._requests: OrderedDict[int, str] = OrderedDict()  # identities of messages, by exchange
        self._is_one_sided = False

    @property
    def size(self) -> int:
        return len(self._requests)

    def feed(self, row: Row, where: Where) -> Iterator[Sighting]:
        self._is_one_sided = bool(row.one_sided)
        if row.http_status is not None:
            answered = self._answered(row) if row.http_status >= 200 else None
            if answered is not None:
                accepted = row.http_status < 300
                what = EventKind.ACCEPTED if accepted else EventKind.NOT_ACCEPTED
                yield Observation(answered, where, what, detail=f"HTTP status {row.http_status}")
            return
        if row.srmp_id is None:
            return
        # Receipts name it so, whatever SourceQmGuid is: SRMP-2.2.5.4-04, example 4.4
        key = identity_of_srmp(row.srmp_id)
        if row.exchange is not None:
            self._requests[row.exchange] = key
            if len(self._requests) > REQUESTS_MAX:
                self._requests.popitem(last=False)
        yield Observation(
            key, where, EventKind.SENT, sender_qm=row.source_qm or "", message=attributes_of(row, "http")
        )
        stream = _stream(row.srmp_stream)
        if stream is not None and row.tx_number is not None:
            yield Numbered(stream[0], row.tx_number, stream[1], where, key)
        if row.receipt in _RECEIPTS and row.receipt_id is not None:
            yield Observation(
                identity_of_srmp(row.receipt_id), where, _RECEIPTS[row.receipt],
                message_class=row.message_class, sender_qm=row.source_qm or "", acknowledged_by=key,
            )  # fmt: skip
        elif row.receipt is not None and stream is not None and row.receipt_ordinal is not None:
            group, owner = stream
            sender = row.source_qm or ""
            yield AboutNumber(group, row.receipt_ordinal, owner, where, EventKind.STREAM_RECEIPT, sender)

    def _answered(self, row: Row) -> str | None:
        """Return the message whose request this answers: the reader pairs them, for all that ask."""
        return None if row.exchange is None else self._requests.pop(row.exchange, None)

    def unreadable(self, row: Row, where: Where) -> Iterator[Observation]:
        answered = self._answered(row)
        if answered is not None:
            why = "its response can't be read"
            yield Observation(answered, where, EventKind.UNACKNOWLEDGED, is_certain=False, detail=why)

    def end(self, last: Where, *, forgotten: str, has_gaps: bool) -> Iterator[Observation]:
        unknown = forgotten or (_ONE_SIDED if self._is_one_sided else _MISSED if has_gaps else "")
        for key in self._requests.values():
            yield Observation(
                key, last, EventKind.UNACKNOWLEDGED,
                is_certain=not unknown, detail=unknown or "the request has no response",
            )  # fmt: skip


def _stream(text: str | None) -> tuple[str, str] | None:
    """Return the group and the owner of a stream of SRMP."""
    if text is None:
        return None
    owner, _, number = text.removeprefix("uid:").rpartition("\\")
    return sequence_group(int(number) >> 32, int(number) & 0xFFFFFFFF), owner
