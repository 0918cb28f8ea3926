"""Where the layers are found: on the ports of the protocols, and by their signature on any other.

scapy asks for the payload of a TCP segment or datagram that no layer is bound to. That question is answered
here, behind all bindings, so that no other protocol loses its traffic to a guess.
"""

from __future__ import annotations

from typing import Any

from scapy.layers.inet import TCP, UDP
from scapy.packet import Packet as ScapyPacket
from scapy.packet import bind_bottom_up, bind_layers

from msmqwire.layers.binary import MSMQBaseHeader, shows_signature
from msmqwire.layers.headers import MSMQPing
from msmqwire.ping import PING_PORT, is_ping

MSMQ_PORT = 1801


def bind() -> None:
    """Bind the layers to their ports and signatures."""
    bind_bottom_up(TCP, MSMQBaseHeader, sport=MSMQ_PORT)
    bind_layers(TCP, MSMQBaseHeader, dport=MSMQ_PORT)
    bind_bottom_up(UDP, MSMQPing, sport=PING_PORT)
    bind_layers(UDP, MSMQPing, dport=PING_PORT)
    _guess(TCP, shows_signature, MSMQBaseHeader)
    _guess(UDP, is_ping, MSMQPing)


def _guess(below: type[ScapyPacket], begins: Any, layer: type[ScapyPacket]) -> None:
    """Let a payload that nothing is bound to be `layer` if it begins like one."""
    otherwise = below.default_payload_class

    def default_payload_class(self: ScapyPacket, payload: bytes) -> type[ScapyPacket]:
        return layer if begins(payload) else otherwise(self, payload)

    below.default_payload_class = default_payload_class
