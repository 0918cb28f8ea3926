"""A real server is managed from another computer: [MS-MQMR] over TCP."""

from __future__ import annotations

import asyncio
import struct
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from msmqwire.management.constants import REQUEST_MAX, Opnum
from msmqwire.management.interface import INTERFACE, build_request
from msmqwire.management.variants import variant
from msmqwire.qm.model.enumerations import ManageAccess
from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.rpc.client import find_port
from msmqwire.qm.runtime.rpc.network import RpcOptions
from msmqwire.remote_read.interface import INTERFACE as REMOTE_READ
from msmqwire.rpc.constants import NDR20, NDR64, AuthLevel, PduType, SyntaxId
from msmqwire.rpc.ndr import SYNTAXES
from msmqwire.rpc.pdu import PduFramer, build_pdu, make_pdu, parse_pdu
from msmqwire.rpc.pdus import syntax_fields
from tests.support.patience import PATIENCE_S
from tests.support.peers.administrator import MACHINE, Administrator, info_arguments, queue_named
from tests.support.rpc.remote_read_harness import Fault
from tests.support.running import (
    ADDRESS,
    ORDERS,
    InThread,
    Process,
    called,
    options,
    process,
    recoverable,
    served,
)

QUEUE = rf"DIRECT=OS:alpha\{ORDERS}"
FAR = r"DIRECT=TCP:127.0.0.99\private$\far"
OK, INVALID, NOT_FOUND, DENIED = 0, 0xC00E0006, 0xC00E0003, 0xC00E0025
BAD_STUB, OP_RANGE, NO_MEMORY = 0x6F7, 0x1C010002, 0x1C00001B
RPC = ("--rpc", f"{ADDRESS}:0", "--set", "close_s=0.2", "--rpc-auth", "none")


@contextmanager
def serving(
    data: Path, manage: ManageAccess = ManageAccess.CALLERS, **limits: Any
) -> Iterator[tuple[InThread, int]]:
    """A server in a thread that takes anonymous callers, and its port."""
    rpc = RpcOptions((ADDRESS, 0), endpoint_mapper=(ADDRESS, 0), level=AuthLevel.NONE, manage=manage)
    most = Limits(**{"close_s": 0.2, **limits})
    with served(options(data, ORDERS, rpc=rpc, limits=most, metrics=(ADDRESS, 0))) as server:
        yield server, server.do(lambda running: running.rpc_network.listen[1])


@pytest.fixture
def managed(data: Path) -> Iterator[Process]:
    """A server whose queues every caller manages."""
    with process(
        data, "--queue", ORDERS, *RPC, "--rpc-manage", "callers", "--endpoint-mapper", f"{ADDRESS}:0"
    ) as server:
        yield server


@pytest.mark.requirement(
    "MQMR-2.1-01", "MQMR-2.1-02", "MQMR-2.1-03", "MQMR-3.1.3-01", "MQMR-3.1.4.1-11", "MQMR-3.1.4.2-11",
    "MQMR-3.1.4-04", "MQMR-4.1-01", "MQMR-1.3-01",
)  # fmt: skip
def test_a_client_finds_the_port_asks_and_acts(managed: Process) -> None:
    port = asyncio.run(find_port(ADDRESS, INTERFACE, managed.mapper_port))
    assert port == managed.rpc_port == asyncio.run(find_port(ADDRESS, REMOTE_READ, managed.mapper_port))
    administrator = Administrator(port)
    paths, connected = administrator.values(MACHINE, 2, 4)
    assert (paths, connected) == ((rf"alpha\{ORDERS}",), "CONNECTED")
    assert administrator.values(queue_named(f"DIRECT=OS:{paths[0]}"), 1, 11) == [paths[0], "LOCAL CONNECTION"]
    assert administrator.act(MACHINE, "DISCONNECT") == OK
    other = Administrator(port)  # it is reached while the queue manager is disconnected
    assert other.values(MACHINE, 4) == ["DISCONNECTED"]
    assert other.act(MACHINE, "CONNECT") == OK
    assert administrator.values(MACHINE, 4) == ["CONNECTED"]
    assert administrator.act(MACHINE, "TIDY") == OK
    for one in (administrator, other):
        one.disconnect()


