"""Messages peeked at and received by remote readers: [MS-MQRR] 3.1.4.7 to 3.1.4.9 and 3.1.5.1."""

from __future__ import annotations

from ipaddress import IPv4Address
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from msmqwire.constants import HResult
from msmqwire.constants.ntstatus import NtStatus
from msmqwire.headers import source_address
from msmqwire.names import parse_format_name
from msmqwire.packets import parse
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import INFINITE, AuthenticationLevel, DeliveryGuarantee
from msmqwire.qm.model.tables import Table
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.remote_read.configuration import Limit
from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from msmqwire.qm.rules.serialization import to_stored
from msmqwire.remote_read.constants import Access, Action, Opnum, SectionType
from msmqwire.srmp.http_framer import parse_http
from tests.support import handmade as h
from tests.support.engine_harness import OWN_ID, PEER_ADDRESS, PEER_ID, START_UTC
from tests.support.qm.queue_contents import bodies, states
from tests.support.rpc.remote_read_harness import (
    ANNE,
    AVAILABLE,
    BAD_HANDLE,
    BOB,
    CANCELLED,
    FOREVER,
    FULL,
    INVALID,
    LOCKED,
    NO_MESSAGE,
    NO_TX,
    NOT_FOUND,
    OK,
    ORDERS,
    RR_NACK,
    TX,
    Fault,
    RemoteReadHarness,
    lookup_identifiers,
)
from tests.support.srmp.srmp_requests import SrmpPeer

A = Action
ALREADY = HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED
MINUTES = 300_000
NULL_TRANSACTION = pytest.param(
    NO_TX, marks=pytest.mark.requirement("MQRR-3.1.4.13-30"), id="R_StartTransactionalReceive"
)
BY_EITHER = pytest.mark.parametrize("tx", [pytest.param(None, id="R_StartReceive"), NULL_TRANSACTION])


@pytest.fixture
def queue(harness: RemoteReadHarness) -> Queue:
    return harness.queue()


def fill(harness: RemoteReadHarness, queue: Queue, count: int = 3) -> list[int]:
    """Put messages 1, 2, ... into a queue; return their lookup identifiers."""
    for number in range(1, count + 1):
        harness.enqueue(queue, b"%d" % number)
    return lookup_identifiers(queue)


def cleanup_timers(harness: RemoteReadHarness) -> int:
    """How many Pending Request Cleanup Timers run."""
    armed = [timer for timer, _ in harness.core.context.timers._armed]
    return armed.count(Timer.PENDING_REQUEST_CLEANUP)


# -- which message -------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQRR-3.1.4.7-10", "MQRR-3.1.4.7-17", "MQRR-3.1.4.7-45", "MQRR-3.1.4.7-46", "MQRR-3.1.4.9-05",
    "MQRR-3.1.4.9-12", "MQRR-3.1.1.2-02", "MQRR-3.1.1.2-03", "MQRR-3.1.1.1-01",
)  # fmt: skip
def test_a_receive_locks_its_message_and_its_end_deletes_it(harness, queue, client):
    identifiers = fill(harness, queue)
    handle = client.open()
    assert client.read(handle, request=1) == b"1"
    assert states(queue) == [LOCKED, AVAILABLE, AVAILABLE]
    (context,) = harness.core.remote_read.contexts
    entry = context.pending[1]
    assert (entry.lookup_identifier, entry.context.handle) == (identifiers[0], handle)
    assert client.read(handle, request=2) == b"2"
    assert client.end(handle, 1) == OK
    assert bodies(queue) == [b"2", b"3"]
    assert client.end(handle, 2) == OK
    assert harness.receive(ORDERS) == b"3"
    client.close(handle)
    assert harness.nothing_is_left()


@pytest.mark.requirement("MQRR-3.1.4.9-06", "MQRR-3.1.4.9-12")
@pytest.mark.parametrize("action", [A.MQ_ACTION_RECEIVE, A.MQ_LOOKUP_RECEIVE_CURRENT])
def test_a_message_that_is_given_back_is_at_its_old_place(harness, queue, client, action):
    identifiers = fill(harness, queue)
    handle = client.open()
    lookup, body = (0, b"1") if action is A.MQ_ACTION_RECEIVE else (identifiers[1], b"2")
    assert client.read(handle, action, lookup=lookup, request=1) == body
    assert client.end(handle, 1, RR_NACK) == OK
    assert states(queue) == [AVAILABLE] * 3
    assert bodies(queue) == [b"1", b"2", b"3"]
    other = harness.client(2, BOB)
    assert other.read(other.open()) == b"1"


@pytest.mark.requirement(
    "MQRR-3.1.4.7-05", "MQRR-3.1.4.7-18", "MQRR-3.1.4.7-19", "MQRR-3.1.4.7-47", "MQRR-3.1.4.7-48",
    "MQRR-3.1.4.7-09", "MQRR-3.1.4.7-17", "MQRR-3.1.4.13-07", "MQRR-3.1.4.13-13", "MQRR-3.1.4.7-10",
    "MQRR-3.1.4.7-15", "MQRR-3.1.4.7-16", "MQRR-3.1.4.13-11", "MQRR-3.1.4.13-12", "MQRR-3.1.4.7-45",
)  # fmt: skip
@BY_EITHER
def test_peeking_and_cursors(harness, queue, client, tx):
    fill(harness, queue)
    handle = client.open()
    assert client.read(handle, A.MQ_ACTION_PEEK_CURRENT, tx=tx) == b"1"
    cursor = client.create_cursor(handle)
    assert client.read(handle, A.MQ_ACTION_PEEK_NEXT, cursor=cursor, tx=tx) == 0xC00E001C
    for action, body in (
        (A.MQ_ACTION_PEEK_CURRENT, b"1"),
        (A.MQ_ACTION_PEEK_CURRENT, b"1"),
        (A.MQ_ACTION_PEEK_NEXT, b"2"),
    ):
        assert client.read(handle, action, cursor=cursor, tx=tx) == body
    (context,) = harness.core.remote_read.contexts
    assert not context.pending
    assert states(queue) == [AVAILABLE] * 3
    assert client.read(handle, cursor=cursor, request=1, tx=tx) == b"2"
    assert client.read(handle, A.MQ_ACTION_PEEK_CURRENT, cursor=cursor, tx=tx) == b"3"
    assert client.end(handle, 1) == OK
    assert bodies(queue) == [b"1", b"3"]


