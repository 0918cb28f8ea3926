"""Stubs of the qmmgmt interface, written by hand from its IDL: [MS-MQMR] 2.2, 3.1.4 and 6.

A `#` begins a comment; the numbers in comments are offsets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from msmqwire import InvalidValue, MalformedPacket
from msmqwire.constants import QUEUE_FORMAT_TYPE, VarEnum
from msmqwire.management.constants import MACHINE_ACTIONS, QUEUE_ACTIONS, Action, ObjectType, Opnum, action_of
from msmqwire.management.interface import (
    INTERFACE,
    build_request,
    build_response,
    parse_request,
    parse_response,
)
from msmqwire.management.objects import MGMT_OBJECT, machine_object, queue_object
from msmqwire.management.procedures import PROCEDURES
from msmqwire.management.variants import ARMS, DEPTH_MAX, NULL, PROPVARIANT, plain, variant
from msmqwire.names import parse_format_name
from msmqwire.rpc.ndr import NDR20, NDR64, Syntax, from_json, to_json
from msmqwire.rpc.queue_format import name_of
from tests.support.codec_checks import requirement
from tools.pages.conformance import read_tables

GUID_TEXT = "01020304-0506-0708-090a-0b0c0d0e0f10"
GUID = "04030201 0605 0807 090a0b0c0d0e0f10"
BOTH = pytest.mark.parametrize("syntax", [NDR20, NDR64], ids=lambda syntax: syntax.name)
REFERENT = {NDR20: "00000200", NDR64: "0000020000000000"}


def stub(text: str) -> bytes:
    """The bytes in a text, comments left out."""
    return bytes.fromhex(" ".join(line.partition("#")[0] for line in text.splitlines()))


def check(opnum: int, direction: str, syntax: Syntax, text: str, value: Any) -> None:
    """The bytes are the value in both directions, and that as JSON; each cut is refused where it ends."""
    data = stub(text)
    parse, build = (
        (parse_request, build_request) if direction == "request" else (parse_response, build_response)
    )
    parsed = parse(opnum, data, syntax)
    declaration = getattr(PROCEDURES[opnum], direction)
    assert parsed == declaration.value(**value)
    assert parsed.wire.rest == b""
    assert build(opnum, parsed, syntax) == data
    assert build(opnum, value, syntax) == data
    assert build(opnum, from_json(declaration, to_json(declaration, parsed)), syntax) == data
    for cut in range(len(data)):
        with pytest.raises(MalformedPacket) as caught:
            parse(opnum, data[:cut], syntax)
        assert caught.value.offset is not None
        assert caught.value.offset <= cut


def refused(data: bytes, why: str, *, syntax: Syntax = NDR20, opnum: int = 0) -> MalformedPacket:
    with pytest.raises(MalformedPacket, match=why) as caught:
        parse_request(opnum, data, syntax)
    return caught.value


# -- the interface -------------------------------------------------------------------------------------


@requirement("MQMR-1.9-01", "MQMR-2.1-03", "MQMR-6-01")
def test_its_identifier_and_procedures() -> None:
    assert (UUID("41208ee0-e970-11d1-9b9e-00e02c064c39"), 1, 0) == INTERFACE
    assert [(n, p.name) for n, p in PROCEDURES.items()] == [(0, "R_QMMgmtGetInfo"), (1, "R_QMMgmtAction")]
    names = [[m.name for m in p.request.members] for p in PROCEDURES.values()]
    assert names == [["pObjectFormat", "cp", "aProp", "apVar"], ["pObjectFormat", "lpwszAction"]]
    assert [[m.name for m in p.response.members] for p in PROCEDURES.values()] == [
        ["apVar", "status"],
        ["status"],
    ]


@requirement("MQMR-3.1.4-04", "MQMR-3.1.4.1-11", "MQMR-3.1.4.2-11")
def test_opnums() -> None:
    assert [(one.name, one.value) for one in Opnum] == [("R_QMMgmtGetInfo", 0), ("R_QMMgmtAction", 1)]
    for opnum in (2, 0xFFFF, -1):
        with pytest.raises(MalformedPacket, match=f"no procedure {opnum}") as caught:
            parse_response(opnum, b"", NDR20)
        assert caught.value.requirement == "MQMR-3.1.4-04"
        with pytest.raises(InvalidValue, match=f"no procedure {opnum}"):
            build_request(opnum, {}, NDR20)


def test_requirements_that_declarations_name_exist() -> None:
    known = set(read_tables()["MQMR"])
    members = [m for p in PROCEDURES.values() for m in (*p.request.members, *p.response.members)]
    members += [*MGMT_OBJECT.members, *PROPVARIANT.members]
    named = {id_ for member in members for id_ in member.req}
    named |= {id_ for procedure in PROCEDURES.values() for id_ in procedure.req}
    assert len(named) > 12
    assert named <= known


# -- MGMT_OBJECT ---------------------------------------------------------------------------------------

GET_ONE = {"cp": 1, "aProp": (5,), "apVar": (NULL,)}
MACHINE_20 = """
    0100 0100 00000000       # 0 type, 2 discriminant, 4 Reserved1
    01000000                 # 8 cp
    01000000 05000000        # 12 max_count, 16 aProp
    01000000                 # 20 max_count
    0100 00 00 00000000 0100 # 24 VT_NULL
