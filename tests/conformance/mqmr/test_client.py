"""The client of [MS-MQMR]: what it sends, and what it makes of answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import msmqwire
from msmqwire.constants import HResult, VarEnum
from msmqwire.constants import ManagementQueueProperty as Q
from msmqwire.errors import ProtocolViolation, QueueError, RpcFault, RpcRefused, Unreachable
from msmqwire.management.constants import Opnum
from msmqwire.management.interface import INTERFACE, build_response
from msmqwire.management.variants import NULL, variant
from msmqwire.qm.client import SyncManagedHost
from msmqwire.rpc.constants import NDR20 as NDR
from msmqwire.rpc.constants import NDR64, FaultStatus
from msmqwire.rpc.endpoint_mapper import ENDPOINT_MAPPER, ENDPOINT_MAPPER_METHODS, EndpointMapper
from msmqwire.rpc.ndr import NDR20
from tests.support.rpc.management_server import HOST, SILENCE, ManagedMachine, managed_machine
from tests.support.rpc.rpc_server import map_endpoints, rpc_server

ORDERS = rf"DIRECT=OS:{HOST}\private$\orders"
INFO, ACTION = Opnum.R_QMMgmtGetInfo, Opnum.R_QMMgmtAction


@pytest.fixture
def machine() -> Iterator[ManagedMachine]:
    """A computer with a private queue and an outgoing one."""
    with managed_machine() as machine:
        machine.has_private("orders", 3)
        machine.has_outgoing(r"other\private$\bills", 7)
        yield machine


@pytest.fixture
def host(machine: ManagedMachine) -> Iterator[SyncManagedHost]:
    """The same, managed."""
    with msmqwire.manage("127.0.0.1", port=machine.port) as host:
        yield host


# -- what is sent ----------------------------------------------------------------------------------------


@pytest.mark.requirement("MQMR-2.2-01", "MQMR-2.1-03")
def test_ndr_alone_is_offered(machine: ManagedMachine, host: SyncManagedHost) -> None:
    host.machine()
    assert machine.server is not None
    _, bind = machine.server.connections[0].data[0]
    assert INTERFACE.uuid.bytes_le in bind
    assert NDR.uuid.bytes_le in bind
    assert NDR64.uuid.bytes_le not in bind
    assert machine.syntaxes == {NDR}


def test_ndr64_is_spoken_on_demand_alone(machine: ManagedMachine) -> None:
    with msmqwire.manage("127.0.0.1", port=machine.port, ndr64=True) as host:
        assert [(one.path, one.messages) for one in host.queues()] == [
            (rf"{HOST}\private$\orders", 3),
            (r"other\private$\bills", 7),
        ]
        host.pause(r"DIRECT=OS:other\private$\bills")
    assert machine.server is not None
    _, bind = machine.server.connections[0].data[0]
    assert NDR.uuid.bytes_le not in bind
    assert machine.syntaxes == {NDR64}


@pytest.mark.requirement("MQMR-3.1.4.1-05", "MQMR-3.1.4.1-06", "MQMR-3.1.4.1-03")
def test_every_property_is_asked_for_with_null(machine: ManagedMachine, host: SyncManagedHost) -> None:
    host.machine()
    host.queue(ORDERS)
    of_machine, of_queue = machine.asked()
    assert list(of_machine.aProp) == list(range(1, 7))
    assert list(of_queue.aProp) == list(range(1, 28))
    for asked in (of_machine, of_queue):
        assert asked.cp == len(asked.aProp) == len(asked.apVar)
        assert {value.vt for value in asked.apVar} == {VarEnum.VT_NULL}
    assert host.queue(ORDERS).messages == 3  # the value at the index of its identifier


@pytest.mark.requirement("MQMR-4-01", "MQMR-3.1.4.2-05", "MQMR-2.2.1.2-08")
def test_a_public_queue_is_paused(machine: ManagedMachine, host: SyncManagedHost) -> None:
    name = "PUBLIC=01020304-0506-0708-090a-0b0c0d0e0f10"
    machine.add(name, {})
    host.pause(name)
    assert machine.actions == [("PAUSE", name)]
    referent = machine.stubs[-1][4:8]
    assert referent != bytes(4)
    guid = bytes.fromhex("04030201 0605 0807 090a0b0c0d0e0f10")
    text = "PAUSE\0".encode("utf-16-le")
    counts = b"".join(number.to_bytes(4, "little") for number in (6, 0, 6))
    assert machine.stubs[-1] == (b"\2\0\2\0" + referent + b"\1\0\0\0" + b"\1\0\0\0" + guid + counts + text)
    assert len(machine.stubs[-1]) == 56


@pytest.mark.requirement("MQMR-4.1-01")
def test_private_queues_are_asked_by_names_of_their_paths(
    machine: ManagedMachine, host: SyncManagedHost
) -> None:
    [orders, bills] = host.queues()
    assert machine.names()[0] == rf"DIRECT=OS:{HOST}\PRIVATE$\orders"
    assert (orders.path, orders.messages) == (rf"{HOST}\private$\orders", 3)
    assert bills.outgoing


@pytest.mark.requirement("MQMR-4.1-02")
@pytest.mark.parametrize("address", ["OS:other", "TCP:10.0.0.9", "HTTP://other/MSMQ"])
def test_a_listed_outgoing_queue_is_paused_by_its_name(
    machine: ManagedMachine, host: SyncManagedHost, address: str
) -> None:
    name = f"DIRECT={address}\\private$\\parcels"
    machine.active.append(name)
    machine.add(name, {Q.PROPID_MGMT_QUEUE_LOCATION: variant(VarEnum.VT_LPWSTR, "REMOTE")})
    [_, parcels] = host.outgoing()
    host.pause(parcels.asked)
    assert machine.actions[0][0] == "PAUSE"
    assert str(machine.actions[0][1]).lower() == name.lower()
    assert address.encode("utf-16-le") in machine.stubs[-1]
    assert "DIRECT=".encode("utf-16-le") not in machine.stubs[-1]


# -- the connection --------------------------------------------------------------------------------------


@pytest.mark.requirement("MQMR-1.5-01", "MQMR-2.1-02")
def test_the_endpoint_mapper_knows_the_port(machine: ManagedMachine) -> None:
    mapper = EndpointMapper({INTERFACE: machine.port})
    interfaces = {ENDPOINT_MAPPER: ENDPOINT_MAPPER_METHODS}
    with (
        rpc_server(interfaces=interfaces, perform=map_endpoints(mapper)) as server,
        msmqwire.manage("127.0.0.1", mapper_port=server.port) as host,
    ):
        assert host.machine().connected is True
        assert host.queue(ORDERS).messages == 3
        assert len(server.connections) == 1


@pytest.mark.requirement("MQMR-1.5-01")
def test_an_interface_that_the_mapper_lacks_is_an_error() -> None:
    interfaces = {ENDPOINT_MAPPER: ENDPOINT_MAPPER_METHODS}
    with (
        rpc_server(interfaces=interfaces, perform=map_endpoints(EndpointMapper({}))) as server,
        msmqwire.manage("127.0.0.1", mapper_port=server.port) as host,
        pytest.raises(RpcFault) as caught,
    ):
        host.machine()
    assert caught.value.status == FaultStatus.EPT_S_NOT_REGISTERED


@pytest.mark.requirement("MQMR-3.2.1-01", "MQMR-3.2.3-01", "MQMR-1.3-01", "MQMR-3-01")
def test_one_connection_serves_all_calls(machine: ManagedMachine) -> None:
    async def scenario() -> None:
        async with msmqwire.manage("127.0.0.1", port=machine.port) as host:
            assert machine.server is not None
            assert machine.server.connections == []  # the first method connects
            many = [host.queue(ORDERS) for _ in range(100)]
            reports = await asyncio.gather(host.machine(), host.queues(), host.outgoing(), *many)
            assert [report.messages for report in reports[3:]] == [3] * 100
            await host.pause(r"other\private$\bills")
            assert (await host.queue(ORDERS)).messages == 3
        assert len(machine.server.connections) == 1

    asyncio.run(scenario())


@pytest.mark.requirement("MQMR-1.9-01", "MQMR-3.2.4-02")
def test_a_server_without_the_interface_refuses() -> None:
    with (
        rpc_server() as server,
        msmqwire.manage("127.0.0.1", port=server.port) as host,
        pytest.raises(RpcRefused, match="does not serve 41208ee0"),
    ):
        host.machine()


# -- answers ---------------------------------------------------------------------------------------------

STATUSES = [1, 5, 0x8007_0005, 0xC00E0001, 0xC00E0003, 0xC00E0006, 0xC00E0025, 0x4000_0000, 0xE000_0007]


@pytest.mark.requirement("MQMR-3-05", "MQMR-3-06", "MQMR-3.2.4-01", "MQMR-3.2.4-02", "MQMR-1.8-01")
@pytest.mark.parametrize("status", STATUSES, ids=hex)
def test_every_other_status_than_0_is_an_error(
    machine: ManagedMachine, host: SyncManagedHost, status: int
) -> None:
    machine.twists[INFO] = lambda honest, arguments: {**honest(), "status": status}
    machine.twists[ACTION] = lambda honest, arguments: {"status": status}
    for method in (host.machine, host.tidy, lambda: host.queue(ORDERS), lambda: host.pause(ORDERS)):
        with pytest.raises(QueueError) as caught:
            method()
        assert caught.value.hresult == status
    assert len(machine.calls) == 4  # nothing is tried again


@pytest.mark.requirement("MQMR-3.2.4-03")
def test_values_of_a_failure_are_ignored(machine: ManagedMachine, host: SyncManagedHost) -> None:
    machine.twists[INFO] = lambda honest, arguments: {
        **honest(),
        "status": 0 if arguments.pObjectFormat.type == 1 else int(HResult.MQ_ERROR_QUEUE_NOT_FOUND),
    }
    rows = host.queues()
    assert [(row.messages, row.path, row.state) for row in rows] == [(None, None, None)] * 2
    assert {row.reason for row in rows} == {"there is no such queue (MQ_ERROR_QUEUE_NOT_FOUND)"}


def whole(*values: Any, status: int = 0) -> bytes:
    """The stub of an answer."""
    return build_response(INFO, {"apVar": values, "status": status}, NDR20)


def changed(stub: bytes, at: int, number: int, size: int = 4) -> bytes:
    """A stub with another number at a place."""
    return stub[:at] + number.to_bytes(size, "little") + stub[at + size :]


TEXTS = whole(variant(VarEnum.VT_VECTOR | VarEnum.VT_LPWSTR, ["one"]))
TEXT = whole(variant(VarEnum.VT_LPWSTR, "one"))
WRONG = {
    "fewer": whole(*[NULL] * 26),
    "more": whole(*[NULL] * 28),
    "none": b"",
    "status alone": bytes(4),
    "count beyond the stub": changed(whole(*[NULL] * 27), 0, 0x7FFF_FFFF),
    "unknown type": changed(changed(whole(*[NULL] * 27), 8, 0x2002, 2), 16, 0x2002, 2),
    "two types": changed(whole(*[NULL] * 27), 16, VarEnum.VT_EMPTY, 2),
}


@pytest.mark.requirement("MQMR-3.2.4-04", "MQMR-3.1.4-01", "MQMR-2.2.3-05")
@pytest.mark.parametrize("stub", WRONG.values(), ids=WRONG)
def test_wrong_answers_are_errors(machine: ManagedMachine, host: SyncManagedHost, stub: bytes) -> None:
    machine.twists[INFO] = lambda honest, arguments: stub
    with pytest.raises(ProtocolViolation, match="R_QMMgmtGetInfo"):
        host.queue(ORDERS)


def one_text(stub: bytes) -> Any:
    """Answers with a stub of one value where a machine's second property is asked for."""
    return lambda honest, arguments: stub if len(arguments.aProp) == 1 else honest()


