"""What the engine writes into the headers of the messages that it sends: [MS-MQMQ] 2.2.19 and 2.2.20.

Rows on senders, proved by what a peer receives.
"""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest

from msmqwire.constants import EncryptionAlgorithm
from msmqwire.names import parse_format_name
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.model.elements import Queue, QueueManager
from msmqwire.qm.model.enumerations import (
    AcknowledgementsRequested,
    AuthenticationLevel,
    DeliveryGuarantee,
    QueueType,
)
from msmqwire.qm.model.message import Message
from msmqwire.qm.rules import serialization
from tests.support import handmade as h
from tests.support.engine_harness import (
    PEER_ADDRESS,
    THIRD_ID,
    EngineHarness,
    harness_with_peer,
)
from tests.support.qm.queue_contents import bodies
from tests.support.qm.received_packets import ReceivedPacket

requirement = pytest.mark.requirement
FAR = UUID(int=0xFA)
ADMIN, ANSWERS = r"DIRECT=OS:here\private$\adm", r"DIRECT=OS:here\private$\answers"
REQUESTED = AcknowledgementsRequested(0x0F)
DM, DQ, AQ, RQ = 0x60, 0x1C00, 0xE000, 0x70000
DE = 0x40


def harness_with_far(**options: Any) -> EngineHarness:
    """A harness whose peer is the queue manager FAR, also by the directory and by routing."""
    harness = EngineHarness(
        hosts={PEER_ADDRESS: FAR}, names={"far": PEER_ADDRESS}, routes={FAR: ["far"]}, **options
    )
    return harness


def sent(harness: EngineHarness, body: bytes = b"m", **message: Any) -> ReceivedPacket:
    """Send a message; return its packet as the peer receives it."""
    harness.send(body, **message)
    (packet,) = harness.called[0].take("UserMessage")
    return packet


# -- BaseHeader -----------------------------------------------------------------------------------------


@requirement("MQMQ-2.2.19.1-08", "MQMQ-2.2.19.1-09", "MQMQ-2.2.19.1-10")
@requirement("MQMQ-2.2.19.1-13")
def test_packets_of_the_session_bear_no_debug_header() -> None:
    """Also where the messages around them do."""
    harness = harness_with_peer()
    harness.queue()
    trace = {"tracing_requested": True, "tracing_queue_identifier": THIRD_ID}
    packet = sent(harness, **trace)
    assert packet.base_flags & h.DH
    (peer,) = harness.called
    peer.send(peer.message(b"in", trace=THIRD_ID), peer.message(b"tx", trace=THIRD_ID, tx=(1, 0)))
    harness.advance(60_000)
    others = {packet.kind: packet.base_flags for packet in peer.all_packets if packet.kind != "UserMessage"}
    assert others == {
        "EstablishConnection": h.IN | 3, "ConnectionParameters": h.IN | 3, "SessionAck": h.IN | h.BASE_SH | 3,
        "OrderAck": 0, "FinalAck": 0,
    }  # fmt: skip


@requirement("MQMQ-2.2.19.1-14")
@requirement("MQMQ-2.2.19.1-15")
@pytest.mark.parametrize("queue", [THIRD_ID, UUID(int=0)], ids=["queue", "no queue"])
def test_a_traced_message_has_a_debug_header(queue: UUID) -> None:
    packet = sent(harness_with_peer(), tracing_requested=True, tracing_queue_identifier=queue)
    assert packet.base_flags & (h.TR | h.DH) == h.TR | h.DH
    assert packet.endswith(h.debug_header(queue.bytes_le if queue.int else None))
    assert sent(harness_with_peer()).base_flags & (h.TR | h.DH) == 0


# -- UserHeader -----------------------------------------------------------------------------------------


@requirement("MQMQ-2.2.19.2-03")
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(
    ("name", "form", "address"),
    [
        (rf"DIRECT=TCP:{PEER_ADDRESS}\private$\q", 7, UUID(int=0)),
        (r"DIRECT=OS:far\q", 7, UUID(int=0)),
        (rf"PRIVATE={FAR}\00000009", 3, FAR),
        (f"PUBLIC={THIRD_ID}", 5, FAR),
    ],
    ids=["TCP", "OS", "private", "public"],
)
def test_the_address_is_that_of_the_destination(name: str, form: int, address: UUID, restarted: bool) -> None:
    directory = EmbeddedDirectory()
    far = QueueManager(FAR, computer_name="far", qualified_computer_name="far")
    queue = Queue(THIRD_ID, pathname="far\\q", queue_type=QueueType.PUBLIC, queue_manager=far)
    harness = harness_with_far(directory=directory)
    for element in (far, queue):
        directory.create_directory_object(element)
    harness.core.queue_manager.directory_integrated = True
    packet = sent(harness, to=name, recoverable=True)
    if restarted:
        harness = harness.restarted()
        (packet,) = harness.called[0].take("UserMessage")
    assert ((packet.Flags & DQ) >> 10, packet.QueueManagerAddress) == (form, address.bytes_le)


@requirement("MQMQ-2.2.19.2-26")
@pytest.mark.parametrize("response", [None, ADMIN, ANSWERS])
@pytest.mark.parametrize(
    ("admin", "requested", "expected"),
    [(ADMIN, REQUESTED, 7), (ADMIN, 0, 0), (None, REQUESTED, 0), (None, 0, 0)],
)
def test_admin_queues_are_sent_when_acks_are_requested(
    admin: str | None, requested: int, expected: int, response: str | None
) -> None:
    """Requests without a queue are sent as the captured sender sends them: [MS-MQQB] 4.1.7."""
    packet = sent(
        harness_with_peer(),
        administration=admin and parse_format_name(admin),
        acknowledgements_requested=AcknowledgementsRequested(requested),
        response=response and parse_format_name(response),
    )
    assert (packet.wants, (packet.Flags & AQ) >> 13) == (requested, expected)
    assert packet.AdminQueue == (r"OS:here\private$\adm" if expected else b"")
    if expected and response == ADMIN:
        assert (packet.Flags & RQ) >> 16 == 1
    elif response is not None:
        assert packet.ResponseQueue == response.removeprefix("DIRECT=")