@pytest.mark.requirement(
    "MQRR-3.1.4.7-08", "MQRR-3.1.4.7-20", "MQRR-3.1.4.7-21", "MQRR-3.1.4.7-49", "MQRR-3.1.4.7-50",
    "MQRR-3.1.4.7-51", "MQRR-3.1.4.7-52", "MQRR-3.1.4.7-55", "MQRR-3.1.4.13-13", "MQRR-3.1.4.7-05",
    "MQRR-3.1.4.7-38", "MQRR-3.1.4.13-27", "MQRR-3.1.4.13-07", "MQRR-3.1.4.7-13", "MQRR-3.1.4.7-14",
    "MQRR-3.1.4.13-10",
)  # fmt: skip
@BY_EITHER
@pytest.mark.parametrize("seven_bytes", [False, True])
@pytest.mark.parametrize("step, body", [("CURRENT", b"3"), ("NEXT", b"4"), ("PREV", b"2")])
def test_lookups(harness, queue, client, step, body, seven_bytes, tx):
    identifiers = fill(harness, queue, 5)
    lookup = identifiers[2] & (1 << 56) - 1 if seven_bytes else identifiers[2]
    handle = client.open()
    assert client.read(handle, A[f"MQ_LOOKUP_PEEK_{step}"], lookup=lookup, tx=tx) == body
    assert states(queue) == [AVAILABLE] * 5
    (context,) = harness.core.remote_read.contexts
    assert not context.pending
    assert client.read(handle, A[f"MQ_LOOKUP_RECEIVE_{step}"], lookup=lookup, request=1, tx=tx) == body
    assert bodies(queue, LOCKED) == [body]
    assert client.end(handle, 1) == OK
    assert body not in bodies(queue)
    for action in ("PEEK", "RECEIVE"):
        assert client.read(handle, A[f"MQ_LOOKUP_{action}_{step}"], lookup=12345, tx=tx) == NOT_FOUND
    client.close(handle)
    assert harness.nothing_is_left()


@pytest.mark.requirement("MQRR-3.1.4.7-08", "MQRR-3.1.4.7-09")
def test_messages_of_other_readers_are_passed_over(harness, queue, client):
    identifiers = fill(harness, queue, 5)
    other = harness.client(2, BOB)
    theirs, handle = other.open(), client.open()
    for at in (1, 3):
        assert other.read(theirs, A.MQ_LOOKUP_RECEIVE_CURRENT, lookup=identifiers[at]) == b"%d" % (at + 1)
    cursor = client.create_cursor(handle)
    assert client.read(handle, A.MQ_ACTION_PEEK_CURRENT, cursor=cursor) == b"1"
    assert client.read(handle, A.MQ_ACTION_PEEK_NEXT, cursor=cursor) == b"3"
    for action in ("PEEK", "RECEIVE"):
        for step, body in (("NEXT", b"5"), ("PREV", b"1")):
            assert client.read(handle, A[f"MQ_LOOKUP_{action}_{step}"], lookup=identifiers[2]) == body


@pytest.mark.requirement("MQRR-3.1.4.7-54", "MQRR-3.1.4.7-38", "MQRR-3.1.4.7-52")
def test_a_cursor_whose_message_another_has_received(harness, queue, client):
    fill(harness, queue)
    handle = client.open()
    cursor = client.create_cursor(handle)
    client.read(handle, A.MQ_ACTION_PEEK_CURRENT, cursor=cursor)
    assert harness.receive(ORDERS) == b"1"
    assert client.read(handle, A.MQ_ACTION_PEEK_CURRENT, cursor=cursor) == ALREADY
    assert client.read(handle, cursor=cursor, request=1) == ALREADY
    assert client.end(handle, 1) == BAD_HANDLE


# -- arguments -----------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQRR-3.1.4.7-14", "MQRR-3.1.4.7-16", "MQRR-3.1.4.7-40", "MQRR-3.1.4.13-10", "MQRR-3.1.4.13-11",
    "MQRR-3.1.4.13-12", "MQRR-3.1.4.13-14", "MQRR-3.1.4.13-29", "MQRR-3.1.4.7-13", "MQRR-3.1.4.7-38",
    "MQRR-3.1.4.13-27", "MQRR-3.1.4.7-15", "MQRR-3.1.4.7-22",
)  # fmt: skip
@pytest.mark.parametrize("tx", [None, NO_TX, TX], ids=["7", "13", "13 in a transaction"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"action": 1},
        {"action": 0x40000013},
        {"action": 0xFFFFFFFF},
        {"action": A.MQ_ACTION_PEEK_NEXT},
        {"action": A.MQ_ACTION_RECEIVE, "lookup": 7},
        {"action": A.MQ_ACTION_PEEK_CURRENT, "lookup": 7},
        {"action": A.MQ_ACTION_PEEK_NEXT, "cursor": 1, "lookup": 7},
        *({"action": action} for action in A if action.by_lookup_identifier),
        *({"action": action, "lookup": 7, "cursor": 1} for action in A if action.by_lookup_identifier),
        *({"action": action, "lookup": 7, "timeout": 1} for action in A if action.by_lookup_identifier),
    ],
    ids=lambda arguments: " ".join(
        f"{name} {getattr(value, 'name', value)}" for name, value in arguments.items()
    ),
)
def test_arguments_that_do_not_go_together(harness, queue, client, arguments, tx):
    """They are found before the handle is looked up."""
    fill(harness, queue)
    handle = client.open()
    assert client.read(handle, **arguments, tx=tx) == INVALID
    client.close(handle)
    assert client.read(handle, **arguments, tx=tx) == INVALID
    assert states(queue) == [AVAILABLE] * 3
    assert harness.nothing_is_left()


