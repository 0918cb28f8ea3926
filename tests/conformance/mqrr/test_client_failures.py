"""The client of remote read, and servers that fail or lack something: [MS-MQRR] 3.1.4 and 3.2."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

import pytest

import msmqwire
from msmqwire.constants import HResult
from msmqwire.constants.ntstatus import NtStatus
from msmqwire.errors import QueueError, RpcFault, RpcRefused
from msmqwire.names import DirectName, parse_format_name
from msmqwire.qm.client.reading import Read, new_request
from msmqwire.qm.client.remote_options import RemoteOptions
from msmqwire.qm.client.remote_reading import RemoteReading
from msmqwire.remote_read.constants import Action, Opnum
from msmqwire.rpc.constants import FaultStatus
from msmqwire.rpc.endpoint_mapper import ENDPOINT_MAPPER, ENDPOINT_MAPPER_METHODS, EndpointMapper
from tests.support.codec_checks import proving, requirement
from tests.support.patience import happens
from tests.support.rpc.remote_read_server import NAME, RemoteQueue, message, remote_queue, server_of
from tests.support.rpc.rpc_server import map_endpoints, rpc_server

TX = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
SUBQUEUE = r"private$\orders;x"
RECEIVE = Read(Action.MQ_ACTION_RECEIVE, 0)
NO_CURSOR = 9
Deed = Callable[[RemoteReading], Awaitable[None]]
"""What leads to a call of a method."""
VENDORS = 0xE0000007
"""A failure that a vendor has defined: with the C bit."""
CODES = (
    HResult.MQ_ERROR_INVALID_PARAMETER, HResult.MQ_ERROR_MESSAGE_NOT_FOUND, HResult.MQ_ERROR_ACCESS_DENIED,
    NtStatus.STATUS_NOT_FOUND, 0x80004005, VENDORS,
)  # fmt: skip


@pytest.fixture
def queue() -> Any:
    """A server with three messages."""
    with remote_queue(message(1), message(2), message(3)) as queue:
        yield queue


def reading_of(queue: RemoteQueue) -> RemoteReading:
    """The client of a queue, below what programs use."""
    direct = parse_format_name(NAME)
    assert isinstance(direct, DirectName)
    return RemoteReading(direct, RemoteOptions("127.0.0.1", queue.port))


# -- failures --------------------------------------------------------------------------------------------


async def open_cursor(reading: RemoteReading) -> None:
    try:
        await reading.open_cursor()
    except QueueError:
        with pytest.raises(QueueError, match="the cursor is closed"):
            await reading.close_cursor(NO_CURSOR)
        raise


async def close_cursor(reading: RemoteReading) -> None:
    await reading.close_cursor(await reading.open_cursor())


async def receive(reading: RemoteReading) -> None:
    await reading.start(number := new_request(), RECEIVE)
    await reading.end(number, acknowledge=True)


async def enlist(reading: RemoteReading) -> None:
    try:
        await reading.enlist(TX, b"token")
    except QueueError:
        with pytest.raises(QueueError) as unknown:
            await reading.start(5, RECEIVE._replace(transaction=TX))
        assert unknown.value.name == "MQ_ERROR_TRANSACTION_ENLIST"
        raise


async def receive_in_transaction(reading: RemoteReading) -> None:
    await reading.enlist(TX, b"token")
    await reading.start(number := new_request(), RECEIVE._replace(transaction=TX))
    await reading.end(number, acknowledge=True)


async def cancel(reading: RemoteReading) -> None:
    waits = asyncio.create_task(reading.start(5, RECEIVE._replace(timeout_ms=60_000)))
    while reading._pending.get(5) is None or reading._pending[5].call is None:
        await asyncio.sleep(0)
    await reading.cancel(5)
    with pytest.raises(QueueError) as caught:
        await waits
    assert caught.value.name == "MQ_ERROR_OPERATION_CANCELLED"


async def close(reading: RemoteReading) -> None:
    await reading.purge()
    await reading.close()


async def move(reading: RemoteReading) -> None:
    await reading.move(1, SUBQUEUE, None)


async def reject(reading: RemoteReading) -> None:
    await reading.reject(7)


async def conducts(
    queue: RemoteQueue, opnum: Opnum, deed: Deed, codes: Iterable[int], answer: Callable[[int], Any]
) -> list[tuple[list[int], int | None]]:
    """What new clients call to do something, and the codes with which that fails if a method does."""
    done = []
    for failure in codes:
        queue.calls.clear()
        queue.twists[opnum] = partial(failing, answer(failure))
        reading, code = reading_of(queue), None
        try:
            await deed(reading)
        except QueueError as exc:
            code = exc.hresult
        done.append(([int(called) for called in queue.called()], code))
        await reading.close()
    return done


def failing(answer: Any, honest: Callable[[], Any], arguments: Any) -> Any:
    """A method that does what it should, and says that it has failed."""
    honest()
    return answer


@pytest.mark.parametrize(
    "opnum, deed, calls",
    [
        proving(Opnum.R_CreateCursor, open_cursor, [2, 4], ids="MQRR-3.1.4.4-05"),
        proving(Opnum.R_CloseCursor, close_cursor, [2, 4, 5], ids="MQRR-3.1.4.5-06"),
        proving(Opnum.R_PurgeQueue, RemoteReading.purge, [2, 6], ids="MQRR-3.1.4.6-06"),
        proving(Opnum.R_EndReceive, receive, [2, 7, 9], ids="MQRR-3.1.4.9-13"),
        proving(Opnum.R_QMEnlistRemoteTransaction, enlist, [12], ids="MQRR-3.1.4.12-11"),
        proving(Opnum.R_SetUserAcknowledgementClass, reject, [2, 14], ids="MQRR-3.1.4.14-11"),
        proving(
            Opnum.R_EndTransactionalReceive, receive_in_transaction, [12, 2, 13, 15], ids="MQRR-3.1.4.15-13"
        ),
    ],
)
@requirement("MQRR-2.2.1-01")
def test_all_failures_of_a_method_are_reported_alike(
    queue: RemoteQueue, opnum: Opnum, deed: Deed, calls: list[int]
) -> None:
    queue.messages += [message(number) for number in range(4, 20)]
    outputs = {"phCursor": NO_CURSOR} if opnum == Opnum.R_CreateCursor else {}
    done = asyncio.run(conducts(queue, opnum, deed, CODES, lambda code: {**outputs, "status": int(code)}))
    assert done == [(calls, code) for code in CODES]


@pytest.mark.parametrize(
    "opnum, deed, calls",
    [
        proving(Opnum.R_OpenQueue, RemoteReading.purge, [2], ids="MQRR-3.1.4.2-23", name="queue"),
        proving(Opnum.R_OpenQueue, open_cursor, [2, 2], ids="MQRR-3.1.4.2-23", name="queue of a cursor"),
        proving(Opnum.R_OpenQueueForMove, move, [2, 11], ids="MQRR-3.1.4.11-19", name="destination"),
    ],
)
def test_all_failures_to_open_are_reported_alike(
    queue: RemoteQueue, opnum: Opnum, deed: Deed, calls: list[int]
) -> None:
    """A cursor is opened to peek if its queue can't be opened to receive, whatever the reason is."""
    codes = [code for code in CODES if code >> 16 == 0xC00E]
    done = asyncio.run(conducts(queue, opnum, deed, codes, int))
    assert done == [(calls, code) for code in codes]
    assert queue.moved == []


