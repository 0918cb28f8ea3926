"""Identifying, verifying and refusing packets: [MS-MQQB] 3.1.5.1."""

from __future__ import annotations

import struct

import pytest

from msmqwire.qm.model.effects import Disconnect, SendDatagram
from msmqwire.qm.protocols.binary.states import SessionState
from tests.support import handmade as h
from tests.support.engine_harness import OWN_ID, PEER_ID, EngineHarness
from tests.support.peers.handwritten_peer import HandwrittenPeer, direct

S = SessionState


def opened() -> tuple[EngineHarness, HandwrittenPeer]:
    harness = EngineHarness()
    harness.queue()
    return harness, harness.accept_session()


def ordering_ack(peer: HandwrittenPeer, message_class: int, body: bytes, **changes: object) -> bytes:
    """An acknowledgement for the harness's order_queue$, counted by the peer."""
    peer.sent += 1
    dm = 0x20 if message_class >= 0x4000 else 0
    peer.recoverable_sent += bool(dm)
    number = changes.pop("number", 4)
    assert isinstance(number, int)
    return h.order_ack(
        body,
        destination=(3, h.private_id(number)),
        message_class=message_class,
        user_flags=dm,
        **changes,  # type: ignore[arg-type]
    )


def queued(harness: EngineHarness) -> int:
    """The number of messages in all application queues."""
    return sum(len(queue.positions) for queue in harness.core.queue_manager.queues.values())


# -- 3.1.5.1: ReceivedAck ---------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.5.1-01", "MQQB-3.1.1.3.1-23")
@pytest.mark.parametrize("what", ["message", "ack", "order", "final"])
def test_any_packet_sets_received_ack(what: str) -> None:
    _, peer = opened()
    peer.session.received_ack = False
    body = h.order_ack_body()
    packets = {
        "message": peer.message,
        "ack": peer.ack,
        "order": lambda: ordering_ack(peer, 0xFF, body),
        "final": lambda: ordering_ack(peer, 0x4000, h.final_ack_body()),
    }
    peer.send(packets[what]())
    assert peer.session.received_ack is True
    assert peer.state is S.OPEN


@pytest.mark.requirement("MQQB-3.1.5.1-01")
def test_packets_of_the_handshake_set_received_ack_too() -> None:
    harness = EngineHarness()
    peer = harness.accept_connection()
    assert peer.session.received_ack is False
    peer.send(peer.establish())
    assert peer.session.received_ack is True
    peer.session.received_ack = False
    peer.send(peer.parameters())
    assert peer.session.received_ack is True


# -- 3.1.5.1.1: the kinds ------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.5.1-02/a", "MQQB-3.1.5.1.1-01", "MQQB-3.1.5.1.1-02")
def test_internal_packets_are_known_by_in_and_pt() -> None:
    harness = EngineHarness()
    peer = harness.accept_connection()
    peer.send(peer.establish(internal=2))
    assert peer.state is S.WAITING_CP_MSG
    peer.send(peer.parameters(internal=3))
    assert peer.state is S.OPEN


@pytest.mark.requirement("MQQB-3.1.5.1.1-01", "MQQB-3.1.5.1.1-02", "MQQB-3.1.5.1.1-03")
@pytest.mark.parametrize("internal", [0, 1, 3, 4, 15])
def test_an_establish_connection_packet_with_another_pt_is_none(internal: int) -> None:
    harness = EngineHarness()
    peer = harness.accept_connection()
    peer.send(peer.establish(internal=internal))
    assert peer.closed
    assert peer.packets == []


@pytest.mark.requirement("MQQB-3.1.5.1.1-03", "MQQB-3.1.5.5-02")
def test_a_session_ack_has_in_and_sh_and_pt_1() -> None:
    harness = EngineHarness()
    peer = harness.open_session()
    peer.send(peer.ack(ack=1))
    assert len(harness.transfer().table) == 0
    assert peer.state is S.OPEN
    peer.send(h.session_ack(peer.header(), flags=3 | h.IN))  # without SH there is no SessionHeader
    assert peer.closed


@pytest.mark.requirement("MQMQ-2.2.19.2-11")
@pytest.mark.parametrize("message_class", [0x00FF, 0x4000])
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_an_ack_with_an_unknown_delivery_mode_ends_the_session(mode: int, message_class: int) -> None:
    _, peer = opened()
    body = h.order_ack_body() if message_class == 0x00FF else h.final_ack_body()
    peer.send(h.order_ack(body, message_class=message_class, user_flags=mode << 5))
    assert peer.closed is (mode > 1)
    assert peer.session.recoverable_message_received_count == (mode == 1)


