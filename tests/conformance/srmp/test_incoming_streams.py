"""Streams that end here: figure 7, [MC-MQSRM] 3.1.1.1.2.5, and 3.1.5.1.6.3, 3.1.5.1.6.4 and 3.1.6.3."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.elements import IncomingTransactionalTransferInfo, Queue
from msmqwire.qm.model.message import TxSequenceId
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.tables import Table
from msmqwire.qm.protocols.srmp.effects import HttpRequest, HttpResponse
from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from msmqwire.qm.protocols.srmp.timers import SrmpTimer
from msmqwire.srmp.http_framer import parse_http
from tests.support.engine_harness import PEER_ADDRESS, PEER_ID, START_UTC, THIRD_ID
from tests.support.qm.queue_contents import bodies
from tests.support.srmp.srmp_harness import SrmpHarness
from tests.support.srmp.srmp_requests import ADMIN, ORDINAL, RECEIPTS, SrmpPeer

OK = 200
DELAY_MS = 500
DELIVERY = f"<deliveryReceiptRequest><sendTo>{ADMIN}</sendTo></deliveryReceiptRequest>"


def receiver(**options: object) -> tuple[SrmpHarness, SrmpPeer, Queue]:
    """A queue manager with a transactional queue whose requests are accepted, and one that sends to it."""
    harness = SrmpHarness(answers=lambda _: OK, **options)
    queue = harness.queue("orders", transactional=True)
    return harness, SrmpPeer(harness), queue


def info_of(queue: Queue) -> IncomingTransactionalTransferInfo:
    (info,) = queue.incoming.values()
    return info


def receipts(harness: SrmpHarness) -> list[tuple[str, int]]:
    """streamId and lastOrdinal of the stream receipts since the last call."""
    return [
        (sent["streamReceipt/streamId"], int(sent["streamReceipt/lastOrdinal"])) for sent in harness.take()
    ]


# -- what is accepted


@pytest.mark.requirement(
    "SRMP-3.1.5.1.6.3-01", "SRMP-3.1.5.1.6.3-02", "SRMP-3.1.5.1.6.3-05", "SRMP-3.1.5.1.6.3-06",
    "SRMP-3.1.5.1.6.4-02", "SRMP-3.1.5.1.6.4-03", "SRMP-3.1.1.1.6-01", "SRMP-3.1.1.1.6-06",
    "SRMP-3.1.1.1.6-07",
)  # fmt: skip
def test_messages_that_follow_are_accepted():
    harness, peer, queue = receiver()
    assert peer.send_in_stream(1) == OK
    info = info_of(queue)
    assert (info.queue, info.format_name.canonical.lower()) == (
        queue,
        "direct=http://here/msmq\\private$\\orders",
    )
    assert (info.sender_identifier, info.stream_owner) == (PEER_ID, PEER_ID)
    assert info.sequence_identifier == TxSequenceId(START_UTC, 1)
    assert info.sequence_identifier.time_stamp << 32 | info.sequence_identifier.ordinal == ORDINAL
    assert (info.sequence_number, info.last_access_time, info.reject_count) == (1, START_UTC, 0)
    harness.advance(3_000)
    for current in (2, 3):
        assert peer.send_in_stream(current, current - 1) == OK
    assert (info.sequence_number, info.last_access_time) == (3, START_UTC + 3)
    assert bodies(queue) == [b"s1", b"s2", b"s3"]


@pytest.mark.requirement("SRMP-3.1.5.1.6.3-03", "SRMP-3.1.5.1.6.3-02", "SRMP-3.1.1.2-03", "SRMP-3.1.1.2-04")
@pytest.mark.parametrize(
    ("current", "previous", "follows"),
    [
        (3, None, True),
        (3, 2, True),
        (3, 9, True),  # the number alone says that it is next
        (5, 2, True),
        (5, 1, True),
        (5, 0, True),
        (0xFFFFFFFF, 2, True),
        (5, None, False),
        (5, 3, False),
        (5, 4, False),
        (2, None, False),
        (2, 1, False),
        (1, None, False),
        (0, None, False),
    ],
)
def test_what_follows_message_2(current, previous, follows):
    _, peer, queue = receiver()
    for number in (1, 2):
        peer.send_in_stream(number)
    assert peer.send_in_stream(current, previous, start="", body=b"x") == OK
    assert bodies(queue) == [b"s1", b"s2"] + [b"x"] * follows
    assert info_of(queue).sequence_number == (current if follows else 2)


@pytest.mark.requirement("SRMP-3.1.5.1.6.3-04", "SRMP-3.1.5.1.6.4-04", "SRMP-3.1.1.1.2.5-03")
@pytest.mark.requirement("SRMP-2.2.5.3.4-06", "SRMP-2.2.5.3-04", "SRMP-2.2.5.3-05")
def test_stream_messages_out_of_order_are_counted_and_dropped():
    harness, peer, queue = receiver()
    for number in (1, 2):
        peer.send_in_stream(number)
    harness.advance(1_000)
    harness.take()
    wrong = [
        {"current": 2},
        {"current": 1},  # start with the present streamId
        {"current": 4},
        {"current": 4, "previous": 3},
        {"current": 3, "ordinal": ORDINAL + 1},  # a stream that never began
        {"current": 1, "ordinal": ORDINAL + 1, "start": ""},
        {"current": 2, "ordinal": ORDINAL + 1, "start": RECEIPTS},
    ]
    before = harness.rows(Table.HISTORY)
    for count, attributes in enumerate(wrong, 1):
        assert peer.send_in_stream(**attributes, services=f"<durable/>{DELIVERY}") == OK
        info = info_of(queue)
        assert (info.reject_count, info.sequence_number, info.sequence_identifier.ordinal) == (count, 2, 1)
    assert (bodies(queue), harness.take()) == ([b"s1", b"s2"], [])
    assert harness.rows(Table.HISTORY) == before
    peer.send_in_stream(3)
    assert (info.reject_count, bodies(queue)) == (0, [b"s1", b"s2", b"s3"])


@pytest.mark.requirement("SRMP-3.1.1.1.2.5-04")
def test_a_stream_message_is_answered_before_its_receipt():
    harness, peer, queue = receiver()
    request = peer.message(b"s1", peer.stream(1), services=f"<durable/>{DELIVERY}")
    srmp_of(harness.core).requested(99, parse_http(request), PEER_ADDRESS)
    assert bodies(queue) == [b"s1"]
    changes, effects = harness.core.take()  # the changes of a step are durable before its effects
    assert {Table.MESSAGE, Table.PACKET} <= set(changes.rows)
    assert [type(effect) for effect in effects] == [HttpResponse, HttpRequest]
    assert effects[0] == HttpResponse(99, OK)


@pytest.mark.requirement("SRMP-3.1.1.1.2.5-04", "SRMP-3.1.1.3.2-04", "SRMP-3.1.1.4.3-01", "SRMP-3.1.1.3.2-01")
def test_a_stream_message_is_stored_before_its_receipts():
    harness, peer, queue = receiver()
    commitment = (
        f"<commitmentReceiptRequest><sendTo>{ADMIN}</sendTo><positiveOnly/></commitmentReceiptRequest>"
    )
    assert peer.send_in_stream(1, services=f"<durable/>{DELIVERY}{commitment}") == OK
    assert harness.rows(Table.MESSAGE)
    delivery = harness.take_one()
    assert ("deliveryReceipt" in delivery, delivery.url) == (True, RECEIPTS)
    harness.advance(DELAY_MS)
    assert "streamReceipt" in harness.take_one()
    assert harness.receive(queue) == b"s1"
    decided = harness.take_one()
    assert (decided["commitmentReceipt/decision"], "streamReceipt" in decided) == ("positive", False)


@pytest.mark.requirement("SRMP-3.1.1.1.3-03")
@pytest.mark.requirement("SRMP-3.1.5.1.6.2-01")
def test_a_stream_message_without_durable_is_stored_too():
    harness, peer, _ = receiver()
    peer.send_in_stream(1, services="")
    harness.restart()
    assert bodies(harness.find_queue()) == [b"s1"]


@pytest.mark.requirement("SRMP-3.1.1.2-02")
def test_sender_and_name_distinguish_streams():
    harness, peer, queue = receiver()
    other = SrmpPeer(harness, THIRD_ID)
    peer.send_in_stream(1)
    other.send_in_stream(1)
    peer.send_in_stream(1, to="http://10.0.0.1/msmq/private$/orders", body=b"by address")
    peer.send_in_stream(2)
    assert bodies(queue) == [b"s1", b"s1", b"by address", b"s2"]
    assert len(queue.incoming) == 3


def test_the_owner_of_a_stream_may_be_another_than_the_source():
    """As in 4.4: the GUID in streamId and SourceQmGuid differ."""
    harness, peer, queue = receiver()
    for number in (1, 2):
        data = peer.message(b"s%d" % number, peer.stream(number), services="<durable/>")
        data = data.replace(f"uid:{PEER_ID}".encode(), f"uid:{THIRD_ID}".encode())
        assert harness.post(data) == OK
    assert bodies(queue) == [b"s1", b"s2"]
    assert (info_of(queue).stream_owner, info_of(queue).sender_identifier) == (THIRD_ID, PEER_ID)
    harness.advance(DELAY_MS)
    assert receipts(harness) == [(f"uid:{THIRD_ID}\\{ORDINAL}", 2)]


# -- new streams


@pytest.mark.requirement(
    "SRMP-3.1.5.1.6.3-12", "SRMP-3.1.3.2-03", "SRMP-3.1.1.1.6-08", "SRMP-3.1.5.1.6.3-07",
    "SRMP-3.1.1.1.6-10", "SRMP-3.1.5.1.6.4-02",
)  # fmt: skip
def test_a_new_stream_begins_anew():
    harness, peer, queue = receiver()
    for number in (1, 2, 3):
        peer.send_in_stream(number)
    harness.advance(DELAY_MS)
    assert info_of(queue).acknowledged == 3
    harness.take()
    peer.ordinal += 1
    other = "http://there/msmq/private$/other_receipts"
    peer.send_in_stream(1, start=other)
    info = info_of(queue)
    assert (info.sequence_number, info.acknowledged, info.send_receipts_to) == (1, 0, other)
    harness.advance(DELAY_MS)
    sent = harness.take_one()
    assert (sent.url, sent["streamReceipt/lastOrdinal"]) == (other, "1")
    assert sent["streamReceipt/streamId"] == peer.stream_id()
    peer.send_in_stream(2, start="http://there/msmq/elsewhere")  # does not begin a stream
    harness.advance(DELAY_MS)
    assert harness.take_one().url == other


def test_messages_that_are_renumbered_are_accepted_once():
    harness, peer, queue = receiver()
    for number in (1, 2, 3):
        peer.send_in_stream(number, number=number)
    peer.ordinal += 1
    assert peer.send_in_stream(1, number=2) == OK
    assert peer.send_in_stream(2, number=3) == OK
    assert peer.send_in_stream(3, number=4, body=b"s4") == OK
    assert bodies(queue) == [b"s1", b"s2", b"s3", b"s4"]
    harness.advance(DELAY_MS)
    assert receipts(harness) == [(peer.stream_id(), 3)]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("streams", [1, 15])
@pytest.mark.parametrize("remembered", [0, 10_000])
def test_a_late_copy_from_a_former_stream_keeps_the_present_one(remembered, streams, restart):
    """The message may be in MessageIDHistoryTable still or not."""
    harness, peer, queue = receiver(settings=Settings(remove_duplicate_size=remembered))
    late = peer.message(b"s1", peer.stream(1), services="<durable/>")
    harness.post(late)
    for _ in range(streams):
        peer.ordinal += 1
        assert peer.send_in_stream(1, body=b"t1") == OK
    if restart:
        harness.restart()
        peer.harness = harness
        queue = harness.find_queue("orders")
    assert harness.post(late) == OK
    assert peer.send_in_stream(2, body=b"t2") == OK
    assert bodies(queue) == [b"s1", *[b"t1"] * streams, b"t2"]
    assert info_of(queue).sequence_identifier.ordinal == 1 + streams


def test_how_many_former_streams_are_known_is_limited():
    _, peer, queue = receiver()
    for _ in range(40):
        peer.ordinal += 1
        assert peer.send_in_stream(1) == OK
    former = info_of(queue).former_streams
    assert len(former) == 16 * 8
    assert former.endswith(((peer.ordinal - 1) & 0xFFFFFFFF).to_bytes(4, "little"))


# -- coalescing


@pytest.mark.requirement(
    "SRMP-3.1.2.3-01", "SRMP-3.1.5.1.6.3-10", "SRMP-3.1.1.3.2-05", "SRMP-3.1.1.3.2-06", "SRMP-3.1.1.1.6-09",
    "SRMP-3.1.5.1.6.3-08", "SRMP-3.1.6.3-01", "SRMP-3.1.6.3-03", "SRMP-3.1.6.3-05", "SRMP-3.1.6.3-06",
)  # fmt: skip
@pytest.mark.requirement("SRMP-3.1.1.4.2-01")
def test_a_stream_receipt_waits_for_half_a_second_of_silence():
    """It acknowledges everything up to then."""
    harness, peer, queue = receiver()
    for number in (1, 2, 3):
        harness.advance(DELAY_MS - 1)
        peer.send_in_stream(number)
    info = info_of(queue)
    assert (info.acknowledged, harness.time_left(SrmpTimer.STREAM_RECEIPT_COALESCING, info.key)) == (
        0,
        DELAY_MS,
    )
    harness.advance(DELAY_MS - 1)
    assert harness.take() == []
    harness.advance(1)
    sent = harness.take_one()
    assert (sent.url, sent["path/to"]) == (RECEIPTS, RECEIPTS)
    assert (sent["streamReceipt/streamId"], sent["streamReceipt/lastOrdinal"]) == (peer.stream_id(), "3")
    assert (info.acknowledged, harness.time_left(SrmpTimer.STREAM_RECEIPT_COALESCING, info.key)) == (3, None)
    peer.send_in_stream(4)
    harness.advance(DELAY_MS)
    assert receipts(harness) == [(peer.stream_id(), 4)]


@pytest.mark.requirement("SRMP-3.1.5.1.6.3-09", "SRMP-3.1.5.1.6.3-11", "SRMP-3.1.1.1.6-11", "SRMP-3.1.6.3-07")
@pytest.mark.requirement("SRMP-3.1.1.3.2-06")
def test_a_receipt_waits_for_ten_seconds_at_most():
    harness, peer, queue = receiver()
    times = []
    for number in range(1, 61):  # one every 400 ms
        peer.send_in_stream(number)
        times += [(harness.now, last) for _, last in receipts(harness)]
        harness.advance(400)
    assert times == [(10_000, 26), (20_400, 52)]
    harness.advance(100)
    assert receipts(harness) == [(peer.stream_id(), 60)]
    assert info_of(queue).unacknowledged_since is None


@pytest.mark.requirement("SRMP-3.1.5.1.6.3-11")
def test_no_timer_runs_after_the_ten_seconds():
    harness, peer, queue = receiver()
    for number in range(1, 27):  # the last at 10 seconds
        peer.send_in_stream(number)
        harness.advance(400 if number < 26 else 0)
    assert receipts(harness) == [(peer.stream_id(), 26)]
    info = info_of(queue)
    assert (info.unacknowledged_since, info.acknowledged) == (None, 26)
    assert harness.time_left(SrmpTimer.STREAM_RECEIPT_COALESCING, info.key) is None
    harness.advance(60_000)
    assert harness.take() == []


@pytest.mark.requirement("SRMP-3.1.6.3-07", "SRMP-3.1.5.1.6.3-09")
def test_the_ten_seconds_of_a_new_stream_begin_with_it():
    harness, peer, _ = receiver()
    for number in range(1, 26):  # up to 9.6 seconds
        peer.send_in_stream(number)
        harness.advance(400)
    peer.ordinal += 1
    peer.send_in_stream(1)
    assert (harness.now, harness.take()) == (10_000, [])
    harness.advance(DELAY_MS)
    assert receipts(harness) == [(peer.stream_id(), 1)]


@pytest.mark.requirement("SRMP-3.1.1.3.2-06")
def test_the_delays_of_receipts_can_be_set():
    harness, peer, _ = receiver(stream_receipt_delay_ms=50, stream_receipt_delay_max_ms=100)
    times = []
    for number in range(1, 9):
        peer.send_in_stream(number)
        times += [harness.now for _ in harness.take()]
        harness.advance(40)
    assert times == [120, 280]


@pytest.mark.requirement("SRMP-3.1.6.3-02", "SRMP-3.1.1.3.2-03")
def test_gaps_count_only_if_nothing_bridges_them():
    harness, peer, queue = receiver()
    for current, previous in ((1, None), (2, 1), (4, 3)):
        peer.send_in_stream(current, previous)
    harness.advance(DELAY_MS)
    assert receipts(harness) == [(peer.stream_id(), 2)]
    peer.send_in_stream(4, 2)
    harness.advance(DELAY_MS)
    assert receipts(harness) == [(peer.stream_id(), 4)]
    assert bodies(queue) == [b"s1", b"s2", b"s4"]


@pytest.mark.requirement("SRMP-3.1.1.3.2-02")
def test_each_stream_has_receipts_of_its_own():
    harness, peer, _ = receiver()
    harness.queue("others", transactional=True)
    peer.send_in_stream(1)
    peer.ordinal += 1
    peer.send_in_stream(1, to="http://here/msmq/private$/others")
    peer.send_in_stream(2, to="http://here/msmq/private$/others")
    harness.advance(DELAY_MS)
    assert receipts(harness) == [(peer.stream_id(ORDINAL), 1), (peer.stream_id(ORDINAL + 1), 2)]


@pytest.mark.requirement("SRMP-3.1.6.3-08")
@pytest.mark.parametrize("number", [1, 2])
def test_what_is_sent_again_is_acknowledged_again(number):
    harness, peer, queue = receiver()
    for current in (1, 2):
        peer.send_in_stream(current)
    harness.advance(DELAY_MS)
    harness.take()
    harness.advance(60_000)
    peer.send_in_stream(number)
    peer.send_in_stream(number)
    harness.advance(DELAY_MS)
    assert receipts(harness) == [(peer.stream_id(), 2)]
    assert bodies(queue) == [b"s1", b"s2"]


def test_a_receipt_that_cannot_be_sent_is_left_out():
    harness, peer, _ = receiver()
    for start in ("http://", "http://there/", "http://there/q"):
        status = peer.send_in_stream(1, start=start)
        assert status in (OK, 400)
        peer.ordinal += 1
    harness.advance(DELAY_MS)
    assert harness.take() == []


def test_receipts_are_sent_again_until_they_arrive():
    harness, peer, _ = receiver()
    harness.answers = lambda _: 503
    peer.send_in_stream(1)
    harness.advance(DELAY_MS)
    first = harness.take_one()
    harness.answers = lambda _: OK
    harness.advance(20_000)
    assert harness.take_one().data == first.data


def test_receipts_addressed_to_their_own_receiver_have_no_effect():
    """A sender that gives the order queue of its receiver as its own."""
    harness, peer, queue = receiver()
    peer.send_in_stream(1, start="http://here/msmq/private$/order_queue$")
    harness.advance(DELAY_MS)
    assert harness.take() == []
    assert bodies(harness.find_queue("order_queue$")) == []
    assert bodies(queue) == [b"s1"]


@pytest.mark.requirement("SRMP-3.1.5.1.12-10", "SRMP-3.1.5.1.12-09")
@pytest.mark.parametrize("how", ["queue", "manager"])
def test_a_stream_message_without_room_is_accepted_when_resent(how):
    harness, peer, queue = receiver()
    peer.send_in_stream(1)
    if how == "queue":
        queue.quota = 0
    else:
        harness.core.queues.begin_flow_control()
    assert peer.send_in_stream(2, number=2) == (OK if how == "queue" else 500)
    assert peer.send_in_stream(3, number=3) == (OK if how == "queue" else 200)
    harness.advance(DELAY_MS)
    assert receipts(harness) == [(peer.stream_id(), 1)]
    queue.quota = 0xFFFFFFFF
    harness.core.queues.end_flow_control()
    for number in (2, 3):
        assert peer.send_in_stream(number, number=number) == OK
    assert bodies(queue) == [b"s1", b"s2", b"s3"]
    harness.advance(DELAY_MS)
    assert receipts(harness) == [(peer.stream_id(), 3)]


# -- hostile


def test_a_stream_with_the_number_zero_begins_as_any_other():
    harness, peer, queue = receiver()
    peer.ordinal = 0
    assert peer.send_in_stream(1, start="") == OK  # does not say where it begins
    assert bodies(queue) == []
    peer.send_in_stream(1)
    harness.advance(DELAY_MS)
    harness.restart()


def test_a_stream_without_kept_state_is_not_acknowledged():
    """The state of the oldest streams is given up when there are too many."""
    harness, peer, queue = receiver(incoming_sequences_max=3)
    for number in range(6):
        harness.queue(f"q{number}", transactional=True)
        peer.send_in_stream(1, to=f"http://here/msmq/private$/q{number}")
        peer.ordinal += 1
    harness.advance(DELAY_MS)
    assert len(receipts(harness)) == 3
    assert len(harness.rows(Table.INCOMING)) == len(harness.core.incoming_sequences.infos) == 3
    assert queue.incoming == {}


def test_stream_states_of_unauthenticated_senders_are_bounded():
    harness, peer, queue = receiver(incoming_sequences_max=10)
    for number in range(50):
        peer.ordinal += 1
        peer.send_in_stream(1, to=f"http://here/msmq/private$/orders?{number}")
        peer.send_in_stream(1, to="http://here/msmq/private$/orders")
    assert len(harness.core.incoming_sequences.infos) <= 10
    assert len(queue.incoming) <= 10
