"""Hostile and clumsy clients of remote read: each gets what it deserves, and the next client is served."""

from __future__ import annotations

import re
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.rpc.listener import ANSWERS_MAX
from msmqwire.qm.runtime.rpc.network import RpcOptions
from msmqwire.qm.runtime.rpc.services import RemoteReadListener
from msmqwire.remote_read.constants import Access, Action, Opnum
from msmqwire.rpc.constants import AuthLevel, FaultStatus, PduType, PfcFlags
from msmqwire.rpc.pdu import build_pdu, make_pdu
from msmqwire.service.watched_connection import QUIET_S
from tests.support.many_computers import many_computers
from tests.support.patience import limit
from tests.support.peers.raw_reader import RawReader
from tests.support.rpc.remote_read_harness import FOREVER, OK, Fault
from tests.support.running import (
    ADDRESS,
    ORDERS,
    PATIENCE_S,
    InThread,
    listed,
    options,
    peeked,
    put,
    recoverable,
    served,
    until,
)

QUEUE = rf"DIRECT=OS:alpha\{ORDERS}"
SHORT_S = limit(0.4)
BIG = 700_000


@contextmanager
def serving(data: Path, **limits: Any) -> Iterator[InThread]:
    """A server that lets in everybody, with an endpoint mapper."""
    rpc = RpcOptions((ADDRESS, 0), endpoint_mapper=(ADDRESS, 0), level=AuthLevel.NONE)
    limits = {"close_s": 0.2, **limits}
    with served(options(data, ORDERS, rpc=rpc, limits=Limits(**limits), metrics=(ADDRESS, 0))) as server:
        yield server


def port(server: InThread) -> int:
    return server.do(lambda running: running.rpc_network.listen[1])


def mapper_port(server: InThread) -> int:
    return server.do(lambda running: running.rpc_network.endpoint_mapper[1])


def traffic(server: InThread, name: str) -> int:
    count: int = server.do(lambda running: getattr(running.rpc_network.traffic, name))
    return count


def shares(server: InThread) -> tuple[int, int, int]:
    """The open queues, waiting reads and receives of all clients."""
    kept = server.do(lambda running: running.driver.core.remote_read.shares)
    return kept.handles.total, kept.waiting.total, kept.pending.total


def connections(server: InThread) -> int:
    return server.do(lambda running: len(running.rpc_network._queues))


def is_clean(server: InThread) -> bool:
    """Whether nothing is left of any call."""
    left = server.do(lambda running: len(running.rpc_network._queues._calls))
    return shares(server) == (0, 0, 0) and not left


def send(server: InThread, *bodies: bytes) -> None:
    with attach(server.data) as local:
        put(local, ORDERS, *recoverable(*bodies))


def check_served(server: InThread, source: str = "127.0.0.1") -> None:
    """An honest client is served."""
    reader = RawReader(port(server), source=source)
    handle = reader.open(QUEUE, Access.PEEK_ACCESS)
    reader.close(handle)
    reader.disconnect()


def calling(server: InThread, source: str) -> RawReader:
    """A client that has made a call."""
    reader = RawReader(port(server), source=source)
    reader.open(QUEUE, Access.PEEK_ACCESS)
    return reader


def request(stub: bytes, flags: int, *, call_id: int = 2, opnum: int = 0) -> bytes:
    fields = {"alloc_hint": 0, "p_cont_id": 0, "opnum": opnum, "stub_data": stub}
    return build_pdu(make_pdu(PduType.REQUEST, fields, header={"call_id": call_id, "pfc_flags": flags}))


def test_garbage_ends_its_connection_alone(data: Path) -> None:
    bind = bytes.fromhex("05000b03100000004800000001000000")
    pieces = [
        b"GET / HTTP/1.1\r\nHost: alpha\r\n\r\n",
        bytes(64),
        b"\xff" * 64,
        bind[:8] + b"\x00\x00" + bind[10:] + bytes(56),  # frag_length 0
        bind[:8] + b"\x0f\x00" + bind[10:] + bytes(56),  # less than the header
        bind[:10] + b"\xff\xff" + bind[12:] + bytes(56),  # auth_length beyond the PDU
        b"\x04" + bind[1:] + bytes(56),  # version 4
        bind[:4] + b"\x00\x00\x00\x00" + bind[8:] + bytes(56),  # big-endian
        bind + b"\xff" * 56,
        request(b"", PfcFlags.FIRST_FRAG | PfcFlags.LAST_FRAG),  # before a bind
    ]  # fmt: skip
    with serving(data) as server:
        with ExitStack() as opened:
            peers = []
            for at in (port(server), mapper_port(server)):
                for piece in pieces:
                    peers.append(opened.enter_context(socket.create_connection((ADDRESS, at), PATIENCE_S)))
                    peers[-1].sendall(piece)
            for peer in peers:
                while peer.recv(1 << 16):
                    pass
        check_served(server)
        until(lambda: is_clean(server), "nothing is left")


