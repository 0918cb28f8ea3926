"""Our client association, and our questions to an endpoint mapper, answered by scapy's RPC server."""

from __future__ import annotations

from uuid import UUID

import pytest

pytest.importorskip("scapy")

from scapy.layers.dcerpc import DCE_RPC_INTERFACES, DCERPC_Transport
from scapy.layers.msrpce.rpcserver import DCERPC_Server

from msmqwire.errors import RpcRefused
from msmqwire.rpc.client_association import ClientAssociation
from msmqwire.rpc.constants import NDR20, NDR64, BindTimeFeatures, FaultStatus, SyntaxId
from msmqwire.rpc.endpoint_mapper import ENDPOINT_MAPPER, EPT_MAP, map_request, mapped_port
from msmqwire.rpc.events import Answered, Bound, Closed, Faulted
from msmqwire.rpc.pdu import PduFramer
from tests.support.rpc.rpc_server import REMOTE_READ


class ScapyServer:
    """scapy's server at the other end of a client association."""

    def __init__(self, ndr64):
        # scapy maps the interfaces that it knows: its own endpoint mapper's.
        known = DCE_RPC_INTERFACES[ENDPOINT_MAPPER.uuid, ENDPOINT_MAPPER.major]
        self._server = DCERPC_Server(
            DCERPC_Transport.NCACN_IP_TCP, ndr64=ndr64, verb=False, local_ip="127.0.0.1", port=135,
            portmap={known: 4321},
        )  # fmt: skip

    def exchange(self, client):
        """What the client makes of the answers to what it sends."""
        events = []
        while data := client.data_to_send():
            for frame in PduFramer().feed(data):
                self._server.recv(frame.data)
            while (response := self._server.get_response()) is not None:
                events += client.received(bytes(response))
        return events


@pytest.mark.requirement("MQRR-2.2-01")
@pytest.mark.parametrize("ndr64", [False, True], ids=["NDR20", "NDR64"])
def test_a_bind_with_both_syntaxes_maps_an_interface_to_its_port(ndr64):
    server, client = ScapyServer(ndr64), ClientAssociation(ENDPOINT_MAPPER)
    client.bind()
    syntax = NDR64 if ndr64 else NDR20
    (bound,) = server.exchange(client)
    assert isinstance(bound, Bound)
    assert bound.transfer_syntaxes == {ENDPOINT_MAPPER: syntax}
    assert client.features == BindTimeFeatures(3)
    assert not client.multiplexed
    calls = [
        client.call(EPT_MAP, map_request(ENDPOINT_MAPPER, syntax)),
        client.call(EPT_MAP, map_request(REMOTE_READ, syntax)),
        client.call(99, b"stub"),
    ]
    answered, unknown, out_of_range = server.exchange(client)
    assert isinstance(answered, Answered)
    assert (answered.call, mapped_port(answered.stub, ENDPOINT_MAPPER, syntax)) == (calls[0], 4321)
    assert unknown == Faulted(calls[1], FaultStatus.NCA_S_UNK_IF, False)
    assert out_of_range == Faulted(calls[2], FaultStatus.NCA_S_OP_RNG_ERROR, False)


def test_an_interface_that_is_not_there():
    # One that nothing registers in scapy: its register is that of the whole process.
    server, client = ScapyServer(False), ClientAssociation(SyntaxId(UUID(int=0xD1), 1, 0))
    client.bind()
    (closed,) = server.exchange(client)
    assert isinstance(closed, Closed)
    assert isinstance(closed.error, RpcRefused)