@pytest.mark.requirement("MQMR-3.1.4.2-20", "MQMR-3.1.4.2-22")
def test_a_pause_is_durable_before_it_is_answered(data: Path) -> None:
    with process(data, *RPC, "--rpc-manage", "callers") as server:
        send_far(data)
        assert Administrator(server.rpc_port).act(queue_named(FAR), "PAUSE") == OK
        server.process.kill()
        server.process.wait()
    with process(data, *RPC, "--rpc-manage", "callers") as server:
        assert Administrator(server.rpc_port).values(queue_named(FAR), 11) == ["ONHOLD"]


def send_far(data: Path) -> None:
    """A message that waits for another computer, which is not there."""
    with attach(data) as local:
        local.call("send", to=FAR, messages=recoverable(b"m"))


# -- binding ---------------------------------------------------------------------------------------------


def bind(port: int, *elements: tuple[SyntaxId, tuple[SyntaxId, ...]]) -> list[tuple[int, int]]:
    """Bind these contexts; return the result and the reason of each."""
    administrator = Administrator(port, bind=False)
    proposed = [
        {
            "p_cont_id": number,
            "abstract_syntax": syntax_fields(interface),
            "transfer_syntaxes": [syntax_fields(syntax) for syntax in syntaxes],
        }
        for number, (interface, syntaxes) in enumerate(elements)
    ]
    fields = {"max_xmit_frag": 5840, "max_recv_frag": 5840, "assoc_group_id": 0, "p_context_elem": proposed}
    administrator.socket.sendall(
        build_pdu(make_pdu(PduType.BIND, fields, header={"call_id": 1, "pfc_flags": 3}))
    )
    framer, frames = PduFramer(), []
    while not frames:
        frames = framer.feed(administrator.socket.recv(1 << 16))
    administrator.disconnect()
    answer: Any = parse_pdu(frames[0].data).record
    assert answer.header.PTYPE == PduType.BIND_ACK
    return [(result.result, result.reason) for result in answer.p_results]


@pytest.mark.requirement("MQMR-2.2-01", "MQMR-2.2-02", "MQMR-1.9-01", "MQMR-1.7-01", "MQMR-2.1-03")
@pytest.mark.parametrize(
    ("elements", "results"),
    [
        ([(INTERFACE, (NDR20,))], [(0, 0)]),
        ([(INTERFACE, (NDR64,))], [(2, 2)]),
        ([(INTERFACE, (NDR64, NDR20))], [(0, 0)]),
        ([(INTERFACE, (NDR64,)), (INTERFACE, (NDR20,))], [(2, 2), (0, 0)]),
        (
            [(REMOTE_READ, (NDR64,)), (INTERFACE, (NDR20,)), (INTERFACE, (NDR64,))],
            [(0, 0), (0, 0), (2, 2)],
        ),
        ([(SyntaxId(INTERFACE.uuid, 2, 0), (NDR20,))], [(2, 1)]),
        ([(SyntaxId(INTERFACE.uuid, 1, 1), (NDR20,))], [(2, 1)]),
    ],
    ids=["ndr", "ndr64", "one", "two", "both", "version-2", "version-1.1"],
)
def test_ndr_alone_is_spoken(
    managed: Process, elements: list[tuple[SyntaxId, tuple[SyntaxId, ...]]], results: list[tuple[int, int]]
) -> None:
    assert bind(managed.rpc_port, *elements) == results


@pytest.mark.requirement("MQMR-2.2-02")
def test_who_offers_both_goes_on_with_ndr(managed: Process) -> None:
    administrator = Administrator(managed.rpc_port, transfer_syntaxes=(NDR64, NDR20))
    assert administrator.association.transfer_syntax == NDR20
    assert administrator.values(MACHINE, 4) == ["CONNECTED"]


