"""Fields on whose byte order sources disagree: each reads its bytes the other way and builds them again."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.ncp.packets import (
    CALLS,
    NcpReply,
    NcpRequest,
    make_reply,
    make_request,
    parse_reply,
    parse_request,
)
from msmqwire.ncp.readings import PLACES, PROPOSED, Readings
from msmqwire.schema.layout import layout
from tests.support.netware.ncp_vectors import CallVector, calls

VECTORS = list(calls())
ALTERNATIVES = [(name, form) for name, forms in Readings.fields().items() for form in forms[1:]]


def read(vector: CallVector, readings: Readings) -> NcpRequest | NcpReply:
    if vector.direction == "request":
        return parse_request(vector.packet, readings)
    return parse_reply(vector.packet, call=CALLS[23, vector.number], readings=readings)


def leaves(packet: NcpRequest | NcpReply) -> dict[str, Any]:
    assert packet.data is not None
    return {field.path.partition(".")[2]: field.value for field in layout(packet.data)}


def differences(vector: CallVector, readings: Readings) -> dict[str, Any]:
    """The fields that are read otherwise, with what they are read as."""
    before = leaves(read(vector, PROPOSED))
    return {path: value for path, value in leaves(read(vector, readings)).items() if value != before[path]}


def vector_of(number: int, direction: str) -> CallVector:
    return next(v for v in VECTORS if (v.number, v.direction) == (number, direction))


@pytest.mark.parametrize(("name", "form"), ALTERNATIVES)
def test_bytes_come_back_by_any_reading(name: str, form: str) -> None:
    readings = Readings.of({name: form})
    for vector in VECTORS:
        packet = read(vector, readings)
        assert packet.to_bytes() == vector.packet
        assert packet.to_bytes() == vector.packet, "building has changed the values"


@pytest.mark.parametrize(
    ("name", "form", "number", "direction", "expected"),
    [
        ("queue_id", "little", 122, "request", {"QueueID": 0x11035D01}),
        ("queue_id", "little", 135, "reply", {"QueueID": 0x11035D01}),
        ("queue_id", "little", 104, "request", {"QueueID": 0x11035D01}),
        ("job_number", "big", 122, "request", {"JobNumber": 0xF4010000}),
        ("job_number", "high-low", 122, "request", {"JobNumber": 0xF401}),
        ("job_number", "high-low", 129, "reply", {
            "JobNumbers[0].JobNumber": 0xF401, "JobNumbers[1].JobNumber": 0x100,
            "JobNumbers[2].JobNumber": 0xE703,
        }),
        ("job_number", "big", 121, "reply", {"Job.jobNumber": 0xF4010000}),
        ("job_number", "big", 123, "request", {"Job.jobNumber": 0xF4010000}),
        ("job_number", "big", 136, "request", {"JobNumber": 0xF4010000}),
        ("job_number", "big", 136, "reply", {"JobNumber": 0xE7030000}),
        ("job_number", "big", 108, "reply", {}),
        ("position_job_number", "little", 110, "request", {"JobNumber": 0xF401}),
        ("position_job_number", "little", 105, "request", {}),
        ("service_type", "little", 124, "request", {"ServiceType": 0x201}),
        ("service_type", "little", 113, "request", {}),
        ("charge", "little", 131, "request", {"Charge": 0x02010000}),
        ("charge", "little", 114, "request", {}),
        ("start_position", "big", 129, "request", {"StartPosition": 0x01000000}),
        ("start_position", "big", 137, "request", {"StartPosition": 0x01000000}),
        ("server_station", "big", 134, "request", {"ServerStation": 0x34010000}),
        ("destination_queue_id", "little", 136, "request", {"DestinationQueueID": 0x22035D01}),
    ],
)  # fmt: skip
def test_a_field_is_read_the_other_way(
    name: str, form: str, number: int, direction: str, expected: dict[str, Any]
) -> None:
    assert differences(vector_of(number, direction), Readings.of({name: form})) == expected


def test_each_reading_changes_exactly_the_fields_of_its_table() -> None:
    for name, form in ALTERNATIVES:
        changed = {
            path.rpartition(".")[2]
            for vector in VECTORS
            for path in differences(vector, Readings.of({name: form}))
        }
        assert changed == {field for _, field in PLACES[name]}, name
    assert set(PLACES) == set(Readings.fields())


def test_the_high_low_reading_reads_16_bits_big_endian() -> None:
    vector = vector_of(122, "request")._replace(data=bytes.fromhex("015D0311 01F40000"))
    assert leaves(read(vector, Readings(job_number="high-low")))["JobNumber"] == 500
    made = make_request(
        CALLS[23, 122], {"QueueID": 0x015D0311, "JobNumber": 500}, sequence=7, connection=0x102, task=5,
        readings=Readings(job_number="high-low"),
    )  # fmt: skip
    assert made.to_bytes() == vector.packet
    other = vector._replace(
        data=bytes.fromhex("015D0311 01F40200")
    )  # behind the number there should be zeros
    assert leaves(read(other, Readings(job_number="high-low")))["JobNumber"] == 0x201F4
    assert read(other, Readings(job_number="high-low")).to_bytes() == other.packet
    assert made.data is not None
    assert made.data.JobNumber == 500


def test_all_readings_at_once_and_a_reply_follows_its_request() -> None:
    forms = [[(name, form) for form in forms] for name, forms in Readings.fields().items()]
    every = [Readings.of(dict(chosen)) for chosen in itertools.product(*forms)]
    assert len(set(every)) == 3 * 2**7
    vector = vector_of(136, "request")
    for readings in every[::7]:
        request = read(vector, readings)
        assert isinstance(request, NcpRequest)
        assert request.to_bytes() == vector.packet
        assert parse_reply(vector_of(136, "reply").packet, request).readings == readings
        reply = make_reply(request, {"JobNumber": 500})
        assert (
            reply.to_bytes()[8:]
            == (
                {"little": b"\xf4\1\0\0", "big": b"\0\0\1\xf4", "high-low": b"\1\xf4\0\0"}[
                    readings.job_number
                ]
            )
        )


def test_a_value_that_does_not_fit_is_refused_by_any_reading() -> None:
    request = make_request(CALLS[23, 122], {}, sequence=1, connection=1)
    assert request.data is not None
    request.data.JobNumber = 1 << 32
    for readings in (PROPOSED, Readings(job_number="big"), Readings(queue_id="little")):
        with pytest.raises(InvalidValue) as refused:
            dataclasses.replace(request, readings=readings).to_bytes()
        assert refused.value.path == "NcpJobOfQueue.JobNumber"


def test_readings_that_are_not_there() -> None:
    assert Readings.of({}) == PROPOSED
    assert PROPOSED.differences == {}
    assert Readings.of({"charge": "little", "job_number": "little"}).differences == {"charge": "little"}
    for wrong, path in (({"chrage": "big"}, "Readings"), ({"charge": "high-low"}, "Readings.charge")):
        with pytest.raises(InvalidValue) as refused:
            Readings.of(wrong)
        assert refused.value.path == path
