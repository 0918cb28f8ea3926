"""Stubs of remote read, management and the endpoint mapper: round trips, hostile bytes, QUEUE_FORMAT."""

from __future__ import annotations

import struct
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from msmqwire import InvalidName, MalformedPacket
from msmqwire.headers import QUEUE_FORMAT as SCHEMA
from msmqwire.headers.queue_format import queue_format_of as record_of
from msmqwire.management import procedures as management
from msmqwire.names import parse_format_name
from msmqwire.remote_read.interface import build_request
from msmqwire.remote_read.procedures import PROCEDURES
from msmqwire.rpc.endpoint_mapper import EPT_MAP_REQUEST, ept_map_response
from msmqwire.rpc.handles import NULL_HANDLE
from msmqwire.rpc.ndr import (
    NDR20,
    NDR64,
    Stub,
    Syntax,
    Wire,
    build_stub,
    building,
    from_json,
    parse_stub,
    parsing,
    to_json,
)
from msmqwire.rpc.ndr.compiled import stub_reader, stub_writer
from msmqwire.rpc.queue_format import QUEUE_FORMAT, name_of, queue_format_of
from tests.support.codec_checks import requirement
from tests.support.rpc.ndr_strategies import values

ALL = (*PROCEDURES.values(), *management.PROCEDURES.values())
STUBS = [stub for procedure in ALL for stub in (procedure.request, procedure.response)]
STUBS += [EPT_MAP_REQUEST, ept_map_response(2)]
DISTINCT = {id(stub): stub for stub in STUBS if stub.members}.values()
SYNTAXES = [NDR20, NDR64, NDR20.ordered(big_endian=True), NDR64.ordered(big_endian=True)]
syntaxes = st.sampled_from(SYNTAXES)
stubs = st.sampled_from(list(DISTINCT))
stub_values = stubs.flatmap(lambda stub: st.tuples(st.just(stub), values(stub)))


@requirement("MQRR-2.2-01", "MQRR-2.2-02")
@given(stub_values, syntaxes)
def test_values_come_back(pair: tuple[Stub, Any], syntax: Syntax) -> None:
    stub, value = pair
    data = build_stub(stub, value, syntax)
    assert parse_stub(stub, data, syntax) == value
    assert build_stub(stub, from_json(stub, to_json(stub, value)), syntax) == data


@given(stub_values, syntaxes, st.binary(max_size=4), st.data())
def test_bytes_come_back_with_what_the_sender_chose(
    pair: tuple[Stub, Any], syntax: Syntax, rest: bytes, data: st.DataObject
) -> None:
    """Other padding, other referent ids and bytes behind: kept, and no part of the values."""
    stub, value = pair
    plain = parse_stub(stub, build_stub(stub, value, syntax), syntax)
    ids = st.integers(1, (1 << 8 * syntax.word) - 1)
    wire = plain.wire._replace(
        paddings=tuple(data.draw(st.binary(min_size=len(p), max_size=len(p))) for p in plain.wire.paddings),
        referents=tuple(data.draw(ids) for _ in plain.wire.referents),
        rest=rest,
    )
    sent = build_stub(stub, replace(plain, wire=wire), syntax)
    assert len(sent) == len(build_stub(stub, value, syntax)) + len(rest)
    received = parse_stub(stub, sent, syntax)
    assert (received, received.wire) == (value, wire)
    assert build_stub(stub, received, syntax) == sent


@given(stub_values, syntaxes)
def test_generated_functions_write_what_the_declarations_say(pair: tuple[Stub, Any], syntax: Syntax) -> None:
    stub, value = pair
    write = stub_writer(stub, syntax)
    if write is not None:
        members = {name: getattr(value, name) for name in stub.names}
        assert write(dict(members), building._members) == building.interpreted(stub, members, Wire(syntax))


def refused_or_the_same(stub: Stub, data: bytes, syntax: Syntax) -> None:
    read = stub_reader(stub, syntax)
    if read is not None and (value := read(data)) is not None:
        expected = parsing.interpreted(stub, data, syntax)
        assert (value, value.wire) == (expected, expected.wire)
    with suppress(MalformedPacket):
        assert build_stub(stub, parse_stub(stub, data, syntax), syntax) == data


@given(stubs, syntaxes, st.binary(max_size=200))
@example(PROCEDURES[7].response, NDR20, b"\1" * 200)
def test_any_bytes(stub: Stub, syntax: Syntax, data: bytes) -> None:
    refused_or_the_same(stub, data, syntax)


