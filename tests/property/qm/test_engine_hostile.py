"""Hostile peers: whatever they send, the engine carries on, in a defined state and within bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import SessionMessageState, SessionState
from tests.support import handmade as h
from tests.support.engine_harness import OWN_ID, PEER_ADDRESS, PEER_ID, PEER_QUEUE, START_UTC, EngineHarness
from tests.support.peers.handwritten_peer import HandwrittenPeer

COUNTS = st.sampled_from([0, 1, 2, 3, 31, 32, 33, 63, 64, 65, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF]) | st.integers(
    0, 0xFFFF
)
FLAGS = st.sampled_from([0, 1, 3, 0x8000_0000, 0xFFFF_FFFF]) | st.integers(0, 0xFFFF_FFFF)
NUMBERS = st.sampled_from([0, 1, 2, 3, 0x7FFF_FFFF, 0xFFFF_FFFF]) | st.integers(0, 0xFFFF_FFFF)
GUIDS = st.sampled_from([OWN_ID, PEER_ID, UUID(int=0), UUID(int=2**128 - 1)]).map(lambda guid: guid.bytes_le)
HISTORY = 20
LIMIT = 0x0040_0010
"""Bytes of the largest packet, with its SessionHeader."""


def session_headers() -> st.SearchStrategy[bytes]:
    return st.builds(
        h.session_header, ack=COUNTS, recoverable_ack=COUNTS, recoverable_flags=FLAGS, sent=COUNTS,
        recoverable_sent=COUNTS, window=COUNTS,
    )  # fmt: skip


def establishes() -> st.SearchStrategy[bytes]:
    header = st.builds(
        h.establish_connection_header, client=GUIDS, server=GUIDS, time_stamp=NUMBERS, operating_system=COUNTS
    )
    return st.builds(h.establish_connection, header, internal=st.sampled_from([2, 2, 2, 0x12, 3, 1, 9]))


def parameters() -> st.SearchStrategy[bytes]:
    header = st.builds(
        h.connection_parameters_header,
        recoverable_ack_timeout=st.sampled_from([0, 499, 500, 120_000, 120_001, 0xFFFF_FFFF]),
        ack_timeout=st.sampled_from([0, 19_999, 20_000, 120_000, 120_001, 0xFFFF_FFFF]),
        window=COUNTS,
    )
    return st.builds(h.connection_parameters, header, internal=st.sampled_from([3, 3, 3, 0x13, 2, 1]))


def transactions() -> st.SearchStrategy[bytes]:
    number = st.integers(0, 4) | NUMBERS
    return st.builds(
        h.transaction_header, flags=FLAGS, ordinal=number, time_stamp=number, number=number, previous=number
    ).filter(lambda header: not header[0] & 1)


def destinations() -> st.SearchStrategy[tuple[int, bytes]]:
    texts = [
        r"OS:here\private$\orders", r"OS:here\private$\tx", r"TCP:10.0.0.1\private$\orders",
        r"OS:here\private$\none",
        r"OS:other\private$\orders", "", "OS:", "\\", "HTTP://here/msmq/private$/orders",
        r"OS:here\SYSTEM$;DEADXACT",
        "OS:" + "x" * 300, "OS:\ud800".encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"),
    ]  # fmt: skip
    direct = st.sampled_from(texts).map(lambda text: (7, h.direct_name(text)))
    private = st.integers(0, 12).map(lambda number: (3, h.private_id(number)))
    public = GUIDS.map(lambda guid: (5, guid))
    return (
        direct
        | private
        | public
        | st.sampled_from([(0, b""), (1, bytes(16)), (2, bytes(4)), (4, bytes(4)), (6, b"")])
    )


def messages() -> st.SearchStrategy[bytes]:
    admin = st.sampled_from([(0, b""), (2, h.private_id(7)), (3, h.private_name(PEER_ID.bytes_le, 9))])
    user = st.builds(
        h.user_header, source=GUIDS, address=GUIDS, time_to_be_received=NUMBERS,
        sent_time=st.just(START_UTC) | NUMBERS,
        message_id=st.integers(0, 40) | NUMBERS, flags=FLAGS.map(lambda flags: flags & 0x3FF | h.MP),
        destination=destinations(), admin=admin,
    )  # fmt: skip
    properties = st.builds(
        h.properties_header, flags=st.integers(0, 15), label=st.none() | st.sampled_from(["", "label",
        "x" * 248]),
        message_class=st.sampled_from([0, 1, 0xFF, 0x4000, 0x8002, 0xC004]), body=st.binary(max_size=40),
        privacy_level=st.sampled_from([0, 0, 0, 1, 3, 5, 9]), body_type=NUMBERS,
    )  # fmt: skip
    return st.builds(
        h.user_message, user=user, properties=properties, transaction=st.just(b"") | transactions(),
        session=st.just(b"") | session_headers(), time_to_reach_queue=NUMBERS,
        flags=st.sampled_from([3, 0, 7, 0x103]), security=st.just(b"") | st.builds(h.security_header,
        flags=COUNTS),
    )  # fmt: skip


def acknowledgements() -> st.SearchStrategy[bytes]:
    small = st.integers(0, 3) | NUMBERS
    stamps = st.just(START_UTC) | small
    orders = st.builds(h.order_ack_body, ordinal=small, time_stamp=stamps, number=small, previous=small)
    finals = st.builds(
        h.final_ack_body,
        ordinal=small,
        time_stamp=stamps,
        number=small,
        previous=small,
        source=GUIDS,
        message_id=small,
    )
    classes = st.sampled_from([0x4000, 0x8002, 0xC000, 0xFFFF])
    return st.builds(h.order_ack, orders) | st.builds(h.final_ack, finals, message_class=classes)


def intact() -> st.SearchStrategy[bytes]:
    return (
        messages()
        | st.builds(h.session_ack, session_headers())
        | acknowledgements()
        | establishes()
        | parameters()
    )


def damaged() -> st.SearchStrategy[bytes]:
    def damage(packet: bytes, at: int, value: int, cut: int) -> bytes:
        at %= len(packet)
        return (packet[:at] + bytes([value]) + packet[at + 1 :])[: len(packet) - cut % 20]

    return st.builds(damage, intact(), st.integers(0, 2000), st.integers(0, 255), st.integers(0, 400))


def assert_bounded(harness: EngineHarness) -> None:
    """The invariants after every step."""
    engine = harness.engine
    assert len(engine.sessions) <= len(harness.peers) + len(engine.transfers)
    assert len(harness.core.history) <= HISTORY
    for session in engine.sessions.values():
        assert isinstance(session.state, SessionState)
        assert session.framer.buffered <= LIMIT
        assert len(session.in_flight) == session.unacked_message_count <= session.window_size
        assert len(set(session.unsaved)) <= sum(len(transfer.table) for transfer in engine.transfers.values())
        assert 0 <= session.message_received_count <= 0xFFFF
        assert 0 <= session.recoverable_ack_flags <= 0xFFFF_FFFF
        assert session.is_open <= (session.connection in engine.session_table.by_connection)
    for transfer in engine.transfers.values():
        for entry in transfer.table.values():
            assert entry.state in (
                SessionMessageState.WAITING_TO_SEND,
                SessionMessageState.WAITING_FOR_SESSION_ACK,
                SessionMessageState.WAITING_FOR_ORDER_ACK,
            )
    timers = harness.core.context.timers
    assert len(timers._heap) <= 64 + 5 * len(timers._armed)


def harness_with_queues() -> EngineHarness:
    harness = EngineHarness(remove_duplicate_size=HISTORY)
    harness.queue()
    harness.queue("tx", transactional=True)
    return harness


def peer_at(harness: EngineHarness, opening: str) -> HandwrittenPeer:
    if opening == "accept_connection":
        return harness.accept_connection()
    if opening == "accept_session":
        return harness.accept_session()
    peer = harness.request_session(count=3)
    harness.send(count=2, recoverable=True)
    harness.send(count=2, transactional=True)
    if opening == "open_session":
        peer.answer_handshake()
    return peer


OPENINGS = st.sampled_from(
    ["accept_connection", "accept_session", "request_session", "open_session", "open_session"]
)


@given(OPENINGS, st.lists(st.binary(max_size=700), max_size=6))
def test_any_bytes(opening: str, chunks: list[bytes]) -> None:
    harness = harness_with_queues()
    peer = peer_at(harness, opening)
    for chunk in chunks:
        peer.send(chunk)
        assert_bounded(harness)
    harness.advance(700_000)
    assert_bounded(harness)


@given(OPENINGS, st.lists(intact(), max_size=8), st.data())
def test_any_packets_in_any_order_and_any_chunks(
    opening: str, packets: list[bytes], data: st.DataObject
) -> None:
    harness = harness_with_queues()
    peer = peer_at(harness, opening)
    stream = b"".join(packets)
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        peer.send(stream[:size])
        stream = stream[size:]
        assert_bounded(harness)


ACTIONS = st.one_of(
    st.tuples(st.just("packet"), intact()),
    st.tuples(st.just("packet"), damaged()),
    st.tuples(st.just("counted"), st.booleans()),
    st.tuples(st.just("acknowledge"), st.none()),
    st.tuples(st.just("advance"), st.sampled_from([1, 499, 500, 5_000, 20_000, 61_000, 400_000])),
    st.tuples(st.just("drop"), st.none()),
    st.tuples(st.just("open"), OPENINGS),
    st.tuples(st.just("send"), st.sampled_from(["express", "recoverable", "transactional"])),
    st.tuples(st.just("pause"), st.booleans()),
    st.tuples(st.just("datagram"), st.binary(max_size=30) | st.builds(h.ping, cookie=NUMBERS, flags=COUNTS)),
)


@given(st.lists(ACTIONS, max_size=30))
def test_any_story(story: list[tuple[str, Any]]) -> None:
    harness = harness_with_queues()
    peer = peer_at(harness, "open_session")
    for kind, value in story:
        match kind:
            case "packet":
                peer.send(value)
            case "counted":
                peer.send(peer.message(recoverable=value))
            case "acknowledge":
                peer.acknowledge()
            case "advance":
                harness.advance(value)
            case "drop":
                peer.disconnect()
            case "open":
                if value in ("request_session", "open_session"):
                    if not harness.engine.connecting._resolving:
                        continue
                    harness.resolve(PEER_ADDRESS)
                    peer = harness.connect()
                    if value == "open_session":
                        peer.answer_handshake()
                else:
                    peer = harness.accept_connection()
                    if value == "accept_session":
                        peer.send(peer.establish(), peer.parameters())
            case "send":
                harness.send(
                    to=PEER_QUEUE, recoverable=value == "recoverable", transactional=value == "transactional"
                )
            case "pause":
                action: Callable[..., None] = (
                    harness.core.queues.pause if value else harness.core.queues.resume
                )
                action(harness.outgoing())
                harness.run()
            case "datagram":
                for request in (True, False):
                    harness.engine.datagram(value, PEER_ADDRESS, 3527, request=request)
                harness.run()
        assert_bounded(harness)
    harness.restarted()


# -- floods, and counts that wrap --------------------------------------------------------------------------


def test_a_session_of_more_messages_than_its_counts_can_hold() -> None:
    """131,200 messages each way over one session: counts wrap twice, and both sides stay in step."""
    harness = EngineHarness(remove_duplicate_size=100)
    harness.queue()
    peer = harness.open_session()
    peer.acknowledge()
    session, template = peer.session, peer.message(recoverable=True, count=False)
    engine = harness.engine
    rounds = 4_100
    for number in range(rounds):
        batch = []
        for _ in range(32):
            peer.sent = (peer.sent + 1) % 0x10000
            peer.recoverable_sent = (peer.recoverable_sent + 1) % 0x10000
            batch.append(template)  # duplicates are counted too
        engine.received(peer.connection, b"".join(batch))
        if number % 64 == 0:
            harness.send(count=16, recoverable=True)
        harness.run()
        peer.acknowledge()
        assert session.state is SessionState.OPEN, number
        peer.packets.clear()
        harness.forget_effects()
    total = 32 * rounds % 0x10000
    assert (session.message_received_count, session.recoverable_message_received_count) == (total, total)
    assert len(harness.transfer().table) == 0
    assert session.unsaved == session.in_flight == type(session.in_flight)()


@pytest.mark.parametrize("start", range(0xFFFF - 34, 0x10000))
def test_sending_over_the_wrap(start: int) -> None:
    harness = EngineHarness()
    peer = harness.open_session()
    peer.acknowledge()
    session = peer.session
    session.message_sent_count = peer.received = start
    session.recoverable_message_sent_count = peer.recoverable_received = peer.recoverable_acked = start
    harness.send(count=40, recoverable=True)
    assert [packet.kind for packet in peer.take()] == ["UserMessage"] * 41
    base = (start + 1) % 0x10000
    peer.send(peer.ack(ack=(start + 32) % 0x10000, recoverable_ack=base, recoverable_flags=0xFFFF_FFFF))
    assert len(harness.transfer().table) == 8
    assert session.unacked_message_count == 8
    peer.send(
        peer.ack(ack=(start + 40) % 0x10000, recoverable_ack=(base + 32) % 0x10000, recoverable_flags=0xFF)
    )
    assert len(harness.transfer().table) == 0
    assert session.state is SessionState.OPEN


@pytest.mark.parametrize("start", [0xFFDF, 0xFFE0, 0xFFFE, 0xFFFF])
def test_receiving_over_the_wrap(start: int) -> None:
    harness = EngineHarness()
    harness.queue()
    peer = harness.accept_session()
    session = peer.session
    session.message_received_count = peer.sent = start
    session.recoverable_message_received_count = session.last_acked_recoverable = peer.recoverable_sent = (
        start
    )
    peer.send(*(peer.message(recoverable=True) for _ in range(20)))
    harness.advance(2_000)
    (ack,) = peer.take()
    expected = h.session_header(
        ack=(start + 20) % 0x10000, recoverable_ack=(start + 1) % 0x10000, recoverable_flags=(1 << 20) - 1
    )
    assert ack == h.session_ack(expected)
    peer.send(peer.ack())
    assert session.state is SessionState.OPEN


@pytest.mark.parametrize("size", [0x0040_0001, 0x7FFF_FFFF, 0xFFFF_FFFF, 0, 15])
def test_a_size_that_can_not_be_is_refused_before_it_is_awaited(size: int) -> None:
    harness = harness_with_queues()
    peer = harness.accept_session()
    peer.send(h.base_header(size)[:12])
    assert peer.closed
    assert harness.engine.sessions == {}


def test_the_largest_packet_is_awaited_and_no_more_is_buffered() -> None:
    harness = harness_with_queues()
    peer = harness.accept_session()
    peer.send(h.base_header(0x0040_0000))
    for _ in range(63):
        peer.send(bytes(65_536))
        assert peer.session.framer.buffered <= LIMIT
    assert not peer.closed
    peer.send(bytes(65_536))
    assert peer.closed, "a malformed packet must close the connection"


def test_many_silent_connections_go_away() -> None:
    harness = harness_with_queues()
    for _ in range(500):
        harness.accept_connection()
    assert len(harness.engine.sessions) == 500
    harness.advance(60_000)
    assert harness.engine.sessions == {}
    assert harness.engine.session_table.by_connection == {}
    armed = harness.core.context.timers._armed
    assert not [key for key in armed if key[0] is Timer.SESSION_INITIALIZATION]


@pytest.mark.parametrize("window", [0, 1, 0xFFFF])
def test_a_window_of_the_peer_never_stops_or_floods_the_session(window: int) -> None:
    harness = EngineHarness()
    peer = harness.request_session(count=70)
    peer.answer_handshake(window=window)
    assert len(peer.take()) == (64 if window == 0xFFFF else 1)
    for _ in range(200):
        peer.send(peer.ack(ack=peer.received, window=max(window, 1)))
    assert len(harness.transfer().table) == 0