# -- strict stubs ----------------------------------------------------------------------------------------

MACHINE_HEAD = struct.pack("<HHI", 1, 1, 0)
NULL_VARIANT = struct.pack("<HBBIH", 1, 0, 0, 0, 1)


def info_stub(
    head: bytes = MACHINE_HEAD,
    count: int = 1,
    ids: tuple[int, ...] = (4,),
    variants: bytes = NULL_VARIANT,
    *,
    id_count: int | None = None,
    variant_count: int | None = None,
) -> bytes:
    """The stub of R_QMMgmtGetInfo by hand."""
    stub = head + struct.pack("<I", count)
    stub += struct.pack("<I", len(ids) if id_count is None else id_count)
    stub += struct.pack(f"<{len(ids)}I", *ids)
    stub += struct.pack("<I", count if variant_count is None else variant_count)
    return stub + bytes(-len(stub) % 8) + variants


def action_stub(text: bytes, count: int, *, head: bytes = MACHINE_HEAD) -> bytes:
    """The stub of R_QMMgmtAction by hand."""
    return head + struct.pack("<3I", count, 0, count) + text


def arm(vt: int, *words: int) -> bytes:
    """A PROPVARIANT whose value is of 32-bit numbers."""
    return struct.pack(f"<HBBIHH{len(words)}I", vt, 0, 0, 0, vt, 0, *words)


PAUSE = "PAUSE\0".encode("utf-16-le")


@pytest.mark.requirement(
    "MQMR-3.1.4-01", "MQMR-3.1.4-02", "MQMR-2.2.1.2-04", "MQMR-2.2.1.2-05", "MQMR-3.1.4.1-03",
    "MQMR-3.1.4.1-04", "MQMR-3.1.4-05", "MQMR-3.1.4.2-01", "MQMR-2.2.3-04", "MQMR-2.2.3-05",
    "MQMR-2.2.3-06", "MQMR-2.2.3-09",
)  # fmt: skip
@pytest.mark.parametrize(
    ("opnum", "stub"),
    [
        pytest.param(0, b"", id="empty"),
        pytest.param(0, info_stub()[:-1], id="cut"),
        pytest.param(0, info_stub(struct.pack("<HHI", 4, 4, 0)), id="type-4"),
        pytest.param(0, info_stub(struct.pack("<HHI", 1, 3, 0)), id="other-discriminant"),
        pytest.param(0, info_stub(count=0, ids=(), variants=b""), id="none"),
        pytest.param(0, info_stub(count=129, ids=(4,) * 129, variants=NULL_VARIANT * 129), id="129"),
        pytest.param(0, info_stub(count=2), id="count-of-ids"),
        pytest.param(0, info_stub(id_count=2), id="conformance-of-ids"),
        pytest.param(0, info_stub(variant_count=2), id="conformance-of-values"),
        pytest.param(0, info_stub(id_count=0xFFFFFFFF, count=0xFFFFFFFF), id="giant"),
        pytest.param(0, info_stub(variants=arm(0x0041, 5, 0)), id="null-blob"),
        pytest.param(0, info_stub(variants=arm(0x1013, 0xFFFFFFFF, 0x20000)), id="giant-vector"),
        pytest.param(
            0, info_stub(variants=arm(0x100C, 0x10000000, 0x20000) + bytes(64)), id="giant-variants"
        ),
        pytest.param(0, info_stub(variants=arm(0x000C)), id="unknown-vt"),
        pytest.param(0, info_stub(variants=struct.pack("<HBBIH", 1, 0, 0, 0, 0)), id="vt-twice"),
        pytest.param(0, info_stub(struct.pack("<HHIBBHB3x", 2, 2, 1, 9, 0, 0, 9)), id="kind-9"),
        pytest.param(1, MACHINE_HEAD + b"\0\0", id="one-unit"),
        pytest.param(1, action_stub(PAUSE, 7), id="long-action"),
        pytest.param(1, action_stub(PAUSE[:-2], 5), id="no-nul"),
        pytest.param(1, action_stub(b"", 0x7FFFFFFF), id="giant-action"),
        pytest.param(1, MACHINE_HEAD, id="no-action"),
    ],
)
def test_arguments_that_are_not_by_the_idl_are_a_fault(managed: Process, opnum: int, stub: bytes) -> None:
    administrator = Administrator(managed.rpc_port)
    with pytest.raises(Fault) as caught:
        administrator.answer(administrator.send_call(opnum, stub))
    assert caught.value.status == BAD_STUB
    assert administrator.values(MACHINE, 4) == ["CONNECTED"]  # the connection goes on


