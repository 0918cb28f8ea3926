"""Stubs of remote read against the interface as scapy-rpc has compiled it from the IDL.

Each reads what the other builds, value by value, in both transfer syntaxes. scapy-rpc 0.0.8 errs three
times, and a test for each holds that it still does: it gives the two void procedures a status, takes the
sections of an answer for an array of pointers, so that only one section can be compared, and puts an arm
without a pointer at 4 bytes less than the alignment of the union in NDR64.
"""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("scapy")
pytest.importorskip("msrpcs", reason="scapy-rpc is not installed")

from msrpcs import ms_mqrr
from scapy.layers.dcerpc import (
    NDRConformantArray,
    NDRConformantString,
    NDRContextHandle,
    NDRPacket,
    NDRPointer,
    NDRUnion,
    NDRVaryingArray,
)
from scapy.packet import Packet

from msmqwire.remote_read.procedures import PROCEDURES
from msmqwire.rpc.handles import ContextHandle
from msmqwire.rpc.ndr import NDR20, NDR64, Stub, Syntax, build_stub, parse_stub
from tests.support.rpc.ndr_strategies import values

VOID = (2, 11)
NOT_IN_PLACE = (1, 2, 4, 5, 7)  # arms of QUEUE_FORMAT in NDR64
BOTH = pytest.mark.parametrize("syntax", [NDR20, NDR64], ids=lambda syntax: syntax.name)


def scapy_class(opnum: int, direction: str) -> Any:
    operation = ms_mqrr.REMOTEREAD_OPNUMS[opnum]
    return operation.request if direction == "request" else operation.response


def plain(value: Any) -> Any:
    """A value of either side as numbers, bytes and mappings; None for empty ones too, scapy has no null."""
    match value:
        case NDRPointer() | NDRConformantArray() | NDRConformantString() | NDRVaryingArray() | NDRUnion():
            return plain(value.value)
        case NDRContextHandle():
            return {"attributes": value.attributes, "uuid": plain(value.uuid)}
        case ms_mqrr.GUID():
            data = b"".join(
                number.to_bytes(size, "little")
                for number, size in ((value.Data1, 4), (value.Data2, 2), (value.Data3, 2))
            )
            return data + value.Data4
        case Packet():
            return {field.name: plain(value.getfieldval(field.name)) for field in value.fields_desc}
        case ContextHandle():
            return {"attributes": value.attributes, "uuid": value.uuid.bytes_le}
        case UUID():
            return value.bytes_le
        case list() | tuple():
            return [plain(item) for item in value] or None
        case _ if hasattr(value, "__dataclass_fields__"):
            names = (name for name in value.__dataclass_fields__ if name != "wire")
            return {SCAPY_NAMES.get(name, name): plain(getattr(value, name)) for name in names}
        case bytes():
            return value or None
        case int():
            return int(value)
        case str():
            return [value.encode() or None]  # a list in a varying array, in UTF-8
    return value


SCAPY_NAMES = {"arm": "value"}


def read_by_scapy(cls: Any, data: bytes, syntax: Syntax) -> Any:
    return cls(data, ndr64=syntax is NDR64)


def built_by_scapy(packet: NDRPacket) -> bytes:
    """Its bytes, built anew."""
    anew = packet.copy()
    anew.clear_cache()
    return bytes(anew)


def compare(stub: Stub, cls: Any, value: Any, syntax: Syntax) -> None:
    data = build_stub(stub, value, syntax)
    packet = read_by_scapy(cls, data, syntax)
    assert plain(packet) == plain(value)
    assert built_by_scapy(packet) == data


REQUESTS = [opnum for opnum in PROCEDURES if opnum != 1]


def can_be_compared(value: Any, syntax: Syntax) -> bool:
    form = getattr(value, "pQueueFormat", None)
    if form is not None and syntax is NDR64 and form.m_qft in NOT_IN_PLACE:
        return False
    sections = getattr(value, "ppPacketSections", None)
    return sections is None or len(sections) == 1


@BOTH
@pytest.mark.parametrize("opnum", REQUESTS)
@settings(max_examples=15)
@given(data=st.data())
def test_requests(opnum: int, syntax: Syntax, data: st.DataObject) -> None:
    stub = PROCEDURES[opnum].request
    value = data.draw(values(stub).filter(lambda value: can_be_compared(value, syntax)))
    compare(stub, scapy_class(opnum, "request"), value, syntax)


@BOTH
@pytest.mark.parametrize("opnum", [opnum for opnum in REQUESTS if opnum not in VOID])
@settings(max_examples=15)
@given(data=st.data())
def test_responses(opnum: int, syntax: Syntax, data: st.DataObject) -> None:
    stub = PROCEDURES[opnum].response
    value = data.draw(values(stub).filter(lambda value: can_be_compared(value, syntax)))
    compare(stub, scapy_class(opnum, "response"), value, syntax)


# -- where scapy-rpc 0.0.8 errs --------------------------------------------------------------------------

GUID = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
ARMS = {1: GUID, 2: {"Lineage": GUID, "Uniquifier": 7}, 4: GUID, 5: GUID, 7: {"m_address": 1, "m_port": 2}}


@BOTH
@pytest.mark.parametrize("opnum", VOID)
def test_it_gives_void_procedures_a_status(opnum: int, syntax: Syntax) -> None:
    value = {"pphContext": ContextHandle(1, GUID)}
    data = build_stub(PROCEDURES[opnum].response, value, syntax)
    packet = read_by_scapy(scapy_class(opnum, "response"), data + bytes(4), syntax)
    assert plain(packet)["pphContext"] == plain(value["pphContext"])
    assert built_by_scapy(packet) == data + bytes(4)


@BOTH
def test_it_takes_sections_for_pointers(syntax: Syntax) -> None:
    sections = [
        {"SectionBufferType": 1, "SectionSizeAlloc": 9, "pSectionBuffer": b"12345"},
        {"SectionBufferType": 2, "SectionSizeAlloc": 3, "pSectionBuffer": b"abc"},
    ]
    data = build_stub(PROCEDURES[7].response, {"ppPacketSections": sections}, syntax)
    value = parse_stub(PROCEDURES[7].response, data, syntax)
    assert [section.pSectionBuffer for section in value.ppPacketSections] == [b"12345", b"abc"]
    with pytest.raises(struct.error):
        read_by_scapy(scapy_class(7, "response"), data, syntax)


@pytest.mark.parametrize("kind", NOT_IN_PLACE)
def test_it_puts_arms_at_another_place_in_ndr64(kind: int) -> None:
    form = {"m_qft": kind, "arm": ARMS[kind]}
    values = {"pTransactionId": {"rgb": bytes(16)}, "pbPropagationToken": b"", "pQueueFormat": form}
    data = build_stub(PROCEDURES[12].request, values, NDR64)
    value = parse_stub(PROCEDURES[12].request, data, NDR64)
    packet = read_by_scapy(scapy_class(12, "request"), data, NDR64)
    assert plain(packet)["pQueueFormat"] != plain(value.pQueueFormat)
    in_ndr = build_stub(PROCEDURES[12].request, values, NDR20)
    packet = read_by_scapy(scapy_class(12, "request"), in_ndr, NDR20)
    assert plain(packet)["pQueueFormat"] == plain(value.pQueueFormat)