@pytest.mark.requirement("MQRR-3.1.1.3-01", "MQRR-3.1.1.2-01")
def test_request_numbers_belong_to_handles(harness, queue, client):
    fill(harness, queue)
    first, second = client.open(), client.open()
    assert client.read(first, request=7) == b"1"
    assert client.read(second, request=7) == b"2"
    assert client.read(first, request=7) == INVALID
    assert client.end(first, 7) == OK
    assert bodies(queue, LOCKED) == [b"2"]
    assert client.read(first, request=7) == b"3"
    waiting = client.start(first, request=8, timeout=1_000)
    assert client.read(first, A.MQ_ACTION_PEEK_CURRENT, request=8) == INVALID
    assert client.result(waiting) is None
    assert client.end(second, 7, RR_NACK) == OK
    assert client.result(waiting) == b"2"


# -- what comes back -----------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQRR-3.1.4.7-27", "MQRR-3.1.4.7-28", "MQRR-3.1.4.7-29", "MQRR-3.1.4.7-30", "MQRR-3.1.4.7-32",
    "MQRR-3.1.4.7-37", "MQRR-3.1.4.7-52", "MQRR-3.1.4.7-26", "MQRR-3.1.4.13-19", "MQRR-3.1.4.13-21",
    "MQRR-3.1.4.13-26", "MQRR-3.1.4.13-17",
)  # fmt: skip
@BY_EITHER
@pytest.mark.parametrize("action", [A.MQ_ACTION_RECEIVE, A.MQ_ACTION_PEEK_CURRENT])
@pytest.mark.parametrize("limit, infinite", [(3, INFINITE), (60, START_UTC + 65)])
def test_a_whole_message(harness, queue, client, action, limit, infinite, tx):
    harness.advance(5_000)
    time_to_reach_queue = INFINITE if infinite == INFINITE else limit
    harness.send(b"123", to=ORDERS, time_to_reach_queue=time_to_reach_queue, label="label")
    harness.advance(7_000)
    (position,) = queue.positions
    result = client.answer(client.start(client.open(), action, body=3, compound=0, tx=tx))
    assert result.status == OK
    assert result.pdwArriveTime == START_UTC + 5
    assert result.pSequenceId == position.lookup_identifier & 0x00FFFFFFFFFFFFFF
    assert position.lookup_identifier >> 56
    assert result.pdwNumberOfSections == 1
    (section,) = result.ppPacketSections
    assert section.SectionBufferType == SectionType.stFullPacket
    assert section.SectionSizeAlloc == section.SectionSize == len(section.pSectionBuffer)
    packet = parse(section.pSectionBuffer, protocol="remote_read")
    assert packet.MessagePropertiesHeader.MessageBody == b"123"
    assert packet.MessagePropertiesHeader.Label == "label"
    assert packet.BaseHeader.TimeToReachQueue == infinite
    assert position.message.time_to_reach_queue == time_to_reach_queue
    assert packet.ExtensionHeader.Flags.SQ
    assert packet.SubqueueHeader.SubqueueName == ""


@pytest.mark.requirement(
    "MQRR-3.1.4.7-31/c", "MQRR-3.1.4.7-33", "MQRR-3.1.4.7-34", "MQRR-3.1.4.7-35", "MQRR-3.1.4.13-20/c",
    "MQRR-3.1.4.13-22", "MQRR-3.1.4.13-23", "MQRR-3.1.4.13-24", "MQRR-3.1.1.4-01", "MQRR-3.1.1.4-02",
    "MQRR-3.1.4.7-30", "MQRR-3.1.4.13-19",
)  # fmt: skip
@BY_EITHER
def test_a_message_that_is_larger_than_asked_for(harness, queue, client, tx):
    harness.send(b"0123456789", to=ORDERS, label="label", extension=b"extension")
    handle = client.open()
    whole = client.answer(client.start(handle, A.MQ_ACTION_PEEK_CURRENT, tx=tx)).ppPacketSections[0]
    result = client.answer(client.start(handle, body=4, compound=FOREVER, tx=tx))
    first, second = result.ppPacketSections
    assert result.pdwNumberOfSections == 2
    cut = whole.pSectionBuffer.index(b"0123456789") + 4
    assert first.SectionBufferType == SectionType.stBinaryFirstSection
    assert (first.SectionSize, first.SectionSizeAlloc) == (cut, cut + 6)
    assert first.pSectionBuffer == whole.pSectionBuffer[:cut]
    assert second.SectionBufferType == SectionType.stBinarySecondSection
    assert second.SectionSize == second.SectionSizeAlloc == len(second.pSectionBuffer)
    assert whole.pSectionBuffer.endswith(second.pSectionBuffer)


