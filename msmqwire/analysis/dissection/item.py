"""The result of dissection: one item for each packet, malformed packet or range of skipped bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeAlias, TypeGuard

from msmqwire.analysis.dissection.contents import decoded, message_body
from msmqwire.analysis.dissection.message_security import NOTHING_GIVEN, Examined, Examiner, SignatureStatus
from msmqwire.analysis.lint import Finding
from msmqwire.analysis.protocols import protocol_of, protocols
from msmqwire.analysis.protocols.protocol import JoinedPacket
from msmqwire.bodies import Body
from msmqwire.capture.ip import Transport
from msmqwire.capture.tunnels import PLAIN, Encapsulation
from msmqwire.errors import MalformedPacket
from msmqwire.json_text import dumps
from msmqwire.schema import Record, json_text, to_json

Packet: TypeAlias = Record | JoinedPacket

LocateFrames = Callable[[tuple[int, ...]], tuple[str, tuple[int, ...]]]
"""Maps frame numbers to the file of the last frame, and each to its number in its file."""


@dataclass(frozen=True, slots=True, repr=False)
class Item:
    """One packet of a capture, a malformed one among them, or a range of bytes that was skipped.

    Attributes:
        file: the capture file of the frame that completed it.
        time_ns: when that frame was captured, nanoseconds since 1970-01-01 UTC; None if the file has no time
            of it, or one that 64 bits can't represent.
        frames: the numbers of the frames that carry it, those of all fragments of IP too, from 1 in each
            file; the last one completed it.
        transport: ``tcp``, ``udp``, or ``pgm`` for IP protocol 113.
        stream: the number of the TCP connection; None without TCP.
        src, src_port, dst, dst_port: address and port of the sender and the receiver.
        packet: the packet, of MSMQ or of a protocol that has joined, as the HTTP message of SRMP, and the PDU
            or call of RPC; None when it is malformed or skipped.
        kind: the packet's name, ``Malformed`` or ``Skipped``.
        size: its length in bytes on the wire.
        findings: its departures from the specifications.
        error: why a malformed packet can't be parsed.
        raw: the bytes of the packet, even if malformed; empty for skipped bytes.
        reason: why bytes were skipped.
        exchange: the number of a request or call in its connection, from 0, and of the response to it; None
            where that is unknown.
        request_frame: the last frame of the request to which a message or answer is the response.
        examiner: has the keys and certificates given.
        one_sided: of HTTP: whether nothing that the other side of its connection has sent was captured up to
            here, not even a segment without data; None for other items.
        encapsulation: the tunnels in which the frame was captured that completed it.
    """

    file: str
    time_ns: int | None
    frames: tuple[int, ...]
    transport: Transport
    stream: int | None
    src: str
    src_port: int
    dst: str
    dst_port: int
    packet: Packet | None
    kind: str
    size: int
    findings: Sequence[Finding]
    error: MalformedPacket | None
    raw: bytes
    reason: str
    exchange: int | None = None
    request_frame: int | None = None
    examiner: Examiner = field(default=NOTHING_GIVEN, repr=False, compare=False)
    one_sided: bool | None = None
    encapsulation: Encapsulation = PLAIN

    @property
    def time(self) -> str | None:
        """The time as text, UTC with nanoseconds: ``2026-03-01T12:00:00.000001000Z``; None without one."""
        return None if self.time_ns is None else format_time(self.time_ns)

    @property
    def tunnel(self) -> str | None:
        """The tunnels around it from outside in: ``gre=7 mpls=100,200 vxlan=5001``; None without any."""
        return self.encapsulation.text

    @property
    def tunnel_src(self) -> str | None:
        """The sender of the IP packet next outside its own; None if there is none."""
        return self.encapsulation.src

    @property
    def tunnel_dst(self) -> str | None:
        """The receiver of that packet."""
        return self.encapsulation.dst

    @property
    def tunnel_id(self) -> int | None:
        """The innermost number of its tunnels; None without any."""
        return self.encapsulation.number

    @property
    def signature_status(self) -> SignatureStatus | None:
        """The status of the signature of a message; None for other items."""
        examined = self._examined
        return None if examined is None else examined.signature_status

    @property
    def decrypted(self) -> bool | None:
        """Whether the body of a message was encrypted and could be decrypted; None for other items."""
        examined = self._examined
        return None if examined is None else examined.decrypted

    @property
    def body(self) -> bytes | None:
        """The body in clear if it was `decrypted`; that in `packet` is as it was sent."""
        examined = self._examined
        return None if examined is None else examined.body

    def decoded(self) -> Body | None:
        """Return the decoded body of the message: format, value, text, headers; None for other items.

        That of an encrypted message is None unless the body was `decrypted`.
        """
        message = message_body(self.packet, self.examiner)
        return None if message is None else decoded(message)

    @property
    def _examined(self) -> Examined | None:
        return self.examiner.examine(self.packet)

    def __repr__(self) -> str:
        from msmqwire.analysis.dissection.showing import one_line

        return one_line(self)

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: findings, and each field beside its bytes."""
        from msmqwire.analysis.dissection.showing import item_view
        from msmqwire.schema.display import to_html

        return to_html(item_view(self))

    def __rich__(self) -> Any:
        """Return a table for rich, of the same."""
        from msmqwire.analysis.dissection.showing import item_view
        from msmqwire.schema.display import to_rich

        return to_rich(item_view(self))

    def to_json(self) -> dict[str, Any]:
        """Return the item as the JSON object that ``msmqwire dissect --json`` prints."""
        packet = self.packet
        return self._outside() | ({} if packet is None else _packet_to_json(packet)) | self._judged()

    def json_text(self) -> str:
        """Return `to_json` as the line that ``msmqwire dissect --json`` prints, faster than by way of it."""
        packet = self.packet
        if packet is not None and not isinstance(packet, Record):
            return dumps(self.to_json())
        outside, judged, fields = dumps(self._outside())[:-1], dumps(self._judged())[1:], ""
        if packet is not None:
            fields = f', "fields": {json_text(packet)}'
            if enclosed := _enclosed(packet):
                fields += f", {dumps(enclosed)[1:-1]}"
        return f"{outside}{fields}, {judged}"

    def _outside(self) -> dict[str, Any]:
        """Return what is known without the packet: its place in the capture."""
        result: dict[str, Any] = {
            "time": self.time,
            "file": self.file,
            "frames": list(self.frames),
            "transport": self.transport,
            "stream": self.stream,
            "src": self.src,
            "src_port": self.src_port,
            "dst": self.dst,
            "dst_port": self.dst_port,
            "tunnel": self.tunnel,
            "tunnel_src": self.tunnel_src,
            "tunnel_dst": self.tunnel_dst,
            "tunnel_id": self.tunnel_id,
            "packet": self.kind,
            "size": self.size,
        }
        if self.exchange is not None:
            result["exchange"] = self.exchange
        if self.request_frame is not None:
            result["request_frame"] = self.request_frame
        return result

    def _judged(self) -> dict[str, Any]:
        """Return what the packet is found to be: its security, its body, its faults."""
        result: dict[str, Any] = {}
        if (examined := self._examined) is not None:
            result["signature_status"] = examined.signature_status
            result["decrypted"] = examined.decrypted
            if examined.body is not None:
                result["decrypted_body"] = examined.body.hex()
        if (body := self.decoded()) is not None:
            result["body"] = body.to_json()
        result["findings"] = [finding.to_json() for finding in self.findings]
        result["error"] = self.error.to_json() if self.error else None
        if self.packet is None and self.raw:
            result["raw"] = self.raw.hex()
        if self.reason:
            result["reason"] = self.reason
        return result


