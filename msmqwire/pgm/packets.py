"""The packets of PGM, bytes to values and back: RFC 3208 section 8, SRMP-2.1.3-01."""

from __future__ import annotations

from dataclasses import fields
from ipaddress import IPv4Address, IPv6Address
from struct import unpack
from typing import Any, Final

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.names.printable import counted
from msmqwire.pgm.layouts import (
    CHECKSUM_OFFSET,
    COMMON_HEADER,
    COMMON_HEADER_SIZE,
    GSI_SIZE,
    IPV4_NLA,
    IPV6_NLA,
    NLA,
    TSDU_LENGTH,
    TSDU_LENGTH_OFFSET,
    OptionFlags,
    PgmType,
)
from msmqwire.pgm.options import NETWORK_SIGNIFICANT, build_options, complete_options, parse_options
from msmqwire.pgm.reading import Reader, build
from msmqwire.pgm.values import BODIES, Body, Nla, Opaque, Option, PgmPacket
from msmqwire.schema import Record

PACKET_SIZE_MAX: Final = 0xFFFF
"""Nothing longer fits into an IP packet."""

NLAS: Final = frozenset({"PathNLA", "SourceNLA", "MulticastGroupNLA"})
"""The fields of bodies that are addresses."""


def parse_pgm(data: bytes) -> PgmPacket:
    """Return the packet that takes exactly these bytes. Raises MalformedPacket with path and offset.

    The checksum is not looked at: `checksum_is_right`. A packet of an unknown type keeps all that follows
    the common header as one.
    """
    packet, fault = read_pgm(data)
    if fault is not None:
        raise fault
    return packet


def read_pgm(data: bytes) -> tuple[PgmPacket, MalformedPacket | None]:
    """Return the packet in these bytes as far as it can be read, and why `parse_pgm` refuses it, if it does.

    For readers of captures. Data end with TSDULength or the packet; bytes after them are
    `PgmPacket.trailing`. Of options that can't be read, all that follows the body is. Raises MalformedPacket
    with path and offset if the common header or the body of its type is cut short or can't be.
    """
    if len(data) > PACKET_SIZE_MAX:
        raise MalformedPacket(
            f"{counted(len(data), 'byte')}, more than {PACKET_SIZE_MAX:,}", offset=PACKET_SIZE_MAX
        )
    reader = Reader(data, 0, len(data))
    head = reader.read(COMMON_HEADER, "header")
    flags, size = OptionFlags(head.Options), head.TSDULength
    options: tuple[Option, ...] = ()
    content, fault = b"", None
    body: Body
    if head.Type in BODIES:
        body = _parse_body(reader, head.Type)
        start = reader.offset
        try:
            options = parse_options(reader) if flags & OptionFlags.E else ()
            if reader.left != size:
                why = f"{size}, but {counted(reader.left, 'byte', 'follow')} the header"
                fault = MalformedPacket(why, path=TSDU_LENGTH, offset=TSDU_LENGTH_OFFSET)
            content = reader.take(min(size, reader.left), "data")
        except MalformedPacket as exc:
            reader.offset, fault = start, exc.detached()
    else:
        body = Opaque(reader.take(reader.left, "body"))
    packet = PgmPacket(
        Type=head.Type,
        SourcePort=head.SourcePort,
        DestinationPort=head.DestinationPort,
        GSI=head.GSI,
        body=body,
        options=options,
        data=content,
        Options=flags,
        Checksum=head.Checksum,
        TSDULength=size,
        trailing=reader.take(reader.left, "data"),
    )
    return packet, fault


def build_pgm(packet: PgmPacket) -> bytes:
    """Return the bytes of a packet; None is computed, a given value stays. Raises InvalidValue."""
    if len(packet.GSI) != GSI_SIZE:
        raise InvalidValue(f"{counted(len(packet.GSI), 'octet')} instead of {GSI_SIZE:,}", path="GSI")
    options = complete_options(packet.options)
    flags = packet.Options
    if flags is None:
        flags = OptionFlags.E if options else OptionFlags(0)
        if any(option.kind in NETWORK_SIGNIFICANT for option in options):
            flags |= OptionFlags.N
    head = build(
        COMMON_HEADER,
        SourcePort=packet.SourcePort,
        DestinationPort=packet.DestinationPort,
        Type=int(packet.Type),
        Options=int(flags),
        Checksum=packet.Checksum or 0,
        GSI=packet.GSI,
        TSDULength=len(packet.data) if packet.TSDULength is None else packet.TSDULength,
    )
    built = head + build_body(packet.body) + build_options(options)
    built += packet.data + packet.trailing
    if len(built) > PACKET_SIZE_MAX:
        raise InvalidValue(f"{counted(len(built), 'byte')}, more than {PACKET_SIZE_MAX:,}", path="data")
    if packet.Checksum is None:
        # A sum of 0 is sent as all ones, for 0 says that there is none: section 8.
        total = (~_sum(built) & 0xFFFF) or 0xFFFF
        built = built[:CHECKSUM_OFFSET] + total.to_bytes(2, "big") + built[CHECKSUM_OFFSET + 2 :]
    return built


def checksum_is_right(data: bytes) -> bool:
    """Return whether the checksum fits the bytes of a packet; 0 is none, which only data must not have.

    Bytes too short for a common header have no checksum that could be right.
    """
    if len(data) < COMMON_HEADER_SIZE:
        return False
    head = COMMON_HEADER.parse(data[:COMMON_HEADER_SIZE])
    if head.Checksum == 0:
        return head.Type not in (PgmType.ODATA, PgmType.RDATA)
    return _sum(data) == 0xFFFF


def _sum(data: bytes) -> int:
    """The ones' complement sum of 16-bit words, an odd octet at the end padded with a zero octet."""
    padded = data + bytes(len(data) % 2)
    total: int = sum(unpack(f">{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def _parse_body(reader: Reader, kind: int) -> Body:
    shape = BODIES[kind]
    record = reader.read_fields(shape.layout, "body")
    values: dict[str, Any] = {
        name: _nla(record[name]) if name in NLAS else record[name] for name in shape.layout.fields
    }
    return shape(**values)


def _nla(record: Record) -> Nla:
    packed = record.NLA.Address
    return Nla(IPv4Address(packed) if record.AFI == 1 else IPv6Address(packed), record.Reserved)


def _nla_record(nla: Nla) -> Record:
    is_v4 = nla.Address.version == 4
    address = (IPV4_NLA if is_v4 else IPV6_NLA).record(Address=nla.Address.packed)
    return NLA.record(AFI=1 if is_v4 else 2, Reserved=nla.Reserved, NLA=address)


def build_nla(nla: Nla) -> bytes:
    """Return the bytes of an address. Raises InvalidValue."""
    return NLA.build(_nla_record(nla))


def build_body(body: Body) -> bytes:
    """Return the bytes after the common header, up to the options. Raises InvalidValue."""
    if isinstance(body, Opaque):
        return body.content
    values = {field.name: getattr(body, field.name) for field in fields(body)}
    for name in NLAS & values.keys():
        values[name] = _nla_record(values[name])
    return build(body.layout, "body", **values)