@pytest.mark.requirement("MQQB-3.1.5.1.1-04")
def test_an_order_ack_is_known_by_five_things() -> None:
    harness = EngineHarness()
    peer = harness.open_session(transactional=True, count=1)
    transfer = harness.transfer()
    ids = {"ordinal": transfer.sequence_id.ordinal, "time_stamp": transfer.sequence_id.time_stamp}
    peer.acknowledge()
    before = queued(harness)
    body = h.order_ack_body(**ids, number=1)
    wrong = [
        ordering_ack(peer, 0x00FF, body, flags=3),  # BaseHeader.Flags
        ordering_ack(peer, 0x00FF, body, number=5),  # DestinationQueue
        ordering_ack(peer, 0x00FF, body, label="QM Ordering Nack"),
        ordering_ack(peer, 0x00FF, body + bytes(4)),  # MessageSize
        ordering_ack(peer, 0x0000, body),  # MessageClass
    ]
    for packet in wrong:
        peer.send(packet)
        assert len(transfer.ordered) == 1, "it is not an OrderAck"
    assert not peer.closed
    assert peer.session.message_received_count == len(wrong)
    peer.send(ordering_ack(peer, 0x00FF, body))
    assert len(transfer.ordered) == 0
    assert queued(harness) <= before, "an OrderAck is not put into any queue"


@pytest.mark.requirement("MQQB-3.1.5.1.1-05")
def test_a_final_ack_is_known_by_four_things() -> None:
    harness = EngineHarness()
    peer = harness.open_session(transactional=True, count=1, positive_journaling_requested=True)
    transfer = harness.transfer()
    ids = {"ordinal": transfer.sequence_id.ordinal, "time_stamp": transfer.sequence_id.time_stamp}
    message = next(iter(transfer.table.values())).position.message
    peer.acknowledge()
    peer.send(ordering_ack(peer, 0x00FF, h.order_ack_body(**ids, number=1)))
    assert len(transfer.awaiting_final_ack) == 1
    body = h.final_ack_body(**ids, source=OWN_ID.bytes_le, message_id=message.identifier.uniquifier)
    wrong = [
        ordering_ack(peer, 0x4000, body, flags=3),
        ordering_ack(peer, 0x4000, body, number=5),
        ordering_ack(peer, 0x4000, body, label="QM Ordering Nack"),
        ordering_ack(peer, 0x3FFF, body),
    ]
    for packet in wrong:
        peer.send(packet)
        assert len(transfer.awaiting_final_ack) == 1, "it is not a FinalAck"
    peer.send(ordering_ack(peer, 0x4000, body))
    assert len(transfer.awaiting_final_ack) == 0
    assert not peer.closed


@pytest.mark.requirement("MQQB-3.1.5.1.1-06")
@pytest.mark.parametrize("message_class", [0x0000, 0x0001, 0x0002, 0x1234, 0x4000, 0x8002, 0xC004])
def test_every_other_packet_without_in_is_a_user_message(message_class: int) -> None:
    harness, peer = opened()
    queue = harness.core.queues.lookup.path("here\\private$\\orders")
    assert queue is not None
    peer.sent += 1
    user = h.user_header(
        source=PEER_ID.bytes_le, flags=h.MP, destination=(7, h.direct_name("OS:here\\private$\\orders"))
    )
    peer.send(
        h.user_message(user=user, properties=h.properties_header(body=b"x", message_class=message_class))
    )
    assert [position.message.message_class for position in queue.positions] == [message_class]
    assert peer.state is S.OPEN


@pytest.mark.requirement("MQQB-3.1.5.1.1-07")
def test_only_pings_are_valid_on_the_ping_port() -> None:
    harness, peer = opened()
    harness.new_effects()
    for packet in (peer.establish(), peer.message(count=False), peer.ack(), h.ping()[:23], h.ping() + b"x"):
        harness.engine.datagram(packet, "10.0.0.9", 4242, request=True)
    assert harness.new_effects() == []
    harness.engine.datagram(h.ping(cookie=5), "10.0.0.9", 4242, request=True)
    assert [type(effect) for effect in harness.new_effects()] == [SendDatagram]


@pytest.mark.requirement("MQQB-3.1.5.1.1-07")
def test_a_ping_is_no_packet_of_a_session() -> None:
    _, peer = opened()
    peer.send(h.ping())
    assert peer.closed


# -- 3.1.5.1.2 and 3.1.5.1.3: verified, or refused ---------------------------------------------------------


def of_base(packet: bytes, at: int, field: bytes) -> bytes:
    return packet[:at] + field + packet[at + len(field) :]