@pytest.mark.requirement("MQMR-3.2.4-04", "MQMR-3.2.4-05", "MQMR-2.2.3-06", "MQMR-2.2.3-08")
@pytest.mark.parametrize(
    "stub",
    [
        pytest.param(changed(TEXTS, 24, 0), id="null-vector"),
        pytest.param(changed(TEXTS, 20, 2), id="count-of-another"),
        pytest.param(changed(TEXTS, 28, 2), id="max-count-of-another"),
        pytest.param(TEXTS.replace("e\0".encode("utf-16-le"), "ee".encode("utf-16-le")), id="no-nul"),
        pytest.param(changed(TEXTS, 20, 0xFFFF_FFFF), id="giant"),
    ],
)
def test_wrong_vectors_are_errors(machine: ManagedMachine, host: SyncManagedHost, stub: bytes) -> None:
    machine.twists[INFO] = one_text(stub)
    with pytest.raises(ProtocolViolation, match="R_QMMgmtGetInfo"):
        host.queue(r"private$\orders")  # the name of the computer is learned of its private queues


@pytest.mark.requirement("MQMR-3.2.4-06")
def test_a_value_of_another_type_is_none(machine: ManagedMachine, host: SyncManagedHost) -> None:
    machine.queues[ORDERS.lower()] |= {
        Q.PROPID_MGMT_QUEUE_MESSAGE_COUNT: variant(VarEnum.VT_LPWSTR, "3"),
        Q.PROPID_MGMT_QUEUE_STATE: variant(VarEnum.VT_UI4, 7),
        Q.PROPID_MGMT_QUEUE_BYTES_IN_QUEUE: variant(VarEnum.VT_EMPTY),
    }
    report = host.queue(ORDERS)
    assert (report.messages, report.state, report.bytes) == (None, None, None)
    assert report.unavailable == {
        "messages": "a value of type 0x001f, not 0x0013",
        "state": "a value of type 0x0013, not 0x001f",
    }
    assert report.journal_messages == 0