@pytest.mark.parametrize(
    "opnum, deed, calls",
    [
        proving(Opnum.R_CloseQueue, close, [2, 6, 3], ids="MQRR-3.1.4.3-08"),
        proving(Opnum.R_CancelReceive, cancel, [2, 7, 8], ids="MQRR-3.1.4.8-10"),
    ],
)
def test_all_failures_to_close_or_cancel_are_nothing(opnum: Opnum, deed: Deed, calls: list[int]) -> None:
    with remote_queue() as queue:
        done = asyncio.run(conducts(queue, opnum, deed, CODES, lambda code: {"status": int(code)}))
    assert done == [(calls, None)] * len(CODES)


@requirement("MQRR-1.8-01")
def test_failures_of_vendors_have_the_customer_bit(queue: RemoteQueue) -> None:
    customers = 0x20000000
    assert not [code for code in (*HResult, *NtStatus) if code & customers]
    assert VENDORS & customers
    queue.twists[Opnum.R_PurgeQueue] = lambda honest, arguments: {"status": VENDORS}
    with msmqwire.connect(NAME, rpc_port=queue.port) as orders, pytest.raises(QueueError) as caught:
        orders.purge()
    assert (caught.value.hresult, caught.value.name) == (VENDORS, "0xE0000007")


# -- servers that lack something -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "opnum, deed",
    [
        proving(Opnum.R_MoveMessage, move, ids="MQRR-3.1.4.10-02"),
        (Opnum.R_OpenQueueForMove, move),
        (Opnum.R_QMEnlistRemoteTransaction, enlist),
        proving(Opnum.R_StartTransactionalReceive, receive_in_transaction, ids="MQRR-3.1.4.13-06"),
        proving(Opnum.R_SetUserAcknowledgementClass, reject, ids="MQRR-3.1.4.14-02"),
        (Opnum.R_EndTransactionalReceive, receive_in_transaction),
    ],
)
@requirement("MQRR-1.7-01")
def test_a_method_that_the_server_lacks(queue: RemoteQueue, opnum: Opnum, deed: Deed) -> None:
    """As Windows Server 2003 does: what it has goes on."""

    async def scenario() -> None:
        reading = reading_of(queue)
        for _ in range(2):
            with pytest.raises(RpcFault) as caught:
                await deed(reading)
            assert caught.value.name == "NCA_S_OP_RNG_ERROR"
        await receive(reading)
        await reading.close()

    queue.twists[opnum] = lambda honest, arguments: int(FaultStatus.NCA_S_OP_RNG_ERROR)
    asyncio.run(scenario())
    assert len(queue.bodies) == 2  # and one was received
    assert queue.opened == {}
    assert len(server_of(queue).connections) == 1


