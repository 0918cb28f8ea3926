"""The calls of RemoteRead in captures: the messages in answers, and which handle is of which queue."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, cast

from msmqwire.analysis.dissection.rpc_calls import QUEUE_MAX, Call
from msmqwire.analysis.dissection.rpc_interfaces import CapturedInterface
from msmqwire.analysis.lint import Finding
from msmqwire.analysis.lint.remote_read_session import RemoteReadLint
from msmqwire.capture.events import Endpoint
from msmqwire.remote_read.constants import Opnum
from msmqwire.remote_read.interface import REMOTE_READ
from msmqwire.remote_read.remote_read_packet import RemoteReadPacket, message_in
from msmqwire.rpc.handles import ContextHandle
from msmqwire.rpc.rpc_packet import RpcPacket, Stub

HANDLES_MAX: Final = 1 << 16
"""Context handles and move contexts of all servers that are known; of more, the oldest are forgotten."""


class RemoteReadCalls(CapturedInterface):
    """The calls of RemoteRead.

    Attributes:
        handles: the context handles of all connections.
    """

    interface = REMOTE_READ
    packet = RemoteReadPacket

    def __init__(self) -> None:
        self.handles, self._lint = Handles(), RemoteReadLint()

    def read(self, stub: Stub) -> dict[str, Any]:
        return {"message": message_in(stub)}

    def queue(self, packet: RpcPacket, server: Endpoint) -> str:
        """Return the queue in the arguments, or that of the context handle in them."""
        opened = cast("RemoteReadPacket", packet).opened_queue
        if opened:
            return opened
        for name in ("phContext", "pphContext", "phContextFrom"):
            handle = getattr(packet.value, name, None)
            if handle is not None:
                return self.handles.queue(server, handle)
        return ""

    def answered(self, call: Call, results: Any, server: Endpoint) -> None:
        """Take note of the handles that an answer issues or closes."""
        assert call.procedure is not None
        handle = getattr(results, "pphContext", None)
        if handle is None:
            return
        if call.procedure.opnum == Opnum.R_CloseQueue:
            if handle.is_null and call.arguments is not None:
                self.handles.closed(server, call.arguments.pphContext)
        elif not handle.is_null:
            self.handles.opened(server, handle, call.queue)
            move_context = getattr(results, "pMoveContext", None)
            if move_context:
                self.handles.opened(server, move_context, call.queue)

    def lint(
        self, packet: RpcPacket, client: Endpoint, server: Endpoint, *, whole: bool, new_group: bool
    ) -> list[Finding]:
        return self._lint.packet(client[0], server, packet, whole=whole, new_group=new_group)


class Handles:
    """The queues of context handles and move contexts, by the server that issued them.

    A client may use it in each connection of an association group, and may have one for each call.
    """

    __slots__ = ("_queues",)

    def __init__(self) -> None:
        self._queues: OrderedDict[tuple[str, int, ContextHandle | int], str] = OrderedDict()

    def opened(self, server: Endpoint, handle: ContextHandle | int, queue: str) -> None:
        """Note the handle of a queue that has been opened."""
        if len(queue) > QUEUE_MAX:
            return
        key = (*server, handle)
        self._queues[key] = queue
        self._queues.move_to_end(key)
        if len(self._queues) > HANDLES_MAX:
            self._queues.popitem(last=False)

    def closed(self, server: Endpoint, handle: ContextHandle | int) -> None:
        """Forget a handle."""
        self._queues.pop((*server, handle), None)

    def queue(self, server: Endpoint, handle: ContextHandle | int) -> str:
        """Return the format name of the queue; empty if the handle was not seen to be opened."""
        return self._queues.get((*server, handle), "")
