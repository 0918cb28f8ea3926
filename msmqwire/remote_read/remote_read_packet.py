"""A call or an answer of RemoteRead in a capture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from msmqwire.errors import InvalidName, MalformedPacket
from msmqwire.remote_read.procedures import PROCEDURES
from msmqwire.remote_read.sections import ReadMessage, message_of
from msmqwire.rpc.queue_format import name_of
from msmqwire.rpc.rpc_packet import RpcPacket, Stub, call_kinds

KINDS: Final = call_kinds(PROCEDURES.values())
"""The names of calls and answers."""


@dataclass(frozen=True, slots=True, repr=False)
class RemoteReadPacket(RpcPacket):
    """A call or an answer, also a fault; `kind` is that of the PDU where the procedure is unknown.

    Attributes:
        message: the message in an answer.
    """

    message: ReadMessage | None = None

    @property
    def opened_queue(self) -> str:
        """The format name of the queue in the arguments; empty if there is none, or none that is legal."""
        queue_format = getattr(self.value, "pQueueFormat", None)
        if queue_format is None:
            return ""
        try:
            name = name_of(queue_format)
        except InvalidName:
            return ""
        return "" if name is None else str(name)


def message_in(stub: Stub) -> ReadMessage | None:
    """Return the message in the results of a call; None if there is none.

    Raises MalformedPacket, its offset counted in the stub.
    """
    sections = getattr(stub.value, "ppPacketSections", None)
    if not sections:
        return None
    try:
        return message_of(sections)
    except MalformedPacket as exc:
        has_offset = exc.offset is not None
        start = section_offset(stub.data, sections) if has_offset else stub.places["ppPacketSections"]
        raise MalformedPacket(
            exc.why, path=exc.path, offset=start + (exc.offset or 0), requirement=exc.requirement
        ) from None


def section_offset(stub: bytes, sections: Sequence[Any]) -> int:
    """Return where the bytes of the first section begin in the stub that the sections were read from."""
    return max(0, stub.find(sections[0].pSectionBuffer or b""))
