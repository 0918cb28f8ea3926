"""PDUs of DCE/RPC: bytes laid out by hand, limits, JSON, and the framer."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.rpc.constants import NDR20, NDR64, PduType, bind_time_features, features_of
from msmqwire.rpc.pdu import PduFramer, build_pdu, make_pdu, parse_pdu, pdu_from_json
from msmqwire.rpc.pdus import syntax_of
from msmqwire.rpc.verification_trailer import split_trailer
from tests.support.rpc.rpc_server import REMOTE_READ

INTERFACE = "dd34911a 397b ba45 ad88 44d01ca47f28 0100 0000"
NDR = "045d888a eb1c c911 9fe8 08002b104860 0200 0000"
NTLM = "0a 05 00 00 2a000000"
VECTORS = {
    "bind": (
        "05 00 0b 17 10000000 5800 0800 01000000"
        "d016 d016 00000000 01 00 0000"
        f"0700 01 00 {INTERFACE} {NDR} {NTLM} 4e544c4d53535000",
        {"max_xmit_frag": 5840, "assoc_group_id": 0, "n_context_elem": 1},
    ),
    "bind_ack": (
        "05 00 0c 13 10000000 3c00 0000 01000000 d016 d016 39300000"
        f"0500 3231303300 00 01 00 0000 0000 0000 {NDR}",
        {"port_spec": b"2103\0", "pad2": b"\0", "assoc_group_id": 12345, "n_results": 1},
    ),
    "bind_nak": (
        "05 00 0d 03 10000000 1500 0000 01000000 0800 01 05 00",
        {"provider_reject_reason": 8, "n_protocols": 1, "rest": b""},
    ),
    "rpc_auth_3": (
        "05 00 10 03 10000000 2000 0400 01000000 20202020 0a020000 00000000 01020304",
        {"pad": b"    "},
    ),
    "request": (
        "05 00 00 83 10000000 2c00 0000 07000000 04000000 0200 0900"
        "1a9134dd 397b ba45 ad88 44d01ca47f28 01020304",
        {"alloc_hint": 4, "p_cont_id": 2, "opnum": 9, "stub_data": bytes([1, 2, 3, 4]),
         "object": UUID("dd34911a-7b39-45ba-ad88-44d01ca47f28")},
    ),
    "response": (
        "05 00 02 03 10000000 3400 1000 07000000 02000000 0200 01 00 abcd 0000"
        f"{NTLM[:6]}0200 2a000000 {'11' * 16}",
        {"cancel_count": 1, "stub_data": b"\xab\xcd"},
    ),
    "fault": (
        "05 00 03 23 10000000 2000 0000 07000000 20000000 0200 00 00 03000ec0 00000000",
        {"status": 0xC00E0003, "alloc_hint": 32, "stub_data": b""},
    ),
    "shutdown": ("05 00 11 03 10000000 1000 0000 00000000", {}),
    "co_cancel": ("05 00 12 07 10000000 1000 0000 09000000", {}),
    "orphaned": ("05 00 13 03 10000000 1000 0000 09000000", {}),
}  # fmt: skip
VECTORS["alter_context"] = (
    VECTORS["bind"][0].replace("05 00 0b", "05 00 0e"), VECTORS["bind"][1]
)  # fmt: skip
VECTORS["alter_context_resp"] = (
    f"05 00 0f 03 10000000 3800 0000 02000000 d016 d016 01000000 0000 0000 01 00 0000 0000 0000 {NDR}",
    {"port_spec": b"", "pad2": b"\0\0", "n_results": 1},
)


@pytest.mark.parametrize("name", VECTORS)
def test_bytes_laid_out_by_hand(name):
    text, fields = VECTORS[name]
    data = bytes.fromhex(text)
    pdu = parse_pdu(data)
    assert pdu.record.schema.name == name
    assert {field: pdu.record[field] for field in fields} == fields
    assert build_pdu(pdu) == data
    assert build_pdu(pdu_from_json(json.loads(json.dumps(pdu.to_json())))) == data


@pytest.mark.requirement("MQRR-1.9-01", "MQRR-2.2-01")
def test_what_a_bind_names():
    pdu = parse_pdu(bytes.fromhex(VECTORS["bind"][0]))
    (element,) = pdu.record.p_context_elem
    assert syntax_of(element.abstract_syntax) == REMOTE_READ
    assert [syntax_of(transfer) for transfer in element.transfer_syntaxes] == [NDR20]
    assert str(NDR64) == "71710533-beba-4937-8319-b5dbef9ccc36 1.0"
    assert pdu.sec_trailer.auth_value == b"NTLMSSP\0"
    assert pdu.sec_trailer.auth_context_id == 42


def test_lengths_are_worked_out_and_given_ones_kept():
    sec_trailer = {"auth_value": b"12345678"}
    data = build_pdu(make_pdu(PduType.REQUEST, {"stub_data": b"abcde"}, sec_trailer=sec_trailer))
    assert (len(data), data[8:12]) == (24 + 8 + 8 + 8, bytes.fromhex("3000 0800"))
    assert data[24:32] == b"abcde\0\0\0"
    assert parse_pdu(data).record.stub_data == b"abcde"
    wrong = build_pdu(make_pdu(PduType.SHUTDOWN, {}, header={"frag_length": 99}))
    assert wrong[8:10] == b"\x63\0"


@pytest.mark.parametrize(
    "at, value, path",
    [
        (0, "04", "rpcconn_common_hdr_t.rpc_vers"),
        (1, "02", "rpcconn_common_hdr_t.rpc_vers_minor"),
        (2, "14", "rpcconn_common_hdr_t.PTYPE"),
        (4, "20", "rpcconn_common_hdr_t.packed_drep"),
        (5, "01", "rpcconn_common_hdr_t.packed_drep"),
        (8, "0f00", "rpcconn_common_hdr_t.frag_length"),
        (8, "5900", "rpcconn_common_hdr_t.frag_length"),
        (10, "4500", "rpcconn_common_hdr_t.auth_length"),
        (24, "02", "bind.n_context_elem"),
        (28 + 2, "09", "bind.p_context_elem"),
        (74, "ff", "sec_trailer.auth_pad_length"),
    ],
)
def test_wrong_values_are_refused_at_their_place(at, value, path):
    data = bytearray.fromhex(VECTORS["bind"][0])
    data[at : at + len(value) // 2] = bytes.fromhex(value)
    with pytest.raises(MalformedPacket) as caught:
        parse_pdu(bytes(data))
    assert caught.value.path.startswith(path)


@pytest.mark.parametrize("name", VECTORS)
def test_every_cut_is_refused(name):
    data = bytes.fromhex(VECTORS[name][0])
    for cut in range(len(data)):
        with pytest.raises(MalformedPacket):
            parse_pdu(data[:cut])


@pytest.mark.parametrize(
    "change",
    [
        {"packet": "unknown"},
        {"fields": 7},
        {"fields": {"header": 7}},
        {"fields": {"sec_trailer": 7}},
        {"fields": {"auth_padding": "x", "sec_trailer": {}}},
        {"fields": {"nonsense": 1}},
        {"fields": {"stub_data": "00" * 0xFFFF}},
    ],
)
def test_json_that_is_no_pdu(change):
    with pytest.raises(InvalidValue):
        pdu_from_json({"packet": "request", "fields": {}, **change})


@pytest.mark.parametrize("step", [1, 7, 16, 1000])
def test_a_stream_comes_apart_wherever_it_is_cut(step):
    pdus = [bytes.fromhex(text) for text, _ in VECTORS.values()]
    stream, framer, seen = b"".join(pdus), PduFramer(), []
    for at in range(0, len(stream), step):
        seen += [frame.data for frame in framer.feed(stream[at : at + step])]
    assert seen == pdus
    assert (framer.buffered, framer.error) == (0, None)


def test_a_bad_header_ends_the_stream_after_the_pdus_before_it():
    good, framer = bytes.fromhex(VECTORS["fault"][0]), PduFramer(5840)
    bad = good[:8] + (5841).to_bytes(2, "little") + good[10:]
    assert [frame.data for frame in framer.feed(good + bad + good)] == [good]
    assert framer.error.path == "rpcconn_common_hdr_t.frag_length"
    assert (framer.feed(good), framer.buffered, framer.bad_header) == ([], 0, bad[:16])


def test_bind_time_features():
    syntax = bind_time_features(3)
    assert syntax.uuid == UUID("6cb71c2c-9812-4540-0300-000000000000")
    assert (features_of(syntax), features_of(NDR20), features_of(syntax._replace(major=2))) == (3, None, None)


def test_a_verification_trailer_is_found_after_padding():
    """Anything else is part of the stub."""
    sign = "8ae3137102f43671"
    trailer = bytes.fromhex(f"{sign} 0100 0400 01000000 0340 1000 00 00 0000 10000000 07000000 0200 0900")
    stub, commands = split_trailer(b"abcde\0\0\0" + trailer)
    assert stub == b"abcde\0\0\0"
    assert [(kind, command.get("opnum"), command.get("bits")) for kind, command in commands] == [
        (1, None, 1), (3, 9, None),
    ]  # fmt: skip
    assert split_trailer(b"abc" + trailer) == (b"abc" + trailer, [])
    inside = trailer[:8] + b"abcd"
    assert split_trailer(inside + trailer) == (inside, commands)


def test_a_verification_trailer_is_whole_or_refused():
    """At every length; one byte more is too much as well."""
    sign = "8ae3137102f43671"
    trailer = bytes.fromhex(f"{sign} 0100 0400 01000000 0340 1000 00 00 0000 10000000 07000000 0200 0900")
    for size in range(8, len(trailer)):
        for stub in (trailer[:size], b"abcde\0\0\0" + trailer[:size]):
            with pytest.raises(MalformedPacket, match="trailer"):
                split_trailer(stub)
    with pytest.raises(MalformedPacket, match="trailer"):
        split_trailer(trailer + b"\0")
