"""Fates of hostile captures: never an error, and never more in memory than the limits say."""

from __future__ import annotations

import io
import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.analysis.dissection import dissect
from msmqwire.analysis.fate import (
    BATCH_ROWS,
    BODY_LIMIT,
    EVENTS_MAX,
    KINDS,
    State,
    briefs_of,
    connections,
    fates,
    fates_of,
    numbers,
    packets,
    summary,
)
from msmqwire.analysis.fate.connections import Connections
from msmqwire.analysis.fate.message import NAMESAKES_MAX
from msmqwire.analysis.fate.model import TEXT_MAX, Brief, EventKind
from msmqwire.analysis.fate.numbers import Numbers
from msmqwire.analysis.fate.observations import AboutNumber, Numbered, Observation, Where, one_by_one
from msmqwire.analysis.fate.rows import COLUMNS, Row
from msmqwire.analysis.fate.tables import fate_batches
from msmqwire.analysis.report import write_report
from msmqwire.tables import read_capture
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.fate_captures import (
    RECEIVER,
    SENDER,
    THIRD,
    Link,
    acknowledgement,
    capture,
    fates_in,
    final_ack,
    message,
    order_ack,
    session_ack,
)

NUMBERS = st.integers(1, 4)
CLASSES = st.sampled_from([0, 1, 2, 0xFF, 0x4000, 0x8000, 0x8003, 0xC001, 0xE1FF, 0xFFFF])
COUNT = st.sampled_from([0, 1, 2, 3, 0x7FFF, 0x8000, 0xFFFF])
HEADERS = st.builds(
    h.session_header, ack=COUNT, recoverable_ack=COUNT, recoverable_flags=st.integers(0, 0xFFFFFFFF),
    sent=COUNT, recoverable_sent=COUNT, window=COUNT,
)  # fmt: skip
GUIDS = st.sampled_from([h.CLIENT, h.SERVER, h.NULL_GUID])
PACKETS = st.one_of(
    st.builds(
        message, NUMBERS, acks=st.integers(0, 15), recoverable=st.booleans(), source=GUIDS,
        transaction=st.none() | st.integers(0, 3), session=st.just(b"") | HEADERS,
        message_class=CLASSES, correlation_id=st.binary(min_size=20, max_size=20),
        time_to_reach_queue=st.sampled_from([h.INFINITE, h.INFINITE, 0, 1 << 31]),
    ),
    st.builds(acknowledgement, NUMBERS, CLASSES, source=GUIDS),
    st.builds(order_ack, st.integers(0, 5), source=GUIDS),
    st.builds(final_ack, NUMBERS, NUMBERS, st.sampled_from([0x4000, 0x8003, 0xC001]), source=GUIDS),
    st.builds(h.session_ack, HEADERS),
    st.just(h.establish_connection()),
    st.just(h.connection_parameters()),
    st.just(h.base_header(0x400001) + b"junk"),
    st.binary(max_size=40),
)  # fmt: skip
EVENTS = st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.booleans(), PACKETS), max_size=30)


def links_of(events: list[tuple[int, bool, bytes]], *, established: bool) -> list[Link]:
    """Three connections with packets, one after the other."""
    pairs = [(SENDER, RECEIVER), (RECEIVER, SENDER), (THIRD, SENDER)]
    links = [Link(*pair, port=50_000 + n, established=established) for n, pair in enumerate(pairs)]
    for n, by_client, packet in events:
        links[n].time_ns = max(link.time_ns for link in links)
        links[n].send(packet, by_client=by_client)
    return links


@given(EVENTS, st.booleans())
def test_whatever_packets_say(events, established):
    found = list(fates([capture(*links_of(events, established=established))], acknowledgements=True))
    # Messages of one identity differ in what stays on a message's way.
    assert max(Counter(fate.identity for fate in found).values(), default=0) <= NAMESAKES_MAX
    for fate in found:
        assert fate.stuck is (fate.state is State.SENT and fate.missing != "")
        assert not fate.missing or fate.state in (State.SENT, State.RECEIVED, State.STORED)
        assert fate.explanation
        assert all(latency >= 0 for latency in fate.latencies.values())
        assert (fate.state is State.UNKNOWN) is (fate.label is None and not fate.transport)
        if fate.state in (State.READ, State.DELIVERED):
            assert any(not event.doubt for event in fate.events if event.what is not EventKind.SENT)