def test_silent_clients_are_dropped_unless_they_hold_a_queue(data: Path) -> None:
    with serving(data, rpc_read_s=SHORT_S, rpc_idle_s=SHORT_S) as server:
        begun = time.monotonic()
        keeper = RawReader(port(server))
        handle = keeper.open(QUEUE)
        waiter = RawReader(port(server))
        waiting = waiter.start(waiter.open(QUEUE), request=1, timeout=FOREVER)
        silent = RawReader(port(server), bind=False)
        half = RawReader(port(server), bind=False)
        half.socket.sendall(bytes.fromhex("05000b0310000000480000"))
        idle = RawReader(port(server))
        fragment = RawReader(port(server))
        fragment.socket.sendall(request(b"a", PfcFlags.FIRST_FRAG))
        trickle = RawReader(port(server))
        trickle.socket.sendall(request(b"a", PfcFlags.FIRST_FRAG))
        until(lambda: time.monotonic() > begun + SHORT_S / 2, "half the time")
        trickle.socket.sendall(request(b"a", 0))  # more of the same request gives it no more time
        for reader in (silent, half, idle, fragment, trickle):
            assert reader.is_ended()
        assert SHORT_S <= time.monotonic() - begun < 10 * SHORT_S
        time.sleep(SHORT_S)  # the limit of who has nothing open
        assert keeper.close(handle)[0] == OK
        send(server, b"1")
        assert waiter.result(waiting) == b"1"
        waiter.disconnect()
        until(lambda: peeked(data, ORDERS) == [b"1"], "the message is back")
        assert keeper.is_ended()
        until(lambda: is_clean(server), "nothing is left")


def test_connections_are_counted_in_all_and_by_peer(data: Path) -> None:
    limits = {"rpc_connections": 5, "rpc_connections_per_peer": 3, "reserved_percent": 0}
    with many_computers(), serving(data, **limits) as server:
        readers = [calling(server, "127.0.0.40") for _ in range(3)]
        assert RawReader(port(server), bind=False, source="127.0.0.40").is_ended()
        readers += [calling(server, "127.0.0.41") for _ in range(2)]
        readers.append(calling(server, "127.0.0.42"))  # it has none: one of three makes room
        assert readers[0].is_ended()
        assert RawReader(port(server), bind=False, source="127.0.0.42").is_ended()
        assert (traffic(server, "accepted"), traffic(server, "refused")) == (6, 2)
        assert traffic(server, "evicted") == 1
        readers[1].disconnect()
        until(
            lambda: server.do(lambda running: len(running.rpc_network._queues)) == 4,
            "one is gone",
        )
        check_served(server)


def test_calls_that_wait_are_counted(data: Path) -> None:
    with serving(data, rpc_calls=3, rpc_waiting_per_caller=5) as server:
        first, second = RawReader(port(server)), RawReader(port(server))
        handle = first.open(QUEUE)
        waiting = [first.start(handle, request=number, timeout=FOREVER) for number in range(3)]
        with pytest.raises(Fault) as busy:
            first.call(Opnum.R_GetServerPort)
        assert busy.value.status == FaultStatus.NCA_S_SERVER_TOO_BUSY
        other = second.open(QUEUE)
        more = [second.start(other, request=number, timeout=FOREVER) for number in range(3)]
        assert second.result(more[2]) == 0xC00E0027  # MQ_ERROR_INSUFFICIENT_RESOURCES
        check_served(server, "127.0.0.41")
        first.association.cancel(waiting[0])
        first.flush()
        with pytest.raises(Fault) as cancelled:
            first.answer(waiting[0])
        assert cancelled.value.status == FaultStatus.NCA_S_FAULT_CANCEL
        first.association.orphan(waiting[1])
        first.flush()
        assert first.call(Opnum.R_GetServerPort).status == port(server)
        until(lambda: shares(server)[1] == 3, "the orphaned call does not wait any more")
        send(server, b"1")
        assert first.result(waiting[2]) == b"1"
        for reader in (first, second):
            reader.disconnect()
        until(lambda: is_clean(server), "nothing is left")
        assert peeked(data, ORDERS) == [b"1"]


