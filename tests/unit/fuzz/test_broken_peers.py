"""Independently written peers: one is correct, and each mistake has the effect that it names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.support import handmade as h
from tests.support.broken_peers.mistakes import MISTAKES
from tests.support.broken_peers.ping import Pings
from tests.support.paths import ROOT
from tests.support.peers.broken_peer_world import (
    MISSING,
    ORDERS,
    TX,
    Client,
    World,
    in_sequence,
    message,
    patched,
)
from tests.support.peers.raw_peer import OTHER, direct, establish, parameters

PEER = ROOT / "tests" / "support" / "broken_peers"
HUGE = 0xFFFFFFFF


# -- what a test looks at ---------------------------------------------------------------------------------


def refused(*packets: bytes, opened: bool = True) -> Callable[[World], Any]:
    """What becomes of the peer: "closed" by the last packet, "open" still, "Crash" or "Hang"."""

    def look(world: World) -> Any:
        client = Client(world, opened=opened)
        client.send(*packets)
        return world.ended or ("closed" if client.closed else "open")

    return look


def response(look: Callable[[Any], Any], request: bytes | None = None) -> Callable[[World], Any]:
    """Something of the response to EstablishConnection."""

    def answered(world: World) -> Any:
        client = Client(world, opened=False)
        client.send(establish() if request is None else request)
        return look(bytes(client.output))

    return answered


def queued(*messages: Any, queue: str = "private$\\orders") -> Callable[[World], Any]:
    """The bodies in a queue."""

    def look(world: World) -> Any:
        Client(world).push(*messages)
        return list(world.manager.queues[queue].bodies)

    return look


def classes(*messages: Any) -> Callable[[World], Any]:
    """Kinds and classes of the acknowledgements."""

    def look(world: World) -> Any:
        client = Client(world)
        client.push(*messages)
        return [(packet.kind, packet.MessageClass) for packet in client.messages(1)]

    return look


def first(field: str, *messages: Any) -> Callable[[World], Any]:
    """A field of the first acknowledgement."""

    def look(world: World) -> Any:
        client = Client(world)
        client.push(*messages)
        return getattr(client.messages(1)[0], field)

    return look


def acks(*messages: Any, field: str = "ack") -> Callable[[World], Any]:
    """A field of each SessionAck."""

    def look(world: World) -> Any:
        client = Client(world)
        client.push(*messages)
        return [getattr(header, field) for header in client.acks(10)]

    return look


def pinged(*datagrams: bytes) -> Callable[[World], Any]:
    """The answer to the last of some datagrams."""

    def look(world: World) -> Any:
        pings = Pings(world.manager.guid, world.makes)
        answers = [world.guarded(pings.answer, datagram) for datagram in datagrams]
        return world.ended or answers[-1]

    return look


# -- scenes of their own ----------------------------------------------------------------------------------


def two_in_a_segment(world: World) -> Any:
    client = Client(world)
    client.send(message(b"1").bytes() + message(b"2").bytes())
    return list(world.manager.queues["private$\\orders"].bodies)


def another_while_half_a_packet_is_there(world: World) -> Any:
    half, other = Client(world), Client(world)
    half.send(message().bytes()[:20])
    other.send(message(b"other").bytes())
    return list(world.manager.queues["private$\\orders"].bodies)


def a_packet_with_a_session_header(world: World) -> Any:
    client = Client(world)
    client.push(message(b"1"))
    client.send(message(b"2").bytes(session=h.session_header(sent=2)))
    client.send(message(b"3").bytes())
    return list(world.manager.queues["private$\\orders"].bodies)


def the_sum_of_half_a_packet(world: World) -> Any:
    client = Client(world)
    assert client.session is not None
    client.send(NAMED[:40])
    return client.session.checksum


def kept(*packets: bytes) -> Callable[[World], Any]:
    """Whether memory is kept for good."""

    def look(world: World) -> Any:
        client = Client(world)
        client.send(*packets)
        client.leave()
        return sum(map(len, world.manager.leaked)) >= 1 << 16

    return look


def the_33rd_session(world: World) -> Any:
    for _ in range(32):
        Client(world).leave()
    return Client(world, opened=False).session is not None


def a_reset(world: World) -> Any:
    Client(world).leave(reset=True)
    return world.ended


def packets_of_one_session(count: int) -> Callable[[World], Any]:
    def look(world: World) -> Any:
        client = Client(world)
        for _ in range(count):
            client.push(message())
        return world.ended

    return look


def the_older_of_two(world: World) -> Any:
    old, _new = Client(world), Client(world)
    old.push(message(wants=1))
    return [packet.MessageClass for packet in old.messages()]


def counts_of_the_second_session(world: World) -> Any:
    client = Client(world)
    client.push(message(), message())
    client.leave()
    client = Client(world)
    client.push(message())
    return [header.ack for header in client.acks(10)]


def a_duplicate_and_then_counts(world: World) -> Any:
    client, again = Client(world), message(recoverable=True)
    client.push(again, again)
    client.send(h.session_ack(client.header()))
    return client.closed


def told_after_sending(world: World) -> Any:
    client = Client(world)
    client.push(message(wants=1, recoverable=True))
    return client.acks(1)[0].sent


def flags_of_two_acks(world: World) -> Any:
    client = Client(world)
    client.push(message(recoverable=True))
    headers = client.acks(1)
    client.push(message())
    headers += client.acks(10)
    return [header.recoverable_flags for header in headers]


def saved_of_40(world: World) -> Any:
    client = Client(world, window=0xFFFF)
    client.session.window = 0xFFFF
    client.push(*(message(recoverable=True) for _ in range(40)))
    return sum(header.recoverable_flags.bit_count() for header in client.acks(1))


def raw_ack(world: World) -> Any:
    client = Client(world)
    client.push(message())
    world.clock.advance(10)
    return bytes(client.output)[2:4] + bytes(client.output)[18:20]


def counts_that_disagree(world: World) -> Any:
    client = Client(world)
    client.send(h.session_ack(client.header(sent=5)))
    return client.closed


def over_the_quota(world: World) -> Any:
    world.manager.queues["private$\\orders"].quota = 10
    return classes(message(b"x" * 11, wants=4))(world)


def expired_in_the_queue(world: World) -> Any:
    client = Client(world)
    packet = message(wants=8, recoverable=True).bytes()
    client.count_sent(recoverable=True)
    client.send(patched(packet, 48, "<L", 3))
    return [client.messages(2.9), [packet.MessageClass for packet in client.messages(0.2)]]


def window_asked_for(world: World) -> Any:
    client = Client(world, window=0)
    client.push(message())
    return [header.window for header in client.acks(10)]


def over_two_sessions(sent: Any, queue: str) -> Callable[[World], Any]:
    """The bodies in a queue after a message was sent over two sessions."""

    def look(world: World) -> Any:
        for _ in range(2):
            client = Client(world)
            client.push(sent)
            client.leave()
        return list(world.manager.queues[queue].bodies)

    return look


def riding(counts: dict[str, int]) -> Callable[[World], Any]:
    """Whether a message is in the queue and its session open, after it has brought counts."""

    def look(world: World) -> Any:
        client = Client(world)
        client.send(message(b"rides").bytes(session=client.header(**counts)))
        return list(world.manager.queues["private$\\orders"].bodies), client.closed

    return look


def order_acks_of_a_message_that_comes_twice(world: World) -> Any:
    client, again = Client(world), in_sequence(1)
    client.push(again)
    first_one = len(client.messages(1))
    client.push(again)
    return first_one + len(client.messages(1))


def read_with(*, label: str | None = None, **user: Any) -> Callable[[World], Any]:
    """The body that a message is read with, or "closed"."""
    built = h.user_message(
        user=h.user_header(destination=ORDERS, message_id=901, **user),
        properties=h.properties_header(label=label, body=b"body"),
    )

    def look(world: World) -> Any:
        client = Client(world)
        client.send(built)
        return "closed" if client.closed else list(world.manager.queues["private$\\orders"].bodies)

    return look


def srmp(length: int | None) -> bytes:
    return h.user_message(
        user=h.user_header(destination=ORDERS, message_id=900),
        srmp=h.srmp_envelope_header(length=length),
        compound=h.compound_message_header(),
    )


NAMED = message().bytes()
COUNT = 64  # the offset of Count of its destination
PROPERTIES = h.user_message(user=h.user_header(destination=ORDERS)).find(b"\x0e\x80") - 44
OLD = in_sequence(1, sequence=(7, 1)), in_sequence(1, sequence=(6, 9))
BY_ORDINAL = in_sequence(1, sequence=(7, 9)), in_sequence(1, sequence=(8, 1), wants=1)
GAP = in_sequence(1), in_sequence(3, 2, wants=1)
TWICE = in_sequence(1, wants=1), in_sequence(1, wants=1)
ANSWER = h.ping(flags=1, cookie=0xFFFFFFFE, queue_manager=bytes.fromhex("b40cea5e0000404f80000000000000b5"))
PING = h.ping(flags=1, cookie=0xFFFFFFFE)

# name: what is looked at, what a correct peer shows, what one with the mistake shows
EFFECTS: dict[str, tuple[Callable[[World], Any], Any, Any]] = {
    "loses_second": (two_in_a_segment, [b"1", b"2"], [b"1"]),
    "half_packet_blocks": (another_while_half_a_packet_is_there, [b"other"], []),
    "any_packet_size": (refused(h.base_header(0x400001, 3)), "closed", "open"),
    "small_size_hangs": (refused(h.base_header(15, 3)), "closed", "Hang"),
    "crashes_on_odd_size": (refused(h.base_header(0x101, 3)), "open", "Crash"),
    "any_version": (refused(patched(NAMED, 0, "<B", 0x11)), "closed", "open"),
    "any_signature": (refused(patched(NAMED, 4, "<L", 1)), "closed", "open"),
    "session_header_in_size": (a_packet_with_a_session_header, [b"1", b"2", b"3"], [b"1", b"2"]),
    "quadratic_reader": (the_sum_of_half_a_packet, 0, sum(NAMED[:40])),
    "leaks_malformed": (kept(NAMED, bytes(16)), False, True),
    "closes_late": (refused(bytes(16)), "closed", "open"),
    "refuses_reserved_user_flags": (read_with(flags=0x80), [b"body"], "closed"),
    "connector_type_forgotten": (read_with(connector_type=b"\xff" * 16), [b"body"], "closed"),
    "response_queue_1_has_bytes": (read_with(response=(1, b"")), [b"body"], "closed"),
    "aligns_the_body": (read_with(label="ab"), [b"body"], [b"dy\0\0"]),
    "history_of_a_session": (
        over_two_sessions(message(b"d"), "private$\\orders"), [b"d"], [b"d", b"d"],
    ),
    "sequences_of_a_session": (
        over_two_sessions(in_sequence(1), "private$\\tx"), [b"body"], [b"body", b"body"],
    ),
    "header_before_message": (riding({"sent": 1}), ([b"rides"], False), ([], True)),
    "wrong_counts_lose_message": (riding({"sent": 2}), ([b"rides"], True), ([], True)),
    "order_ack_for_accepted_only": (order_acks_of_a_message_that_comes_twice, 2, 1),
    "final_ack_previous_is_number_less_1": (
        first("acknowledged_tx", in_sequence(5, 0, queue=MISSING)), (7, 1, 5, 0), (7, 1, 5, 4),
    ),
    "sessions_stay": (the_33rd_session, True, False),
    "closes_server_on_reset": (a_reset, "", "Crash"),
    "reserved_must_be_zero": (refused(patched(NAMED, 1, "<B", 0xC0)), "open", "closed"),
    "refuses_reserved_flags": (refused(patched(NAMED, 2, "<H", 0x4003)), "open", "closed"),
    "dies_at_128": (packets_of_one_session(126), "", "Crash"),
    "unknown_internal_packet": (refused(h.session_ack(internal=4)), "closed", "open"),
    "answers_the_newest": (the_older_of_two, [2], []),
    "before_handshake": (refused(NAMED, opened=False), "closed", "open"),
    "establishes_again": (refused(establish()), "closed", "open"),
    "any_server_guid": (response(lambda data: data[18] & 0x10, establish(OTHER)), 0x10, 0),
    "refuses_null_guid": (response(lambda data: data[18] & 0x10), 0, 0x10),
    "client_guid_lost": (response(lambda data: data[20:36] == bytes(16)), False, True),
    "echoes_server_guid": (response(lambda data: data[36:52] == bytes(16)), False, True),
    "own_time_stamp": (response(lambda data: data[52:56].hex()), "98badcfe", "40420f00"),
    "se_lost": (response(lambda data: data[57] & 1), 1, 0),
    "padding_of_zeros": (response(lambda data: data[60:]), b"\x5a" * 512, bytes(512)),
    "size_without_internal_header": (response(lambda data: data[8:12].hex()), "3c020000", "38020000"),
    "own_timeouts": (
        response(lambda data: data[592:600].hex(), establish() + parameters(recoverable=700, ack=30_000)),
        "bc02000030750000", "e803000060ea0000",
    ),
    "echoes_window": (window_asked_for, [64], [0]),
    "any_timeouts": (refused(establish(), parameters(ack=19_999), opened=False), "closed", "open"),
    "ack_timeout_zero_crashes": (refused(establish(), parameters(ack=0), opened=False), "closed", "Crash"),
    "trusts_data_length": (refused(srmp(5_000)), "closed", "Crash"),
    "crashes_without_null": (refused(patched(NAMED, COUNT, "<H", 2)), "closed", "Crash"),
    "crashes_on_a_long_name": (refused(message(queue=direct("OS:a\\" + "q" * 256)).bytes()), "open", "Crash"),
    "illegal_queue_form": (
        refused(h.user_message(user=h.user_header(destination=(1, b"")))), "closed", "open",
    ),
    "label_overflows": (refused(patched(NAMED, PROPERTIES + 1, "<B", 251)), "closed", "Crash"),
    "body_as_it_comes": (
        refused(h.user_message(user=h.user_header(destination=ORDERS),
                               properties=h.properties_header(message_size=999))),
        "closed", "open",
    ),
    "body_a_byte_beyond": (
        refused(h.user_message(user=h.user_header(destination=ORDERS),
                               properties=h.properties_header(body=b"body", message_size=5))),
        "closed", "open",
    ),
    "sizes_wrap": (
        refused(h.user_message(user=h.user_header(destination=ORDERS),
                               security=h.security_header(sizes=(0, 0, 0, HUGE - 2, 0)))),
        "closed", "open",
    ),
    "counts_elements": (
        refused(h.user_message(user=h.user_header(destination=ORDERS),
                               multi_queue=h.mqf_address_header(0x64, count=HUGE) + bytes(64))),
        "closed", "Hang",
    ),
    "sequence_number_zero": (refused(in_sequence(0, 0).bytes()), "closed", "open"),
    "sequence_by_ordinal": (
        classes(*BY_ORDINAL), [("UserMessage", 2), ("OrderAck", 0xFF)], [("OrderAck", 0xFF)],
    ),
    "takes_duplicates": (queued(*[message(b"d", message_id=7)] * 2), [b"d"], [b"d", b"d"]),
    "takes_transactional_duplicates": (
        classes(*TWICE), [("UserMessage", 2), ("OrderAck", 0xFF)],
        [("UserMessage", 2), ("UserMessage", 2), ("OrderAck", 0xFF)],
    ),
    "takes_gaps": (first("MessageClass", *GAP), 0xFF, 2),
    "takes_old_sequences": (queued(*OLD, queue="private$\\tx"), [b"body"], [b"body", b"body"]),
    "takes_transactional": (
        classes(in_sequence(1, queue=ORDERS)),
        [("FinalAck", 0x8009), ("OrderAck", 0xFF)], [("OrderAck", 0xFF)],
    ),
    "takes_non_transactional": (classes(message(queue=TX, wants=5)), [("UserMessage", 0x800A)],
                                [("UserMessage", 2)]),
    "swaps_transactional_classes": (first("MessageClass", message(queue=TX, wants=4)), 0x800A, 0x8009),
    "wrong_class_for_missing_queue": (first("MessageClass", in_sequence(1, queue=MISSING)), 0x8000, 0x8009),
    "ignores_hop_count": (
        classes(message(address=OTHER, hops=29, wants=4)), [("UserMessage", 0x8005)], [],
    ),
    "ignores_time_to_reach_queue": (
        classes(message(wants=5, age=9, time_to_reach_queue=8)), [("UserMessage", 0x8002)],
        [("UserMessage", 2)],
    ),
    "ignores_quota": (over_the_quota, [("UserMessage", 0x8003)], []),
    "never_expires_in_queue": (expired_in_the_queue, [[], [0xC002]], [[], []]),
    "window_zero": (refused(h.session_ack(h.session_header(window=0))), "closed", "open"),
    "sends_window_zero": (acks(message(), field="window"), [64], [0]),
    "never_acknowledges": (acks(message(recoverable=True)), [1], []),
    "ack_off_by_one": (acks(message()), [1], [2]),
    "flags_start_at_bit_1": (acks(message(recoverable=True), field="recoverable_flags"), [1], [2]),
    "no_recoverable_base": (acks(message(recoverable=True), field="recoverable_ack"), [1], [0]),
    "flags_not_cleared": (flags_of_two_acks, [1, 0], [1, 1]),
    "no_ack_at_32": (saved_of_40, 40, 32),
    "counts_in_a_byte": (lambda world: acks(*(message() for _ in range(257)))(world)[-1], 257, 1),
    "counts_survive": (counts_of_the_second_session, [1], [3]),
    "duplicates_not_counted": (a_duplicate_and_then_counts, False, True),
    "sent_not_counted": (told_after_sending, 1, 0),
    "ack_without_sh": (raw_ack, bytes.fromhex("18000100"), bytes.fromhex("08000100")),
    "ack_of_wrong_type": (raw_ack, bytes.fromhex("18000100"), bytes.fromhex("18000500")),
    "ignores_counts": (counts_that_disagree, True, False),
    "ack_of_nothing_crashes": (refused(h.session_ack(h.session_header(ack=9))), "open", "Crash"),
    "no_order_ack": (classes(in_sequence(1)), [("OrderAck", 0xFF)], []),
    "order_ack_of_other_sequence": (first("acknowledged_tx", in_sequence(1)), (7, 1, 1, 0), (7, 2, 1, 0)),
    "order_ack_previous_is_number": (first("acknowledged_tx", in_sequence(1)), (7, 1, 1, 0), (7, 1, 1, 1)),
    "order_ack_label": (first("Label", in_sequence(1)), "QM Ordering Ack", "QM ordering ack"),
    "order_ack_with_priority": (first("PR", in_sequence(1)), 0, 3),
    "no_final_ack": (
        classes(in_sequence(1, queue=MISSING)), [("FinalAck", 0x8000), ("OrderAck", 0xFF)],
        [("OrderAck", 0xFF)],
    ),
    "final_ack_without_message_id": (
        lambda world: first("acknowledged_message", in_sequence(1, queue=MISSING, message_id=77))(world)[1],
        77, 0,
    ),
    "no_negative_acknowledgement": (classes(message(queue=TX, wants=4)), [("UserMessage", 0x800A)], []),
    "no_positive_acknowledgement": (classes(message(wants=1)), [("UserMessage", 2)], []),
    "acknowledges_unasked": (classes(message(wants=4)), [], [("UserMessage", 2)]),
    "wrong_correlation": (
        lambda world: first("CorrelationID", message(wants=1, message_id=5))(world).index(b"\5\0\0\0"), 16, 0,
    ),
    "acknowledges_by_express": (first("is_recoverable", message(wants=1, recoverable=True)), True, False),
    "negative_without_body": (first("body", message(queue=TX, wants=4)), b"body", b""),
    "no_response_queue": (first("ResponseQueue", message(wants=1)), r"OS:peer\private$\orders", b""),
    "wrong_cookie": (pinged(PING), ANSWER, patched(ANSWER, 4, "<L", HUGE)),
    "wrong_cookie_above_2_31": (pinged(PING), ANSWER, patched(ANSWER, 4, "<L", 0x7FFFFFFE)),
    "ping_signature": (pinged(PING), ANSWER, patched(ANSWER, 2, "<H", 0x4855)),
    "answers_any_ping": (pinged(patched(PING, 2, "<H", 1)), None, ANSWER),
    "short_ping": (pinged(PING), ANSWER, ANSWER[:8]),
    "ping_echoes_guid": (pinged(PING), ANSWER, PING),
    "ping_without_rc": (pinged(PING), ANSWER, patched(ANSWER, 0, "<H", 0)),
    "ping_always_refuses": (pinged(PING), ANSWER, patched(ANSWER, 0, "<H", 3)),
    "deaf_after_bad_ping": (pinged(PING[:23], PING), ANSWER, None),
    "short_ping_crashes": (pinged(b"1234567", PING), ANSWER, "Crash"),
}  # fmt: skip


@pytest.mark.parametrize("name", EFFECTS)
def test_a_mistake_has_its_effect(name: str) -> None:
    look, correct, mistaken = EFFECTS[name]
    assert correct != mistaken
    assert look(World()) == correct
    assert look(World(name)) == mistaken


def test_each_mistake_has_a_test_and_is_made_somewhere() -> None:
    made = re.findall(r"makes\(\s*[\"'](\w+)[\"']", "".join(path.read_text() for path in PEER.glob("*.py")))
    assert set(EFFECTS) == {name for name in MISTAKES if not name.startswith("http_")}
    assert set(made) == set(MISTAKES)
    assert all(mistake.requirements and mistake.sentence.endswith(".") for mistake in MISTAKES.values())
