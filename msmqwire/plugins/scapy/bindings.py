"""Bindings of the layers: to the ports of the protocols, and by their signature on any other port.

scapy asks a layer for the class of a payload without a binding. The answer is given here, after all bindings,
so that no other protocol loses its traffic to a guess.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from scapy.config import conf
from scapy.layers.inet import TCP, UDP
from scapy.packet import Packet as ScapyPacket
from scapy.packet import bind_bottom_up, bind_layers
from scapy.sessions import streamcls

from msmqwire.analysis.protocols import protocols
from msmqwire.ping import PING_PORT, is_ping
from msmqwire.plugins.scapy.binary import MSMQBaseHeader, shows_signature
from msmqwire.plugins.scapy.guessing import guess
from msmqwire.plugins.scapy.headers import MSMQPing

MSMQ_PORT: Final = 1801

_JOINED: Final = [import_module(protocol.plugins.scapy) for protocol in protocols()]
"""The modules with the layers of the protocols that have joined."""


def bind() -> None:
    """Bind the layers to their ports and signatures."""
    bind_bottom_up(TCP, MSMQBaseHeader, sport=MSMQ_PORT)
    bind_layers(TCP, MSMQBaseHeader, dport=MSMQ_PORT)
    bind_bottom_up(UDP, MSMQPing, sport=PING_PORT)
    bind_layers(UDP, MSMQPing, dport=PING_PORT)
    guess(TCP, _tcp_payload)
    guess(UDP, lambda payload: MSMQPing if is_ping(payload) else None)
    for module in _JOINED:
        module.bind()


class _Unseen(conf.raw_layer):
    """The payload of a connection before its first byte.

    TCPSession asks for the class of a stream at its first segment, which is usually empty.
    """

    @classmethod
    def tcp_reassemble(
        cls, data: bytes, metadata: dict[str, Any], session: dict[str, Any]
    ) -> ScapyPacket | None:
        """Let the layer recognised by the first bytes reassemble the stream."""
        layer = _tcp_payload(data) or conf.raw_layer
        reassemble = streamcls(layer)
        metadata.update(pay_class=layer, tcp_reassemble=reassemble)
        return reassemble(data, metadata, session)


def _tcp_payload(payload: bytes) -> type[ScapyPacket] | None:
    if not payload:
        return _Unseen
    if shows_signature(payload):
        return MSMQBaseHeader
    for module in _JOINED:
        layer: type[ScapyPacket] | None = module.stream_layer(payload)
        if layer is not None:
            return layer
    return None
