"""Who may write to a queue, and which messages it takes: [MC-MQSRM] 3.1.5.1.6.1 and 3.1.5.1.12."""

from __future__ import annotations

from struct import pack

import pytest

from msmqwire.headers.security_descriptor import DescriptorParts, build_descriptor
from msmqwire.qm.model import access
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import QueuePrivacy
from msmqwire.qm.model.tables import Table
from tests.support.qm.queue_contents import bodies
from tests.support.srmp.srmp_harness import SrmpHarness
from tests.support.srmp.srmp_requests import ADMIN, SrmpPeer

DELIVERY = f"<deliveryReceiptRequest><sendTo>{ADMIN}</sendTo></deliveryReceiptRequest>"
OK, BAD_REQUEST, SERVER_ERROR = 200, 400, 500


def receiver(**attributes: object) -> tuple[SrmpHarness, SrmpPeer, Queue]:
    """A queue manager with a queue, and another one that sends to it."""
    harness = SrmpHarness()
    return harness, SrmpPeer(harness), harness.queue("orders", **attributes)


WRITE_MESSAGE = 0x04


def granting(rights: int, sid: bytes) -> bytes:
    """A security descriptor that grants rights to one SID."""
    entry = pack("<BBHL", 0, 0, 8 + len(sid), rights) + sid
    return build_descriptor(
        DescriptorParts(access.LOCAL_SYSTEM, None, None, pack("<BBHHH", 2, 0, 8 + len(entry), 1, 0) + entry)
    )


@pytest.mark.requirement(
    "SRMP-3.1.5.1.12-01", "SRMP-3.1.5.1.12-03", "SRMP-3.1.5.1.12-04",
    "SRMP-3.1.5.1.12-07",
)  # fmt: skip
@pytest.mark.requirement("SRMP-2.2.5.2.2-05")
def test_a_queue_with_restricted_writing_refuses_messages():
    """The sender counts as Everyone, S-1-1-0, and needs the right to write messages."""
    harness, peer, queue = receiver()
    harness.answers = lambda _: OK
    opened, closed = queue.security, access.default_security(None, anonymous_may_send=False)
    everyone, anonymous = access.EVERYONE, access.ANONYMOUS
    for number, (security, status) in enumerate(
        [
            (closed, BAD_REQUEST),
            (b"\1", BAD_REQUEST),
            (granting(~WRITE_MESSAGE & 0x3F, everyone), BAD_REQUEST),
            (granting(0x3F, anonymous), BAD_REQUEST),
            (granting(WRITE_MESSAGE, everyone), OK),
            (opened, OK),
        ]
    ):
        queue.security = security
        assert peer.send(number=number, services=DELIVERY) == status
        assert len(harness.take()) == (status == OK)
    assert len(queue.positions) == 2


@pytest.mark.requirement("SRMP-3.1.5.1.12-01", "SRMP-3.1.5.1.12-02")
def test_a_public_queue_takes_messages_if_the_directory_is_read():
    harness, peer, _ = receiver()
    template, to = harness.queue_template("shared", public=True), "http://here/msmq/shared"
    _, queue = harness.core.queues.create(template, skip_directory=True)
    read = harness.core.directory.read_by_identifier
    harness.core.directory.read_by_identifier = lambda *_: None
    assert peer.send(to=to, number=1, services=DELIVERY) == SERVER_ERROR
    assert (bodies(queue), harness.take()) == ([], [])
    harness.core.directory.read_by_identifier = read
    assert peer.send(to=to, number=1) == OK
    queue.security = access.default_security(None, anonymous_may_send=False)  # which the directory gives
    assert peer.send(to=to, number=2) == BAD_REQUEST
    assert bodies(queue) == [b"m"]


@pytest.mark.parametrize("attributes", [{"authentication": True}, {"privacy_level": QueuePrivacy.BODY}])
@pytest.mark.requirement("SRMP-3.1.5.1.6-01", "SRMP-3.1.5.1.6.1-02")
def test_a_queue_of_signed_or_encrypted_messages_refuses_others(attributes):
    harness, peer, queue = receiver(**attributes)
    assert peer.send() == BAD_REQUEST
    ledger = harness.queue("ledger", transactional=True, **attributes)
    to = "http://here/msmq/private$/ledger"
    assert peer.send_in_stream(1, to=to, services=f"<durable/>{DELIVERY}") == BAD_REQUEST
    assert bodies(queue) == bodies(ledger) == harness.take() == []
    assert len(harness.core.history) == 0
    for table in (Table.INCOMING, Table.HISTORY, Table.MESSAGE):
        assert harness.rows(table) == {}
