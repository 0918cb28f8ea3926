"""The client of impacket, which has an RPC stack of its own, calls our server association."""

from __future__ import annotations

import pytest

from msmqwire.errors import AuthenticationFailed
from msmqwire.qm.runtime.rpc.ntlm import RpcUsers
from msmqwire.qm.runtime.rpc.security import acceptors
from msmqwire.rpc.constants import NDR20, NDR64, AuthLevel, FaultStatus
from msmqwire.rpc.endpoint_mapper import ENDPOINT_MAPPER, ENDPOINT_MAPPER_METHODS, EndpointMapper
from msmqwire.rpc.events import Bound, Called
from tests.support.patience import limit
from tests.support.rpc.rpc_server import (
    BIG,
    ECHO,
    FAIL,
    METHODS,
    REMOTE_READ,
    WHO,
    map_endpoints,
    rpc_server,
)

pytest.importorskip("impacket")
from impacket.dcerpc.v5 import epm, transport
from impacket.dcerpc.v5.rpcrt import DCERPCException
from impacket.uuid import uuidtup_to_bin

ALICE = "LAB\\alice"
PASSWORD = "Grün & blau 7"
USERS = RpcUsers({ALICE: PASSWORD, "LAB\\bob": "$NT$8846f7eaee8fb117ad06bdd830b7586c"})
INTERFACE = uuidtup_to_bin((str(REMOTE_READ.uuid), "1.0"))
LEVELS = [AuthLevel.CONNECT, AuthLevel.PKT_INTEGRITY, AuthLevel.PKT_PRIVACY]
UNKNOWN = "12345678-1234-abcd-ef00-0123456789ab"


def client(port, level=AuthLevel.NONE, user="alice", password=PASSWORD, nt_hash=""):
    rpc = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{port}]")
    rpc.set_connect_timeout(limit(10))
    if level > AuthLevel.NONE:
        rpc.set_credentials(user, password, "LAB", "", nt_hash)
    dce = rpc.get_dce_rpc()
    if level > AuthLevel.NONE:
        dce.set_auth_level(level)
    dce.connect()
    return dce


def call(dce, opnum, stub):
    dce.call(opnum, stub)
    return dce.recv()


def check_calls(dce, who):
    assert call(dce, ECHO, b"abcdefg") == b"gfedcba"
    assert call(dce, WHO, b"") == who
    assert call(dce, ECHO, bytes(range(256)) * 60) == bytes(reversed(bytes(range(256)) * 60))
    assert call(dce, BIG, (100_096).to_bytes(4, "little")) == bytes(range(256)) * 391
    with pytest.raises(DCERPCException, match=r"[cC]00[eE]0003"):
        call(dce, FAIL, b"1234")
    assert call(dce, ECHO, b"and on") == b"no dna"


@pytest.mark.requirement("MQRR-2.1-01", "MQRR-2.1-05")
@pytest.mark.parametrize("syntax", [NDR20, NDR64], ids=["NDR20", "NDR64"])
def test_anonymous_calls(syntax):
    with rpc_server(acceptors(USERS)) as server:
        dce = client(server.port)
        dce.bind(
            INTERFACE, transfer_syntax=(str(syntax.uuid), f"{syntax.major}.{syntax.minor}"), bogus_binds=3
        )
        check_calls(dce, b" NONE")
        dce.disconnect()
    events = server.connections[0].events
    assert [event.transfer_syntaxes for event in events if isinstance(event, Bound)] == [
        {REMOTE_READ: syntax}
    ]
    assert {event.transfer_syntax for event in events if isinstance(event, Called)} == {syntax}


@pytest.mark.requirement("MQRR-1.5-01", "MQRR-1.7-03", "MQRR-2.1-06")
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_calls_of_a_user_by_ntlm(level):
    with rpc_server(acceptors(USERS)) as server:
        dce = client(server.port, level)
        dce.bind(INTERFACE)
        check_calls(dce, f"{ALICE} {level.name}".encode())
        dce.disconnect()
    sent = b"".join(data for _, data in server.connections[0].data)
    assert (b"abcdefg" in sent) == (level < AuthLevel.PKT_PRIVACY)


def test_a_user_whose_hash_alone_is_known():
    with rpc_server(acceptors(USERS)) as server:
        dce = client(server.port, AuthLevel.PKT_PRIVACY, "BOB", "", "8846f7eaee8fb117ad06bdd830b7586c")
        dce.bind(INTERFACE)
        assert call(dce, WHO, b"") == b"LAB\\bob PKT_PRIVACY"
        dce.disconnect()


