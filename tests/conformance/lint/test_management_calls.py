"""What lint finds in calls and answers of queue management."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from msmqwire.analysis.dissection import Item, dissect
from msmqwire.analysis.lint import checks, lint
from msmqwire.analysis.lint.registry import RPC
from msmqwire.constants import ManagementMachineProperty, ManagementQueueProperty, VarEnum
from msmqwire.management.constants import Opnum
from msmqwire.management.interface import INTERFACE, build_request, build_response
from msmqwire.management.objects import MGMT_OBJECT, machine_object, queue_object
from msmqwire.management.variants import NULL, variant
from msmqwire.rpc.ndr import NDR20, NDR64
from msmqwire.rpc.queue_format import QUEUE_FORMAT
from tests.support import captures as c
from tests.support.capture import management_captures as m

GET, ACT = Opnum.R_QMMgmtGetInfo, Opnum.R_QMMgmtAction
VECTOR, LPWSTR, UI4 = VarEnum.VT_VECTOR, VarEnum.VT_LPWSTR, VarEnum.VT_UI4
SESSION = MGMT_OBJECT.value(type=3, arm=0)
NO_QUEUE = MGMT_OBJECT.value(type=2, arm=None)


def items(talk: m.ManagementTalk) -> list[Item]:
    return list(dissect(io.BytesIO(c.pcap_bytes(talk.frames))))


def found(item: Item) -> list[tuple[str, str]]:
    """Id and path of each finding."""
    assert all(0 <= finding.offset < max(1, len(item.raw)) for finding in item.findings)
    return [(finding.id, finding.path) for finding in item.findings]


def asked(arguments: dict[str, Any], opnum: Opnum = GET) -> Item:
    talk = m.ManagementTalk()
    talk.ask(opnum, arguments)
    return items(talk)[-1]


def answered(arguments: dict[str, Any], results: dict[str, Any], opnum: Opnum = GET) -> Item:
    talk = m.ManagementTalk()
    talk.call(opnum, arguments, results)
    return items(talk)[-1]


def malformed(opnum: Opnum, stub: bytes, *, answer: bytes | None = None) -> Item:
    """The item of a stub, or of the answer to it."""
    talk = m.ManagementTalk()
    call = talk.client.call(opnum, stub)
    talk.exchange()
    if answer is not None:
        talk.server.answer(call, answer)
        talk.exchange()
    return items(talk)[-1]


def named(kind: int, arm: Any, suffix: int = 0, reserved: int = 0) -> Any:
    form = QUEUE_FORMAT.value(m_qft=kind, m_SuffixAndFlags=suffix, m_reserved=reserved, arm=arm)
    return MGMT_OBJECT.value(type=2, arm=form)


def test_legal_calls_have_no_findings() -> None:
    assert not any(item.findings for item in items(m.session()))


# -- the bind ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("MQMR-2.2-01", "MQMR-2.2-02")
def test_ndr64_is_found_in_the_bind_and_its_answer() -> None:
    offered, accepted, *calls = items(m.session(NDR64))
    assert found(offered) == [("MQMR-2.2-01", "p_context_elem")]
    assert found(accepted) == [("MQMR-2.2-01", "p_results")]
    assert not any(item.findings for item in calls)


@pytest.mark.requirement("MQMR-2.2-02")
def test_both_syntaxes_may_be_offered_by_others() -> None:
    talk = c.TcpConversation((c.CLIENT, 50_001), (c.SERVER, 49_321)).handshake()
    talk.send(m.offer(0, INTERFACE, NDR20, NDR64), by_client=True)
    talk.send(m.accept(NDR20), by_client=False)
    bind, answer = dissect(io.BytesIO(c.pcap_bytes(talk.frames)))
    assert found(bind) == [("MQMR-2.2-01", "p_context_elem")]
    assert found(answer) == []


# -- calls ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("MQMR-2.2.1.2-08", "MQMR-2.2.1.5-03", "MQMR-2.2.1.5-04")
@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (NO_QUEUE, ["MQMR-2.2.1.2-08"]),
        (queue_object(None), ["MQMR-2.2.1.2-08"]),
        (named(4, UUID(int=1)), ["MQMR-2.2.1.5-03"]),  # a machine without a suffix
        (named(1, UUID(int=1), 0x83), ["MQMR-2.2.1.5-03"]),  # DEADXACT with PUBLIC
        (named(3, None), ["MQMR-2.2.1.5-03"]),
        (named(1, UUID(int=1), 0, 7), ["MQMR-2.2.1.5-04"]),
        (named(1, UUID(int=1), 0x81), []),
        (named(4, UUID(int=1), 0x82), []),
        (SESSION, []),
        (MGMT_OBJECT.value(type=1, arm=0xFFFFFFFF), []),  # MQMR-2.2.1.2-07
    ],
)
def test_the_object_of_a_call(wanted: Any, ids: list[str]) -> None:
    item = asked(m.info_arguments(wanted, [1]))
    assert found(item) == [(id, "pObjectFormat") for id in ids]
    action = {"pObjectFormat": wanted, "lpwszAction": "PAUSE" if wanted.type == 2 else "TIDY"}
    assert [id for id, path in found(asked(action, ACT)) if path == "pObjectFormat"] == ids


@pytest.mark.requirement("MQMR-3.1.4.1-05", "MQMR-3.1.4.1-12", "MQMR-3.1.4.1-13")
@pytest.mark.parametrize(
    ("wanted", "ids", "wrong"),
    [
        (machine_object(), [1, 6], False),
        (machine_object(), [1, 7], True),
        (machine_object(), [0], True),
        (m.queue(), [1, 27], False),
        (m.queue(), [28, 1], True),
        (m.queue(), [7, 7], False),
    ],
)
def test_identifiers_are_those_of_the_object(wanted: Any, ids: list[int], wrong: bool) -> None:
    expected = [("MQMR-3.1.4.1-05", "aProp")] if wrong else []
    assert found(asked(m.info_arguments(wanted, ids))) == expected


@pytest.mark.requirement("MQMR-3.1.4.1-06")
def test_values_are_null_before_a_call() -> None:
    values = (NULL, variant(UI4, 7))
    item = asked(m.info_arguments(m.queue(), [7, 8], apVar=values))
    assert found(item) == [("MQMR-3.1.4.1-06", "apVar")]
    assert item.findings[0].message == "element 1 is VT_UI4; 1 such value"


@pytest.mark.requirement("MQMR-3.1.4.2-03", "MQMR-3.1.4.2-04", "MQMR-3.1.4.2-09", "MQMR-3.1.4.2-13")
@pytest.mark.parametrize(
    ("wanted", "action", "id"),
    [
        (m.queue(), "pause", None),
        (m.queue(), "EOD_RESEND", None),
        (machine_object(), "Tidy", None),
        (m.queue(), "RESEND", "MQMR-3.1.4.2-03"),
        (m.queue(), "", "MQMR-3.1.4.2-03"),
        (m.queue(), "PAUSE ", "MQMR-3.1.4.2-03"),
        (m.queue(), "CONNECT", "MQMR-3.1.4.2-13"),
        (machine_object(), "PAUSE", "MQMR-3.1.4.2-13"),
        (SESSION, "TIDY", "MQMR-3.1.4.2-13"),
    ],
)
def test_actions_of_calls(wanted: Any, action: str, id: str | None) -> None:
    item = asked({"pObjectFormat": wanted, "lpwszAction": action}, ACT)
    assert found(item) == ([(id, "lpwszAction")] if id else [])
    result = answered({"pObjectFormat": wanted, "lpwszAction": action}, {"status": 0}, ACT)
    assert [path for _, path in found(result)] == (["status"] if id else [])
    refused = answered({"pObjectFormat": wanted, "lpwszAction": action}, {"status": 0xC00E0006}, ACT)
    assert found(refused) == []


@pytest.mark.requirement("MQMR-3.1.4-04")
def test_an_opnum_of_no_method() -> None:
    item = malformed(Opnum(1), b"")
    assert item.kind == "Malformed"
    talk = m.ManagementTalk()
    talk.client.call(2, b"")
    talk.exchange()
    assert found(items(talk)[-1]) == [("MQMR-3.1.4-04", "opnum")]


@pytest.mark.requirement("MQMR-3.1.4-01")
def test_bytes_that_belong_to_no_parameter() -> None:
    stub = build_request(GET, m.info_arguments(machine_object(), [1, 2]), NDR20)
    assert found(malformed(GET, stub + bytes(7))) == []
    assert found(malformed(GET, stub + bytes(8))) == [("MQMR-3.1.4-01", "")]
    gap = bytearray(stub)
    gap[28:32] = b"left"  # between max_count and the elements
    assert found(malformed(GET, bytes(gap))) == [("MQMR-3.1.4-01-GAPS", "")]


# -- stubs that can't be read --------------------------------------------------------------------------------


def changed(stub: bytes, *places: tuple[int, int, int]) -> bytes:
    """A stub with little-endian numbers at offsets: (offset, size, number)."""
    data = bytearray(stub)
    for offset, size, number in places:
        data[offset : offset + size] = number.to_bytes(size, "little")
    return bytes(data)


INFO = build_request(GET, m.info_arguments(machine_object(), [1, 2]), NDR20)
OF_QUEUE = build_request(GET, m.info_arguments(named(1, UUID(int=1)), [1]), NDR20)
PAUSE = build_request(ACT, {"pObjectFormat": machine_object(), "lpwszAction": "PAUSE"}, NDR20)
GIVEN = build_request(GET, m.info_arguments(machine_object(), [1], apVar=(variant(LPWSTR, "abc"),)), NDR20)
BYTES = build_request(
    GET, m.info_arguments(machine_object(), [1], apVar=(variant(VarEnum.VT_BLOB, b"abc"),)), NDR20
)


@pytest.mark.requirement(
    "MQMR-2.2.1.2-04", "MQMR-2.2.1.2-05", "MQMR-2.2.1.5-01", "MQMR-2.2.3-04", "MQMR-2.2.3-05",
    "MQMR-2.2.3-06", "MQMR-2.2.3-08", "MQMR-3.1.4-01", "MQMR-3.1.4-02", "MQMR-3.1.4.1-03", "MQMR-3.1.4.1-04",
    "MQMR-3.1.4.2-05",
)  # fmt: skip
@pytest.mark.parametrize(
    ("opnum", "stub", "id", "path"),
    [
        (GET, changed(INFO, (0, 2, 4), (2, 2, 4)), "MQMR-2.2.1.2-04", "pObjectFormat"),
        (GET, changed(INFO, (2, 2, 2)), "MQMR-2.2.1.2-05", "pObjectFormat"),
        (GET, changed(OF_QUEUE, (8, 1, 9), (12, 1, 9)), "MQMR-2.2.1.5-01", "pObjectFormat.pQueueFormat"),
        (GET, changed(OF_QUEUE, (12, 1, 2)), "MQMR-2.2.1.5-01", "pObjectFormat.pQueueFormat"),
        (GET, changed(INFO, (8, 4, 0)), "MQMR-3.1.4.1-03", "cp"),
        (GET, changed(INFO, (8, 4, 129)), "MQMR-3.1.4.1-03", "cp"),
        (GET, changed(INFO, (12, 4, 1)), "MQMR-3.1.4.1-04", "aProp"),
        (GET, changed(INFO, (24, 4, 3)), "MQMR-3.1.4.1-04", "apVar"),
        (GET, changed(INFO, (32, 2, 0xC), (40, 2, 0xC)), "MQMR-2.2.3-04", "apVar[0]"),
        (GET, changed(INFO, (40, 2, 0)), "MQMR-2.2.3-05", "apVar[0]"),
        (GET, changed(GIVEN, (48, 4, 3)), "MQMR-2.2.3-08", "apVar[0].pwszVal"),
        (GET, changed(GIVEN, (58, 2, 0x41)), "MQMR-2.2.3-08", "apVar[0].pwszVal"),
        (GET, changed(BYTES, (36, 4, 2)), "MQMR-2.2.3-06", "apVar[0].blob.pBlobData"),
        (GET, changed(BYTES, (40, 4, 0)), "MQMR-2.2.3-06", "apVar[0].blob.pBlobData"),
        (ACT, changed(PAUSE, (12, 4, 1)), "MQMR-3.1.4.2-05", "lpwszAction"),
        (ACT, changed(PAUSE, (30, 2, 0x41)), "MQMR-3.1.4.2-05", "lpwszAction"),
        (ACT, PAUSE[:10], "MQMR-3.1.4-01", "lpwszAction"),
    ],
)  # fmt: skip
def test_stubs_that_can_not_be_read(opnum: Opnum, stub: bytes, id: str, path: str) -> None:
    item = malformed(opnum, stub)
    assert item.kind == "Malformed"
    assert (item.findings[0].id, item.findings[0].path) == (id, f"{opnum.name}.{path}")


@pytest.mark.requirement("MQMR-3.1.4-01", "MQMR-3.2.4-04")
@pytest.mark.parametrize("stub", [INFO, PAUSE], ids=["call", "action"])
def test_a_stub_that_ends_early_is_found_wherever_it_ends(stub: bytes) -> None:
    opnum = GET if stub is INFO else ACT
    for size in range(len(stub)):
        ids = [finding.id for finding in malformed(opnum, stub[:size]).findings]
        assert ids == ["MQMR-3.1.4-01", "ATTACK-RPC-COUNT"], size


@pytest.mark.requirement("MQMR-2.2.3-09")
def test_variants_that_nest_too_deep() -> None:
    value = NULL
    for _ in range(4):
        value = variant(VECTOR | VarEnum.VT_VARIANT, (value,))
    answer = build_response(GET, {"apVar": [value]}, NDR20)
    stub = build_request(GET, m.info_arguments(m.queue(), [25]), NDR20)
    assert malformed(GET, stub, answer=answer).kind == f"{GET.name} response"
    innermost = len(answer) - 4 - 12  # NULL at the end, 2 bytes of padding, the HRESULT
    deeper = changed(answer, (innermost, 2, 0x100C), (innermost + 8, 2, 0x100C))
    item = malformed(GET, stub, answer=deeper)
    assert [finding.id for finding in item.findings] == ["MQMR-2.2.3-09"]


# -- answers -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("MQMR-3.1.4.1-02", "MQMR-3.2.4-04")
@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("status", [0, 0xC00E0001])
def test_an_answer_has_as_many_values_as_were_asked_for(count: int, status: int) -> None:
    item = answered(m.info_arguments(m.queue(), [7, 8]), {"apVar": [NULL] * count, "status": status})
    assert found(item) == [("MQMR-3.1.4.1-02", "apVar")]


@pytest.mark.requirement("MQMR-3.1.4.1-09", "MQMR-3.2.4-03")
def test_a_failure_sets_no_values() -> None:
    values = [NULL, variant(UI4, 7)]
    item = answered(m.info_arguments(m.queue(), [7, 8]), {"apVar": values, "status": 0xC00E0001})
    assert found(item) == [("MQMR-3.1.4.1-09", "apVar")]
    assert "report" not in item.to_json()["management"]


@pytest.mark.requirement("MQMR-3.1.4.1-08", "MQMR-3.1.4.2-06", "MQMR-3.1.4.1-14", "MQMR-3.1.4.2-08",
                         "MQMR-2.2.1.2-06")  # fmt: skip
@pytest.mark.parametrize(
    ("wanted", "status", "info", "action"),
    [
        (m.queue(), 5, "MQMR-3.1.4.1-08", "MQMR-3.1.4.2-06"),
        (SESSION, 0, "MQMR-3.1.4.1-14", "MQMR-3.1.4.2-08"),
        (NO_QUEUE, 0, "MQMR-2.2.1.2-06", "MQMR-2.2.1.2-06"),
        (NO_QUEUE, 0xC00E0006, None, None),
        (SESSION, 0xC00E0001, None, None),
        (m.queue(), 0x80070005, None, None),
    ],
)
def test_which_calls_may_succeed(wanted: Any, status: int, info: str | None, action: str | None) -> None:
    item = answered(m.info_arguments(wanted, [7]), {"apVar": [NULL], "status": status})
    assert found(item) == ([(info, "status")] if info else [])
    arguments = {"pObjectFormat": wanted, "lpwszAction": "PAUSE"}
    assert found(answered(arguments, {"status": status}, ACT)) == ([(action, "status")] if action else [])


@pytest.mark.requirement("MQMR-3.1.4-05")
def test_a_method_does_not_fail_by_a_fault() -> None:
    for status, ids in ((0xC00E0025, ["MQMR-3.1.4-05"]), (0x6F7, []), (5, [])):
        talk = m.ManagementTalk()
        talk.server.fault(talk.ask(GET, m.info_arguments(m.queue(), [7])), status)
        talk.exchange()
        assert [id for id, _ in found(items(talk)[-1])] == ids


ROWS = [(1, int(each), each.vt, f"MQMR-2.2.3.1-{int(each):02}") for each in ManagementMachineProperty]
ROWS += [
    (2, int(each), each.vt, f"MQMR-2.2.3.2-{int(each) + (int(each) > 25):02}")
    for each in ManagementQueueProperty
]
OTHERS = (variant(UI4, 1), variant(VarEnum.VT_I2, 1), variant(LPWSTR, "x"), variant(VarEnum.VT_BLOB, b""))


@pytest.mark.requirement(*(row[3] for row in ROWS), "MQMR-3.2.4-06")
@pytest.mark.parametrize(("kind", "number", "vt", "id"), ROWS, ids=[row[3] for row in ROWS])
def test_values_of_unexpected_types(kind: int, number: int, vt: int, id: str) -> None:
    wanted = machine_object() if kind == 1 else m.queue()
    for other in OTHERS:
        if other.vt != vt:
            item = answered(m.info_arguments(wanted, [number]), {"apVar": [other]})
            assert found(item) == [(id, "apVar")]
            assert f"{other.vt:#06x}" in item.findings[0].message
    empty = variant(VarEnum.VT_EMPTY)
    assert found(answered(m.info_arguments(wanted, [number]), {"apVar": [empty]})) == []


@pytest.mark.requirement("MQMR-2.2.3-10", "MQMR-3.1.4.1-60", "MQMR-2.2.3.2-26")
@pytest.mark.parametrize(
    ("number", "value", "id"),
    [
        (3, variant(LPWSTR, "OTHER"), "MQMR-2.2.3.2-03"),
        (3, variant(LPWSTR, "public"), None),
        (4, variant(LPWSTR, "HERE"), "MQMR-2.2.3.2-04"),
        (5, variant(LPWSTR, "MAYBE"), "MQMR-2.2.3.2-05"),
        (6, variant(LPWSTR, "Unknown"), None),
        (11, variant(LPWSTR, "ASLEEP"), "MQMR-2.2.3.2-11"),
        (11, variant(LPWSTR, "LOCKED"), None),
        (13, variant(VarEnum.VT_BLOB, bytes(15)), "MQMR-2.2.3.2-13"),
        (13, variant(VarEnum.VT_BLOB, bytes(16)), None),
        (24, variant(VECTOR | VarEnum.VT_VARIANT, ()), "MQMR-2.2.3.2-24"),
        (24, m.SOURCES, None),
        (25, m.HISTORY, None),
        (25, m.SOURCES, "MQMR-2.2.3.2-25"),
        (27, variant(VECTOR | VarEnum.VT_VARIANT, (variant(LPWSTR, "sub"),)), None),
    ],
)
def test_values_that_their_properties_do_not_have(number: int, value: Any, id: str | None) -> None:
    item = answered(m.info_arguments(m.queue(), [number]), {"apVar": [value]})
    assert found(item) == ([(id, "apVar")] if id else [])


@pytest.mark.requirement("MQMR-2.2.3.2-26")
def test_a_state_of_a_connection_that_is_not_known() -> None:
    values = [
        variant(VECTOR | UI4, (99, 2)),
        variant(VECTOR | VarEnum.VT_I4, (1, 2)),
        variant(VECTOR | VarEnum.VT_I4, (0, 0)),
        variant(VECTOR | LPWSTR, ("IP=10.0.0.9", "IP=10.0.0.8")),
    ]
    history = variant(VECTOR | VarEnum.VT_VARIANT, values)
    item = answered(m.info_arguments(m.queue(), [25]), {"apVar": [history]})
    assert found(item) == [("MQMR-2.2.3.2-26", "apVar")]


def test_a_value_for_an_identifier_without_a_property_is_noted() -> None:
    item = answered(m.info_arguments(m.queue(), [99]), {"apVar": [variant(UI4, 7)]})
    assert [(one.id, one.severity) for one in item.findings] == [("MQMR-3.2.4-06", "NOTE")]


def test_a_packet_alone_is_judged_alike() -> None:
    item = asked(m.info_arguments(m.queue(), [99]))
    assert lint(item.packet) == list(item.findings)


def test_each_rule_of_queue_management_has_a_test() -> None:
    marked: set[str] = set()
    for name, function in globals().items():
        if name.startswith("test_") and isinstance(function, Callable):  # type: ignore[arg-type]
            marks = getattr(function, "pytestmark", [])
            marked |= {id for mark in marks if mark.name == "requirement" for id in mark.args}
    rules = {check.requirement for check in checks() if check.kinds == RPC and check.id.startswith("MQMR")}
    assert rules <= marked
    assert len(rules) > 50
