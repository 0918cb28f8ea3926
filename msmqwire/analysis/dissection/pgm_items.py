"""PGM packets to items, and the messages of SRMP in them: RFC 3208, [MC-MQSRM] 2.1.2."""

from __future__ import annotations

from collections.abc import Iterator
from pkgutil import resolve_name
from typing import Final

from msmqwire.analysis.dissection.dissector import DatagramDissector, Surroundings
from msmqwire.analysis.dissection.item import Item
from msmqwire.analysis.dissection.pgm_sessions import Apdu, Lost, Origin, PgmSessions
from msmqwire.analysis.lint.pgm import lint_pgm
from msmqwire.analysis.protocols import protocols
from msmqwire.analysis.protocols.pgm import KIND
from msmqwire.capture import Datagram
from msmqwire.capture.ip import Transport
from msmqwire.capture.record import time_or_none
from msmqwire.capture.tunnels import encapsulation_of
from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import counted
from msmqwire.pgm import Opaque, checksum_is_right, read_pgm
from msmqwire.pgm.constants import UDP_PORTS
from msmqwire.pgm.layouts import TSDU_LENGTH

_PORTS: Final = frozenset(UDP_PORTS)


def is_pgm(datagram: Datagram) -> bool:
    """Return whether a datagram is PGM: IP protocol 113, or over UDP a port of PGM and the form of PGM.

    A port alone tells nothing, as it may have been given to any program. A packet has a type of RFC 3208 and
    the body of it, and options that can be read, or checksum or length of the data are right.
    """
    if datagram.transport == "pgm":
        return True
    if datagram.transport != "udp" or _PORTS.isdisjoint((datagram.src_port, datagram.dst_port)):
        return False
    try:
        packet, fault = read_pgm(datagram.payload)
    except MalformedPacket:
        return False
    if isinstance(packet.body, Opaque) or (fault is not None and fault.path != TSDU_LENGTH):
        return False
    size, there = packet.TSDULength, len(packet.data) + len(packet.trailing) + datagram.missing
    if packet.options or size == there:
        return True
    return bool(packet.Checksum) and checksum_is_right(datagram.payload)  # 0 is none


class PgmItems(DatagramDissector):
    """PGM: each packet is an item, followed by those of the messages that it completes."""

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings)
        self._sessions = PgmSessions()

    def recognises(self, datagram: Datagram) -> bool:
        return is_pgm(datagram)

    def items(self, datagram: Datagram) -> Iterator[Item]:
        payload = datagram.payload
        packet, fault, error = None, None, None
        try:
            packet, fault = read_pgm(payload)
            if datagram.missing:
                raise MalformedPacket(
                    f"{counted(datagram.missing, 'byte', 'are')} not in the capture",
                    path="data",
                    offset=len(payload),
                )
        except MalformedPacket as exc:
            packet, error = None, exc.detached()
        found = lint_pgm(packet, fault, payload) if self._around.lint and packet is not None else []
        yield self._item(datagram, packet, "Malformed" if packet is None else KIND, found, error)
        has_data = packet is not None and (fault is None or fault.path == TSDU_LENGTH)
        if packet is not None and has_data and checksum_is_right(payload):
            for result in self._sessions.feed(datagram, packet):
                yield from self._result(result)

    def end(self) -> Iterator[Item]:
        """End the capture: yield the items of the messages that are not whole."""
        for result in self._sessions.flush():
            yield from self._result(result)

    def _result(self, result: Apdu | Lost) -> Iterator[Item]:
        if isinstance(result, Lost):
            file, frames = self._around.locate((result.frame,))
            reason = f"not in the capture: sequence numbers {result.first} to {result.last} of PGM"
            yield Item(
                file, time_or_none(result.time_ns), frames, *_ends(result.origin),
                None, "Skipped", 0, [], None, b"", reason, encapsulation=encapsulation_of(result.frame),
            )  # fmt: skip
            return
        places = (protocol.traffic.in_payloads for protocol in protocols())
        readers = (resolve_name(place) for place in places if place)
        read = next(filter(None, (reader(result.data, lint=self._around.lint) for reader in readers)), None)
        if read is None:
            return  # another protocol; its packets have items
        message, kind, found, error = read
        file, frames = self._around.locate(result.frames)
        yield Item(
            file, time_or_none(result.time_ns), frames, *_ends(result.origin),
            message, kind, len(result.data), found, error, result.data, "",
            encapsulation=encapsulation_of(result.frames[-1]),
        )  # fmt: skip


def _ends(origin: Origin) -> tuple[Transport, None, str, int, str, int]:
    """Return the fields of an item between its frames and its packet."""
    transport, src, src_port, dst, dst_port, _ = origin
    return transport, None, src, src_port, dst, dst_port
