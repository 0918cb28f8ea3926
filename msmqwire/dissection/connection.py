"""A TCP connection in a capture: is it MSMQ, and what are its packets?"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from msmqwire.capture import Data, End, Flow, Gap
from msmqwire.dissection.finder import Found, PacketFinder, begins_packet
from msmqwire.lint import SessionLint

_JUDGED = 12


class Heard(NamedTuple):
    """A stretch of one direction of a connection."""

    flow: Flow
    found: Found


class Connection:
    """Both directions of a TCP connection.

    On the known ports it is MSMQ; on others as soon as a segment of it begins with a BaseHeader.
    """

    def __init__(self, flow: Flow, ports: Collection[int]) -> None:
        self.known = flow.src_port in ports or flow.dst_port in ports
        self.lint = SessionLint(midstream=flow.midstream)
        self._client: str | None = None
        if flow.dst_port in ports and flow.src_port not in ports:
            self._client = _end(flow)
        self._finders: dict[str, PacketFinder] = {}
        self._pending: dict[str, Data] = {}
        self.ended: set[str] = set()

    def from_initiator(self, flow: Flow) -> bool:
        """Whether a direction is that from the initiator to the acceptor."""
        if self._client is None:
            self._client = _end(flow)  # the initiator speaks first
        return _end(flow) == self._client

    def data(self, event: Data) -> list[Found]:
        """The next bytes of a direction."""
        finder = self._finders.get(_end(event.flow))
        if finder is None:
            held = self._pending.pop(_end(event.flow), None)
            if held is not None:
                event = event._replace(data=held.data + event.data)
            if not self.known and not self._recognised(event):
                return []
            finder = self._open(event.flow)
        return finder.feed(event.data, event.frame, event.time_ns)

    def gap(self, event: Gap) -> list[Found]:
        """A hole in a direction."""
        if not self.known:
            return []
        self.lint.gap()
        finder = self._finders.get(_end(event.flow)) or self._open(event.flow)
        return finder.gap(event.size, event.reason, event.frame, event.time_ns)

    def end(self, event: End) -> list[Found]:
        """The end of a direction."""
        self.ended.add(_end(event.flow))
        finder = self._finders.pop(_end(event.flow), None)
        return finder.end() if finder else []

    def _open(self, flow: Flow) -> PacketFinder:
        return self._finders.setdefault(_end(flow), PacketFinder(midstream=flow.midstream))

    def _recognised(self, event: Data) -> bool:
        head = event.data[:_JUDGED]
        if not begins_packet(head):
            return False
        if len(head) < _JUDGED:
            self._pending[_end(event.flow)] = event
            return False
        self.known = True
        return True


def _end(flow: Flow) -> str:
    return f"{flow.src} {flow.src_port}"
