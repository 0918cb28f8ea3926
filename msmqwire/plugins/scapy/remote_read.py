"""The calls of remote read as layers, inside scapy's DCE/RPC: [MS-MQRR] 2.2 and 3.1.4.

They are registered as the interface RemoteRead. Structures have their names with ``RemoteRead_`` before them.
"""

from __future__ import annotations

from typing import Final

from scapy.fields import IntField, UUIDField
from scapy.packet import Packet as ScapyPacket

from msmqwire.plugins.scapy.rpc import InterfaceLayers
from msmqwire.remote_read.interface import REMOTE_READ
from msmqwire.rpc.handles import ContextHandle
from msmqwire.schema import NULL_GUID


class RemoteRead_ContextHandle(ScapyPacket):
    """A context handle: [MS-MQRR] 2.2.4."""

    name = "RemoteRead context handle"
    fields_desc = [IntField("attributes", 0), UUIDField("uuid", NULL_GUID)]

    def context_handle(self) -> ContextHandle:
        """Return the value of the fields."""
        return ContextHandle(self.attributes, self.uuid)


LAYERS: Final = InterfaceLayers(REMOTE_READ, globals(), RemoteRead_ContextHandle)
STUBS: Final = LAYERS.stubs
"""The layers of calls, answers and structures by their names."""
register = LAYERS.register


def bind() -> None:
    """Register the interface."""
    register()


def stream_layer(data: bytes) -> type[ScapyPacket] | None:
    """Return the layer of a stream that begins with these bytes: none, as streams are of DCE/RPC."""
    return None
