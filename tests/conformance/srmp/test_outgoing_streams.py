"""Streams that begin here: [MC-MQSRM] 3.1.7.2.3, 3.1.5.1.8, 3.1.5.1.9, 3.1.6.2 and 3.1.7.6."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.elements import SequenceInfo
from msmqwire.qm.model.message import TxSequenceId
from msmqwire.qm.model.tables import Table
from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from msmqwire.qm.protocols.srmp.states import SrmpMessageState
from msmqwire.qm.protocols.srmp.timers import SrmpTimer
from tests.support.engine_harness import OWN_ID, START_UTC, THIRD_ID
from tests.support.srmp.srmp_harness import THERE, SentRequest, SrmpHarness
from tests.support.srmp.srmp_requests import HERE, SrmpPeer

S = SrmpMessageState
ELSEWHERE = "DIRECT=HTTP://there/msmq/private$/others"
FIRST = TxSequenceId(START_UTC, 1)
SECOND = TxSequenceId(START_UTC, 2)
OK = 200


def stream_id(sequence: TxSequenceId, owner: object = OWN_ID) -> str:
    return f"uid:{owner}\\{sequence.time_stamp << 32 | sequence.ordinal}"


RECEIPTS = "http://here/MSMQ/PRIVATE$/order_queue$"
ID, NEXT_ID = stream_id(FIRST), stream_id(SECOND)


def accepted(_: SentRequest) -> int:
    return OK


def sender(*, count: int = 3, answers: bool = True, **attributes: object) -> tuple[SrmpHarness, SrmpPeer]:
    """A queue manager that has sent a stream of messages 1, 2, ..., and the one that it sent them to."""
    harness = SrmpHarness(answers=accepted if answers else None)
    for number in range(1, count + 1):
        harness.send(b"%d" % number, transactional=True, **attributes)
    return harness, SrmpPeer(harness)


def streams(sent: list[SentRequest]) -> list[tuple[str, int, int | None, str | None]]:
    return [request.stream for request in sent]


@pytest.mark.requirement(
    "SRMP-3.1.1.2-01", "SRMP-3.1.7.2.3-01", "SRMP-3.1.7.2.3-03", "SRMP-3.1.7.2.3-04", "SRMP-3.1.7.2.3-05",
    "SRMP-3.1.7.2.3-06", "SRMP-3.1.7.2.3-11", "SRMP-3.1.1.1.6-02", "SRMP-3.1.1.1.6-03", "SRMP-3.1.7.2.4-20",
    "SRMP-3.1.3.1-03",
)  # fmt: skip
@pytest.mark.requirement("SRMP-2.2.5.3.1-02", "SRMP-2.2.5.3.2-02")
@pytest.mark.requirement("SRMP-3.1.1.1.5-02")
@pytest.mark.requirement("SRMP-2.2.2-13")
def test_stream_messages_are_numbered_from_one():
    harness, _ = sender()
    harness.send(b"regular")
    *of_stream, regular = harness.take()
    assert streams(of_stream) == [(ID, 1, None, RECEIPTS), (ID, 2, 1, None), (ID, 3, 2, None)]
    assert "stream" not in regular
    assert [int(request["path/id"][5:].partition("@")[0]) for request in harness.sent] == [1, 2, 3, 4]
    assert all(request["path/id"].endswith(f"@{OWN_ID}") for request in harness.sent)
    boundaries = {request.fields["content-type"] for request in harness.sent}
    assert len(boundaries) == 4, "the number differs from message to message"


@pytest.mark.requirement("SRMP-3.1.1.1.5-09", "SRMP-3.1.1.1.6-04", "SRMP-3.1.1.1.6-12", "SRMP-3.1.1.1.5-01")
def test_each_outgoing_queue_has_a_stream_of_its_own():
    harness, peer = sender(count=1)
    harness.send(b"x", to=ELSEWHERE, transactional=True)
    assert streams(harness.take()) == [(ID, 1, None, RECEIPTS), (NEXT_ID, 1, None, RECEIPTS)]
    assert [sent["path/id"] for sent in harness.sent] == [f"uuid:{number}@{OWN_ID}" for number in (1, 2)]
    peer.stream_receipt(NEXT_ID, 1)  # concerns one queue only
    assert (harness.where(THERE), harness.where(ELSEWHERE)) == ({"outgoing": [b"1"]}, {})


@pytest.mark.requirement("SRMP-3.1.7.2.4-20")
def test_receipts_of_a_stream_by_https_go_by_https():
    harness = SrmpHarness()
    harness.send(to="DIRECT=HTTPS://there/msmq/private$/orders", transactional=True)
    assert harness.take_one().stream[3] == "https://here/MSMQ/PRIVATE$/order_queue$"


@pytest.mark.requirement("SRMP-3.1.7.2.4-20")
def test_receipts_go_to_the_port_of_the_listener():
    harness = SrmpHarness()
    srmp_of(harness.core).urls.listens(http=8080, https=None)
    harness.send(transactional=True)
    harness.send(to="DIRECT=HTTPS://there/msmq/private$/orders", transactional=True)
    assert {sent.stream[3] for sent in harness.take()} == {"http://here:8080/MSMQ/PRIVATE$/order_queue$"}


@pytest.mark.requirement(
    "SRMP-3.1.7.2.3-14", "SRMP-3.1.7.2.3-15", "SRMP-3.1.7.2.3-16", "SRMP-3.1.7.2.3-17", "SRMP-3.1.7.2.3-18",
    "SRMP-3.1.7.2.3-19", "SRMP-3.1.7.2.3-12", "SRMP-3.1.5.1.8.2-01", "SRMP-3.1.5.1.8.2-02",
    "SRMP-3.1.5.1.8.2-03", "SRMP-3.1.5.1.8.2-04", "SRMP-3.1.5.1.8.2-05", "SRMP-3.1.5.1.8.2-06",
    "SRMP-3.1.5.1.8.1-03", "SRMP-3.1.5.1.9.2-01",
)  # fmt: skip
@pytest.mark.requirement("SRMP-2.2.5.6-03")
def test_the_queue_shows_how_far_its_stream_has_come():
    harness, peer = sender(count=1, negative_journaling_requested=True)
    info = harness.outgoing().transfer

    def shown() -> tuple[object, ...]:
        def brief(at: SequenceInfo | None) -> tuple[int, int] | None:
            return None if at is None else (at.number, at.previous)

        last_ack = info.eod_last_ack
        return (
            brief(info.eod_first_non_ack), brief(info.eod_last_non_ack), brief(info.eod_next_seq),
            last_ack and last_ack.number, info.eod_last_ack_count, info.eod_no_ack_count,
            info.eod_no_read_count,
        )  # fmt: skip

    assert shown() == ((1, 0), (1, 0), (2, 1), 0, 0, 1, 0)
    assert (
        info.eod_first_non_ack.sequence == info.eod_next_seq.sequence == info.eod_last_ack.sequence == FIRST
    )
    for body in (b"2", b"3"):
        harness.send(body, transactional=True, negative_journaling_requested=True)
    assert shown() == ((1, 0), (3, 2), (4, 3), 0, 0, 3, 0)
    harness.advance(7_000)
    peer.stream_receipt(ID, 2)
    assert shown() == ((3, 2), (3, 2), (4, 3), 2, 1, 1, 2)
    assert info.eod_last_ack_time == START_UTC + 7
    harness.advance(1_000)
    peer.stream_receipt(ID, 1)  # late
    assert shown() == ((3, 2), (3, 2), (4, 3), 2, 2, 1, 2)
    peer.stream_receipt(ID, 0)  # of nothing
    assert shown() == ((3, 2), (3, 2), (4, 3), 2, 3, 1, 2)
    assert info.eod_last_ack_time == START_UTC + 8
    peer.stream_receipt(ID, 3)
    assert shown() == (None, None, (4, 3), 3, 4, 0, 3)
    peer.final_receipt(ID, 2)
    assert shown() == (None, None, (4, 3), 3, 4, 0, 2)
    harness.send(b"4", transactional=True, negative_journaling_requested=True)
    assert shown() == ((4, 3), (4, 3), (5, 4), 3, 4, 1, 2)
    for number in (1, 3, 4):
        peer.final_receipt(ID, number)
    assert harness.where() == {}
    harness.send(b"5", transactional=True)
    assert shown() == ((1, 0), (1, 0), (2, 1), 0, 0, 1, 0)
    assert info.eod_next_seq.sequence == SECOND


@pytest.mark.requirement(
    "SRMP-3.1.7.6-01", "SRMP-3.1.7.6-02", "SRMP-3.1.1.2-05", "SRMP-3.1.1.2-06", "SRMP-3.1.5.1.8.3-02",
    "SRMP-3.1.5.1.9.1-05", "SRMP-3.1.1.1.5-03",
)  # fmt: skip
@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.requirement("SRMP-3.1.7.2.3-03")
def test_a_stream_ends_with_its_last_receipt_and_the_next_begins(wanted):
    harness, peer = sender(count=2, negative_journaling_requested=wanted)
    peer.stream_receipt(ID, 2)
    if wanted:
        peer.final_receipt(ID, 2)
        assert harness.rows(Table.SEQUENCE)
        peer.final_receipt(ID, 1)
    assert harness.rows_of_streams() == {}
    assert harness.time_left(SrmpTimer.STREAM_RECEIPT_WAIT, harness.outgoing().number) is None
    harness.send(b"3", transactional=True)
    assert streams(harness.take())[2:] == [(NEXT_ID, 1, None, RECEIPTS)]


@pytest.mark.requirement(
    "SRMP-3.1.5.1.8.1-02", "SRMP-3.1.5.1.9.1-01", "SRMP-3.1.5.1.9.1-03", "SRMP-3.1.5.1.8.1-01"
)
def test_receipts_that_concern_nothing_change_nothing():
    harness, peer = sender(negative_journaling_requested=True)
    peer.stream_receipt(ID, 1)
    before = harness.store.copy()
    for identifier, number in (
        (stream_id(SECOND), 2),  # no such stream
        (stream_id(FIRST, THIRD_ID), 2),  # that of another queue manager
        (ID, 4),  # never sent
        (ID, 0xFFFFFFFF),
    ):
        assert peer.stream_receipt(identifier, number) == OK
    for identifier, number in ((stream_id(SECOND), 1), (stream_id(FIRST, THIRD_ID), 1), (ID, 4), (ID, 0)):
        assert peer.final_receipt(identifier, number, 0x8001, "negative") == OK
    assert harness.message_states() == [
        S.WAIT_FOR_FINAL_RECEIPT, S.WAIT_FOR_STREAM_RECEIPT, S.WAIT_FOR_STREAM_RECEIPT,
    ]  # fmt: skip
    for table in (Table.OUTGOING, Table.SEQUENCE, Table.MESSAGE):
        assert dict(before.rows(table)) == harness.rows(table)
    peer.final_receipt(ID, 1)
    assert peer.final_receipt(ID, 1, 0x8001, "negative") == OK  # once more
    assert harness.where() == {"outgoing": [b"2", b"3"]}


@pytest.mark.requirement("SRMP-3.1.5.1.9.1-02", "SRMP-3.1.5.1.9-01")
def test_a_final_receipt_concerns_one_message_and_is_in_no_queue():
    harness, peer = sender(negative_journaling_requested=True)
    peer.stream_receipt(ID, 3)
    target = harness.queue("orders")
    for _ in range(2):  # it is not a duplicate either
        peer.final_receipt(ID, 2, 0x8001, "negative", to=HERE, number=50)
    assert harness.where() == {"outgoing": [b"1", b"3"], "dead transactional": [b"2"]}
    peer.final_receipt(ID, 3, 0x4000, "positive", number=50)
    assert harness.where() == {"outgoing": [b"1"], "dead transactional": [b"2"]}
    assert len(target.positions) == 0


@pytest.mark.requirement("SRMP-3.1.5.1.9.1-02")
@pytest.mark.parametrize("decision", ["positive", "negative"])
@pytest.mark.parametrize("state", list(S)[:4])
def test_a_final_receipt_before_the_stream_receipt(state, decision):
    harness, peer = sender(count=0)
    numbered = state in (S.PREPARE_TO_SEND, S.WAIT_FOR_STREAM_RECEIPT)
    harness.answers = accepted if numbered else None
    harness.send(b"1", transactional=True, negative_journaling_requested=True)
    harness.send(b"2", transactional=True)
    if state is S.PREPARE_TO_SEND:  # it is to be sent again
        harness.core.queue_manager.connection_active = False
        harness.advance(30_000)
        harness.core.queue_manager.connection_active = True
    elif state is S.WAIT_FOR_RETRANSMISSION:
        harness.answer(500)
    harness.take()
    assert (outgoing := next(iter(harness.outgoing_transfer().messages.values()))).state is state
    peer.final_receipt(ID, 1, 0x4000 if decision == "positive" else 0xC001, decision)
    assert outgoing.state is S.DONE
    dead = {"dead transactional": [b"1"]} if decision == "negative" else {}
    assert harness.where() == {"outgoing": [b"2"]} | dead
    harness.answers = accepted
    if state is S.WAIT_FOR_RESPONSE:
        harness.answer()
    harness.advance(30_000)
    expected = (ID, 2, 1, None) if numbered else (NEXT_ID, 1, None, RECEIPTS)
    assert harness.take()[0].stream == expected
    peer.stream_receipt(*expected[:2])
    assert harness.where() == dead
    assert harness.rows_of_streams() == {}


@pytest.mark.requirement("SRMP-3.1.1.3.2-07", "SRMP-3.1.5.1.8.1-03")
@pytest.mark.parametrize("late", [OK, 500, 400, None])
def test_a_receipt_ends_a_message_in_any_state(late):
    """The response to a message that is known to have arrived means nothing any more."""
    harness, peer = sender(count=2)
    harness.send(b"3", transactional=True, positive_journaling_requested=True)
    harness.answers = None
    harness.take()
    harness.advance(30_000)
    assert streams(harness.take()) == [(ID, 1, None, RECEIPTS)]
    peer.stream_receipt(ID, 1)
    assert harness.where() == {"outgoing": [b"2", b"3"]}
    assert harness.take() == []  # the response is awaited
    harness.fail() if late is None else harness.answer(late)
    assert streams(harness.take()) == [(ID, 2, 1, None)]
    harness.answer(500)
    peer.stream_receipt(ID, 3)  # one waits for the timer, the other for its turn
    assert harness.where() == {"journal": [b"3"]}
    assert harness.rows_of_streams() == {}


# -- the Stream Receipt Wait Timer


@pytest.mark.requirement(
    "SRMP-3.1.7.2.3-20", "SRMP-3.1.2.2-01", "SRMP-3.1.6.2-01", "SRMP-3.1.6.2-02", "SRMP-3.1.6.2-03",
    "SRMP-3.1.1.1.5-06", "SRMP-3.1.1.1.6-05", "SRMP-3.1.5.1.8.2-08", "SRMP-3.1.3.1-04", "SRMP-3.1.6.1-04",
    "SRMP-3.1.7.2.3-08", "SRMP-3.1.7.2.2-02",
)  # fmt: skip
@pytest.mark.requirement("SRMP-2.2.5.1.2-02")
@pytest.mark.requirement("SRMP-3.1.1.3-01", "SRMP-3.1.7.2.3-19", "DMPR-3.1.1.4-10")
def test_stream_messages_without_a_receipt_are_resent_unchanged():
    harness, _ = sender(count=2, time_to_reach_queue=0xFFFFFFFF)
    originals = [sent.data for sent in harness.take()]
    info, number = harness.outgoing().transfer, harness.outgoing().number
    intervals = [30, 30, 30, 300, 300, 300, 1800, 1800, 1800, 21600, 21600]
    for count, (this, following) in enumerate(zip(intervals, [*intervals[1:], 21600], strict=True), 1):
        assert (info.eod_resend_interval, info.eod_resend_time) == (this, harness.utc + this)
        assert info.eod_resend_count == min(count, 10)
        assert harness.time_left(SrmpTimer.STREAM_RECEIPT_WAIT, number) == this * 1000
        harness.advance(this * 1000 - 1)
        assert harness.take() == []
        harness.advance(1)
        assert [sent.data for sent in harness.take()] == originals
        assert (info.eod_resend_interval, info.eod_resend_time) == (following, harness.utc + following)
    assert info.eod_no_ack_count == 2


@pytest.mark.requirement("SRMP-3.1.5.1.8.2-07")
def test_a_receipt_of_new_messages_resets_the_resend_interval():
    harness, peer = sender()
    info, number = harness.outgoing().transfer, harness.outgoing().number
    harness.advance(90_000)
    assert info.eod_resend_interval == 300
    peer.stream_receipt(ID, 0)  # nothing new
    assert (info.eod_resend_interval, harness.time_left(SrmpTimer.STREAM_RECEIPT_WAIT, number)) == (
        300,
        300_000,
    )
    peer.stream_receipt(ID, 2)
    assert (info.eod_resend_interval, harness.time_left(SrmpTimer.STREAM_RECEIPT_WAIT, number)) == (
        30,
        30_000,
    )
    harness.take()
    harness.advance(30_000)
    assert harness.take_one().stream == (ID, 3, 2, None)


@pytest.mark.requirement("SRMP-3.1.1.1.5-07")
def test_the_resend_times_can_be_set():
    harness = SrmpHarness(answers=accepted, resend_timer_table=(5, 7))
    harness.send(transactional=True)
    harness.take()
    times = []
    for _ in range(30):
        harness.advance(1_000)
        times += [harness.now // 1000 for _ in harness.take()]
    assert times == [5, 12, 19, 26]


@pytest.mark.requirement("SRMP-3.1.6.2-01")
def test_new_messages_wait_behind_those_that_are_sent_again():
    harness, _ = sender(count=2)
    harness.answers = None
    harness.advance(30_000)
    harness.send(b"3", transactional=True)
    harness.answers = accepted
    harness.answer()
    harness.run()
    assert [sent.stream[1] for sent in harness.take()] == [1, 2, 1, 2, 3]


# -- messages that are given up


@pytest.mark.requirement("SRMP-3.1.7.2.3-07", "SRMP-3.1.1.2-04")
@pytest.mark.requirement("SRMP-2.2.5.3.3-02")
def test_the_gap_of_a_message_that_has_expired_is_bridged():
    harness, _ = sender(count=0)
    for number in range(1, 6):
        limit = 25 if number in (3, 4) else 1_000
        harness.send(b"%d" % number, transactional=True, time_to_reach_queue=limit)
    harness.take()
    harness.advance(30_000)
    assert streams(harness.take()) == [(ID, 1, None, RECEIPTS), (ID, 2, 1, None), (ID, 5, 2, None)]
    harness.send(b"6", transactional=True)
    assert streams(harness.take()) == [(ID, 6, 5, None)]


@pytest.mark.requirement("SRMP-3.1.7.2.3-09")
def test_the_gap_behind_the_last_acknowledged_message_is_bridged():
    harness, peer = sender(count=2)
    harness.send(b"3", transactional=True, time_to_reach_queue=25)
    harness.send(b"4", transactional=True)
    peer.stream_receipt(ID, 2)
    harness.take()
    harness.advance(31_000)
    assert streams(harness.take()) == [(ID, 4, 2, None)]


@pytest.mark.requirement("SRMP-3.1.7.2.3-09")
def test_the_next_message_follows_the_last_acknowledged_one():
    """All between them are gone."""
    harness, peer = sender(count=2, negative_journaling_requested=True)
    harness.send(b"3", transactional=True, time_to_reach_queue=10)
    peer.stream_receipt(ID, 2)
    harness.advance(11_000)
    harness.send(b"4", transactional=True)
    assert harness.sent[-1].stream == (ID, 4, 2, None)


@pytest.mark.requirement("SRMP-3.1.7.2.3-10")
@pytest.mark.parametrize("how", ["expired", "refused", "deleted"])
def test_a_dropped_first_message_starts_a_new_stream(how):
    """The messages after it are sent in the new stream."""
    harness, peer = sender(count=0)
    first = 25 if how == "expired" else 1_000
    for number in range(1, 4):
        limit = first if number == 1 else 1_000
        harness.send(b"%d" % number, transactional=True, time_to_reach_queue=limit)
    identifiers = [sent["path/id"] for sent in harness.take()]
    harness.answers = (lambda sent: 400 if sent.stream[0] == ID else OK) if how == "refused" else accepted
    if how == "deleted":
        position = next(iter(harness.outgoing_transfer().messages))
        harness.delete_message(position, 0x8001)
    harness.advance(30_000)
    again = harness.take()
    if how == "refused":
        assert again.pop(0).stream == (ID, 1, None, RECEIPTS)
    assert streams(again) == [(NEXT_ID, 1, None, RECEIPTS), (NEXT_ID, 2, 1, None)]
    assert [sent["path/id"] for sent in again] == identifiers[1:]  # duplicates, where they have arrived
    assert [sent.body for sent in again] == [b"2", b"3"]
    peer.stream_receipt(ID, 3)  # of the former stream
    assert harness.where() == {"outgoing": [b"2", b"3"]}
    peer.stream_receipt(NEXT_ID, 2)
    assert harness.where() == {}
    assert harness.rows_of_streams() == {}


def test_a_renumbered_message_under_way_is_resent_as_renumbered():
    harness, _ = sender(count=0, answers=False)
    harness.send(b"1", transactional=True, time_to_reach_queue=10)
    harness.answer()
    harness.send(b"2", transactional=True)
    harness.advance(11_000)
    assert harness.where() == {"outgoing": [b"2"]}
    assert streams(harness.take()) == [(ID, 1, None, RECEIPTS), (ID, 2, 1, None)]
    harness.answer(OK)  # says nothing about the message of the new stream
    assert harness.take_one().stream == (NEXT_ID, 1, None, RECEIPTS)
    assert harness.only_message().state is S.WAIT_FOR_RESPONSE


@pytest.mark.parametrize("wanted", [False, True])
def test_400_in_the_middle_of_a_stream(wanted):
    harness, peer = sender(count=0)
    harness.answers = lambda sent: 400 if sent.body == b"2" else OK
    harness.send(b"1", b"2", b"3", transactional=True, negative_journaling_requested=wanted)
    assert streams(harness.take()) == [(ID, 1, None, RECEIPTS), (ID, 2, 1, None), (ID, 3, 1, None)]
    dead = {"dead transactional": [b"2"]} if wanted else {}
    assert harness.where() == {"outgoing": [b"1", b"3"]} | dead
    peer.stream_receipt(ID, 3)
    for number in (1, 3):
        peer.final_receipt(ID, number)
    assert harness.where() == dead
    assert harness.rows_of_streams() == {}


@pytest.mark.parametrize("restart", [False, True])
def test_a_final_receipt_matches_the_number_before_renumbering(restart):
    """The receiver that accepted it in the former stream knows it by that number only.

    Copies for two queues have one identifier, and streams of their own.
    """
    harness, peer = sender(count=0)
    for body, wanted, limit in ((b"1", False, 10), (b"2", True, 1_000)):
        harness.send(
            body, to=f"{THERE},{ELSEWHERE}", transactional=True, negative_journaling_requested=wanted,
            time_to_reach_queue=limit,
        )  # fmt: skip
    first, second = harness.take()[:2]
    assert first.stream[0] != second.stream[0]
    harness.advance(11_000)
    again = harness.take()
    assert len({sent["path/id"] for sent in again}) == 1
    for sent in again:
        assert sent.stream[1:3] == (1, None)
        peer.stream_receipt(sent.stream[0], 1)
    assert harness.message_states() == harness.message_states(ELSEWHERE) == [S.WAIT_FOR_FINAL_RECEIPT]
    if restart:
        harness.restart()
        peer = SrmpPeer(harness)
    peer.final_receipt(stream_id(FIRST, THIRD_ID), 2, 0x8001, "negative", identifier=again[0]["path/id"])
    peer.final_receipt(first.stream[0], 2, 0x8001, "negative", identifier=again[0]["path/id"])
    assert harness.where(THERE) == {"dead transactional": [b"2"]}
    assert harness.where(ELSEWHERE) == {"outgoing": [b"2"], "dead transactional": [b"2"]}
    peer.final_receipt(second.stream[0], 2, identifier=again[0]["path/id"])
    assert harness.where(ELSEWHERE) == {"dead transactional": [b"2"]}
    assert harness.rows_of_streams() == {}


def test_the_last_number_of_a_stream():
    harness, peer = sender(count=1)
    harness.outgoing_transfer().next_number = 0xFFFFFFFE
    harness.send(b"last", transactional=True)
    harness.send(b"next", transactional=True)
    assert [sent.stream[:2] for sent in harness.take()] == [(ID, 1), (ID, 0xFFFFFFFE)]
    harness.advance(20_000)
    assert harness.take() == []
    peer.stream_receipt(ID, 0xFFFFFFFE)
    assert harness.take_one().stream == (NEXT_ID, 1, None, RECEIPTS)


def test_the_sender_gets_one_report_of_each_final_outcome():
    """An application is notified once that its message has arrived or was given up."""
    harness, peer = sender(count=0)
    heard: list[tuple[int, bool]] = []
    harness.core.outcome.when_sent = lambda identifier, arrived, _: heard.append(
        (identifier.uniquifier, arrived)
    )
    for wanted in (False, True):
        harness.send(transactional=True, negative_journaling_requested=wanted)
    peer.stream_receipt(ID, 2)
    assert heard == [(1, True), (2, True)]
    harness.purge(harness.outgoing())  # one that only its final receipt is awaited for
    harness.send(transactional=True)
    harness.purge(harness.outgoing())
    assert heard == [(1, True), (2, True), (3, False)]
