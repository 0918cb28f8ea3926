"""Session sequences and their acknowledgements: [MS-MQQB] 3.1.1.4, 3.1.1.6, 3.1.5.5, 3.1.6.3 and 3.1.6.4."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import SessionMessageState, SessionState
from tests.support import handmade as h
from tests.support.engine_harness import PEER_ADDRESS, PEER_ID, PEER_QUEUE, EngineHarness
from tests.support.peers.handwritten_peer import HandwrittenPeer
from tests.support.qm.received_packets import SessionHeader

S = SessionState
TX = h.transaction_header


def acks(peer: HandwrittenPeer) -> list[SessionHeader]:
    """The session acknowledgements the peer received."""
    return [
        header for packet in peer.take() if packet.kind == "SessionAck" and (header := packet.session_header)
    ]


def ids(harness: EngineHarness, name: str = PEER_QUEUE) -> list[int]:
    """The MessageIDs in OutgoingMessageTable, in order."""
    return [position.message.identifier.uniquifier for position in harness.transfer(name).table]


def receiving(**settings: object) -> tuple[EngineHarness, HandwrittenPeer]:
    harness = EngineHarness(**settings)  # type: ignore[arg-type]
    harness.queue()
    harness.queue("tx", transactional=True)
    peer = harness.accept_session(recoverable=1_000, ack=30_000)
    return harness, peer


# -- 3.1.1.4: sequences ------------------------------------------------------------------------------------


@pytest.mark.requirement("MQMQ-2.2.20.4-02", "MQMQ-2.2.20.4-03", "MQMQ-2.2.20.4-04")
@pytest.mark.requirement(
    "MQQB-3.1.1.4-02",
    "MQQB-3.1.1.4-03",
    "MQQB-3.1.1.4-04",
    "MQQB-3.1.1.3.1-05",
    "MQQB-3.1.1.3.1-06",
    "MQQB-3.1.1.3.1-28",
)
def test_messages_are_numbered_in_the_order_of_sending() -> None:
    harness = EngineHarness()
    peer = harness.open_session()
    harness.send(recoverable=True)
    harness.send()
    harness.send(transactional=True)
    session, table = peer.session, harness.transfer().table.values()
    assert [entry.sequence_number for entry in table] == [1, 2, 3, 4]
    assert [entry.recoverable_sequence_number for entry in table] == [0, 1, 0, 2]
    assert (session.message_sent_count, session.recoverable_message_sent_count) == (4, 2)
    assert session.unacked_message_count == 4
    assert all(packet.session_header is None for packet in peer.packets), "the number itself is never sent"


@pytest.mark.requirement("MQMQ-2.2.20.4-02")
@pytest.mark.requirement("MQQB-3.1.1.4-01", "MQQB-3.1.3.2-01", "MQQB-3.1.1.3.1-05")
def test_both_sequences_begin_anew_with_each_session() -> None:
    harness = EngineHarness()
    harness.queue()
    peer = harness.open_session(count=3, recoverable=True)
    peer.send(peer.message(), peer.message(recoverable=True))
    peer.disconnect()
    harness.advance(5_000)
    harness.resolve(PEER_ADDRESS)
    reconnected = harness.connect()
    reconnected.answer_handshake()
    session = reconnected.session
    assert (session.message_sent_count, session.recoverable_message_sent_count) == (3, 3)
    assert [entry.sequence_number for entry in harness.transfer().table.values()] == [1, 2, 3]
    assert (session.message_received_count, session.recoverable_message_received_count) == (0, 0)
    reconnected.send(reconnected.message(), reconnected.ack(ack=1))
    assert reconnected.state is S.OPEN
    assert len(ids(harness)) == 3, "express numbers don't acknowledge recoverable messages"


@pytest.mark.requirement("MQMQ-2.2.20.4-02")
@pytest.mark.requirement("MQQB-3.1.1.3.1-07", "MQQB-3.1.1.3.1-08", "MQQB-3.1.1.3.1-11", "MQQB-3.1.1.4-04")
def test_what_is_received_is_counted_by_kind() -> None:
    _, peer = receiving()
    session = peer.session
    counts = []
    for packet in (
        peer.message(),
        peer.message(recoverable=True),
        peer.message(queue="tx", transaction=TX()),
        peer.message(),
    ):
        peer.send(packet)
        counts.append(
            (
                session.message_received_count,
                session.recoverable_message_received_count,
                session.unacked_received_count,
            )
        )
    assert counts == [(1, 0, 1), (2, 1, 2), (3, 2, 3), (4, 2, 4)]
    assert session.state is S.OPEN


@pytest.mark.requirement(
    "MQMQ-2.2.20.4-02", "MQMQ-2.2.20.4-03", "MQMQ-2.2.20.4-04", "MQMQ-2.2.20.4-06", "MQMQ-2.2.20.4-10",
    "MQMQ-2.2.20.4-13", "MQQB-3.1.1.4-01", "MQQB-3.1.1.4-02", "MQQB-3.1.1.4-03", "MQQB-3.1.1.3.1-05",
    "MQQB-3.1.1.3.1-06", "MQQB-3.1.1.3.1-07", "MQQB-3.1.1.3.1-08",
)  # fmt: skip
def test_the_counts_go_on_after_acknowledgements() -> None:
    harness = EngineHarness()
    harness.queue()
    peer = harness.open_session(count=2, recoverable=True)
    session = peer.session
    peer.send(peer.message(), peer.message(recoverable=True))
    peer.send(peer.ack(ack=2, recoverable_ack=1, recoverable_flags=0b11))
    harness.engine.session_timers.send_session_ack(session)
    harness.run()
    assert acks(peer) == [SessionHeader(2, 1, 0b1, 2, 2, 64, 0)]
    assert ids(harness) == []
    harness.send()
    harness.send(recoverable=True)
    table = harness.transfer().table.values()
    assert [(entry.sequence_number, entry.recoverable_sequence_number) for entry in table] == [(3, 0), (4, 3)]
    peer.send(peer.message(), peer.message(recoverable=True))
    assert (session.message_sent_count, session.recoverable_message_sent_count) == (4, 3)
    assert (session.message_received_count, session.recoverable_message_received_count) == (4, 2)
    harness.engine.session_timers.send_session_ack(session)
    harness.run()
    assert acks(peer) == [SessionHeader(4, 2, 0b1, 4, 3, 64, 0)]
    assert session.state is S.OPEN


# -- 3.1.6.4 and 3.1.2.5: acknowledging --------------------------------------------------------------------


@pytest.mark.requirement("MQMQ-2.2.20.4-06", "MQMQ-2.2.20.4-07")
@pytest.mark.requirement(
    "MQQB-3.1.6.4-01", "MQQB-3.1.6.4-02", "MQQB-3.1.6.4-03", "MQQB-3.1.6.4-04", "MQQB-3.1.6.4-05",
    "MQQB-3.1.6.4-06",
    "MQQB-3.1.6.4-07", "MQQB-3.1.6.4-08", "MQQB-3.1.1.6.1-01", "MQQB-3.1.1.6.1-02", "MQQB-3.1.1.6.1-04",
    "MQQB-3.1.1.4-05", "MQQB-3.1.1.3.1-10",
)  # fmt: skip
def test_the_acknowledgement_byte_for_byte() -> None:
    harness, peer = receiving(window_size=60)
    harness.core.routing.routes = {PEER_ID: ["beta"]}
    harness.send(to=f"PRIVATE={PEER_ID}\\00000009", recoverable=True)
    harness.send(to=f"PRIVATE={PEER_ID}\\00000009", count=2)
    peer.take()
    peer.send(peer.message(), peer.message(recoverable=True), peer.message(recoverable=True), peer.message())
    harness.advance(1_000)
    (packet,) = peer.take()
    fields = h.session_header(
        ack=4, recoverable_ack=1, recoverable_flags=0b11, sent=3, recoverable_sent=1, window=60
    )
    assert packet == h.session_ack(fields)
    assert packet.base_flags & (h.IN | h.BASE_SH) == h.IN | h.BASE_SH
    assert packet.internal_flags == 1


@pytest.mark.requirement("MQMQ-2.2.20.4-07", "MQMQ-2.2.20.4-08")
@pytest.mark.requirement("MQQB-3.1.6.4-09", "MQQB-3.1.6.4-08", "MQQB-3.1.1.3.1-09", "MQQB-3.1.1.6.1-06")
def test_what_was_acknowledged_is_not_acknowledged_again() -> None:
    harness, peer = receiving()
    session = peer.session
    peer.send(peer.message(recoverable=True), peer.message(recoverable=True))
    harness.advance(1_000)
    assert acks(peer) == [SessionHeader(2, 1, 0b11, 0, 0, 64, 0)]
    assert (session.recoverable_ack_flags, session.unacked_received_count) == (0, 0)
    assert session.last_acked_recoverable == 2
    peer.send(peer.message(recoverable=True))
    harness.advance(1_000)
    assert acks(peer) == [SessionHeader(3, 3, 0b1, 0, 0, 64, 0)]
    peer.send(peer.message())
    harness.advance(15_000)
    assert acks(peer) == [SessionHeader(4, 0, 0, 0, 0, 64, 0)], "no recoverable message has arrived since"


@pytest.mark.requirement("MQQB-3.1.1.6.1-07")
@pytest.mark.requirement("MQQB-3.1.2.5-01", "MQQB-3.1.6.4-01", "MQQB-3.1.6.4-10", "MQQB-3.1.2.5-03")
def test_express_messages_are_acked_after_half_of_the_wait() -> None:
    harness, peer = receiving()
    timer = Timer.SESSION_ACK_SEND, peer.session.number
    assert harness.time_left(*timer) is None
    peer.send(peer.message())
    assert harness.time_left(*timer) == 15_000
    harness.advance(4_000)
    peer.send(peer.message())
    assert harness.time_left(*timer) == 11_000, "further messages don't delay it"
    harness.advance(10_999)
    assert peer.packets == []
    harness.advance(1)
    assert acks(peer) == [SessionHeader(2, 0, 0, 0, 0, 64, 0)]
    assert harness.time_left(*timer) == 15_000
    harness.advance(45_000)
    assert peer.packets == [], "with nothing to acknowledge no packet is sent"
    assert harness.time_left(*timer) == 15_000


@pytest.mark.requirement("MQQB-3.1.2.5-02", "MQQB-3.1.1.3.1-25")
def test_the_first_recoverable_message_shortens_the_wait() -> None:
    harness, peer = receiving()
    timer = Timer.SESSION_ACK_SEND, peer.session.number
    peer.send(peer.message())
    harness.advance(2_000)
    peer.send(peer.message(recoverable=True))
    assert harness.time_left(*timer) == 1_000
    harness.advance(600)
    peer.send(peer.message(recoverable=True))
    assert harness.time_left(*timer) == 400, "only the first since the last acknowledgement starts it"
    harness.advance(400)
    assert acks(peer) == [SessionHeader(3, 1, 0b11, 0, 0, 64, 0)]
    peer.send(peer.message(recoverable=True))
    assert harness.time_left(*timer) == 1_000


@pytest.mark.requirement("MQQB-3.1.1.3.1-19")
@pytest.mark.parametrize("window", [None, 10, 1])
def test_the_local_window_limits_sending_and_sets_the_acks(window: int | None) -> None:
    """It is 64 unless the administrator sets another; that of the peer is wider."""
    harness, size = EngineHarness(**({} if window is None else {"window_size": window})), window or 64
    queue = harness.queue()
    peer = harness.accept_session(window=1_000, ack=30_000)
    harness.core.routing.routes = {PEER_ID: ["beta"]}
    harness.send(to=f"PRIVATE={PEER_ID}\\00000009", count=size + 5)
    assert peer.kinds() == ["UserMessage"] * size
    for _ in range(5):
        peer.acknowledge()
    assert peer.kinds() == ["UserMessage"] * 5
    for number in range(1, size + 1):
        peer.send(peer.message())
        assert len(acks(peer)) == (number % max(1, size // 2) == 0)
    assert len(queue.positions) == size


@pytest.mark.requirement("MQQB-3.1.1.6.1-07", "MQQB-3.1.1.3.1-20")
@pytest.mark.parametrize(
    ("our_window", "peer_window", "interval"),
    [(64, 64, 32), (10, 64, 5), (64, 8, 4), (64, 1, 1), (64, 0, 1), (3, 3, 1)],
)
def test_half_a_window_is_acknowledged_at_once(our_window: int, peer_window: int, interval: int) -> None:
    harness = EngineHarness(window_size=our_window)
    harness.queue()
    peer = harness.accept_session(window=peer_window, ack=30_000)
    for number in range(1, 2 * interval + 1):
        peer.send(peer.message())
        assert len(acks(peer)) == (number % interval == 0)
    assert harness.time_left(Timer.SESSION_ACK_SEND, peer.session.number) == 15_000


@pytest.mark.requirement(
    "MQQB-3.1.1.3.1-05", "MQQB-3.1.1.3.1-06", "MQQB-3.1.1.3.1-07", "MQQB-3.1.1.3.1-08", "MQQB-3.1.1.3.1-09"
)
def test_the_counts_of_a_session_wrap() -> None:
    harness, peer = receiving()
    harness.core.routing.routes = {PEER_ID: ["beta"]}
    session = peer.session
    session.message_sent_count = session.recoverable_message_sent_count = 0xFFFE
    session.message_received_count = session.recoverable_message_received_count = 0xFFFE
    session.last_acked_recoverable = 0xFFFE
    harness.send(to=f"PRIVATE={PEER_ID}\\00000009", count=2, recoverable=True)
    assert [entry.sequence_number for entry in session.unsaved] == [0xFFFF, 0]
    assert [entry.recoverable_sequence_number for entry in session.unsaved] == [0xFFFF, 0]
    peer.take()
    peer.send(peer.message(recoverable=True), peer.message(recoverable=True))
    harness.advance(1_000)
    assert acks(peer) == [SessionHeader(0, 0xFFFF, 0b11, 0, 0, 64, 0)]
    assert session.last_acked_recoverable == 0


# -- 3.1.5.5: being acknowledged ---------------------------------------------------------------------------


@pytest.mark.requirement("MQMQ-2.2.20.4-06")
@pytest.mark.requirement(
    "MQQB-3.1.5.5.1-01", "MQQB-3.1.5.5.1-02", "MQQB-3.1.5.5.2-01", "MQQB-3.1.1.6.1-03", "MQQB-3.1.1.6-01"
)
def test_express_messages_up_to_the_number_are_dropped() -> None:
    harness = EngineHarness()
    peer = harness.open_session(count=5)
    session, first = peer.session, ids(harness)
    peer.send(peer.ack(ack=3))
    assert ids(harness) == first[3:]
    assert session.unacked_message_count == 2
    assert len(harness.outgoing().positions) == 2
    for repeated in (3, 2, 0):
        peer.send(peer.ack(ack=repeated))
        assert ids(harness) == first[3:], "a repeated acknowledgement changes nothing"
        assert session.unacked_message_count == 2
    peer.send(peer.ack(ack=5))
    assert ids(harness) == []
    assert session.state is S.OPEN


@pytest.mark.requirement("MQQB-3.1.5.5.1-01")
def test_what_was_never_sent_over_the_session_is_not_marked() -> None:
    harness = EngineHarness(window_size=2)
    peer = harness.open_session(count=4)
    assert peer.kinds() == ["UserMessage"] * 2
    peer.session.window_size = 0  # nothing more can be sent
    first = ids(harness)
    peer.send(peer.ack(ack=2, window=1))
    waiting = [
        entry
        for entry in harness.transfer().table.values()
        if entry.state is SessionMessageState.WAITING_TO_SEND
    ]
    assert ids(harness)[-len(waiting) :] == first[-len(waiting) :]
    assert not any(entry.received_session_ack for entry in waiting)


@pytest.mark.requirement("MQQB-3.1.5.5.1-01", "MQQB-3.1.1.3.1-05")
@pytest.mark.parametrize(
    ("ahead", "remaining"),
    [(0, 1), (1, 0), (2, 0), (1_000, 0), (0x7FFF, 0), (0x8000, 2), (0x8001, 2), (0xFFFE, 2), (0xFFFF, 2)],
)
def test_numbers_are_compared_with_their_wrap(ahead: int, remaining: int) -> None:
    harness = EngineHarness()
    peer = harness.open_session(count=1)
    peer.acknowledge()
    peer.session.message_sent_count = 0xFFFE
    harness.send(count=2)
    assert [entry.sequence_number for entry in harness.transfer().table.values()] == [0xFFFF, 0]
    peer.send(peer.ack(ack=(0xFFFF + ahead) % 0x10000))
    assert len(ids(harness)) == remaining
    assert peer.session.unacked_message_count == remaining
    assert peer.state is S.OPEN


@pytest.mark.requirement("MQQB-3.1.1.6-01")
@pytest.mark.requirement("MQQB-3.1.5.5.3-01", "MQQB-3.1.5.5.3-02", "MQQB-3.1.1.6.1-05", "MQQB-3.1.5.5-03")
@pytest.mark.parametrize(
    ("base", "flags", "remaining"),
    [
        (0, 0, [1, 2, 3, 4, 5]),
        (1, 0b1, [2, 3, 4, 5]),
        (1, 0b11111, []),
        (1, 0b10101, [2, 4]),
        (2, 0b101, [3, 5]),
        (3, 0b1, [4, 5]),
        (3, 0b0, [4, 5]),
        (5, 0xFFFF_FFFF, []),
        (0xFFF0, 0xFFFF_FFFF, [1 + 15, 1 + 16]),
    ],
)
def test_recoverable_messages_are_dropped_by_base_and_bits(
    base: int, flags: int, remaining: list[int]
) -> None:
    harness = EngineHarness()
    peer = harness.open_session(count=5, recoverable=True)
    first = ids(harness)
    if base == 0xFFF0:  # the bits extend past the wrap
        for number, entry in enumerate(harness.transfer().table.values()):
            entry.recoverable_sequence_number = (base + (13, 14, 15, 32, 33)[number]) % 0x10000
        remaining = [4, 5]
    peer.send(peer.ack(ack=5, recoverable_ack=base, recoverable_flags=flags))
    assert [first.index(number) + 1 for number in ids(harness)] == remaining
    assert len(harness.outgoing().positions) == len(remaining), "the copies in the queue are dropped too"
    assert peer.session.unacked_message_count == 0


@pytest.mark.requirement("MQQB-3.1.5.5.3-01", "MQQB-3.1.5.5.3-02")
def test_what_was_not_received_has_not_been_saved() -> None:
    harness = EngineHarness()
    peer = harness.open_session(count=3, recoverable=True)
    first = ids(harness)
    peer.send(peer.ack(ack=1, recoverable_ack=1, recoverable_flags=0b111))
    assert ids(harness) == first[1:]
    peer.send(peer.ack(ack=3, recoverable_ack=1, recoverable_flags=0b111))
    assert ids(harness) == []


@pytest.mark.requirement("MQQB-3.1.5.5.3-01", "MQQB-3.1.5.5.2-01", "MQQB-3.1.1.6-01")
def test_flags_cover_recoverable_and_numbers_express_messages() -> None:
    """Flags acknowledge recoverable messages alone, and numbers the express ones alone."""
    harness = EngineHarness()
    peer = harness.open_session(count=2)
    harness.send(count=2, recoverable=True)
    first = ids(harness)
    peer.send(peer.ack(ack=4))
    assert ids(harness) == first[2:], "received does not mean saved"
    harness.send(count=1)
    express = ids(harness)[-1]
    peer.send(peer.ack(ack=4, recoverable_ack=2, recoverable_flags=1))
    assert ids(harness) == [express]


@pytest.mark.requirement("MQQB-3.1.1.6.1-05", "MQQB-3.1.1.6.2-08")
@pytest.mark.requirement("MQQB-3.1.5.5.3-04", "MQQB-3.1.5.5.5-03", "MQQB-3.1.5.5.3-03")
@pytest.mark.parametrize("order_ack_first", [False, True])
def test_transactional_messages_need_both_acknowledgements(order_ack_first: bool) -> None:
    harness = EngineHarness()
    peer = harness.open_session(transactional=True, count=2)
    transfer = harness.transfer()
    first = ids(harness)
    sequence = {"ordinal": transfer.sequence_id.ordinal, "time_stamp": transfer.sequence_id.time_stamp}
    body = h.order_ack_body(**sequence, number=1)

    def order() -> None:
        peer.sent += 1
        peer.send(h.order_ack(body))

    if order_ack_first:
        order()
        assert ids(harness) == first
    peer.send(peer.ack(ack=2, recoverable_ack=1, recoverable_flags=0b11))
    assert ids(harness) == (first[1:] if order_ack_first else first)
    if not order_ack_first:
        order()
        assert ids(harness) == first[1:]
    assert peer.state is S.OPEN


@pytest.mark.requirement("MQQB-3.1.5.5.4-01")
@pytest.mark.parametrize("recoverable", [False, True])
def test_acknowledged_messages_are_journaled_on_request(recoverable: bool) -> None:
    harness = EngineHarness()
    peer = harness.open_session(recoverable=recoverable, positive_journaling_requested=True)
    harness.send(recoverable=recoverable)
    first = ids(harness)
    journal = harness.core.queue_manager.system_journal_queue
    assert journal is not None
    assert len(journal.positions) == 0
    peer.acknowledge()
    assert [position.message.identifier.uniquifier for position in journal.positions] == first[:1]
    assert len(harness.outgoing().positions) == 0


@pytest.mark.requirement("MQQB-3.1.5.5.1-03", "MQQB-3.1.5.5-03")
def test_an_ack_releases_waiting_messages_once_and_in_order() -> None:
    harness = EngineHarness(window_size=3)
    peer = harness.open_session(count=8)
    numbers = ids(harness)
    heard = [packet.MessageID for packet in peer.take()]
    assert heard == numbers[:3]
    for ack, upto in ((1, 4), (2, 5), (5, 8), (8, 8)):
        peer.send(peer.ack(ack=ack))
        heard += [packet.MessageID for packet in peer.take()]
        assert heard == numbers[:upto]


@pytest.mark.requirement("MQQB-3.1.5.5-04", "MQQB-3.1.1.3.1-20")
def test_the_window_of_a_session_header_is_taken_over() -> None:
    harness = EngineHarness()
    peer = harness.open_session(count=1)
    peer.send(peer.ack(ack=1, window=2))
    assert peer.session.received_window_size == 2
    peer.take()
    harness.send(count=5)
    assert peer.kinds() == ["UserMessage"] * 2
    peer.send(peer.ack(ack=3, window=1))
    assert peer.kinds() == ["UserMessage"]
    peer.send(peer.ack(ack=4, window=64))
    assert peer.kinds() == ["UserMessage"] * 2


@pytest.mark.requirement("MQQB-3.1.5.5.5-01", "MQQB-3.1.5.5-03")
@pytest.mark.parametrize(
    "wrong", [{"sent": 1}, {"sent": 3}, {"recoverable_sent": 0}, {"recoverable_sent": 2}], ids=str
)
@pytest.mark.parametrize("piggy_backed", [False, True])
def test_wrong_counts_close_the_session(wrong: dict[str, int], piggy_backed: bool) -> None:
    harness = EngineHarness()
    queue = harness.queue()
    peer = harness.open_session(count=2, positive_journaling_requested=True)
    peer.send(peer.message(recoverable=True), peer.message())
    if piggy_backed:
        wrong = {name: value + (name == "sent") for name, value in wrong.items()}
        peer.send(peer.message(header={"ack": 1} | wrong))
        assert len(queue.positions) == 3, "the message that carried it is in its queue nevertheless"
    else:
        peer.send(peer.ack(ack=1, **wrong))
    assert peer.closed
    assert len(ids(harness)) == 1, "its acknowledgement counts"
    journal = harness.core.queue_manager.system_journal_queue
    assert journal is not None
    assert len(journal.positions) == 1, "and is journaled before the counts are looked at"


@pytest.mark.requirement("MQQB-2.2.6-04")
@pytest.mark.requirement("MQQB-3.1.5.5.5-01", "MQQB-3.1.5.5-02", "MQQB-3.1.1.6.1-01", "MQQB-3.1.1.4-05")
def test_a_piggybacked_header_counts_its_own_message() -> None:
    harness = EngineHarness()
    harness.queue()
    peer = harness.open_session(count=2)
    peer.send(peer.message(recoverable=True, header={"ack": 2}))
    assert ids(harness) == []
    assert peer.state is S.OPEN
