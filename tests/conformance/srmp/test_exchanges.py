"""Two queue managers: the sequences of [MC-MQSRM] 3.1.1.4, and exactly once in order whatever is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmqwire.constants import MessageClass
from msmqwire.names import parse_format_name
from msmqwire.qm.model.enumerations import AcknowledgementsRequested
from tests.support.queue_contents import bodies, message_classes
from tests.support.srmp_pair import ALPHA, BETA, SrmpPair

C, A = MessageClass, AcknowledgementsRequested
TO = "DIRECT=HTTP://beta/msmq/private$/orders"
ADMIN = parse_format_name("DIRECT=HTTP://alpha/msmq/private$/admin")
ALL = A.ACK_POS_ARRIVAL | A.ACK_POS_RECEIVE | A.ACK_NEG_RECEIVE


def pair(*, transactional: bool = False, **options: object) -> SrmpPair:
    both = SrmpPair(**options)
    both.alpha.queue("admin")
    both.beta.queue("orders", transactional=transactional)
    return both


@pytest.mark.requirement("SRMP-3.1.1.4.1-01", "SRMP-3-01", "SRMP-3.1.1.3.1-02", "SRMP-3.1.1.3.4-05")
def test_a_regular_message_and_its_receipts():
    both = pair()
    both.alpha.send(b"m", to=TO, administration=ADMIN, acknowledgements_requested=ALL)
    both.run()
    assert both.beta.receive("DIRECT=OS:beta\\private$\\orders") == b"m"
    both.run()
    assert both.exchanged() == [(ALPHA, "message"), (BETA, "deliveryReceipt"), (BETA, "commitmentReceipt")]
    admin = both.alpha.find_queue("admin")
    assert message_classes(admin) == [C.MQMSG_CLASS_ACK_REACH_QUEUE, C.MQMSG_CLASS_ACK_RECEIVE]
    original = both.carried[0][1]["path/id"]
    assert both.carried[1][1]["deliveryReceipt/id"] == original
    assert both.carried[2][1]["commitmentReceipt/id"] == original
    assert both.alpha.where(TO) == {}


@pytest.mark.requirement("SRMP-3.1.1.4.2-01", "SRMP-3.1.1.4.2-02", "SRMP-3.1.1.3.2-01")
def test_a_stream_and_its_receipts():
    both = pair(transactional=True)
    for body in (b"1", b"2"):
        both.alpha.send(body, to=TO, transactional=True)
    both.advance(1_000)
    both.alpha.send(b"3", to=TO, transactional=True)
    both.advance(1_000)
    assert both.exchanged() == [
        (ALPHA, "message"), (ALPHA, "message"), (BETA, "streamReceipt"), (ALPHA, "message"),
        (BETA, "streamReceipt"),
    ]  # fmt: skip
    receipts = [sent for name, sent in both.carried if name == BETA]
    assert [sent["streamReceipt/lastOrdinal"] for sent in receipts] == ["2", "1"]  # a new stream has begun
    assert bodies(both.beta.find_queue()) == [b"1", b"2", b"3"]
    assert (both.alpha.where(TO), both.alpha.rows_of_streams()) == ({}, {})
    assert bodies(both.alpha.find_queue("order_queue$")) == []


@pytest.mark.requirement("SRMP-3.1.1.4.3-01", "SRMP-3.1.7.3.3-01")
@pytest.mark.parametrize("outcome", ["received", "purged"])
def test_a_stream_message_with_all_receipts(outcome):
    both = pair(transactional=True)
    both.alpha.send(
        b"m", to=TO, transactional=True, administration=ADMIN, acknowledgements_requested=ALL,
        negative_journaling_requested=True,
    )  # fmt: skip
    both.advance(1_000)
    assert both.alpha.where(TO) == {"outgoing": [b"m"]}
    if outcome == "received":
        both.beta.receive("DIRECT=OS:beta\\private$\\orders")
    else:
        both.beta.purge(both.beta.find_queue())
    both.run()
    assert both.exchanged() == [
        (ALPHA, "message"), (BETA, "deliveryReceipt"), (BETA, "streamReceipt"), (BETA, "commitmentReceipt"),
        (BETA, "streamReceipt+commitmentReceipt"),
    ]  # fmt: skip
    last = C.MQMSG_CLASS_ACK_RECEIVE if outcome == "received" else C.MQMSG_CLASS_NACK_Q_PURGED
    assert message_classes(both.alpha.find_queue("admin")) == [C.MQMSG_CLASS_ACK_REACH_QUEUE, last]
    assert both.alpha.where(TO) == ({} if outcome == "received" else {"dead transactional": [b"m"]})
    assert both.beta.where() == {}


def test_a_message_is_put_into_the_queue_once_though_its_response_is_lost():
    both = pair()
    fates = iter(["unanswered", "unanswered"])
    both.fate = lambda *_: next(fates, "delivered")
    both.alpha.send(b"m", to=TO, positive_journaling_requested=True)
    both.advance(60_000)
    assert len(both.carried) == 3
    assert bodies(both.beta.find_queue()) == [b"m"]
    assert both.alpha.where(TO) == {"journal": [b"m"]}


def test_a_message_passes_a_forwarder_that_fails():
    both = SrmpPair(transparent_store_and_forward=True)
    both.alpha.send(b"m", to="DIRECT=HTTP://nowhere/msmq/private$/orders", recoverable=True)
    both.run()
    assert both.alpha.where("DIRECT=HTTP://nowhere/msmq/private$/orders") == {"outgoing": [b"m"]}


FATES = st.sampled_from(["delivered", "lost", "unanswered", "late"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.booleans()),
        st.tuples(st.just("advance"), st.sampled_from([200, 500, 20_000, 31_000])),
        st.tuples(st.just("restart"), st.sampled_from([ALPHA, BETA])),
        st.tuples(st.just("read"), st.none()),
        st.tuples(st.just("expire"), st.none()),
        st.tuples(st.just("late"), st.none()),
    ),
    max_size=14,
)


@pytest.mark.requirement("SRMP-3.1.1.3.2-03", "SRMP-3.1.6.3-08", "SRMP-3.1.7.2.3-10", "SRMP-3.1.1.1.1-01")
@settings(max_examples=25)
@given(steps=STEPS, fates=st.lists(FATES, max_size=40))
def test_a_stream_arrives_exactly_once_and_in_order(steps, fates):
    both = pair(transactional=True)
    coming = iter(fates)
    both.fate = lambda *_: next(coming, "delivered")
    sent: list[bytes] = []
    may_expire: set[bytes] = set()
    read: list[bytes] = []

    def receive() -> None:
        while (body := both.beta.receive("DIRECT=OS:beta\\private$\\orders")) is not None:
            read.append(body)

    for step, argument in steps:
        if step in ("send", "expire"):
            body = b"%d" % len(sent)
            sent.append(body)
            if step == "expire":
                may_expire.add(body)
            limit = 25 if step == "expire" else 0xFFFFFFFF
            both.alpha.send(
                body, to=TO, transactional=True, negative_journaling_requested=bool(argument),
                time_to_reach_queue=limit,
            )  # fmt: skip
        elif step == "advance":
            both.advance(argument)
        elif step == "restart":
            both.harnesses[argument].restart()
        elif step == "late":
            both.deliver_late()
        else:
            receive()
        both.run()
    both.fate = lambda *_: "delivered"
    both.deliver_late()
    for _ in range(6):
        both.advance(31_000)
        receive()
    both.advance(600_000)
    receive()
    assert read == sorted(read, key=int)
    assert set(sent) - set(read) <= may_expire
    assert len(read) == len(set(read))
    assert both.alpha.where(TO).get("outgoing", []) == []
    assert both.alpha.rows_of_streams() == {}
    (info,) = both.beta.find_queue().incoming.values() if read else (None,)
    assert info is None or info.acknowledged == info.sequence_number
