"""Messages that are redirected or passed on: [MC-MQSRM] 3.1.5.1.3."""

from __future__ import annotations

import re

import pytest

from msmqwire.constants import HResult
from msmqwire.qm.model import access
from msmqwire.qm.model.enumerations import OutgoingQueueState, QueuePrivacy
from msmqwire.qm.model.tables import Table
from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from msmqwire.qm.protocols.srmp.states import SrmpMessageState
from tests.support.engine_harness import OWN_ID
from tests.support.qm.queue_contents import bodies
from tests.support.srmp.srmp_harness import SrmpHarness
from tests.support.srmp.srmp_requests import ADMIN, SrmpPeer, date

OK, BAD_REQUEST, SERVER_ERROR = 200, 400, 500
FAR = "http://there/msmq/private$/orders"
ALL = (
    f"<durable/><deliveryReceiptRequest><sendTo>{ADMIN}</sendTo></deliveryReceiptRequest>"
    f"<commitmentReceiptRequest><sendTo>{ADMIN}</sendTo><positiveOnly/><negativeOnly/></commitmentReceiptRequest>"
)


def forwarder(**options: object) -> tuple[SrmpHarness, SrmpPeer]:
    harness = SrmpHarness(transparent_store_and_forward=True, **options)
    return harness, SrmpPeer(harness)


def inbound(*pairs: tuple[str, str]) -> dict[str, object]:
    return {"InboundRedirectionCollection": [{"From": source, "To": to} for source, to in pairs]}


# -- transparent store and forward


@pytest.mark.requirement("SRMP-3.1.5.1.3-03", "SRMP-3.1.1.1.7-01")
@pytest.mark.parametrize("stream", [False, True])
def test_a_message_for_another_computer_is_passed_on_as_it_came(stream):
    harness, peer = forwarder()
    extra = [peer.stream(1)] if stream else []
    data = peer.message(b"body", *extra, to=FAR, number=7, services=ALL, msmq="<Journal/><DeadLetter/>")
    assert harness.post(data) == OK
    sent = harness.take_one()
    assert (sent.url, sent.line) == (FAR, "POST /msmq/private$/orders HTTP/1.1")
    assert sent.envelope == data[data.index(b"<se:Envelope") : data.index(b"</se:Envelope>") + 14]
    assert (sent.body, sent.fields["host"], sent.fields["via"]) == (b"body", "there", "1.1 here")
    assert harness.message_states() == [SrmpMessageState.WAIT_FOR_RESPONSE]
    harness.answer()
    assert harness.take() == []  # no receipt of this computer
    assert harness.where() == {}  # no journal either
    assert len(harness.core.history) == 0
    assert harness.rows(Table.INCOMING) == harness.rows_of_streams() == {}


@pytest.mark.requirement("SRMP-3.1.5.1.3-03")
def test_duplicates_are_passed_on():
    harness, peer = forwarder(answers=lambda _: OK)
    for _ in range(2):
        assert peer.send(to=FAR, number=7) == OK
    assert len(harness.take()) == 2


@pytest.mark.requirement("SRMP-3.1.5.1.3-03")
def test_a_repetition_of_what_still_waits_is_not_passed_on():
    harness, peer = forwarder()

    def post(number, body=b"m"):
        assert peer.send_in_stream(number, to=FAR, number=number, body=body) == OK

    for number in (1, 2, 1, 2):
        post(number)
    post(2, b"another")
    assert [sent.body for sent in harness.take()] == [b"m"]  # the first, which gets no answer
    harness.restart()
    post(2)
    harness.answers = lambda _: OK
    harness.answer()
    assert [(sent.stream[1], sent.body) for sent in harness.take()] == [(1, b"m"), (2, b"m"), (2, b"another")]
    post(2)  # it may have been lost
    assert [sent.stream[1] for sent in harness.take()] == [2]


@pytest.mark.requirement("SRMP-3.1.5.1.3-03")
def test_stream_messages_are_forwarded_in_order_after_failures():
    harness, peer = forwarder(answers=lambda _: OK)
    for number in (1, 2, 3):
        peer.send_in_stream(number, to=FAR)
        if number == 1:
            harness.answers = None
    harness.answer(500)
    harness.answers = lambda _: OK
    harness.advance(20_000)
    assert [sent.stream[1] for sent in harness.take()] == [1, 2, 2, 3]
    assert harness.where() == {}