"""
MACHINE_64 = """
    01000000 00000000            # 0 type
    01000000 00000000            # 8 discriminant
    00000000 00000000            # 16 Reserved1, 4 of padding
    01000000 00000000            # 24 cp
    0100000000000000             # 32 max_count
    05000000 00000000            # 40 aProp
    0100000000000000             # 48 max_count
    0100 00 00 00000000          # 56 VT_NULL
    0100 000000000000            # 64 discriminant
"""


@requirement("MQMR-2.2.1.2-01", "MQMR-2.2.1.2-02", "MQMR-2.1-04", "MQMR-3.1.4.1-01")
def test_properties_of_the_machine() -> None:
    check(0, "request", NDR20, MACHINE_20, {"pObjectFormat": machine_object(), **GET_ONE})
    assert len(stub(MACHINE_20)) == 34


@requirement("MQMR-2.2.1.2-03", "MQMR-2.2.3-03")
def test_properties_of_the_machine_in_ndr64() -> None:
    check(0, "request", NDR64, MACHINE_64, {"pObjectFormat": machine_object(), **GET_ONE})


@requirement("MQMR-3.1.4.1-01", "MQMR-2.2.3-02")
@pytest.mark.parametrize(("count", "first", "size"), [(1, 24, 34), (2, 32, 58), (6, 48, 138)])
def test_places_of_several_properties(count: int, first: int, size: int) -> None:
    arguments = {"pObjectFormat": machine_object(), "aProp": tuple(range(1, count + 1))}
    data = build_request(0, {**arguments, "apVar": (NULL,) * count}, NDR20)
    assert len(data) == size
    for number in range(count):  # each at the next multiple of 8
        assert data[first + 16 * number :][:10] == stub("0100 00 00 00000000 0100")


@requirement("MQMR-2.2.2.1-01", "MQMR-2.2.1.2-04", "MQMR-2.2.1.2-07")
@BOTH
def test_object_types(syntax: Syntax) -> None:
    """16 bits in NDR, 32 in NDR64; the reserved numbers may be anything; another type has no arm."""
    assert [one.value for one in ObjectType] == [1, 2, 3]
    data = bytearray(stub(MACHINE_20 if syntax is NDR20 else MACHINE_64))
    again, arm = (2, 4) if syntax is NDR20 else (8, 16)
    for kind in (1, 3):
        for reserved in (0, 1, 0xFFFFFFFF):
            data[0], data[again] = kind, kind
            data[arm : arm + 4] = reserved.to_bytes(4, "little")
            value = parse_request(0, bytes(data), syntax).pObjectFormat
            assert (value.type, value.arm) == (kind, reserved)
    for kind in (0, 4, 0xFF):
        data[0], data[again] = kind, kind
        assert refused(bytes(data), f"no arm for {kind}", syntax=syntax).offset == again


@requirement("MQMR-2.2.1.2-05")
@BOTH
def test_discriminant_that_is_not_the_type(syntax: Syntax) -> None:
    data = bytearray(stub(MACHINE_20 if syntax is NDR20 else MACHINE_64))
    again = 2 if syntax is NDR20 else 8
    data[again] = 3
    exc = refused(bytes(data), "the discriminant is 3, type 1", syntax=syntax)
    assert (exc.path, exc.offset) == ("R_QMMgmtGetInfo.pObjectFormat", again)


@requirement("MQMR-2.2.1.2-06")
@BOTH
def test_null_queue_can_be_read(syntax: Syntax) -> None:
    value = {"pObjectFormat": MGMT_OBJECT.value(type=2, arm=None), "lpwszAction": "TIDY"}
    data = build_request(1, value, syntax)
    assert data[: 8 if syntax is NDR20 else 24] == stub(
        "0200 0200 00000000" if syntax is NDR20 else "0200000000000000 0200000000000000 0000000000000000"
    )
    parsed = parse_request(1, data, syntax)
    assert (parsed.pObjectFormat.type, parsed.pObjectFormat.arm) == (2, None)


PAUSE = """
    0200 0200 00000200     # 0 type, 2 discriminant, 4 referent id
    01 00 0000             # 8 m_qft, m_SuffixAndFlags, m_reserved
    01 000000              # 12 discriminant
    04030201 0605 0807 090a0b0c0d0e0f10 # 16 GUID
    06000000 00000000 06000000          # 32 max_count, offset, actual_count
    5000 4100 5500 5300 4500 0000       # 44 PAUSE