@requirement("MQMQ-2.2.19.2-33")
def test_a_transactional_message_is_never_express() -> None:
    for transactional, expected in ((True, 0x20), (False, 0)):
        packet = sent(harness_with_peer(), transactional=transactional)
        assert (packet.Flags & DM, packet.Flags & h.TH != 0) == (expected, transactional)
    express = Message(destination=parse_format_name(ADMIN), transaction_identifier=THIRD_ID)
    assert express.delivery_guarantee is DeliveryGuarantee.EXPRESS
    packet = ReceivedPacket(serialization.to_packet(express))
    assert packet.Flags & (DM | h.TH) == 0x20 | h.TH


@requirement("MQMQ-2.2.19.2-39")
def test_what_came_over_http_is_not_sent_on() -> None:
    """Neither of an own message nor of one that a peer sends along with it."""
    headers: dict[str, Any] = {"soap_envelope": "<e/>", "soap_compound_message": b"POST"}
    own = sent(harness_with_peer(), **headers)
    assert own.Flags & h.AH == 0
    received = Message(destination=parse_format_name(ADMIN), **headers)
    assert ReceivedPacket(serialization.to_packet(received)).Flags & h.AH == 0
    harness = harness_with_far()
    peer = harness.accept_session()
    peer.send_message(
        b"on", address=FAR.bytes_le, destination=(3, h.private_id(9)),
        srmp=h.srmp_envelope_header(), compound=h.compound_message_header(),
    )  # fmt: skip
    (packet,) = harness.called[0].take("UserMessage")
    assert (packet.Flags & h.AH, packet.body) == (0, b"on")
    assert b"POST" not in packet


# -- MessagePropertiesHeader and SecurityHeader ---------------------------------------------------------


@requirement("MQMQ-2.2.19.3-39")
@pytest.mark.parametrize("algorithm", EncryptionAlgorithm)
@pytest.mark.parametrize("level", [1, 3, 5])
def test_a_body_is_not_sent_under_a_cipher_of_another_level(level: int, algorithm: int) -> None:
    harness = harness_with_peer()
    harness.send(
        b"sealed", privacy_level=level, encryption_algorithm=algorithm, symmetric_key=b"k" * 76,
        negative_journaling_requested=True,
    )  # fmt: skip
    packets = harness.called[0].take("UserMessage")
    dead = bodies(harness.core.queue_manager.system_deadletter_queue)
    if algorithm in ({0x6602, 0x6801} if level < 5 else {0x660E, 0x660F, 0x6610}):
        assert [(packet.PrivacyLevel, packet.EncryptionAlgorithm) for packet in packets] == [
            (level, algorithm)
        ]
        assert dead == []
    else:
        assert (packets, dead) == ([], [b"sealed"])


def sizes(packet: ReceivedPacket) -> tuple[int, ...]:
    """The five sizes of a SecurityHeader."""
    assert packet.SecurityHeader is not None
    return struct.unpack_from("<HHHLL", packet.SecurityHeader, 2)


@requirement("MQMQ-2.2.20.6-08", "MQMQ-2.2.20.6-35", "MQMQ-2.2.20.6-36")
@requirement("MQMQ-2.2.20.6-09")
@pytest.mark.parametrize("name", ["", "Microsoft Base Cryptographic Provider, v1.0", "Other Provider"])
def test_a_signature_of_another_provider_names_it(name: str) -> None:
    packet = sent(
        harness_with_peer(), signature=b"s" * 64, sender_certificate=b"c" * 9,
        authentication_provider_type=0x18, authentication_provider_name=name,
    )  # fmt: skip
    by_system = not name.startswith("Other")
    assert packet.SecurityHeader is not None
    assert (packet.SecurityHeader[0] & DE != 0) == by_system
    assert sizes(packet)[2] == 64
    provider = b"" if by_system else struct.pack("<L", 0x18) + h.wide(name)
    assert sizes(packet)[4] == len(provider)
    assert packet.SecurityHeader.endswith(h.padded(provider))


@requirement("MQMQ-2.2.20.6-20")
@pytest.mark.parametrize(
    ("attributes", "is_sent"),
    [
        ({"sender_identifier": b"sid."}, True),
        ({"symmetric_key": b"k" * 76, "privacy_level": 3}, True),
        ({"signature": b"s", "authentication_level": AuthenticationLevel.SIG20}, True),
        ({"sender_certificate": b"c"}, True),
        ({"authentication_provider_type": 1}, True),
        ({"multiple_destination_signature": b"s", "sender_certificate": b"c"}, True),
        ({"privacy_level": 3}, False),
        ({"authentication_level": AuthenticationLevel.SIG20}, False),
        ({"authentication_level": AuthenticationLevel.SIG30, "multiple_destination_signature": b"s"}, False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else None,
)
def test_a_security_header_is_never_empty(attributes: dict[str, Any], is_sent: bool) -> None:
    """A message that would have an empty one can't be protected as it asks, and is not sent."""
    harness = harness_with_peer()
    harness.send(b"m", **attributes)
    packets = harness.called[0].take("UserMessage")
    assert len(packets) == is_sent
    assert all(any(sizes(packet)) for packet in packets)


def test_a_message_without_security_data_has_no_security_header() -> None:
    assert sent(harness_with_peer()).SecurityHeader is None
