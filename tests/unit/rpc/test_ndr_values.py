"""Values of NDR types: what can't be built, what is left out, and JSON."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from msmqwire import InvalidName, InvalidValue
from msmqwire.constants import QUEUE_FORMAT_TYPE
from msmqwire.remote_read.constants import Acknowledge, Action, SectionType
from msmqwire.remote_read.interface import build_request, build_response, parse_request, parse_response
from msmqwire.remote_read.procedures import PROCEDURES
from msmqwire.rpc.handles import NULL_HANDLE, ContextHandle
from msmqwire.rpc.ndr import NDR20, NDR64, from_json, to_json
from msmqwire.rpc.queue_format import QUEUE_FORMAT, name_of

GUID = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
HANDLE = ContextHandle(1, GUID)
RECEIVE = {
    "phContext": HANDLE,
    "LookupId": 0,
    "hCursor": 0,
    "ulAction": Action.MQ_ACTION_PEEK_CURRENT,
    "ulTimeout": 0,
    "dwRequestId": 1,
    "dwMaxBodySize": 0,
    "dwMaxCompoundMessageSize": 0,
}
OPEN = {
    "pQueueFormat": {"m_qft": QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_DIRECT, "arm": "OS:a\\q"},
    "dwAccess": 1,
    "dwShareMode": 0,
    "pClientId": GUID,
    "fNonRoutingServer": True,
    "Major": 6,
    "Minor": 1,
    "BuildNumber": 7601,
    "fWorkgroup": -1,
}


def test_null_handles() -> None:
    assert NULL_HANDLE.is_null
    assert not HANDLE.is_null
    assert not ContextHandle(0, GUID).is_null
    assert not ContextHandle(1).is_null


def test_values_are_frozen_and_compare_without_wire_details() -> None:
    value = parse_request(2, build_request(2, OPEN, NDR20) + b"xy", NDR20)
    assert value.wire.rest == b"xy"
    assert value == parse_request(2, build_request(2, OPEN, NDR64), NDR64)
    assert (value.pQueueFormat.arm, value.fWorkgroup) == ("OS:a\\q", -1)
    with pytest.raises(FrozenInstanceError):
        value.dwAccess = 2
    assert build_request(2, replace(value, dwAccess=0x20), NDR20)[-2:] == b"xy"


def test_what_the_sender_chose_stays_in_its_syntax() -> None:
    value = parse_request(2, build_request(2, OPEN, NDR20) + b"xy", NDR20)
    assert build_request(2, value, NDR64) == build_request(2, OPEN, NDR64)


def test_objects_of_any_kind_are_built() -> None:
    assert build_request(7, SimpleNamespace(**RECEIVE), NDR20) == build_request(7, RECEIVE, NDR20)
    ending = {"phContext": HANDLE, "dwAck": Acknowledge.RR_ACK, "dwRequestId": 1}
    assert build_request(9, ending, NDR20)[20:24] == b"\2\0\0\0"


def test_counts_are_computed_or_sent_as_they_are_given() -> None:
    """A tester must be able to send a wrong count."""
    section = {"SectionBufferType": SectionType.stFullPacket, "SectionSizeAlloc": 3, "pSectionBuffer": b"abc"}
    stub = build_response(7, {"ppPacketSections": [section]}, NDR20)
    value = parse_response(7, stub, NDR20)
    assert (value.pdwNumberOfSections, value.ppPacketSections[0].SectionSize) == (1, 3)
    wrong = build_response(
        7, {"ppPacketSections": [{**section, "SectionSize": 9}], "pdwNumberOfSections": 7}, NDR20
    )
    assert {at: (stub[at], wrong[at]) for at in range(len(stub)) if stub[at] != wrong[at]} == {
        16: (1, 7),
        36: (3, 9),
    }


@pytest.mark.parametrize(
    "opnum, change, path",
    [
        (7, {"ulAction": 1 << 32}, "ulAction"),
        (7, {"ulAction": -1}, "ulAction"),
        (7, {"ulAction": "1"}, "ulAction"),
        (7, {"ulAction": None}, "ulAction"),
        (7, {"LookupId": 1 << 64}, "LookupId"),
        (7, {"phContext": GUID}, "phContext"),
        (7, {"phContext": (1, GUID)}, "phContext"),
        (7, {"phContext": ContextHandle(-1, GUID)}, "phContext"),
        (7, {"phContext": ContextHandle(1, "x")}, "phContext"),  # type: ignore[arg-type]
        (7, {"unknown": 1}, "unknown"),
        (2, {"fWorkgroup": 1 << 31}, "fWorkgroup"),
        (2, {"fWorkgroup": -(1 << 31) - 1}, "fWorkgroup"),
        (2, {"pClientId": str(GUID)}, "pClientId"),
        (2, {"pQueueFormat": {}}, "pQueueFormat.m_qft"),
        (2, {"pQueueFormat": {"m_qft": 9}}, "pQueueFormat"),
        (2, {"pQueueFormat": {"m_qft": 256}}, "pQueueFormat.m_qft"),
        (2, {"pQueueFormat": {"m_qft": []}}, "pQueueFormat.m_qft"),
        (2, {"pQueueFormat": {"m_qft": 3, "arm": GUID}}, "pQueueFormat.m_pDirectID"),
        (2, {"pQueueFormat": {"m_qft": 3, "arm": "\ud800"}}, "pQueueFormat.m_pDirectID"),
        (2, {"pQueueFormat": {"m_qft": 3, "arm": b"ab"}}, "pQueueFormat.m_pDirectID"),
        (2, {"pQueueFormat": {"m_qft": 1, "arm": "text"}}, "pQueueFormat.m_gPublicID"),
        (2, {"pQueueFormat": {"m_qft": 2, "arm": {"Lineage": GUID}}}, "pQueueFormat.m_oPrivateID.Uniquifier"),
        (2, {"pQueueFormat": {"m_qft": 2, "arm": None}}, "pQueueFormat.m_oPrivateID.Lineage"),
    ],
)
@pytest.mark.parametrize("syntax", [NDR20, NDR64], ids=lambda syntax: syntax.name)
def test_what_can_not_be_built(opnum: int, change: dict[str, Any], path: str, syntax: Any) -> None:
    values = RECEIVE if opnum == 7 else OPEN
    build_request(opnum, values, syntax)
    with pytest.raises(InvalidValue) as caught:
        build_request(opnum, {**values, **change}, syntax)
    assert caught.value.path == f"{PROCEDURES[opnum].name}.{path}"


@pytest.mark.parametrize("name", RECEIVE)
def test_what_is_missing(name: str) -> None:
    with pytest.raises(InvalidValue, match="missing") as caught:
        build_request(7, {key: value for key, value in RECEIVE.items() if key != name}, NDR20)
    assert caught.value.path == f"R_StartReceive.{name}"


@pytest.mark.parametrize(
    "sections, path",
    [
        (5, "ppPacketSections"),
        ([None], "ppPacketSections[0].SectionBufferType"),
        ([{"SectionBufferType": 0, "SectionSizeAlloc": 0, "pSectionBuffer": "x"}], "[0].pSectionBuffer"),
        ([{"SectionBufferType": 0x10000, "SectionSizeAlloc": 0}], "[0].SectionBufferType"),
    ],
)
def test_sections_that_can_not_be_built(sections: Any, path: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        build_response(7, {"ppPacketSections": sections}, NDR20)
    assert caught.value.path.endswith(path)


def test_a_section_type_that_only_fits_into_ndr64() -> None:
    section = {"SectionBufferType": 0x10000, "SectionSizeAlloc": 0}
    stub = build_response(7, {"ppPacketSections": [section]}, NDR64)
    assert parse_response(7, stub, NDR64).ppPacketSections[0].SectionBufferType == 0x10000


# -- text ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [b"\x00\xd8\0\0", b"a\0\0\0b\0\0\0", b"\0\0\0\0"])
@pytest.mark.parametrize("big_endian", [False, True])
def test_text_that_is_none_is_kept_as_bytes(text: bytes, big_endian: bool) -> None:
    syntax = NDR20.ordered(big_endian=big_endian)
    values = {**OPEN, "pQueueFormat": {"m_qft": 3, "arm": text}}
    stub = build_request(2, values, syntax)
    value = parse_request(2, stub, syntax)
    assert value.pQueueFormat.arm == text
    as_json = to_json(PROCEDURES[2].request, value)
    assert as_json["pQueueFormat"]["m_pDirectID"] == {"utf16le": text.hex()}
    assert build_request(2, from_json(PROCEDURES[2].request, as_json), syntax) == stub
    with pytest.raises(InvalidName):
        name_of(value.pQueueFormat)


@pytest.mark.requirement("MQRR-2.2-02")
def test_big_endian_stubs() -> None:
    stub = build_request(2, OPEN, NDR20.ordered(big_endian=True))
    assert stub[12:24] == bytes.fromhex("00000007 00000000 00000007")
    assert stub[24:28] == b"\0O\0S"
    assert stub[48:64] == GUID.bytes
    assert parse_request(2, stub, NDR20.ordered(big_endian=True)) == parse_request(
        2, build_request(2, OPEN, NDR20), NDR20
    )


# -- JSON ----------------------------------------------------------------------------------------------


def test_json_of_a_call() -> None:
    value = parse_request(7, build_request(7, RECEIVE, NDR20), NDR20)
    assert to_json(PROCEDURES[7].request, value) == {
        **RECEIVE,
        "phContext": {"attributes": 1, "uuid": str(GUID)},
        "ulAction": 0x80000000,
    }
    value = parse_request(2, build_request(2, OPEN, NDR20), NDR20)
    assert to_json(PROCEDURES[2].request, value)["pQueueFormat"] == {
        "m_qft": 3,
        "m_SuffixAndFlags": 0,
        "m_reserved": 0,
        "m_pDirectID": "OS:a\\q",
    }


@pytest.mark.parametrize(
    "data, path",
    [
        ([], "R_OpenQueue"),
        ({"pQueueFormat": 1}, "R_OpenQueue.pQueueFormat"),
        ({"pQueueFormat": {"m_qft": 3, "m_gPublicID": str(GUID)}}, "R_OpenQueue.pQueueFormat.m_gPublicID"),
        ({"pQueueFormat": {"m_qft": [], "arm": 1}}, "R_OpenQueue.pQueueFormat.arm"),
        ({"pQueueFormat": {"m_qft": 1, "m_gPublicID": "1"}}, "R_OpenQueue.pQueueFormat.m_gPublicID"),
        ({"pClientId": 5}, "R_OpenQueue.pClientId"),
        ({"wire": None}, "R_OpenQueue.wire"),
    ],
)
def test_json_that_is_no_call(data: Any, path: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        from_json(PROCEDURES[2].request, data)
    assert caught.value.path == path


@pytest.mark.parametrize(
    "opnum, data",
    [
        (3, {"pphContext": {"uuid": "x"}}),
        (3, {"pphContext": {"attributes": "x", "uuid": str(GUID)}}),
        (3, {"pphContext": 5}),
        (12, {"pTransactionId": {"rgb": "0"}}),
        (12, {"pTransactionId": {"rgb": 5}}),
    ],
)
def test_json_of_other_types_is_refused_in_the_end(opnum: int, data: Any) -> None:
    with pytest.raises(InvalidValue):
        build_request(opnum, from_json(PROCEDURES[opnum].request, data), NDR20)


def test_the_type_of_a_queue_format_by_itself() -> None:
    form = QUEUE_FORMAT.value(m_qft=0)
    assert (form.m_SuffixAndFlags, form.m_reserved, form.arm) == (0, 0, None)
    assert name_of(form) is None
