"""Queue management in captures: which connections are followed, what is shown of calls and answers."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

import pytest

from msmqwire.analysis.dissection import Item, dissect, state_pickle
from msmqwire.analysis.dissection.summaries import packet_summary
from msmqwire.constants import CONNECTION_STATUS
from msmqwire.management.constants import Opnum
from msmqwire.management.interface import INTERFACE, build_request, build_response
from msmqwire.management.objects import machine_object
from msmqwire.management.procedures import PROCEDURES
from msmqwire.management.variants import NULL
from msmqwire.remote_read import interface as remote_read
from msmqwire.remote_read.constants import Opnum as ReadOpnum
from msmqwire.rpc.constants import AuthLevel, AuthType, PduType
from msmqwire.rpc.ndr import NDR20, build_stub, from_json
from tests.support import captures as c
from tests.support.capture import management_captures as m
from tests.support.capture import rpc_captures as r

GET, ACT = "R_QMMgmtGetInfo", "R_QMMgmtAction"
SESSION = [
    ("bind", None), ("bind_ack", None),
    (f"{GET} request", 0), (f"{GET} response", 0),
    (f"{GET} request", 1), (f"{GET} response", 1),
    (f"{ACT} request", 2), (f"{ACT} response", 2),
    (f"{GET} request", 3), (f"{GET} response", 3),
    (f"{ACT} request", 4), (f"{ACT} response", 4),
    (f"{GET} request", 5),
]  # fmt: skip


def items(frames: Sequence[c.Frame], **options) -> list[Item]:
    found = list(dissect(io.BytesIO(c.pcap_bytes(frames)), **options))
    for item in found:
        json.dumps(item.to_json())
        assert len(item.raw) == (0 if item.kind == "Skipped" else item.size)
    return found


def shown(found: Sequence[Item]) -> list[tuple]:
    return [(item.kind, item.exchange) for item in found]


def raw_talk(*said: tuple[bool, bytes], port: int = 49_321) -> list[c.Frame]:
    talk = c.TcpConversation((c.CLIENT, 50_001), (c.SERVER, port)).handshake()
    for by_client, data in said:
        talk.send(data, by_client=by_client)
    return talk.frames


@pytest.mark.requirement("MQMR-1.9-01", "MQMR-2.1-01", "MQMR-3.1.4-04", "MQMR-3.1.4.1-11", "MQMR-3.1.4.2-11")
@pytest.mark.parametrize("port", [2103, 49_321])
@pytest.mark.parametrize("mss", [50, 1460])
@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize("syntax", r.SYNTAXES.values(), ids=r.SYNTAXES)
def test_calls_and_answers_by_name(syntax, big_endian, mss, port):
    talk = m.session(syntax, mss=mss, port=port, big_endian=big_endian)
    found = items(talk.close().frames)
    assert shown(found) == SESSION
    sizes = {True: 0, False: 0}
    for item in found:
        sizes[item.src == c.CLIENT] += item.size
    assert {side: len(sent) for side, sent in talk.conversation.sent.items()} == sizes


@pytest.mark.requirement("MQMR-2.2.3-02", "MQMR-2.2.3-03", "MQMR-3.1.4.1-01", "MQMR-3.1.4.1-02")
@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize("syntax", r.SYNTAXES.values(), ids=r.SYNTAXES)
def test_values_by_name_and_as_types_of_their_own(syntax, big_endian):
    found = items(m.session(syntax, big_endian=big_endian).frames)
    machine, queue = (found[number].to_json()["management"] for number in (3, 5))
    assert machine["object"] == "machine"
    assert machine["properties"][1] == {
        "id": 2,
        "name": "PROPID_MGMT_MSMQ_PRIVATEQ",
        "type": "VT_LPWSTR | VT_VECTOR",
        "value": ["beta\\private$\\a", "beta\\private$\\b"],
    }
    assert machine["report"]["connected"] is True
    assert machine["report"]["bytes_all_queues"] == 1 << 33
    assert (queue["queue"], queue["status"]) == (m.CANONICAL, "MQ_OK")
    assert queue["properties"][5] == {
        "id": 7, "name": "PROPID_MGMT_QUEUE_MESSAGE_COUNT", "type": "VT_UI4", "value": 42,
    }  # fmt: skip
    assert queue["properties"][13]["value"] is None
    report = queue["report"]
    first, second = report["connection_history"]
    assert (first["time"], first["status"]) == ("2023-11-14T22:13:20Z", CONNECTION_STATUS[2])
    assert (first["error"], first["addresses"]) == (None, ["IP=10.0.0.9"])
    assert (second["time"], second["status"]) == ("2023-11-14T22:14:20Z", CONNECTION_STATUS[0x80000001])
    assert (second["error"], second["addresses"]) == ("0xC00E0020", ["IP=10.0.0.8"])
    assert report["eod"] == {
        "last_ack": {"sequence": 1 << 40, "number": 9, "previous": 8},
        "last_ack_time": "2023-11-14T22:13:20Z",
        "no_ack_count": 3,
    }
    assert report["sources"][0]["number"] == 12
    assert "subqueues" not in report


@pytest.mark.parametrize("syntax", r.SYNTAXES.values(), ids=r.SYNTAXES)
def test_the_json_of_a_stub_is_built_again_as_it_was(syntax):
    talk = m.ManagementTalk(syntax)
    talk.info(m.queue(), m.OUTGOING)
    talk.act(m.queue(), "RESUME")
    for item in items(talk.frames)[2:]:
        procedure, fields = PROCEDURES[item.packet.procedure.opnum], item.to_json()["fields"]
        is_request = item.packet.is_request
        stub = procedure.request if is_request else procedure.response
        data = from_json(stub, json.loads(json.dumps(fields["arguments" if is_request else "results"])))
        assert build_stub(stub, data, syntax) == item.packet.stub


def test_a_summary_tells_object_values_and_status():
    found = items(m.session().frames)
    texts = [packet_summary(item.packet, item.exchange) for item in found[2:]]
    assert texts == [
        "#0 machine ACTIVEQUEUES PRIVATEQ CONNECTED BYTES_IN_ALL_QUEUES",
        "#0 machine ACTIVEQUEUES=1 value PRIVATEQ=2 values CONNECTED=CONNECTED"
        " BYTES_IN_ALL_QUEUES=8589934592",
        f"#1 {m.CANONICAL} PATHNAME FORMATNAME TYPE LOCATION XACT MESSAGE_COUNT STATE NEXTHOPS and 6 more",
        f"#1 {m.CANONICAL} PATHNAME=10.0.0.9\\private$\\orders FORMATNAME={m.CANONICAL} TYPE=PRIVATE"
        " LOCATION=REMOTE XACT=YES MESSAGE_COUNT=42 STATE=WAITING NEXTHOPS=1 value and 6 more",
        f"#2 {m.CANONICAL} PAUSE",
        f"#2 {m.CANONICAL} PAUSE MQ_OK",
        "#3 DIRECT=OS:beta\\PRIVATE$\\missing MESSAGE_COUNT STATE",
        "#3 DIRECT=OS:beta\\PRIVATE$\\missing MQ_ERROR_QUEUE_NOT_FOUND",
        "#4 machine TIDY",
        "#4 machine TIDY MQ_ERROR_ACCESS_DENIED",
        "#5 machine ACTIVEQUEUES",
    ]


@pytest.mark.parametrize("first", ["qmmgmt", "RemoteRead"])
def test_both_interfaces_in_one_connection(first):
    ask = build_request(Opnum.R_QMMgmtGetInfo, m.info_arguments(machine_object(), [4]), NDR20)
    told = build_response(Opnum.R_QMMgmtGetInfo, {"apVar": [m.MACHINE[4]]}, NDR20)
    port = remote_read.build_request(ReadOpnum.R_GetServerPort, {}, NDR20)
    answer = remote_read.build_response(ReadOpnum.R_GetServerPort, {"status": 2103}, NDR20)
    known = [INTERFACE, remote_read.INTERFACE]
    one, other = known if first == "qmmgmt" else known[::-1]
    contexts = {one: 0, other: 1}
    calls = [(contexts[INTERFACE], ask, told, 8), (contexts[remote_read.INTERFACE], port, answer, 9)]
    said = [(True, m.offer(0, one, NDR20)), (False, m.accept(NDR20))]
    said += [
        (True, m.offer(1, other, NDR20, ptype=PduType.ALTER_CONTEXT)),
        (False, m.accept(NDR20, ptype=PduType.ALTER_CONTEXT_RESP)),
    ]
    said += [(True, m.request(context, 0, stub, call)) for context, stub, _, call in calls]
    said += [(False, m.response(context, stub, call)) for context, _, stub, call in reversed(calls)]
    found = items(raw_talk(*said))
    assert [item.kind for item in found] == [
        "bind", "bind_ack", "alter_context", "alter_context_resp",
        f"{GET} request", "R_GetServerPort request", "R_GetServerPort response", f"{GET} response",
    ]  # fmt: skip
    assert [type(item.packet).__name__ for item in found[-2:]] == ["RemoteReadPacket", "ManagementPacket"]
    assert found[-1].to_json()["management"]["report"] == {"connected": True}
    assert not any(item.findings for item in found)


def test_a_context_that_was_refused_is_of_no_interface():
    refusal = bytearray(m.accept(NDR20))
    at = len(refusal) - 24
    refusal[at : at + 4] = b"\2\0\2\0"
    stub = build_request(Opnum.R_QMMgmtAction, {"pObjectFormat": m.queue(), "lpwszAction": "PAUSE"}, NDR20)
    said = [(True, m.offer(0, INTERFACE, NDR20)), (False, bytes(refusal)), (True, m.request(0, 1, stub, 2))]
    assert [item.kind for item in items(raw_talk(*said))] == ["bind", "bind_ack", "request"]


def test_a_large_answer_in_fragments():
    names = tuple(f"beta\\private$\\queue{number}" for number in range(2000))
    value = m.variant(m.VECTOR | m.VarEnum.VT_LPWSTR, names)
    talk = m.ManagementTalk()
    talk.info(machine_object(), {2: value})
    found = items(talk.close().frames)
    assert found[3].packet.fragments > 10
    assert found[3].packet.report.private_queues == names


@pytest.mark.parametrize("auth_type", [AuthType.WINNT, AuthType.GSS_NEGOTIATE])
@pytest.mark.parametrize("level", [AuthLevel.CONNECT, AuthLevel.PKT_INTEGRITY, AuthLevel.PKT_PRIVACY])
def test_the_user_is_shown_and_encrypted_stubs_are_said_to_be(level, auth_type):
    talk = m.ManagementTalk(level=level, auth_type=auth_type)
    talk.info(m.queue(), m.OUTGOING)
    found = [item for item in items(talk.close().frames) if item.kind.startswith("R_")]
    assert [item.kind for item in found] == [f"{GET} request", f"{GET} response"]
    for item in found:
        assert item.to_json()["security"]["user"] == r.USER
        assert f"by {r.USER}" in packet_summary(item.packet, item.exchange)
        assert not item.findings
    last = found[1].to_json()
    if level == AuthLevel.PKT_PRIVACY:
        assert last["fields"]["encrypted"] is True
        assert last["management"] == {}
    else:
        assert last["management"]["report"]["messages"] == 42


@pytest.mark.requirement("MQMR-3.1.4-01")
def test_an_unreadable_stub_is_malformed_and_the_next_is_read():
    talk = m.ManagementTalk()
    stub = bytearray(build_request(Opnum.R_QMMgmtGetInfo, m.info_arguments(machine_object(), [1]), NDR20))
    stub[2] = 2  # the discriminant of MGMT_OBJECT
    talk.client.call(Opnum.R_QMMgmtGetInfo, bytes(stub))
    talk.exchange()
    talk.info(machine_object(), m.MACHINE)
    found = items(talk.frames)
    bad = found[2]
    assert (bad.kind, bad.exchange, bad.error.path) == ("Malformed", 0, f"{GET}.pObjectFormat")
    assert bad.error.offset == 24 + 2
    assert shown(found[3:]) == [(f"{GET} request", 1), (f"{GET} response", 1)]


def test_an_answer_without_its_call_is_a_response():
    talk = m.session().close()
    found = items(talk.frames[8:])
    assert {item.kind for item in found} <= {"request", "response"}
    assert not any(item.findings for item in found)


def test_calls_and_answers_are_pickled():
    found = items(m.session().frames)
    packets = [item.packet for item in found]
    again = state_pickle.loads(state_pickle.dumps(packets))
    assert again == packets
    assert [packet.procedure for packet in again] == [packet.procedure for packet in packets]


def test_memory_for_calls_with_many_identifiers_is_counted():
    from msmqwire.analysis.dissection.rpc_calls import Association

    association = Association()
    call = association.begin(1, 1, 0)
    usual = association.held
    association.keep(call, None, 4096, "")
    assert association.held == 4 * usual
    association.end(1)
    assert association.held == 0


def test_a_faulted_call_is_shown_with_its_object():
    talk = m.ManagementTalk()
    call = talk.ask(Opnum.R_QMMgmtGetInfo, m.info_arguments(m.queue(), [7]))
    talk.server.fault(call, 0x1C010002)
    talk.exchange()
    fault = items(talk.frames)[-1]
    assert (fault.kind, fault.packet.queue) == ("fault", m.CANONICAL)
    assert packet_summary(fault.packet, 0) == f"#0 {m.CANONICAL} {GET} NCA_S_OP_RNG_ERROR"
    assert fault.to_json()["management"]["properties"] == [
        {"id": 7, "name": "PROPID_MGMT_QUEUE_MESSAGE_COUNT"}
    ]


def test_identifiers_and_types_without_names():
    talk = m.ManagementTalk()
    talk.info(machine_object(), {99: NULL, 3: m.variant(m.VarEnum.VT_LPWSTR, None)})
    request, answer = (item.to_json()["management"] for item in items(talk.frames)[2:])
    assert request["properties"][0] == {"id": 99, "name": None}
    assert answer["properties"] == [
        {"id": 99, "name": None, "type": "VT_NULL", "value": None},
        {"id": 3, "name": "PROPID_MGMT_MSMQ_DSSERVER", "type": "VT_LPWSTR", "value": None},
    ]