"""


@requirement("MQMR-4-01", "MQMR-3.1.4.2-01", "MQMR-3.1.4.2-05", "MQMR-2.2.1.2-08")
def test_pausing_a_public_queue() -> None:
    queue = queue_object(parse_format_name(f"PUBLIC={GUID_TEXT}"))
    check(1, "request", NDR20, PAUSE, {"pObjectFormat": queue, "lpwszAction": "PAUSE"})


@requirement("MQMR-3.1.4.2-01")
def test_an_action_on_the_machine() -> None:
    text = """
        0100 0100 00000000         # 0
        05000000 00000000 05000000 # 8 max_count, 12 offset, 16 actual_count
        5400 4900 4400 5900 0000   # 20 TIDY
    """
    check(1, "request", NDR20, text, {"pObjectFormat": machine_object(), "lpwszAction": "TIDY"})


@requirement("MQMR-3.1.4.2-01")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("5000", "2 bytes? are left|10 bytes are needed|bytes"),  # a unit, as the IDL has it by the letter
        ("01000000 00000000 01000000 5000", "null"),
        ("00000000 00000000 00000000", "null"),
        ("02000000 01000000 01000000 5000 0000", "offset|from 1 on"),
        ("02000000 00000000 03000000 5000 0000 0000", "3"),
        ("ffffffff 00000000 ffffffff 5000 0000", "needed"),
    ],
)
def test_actions_that_are_no_strings(text: str, why: str) -> None:
    refused(stub("0100 0100 00000000") + stub(text), why, opnum=1)


@requirement("MQMR-3.1.4.2-02")
@BOTH
def test_the_answer_to_an_action(syntax: Syntax) -> None:
    check(1, "response", syntax, "06000ec0", {"status": 0xC00E0006})


@requirement("MQMR-3.1.4.2-03", "MQMR-3.1.4.2-04", "MQMR-3.1.4.2-09", "MQMR-3.1.4.2-13")
def test_names_of_actions() -> None:
    assert {*Action} == {"CONNECT", "DISCONNECT", "TIDY", "PAUSE", "RESUME", "EOD_RESEND"}
    assert {*MACHINE_ACTIONS} == {"CONNECT", "DISCONNECT", "TIDY"}
    assert {*QUEUE_ACTIONS} == {"PAUSE", "RESUME", "EOD_RESEND"}
    assert action_of("eod_Resend") is Action.EOD_RESEND
    for other in ("", "RESEND", "PURGE", "PAUSE ", " PAUSE", "PAU\u017fE", "T\u0131DY", b"P\0\0\xd8\0\0"):
        assert action_of(other) is None


# -- QUEUE_FORMAT --------------------------------------------------------------------------------------

NAMES = {
    "PUBLIC": (f"PUBLIC={GUID_TEXT}", 32, 56),
    "MACHINE": (f"MACHINE={GUID_TEXT};DEADLETTER", 32, 56),
    "CONNECTOR": (f"CONNECTOR={GUID_TEXT}", 32, 56),
    "PRIVATE": (f"PRIVATE={GUID_TEXT}\\7", 36, 64),
    "DIRECT": ("DIRECT=OS:a\\q", 32 + 2 * 7, 72 + 2 * 7),
    "SUBQUEUE": ("DIRECT=OS:a\\q;s", 32 + 2 * 16, 72 + 2 * 16),
    "DL": (f"DL={GUID_TEXT}@d", 48 + 2 * 2, 88 + 2 * 2),
    "MULTICAST": ("MULTICAST=224.1.2.3:5", 24, 48),
}


@requirement("MQMR-2.2.1.1-01", "MQMR-2.2.1.3-01", "MQMR-2.2.1.4-01", "MQMR-2.2.1.5-01", "MQMR-2.2.2.2-01")
@pytest.mark.parametrize("kind", NAMES)
def test_all_forms_of_queue_names(kind: str) -> None:
    """The sizes up to the action are those of the fields; the forms are those of the enumeration."""
    text, size, size64 = NAMES[kind]
    name = parse_format_name(text)
    for syntax, end, to in ((NDR20, size, 4), (NDR64, size64, 8)):
        value = {"pObjectFormat": queue_object(name), "lpwszAction": "PAUSE"}
        data = build_request(1, value, syntax)
        string = 3 * syntax.word + 12
        assert len(data) == end + -end % to + string
        parsed = parse_request(1, data, syntax)
        assert name_of(parsed.pObjectFormat.arm) == name
        assert build_request(1, parsed, syntax) == data
        at = 8 if syntax is NDR20 else 24
        assert data[at] == getattr(QUEUE_FORMAT_TYPE, f"QUEUE_FORMAT_TYPE_{kind}")


@requirement("MQMR-2.2.1.5-01", "MQMR-2.2.2.2-01")
@BOTH
def test_queue_formats_that_name_nothing(syntax: Syntax) -> None:
    data = bytearray(build_request(1, {"pObjectFormat": queue_object(None), "lpwszAction": "X"}, syntax))
    at, again = (8, 12) if syntax is NDR20 else (24, 32)
    assert len(data) == (16 if syntax is NDR20 else 40) + 3 * syntax.word + 4
    assert name_of(parse_request(1, bytes(data), syntax).pObjectFormat.arm) is None
    for kind in (9, 255):
        data[at] = data[again] = kind
        refused(bytes(data), f"no arm for {kind}", opnum=1, syntax=syntax)


@requirement("MQMR-2.2.1.5-02", "MQMR-2.2.1.5-04")
@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        (f"PUBLIC={GUID_TEXT};JOURNAL", 0x81),
        (f"PRIVATE={GUID_TEXT}\\7;JOURNAL", 0x81),
        ("DIRECT=OS:a\\q;JOURNAL", 0x81),
        (f"MACHINE={GUID_TEXT};JOURNAL", 0x81),
        (f"MACHINE={GUID_TEXT};DEADLETTER", 0x82),
        (f"MACHINE={GUID_TEXT};DEADXACT", 0x83),
        ("DIRECT=OS:a\\SYSTEM$;DEADLETTER", 0x82),
        ("DIRECT=OS:a\\SYSTEM$;DEADXACT", 0x83),
        (f"CONNECTOR={GUID_TEXT};XACTONLY", 4),
        ("DIRECT=OS:a\\q;s", 5),
    ],
)
def test_suffixes(text: str, suffix: int) -> None:
    value = {"pObjectFormat": queue_object(parse_format_name(text)), "lpwszAction": "X"}
    data = build_request(1, value, NDR20)
    assert (data[9], data[10:12]) == (suffix, b"\0\0")
    assert name_of(parse_request(1, data, NDR20).pObjectFormat.arm) == parse_format_name(text)


# -- R_QMMgmtGetInfo -----------------------------------------------------------------------------------


def with_counts(cp: int, ids: int, variants: int, *, left_out: int = 0) -> bytes:
    """A request with these counts and as many elements as the arrays count."""
    data = stub("0100 0100 00000000") + cp.to_bytes(4, "little") + ids.to_bytes(4, "little")
    data += bytes(4 * min(ids, 200)) + variants.to_bytes(4, "little")
    for _ in range(min(variants, 200) - left_out):
        data += bytes(-len(data) % 8) + stub("0100 00 00 00000000 0100")
    return data


@requirement("MQMR-3.1.4.1-03")
@pytest.mark.parametrize("count", [1, 128])
def test_counts_in_the_range(count: int) -> None:
    value = parse_request(0, with_counts(count, count, count), NDR20)
    assert (value.cp, len(value.aProp), len(value.apVar)) == (count, count, count)


@requirement("MQMR-3.1.4.1-03")
@pytest.mark.parametrize("count", [0, 129, 0x80000000, 0xFFFFFFFF])
def test_counts_out_of_range(count: int) -> None:
    exc = refused(with_counts(count, count, count), "is not in 1..128")
    assert (exc.path, exc.offset) == ("R_QMMgmtGetInfo.cp", 8)


@requirement("MQMR-3.1.4.1-04", "MQMR-3.1.4-01")
@pytest.mark.parametrize(
    ("ids", "variants", "path"),
    [(1, 2, "aProp"), (3, 2, "aProp"), (0, 2, "aProp"), (2, 1, "apVar"), (2, 3, "apVar"), (2, 0, "apVar")],
)
def test_counts_that_differ(ids: int, variants: int, path: str) -> None:
    exc = refused(with_counts(2, ids, variants), "the maximum count is .*, cp 2")
    assert exc.path == f"R_QMMgmtGetInfo.{path}"


@requirement("MQMR-3.1.4-01")
def test_elements_that_are_missing() -> None:
    refused(with_counts(128, 128, 128, left_out=1), "needed")


FAILED = """
    01000000 00000000        # 0 max_count
    0100 00 00 00000000 0100 # 8 VT_NULL
    0000                     # 18
    25000ec0                 # 20 HRESULT
