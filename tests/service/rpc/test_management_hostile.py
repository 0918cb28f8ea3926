"""Administrators that flood, stall and lie, and callers without rights: the server goes on."""

from __future__ import annotations

import socket
import struct
import time
import tracemalloc
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from msmqwire.management.constants import Opnum
from msmqwire.management.interface import build_request
from msmqwire.management.variants import variant
from msmqwire.qm.model.elements import ConnectionHistory, Queue
from msmqwire.qm.model.enumerations import ConnectionStatus, ManageAccess, QueueType
from msmqwire.qm.runtime.rpc.listener import BUSY_S
from msmqwire.qm.runtime.rpc.management import DENIED_MAX
from msmqwire.rpc.constants import NDR20, PduType
from msmqwire.rpc.ndr import SYNTAXES
from msmqwire.rpc.pdu import build_pdu, make_pdu
from tests.service.rpc.test_management_serve import FAR, NULL_VARIANT, QUEUE, info_stub, send_far, serving
from tests.support.nightly import nightly
from tests.support.patience import limit
from tests.support.peers.administrator import MACHINE, Administrator, info_arguments, queue_named
from tests.support.rpc.remote_read_harness import Fault
from tests.support.running import InThread, until

MANY = 100_000
DENIED, FULL, ILLEGAL = 0xC00E0025, 0xC00E0027, 0xC00E0039


def stub(managed: Any, *identifiers: int, values: Any = None) -> bytes:
    """The arguments of R_QMMgmtGetInfo."""
    return build_request(Opnum.R_QMMgmtGetInfo, info_arguments(managed, identifiers, values), SYNTAXES[NDR20])


def fill(server: InThread, count: int) -> None:
    """Give the queue manager many queues that are open; they are not stored."""

    def add(running: Any) -> None:
        manager = running.driver.core.queue_manager
        for number in range(count):
            path = rf"alpha\private$\customer-orders-of-region-{number:06d}"
            queue = Queue(UUID(int=number + 5), pathname=path)
            queue.number, queue.queue_type = 1 << 20 | number, QueueType.PRIVATE
            queue.descriptors[1] = None  # type: ignore[assignment]  # only counted
            manager.queues[queue.number] = queue

    server.do(add)


class Gaps:
    """How long the loop of a server was away, at worst."""

    def __init__(self, server: InThread) -> None:
        self._server = server
        self.worst = 0.0
        self._last = 0.0
        server.do(lambda _: self._tick())

    def _tick(self) -> None:
        now = time.monotonic()
        if self._last:
            self.worst = max(self.worst, now - self._last)
        self._last = now
        self._server.loop.call_later(0.001, self._tick)


def test_the_names_of_100000_queues_do_not_stop_the_server(data: Path) -> None:
    with serving(data) as (server, port):
        fill(server, MANY)
        big, other = Administrator(port), Administrator(port)
        gaps = Gaps(server)
        begun = time.monotonic()
        call = big.begin(Opnum.R_QMMgmtGetInfo, info_arguments(MACHINE, (1,)))
        served_meanwhile = 0
        while call not in big._answers:
            assert other.values(MACHINE, 4) == ["CONNECTED"]
            served_meanwhile += 1
            big.socket.setblocking(False)
            try:
                big.receive()
            except BlockingIOError:
                pass
            finally:
                big.socket.settimeout(limit(60))
        took = time.monotonic() - begun
        (names,) = big.answer(call).apVar
        assert len(names.value.pElems) == MANY
        assert served_meanwhile > 3
        assert gaps.worst < max(limit(1.0), took / 2)
        for one in (big, other):
            one.disconnect()


def test_many_ask_for_all_names_at_once(data: Path) -> None:
    """Their answers are built one after the other; no more than one is held besides those that are sent."""
    with serving(data) as (server, port):
        fill(server, 20_000)
        crowd = [Administrator(port) for _ in range(12)]
        calls = [one.begin(Opnum.R_QMMgmtGetInfo, info_arguments(MACHINE, (1, 2))) for one in crowd]
        assert crowd[0].answer(calls[0]).status == 0
        waiting = server.do(lambda running: len(running.rpc_network._queues._long._waiting))
        assert waiting < len(crowd)
        for one in crowd[:4]:
            one.disconnect()  # before its answer is read, or built
        for one, call in zip(crowd[4:], calls[4:], strict=True):
            assert one.answer(call).status == 0
            one.disconnect()
        long = server.do(lambda running: running.rpc_network._queues._long)
        until(lambda: server.do(lambda _: not long._under_way and long._built is None), "nothing is left")


def test_one_id_128_times_with_a_long_history(data: Path) -> None:
    with serving(data) as (server, port):
        send_far(data)

        def history(running: Any) -> None:
            for queue in running.driver.core.queue_manager.queues.values():
                for _ in range(64 if hasattr(queue, "connection_history") else 0):
                    addresses = tuple(f"10.0.0.{number}" for number in range(64))
                    queue.connection_history.append(
                        ConnectionHistory(ConnectionStatus.DNS_FAILURE, 1, 2, addresses)
                    )

        server.do(history)
        one, other = Administrator(port), Administrator(port)
        call = one.send_call(0, stub(queue_named(FAR), *[25] * 128))
        begun = time.monotonic()
        assert other.values(MACHINE, 4) == ["CONNECTED"]  # it does not wait for the long one
        assert time.monotonic() - begun < limit(2.0)
        results = one.answer(call)
        assert (results.status, len(results.apVar)) == (0, 128)
        for administrator in (one, other):
            administrator.disconnect()