@requirement("MQRR-1.7-02")
def test_opening_a_queue_detects_remote_read(queue: RemoteQueue) -> None:
    with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
        orders.peek(0)
    assert queue.called()[:2] == [Opnum.R_OpenQueue, Opnum.R_StartReceive]
    nothing = map_endpoints(EndpointMapper({}))
    with rpc_server(interfaces={ENDPOINT_MAPPER: ENDPOINT_MAPPER_METHODS}, perform=nothing) as other:
        with msmqwire.connect(NAME, endpoint_mapper=other.port) as orders:
            with pytest.raises(RpcFault) as unknown:
                orders.peek(0)
            assert unknown.value.name == "EPT_S_NOT_REGISTERED"
        with msmqwire.connect(NAME, rpc_port=other.port) as orders, pytest.raises(RpcRefused):
            orders.peek(0)


@requirement("MQRR-3.2.2-01")
def test_only_rpc_has_timers(queue: RemoteQueue) -> None:
    """How long a read waits is a matter of the server."""
    timers: set[str] = set()

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        call_at = loop.call_at

        def recorded(*args: Any, **options: Any) -> asyncio.TimerHandle:
            frame = sys._getframe(1)
            while frame is not None and not frame.f_globals["__name__"].startswith("msmqwire."):
                frame = frame.f_back
            if frame is not None:
                timers.add(frame.f_globals["__name__"])
            return call_at(*args, **options)

        loop.call_at = recorded  # type: ignore[method-assign, assignment]
        reading = reading_of(queue)
        peek, take = (Read(action, 60_000) for action in (Action.MQ_ACTION_PEEK_CURRENT, RECEIVE.action))
        await reading.start(1, peek)
        await reading.start(2, take)
        await reading.end(2, acknowledge=True)
        await reading.start(3, peek._replace(cursor=await reading.open_cursor()))
        await reading.move(4 << 56 | 2, SUBQUEUE, None)
        await reading.purge()
        waits = asyncio.create_task(reading.start(4, take))
        await happens(lambda: queue.waiting, "the read waits")
        await reading.cancel(4)
        with suppress(QueueError):
            await waits
        await reading.close()

    asyncio.run(scenario())
    assert timers == {"msmqwire.qm.runtime.rpc.client"}
    assert [read.ulTimeout for read in queue.arguments(Opnum.R_StartReceive)] == [60_000] * 4