@given(
    EVENTS,
    st.booleans(),
    st.sampled_from([1 << 20, 40, 9, 2]),
    st.sampled_from([1 << 14, 5]),
    st.sampled_from([(1 << 14, 1 << 20), (1 << 14, 5), (2, 1 << 20)]),
)
def test_fates_by_column_are_those_by_row(events, established, held_max, batch_rows, limits):
    """Plain packets are not made rows, and plain messages not objects: nothing shows it."""
    data = capture(*links_of(events, established=established)).getvalue()
    with (
        mock.patch.object(connections, "CONNECTIONS_MAX", limits[0]),
        mock.patch.object(connections, "OUTSTANDING_MAX", limits[1]),
    ):
        found = []
        for is_plain in (packets._is_plain, lambda batch: np.zeros(batch.num_rows, bool)):
            with mock.patch.object(packets, "_is_plain", is_plain):
                batches = read_capture(
                    io.BytesIO(data), columns=COLUMNS, where=[("kind", "in", KINDS)], body_limit=BODY_LIMIT,
                    batch_rows=batch_rows,
                )  # fmt: skip
                found.append(list(fates_of(batches, acknowledgements=True, held_max=held_max)))
    by_column, by_row = found
    assert by_column == by_row


@given(EVENTS, st.booleans())
def test_a_brief_is_what_its_fate_has(events, established):
    data = capture(*links_of(events, established=established)).getvalue()
    both = []
    for made in (briefs_of, fates_of):
        batches = read_capture(
            io.BytesIO(data), columns=COLUMNS, where=[("kind", "in", KINDS)], body_limit=BODY_LIMIT,
            batch_rows=BATCH_ROWS,
        )  # fmt: skip
        names = Brief._fields
        both.append([[getattr(one, name) for name in names] for one in made(batches)])
    briefs, whole = both
    assert briefs == whole


@given(st.binary(max_size=2000))
def test_any_bytes(data):
    talk = c.TcpConversation().handshake().send(data)
    list(fates([capture(talk)]))


def test_events_of_a_message_are_limited_and_its_end_is_kept() -> None:
    link = Link()
    for _ in range(3 * EVENTS_MAX):
        link.send(message(1, acks=2), acknowledged=False)
    link.answer(acknowledgement(1, 0x4000))
    (fate,) = fates_in(link)
    assert (fate.state, fate.retransmissions) == (State.READ, 3 * EVENTS_MAX - 1)
    assert len(fate.events) <= EVENTS_MAX
    assert fate.events_omitted > EVENTS_MAX


def test_long_names_and_labels_are_cut() -> None:
    queue = (7, h.direct_name("OS:" + 30_000 * "a"))
    link = Link().send(message(1, user={"destination": queue, "admin": queue}))
    link.send(message(1, user={"destination": (7, h.direct_name("OS:" + 30_000 * "b"))}))
    (fate,) = fates_in(link)
    assert fate.destination == fate.admin_queue == "DIRECT=OS:" + (TEXT_MAX - 11) * "a" + "…"
    assert [len(event.detail) for event in fate.events[:2]] == [0, len("a copy to ") + TEXT_MAX]


def test_too_many_messages_get_their_fates_early() -> None:
    link = Link()
    for number in range(1, 9):
        link.send(message(number))
    link.answer(session_ack(ack=8))
    early = list(fates([capture(link)], held_max=8))
    assert [fate.message_id for fate in early][:4] == [1, 2, 3, 4]
    assert [fate.complete for fate in early][:4] == [False] * 4
    assert early[0].state is State.SENT
    # What comes later is told as of another message.
    again = [fate for fate in early if fate.message_id == 1][1]
    assert (again.state, again.label) == (State.UNKNOWN, None)


