"""Packets of the binary protocol, found by their signature: [MS-MQQB] 2.1, [MS-MQMQ] 2.2.19.1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from scapy.config import conf
from scapy.layers.inet import TCP
from scapy.packet import Packet as ScapyPacket

from msmqwire.framing import begins_packet, find_header
from msmqwire.headers import BASE_HEADER
from msmqwire.headers.base import BASE_HEADER_SIZE, PREFIX_SIZE, SIGNATURE_END
from msmqwire.headers.session import SESSION_HEADER_SIZE
from msmqwire.packets import is_extension, packet_length
from msmqwire.plugins.scapy.stack import Stack, acknowledgement_body, extension_layers, layers_of
from msmqwire.plugins.scapy.structure import Structure, take
from msmqwire.plugins.scapy.summary import packet_summary

PACKETS_MAX: Final = 16
"""Limit of packets shown in one segment, since scapy handles payloads recursively. Bytes after them are
raw.
"""


class MSMQBaseHeader(Structure):
    """The header at the start of every packet; the following headers complete it.

    [MS-MQMQ] 2.2.19.1
    """

    schema = BASE_HEADER

    @classmethod
    def dispatch_hook(cls, _pkt: bytes = b"", *args: Any, **kargs: Any) -> type[ScapyPacket]:
        """Return this layer; raw bytes for a TCP payload in which no packet begins."""
        if isinstance(kargs.get("_underlayer"), TCP) and not is_whole_prefix(_pkt):
            return conf.raw_layer  # type: ignore[no-any-return]
        return cls

    def do_build(self) -> bytes:
        """Return the bytes of this packet and of the layers after it. Raises InvalidValue."""
        stack = Stack(self if self.explicit else next(iter(self)))
        data = stack.build()
        for transform in self.post_transforms:
            data = transform(data)
        return data + bytes(stack.rest.do_build())

    def dissect(self, s: bytes) -> None:
        """Take the headers of this packet; other packets may follow in the same bytes.

        Raises MalformedPacket if the BaseHeader is incomplete.
        """
        stop = self.stop_dissection_after
        if stop is not None and isinstance(self, stop):
            self.do_dissect_payload(self.do_dissect(s))
            return
        rest = self._dissect_one(s)
        last = self.lastlayer()
        for _ in range(PACKETS_MAX - 1):
            if not is_whole_prefix(rest):
                break
            packet = MSMQBaseHeader(_internal=1)
            rest = packet._dissect_one(rest)
            last.add_payload(packet)
            last = packet.lastlayer()
        if rest and is_extension(rest):
            _add(last, extension_layers(rest))
        elif is_whole_prefix(rest):
            last.add_payload(conf.raw_layer(rest, _internal=1))
        elif rest and conf.padding:
            last.add_payload(conf.padding_layer(rest))

    def _dissect_one(self, s: bytes) -> bytes:
        """Take the headers of this packet, and return the bytes after it."""
        base = BASE_HEADER.read(s)[0]
        take(self, base)
        length = max(BASE_HEADER_SIZE, base.PacketSize)
        if base.Flags.SH and not base.Flags.IN:
            length += SESSION_HEADER_SIZE
        _add(self, layers_of(base, s, length))
        self._show_body(s[:length])
        return s[length:]

    def _show_body(self, data: bytes) -> None:
        """Parse the body of an OrderAck or FinalAck."""
        properties = self.getlayer("MSMQMessagePropertiesHeader")
        body = None if properties is None else acknowledgement_body(properties, data)
        if body is not None:
            properties.fields["MessageBody"] = body

    @classmethod
    def tcp_reassemble(
        cls, data: bytes, metadata: dict[str, Any], session: dict[str, Any]
    ) -> ScapyPacket | None:
        """Return the first packet of a stream, the bytes after it as padding; None for part of one.

        Bytes before a packet are raw. The size that a PacketSize announces is limited by `packet_length`.
        """
        start = 0 if begins_packet(data) else find_header(data)
        if start:
            raw = conf.raw_layer(data if start < 0 else data[:start])
            return raw if start < 0 else raw / conf.padding_layer(data[start:])
        length = packet_length(data) if len(data) >= PREFIX_SIZE else BASE_HEADER_SIZE
        if len(data) < length and "tcp_end" in metadata and len(data) < BASE_HEADER_SIZE:
            return conf.raw_layer(data)
        if len(data) < length and "tcp_end" not in metadata:
            # scapy loses the identity of a stream once it has returned a packet of it
            metadata.update(pay_class=cls, tcp_reassemble=cls.tcp_reassemble, tcp_min_len=length)
            return None
        # TCPSession misplaces bytes after a third packet in its buffer, so it gets all at once. StreamSocket
        # passes no `metadata`, and takes one packet at a time.
        for _ in range(PACKETS_MAX - 1 if "original" in metadata else 0):
            rest = data[length : length + PREFIX_SIZE]
            if len(rest) < PREFIX_SIZE or not begins_packet(rest):
                break
            if length + packet_length(rest) > len(data):
                break
            length += packet_length(rest)
        packet = cls(data[:length])
        return packet / conf.padding_layer(data[length:]) if data[length:] else packet

    def answers(self, other: ScapyPacket) -> int:
        """Whether this is the answer to a packet of the handshake, or acknowledges a message."""
        return self.payload.answers(other.payload) if isinstance(other, MSMQBaseHeader) else 0

    def mysummary(self) -> Any:
        return packet_summary(Stack(self)), [TCP, MSMQBaseHeader]


def _add(layer: ScapyPacket, payloads: Iterable[ScapyPacket]) -> None:
    for payload in payloads:
        layer.add_payload(payload)
        layer = payload


def shows_signature(data: bytes) -> bool:
    """Return whether a packet begins in these bytes, with its Signature, as far as they reach."""
    return len(data) >= SIGNATURE_END and begins_packet(data)


def is_whole_prefix(data: bytes) -> bool:
    """Return whether a packet begins in these bytes, with all of its BaseHeader."""
    return len(data) >= BASE_HEADER_SIZE and begins_packet(data)