@pytest.mark.requirement("MQMR-1.3-03", "MQMR-3.1.4.1-18", "MQMR-1.7-01")
def test_an_old_system_is_asked_again(machine: ManagedMachine, host: SyncManagedHost) -> None:
    machine.old = True
    report, of_machine = host.queue(ORDERS), host.machine()
    assert [list(asked.aProp) for asked in machine.asked()] == [
        [*range(1, 28)],
        [*range(1, 24)],
        [*range(1, 7)],
        [*range(1, 6)],
    ]
    assert report.messages == 3
    unknown = "the computer does not know this property"
    assert report.unavailable == dict.fromkeys(("sources", "connection_history", "subqueues"), unknown)
    assert of_machine.unavailable == {"bytes_all_queues": unknown}
    assert (of_machine.bytes_all_queues, of_machine.connected) == (None, True)
    again = len(machine.calls)
    host.queue(ORDERS)
    host.machine()
    assert [len(asked.aProp) for asked in machine.asked()[again:]] == [23, 5]  # remembered


@pytest.mark.requirement("MQMR-3.1.4.1-18")
def test_a_second_refusal_of_properties_is_an_error(machine: ManagedMachine, host: SyncManagedHost) -> None:
    machine.denied = int(HResult.MQ_ERROR_ILLEGAL_PROPID)
    with pytest.raises(QueueError) as caught:
        host.machine()
    assert caught.value.name == "MQ_ERROR_ILLEGAL_PROPID"
    assert len(machine.calls) == 2
    machine.denied = 0
    assert host.machine().bytes_all_queues == 1 << 40  # it was not about the newer ones


@pytest.mark.requirement("MQMR-3.2.2-01", "MQMR-3.2.5-01", "MQMR-3.2.6-01")
def test_nothing_is_sent_unasked(machine: ManagedMachine) -> None:
    with msmqwire.manage("127.0.0.1", port=machine.port, timeout=0.5) as host:
        host.machine()
        machine.twists[ACTION] = lambda honest, arguments: SILENCE
        with pytest.raises(Unreachable, match=r"has not answered within 0\.5 s"):
            host.tidy()
    assert [opnum for opnum, _ in machine.calls] == [INFO, ACTION]
