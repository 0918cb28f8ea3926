"""Where the layers are found: on the ports of the protocols, and by their signature on any other.

scapy asks a layer for the class of a payload that nothing is bound to. That question is answered here, behind
all bindings, so that no other protocol loses its traffic to a guess.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from scapy.layers.http import HTTP, HTTPRequest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Packet as ScapyPacket
from scapy.packet import bind_bottom_up, bind_layers

from msmqwire.layers.binary import MSMQBaseHeader, shows_signature
from msmqwire.layers.headers import MSMQPing
from msmqwire.layers.pgm import PGM, PGM_PROTOCOL, PGMData
from msmqwire.layers.srmp import entity_layer
from msmqwire.ping import PING_PORT, is_ping
from msmqwire.srmp.recognition import begins_srmp

MSMQ_PORT: Final = 1801  # MQQB-2.1-01

_Guess: TypeAlias = Callable[[bytes], type[ScapyPacket] | None]


def bind() -> None:
    """Bind the layers to their ports and signatures."""
    bind_bottom_up(TCP, MSMQBaseHeader, sport=MSMQ_PORT)
    bind_layers(TCP, MSMQBaseHeader, dport=MSMQ_PORT)
    bind_bottom_up(UDP, MSMQPing, sport=PING_PORT)
    bind_layers(UDP, MSMQPing, dport=PING_PORT)
    bind_layers(IP, PGM, proto=PGM_PROTOCOL)
    bind_layers(IPv6, PGM, nh=PGM_PROTOCOL)
    _guess(TCP, _tcp_payload)
    _guess(UDP, lambda payload: MSMQPing if is_ping(payload) else None)
    _guess(HTTPRequest, entity_layer)
    _guess(PGMData, lambda payload: HTTP if payload.startswith(b"POST ") else None)


def _tcp_payload(payload: bytes) -> type[ScapyPacket] | None:
    if shows_signature(payload):
        return MSMQBaseHeader
    return HTTP if begins_srmp(payload) else None


def _guess(below: type[ScapyPacket], guess: _Guess) -> None:
    """Let `guess` judge the payloads of a layer that nothing is bound to."""
    otherwise = below.default_payload_class

    def default_payload_class(self: ScapyPacket, payload: bytes) -> type[ScapyPacket]:
        return guess(payload) or otherwise(self, payload)

    below.default_payload_class = default_payload_class