@pytest.mark.requirement("MQMR-3.1.4-04", "MQMR-1.7-01")
@pytest.mark.parametrize("opnum", [2, 3, 14, 0xFFFF])
def test_there_are_two_methods(managed: Process, opnum: int) -> None:
    administrator = Administrator(managed.rpc_port)
    with pytest.raises(Fault) as caught:
        administrator.answer(administrator.send_call(opnum, info_stub()))
    assert caught.value.status == OP_RANGE


@pytest.mark.requirement("MQMR-3.1.4.1-01", "MQMR-3.1.4.1-02", "MQMR-2.2.1.2-07", "MQMR-3.1.4.2-02")
def test_bytes_by_hand(managed: Process) -> None:
    administrator = Administrator(managed.rpc_port)
    call = administrator.send_call(0, info_stub(struct.pack("<HHI", 1, 1, 0xDEADBEEF)))
    while call not in administrator._answers:
        administrator.receive()
    stub = administrator._answers[call].stub
    text = "CONNECTED\0".encode("utf-16-le")
    referent = stub[20:24]
    assert stub == (
        struct.pack("<II", 1, 0)
        + struct.pack("<HBBIHH", 0x1F, 0, 0, 0, 0x1F, 0)
        + referent
        + struct.pack("<3I", 10, 0, 10)
        + text
        + struct.pack("<I", 0)
    )
    call = administrator.send_call(1, action_stub(PAUSE, 6))
    while call not in administrator._answers:
        administrator.receive()
    assert administrator._answers[call].stub == struct.pack("<I", INVALID)


def test_too_many_bytes_are_refused_before_they_are_read(managed: Process) -> None:
    administrator = Administrator(managed.rpc_port)
    longest = action_stub(b"", 0).ljust(REQUEST_MAX, b"\xff")
    for stub, status in ((longest, BAD_STUB), (longest + b"\xff", NO_MEMORY)):
        with pytest.raises(Fault) as caught:
            administrator.answer(administrator.send_call(1, stub))
        assert caught.value.status == status
    assert administrator.values(MACHINE, 4) == ["CONNECTED"]


# -- who may ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("MQMR-3-04", "MQMR-3-03", "MQMR-5.1-01", "MQMR-3.1.4.2-28")
@pytest.mark.parametrize("manage", [ManageAccess.NONE, ManageAccess.USERS])
def test_others_get_access_denied_for_everything(data: Path, manage: ManageAccess) -> None:
    with serving(data, manage) as (server, port):
        administrator = Administrator(port)  # the connection is not refused
        given = (variant(0x1F, "as it came"),)
        for managed in (MACHINE, queue_named(QUEUE), queue_named(FAR)):
            for identifier in (1, 99):
                results = administrator.info(managed, identifier, values=given)
                assert (results.status, tuple(results.apVar)) == (DENIED, given)
            for action in ("PAUSE", "DISCONNECT", "nonsense"):
                assert administrator.act(managed, action) == DENIED
        assert server.do(lambda running: running.driver.core.queue_manager.connection_active)
        calls = server.do(lambda running: dict(running.rpc_network.management.calls))
        assert calls == {
            ("properties", DENIED): 6,
            ("PAUSE", DENIED): 3,
            ("DISCONNECT", DENIED): 3,
            ("unknown action", DENIED): 3,
        }
        administrator.disconnect()


