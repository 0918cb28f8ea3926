"""A queue manager that does not listen for HTTP has no engine of SRMP until something needs it."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.enumerations import DeliveryGuarantee
from msmqwire.qm.protocols.srmp.engine import SrmpEngine
from msmqwire.qm.protocols.srmp.on_demand import SrmpOnDemand
from tests.support import handmade
from tests.support.engine_harness import PEER_QUEUE
from tests.support.peers.handwritten_peer import direct
from tests.support.qm.queue_contents import bodies
from tests.support.srmp.srmp_harness import THERE, SrmpHarness
from tests.support.srmp.srmp_requests import ADMIN, SrmpPeer

OK = 200
POSITIVE, NEGATIVE = 0x01 | 0x02, 0x08
BY_HTTP = 7, handmade.direct_name("HTTP://there/msmq/private$/admin")
MULTICAST = "MULTICAST=234.1.1.1:8001"


def quiet(**options: object) -> SrmpHarness:
    """A queue manager that does not listen for HTTP."""
    return SrmpHarness(http=None, answers=lambda _: OK, **options)


def subscribed(harness: SrmpHarness) -> set[type]:
    """The protocols of SRMP that hear of events."""
    assert [*harness.core.protocols] == harness.core.context.subscribers[: len(harness.core.protocols)]
    return {type(one) for one in harness.core.protocols} & {SrmpEngine, SrmpOnDemand}


def test_sessions_alone_need_none():
    harness = quiet()
    harness.queue("orders")
    session = harness.accept_session()
    session.send_message(b"in", admin=(7, direct("admin")[1]), acks=POSITIVE)
    assert harness.receive("DIRECT=OS:here\\private$\\orders") == b"in"
    harness.send(b"out", to=PEER_QUEUE, delivery_guarantee=DeliveryGuarantee.RECOVERABLE)
    outgoing = harness.outgoing(PEER_QUEUE)
    harness.core.queues.pause(outgoing)
    harness.core.queues.resume(outgoing)
    harness.advance(60_000)
    harness = harness.restarted(stop=True)
    harness.core.acknowledge_received()
    assert bodies(harness.outgoing(PEER_QUEUE)) == [b"out"]
    assert "srmp" not in harness.core.engines
    assert subscribed(harness) == {SrmpOnDemand}


@pytest.mark.parametrize("name", [THERE, MULTICAST])
def test_a_message_to_a_name_of_srmp_is_sent(name):
    harness = quiet()
    harness.send(b"m", to=name)
    assert [sent.body for sent in harness.take()] == [b"m"]
    assert subscribed(harness) == {SrmpEngine}
    assert harness.where() == {}


def test_what_waits_is_sent_once_after_a_restart():
    harness = SrmpHarness(http=None)
    harness.core.queues.take_offline()
    harness.send(b"1", b"2", delivery_guarantee=DeliveryGuarantee.RECOVERABLE)
    restarted = harness.restarted()
    sent = []
    while taken := restarted.take():
        sent += [one.body for one in taken]
        restarted.answer(OK)
    assert sent == [b"1", b"2"]
    assert restarted.where() == {}


def test_one_that_has_listened_has_it_at_once():
    """It knows where it was reached: what waits may ask for receipts."""
    harness = SrmpHarness()
    harness._http = None
    restarted = harness.restarted()
    assert "srmp" in restarted.core.engines
    assert restarted.core.queues.lookup.http_ports == {80, 443}


def test_an_acknowledgement_by_http_is_sent():
    harness = quiet()
    harness.queue("orders")
    harness.accept_session().send_message(b"m", admin=BY_HTTP, acks=POSITIVE)
    assert [sent.url for sent in harness.take()] == [ADMIN]


def test_a_receipt_due_when_its_message_is_purged_is_sent():
    harness = quiet()
    harness.queue("orders")
    harness.accept_session().send_message(b"m", admin=BY_HTTP, acks=NEGATIVE)
    assert "srmp" not in harness.core.engines
    harness.purge(harness.find_queue())
    assert [sent.url for sent in harness.take()] == [ADMIN]


def test_a_request_that_comes_is_taken():
    harness = quiet()
    harness.queue("orders")
    assert SrmpPeer(harness).send(b"m") == OK
    assert bodies(harness.find_queue()) == [b"m"]
