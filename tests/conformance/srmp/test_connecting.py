"""When outgoing queues send, pause and resume, and where they connect to: 3.1.6.1, 3.1.7.4 to 3.1.7.9."""

from __future__ import annotations

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.names import parse_format_name
from msmqwire.qm.model.effects import Resolve
from msmqwire.qm.model.enumerations import (
    AcknowledgementsRequested,
    ConnectionStatus,
    DeliveryGuarantee,
    OutgoingQueueState,
)
from msmqwire.qm.protocols.srmp.effects import HttpRequest
from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from msmqwire.qm.protocols.srmp.states import SrmpMessageState
from msmqwire.qm.protocols.srmp.timers import SrmpTimer
from tests.support.engine_harness import PEER_ADDRESS
from tests.support.srmp.srmp_harness import THERE, SrmpHarness
from tests.support.srmp.srmp_requests import SrmpPeer

S, Q = SrmpMessageState, OutgoingQueueState
OK = 200
RETRY_MS = 20_000


# -- what is served


@pytest.mark.requirement("SRMP-3.1.7.7-01", "SRMP-3.1.7.9-03", "SRMP-3.1.1.1.3-04", "SRMP-3.1.7-01")
@pytest.mark.parametrize(
    ("name", "url"),
    [
        (THERE, "http://there/msmq/private$/orders"),
        ("DIRECT=HTTPS://there/msmq/orders", "https://there/msmq/orders"),
        ("DIRECT=HTTP://there:8080/msmq/private$/Orders", "http://there:8080/msmq/private$/Orders"),
        (r"DIRECT=http://10.0.0.9/msmq\private$\orders", "http://10.0.0.9/msmq/private$/orders"),
        (r"DIRECT=TCP:10.0.0.9\private$\orders", None),
        (r"DIRECT=OS:there\private$\orders", None),
    ],
)
def test_queues_with_http_names_are_served(name, url):
    harness = SrmpHarness()
    harness.send(b"m", to=name)
    assert [sent.url for sent in harness.take()] == ([url] if url else [])
    assert (not harness.effects_of(HttpRequest)) == (url is None)
    if url is None:
        assert srmp_of(harness.core).transfers == {}


@pytest.mark.requirement("SRMP-3.1.7.7-04", "SRMP-3.1.7.9-01", "SRMP-3.1.7.9-06", "SRMP-3.1.7.7-05")
def test_the_first_message_connects():
    harness = SrmpHarness()
    queue = harness.outgoing()
    assert (queue.state, list(queue.connection_history)) == (Q.INACTIVE, [])
    harness.send()
    assert queue.state is Q.WAITING
    assert harness.time_left(SrmpTimer.SESSION_CLEANUP, queue.number) is None
    assert [entry.status for entry in queue.connection_history] == [ConnectionStatus.IN_PROCESS]
    srmp_of(harness.core).reached(harness.sent[-1].number)
    assert queue.state is Q.CONNECTED
    assert harness.time_left(SrmpTimer.SESSION_CLEANUP, queue.number) == 300_000
    assert harness.effects_of(Resolve) == []  # the transport finds the host
    harness.answer()
    assert [entry.status for entry in queue.connection_history] == [
        ConnectionStatus.IN_PROCESS, ConnectionStatus.ESTABLISHED,
    ]  # fmt: skip
    harness.send()
    harness.answer()
    assert len(queue.connection_history) == 2


@pytest.mark.requirement("SRMP-3.1.7.9-01", "SRMP-3.1.7.9-06")
def test_an_answer_shows_that_a_queue_is_connected():
    harness = SrmpHarness()
    harness.send()
    queue = harness.outgoing()
    harness.core.messages.purge(queue)
    assert queue.state is Q.WAITING
    harness.answer()
    assert queue.state is Q.CONNECTED
    assert harness.time_left(SrmpTimer.SESSION_CLEANUP, queue.number) == 300_000


@pytest.mark.requirement("SRMP-3.1.7.9-06")
@pytest.mark.parametrize("deleted", [False, True])
def test_a_queue_whose_connection_fails_is_inactive(deleted):
    harness = SrmpHarness()
    harness.send()
    queue = harness.outgoing()
    if deleted:
        harness.core.messages.purge(queue)
    assert queue.state is Q.WAITING
    harness.fail()
    assert queue.state is Q.INACTIVE
    assert harness.time_left(SrmpTimer.SESSION_CLEANUP, queue.number) is None


