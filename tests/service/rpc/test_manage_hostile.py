"""Managing computers whose servers break, are slow, lie or flood: an error or a row, and never a hang."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

import msmqwire
from msmqwire.constants import ManagementMachineProperty as M
from msmqwire.constants import VarEnum
from msmqwire.errors import AnswerTimeout, MsmqError, ProtocolViolation, QueueError, Unreachable
from msmqwire.management.constants import Opnum
from msmqwire.management.interface import INTERFACE
from msmqwire.management.reports import MachineReport
from msmqwire.management.variants import variant
from msmqwire.qm.client.management_connection import ANSWER_MAX, CALLS_MAX
from msmqwire.rpc.constants import FaultStatus, PduType, PfcFlags
from msmqwire.rpc.groups import AssociationGroups
from msmqwire.rpc.server_association import ServerAssociation
from tests.support.patience import PATIENCE_S, limit
from tests.support.rpc.management_server import BREAK, HOST, SILENCE, ManagedMachine, managed_machine
from tests.support.rpc.rpc_pair import pdu
from tests.support.rpc.rpc_server import RpcServer

INFO = Opnum.R_QMMgmtGetInfo
SOON_S = limit(20)
"""What a method may take here, where nothing is worth waiting for."""
Said = Iterator[bytes]
Liar = Callable[[int, bytes], Iterable[bytes]]
"""The bytes that are sent for the honest ones, of which so many went before."""


def orders(machine: ManagedMachine, count: int = 2) -> None:
    """Let a computer have some private queues."""
    for number in range(count):
        machine.has_private(f"orders{number}", number)


class RawServer:
    """A server over sockets whose honest bytes another function may replace.

    Attributes:
        port: its port. sent: the honest bytes of the last connection. most: the calls that waited at a time.
    """

    def __init__(self, machine: ManagedMachine, lie: Liar) -> None:
        self.machine, self.lie = machine, lie
        self.sent = b""
        self.most = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        association = ServerAssociation({INTERFACE: 2}, groups=AssociationGroups(), port=self.port)
        self.sent = b""
        with connection, suppress(OSError):
            while data := connection.recv(1 << 16):
                events = association.received(data)
                self.most = max(self.most, association.outstanding)
                for event in events:
                    self.machine.perform(association, event)
                honest = association.data_to_send()
                before, self.sent = len(self.sent), self.sent + honest
                for piece in self.lie(before, honest):
                    if self._ends.is_set():
                        return
                    if piece is END:
                        return
                    connection.sendall(piece)

    def close(self) -> None:
        """End it, and all its threads."""
        self._ends.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


END = bytearray(b"the connection ends")
"""In place of bytes: the server closes the connection."""


@contextmanager
def raw_server(lie: Liar, count: int = 2) -> Iterator[RawServer]:
    machine = ManagedMachine()
    orders(machine, count)
    server = RawServer(machine, lie)
    try:
        yield server
    finally:
        server.close()


def honest(before: int, data: bytes) -> Iterable[bytes]:
    yield data


def conversation(method: str) -> bytes:
    """All bytes of an honest server in answer to a method."""
    with raw_server(honest) as server, msmqwire.manage("127.0.0.1", port=server.port) as host:
        getattr(host, method)()
        return server.sent


def within(seconds: float, begun: float) -> None:
    assert time.monotonic() - begun < seconds + SOON_S


# -- bytes that end, stop, drip or change ----------------------------------------------------------------


@pytest.mark.parametrize("method", ["machine", "queues"])
def test_a_cut_at_every_byte_is_unreachable(method: str) -> None:
    whole = conversation(method)
    place = 0

    def cut(before: int, data: bytes) -> Iterable[bytes]:
        yield data[: max(0, place - before)]
        if before + len(data) > place:
            yield END  # type: ignore[misc]

    begun = time.monotonic()
    with raw_server(cut) as server:
        for place in range(0, len(whole), 1 if method == "machine" else 7):  # noqa: B007 - `cut` uses it
            with msmqwire.manage("127.0.0.1", port=server.port) as host, pytest.raises(Unreachable):
                getattr(host, method)()
    within(limit(60), begun)


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.999])
def test_bytes_that_stop_end_in_time(part: float) -> None:
    place = int(len(conversation("machine")) * part)

    def stop(before: int, data: bytes) -> Iterable[bytes]:
        yield data[: max(0, place - before)]

    begun = time.monotonic()
    with (
        raw_server(stop) as server,
        msmqwire.manage("127.0.0.1", port=server.port, timeout=0.3) as host,
        pytest.raises(AnswerTimeout, match=r"127\.0\.0\.1 has not answered within 0\.3 s"),
    ):
        host.machine()
    within(0.3, begun)


def test_a_drip_ends_in_time() -> None:
    def drip(before: int, data: bytes) -> Iterable[bytes]:
        for at in range(len(data)):
            time.sleep(0.02)  # the drip itself
            yield data[at : at + 1]

    begun = time.monotonic()
    with (
        raw_server(drip) as server,
        msmqwire.manage("127.0.0.1", port=server.port, timeout=0.5) as host,
        pytest.raises(AnswerTimeout),
    ):
        host.machine()
    within(0.5, begun)


def test_a_wrong_byte_anywhere_is_an_error_or_a_value() -> None:
    whole = conversation("machine")
    place = 0

    def change(before: int, data: bytes) -> Iterable[bytes]:
        if before <= place < before + len(data):
            changed = bytearray(data)
            changed[place - before] ^= 0xFF
            yield bytes(changed)
        else:
            yield data

    seen: set[type] = set()
    with raw_server(change) as server:
        for place in range(len(whole)):  # noqa: B007 - `change` uses it
            with msmqwire.manage("127.0.0.1", port=server.port, timeout=0.25) as host:
                try:
                    assert isinstance(host.machine(), MachineReport)
                except MsmqError as exc:
                    seen.add(type(exc))
    assert seen >= {ProtocolViolation, AnswerTimeout, QueueError}


# -- floods ----------------------------------------------------------------------------------------------


def flooding(*pdus: bytes, after: int = 1) -> Liar:
    """Answers honestly so many times, and then with these PDUs without end."""
    turns = itertools.count()

    def lie(before: int, data: bytes) -> Iterable[bytes]:
        if next(turns) < after:
            yield data
        else:
            yield from itertools.cycle(pdus)

    return lie


def response(call: int, stub: bytes, flags: int) -> bytes:
    """A fragment of an answer."""
    fields = {"alloc_hint": len(stub), "p_cont_id": 0, "cancel_count": 0, "reserved": 0, "stub_data": stub}
    return pdu(PduType.RESPONSE, fields, call_id=call, pfc_flags=flags)


FIRST, MIDDLE, WHOLE = int(PfcFlags.FIRST_FRAG), 0, int(PfcFlags.FIRST_FRAG | PfcFlags.LAST_FRAG)


def first_then(*rest: bytes) -> Liar:
    """Answers the bind, and then with the first fragment of an answer and others without end."""

    def lie(before: int, data: bytes) -> Iterable[bytes]:
        if not before:
            yield data
        else:
            yield response(2, b"", FIRST)
            yield from itertools.cycle(rest)

    return lie


FLOODS: dict[str, tuple[Liar, type[Unreachable]]] = {
    "unasked answers": (flooding(response(77, bytes(24), WHOLE)), ProtocolViolation),
    "the same answer": (flooding(response(2, bytes(24), WHOLE)), ProtocolViolation),
    "bind acks": (flooding(pdu(PduType.BIND_NAK, {"provider_reject_reason": 0})), ProtocolViolation),
    "shutdowns": (flooding(pdu(PduType.SHUTDOWN, {}, call_id=0)), AnswerTimeout),
    "noise": (flooding(bytes(4096)), ProtocolViolation),
    "full fragments": (first_then(response(2, bytes(4000), MIDDLE)), ProtocolViolation),
    "empty fragments": (first_then(response(2, b"", MIDDLE)), AnswerTimeout),
}


@pytest.mark.parametrize("lie, error", FLOODS.values(), ids=FLOODS)
def test_a_flood_ends(lie: Liar, error: type[Unreachable]) -> None:
    begun = time.monotonic()
    timeout = 1 if error is AnswerTimeout else limit(10)  # a machine under load takes longer for 8 MB
    with raw_server(lie) as server, msmqwire.manage("127.0.0.1", port=server.port, timeout=timeout) as host:
        tracemalloc.start()
        try:
            with pytest.raises(error):
                host.machine()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 4 * ANSWER_MAX
    within(timeout, begun)


def test_unfinished_answers_share_a_limit() -> None:
    """Each of many answers that have begun is far below the limit of one."""
    piece = bytes(5000)

    def begin_all(before: int, data: bytes) -> Iterable[bytes]:
        if len(server.machine.stubs) < CALLS_MAX + 1:
            yield data if not server.machine.names() else b""
            return
        for call in range(3, CALLS_MAX + 3):
            yield response(call, piece, FIRST)
        for _ in range(ANSWER_MAX // 8 // len(piece)):
            for call in range(3, CALLS_MAX + 3):
                yield response(call, piece, MIDDLE)

    with (
        raw_server(begin_all, count=CALLS_MAX) as server,
        msmqwire.manage("127.0.0.1", port=server.port, timeout=limit(20)) as host,
        pytest.raises(ProtocolViolation, match="more than 8,388,608 bytes of results"),
    ):
        host.queues()


def test_whole_answers_do_not_add_up() -> None:
    with raw_server(honest) as server:
        text = "x" * (ANSWER_MAX // 8)
        server.machine.machine[M.PROPID_MGMT_MSMQ_TYPE] = variant(VarEnum.VT_LPWSTR, text)
        with msmqwire.manage("127.0.0.1", port=server.port, timeout=limit(20)) as host:
            for _ in range(6):
                assert host.machine().type == text
        assert len(server.sent) > ANSWER_MAX


# -- lies of whole answers -------------------------------------------------------------------------------


@pytest.fixture
def machine() -> Iterator[ManagedMachine]:
    with managed_machine() as machine:
        orders(machine, 5)
        yield machine


def for_queue(number: int, result: Any) -> Callable[[Callable[[], Any], Any], Any]:
    """Answers for one of the queues otherwise."""

    def twist(honest: Callable[[], Any], arguments: Any) -> Any:
        about = arguments.pObjectFormat
        mine = about.type == 2 and f"orders{number}" in about.arm.arm
        return result if mine else honest()

    return twist


@pytest.mark.parametrize(
    "result, told",
    [
        (int(FaultStatus.NCA_S_FAULT_UNSPEC), "NCA_S_FAULT_UNSPEC"),
        (0xC00E0001, "it fails, for a reason that is not told (MQ_ERROR)"),
        ({"apVar": (), "status": 0}, "0 values for 27 properties"),
        (b"", "R_QMMgmtGetInfo wrongly"),
        (bytes(100), "R_QMMgmtGetInfo wrongly"),
    ],
)
def test_a_lie_about_one_queue_is_its_row(machine: ManagedMachine, result: Any, told: str) -> None:
    machine.twists[INFO] = for_queue(3, result)
    with msmqwire.manage("127.0.0.1", port=machine.port) as host:
        rows = host.queues()
        assert host.machine().connected is True
    assert [row.messages for row in rows] == [0, 1, 2, None, 4]
    assert [row.reason is None for row in rows] == [True, True, True, False, True]
    assert told in str(rows[3].reason)
    assert isinstance(machine.server, RpcServer)
    assert len(machine.server.connections) == 1


def test_a_queue_without_an_answer_is_a_row(machine: ManagedMachine) -> None:
    machine.twists[INFO] = for_queue(3, SILENCE)
    begun = time.monotonic()
    with msmqwire.manage("127.0.0.1", port=machine.port, timeout=1) as host:
        rows = host.queues()
        assert host.queue(r"private$\orders1").messages == 1  # over a new connection
    assert [row.reason for row in rows] == [None, None, None, "there was no answer in time", None]
    within(1, begun)


def test_no_answer_at_all_is_a_timeout(machine: ManagedMachine) -> None:
    machine.twists[INFO] = lambda honest, arguments: (
        honest() if arguments.pObjectFormat.type == 1 else SILENCE
    )
    with msmqwire.manage("127.0.0.1", port=machine.port, timeout=0.5) as host:
        with pytest.raises(AnswerTimeout):
            host.queues()
        with pytest.raises(AnswerTimeout):
            host.queue(r"private$\orders1")


def test_a_lost_connection_is_unreachable_and_comes_back(machine: ManagedMachine) -> None:
    machine.twists[INFO] = for_queue(3, BREAK)
    with msmqwire.manage("127.0.0.1", port=machine.port) as host:
        with pytest.raises(Unreachable, match="has closed the connection"):
            host.queues()
        machine.twists.clear()
        assert len(host.queues()) == 5


def names(*texts: str) -> Any:
    return variant(VarEnum.VT_VECTOR | VarEnum.VT_LPWSTR, texts)


def test_too_many_names_are_an_error(machine: ManagedMachine) -> None:
    machine.machine[M.PROPID_MGMT_MSMQ_ACTIVEQUEUES] = names(*["x"] * 65_537)
    with (
        msmqwire.manage("127.0.0.1", port=machine.port, timeout=limit(20)) as host,
        pytest.raises(ProtocolViolation, match="lists more than 65,536 queues"),
    ):
        host.queues()


def test_names_of_another_type_are_an_error(machine: ManagedMachine) -> None:
    machine.machine[M.PROPID_MGMT_MSMQ_PRIVATEQ] = variant(VarEnum.VT_LPWSTR, "x")
    with msmqwire.manage("127.0.0.1", port=machine.port) as host:
        with pytest.raises(ProtocolViolation, match="0x001f"):
            host.queues()
        assert "private_queues" in host.machine().unavailable


def test_names_in_foreign_spellings_are_asked_or_rows(machine: ManagedMachine) -> None:
    machine.private.clear()
    machine.active = [
        rf"direct=os:{HOST.upper()}\PRIVATE$\ORDERS1",
        rf"OS:{HOST}\private$\orders2",
        rf"{HOST}\private$\orders1",
        r"PRIVATE=00000000-0000-0000-0000-000000000001\0000000a",
        r"PUBLIC=00000000-0000-0000-0000-000000000002;JOURNAL",
        "MULTICAST=234.1.1.1:8001",
        "MACHINE=00000000-0000-0000-0000-000000000003;DEADXACT",
        r"DIRECT=HTTP://beta/msmq/private$/bills",
        "",
        "no name",
        "x" * 2000,
        "DIRECT=OS:a\\b,DIRECT=OS:a\\c",
        b"\0\xd8\0\0",
    ]
    with msmqwire.manage("127.0.0.1", port=machine.port) as host:
        rows = host.queues()
        outgoing = host.outgoing()
    by_name = {row.asked: row for row in rows}
    assert [row.messages for row in rows[:2]] == [1, 2]
    assert rf"{HOST}\private$\orders1" not in by_name  # the same as the first
    assert [machine.active.index(name) for name in by_name if name in machine.active] == [
        0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11,
    ]  # fmt: skip
    for name in machine.active[3:8]:
        assert by_name[name].reason == "there is no such queue (MQ_ERROR_QUEUE_NOT_FOUND)"
    for name in machine.active[8:12]:
        assert by_name[name].reason
        assert name not in machine.names()
    assert rows[-1].reason == "the name is not a text"
    assert len(outgoing) == 10  # none is lost that may be one


def test_a_local_queue_with_two_names_is_one_row(machine: ManagedMachine) -> None:
    name = r"PRIVATE=00000000-0000-0000-0000-000000000001\0000000a"
    machine.active.append(name)
    machine.add(name, machine.queues[rf"direct=os:{HOST}\private$\orders3"])
    journal = f"{name};journal"
    machine.active.append(journal)
    machine.add(journal, machine.queues[rf"direct=os:{HOST}\private$\orders3"])
    with msmqwire.manage("127.0.0.1", port=machine.port) as host:
        rows = host.queues([name])
    assert [row.asked.rpartition("\\")[2] for row in rows] == [
        "orders0", "orders1", "orders2", "orders3", "orders4", "0000000a;journal",
    ]  # fmt: skip


# -- calls in flight -------------------------------------------------------------------------------------


def held_back(server: RawServer, count: int) -> int:
    """The most calls that wait for an answer while none of some queues is given."""
    machine = server.machine
    machine.twists[INFO] = lambda honest, arguments: (
        honest() if arguments.pObjectFormat.type == 1 else SILENCE
    )
    with msmqwire.manage("127.0.0.1", port=server.port, timeout=1) as host, pytest.raises(AnswerTimeout):
        host.queues()
    return server.most


def test_many_calls_are_in_flight_and_not_more() -> None:
    with raw_server(honest, count=3 * CALLS_MAX) as server:
        assert held_back(server, 3 * CALLS_MAX) == CALLS_MAX


def test_a_server_that_takes_one_call_at_a_time_gets_one() -> None:
    def without_multiplexing(before: int, data: bytes) -> Iterable[bytes]:
        changed = bytearray(data)
        if not before:
            changed[3] &= ~int(PfcFlags.CONC_MPX) & 0xFF
        yield bytes(changed)

    with raw_server(without_multiplexing, count=20) as server:
        with msmqwire.manage("127.0.0.1", port=server.port) as host:
            assert [row.messages for row in host.queues()] == [*range(20)]
        assert server.most == 1
        assert held_back(server, 20) == 1


def test_methods_at_a_time_share_the_limit() -> None:
    with raw_server(honest, count=100) as server:

        async def scenario() -> None:
            async with msmqwire.manage("127.0.0.1", port=server.port, timeout=limit(20)) as host:
                lists = await asyncio.gather(*(host.queues() for _ in range(4)))
            assert [len(rows) for rows in lists] == [100] * 4

        asyncio.run(scenario())
        assert 1 < server.most <= CALLS_MAX


def test_a_task_that_is_cancelled_leaves_nothing(machine: ManagedMachine) -> None:
    machine.twists[INFO] = for_queue(3, SILENCE)

    async def scenario() -> None:
        async with msmqwire.manage("127.0.0.1", port=machine.port, timeout=limit(20)) as host:
            task = asyncio.create_task(host.queues())
            while not machine.waiting:
                await asyncio.sleep(0.01)  # between two looks
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await host.queue(r"private$\orders1")).messages == 1
            assert len(asyncio.all_tasks()) == 1
        assert machine.server is not None
        assert len(machine.server.connections) == 2  # an answer may come that nobody waits for

    asyncio.run(scenario())
