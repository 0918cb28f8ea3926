"""The fields of a packet of DCE/RPC, each with the bytes that it stands in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msmqwire.names.printable import counted, cut, safe
from msmqwire.rpc.ndr import to_json as ndr_to_json
from msmqwire.rpc.pdu import Pdu
from msmqwire.rpc.rpc_packet import RpcPacket
from msmqwire.schema.display import PlacedField
from msmqwire.schema.showing import TEXT_MAX
from msmqwire.schema.showing import placed_fields as _of_record

_VERSION_HALF: Final = 2  # bytes of the major version of an interface, and of the minor one


def placed_fields(packet: RpcPacket, _raw: bytes) -> Iterator[PlacedField]:
    """Yield the fields of the first PDU, and of its stub the parameters."""
    return fields_with(packet, ())


def fields_with(packet: RpcPacket, inside: Iterable[PlacedField]) -> Iterator[PlacedField]:
    """Yield the fields of the first PDU, the parameters of its stub, and other fields in that."""
    pdu = packet.pdu
    end = 0
    for field in _of_pdu(pdu):
        end = max(end, field.offset + field.size)
        if not (field.path.endswith("stub_data") and packet.places):
            yield field
    yield from _parameters(packet)
    yield from inside
    if pdu.sec_trailer is not None and packet.fragments == 1:
        if pdu.auth_padding:
            yield PlacedField(
                "auth_padding", end, len(pdu.auth_padding), counted(len(pdu.auth_padding), "byte")
            )
        yield from _of_record(pdu.sec_trailer, end + len(pdu.auth_padding))


def _of_pdu(pdu: Pdu) -> Iterator[PlacedField]:
    """Yield the fields of a PDU, without its verifier."""
    major: PlacedField | None = None
    for field in _of_record(pdu.record):
        if not pdu.big_endian or field.size != _VERSION_HALF:
            yield field
        elif field.path.endswith(".major"):  # a version is one number: its minor half stands first
            major = field
        elif major is not None:
            yield field._replace(offset=major.offset)
            yield major._replace(offset=field.offset)
            major = None
        else:
            yield field


def _parameters(packet: RpcPacket) -> Iterator[PlacedField]:
    if packet.procedure is None or packet.value is None:
        return
    declaration = packet.procedure.request if packet.is_request else packet.procedure.response
    values: Any = ndr_to_json(declaration, packet.value)
    places = sorted(packet.places.items(), key=lambda place: place[1])
    ends = [offset for _, offset in places[1:]] + [len(packet.stub)]
    for (name, offset), stop in zip(places, ends, strict=True):
        first = packet.offset(offset)
        size = packet.offset(max(offset, stop - 1)) + 1 - first  # a parameter may go on in the next fragment
        if size > 0 and stop > offset:
            yield PlacedField(name, first, size, cut(safe(str(values.get(name, ""))), TEXT_MAX))