def test_a_durable_message_that_is_passed_on_is_stored_first():
    harness, peer = forwarder()
    assert peer.send(b"m", to=FAR, services="<durable/>") == OK
    assert [sent.body for sent in harness.take()] == [b"m"]
    harness.restart()
    assert harness.take_one().body == b"m"


def test_a_message_expired_in_transit_is_dead_lettered_if_asked():
    harness, peer = forwarder()
    for stream, where in ((False, "dead"), (True, "dead transactional")):
        extra = [peer.stream(1)] if stream else []
        assert peer.send(b"m", *extra, to=FAR, reach_queue=5, msmq="<DeadLetter/>") == OK
        harness.fail()
        harness.advance(6_000)
        assert harness.where()[where] == [b"m"]
    assert peer.send(b"late", to=FAR, sent=harness.utc - 10, reach_queue=5) == OK
    assert [sent.body for sent in harness.take()] == [b"m"]


@pytest.mark.parametrize(
    ("fields", "passed"),
    [
        ("", True),
        ("Via: 1.1 a\r\n", True),
        (f"Via: {', '.join(f'1.1 p{number}' for number in range(15))}\r\n", True),
        (f"Via: {', '.join(f'1.1 p{number}' for number in range(16))}\r\n", False),
        ("Via: 1.1 p\r\n" * 15, True),
        ("Via: 1.1 p\r\n" * 16, False),
        ("vIA: 1.1 p, 1.0 q\r\n" * 8, False),
    ],
)
def test_a_message_that_goes_round_in_circles_is_refused(fields, passed):
    harness, peer = forwarder()
    assert peer.send(to=FAR, fields=fields) == (OK if passed else BAD_REQUEST)
    assert len(harness.take()) == passed
    if passed:
        values = re.findall(rb"\r\nvia: ([^\r]*)", harness.sent[-1].data, re.IGNORECASE)
        assert values[-1] == b"1.1 here"
        assert len(values) == fields.lower().count("via:") + 1


def test_where_a_message_came_over_is_passed_on_in_one_line_each():
    harness, peer = forwarder()
    assert peer.send(to=FAR, fields="Via: 1.1 a\r\n\t(folded)\r\nVia:\r\nVIA: 1.0 b, 1.1 c\r\n") == OK
    head = harness.take_one().data.partition(b"\r\n\r\n")[0]
    values = [line for line in head.split(b"\r\n") if line.startswith(b"Via: ")]
    assert values == [b"Via: 1.1 a (folded)", b"Via: 1.0 b, 1.1 c", b"Via: 1.1 here"]


@pytest.mark.requirement("SRMP-3.1.5.1.3-04")
def test_what_cannot_be_opened_is_refused():
    harness, peer = forwarder()
    harness.core.queues.open = lambda *_, **__: (HResult.MQ_ERROR_ACCESS_DENIED, None)
    assert peer.send(to=FAR, services="<durable/>") == BAD_REQUEST
    assert (harness.take(), harness.rows(Table.MESSAGE)) == ([], {})


def test_another_port_of_this_computer_is_another_queue_manager():
    harness, peer = forwarder()
    assert peer.send(to="http://here:8080/msmq/private$/orders") == OK
    assert harness.take_one().url == "http://here:8080/msmq/private$/orders"


def test_a_message_without_room_is_answered_with_500():
    harness, peer = forwarder()
    harness.core.queues.begin_flow_control()
    assert peer.send(to=FAR, services="<durable/>") == SERVER_ERROR
    assert harness.take() == []


def test_places_that_a_peer_has_forwarded_to_are_bounded():
    harness, peer = forwarder(memory=1 << 22)
    statuses = {peer.send(to=f"http://far{number}/msmq/q") for number in range(40)}
    assert statuses == {OK, BAD_REQUEST}
    assert len(srmp_of(harness.core).transfers) < 40


def test_a_refused_message_is_given_up_at_the_forwarder():
    harness, peer = forwarder()
    peer.send(to=FAR, msmq="<DeadLetter/>")
    harness.answer(400)
    assert harness.where() == {"dead": [b"m"]}


# -- inbound redirections