@given(stub_values, syntaxes, st.data())
def test_damaged_stubs(pair: tuple[Stub, Any], syntax: Syntax, data: st.DataObject) -> None:
    stub, value = pair
    built = build_stub(stub, value, syntax)
    refused_or_the_same(stub, built, syntax)
    at = data.draw(st.integers(0, len(built)))
    inserted = data.draw(st.binary(max_size=8))
    refused_or_the_same(stub, built[:at] + inserted + built[at + data.draw(st.integers(0, 8)) :], syntax)


@pytest.mark.parametrize("syntax", [NDR20, NDR64], ids=lambda syntax: syntax.name)
def test_each_byte_of_a_receive_changed(syntax: Syntax) -> None:
    sections = [
        {"SectionBufferType": 1, "SectionSizeAlloc": size, "pSectionBuffer": bytes(size)} for size in (5, 3)
    ]
    response, request = PROCEDURES[7].response, PROCEDURES[9].request
    answer = build_stub(response, {"ppPacketSections": sections}, syntax)
    end = build_stub(request, {"phContext": NULL_HANDLE, "dwAck": 1, "dwRequestId": 2}, syntax)
    for stub, data in ((response, answer), (request, end)):
        for at in range(len(data)):
            for change in (1, 2, 0xFF):
                refused_or_the_same(stub, data[:at] + bytes([data[at] ^ change]) + data[at + 1 :], syntax)
            refused_or_the_same(stub, data[:at], syntax)


@pytest.mark.parametrize("syntax", [NDR20, NDR64], ids=lambda syntax: syntax.name)
@pytest.mark.parametrize("count", [0x100, 0x01000000, 0xFFFFFFFF])
def test_counts_cost_no_memory(syntax: Syntax, count: int) -> None:
    word = "<I" if syntax is NDR20 else "<Q"
    padding = b"" if syntax is NDR20 else bytes(4)
    hostile = bytes(16) + struct.pack("<I", count) + padding + struct.pack(word, 1) + struct.pack(word, count)
    peak = 0
    for _ in range(2):  # what the first imports is not memory of the count
        tracemalloc.start()
        with pytest.raises(MalformedPacket):
            parse_stub(PROCEDURES[7].response, hostile + bytes(100), syntax)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 20_000


NAMES = (
    r"DIRECT=OS:host\PRIVATE$\q",
    r"DIRECT=TCP:10.1.2.3\q;JOURNAL",
    r"DIRECT=OS:host\SYSTEM$;DEADXACT",
    r"DIRECT=OS:host\q;sub",
    "PUBLIC=01020304-0506-0708-090a-0b0c0d0e0f10",
    "PUBLIC=01020304-0506-0708-090a-0b0c0d0e0f10;JOURNAL",
    r"PRIVATE=01020304-0506-0708-090a-0b0c0d0e0f10\0000000c",
    "MACHINE=01020304-0506-0708-090a-0b0c0d0e0f10;DEADLETTER",
    "CONNECTOR=01020304-0506-0708-090a-0b0c0d0e0f10;XACTONLY",
    "DL=01020304-0506-0708-090a-0b0c0d0e0f10@domain",
    "DL=01020304-0506-0708-090a-0b0c0d0e0f10",
    "MULTICAST=234.1.2.3:8001",
)


@requirement("MQRR-2.2.3-03", "MQRR-2.2.3-04", "MQRR-2.2.3-06", "MQRR-2.2.3-07")
@pytest.mark.parametrize("text", NAMES)
@pytest.mark.parametrize("prefix", [True, False])
def test_names_in_queue_format(text: str, prefix: bool) -> None:
    """Both ways, and in NDR with the bytes of the schema that `msmqwire.headers` has for it."""
    name = parse_format_name(text)
    form = queue_format_of(name, subqueue_prefix=prefix)
    assert name_of(form) == name
    arguments = {"pTransactionId": {"rgb": bytes(16)}, "pbPropagationToken": b"", "pQueueFormat": form}
    assert build_request(12, arguments, NDR20)[24:] == SCHEMA.build(record_of(name, subqueue_prefix=prefix))


@given(values(QUEUE_FORMAT))
def test_a_queue_format_is_a_name_or_refused(form: Any) -> None:
    with suppress(InvalidName):
        name = name_of(form)
        assert (name is None) == (form.m_qft == 0)
        assert name is None or name_of(queue_format_of(name)) == name