def _packet_to_json(packet: Packet) -> dict[str, Any]:
    """Return the fields of a packet, and what a protocol says beside them; then the message in it."""
    if isinstance(packet, Record):
        return {"fields": to_json(packet), **_enclosed(packet)}
    protocol = protocol_of(packet)
    assert protocol is not None
    result = protocol.packets.to_json(packet)
    message = protocol.packets.message_in(packet)
    if message is not None:
        result["message"] = {
            **message.whole.to_json(),
            "body_size": message.body_size,
            "cut": message.cut,
        }
        result |= _enclosed(message.whole)
    return result


def _enclosed(packet: Record) -> dict[str, Any]:
    """Return the content of a packet by the names of registered protocols that it encloses."""
    readers = ((one.name, one.traffic.in_messages) for one in protocols())
    found = ((name, read(packet)) for name, read in readers if read is not None)
    return {name: inner for name, inner in found if inner is not None}


def is_packet(thing: object) -> TypeGuard[Packet]:
    """Return whether something is a packet, of any protocol."""
    return isinstance(thing, Record) or protocol_of(thing) is not None


def format_time(time_ns: int) -> str:
    """Format nanoseconds since 1970-01-01 UTC as ISO 8601 text, to the nanosecond."""
    seconds, nanoseconds = divmod(time_ns, 1_000_000_000)
    text, end = _second(seconds)
    return f"{text}.{nanoseconds:09d}{end}"


@lru_cache(maxsize=64)
def _second(seconds: int) -> tuple[str, str]:
    """Return the text of a second before and after its fraction. A capture has many packets of a second."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S"), "Z"
    except (OverflowError, OSError, ValueError):
        return str(seconds), ""  # outside of the range of datetime