@pytest.mark.requirement("MQRR-2.2.5.1.1-01", "MQRR-2.2.5.1-12", "MQRR-2.2.5.1-07")
@pytest.mark.parametrize("transactional", [False, True])
def test_a_message_that_has_come_by_the_binary_protocol(harness, transactional):
    harness.queue(transactional=transactional)
    tx = {"tx": (1, 0)} if transactional else {}
    harness.accept_session().send_message(b"12345", **tx)
    client = harness.client()
    (full,) = client.answer(client.start(client.open())).ppPacketSections
    packet = parse(full.pSectionBuffer, protocol="remote_read")
    assert packet.MessagePropertiesHeader.MessageBody == b"12345"
    assert (packet.TransactionHeader is not None) == transactional
    assert not packet.UserHeader.Flags.AH
    assert (packet.SRMPEnvelopeHeader, packet.CompoundMessageHeader, packet.TrailingData) == (None, None, b"")
    sender = source_address(IPv4Address(PEER_ADDRESS))
    assert packet.UserHeader.QueueManagerAddress == sender


@pytest.mark.requirement(
    "MQRR-2.2.5.1.2-01",
    "MQRR-3.1.4.7-31/c",
    "MQRR-3.1.4.7-26",
    "MQRR-2.2.5.1-12",
    "MQRR-3.1.1.4-01",
    "MQRR-3.1.4.7-33",
    "MQRR-2.2.5.1.2.2-05",
    "MQRR-2.2.5.1.2.2-06",
    "MQRR-3.1.1.4-02",
)
def test_a_message_that_has_come_by_http(harness, queue, client):
    srmp_of(harness.core).urls.listens(http=80, https=443)
    request = SrmpPeer(harness).message(b"12345")
    srmp_of(harness.core).requested(1, parse_http(request), PEER_ADDRESS)
    harness.run()
    handle = client.open()
    (full,) = client.answer(client.start(handle, A.MQ_ACTION_PEEK_CURRENT, body=0)).ppPacketSections
    assert full.SectionBufferType == SectionType.stFullPacket
    packet = parse(full.pSectionBuffer, protocol="remote_read")
    assert packet.UserHeader.Flags.AH
    present = [name for name in dict(packet) if packet[name] is not None]
    srmp = present.index("SRMPEnvelopeHeader")
    assert present[srmp - 1 : srmp + 2] == [
        "MessagePropertiesHeader",
        "SRMPEnvelopeHeader",
        "CompoundMessageHeader",
    ]
    assert packet.SRMPEnvelopeHeader.Data.endswith("Envelope>")
    compound = packet.CompoundMessageHeader
    assert compound.Data[compound.MsgBodyOffset :][: compound.MsgBodySize] == b"12345"
    assert packet.ExtendedAddressHeader.Address[:4] == bytes([10, 0, 0, 2])
    result = client.answer(client.start(handle, compound=3, body=FOREVER))
    first, second = result.ppPacketSections
    assert first.SectionBufferType == SectionType.stSrmpFirstSection
    assert second.SectionBufferType == SectionType.stSrmpSecondSection
    assert first.pSectionBuffer == full.pSectionBuffer[: first.SectionSize]
    assert full.pSectionBuffer.endswith(second.pSectionBuffer)


@pytest.mark.requirement("MQRR-2.2.5.1-12", "MQRR-3.1.1.4-01")
@pytest.mark.parametrize("envelope, compound", [("<e/>", b""), ("", b"POST 12345")])
def test_an_envelope_or_a_compound_message_alone(harness, queue, client, envelope, compound):
    """As receipts of this queue manager have an envelope alone, for example in a dead-letter queue."""
    harness.enqueue(queue, b"12345", soap_envelope=envelope, soap_compound_message=compound)
    call = client.start(client.open(), A.MQ_ACTION_PEEK_CURRENT)
    assert client.result(call) == b"12345"
    packet = parse(client.answer(call).ppPacketSections[0].pSectionBuffer, protocol="remote_read")
    assert not packet.UserHeader.Flags.AH
    assert (packet.SRMPEnvelopeHeader, packet.CompoundMessageHeader) == (None, None)
    assert packet.MessagePropertiesHeader.MessageBody == b"12345"
    (position,) = queue.positions
    stored = parse(to_stored(position.message))
    assert stored.UserHeader.Flags.AH


@pytest.mark.requirement("MQRR-2.2.5.1-05")
@pytest.mark.parametrize("hops", [0, 1])
def test_the_sender_of_a_message_to_a_private_name(harness, queue, client, hops):
    """Its GUID is there; that of a routing server which has passed the message on is unknown."""
    destination = 3, h.private_id(queue.private_queue_number)
    address = OWN_ID.bytes_le
    harness.accept_session().send_message(b"1", destination=destination, address=address, hops=hops)
    (section,) = client.answer(client.start(client.open())).ppPacketSections
    assert section.pSectionBuffer[16:32] == PEER_ID.bytes_le
    assert section.pSectionBuffer[32:48] == (address if hops else PEER_ID.bytes_le)


