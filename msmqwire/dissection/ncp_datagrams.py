"""NCP over UDP to items: each datagram is a packet, a request or the reply to it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import Final, NamedTuple

from msmqwire.capture import Datagram
from msmqwire.capture.record import time_or_none
from msmqwire.dissection.item import Item
from msmqwire.dissection.ncp_exchanges import REPLY_TYPES, REQUEST_TYPES, UNREAD_TYPES, NcpExchanges
from msmqwire.dissection.pgm_items import LocateFrames
from msmqwire.errors import MalformedPacket
from msmqwire.lint import Finding, NcpLint, lint_malformed_ncp
from msmqwire.names.printable import counted
from msmqwire.netware.headers import NCP_PORT, WATCHDOG
from msmqwire.netware.readings import Readings

FLOWS_MAX: Final = 4096
"""Pairs of endpoints whose requests are remembered; of more, the oldest are forgotten."""
HELD_MAX: Final = 16 << 20
"""Bytes of memory that these may take together; above it, the oldest are forgotten."""

_TYPES: Final = frozenset(
    kind.to_bytes(2, "big") for kind in (*REQUEST_TYPES, *REPLY_TYPES, *UNREAD_TYPES, WATCHDOG)
)
_LEAST: Final = 6
"""Bytes of the shortest packet: a request to end a connection, as some clients send it."""


def is_ncp(datagram: Datagram, ports: Collection[int]) -> bool:
    """Return whether a UDP datagram is NCP: on its port, or others given, and it begins with a type of it."""
    ends = datagram.src_port, datagram.dst_port
    if not (NCP_PORT in ends or ends[0] in ports or ends[1] in ports):
        return False
    return len(datagram.payload) + datagram.missing >= _LEAST and datagram.payload[:2] in _TYPES


class _Flow(NamedTuple):
    exchanges: NcpExchanges
    lint: NcpLint

    @property
    def held(self) -> int:
        return self.exchanges.held + self.lint.held


class NcpDatagrams:
    """Turns datagrams of NCP, in capture order, into items.

    Args:
        lint: whether to judge the packets.
        locate: maps frame numbers to files.
        readings: how disputed fields are read.
    """

    def __init__(self, *, lint: bool, locate: LocateFrames, readings: Readings) -> None:
        self._lint, self._locate, self._readings = lint, locate, readings
        self._flows: OrderedDict[frozenset[tuple[str, int]], _Flow] = OrderedDict()
        self._held = 0

    def item(self, datagram: Datagram) -> Item:
        """Return the item of a datagram."""
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
            findings = flow.lint.packet(read.packet) if self._lint else []
        elif error is not None:
            kind = "Malformed"
            findings = self._of_malformed(datagram, error) if self._lint else []
            flow.lint.gap()
        else:
            kind = "Skipped"
            flow.lint.gap()
        self._held += flow.held - held
        self._bound()
        file, frames = self._locate(datagram.frames)
        asked = None if read.request_frame is None else self._locate((read.request_frame,))[1][0]
        size = len(datagram.payload) + datagram.missing
        raw = b"" if read.reason else datagram.payload
        return Item(
            file, time_or_none(datagram.time_ns), frames, datagram.transport, None,
            datagram.src, datagram.src_port, datagram.dst, datagram.dst_port,
            read.packet, kind, size, findings, error, raw, read.reason,
            read.number, asked,
        )  # fmt: skip

    @staticmethod
    def _of_malformed(datagram: Datagram, error: MalformedPacket) -> list[Finding]:
        found = lint_malformed_ncp(datagram.payload, error)
        return [] if datagram.missing else found  # what the capture has left out is no attack

    def _flow(self, datagram: Datagram) -> _Flow:
        ends = frozenset(((datagram.src, datagram.src_port), (datagram.dst, datagram.dst_port)))
        flow = self._flows.get(ends)
        if flow is None:
            # Of datagrams nobody knows whether some are missing: only what is there is judged.
            flow = self._flows[ends] = _Flow(NcpExchanges(self._readings), NcpLint())
            flow.lint.gap()
        self._flows.move_to_end(ends)
        return flow

    def _bound(self) -> None:
        while len(self._flows) > FLOWS_MAX or (self._held > HELD_MAX and len(self._flows) > 1):
            _, flow = self._flows.popitem(last=False)
            self._held -= flow.held