def test_a_reused_call_number_gets_only_its_last_answer(data: Path) -> None:
    with serving(data) as server:
        reader = RawReader(port(server))
        handle = reader.open(QUEUE)
        call = reader.start(handle, timeout=FOREVER)
        until(lambda: shares(server)[1] == 1, "the receive waits")
        orphaned = build_pdu(make_pdu(PduType.ORPHANED, {}, header={"call_id": call}))
        whole = PfcFlags.FIRST_FRAG | PfcFlags.LAST_FRAG
        reader.socket.sendall(orphaned + request(b"", whole, call_id=call, opnum=Opnum.R_GetServerPort))
        answer = reader.socket.recv(1 << 16)
        assert (answer[2], answer[-4:]) == (PduType.RESPONSE, port(server).to_bytes(4, "little"))
        reader.disconnect()
        until(lambda: is_clean(server), "the queue is closed")


@pytest.mark.requirement("MQRR-3.1.4-01", "MQRR-3.1.4-04")
def test_arguments_that_can_not_be_read_fail_their_call_alone(data: Path) -> None:
    with serving(data, rpc_request_bytes=10_000) as server:
        reader = RawReader(port(server))
        handle = reader.open(QUEUE)
        for stub, status in (
            (b"", FaultStatus.RPC_X_BAD_STUB_DATA),
            (b"\xff" * 100, FaultStatus.RPC_X_BAD_STUB_DATA),
            (bytes(10_001), FaultStatus.NCA_S_FAULT_REMOTE_NO_MEMORY),
            (bytes(1 << 20), FaultStatus.NCA_S_FAULT_REMOTE_NO_MEMORY),
        ):
            with pytest.raises(Fault) as fault:
                reader.answer(reader.send_call(Opnum.R_OpenQueue, stub))
            assert fault.value.status == status
        for opnum in (Opnum.Opnum1NotUsedOnWire, max(Opnum) + 1):
            with pytest.raises(Fault) as fault:
                reader.answer(reader.send_call(opnum, b""))
            assert fault.value.status == FaultStatus.NCA_S_OP_RNG_ERROR
        assert traffic(server, "faults") == 6
        assert reader.close(handle)[0] == OK


def test_incomplete_requests_of_all_are_bounded(data: Path) -> None:
    with serving(data, rpc_held_bytes=BIG) as server:
        greedy = [RawReader(port(server)) for _ in range(4)]
        piece = bytes(4_000)
        for reader in greedy:
            data_sent = request(piece, PfcFlags.FIRST_FRAG) + request(piece, 0) * 60
            reader.socket.sendall(data_sent)
        until(lambda: traffic(server, "ended") == 2, "two of four are ended")
        held = server.do(lambda running: running.rpc_network._queues.held.total)
        assert BIG / 2 < held <= BIG
        check_served(server)


def test_a_nonreading_client_is_dropped_without_loss(
    data: Path,
) -> None:
    """A client that reads slowly is not, and the messages of the other one return."""
    with serving(data, rpc_read_s=SHORT_S) as server:
        body = bytes(BIG)
        for _ in range(4):
            send(server, *[body] * 10)
        reader = RawReader(port(server))
        handle = reader.open(QUEUE)
        for number in range(40):
            reader.start(handle, request=number)
        until(lambda: is_clean(server), "the reader is cut off")
        assert listed(data)[ORDERS]["messages"] == 40
        slow = RawReader(port(server))
        handle = slow.open(QUEUE)
        calls = [slow.start(handle, request=number) for number in range(40)]
        for _ in range(6):
            for _ in range(32):
                slow.receive()
            time.sleep(SHORT_S / 2)  # slowly, but within the limit
        assert [slow.result(call) for call in calls] == [body] * 40
        assert slow.end(handle, 0) == OK
        slow.disconnect()
        until(lambda: is_clean(server), "the queue is closed")
        assert listed(data)[ORDERS]["messages"] == 39


