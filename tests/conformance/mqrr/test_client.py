"""The client of remote read against a hand-made server: [MS-MQRR] 3.2, call by call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

import msmqwire
from msmqwire.constants import HResult
from msmqwire.errors import InvalidValue, MalformedPacket, QueueError, ReadTimeout
from msmqwire.names import DirectName, parse_format_name
from msmqwire.qm.client import Queue, ReceivedMessage, remote_reading
from msmqwire.qm.client.reading import Read
from msmqwire.qm.client.remote_options import RemoteOptions
from msmqwire.qm.client.remote_reading import READS_MAX, RemoteReading
from msmqwire.qm.client.transactional import Transactional
from msmqwire.qm.model.message import TxSequenceId
from msmqwire.remote_read.constants import Access, Acknowledge, Action, Opnum, ShareMode
from msmqwire.rpc.endpoint_mapper import ENDPOINT_MAPPER, ENDPOINT_MAPPER_METHODS, EndpointMapper
from tests.support.patience import happens
from tests.support.rpc.remote_read_server import (
    ARRIVED,
    INTERFACE,
    NAME,
    SENT,
    RemoteQueue,
    message,
    received,
    remote_queue,
    server_of,
)
from tests.support.rpc.rpc_server import map_endpoints, rpc_server

TX = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
ORDERS = r"DIRECT=TCP:127.0.0.1\PRIVATE$\orders"
VERSION = (6, 1, 0)


@pytest.fixture
def queue() -> Iterator[RemoteQueue]:
    """A server with three messages."""
    with remote_queue(message(1), message(2), message(3)) as queue:
        yield queue


def reading_of(queue: RemoteQueue, name: str = NAME) -> RemoteReading:
    """The client of a queue, below what programs use."""
    direct = parse_format_name(name)
    assert isinstance(direct, DirectName)
    return RemoteReading(direct, RemoteOptions("127.0.0.1", queue.port))


def refusal(work: Any) -> str:
    """The name of the code with which something is refused."""
    with pytest.raises(QueueError) as caught:
        asyncio.run(work)
    return caught.value.name


@pytest.mark.requirement(
    "MQRR-3.2.1-01", "MQRR-3.2.3-01", "MQRR-3.2.4.1-01", "MQRR-3.2.4.1-02", "MQRR-3.2.4.1-05",
    "MQRR-3.2.4.1-07",
    "MQRR-3.1.4.2-03", "MQRR-3.1.4.2-04", "MQRR-3.1.4.2-08", "MQRR-3.1.4.2-11", "MQRR-3.1.4.2-17",
    "MQRR-3.2.4.13-02", "MQRR-3.1.4.2-13", "MQRR-3.1.4.2-14", "MQRR-3.1.4.2-15", "MQRR-2.2.3-06",
)  # fmt: skip
def test_a_queue_is_opened_for_what_is_done_with_it_and_closed(queue: RemoteQueue) -> None:
    with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
        assert queue.calls == []  # a program that only sends needs no remote read
        orders.peek(0)
        orders.peek(0)
        with orders.receiving(0):
            pass
        orders.purge()
    looking, taking = queue.arguments(Opnum.R_OpenQueue)
    assert (looking.dwAccess, taking.dwAccess) == (Access.PEEK_ACCESS, Access.RECEIVE_ACCESS)
    assert looking.pClientId == taking.pClientId != UUID(int=0)
    for opening in (looking, taking):
        assert (opening.dwShareMode, opening.fNonRoutingServer, opening.fWorkgroup) == (
            ShareMode.MQ_DENY_NONE,
            1,
            1,
        )
        assert (opening.Major, opening.Minor, opening.BuildNumber) == VERSION
        assert (opening.pQueueFormat.m_qft, opening.pQueueFormat.arm) == (3, r"TCP:127.0.0.1\private$\orders")
    first, second = (UUID(int=0xB000), UUID(int=0xB001))
    reads = [arguments.phContext.uuid for arguments in queue.arguments(Opnum.R_StartReceive)]
    assert reads == [first, first, second]
    assert queue.arguments(Opnum.R_PurgeQueue)[0].phContext.uuid == second
    assert {arguments.pphContext.uuid for arguments in queue.arguments(Opnum.R_CloseQueue)} == {first, second}
    assert len(server_of(queue).connections) == 1
    queue.messages.append(message(4))
    with msmqwire.connect(NAME, rpc_port=queue.port) as another:
        another.peek(0)
    assert queue.arguments(Opnum.R_OpenQueue)[-1].pClientId not in (UUID(int=0), looking.pClientId)


@pytest.mark.requirement(
    "MQRR-2.1-02", "MQRR-2.1-04", "MQRR-3.1.4.1-06", "MQRR-3.2.4.1-03", "MQRR-3.2.4.1-04"
)
def test_the_port_by_the_endpoint_mapper(queue: RemoteQueue) -> None:
    answer = map_endpoints(EndpointMapper({INTERFACE: queue.port}))
    with (
        rpc_server(interfaces={ENDPOINT_MAPPER: ENDPOINT_MAPPER_METHODS}, perform=answer) as mapper,
        msmqwire.connect(NAME, endpoint_mapper=mapper.port) as orders,
    ):
        assert orders.receive(0).body == b"body 1"
        assert orders.receive(0).body == b"body 2"
        assert len(mapper.connections) == 1
    assert Opnum.R_GetServerPort not in queue.called()


@pytest.mark.requirement(
    "MQRR-3.2.4.3-01", "MQRR-3.2.4.3-02", "MQRR-3.2.4.4.1-01", "MQRR-3.2.4.4.1-02", "MQRR-3.2.4.4.1-04",
    "MQRR-3.2.4.4.1-05", "MQRR-3.1.4.7-22", "MQRR-3.1.4.7-24", "MQRR-3.1.4.7-25", "MQRR-3.2.4.4-01",
    "MQRR-3.1.4.7-16", "MQRR-3.1.4.9-03",
)  # fmt: skip
def test_peeking_and_receiving(queue: RemoteQueue) -> None:
    with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
        peeked = [orders.peek(timeout).body for timeout in (0, 2.5, None)]
        received = [orders.receive(timeout).body for timeout in (1.5, None)]
    assert (peeked, received) == ([b"body 1"] * 3, [b"body 1", b"body 2"])
    reads = queue.arguments(Opnum.R_StartReceive)
    first, second = reads[3:]
    assert [(read.ulAction, read.ulTimeout) for read in reads] == [
        (Action.MQ_ACTION_PEEK_CURRENT, 0),
        (Action.MQ_ACTION_PEEK_CURRENT, 2500),
        (Action.MQ_ACTION_PEEK_CURRENT, 0xFFFFFFFF),
        (Action.MQ_ACTION_RECEIVE, 1500),
        (Action.MQ_ACTION_RECEIVE, 0xFFFFFFFF),
    ]
    for read in reads:
        assert (read.hCursor, read.LookupId) == (0, 0)
        assert read.dwMaxBodySize == read.dwMaxCompoundMessageSize == 0x40_0000
    assert len({read.dwRequestId for read in reads}) == len(reads)
    ends = queue.arguments(Opnum.R_EndReceive)  # none for what was peeked at
    assert [(end.phContext, end.dwRequestId, end.dwAck) for end in ends] == [
        (arguments.phContext, arguments.dwRequestId, Acknowledge.RR_ACK) for arguments in (first, second)
    ]
    assert queue.bodies == [b"body 3"]


@pytest.mark.requirement("MQRR-3.2.4.4.1-05", "MQRR-3.2.4.3-02")
def test_the_properties_of_a_message() -> None:
    sequence = TxSequenceId(7, 1)
    made = message(
        9, b"\x01\x00", priority=0, body_type=17, application_tag=5, extension=b"ext",
        response=parse_format_name(r"DIRECT=OS:me\private$\answers"),
        transactional_message_sequence_identifier=sequence, transaction_sequence_number=1,
    )  # fmt: skip
    with (
        remote_queue(message(4, b"", priority=7), made) as queue,
        msmqwire.connect(NAME, rpc_port=queue.port) as orders,
    ):
        peeked, first, second = orders.peek(0), orders.receive(0), orders.receive(0)
    assert peeked == first
    # The lookup identifiers of the server, of which it tells seven bytes.
    assert (first.lookup_identifier, second.lookup_identifier) == (4, 9)
    assert (first.priority, first.body, first.transactional, second.transactional) == (7, b"", False, True)
    assert second.sent == datetime.fromtimestamp(SENT, UTC)
    assert first.arrived == second.arrived == datetime.fromtimestamp(ARRIVED, UTC)
    assert (second.time_to_reach_queue, second.time_to_be_received) == (3600, None)
    assert (second.body, second.body_type, second.application, second.extension) == (
        b"\x01\x00",
        17,
        5,
        b"ext",
    )
    assert (second.label, second.response_queue) == ("order 9", r"DIRECT=OS:me\PRIVATE$\answers")
    assert ReceivedMessage.from_json(second.to_json()) == second
    assert ReceivedMessage.from_json(first.to_json()) == first


@pytest.mark.requirement(
    "MQRR-3.2.1-02", "MQRR-3.2.4.8-01", "MQRR-3.2.4.9-01", "MQRR-3.2.4.10-01", "MQRR-3.2.4.10.1-01",
    "MQRR-3.2.4.10.1-02", "MQRR-3.2.4.10.1-03", "MQRR-3.2.4.12-02", "MQRR-3.1.4.7-15",
)  # fmt: skip
def test_cursors(queue: RemoteQueue) -> None:
    with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
        with orders.cursor() as cursor, orders.cursor() as other:
            assert (cursor.peek(0).body, cursor.peek_next(2.5).body) == (b"body 1", b"body 2")
            assert other.peek(0).body == b"body 1"
            second = cursor.receive(1.5)
            assert (second.body, second.arrived) == (b"body 2", datetime.fromtimestamp(ARRIVED, UTC))
            assert second.lookup_identifier == 4 << 56 | 2
            assert [taken.body for taken in cursor] == [b"body 3"]
        with pytest.raises(QueueError) as closed:
            cursor.peek(0)
    assert closed.value.name == "MQ_ERROR_INVALID_HANDLE"
    reads = queue.arguments(Opnum.R_StartReceive)
    assert [(read.hCursor, Action(read.ulAction).name, read.ulTimeout) for read in reads] == [
        (1, "MQ_ACTION_PEEK_CURRENT", 0),
        (1, "MQ_ACTION_PEEK_NEXT", 2_500),
        (2, "MQ_ACTION_PEEK_CURRENT", 0),
        (1, "MQ_ACTION_RECEIVE", 1_500),
        (1, "MQ_ACTION_PEEK_CURRENT", 0),
        (1, "MQ_ACTION_PEEK_NEXT", 0),
    ]
    assert all(read.LookupId == 0 for read in reads)
    assert len({read.dwRequestId for read in reads}) == len(reads)
    (end,) = queue.arguments(Opnum.R_EndReceive)
    assert (end.phContext, end.dwRequestId, end.dwAck) == (
        reads[3].phContext,
        reads[3].dwRequestId,
        Acknowledge.RR_ACK,
    )
    assert [arguments.hCursor for arguments in queue.arguments(Opnum.R_CloseCursor)] == [2, 1]
    assert (queue.cursors, queue.breaches) == ({}, [])


def test_a_cursor_of_who_may_only_look(queue: RemoteQueue) -> None:
    queue.rights = (Access.PEEK_ACCESS,)
    with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
        with orders.cursor() as cursor:
            assert [found.body for found in cursor] == [b"body 1", b"body 2", b"body 3"]
        with pytest.raises(QueueError) as denied:
            orders.receive(0)
        assert denied.value.name == "MQ_ERROR_ACCESS_DENIED"
        queue.rights = tuple(Access)
        assert orders.receive(0).body == b"body 1"  # a refusal is not remembered


@pytest.mark.requirement(
    "MQRR-3.1.4.7-13", "MQRR-3.1.4.7-14", "MQRR-3.1.4.7-20", "MQRR-3.1.4.7-21", "MQRR-3.1.4.7-22",
    "MQRR-3.1.4.7-23", "MQRR-3.2.4.3-01", "MQRR-3.2.4.4.1-01",
)  # fmt: skip
def test_by_lookup_identifier(queue: RemoteQueue) -> None:
    with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
        first = orders.peek(0).lookup_identifier
        second = orders.peek_by_lookup(first, "next")
        assert second.body == b"body 2"
        assert orders.peek_by_lookup(second.lookup_identifier, "previous").body == b"body 1"
        assert orders.receive_by_lookup(second.lookup_identifier).body == b"body 2"
        assert orders.receive_by_lookup(first, "next").body == b"body 3"
        with pytest.raises(QueueError) as missing:
            orders.receive_by_lookup(first, "next")
        called = len(queue.calls)
        with pytest.raises(InvalidValue, match="not a lookup identifier"):
            orders.receive_by_lookup(0)
        assert len(queue.calls) == called
    assert missing.value.name == "MQ_ERROR_MESSAGE_NOT_FOUND"
    reads = queue.arguments(Opnum.R_StartReceive)[1:]
    assert len({read.dwRequestId for read in reads}) == len(reads)
    assert [Action(read.ulAction).name.removeprefix("MQ_LOOKUP_") for read in reads] == [
        "PEEK_CURRENT", "PEEK_NEXT", "PEEK_CURRENT", "PEEK_PREV", "RECEIVE_CURRENT", "PEEK_CURRENT",
        "RECEIVE_NEXT", "PEEK_CURRENT", "RECEIVE_NEXT",
    ]  # fmt: skip
    assert all((read.hCursor, read.ulTimeout) == (0, 0) for read in reads)
    assert [read.LookupId for read in reads] == [4 << 56 | number for number in (1, 1, 2, 2, 2, 1, 1, 1, 1)]
    assert queue.bodies == [b"body 1"]


@pytest.mark.requirement("MQRR-3.1.4.7-13", "MQRR-3.1.4.7-21")
def test_receiving_the_one_before_a_lookup_identifier(queue: RemoteQueue) -> None:
    with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
        second = orders.peek_by_lookup(orders.peek(0).lookup_identifier, "next").lookup_identifier
        assert orders.receive_by_lookup(second, "previous").body == b"body 1"
    read = queue.arguments(Opnum.R_StartReceive)[-1]
    assert Action(read.ulAction) is Action.MQ_LOOKUP_RECEIVE_PREV
    assert (read.LookupId, read.hCursor, read.ulTimeout) == (second, 0, 0)
    assert queue.bodies == [b"body 2", b"body 3"]


@pytest.mark.requirement("MQRR-3.1.4.7-20", "MQRR-3.1.4.7-21")
def test_lookups_at_a_server_with_another_priority_order() -> None:
    """Its lookup identifiers order priorities in another way."""
    # By the letter of [MS-MQDMPR] 3.1.7.1.9 the priority is part of those of transactional messages alone.
    plain, transactional = (
        message(1),
        message(
            2,
            priority=0,
            transactional_message_sequence_identifier=TxSequenceId(7, 1),
            transaction_sequence_number=1,
        ),
    )
    plain.lookup_identifier, transactional.lookup_identifier = 1, 7 << 56 | 2
    with remote_queue(plain, transactional) as queue, msmqwire.connect(NAME, rpc_port=queue.port) as orders:
        with orders.cursor() as cursor:
            found = [each.lookup_identifier for each in cursor]
        # The server has a neighbour for each number, whether or not a message has it.
        queue.by_order = True
        assert orders.peek_by_lookup(found[0], "next").body == b"body 2"
        assert orders.peek_by_lookup(found[1], "previous").body == b"body 1"
        with pytest.raises(QueueError, match="no such message"):
            orders.receive_by_lookup(99, "next")
        orders.move(found[1], r"private$\orders;done")
        assert orders.receive_by_lookup(found[0]).body == b"body 1"
    assert queue.bodies == []


@pytest.mark.requirement("MQRR-3.2.4.7-01")
def test_purging(queue: RemoteQueue) -> None:
    with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
        orders.purge()
    assert (queue.bodies, queue.breaches) == ([], [])


@pytest.mark.requirement(
    "MQRR-3.2.4.6-02",
    "MQRR-3.2.4.6-03",
    "MQRR-3.1.4.10-06",
    "MQRR-3.1.4.11-04",
    "MQRR-3.1.4.11-05",
    "MQRR-3.1.4.11-03",
    "MQRR-3.1.4.10-07",
    "MQRR-3.1.4.11-06",
    "MQRR-3.1.4.11-09",
    "MQRR-3.1.4.11-10",
    "MQRR-3.1.4.11-12",
)
def test_moving(queue: RemoteQueue) -> None:
    with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
        orders.move(orders.peek(0), r"private$\orders;poison")
        orders.move(orders.peek(0), rf"{NAME};done")
        for elsewhere, error in ((r"other\private$\orders;x", InvalidValue), (7, InvalidValue)):
            with pytest.raises(error):
                orders.move(1, elsewhere)  # type: ignore[arg-type]
        with pytest.raises(QueueError) as missing:
            orders.move(99, r"private$\orders;poison")
    assert missing.value.name == "MQ_ERROR_MESSAGE_NOT_FOUND"
    assert queue.moved == [(1, f"{ORDERS};poison"), (2, f"{ORDERS};done")]
    opening = queue.arguments(Opnum.R_OpenQueueForMove)[0]
    assert (opening.dwAccess, opening.dwShareMode, opening.pQueueFormat.m_qft) == (
        Access.MQ_MOVE_ACCESS,
        ShareMode.MQ_DENY_NONE,
        8,
    )
    assert (opening.Major, opening.Minor, opening.BuildNumber) == VERSION
    assert opening.pClientId == queue.arguments(Opnum.R_OpenQueue)[0].pClientId != UUID(int=0)
    assert (opening.fNonRoutingServer, opening.fWorkgroup) == (1, 1)
    assert all(bytes(call.pTransactionId.rgb) == bytes(16) for call in queue.arguments(Opnum.R_MoveMessage))
    assert queue.opened == {}  # the destinations are closed, too


@pytest.mark.requirement("MQRR-3.1.4.10-03")
@pytest.mark.parametrize("name", [NAME, rf"{NAME};poison"])
def test_a_message_is_moved_within_a_queue_and_its_subqueues(queue: RemoteQueue, name: str) -> None:
    unrelated = (
        r"private$\others", r"private$\others;poison", r"orders;poison", r"private$\orders;journal",
        r"system$;deadletter", r"DIRECT=TCP:127.0.0.1\private$\others", r"DIRECT=OS:here\orders;poison",
    )  # fmt: skip
    related = (r"PRIVATE$\Orders;done", NAME, r"DIRECT=OS:localhost\private$\orders;other")
    with msmqwire.connect(name, rpc_port=queue.port) as orders:
        for to in unrelated:
            with pytest.raises(InvalidValue) as caught:
                orders.move(1, to)
            assert caught.value.path == "to"
        assert queue.calls == []
        for to in related:
            orders.move(orders.peek(0), to)
    assert [number for number, _ in queue.moved] == [1, 2, 3]


@pytest.mark.requirement("MQRR-3.2.4.11-01", "MQRR-3.2.4.12-01", "MQRR-3.2.4.13-01")
def test_reads_that_wait_are_cancelled() -> None:
    async def scenario(queue: RemoteQueue) -> None:
        async with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
            alone, closing = asyncio.create_task(orders.receive()), asyncio.create_task(orders.peek(60))
            async with orders.cursor() as cursor:
                by_cursor = asyncio.create_task(cursor.peek())
                await waiting(queue, 3)
                alone.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await alone
                await waiting(queue, 2)
            with pytest.raises(QueueError) as of_cursor:
                await by_cursor
            assert list(queue.called()[-2:]) == [Opnum.R_CancelReceive, Opnum.R_CloseCursor]
            async with orders.cursor():
                await orders.close()
            ends = Opnum.R_CancelReceive, Opnum.R_CloseCursor, Opnum.R_CloseQueue
            assert queue.called(*ends)[-3:] == [*ends]
            with pytest.raises(QueueError) as of_queue:
                await closing
            assert of_cursor.value.name == of_queue.value.name == "MQ_ERROR_OPERATION_CANCELLED"
            assert queue.opened == {}

    with remote_queue() as queue:
        asyncio.run(scenario(queue))
        reads = {read.dwRequestId: read.phContext for read in queue.arguments(Opnum.R_StartReceive)}
        cancels = {read.dwRequestId: read.phContext for read in queue.arguments(Opnum.R_CancelReceive)}
        assert cancels == reads
        assert queue.waiting == {}


async def waiting(queue: RemoteQueue, count: int) -> None:
    """Wait until so many reads wait."""
    await happens(lambda: len(queue.waiting) == count, f"{count} reads wait")


def test_many_receives_wait_on_one_connection() -> None:
    async def scenario(queue: RemoteQueue) -> None:
        async with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
            reads = [asyncio.create_task(orders.receive()) for _ in range(READS_MAX)]
            await waiting(queue, READS_MAX)
            with pytest.raises(QueueError) as too_many:
                await orders.receive()
            assert too_many.value.name == "MQ_ERROR_INSUFFICIENT_RESOURCES"
            await orders.close()
            ends = await asyncio.gather(*reads, return_exceptions=True)
        assert {end.name for end in ends if isinstance(end, QueueError)} == {"MQ_ERROR_OPERATION_CANCELLED"}
        assert len(ends) == READS_MAX

    with remote_queue() as queue:
        asyncio.run(scenario(queue))
        assert len(server_of(queue).connections) == 1


def test_a_message_is_acknowledged_when_its_block_is_left(queue: RemoteQueue) -> None:
    with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
        with orders.receiving(0) as taken:
            assert taken.body == b"body 1"
            assert Opnum.R_EndReceive not in queue.called()
        with pytest.raises(ZeroDivisionError), orders.receiving(0):
            raise ZeroDivisionError
    assert [end.dwAck for end in queue.arguments(Opnum.R_EndReceive)] == [
        Acknowledge.RR_ACK,
        Acknowledge.RR_NACK,
    ]
    assert queue.bodies == [b"body 2", b"body 3"]


@pytest.mark.requirement(
    "MQRR-3.2.4.2-01", "MQRR-3.2.4.2-02", "MQRR-3.2.4.4.2-01", "MQRR-3.2.4.4.2-02", "MQRR-3.2.4.4.2-04",
    "MQRR-3.2.4.4.2-05", "MQRR-3.2.4.6-01", "MQRR-3.2.4.10.2-01", "MQRR-3.2.4.10.2-02", "MQRR-2.2.8-02",
    "MQRR-3.1.4.10-07", "MQRR-3.1.4.12-04", "MQRR-3.1.4.12-05", "MQRR-3.1.4.12-07", "MQRR-3.1.4.12-08",
    "MQRR-3.1.4.13-16", "MQRR-3.1.4.13-18", "MQRR-3.2.4.4-01", "MQRR-3.2.4.10-01", "MQRR-3.1.4.13-10",
    "MQRR-3.1.4.13-11", "MQRR-3.1.4.13-12", "MQRR-3.1.4.13-14", "MQRR-3.1.4.9-02",
)  # fmt: skip
def test_transactions_of_a_coordinator(queue: RemoteQueue) -> None:
    async def scenario() -> None:
        reading = reading_of(queue)
        read = Read(Action.MQ_ACTION_RECEIVE, 0, transaction=TX)
        by_cursor = read._replace(cursor=1)
        for refused in (
            reading.start(1, read), reading.start(2, by_cursor), reading.move(1, r"private$\orders;x", TX)
        ):  # fmt: skip
            with pytest.raises(QueueError) as unknown:
                await refused
            assert unknown.value.name == "MQ_ERROR_TRANSACTION_ENLIST"
            assert "needs a coordinator (MS DTC) on both: read the queue without" in str(unknown.value)
        assert queue.calls == []
        await reading.enlist(TX, b"token")
        for action in Action:
            if not action.receives:
                with pytest.raises(QueueError) as usage:
                    await reading.start(1, read._replace(action=action))
                assert usage.value.name == "MQ_ERROR_TRANSACTION_USAGE"
        cursor = await reading.open_cursor()
        assert (await reading.start(5, read)).body == b"body 1"
        assert (await reading.start(6, read._replace(cursor=cursor, timeout_ms=1_500))).body == b"body 2"
        by_lookup = read._replace(action=Action.MQ_LOOKUP_RECEIVE_CURRENT, lookup_identifier=4 << 56 | 4)
        assert (await reading.start(7, by_lookup)).body == b"body 4"
        for request in (5, 6, 7):
            await reading.end(request, acknowledge=True)
        await reading.move(4 << 56 | 3, r"private$\orders;x", TX)
        await reading.close()

    queue.messages.append(message(4))
    asyncio.run(scenario())
    assert queue.enlisted == [(TX, b"token")]
    (enlisting,), (opening,) = (
        queue.arguments(opnum) for opnum in (Opnum.R_QMEnlistRemoteTransaction, Opnum.R_OpenQueue)
    )
    assert (enlisting.pQueueFormat.m_qft, enlisting.pQueueFormat.arm) == (3, opening.pQueueFormat.arm)
    starts = queue.arguments(Opnum.R_StartTransactionalReceive)
    assert {bytes(call.pTransactionId.rgb) for call in starts} == {TX.bytes_le}
    assert [(call.hCursor, call.LookupId, call.ulTimeout, call.ulAction) for call in starts] == [
        (0, 0, 0, Action.MQ_ACTION_RECEIVE),
        (1, 0, 1_500, Action.MQ_ACTION_RECEIVE),
        (0, 4 << 56 | 4, 0, Action.MQ_LOOKUP_RECEIVE_CURRENT),
    ]
    assert {call.dwMaxBodySize for call in starts} == {0x40_0000}
    assert {call.dwMaxCompoundMessageSize for call in starts} == {0x40_0000}
    ends = queue.arguments(Opnum.R_EndTransactionalReceive)
    assert [(end.phContext, end.dwRequestId, end.dwAck) for end in ends] == [
        (call.phContext, number, Acknowledge.RR_ACK) for call, number in zip(starts, (5, 6, 7), strict=True)
    ]
    assert bytes(queue.arguments(Opnum.R_MoveMessage)[0].pTransactionId.rgb) == TX.bytes_le
    assert Opnum.R_EndReceive not in queue.called()


def test_transactions_are_not_remembered_for_ever(
    queue: RemoteQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_reading, "ENLISTED_MAX", 2)

    async def scenario() -> None:
        reading = reading_of(queue)
        for number in (1, 2, 3, 2):
            await reading.enlist(UUID(int=number), b"token")
        with pytest.raises(QueueError, match="needs a coordinator"):
            await reading.start(5, Read(Action.MQ_ACTION_RECEIVE, transaction=UUID(int=1)))
        for number in (2, 3):
            await reading.start(number, Read(Action.MQ_ACTION_RECEIVE, transaction=UUID(int=number)))
        await reading.close()

    asyncio.run(scenario())


@pytest.mark.requirement("MQRR-3.1.4.13-07")
def test_a_transactional_receive_is_ended_or_cancelled(queue: RemoteQueue) -> None:
    async def scenario() -> None:
        reading = reading_of(queue)
        await reading.enlist(TX, b"token")
        read = Read(Action.MQ_ACTION_RECEIVE, transaction=TX)
        for number in (6, 7, 8):
            await reading.start(number, read)
            await reading.end(number, acknowledge=number != 7)  # 8 has what 7 has given back
        await reading.start(9, read)
        waits = asyncio.create_task(reading.start(10, read))
        await waiting(queue, 1)
        await reading.cancel(10)
        with pytest.raises(QueueError, match="cancelled"):
            await waits
        await reading.end(9, acknowledge=True)
        await reading.close()

    asyncio.run(scenario())
    starts = queue.arguments(Opnum.R_StartTransactionalReceive)
    ends, cancels = (
        queue.arguments(opnum) for opnum in (Opnum.R_EndTransactionalReceive, Opnum.R_CancelReceive)
    )
    assert [call.dwRequestId for call in starts] == [6, 7, 8, 9, 10]
    assert [call.dwRequestId for call in ends] == [6, 7, 8, 9]
    assert [call.dwRequestId for call in cancels] == [10]
    assert Opnum.R_EndReceive not in queue.called()
    assert len({call.phContext for call in (*starts, *ends, *cancels)}) == 1


def test_a_program_has_no_coordinator(queue: RemoteQueue) -> None:
    async def scenario() -> None:
        async with msmqwire.connect(NAME, rpc_port=queue.port) as orders, orders.transaction() as unit:
            await orders.receive(0, transaction=unit)

    assert refusal(scenario()) == "MQ_ERROR_TRANSACTION_ENLIST"
    assert queue.bodies == [b"body 1", b"body 2", b"body 3"]


@pytest.mark.requirement(
    "MQRR-2.2.4-01", "MQRR-2.2.4-02", "MQRR-3.1.4.3-02", "MQRR-3.1.4.4-02", "MQRR-3.1.4.5-02",
    "MQRR-3.1.4.5-03",
    "MQRR-3.1.4.6-02", "MQRR-3.1.4.7-06", "MQRR-3.1.4.7-11", "MQRR-3.1.4.7-23", "MQRR-3.1.4.8-03",
    "MQRR-3.1.4.9-02", "MQRR-3.1.4.9-03", "MQRR-3.1.4.10-04", "MQRR-3.1.4.10-05", "MQRR-3.1.4.11-02",
    "MQRR-4.2-01", "MQRR-3.1.4-04",
)  # fmt: skip
def test_handles_cursors_and_requests_are_used_as_they_must_be(queue: RemoteQueue) -> None:
    async def scenario() -> None:
        async with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
            await orders.peek(0)
            async with orders.cursor() as cursor, orders.receiving(0):
                await cursor.peek(0)
                await orders.move(await orders.peek(0), r"private$\orders;poison")
            for _ in range(2):  # the second time with new handles
                await orders.receive_by_lookup((await orders.peek(0)).lookup_identifier)
                await orders.purge()
                waits = asyncio.create_task(orders.receive())
                await waiting(queue, 1)
                waits.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waits
                await waiting(queue, 0)
                await orders.close()
                queue.messages.append(message(9))

    asyncio.run(scenario())
    assert queue.breaches == []
    assert Opnum.Opnum1NotUsedOnWire not in queue.called()
    assert (queue.opened, queue.cursors, queue.locked, queue.waiting) == ({}, {}, {}, {})
    starts = [
        call.dwRequestId for call in queue.arguments(Opnum.R_StartReceive) if Action(call.ulAction).receives
    ]
    ends = queue.arguments(Opnum.R_EndReceive) + queue.arguments(Opnum.R_CancelReceive)
    assert sorted(starts) == sorted(end.dwRequestId for end in ends)
    assert len(queue.arguments(Opnum.R_OpenQueue)) == 4


@pytest.mark.requirement("MQRR-3.2.4.5-01", "MQRR-3.1.4.14-04", "MQRR-3.1.4.14-05")
def test_rejecting(queue: RemoteQueue) -> None:
    async def scenario() -> int:
        reading = reading_of(queue)
        await reading.start(1, Read(Action.MQ_ACTION_PEEK_CURRENT, 0))
        await reading.enlist(TX, b"token")
        received = await reading.start(2, Read(Action.MQ_ACTION_RECEIVE, 0, transaction=TX))
        await reading.end(2, acknowledge=True)
        await reading.reject(received.lookup_identifier)
        await reading.close()
        return received.lookup_identifier

    identifier = asyncio.run(scenario())
    (call,) = queue.arguments(Opnum.R_SetUserAcknowledgementClass)
    assert (call.LookupId, call.usClass) == (identifier, 0xC004)
    assert identifier == 4 << 56 | 1
    assert queue.accesses[call.phContext] == Access.RECEIVE_ACCESS
    assert queue.breaches == []


@pytest.mark.requirement(
    "MQRR-3.1.4.13-09", "MQRR-3.1.4.13-15", "MQRR-3.1.4.15-02", "MQRR-3.1.4.15-03", "MQRR-3.2.4.4.2-05"
)
def test_receives_of_a_transaction_at_the_same_time(queue: RemoteQueue) -> None:
    async def scenario() -> list[ReceivedMessage]:
        async with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
            reading, unit = orders._reading, SimpleNamespace(identifier=TX)
            assert isinstance(reading, RemoteReading)
            await orders.peek(0)
            await reading.enlist(TX, b"token")
            transaction = Transactional(orders._sending, unit)  # type: ignore[arg-type]
            return await asyncio.gather(*(orders.receive(0, transaction=transaction) for _ in range(3)))

    received = asyncio.run(scenario())
    assert sorted(each.body for each in received) == [b"body 1", b"body 2", b"body 3"]
    starts = queue.arguments(Opnum.R_StartTransactionalReceive)
    ends = queue.arguments(Opnum.R_EndTransactionalReceive)
    assert len({call.dwRequestId for call in starts}) == 3
    assert {(call.phContext, call.dwRequestId) for call in starts} == {
        (call.phContext, call.dwRequestId) for call in ends
    }
    assert [call.dwAck for call in ends] == [Acknowledge.RR_ACK] * 3
    assert {queue.accesses[call.phContext] for call in starts} == {Access.RECEIVE_ACCESS}
    assert (queue.breaches, queue.bodies) == ([], [])


def test_what_is_refused_has_its_name(queue: RemoteQueue) -> None:
    async def received_of(name: str) -> None:
        async with msmqwire.connect(name, rpc_port=queue.port) as orders:
            await orders.receive(0)

    assert refusal(received_of(r"DIRECT=TCP:127.0.0.1\private$\nothing")) == "MQ_ERROR_QUEUE_NOT_FOUND"
    lying = {**received(queue.messages[0], 1 << 22), "status": int(HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED)}
    queue.twists[Opnum.R_StartReceive] = lambda honest, arguments: lying
    assert refusal(received_of(NAME)) == "MQ_ERROR_MESSAGE_ALREADY_RECEIVED"
    queue.twists[Opnum.R_StartReceive] = lambda honest, arguments: {
        "status": int(HResult.MQ_ERROR_IO_TIMEOUT)
    }
    with pytest.raises(ReadTimeout):
        asyncio.run(received_of(NAME))
    assert Opnum.R_EndReceive not in queue.called()


@pytest.mark.requirement("MQRR-3.2.4.4.1-03", "MQRR-3.2.4.4.2-03", "MQRR-3.2.4.10.1-02", "MQRR-3.1.4.7-32")
@pytest.mark.parametrize("by_cursor", [False, True])
@pytest.mark.parametrize("transaction", [None, TX])
def test_a_message_that_can_not_be_read_is_given_back(
    queue: RemoteQueue, transaction: UUID | None, by_cursor: bool
) -> None:
    def cut(honest: Callable[[], Any], arguments: Any) -> Any:
        honest()
        return received(message(1), 3)

    async def scenario() -> None:
        reading = reading_of(queue)
        if transaction is not None:
            await reading.enlist(transaction, b"")
        cursor = await reading.open_cursor() if by_cursor else 0
        with pytest.raises(MalformedPacket, match="3 bytes of the body came"):
            await reading.start(8, Read(Action.MQ_ACTION_RECEIVE, 0, cursor=cursor, transaction=transaction))
        await reading.close()

    opnum = Opnum.R_StartReceive if transaction is None else Opnum.R_StartTransactionalReceive
    ending = Opnum.R_EndReceive if transaction is None else Opnum.R_EndTransactionalReceive
    queue.twists[opnum] = cut
    asyncio.run(scenario())
    (end,) = queue.arguments(ending)
    assert (end.dwRequestId, end.dwAck) == (8, Acknowledge.RR_NACK)
    assert queue.bodies == [b"body 1", b"body 2", b"body 3"]


@pytest.mark.requirement("MQRR-3.2.4.4.2-06", "MQRR-3.2.4.10.2-03", "MQRR-3.2.4.4.1-06", "MQRR-3.2.4.10.1-04")
def test_a_failed_end_is_reported(queue: RemoteQueue) -> None:
    status = int(HResult.MQ_ERROR_MESSAGE_NOT_FOUND)
    for opnum in (Opnum.R_EndReceive, Opnum.R_EndTransactionalReceive):
        queue.twists[opnum] = lambda honest, arguments: {"status": status}

    async def scenario() -> None:
        reading = reading_of(queue)
        await reading.enlist(TX, b"")
        read = Read(Action.MQ_ACTION_RECEIVE, 0, transaction=TX)
        await reading.start(1, read)
        cursor = await reading.open_cursor()
        await reading.start(2, read._replace(cursor=cursor))
        for request in (1, 2):
            with pytest.raises(QueueError) as caught:
                await reading.end(request, acknowledge=True)
            assert caught.value.name == "MQ_ERROR_MESSAGE_NOT_FOUND"
        async with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
            with pytest.raises(QueueError):
                await orders.receive(0)
            async with orders.cursor() as by_cursor:
                with pytest.raises(QueueError):
                    await by_cursor.receive(0)
        await reading.close()

    asyncio.run(scenario())


def test_what_can_not_be_read_remotely() -> None:
    async def read(name: str) -> None:
        async with msmqwire.connect(name) as queue:
            assert isinstance(queue, Queue)
            await queue.receive(0)

    for name in (r"DIRECT=HTTP://127.0.0.1:9/msmq/private$/q", f"{NAME},{NAME};x"):
        assert refusal(read(name)) == "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"


def test_a_journal_can_be_read_and_not_sent_to(queue: RemoteQueue) -> None:
    with msmqwire.connect(rf"{NAME};journal", rpc_port=queue.port) as journal:
        assert journal.receive(0).body == b"body 1"
        for refused in (lambda: journal.send(b""), lambda: journal.send(b"", transactional=True)):
            with pytest.raises(QueueError, match="it can be read only") as caught:
                refused()
            assert caught.value.name == "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"
    assert queue.arguments(Opnum.R_OpenQueue)[0].pQueueFormat.m_SuffixAndFlags == 0x81


@pytest.mark.parametrize("options, path", [
    ({"rpc_port": 0}, "rpc_port"), ({"endpoint_mapper": 65536}, "endpoint_mapper"), ({"user": 7}, "user"),
    ({"user": "HOME\\anne"}, "password"), ({"password": "x"}, "user"), ({"auth": "much"}, "auth"),
    ({"auth": "privacy"}, "user"), ({"auth": []}, "auth"),
])  # fmt: skip
def test_wrong_options(options: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        msmqwire.connect(NAME, **options)
    assert caught.value.path == path