@pytest.mark.requirement("MQRR-2.2.5.1-07", "MQRR-2.2.5.1-08", "MQRR-2.2.5.1-10")
@pytest.mark.parametrize(
    "origin, overlay, extended",
    [
        ("", "0400 0100 00000000 7f000001 00000000", 0),
        ("10.1.2.3", "0400 0100 00000000 0a010203 00000000", 1),
        ("2001:db8:1:2::/64", "1000 0600 00000000 20010db800010002", 0),
        ("unknown", "0400 0100 00000000 00000000 00000000", 0),
    ],
)
def test_where_a_message_has_come_from(harness, queue, client, origin, overlay, extended):
    """UserHeader has an address in any case: that of this host for its own messages."""
    harness.enqueue(queue, b"1", origin=origin, destination=parse_format_name(ORDERS))
    (section,) = client.answer(client.start(client.open())).ppPacketSections
    assert section.pSectionBuffer[32:48] == bytes.fromhex(overlay)
    packet = parse(section.pSectionBuffer, protocol="remote_read")
    assert packet.ExtendedAddressHeader.AddressType == extended


@pytest.mark.requirement("MQMQ-2.2.20.6-06", "MQMQ-2.2.20.6-13")
@pytest.mark.parametrize("delivery", DeliveryGuarantee)
def test_readers_do_not_learn_what_was_verified_here(harness, queue, client, delivery):
    position = harness.enqueue(
        queue, delivery_guarantee=delivery, authentication_level=AuthenticationLevel.SIG20, signature=b"sign"
    )
    (section,) = client.answer(client.start(client.open())).ppPacketSections
    security = parse(section.pSectionBuffer, protocol="remote_read").SecurityHeader
    assert (security.Flags.AU, security.Flags.AS, security.SecurityData.Signature) == (0, 0, b"sign")
    if delivery is DeliveryGuarantee.RECOVERABLE:  # the store is told
        assert parse(harness.rows(Table.PACKET)[position.number]).SecurityHeader.Flags.AS == 3


@pytest.mark.requirement("MQRR-2.2.5.3-09")
def test_a_message_in_a_subqueue_says_so(harness, queue, client):
    harness.enqueue(harness.queue("orders;done"), b"1")
    (section,) = client.answer(client.start(client.open(rf"{ORDERS};done"))).ppPacketSections
    packet = parse(section.pSectionBuffer, protocol="remote_read")
    assert packet.SubqueueHeader.SubqueueName == "done"


@pytest.mark.requirement("MQRR-2.2.5.2-04", "MQRR-2.2.5.2-06")
@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("name, known", [("", False), ("dead", True), ("DEADX", True), ("nowhere", False)])
def test_the_dead_letter_queue_of_a_message(harness, name, known, transactional):
    harness.queue(transactional=transactional)
    harness.queue("dead")
    harness.queue("deadx", transactional=True)
    path = rf"here\private$\{name}" if name else ""
    harness.send(b"1", to=ORDERS, transactional=transactional, application_deadletter_queue=path)
    client = harness.client()
    (section,) = client.answer(client.start(client.open())).ppPacketSections
    packet = parse(section.pSectionBuffer, protocol="remote_read")
    flags, header = packet.ExtensionHeader.Flags, packet.DeadLetterHeader
    shown = "" if header is None else header.DeadLetterPathName
    usable = known and (name == "DEADX" or not transactional)
    assert (shown, flags.DL, flags.DI) == (path, bool(name), bool(name) and not usable)


def test_a_message_that_no_section_can_hold_returns_to_its_queue(harness, queue, client):
    """Each reader that waits is told so, however many there are, and none of them loses it."""
    handle = client.open()
    calls = [client.start(handle, timeout=FOREVER) for _ in range(300)]
    harness.enqueue_message(queue, b"1", application_deadletter_queue="a\0b")
    harness.advance(1)
    assert {client.result(call) for call in calls} == {HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED}
    assert states(queue) == [AVAILABLE]
    client.close(handle)
    assert harness.nothing_is_left()


# -- waiting -------------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQRR-3.1.4.7-07", "MQRR-3.1.4.7-53", "MQRR-3.1.2.1-03", "MQRR-3.1.2.1-04", "MQRR-3.1.4.7-56",
    "MQRR-3.1.2-01", "MQRR-3.1.4.13-08", "MQRR-3.1.4.7-47", "MQRR-3.1.4.7-48", "MQRR-3.1.4.7-52",
    "MQRR-3.1.4.7-38", "MQRR-3.1.4.7-45",
)  # fmt: skip
@pytest.mark.parametrize("action", [A.MQ_ACTION_RECEIVE, A.MQ_ACTION_PEEK_CURRENT, A.MQ_ACTION_PEEK_NEXT])
@BY_EITHER
def test_a_read_waits_for_its_timeout(harness, queue, client, action, tx):
    handle = client.open()
    cursor = 0
    if action is A.MQ_ACTION_PEEK_NEXT:
        harness.enqueue(queue, b"0")
        cursor = client.create_cursor(handle)
        client.read(handle, A.MQ_ACTION_PEEK_CURRENT, cursor=cursor)
        client.purge(handle)
    else:
        assert client.read(handle, action, request=1, tx=tx) == NO_MESSAGE
        assert Timer.WAITING_MESSAGE_READ not in {name for name, _ in harness.core.context.timers._armed}
        assert harness.core.remote_read.shares.waiting.total == 0
    call = client.start(handle, action, request=1, timeout=1_500, cursor=cursor, tx=tx)
    harness.advance(1_499)
    assert client.result(call) is None
    harness.advance(1)
    assert client.result(call) == NO_MESSAGE
    assert client.end(handle, 1) == BAD_HANDLE
    client.close(handle)
    assert harness.nothing_is_left()


