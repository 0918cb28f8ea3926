"""The lengths and counts of structures, and the cases that try each at the number that there is room for."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from fuzz.boundaries import boundaries, filled
from fuzz.peer.binary import messages
from fuzz.peer.binary.cases import Draw
from fuzz.peer.binary.directed.lengths import lengths
from fuzz.peer.remote_read import pdus
from fuzz.peer.remote_read.length_checks import calls_with_counts, length_checks
from fuzz.peer.srmp import length_checks as srmp_lengths
from fuzz.peer.steps import Case, Step
from fuzz.peer.target import Ports, Target
from msmqwire.errors import MalformedPacket
from msmqwire.packets import CONNECTION_PARAMETERS, ESTABLISH_CONNECTION, SESSION_ACK, USER_MESSAGE, parse
from msmqwire.remote_read.procedures import PROCEDURES
from msmqwire.rpc.constants import NDR20
from msmqwire.rpc.ndr import SYNTAXES
from msmqwire.rpc.ndr.building import count_offsets
from msmqwire.rpc.ndr.types import ConformantArray, ConformantBytes, Declaration, Union, WideString
from msmqwire.schema import Header, UInt
from msmqwire.schema.nodes import Raw, Ref, Repeat, Text, inner_headers
from msmqwire.schema.references import references

TARGET = Target("127.0.0.1", Ports(1801), transactional_queue="private$\\tx")


def cases() -> list[Case]:
    return list(lengths(Draw(TARGET, random.Random(1))))


def noted(found: list[Case]) -> dict[tuple[str, str], dict[int, str]]:
    """The expectation after each number, by the kind of the packet and the field."""
    told: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    for case in found:
        step = case.steps[-1]
        kind, _, rest = step.note.partition(" with ")
        name, number = rest.split(" ")[:2]
        told[kind, name].setdefault(int(number), step.expects)
    return told


def counting(header: Header) -> set[str]:
    """The names of all fields of a structure, and of those in it, that size something."""
    names = {part.name for part in header.parts if isinstance(part, UInt) and part.size_of}
    for part in header.parts:
        node = getattr(part, "node", part)
        if isinstance(node, Raw | Text | Repeat) or getattr(node, "within", None) is not None:
            sized = isinstance(node, Repeat) or isinstance(getattr(node, "length", None), Ref)
            if sized or getattr(node, "within", None) is not None:
                names |= {path.rpartition(".")[2] for path in references(node)}
        for inner in inner_headers(part):
            names |= counting(inner)
    return names


def test_a_field_has_room_up_to_the_end_of_its_packet() -> None:
    packet = messages.message(TARGET, 1, {"MessagePropertiesHeader": {"MessageBody": b"12345678"}})
    found = {boundary.path: boundary for boundary in boundaries(packet)}
    whole = len(packet.to_bytes())
    body = found["MessagePropertiesHeader.MessageSize"]
    start = packet.to_bytes().index(b"12345678")
    assert (body.field.value, body.available) == (8, whole - start)
    assert found["BaseHeader.PacketSize"].available == whole
    label = found["MessagePropertiesHeader.LabelLength"]
    assert label.available == (whole - (start - 2 * label.field.value)) // 2


def test_a_session_header_is_no_room_for_a_body() -> None:
    more = {"MessagePropertiesHeader": {"MessageBody": b"12345678"}, "SessionHeader": {}}
    packet = messages.message(TARGET, 1, more)
    [size] = [b for b in boundaries(packet) if b.path == "MessagePropertiesHeader.MessageSize"]
    assert size.available == packet.BaseHeader.PacketSize - packet.to_bytes().index(b"12345678")


def test_what_goes_beyond_is_refused_by_our_reader() -> None:
    tried = 0
    for header in {part.name for part in USER_MESSAGE.parts if part.name.endswith("Header")}:
        node = getattr(USER_MESSAGE.part(header), "node", USER_MESSAGE.part(header))
        for fields in filled(node.header):
            packet = messages.message(TARGET, 1, {header: fields})
            for boundary in boundaries(packet):
                for number in boundary.numbers:
                    if boundary.goes_beyond(number):
                        tried += 1
                        with pytest.raises(MalformedPacket):
                            parse(boundary.put(packet.to_bytes(), number))
    assert tried > 100


def test_each_declared_length_and_count_is_tried() -> None:
    tried = noted(cases())
    names = {name.rpartition(".")[2] for kind, name in tried if kind == "UserMessage"}
    assert names == counting(USER_MESSAGE)
    for schema in (ESTABLISH_CONNECTION, CONNECTION_PARAMETERS, SESSION_ACK):
        assert {name for kind, name in tried if kind == schema.name} == counting(schema)
    for kind in ("OrderAck", "FinalAck"):
        assert {"PacketSize", "LabelLength", "MessageSize"} <= {name for of, name in tried if of == kind}


def test_one_more_than_there_is_room_for_ends_the_session() -> None:
    for (kind, name), numbers in noted(cases()).items():
        if name != "AllocationBodySize":  # the bytes that it counts beside the body mean nothing
            assert "closed" in numbers.values(), (kind, name)
    sizes = noted(cases())["UserMessage", "MessageSize"]
    assert sizes[9] == "closed"
    assert sizes[7] == "either"


def test_cases_of_lengths_are_the_same_for_every_seed() -> None:
    first, second = (
        [case.steps[-1].note for case in lengths(Draw(TARGET, random.Random(seed)))] for seed in (1, 2)
    )
    assert first == second


# -- remote read and SRMP ----------------------------------------------------------------------------------


def has_count(declaration: object) -> bool:
    """Whether a type has the length or count of something inside."""
    if isinstance(declaration, WideString | ConformantBytes | ConformantArray):
        return True
    if isinstance(declaration, Union):
        return any(has_count(arm.type) for arm in declaration.arms.values() if arm is not None)
    if isinstance(declaration, Declaration):
        return any(has_count(member.type) for member in declaration.members)
    return has_count(declaration.target) if hasattr(declaration, "target") else False


def test_each_call_with_a_count_is_tried() -> None:
    counted = {opnum for opnum, procedure in PROCEDURES.items() if has_count(procedure.request)}
    assert set(calls_with_counts(TARGET)) == counted


def test_counts_stand_where_they_are_said_to() -> None:
    for opnum, arguments in calls_with_counts(TARGET).items():
        stub = pdus.stub_of(opnum, NDR20, **arguments)
        offsets = count_offsets(PROCEDURES[opnum].request, arguments, SYNTAXES[NDR20])
        values = [int.from_bytes(stub[offset : offset + 4], "little") for offset in offsets]
        name = len(f"TCP:{TARGET.host}\\{TARGET.queue}\0")
        assert values[-3:] == [name, 0, name]


def breaking(found: list[Case]) -> list[Step]:
    return [step for case in found for step in case.steps if step.breaks]


def test_a_pdu_and_a_request_of_one_byte_more_are_incomplete() -> None:
    pdu_steps = breaking(list(length_checks(TARGET, random.Random(1))))
    incomplete = [step.note for step in pdu_steps if step.action == "incomplete"]
    assert [note.split(" ")[0] for note in incomplete] == ["bind", "alter_context", "request"]
    requests = breaking(list(srmp_lengths.checks(TARGET, random.Random(1))))
    lacking = [step for step in requests if step.action == "incomplete" and "Content-Length" in step.note]
    assert len(lacking) == 2
    for step in lacking:
        said = int(step.data.partition(b"Content-Length: ")[2].split(b"\r\n")[0])
        assert said == len(step.data.partition(b"\r\n\r\n")[2]) + 1
