"""The server of [MS-MQMR]: the values of outgoing queues and the tables, 3.1.4.1."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmqwire.names import parse_format_name
from msmqwire.qm.model.effects import Connect
from msmqwire.qm.model.elements import (
    ConnectionHistory,
    IncomingTransactionalTransferInfo,
    OutgoingQueue,
    Queue,
    SequenceInfo,
)
from msmqwire.qm.model.enumerations import (
    ConnectionStatus,
    OutgoingQueueState,
)
from msmqwire.qm.model.message import TxSequenceId
from tests.support.engine_harness import (
    OWN_ID,
    PEER_ADDRESS,
    PEER_ID,
    PEER_QUEUE,
    START_UTC,
    THIRD_ID,
    EngineHarness,
    harness_with_peer,
)
from tests.support.rpc.managing import MACHINE, Manager
from tests.support.srmp.srmp_harness import THERE, SrmpHarness
from tests.support.srmp.srmp_requests import SrmpPeer

ORDERS = r"DIRECT=OS:here\private$\orders"
JOURNAL = ORDERS + ";JOURNAL"
GROUP = "MULTICAST=234.1.1.1:8001"
ALL_OF_MACHINE, ALL_OF_QUEUE = range(1, 7), range(1, 28)
OUTGOING_ONLY = [*range(12, 24), 25]
NEVER = 0
FIRST = TxSequenceId(START_UTC, 1)


@pytest.fixture
def harness() -> EngineHarness:
    """A queue manager that is named ``here``."""
    return EngineHarness()


@pytest.fixture
def manager(harness: EngineHarness) -> Manager:
    """Its administrator."""
    return Manager(harness)


def types(manager: Manager, managed: Any, *identifiers: int) -> list[int]:
    """The types of values."""
    return [value.vt for value in manager.variants(managed, *identifiers)]


# -- outgoing queues -------------------------------------------------------------------------------------


@pytest.mark.requirement("MQMR-3.1.4.1-44", "MQMR-2.2.3.2-11", "MQMR-3.1.4.1-45", "MQMR-3.1.4.1-46")
@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (OutgoingQueueState.CONNECTED, "CONNECTED"),
        (OutgoingQueueState.DISCONNECTED, "DISCONNECTED"),
        (OutgoingQueueState.DISCONNECTING, "DISCONNECTING"),
        (OutgoingQueueState.INACTIVE, "INACTIVE"),
        (OutgoingQueueState.LOCKED, "LOCKED"),
        (OutgoingQueueState.NEED_VALIDATION, "NEED VALIDATION"),
        (OutgoingQueueState.WAITING, "WAITING"),
        (OutgoingQueueState.ON_HOLD, "ONHOLD"),
    ],
)
def test_states_and_next_hops(
    harness: EngineHarness, manager: Manager, state: OutgoingQueueState, shown: str
) -> None:
    queue, group = harness.outgoing(), harness.outgoing(GROUP)
    queue.state = group.state = state
    queue.next_hops = ["IP=10.0.0.2", "IPv6=fd00::5"]
    hops = ("IP=10.0.0.2", "IPv6=fd00::5") if shown in ("CONNECTED", "WAITING") else None
    assert manager.values(PEER_QUEUE, 11, 12) == [shown, hops]
    assert manager.value(GROUP, 11) == shown
    expected = (GROUP,) if shown == "CONNECTED" else () if shown == "WAITING" else None
    assert manager.value(GROUP, 12) == expected


@pytest.mark.requirement("MQMR-2.2.3.2-12", "MQMR-3.1.4.1-45")
def test_the_address_of_an_open_session() -> None:
    harness = harness_with_peer()
    harness.send(b"m")
    assert Manager(harness).values(PEER_QUEUE, 11, 12) == ["CONNECTED", (f"IP={PEER_ADDRESS}",)]


@pytest.mark.requirement(
    "MQMR-3.1.4.1-48", "MQMR-3.1.4.1-49", "MQMR-3.1.4.1-50", "MQMR-3.1.4.1-51", "MQMR-3.1.4.1-52",
    "MQMR-3.1.4.1-53", "MQMR-3.1.4.1-54", "MQMR-3.1.4.1-55", "MQMR-3.1.4.1-56", "MQMR-3.1.4.1-57",
    "MQMR-3.1.4.1-58", "MQMR-2.2.3-10", "MQMR-2.2.3.2-13", "MQMR-2.2.3.2-16", "MQMR-2.2.3.2-17",
    "MQMR-2.2.3.2-18", "MQMR-2.2.3.2-14", "MQMR-2.2.3.2-15", "MQMR-2.2.3.2-19", "MQMR-2.2.3.2-20",
    "MQMR-2.2.3.2-21", "MQMR-2.2.3.2-22", "MQMR-2.2.3.2-23",
)  # fmt: skip
@pytest.mark.requirement(
    "MQMQ-2.2.5-01", "MQMQ-2.3.12.13-01", "MQMQ-2.3.12.16-01", "MQMQ-2.3.12.17-01", "MQMQ-2.3.12.18-01"
)
def test_the_transactional_transfer_out_of_a_queue() -> None:
    harness = harness_with_peer()
    manager, eod = Manager(harness), range(13, 24)
    harness.outgoing()
    assert manager.values(PEER_QUEUE, *eod) == [None, 0, 0, None, None, None, 0, 0, 0, 0, 0]
    for body in (b"1", b"2", b"3"):
        harness.send(body, transactional=True, positive_journaling_requested=True)
    peer = harness.called[0]
    peer.acknowledge()
    harness.advance(2_000)
    assert manager.values(PEER_QUEUE, 13, 16, 17, 18, 20) == [None, blob(1, 0), blob(3, 2), blob(4, 3), 3]
    peer.send_order_ack(FIRST, 1)
    assert manager.values(PEER_QUEUE, *eod) == [
        blob(1, 0), START_UTC + 2, 1, blob(2, 1), blob(3, 2), blob(4, 3), 1, 2, START_UTC + 32, 30, 1,
    ]  # fmt: skip
    assert types(manager, PEER_QUEUE, *eod) == [0x41, 3, 0x13, 0x41, 0x41, 0x41, 0x13, 0x13, 3, 0x13, 0x13]
    peer.send_order_ack(FIRST, 3)
    last, _, count, first_non_ack, last_non_ack, *_ = manager.values(PEER_QUEUE, *eod)
    assert (last, count, first_non_ack, last_non_ack) == (None, 2, None, None)  # none is unacknowledged


def blob(number: int, previous: int, sequence: TxSequenceId = FIRST) -> bytes:
    """SEQUENCE_INFO, by hand."""
    return (
        sequence.ordinal.to_bytes(4, "little")
        + sequence.time_stamp.to_bytes(4, "little")
        + number.to_bytes(4, "little")
        + previous.to_bytes(4, "little")
    )


@pytest.mark.requirement("MQMR-3.1.4.1-48", "MQMR-3.1.4.1-49", "MQMR-3.1.4.1-51", "MQMR-3.1.4.1-53")
def test_a_stream_by_http_has_the_same_properties() -> None:
    harness = SrmpHarness(answers=lambda _: 200)
    harness.send(b"1", transactional=True)
    harness.send(b"2", transactional=True)
    harness.take()
    SrmpPeer(harness).stream_receipt(f"uid:{OWN_ID}\\{FIRST.time_stamp << 32 | FIRST.ordinal}", 1)
    manager = Manager(harness)
    assert manager.values(THERE, 13, 14, 15, 16, 17, 18, 20) == [
        blob(1, 0), harness.utc, 1, blob(2, 1), blob(2, 1), blob(3, 2), 1,
    ]  # fmt: skip
    assert manager.values(THERE, 11, 12) == ["CONNECTED", (f"IP={PEER_ADDRESS}",)]
    statuses, _, errors, addresses = manager.value(THERE, 25)
    assert (statuses, errors, addresses) == ((0, 2), (0, 0), ((), (f"IP={PEER_ADDRESS}",)))


@pytest.mark.requirement("MQMR-2.2.3.2-14", "MQMR-3.1.4.1-56")
@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, 0), (0x7FFFFFFF, 0x7FFFFFFF), (0x80000000, -0x80000000), (0xFFFFFFFF, -1), (0x1_0000_0005, 5)],
)
def test_times_are_signed_and_modulo_2_to_32(
    harness: EngineHarness, manager: Manager, seconds: int, shown: int
) -> None:
    info = harness.outgoing().transfer
    info.eod_last_ack_time = info.eod_resend_time = seconds
    assert manager.values(PEER_QUEUE, 14, 21) == [shown, shown]


@pytest.mark.requirement("MQMR-2.2.3-10")
def test_a_sequence_of_a_late_date_is_signed(harness: EngineHarness, manager: Manager) -> None:
    late = TxSequenceId(0xFFFFFFFE, 7)
    harness.outgoing().transfer.eod_next_seq = SequenceInfo(late, 0xFFFFFFFF, 5)
    assert manager.value(PEER_QUEUE, 18) == blob(0xFFFFFFFF, 5, late)


# -- tables ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("MQMR-3.1.4.1-60", "MQMR-3.1.4.1-61", "MQMR-2.2.3.2-25", "MQMR-2.2.3.2-26")
@pytest.mark.requirement("MQMQ-2.3.12.25-01")
def test_the_connection_history_has_all_statuses(harness: EngineHarness, manager: Manager) -> None:
    queue = harness.outgoing()
    for number, status in enumerate(ConnectionStatus):
        error = 0xC00E0030 if number > 2 else 0
        queue.connection_history.append(
            entry(status, START_UTC + number, error, ("10.0.0.2", "fd00::5")[: number % 3])
        )
    statuses, times, errors, addresses = manager.value(PEER_QUEUE, 25)
    assert statuses == (0, 1, 2, *range(0x80000000, 0x8000000E))
    assert times == tuple(range(START_UTC, START_UTC + 17))
    assert errors == (0, 0, 0, *[0xC00E0030 - (1 << 32)] * 14)
    assert addresses[:4] == ((), ("IP=10.0.0.2",), ("IP=10.0.0.2", "IPv6=fd00::5"), ())
    (table,) = manager.variants(PEER_QUEUE, 25)
    assert [column.vt for column in table.value.pElems] == [0x1013, 0x1003, 0x1003, 0x100C]
    assert {one.vt for one in table.value.pElems[3].value.pElems} == {0x101F}


def entry(status: ConnectionStatus, time: int, error: int, addresses: tuple[str, ...]) -> Any:
    return ConnectionHistory(status, time, error, addresses)


@pytest.mark.requirement("MQMR-3.1.4.1-60")
def test_a_queue_without_connections_has_empty_vectors(harness: EngineHarness, manager: Manager) -> None:
    harness.outgoing()
    assert manager.value(PEER_QUEUE, 25) == ((), (), (), ())


@pytest.mark.requirement("MQMR-3.1.4.1-60", "MQMR-2.2.3.2-25")
def test_failures_of_a_session_are_in_the_history() -> None:
    harness = EngineHarness()
    harness.send(b"m")
    harness.resolve(PEER_ADDRESS)
    connection = harness.last_effect(Connect).connection
    harness.engine.connect_failed(connection, ConnectionStatus.SOCKET_CONNECT_FAILURE, "refused")
    statuses, times, errors, addresses = Manager(harness).value(PEER_QUEUE, 25)
    assert (statuses[-1], times[-1]) == (0x80000004, START_UTC)
    assert errors[-1] != 0
    assert addresses[-1] == (f"IP={PEER_ADDRESS}",)


@pytest.mark.requirement("MQMR-3.1.4.1-59", "MQMR-2.2.3.2-24")
@pytest.mark.requirement("MQMQ-2.3.12.24-01")
def test_senders_of_transactional_messages_are_six_vectors(harness: EngineHarness, manager: Manager) -> None:
    queue = harness.queue(transactional=True)
    for number, sender in enumerate((PEER_ID, THIRD_ID), 1):
        add_source(queue, sender, number, START_UTC - number)
    names, senders, sequences, numbers, times, rejected = manager.value(ORDERS, 24)
    assert [name.lower() for name in names] == [ORDERS.lower()] * 2
    assert senders == (PEER_ID, THIRD_ID)
    assert sequences == (START_UTC << 32 | 1, START_UTC << 32 | 2)
    assert numbers == (10, 20)
    assert times == (START_UTC - 1, START_UTC - 2)
    assert rejected == (1, 2)
    (table,) = manager.variants(ORDERS, 24)
    assert [column.vt for column in table.value.pElems] == [0x101F, 0x1048, 0x1015, 0x1013, 0x1003, 0x1013]


def add_source(queue: Queue, sender: UUID, number: int, time: int) -> None:
    info = IncomingTransactionalTransferInfo(queue, parse_format_name(ORDERS), sender)
    info.sequence_identifier, info.sequence_number = TxSequenceId(START_UTC, number), 10 * number
    info.last_access_time, info.reject_count = time, number
    queue.incoming[info.key] = info


@pytest.mark.requirement("MQMR-3.1.4.1-59")
def test_the_senders_of_an_answer_are_bounded(harness: EngineHarness, manager: Manager) -> None:
    queue = harness.queue(transactional=True)
    for number in range(1, 5_001):
        add_source(queue, UUID(int=number), number, number)
    *_, times, rejected = manager.value(ORDERS, 24)
    assert sorted(times) == list(range(905, 5_001))  # the last 4096
    assert len(rejected) == 4096


def test_outgoing_queues_of_acknowledgements_are_not_shown(harness: EngineHarness, manager: Manager) -> None:
    queue = harness.outgoing()
    assert isinstance(queue, OutgoingQueue)
    harness.send()
    assert manager.value(MACHINE, 1) == (str(queue.destination),)
    queue.acknowledged_peer = PEER_ID
    assert manager.value(MACHINE, 1) == ()
