"""Users of a real server ask and act by [MS-MQMR]: the RPC stack is impacket's, stubs are made by hand."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msmqwire.management.interface import INTERFACE
from msmqwire.rpc.constants import NDR64, AuthLevel
from tests.service.rpc.test_management_serve import action_stub, info_stub
from tests.service.rpc.test_rpc_serve import ALICE, PASSWORD, RPC, users_file
from tests.support.running import ADDRESS, ORDERS, PATIENCE_S, Process, process

pytest.importorskip("impacket")
from impacket.dcerpc.v5 import transport
from impacket.dcerpc.v5.rpcrt import DCERPCException
from impacket.uuid import uuidtup_to_bin

OK, DENIED = struct.pack("<I", 0), struct.pack("<I", 0xC00E0025)
NAMES = struct.pack("<HBBIHH", 0x101F, 0, 0, 0, 0x101F, 0)
TIDY = action_stub("TIDY\0".encode("utf-16-le"), 5)
QMMGMT = uuidtup_to_bin((str(INTERFACE.uuid), "1.0"))


def client(port: int, level: AuthLevel, user: str = "alice", password: str = PASSWORD) -> Any:
    """A client of impacket that is bound to the interface."""
    rpc = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:{ADDRESS}[{port}]")
    rpc.set_connect_timeout(PATIENCE_S)
    if level > AuthLevel.NONE:
        rpc.set_credentials(user, password, "LAB", "", "")
    dce = rpc.get_dce_rpc()
    if level > AuthLevel.NONE:
        dce.set_auth_level(level)
    dce.connect()
    dce.bind(QMMGMT)
    return dce


def call(dce: Any, opnum: int, stub: bytes) -> bytes:
    dce.call(opnum, stub)
    answer: bytes = dce.recv()
    return answer


@pytest.fixture(params=["none", "privacy"])
def served(request: pytest.FixtureRequest, data: Path, tmp_path: Path) -> Iterator[tuple[Process, str]]:
    """A server that its users manage, and its least level."""
    users = str(users_file(tmp_path))
    with process(
        data,
        "--queue",
        ORDERS,
        *RPC,
        "--rpc-users",
        users,
        "--rpc-auth",
        request.param,
        "--rpc-manage",
        "users",
    ) as server:
        yield server, request.param


@pytest.mark.requirement("MQMR-3-03", "MQMR-3-02", "MQMR-5.1-01", "MQMR-5.2-01")
@pytest.mark.parametrize("level", [AuthLevel.NONE, AuthLevel.PKT_INTEGRITY, AuthLevel.PKT_PRIVACY])
def test_users_manage_and_nobody_else(served: tuple[Process, str], level: AuthLevel) -> None:
    server, least = served
    dce = client(server.rpc_port, level)
    if least == "privacy" and level is not AuthLevel.PKT_PRIVACY:
        with pytest.raises(DCERPCException, match="access_denied"):
            call(dce, 1, TIDY)
        return
    admitted = level > AuthLevel.NONE
    assert call(dce, 1, TIDY) == (OK if admitted else DENIED)
    answer = call(dce, 0, info_stub(ids=(2,)))
    if admitted:
        text = rf"alpha\{ORDERS}" + "\0"
        assert answer[:8] == struct.pack("<II", 1, 0)
        assert answer[8:24] == NAMES + struct.pack("<I", 1)
        assert text.encode("utf-16-le") in answer
        assert answer[-4:] == OK
        last = [line for line in server.logs() if line["event"].startswith("management")][-1]
        assert (last["user"], last["action"], last["object"]) == (ALICE, "properties", "machine")
    else:
        assert answer == struct.pack("<IIHBBIH2x", 1, 0, 1, 0, 0, 0, 1) + DENIED
        events = [line for line in server.logs() if line["event"].startswith("management")]
        assert {line["event"] for line in events} == {"management: a caller without rights is refused"}
    dce.disconnect()


def test_a_wrong_password_manages_nothing(served: tuple[Process, str]) -> None:
    server, _ = served
    dce = client(server.rpc_port, AuthLevel.PKT_PRIVACY, password="wrong")
    with pytest.raises(DCERPCException, match="access_denied"):
        call(dce, 1, TIDY)


@pytest.mark.requirement("MQMR-2.2-01")
def test_ndr64_is_refused_in_the_bind(served: tuple[Process, str]) -> None:
    server, _ = served
    rpc = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:{ADDRESS}[{server.rpc_port}]")
    dce = rpc.get_dce_rpc()
    dce.connect()
    with pytest.raises(DCERPCException, match="syntax"):
        dce.bind(QMMGMT, transfer_syntax=(str(NDR64.uuid), "1.0"))


@pytest.mark.requirement("MQMR-2.1-01")
def test_one_connection_has_both_interfaces(data: Path) -> None:
    with process(data, "--queue", ORDERS, *RPC, "--rpc-auth", "none", "--rpc-manage", "callers") as server:
        dce = client(server.rpc_port, AuthLevel.NONE)
        reading = dce.alter_ctx(uuidtup_to_bin(("1a9134dd-7b39-45ba-ad88-44d01ca47f28", "1.0")))
        assert call(reading, 0, b"") == struct.pack("<I", server.rpc_port)  # R_GetServerPort
        assert call(dce, 1, TIDY) == OK
        assert call(reading, 0, b"") == struct.pack("<I", server.rpc_port)
        dce.disconnect()
