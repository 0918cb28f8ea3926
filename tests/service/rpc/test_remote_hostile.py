"""Reading queues of other computers whose servers break, are silent, lie or refuse."""

from __future__ import annotations

import asyncio
import itertools
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

import msmqwire
from msmqwire.constants import HResult
from msmqwire.errors import (
    EndUnknown,
    InvalidValue,
    MalformedPacket,
    QueueError,
    ReadTimeout,
    RpcFault,
    RpcRefused,
    Unreachable,
)
from msmqwire.qm.client import Queue, ReceivedMessage
from msmqwire.qm.runtime.rpc import client as rpc_client
from msmqwire.qm.runtime.rpc.security import acceptors
from msmqwire.remote_read.constants import Acknowledge, Opnum
from msmqwire.remote_read.interface import build_response
from msmqwire.rpc.constants import AuthLevel, FaultStatus, PduType, SyntaxId
from msmqwire.rpc.endpoint_mapper import ENDPOINT_MAPPER, ENDPOINT_MAPPER_METHODS, EndpointMapper
from msmqwire.rpc.events import Called
from msmqwire.rpc.ndr import NDR64
from tests.support.patience import PATIENCE_S, happens, limit
from tests.support.rpc.remote_read_server import (
    BREAK,
    NAME,
    SILENCE,
    SOURCE,
    RemoteQueue,
    message,
    received,
    remote_queue,
    server_of,
)
from tests.support.rpc.rpc_pair import PASSWORD, USER, pdu
from tests.support.rpc.rpc_server import map_endpoints, rpc_server
from tests.support.rpc.rpc_users import USERS
from tests.support.running import until

BODIES = [b"body 1", b"body 2", b"body 3"]


