"""NCP packets: bytes and JSON there and back by any reading, any cut of a stream, hostile bytes and JSON."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fuzz.invariants import refusal_has_a_position
from fuzz.strategies import json_values, values
from msmqwire.errors import InvalidValue, LocatedError, MalformedPacket
from msmqwire.ncp.calls import Call
from msmqwire.ncp.framing import NcpFramer, build_unit
from msmqwire.ncp.headers import NCP_TCP_REPLY, NCP_TCP_REQUEST
from msmqwire.ncp.job_structures import NEW_JOB, OLD_JOB, to_new, to_old
from msmqwire.ncp.packet_json import SentPacket, from_json, parse_sent
from msmqwire.ncp.packets import CALLS, NcpReply, make_request
from msmqwire.ncp.readings import Readings
from msmqwire.schema import Record

_T = TypeVar("_T")

MANY = settings(max_examples=max(120, settings.default.max_examples))
ALL_CALLS = st.sampled_from(list(CALLS.values()))
READINGS = st.fixed_dictionaries(
    {name: st.sampled_from(forms) for name, forms in Readings.fields().items()}
).map(Readings.of)
PREAMBLES = st.sampled_from([None, {}, {"PacketSignature": b"\1\2\3\4\5\6\7\x08"}])


@st.composite
def sent_bytes(draw: st.DrawFn) -> tuple[bytes, Any]:
    """A packet of any call, perhaps over TCP, and the call; bytes behind its data at times."""
    call = draw(ALL_CALLS)
    is_request = draw(st.booleans())
    schema = draw(st.sampled_from(call.requests if is_request else call.replies))
    data = draw(values(schema))
    request = make_request(call, sequence=draw(st.integers(0, 255)), connection=draw(st.integers(0, 0xFFFF)))
    if is_request:
        # Behind a form of another size they would make it one of a third.
        behind = [b"", b"\0\0", b"\xff"] if schema is call.request else [b""]
        content = data.to_bytes() + draw(st.sampled_from(behind))
        if request.subfunction is not None:
            request.subfunction.StructureLength = len(content) + 1
            content = request.subfunction.to_bytes() + content
        packet = request.header.to_bytes() + content
    else:
        head = NcpReply(request.header).header.to_bytes()[2:6]
        codes = draw(st.sampled_from([b"\0\0", b"\xd5\x40"]))
        packet = b"\x33\x33" + head + codes + data.to_bytes() * (not codes[0])
    over_tcp = draw(PREAMBLES)
    if over_tcp is not None:
        preamble = NCP_TCP_REQUEST if is_request else NCP_TCP_REPLY
        packet = build_unit(preamble, packet, **over_tcp)
    return packet, call


def attempt(read: Callable[[], _T], error: type[LocatedError]) -> _T | LocatedError:
    """What a call returns, or the refusal that it raises."""
    try:
        return read()
    except error as refusal:
        return refusal


@MANY
@given(sent=sent_bytes(), readings=READINGS)
def test_bytes_and_json_come_back_by_any_reading(sent: tuple[bytes, Any], readings: Readings) -> None:
    data, call = sent
    (packet,) = parse_sent(data, call, readings)
    assert packet.to_bytes() == data
    shown = json.loads(json.dumps(packet.to_json(), allow_nan=False))
    assert shown["size"] == len(data)
    again = from_json(shown)
    assert again == packet
    assert again.to_bytes() == data


def is_read_or_refused(data: bytes, call: Call | None = None) -> None:
    packets = attempt(lambda: list(parse_sent(data, call)), MalformedPacket)
    if isinstance(packets, MalformedPacket):
        refusal_has_a_position(packets, data)
    else:
        assert isinstance(packets, list)
        assert b"".join(packet.to_bytes() for packet in packets) == data


@MANY
@given(
    sent=sent_bytes(),
    edits=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), max_size=3),
    end=st.integers(0, 120) | st.none(),
)
@example(sent=(b"DmdT", None), edits=[], end=None)
@example(sent=(b"tNcP\0\0\0\x0a\x33", None), edits=[], end=None)
def test_hostile_bytes(sent: tuple[bytes, Any], edits: list[tuple[int, int]], end: int | None) -> None:
    data = bytearray(sent[0])
    for offset, byte in edits:
        if offset < len(data):
            data[offset] = byte
    hostile = bytes(data[:end])
    is_read_or_refused(hostile, sent[1])


@MANY
@given(
    data=st.binary(max_size=80), start=st.sampled_from([b"", b"\x22\x22", b"\x33\x33", b"\x55\x55", b"DmdT"])
)
def test_any_bytes(data: bytes, start: bytes) -> None:
    is_read_or_refused(start + data)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in _places(item, (*path, key)))]


@MANY
@given(sent=sent_bytes(), data=st.data())
def test_hostile_json(sent: tuple[bytes, Any], data: st.DataObject) -> None:
    (packet,) = parse_sent(*sent)
    shown = copy.deepcopy(packet.to_json())
    place = data.draw(st.sampled_from(_places(shown)[1:]))
    owner = shown
    for key in place[:-1]:
        owner = owner[key]
    if data.draw(st.booleans()):
        owner[place[-1]] = data.draw(json_values())
    else:
        del owner[place[-1]]
    is_made_or_refused(shown)


def is_made_or_refused(data: Any) -> None:
    packet = attempt(lambda: from_json(data), InvalidValue)
    if isinstance(packet, InvalidValue):
        assert packet.why
        assert packet.path
    else:
        assert isinstance(packet, SentPacket)
        assert packet.to_bytes()


@settings(max_examples=max(30, settings.default.max_examples // 2))
@given(data=json_values())
def test_any_json(data: Any) -> None:
    is_made_or_refused(data)
    is_made_or_refused({"packet": "ReadQueueJobEntry reply", "fields": data})


# -- streams ----------------------------------------------------------------------------------------


@given(data=st.data(), sizes=st.lists(st.integers(2, 300), max_size=5), signed=st.booleans())
def test_wherever_a_stream_is_cut_the_units_are_the_same(
    data: st.DataObject, sizes: list[int], signed: bool
) -> None:
    fields = {"PacketSignature": b"\xee" * 8} if signed else {}
    packets = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    stream = b"".join(build_unit(NCP_TCP_REPLY, packet, **fields) for packet in packets)
    framer, units, start = NcpFramer(NCP_TCP_REPLY), [], 0
    while start < len(stream):
        end = start + data.draw(st.integers(1, 200))
        units += framer.feed(stream[start:end])
        start = end
    assert [unit.packet for unit in units] == packets
    assert all((unit.preamble.PacketSignature is not None) is signed for unit in units)
    assert framer.held == 0


@given(
    data=st.binary(max_size=64), start=st.sampled_from([b"", b"DmdT", b"DmdT\0\0\0\x20", b"DmdT\x80\0\0\x20"])
)
def test_any_stream_is_read_or_refused_for_good(data: bytes, start: bytes) -> None:
    framer, stream = NcpFramer(NCP_TCP_REQUEST, size_max=48), start + data
    units = attempt(lambda: framer.feed(stream), MalformedPacket)
    if isinstance(units, MalformedPacket):
        refusal_has_a_position(units, stream)
        again = attempt(framer.next_unit, MalformedPacket)
        assert isinstance(again, MalformedPacket)
        assert (again.path, again.offset) == (units.path, units.offset)
    else:
        assert isinstance(units, list)
        size = sum(len(unit.preamble.to_bytes()) + len(unit.packet) for unit in units)
        assert framer.held == len(stream) - size < 48


# -- job structures ---------------------------------------------------------------------------------


@given(old=values(OLD_JOB))
def test_an_old_job_loses_at_most_two_bytes_of_its_handle(old: Record) -> None:
    new = to_new(old)
    back = to_old(new)
    assert back.replace(jobFileHandle=old.jobFileHandle) == old
    assert back.jobFileHandle[2:] == old.jobFileHandle[2:]
    assert to_new(back) == new


NARROW = (
    "clientStation",
    "clientTask",
    "jobPosition",
    "servicingServerStation",
    "servicingServerTaskNumber",
)


@given(new=values(NEW_JOB), wide=st.booleans())
def test_a_newer_job_fits_the_old_form_or_is_refused(new: Record, wide: bool) -> None:
    if not wide:
        new = new.replace(**{name: new[name] % 256 for name in NARROW}, jobNumber=new.jobNumber % 65536)
        new.jobControlFlags = type(new.jobControlFlags)(new.jobControlFlags % 256)
    fits = all(new[name] < 256 for name in NARROW) and new.jobNumber < 65536 and new.jobControlFlags < 256
    old = attempt(lambda: to_old(new), InvalidValue)
    if isinstance(old, InvalidValue):
        assert not fits
        assert old.path.startswith("NWQueueJobStruct_t.")
    else:
        assert isinstance(old, Record)
        assert fits
        assert to_new(old) == new.replace(RecordInUse=0, PreviousRecord=0, NextRecord=0)


def test_a_unit_is_no_larger_than_the_limit() -> None:
    framer = NcpFramer(NCP_TCP_REQUEST, size_max=1024)
    assert framer.feed(bytes.fromhex("446D6454 000004")) == []
    with pytest.raises(MalformedPacket) as refused:
        framer.feed(b"\1")
    assert (refused.value.path, refused.value.offset) == ("NcpTcpRequest.Length", 4)


@pytest.mark.parametrize(
    ("length", "least"), [("00000000", 18), ("00000011", 18), ("80000019", 26)], ids=["none", "17", "signed"]
)
def test_a_unit_is_no_smaller_than_its_preamble_and_a_type(length: str, least: int) -> None:
    framer = NcpFramer(NCP_TCP_REQUEST)
    with pytest.raises(MalformedPacket) as refused:
        framer.feed(bytes.fromhex(f"446D6454 {length}") + bytes(40))
    assert (refused.value.path, refused.value.offset) == ("NcpTcpRequest.Length", 4)
    signed = {"PacketSignature": bytes(8)} if least == 26 else {}
    (unit,) = NcpFramer(NCP_TCP_REQUEST).feed(build_unit(NCP_TCP_REQUEST, b"\x11\x11", **signed))
    assert (unit.preamble.Length.Size, unit.packet) == (least, b"\x11\x11")