@pytest.mark.requirement("MQRR-3.1.4.7-07", "MQRR-2.2.4.1-01", "MQRR-3.1.4.7-45")
def test_messages_go_to_the_readers_that_wait_in_their_order(harness, queue, client):
    handle = client.open()
    other = harness.client(2, BOB)
    theirs = other.open()
    peek = client.start(handle, A.MQ_ACTION_PEEK_CURRENT, timeout=FOREVER)
    first = client.start(handle, request=1, timeout=FOREVER)
    second = client.start(handle, request=2, timeout=FOREVER)
    third = other.start(theirs, request=1, timeout=FOREVER)
    fill(harness, queue)
    harness.run()
    assert client.result(peek) == b"1"
    assert [client.result(call) for call in (first, second)] == [b"1", b"2"]
    assert other.result(third) == b"3"
    assert client.end(handle, 2) == OK
    assert client.end(handle, 1, RR_NACK) == OK
    assert other.end(theirs, 1) == OK
    assert bodies(queue) == [b"1"]


@pytest.mark.requirement("MQRR-3.1.4.9-11")
def test_a_queue_that_is_deleted_ends_its_reads(harness, queue, client):
    fill(harness, queue, 1)
    handle = client.open()
    assert client.read(handle, request=1) == b"1"
    call = client.start(handle, timeout=FOREVER)
    harness.core.queues.delete(queue)
    harness.run()
    assert client.result(call) == HResult.MQ_ERROR_QUEUE_DELETED
    assert client.end(handle, 1) == NOT_FOUND
    unavailable = HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE
    assert client.read(handle) == unavailable
    assert client.purge(handle) == unavailable
    assert client.read(handle, tx=TX) == unavailable
    assert client.call(Opnum.R_CreateCursor, phContext=handle).status == unavailable
    assert client.reject(handle, 1) == unavailable
    assert client.close(handle)[0] == OK
    assert harness.nothing_is_left()


# -- R_CancelReceive -----------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQRR-3.1.4.8-02", "MQRR-3.1.4.8-05", "MQRR-3.1.4.8-07", "MQRR-3.1.4.8-08", "MQRR-3.1.4.8-09",
    "MQRR-2.2.4.1-01", "MQRR-3.1.4.7-52", "MQRR-3.1.4.13-08", "MQRR-3.1.4.7-38", "MQRR-3.1.4.7-44",
    "MQRR-3.1.4.7-45",
)  # fmt: skip
@BY_EITHER
@pytest.mark.parametrize("action", [A.MQ_ACTION_RECEIVE, A.MQ_ACTION_PEEK_CURRENT])
def test_a_read_that_waits_is_cancelled_by_handle_and_request(harness, queue, client, action, tx):
    handle, second = client.open(), client.open()
    other = harness.client(2, BOB)
    theirs = other.open()
    calls = [client.start(each, action, request=5, timeout=FOREVER, tx=tx) for each in (handle, second)]
    foreign = other.start(theirs, action, request=5, timeout=FOREVER)
    for context in harness.core.remote_read.contexts:
        (reader,) = context.descriptor.waiting.values()
        assert reader.tag == (context.handle, 5)
    entries = 3 if action.receives else 0
    assert cleanup_timers(harness) == entries
    assert client.cancel(second, 5) == OK
    assert cleanup_timers(harness) == max(entries - 1, 0)
    assert [client.result(call) for call in calls] == [None, CANCELLED]
    assert other.result(foreign) is None
    assert client.cancel(second, 5) == NtStatus.STATUS_NOT_FOUND
    assert client.end(second, 5) == BAD_HANDLE
    harness.enqueue(queue, b"1")
    harness.run()
    assert client.result(calls[0]) == b"1"


@pytest.mark.requirement("MQRR-3.1.4.8-06")
def test_cancelling_what_does_not_wait_changes_nothing(harness, queue, client):
    fill(harness, queue, 1)
    handle = client.open()
    assert client.read(handle, request=5) == b"1"
    assert client.cancel(handle, 5) == NtStatus.STATUS_NOT_FOUND
    assert client.cancel(handle, 6) == NtStatus.STATUS_NOT_FOUND
    assert states(queue) == [LOCKED]
    assert client.end(handle, 5) == OK


def test_a_cancelled_call_ends_with_a_fault(harness, queue, client):
    """By the RPC runtime of the client, which has a PDU of its own for that."""
    handle = client.open()
    call = client.start(handle, request=1, timeout=FOREVER)
    harness.core.remote_read.cancelled(call)
    harness.run()
    with pytest.raises(Fault) as caught:
        client.result(call)
    assert caught.value.status == 0x1C00000D
    fill(harness, queue, 1)
    done = client.start(handle, request=1)
    harness.core.remote_read.cancelled(done)
    harness.core.remote_read.cancelled(999)
    assert client.result(done) == b"1"
    assert client.end(handle, 1) == OK


# -- R_EndReceive --------------------------------------------------------------------------------------------


@pytest.mark.requirement("MQRR-3.1.4.9-07", "MQRR-3.1.4.9-08", "MQRR-3.1.4.9-09", "MQRR-3.1.4.15-07",
                         "MQRR-3.1.4.15-08", "MQRR-3.1.4.15-09")  # fmt: skip
@pytest.mark.parametrize("transactional", [False, True])
def test_ending_what_was_not_begun(harness, queue, client, transactional):
    fill(harness, queue)
    handle, other = client.open(), client.open()
    assert client.end(handle, 1, transactional=transactional) == BAD_HANDLE
    client.read(handle, request=1)
    client.read(handle, request=2)
    assert cleanup_timers(harness) == 2
    assert client.end(handle, 3, transactional=transactional) == INVALID
    assert client.end(other, 1, transactional=transactional) == BAD_HANDLE
    assert client.end(handle, 1, transactional=transactional) == OK
    assert cleanup_timers(harness) == 1
    assert client.end(handle, 1, transactional=transactional) == INVALID
    assert client.end(handle, 2, transactional=transactional) == OK
    assert cleanup_timers(harness) == 0
    assert client.end(handle, 2, transactional=transactional) == BAD_HANDLE
    assert bodies(queue) == [b"3"]


