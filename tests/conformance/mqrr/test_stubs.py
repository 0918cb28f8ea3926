"""Stubs of the RemoteRead interface, written by hand from its IDL: [MS-MQRR] 2.2, 3.1.4 and 6.

A `#` begins a comment; the numbers in comments are offsets.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from msmqwire import InvalidValue, MalformedPacket
from msmqwire.remote_read.constants import Access, Acknowledge, Action, Opnum, SectionType, ShareMode
from msmqwire.remote_read.interface import (
    INTERFACE,
    build_request,
    build_response,
    parse_request,
    parse_response,
)
from msmqwire.remote_read.procedures import PROCEDURES, SECTION_BUFFER
from msmqwire.rpc.handles import ContextHandle
from msmqwire.rpc.ndr import NDR20, NDR64, SYNTAXES, Syntax, from_json, to_json
from msmqwire.rpc.queue_format import ARMS, QUEUE_FORMAT
from tests.support.codec_checks import proving, requirement
from tools.pages.conformance import read_tables

UUID_TEXT = "01020304-0506-0708-090a-0b0c0d0e0f10"
GUID = "04030201 0605 0807 090a0b0c0d0e0f10"
CONTEXT = f"01000000 {GUID}"
ANOTHER = UUID(UUID_TEXT)
HANDLE = ContextHandle(1, ANOTHER)
UNIT = bytes(range(0xA0, 0xB0))
XACTUOW = {"rgb": UNIT}
PATH = "OS:a\\q"  # 6 characters and the null
PATH_BYTES = "4f00 5300 3a00 6100 5c00 7100 0000"


def stub(text: str) -> bytes:
    """The bytes in a text, comments left out."""
    return bytes.fromhex(" ".join(line.partition("#")[0] for line in text.splitlines()))


def plain(value: Any) -> Any:
    """A value as nested mappings, without what its sender chose."""
    if hasattr(value, "__slots__") and hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__ if name != "wire"}
    return tuple(plain(item) for item in value) if type(value) is tuple else value


def check(opnum: int, direction: str, syntax: Syntax, text: str, expected: dict[str, Any]) -> None:
    """The bytes are the values in both directions, and those as JSON; each cut is refused where it ends."""
    data = stub(text)
    parse, build = (
        (parse_request, build_request) if direction == "request" else (parse_response, build_response)
    )
    value = parse(opnum, data, syntax)
    assert plain(value) == expected
    assert value.wire.rest == b""
    assert build(opnum, value, syntax) == data
    assert build(opnum, expected, syntax) == data
    declaration = getattr(PROCEDURES[opnum], direction)
    assert build(opnum, from_json(declaration, to_json(declaration, value)), syntax) == data
    for cut in range(len(data)):
        with pytest.raises(MalformedPacket) as caught:
            parse(opnum, data[:cut], syntax)
        assert caught.value.offset is not None
        assert caught.value.offset <= cut
        assert caught.value.path.partition(".")[0] == Opnum(opnum).name


BOTH = pytest.mark.parametrize("syntax", [NDR20, NDR64], ids=lambda syntax: syntax.name)


# -- the interface -------------------------------------------------------------------------------------


@requirement("MQRR-1.9-01", "MQRR-6-01")
def test_its_identifier() -> None:
    assert (UUID("1a9134dd-7b39-45ba-ad88-44d01ca47f28"), 1, 0) == INTERFACE


@requirement("MQRR-2.2-01")
def test_both_transfer_syntaxes_by_their_identifiers() -> None:
    assert {(str(i.uuid), i.major, i.minor): s.name for i, s in SYNTAXES.items()} == {
        ("8a885d04-1ceb-11c9-9fe8-08002b104860", 2, 0): "NDR",
        ("71710533-beba-4937-8319-b5dbef9ccc36", 1, 0): "NDR64",
    }


@requirement("MQRR-3.1.4-03", "MQRR-6-02")
def test_opnums() -> None:
    names = (
        "R_GetServerPort Opnum1NotUsedOnWire R_OpenQueue R_CloseQueue R_CreateCursor R_CloseCursor "
        "R_PurgeQueue R_StartReceive R_CancelReceive R_EndReceive R_MoveMessage R_OpenQueueForMove "
        "R_QMEnlistRemoteTransaction R_StartTransactionalReceive R_SetUserAcknowledgementClass "
        "R_EndTransactionalReceive"
    )
    assert [(number, procedure.name) for number, procedure in PROCEDURES.items()] == list(
        enumerate(names.split())
    )
    assert (PROCEDURES[1].request.members, PROCEDURES[1].response.members) == ((), ())
    for opnum in (16, 0xFFFF, -1):
        with pytest.raises(MalformedPacket, match=f"no procedure {opnum}"):
            parse_request(opnum, b"", NDR20)
        with pytest.raises(InvalidValue, match=f"no procedure {opnum}"):
            build_request(opnum, {}, NDR20)


@requirement("MQRR-5.2-01")
def test_security_of_a_message_is_reported() -> None:
    """Each other parameter is a handle, or says what is to be done with which queue or message."""
    names = {member.name for procedure in PROCEDURES.values() for member in procedure.request.members}
    versions = {"Major", "Minor", "BuildNumber"}
    assert names - versions == {
        "pQueueFormat", "dwAccess", "dwShareMode", "pClientId", "fNonRoutingServer", "fWorkgroup",
        "pphContext", "phContext", "phContextFrom", "ullContextTo", "hCursor", "LookupId", "ulAction",
        "ulTimeout", "dwRequestId", "dwMaxBodySize", "dwMaxCompoundMessageSize", "dwAck", "usClass",
        "pTransactionId", "cbPropagationToken", "pbPropagationToken",
    }  # fmt: skip
    telling = [
        procedure.name
        for procedure in PROCEDURES.values()
        if any(member.name == "fWorkgroup" for member in procedure.request.members)
    ]
    assert telling == ["R_OpenQueue", "R_OpenQueueForMove"]


def test_requirements_that_declarations_name_exist() -> None:
    known = {id_ for table in read_tables().values() for id_ in table}
    named = {id_ for procedure in PROCEDURES.values() for id_ in procedure.req}
    members = [m for p in PROCEDURES.values() for m in (*p.request.members, *p.response.members)]
    members += [*QUEUE_FORMAT.members, *SECTION_BUFFER.members, *(arm for arm in ARMS.values() if arm)]
    named |= {id_ for member in members for id_ in member.req}
    assert len(named) > 50
    assert named <= known


@pytest.mark.parametrize(
    "enum, values",
    [
        proving(
            SectionType,
            "stFullPacket 0 stBinaryFirstSection 1 stBinarySecondSection 2 stSrmpFirstSection 3 "
            "stSrmpSecondSection 4",
            ids="MQRR-2.2.7-01",
        ),
        proving(Access, "RECEIVE_ACCESS 1 MQ_MOVE_ACCESS 4 PEEK_ACCESS 0x20"),
        proving(ShareMode, "MQ_DENY_NONE 0 MQ_DENY_SHARE 1"),
        proving(Acknowledge, "RR_NACK 1 RR_ACK 2"),
        proving(
            Action,
            "MQ_ACTION_RECEIVE 0 MQ_ACTION_PEEK_CURRENT 0x80000000 MQ_ACTION_PEEK_NEXT 0x80000001 "
            "MQ_LOOKUP_PEEK_CURRENT 0x40000010 MQ_LOOKUP_PEEK_NEXT 0x40000011 "
            "MQ_LOOKUP_PEEK_PREV 0x40000012 MQ_LOOKUP_RECEIVE_CURRENT 0x40000020 "
            "MQ_LOOKUP_RECEIVE_NEXT 0x40000021 MQ_LOOKUP_RECEIVE_PREV 0x40000022",
        ),
    ],
)
def test_values_of_enumerations(enum: Any, values: str) -> None:
    words = values.split()
    expected = {name: int(value, 0) for name, value in zip(words[::2], words[1::2], strict=True)}
    assert {member.name: member.value for member in enum} == expected


# -- stubs that look alike in both syntaxes ------------------------------------------------------------

RECEIVE = f"""
    {CONTEXT} 00000000                  # 0, padding at 20
    0807060504030201 11000000 20000040  # 24 LookupId, 32 hCursor, 36 ulAction
    e8030000 2a000000 00040000 00080000 # 40 ulTimeout, 44 dwRequestId, 48, 52 limits