def test_a_pause_while_a_queue_connects_stays():
    harness = SrmpHarness()
    harness.send()
    queue = harness.outgoing()
    harness.core.queues.pause(queue)
    srmp_of(harness.core).reached(harness.sent[-1].number)
    assert queue.state is Q.ON_HOLD
    assert harness.time_left(SrmpTimer.SESSION_CLEANUP, queue.number) is None


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_late_connection_for_a_message_that_is_gone(is_gone):
    """A stored message is read again to say that it leaves: of one that is gone nothing is said."""
    harness = SrmpHarness()
    harness.send(delivery_guarantee=DeliveryGuarantee.RECOVERABLE)
    harness = harness.restarted()
    request = harness.take_one().number
    leaving = []
    srmp_of(harness.core).sending._outcome.when_transmitted = lambda *sent: leaving.append(sent)
    if is_gone:
        harness.purge(harness.outgoing())
        harness.run()
    srmp_of(harness.core).reached(request)
    assert len(leaving) == (not is_gone)
    assert harness.outgoing().state is Q.CONNECTED


@pytest.mark.requirement("SRMP-3.1.1.4.2-02", "SRMP-3.1.7.2.5-01")
def test_a_queue_sends_one_request_at_a_time():
    harness = SrmpHarness()
    for body in (b"1", b"2", b"3"):
        harness.send(body)
    harness.send(b"other", to="DIRECT=HTTP://there/msmq/private$/other")
    for expected in ([b"1", b"other"], [b"2"], [b"3"], []):
        taken = harness.take()
        assert [sent.body for sent in taken] == expected
        if taken:
            harness.answer(OK, taken[0])


@pytest.mark.requirement("SRMP-3.1.7.8-01")
def test_messages_are_sent_by_priority():
    harness = SrmpHarness()
    harness.core.queues.take_offline()
    for priority in (3, 0, 7, 3):
        harness.send(b"%d" % priority, priority=priority)
    harness.core.queues.bring_online()
    harness.answers = lambda _: OK
    harness.advance(RETRY_MS)
    assert [sent.body for sent in harness.take()] == [b"7", b"3", b"3", b"0"]
    assert len(harness.core.dispatch) == 0


# -- the Retransmission Timer


@pytest.mark.requirement("SRMP-3.1.2.1-01", "SRMP-3.1.3.1-05", "SRMP-3.1.1.1.5-08")
def test_the_retransmission_timeout_can_be_set():
    harness = SrmpHarness(retransmission_timeout_ms=3_000)
    harness.send()
    harness.answer(503)
    harness.advance(2_999)
    assert len(harness.take()) == 1
    harness.advance(1)
    assert len(harness.take()) == 1


@pytest.mark.requirement("SRMP-3.1.6.1-01", "SRMP-3.1.6.1-02", "SRMP-3.1.6.1-03")
def test_the_retransmission_timer_reconnects_and_sends_all():
    harness = SrmpHarness()
    for body in (b"1", b"2"):
        harness.send(body)
    harness.fail()
    harness.take()
    assert harness.outgoing().state is Q.INACTIVE
    harness.answers = lambda _: OK
    harness.advance(RETRY_MS)
    assert [sent.body for sent in harness.take()] == [b"1", b"2"]
    assert harness.outgoing().state is Q.CONNECTED
    number = harness.outgoing().number
    assert harness.time_left(SrmpTimer.RETRANSMISSION, number) == RETRY_MS
    harness.advance(RETRY_MS)
    assert harness.time_left(SrmpTimer.RETRANSMISSION, number) is None  # nothing is there to be sent


def test_a_queue_of_expired_messages_sends_a_new_one_at_once():
    harness = SrmpHarness()
    harness.send(b"1", time_to_reach_queue=5)
    harness.fail()
    harness.advance(RETRY_MS)
    assert harness.where() == {}
    harness.take()
    harness.send(b"2")
    assert harness.take_one().body == b"2"


@pytest.mark.requirement("SRMP-3.1.7.1-01")
def test_a_lost_connection_is_a_failed_attempt():
    harness = SrmpHarness()
    harness.send(b"m")
    srmp_of(harness.core).failed(harness.sent[-1].number, "the connection was lost")
    harness.run()
    assert harness.message_states() == [S.WAIT_FOR_RETRANSMISSION]
    srmp_of(harness.core).failed(99, "unknown")
    srmp_of(harness.core).answered(99, OK)
    srmp_of(harness.core).answered(harness.sent[-1].number, OK)  # twice
    assert harness.run() == []
    assert harness.message_states() == [S.WAIT_FOR_RETRANSMISSION]


# -- pausing