@pytest.mark.requirement(
    "SRMP-3.1.5.1.3-06", "SRMP-3.1.5.1.3-12", "SRMP-3.1.1.1.10.2-01", "SRMP-3.1.1.1.10-01"
)
@pytest.mark.parametrize(
    "to",
    ["http://here/shop/anything", "http://HERE/SHOP/", "http://here/msmq/private$/old", "http://here/exact"],
)
def test_a_message_is_redirected_to_another_queue_here(to):
    harness = SrmpHarness(
        redirections=inbound(
            ("http://here/shop/*", "http://here/msmq/private$/orders"),
            ("http://here/msmq/private$/old", "http://here/msmq/private$/orders"),
            ("http://here/exact", "http://here/msmq/private$/orders"),
            ("http://here/e*act2", "http://here/msmq/private$/orders"),
        )
    )
    harness.queue("orders")
    old = harness.queue("old")
    assert SrmpPeer(harness).send(to=to) == OK
    assert (bodies(harness.find_queue()), bodies(old)) == ([b"m"], [])
    for other in ("http://here/exact2", "http://here/eXXact2", "http://here/sho"):
        assert SrmpPeer(harness).send(to=other) == BAD_REQUEST


@pytest.mark.requirement("SRMP-3.1.5.1.3-06", "SRMP-3.1.5.1.3-09")
def test_a_stream_is_redirected_as_a_whole():
    harness = SrmpHarness(
        answers=lambda _: OK,
        redirections=inbound(("http://here/shop/*", "http://here/msmq/private$/orders")),
    )
    harness.queue("orders", transactional=True)
    peer = SrmpPeer(harness)
    for number in (1, 2, 2, 3):
        assert peer.send_in_stream(number, to="http://here/shop/a", msmq="<DeadLetter/>") == OK
    harness.advance(500)
    assert harness.take_one()["streamReceipt/lastOrdinal"] == "3"
    assert bodies(harness.find_queue()) == [b"s1", b"s2", b"s3"]
    harness.restart()
    harness.take()
    assert harness.receive(harness.find_queue()) == b"s1"
    assert harness.take_one()["streamReceipt/lastOrdinal"] == "1"


@pytest.mark.requirement("SRMP-3.1.5.1.3-08", "SRMP-3.1.5.1.3-11")
def test_a_redirection_to_no_queue_is_refused():
    harness = SrmpHarness(redirections=inbound(("http://here/shop/*", "http://here/msmq/private$/missing")))
    assert SrmpPeer(harness).send(to="http://here/shop/a") == BAD_REQUEST


@pytest.mark.requirement("SRMP-3.1.5.1.3-07")
@pytest.mark.parametrize("forwards", [False, True])
def test_a_redirection_is_followed_with_forwarding_on_or_off(forwards):
    harness = SrmpHarness(
        transparent_store_and_forward=forwards, redirections=inbound(("http://here/shop/*", FAR))
    )
    assert SrmpPeer(harness).send(to="http://here/shop/a", services=ALL) == OK
    sent = harness.take_one()
    assert (sent.url, sent["path/to"], sent.body) == (FAR, FAR, b"m")
    assert sent.line == "POST /msmq/private$/orders HTTP/1.1"
    harness.answer()
    assert (harness.take(), len(harness.core.history)) == ([], 0)


@pytest.mark.requirement("SRMP-3.1.5.1.3-02")
def test_only_messages_for_this_computer_are_redirected():
    harness = SrmpHarness(redirections=inbound(("http://*", "http://here/msmq/private$/orders")))
    harness.queue("orders")
    assert SrmpPeer(harness).send(to="http://elsewhere/shop") == BAD_REQUEST
    assert SrmpPeer(harness).send(to="http://here/shop") == OK


def test_the_first_redirection_that_matches_counts():
    harness = SrmpHarness(
        redirections=inbound(
            ("http://here/a*", "http://here/msmq/private$/first"),
            ("http://here/ab", "http://here/msmq/private$/second"),
        )
    )
    first, second = harness.queue("first"), harness.queue("second")
    SrmpPeer(harness).send(to="http://here/ab")
    assert (bodies(first), bodies(second)) == ([b"m"], [])


# -- multicast


GROUP = "MULTICAST=234.1.1.1:8001"


def listener(**attributes: object) -> SrmpHarness:
    """A queue manager with two queues of a group."""
    harness = SrmpHarness()
    for name in ("one", "two"):
        harness.queue(name, multicast_address="234.1.1.1:8001", **attributes)
    return harness


