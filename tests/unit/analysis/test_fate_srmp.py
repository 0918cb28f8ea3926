"""The fate of messages of SRMP, by the published messages of [MC-MQSRM] chapter 4."""

from __future__ import annotations

from uuid import UUID

import pytest

import msmqwire
from msmqwire.analysis.fate import MessageFate, State
from tests.support import captures as c
from tests.support.capture import srmp_captures as s
from tests.support.capture.fate_captures import THIRD, Link, capture, fates_in, message, told

SENT, OK = s.published("4.3-1"), s.published("4.3-2")
DELIVERY, COMMITMENT = s.published("4.3-3"), s.published("4.3-5")
STREAM, STREAM_RECEIPT = s.published("4.4-1"), s.published("4.4-2")
FAILED = OK.replace(b"200 OK", b"500 Internal Server Error")
REFUSED = OK.replace(b"200 OK", b"400 Bad Request")
# The published receipts name the message by another GUID than it has itself.
ORIGINAL = b"uuid:1@00000000-0000-0000-0000-000000000008"
ORIGINAL_QM, SENT_AT = UUID(int=8), 1_184_815_492
PUBLISHED = b"uuid:1@00000000-0000-0000-0000-000000000000"


def of_original(receipt: bytes) -> bytes:
    """A receipt that names the message by its own identifier, which is as long."""
    assert receipt.count(PUBLISHED) == 1
    return receipt.replace(PUBLISHED, ORIGINAL)


def back(
    data: bytes, after: c.TcpConversation, *, src: str = c.SERVER, port: int = 50_001
) -> c.TcpConversation:
    """A connection from where a message was sent to, to its sender."""
    talk = c.TcpConversation((src, port), (c.CLIENT, 80), start_ns=after.time_ns)
    return talk.handshake().send(data).send(OK, by_client=False)


def sent(message: bytes = SENT, response: bytes = OK) -> c.TcpConversation:
    talk = s.http().send(message)
    return talk.send(response, by_client=False) if response else talk


def first(*talks: c.TcpConversation) -> MessageFate:
    return fates_in(*talks)[0]


def test_the_original_is_named_as_expected() -> None:
    assert ORIGINAL in SENT
    assert first(sent()).identity == "00000000-0000-0000-0000-000000000008\\1"


@pytest.mark.parametrize(
    ("response", "state", "reason", "missing"),
    [
        (OK, State.RECEIVED, "", "arrival acknowledgement"),  # it asks for a delivery receipt
        (FAILED, State.SENT, "", "acceptance"),
        (REFUSED, State.REFUSED, "HTTP status 400", ""),
        (b"", State.SENT, "", "response"),
    ],
)
def test_responses(response: bytes, state: State, reason: str, missing: str) -> None:
    fate = first(sent(response=response))
    assert (fate.state, fate.reason, fate.missing, fate.transport) == (state, reason, missing, "http")
    assert fate.stuck is (state is State.SENT)


def test_responses_answer_pipelined_requests_in_their_order() -> None:
    other = SENT.replace(ORIGINAL, ORIGINAL.replace(b":1@", b":2@"))
    talk = s.http().send(SENT + other).send(REFUSED + OK, by_client=False)
    assert [fate.state for fate in fates_in(talk)] == [State.REFUSED, State.RECEIVED]


