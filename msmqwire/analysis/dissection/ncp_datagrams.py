"""NCP over UDP to items: each datagram is a packet, a request or the reply to it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, NamedTuple

from msmqwire.analysis.dissection.dissector import DatagramDissector, Surroundings
from msmqwire.analysis.dissection.item import Item
from msmqwire.analysis.dissection.ncp_exchanges import REPLY_TYPES, REQUEST_TYPES, UNREAD_TYPES, NcpExchanges
from msmqwire.analysis.lint import Finding
from msmqwire.analysis.lint.ncp_attacks import lint_malformed_ncp
from msmqwire.analysis.lint.ncp_session import NcpLint
from msmqwire.capture import Datagram
from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import counted
from msmqwire.ncp.headers import NCP_PORT, WATCHDOG
from msmqwire.ping import PING_PORT, is_ping

FLOWS_MAX: Final = 4096
"""Pairs of endpoints whose requests are remembered; of more, the oldest are forgotten."""
HELD_MAX: Final = 16 << 20
"""Bytes of memory that these may take together; above it, the oldest are forgotten."""

_TYPES: Final = frozenset(
    kind.to_bytes(2, "big") for kind in (*REQUEST_TYPES, *REPLY_TYPES, *UNREAD_TYPES, WATCHDOG)
)
_LEAST: Final = 6
"""Bytes of the shortest packet: a request to end a connection, as some clients send it."""


class _Flow(NamedTuple):
    exchanges: NcpExchanges
    lint: NcpLint

    @property
    def held(self) -> int:
        return self.exchanges.held + self.lint.held


class NcpDatagrams(DatagramDissector):
    """NCP over UDP: a datagram on its port, or on given ports, that begins with a type of it. On given ports,
    a datagram that is a ping of MSMQ stays one.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings)
        self._ports = frozenset(surroundings.ports) - {PING_PORT}
        self._flows: OrderedDict[frozenset[tuple[str, int, int]], _Flow] = OrderedDict()
        self._held = 0

    def recognises(self, datagram: Datagram) -> bool:
        payload, ends = datagram.payload, (datagram.src_port, datagram.dst_port)
        if payload[:2] not in _TYPES or len(payload) + datagram.missing < _LEAST:
            return False
        return NCP_PORT in ends or not (self._ports.isdisjoint(ends) or is_ping(payload))

    def items(self, datagram: Datagram) -> Iterator[Item]:
        flow = self._flow(datagram)
        held = flow.held
        read = flow.exchanges.read(datagram.payload, datagram.frames[-1])
        if read.packet is not None and datagram.missing:
            why = f"{counted(datagram.missing, 'byte', 'are')} not in the capture"
            cut = MalformedPacket(why, path=read.packet.kind, offset=len(datagram.payload))
            read = read._replace(packet=None, error=cut)
        findings: list[Finding] = []
        error = None if read.error is None else read.error.detached()
        if read.packet is not None:
            kind = read.packet.kind
            findings = flow.lint.packet(read.packet) if self._around.lint else []
        elif error is not None:
            kind = "Malformed"
            if self._around.lint and not datagram.missing:  # the capture left bytes out: no attack
                findings = lint_malformed_ncp(datagram.payload, error)
            flow.lint.gap()
        else:
            kind = "Skipped"
            flow.lint.gap()
        self._held += flow.held - held
        self._bound()
        yield self._item(
            datagram, read.packet, kind, findings, error, read.reason, read.number, read.request_frame
        )

    def _flow(self, datagram: Datagram) -> _Flow:
        src, src_port, dst, dst_port, network = datagram.key
        ends = frozenset(((src, src_port, network), (dst, dst_port, network)))
        flow = self._flows.get(ends)
        if flow is None:
            # Missing datagrams can't be recognised: only those that are there are judged.
            flow = self._flows[ends] = _Flow(NcpExchanges(self._around.readings), NcpLint())
            flow.lint.gap()
        self._flows.move_to_end(ends)
        return flow

    def _bound(self) -> None:
        while len(self._flows) > FLOWS_MAX or (self._held > HELD_MAX and len(self._flows) > 1):
            _, flow = self._flows.popitem(last=False)
            self._held -= flow.held