def hear(harness: SrmpHarness, data: bytes) -> None:
    srmp_of(harness.core).multicast_received(data, "10.0.0.2", "234.1.1.1", 8001)
    harness.run()


def heard(harness: SrmpHarness) -> list[list[bytes]]:
    return [bodies(harness.find_queue(name)) for name in ("one", "two")]


@pytest.mark.requirement("SRMP-3.1.5.1.3-01", "SRMP-3.1.5.1.3-11")
def test_a_message_of_a_group_is_put_into_all_its_queues():
    harness = listener()
    peer = SrmpPeer(harness)
    hear(harness, peer.message(b"m", to=f"MSMQ:{GROUP}"))
    assert heard(harness) == [[b"m"], [b"m"]]
    for other in ("MSMQ:MULTICAST=234.1.1.1:8002", "MSMQ:MULTICAST=234.1.1.2:8001"):
        hear(harness, peer.message(b"other", to=other))
    hear(harness, b"nothing")
    assert heard(harness) == [[b"m"], [b"m"]]
    assert harness.responses == {}


def test_duplicate_and_expired_group_messages_are_discarded():
    harness = listener()
    peer = SrmpPeer(harness)
    for _ in range(2):
        hear(harness, peer.message(b"m", to=f"MSMQ:{GROUP}", number=3))
    hear(harness, peer.message(b"late", to=f"MSMQ:{GROUP}", sent=harness.utc - 10, reach_queue=5))
    assert heard(harness) == [[b"m"], [b"m"]]


@pytest.mark.parametrize("which", ["one", "two"])
@pytest.mark.parametrize("how", ["full", "closed", "private"])
def test_a_refusal_by_one_group_queue_affects_no_other(which, how):
    harness = listener()
    queue = harness.find_queue(which)
    if how == "full":
        queue.quota = 0
    elif how == "closed":
        queue.security = access.default_security(None, anonymous_may_send=False)
    else:
        queue.privacy_level = QueuePrivacy.BODY
    hear(harness, SrmpPeer(harness).message(b"m", to=f"MSMQ:{GROUP}"))
    assert heard(harness) == ([[], [b"m"]] if which == "one" else [[b"m"], []])


@pytest.mark.requirement("SRMP-3.1.7.9-02", "SRMP-3.1.7.2.5-08", "SRMP-3.1.7.7-01")
@pytest.mark.parametrize("wanted", [False, True])
def test_a_message_to_a_group_is_done_with_when_it_has_been_sent(wanted):
    harness = SrmpHarness()
    harness.send(b"m", to=GROUP, positive_journaling_requested=wanted, label="l")
    sent = harness.take_one()
    assert (sent.url, sent.line) == ("234.1.1.1:8001", "POST 234.1.1.1:8001 HTTP/1.1")
    assert (sent["path/to"], sent["path/action"], sent.body) == (f"MSMQ:{GROUP}", "MSMQ:l", b"m")
    assert sent["properties/sentAt"] == date(harness.utc)
    assert sent["Msmq/SourceQmGuid"] == str(OWN_ID)
    assert harness.outgoing(GROUP).state is OutgoingQueueState.CONNECTED
    harness.answer(OK)
    assert harness.where(GROUP) == ({"journal": [b"m"]} if wanted else {})


def test_a_message_to_a_group_that_cannot_be_sent_is_tried_again():
    harness = SrmpHarness()
    harness.send(b"m", to=GROUP)
    harness.fail()
    assert harness.where(GROUP) == {"outgoing": [b"m"]}
    harness.advance(20_000)
    assert len(harness.take()) == 2
    harness.answer(OK)
    assert harness.where(GROUP) == {}


def test_receipts_and_streams_of_a_group():
    """One queue manager sends one delivery receipt; no stream goes to a group."""
    harness = listener(transactional=False)
    peer = SrmpPeer(harness)
    delivery = f"<deliveryReceiptRequest><sendTo>{ADMIN}</sendTo></deliveryReceiptRequest>"
    hear(harness, peer.message(b"m", to=f"MSMQ:{GROUP}", services=delivery))
    (receipt,) = harness.take()
    assert (receipt.url, "path/rev" in receipt) == (ADMIN, False)
    hear(harness, peer.message(b"s", peer.stream(1), to=f"MSMQ:{GROUP}"))
    assert heard(harness) == [[b"m"], [b"m"]]
