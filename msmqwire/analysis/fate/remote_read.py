"""Receives by remote read: messages that are handed out, and whether they are taken."""

from __future__ import annotations

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
    identity,
    read_group,
)
from msmqwire.analysis.fate.row_attributes import attributes_of, cut_text
from msmqwire.analysis.fate.rows import Row
from msmqwire.remote_read.constants import RECEIVE_ACTIONS, Acknowledge, Opnum
from msmqwire.remote_read.procedures import PROCEDURES
from msmqwire.rpc.constants import PduType
from msmqwire.rpc.rpc_packet import call_kind


def _kinds(*calls: Opnum) -> tuple[str, ...]:
    types = PduType.REQUEST, PduType.RESPONSE
    return tuple(call_kind(PROCEDURES[call], kind) for call in calls for kind in types)


_STARTS: Final = _kinds(Opnum.R_StartReceive, Opnum.R_StartTransactionalReceive)
_ENDS: Final = _kinds(Opnum.R_EndReceive, Opnum.R_EndTransactionalReceive)


class RemoteReadFollower(Follower):
    """Reads calls and answers, each by itself."""

    kinds = _STARTS + _ENDS

    def feed(self, row: Row, where: Where) -> Iterator[Sighting]:
        return _handed_out(row, where) if row.kind in _STARTS else _ended(row, where)


def _handed_out(row: Row, where: Where) -> Iterator[Sighting]:
    """Yield the message in an answer of remote read."""
    if row.source_qm is None or row.message_id is None:
        return
    key = identity(row.source_qm, row.message_id)
    receives = row.receive_action in RECEIVE_ACTIONS
    yield Observation(
        key, where, EventKind.HANDED_OUT if receives else EventKind.PEEKED,
        detail=cut_text(row.read_queue) or "", message=attributes_of(row, "remote read"),
    )  # fmt: skip
    if receives and row.queue_handle is not None and row.request_id is not None:
        yield Numbered(read_group(where.src, row.queue_handle), row.request_id, "", where, key, True)


def _ended(row: Row, where: Where) -> Iterator[AboutNumber]:
    """Yield the observations of the answer to the end of a receive: the server has done as asked."""
    if row.call_status != 0 or row.receive_ack is None or row.queue_handle is None or row.request_id is None:
        return
    what = EventKind.GIVEN_BACK
    if row.receive_ack == Acknowledge.RR_ACK:
        transactional = row.kind.startswith("R_EndTransactional")
        what = EventKind.TAKEN_IN_TRANSACTION if transactional else EventKind.TAKEN
    yield AboutNumber(read_group(where.src, row.queue_handle), row.request_id, "", where, what)
