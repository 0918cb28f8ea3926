"""Two queue managers: the sequences of [MC-MQSRM] 3.1.1.4, and exactly once in order whatever is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmqwire.constants import MessageClass
from msmqwire.names import parse_format_name
from msmqwire.qm.model.enumerations import AcknowledgementsRequested
from tests.support.qm.queue_contents import bodies, message_classes
from tests.support.srmp.srmp_pair import ALPHA, BETA, SrmpPair

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
@pytest.mark.parametrize("outcome", ["received", "purged", "expired"])
def test_a_regular_message_and_its_receipts(outcome):
    """The last receipt comes when the message is read or discarded."""
    both = pair()
    both.alpha.send(
        b"m", to=TO, administration=ADMIN, acknowledgements_requested=ALL, time_to_be_received=600
    )
    both.run()
    assert both.exchanged() == [(ALPHA, "message"), (BETA, "deliveryReceipt")]
    if outcome == "received":
        assert both.beta.receive("DIRECT=OS:beta\\private$\\orders") == b"m"
        both.run()
    elif outcome == "purged":
        both.beta.purge(both.beta.find_queue())
        both.run()
    else:
        both.advance(602_000)
    assert both.exchanged() == [(ALPHA, "message"), (BETA, "deliveryReceipt"), (BETA, "commitmentReceipt")]
    admin = both.alpha.find_queue("admin")
    last = {"received": 0x4000, "purged": 0xC001, "expired": 0xC002}[outcome]
    assert message_classes(admin) == [C.MQMSG_CLASS_ACK_REACH_QUEUE, last]
    original = both.carried[0][1]["path/id"]
    assert both.carried[1][1]["deliveryReceipt/id"] == original
    assert both.carried[2][1]["commitmentReceipt/id"] == original
    decision = "positive" if outcome == "received" else "negative"
    assert both.carried[2][1]["commitmentReceipt/decision"] == decision
    assert (both.alpha.where(TO), both.beta.where()) == ({}, {})


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


def test_a_message_with_a_lost_response_is_delivered_once():
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
        st.tuples(st.just("expire"), st.booleans()),
        st.tuples(st.just("advance"), st.sampled_from([200, 500, 20_000, 31_000])),
        st.tuples(st.just("restart"), st.sampled_from([ALPHA, BETA])),
        st.tuples(st.sampled_from(["read", "read", "purge", "late", "pause", "resume"]), st.none()),
    ),
    max_size=14,
)


class Exchange:
    """A stream from alpha to beta, and what became of its messages.

    Attributes:
        sent, read: bodies in their order.
        purged: bodies that beta has deleted.
        wanted: those that are for the dead-letter queue of alpha.
        may_expire: those whose time may be over before they arrive.
    """

    def __init__(self, fates: list[str]) -> None:
        self.both = pair(transactional=True)
        coming = iter(fates)
        self.both.fate = lambda *_: next(coming, "delivered")
        self.sent: list[bytes] = []
        self.read: list[bytes] = []
        self.purged: set[bytes] = set()
        self.wanted: set[bytes] = set()
        self.may_expire: set[bytes] = set()

    def step(self, step: str, argument: object) -> None:
        both = self.both
        match step:
            case "send" | "expire":
                self.send(expires=step == "expire", wanted=bool(argument))
            case "advance":
                both.advance(argument)
            case "restart":
                both.harnesses[argument].restart()
            case "late":
                both.deliver_late()
            case "read":
                self.receive()
            case "purge":
                self.purged |= set(bodies(both.beta.find_queue()))
                both.beta.purge(both.beta.find_queue())
            case "pause":
                both.alpha.core.queues.pause(both.alpha.outgoing(TO))
            case "resume":
                both.alpha.core.queues.resume(both.alpha.outgoing(TO))
        both.run()

    def send(self, *, expires: bool, wanted: bool) -> None:
        body = b"%d" % len(self.sent)
        self.sent.append(body)
        self.wanted |= {body} if wanted else set()
        self.may_expire |= {body} if expires else set()
        self.both.alpha.send(
            body, to=TO, transactional=True, negative_journaling_requested=wanted,
            time_to_reach_queue=25 if expires else 0xFFFFFFFF,
        )  # fmt: skip

    def receive(self) -> None:
        while (body := self.both.beta.receive("DIRECT=OS:beta\\private$\\orders")) is not None:
            self.read.append(body)
        self.both.run()

    def heal(self) -> None:
        """Lose nothing any more, until nothing is left to be done."""
        self.both.fate = lambda *_: "delivered"
        for step in ("late", "resume"):
            self.step(step, None)
        for milliseconds in [31_000] * 6 + [600_000]:
            self.both.advance(milliseconds)
            self.receive()


@pytest.mark.requirement("SRMP-2.2.5.3-04", "SRMP-2.2.5.3-05")
@pytest.mark.requirement("SRMP-3.1.1.3.2-03", "SRMP-3.1.6.3-08", "SRMP-3.1.7.2.3-10", "SRMP-3.1.1.1.1-01")
@settings(max_examples=25)
@given(steps=STEPS, fates=st.lists(FATES, max_size=40))
def test_a_stream_arrives_exactly_once_and_in_order(steps, fates):
    exchange = Exchange(fates)
    for step, argument in steps:
        exchange.step(step, argument)
    exchange.heal()
    both, read = exchange.both, exchange.read
    assert read == sorted(set(read), key=int)
    assert set(exchange.sent) - set(read) <= exchange.may_expire | exchange.purged
    assert not set(read) & exchange.purged
    where = both.alpha.where(TO)
    dead = where.pop("dead transactional", [])
    assert where == {}
    assert len(dead) == len(set(dead))
    assert exchange.purged & exchange.wanted <= set(dead) <= exchange.wanted
    assert set(dead) <= exchange.purged | exchange.may_expire
    assert both.alpha.rows_of_streams() == {}
    for info in both.beta.find_queue().incoming.values():
        assert info.acknowledged == info.sequence_number