@pytest.mark.requirement("MQRR-3.1.4.9-11", "MQRR-3.1.4.9-09", "MQRR-2.2.4.1-01")
def test_ending_a_receive_that_still_waits(harness, queue, client):
    """Its entry is gone; the call itself goes on, and makes another for its message."""
    handle = client.open()
    call = client.start(handle, request=1, timeout=FOREVER)
    assert client.end(handle, 1) == NOT_FOUND
    assert cleanup_timers(harness) == 0
    assert client.end(handle, 1) == BAD_HANDLE
    fill(harness, queue, 1)
    harness.run()
    assert client.result(call) == b"1"
    assert client.end(handle, 1) == OK
    assert bodies(queue) == []


@pytest.mark.requirement("MQRR-3.1.4.9-04", "MQRR-3.1.4.15-04")
@pytest.mark.parametrize("ack", [0, 3])
@pytest.mark.parametrize("opnum", [Opnum.R_EndReceive, Opnum.R_EndTransactionalReceive])
def test_other_acknowledgements_change_nothing(harness, queue, client, ack, opnum):
    fill(harness, queue, 1)
    handle = client.open()
    client.read(handle, request=1)
    arguments = SimpleNamespace(phContext=handle, dwAck=ack, dwRequestId=1)
    harness.opnums[99] = opnum
    harness.core.remote_read.called(99, 1, ANNE, opnum, arguments)
    harness.run()
    assert harness.answers[99].status == INVALID
    assert states(queue) == [LOCKED]
    assert client.end(handle, 1) == OK


@pytest.mark.requirement("MQRR-3.1.4.9-05")
def test_a_positive_end_is_durable_before_it_is_answered(harness, queue, client):
    harness.send(b"1", to=ORDERS, recoverable=True)
    handle = client.open()
    client.read(handle, request=1)
    answered: list[int] = []  # how many answers there were at each commit
    commit, before = harness.store.commit, len(harness.answers)
    harness.store.commit = lambda changes: (answered.append(len(harness.answers)), commit(changes))[1]
    assert client.end(handle, 1) == OK
    assert answered[0] == before
    assert bodies(harness.restarted().find_queue()) == []


# -- Pending Request Cleanup Timer ---------------------------------------------------------------------------


@pytest.mark.requirement("MQRR-3.1.1.2-04/b")
@pytest.mark.parametrize("now, stamp", [(2**32 - 1, 2**32 - 1), (2**32, 0), (3 * 2**32 + 5, 5)])
def test_the_time_of_a_request_is_of_32_bits(now, stamp):
    """It begins anew after 49.7 days; the time that its message is kept does not."""
    harness = RemoteReadHarness(now=now)
    queue, client = harness.queue(), harness.client()
    fill(harness, queue, 1)
    assert client.read(client.open(), request=1) == b"1"
    (context,) = harness.core.remote_read.contexts
    assert context.pending[1].time_stamp == stamp
    harness.advance(299_999)
    assert states(queue) == [LOCKED]
    harness.advance(1)
    assert states(queue) == [AVAILABLE]


@pytest.mark.requirement(
    "MQRR-3.1.5.1-01", "MQRR-3.1.5.1-02", "MQRR-3.1.2.2-01", "MQRR-3.1.2.2-02", "MQRR-3.1.4.7-43",
    "MQRR-3.1.4.7-44", "MQRR-3.1.1.2-04/a", "MQRR-3.1.4.7-51", "MQRR-3.1.2-01",
)  # fmt: skip
@pytest.mark.parametrize("seconds", [None, 7])
@BY_EITHER
@pytest.mark.parametrize("action", [A.MQ_ACTION_RECEIVE, A.MQ_LOOKUP_RECEIVE_CURRENT])
def test_a_message_that_is_not_ended_in_time_returns(seconds, action, tx):
    harness = RemoteReadHarness() if seconds is None else RemoteReadHarness(pending_s=seconds)
    queue, client = harness.queue(), harness.client()
    limit = 300_000 if seconds is None else 1000 * seconds
    (identifier,) = fill(harness, queue, 1)
    handle = client.open()
    harness.advance(1_234)
    lookup = 0 if action is A.MQ_ACTION_RECEIVE else identifier
    assert client.read(handle, action, lookup=lookup, request=1, tx=tx) == b"1"
    (context,) = harness.core.remote_read.contexts
    assert context.pending[1].time_stamp == 1_234
    harness.advance(limit - 1)
    assert states(queue) == [LOCKED]
    harness.advance(1)
    assert states(queue) == [AVAILABLE]
    assert client.end(handle, 1) == BAD_HANDLE
    other = harness.client(2, BOB)
    theirs = other.open()
    assert other.read(theirs, request=1) == b"1"
    assert other.end(theirs, 1) == OK
    harness.advance(limit)
    assert bodies(queue) == []


@pytest.mark.requirement("MQRR-3.1.2.2-01", "MQRR-3.1.5.1-02")
def test_each_receive_has_a_cleanup_timer_of_its_own(harness, queue, client):
    fill(harness, queue, 2)
    handle = client.open()
    assert client.read(handle, request=1) == b"1"
    harness.advance(1_000)
    assert client.read(handle, request=2) == b"2"
    assert cleanup_timers(harness) == 2
    harness.advance(299_000)
    assert states(queue) == [AVAILABLE, LOCKED]
    assert client.end(handle, 1) == INVALID  # the second has an entry still
    harness.advance(1_000)
    assert states(queue) == [AVAILABLE, AVAILABLE]