@pytest.fixture
def queue() -> Iterator[RemoteQueue]:
    """A server with three messages."""
    with remote_queue(message(1), message(2), message(3)) as queue:
        yield queue


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that wait a second for answers: what honest servers need on a busy machine."""
    monkeypatch.setattr(rpc_client, "ANSWER_S", 1.0)
    monkeypatch.setattr(rpc_client, "WHOLE_ANSWER_S", 1.5)


def once(twist: Callable[[Callable[[], Any]], Any]) -> Callable[[Callable[[], Any], Any], Any]:
    """A twist of the first call alone."""
    calls = itertools.count()
    return lambda honest, arguments: twist(honest) if next(calls) == 0 else honest()


def too_late(honest: Callable[[], Any], wrong: object) -> object:
    """Do what was asked for, and answer otherwise."""
    honest()
    return wrong


STEPS = (Opnum.R_OpenQueue, Opnum.R_StartReceive, Opnum.R_EndReceive)
WHEN = {"before": lambda honest, wrong: wrong, "after": too_late}


# -- broken connections and silence ----------------------------------------------------------------------


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("wrong", [BREAK, SILENCE], ids=["break", "silence"])
@pytest.mark.parametrize("step", STEPS)
def test_nothing_is_lost_or_doubled(
    queue: RemoteQueue, impatient: None, step: Opnum, wrong: object, when: str
) -> None:
    queue.twists[step] = once(lambda honest: WHEN[when](honest, wrong))
    got: list[bytes] = []
    with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
        with pytest.raises(Unreachable, match=r"closed the connection|does not answer") as caught:
            orders.receive(0)
        if step == Opnum.R_EndReceive:
            assert isinstance(caught.value, EndUnknown)
            assert isinstance(caught.value.message, ReceivedMessage)
            assert caught.value.message.body == b"body 1"
        else:
            assert not isinstance(caught.value, EndUnknown)
        left = BODIES[1:] if step == Opnum.R_EndReceive and when == "after" else BODIES
        until(lambda: queue.bodies == left, "the server sees the end of the connection")
        while queue.bodies:  # over a new connection
            got.append(orders.receive(0).body)
    lost = [] if step != Opnum.R_EndReceive or when == "before" else [caught.value.message.body]  # type: ignore[attr-defined]
    assert lost + got == BODIES


def test_what_a_broken_connection_leaves_behind(queue: RemoteQueue) -> None:
    async def scenario() -> None:
        async with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
            async with orders.cursor() as cursor:
                await cursor.peek(0)
                with pytest.raises(Unreachable, match="the message is back in its queue"):
                    await received_while_it_breaks(queue, orders)
                until(lambda: queue.bodies == BODIES, "the server sees the end of the connection")
                with pytest.raises(QueueError) as gone:
                    await cursor.peek(0)
            assert gone.value.name == "MQ_ERROR_INVALID_HANDLE"
            assert (await orders.receive(0)).body == b"body 1"
            assert len(server_of(queue).connections) == 2

    asyncio.run(scenario())


async def received_while_it_breaks(queue: RemoteQueue, orders: Queue) -> None:
    """Receive a message, and let the connection break before it is ended."""
    queue.twists[Opnum.R_PurgeQueue] = lambda honest, arguments: BREAK
    async with orders.receiving(0):
        with pytest.raises(Unreachable):
            await orders.purge()


@pytest.mark.parametrize("opnum", [Opnum.R_CancelReceive, Opnum.R_CloseCursor, Opnum.R_CloseQueue])
@pytest.mark.parametrize(
    "wrong",
    [BREAK, SILENCE, 5, b"", {"status": 0xC0000008}],
    ids=["break", "silence", "fault", "cut", "status"],
)
def test_ends_that_fail_are_no_hindrance(
    queue: RemoteQueue, impatient: None, opnum: Opnum, wrong: object
) -> None:
    async def scenario() -> None:
        async with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
            async with orders.cursor() as cursor:
                await cursor.peek(0)
            await orders.purge()
            waiting = asyncio.create_task(orders.receive())
            await happens(lambda: queue.waiting, "the read waits")
            waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    queue.twists[opnum] = lambda honest, arguments: wrong
    started = time.monotonic()
    asyncio.run(scenario())
    assert time.monotonic() - started < limit(5)


def test_waiting_reads_end_with_the_connection(queue: RemoteQueue) -> None:
    async def scenario() -> None:
        async with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
            await orders.purge()
            reads = [asyncio.create_task(orders.receive()) for _ in range(20)]
            await happens(lambda: len(queue.waiting) == len(reads), "all reads wait")
            queue.twists[Opnum.R_PurgeQueue] = lambda honest, arguments: BREAK
            with pytest.raises(Unreachable):
                await orders.purge()
            for ended in await asyncio.gather(*reads, return_exceptions=True):
                assert isinstance(ended, Unreachable)

    asyncio.run(scenario())


def test_a_server_that_takes_one_call_at_a_time() -> None:
    async def scenario(queue: RemoteQueue) -> None:
        async with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
            waiting = asyncio.create_task(orders.receive())
            await happens(lambda: queue.waiting, "the read waits")
            waiting.cancel()  # a request to cancel it would wait for its end
            with pytest.raises(asyncio.CancelledError):
                await waiting
            queue.messages.append(message(1))
            assert (await orders.receive(0)).body == b"body 1"

    def without_multiplexing(data: bytes) -> bytes:
        # pfc_flags of a bind_ack without PFC_CONC_MPX
        return data[:3] + bytes([data[3] & ~0x10]) + data[4:] if data[2:3] == b"\x0c" else data

    with remote_queue() as queue, between(queue.port, without_multiplexing) as port:
        queue.port = port
        asyncio.run(scenario(queue))


@contextmanager
def between(port: int, change: Callable[[bytes], bytes]) -> Iterator[int]:
    """A port that leads to another one, what comes back from there being changed."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, how: Any) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(how(data))
        writer.close()

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(carry(reader, forth, bytes), carry(back, writer, change))

    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(accepted, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


# -- peers that are not servers --------------------------------------------------------------------------


@contextmanager
def peer(behave: Callable[[socket.socket], None]) -> Iterator[int]:
    """The port of somebody who takes a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def run() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                behave(connection)

        thread = threading.Thread(target=run)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


def until_closed(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


def says(data: bytes) -> Callable[[socket.socket], None]:
    def behave(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(data)
        until_closed(connection)

    return behave


def trickles(connection: socket.socket) -> None:
    """Send a PDU that never ends."""
    connection.recv(65536)
    connection.sendall(bytes.fromhex("05000c03 10000000 ff3f0000 01000000"))
    while True:
        connection.sendall(b"\0")
        time.sleep(0.02)  # often enough that no read of a byte takes long


@pytest.mark.parametrize("behave, reason", [
    (until_closed, "does not answer"),
    (trickles, "does not answer"),
    (lambda connection: None, "closed the connection|reset"),
    (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "breaks the protocol"),
    (says(bytes(100)), "breaks the protocol"),
    (says(pdu(PduType.RESPONSE, {"stub_data": b""}, call_id=1)), "breaks the protocol"),
    (says(pdu(PduType.SHUTDOWN, {})), "breaks the protocol"),
    (says(b"\x05\x00\x0c\x03\x10\x00\x00\x00\xff\xff\x00\x00"), "does not answer|breaks the protocol"),
])  # fmt: skip
@pytest.mark.parametrize("by_mapper", [False, True])
def test_peers_that_do_not_speak_it(
    impatient: None, behave: Callable[[socket.socket], None], reason: str, by_mapper: bool
) -> None:
    with peer(behave) as port:
        options = {"endpoint_mapper": port} if by_mapper else {"rpc_port": port}
        unreachable(reason, **options)


def unreachable(reason: str, name: str = NAME, **options: Any) -> None:
    """A receive fails for this reason."""
    with msmqwire.connect(name, **options) as orders, pytest.raises(Unreachable, match=reason):
        orders.receive(0)


def test_a_queue_that_is_closed_while_it_is_connected() -> None:
    async def scenario(port: int) -> None:
        async with msmqwire.connect(NAME, rpc_port=port) as orders:
            waiting = asyncio.create_task(orders.receive())
            assert await asyncio.to_thread(asked.wait, PATIENCE_S)
            await orders.close()
            with pytest.raises(QueueError) as caught:
                await waiting
            assert caught.value.name == "MQ_ERROR_OPERATION_CANCELLED"

    asked = threading.Event()

    def says_nothing(connection: socket.socket) -> None:
        connection.recv(1)
        asked.set()
        until_closed(connection)

    with peer(says_nothing) as port:
        asyncio.run(scenario(port))


def test_without_the_library_for_authentication(queue: RemoteQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "msmqwire.qm.runtime.rpc.security", None)
    who = {"user": USER, "password": PASSWORD}
    with (
        msmqwire.connect(NAME, rpc_port=queue.port, **who) as orders,  # type: ignore[arg-type]
        pytest.raises(InvalidValue, match=r"needs the extra msmqwire\[qm\]"),
    ):
        orders.receive(0)


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    unreachable("refused", rpc_port=port)
    unreachable("reached", r"DIRECT=OS:nowhere.invalid\private$\orders", rpc_port=port)


def test_endpoint_mappers() -> None:
    other = SyntaxId(ENDPOINT_MAPPER.uuid, 9)
    answer = map_endpoints(EndpointMapper({other: 5}))
    with rpc_server(interfaces={ENDPOINT_MAPPER: ENDPOINT_MAPPER_METHODS}, perform=answer) as mapper:
        with msmqwire.connect(NAME, endpoint_mapper=mapper.port) as orders, pytest.raises(RpcFault) as caught:
            orders.receive(0)
        assert (caught.value.status, caught.value.name) == (0x16C9A0D6, "EPT_S_NOT_REGISTERED")
        with msmqwire.connect(NAME, rpc_port=mapper.port) as orders, pytest.raises(RpcRefused) as refused:
            orders.receive(0)
        assert "ABSTRACT_SYNTAX_NOT_SUPPORTED" in refused.value.why

    def lying(association: Any, event: Any) -> None:
        if isinstance(event, Called):
            association.answer(event.call, bytes(40))

    with rpc_server(interfaces={ENDPOINT_MAPPER: ENDPOINT_MAPPER_METHODS}, perform=lying) as mapper:
        unreachable("does not give the port", endpoint_mapper=mapper.port)


# -- answers that lie -----------------------------------------------------------------------------------


def test_answers_to_calls_that_nobody_made(queue: RemoteQueue) -> None:
    plain = queue.perform

    def perform(association: Any, event: Any) -> None:
        association._out.append(pdu(PduType.RESPONSE, {"stub_data": b"", "p_cont_id": 0}, call_id=4711))
        plain(association, event)

    server_of(queue)._perform = perform
    unreachable(r"breaks the protocol.*no call 4711", rpc_port=queue.port)


def test_more_than_was_agreed(queue: RemoteQueue) -> None:
    queue.twists[Opnum.R_StartReceive] = lambda honest, arguments: bytes(13 << 20)
    unreachable("more than 12,582,912 bytes of results", rpc_port=queue.port)


def test_an_answer_cut_at_every_place(queue: RemoteQueue) -> None:
    whole = build_response(Opnum.R_StartReceive, received(message(1), 1 << 22), NDR64)
    cut = iter(range(0, len(whole), 11))

    def twist(honest: Callable[[], Any], arguments: Any) -> bytes:
        honest()
        return whole[: next(cut)]

    queue.twists[Opnum.R_StartReceive] = twist
    with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
        for _ in range(0, len(whole), 11):
            with pytest.raises(MalformedPacket):
                orders.receive(0)
            assert queue.bodies == BODIES  # given back
    assert {end.dwAck for end in queue.arguments(Opnum.R_EndReceive)} == {Acknowledge.RR_NACK}
    assert len(server_of(queue).connections) == 1


def sections(*changed: dict[str, Any]) -> Any:
    """A change of the sections of an answer."""

    def change(answer: Any) -> Any:
        (whole,) = answer["ppPacketSections"]
        fields = {name: getattr(whole, name) for name in (
            "SectionBufferType", "SectionSizeAlloc", "SectionSize", "pSectionBuffer"
        )}  # fmt: skip
        return {**answer, "ppPacketSections": [{**fields, **each} for each in changed]}

    return change


@pytest.mark.parametrize("change", [
    sections(),
    sections({}, {}),
    sections(*[{}] * 1000),
    sections({"SectionBufferType": 1}),
    sections({"SectionBufferType": 9}),
    sections({"SectionBufferType": 2}),
    sections({"SectionBufferType": 3}),
    sections({"SectionSizeAlloc": 0xFFFFFFFF}),
    sections({"SectionSizeAlloc": 0}),
    sections({"SectionBufferType": 1, "SectionSizeAlloc": 0xFFFFFFFF}),
    sections({"pSectionBuffer": b"", "SectionSize": 0, "SectionSizeAlloc": 0}),
    sections({"pSectionBuffer": b"\xff" * 300, "SectionSize": 300, "SectionSizeAlloc": 300}),
    lambda answer: {**answer, "ppPacketSections": None},
    lambda answer: {**received(message(1), 2)},
])  # fmt: skip
def test_sections_that_are_wrong(queue: RemoteQueue, change: Callable[[Any], Any]) -> None:
    queue.twists[Opnum.R_StartReceive] = lambda honest, arguments: change(honest())
    with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
        with pytest.raises(MalformedPacket):
            orders.receive(0)
        with pytest.raises(MalformedPacket):
            orders.peek(0)
    (end,) = queue.arguments(Opnum.R_EndReceive)
    assert end.dwAck == Acknowledge.RR_NACK
    assert queue.bodies == BODIES


@pytest.mark.requirement("MQRR-2.2.5.2-02")
@pytest.mark.parametrize("announced", [0, 175, 177, 0xFFFFFFFF])
def test_headers_of_another_size_than_announced(queue: RemoteQueue, announced: int) -> None:
    def twist(honest: Callable[[], Any], arguments: Any) -> Any:
        answer = honest()
        (whole,) = answer["ppPacketSections"]
        data = bytearray(whole.pSectionBuffer)
        (size,) = struct.unpack_from("<I", data, 8)
        assert struct.unpack_from("<II", data, size) == (12, 176)
        struct.pack_into("<I", data, size + 4, announced)
        return sections({"pSectionBuffer": bytes(data)})(answer)

    queue.twists[Opnum.R_StartReceive] = twist
    why = rf"^ExtensionHeader.RemainingHeadersSize: {announced:,} bytes are announced, 176 are there"
    with msmqwire.connect(NAME, rpc_port=queue.port) as orders, pytest.raises(MalformedPacket, match=why):
        orders.receive(0)
    (end,) = queue.arguments(Opnum.R_EndReceive)
    assert end.dwAck == Acknowledge.RR_NACK
    assert queue.bodies == BODIES


@pytest.mark.parametrize("giving_back", [{"status": 0xC00E0007}, 5, b"", BREAK, SILENCE])
@pytest.mark.parametrize("answer", [received(message(1), 2), b"\x01"], ids=["message", "answer"])
def test_an_unreadable_answer_is_raised_if_its_return_fails_too(
    queue: RemoteQueue, impatient: None, answer: object, giving_back: object
) -> None:
    queue.twists[Opnum.R_StartReceive] = lambda honest, arguments: answer
    queue.twists[Opnum.R_EndReceive] = lambda honest, arguments: giving_back
    with msmqwire.connect(NAME, rpc_port=queue.port) as orders, pytest.raises(MalformedPacket):
        orders.receive(0)
    (end,) = queue.arguments(Opnum.R_EndReceive)
    assert end.dwAck == Acknowledge.RR_NACK


@pytest.mark.parametrize("opnum", [
    Opnum.R_OpenQueue, Opnum.R_CreateCursor, Opnum.R_PurgeQueue, Opnum.R_EndReceive, Opnum.R_OpenQueueForMove,
    Opnum.R_MoveMessage,
])  # fmt: skip
@pytest.mark.parametrize("stub", [b"", bytes(3), bytes(200)], ids=["0", "3", "200"])
def test_answers_that_are_none(queue: RemoteQueue, opnum: Opnum, stub: bytes) -> None:
    async def scenario(orders: Queue) -> None:
        found = await orders.peek(0)
        async with orders.cursor():
            await orders.move(found, r"private$\orders;x")
        await orders.purge()
        queue.messages.append(message(7))
        await orders.receive(0)

    async def connected() -> None:
        async with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
            await scenario(orders)

    queue.twists[opnum] = lambda honest, arguments: stub
    if stub == bytes(200) and opnum in (Opnum.R_PurgeQueue, Opnum.R_EndReceive, Opnum.R_MoveMessage):
        asyncio.run(connected())  # zeroes are success, and what is behind an answer does not matter
        return
    with pytest.raises(Unreachable, match=opnum.name):
        asyncio.run(connected())


# -- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", FaultStatus)
def test_faults_have_names(queue: RemoteQueue, status: FaultStatus) -> None:
    queue.twists[Opnum.R_StartReceive] = once(lambda honest: int(status))
    with msmqwire.connect(NAME, rpc_port=queue.port) as orders:
        with pytest.raises(RpcFault) as caught:
            orders.receive(0)
        assert (caught.value.status, caught.value.name) == (status, status.name)
        assert orders.receive(0).body == b"body 1"
    forgotten = status is FaultStatus.NCA_S_FAULT_CONTEXT_MISMATCH  # the handle of the queue
    assert len(server_of(queue).connections) == (2 if forgotten else 1)


def test_a_code_of_msmq_as_a_fault(queue: RemoteQueue) -> None:
    queue.twists[Opnum.R_StartReceive] = lambda honest, arguments: int(HResult.MQ_ERROR_OPERATION_CANCELLED)
    with msmqwire.connect(NAME, rpc_port=queue.port) as orders, pytest.raises(QueueError) as caught:
        orders.receive(0)
    assert caught.value.name == "MQ_ERROR_OPERATION_CANCELLED"


@pytest.mark.requirement("MQRR-2.1-08")
@pytest.mark.parametrize("auth, level", [
    ("none", AuthLevel.NONE), ("connect", AuthLevel.CONNECT), ("integrity", AuthLevel.PKT_INTEGRITY),
    ("privacy", AuthLevel.PKT_PRIVACY), (None, AuthLevel.PKT_PRIVACY),
])  # fmt: skip
def test_authentication(auth: Any, level: AuthLevel) -> None:
    with remote_queue(message(1), security=acceptors(USERS), minimum_level=level) as queue:
        with msmqwire.connect(NAME, rpc_port=queue.port, user=USER, password=PASSWORD, auth=auth) as orders:
            assert orders.receive(0).body == b"body 1"
        assert queue.callers == {("" if level == AuthLevel.NONE else USER, level)}
        readable = b"order 1".decode().encode("utf-16-le")
        sent = b"".join(data for by_client, data in server_of(queue).connections[0].data if not by_client)
        assert (readable in sent) == (level < AuthLevel.PKT_PRIVACY)


def test_who_is_not_let_in() -> None:
    with remote_queue(message(1), security=acceptors(USERS), minimum_level=AuthLevel.PKT_PRIVACY) as queue:
        for options in ({}, {"user": USER, "password": PASSWORD, "auth": "integrity"}):
            with msmqwire.connect(NAME, rpc_port=queue.port, **options) as orders:  # type: ignore[arg-type]
                with pytest.raises(RpcFault) as caught:
                    orders.receive(0)
                assert caught.value.name == "ACCESS_DENIED"
        with (
            msmqwire.connect(NAME, rpc_port=queue.port, user=USER, password="wrong") as orders,
            pytest.raises(RpcFault, match="ACCESS_DENIED") as wrong,
        ):
            orders.receive(0)
        assert "wrong" not in str(wrong.value)
        assert queue.calls == []
        with msmqwire.connect(NAME, rpc_port=queue.port, user=USER, password=PASSWORD) as orders:
            assert orders.receive(0).body == b"body 1"


def test_nothing_is_lost_wherever_the_connection_breaks() -> None:
    """The first connection ends after so many bytes of the server."""
    for most in range(20, 3200, 83):
        with remote_queue(*map(message, range(1, 5))) as queue, between(queue.port, Cut(most)) as port:
            got, unknown = [], []
            with msmqwire.connect(NAME, rpc_port=port) as orders:
                for _ in range(100):
                    try:
                        got.append(orders.receive(0).identifier)
                    except ReadTimeout:
                        break
                    except EndUnknown as exc:
                        unknown.append(exc.message.identifier)  # type: ignore[attr-defined]
                    except Unreachable:
                        until(queue.has_all_back, "the server sees the end of the connection")
            assert len(unknown) <= 1
            assert len(got) == len(set(got))
            assert {*got, *unknown} == {f"{SOURCE}\\{number}" for number in range(1, 5)}
            assert got == sorted(got)


class Cut:
    """Lets so many bytes pass, and then ends the connection, once."""

    def __init__(self, most: int) -> None:
        self._left, self._ended = most, False

    def __call__(self, data: bytes) -> bytes:
        if self._ended:
            return data
        if len(data) < self._left:
            self._left -= len(data)
            return data
        self._ended = True
        raise ConnectionError
