"""Messages received in no stream: figure 4, [MC-MQSRM] 3.1.1.1.2.2, and 3.1.5.1.2 to 3.1.5.1.12."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.constants import HashAlgorithm, MessageClass
from msmqwire.qm.model.effects import ErrorReport
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.tables import Table
from msmqwire.qm.protocols.srmp.effects import HttpRequest, HttpResponse
from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from msmqwire.qm.rules.memory_pool import Kind
from msmqwire.srmp.http_framer import parse_http
from tests.support.engine_harness import PEER_ADDRESS, THIRD_ID
from tests.support.paths import VECTORS
from tests.support.qm.queue_contents import bodies, messages
from tests.support.srmp.srmp_harness import SrmpHarness
from tests.support.srmp.srmp_requests import ADMIN, HERE, NEVER, SrmpPeer, date, envelope, http_request, path

DELIVERY = f"<deliveryReceiptRequest><sendTo>{ADMIN}</sendTo></deliveryReceiptRequest>"
OK, BAD_REQUEST, SERVER_ERROR = 200, 400, 500


def receiver(name: str = "orders", **attributes: object) -> tuple[SrmpHarness, SrmpPeer, Queue]:
    """A queue manager with a queue, and another one that sends to it."""
    options = {key: attributes.pop(key) for key in ("quota_of_manager",) if key in attributes}
    harness = SrmpHarness(**({"quota": options["quota_of_manager"]} if options else {}))
    return harness, SrmpPeer(harness), harness.queue(name, **attributes)


# -- figure 4


SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
MALFORMED = {
    "no XML": ("SRMP-2.2.2-06", lambda peer: http_request(b"<se:Envelope")),
    "another namespace": ("SRMP-2.2.2-06", lambda peer: peer.message(change=(SOAP, "urn:soap"))),
    "no Header": ("SRMP-2.2.2-06", lambda peer: peer.message(change=("se:Header>", "se:Head>"))),
    "no Body": ("SRMP-2.2.2-06", lambda peer: peer.message(change=("<se:Body></se:Body>", ""))),
    "something before Body": (
        "SRMP-2.2.2-06", lambda peer: peer.message(change=("<se:Body>", "<a/><se:Body>"))
    ),
    "a part that is too long": (
        "SRMP-2.2.2-17",
        lambda peer: peer.message(bytes(40)).replace(b"Length: 40\r\nContent", b"Length: 99\r\nContent"),
    ),
    "no boundary": (
        "SRMP-2.2.2-17", lambda peer: peer.message().replace(b'boundary="MSMQ - SOAP boundary, 7"; ', b"")
    ),
    "no envelope": (
        "SRMP-2.2.2-17", lambda peer: peer.message().replace(b"text/xml; charset", b"text/htm; charset")
    ),
    "no path": ("SRMP-2.2.4-04", lambda peer: http_request(envelope("<properties/>"))),
    "a path that need not be understood": (
        "SRMP-2.2.4-04",
        lambda peer: peer.message(change=('/rp/" se:mustUnderstand="1"', '/rp/"')),
    ),
    "another scheme": ("SRMP-2.2.4.2-06", lambda peer: peer.message(to="ftp://here/msmq/private$/orders")),
    "an id without uuid:": ("SRMP-2.2.4.3-07", lambda peer: peer.message(change=("<id>uuid:", "<id>"))),
    "an id without number": (
        "SRMP-2.2.4.3-07", lambda peer: peer.message(change=("<id>uuid:1@", "<id>uuid:x@"))
    ),
    "an id with another GUID form": (
        "SRMP-2.2.4.3-07", lambda peer: peer.message(change=(f"@{peer.identifier}</id>", "@1</id>"))
    ),
    "an id without @": ("SRMP-2.2.4.3-07", lambda peer: peer.message(change=("<id>uuid:1@", "<id>uuid:1"))),
    "no properties": (
        "SRMP-3.1.5.1.2-01", lambda peer: http_request(envelope(path(HERE, f"uuid:1@{peer.identifier}")))
    ),
    "an expiry that is not a date": (
        "SRMP-2.2.1.2-02", lambda peer: peer.message(change=(NEVER, "2038-01-19T03:14:07Z"))
    ),
    "an impossible date": ("SRMP-2.2.1.2-02", lambda peer: peer.message(change=(NEVER, "20380230T000000"))),
    "an unknown header that must be understood": (
        "SRMP-2.2.5-04", lambda peer: peer.message(b"m", '<x xmlns="urn:x" se:mustUnderstand="1"/>')
    ),
    "a streamId without uid:": (
        "SRMP-2.2.5.3.1-05", lambda peer: peer.message(b"m", peer.stream(1).replace("uid:", ""))
    ),
    "a streamId without backslash": (
        "SRMP-2.2.5.3.1-05", lambda peer: peer.message(b"m", peer.stream(1).replace("\\", "/"))
    ),
    "a streamId of 65 bits": (
        "SRMP-2.2.5.3.1-05", lambda peer: peer.message(b"m", peer.stream(1, ordinal=1 << 64))
    ),
    "a streamId with another GUID form": (
        "SRMP-2.2.5.3.1-05",
        lambda peer: peer.message(b"m", peer.stream(1).replace(str(peer.identifier), "1")),
    ),
    "two streams": ("SRMP-3.1.5.1.2-01", lambda peer: peer.message(b"m", peer.stream(1), peer.stream(1))),
    "a priority above 7": (
        "SRMP-3.1.5.1.2-01", lambda peer: peer.message(change=("<Priority>3", "<Priority>8"))
    ),
    "a short Correlation": (
        "SRMP-2.2.6.5-02", lambda peer: peer.message(msmq="<Correlation>AAAA</Correlation>")
    ),
    "a Correlation that is not base64": (
        "SRMP-2.2.6.5-02", lambda peer: peer.message(msmq="<Correlation>?</Correlation>")
    ),
    **{
        f"no {name}": (
            "SRMP-2.2.6-05", lambda peer, name=name: peer.message(change=(f"{name}>", f"Other{name}>"))
        )
        for name in ("Class", "Priority", "BodyType", "SourceQmGuid", "TTrq")
    },
    "an entity": (
        "SRMP-3.1.5.1.2-01", lambda peer: http_request(b'<!DOCTYPE a [<!ENTITY b "c">]>' + envelope())
    ),
}  # fmt: skip
"""What is wrong, the row that says so, and the request."""


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=kind, marks=pytest.mark.requirement(row))
        for kind, (row, make) in MALFORMED.items()
    ],
)
@pytest.mark.requirement("SRMP-3.1.1.1.2.2-01", "SRMP-3.1.1.1.2.5-01", "SRMP-3.1.5.1.2-01", "SRMP-3.1.5.1-01")
def test_what_is_malformed_is_refused_and_leaves_nothing(make):
    harness, peer, queue = receiver()
    data = make(peer)
    before = harness.store.copy()
    harness.forget_effects()
    assert harness.post(data) == BAD_REQUEST
    own = [effect for effect in harness.effects if not isinstance(effect, ErrorReport)]
    assert [type(effect) for effect in own] == [HttpResponse]
    for table in Table:
        assert dict(before.rows(table)) == harness.rows(table)
    assert len(queue.positions) == 0
    assert harness.core.context.troubles["malformed"] == 1


@pytest.mark.requirement(
    "SRMP-3.1.1.1.2.2-02", "SRMP-3.1.5.1.4-02", "SRMP-3.1.1.1.2.5-02", "SRMP-2.2.5.1.1-02",
    "SRMP-2.2.6.17-02", "SRMP-2.2.5.2.2-05",
)  # fmt: skip
@pytest.mark.parametrize("stream", [False, True])
def test_an_expired_message_is_discarded_and_answered_with_200(stream):
    harness, peer, queue = receiver(transactional=stream)
    for attributes in ({"reach_queue": 9}, {"reach_queue": 9, "msmq": None}):
        if stream and "msmq" in attributes:
            continue
        extra = [peer.stream(1)] if stream else []
        assert peer.send(b"m", *extra, sent=harness.utc - 10, services=DELIVERY, **attributes) == OK
    assert (bodies(queue), harness.take()) == ([], [])
    assert harness.rows(Table.HISTORY) == harness.rows(Table.INCOMING) == {}
    assert len(harness.core.history) == 0
    extra = [peer.stream(1)] if stream else []
    assert peer.send(b"in time", *extra, sent=harness.utc - 10, reach_queue=10, services="<durable/>") == OK
    assert bodies(queue) == [b"in time"]


@pytest.mark.requirement(
    "SRMP-2.2.5.2.2-05", "SRMP-3.1.1.1.2.2-03", "SRMP-3.1.5.1.11-02", "SRMP-3.1.5.1.11-03",
    "SRMP-3.1.5.1.11-04", "SRMP-3.1.1.1.5-04",
)  # fmt: skip
def test_a_duplicate_is_discarded_and_answered_with_200():
    harness, peer, queue = receiver()
    assert peer.send(b"1", number=7, services=DELIVERY) == OK
    assert len(harness.take()) == 1
    assert peer.send(b"again", number=7, services=DELIVERY) == OK
    assert (bodies(queue), harness.take()) == ([b"1"], [])
    other = SrmpPeer(harness, THIRD_ID)
    assert other.send(b"the same number of another", number=7) == OK
    # SourceQmGuid counts if it differs from the GUID in id.
    data = peer.message(b"2", number=7).replace(
        f"<SourceQmGuid>{peer.identifier}".encode(), f"<SourceQmGuid>{str(THIRD_ID)[:-1]}d".encode()
    )
    assert harness.post(data) == OK
    assert bodies(queue) == [b"1", b"the same number of another", b"2"]


@pytest.mark.requirement("SRMP-3.1.5.1.11-01")
def test_messages_without_msmq_are_never_duplicates():
    harness, peer, queue = receiver()
    for body in (b"1", b"2"):
        assert peer.send(body, number=7, msmq=None) == OK
    assert bodies(queue) == [b"1", b"2"]
    assert len(harness.core.history) == 0
    message = messages(queue)[0]
    assert (message.identifier, message.source_machine_identifier) == ((NULL_GUID, 1), NULL_GUID)


@pytest.mark.requirement("SRMP-3.1.1.1.2.2-05")
def test_the_checks_come_in_their_order():
    harness, peer, queue = receiver()
    expired = {"sent": harness.utc - 10, "reach_queue": 5}
    assert peer.send(b"1", to="http://here/msmq/private$/missing", **expired) == BAD_REQUEST
    assert peer.send(b"1", change=("<Priority>3", "<Priority>8"), **expired) == BAD_REQUEST
    assert peer.send(b"1", number=3) == OK
    assert peer.send(b"late", number=3, **expired) == OK
    assert peer.send(b"lost", number=3, to="http://here/msmq/private$/missing") == BAD_REQUEST
    assert bodies(queue) == [b"1"]


@pytest.mark.requirement(
    "SRMP-3.1.1.1.2.2-04",
    "SRMP-3.1.5.1.6-01",
    "SRMP-3.1.5.1.6.2-02",
    "SRMP-3.1.5.1.12-08",
    "SRMP-2.2.5.2.1-04",
    "SRMP-2.2.5.2.1-05",
    "SRMP-2.2.5.2.2-05",
    "SRMP-2.2.5.4-02",
)
def test_a_message_is_stored_then_answered_then_receipted():
    harness, peer, queue = receiver()
    harness.forget_effects()
    core = harness.core
    srmp_of(core).requested(99, parse_http(peer.message(services=f"<durable/>{DELIVERY}")), PEER_ADDRESS)
    assert bodies(queue) == [b"m"]
    changes, effects = core.take()  # in one step, whose changes are durable before its effects
    assert {Table.MESSAGE, Table.PACKET, Table.HISTORY} <= set(changes.rows)
    assert [type(effect) for effect in effects] == [HttpResponse, HttpRequest]
    assert effects[0] == HttpResponse(99, OK)


@pytest.mark.requirement("SRMP-3.1.5.1.6.2-01")
@pytest.mark.parametrize("durable", [False, True])
def test_durable_messages_survive_a_restart(durable):
    harness, peer, _ = receiver()
    assert peer.send(b"m", services="<durable/>" if durable else "") == OK
    harness.restart()
    assert bodies(harness.find_queue()) == ([b"m"] if durable else [])


# -- 3.1.5.1.3


@pytest.mark.requirement("SRMP-3.1.5.1.3-08", "SRMP-3.1.5.1.3-11", "SRMP-3.1.5.1.6.4-01")
@pytest.mark.parametrize(
    ("to", "status"),
    [
        ("http://here/msmq/private$/orders", OK),
        ("http://HERE/MSMQ/PRIVATE$/ORDERS", OK),
        (r"http://here/msmq\private$\orders", OK),
        ("http://10.0.0.1/msmq/private$/orders", OK),
        ("http://localhost/msmq/private$/orders", OK),
        ("https://here:443/msmq/private$/orders", OK),
        ("http://here/msmq/private$/missing", BAD_REQUEST),
        ("http://here/msmq/orders", BAD_REQUEST),  # a public queue
        ("http://here/orders", BAD_REQUEST),
        ("http://here/msmq/private$/orders;journal", BAD_REQUEST),
        ("http://here:81/msmq/private$/orders", BAD_REQUEST),  # another queue manager's port
        ("http://elsewhere/msmq/private$/orders", BAD_REQUEST),
        (r"MSMQ:DIRECT=OS:here\private$\orders", BAD_REQUEST),
        ("MSMQ:DIRECT=HTTP://elsewhere/msmq/private$/orders", BAD_REQUEST),
    ],
)
def test_where_messages_may_be_for(to, status):
    harness, peer, queue = receiver()
    assert peer.send(to=to) == status
    assert bodies(queue) == ([b"m"] if status == OK else [])
    assert harness.take() == []


@pytest.mark.requirement("SRMP-3.1.5.1.3-02")
def test_a_message_for_another_computer_is_refused():
    harness, peer, _ = receiver()
    before = harness.store.copy()
    for to in ("http://elsewhere/msmq/private$/orders", "MSMQ:DIRECT=HTTPS://elsewhere/msmq/q"):
        assert peer.send(to=to, services="<durable/>") == BAD_REQUEST
    assert dict(before.rows(Table.MESSAGE)) == harness.rows(Table.MESSAGE) == {}
    assert harness.take() == []


@pytest.mark.requirement("SRMP-3.1.5.1.3-09", "SRMP-3.1.5.1.3-10")
@pytest.mark.requirement("SRMP-2.1.1-04")
def test_stream_messages_go_to_transactional_queues_only():
    harness, peer, queue = receiver()
    transactional = harness.queue("tx", transactional=True)
    assert peer.send_in_stream(1) == BAD_REQUEST
    assert peer.send(to="http://here/msmq/private$/tx") == BAD_REQUEST
    assert bodies(queue) == bodies(transactional) == []
    assert harness.rows(Table.INCOMING) == {}
    assert peer.send_in_stream(1, to="http://here/msmq/private$/tx") == OK
    assert peer.send() == OK
    assert (bodies(queue), bodies(transactional)) == ([b"m"], [b"s1"])


@pytest.mark.requirement("SRMP-3.1.5.1.3-05")
def test_a_message_without_redirection_is_for_its_named_queue():
    _, peer, queue = receiver()
    peer.send(to="http://LocalHost/msmq/private$/orders")
    assert messages(queue)[0].destination.text == "DIRECT=http://LocalHost/msmq/private$/orders"


# -- 3.1.5.1.5, 3.1.5.1.7 and 3.1.5.1.10


@pytest.mark.requirement("SRMP-3.1.5.1.5-01")
def test_a_message_of_no_type_is_ignored_and_answered_with_200():
    harness, peer, queue = receiver()
    for message_class in (0x4000, 0x8001, 0xFF, 2):
        assert peer.send(message_class=message_class) == OK
    assert (bodies(queue), harness.take()) == ([], [])
    assert len(harness.core.history) == 0


@pytest.mark.requirement(
    "SRMP-3.1.5.1.7-01", "SRMP-3.1.5.1.10-01", "SRMP-3.1.1.3.1-02", "SRMP-3.1.1.3.4-05", "SRMP-3-01"
)
def test_delivery_and_commitment_receipts_are_queued_once():
    """The messages that they are about stay as they were."""
    harness, peer, admin = receiver("admin")
    answered = SrmpHarness.send(harness, b"m", administration=None)
    harness.answer(500)
    original = f"uuid:{answered[0].identifier.uniquifier}@{answered[0].identifier.lineage}"
    delivery = (
        f"<deliveryReceipt><receivedAt>{date(harness.utc)}</receivedAt><id>{original}</id></deliveryReceipt>"
    )
    commitment = (
        f"<commitmentReceipt><decidedAt>{date(harness.utc)}</decidedAt><decision>negative</decision>"
        f"<id>{original}</id></commitmentReceipt>"
    )
    to = "http://here/msmq/private$/admin"
    for receipt, message_class, number in ((delivery, 2, 70), (commitment, 0xC001, 71)):
        for _ in range(2):
            assert peer.send(None, receipt, to=to, number=number, message_class=message_class) == OK
    assert [message.message_class for message in messages(admin)] == [
        MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE, MessageClass.MQMSG_CLASS_NACK_Q_PURGED,
    ]  # fmt: skip
    assert harness.where() == {"outgoing": [b"m"]}


@pytest.mark.requirement("SRMP-3.1.5.1.3-10")
def test_receipts_are_refused_by_a_transactional_queue():
    harness, peer, _ = receiver(transactional=True)
    receipt = (
        f"<deliveryReceipt><receivedAt>{date(harness.utc)}</receivedAt><id>uuid:1@{peer.identifier}</id>"
        "</deliveryReceipt>"
    )
    assert peer.send(None, receipt, message_class=2) == BAD_REQUEST


@pytest.mark.requirement("SRMP-3.1.5.1.8-01")
def test_a_stream_receipt_for_another_queue_is_put_into_it_once():
    harness, peer, queue = receiver()
    harness.send(transactional=True)
    harness.answer()
    identifier = harness.sent[0].stream[0]
    for _ in range(2):
        assert peer.stream_receipt(identifier, 1, to=HERE, number=9) == OK
    assert [message.message_class for message in messages(queue)] == [MessageClass.MQMSG_CLASS_ORDER_ACK]
    assert harness.where() == {}


@pytest.mark.requirement("SRMP-3.1.5.1.8-01")
def test_a_stream_receipt_ends_its_message_before_it_is_queued():
    """A second one counts as an acknowledgement before it is found to be a duplicate."""
    harness, peer, queue = receiver()
    harness.send(b"1", b"2", transactional=True, positive_journaling_requested=True)
    harness.answer()
    harness.answer()
    outgoing, journal = harness.outgoing(), harness.core.queue_manager.system_journal_queue
    events, left = harness.record_events(), []
    events.message_position_available = lambda *_: left.append(  # type: ignore[method-assign]
        (outgoing.transfer.eod_last_ack.number, bodies(outgoing), bodies(journal))
    )
    for count in (1, 2):
        assert peer.stream_receipt(harness.sent[0].stream[0], 1, to=HERE, number=9) == OK
        assert outgoing.transfer.eod_last_ack_count == count
    assert left == [(1, [b"2"], [b"1"])], "when the receipt is put into its queue, once"
    assert len(messages(queue)) == 1


# -- 3.1.5.1.12


@pytest.mark.requirement("SRMP-3.1.5.1.12-09", "SRMP-3.1.5.1.11-03")
def test_a_full_queue_drops_a_message_with_status_200():
    harness, peer, queue = receiver(quota=1)
    assert peer.send(bytes(2_000), number=1, services=f"<durable/>{DELIVERY}") == OK
    assert (bodies(queue), harness.take()) == ([], [])
    assert len(harness.core.history) == 0
    queue.quota = 100
    assert peer.send(b"small", number=1) == OK
    assert bodies(queue) == [b"small"]


@pytest.mark.requirement("SRMP-3.1.5.1.12-10", "SRMP-3.1.5.1.11-03")
@pytest.mark.parametrize("how", ["quota", "throttled", "memory", "share"])
def test_a_message_for_a_full_queue_manager_is_answered_with_500(how):
    harness, peer, queue = receiver()
    if how == "quota":
        harness.core.queue_manager.queue_manager_quota = 100
    elif how == "throttled":
        harness.core.queues.begin_flow_control()  # the disk is full
    elif how == "share":
        harness.core.messages.quotas.disk_has(0)
    else:
        harness.core.messages.pool._kinds[Kind.EXPRESS].resize(0)
    assert peer.send(number=1, services=DELIVERY) == SERVER_ERROR
    assert (bodies(queue), harness.take()) == ([], [])
    if how in ("throttled", "share"):
        harness.core.queues.end_flow_control()
        harness.core.messages.quotas.disk_has(1 << 30)
        assert peer.send(number=1, services=DELIVERY) == OK  # no duplicate
        assert (bodies(queue), len(harness.take())) == ([b"m"], 1)


def test_undelivered_receipts_use_only_their_senders_memory():
    harness = SrmpHarness(memory=1 << 22, third_place_messages=10_000, third_place_bytes=1 << 30)
    queue, peer = harness.queue("orders", transactional=True), SrmpPeer(harness)
    pool, statuses = harness.core.messages.pool, set()
    for number in range(1, 120):
        statuses.add(peer.send_in_stream(number, number=number))
        harness.advance(600)
        assert pool.used_by(Kind.EXPRESS, PEER_ADDRESS) <= pool.share(Kind.EXPRESS) // 4
    assert statuses == {OK, SERVER_ERROR}
    other = SrmpPeer(harness, THIRD_ID, "10.9.9.9")
    assert other.send_in_stream(1) == OK
    harness.answers = lambda _: OK
    harness.answer()
    following = len(queue.positions)
    assert peer.send_in_stream(following, number=following) == OK


def test_a_response_is_no_message():
    harness, _, queue = receiver()
    assert harness.post(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") == BAD_REQUEST
    assert bodies(queue) == []


# -- the messages of chapter 4


@pytest.mark.requirement("SRMP-3.1.5.1-01", "SRMP-4.1-02", "SRMP-4.2-02", "SRMP-4.4-05")
def test_the_published_messages_are_received():
    harness = SrmpHarness(computer_name="machine2", utc=1_181_321_060)
    simple, ordered = harness.queue("simpleq"), harness.queue("tsimpleq", transactional=True)
    for name in ("4.1", "4.2", "4.3-1", "4.4-1", "4.4-3", "4.4-5"):
        assert harness.post((VECTORS / "srmp" / f"{name}.http").read_bytes()) == OK, name
    first, second, _ = messages(simple)
    assert (first.label, first.destination.text) == (
        "mqsender label", "DIRECT=http://machine2/msmq/private$/simpleq",
    )  # fmt: skip
    assert (first.identifier, first.sent_time, first.time_to_reach_queue) == (
        (NULL_GUID, 1), 1_181_321_059, 86_400,
    )  # fmt: skip
    assert (first.recoverable, first.message_class, len(first.body)) == (False, 0, 13)
    assert not first.acknowledgements_requested
    assert second.identifier == (UUID("caf195ea-615c-4264-ae08-11a4e60194c0"), 20_503)
    assert (second.label, second.sent_time, second.time_to_reach_queue) == ("", 1_184_814_700, 345_600)
    assert (second.priority, second.hash_algorithm) == (3, HashAlgorithm.CALG_SHA1)
    # One id with three SourceQmGuids, all other than the GUID in streamId.
    assert [message.transaction_sequence_number for message in messages(ordered)] == [1, 2, 3]


@pytest.mark.requirement("SRMP-4.3-05")
def test_the_published_receipts_are_received_by_any_clock():
    """The clock here is eleven seconds behind that of their sender, who has received after sending."""
    harness = SrmpHarness(computer_name="machine1", utc=1_184_815_480)
    admin = harness.queue("receipts")
    for name in ("4.3-3", "4.3-5"):
        assert harness.post((VECTORS / "srmp" / f"{name}.http").read_bytes()) == OK, name
    received = [(message.message_class, message.sent_time) for message in messages(admin)]
    assert received == [(0x0002, 1_184_815_491), (0x4000, 1_184_815_641)]