@pytest.mark.parametrize("user, password", [("alice", "wrong"), ("nobody", PASSWORD), ("", "")])
def test_a_wrong_password_is_refused_and_the_next_client_served(user, password):
    with rpc_server(acceptors(USERS)) as server:
        dce = client(server.port, AuthLevel.PKT_INTEGRITY, user, password)
        dce.bind(INTERFACE)
        with pytest.raises(DCERPCException, match="access_denied"):
            call(dce, WHO, b"")
        assert isinstance(server.connections[0].ended.error, AuthenticationFailed)
        assert not [event for event in server.connections[0].events if isinstance(event, Called)]
        check_calls_after = client(server.port, AuthLevel.PKT_INTEGRITY)
        check_calls_after.bind(INTERFACE)
        assert call(check_calls_after, WHO, b"") == b"LAB\\alice PKT_INTEGRITY"
        check_calls_after.disconnect()


@pytest.mark.requirement("MQRR-1.7-01")
def test_methods_and_interfaces_that_are_not_there():
    with rpc_server() as server:
        dce = client(server.port)
        dce.bind(INTERFACE)
        with pytest.raises(DCERPCException, match="nca_s_op_rng_error"):
            call(dce, METHODS, b"")
        assert call(dce, ECHO, b"ab") == b"ba"
        assert server.connections[0].denied == [FaultStatus.NCA_S_OP_RNG_ERROR]
        for other in ((UNKNOWN, "1.0"), (str(REMOTE_READ.uuid), "2.0"), (str(REMOTE_READ.uuid), "1.1")):
            with pytest.raises(DCERPCException, match="abstract_syntax_not_supported"):
                client(server.port).bind(uuidtup_to_bin(other))


@pytest.mark.requirement("MQRR-2.1-05", "MQRR-5.1-01")
def test_calls_below_the_least_level_are_denied():
    with rpc_server(acceptors(USERS), AuthLevel.PKT_INTEGRITY) as server:
        for level in (AuthLevel.NONE, AuthLevel.CONNECT):
            dce = client(server.port, level)
            dce.bind(INTERFACE)
            with pytest.raises(DCERPCException, match="access_denied"):
                call(dce, WHO, b"")
            dce.disconnect()
        dce = client(server.port, AuthLevel.PKT_PRIVACY)
        dce.bind(INTERFACE)
        assert call(dce, WHO, b"") == b"LAB\\alice PKT_PRIVACY"
        dce.disconnect()


def test_a_second_security_context_on_the_same_connection():
    with rpc_server(acceptors(USERS)) as server:
        dce = client(server.port, AuthLevel.PKT_PRIVACY)
        dce.bind(INTERFACE)
        second = dce.alter_ctx(INTERFACE)
        for _ in range(2):
            assert call(dce, ECHO, b"ab") == b"ba"
            assert call(second, WHO, b"") == b"LAB\\alice PKT_PRIVACY"
        dce.disconnect()
    assert len(server.connections) == 1


@pytest.mark.requirement("MQRR-2.1-01", "MQRR-2.1-02", "MQRR-3.1.3-01")
def test_the_port_of_an_interface_by_the_endpoint_mapper():
    interfaces = {ENDPOINT_MAPPER: ENDPOINT_MAPPER_METHODS}
    perform = map_endpoints(EndpointMapper({REMOTE_READ: 49_321}))
    with rpc_server(interfaces=interfaces, perform=perform) as server:

        def ask(interface, protocol="ncacn_ip_tcp"):
            dce = client(server.port)
            try:
                return epm.hept_map("127.0.0.1", uuidtup_to_bin(interface), protocol=protocol, dce=dce)
            finally:
                dce.disconnect()

        assert ask((str(REMOTE_READ.uuid), "1.0")) == "ncacn_ip_tcp:127.0.0.1[49321]"
        for other in ((UNKNOWN, "1.0"), (str(REMOTE_READ.uuid), "2.0")):
            with pytest.raises(DCERPCException, match=r"ept_s_not_registered|16[cC]9[aA]0[dD]6"):
                ask(other)
        with pytest.raises(DCERPCException, match=r"ept_s_not_registered|16[cC]9[aA]0[dD]6"):
            ask((str(REMOTE_READ.uuid), "1.0"), "ncacn_http")