"""
RECEIVE_VALUES = {
    "phContext": HANDLE,
    "LookupId": 0x0102030405060708,
    "hCursor": 17,
    "ulAction": 0x40000020,
    "ulTimeout": 1000,
    "dwRequestId": 42,
    "dwMaxBodySize": 1024,
    "dwMaxCompoundMessageSize": 2048,
}
FAILED = "1b000ec0"
SAME = [
    proving(0, "request", "", {}, ids=("MQRR-3.1.4.1-01", "MQRR-3.1.4-05"), name="0"),
    proving(0, "response", "37080000", {"status": 2103}, ids="MQRR-3.1.4.1-01", name="0 response"),
    proving(
        2,
        "response",
        CONTEXT,
        {"pphContext": HANDLE},
        ids=("MQRR-3.1.4.2-02", "MQRR-2.2.4-03"),
        name="2 response",
    ),
    proving(
        3,
        "request",
        CONTEXT,
        {"pphContext": HANDLE},
        ids=("MQRR-3.1.4.3-01", "MQRR-2.2.4-03"),
        name="3",
    ),
    proving(
        3,
        "response",
        f"{'00' * 20} 00000000",
        {"pphContext": ContextHandle(), "status": 0},
        ids=("MQRR-3.1.4.3-01", "MQRR-2.2.4-03"),
        name="3 response",
    ),
    proving(4, "request", CONTEXT, {"phContext": HANDLE}, ids=("MQRR-3.1.4.4-01", "MQRR-2.2.4-03"), name="4"),
    proving(
        4,
        "response",
        "07000000 00000000",
        {"phCursor": 7, "status": 0},
        ids="MQRR-3.1.4.4-01",
        name="4 response",
    ),
    proving(
        5,
        "request",
        f"{CONTEXT} 07000000",
        {"phContext": HANDLE, "hCursor": 7},
        ids="MQRR-3.1.4.5-01",
        name="5",
    ),
    proving(6, "request", CONTEXT, {"phContext": HANDLE}, ids="MQRR-3.1.4.6-01", name="6"),
    proving(
        7,
        "request",
        RECEIVE,
        RECEIVE_VALUES,
        ids=("MQRR-3.1.4.7-01", "MQRR-2.2-02", "MQRR-3.1.4-05"),
        name="7",
    ),
    proving(
        8,
        "request",
        f"{CONTEXT} 2a000000",
        {"phContext": HANDLE, "dwRequestId": 42},
        ids="MQRR-3.1.4.8-01",
        name="8",
    ),
    proving(
        9,
        "request",
        f"{CONTEXT} 02000000 2a000000",
        {"phContext": HANDLE, "dwAck": 2, "dwRequestId": 42},
        ids="MQRR-3.1.4.9-01",
        name="9",
    ),
    proving(
        10,
        "request",
        f"{CONTEXT} 00000000 1112131415161718 2122232425262728 {UNIT.hex()}",
        {
            "phContextFrom": HANDLE,
            "ullContextTo": 0x1817161514131211,
            "LookupId": 0x2827262524232221,
            "pTransactionId": XACTUOW,
        },
        ids=("MQRR-3.1.4.10-01", "MQRR-2.2.8-01"),
        name="10",
    ),
    proving(
        11,
        "response",
        f"1112131415161718 {CONTEXT}",
        {"pMoveContext": 0x1817161514131211, "pphContext": HANDLE},
        ids="MQRR-3.1.4.11-01",
        name="11 response",
    ),
    proving(
        13,
        "request",
        f"{RECEIVE}\n {UNIT.hex()} # 56",
        {**RECEIVE_VALUES, "pTransactionId": XACTUOW},
        ids=("MQRR-3.1.4.13-01", "MQRR-3.1.4.13-02", "MQRR-2.2.8-01"),
        name="13",
    ),
    proving(
        14,
        "request",
        f"{CONTEXT} 00000000 0807060504030201 04c0",
        {"phContext": HANDLE, "LookupId": 0x0102030405060708, "usClass": 0xC004},
        ids="MQRR-3.1.4.14-01",
        name="14",
    ),
    proving(
        15,
        "request",
        f"{CONTEXT} 01000000 2a000000",
        {"phContext": HANDLE, "dwAck": 1, "dwRequestId": 42},
        ids="MQRR-3.1.4.15-01",
        name="15",
    ),
    *(
        proving(
            opnum,
            "response",
            FAILED,
            {"status": 0xC00E001B},
            ids=(f"MQRR-3.1.4.{opnum}-01", "MQRR-2.2.1-01"),
            name=f"{opnum} response",
        )
        for opnum in (5, 6, 8, 9, 10, 12, 14, 15)
    ),
]


@BOTH
@pytest.mark.parametrize("opnum, direction, text, values", SAME)
def test_stubs_that_are_alike(
    opnum: int, direction: str, text: str, values: dict[str, Any], syntax: Syntax
) -> None:
    check(opnum, direction, syntax, text, values)


# -- QUEUE_FORMAT --------------------------------------------------------------------------------------

OPEN = f"""
    20000000 01000000 {GUID} # dwAccess, dwShareMode, pClientId
    01000000 06 01 b11d 00000000