@pytest.mark.requirement("MQMR-3.1.4-05")
def test_calls_are_logged_and_counted(data: Path) -> None:
    with process(
        data, "--queue", ORDERS, *RPC, "--rpc-manage", "callers", "--metrics", f"{ADDRESS}:0"
    ) as server:
        administrator = Administrator(server.rpc_port, source="127.0.0.7")
        send_far(data)
        assert administrator.act(queue_named(FAR), "pause") == OK
        assert administrator.act(queue_named(FAR), "resume") == OK
        assert administrator.act(queue_named(QUEUE), "pause") == INVALID
        assert administrator.info(queue_named(QUEUE), 7).status == OK
        for _ in range(50):
            assert administrator.info(queue_named(QUEUE), 7).status == OK
        time.sleep(1.1)  # equal lines come once a second
        assert administrator.info(MACHINE, 4).status == OK
        lines = [line for line in server.logs() if line["event"].startswith("management")]
    seen = [(line["action"], line["object"].lower(), line["status"]) for line in lines]
    assert seen[:4] == [
        ("PAUSE", FAR.lower(), "0x00000000"),
        ("RESUME", FAR.lower(), "0x00000000"),
        ("PAUSE", QUEUE.lower(), f"0x{INVALID:08X}"),
        ("properties", QUEUE.lower(), "0x00000000"),
    ]
    assert (seen[-1], lines[-1]["suppressed"]) == (("properties", "machine", "0x00000000"), 50)
    assert {(line["peer"], line["user"], line["level"]) for line in lines} == {("127.0.0.7", "", "info")}


def test_metrics_count_calls(data: Path) -> None:
    pytest.importorskip("prometheus_client")
    with serving(data) as (server, port):
        administrator = Administrator(port)
        administrator.act(MACHINE, "PAUSE")
        administrator.values(MACHINE, 4)
        with pytest.raises(Fault):
            administrator.answer(administrator.send_call(0, b""))
        at = server.do(lambda running: running._metrics.port)
        with urllib.request.urlopen(f"http://{ADDRESS}:{at}/metrics", timeout=PATIENCE_S) as page:
            text = page.read().decode()
        administrator.disconnect()
    assert 'msmqwire_management_calls_total{action="PAUSE",status="0xC00E0006"} 1.0' in text
    assert 'msmqwire_management_calls_total{action="properties",status="0x00000000"} 1.0' in text
    assert "msmqwire_management_faults_total 1.0" in text


# -- the command line ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--rpc-manage", "callers"], "--rpc-manage callers needs --rpc"),
        (["--rpc", "127.0.0.1:0", "--rpc-auth", "none", "--rpc-manage", "users"], "needs --rpc-users"),
        (["--rpc", "127.0.0.1:0", "--rpc-auth", "none", "--rpc-manage", "all"], "--rpc-manage"),
    ],
)
def test_options_that_do_not_go_together(tmp_path: Path, arguments: list[str], text: str) -> None:
    done = called("serve", "--data", str(tmp_path), *arguments)
    assert done.status == 2
    assert text in done.err


def test_a_question_is_answered_while_the_disk_refuses(data: Path) -> None:
    with serving(data) as (server, port):
        administrator = Administrator(port)
        server.do(lambda running: setattr(running.driver, "refused", True))
        server.do(lambda running: setattr(running.driver, "_scheduled", True))  # no turn ends
        assert administrator.values(MACHINE, 4) == ["CONNECTED"]
        calls = [
            administrator.send_call(
                Opnum.R_QMMgmtGetInfo,
                build_request(Opnum.R_QMMgmtGetInfo, info_arguments(MACHINE, (4,) * 128), SYNTAXES[NDR20]),
            )
            for _ in range(300)  # more than the bytes of answers for a turn
        ]
        assert {administrator.answer(call).status for call in calls} == {OK}
        server.do(lambda running: setattr(running.driver, "refused", False))
        server.do(lambda running: running.driver._flush())
        administrator.disconnect()
