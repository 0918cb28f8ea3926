"""PDUs as values, and a byte stream split into them: [C706] 12.6, [MS-RPCE] 2.2.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.names.printable import agreed, counted
from msmqwire.rpc.byte_order import is_big_endian, turned
from msmqwire.rpc.constants import FRAG_LENGTH_MAX, PduType
from msmqwire.rpc.pdus import (
    BIG_ENDIAN,
    COMMON_HEADER,
    COMMON_HEADER_SIZE,
    PDUS,
    SEC_TRAILER,
    SEC_TRAILER_SIZE,
)
from msmqwire.schema import Header, Record, field_offset, to_json

PTYPE_OFFSET: Final = field_offset(COMMON_HEADER, "PTYPE")
FRAG_LENGTH_OFFSET: Final = field_offset(COMMON_HEADER, "frag_length")


@dataclass(frozen=True, slots=True)
class Pdu:
    """A PDU with its authentication verifier.

    Attributes:
        record: common header and body, of one of the schemas `msmqwire.rpc.pdus.PDUS`, in either byte order.
        sec_trailer: the verifier, of `SEC_TRAILER`; None if there is none.
        auth_padding: the bytes between body and verifier.
    """

    record: Record
    sec_trailer: Record | None = None
    auth_padding: bytes = b""

    def to_json(self) -> dict[str, Any]:
        """Return ``{"packet", "size", "fields"}`` as other packets have it, the verifier among the fields."""
        fields = to_json(self.record)
        if self.sec_trailer is not None:
            fields["auth_padding"] = self.auth_padding.hex()
            fields["sec_trailer"] = to_json(self.sec_trailer)
        return {"packet": self.record.schema.name, "size": len(build_pdu(self)), "fields": fields}

    @property
    def big_endian(self) -> bool:
        """Whether its integers are big-endian, and those of its stub."""
        return has_big_endian(self.record.header)


def has_big_endian(header: Record) -> bool:
    """Return whether a PDU with this common header is big-endian."""
    return bool(header["packed_drep"] == BIG_ENDIAN)


def read_header(data: bytes | bytearray) -> Record:
    """Return the common header that a PDU begins with, its lengths as they are. Raises MalformedPacket."""
    header: Record = COMMON_HEADER.parse(_little_endian(COMMON_HEADER, bytes(data[:COMMON_HEADER_SIZE])))
    return header


def _little_endian(schema: Header, data: bytes) -> bytes:
    """Return a PDU, or the header of one, in the byte order of the schemas."""
    return turned(schema, data, big_endian=True) if is_big_endian(data) else data


def read_sec_trailer(header: Record, data: bytes) -> Record:
    """Return the verifier of a PDU with this common header, from where it begins. Raises MalformedPacket."""
    record: Record = SEC_TRAILER.parse(
        turned(SEC_TRAILER, data, big_endian=True) if has_big_endian(header) else data
    )
    return record


def parse_header(data: bytes | bytearray, frag_length_max: int = FRAG_LENGTH_MAX) -> Record:
    """Return the common header that a PDU begins with, its lengths checked against the limits.

    Raises MalformedPacket, also for another data representation than integers of either byte order, ASCII
    and IEEE.
    """
    header = read_header(data)
    length, auth_length = header.frag_length, header.auth_length
    if header.PTYPE not in PDUS:
        raise wrong_header("PTYPE", f"no connection-oriented type: {header['PTYPE']}")
    if not COMMON_HEADER_SIZE <= length <= frag_length_max:
        why = f"{length} is not in {COMMON_HEADER_SIZE}..{frag_length_max}"
        raise wrong_header("frag_length", why)
    if auth_length and auth_length + SEC_TRAILER_SIZE > length - COMMON_HEADER_SIZE:
        why = f"{auth_length} and the sec_trailer do not fit into {counted(length, 'byte')}"
        raise wrong_header("auth_length", why)
    return header


def wrong_header(field: str, why: str) -> MalformedPacket:
    """Return the error of a common header with this field."""
    offset = field_offset(COMMON_HEADER, field)
    return MalformedPacket(why, path=f"{COMMON_HEADER.name}.{field}", offset=offset)


def verifier_offset(header: Record) -> int:
    """Return where the sec_trailer of a PDU with this common header begins; its end if there is none."""
    auth_length = header.auth_length
    end: int = header.frag_length
    return end - auth_length - SEC_TRAILER_SIZE if auth_length else end


def parse_pdu(data: bytes, header: Record | None = None) -> Pdu:
    """Return the PDU that takes exactly these bytes. Raises MalformedPacket with path and offset.

    `header` is the result of `parse_header` for them, where that is at hand.
    """
    if header is None:
        header = parse_header(data)
    if header.frag_length != len(data):
        why = f"{header['frag_length']}, but there are {counted(len(data), 'byte')}"
        raise wrong_header("frag_length", why)
    schema = PDUS[header.PTYPE]
    if not header.auth_length:
        return Pdu(schema.parse(_little_endian(schema, data)))
    end = verifier_offset(header)
    sec_trailer = read_sec_trailer(header, data[end:])
    body_end = end - sec_trailer.auth_pad_length
    if body_end < COMMON_HEADER_SIZE:
        there = agreed(end - COMMON_HEADER_SIZE, "are")
        why = f"{counted(sec_trailer['auth_pad_length'], 'byte')} of padding, {there} there"
        raise MalformedPacket(why, path="sec_trailer.auth_pad_length", offset=end + 2)
    return Pdu(schema.parse(_little_endian(schema, data[:body_end])), sec_trailer, data[body_end:end])


def build_pdu(pdu: Pdu) -> bytes:
    """Return the bytes of a PDU as it is, its lengths included. Raises InvalidValue."""
    data = _built(pdu.record, pdu)
    if pdu.sec_trailer is None:
        return data
    return data + pdu.auth_padding + _built(pdu.sec_trailer, pdu)


def _built(record: Record, pdu: Pdu) -> bytes:
    """Return the bytes of a part of a PDU, in its byte order."""
    data: bytes = record.schema.build(record)
    return turned(record.schema, data, big_endian=False) if pdu.big_endian else data


def make_pdu(
    kind: PduType,
    fields: Mapping[str, Any],
    *,
    header: Mapping[str, Any] | None = None,
    sec_trailer: Mapping[str, Any] | None = None,
    auth_padding: bytes | None = None,
) -> Pdu:
    """Return a complete PDU; lengths, type and padding that are left out are worked out.

    `fields` are those of the body, `header` those of the common header. Padding is up to a multiple of 4
    bytes. Raises InvalidValue.
    """
    schema: Header = PDUS[kind]
    record: Record = schema.make({**fields, "header": {"PTYPE": kind, **(header or {})}})
    length = len(schema.build(record))
    verifier: Record | None = None
    if sec_trailer is None:
        auth_padding = b""
    else:
        auth_padding = bytes(-length % 4) if auth_padding is None else auth_padding
        verifier = SEC_TRAILER.make({"auth_pad_length": len(auth_padding), **sec_trailer})
        length += len(auth_padding) + SEC_TRAILER_SIZE + len(verifier["auth_value"])
    given = header or {}
    if "frag_length" not in given:
        if length > FRAG_LENGTH_MAX:
            why = f"{counted(length, 'byte', 'do')} not fit into a PDU"
            raise InvalidValue(why, path=f"{COMMON_HEADER.name}.frag_length")
        record.header.frag_length = length
    if "auth_length" not in given and verifier is not None:
        record.header.auth_length = len(verifier["auth_value"])
    return Pdu(record, verifier, auth_padding)


def pdu_from_json(data: Mapping[str, Any]) -> Pdu:
    """Return the PDU of such an object as `Pdu.to_json` gives. Raises InvalidValue."""
    if not isinstance(data, Mapping) or not isinstance(fields := data.get("fields"), Mapping):
        raise InvalidValue("not an object with fields", path="fields")
    kind = next((kind for kind, schema in PDUS.items() if schema.name == data.get("packet")), None)
    if kind is None:
        raise InvalidValue(f"{data.get('packet')!r} is not a PDU", path="packet")
    body = {
        name: value for name, value in fields.items() if name not in ("sec_trailer", "auth_padding", "header")
    }
    header, sec_trailer, padding = (fields.get(name) for name in ("header", "sec_trailer", "auth_padding"))
    for name, value in (("header", header), ("sec_trailer", sec_trailer)):
        if value is not None and not isinstance(value, Mapping):
            raise InvalidValue(f"{type(value).__name__} is not an object", path=name)
    try:
        auth_padding = None if padding is None else bytes.fromhex(padding)
    except (TypeError, ValueError):
        raise InvalidValue("not hex text", path="auth_padding") from None
    return make_pdu(kind, body, header=header, sec_trailer=sec_trailer, auth_padding=auth_padding)


class Frame(NamedTuple):
    """A PDU as it came: its common header, and all its bytes."""

    header: Record
    data: bytes


class PduFramer:
    """Splits the bytes of one direction into PDUs, fed any number at a time.

    A bad common header ends the stream: no later PDU can be found with certainty.

    Attributes:
        error: the error that ended the stream, or None.
        bad_header: the common header that ended it.
        frag_length_max: the longest PDU that is accepted, in bytes.
    """

    def __init__(self, frag_length_max: int = FRAG_LENGTH_MAX) -> None:
        self.frag_length_max = frag_length_max
        self.error: MalformedPacket | None = None
        self.bad_header = b""
        self._buffer = bytearray()

    @property
    def buffered(self) -> int:
        """The bytes of an incomplete PDU; fewer than `frag_length_max`."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[Frame]:
        """Return the PDUs that these bytes complete; on a bad header, those before it, with `error` set."""
        buffer, frames, start = self._buffer, list[Frame](), 0
        if self.error is not None:
            return frames
        buffer += data
        while len(buffer) - start >= COMMON_HEADER_SIZE:
            head = bytes(buffer[start : start + COMMON_HEADER_SIZE])
            try:
                header = parse_header(head, self.frag_length_max)
            except MalformedPacket as exc:
                self.error, self.bad_header = exc.detached(), head
                buffer.clear()
                return frames
            end: int = start + header["frag_length"]
            if end > len(buffer):
                break
            frames.append(Frame(header, bytes(buffer[start:end])))
            start = end
        del buffer[:start]
        return frames