@pytest.mark.requirement(
    "SRMP-3.1.7.4-01", "SRMP-3.1.7.4-02", "SRMP-3.1.7.7-02", "SRMP-3.1.7.5-01", "SRMP-3.1.7.5-02"
)
@pytest.mark.parametrize("answer", [OK, 500, None])
@pytest.mark.requirement("SRMP-3.1.7-01")
def test_a_paused_queue_sends_nothing_until_it_is_resumed(answer):
    harness = SrmpHarness()
    harness.send(b"1", transactional=True)
    harness.answer()
    harness.send(b"2", transactional=True)
    queue = harness.outgoing()
    harness.core.queues.pause(queue)
    harness.take()
    assert queue.state is Q.ON_HOLD
    for timer in (SrmpTimer.STREAM_RECEIPT_WAIT, SrmpTimer.RETRANSMISSION, SrmpTimer.SESSION_CLEANUP):
        assert harness.time_left(timer, queue.number) is None
    if answer is not None:
        harness.answer(answer)
    harness.send(b"3", transactional=True)
    harness.advance(3_600_000)
    assert (queue.state, harness.take(), len(harness.core.dispatch)) == (Q.ON_HOLD, [], 0)
    if answer is None:
        harness.answer(500)
    harness.answers = lambda _: OK
    harness.core.queues.resume(queue)
    bodies = [sent.body for sent in harness.take()]
    assert bodies == ([b"3"] if answer == OK else [b"2", b"3"])
    assert queue.state is Q.CONNECTED
    harness.advance(30_000)
    assert [sent.body for sent in harness.take()] == [b"1", b"2", b"3"]  # without receipt


def test_receipts_for_a_paused_queue_start_none_of_its_timers():
    harness = SrmpHarness(answers=lambda _: OK)
    harness.send(b"1", b"2", transactional=True)
    identifier, queue = harness.sent[0].stream[0], harness.outgoing()
    harness.core.queues.pause(queue)
    SrmpPeer(harness).stream_receipt(identifier, 1)
    assert harness.where() == {"outgoing": [b"2"]}
    assert harness.time_left(SrmpTimer.STREAM_RECEIPT_WAIT, queue.number) is None
    SrmpPeer(harness).stream_receipt(identifier, 2)
    assert harness.where() == {}


@pytest.mark.requirement("SRMP-3.1.7.2.3-20", "SRMP-3.1.6.2-01")
def test_a_message_sent_before_a_pause_is_resent_later():
    """An answer that comes after the pause does not count: the timer of stream receipts sends it again."""
    harness = SrmpHarness()
    harness.send(b"m", transactional=True)
    queue = harness.outgoing()
    harness.take()
    harness.core.queues.pause(queue)
    harness.core.queues.resume(queue)
    harness.answer(OK)
    assert harness.time_left(SrmpTimer.STREAM_RECEIPT_WAIT, queue.number) == 30_000
    harness.advance(30_000)
    assert harness.take_one().body == b"m"


@pytest.mark.parametrize("kind", ["regular", "stream"])
def test_messages_of_a_paused_queue_expire(kind):
    harness = SrmpHarness()
    harness.core.queues.pause(harness.outgoing())
    harness.send(
        b"m", transactional=kind == "stream", time_to_reach_queue=5, negative_journaling_requested=True
    )
    harness.advance(6_000)
    assert harness.where() == {"dead transactional" if kind == "stream" else "dead": [b"m"]}


def test_a_paused_queue_stays_so_over_a_restart():
    harness = SrmpHarness()
    harness.core.queues.pause(harness.outgoing())
    harness.send(b"m", recoverable=True)
    harness.restart()
    harness.advance(100_000)
    assert harness.take() == []
    harness.core.queues.resume(harness.outgoing())
    assert harness.take_one().body == b"m"


# -- redirections


OUTBOUND = {
    "OutboundRedirectionCollection": [
        {"From": "http://there/*", "To": "http://relay:8080/msmq/anything"},
        {"From": "http://exact/msmq/private$/q", "To": "http://relay2"},
        {"From": "http://nev*r/msmq/q", "To": "http://relay3"},
    ],
    "OutboundRedirectionExceptionCollection": ["http://there/msmq/private$/direct*"],
}


@pytest.mark.requirement(
    "SRMP-3.1.7.9-04", "SRMP-3.1.7.9-05", "SRMP-3.1.1.1.10-01", "SRMP-3.1.1.1.10.1-01", "SRMP-3.1.1.1.9-01"
)
@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("http://there/msmq/private$/orders", "http://relay:8080/msmq/private$/orders"),
        ("http://THERE/msmq/private$/orders", "http://relay:8080/msmq/private$/orders"),
        ("http://there/msmq/private$/direct1", None),
        ("http://exact/msmq/private$/q", "http://relay2/msmq/private$/q"),
        ("http://exact/msmq/private$/q2", None),
        ("http://never/msmq/q", None),
        ("https://there/msmq/q", None),
    ],
)
@pytest.mark.requirement("SRMP-2.1.1-06")
def test_connections_are_redirected_and_messages_are_not(name, url):
    harness = SrmpHarness(redirections=OUTBOUND)
    harness.send(to=f"DIRECT={name}")
    sent = harness.take_one()
    assert sent.url == (url or name)
    assert sent["path/to"] == name
    assert sent.fields["host"].lower() == name.split("/")[2].lower()


