"""Reports of machines and queues, from the values of their properties: [MS-MQMR] 2.2.3."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from msmqwire.constants import (
    CONNECTION_STATUS,
    ManagementMachineProperty,
    ManagementQueueProperty,
    VarEnum,
)
from msmqwire.management.interface import build_response, parse_response
from msmqwire.management.reports import (
    ConnectionEvent,
    Eod,
    MachineReport,
    QueueReport,
    SequencePosition,
    Source,
    machine_report,
    queue_report,
    time_of,
    unasked,
)
from msmqwire.management.variants import ARMS, NULL, variant
from msmqwire.rpc.ndr import NDR20, Syntax
from tests.support.codec_checks import requirement

TEXT, UI4, I4, BLOB = VarEnum.VT_LPWSTR, VarEnum.VT_UI4, VarEnum.VT_I4, VarEnum.VT_BLOB
TEXTS = VarEnum.VT_LPWSTR | VarEnum.VT_VECTOR
VARIANTS = VarEnum.VT_VARIANT | VarEnum.VT_VECTOR
SENDER = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
FIRST_SECOND = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
POSITION = SequencePosition(-5, 7, 6)
POSITION_BYTES = bytes.fromhex("fbffffffffffffff 07000000 06000000")

HISTORY = variant(
    VARIANTS,
    (
        variant(0x1013, (2, 0x80000004)),
        variant(0x1003, (1_700_000_000, 0)),
        variant(0x1003, (0, -0x3FF1FFFF)),
        variant(VARIANTS, (variant(TEXTS, ("IP=10.0.0.5", "\\\\HOST")), NULL)),
    ),
)
SOURCES = variant(
    VARIANTS,
    (
        variant(TEXTS, ("DIRECT=OS:a\\q",)),
        variant(0x1048, (SENDER,)),
        variant(0x1015, (9,)),
        variant(0x1013, (8,)),
        variant(0x1003, (-1,)),
        variant(0x1013, (3,)),
    ),
)

MACHINE: list[tuple[str, int, str, int, Any, str, Any]] = [
    ("MQMR-2.2.3.1-01", 1, "ACTIVEQUEUES", TEXTS, ("DIRECT=OS:a\\q",), "active_queues", ("DIRECT=OS:a\\q",)),
    ("MQMR-2.2.3.1-02", 2, "PRIVATEQ", TEXTS, ("a\\private$\\q",), "private_queues", ("a\\private$\\q",)),
    ("MQMR-2.2.3.1-03", 3, "DSSERVER", TEXT, "\\\\dc", "directory_server", "\\\\dc"),
    ("MQMR-2.2.3.1-04", 4, "CONNECTED", TEXT, "CONNECTED", "connected", True),
    ("MQMR-2.2.3.1-04", 4, "CONNECTED", TEXT, "Disconnected", "connected", False),
    ("MQMR-2.2.3.1-05", 5, "TYPE", TEXT, "", "type", ""),
    ("MQMR-2.2.3.1-06", 6, "BYTES_IN_ALL_QUEUES", VarEnum.VT_I8, 1 << 40, "bytes_all_queues", 1 << 40),
]
QUEUE: list[tuple[str, int, str, int, Any, str, Any]] = [
    ("MQMR-2.2.3.2-01", 1, "PATHNAME", TEXT, "a\\q", "path", "a\\q"),
    ("MQMR-2.2.3.2-02", 2, "FORMATNAME", TEXT, "DIRECT=OS:a\\q", "format_name", "DIRECT=OS:a\\q"),
    ("MQMR-2.2.3.2-03", 3, "TYPE", TEXT, "Multicast", "type", "MULTICAST"),
    ("MQMR-2.2.3.2-04", 4, "LOCATION", TEXT, "REMOTE", "location", "REMOTE"),
    ("MQMR-2.2.3.2-05", 5, "XACT", TEXT, "YES", "transactional", True),
    ("MQMR-2.2.3.2-05", 5, "XACT", TEXT, "NO", "transactional", False),
    ("MQMR-2.2.3.2-05", 5, "XACT", TEXT, "UNKNOWN", "transactional", None),
    ("MQMR-2.2.3.2-06", 6, "FOREIGN", TEXT, "Yes", "foreign", True),
    ("MQMR-2.2.3.2-06", 6, "FOREIGN", TEXT, "Unknown", "foreign", None),
    ("MQMR-2.2.3.2-07", 7, "MESSAGE_COUNT", UI4, 5, "messages", 5),
    ("MQMR-2.2.3.2-08", 8, "BYTES_IN_QUEUE", UI4, 0xFFFFFFFF, "bytes", 0xFFFFFFFF),
    ("MQMR-2.2.3.2-09", 9, "JOURNAL_MESSAGE_COUNT", UI4, 0, "journal_messages", 0),
    ("MQMR-2.2.3.2-10", 10, "BYTES_IN_JOURNAL", UI4, 6, "journal_bytes", 6),
    *(
        ("MQMR-2.2.3.2-11", 11, "STATE", TEXT, state, "state", state)
        for state in (
            "LOCAL CONNECTION", "INACTIVE", "WAITING", "NEED VALIDATION", "ONHOLD", "CONNECTED",
            "DISCONNECTING", "DISCONNECTED", "LOCKED",
        )
    ),
    ("MQMR-2.2.3.2-12", 12, "NEXTHOPS", TEXTS, ("IP=10.0.0.5",), "next_hops", ("IP=10.0.0.5",)),
    ("MQMR-2.2.3.2-13", 13, "EOD_LAST_ACK", BLOB, POSITION_BYTES, "last_ack", POSITION),
    ("MQMR-2.2.3.2-14", 14, "EOD_LAST_ACK_TIME", I4, 1, "last_ack_time", FIRST_SECOND),
    ("MQMR-2.2.3.2-15", 15, "EOD_LAST_ACK_COUNT", UI4, 2, "last_ack_count", 2),
    ("MQMR-2.2.3.2-16", 16, "EOD_FIRST_NON_ACK", BLOB, POSITION_BYTES, "first_non_ack", POSITION),
    ("MQMR-2.2.3.2-17", 17, "EOD_LAST_NON_ACK", BLOB, POSITION_BYTES, "last_non_ack", POSITION),
    ("MQMR-2.2.3.2-18", 18, "EOD_NEXT_SEQ", BLOB, POSITION_BYTES, "next_sequence", POSITION),
    ("MQMR-2.2.3.2-19", 19, "EOD_NO_READ_COUNT", UI4, 3, "no_read_count", 3),
    ("MQMR-2.2.3.2-20", 20, "EOD_NO_ACK_COUNT", UI4, 4, "no_ack_count", 4),
    ("MQMR-2.2.3.2-21", 21, "EOD_RESEND_TIME", I4, 0, "resend_time", None),
    ("MQMR-2.2.3.2-22", 22, "EOD_RESEND_INTERVAL", UI4, 30, "resend_interval", 30),
    ("MQMR-2.2.3.2-23", 23, "EOD_RESEND_COUNT", UI4, 1, "resend_count", 1),
    ("MQMR-2.2.3.2-28", 27, "SUBQUEUE_NAMES", TEXTS, ("s", "t"), "subqueues", ("s", "t")),
]  # fmt: skip
SYNTAXES = pytest.mark.parametrize("big_endian", [False, True], ids=["little-endian", "big-endian"])


def over_the_wire(value: Any, syntax: Syntax) -> Any:
    return parse_response(0, build_response(0, {"apVar": (value,)}, syntax), syntax).apVar[0]


def case(row: tuple[Any, ...]) -> Any:
    return pytest.param(*row[1:], marks=pytest.mark.requirement(row[0]), id=f"{row[2]}-{row[4]!r:.30}")


@SYNTAXES
@pytest.mark.parametrize(
    ("number", "name", "vt", "value", "attribute", "expected"), [case(row) for row in MACHINE]
)
def test_properties_of_a_machine(
    number: int, name: str, vt: int, value: Any, attribute: str, expected: Any, big_endian: bool
) -> None:
    key = ManagementMachineProperty[f"PROPID_MGMT_MSMQ_{name}"]
    assert (int(key), key.vt) == (number, vt)
    got = machine_report(
        "h", {number: over_the_wire(variant(vt, value), NDR20.ordered(big_endian=big_endian))}
    )
    assert got == MachineReport("h", **{attribute: expected})


@SYNTAXES
@pytest.mark.requirement("MQMR-2.2.3-10")
@pytest.mark.parametrize(
    ("number", "name", "vt", "value", "attribute", "expected"), [case(row) for row in QUEUE]
)
def test_properties_of_a_queue(
    number: int, name: str, vt: int, value: Any, attribute: str, expected: Any, big_endian: bool
) -> None:
    """The blobs of sequences are little-endian in a big-endian PDU, too."""
    key = ManagementQueueProperty[f"PROPID_MGMT_QUEUE_{name}"]
    assert (int(key), key.vt) == (number, vt)
    got = queue_report("q", {number: over_the_wire(variant(vt, value), NDR20.ordered(big_endian=big_endian))})
    attributes = {attribute: expected}
    if name.startswith("EOD_"):
        attributes = {"eod": Eod(**attributes)}
    assert got == QueueReport("q", **attributes)


@requirement("MQMR-2.2.3.2-27")
def test_number_of_subqueues_is_that_of_their_names() -> None:
    key = ManagementQueueProperty.PROPID_MGMT_QUEUE_SUBQUEUE_COUNT
    assert (int(key), key.vt) == (26, UI4)
    assert queue_report("q", {26: variant(UI4, 1), 27: variant(TEXTS, ("s",))}).subqueues == ("s",)


@requirement("MQMR-3.1.4.1-63")
def test_subqueue_names_as_variants() -> None:
    names = variant(VARIANTS, (variant(TEXT, "s"), variant(TEXT, "t")))
    assert queue_report("q", {27: names}) == QueueReport("q", subqueues=("s", "t"))


@requirement("MQMR-2.2.3.2-24", "MQMR-3.1.4.1-59")
def test_sources_of_transactional_messages() -> None:
    last = datetime(2106, 2, 7, 6, 28, 15, tzinfo=UTC)
    expected = Source("DIRECT=OS:a\\q", SENDER, 9, 8, last, 3)
    assert queue_report("q", {24: over_the_wire(SOURCES, NDR20)}) == QueueReport("q", sources=(expected,))


@requirement("MQMR-2.2.3.2-25", "MQMR-3.1.4.1-60", "MQMR-3.1.4.1-61")
def test_connection_history() -> None:
    got = queue_report("q", {25: over_the_wire(HISTORY, NDR20)})
    established = ConnectionEvent(
        datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), 2, 0, ("IP=10.0.0.5", "\\\\HOST")
    )
    failed = ConnectionEvent(None, 0x80000004, 0xC00E0001)
    assert got == QueueReport("q", connection_history=(established, failed))
    assert (established.failed, failed.failed) == (False, True)
    assert [one.to_json() for one in got.connection_history] == [
        {
            "time": "2023-11-14T22:13:20Z",
            "status": "established",
            "error": None,
            "addresses": ["IP=10.0.0.5", "\\\\HOST"],
        },
        {"time": None, "status": "the socket could not connect", "error": "0xC00E0001", "addresses": []},
    ]


@requirement("MQMR-3.1.4.1-61")
def test_connection_history_with_a_flat_vector_of_addresses() -> None:
    flat = variant(
        VARIANTS,
        (
            variant(0x1013, (2,)),
            variant(0x1003, (1,)),
            variant(0x1003, (0,)),
            variant(TEXTS, ("IP=10.0.0.5",)),
        ),
    )
    assert queue_report("q", {25: flat}).connection_history[0].addresses == ("IP=10.0.0.5",)


@requirement("MQMR-2.2.3.2-26")
def test_status_values_of_the_connection_history() -> None:
    values = [0, 1, 2, *range(0x80000000, 0x8000000E)]
    assert list(CONNECTION_STATUS) == values
    assert [ConnectionEvent(None, value, 0).failed for value in values] == [False] * 3 + [True] * 14
    words = [ConnectionEvent(None, value, 0).to_json()["status"] for value in values]
    assert words == list(CONNECTION_STATUS.values())
    assert ConnectionEvent(None, 0x8000000E, 0).to_json()["status"] == "0x8000000E"


# -- values that are none ------------------------------------------------------------------------------


@requirement("MQMR-3.1.4.1-47")
@pytest.mark.parametrize("vt", [VarEnum.VT_NULL, VarEnum.VT_EMPTY])
def test_values_that_are_not_there(vt: int) -> None:
    nothing = {number: variant(vt) for number in range(1, 28)}
    assert queue_report("q", nothing) == QueueReport("q")
    assert machine_report("h", {number: variant(vt) for number in range(1, 7)}) == MachineReport("h")


SAMPLES = {
    vt: variant(vt, 1 if vt in (2, 3, 0xB, *range(0x10, 0x16)) else "" if vt == TEXT else ())
    for vt in ARMS
    if vt not in (0, 1, 0x48, 0x41)
} | {0x41: variant(0x41, b""), 0x48: variant(0x48, SENDER)}


@requirement("MQMR-3.2.4-06")
@pytest.mark.parametrize(
    "key", [*ManagementMachineProperty, *ManagementQueueProperty], ids=lambda key: key.name
)
def test_values_of_other_types_are_none(key: ManagementMachineProperty | ManagementQueueProperty) -> None:
    """They are reported as such, never converted."""
    is_machine = isinstance(key, ManagementMachineProperty)
    report: Callable[..., Any] = machine_report if is_machine else queue_report
    expected = MachineReport("x") if is_machine else QueueReport("x")
    accepted = {key.vt} | ({VARIANTS} if key.name.endswith("SUBQUEUE_NAMES") else set())
    for vt, value in SAMPLES.items():
        if vt in accepted:
            continue
        got = report("x", {int(key): value})
        ((name, why),) = got.unavailable.items()
        assert why == f"a value of type {vt:#06x}, not {key.vt:#06x}"
        assert {**got.to_json(), "unavailable": {}} == expected.to_json()
        assert name.partition(".")[0] in (*got.to_json(), "subqueue_count")


@requirement("MQMR-3.2.4-06", "MQMR-2.2.3-08")
@pytest.mark.parametrize(
    ("number", "value", "why"),
    [
        (1, variant(TEXT, None), "a null pointer"),
        (1, variant(TEXT, b"\0\xd8\0\0"), "a text that is not well-formed UTF-16"),
        (12, variant(TEXTS, ("a", None)), "a null pointer"),
        (5, variant(TEXT, "PERHAPS"), "'PERHAPS' is none of YES, NO, UNKNOWN"),
        (13, variant(BLOB, bytes(15)), "15 bytes, not 16"),
        (13, variant(BLOB, b""), "0 bytes, not 16"),
        (24, variant(VARIANTS, ()), "0 vectors, not 6"),
        (25, variant(VARIANTS, (NULL,) * 4), "vector 0 is of type 0x0001, not 0x1013"),
        (25, variant(VARIANTS, SOURCES.value.pElems), "6 vectors, not 4"),
        (
            25,
            variant(VARIANTS, (variant(0x1013, (1,)), *HISTORY.value.pElems[1:])),
            "vectors of different lengths: 1, 2, 2, 2",
        ),
    ],
)
def test_values_that_are_wrong(number: int, value: Any, why: str) -> None:
    got = queue_report("q", {number: over_the_wire(value, NDR20)})
    assert list(got.unavailable.values()) == [why]
    assert {**got.to_json(), "unavailable": {}} == QueueReport("q").to_json()


def test_seconds_are_read_modulo_two_to_the_32() -> None:
    """0 means never; negative numbers are times from 2038 on."""
    assert time_of(0) is None
    assert time_of(1) == FIRST_SECOND
    assert time_of(-(1 << 31)) == datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC)
    assert time_of(-1) == datetime(2106, 2, 7, 6, 28, 15, tzinfo=UTC)


def test_a_queue_that_can_not_be_asked() -> None:
    report = unasked("a\\q", "access denied")
    assert report.name == "a\\q"
    shown = report.to_json()
    assert (shown["path"], shown["reason"], shown["messages"]) == ("a\\q", "access denied", None)


def test_names_of_queues() -> None:
    names = {"path": "a\\q", "format_name": "DIRECT=OS:a\\q"}
    assert QueueReport("x", **names, location="LOCAL").name == "a\\q"
    assert QueueReport("x", **names, location="REMOTE").name == "DIRECT=OS:a\\q"
    assert QueueReport("x", path="a\\q", location="REMOTE").name == "a\\q"
    assert QueueReport("x", format_name="DIRECT=OS:a\\q").name == "DIRECT=OS:a\\q"
    assert QueueReport("x").name == "x"


@requirement("MQMR-2.2.3-10")
def test_sequence_positions_as_bytes() -> None:
    assert POSITION.to_bytes() == POSITION_BYTES
    assert SequencePosition.from_bytes(POSITION_BYTES) == POSITION


def test_json_has_the_members_that_programs_rely_on() -> None:
    values = {number: variant(vt, value) for _, number, _, vt, value, _, _ in QUEUE}
    shown = queue_report("q", {**values, 24: SOURCES, 25: HISTORY}).to_json()
    assert json.loads(json.dumps(shown)) == shown
    assert {
        "path", "format_name", "messages", "bytes", "journal_messages", "journal_bytes", "state", "foreign",
        "transactional", "reason", "next_hops", "connection_history", "eod",
    } <= set(shown)  # fmt: skip
    assert set(shown["connection_history"][0]) == {"time", "status", "error", "addresses"}
    assert shown["eod"]["last_ack"] == {"sequence": -5, "number": 7, "previous": 6}
    assert shown["sources"][0]["sender"] == str(SENDER)
    machine = machine_report("h", {n: variant(vt, value) for _, n, _, vt, value, _, _ in MACHINE}).to_json()
    assert json.loads(json.dumps(machine)) == machine
    assert {"host", "active_queues", "private_queues", "connected", "type", "bytes_all_queues"} <= set(
        machine
    )