def test_answers_to_pipelined_large_reads_are_made_on_demand(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most: list[int] = []
    hand_out = RemoteReadListener.flush

    def flush(listener: RemoteReadListener) -> None:
        most.append(listener.answering)
        hand_out(listener)

    monkeypatch.setattr(RemoteReadListener, "flush", flush)
    with serving(data, unsent_bytes=2 << 20) as server:
        send(server, bytes(BIG))
        reader = RawReader(port(server))
        handle = reader.open(QUEUE)
        with monkeypatch.context() as patch:
            patch.setattr(reader, "flush", lambda: None)
            calls = [reader.start(handle, Action.MQ_ACTION_PEEK_CURRENT) for _ in range(8)]
            last = reader.begin(Opnum.R_CloseQueue, pphContext=handle)
        reader.flush()
        assert [reader.result(call) for call in calls] == [bytes(BIG)] * 8
        assert reader.answer(last).status == OK
        reader.disconnect()
    assert BIG < max(most) < ANSWERS_MAX + BIG + 1024


@pytest.mark.requirement("MQRR-3.1.6.1-01", "MQRR-3.1.6.2-03", "MQRR-3.1.6.2-04", "MQRR-3.1.6.2-05")
def test_a_connection_group_keeps_its_queues_until_it_ends(data: Path) -> None:
    with serving(data) as server:
        send(server, b"1", b"2")
        first = RawReader(port(server))
        handle = first.open(QUEUE)
        second = RawReader(port(server), group=first.association.group)
        assert second.association.group == first.association.group
        assert second.read(handle, request=1) == b"1"
        other = RawReader(port(server))
        with pytest.raises(Fault) as foreign:
            other.read(handle, Action.MQ_ACTION_PEEK_CURRENT)
        assert foreign.value.status == FaultStatus.NCA_S_FAULT_CONTEXT_MISMATCH
        with pytest.raises(ConnectionError):
            RawReader(port(server), group=first.association.group, source="127.0.0.41")
        assert second.read(handle, request=2) == b"2"
        second.start(handle, request=3, timeout=FOREVER)
        until(lambda: shares(server) == (1, 1, 3), "one waits")
        second.disconnect()
        until(lambda: shares(server) == (1, 0, 2), "its call waits no more")
        assert first.end(handle, 1) == OK
        first.disconnect()
        until(lambda: is_clean(server), "the queue is closed")
        assert peeked(data, ORDERS) == [b"2"]


def test_one_connection_does_not_fill_the_log(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "msmqwire"), serving(data) as server:
        reader = RawReader(port(server))
        for _ in range(50):
            with pytest.raises(Fault):
                reader.answer(reader.send_call(Opnum.R_OpenQueue, b""))
        reader.disconnect()
    logged = [record.getMessage() for record in caplog.records]
    assert logged.count("the arguments of a call can't be read") == 1


def test_a_stop_does_not_wait_for_idle_clients(data: Path) -> None:
    """They do not even look at what comes."""
    with serving(data, close_s=limit(20)) as server:
        reader, mapper = RawReader(port(server)), RawReader(mapper_port(server), bind=False)
        reader.open(QUEUE)
        until(lambda: connections(server) == 1, "it is there")
        time.sleep(QUIET_S)  # from when on a connection counts as idle
        began = time.monotonic()
    assert time.monotonic() - began < limit(5)
    for client in (reader, mapper):
        assert bytes([PduType.SHUTDOWN]) == client.socket.recv(16)[2:3]


def test_metrics_and_logs_say_what_goes_on(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "msmqwire"), serving(data, rpc_connections=2) as server:
        at = server.do(lambda running: running._metrics.port)

        def figures(name: str) -> list[float]:
            with urllib.request.urlopen(f"http://{ADDRESS}:{at}/metrics", timeout=PATIENCE_S) as page:
                found = re.findall(rf"(?m)^{name}{{.*}} (\S+)$", page.read().decode())
            return [float(number) for number in found]

        reader = RawReader(port(server))
        handle = reader.open(QUEUE)
        reader.start(handle, request=1, timeout=FOREVER)
        reader.create_cursor(handle)
        with pytest.raises(Fault):
            reader.answer(reader.send_call(Opnum.R_OpenQueue, b""))
        mapper = RawReader(mapper_port(server), bind=False)
        mapper.socket.sendall(b"what?" * 10)
        assert mapper.is_ended()
        silent = RawReader(port(server), bind=False)
        other = calling(server, ADDRESS)
        assert silent.is_ended(), "it makes room"
        assert RawReader(port(server), bind=False).is_ended()
        other.disconnect()
        for name, remote_read, endpoint_mapper in (
            ("accepted", 3, 1), ("refused", 1, 0), ("evicted", 1, 0), ("ended", 0, 0), ("calls", 5, 0),
            ("faults", 1, 0),
        ):  # fmt: skip
            assert figures(f"msmqwire_rpc_{name}_total") == [remote_read, endpoint_mapper], name
        until(lambda: figures("msmqwire_remote_read") == [1, 1, 1, 1], "what the first reader has is left")
        reader.disconnect()
        until(lambda: figures("msmqwire_remote_read") == [0, 0, 0, 0], "nothing is left")
    logged = {record.getMessage() for record in caplog.records}
    assert {
        "the arguments of a call can't be read", "a connection of RPC is refused", "a connection of RPC ends",
    } <= logged  # fmt: skip
