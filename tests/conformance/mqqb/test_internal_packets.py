"""EstablishConnection, ConnectionParameters and SessionAck: [MS-MQQB] 2.2.1 to 2.2.3 and 2.2.6."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest

import msmqwire
from msmqwire.headers import CONNECTION_PARAMETERS_HEADER, ESTABLISH_CONNECTION_HEADER, INTERNAL_HEADER
from msmqwire.packets import CONNECTION_PARAMETERS, ESTABLISH_CONNECTION, SESSION_ACK
from tests.support import handmade
from tests.support.codec_checks import (
    assert_bits,
    assert_field,
    assert_refused,
    assert_same,
    differences,
    proving,
    requirement,
)

SCHEMAS = {
    "EstablishConnection": ESTABLISH_CONNECTION,
    "ConnectionParameters": CONNECTION_PARAMETERS,
    "SessionAck": SESSION_ACK,
}
PACKETS = {
    "EstablishConnection": handmade.establish_connection(),
    "ConnectionParameters": handmade.connection_parameters(),
    "SessionAck": handmade.session_ack(),
}
MAKERS = {
    "EstablishConnection": handmade.establish_connection,
    "ConnectionParameters": handmade.connection_parameters,
    "SessionAck": handmade.session_ack,
}
TEXT = "01020304-0506-0708-090a-0b0c0d0e0f10"
GUID = bytes.fromhex("04 03 02 01 06 05 08 07 09 0A 0B 0C 0D 0E 0F 10")
EVERY = pytest.mark.parametrize("kind", PACKETS)


# --- InternalHeader ---


@requirement("MQQB-2.2.1-02")
@pytest.mark.parametrize(
    "name, mask, value",
    [
        *(
            proving("PT", 0x000F, value, ids="MQQB-2.2.1-03", name=f"PT-{value}")
            for value in (1, 2, 3, 4, 8, 15)
        ),
        proving("CS", 0x0010, 0, ids="MQQB-2.2.1-06"),
        *(proving(f"X{bit}", 1 << bit, 0, ids="MQQB-2.2.1-11") for bit in range(5, 16)),
    ],
)
def test_flags(name: str, mask: int, value: int) -> None:
    assert_bits(INTERNAL_HEADER, bytes(4), f"Flags.{name}", 2, 2, mask, value)


@EVERY
@requirement("MQQB-2.2.1-01", "MQQB-2.2.1-02", "MQQB-2.2.1-11")
def test_place_and_reserved(kind: str) -> None:
    """Four bytes at offset 16; Reserved and unused bits default to 0 and are ignored."""
    data = PACKETS[kind]
    built = msmqwire.build({"packet": kind})
    assert built[16:18] == b"\0\0"
    assert built[18:20] == bytes([data[18], 0])
    poked = data[:16] + b"\x02\x01" + struct.pack("<H", data[18] | 0xFFE0) + data[20:]
    record = assert_same(SCHEMAS[kind], poked)
    assert record.InternalHeader.Reserved == 0x0102
    assert msmqwire.parse(poked) == record
    unused = {f"InternalHeader.Flags.X{bit}" for bit in range(5, 16)}
    assert differences(msmqwire.parse(data), record) == {"InternalHeader.Reserved"} | unused
    assert INTERNAL_HEADER.read(data, 16)[1] == 20


@EVERY
@requirement("MQQB-2.2.1-04")
def test_packet_types(kind: str) -> None:
    number = {"SessionAck": 1, "EstablishConnection": 2, "ConnectionParameters": 3}[kind]
    assert msmqwire.build({"packet": kind})[18] == number
    packet = msmqwire.parse(PACKETS[kind])
    assert (packet.schema.name, packet.InternalHeader.Flags.PT) == (kind, number)


@EVERY
@requirement("MQQB-2.2.1-05", "MQQB-2.1.1-02")
@pytest.mark.parametrize("number", [0, *range(4, 16)])
def test_other_packet_types_are_refused(kind: str, number: int) -> None:
    """The refusal that ends a session."""
    assert_refused(msmqwire.parse, MAKERS[kind](internal=number), "InternalHeader.Flags.PT", 18)


@requirement("MQQB-2.2.1-06")
@pytest.mark.parametrize("kind", ["EstablishConnection", "ConnectionParameters"])
def test_refused_connection(kind: str) -> None:
    data = MAKERS[kind](internal=PACKETS[kind][18] | 0x10)
    packet = assert_same(SCHEMAS[kind], data)
    assert packet.InternalHeader.Flags.CS is True
    assert differences(msmqwire.parse(PACKETS[kind]), packet) == {"InternalHeader.Flags.CS"}
    built = msmqwire.build({"packet": kind, "fields": {"InternalHeader": {"Flags": {"CS": True}}}})
    assert built[16:20] == data[16:20]


@requirement("MQQB-2.2.1-07")
def test_a_session_ack_is_built_without_refusal() -> None:
    assert msmqwire.build({"packet": "SessionAck"})[18] == 0x01


# --- whole packets ---


@pytest.mark.parametrize(
    "kind, headers, size",
    [
        proving(
            "EstablishConnection",
            (("BaseHeader", 16), ("InternalHeader", 4), ("EstablishConnectionHeader", 552)),
            572,
            ids="MQQB-2.2.3-01",
        ),
        proving(
            "ConnectionParameters",
            (("BaseHeader", 16), ("InternalHeader", 4), ("ConnectionParametersHeader", 12)),
            32,
            ids="MQQB-2.2.2-01",
        ),
        proving(
            "SessionAck",
            (("BaseHeader", 16), ("InternalHeader", 4), ("SessionHeader", 16)),
            36,
            ids=("MQQB-2.2.6-01", "MQMQ-2.2.20.4-01"),
        ),
    ],
)
def test_layouts(kind: str, headers: tuple[tuple[str, int], ...], size: int) -> None:
    """Three headers in this order; PacketSize covers them all."""
    data = PACKETS[kind]
    packet = assert_same(SCHEMAS[kind], data)
    assert msmqwire.parse(data) == packet
    assert [name for name, _ in headers] == list(packet.keys())
    offset = 0
    for name, length in headers:
        record, end = packet[name].schema.read(data, offset)
        assert (record, end) == (packet[name], offset + length)
        offset = end
    assert offset == len(data) == size
    assert packet.BaseHeader.PacketSize == size
    built = msmqwire.build({"packet": kind})
    assert (len(built), built[8:12]) == (size, struct.pack("<L", size))
    assert packet.to_json()["size"] == size


@pytest.mark.parametrize(
    "kind, flags",
    [
        proving("EstablishConnection", 0x0008, ids="MQQB-2.2.3-02"),
        proving("ConnectionParameters", 0x0008, ids="MQQB-2.2.2-02"),
        proving("SessionAck", 0x0018, ids="MQQB-2.2.6-02"),
    ],
)
def test_bits_of_the_headers(kind: str, flags: int) -> None:
    """IN, PT, and SH only in a SessionAck: set when built, and decisive when parsed."""
    built = msmqwire.build({"packet": kind})
    assert struct.unpack_from("<H", built, 2)[0] & 0x0038 == flags
    packet = msmqwire.parse(built)
    assert packet.schema.name == kind
    assert (True, kind == "SessionAck") == (packet.BaseHeader.Flags.IN, packet.BaseHeader.Flags.SH)
    assert {"SessionAck": 1, "EstablishConnection": 2, "ConnectionParameters": 3}[
        kind
    ] == packet.InternalHeader.Flags.PT
    if kind == "SessionAck":
        assert_refused(msmqwire.parse, handmade.session_ack(flags=3 | handmade.IN), "BaseHeader.Flags.SH", 2)


@EVERY
@requirement("MQQB-3.1.5.1.3-01")
def test_sizes_that_are_wrong(kind: str) -> None:
    """PacketSize one too small or too large, and trailing bytes."""
    data = PACKETS[kind]
    larger = data[:8] + struct.pack("<L", len(data) + 4) + data[12:]
    assert_refused(msmqwire.parse, larger + bytes(4), "BaseHeader.PacketSize", 8)
    assert_refused(msmqwire.parse, data + b"\0", "BaseHeader.PacketSize", 8)
    smaller = data[:8] + struct.pack("<L", len(data) - 1) + data[12:]
    field = {
        "EstablishConnection": "Padding",
        "ConnectionParameters": "WindowSize",
        "SessionAck": "Reserved",
    }[kind]
    with pytest.raises(msmqwire.MalformedPacket) as caught:
        msmqwire.parse(smaller[:-1])
    assert caught.value.path.endswith(f".{field}")
    assert caught.value.offset == len(data) - 1


# --- ConnectionParametersHeader ---


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("RecoverableAckTimeout", 0, b"\x04\x03\x02\x01", 0x01020304, ids="MQQB-2.2.2.1-01"),
        proving("AckTimeout", 4, b"\x14\x13\x12\x11", 0x11121314, ids="MQQB-2.2.2.1-03"),
        proving("Reserved", 8, b"\x22\x21", 0x2122, ids="MQQB-2.2.2.1-05"),
        proving("WindowSize", 10, b"\x32\x31", 0x3132, ids="MQQB-2.2.2.1-06"),
        proving("WindowSize", 10, b"\xff\xff", 0xFFFF, ids="MQQB-2.2.2.1-06", name="WindowSize-max"),
        proving("WindowSize", 10, b"\x00\x00", 0, ids="MQQB-2.2.2.1-06", name="WindowSize-0"),
    ],
)
def test_connection_parameters(path: str, offset: int, data: bytes, value: int) -> None:
    base = handmade.connection_parameters_header()
    assert_field(CONNECTION_PARAMETERS_HEADER, base, path, offset, data, value)


@requirement("MQQB-2.2.2.1-05")
def test_reserved_of_connection_parameters() -> None:
    assert msmqwire.build({"packet": "ConnectionParameters"})[28:30] == b"\0\0"
    data = handmade.connection_parameters(handmade.connection_parameters_header(reserved=0xFFFF))
    before, after = msmqwire.parse(PACKETS["ConnectionParameters"]), msmqwire.parse(data)
    assert differences(before, after) == {"ConnectionParametersHeader.Reserved"}


@requirement("MQQB-2.2.2.1-02", "MQQB-2.2.2.1-04")
@pytest.mark.parametrize("recoverable", [0x000001F4, 0x0001D4C0])
@pytest.mark.parametrize("ack", [0x00004E20, 0x0001D4C0])
def test_ends_of_the_ranges(recoverable: int, ack: int) -> None:
    """Both ends of both ranges are parsed and built; values outside are left to lint."""
    header = handmade.connection_parameters_header(recoverable_ack_timeout=recoverable, ack_timeout=ack)
    record = assert_same(CONNECTION_PARAMETERS, handmade.connection_parameters(header))
    parsed = record.ConnectionParametersHeader
    assert (parsed.RecoverableAckTimeout, parsed.AckTimeout) == (recoverable, ack)
    assert msmqwire.lint.lint(record.to_bytes()) == []
    fields = {"RecoverableAckTimeout": recoverable, "AckTimeout": ack}
    assert CONNECTION_PARAMETERS.build({"ConnectionParametersHeader": fields})[20:] == header
    assert CONNECTION_PARAMETERS.build({})[20:] == handmade.connection_parameters_header()


@requirement("MQQB-2.2.2.1-01", "MQQB-2.2.2.1-03", "MQQB-2.2.3.1-06")
def test_times_are_in_milliseconds() -> None:
    parts = (*CONNECTION_PARAMETERS_HEADER.parts, *ESTABLISH_CONNECTION_HEADER.parts)
    units = {part.name: part.unit for part in parts if getattr(part, "unit", "")}
    assert units == dict.fromkeys(("RecoverableAckTimeout", "AckTimeout", "TimeStamp"), "ms")


# --- EstablishConnectionHeader ---

BASE = handmade.establish_connection_header(
    client=bytes(16), server=bytes(16), operating_system=0, fill=bytes(512)
)


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("ClientGuid", 0, GUID, UUID(TEXT), ids="MQQB-2.2.3.1-01"),
        proving("ServerGuid", 16, GUID, UUID(TEXT), ids="MQQB-2.2.3.1-03"),
        proving("TimeStamp", 32, b"\x4e\xca\xde\x1d", 501140046, ids="MQQB-2.2.3.1-06"),
        proving(
            "TimeStamp", 32, b"\xff\xff\xff\xff", 0xFFFFFFFF, ids="MQQB-2.2.3.1-06", name="TimeStamp-max"
        ),
        proving("Reserved", 38, b"\x02\x01", 0x0102, ids="MQQB-2.2.3.1-16"),
        proving(
            "Padding",
            40,
            bytes(i % 256 for i in range(1, 513)),
            bytes(i % 256 for i in range(1, 513)),
            ids="MQQB-2.2.3.1-17",
        ),
    ],
)
def test_establish_connection(path: str, offset: int, data: bytes, value: Any) -> None:
    assert len(BASE) == 552
    assert_field(ESTABLISH_CONNECTION_HEADER, BASE, path, offset, data, value)


@requirement("MQQB-2.2.3.1-08")
@pytest.mark.parametrize(
    "name, mask, value",
    [
        proving("RE", 0x00FF, 0x10, ids="MQQB-2.2.3.1-09", name="RE-10"),
        proving("RE", 0x00FF, 0xFF, name="RE-FF"),
        proving("SE", 0x0100, 0, ids="MQQB-2.2.3.1-10"),
        proving("OS", 0x0200, 0, ids="MQQB-2.2.3.1-12"),
        proving("QS", 0x0400, 0, ids="MQQB-2.2.3.1-14"),
        *(proving(f"X{bit}", 1 << bit, 0, ids="MQQB-2.2.3.1-15") for bit in range(11, 16)),
    ],
)
def test_operating_system(name: str, mask: int, value: int) -> None:
    assert_bits(ESTABLISH_CONNECTION_HEADER, BASE, f"OperatingSystem.{name}", 36, 2, mask, value)


@requirement("MQQB-2.2.3.1-09", "MQQB-2.2.3.1-10", "MQQB-2.2.3.1-15", "MQQB-2.2.3.1-16", "MQQB-2.2.3.1-18")
def test_what_is_left_out() -> None:
    """RE is 0x10, SE means that no ping was sent; the rest is zero, then 512 bytes of 0x5A."""
    assert ESTABLISH_CONNECTION_HEADER.build({}) == bytes(36) + b"\x10\x01\0\0" + b"\x5a" * 512
    assert handmade.establish_connection()[60:] == b"\x5a" * 512


@requirement("MQQB-2.2.3.1-15", "MQQB-2.2.3.1-16")
def test_what_is_ignored() -> None:
    header = handmade.establish_connection_header(operating_system=0xFB10, reserved=0xFFFF)
    data = handmade.establish_connection(header)
    before, after = msmqwire.parse(PACKETS["EstablishConnection"]), msmqwire.parse(data)
    unused = {f"EstablishConnectionHeader.OperatingSystem.X{bit}" for bit in range(11, 16)}
    assert differences(before, after) == unused | {"EstablishConnectionHeader.Reserved"}
    assert msmqwire.build(after) == data


@requirement("MQQB-2.2.3.1-19")
@pytest.mark.parametrize("fill", [bytes(512), b"\xff" * 512, bytes(range(256)) * 2])
def test_padding_of_a_request_is_anything(fill: bytes) -> None:
    data = handmade.establish_connection(handmade.establish_connection_header(fill=fill))
    packet = assert_same(ESTABLISH_CONNECTION, data)
    assert packet.EstablishConnectionHeader.Padding == fill
    assert differences(msmqwire.parse(PACKETS["EstablishConnection"]), packet) == {
        "EstablishConnectionHeader.Padding"
    }


@requirement("MQQB-2.2.3.1-17", "MQQB-3.1.5.1.3-01")
def test_padding_is_not_left_out() -> None:
    data = handmade.establish_connection()[:60]
    data = data[:8] + struct.pack("<L", 60) + data[12:]
    assert_refused(msmqwire.parse, data, "EstablishConnectionHeader.Padding", 60)
    with pytest.raises(msmqwire.InvalidValue) as caught:
        ESTABLISH_CONNECTION.build({"EstablishConnectionHeader": {"Padding": b"\x5a" * 511}})
    assert (caught.value.path, caught.value.offset) == ("EstablishConnectionHeader.Padding", 60)
