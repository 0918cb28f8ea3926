"""Targets for NCP: requests, replies and streams of them over TCP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fuzz.invariants import refusal_has_a_position
from fuzz.readers.inputs import pieces
from fuzz.readers.registry import target
from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.ncp.framing import NcpFramer, build_unit
from msmqwire.ncp.headers import NCP_TCP_REPLY, NCP_TCP_REQUEST
from msmqwire.ncp.job_structures import job_file_name, to_new, to_old
from msmqwire.ncp.packet_json import SentPacket, from_json, parse_sent
from msmqwire.ncp.packets import CALLS, make_reply, make_request
from msmqwire.ncp.readings import Readings
from msmqwire.schema import Record

UNIT_SIZE_MAX: Final = 512
_CALLS: Final = tuple(CALLS.values())
_READINGS: Final = (
    Readings(),
    *(Readings.of({name: form}) for name, forms in Readings.fields().items() for form in forms[1:]),
)


def _requests() -> Iterator[bytes]:
    for number, call in enumerate(_CALLS):
        request = make_request(call, sequence=number, connection=0x0102)
        yield request.to_bytes()
        yield build_unit(NCP_TCP_REQUEST, request.to_bytes(), ReplyBufferSize=1024)
    yield bytes.fromhex("1111 00 FF 00 FF 00")
    yield bytes.fromhex("5555 01 02 00 01")


def _replies() -> Iterator[tuple[int, bytes]]:
    for number, call in enumerate(_CALLS):
        request = make_request(call, sequence=number, connection=0x0102)
        yield number, make_reply(request).to_bytes()
        yield number, build_unit(NCP_TCP_REPLY, make_reply(request, completion=0xD5).to_bytes())


def _words() -> Iterator[bytes]:
    yield from (b"DmdT", b"tNcP", b"\x22\x22", b"\x33\x33", b"\x55\x55", b"\x80\0\0\0", b"\x17\0\x09")
    yield from (bytes([call.number]) for call in _CALLS)


def _comes_back(data: bytes, packets: Iterator[SentPacket]) -> None:
    """Packets build to their bytes, alone and from their JSON; other bytes are refused with a position."""
    built = b""
    try:
        for packet in packets:
            built += packet.to_bytes()
            assert from_json(packet.to_json()) == packet
            _job_has_two_forms(packet)
    except MalformedPacket as refusal:
        refusal_has_a_position(refusal, data)
        assert data.startswith(built)
        return
    assert built == data


def _job_has_two_forms(packet: SentPacket) -> None:
    job = None if packet.packet.data is None else packet.packet.data.get("Job")
    if not isinstance(job, Record):
        return
    assert len(job_file_name(job)) < 15
    if "RecordInUse" not in job.schema.fields:
        assert to_new(to_old(to_new(job))) == to_new(job)
        return
    try:
        old = to_old(job)
    except InvalidValue as refusal:
        assert refusal.path
        return
    assert to_new(old) == job.replace(RecordInUse=0, PreviousRecord=0, NextRecord=0)


@target(seeds=lambda: (b"\0" + data for data in _requests()), words=_words)
def requests(data: bytes) -> None:
    """Requests by any reading, alone or over TCP, come back from their values and their JSON."""
    if data:
        _comes_back(data[1:], parse_sent(data[1:], None, _READINGS[data[0] % len(_READINGS)]))


@target(seeds=lambda: (bytes([0, number]) + data for number, data in _replies()), words=_words)
def replies(data: bytes) -> None:
    """Replies to any call, likewise."""
    if len(data) >= 2:
        call = _CALLS[data[1] % len(_CALLS)]
        _comes_back(data[2:], parse_sent(data[2:], call, _READINGS[data[0] % len(_READINGS)]))


def _stream_seeds() -> Iterator[bytes]:
    units = [data for data in _requests() if data.startswith(b"DmdT")]
    yield b"\x25\0" + b"".join(units[::9])
    yield b"\x25\1" + b"".join(data for _, data in _replies() if data.startswith(b"tNcP"))
    yield b"\x05\0" + build_unit(NCP_TCP_REQUEST, b"\x11\x11", PacketSignature=bytes(8))


def _framed(preamble: bytes, data: bytes, choice: int) -> tuple[bytes, object]:
    """The bytes of the units in a stream, and the refusal that ends it."""
    framer = NcpFramer(NCP_TCP_REPLY if preamble[0] & 1 else NCP_TCP_REQUEST, UNIT_SIZE_MAX)
    read = b""
    for piece in pieces(data, choice):
        framer.add(piece)
        try:
            while (unit := framer.next_unit()) is not None:
                read += unit.preamble.to_bytes() + unit.packet
        except MalformedPacket as refusal:
            refusal_has_a_position(refusal, data[len(read) :])
            return read, (refusal.why, refusal.path, refusal.offset)
        assert framer.held < UNIT_SIZE_MAX
    assert framer.held == len(data) - len(read)
    return read, None


@target(seeds=_stream_seeds, words=_words)
def stream(data: bytes) -> None:
    """Wherever a stream is cut, the same units come of it, and no more than one is held."""
    if len(data) < 2:
        return
    whole = _framed(data[1:2], data[2:], 0)
    assert _framed(data[1:2], data[2:], data[0]) == whole
    assert data[2:].startswith(whole[0])
