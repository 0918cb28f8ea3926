"""The calls of queue management as layers, inside scapy's DCE/RPC: [MS-MQMR] 2.2 and 3.1.4.

They are registered as the interface qmmgmt. Structures have their names with ``qmmgmt_`` before them.
"""

from __future__ import annotations

from typing import Final

from scapy.packet import Packet as ScapyPacket

from msmqwire.management.interface import MANAGEMENT
from msmqwire.plugins.scapy.rpc import InterfaceLayers

LAYERS: Final = InterfaceLayers(MANAGEMENT, globals())
STUBS: Final = LAYERS.stubs
"""The layers of calls, answers and structures by their names."""
register = LAYERS.register


def bind() -> None:
    """Register the interface."""
    register()


def stream_layer(data: bytes) -> type[ScapyPacket] | None:
    """Return the layer of a stream that begins with these bytes: none, as streams are of DCE/RPC."""
    return None
