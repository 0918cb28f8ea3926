"""Captures to packets: every MSMQ packet in a capture, named, decoded and judged."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, BinaryIO, Final

from msmqwire.capture import Data, Datagram, End, Event, Flow, IpDecoder, Reassembler, expand, open_records
from msmqwire.dissection.connection import Connection
from msmqwire.dissection.finder import Found
from msmqwire.dissection.item import Item, format_time
from msmqwire.errors import CaptureError, MalformedPacket
from msmqwire.lint import Finding, PingLint, lint_malformed, lint_packet
from msmqwire.packets import Protocol, parse
from msmqwire.ping import PING_PORT, PING_SIGNATURE, PING_SIZE
from msmqwire.schema import Record

__all__ = ["MSMQ_PORT", "Dissection", "Item", "dissect", "format_time"]

MSMQ_PORT: Final = 1801
CONNECTIONS_MAX: Final = 32_768
"""TCP connections that are followed at a time; the one silent for longest makes room for a new one."""
PINGERS_MAX: Final = 4096
"""Pairs of hosts whose pings are remembered, to judge the responses."""
HELD_MAX: Final = 32 << 20
"""Bytes held of packets that are not whole yet, of all connections together."""
HALF_ENDED_MAX: Final = 4096
"""Connections remembered of which one direction has ended and the other brought nothing."""

Source = str | os.PathLike[str] | BinaryIO


def dissect(
    sources: Source | Iterable[Source],
    *,
    ports: Collection[int] = (),
    lint: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Dissection:
    """All MSMQ packets of captures, in the order in which they were completed.

    Args:
        sources: capture files, glob patterns or binary streams, one or several; several are read
            one after the other as parts of one capture.
        ports: TCP ports besides 1801 and UDP ports besides 3527 whose traffic is MSMQ. Packets on
            other ports are recognised by their signature.
        lint: whether to judge the packets.
        progress: called with the number of bytes of the files read since the last call.

    Raises:
        FileNotFoundError: a path or pattern names no file.
    """
    return Dissection(sources, ports=ports, lint=lint, progress=progress)


class Dissection(Iterator[Item]):
    """The items of captures, one at a time, in bounded memory.

    Nothing in a capture stops it: a packet that can't be read is an item with its error, and a file
    that is cut off or damaged has its place in `errors` once its items were handed out.

    Attributes:
        errors: the files that could not be read to their end.
        records: how many frames were read.
    """

    def __init__(
        self,
        sources: Source | Iterable[Source],
        *,
        ports: Collection[int] = (),
        lint: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        single = isinstance(sources, (str, os.PathLike)) or _is_stream(sources)
        listed: Any = [sources] if single else sources
        self._sources: list[Any] = []
        for source in listed:
            self._sources += [source] if _is_stream(source) else expand([source])
        self.errors: list[CaptureError] = []
        self.records = 0
        self._tcp_ports = {MSMQ_PORT, *ports}
        self._ping_ports = {PING_PORT, *ports}
        self._lint = lint
        self._progress = progress
        self._decoder, self._reassembler = IpDecoder(), Reassembler(max_flows=CONNECTIONS_MAX)
        self._connections: dict[int, Connection] = {}
        self._half_ended: dict[int, None] = {}
        self._held = 0
        self._pings: dict[tuple[str, int, str], PingLint] = {}
        # Frames are numbered through all files while they are read: these are the first numbers.
        self._files: list[str] = []
        self._before: list[int] = []
        self._items = self._all()

    def __next__(self) -> Item:
        return next(self._items)

    def counters(self) -> dict[str, int]:
        """What did not come out as it came in, by reason: frames passed over, bytes in conflict."""
        return {**self._decoder.ignored, **self._reassembler.counters.as_dict()}

    # -- records to events ---------------------------------------------------------------------

    def _all(self) -> Iterator[Item]:
        for source in self._sources:
            yield from self._one(source)
        for event in self._reassembler.flush():
            yield from self._event(event)

    def _one(self, source: Any) -> Iterator[Item]:
        stream = None
        if self._progress is not None and not _is_stream(source):
            stream = source = _Counted(source, self._progress)
        try:
            before = self.records
            for record in open_records(source):
                if self.records == before:
                    self._files.append(record.file)
                    self._before.append(before)
                self.records += 1
                if before:
                    record = record._replace(number=before + record.number)  # noqa: PLW2901
                for datagram in self._decoder.feed(record):
                    if datagram.transport == "udp":
                        yield from self._datagram(datagram)
                        continue
                    for event in self._reassembler.feed(datagram):
                        yield from self._event(event)
        except CaptureError as exc:
            self.errors.append(exc)
        finally:
            if stream is not None:
                stream.close()

    # -- events to items -----------------------------------------------------------------------

    def _datagram(self, datagram: Datagram) -> Iterator[Item]:
        payload = datagram.payload
        known = datagram.src_port in self._ping_ports or datagram.dst_port in self._ping_ports
        signed = len(payload) == PING_SIZE and payload[2:4] == PING_SIGNATURE.to_bytes(2, "little")
        if not known and not signed:
            return
        packet, error = None, None
        try:
            packet = parse(payload, protocol="ping")
        except MalformedPacket as exc:
            error = exc.detached()
        findings: list[Finding] = []
        if self._lint and packet is not None:
            findings = lint_packet(packet, payload) + self._judged_ping(datagram, packet)
        elif self._lint and error is not None:
            findings = _malformed(payload, error, "ping", cut=datagram.missing > 0)
        kind = packet.schema.name if packet else "Malformed"
        size = len(payload) + datagram.missing
        file, frames = self._place(datagram.frames)
        yield Item(
            file, datagram.time_ns, frames, "udp", None,
            datagram.src, datagram.src_port, datagram.dst, datagram.dst_port,
            packet, kind, size, findings, error, payload, "",
        )  # fmt: skip

    def _judged_ping(self, datagram: Datagram, packet: Record) -> list[Finding]:
        asked = datagram.dst_port in self._ping_ports
        pair = (datagram.src, datagram.src_port, datagram.dst)
        if not asked:
            pair = (datagram.dst, datagram.dst_port, datagram.src)
        judge = self._pings.pop(pair, None) or PingLint()
        self._pings[pair] = judge
        if len(self._pings) > PINGERS_MAX:
            del self._pings[next(iter(self._pings))]
        return judge.packet(asked, packet)

    def _event(self, event: Event) -> Iterator[Item]:
        flow = event.flow
        connection = self._connections.get(flow.stream)
        if connection is None:
            if isinstance(event, End):
                return
            connection = self._connections[flow.stream] = Connection(flow, self._tcp_ports)
        held = connection.held
        if isinstance(event, Data):
            found = connection.data(event)
        elif isinstance(event, End):
            found = connection.end(event)
            self._ended(flow.stream, connection)
        else:
            found = connection.gap(event)
        self._held += connection.held - held
        for one in found:
            yield self._item(flow, connection, one)
        if self._held > HELD_MAX:
            yield from self._let_go()

    def _ended(self, stream: int, connection: Connection) -> None:
        """Forgets a connection that nothing more is to come of; soon, when nothing may."""
        if len(connection.ended) == 2:
            del self._connections[stream]
            self._half_ended.pop(stream, None)
        elif connection.idle:
            self._half_ended[stream] = None
            if len(self._half_ended) > HALF_ENDED_MAX:
                oldest = next(iter(self._half_ended))
                del self._half_ended[oldest]
                if self._connections[oldest].idle:
                    del self._connections[oldest]

    def _let_go(self) -> Iterator[Item]:
        """Skips what is held of the connections that hold most, until half of it is gone."""
        ranked = sorted(self._connections.values(), key=lambda connection: -connection.held)
        for connection in ranked:
            if self._held <= HELD_MAX // 2:
                break
            held = connection.held
            skipped = connection.let_go()
            self._held += connection.held - held
            for flow, found in skipped:
                for one in found:
                    yield self._item(flow, connection, one)

    def _place(self, frames: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """The file of the last of some frames, and their numbers in their files."""
        if len(self._files) == 1:
            return self._files[0], frames
        places = [bisect_left(self._before, frame) - 1 for frame in frames]
        numbers = tuple(f - self._before[place] for f, place in zip(frames, places, strict=True))
        return self._files[places[-1]], numbers

    def _item(self, flow: Flow, connection: Connection, found: Found) -> Item:
        packet, error = found.packet, found.error
        findings: list[Finding] = []
        if packet is not None:
            kind = packet.schema.name
            if self._lint:
                findings = lint_packet(packet, found.data)
                findings += connection.lint.packet(
                    connection.from_initiator(flow), packet, found.data, found.time_ns
                )
        elif error is not None:
            kind = "Malformed"
            if self._lint:
                findings = _malformed(found.data, error, cut=found.cut)
                connection.lint.gap()
        else:
            kind = "Skipped"
            connection.lint.gap()
        file, frames = self._place(found.frames)
        return Item(
            file, found.time_ns, frames, "tcp", flow.stream,
            flow.src, flow.src_port, flow.dst, flow.dst_port,
            packet, kind, found.size, findings, error, found.data, found.reason,
        )  # fmt: skip


def _malformed(
    data: bytes, error: MalformedPacket, protocol: Protocol = "session", *, cut: bool
) -> list[Finding]:
    """What is wrong with a malformed packet; that it ends early is no attack when the capture cut it."""
    findings = lint_malformed(data, error, protocol)
    return [finding for finding in findings if not cut or finding.id != "ATTACK-TRUNCATED"]


def _is_stream(source: Any) -> bool:
    return hasattr(source, "read")


class _Counted:
    """A file that tells how much of it was read."""

    def __init__(self, path: os.PathLike[str], progress: Callable[[int], None]) -> None:
        self._stream = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by close()
        self._progress = progress
        self.name = os.fspath(path)

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size) or b""
        self._progress(len(data))
        return data

    def close(self) -> None:
        self._stream.close()
