"""The order queue of SRMP: it keeps nothing, and passes receipts on to administration queues only."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from msmqwire.names import parse_format_name
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import AcknowledgementsRequested
from tests.support.engine_harness import PEER_ID
from tests.support.qm.queue_contents import bodies, messages
from tests.support.srmp.srmp_harness import SrmpHarness
from tests.support.srmp.srmp_requests import SrmpPeer, date

OK, BAD_REQUEST = 200, 400


def receiver() -> tuple[SrmpHarness, SrmpPeer, Queue]:
    """A queue manager with a queue, and another one that sends to it."""
    harness = SrmpHarness()
    return harness, SrmpPeer(harness), harness.queue("orders")


def test_nobody_writes_to_the_order_queue():
    harness, peer, _ = receiver()
    assert peer.send(to="http://here/msmq/private$/order_queue$") == BAD_REQUEST
    receipt = (
        f"<streamReceipt><streamId>{peer.stream_id()}</streamId><lastOrdinal>1</lastOrdinal></streamReceipt>"
    )
    assert (
        peer.send(
            None, receipt, to="http://here/msmq/private$/order_queue$", message_class=0xFF, label="other"
        )
        == OK
    )
    assert bodies(harness.find_queue("order_queue$")) == []


@pytest.mark.parametrize(
    "admin, status",
    [("private$/orders", OK), ("orders", BAD_REQUEST), ("private$/no", BAD_REQUEST), ("", BAD_REQUEST)],
)
def test_the_order_queue_passes_on_what_applications_await(admin, status):
    """The URL for stream receipts names the administration queue of the first message of the stream."""
    harness, peer, queue = receiver()
    inner = f"<receivedAt>{date(harness.utc)}</receivedAt><id>uuid:1@{PEER_ID}</id>"
    receipt = f"<deliveryReceipt>{inner}</deliveryReceipt>"
    to = f"http://here/msmq/private$/order_queue$?admin={quote(admin, safe='$')}"
    assert peer.send(None, receipt, to=to, message_class=2) == status
    assert len(messages(queue)) == (1 if status == OK else 0)
    assert peer.send(b"m", to=to) == BAD_REQUEST  # no receipt: it stays a message for the order queue
    assert bodies(harness.find_queue("order_queue$")) == []


@pytest.mark.parametrize(
    "admin",
    [
        "private$/orders;journal", "private$/orders;part", ";deadletter", "private$/", "private$/a\\b",
        "private$\\orders", "private$/\0", "private$/a\nb", "Private$/orders", "private$/order_queue$",
        "private$/order_queue$?admin=private$/orders", "http://elsewhere/msmq/private$/orders", "x" * 5_000,
    ],
)  # fmt: skip
def test_the_order_queue_refuses_receipts_for_no_queue(admin):
    harness, peer, _ = receiver()
    inner = f"<receivedAt>{date(harness.utc)}</receivedAt><id>uuid:1@{PEER_ID}</id>"
    to = f"http://here/msmq/private$/order_queue$?admin={quote(admin, safe='$')}"
    assert (
        peer.send(None, f"<deliveryReceipt>{inner}</deliveryReceipt>", to=to, message_class=2) == BAD_REQUEST
    )
    assert peer.send(b"m", to=to) == BAD_REQUEST
    assert not any(queue.positions for queue in harness.core.queue_manager.queues.values())
    assert harness.take() == []


@pytest.mark.parametrize(
    "administration, named",
    [
        ("http://here/msmq/private$/orders", "?admin=private$%2Forders"),
        ("http://here/msmq/private$/orders;part", ""),
        ("http://here/msmq/private$/orders;journal", ""),
        ("http://here/msmq/system$;deadletter", ""),
        ("http://here/msmq/private$/none", ""),
        ("http://there/msmq/private$/orders", ""),
    ],
)
def test_receipts_are_asked_for_at_the_queue_that_takes_them(administration, named):
    """Its own name in the URL brings a receipt into the queue; a journal and a subqueue take none."""
    harness, peer, queue = receiver()
    assert harness.core.queues.create_subqueue(parse_format_name(r"DIRECT=OS:here\private$\orders;part"))
    harness.send(
        b"m", transactional=True, administration=parse_format_name(f"DIRECT={administration}"),
        acknowledgements_requested=AcknowledgementsRequested.ACK_POS_ARRIVAL,
    )  # fmt: skip
    url = harness.sent[0].stream[3] or ""
    assert url.partition("order_queue$")[2] == named
    inner = f"<receivedAt>{date(harness.utc)}</receivedAt><id>uuid:1@{PEER_ID}</id>"
    status = peer.send(None, f"<deliveryReceipt>{inner}</deliveryReceipt>", to=url, message_class=2)
    assert (status, len(messages(queue))) == ((OK, 1) if named else (BAD_REQUEST, 0))
