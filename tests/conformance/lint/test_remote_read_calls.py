"""What lint finds in calls and answers of remote read, and in their order."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from msmqwire.analysis.dissection import Item, dissect
from msmqwire.analysis.lint import checks
from msmqwire.analysis.lint.registry import RPC
from msmqwire.analysis.lint.remote_read_session import EACH_MAX
from msmqwire.errors import InvalidValue
from msmqwire.remote_read.constants import Opnum
from msmqwire.remote_read.interface import build_request
from msmqwire.rpc.constants import PduType
from msmqwire.rpc.handles import NULL_HANDLE, ContextHandle
from msmqwire.rpc.ndr import NDR20
from msmqwire.rpc.pdu import build_pdu, make_pdu
from msmqwire.rpc.queue_format import DL_ID, MULTICAST_ID, OBJECTID, QUEUE_FORMAT
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import rpc_captures as r

LOOKUP_RECEIVE, PEEK, PEEK_NEXT = 0x40000020, 0x80000000, 0x80000001
UOW = {"rgb": b"u" * 16}
OTHER = ContextHandle(0, UUID(int=99))


def items(*talks: r.Talk) -> list[Item]:
    return list(dissect(io.BytesIO(c.pcap_bytes(c.merged(*(talk.frames for talk in talks))))))


def found(item: Item) -> list[tuple[str, str, str]]:
    """Id, severity and path of each finding."""
    assert all(0 <= finding.offset < max(1, len(item.raw)) for finding in item.findings)
    return [(finding.id, finding.severity, finding.path) for finding in item.findings]


def opened(**changed: Any) -> r.Talk:
    talk = r.Talk()
    talk.open(**changed)
    return talk


def queue_format(kind: int, arm: Any, **more: int) -> Any:
    return QUEUE_FORMAT.value(m_qft=kind, arm=arm, **more)


OPENING = [
    ({"pQueueFormat": queue_format(0, None)}, "04", "03", "pQueueFormat.m_qft", 0),
    ({"pQueueFormat": queue_format(5, UUID(int=1))}, "04", "03", "pQueueFormat.m_qft", 5),
    ({"pQueueFormat": queue_format(6, DL_ID.value(m_DlGuid=UUID(int=1)))}, "04", "03",
     "pQueueFormat.m_qft", 6),
    ({"pQueueFormat": queue_format(7, MULTICAST_ID.value(m_address=0x010000E0, m_port=1801))}, "04", "03",
     "pQueueFormat.m_qft", 7),
    ({"dwAccess": 2}, "05", "04", "dwAccess", 2),
    ({"dwShareMode": 2}, "07", "05", "dwShareMode", 2),
    ({"pClientId": UUID(int=0)}, "08", "06", "pClientId", 0),
    ({"fNonRoutingServer": 7}, "11", "09", "fNonRoutingServer", 7),
    ({"fWorkgroup": 7}, "17", "12", "fWorkgroup", 7),
]  # fmt: skip


@pytest.mark.requirement(
    "MQRR-3.1.4.2-04", "MQRR-3.1.4.2-05", "MQRR-3.1.4.2-07", "MQRR-3.1.4.2-08", "MQRR-3.1.4.2-11",
    "MQRR-3.1.4.2-17", "MQRR-3.1.4.11-03", "MQRR-3.1.4.11-04", "MQRR-3.1.4.11-05", "MQRR-3.1.4.11-06",
    "MQRR-3.1.4.11-09", "MQRR-3.1.4.11-12",
)  # fmt: skip
@pytest.mark.parametrize("syntax", r.SYNTAXES.values(), ids=r.SYNTAXES)
@pytest.mark.parametrize("opnum", [Opnum.R_OpenQueue, Opnum.R_OpenQueueForMove], ids=lambda o: o.name)
@pytest.mark.parametrize("changed, of_open, of_move, path, value", OPENING)
def test_opening(syntax, opnum, changed, of_open, of_move, path, value):
    talk = r.Talk(syntax)
    access = 1 if opnum == Opnum.R_OpenQueue else 4
    talk.ask(opnum, r.open_arguments(**{"dwAccess": access, **changed}))
    section = f"2-{of_open}" if opnum == Opnum.R_OpenQueue else f"11-{of_move}"
    (item,) = items(talk)[2:]
    assert found(item) == [(f"MQRR-3.1.4.{section}", "MUST", path)]
    at = item.findings[0].offset
    assert item.raw[at] == value


ONE_QUEUE = {
    1: queue_format(1, UUID(int=1)),
    2: queue_format(2, OBJECTID.value(Lineage=UUID(int=1), Uniquifier=9)),
    3: queue_format(3, "OS:h\\q"),
    4: queue_format(4, UUID(int=1), m_SuffixAndFlags=0x82),
    8: queue_format(8, "OS:h\\q;s"),
}


@pytest.mark.requirement("MQRR-3.1.4.2-04", "MQRR-3.1.4.11-03")
@pytest.mark.parametrize("opnum, access", [(Opnum.R_OpenQueue, 1), (Opnum.R_OpenQueueForMove, 4)])
@pytest.mark.parametrize("form", ONE_QUEUE.values(), ids=ONE_QUEUE)
def test_kinds_of_names_that_open_one_queue(form, opnum, access):
    talk = r.Talk()
    talk.ask(opnum, r.open_arguments(pQueueFormat=form, dwAccess=access))
    assert found(items(talk)[2]) == []


@pytest.mark.requirement("MQRR-3.1.4.2-04", "MQRR-3.1.4.11-03")
@pytest.mark.parametrize("opnum", [Opnum.R_OpenQueue, Opnum.R_OpenQueueForMove])
def test_the_name_of_the_queue_is_not_null(opnum):
    with pytest.raises(InvalidValue) as caught:
        build_request(opnum, {**r.open_arguments(), "pQueueFormat": None}, NDR20)
    assert "pQueueFormat" in str(caught.value)


@pytest.mark.requirement("MQRR-2.2.3-02", "MQRR-2.2.3-03")
@pytest.mark.parametrize(
    "form, id, severity, path",
    [
        (queue_format(3, "HTTP://host/q"), "MQRR-2.2.3-02", "MUST", "pQueueFormat.m_pDirectID"),
        # [MS-MQMQ] 2.2.7: clients SHOULD write 0, servers don't look at it.
        (queue_format(3, "OS:h\\q", m_reserved=1), "MQRR-2.2.3-03", "SHOULD", "pQueueFormat.m_reserved"),
        (queue_format(3, "DIRECT=OS:h\\q"), "MQRR-2.2.3-02", "MUST", "pQueueFormat.m_pDirectID"),
        (queue_format(8, "DIRECT=HTTP://h/q;s"), "MQRR-2.2.3-02", "MUST", "pQueueFormat.m_pDirectID"),
    ],
)
def test_names_of_queues(form, id, severity, path):
    talk = r.Talk()
    talk.ask(Opnum.R_OpenQueue, r.open_arguments(pQueueFormat=form))
    assert found(items(talk)[2]) == [(id, severity, path)]


@pytest.mark.parametrize("prefix", ["", "DIRECT=", "Direct="])
def test_a_subqueue_is_named_with_and_without_its_prefix(prefix):
    talk = r.Talk()
    form = queue_format(8, f"{prefix}OS:h\\private$\\q;s")
    talk.ask(Opnum.R_OpenQueue, r.open_arguments(pQueueFormat=form))
    assert found(items(talk)[2]) == []


STARTING = [
    ({"ulAction": 3}, "17", "13", "ulAction"),
    ({"LookupId": 5, "ulTimeout": 0}, "13", "10", "ulAction"),
    ({"LookupId": 0, "ulAction": LOOKUP_RECEIVE, "ulTimeout": 0}, "14", "10-NONE", "LookupId"),
    ({"ulAction": PEEK_NEXT}, "16", "12", "hCursor"),
    ({"LookupId": 5, "ulAction": LOOKUP_RECEIVE}, "22", "14", "ulTimeout"),
]


@pytest.mark.requirement(
    "MQRR-3.1.4.7-13", "MQRR-3.1.4.7-14", "MQRR-3.1.4.7-16", "MQRR-3.1.4.7-17", "MQRR-3.1.4.7-19",
    "MQRR-3.1.4.7-22", "MQRR-3.1.4.13-10", "MQRR-3.1.4.13-12", "MQRR-3.1.4.13-13", "MQRR-3.1.4.13-14",
)  # fmt: skip
@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("changed, receive, in_transaction, path", STARTING)
def test_starting_to_receive(transactional, changed, receive, in_transaction, path):
    talk, arguments = opened(), r.receive_arguments(**changed)
    if transactional:
        talk.ask(Opnum.R_StartTransactionalReceive, {**arguments, "pTransactionId": {"rgb": bytes(16)}})
    else:
        talk.ask(Opnum.R_StartReceive, arguments)
    section = f"13-{in_transaction}" if transactional else f"7-{receive}"
    assert found(items(talk)[-1]) == [(f"MQRR-3.1.4.{section}", "MUST", path)]


@pytest.mark.requirement("MQRR-3.1.4.13-12", "MQRR-3.1.4.13-10", "MQRR-3.1.4.13-11")
@pytest.mark.parametrize(
    "changed, ids",
    [
        ({"ulAction": PEEK}, ["12"]),
        ({"ulAction": 0x40000010, "LookupId": 7, "ulTimeout": 0}, ["10"]),
        ({"ulAction": PEEK, "hCursor": 9}, ["11", "11-OPEN"]),  # the cursor is not open either
        ({"LookupId": 7, "hCursor": 9, "ulAction": LOOKUP_RECEIVE, "ulTimeout": 0}, ["11", "11-OPEN"]),
    ],
)
def test_peeks_and_cursors_in_a_transaction(changed, ids):
    talk = opened()
    arguments = {**r.receive_arguments(**changed), "pTransactionId": UOW}
    talk.ask(Opnum.R_StartTransactionalReceive, arguments)
    assert [id for id, _, _ in found(items(talk)[-1])] == [f"MQRR-3.1.4.13-{n}" for n in ids]


@pytest.mark.requirement("MQRR-3.1.4.10-05", "MQRR-3.1.4.14-05")
def test_other_arguments():
    talk = opened()
    move = {"phContextFrom": r.HANDLE, "ullContextTo": 0, "LookupId": 1, "pTransactionId": UOW}
    talk.ask(Opnum.R_MoveMessage, move)
    rejection = {"phContext": r.HANDLE, "LookupId": 1, "usClass": 5}
    talk.ask(Opnum.R_SetUserAcknowledgementClass, rejection)
    talk.ask(Opnum.R_SetUserAcknowledgementClass, {**rejection, "usClass": 0xC004})
    assert [found(item) for item in items(talk)[-3:]] == [
        [("MQRR-3.1.4.10-05", "MUST", "ullContextTo")],
        [("MQRR-3.1.4.14-05", "MUST", "usClass")],
        [],
    ]


@pytest.mark.requirement(
    "MQRR-3.1.4.7-29", "MQRR-3.1.4.4-06", "MQRR-3.1.4.11-14", "MQRR-2.2.6-05"
)  # fmt: skip
def test_results():
    talk = opened()
    talk.call(Opnum.R_StartReceive, r.receive_arguments(), {**r.received(), "pSequenceId": 1 << 56})
    talk.call(Opnum.R_CreateCursor, {"phContext": r.HANDLE}, {"phCursor": 0})
    talk.call(
        Opnum.R_OpenQueueForMove,
        r.open_arguments(dwAccess=4),
        {"pMoveContext": 0, "pphContext": OTHER},
    )
    nothing = {**r.received(), "pdwNumberOfSections": 0, "ppPacketSections": None}
    talk.call(Opnum.R_StartReceive, r.receive_arguments(dwRequestId=9), nothing)
    answers = [item for item in items(talk) if item.kind.endswith("response")]
    assert [found(item) for item in answers[1:]] == [
        [("MQRR-3.1.4.7-29", "MUST", "pSequenceId")],
        [("MQRR-3.1.4.4-06", "MUST", "phCursor")],
        [("MQRR-3.1.4.11-14", "MUST", "pMoveContext")],
        [("MQRR-2.2.6-05", "MUST", "ppPacketSections")],
    ]


@pytest.mark.requirement("MQRR-2.2.5.5-03")
@pytest.mark.parametrize("size", [10, 9000])
def test_the_message_in_an_answer(size):
    """Its findings have offsets in the packet, also beyond the first fragment."""
    message = h.user_message(properties=h.properties_header(body=bytes(size)))
    data = bytearray(r.message_packet(message, r.MessageState()))
    data[-22:-20] = b"\7\0"  # AddressType of the ExtendedAddressHeader
    talk = opened()
    talk.call(Opnum.R_StartReceive, r.receive_arguments(), r.one_section(bytes(data)))
    answer = items(talk)[-1]
    assert answer.packet.fragments == 1 + size // 5000
    (finding,) = answer.findings
    assert (finding.id, finding.path) == ("MQRR-2.2.5.5-03", "ExtendedAddressHeader.AddressType")
    assert answer.raw[finding.offset :].startswith(bytes(data[-22:]))


@pytest.mark.requirement("MQRR-3.1.4-01", "MQRR-3.1.4-03", "MQRR-3.1.4-04")
def test_stubs_gaps_and_numbers_of_procedures():
    talk = opened()
    stub = build_request(Opnum.R_StartReceive, r.receive_arguments(), NDR20)
    purge = build_request(Opnum.R_PurgeQueue, {"phContext": r.HANDLE}, NDR20)
    assert stub[20:24] == bytes(4)
    for opnum, data in (
        (Opnum.R_StartReceive, stub[:20] + b"gaps" + stub[24:]),
        (Opnum.R_PurgeQueue, purge + b"hidden data"),
        (1, b""),
        (16, b""),
    ):
        talk.client.call(opnum, data)
        talk.exchange()
    gap, rest, unused, unknown = [found(item) for item in items(talk) if item.src == c.CLIENT][-4:]
    assert gap == [("MQRR-3.1.4-01-GAPS", "NOTE", "")]
    assert rest == [("MQRR-3.1.4-01", "MUST", ""), ("MQRR-3.1.4-01-GAPS", "NOTE", "")]
    assert unused == [("MQRR-3.1.4-04", "MUST", "opnum")]
    assert unknown == [("MQRR-3.1.4-03", "MUST", "opnum")]


@pytest.mark.requirement("MQRR-3.1.4.9-04", "MQRR-3.1.4.15-04", "MQRR-3.1.4.12-06", "MQRR-2.2.7-01")
def test_stubs_that_are_refused():
    talk = opened()
    end = bytearray(build_request(Opnum.R_EndReceive, r.end_arguments(), NDR20))
    end[20] = 3
    for opnum in (Opnum.R_EndReceive, Opnum.R_EndTransactionalReceive):
        talk.client.call(opnum, bytes(end))
    token = {"pTransactionId": UOW, "cbPropagationToken": 3, "pbPropagationToken": b"abc",
             "pQueueFormat": r.open_arguments()["pQueueFormat"]}  # fmt: skip
    enlist = bytearray(build_request(Opnum.R_QMEnlistRemoteTransaction, token, NDR20))
    enlist[16:20] = (131073).to_bytes(4, "little")
    talk.client.call(Opnum.R_QMEnlistRemoteTransaction, bytes(enlist))
    enlist[16:24] = (100_000).to_bytes(4, "little") * 2
    talk.client.call(Opnum.R_QMEnlistRemoteTransaction, bytes(enlist))
    talk.exchange()
    bad = {**r.received(), "pdwNumberOfSections": 1}
    section = r.SECTION_BUFFER.value(
        SectionBufferType=9, SectionSizeAlloc=1, SectionSize=1, pSectionBuffer=b"x"
    )
    talk.call(Opnum.R_StartReceive, r.receive_arguments(), {**bad, "ppPacketSections": (section,)})
    malformed = [item for item in items(talk) if item.kind == "Malformed"]
    assert [found(item) for item in malformed[:3]] == [
        [("MQRR-3.1.4.9-04", "MUST", "R_EndReceive.dwAck")],
        [("MQRR-3.1.4.15-04", "MUST", "R_EndTransactionalReceive.dwAck")],
        [("MQRR-3.1.4.12-06", "MUST", "R_QMEnlistRemoteTransaction.cbPropagationToken")],
    ]
    assert [[finding.id for finding in item.findings] for item in malformed[3:]] == [
        ["MQRR-3.1.4-01", "ATTACK-RPC-COUNT"],
        ["MQRR-2.2.7-01"],
    ]


def test_attacks_on_pdus():
    talk = opened()
    allocation = build_pdu(
        make_pdu(PduType.REQUEST, {"p_cont_id": 0, "opnum": 0, "alloc_hint": 1 << 30, "stub_data": b""})
    )
    verifier = bytearray(build_pdu(make_pdu(PduType.CO_CANCEL, {})))
    verifier[10:12] = b"\xff\0"
    alone = build_pdu(
        make_pdu(
            PduType.REQUEST,
            {"p_cont_id": 0, "opnum": 0, "stub_data": b""},
            header={"pfc_flags": 2, "call_id": 8},
        )
    )
    talk.conversation.send(allocation + bytes(verifier) + alone + allocation[:20])
    got = [found(item) for item in items(talk.close())[-4:]]
    assert [[id for id, _, _ in findings] for findings in got] == [
        ["ATTACK-RPC-ALLOC"], ["ATTACK-RPC-AUTH"], ["ATTACK-RPC-FRAGMENT"], ["ATTACK-TRUNCATED"],
    ]  # fmt: skip
    assert [findings[0][2] for findings in got] == [
        "alloc_hint", "rpcconn_common_hdr_t.auth_length", "rpcconn_common_hdr_t.pfc_flags",
        "rpcconn_common_hdr_t.frag_length",
    ]  # fmt: skip


# --- order -----------------------------------------------------------------------------------------------

CLOSED = [
    (Opnum.R_CloseQueue, {"pphContext": r.HANDLE}, "3-02"),
    (Opnum.R_CreateCursor, {"phContext": r.HANDLE}, "4-02"),
    (Opnum.R_CloseCursor, {"phContext": r.HANDLE, "hCursor": 1}, "5-03"),
    (Opnum.R_PurgeQueue, {"phContext": r.HANDLE}, "6-02"),
    (Opnum.R_StartReceive, r.receive_arguments(), "7-11"),
    (Opnum.R_CancelReceive, {"phContext": r.HANDLE, "dwRequestId": 1}, "8-03"),
    (Opnum.R_EndReceive, r.end_arguments(), "9-03"),
    (Opnum.R_MoveMessage,
     {"phContextFrom": r.HANDLE, "ullContextTo": 1, "LookupId": 1, "pTransactionId": UOW}, "10-04"),
    (Opnum.R_StartTransactionalReceive, {**r.receive_arguments(), "pTransactionId": UOW}, "13-09"),
    (Opnum.R_SetUserAcknowledgementClass, {"phContext": r.HANDLE, "LookupId": 1, "usClass": 0}, "14-04"),
    (Opnum.R_EndTransactionalReceive, r.end_arguments(), "15-03"),
]  # fmt: skip


@pytest.mark.requirement(
    "MQRR-3.1.4.3-02", "MQRR-3.1.4.4-02", "MQRR-3.1.4.5-03", "MQRR-3.1.4.6-02", "MQRR-3.1.4.7-11",
    "MQRR-3.1.4.8-03", "MQRR-3.1.4.9-03", "MQRR-3.1.4.10-04", "MQRR-3.1.4.13-09", "MQRR-3.1.4.14-04",
    "MQRR-3.1.4.15-03",
)  # fmt: skip
@pytest.mark.parametrize("opnum, arguments, id", CLOSED)
def test_handles_that_are_null_closed_or_of_nobody(opnum, arguments, id):
    talk = opened()
    talk.close_queue()
    path = next(name for name, value in arguments.items() if value == r.HANDLE)
    for handle in (r.HANDLE, NULL_HANDLE, OTHER):
        talk.ask(opnum, {**arguments, path: handle})
    closed, null, nobody = [found(item) for item in items(talk)[-3:]]
    assert closed == null == [(f"MQRR-3.1.4.{id}", "MUST", path)]
    assert nobody == [("ATTACK-RPC-HANDLE", "ATTACK", path)]


def test_a_handle_of_another_host():
    owner, thief = opened(), r.Talk()
    thief.conversation = c.TcpConversation(("10.0.0.9", 50_000), (c.SERVER, 2103)).handshake()
    for by_client, data in thief.pdus:
        thief.conversation.send(data, by_client=by_client)
    thief.conversation.wait(1_000_000_000)
    thief.ask(Opnum.R_PurgeQueue, {"phContext": r.HANDLE})
    assert found(items(owner, thief)[-1]) == [("ATTACK-RPC-HANDLE", "ATTACK", "phContext")]


@pytest.mark.requirement("MQRR-3.1.4.7-11", "MQRR-3.1.4.6-02", "MQRR-3.1.4.13-09")
def test_a_handle_that_may_only_peek():
    talk = opened(dwAccess=0x20)
    talk.ask(Opnum.R_StartReceive, r.receive_arguments(ulAction=PEEK))
    talk.ask(Opnum.R_StartReceive, r.receive_arguments(dwRequestId=2))
    talk.ask(Opnum.R_PurgeQueue, {"phContext": r.HANDLE})
    talk.ask(
        Opnum.R_StartTransactionalReceive,
        {**r.receive_arguments(dwRequestId=3), "pTransactionId": UOW},
    )
    got = [[id for id, _, _ in found(item)] for item in items(talk)[-4:]]
    assert got == [[], ["MQRR-3.1.4.7-11"], ["MQRR-3.1.4.6-02"], ["MQRR-3.1.4.13-09"]]


@pytest.mark.requirement(
    "MQRR-3.1.4.7-23", "MQRR-3.1.4.13-15", "MQRR-3.1.4.9-02", "MQRR-3.1.4.15-02", "MQRR-3.1.4.9-03",
    "MQRR-3.1.4.8-03",
)  # fmt: skip
def test_receives_begin_and_end_once():
    talk = opened()
    transactional = {**r.receive_arguments(), "pTransactionId": UOW}
    talk.receive()
    talk.ask(Opnum.R_StartReceive, r.receive_arguments())  # the first has not ended
    talk.ask(Opnum.R_StartTransactionalReceive, transactional)
    talk.call(Opnum.R_EndReceive, r.end_arguments(), {"status": 0})  # of a transactional one
    talk.call(Opnum.R_EndReceive, r.end_arguments(), {"status": 0})
    talk.receive(dwRequestId=2)
    talk.call(Opnum.R_EndTransactionalReceive, r.end_arguments(dwRequestId=2), {"status": 0})
    talk.call(Opnum.R_CancelReceive, {"phContext": r.HANDLE, "dwRequestId": 5}, {"status": 0xC00E0006})
    talk.call(Opnum.R_StartReceive, r.receive_arguments(dwRequestId=2, ulAction=PEEK), r.received())
    talk.receive(dwRequestId=2)
    got = [found(item) for item in items(talk) if item.src == c.CLIENT][2:]
    assert got == [
        [],
        [("MQRR-3.1.4.7-23", "MUST", "dwRequestId")],
        [("MQRR-3.1.4.13-15", "MUST", "dwRequestId")],
        [("MQRR-3.1.4.9-02", "MUST", "dwRequestId")],
        [("MQRR-3.1.4.9-03", "MUST", "dwRequestId")],
        [],
        [("MQRR-3.1.4.15-02", "MUST", "dwRequestId")],
        [("MQRR-3.1.4.8-03", "MUST", "dwRequestId")],
        [],
        [],
    ]


@pytest.mark.requirement("MQRR-3.1.4.7-15", "MQRR-3.1.4.13-11", "MQRR-3.1.4.5-03")
def test_cursors_are_created_before_and_closed_once():
    talk = opened()
    close = {"phContext": r.HANDLE, "hCursor": 6}
    talk.ask(Opnum.R_StartReceive, r.receive_arguments(hCursor=6))
    talk.call(Opnum.R_CreateCursor, {"phContext": r.HANDLE}, {"phCursor": 6})
    talk.ask(Opnum.R_StartReceive, r.receive_arguments(hCursor=6, dwRequestId=2))
    talk.call(Opnum.R_CloseCursor, close, {"status": 0})
    talk.call(Opnum.R_CloseCursor, close, {"status": 0xC00E0007})
    got = [found(item) for item in items(talk) if item.src == c.CLIENT][2:]
    assert got == [
        [("MQRR-3.1.4.7-15-OPEN", "MUST", "hCursor")], [], [], [], [("MQRR-3.1.4.5-03", "MUST", "hCursor")],
    ]  # fmt: skip


def test_what_the_capture_may_have_missed_is_not_judged():
    talk = opened()
    talk.ask(Opnum.R_EndReceive, r.end_arguments(dwRequestId=5))
    talk.ask(Opnum.R_PurgeQueue, {"phContext": OTHER})
    frames = talk.frames[:]
    assert frames[7].segment.payload[2] == PduType.REQUEST
    del frames[7]  # the open: a hole
    assert not [finding for item in dissect(io.BytesIO(c.pcap_bytes(frames))) for finding in item.findings]


def test_too_many_receives_are_judged_no_more():
    talk = opened()
    for number in range(EACH_MAX + 2):
        talk.ask(Opnum.R_StartReceive, r.receive_arguments(dwRequestId=number))
    talk.ask(Opnum.R_EndReceive, r.end_arguments(dwRequestId=EACH_MAX + 1))
    assert not [finding for item in items(talk) for finding in item.findings]


def test_every_rule_has_a_case():
    rules = {check.id for check in checks() if check.kinds == RPC and not check.id.startswith("MQMR")}
    sections = {f"MQRR-2.2.6-0{number}" for number in range(6, 10)}  # in the tests of sections
    source = Path(__file__).read_text()
    composed = {f"MQRR-3.1.4.13-{number}" for number in ("10-NONE", "11-OPEN")}  # their cases have parts
    assert {id for id in rules - sections - composed if f'"{id}"' not in source} == set()