@pytest.mark.requirement(
    "SRMP-3.1.7.2.4-21", "SRMP-3.1.7.2.4-22", "SRMP-3.1.1.1.8-01", "SRMP-3.1.1.1.10.3-01"
)
@pytest.mark.parametrize("default", ["", "http://outside/msmq/private$/default"])
def test_receipts_go_to_another_url(default):
    replaced = "http://outside/msmq/private$/receipts"
    redirections = {
        "StreamReceiptURLReplacementCollection": [{"From": "http://there/*", "To": replaced}],
        "DefaultStreamReceiptURLReplacement": default,
    }
    harness = SrmpHarness(redirections=redirections)
    for name, expected in (
        ("DIRECT=HTTP://there/msmq/private$/orders", replaced),
        ("DIRECT=HTTP://other/msmq/private$/orders", default or "http://here/MSMQ/PRIVATE$/order_queue$"),
    ):
        harness.send(to=name, transactional=True)
        assert harness.take_one().stream[3] == expected


# -- what can't be sent


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.requirement("SRMP-3.1.7.2-01")
def test_a_message_unfit_for_srmp_is_dropped_and_blocks_none(stream):
    harness = SrmpHarness(answers=lambda _: OK)
    harness.send(b"1", transactional=stream)
    admin = parse_format_name(r"DIRECT=OS:here\private$\admin")
    asked = AcknowledgementsRequested.ACK_POS_ARRIVAL
    harness.send(
        b"2", transactional=stream, negative_journaling_requested=True, administration=admin,
        acknowledgements_requested=asked,
    )  # fmt: skip
    harness.send(b"3", transactional=stream)
    assert [sent.body for sent in harness.take()] == [b"1", b"3"]
    if stream:
        assert [sent.stream[1:3] for sent in harness.sent] == [(1, None), (3, 1)]
    dead = {"dead transactional" if stream else "dead": [b"2"]}
    assert harness.where() == dead | ({"outgoing": [b"1", b"3"]} if stream else {})


@pytest.mark.requirement("DMPR-3.1.1.12-74")
def test_what_an_application_gives_as_an_envelope_is_ignored():
    harness = SrmpHarness()
    harness.send(b"m", soap_envelope="<own/>", soap_compound_message=b"own", soap_header="h", soap_body="b")
    sent = harness.take_one()
    assert (sent["path/to"], sent.body) == ("http://there/msmq/private$/orders", b"m")


def test_a_message_too_large_for_a_packet_is_refused_on_sending():
    harness = SrmpHarness()
    with pytest.raises(InvalidValue):
        harness.send(bytes(5 << 20))
    assert harness.where() == {}


# -- unknown peers


def test_receipts_for_unknown_peers_wait_longer_each_time():
    harness = SrmpHarness(answers=lambda _: None)
    harness.queue("orders")
    delivery = "<deliveryReceiptRequest><sendTo>http://nowhere/msmq/q</sendTo></deliveryReceiptRequest>"
    SrmpPeer(harness).send(services=delivery)
    delays, last = [], harness.now
    for _ in range(7):
        harness.fail()
        count = len(harness.sent)
        while len(harness.sent) == count:
            harness.advance(1_000)
        delays.append((harness.now - last) // 1000)
        last = harness.now
    assert delays == [20, 20, 40, 80, 160, 320, 600]


def test_places_tried_for_one_peer_are_bounded():
    harness = SrmpHarness(unreachable_per_origin_max=5, unreachable_max=8)
    harness.queue("orders")
    for origin, address in ((0, PEER_ADDRESS), (1, "10.9.0.1")):
        peer = SrmpPeer(harness, address=address)
        for number in range(12):
            uri = f"http://nowhere{origin}-{number}/msmq/q"
            services = f"<deliveryReceiptRequest><sendTo>{uri}</sendTo></deliveryReceiptRequest>"
            assert peer.send(number=100 * origin + number, services=services) == OK
            for sent in harness.take():
                harness.fail(sent)
    assert len(srmp_of(harness.core).transfers) <= 8
    by_origin = [transfer.queue.asked_by for transfer in srmp_of(harness.core).transfers.values()]
    assert max(by_origin.count(origin) for origin in set(by_origin)) <= 5
    assert harness.core.context.troubles["unreachable"] > 0