"""
OPEN_VALUES = {
    "dwAccess": 0x20,
    "dwShareMode": 1,
    "pClientId": ANOTHER,
    "fNonRoutingServer": 1,
    "Major": 6,
    "Minor": 1,
    "BuildNumber": 7601,
    "fWorkgroup": 0,
}

# m_qft, the scalars of QUEUE_FORMAT without m_qft, m_SuffixAndFlags and m_reserved, what is deferred, the arm
ARMS20 = {
    1: (f"01 000000 {GUID}", "", ANOTHER),
    2: (f"02 000000 {GUID} 15000000", "", {"Lineage": ANOTHER, "Uniquifier": 21}),
    3: ("03 000000 00000200", f"07000000 00000000 07000000 {PATH_BYTES} 0000", PATH),
    4: (f"04 000000 {GUID}", "", ANOTHER),
    5: (f"05 000000 {GUID}", "", ANOTHER),
    6: (
        f"06 000000 {GUID} 00000200",
        "02000000 00000000 02000000 6400 0000",
        {"m_DlGuid": ANOTHER, "m_pwzDomain": "d"},
    ),
    7: ("07 000000 e6010203 50000000", "", {"m_address": 0x030201E6, "m_port": 80}),
    8: ("08 000000 00000200", f"07000000 00000000 07000000 {PATH_BYTES} 0000", PATH),
}
ARMS64 = {
    1: (f"01 00000000000000 {GUID}", "", ANOTHER),
    2: (f"02 00000000000000 {GUID} 15000000 00000000", "", {"Lineage": ANOTHER, "Uniquifier": 21}),
    3: (
        "03 00000000000000 0000020000000000",
        f"0700000000000000 0000000000000000 0700000000000000 {PATH_BYTES} 0000",
        PATH,
    ),
    4: (f"04 00000000000000 {GUID}", "", ANOTHER),
    5: (f"05 00000000000000 {GUID}", "", ANOTHER),
    6: (
        f"06 00000000000000 {GUID} 0000020000000000",
        "0200000000000000 0000000000000000 0200000000000000 6400 0000",
        {"m_DlGuid": ANOTHER, "m_pwzDomain": "d"},
    ),
    7: ("07 00000000000000 e6010203 50000000", "", {"m_address": 0x030201E6, "m_port": 80}),
    8: (
        "08 00000000000000 0000020000000000",
        f"0700000000000000 0000000000000000 0700000000000000 {PATH_BYTES} 0000",
        PATH,
    ),
}


@requirement(
    "MQRR-2.2.3-03", "MQRR-2.2.3-04", "MQRR-2.2.3-06", "MQRR-2.2.3-07", "MQRR-2.2.2-01", "MQRR-3.1.4.2-01",
    "MQRR-2.2-02", "MQMQ-2.2.8-01", "MQMQ-2.2.8-02",
)  # fmt: skip
@pytest.mark.parametrize("opnum", [2, proving(11, ids="MQRR-3.1.4.11-01")])
@pytest.mark.parametrize("kind", ARMS20)
def test_queue_format_in_ndr(kind: int, opnum: int) -> None:
    scalars, deferred, arm = ARMS20[kind]
    text = f"{kind:02x} 81 0000 # 0 \n {scalars} # 4, the arm at 8 \n {deferred} {OPEN}"
    form = {"m_qft": kind, "m_SuffixAndFlags": 0x81, "m_reserved": 0, "arm": arm}
    check(opnum, "request", NDR20, text, {"pQueueFormat": form, **OPEN_VALUES})


@requirement("MQRR-2.2.3-05", "MQRR-2.2.3-06", "MQRR-2.2.2-01", "MQRR-3.1.4.2-01")
@pytest.mark.parametrize("opnum", [2, proving(11, ids="MQRR-3.1.4.11-01")])
@pytest.mark.parametrize("kind", ARMS64)
def test_queue_format_in_ndr64(kind: int, opnum: int) -> None:
    scalars, deferred, arm = ARMS64[kind]
    text = f"{kind:02x} 81 0000 00000000 # 0 \n {scalars} # 8, the arm at 16 \n {deferred} {OPEN}"
    form = {"m_qft": kind, "m_SuffixAndFlags": 0x81, "m_reserved": 0, "arm": arm}
    check(opnum, "request", NDR64, text, {"pQueueFormat": form, **OPEN_VALUES})


@requirement("MQRR-2.2.3-04", "MQRR-2.2.3-05")
@pytest.mark.parametrize(
    "syntax, text",
    [(NDR20, "00 00 0000 00 000000"), (NDR64, "00 00 0000 00000000 00 00000000000000")],
    ids=["NDR", "NDR64"],
)
def test_queue_format_with_an_empty_arm(syntax: Syntax, text: str) -> None:
    form = {"m_qft": 0, "m_SuffixAndFlags": 0, "m_reserved": 0, "arm": None}
    check(2, "request", syntax, f"{text} {OPEN}", {"pQueueFormat": form, **OPEN_VALUES})


@requirement("MQRR-3.1.4.12-01", "MQRR-6-01")
def test_enlisting_in_ndr() -> None:
    text = f"""
        {UNIT.hex()}                                # 0
        05000000 05000000                           # 16 cbPropagationToken, 20 maximum count
        3132333435 000000                           # 24
        03 00 0000 03 000000 00000200               # 32
        07000000 00000000 07000000 {PATH_BYTES}
    """
    form = {"m_qft": 3, "m_SuffixAndFlags": 0, "m_reserved": 0, "arm": PATH}
    values = {
        "pTransactionId": XACTUOW,
        "cbPropagationToken": 5,
        "pbPropagationToken": b"12345",
        "pQueueFormat": form,
    }
    check(12, "request", NDR20, text, values)


@requirement("MQRR-3.1.4.12-02")
def test_enlisting_in_ndr64() -> None:
    text = f"""
        {UNIT.hex()}                       # 0
        05000000 00000000 0500000000000000 # 16, padding at 20, 24
        3132333435 000000                  # 32
        04 00 0000 00000000 {ARMS64[4][0]} # 40
    """
    form = {"m_qft": 4, "m_SuffixAndFlags": 0, "m_reserved": 0, "arm": ANOTHER}
    values = {
        "pTransactionId": XACTUOW,
        "cbPropagationToken": 5,
        "pbPropagationToken": b"12345",
        "pQueueFormat": form,
    }
    check(12, "request", NDR64, text, values)


# -- answers with sections -----------------------------------------------------------------------------

NDR_ANSWER = """
    01020304 00000000 0807060504030200 02000000 # 0 pdwArriveTime, 8 pSequenceId, 16
    00000200 02000000                           # 20 referent id, 24 maximum count
    0100 0000 14000000 05000000 04000200        # 28 SectionBuffer, the enum in 2 bytes
    0200 0000 03000000 03000000 08000200        # 44
    05000000 3132333435 000000                  # 60
    03000000 616263 00                          # 72
    00000000                                    # 80
