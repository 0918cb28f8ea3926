"""Attributes of a call of remote read besides the message in it, by the names of columns.

An answer has the attributes of its call, where that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, Final

from msmqwire.remote_read.remote_read_packet import RemoteReadPacket
from msmqwire.rpc.handles import ContextHandle
from msmqwire.schema.record import class_of, first_of


def attributes(packet: RemoteReadPacket) -> Mapping[str, Callable[[RemoteReadPacket], Any]]:
    """Return the attributes of packets like this one, by name, each with the function that finds it.

    The function returns None if a packet does not tell. All packets that are alike share one object.
    """
    return _attributes(class_of(packet.value), class_of(packet.arguments))


@cache
def _attributes(value: type, arguments: type) -> Mapping[str, Callable[[RemoteReadPacket], Any]]:
    """Return those of packets whose `value` and `arguments` have these classes."""
    found: dict[str, Callable[[RemoteReadPacket], Any]] = {"read_queue": lambda packet: packet.queue or None}
    for name, (convert, *parameters) in _PARAMETERS.items():
        places = [f"value.{parameter}" for parameter in parameters if hasattr(value, parameter)]
        places += [f"arguments.{parameter}" for parameter in parameters if hasattr(arguments, parameter)]
        if places:
            found[name] = first_of(places, convert)
    if hasattr(value, "status"):
        found["call_status"] = attrgetter("value.status")
    if hasattr(value, "pQueueFormat"):
        found["destination"] = lambda packet: packet.opened_queue or None
    return found


def _handle(handle: ContextHandle) -> str:
    return f"{handle.attributes:08x}{handle.uuid.hex}"


_PARAMETERS: Final[dict[str, tuple[Any, ...]]] = {
    "queue_handle": (_handle, "phContext", "pphContext"),
    "request_id": (None, "dwRequestId"),
    "receive_action": (None, "ulAction"),
    "receive_ack": (None, "dwAck"),
}