@pytest.mark.parametrize(
    ("responses", "state", "reason", "missing"),
    [
        ([REFUSED, REFUSED, OK], State.RECEIVED, "", "arrival acknowledgement"),
        ([OK, REFUSED], State.RECEIVED, "", "arrival acknowledgement"),
        ([FAILED, REFUSED], State.REFUSED, "HTTP status 400", ""),
        ([REFUSED, FAILED], State.SENT, "", "acceptance"),
        ([REFUSED, b""], State.SENT, "", "response"),
        ([b"", OK], State.RECEIVED, "", "arrival acknowledgement"),
    ],
)
@pytest.mark.parametrize("one_connection", [False, True])
def test_the_last_attempt_counts_and_none_undoes_an_acceptance(
    responses: list[bytes], state: State, reason: str, missing: str, one_connection: bool
) -> None:
    if one_connection and responses[0]:
        talks = [s.http()]
        for response in responses:
            talks[0].send(SENT)
            if response:
                talks[0].send(response, by_client=False)
    else:
        talks = []
        for number, response in enumerate(responses):
            start_ns = talks[-1].time_ns if talks else c.START_NS
            talk = s.http(client=(c.CLIENT, 50_000 + number), start_ns=start_ns).send(SENT)
            talks.append(talk.send(response, by_client=False) if response else talk)
    (fate,) = fates_in(*talks)
    assert (fate.state, fate.reason, fate.missing) == (state, reason, missing)
    assert fate.retransmissions == len(responses) - 1
    assert ("refused" in fate.latencies) is (state is State.REFUSED)


def test_a_message_that_is_sent_by_http_and_by_tcp_is_one() -> None:
    """Its body may have another form there, the time at which it was sent may not."""
    talk = sent()
    for later, count in ((0, 1), (60, 2)):
        data = message(
            1, source=ORIGINAL_QM.bytes_le, body=b"other form", user={"sent_time": SENT_AT + later}
        )
        fates = fates_in(talk, Link(start_ns=talk.time_ns, client=c.CLIENT).send(data))
        assert [fate.transport for fate in fates] == ["http", "tcp"][:count]


def test_receipts() -> None:
    talk = sent()
    delivery = back(of_original(DELIVERY), talk)
    fate = first(talk, delivery)
    assert (fate.state, told(fate)) == (State.DELIVERED, ["sent", "accepted", "delivery receipt"])
    fate = first(talk, delivery, back(of_original(COMMITMENT), delivery, port=50_002))
    assert fate.state is State.READ
    assert fate.events[-1].what == "commitment receipt"
    assert fate.events[-1].message_class == "ACK_RECEIVE"


def test_a_receipt_about_another_message_is_about_that() -> None:
    talk = sent()
    fates = fates_in(talk, back(DELIVERY, talk))
    assert [fate.state for fate in fates] == [State.RECEIVED, State.UNKNOWN]


def test_receipts_from_elsewhere_are_not_believed() -> None:
    talk = sent()
    fate = first(talk, back(of_original(COMMITMENT), talk, src=THIRD))
    assert fate.state is State.RECEIVED
    assert fate.events[-1].doubt == f"it comes from {THIRD}, which the message was not sent to"


def test_stream_receipts() -> None:
    talk = sent(STREAM)
    fate = first(talk, back(STREAM_RECEIPT, talk))
    assert (fate.state, fate.transactional) == (State.DELIVERED, True)
    assert told(fate) == ["sent", "accepted", "stream receipt"]
    other = STREAM_RECEIPT.replace(b"4839986701558349830", b"4839986701558349831")
    assert first(talk, back(other, talk)).state is State.RECEIVED


def test_the_columns_of_receipts() -> None:
    talk = sent(STREAM)
    names = ["srmp_id", "srmp_stream", "receipt", "receipt_id", "receipt_ordinal", "http_status"]
    rows = msmqwire.read_capture(
        [capture(talk, back(STREAM_RECEIPT, talk), back(COMMITMENT, talk, port=50_002))],
        columns=names,
        where=[("kind", "==", "SrmpMessage")],
    ).to_pylist()
    stream = "uid:2744e4e1-2b48-43e8-b441-42745f280d53\\4839986701558349830"
    found = {tuple(row[name] for name in names) for row in rows}
    assert found == {
        (ORIGINAL.decode(), stream, None, None, None, None),
        (None, None, None, None, None, 200),
        ("uuid:26641@32221eda-9376-46df-b6ed-783091123831", stream, "stream receipt", None, 1, None),
        (
            "uuid:34827@ac678228-2dd6-418b-b31f-0539ffeea853",
            None,
            "commitment receipt",
            PUBLISHED.decode(),
            None,
            None,
        ),
    }