"""
NDR64_ANSWER = """
    01020304 00000000 0807060504030200 02000000 00000000        # 0, 8, 16
    0000020000000000 0200000000000000                           # 24 referent id, 32 maximum count
    01000000 14000000 05000000 00000000 0400020000000000        # 40 SectionBuffer, the enum in 4 bytes
    02000000 03000000 03000000 00000000 0800020000000000        # 64
    0500000000000000 3132333435 000000                          # 88
    0300000000000000 616263 00                                  # 104
    00000000                                                    # 116
"""
ANSWER_VALUES = {
    "pdwArriveTime": 0x04030201,
    "pSequenceId": 0x0002030405060708,
    "pdwNumberOfSections": 2,
    "ppPacketSections": (
        {"SectionBufferType": 1, "SectionSizeAlloc": 20, "SectionSize": 5, "pSectionBuffer": b"12345"},
        {"SectionBufferType": 2, "SectionSizeAlloc": 3, "SectionSize": 3, "pSectionBuffer": b"abc"},
    ),
    "status": 0,
}
NOTHING_VALUES = {
    "pdwArriveTime": 0,
    "pSequenceId": 0,
    "pdwNumberOfSections": 0,
    "ppPacketSections": None,
    "status": 0xC00E001B,
}


@pytest.mark.parametrize(
    "opnum",
    [
        proving(
            7,
            ids=(
                "MQRR-3.1.4.7-02", "MQRR-3.1.4.7-04", "MQRR-3.1.4.7-27", "MQRR-3.1.4.7-29", "MQRR-3.1.4.7-30"
            ),
        ),
        proving(13, ids=("MQRR-3.1.4.13-03", "MQRR-3.1.4.13-05", "MQRR-3.1.4.13-19")),
    ],
)  # fmt: skip
@requirement("MQRR-2.2.6-01", "MQRR-2.2.6-02", "MQRR-2.2.1-01", "MQRR-6-01")
def test_an_answer_in_ndr(opnum: int) -> None:
    check(opnum, "response", NDR20, NDR_ANSWER, ANSWER_VALUES)
    check(opnum, "response", NDR20, f"{'00' * 24} {FAILED}", NOTHING_VALUES)
    assert build_response(opnum, {"status": 0xC00E001B}, NDR20) == stub(f"{'00' * 24} {FAILED}")


@pytest.mark.parametrize(
    "opnum",
    [
        proving(7, ids=("MQRR-3.1.4.7-03", "MQRR-3.1.4.7-04")),
        proving(13, ids=("MQRR-3.1.4.13-04", "MQRR-3.1.4.13-05")),
    ],
)
@requirement("MQRR-2.2.6-01", "MQRR-2.2.6-03", "MQRR-2.2.1-01")
def test_an_answer_in_ndr64(opnum: int) -> None:
    check(opnum, "response", NDR64, NDR64_ANSWER, ANSWER_VALUES)
    check(opnum, "response", NDR64, f"{'00' * 32} {FAILED}", NOTHING_VALUES)


# -- what is refused -----------------------------------------------------------------------------------


def refusal(opnum: int, direction: str, data: bytes, syntax: Syntax) -> tuple[str, int | None]:
    parse = parse_request if direction == "request" else parse_response
    with pytest.raises(MalformedPacket) as caught:
        parse(opnum, data, syntax)
    return caught.value.path, caught.value.offset


def poked(text: str, offset: int, data: str) -> bytes:
    whole, new = stub(text), bytes.fromhex(data)
    return whole[:offset] + new + whole[offset + len(new) :]


SECTIONS = "R_StartReceive.ppPacketSections"


@pytest.mark.parametrize(
    "offset, data, path, where",
    [
        proving(24, "03000000", SECTIONS, 24, ids="MQRR-3.1.4.7-04", name="more elements than told"),
        proving(16, "ffffffff", SECTIONS, 24, ids="MQRR-3.1.4-01", name="more elements told"),
        proving(20, "00000000", SECTIONS, 20, ids="MQRR-3.1.4-02", name="a null array with a count"),
        proving(
            40,
            "00000000",
            f"{SECTIONS}[0].pSectionBuffer",
            40,
            ids=("MQRR-3.1.4-02", "MQRR-2.2.6-10"),
            name="a null buffer with a size",
        ),
        proving(
            60,
            "06000000",
            f"{SECTIONS}[0].pSectionBuffer",
            60,
            ids="MQRR-2.2.6-09",
            name="more bytes than told",
        ),
        proving(
            52,
            "04000000",
            f"{SECTIONS}[1].pSectionBuffer",
            72,
            ids="MQRR-2.2.6-09",
            name="another size told",
        ),
    ],
)
@requirement("MQRR-3.1.4-01")
def test_counts_that_disagree(offset: int, data: str, path: str, where: int) -> None:
    assert refusal(7, "response", poked(NDR_ANSWER, offset, data), NDR20) == (path, where)


@requirement("MQRR-3.1.4-01")
@BOTH
def test_counts_past_the_end(syntax: Syntax) -> None:
    """Counts that agree with each other and with no stub that there can be."""
    word = "ffffff7f" if syntax is NDR20 else "ffffff7f00000000"
    array = f"{'00' * 16} ffffff7f {'' if syntax is NDR20 else '00000000'} {'01' * syntax.word} {word}"
    data = stub(array)
    assert refusal(7, "response", data, syntax) == (SECTIONS, len(data))
    token = f"{UNIT.hex()} 00000200 {'' if syntax is NDR20 else '00000000'}"
    data = stub(f"{token} {'00000200' if syntax is NDR20 else '0000020000000000'} 31")
    path = "R_QMEnlistRemoteTransaction.pbPropagationToken"
    assert refusal(12, "request", data, syntax) == (path, len(data))


@pytest.mark.parametrize(
    "opnum, offset, values",
    [
        proving(
            9, 20, ("00000000", "03000000", "ffffffff"), ids=("MQRR-3.1.4.9-01", "MQRR-3.1.4.9-04"), name="9"
        ),
        proving(
            15,
            20,
            ("00000000", "03000000", "ffffffff"),
            ids=("MQRR-3.1.4.15-01", "MQRR-3.1.4.15-04"),
            name="15",
        ),
    ],
)
@requirement("MQRR-3.1.4-01")
def test_acknowledges_out_of_range(opnum: int, offset: int, values: tuple[str, ...]) -> None:
    for value in values:
        data = poked(f"{CONTEXT} 01000000 2a000000", offset, value)
        assert refusal(opnum, "request", data, NDR20) == (f"{Opnum(opnum).name}.dwAck", offset)


@requirement("MQRR-3.1.4.12-06", "MQRR-3.1.4-01")
def test_a_propagation_token_out_of_range() -> None:
    path = "R_QMEnlistRemoteTransaction.cbPropagationToken"
    form = SimpleNamespace(m_qft=4, arm=ANOTHER)
    values = {"pTransactionId": XACTUOW, "pbPropagationToken": bytes(0x20000), "pQueueFormat": form}
    longest = build_request(12, values, NDR20)
    assert parse_request(12, longest, NDR20).cbPropagationToken == 0x20000
    longer = build_request(12, {**values, "pbPropagationToken": bytes(0x20001)}, NDR20)
    assert refusal(12, "request", longer, NDR20) == (path, 16)
    other = longest[:20] + (0x1FFFF).to_bytes(4, "little") + longest[24:]
    assert refusal(12, "request", other, NDR20) == ("R_QMEnlistRemoteTransaction.pbPropagationToken", 20)


QUEUE = "R_OpenQueue.pQueueFormat"


@pytest.mark.parametrize(
    "offset, data, path, where",
    [
        proving(4, "01", QUEUE, 4, ids="MQRR-2.2.3-04", name="another discriminant"),
        proving(0, "09 81 0000 09", QUEUE, 4, name="no such arm"),
        proving(12, "08000000", f"{QUEUE}.m_pDirectID", 20, name="counts that disagree"),
        proving(16, "01000000", f"{QUEUE}.m_pDirectID", 16, name="an offset"),
        proving(12, "06000000 00000000 06000000", f"{QUEUE}.m_pDirectID", 34, name="no null"),
        proving(12, "00000000 00000000 00000000", f"{QUEUE}.m_pDirectID", 24, name="nothing"),
        proving(12, "ffffff7f 00000000 ffffff7f", f"{QUEUE}.m_pDirectID", 76, name="past the end"),
    ],
)
@requirement("MQRR-3.1.4-01")
def test_names_that_are_none(offset: int, data: str, path: str, where: int) -> None:
    scalars, deferred, _ = ARMS20[3]
    assert refusal(2, "request", poked(f"03 81 0000 {scalars} {deferred} {OPEN}", offset, data), NDR20) == (
        path,
        where,
    )
