"""Remote readers over real connections: the RPC stack is impacket's, the stubs are ours."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Mapping
from typing import Any

import pytest

from msmqwire.qm.model.caller import Caller
from msmqwire.remote_read.interface import INTERFACE, build_request, parse_response
from msmqwire.remote_read.procedures import PROCEDURES
from msmqwire.rpc.constants import AuthLevel
from msmqwire.rpc.ndr import NDR20, Syntax
from tests.support.rpc.remote_read_harness import Client
from tests.support.running import ADDRESS, PATIENCE_S

pytest.importorskip("impacket")
from impacket.dcerpc.v5 import epm, transport
from impacket.dcerpc.v5.rpcrt import RPC_C_AUTHN_GSS_NEGOTIATE, DCERPCException
from impacket.uuid import uuidtup_to_bin

__all__ = ["DCERPCException", "Reader", "mapped"]

RPC_INTERFACE = uuidtup_to_bin((str(INTERFACE.uuid), f"{INTERFACE.major}.{INTERFACE.minor}"))


class Reader(Client):
    """A client of a server; a fault raises DCERPCException. Calls are answered in their order."""

    def __init__(
        self,
        port: int,
        level: AuthLevel = AuthLevel.NONE,
        *,
        user: str = "alice",
        password: str = "",
        nt_hash: str = "",
        syntax: Syntax = NDR20,
        address: str = ADDRESS,
        realm: str = "",
    ) -> None:
        """Bind at a port, as the user ``LAB\\alice`` from level CONNECT up.

        With a realm, by Kerberos, and a ticket for ``host/localhost`` in the cache.
        """
        super().__init__(self, 0, Caller())  # type: ignore[arg-type]  # it is its own harness
        rpc = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:{address}[{port}]")
        rpc.set_connect_timeout(PATIENCE_S)
        if level > AuthLevel.NONE:
            rpc.set_credentials(user, password, realm or "LAB", "", nt_hash)
        self.dce = rpc.get_dce_rpc()
        if level > AuthLevel.NONE:
            self.dce.set_auth_level(level)
        if realm:
            rpc.set_kerberos(True)
            rpc.setRemoteName("localhost")
            self.dce.set_auth_type(RPC_C_AUTHN_GSS_NEGOTIATE)
        self.dce.connect()
        rpc.get_socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        identifier = syntax.identifier
        name = str(identifier.uuid), f"{identifier.major}.{identifier.minor}"
        self.dce.bind(RPC_INTERFACE, transfer_syntax=name)
        self._syntax = syntax
        self._numbers = itertools.count(1)
        self._opnums: dict[int, int] = {}

    def begin(self, opnum: int, **parameters: Any) -> int:
        number = next(self._numbers)
        self._opnums[number] = opnum
        arguments: Mapping[str, Any] = PROCEDURES[opnum].request.value(**parameters)
        self.dce.call(opnum, build_request(opnum, arguments, self._syntax))
        return number

    def answer(self, call: int) -> Any:
        return parse_response(self._opnums.pop(call), self.dce.recv(), self._syntax)

    def disconnect(self) -> None:
        """Close the connection."""
        self.dce.disconnect()


def mapped(port: int, level: AuthLevel = AuthLevel.NONE, password: str = "") -> str:
    """Where an endpoint mapper says that the interface is, also to the user ``LAB\\alice``."""
    rpc = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:{ADDRESS}[{port}]")
    mapper = rpc.get_dce_rpc()
    if level > AuthLevel.NONE:
        rpc.set_credentials("alice", password, "LAB", "", "")
        mapper.set_auth_level(level)
    mapper.connect()
    found: str = epm.hept_map(ADDRESS, RPC_INTERFACE, protocol="ncacn_ip_tcp", dce=mapper)
    mapper.disconnect()
    return found