@pytest.mark.requirement("MQQB-3.1.5.1-02/b", "MQQB-3.1.5.1.2-01", "MQQB-3.1.5.1.2-02")
@pytest.mark.parametrize(
    ("at", "field"),
    [(0, b"\x11"), (0, b"\x00"), (0, b"\xff"), (4, b"ROIL"), (4, b"LIOS"), (4, bytes(4)), (4, b"\x00IOR")],
)
def test_another_version_or_signature_ends_the_session(at: int, field: bytes) -> None:
    harness, peer = opened()
    queue = harness.core.queues.lookup.path("here\\private$\\orders")
    good, bad = peer.message(), of_base(peer.message(), at, field)
    assert good[4:8] == b"LIOR"
    assert good[0] == 0x10
    peer.send(good, bad, peer.message())
    assert queue is not None
    assert len(queue.positions) == 1, "the bad packet and everything after it are discarded"
    assert peer.closed
    assert peer.session.number not in harness.engine.sessions
    assert harness.last_effect(Disconnect) == Disconnect(peer.connection)


def malformed(peer: HandwrittenPeer) -> dict[str, bytes]:
    message, ack = peer.message(count=False), peer.ack()
    properties = 16 + 48 + len(direct()[1])
    return {
        "PacketSize below 16": of_base(message, 8, struct.pack("<L", 15)),
        "PacketSize 0": of_base(message, 8, bytes(4)),
        "PacketSize above the limit": of_base(message, 8, struct.pack("<L", 0x0040_0001)),
        "PacketSize of all ones": of_base(message, 8, b"\xff" * 4),
        "PacketSize inside a header": of_base(message[:40], 8, struct.pack("<L", 40)),
        "a body longer than the packet": of_base(message, properties + 32, struct.pack("<L", 1 << 20)),
        "an unknown form of queue": of_base(message, 60, struct.pack("<L", h.MP | 1 << 10)),
        "no internal header": h.base_header(16, 3 | h.IN),
        "PT 7": ack[:18] + b"\x07\x00" + ack[20:],
        "AckTimeout below its range": peer.parameters(ack=19_999),
        "RecoverableAckTimeout below its range": peer.parameters(recoverable=499),
        "a SessionHeader with WindowSize 0": peer.ack(window=0),
        "a SessionAck with more bytes": of_base(ack + bytes(4), 8, struct.pack("<L", 40)),
    }


@pytest.mark.requirement("MQQB-3.1.5.1-02/c", "MQQB-3.1.5.1.3-01", "MQQB-3.1.1.1.1.2-09")
@pytest.mark.parametrize("name", sorted(malformed(HandwrittenPeer(EngineHarness(), 0, PEER_ID))))
def test_a_packet_that_is_not_well_formed_ends_the_session(name: str) -> None:
    harness, peer = opened()
    queue = harness.core.queues.lookup.path("here\\private$\\orders")
    assert queue is not None
    peer.send(malformed(peer)[name], peer.message())
    assert peer.closed, name
    assert len(queue.positions) == 0
    assert peer.packets == []
    assert peer.session.number not in harness.engine.sessions


@pytest.mark.requirement("MQQB-3.1.5.1.3-01", "MQQB-3.1.5.4.1-01")
@pytest.mark.parametrize(
    "fields", [{"ack": 19_999}, {"ack": 120_001}, {"recoverable": 499}, {"recoverable": 120_001}], ids=str
)
def test_parameters_out_of_range_end_an_unopened_session(fields: dict[str, int]) -> None:
    harness = EngineHarness()
    peer = harness.accept_connection()
    peer.send(peer.establish(), peer.parameters(**fields))
    assert peer.closed
    assert peer.kinds() == ["EstablishConnection"]


@pytest.mark.requirement("MQQB-3.1.5.1.3-01")
def test_nothing_of_a_refused_packet_is_processed() -> None:
    harness = EngineHarness()
    peer = harness.open_session(count=2)
    bad = peer.message(header={"ack": 2, "window": 0})
    peer.send(bad)
    assert peer.closed
    assert len(harness.transfer().table) == 2, "its SessionHeader does not count"


@pytest.mark.requirement("MQQB-3.1.5.1-02/a")
def test_packets_may_arrive_in_segments_of_any_size() -> None:
    harness, peer = opened()
    queue = harness.core.queues.lookup.path("here\\private$\\orders")
    assert queue is not None
    stream = peer.message() + peer.message(header={}) + peer.ack() + peer.message()
    for at in range(len(stream)):
        peer.send(stream[at : at + 1])
    assert len(queue.positions) == 3
    assert peer.state is S.OPEN


def test_half_a_packet_is_forgotten_with_its_connection() -> None:
    harness = EngineHarness()
    peer = harness.open_session()
    peer.send(peer.message(count=False)[:30])
    peer.disconnect()
    harness.advance(5_000)
    harness.resolve("10.0.0.2")
    second = harness.connect()
    second.answer_handshake()
    second.send(second.message(count=False))
    assert second.state is S.OPEN
    assert second.session.message_received_count == 1