@pytest.mark.requirement("MQRR-3.1.5.1-03", "MQRR-3.1.4.9-07")
def test_a_receive_may_wait_longer_than_entries_are_kept(harness, queue, client):
    """Its client has the whole time for the message when it comes."""
    handle = client.open()
    call = client.start(handle, request=1, timeout=FOREVER)
    harness.advance(MINUTES)
    (context,) = harness.core.remote_read.contexts
    assert not context.pending
    assert client.result(call) is None
    harness.advance(MINUTES)
    fill(harness, queue, 1)
    harness.run()
    assert client.result(call) == b"1"
    harness.advance(MINUTES - 1)
    assert states(queue) == [LOCKED]
    assert client.end(handle, 1) == OK
    assert bodies(queue) == []
    client.close(handle)
    assert harness.nothing_is_left()


@pytest.mark.requirement(
    "MQRR-3.1.5.1-01", "MQRR-3.1.1.2-02", "MQRR-3.1.4.7-43", "MQRR-3.1.4.7-46", "MQRR-3.1.1.2-01"
)
def test_the_time_of_an_entry_begins_with_its_message(harness, queue, client):
    handle = client.open()
    call = client.start(handle, request=1, timeout=FOREVER)
    (context,) = harness.core.remote_read.contexts
    entry = context.pending[1]  # before there is a message
    assert (entry.request_id, entry.context.handle, entry.lookup_identifier) == (1, handle, 0)
    harness.advance(MINUTES - 1)
    (identifier,) = fill(harness, queue, 1)
    harness.run()
    assert context.pending[1].lookup_identifier == identifier
    assert client.result(call) == b"1"
    harness.advance(MINUTES - 1)
    assert states(queue) == [LOCKED]
    harness.advance(1)
    assert states(queue) == [AVAILABLE]


# -- limits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [Limit(2, 9), Limit(9, 2)], ids=["of a caller", "of all"])
@pytest.mark.parametrize("name", ["waiting", "pending"])
def test_the_number_of_reads_is_limited(name, limit):
    harness = RemoteReadHarness(**{name: limit})
    harness.queue()
    client, other = harness.client(), harness.client(2, BOB)
    handle, theirs = client.open(), other.open()
    calls = [client.start(handle, timeout=FOREVER, request=number) for number in (1, 2)]
    assert client.read(handle, timeout=1) == FULL
    peek = client.start(handle, A.MQ_ACTION_PEEK_CURRENT, timeout=1)
    assert client.result(peek) == (FULL if name == "waiting" else None)
    foreign = other.start(theirs, timeout=1)
    assert other.result(foreign) == (FULL if limit.total == 2 else None)
    assert client.cancel(handle, 2) == OK
    calls[1] = client.start(handle, timeout=FOREVER)
    assert [client.result(call) for call in calls] == [None, None]
    harness.lose(1)
    harness.lose(2)
    assert harness.nothing_is_left()


def test_a_receive_at_the_limit_of_waits_leaves_no_state():
    harness = RemoteReadHarness(waiting=Limit(0, 0))
    queue = harness.queue(transactional=True)
    client = harness.client()
    transaction = harness.core.transactions.create(UUID(bytes_le=TX))
    handle = client.open()
    for tx in (None, TX):
        assert client.read(handle, timeout=1, tx=tx) == FULL
    harness.core.transactions.abort(transaction.identifier)
    harness.enqueue(queue, b"1")
    assert client.read(handle, request=1) == b"1"
    client.close(handle)
    assert harness.nothing_is_left()


@pytest.mark.requirement("DMPR-3.1.1.17-04")
@pytest.mark.requirement("MQRR-3.1.4.7-12", "MQRR-3.1.4.2-05")
def test_a_destination_of_moves_is_not_for_reading(harness, queue, client):
    fill(harness, queue)
    _, handle = client.open_for_move(ORDERS)
    for action in (A.MQ_ACTION_RECEIVE, A.MQ_ACTION_PEEK_CURRENT):
        assert client.read(handle, action) == HResult.MQ_ERROR_ACCESS_DENIED
    peeking = client.open(access=Access.PEEK_ACCESS)
    assert client.read(peeking, A.MQ_ACTION_PEEK_CURRENT) == b"1"


def test_all_who_wait_to_peek_at_a_message_get_the_same_bytes(
    harness: RemoteReadHarness, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = harness.client()
    handle = client.open()
    monkeypatch.setattr(harness, "_over_the_wire", lambda opnum, results: results)
    peeks = [client.start(handle, A.MQ_ACTION_PEEK_CURRENT, timeout=FOREVER) for _ in range(3)]
    harness.enqueue(queue, b"1")
    harness.run()

    def sections(call: int) -> Any:
        return client.answer(call)["ppPacketSections"]

    assert sections(peeks[1]) is sections(peeks[0]) is sections(peeks[2])
    cut = sections(client.start(handle, A.MQ_ACTION_PEEK_CURRENT, body=0))
    assert cut is not sections(peeks[0])
    client.start(handle, request=1)
    client.call(Opnum.R_EndReceive, phContext=handle, dwAck=RR_NACK, dwRequestId=1)
    again = sections(client.start(handle, A.MQ_ACTION_PEEK_CURRENT, body=0))
    assert again[-1].pSectionBuffer != cut[-1].pSectionBuffer  # AbortCounter
