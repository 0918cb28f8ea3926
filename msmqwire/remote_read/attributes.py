"""What a call of remote read says besides the message in it, by the names of columns.

An answer has what its call has asked for, where that is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msmqwire.remote_read.rpc_packet import RpcPacket


def attribute(name: str, packet: RpcPacket) -> Any:
    """Return what a packet says; None if it does not tell."""
    return _ATTRIBUTES[name](packet)


def _argument(name: str) -> Callable[[RpcPacket], Any]:
    def value(packet: RpcPacket) -> Any:
        found = getattr(packet.value, name, None)
        return getattr(packet.arguments, name, None) if found is None else found

    return value


def _handle(packet: RpcPacket) -> str | None:
    for stub in (packet.value, packet.arguments):
        for name in ("phContext", "pphContext"):
            handle = getattr(stub, name, None)
            if handle is not None:
                return f"{handle.attributes:08x}{handle.uuid.hex}"
    return None


_ATTRIBUTES: Final[dict[str, Callable[[RpcPacket], Any]]] = {
    "queue_handle": _handle,
    "read_queue": lambda packet: packet.queue or None,
    "request_id": _argument("dwRequestId"),
    "receive_action": _argument("ulAction"),
    "receive_ack": _argument("dwAck"),
    "call_status": lambda packet: getattr(packet.value, "status", None),
}