@pytest.mark.parametrize(("name", "limit"), [("CONNECTIONS_MAX", 2), ("OUTSTANDING_MAX", 3)])
def test_connections_that_are_too_many_are_taken_as_ended(name: str, limit: int) -> None:
    with mock.patch.object(connections, name, limit):
        table = Connections()
        seen = []
        for stream, position in zip(
            itertools.chain.from_iterable([[n] * 2 for n in range(5)]), range(10), strict=True
        ):
            row = Row(*[None] * len(COLUMNS))._replace(
                stream=stream, kind="UserMessage", src="a", src_port=1, dst="b", dst_port=2,
                source_qm="0" * 8, message_id=position,
            )  # fmt: skip
            seen += one_by_one(table.feed(row, position))
            assert len(table._connections) <= 3
            assert table._size <= 4
    ends = [one for one in seen if isinstance(one, Observation) and one.what is EventKind.UNACKNOWLEDGED]
    assert ends
    assert not any(one.is_certain for one in ends)  # nothing was looked at after that


def test_numbers_that_are_too_many_are_forgotten() -> None:
    where = Where(0, 0, 0, None, None, SENDER, RECEIVER)
    with mock.patch.object(numbers, "NUMBERED_MAX", 10):
        table = Numbers()
        for n in range(100):
            assert not list(table.feed(Numbered(f"sequence {n}", 1, "", where, f"k{n}")))
            assert table._size <= 10
        back = where._replace(src=RECEIVER, dst=SENDER)
        kept = [
            n
            for n in range(100)
            if list(table.feed(AboutNumber(f"sequence {n}", 1, "", back, EventKind.ORDER_ACK)))
        ]
        assert kept == list(range(90, 100))
        assert (table._size, len(table._groups)) == (0, 0)


def test_owners_of_a_sequence_are_limited() -> None:
    where = Where(0, 0, 0, None, None, SENDER, RECEIVER)
    table = Numbers()
    for n in range(100):
        list(table.feed(Numbered("sequence", 1, f"{n}", where, f"k{n}")))
    assert table._size == numbers.OWNERS_MAX


def test_times_further_apart_than_64_bits_have_no_latency(tmp_path: Path) -> None:
    link = Link()
    link.send(message(1, acks=2))
    link.answer(acknowledgement(1, 0x4000))
    far = 9_000_000_000  # seconds: one is 1684, the other 2255
    sendings = {frame.time_ns for frame in link.frames[:-2]}
    file = c.PcapNg().section().interface(tsresol=9, tsoffset=-far).interface(tsresol=9, tsoffset=far)
    data = [file.data]
    for frame in link.frames:
        is_early = frame.time_ns in sendings
        moved = frame.time_ns // 1000 + (-far if is_early else far) * 10**9
        file.data = b""
        data.append(file.packet(replace(frame, time_ns=moved), 0 if is_early else 1).data)
    path = tmp_path / "far.pcapng"
    path.write_bytes(b"".join(data))
    (fate,) = fates(path)
    assert fate.state is State.READ
    assert fate.sent_ns is not None
    assert fate.events[-1].time_ns is not None
    assert fate.events[-1].time_ns - fate.sent_ns >= 1 << 63
    assert State.READ not in fate.latencies
    assert summary([fate])[0].states == {"read": 1}
    (batch,) = fate_batches([fate])
    assert batch.num_rows == 1
    assert write_report(dissect(path), tmp_path / "far.html").packets == 6


def test_requests_without_a_response_count_on_all_connections() -> None:
    with mock.patch.object(connections, "OUTSTANDING_MAX", 3):
        table = Connections()
        seen = []
        for position in range(10):
            row = Row(*[None] * len(Row._fields))._replace(
                stream=position // 2, kind="SrmpMessage", src="a", src_port=1, dst="b", dst_port=80,
                srmp_id=f"uuid:{position}@00000000-0000-0000-0000-000000000001", exchange=position,
            )  # fmt: skip
            seen += one_by_one(table.feed(row, position))
            assert table._size <= 3
        seen += one_by_one(table.end())
    assert table._size == 0
    ends = [one for one in seen if isinstance(one, Observation) and one.what is EventKind.UNACKNOWLEDGED]
    assert [one.is_certain for one in ends] == [False] * 8 + [True] * 2