def test_a_flood_of_calls_leaves_turns_for_others(data: Path) -> None:
    with serving(data) as (server, port):
        flood, other = Administrator(port), Administrator(port)
        asked = stub(queue_named(QUEUE), *range(1, 28))
        gaps = Gaps(server)
        calls = []
        for _ in range(250):  # of 256 that may wait
            calls.append(flood.association.call(0, asked))
            flood._opnums[calls[-1]] = 0
        flood.flush()
        begun = time.monotonic()
        assert other.values(MACHINE, 4) == ["CONNECTED"]
        waited = time.monotonic() - begun
        assert [flood.answer(call).status for call in calls] == [0] * 250
        took = time.monotonic() - begun
        assert waited < took / 2
        assert gaps.worst < max(limit(10 * BUSY_S), took / 3)
        for one in (flood, other):
            one.disconnect()


@nightly
def test_a_reader_that_does_not_read_is_asked_no_more(data: Path) -> None:
    with serving(data, rpc_read_s=limit(1.0)) as (server, port):
        fill(server, 20_000)
        slow = Administrator(port)
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        asked = stub(MACHINE, 1, 2)
        for _ in range(50):  # 250 MB of answers
            slow.association.call(0, asked)
        slow.flush()
        time.sleep(limit(0.5))  # it does not read
        held = server.do(lambda running: max((one.held for one in running.rpc_network._queues), default=0))
        assert held < 16 << 20
        assert slow.is_ended()
        until(lambda: server.do(lambda running: len(running.rpc_network._queues)) == 0, "it is gone")
        other = Administrator(port)
        assert other.values(MACHINE, 4) == ["CONNECTED"]
        other.disconnect()


def test_halves_of_calls_and_ends_in_the_middle(data: Path) -> None:
    with serving(data) as (server, port):
        for cut in range(1, 120, 7):
            half = Administrator(port)
            fields = {"alloc_hint": 0, "p_cont_id": 0, "opnum": 0, "stub_data": info_stub()}
            header = {"call_id": 9, "pfc_flags": 3}
            half.socket.sendall(build_pdu(make_pdu(PduType.REQUEST, fields, header=header))[:cut])
            half.disconnect()
        until(lambda: server.do(lambda running: len(running.rpc_network._queues)) == 0, "they are gone")
        calls = server.do(lambda running: dict(running.rpc_network.management.calls))
        assert sum(calls.values()) <= 17


@pytest.mark.requirement("MQMR-2.2.3-09", "MQMR-3.1.4-01")
@pytest.mark.parametrize("depth", [5, 6, 50, 600])
def test_nested_variants_take_no_memory(data: Path, depth: int) -> None:
    """Each level is 24 bytes of a stub that may have 16,384."""
    level = struct.pack("<HBBIHHIII", 0x100C, 0, 0, 0, 0x100C, 0, 1, 1, 1)
    nested = level * depth + NULL_VARIANT
    with serving(data) as (_, port):
        administrator = Administrator(port)
        deepest = info_stub(variants=level * 4 + NULL_VARIANT)
        assert administrator.answer(administrator.send_call(0, deepest)).status == 0
        tracemalloc.start()
        with pytest.raises(Fault):
            administrator.answer(administrator.send_call(0, info_stub(variants=nested)))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 20 << 20
        administrator.disconnect()


def test_many_values_come_back_once(data: Path) -> None:
    """A failed call returns what it was given: no more bytes than came."""
    given = (variant(0x101F, ("x" * 100,) * 50), variant(0x1011, bytes(4_000)))
    with serving(data) as (_, port):
        administrator = Administrator(port)
        asked = stub(MACHINE, 1, 99, values=given)
        call = administrator.send_call(0, asked)
        while call not in administrator._answers:
            administrator.receive()
        assert len(administrator._answers[call].stub) <= len(asked)
        assert administrator.answer(call).status == ILLEGAL
        administrator.disconnect()


def test_a_caller_without_rights_is_heard_briefly(data: Path) -> None:
    with serving(data, ManageAccess.NONE) as (_, port):
        administrator = Administrator(port)
        for length, fits in ((DENIED_MAX - 200, True), (DENIED_MAX, False)):
            asked = stub(MACHINE, 1, values=(variant(0x1011, bytes(length)),))
            call = administrator.send_call(0, asked)
            if fits:
                assert administrator.answer(call).status == DENIED
            else:
                with pytest.raises(Fault):
                    administrator.answer(call)
        administrator.disconnect()


def test_denied_callers_cost_little(data: Path) -> None:
    """However many queues there are."""
    with serving(data, ManageAccess.NONE) as (server, port):
        fill(server, MANY)
        administrator = Administrator(port)
        begun = time.monotonic()
        for _ in range(100):
            assert administrator.info(MACHINE, 1, 2).status == DENIED
        assert time.monotonic() - begun < limit(5.0)
        administrator.disconnect()


def test_too_long_an_answer_is_refused(data: Path) -> None:
    with serving(data) as (server, port):
        fill(server, 60_000)
        administrator = Administrator(port)
        results = administrator.info(MACHINE, *[1, 2] * 4)
        assert results.status == FULL
        assert {value.vt for value in results.apVar} == {1}
        assert administrator.info(MACHINE, 1).status == 0
        administrator.disconnect()


def test_floods_of_binds(data: Path) -> None:
    with serving(data, rpc_connections_per_peer=20, rpc_connections=40) as (server, port):
        crowd = []
        for _ in range(60):
            try:
                crowd.append(Administrator(port, bind=False))
            except OSError:
                break
        for one in crowd:
            try:
                one.association.bind()
                one.flush()
            except OSError:
                continue
        assert server.do(lambda running: len(running.rpc_network._queues)) <= 40
        for one in crowd:
            one.disconnect()
        until(lambda: server.do(lambda running: len(running.rpc_network._queues)) == 0, "they are gone")
        last = Administrator(port)
        assert last.values(MACHINE, 4) == ["CONNECTED"]
        last.disconnect()