"""


@requirement("MQMR-3.1.4.1-02")
def test_the_answer_of_a_failure_has_the_array() -> None:
    check(0, "response", NDR20, FAILED, {"apVar": (NULL,), "status": 0xC00E0025})
    assert len(stub(FAILED)) == 24
    with pytest.raises(MalformedPacket):
        parse_response(0, stub("25000ec0"), NDR20)


# -- PROPVARIANT ---------------------------------------------------------------------------------------

VARIANTS: dict[str, tuple[int, Any, str, str]] = {
    # vt, value, the arm in NDR after the discriminant at 8, the arm in NDR64 at 16
    "I1": (0x10, -2, "fe", "fe 00000000000000"),
    "UI1": (0x11, 0xFE, "fe", "fe 00000000000000"),
    "I2": (0x02, -2, "feff", "feff 000000000000"),
    "UI2": (0x12, 0xFFFE, "feff", "feff 000000000000"),
    "BOOL": (0x0B, 0xFFFF, "ffff", "ffff 000000000000"),
    "I4": (0x03, -2, "0000 feffffff", "feffffff 00000000"),
    "UI4": (0x13, 0xFFFFFFFE, "0000 feffffff", "feffffff 00000000"),
    "I8": (0x14, -2, "000000000000 feffffffffffffff", "feffffffffffffff"),
    "UI8": (0x15, 2**64 - 2, "000000000000 feffffffffffffff", "feffffffffffffff"),
    "CLSID": (0x48, UUID(GUID_TEXT), f"0000 00000200 {GUID}", f"0000020000000000 {GUID}"),
    "LPWSTR": (
        0x1F,
        "ab",
        "0000 00000200 03000000 00000000 03000000 6100 6200 0000",
        "0000020000000000 0300000000000000 0000000000000000 0300000000000000 6100 6200 0000",
    ),
    "BLOB": (
        0x41,
        b"abc",
        "0000 03000000 00000200 03000000 616263",
        "03000000 00000000 0000020000000000 0300000000000000 616263",
    ),
    "VECTOR UI1": (
        0x1011,
        b"abc",
        "0000 03000000 00000200 03000000 616263",
        "03000000 00000000 0000020000000000 0300000000000000 616263",
    ),
    "VECTOR UI2": (
        0x1012,
        (1, 2, 3),
        "0000 03000000 00000200 03000000 0100 0200 0300",
        "03000000 00000000 0000020000000000 0300000000000000 0100 0200 0300",
    ),
    "VECTOR I4": (
        0x1003,
        (-1, 2),
        "0000 02000000 00000200 02000000 ffffffff 02000000",
        "02000000 00000000 0000020000000000 0200000000000000 ffffffff 02000000",
    ),
    "VECTOR UI4": (
        0x1013,
        (1,),
        "0000 01000000 00000200 01000000 01000000",
        "01000000 00000000 0000020000000000 0100000000000000 01000000",
    ),
    "VECTOR UI8": (
        0x1015,
        (1, 2),  # the count at 28, the elements at 32
        "0000 02000000 00000200 02000000 0100000000000000 0200000000000000",
        "02000000 00000000 0000020000000000 0200000000000000 0100000000000000 0200000000000000",
    ),
    "VECTOR CLSID": (
        0x1048,
        (UUID(GUID_TEXT),),
        f"0000 01000000 00000200 01000000 {GUID}",
        f"01000000 00000000 0000020000000000 0100000000000000 {GUID}",
    ),
    "VECTOR LPWSTR": (
        0x101F,
        ("a", None, "b"),  # the referent ids, then the texts
        "0000 03000000 00000200 03000000 04000200 00000000 08000200 "
        "02000000 00000000 02000000 6100 0000 02000000 00000000 02000000 6200 0000",
        "03000000 00000000 0000020000000000 0300000000000000 0400020000000000 0000000000000000 "
        "0800020000000000 0200000000000000 0000000000000000 0200000000000000 6100 0000 00000000 "
        "0200000000000000 0000000000000000 0200000000000000 6200 0000",
    ),
    "VECTOR VARIANT": (
        0x100C,
        (variant(0x13, 7), variant(0x1F, "a")),  # the elements, then the pointees of their own
        "0000 02000000 00000200 02000000 1300 00 00 00000000 1300 0000 07000000 "
        "1f00 00 00 00000000 1f00 0000 04000200 02000000 00000000 02000000 6100 0000",
        "02000000 00000000 0000020000000000 0200000000000000 "
        "1300 00 00 00000000 1300 000000000000 07000000 00000000 "
        "1f00 00 00 00000000 1f00 000000000000 0400020000000000 "
        "0200000000000000 0000000000000000 0200000000000000 6100 0000",
    ),
}


def answer(vt: int, arm: str, syntax: Syntax) -> bytes:
    """The results with one value, of which the arm and the pointees are given."""
    word = f"{vt:04x}"
    word = word[2:] + word[:2]
    count = "01000000 00000000"
    gap = "" if syntax is NDR20 else "000000000000"
    data = stub(f"{count} {word} 00 00 00000000 {word} {gap} {arm}")
    return data + bytes(-len(data) % 4) + stub("00000000")


@requirement("MQMR-2.2.3-01", "MQMR-2.2.3-02", "MQMR-2.2.3-07", "MQMR-2.2.3-08")
@pytest.mark.parametrize("name", VARIANTS)
def test_values_in_ndr(name: str) -> None:
    vt, value, arm, _ = VARIANTS[name]
    check(0, "response", NDR20, answer(vt, arm, NDR20).hex(), {"apVar": (variant(vt, value),), "status": 0})


@requirement("MQMR-2.2.3-03", "MQMR-2.2.3-07", "MQMR-2.2.3-08")
@pytest.mark.parametrize("name", VARIANTS)
def test_values_in_ndr64(name: str) -> None:
    vt, value, _, arm = VARIANTS[name]
    check(0, "response", NDR64, answer(vt, arm, NDR64).hex(), {"apVar": (variant(vt, value),), "status": 0})


@requirement("MQMR-2.2.3-02", "MQMR-2.2.3-03")
@BOTH
@pytest.mark.parametrize("vt", [0, 1])
def test_values_without_an_arm(vt: int, syntax: Syntax) -> None:
    data = answer(vt, "", syntax)
    assert len(data) == (24 if syntax is NDR20 else 28)
    assert plain(parse_response(0, data, syntax).apVar[0]) is None


@requirement("MQMR-2.2.3-01")
@BOTH
def test_reserved_members_are_ignored(syntax: Syntax) -> None:
    data = bytearray(
        answer(*VARIANTS["UI4"][::3], syntax) if syntax is NDR64 else answer(0x13, "0000 07000000", syntax)
    )
    data[10:16] = b"\xa1\xa2\xa3\xa4\xa5\xa6"
    value = parse_response(0, bytes(data), syntax)
    assert plain(value.apVar[0]) in (7, 0xFFFFFFFE)
    assert build_response(0, value, syntax) == data


@requirement("MQMR-2.2.3-02")
def test_elements_of_different_sizes() -> None:
    """Each begins at the next multiple of 8; the pointees follow all elements."""
    text = """
        03000000 00000000              # 0
        0100 00 00 00000000 0100       # 8 VT_NULL, 10 bytes
        000000000000                   # 18
        1f00 00 00 00000000 1f00       # 24 VT_LPWSTR
        0000 00000200                  # 34, 36 referent id
        1400 00 00 00000000 1400       # 40 VT_I8
        000000000000 0900000000000000  # 50, 56
        02000000 00000000 02000000 6100 0000 # 64 the text
        00000000                       # 80
    """
    values = (NULL, variant(0x1F, "a"), variant(0x14, 9))
    check(0, "response", NDR20, text, {"apVar": values, "status": 0})


@requirement("MQMR-2.2.3-04")
def test_types_without_an_arm() -> None:
    known = {0, 1, 2, 3, 0xB, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x1F, 0x41, 0x48}
    known |= {0x1003, 0x100C, 0x1011, 0x1012, 0x1013, 0x1015, 0x101F, 0x1048}
    assert set(ARMS) == known
    for vt in range(0x2000):
        if vt not in known:
            data = stub("01000000 00000000") + vt.to_bytes(2, "little") + bytes(6) + vt.to_bytes(2, "little")
            with pytest.raises(MalformedPacket, match=f"no arm for {vt}"):
                parse_response(0, data + bytes(30), NDR20)


@requirement("MQMR-2.2.3-05")
@BOTH
def test_discriminant_that_is_not_vt(syntax: Syntax) -> None:
    data = bytearray(answer(0x13, "0000 07000000 0000", syntax))
    data[16] = 0x03
    with pytest.raises(MalformedPacket, match="the discriminant is 3, vt 19") as caught:
        parse_response(0, bytes(data), syntax)
    assert (caught.value.path, caught.value.offset) == ("R_QMMgmtGetInfo.apVar[0]", 16)


COUNTED = [0x41, 0x1011, 0x1012, 0x1003, 0x1013, 0x1015, 0x1048, 0x101F, 0x100C]


@requirement("MQMR-2.2.3-06", "MQMR-3.1.4-02", "MQMR-3.2.4-05")
@BOTH
@pytest.mark.parametrize("vt", COUNTED, ids=hex)
def test_null_pointer_with_a_count(vt: int, syntax: Syntax) -> None:
    gap = "0000" if syntax is NDR20 else ""
    null = "00" * syntax.word
    pad = "" if syntax is NDR20 else "00000000"
    empty = answer(vt, f"{gap} 00000000 {pad} {null}", syntax)
    assert plain(parse_response(0, empty, syntax).apVar[0]) in ((), b"")
    data = answer(vt, f"{gap} 01000000 {pad} {null} {'00' * 40}", syntax)
    with pytest.raises(MalformedPacket, match=r"a null pointer, (cElems|cbSize) is 1"):
        parse_response(0, data, syntax)


@requirement("MQMR-2.2.3-06")
@BOTH
@pytest.mark.parametrize("vt", COUNTED, ids=hex)
def test_counts_that_are_not_the_maximum(vt: int, syntax: Syntax) -> None:
    """Neither another maximum count nor one beyond the bytes that are left, before anything is made."""
    gap, pad = ("0000", "") if syntax is NDR20 else ("", "00000000")
    many = "ffffffff" if syntax is NDR20 else "ffffffff00000000"
    one = "01000000" if syntax is NDR20 else "0100000000000000"
    for count, most, why in (
        ("02000000", one, "the maximum count is 1, .* 2"),
        ("01000000", many, "the maximum count is 4294967295"),
        ("ffffffff", many, "needed"),
    ):
        data = answer(vt, f"{gap} {count} {pad} {REFERENT[syntax]} {most} {'00' * 64}", syntax)
        with pytest.raises(MalformedPacket, match=why):
            parse_response(0, data, syntax)


@requirement("MQMR-2.2.3-06")
@BOTH
def test_empty_vector_with_a_pointer(syntax: Syntax) -> None:
    gap, pad = ("0000", "") if syntax is NDR20 else ("", "00000000")
    arm = f"{gap} 00000000 {pad} {REFERENT[syntax]} {'00' * syntax.word}"
    value = parse_response(0, answer(0x101F, arm, syntax), syntax)
    assert plain(value.apVar[0]) == ()
    assert build_response(0, value, syntax) == answer(0x101F, arm, syntax)


def nested(depth: int) -> Any:
    value = variant(0x13, 1)
    for _ in range(depth):
        value = variant(0x100C, (value,))
    return value


@requirement("MQMR-2.2.3-09")
def test_variants_nest_to_a_bound() -> None:
    data = build_response(0, {"apVar": (nested(DEPTH_MAX),)}, NDR20)
    assert parse_response(0, data, NDR20).apVar == (nested(DEPTH_MAX),)
    with pytest.raises(InvalidValue, match="no arm"):
        build_response(0, {"apVar": (nested(DEPTH_MAX + 1),)}, NDR20)
    level = stub("0c10 00 00 00000000 0c10 0000 01000000 00000200 01000000")
    for deeper in (DEPTH_MAX + 1, 100_000):
        data = stub("01000000 00000000") + level * deeper + bytes(32)
        with pytest.raises(MalformedPacket, match=f"nested more than {DEPTH_MAX} deep"):
            parse_response(0, data, NDR20)


@requirement("MQMR-2.2.3-08")
def test_texts_of_values() -> None:
    """The counts are the characters and the null; a null pointer is no text."""
    parsed = parse_response(0, answer(0x1F, "0000 00000000", NDR20), NDR20)
    assert plain(parsed.apVar[0]) is None
    for counts, why in (
        ("02000000 00000000 03000000", "3"),
        ("03000000 01000000 02000000", "1"),
        ("02000000 00000000 02000000", "null"),
    ):
        data = answer(0x1F, f"0000 00000200 {counts} 6100 6200 6300", NDR20)
        with pytest.raises(MalformedPacket, match=why):
            parse_response(0, data, NDR20)


@requirement("MQMR-2.2.3-04")
@pytest.mark.parametrize("make", [lambda: variant(0x1002, ()), lambda: variant(0x0C, 1)])
def test_variants_of_other_types_are_not_made(make: Callable[[], Any]) -> None:
    with pytest.raises(KeyError):
        make()


def test_plain_values_and_variants_are_the_same() -> None:
    for vt, value, _, _ in VARIANTS.values():
        made = plain(variant(vt, value))
        assert made == (tuple(map(plain, value)) if vt == 0x100C else value)
    assert NULL.vt == VarEnum.VT_NULL
