"""The client of remote read, and servers that fail or lack something: [MS-MQRR] 3.1.4 and 3.2."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
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
from msmqwire.qm.client.reading import Read
from msmqwire.qm.client.remote_options import RemoteOptions
from msmqwire.qm.client.remote_reading import RemoteReading
from msmqwire.remote_read.constants import Action, Opnum
from msmqwire.rpc.constants import FaultStatus
from msmqwire.rpc.endpoint_mapper import ENDPOINT_MAPPER, ENDPOINT_MAPPER_METHODS, EndpointMapper
from tests.support.codec_checks import proving, requirement
from tests.support.remote_read_server import NAME, RemoteQueue, message, remote_queue, server_of
from tests.support.rpc_server import map_endpoints, rpc_server

TX = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
SUBQUEUE = r"private$\orders;x"
RECEIVE = Read(Action.MQ_ACTION_RECEIVE, 0)
NO_CURSOR = 9
VENDORS = 0xE0000007
"""A failure that a vendor has defined: with the C bit."""
CODES = (
    HResult.MQ_ERROR_INVALID_PARAMETER, HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, NtStatus.STATUS_NOT_FOUND,
    HResult.MQ_ERROR_MESSAGE_NOT_FOUND, HResult.MQ_ERROR_ACCESS_DENIED, HResult.MQ_ERROR_INVALID_HANDLE,
    0x80004005, VENDORS,
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
    await reading.start(5, RECEIVE)
    await reading.end(5, acknowledge=True)


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
    await reading.start(5, RECEIVE._replace(transaction=TX))
    await reading.end(5, acknowledge=True)


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


DEEDS: Mapping[Opnum, Callable[[RemoteReading], Awaitable[None]]] = {
    Opnum.R_CloseQueue: close,
    Opnum.R_CreateCursor: open_cursor,
    Opnum.R_CloseCursor: close_cursor,
    Opnum.R_PurgeQueue: RemoteReading.purge,
    Opnum.R_CancelReceive: cancel,
    Opnum.R_EndReceive: receive,
    Opnum.R_OpenQueueForMove: lambda reading: reading.move(1, SUBQUEUE, None),
    Opnum.R_QMEnlistRemoteTransaction: enlist,
    Opnum.R_SetUserAcknowledgementClass: lambda reading: reading.reject(7),
    Opnum.R_EndTransactionalReceive: receive_in_transaction,
}
"""What leads to a call of a method; for those that fail visibly it is the last one."""


async def conduct(queue: RemoteQueue, opnum: Opnum) -> tuple[tuple[Opnum, ...], int | None]:
    """What a new client calls to do something, and the code with which that fails."""
    queue.calls.clear()
    reading, code = reading_of(queue), None
    try:
        await DEEDS[opnum](reading)
    except QueueError as exc:
        code = exc.hresult
    called = tuple(queue.called())
    await reading.close()
    return called, code


async def conducts(
    queue: RemoteQueue, opnum: Opnum, codes: Iterable[int], answer: Callable[[int], Any]
) -> list[tuple[tuple[Opnum, ...], int | None]]:
    """`conduct` with each code that a method may fail with."""
    done = []
    for code in codes:
        queue.twists[opnum] = partial(failing, answer(code))
        done.append(await conduct(queue, opnum))
    return done


def failing(answer: Any, honest: Callable[[], Any], arguments: Any) -> Any:
    """A method that does what it should, and says that it has failed."""
    honest()
    return answer


@pytest.mark.parametrize(
    "opnum, outputs",
    [
        proving(Opnum.R_CreateCursor, {"phCursor": NO_CURSOR}, ids="MQRR-3.1.4.4-05"),
        proving(Opnum.R_CloseCursor, {}, ids="MQRR-3.1.4.5-06"),
        proving(Opnum.R_PurgeQueue, {}, ids="MQRR-3.1.4.6-06"),
        proving(Opnum.R_EndReceive, {}, ids="MQRR-3.1.4.9-13"),
        proving(Opnum.R_QMEnlistRemoteTransaction, {}, ids="MQRR-3.1.4.12-11"),
        proving(Opnum.R_SetUserAcknowledgementClass, {}, ids="MQRR-3.1.4.14-11"),
        proving(Opnum.R_EndTransactionalReceive, {}, ids="MQRR-3.1.4.15-13"),
    ],
)
def test_all_failures_of_a_method_are_told_alike(
    queue: RemoteQueue, opnum: Opnum, outputs: Mapping[str, int]
) -> None:
    queue.messages += [message(number) for number in range(4, 20)]
    done = asyncio.run(conducts(queue, opnum, CODES, lambda code: {**outputs, "status": int(code)}))
    assert [code for _, code in done] == list(CODES)
    (called,) = {called for called, _ in done}
    assert called.count(opnum) == 1
    assert called[-1] == opnum


@requirement("MQRR-3.1.4.11-19")
def test_all_failures_of_a_destination_are_told_alike(queue: RemoteQueue) -> None:
    codes = [code for code in CODES if code >> 16 == 0xC00E]
    done = asyncio.run(conducts(queue, Opnum.R_OpenQueueForMove, codes, int))
    assert [code for _, code in done] == codes
    assert {called for called, _ in done} == {(Opnum.R_OpenQueue, Opnum.R_OpenQueueForMove)}
    assert queue.moved == []


@pytest.mark.parametrize(
    "opnum, before",
    [
        proving(Opnum.R_CloseQueue, Opnum.R_PurgeQueue, ids="MQRR-3.1.4.3-08"),
        proving(Opnum.R_CancelReceive, Opnum.R_StartReceive, ids="MQRR-3.1.4.8-10"),
    ],
)
def test_whether_it_is_closed_or_cancelled_matters_to_nobody(opnum: Opnum, before: Opnum) -> None:
    with remote_queue() as queue:
        done = asyncio.run(conducts(queue, opnum, CODES, lambda code: {"status": int(code)}))
    assert done == [((Opnum.R_OpenQueue, before, opnum), None)] * len(CODES)


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
        proving(Opnum.R_MoveMessage, lambda reading: reading.move(1, SUBQUEUE, None), ids="MQRR-3.1.4.10-02"),
        proving(Opnum.R_StartTransactionalReceive, receive_in_transaction, ids="MQRR-3.1.4.13-06"),
        proving(
            Opnum.R_SetUserAcknowledgementClass, lambda reading: reading.reject(7), ids="MQRR-3.1.4.14-02"
        ),
    ],
)
def test_a_method_that_the_server_lacks(
    queue: RemoteQueue, opnum: Opnum, deed: Callable[[RemoteReading], Awaitable[None]]
) -> None:
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
    assert queue.bodies == [b"body 2", b"body 3"]
    assert queue.opened == {}
    assert len(server_of(queue).connections) == 1


@requirement("MQRR-1.7-02")
def test_whether_there_is_remote_read_is_found_by_opening_a_queue(queue: RemoteQueue) -> None:
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
        while not queue.waiting:
            await asyncio.sleep(0.001)
        await reading.cancel(4)
        with suppress(QueueError):
            await waits
        await reading.close()

    asyncio.run(scenario())
    assert timers == {"msmqwire.qm.runtime.rpc_client"}
    assert [read.ulTimeout for read in queue.arguments(Opnum.R_StartReceive)] == [60_000] * 4
