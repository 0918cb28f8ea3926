"""Pings over UDP to items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msmqwire.analysis.dissection.dissector import DatagramDissector, Surroundings, unless_cut
from msmqwire.analysis.dissection.item import Item
from msmqwire.analysis.lint import Finding, PingLint, lint_malformed, lint_packet
from msmqwire.capture import Datagram
from msmqwire.errors import MalformedPacket
from msmqwire.framing import begins_packet
from msmqwire.headers.base import PREFIX_SIZE
from msmqwire.packets import parse
from msmqwire.ping import PING_PORT, PING_SIGNATURE, PING_SIZE, has_ping_signature, is_ping
from msmqwire.schema import Record

PINGERS_MAX: Final = 4096
"""Pairs of hosts whose pings are remembered, to lint the responses."""

_NO_SIGNATURE: Final = f"the size of a ping, without its signature {PING_SIGNATURE:#06x}"


class PingDatagrams(DatagramDissector):
    """Pings: a datagram shows by its signature that it is one; a port alone tells nothing.

    On their ports, one of another size is malformed, as is a packet of a session; a datagram that has only
    the size of one is skipped, so that it can be seen.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings)
        self._ports = {PING_PORT, *surroundings.ports}
        self._pings: dict[tuple[str, int, str, int], PingLint] = {}

    def recognises(self, datagram: Datagram) -> bool:
        payload = datagram.payload
        if is_ping(payload):
            return True
        if self._ports.isdisjoint((datagram.src_port, datagram.dst_port)):
            return False
        return _may_be_ping(payload) or len(payload) + datagram.missing == PING_SIZE

    def items(self, datagram: Datagram) -> Iterator[Item]:
        payload = datagram.payload
        if not is_ping(payload) and not _may_be_ping(payload):
            yield self._item(datagram, None, "Skipped", [], reason=_NO_SIGNATURE)
            return
        packet, error = None, None
        try:
            packet = parse(payload, protocol="ping")
        except MalformedPacket as exc:
            error = exc.detached()
        findings: list[Finding] = []
        if self._around.lint and packet is not None:
            findings = lint_packet(packet, payload) + self._lint(datagram, packet)
        elif self._around.lint and error is not None:
            findings = unless_cut(lint_malformed(payload, error, "ping"), cut=datagram.missing > 0)
        yield self._item(datagram, packet, packet.schema.name if packet else "Malformed", findings, error)

    def _lint(self, datagram: Datagram, packet: Record) -> list[Finding]:
        is_request = datagram.dst_port in self._ports
        pair = (datagram.src, datagram.src_port, datagram.dst, datagram.network)
        if not is_request:
            pair = (datagram.dst, datagram.dst_port, datagram.src, datagram.network)
        linter = self._pings.pop(pair, None) or PingLint()
        self._pings[pair] = linter
        if len(self._pings) > PINGERS_MAX:
            del self._pings[next(iter(self._pings))]
        return linter.packet(is_request, packet)


def _may_be_ping(payload: bytes) -> bool:
    """Whether a datagram on a port of pings has their signature, or begins a packet of a session."""
    begins_session = len(payload) >= PREFIX_SIZE and begins_packet(payload[:PREFIX_SIZE])
    return has_ping_signature(payload) or begins_session
