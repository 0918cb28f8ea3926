"""The examples of [MS-MQRR] 4, step by step at the server."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import PositionState
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.remote_read.constants import Acknowledge, Opnum
from msmqwire.rpc.handles import NULL_HANDLE
from tests.support.qm.event_recorder import EventRecorder
from tests.support.qm.queue_contents import bodies
from tests.support.rpc.remote_read_harness import OK, ORDERS, TX, RemoteReadHarness

LOCKED = PositionState.LOCKED


@pytest.fixture
def harness() -> RemoteReadHarness:
    return RemoteReadHarness()


def pending(harness: RemoteReadHarness) -> list[int]:
    """The numbers of the receive contexts."""
    return [number for context in harness.core.remote_read.contexts for number in context.pending]


class Deletions(EventRecorder):
    """Records which receive contexts and how many answers there are when a message is deleted."""

    def __init__(self, harness: RemoteReadHarness) -> None:
        super().__init__()
        self.seen: list[Any] = []
        self._harness = harness
        harness.core.context.subscribers.append(self)

    def message_position_deleted(self, queue: Queue, position: MessagePosition, reason: int) -> None:
        self.seen.append((pending(self._harness), len(self._harness.answers)))


@pytest.mark.requirement("MQRR-4.1-01")
def test_purging_a_queue(harness: RemoteReadHarness) -> None:
    queue, client = harness.queue(), harness.client()
    harness.enqueue(queue, b"1")
    harness.core.remote_read.port = 2114
    assert client.call(Opnum.R_GetServerPort).status == 2114
    second = harness.client(2)
    handle = second.open()
    assert second.purge(handle) == OK
    assert bodies(queue) == []
    assert second.close(handle) == (OK, NULL_HANDLE)
    assert harness.nothing_is_left()


@pytest.mark.requirement("MQRR-4.2-01", "MQRR-4.2-02")
def test_receiving_a_message(harness: RemoteReadHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    queue, client = harness.queue(), harness.client()
    harness.enqueue(queue, b"1")
    handle, deletions = client.open(), Deletions(harness)
    answer, before = harness._answered, len(harness.answers)
    at_answer: list[list[int]] = []

    def answered(call: int, results: Any) -> None:
        at_answer.append(pending(harness))
        answer(call, results)

    monkeypatch.setattr(harness, "_answered", answered)
    assert client.read(handle, request=5) == b"1"
    assert at_answer == [[5]]
    assert bodies(queue) == [b"1"]
    assert client.end(handle, 5) == OK
    assert deletions.seen == [([], before + 1)]
    assert at_answer == [[5], []]
    assert bodies(queue) == []


@pytest.mark.requirement("MQRR-4.3-01", "MQRR-4.3-02")
def test_receiving_a_message_in_a_transaction(harness: RemoteReadHarness) -> None:
    queue, client, engine = harness.queue(transactional=True), harness.client(), harness.core.remote_read
    harness.send(b"1", to=ORDERS, transactional=True)
    engine.transacting.coordinated = True
    enlisting = client.enlist(token=b"propagation token")
    (asked,) = harness.enlistments
    assert (asked.transaction, asked.token) == (UUID(bytes_le=TX), b"propagation token")
    assert client.answer(enlisting) is None  # until the server's coordinator has enlisted it
    engine.enlisted(asked.request, done=True)
    harness.run()
    assert client.answer(enlisting).status == OK
    handle = client.open()
    assert client.read(handle, request=5, tx=TX) == b"1"
    assert client.end(handle, 5, Acknowledge.RR_ACK, transactional=True) == OK
    assert list(harness.opnums.values()) == [
        Opnum.R_QMEnlistRemoteTransaction,
        Opnum.R_OpenQueue,
        Opnum.R_StartTransactionalReceive,
        Opnum.R_EndTransactionalReceive,
    ]
    assert bodies(queue, LOCKED) == [b"1"]
    transactions = harness.core.transactions
    transactions.dtc_prepare(asked.transaction, single_phase=False)
    harness.run()
    assert bodies(queue, LOCKED) == [b"1"]
    transactions.dtc_commit(asked.transaction)
    harness.run()
    assert bodies(queue) == []
