"""Fragments of IP joined by compiled code are the datagrams of the generic reader, whatever arrives when."""

from __future__ import annotations

import pickle
import struct
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest import mock

import hypothesis.strategies as st
from hypothesis import given

from msmqwire.capture import fragments as limits
from msmqwire.capture.fragments import DATAGRAM_MAX, FRAGMENT_NS_MAX, FragmentKey, Fragments, FragmentStore
from msmqwire.capture.record import NO_TIME
from msmqwire.capture.segment_buffer import SEGMENT_COST, Segment
from msmqwire.tables.scanning.fragment_table import FragmentTable
from tests.property.tables.test_columnar import PING
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.both_readers import assert_same

# -- the table -----------------------------------------------------------------------------------------------

V4, V6 = bytes([10, 0, 0, 1]), bytes([0x80]) + bytes(14) + b"\1"
KEYS: list[FragmentKey] = [
    (V4, V4, 6, 7), (V4, V4, 17, 7), (V4, V4, 6, 8), (b"\xff" * 4, V4, 6, 7), (V4, b"\xff" * 4, 6, 7),
    (V6, V6, bytes(4)), (V6, V6, b"\xff" * 4), (V6, b"\xff" * 16, bytes(4)), (b"\0" * 12 + V4, V6, bytes(4)),
]  # fmt: skip

offsets = st.one_of(st.integers(0, 12), st.sampled_from([60, 63, 64, 8191])).map(lambda number: 8 * number)
sizes = st.one_of(
    st.integers(0, 8).map(lambda number: 8 * number),
    st.integers(0, 70),
    st.sampled_from([504, 512, 520, 1400, DATAGRAM_MAX - 7, DATAGRAM_MAX]),
)
steps = st.one_of(
    st.integers(-5, 1000),
    st.sampled_from([FRAGMENT_NS_MAX - 1, FRAGMENT_NS_MAX, FRAGMENT_NS_MAX + 1, -FRAGMENT_NS_MAX]),
    st.sampled_from([1 << 40, -(1 << 40), 1 << 64, -(1 << 80)]),
    st.none(),  # no time
)


arrivals = st.lists(
    st.tuples(
        st.integers(0, len(KEYS) - 1) | st.just(0),
        offsets,
        sizes,
        st.integers(0, 70) | st.none(),
        st.booleans() | st.just(True),
        st.sampled_from([6, 17, 255]),
        steps | st.just(1),
    ),
    max_size=40,
)


def joined(store: FragmentStore, arriving: list[Any]) -> Iterator[Any]:
    """What a store returns for each fragment, every one of which has other bytes."""
    time_ns = 1_700_000_000_000_000_000
    for number, (key, start, size, cut, more, protocol, step) in enumerate(arriving):
        time_ns += step or 0
        data = bytes((31 * number + i) & 0xFF for i in range(min(size, 1500)))
        data = (data * (size // 1500 + 1))[:size] if cut is None else data[:cut]
        at_ns = NO_TIME if step is None else time_ns
        fragment = Segment(start, start + size, data, at_ns, number)
        yield store.add(KEYS[key], fragment, more=more, next_header=protocol)


def compare(arriving: list[Any]) -> tuple[FragmentTable, Counter[str]]:
    """Check that both stores return and drop the same; return the one of arrays, and what it dropped."""
    expected_ignored, ignored = Counter[str](), Counter[str]()
    generic, table = Fragments(expected_ignored), FragmentTable(ignored)
    for expected, actual in zip(joined(generic, arriving), joined(table, arriving), strict=True):
        assert actual == expected
        table.update_counters()
        assert ignored == expected_ignored
    return table, ignored


@given(arrivals)
def test_both_stores_join_the_same(arriving):
    compare(arriving)


@given(arrivals, st.integers(1, 4), st.integers(1, 6))
def test_the_oldest_are_evicted_at_the_same_limits(arriving, count_max, segments):
    with mock.patch.multiple(limits, FRAGMENTED_MAX=count_max, FRAGMENT_BYTES_MAX=segments * SEGMENT_COST):
        compare(arriving)


@given(arrivals, arrivals)
def test_a_pickled_table_goes_on_as_the_other(before, after):
    table, _ = compare(before)
    saved = pickle.dumps(table)
    restored = pickle.loads(saved)
    assert pickle.dumps(restored) == saved
    assert list(joined(restored, after)) == list(joined(table, after))


def test_a_cut_8_byte_unit_stays_missing_when_its_rest_arrives():
    table = FragmentTable(Counter())
    of_16, cut, rest = (0, 8, 8, None, False, 6, 1), (0, 0, 5, 2, False, 6, 1), (0, 0, 8, None, True, 6, 1)
    *_, found = joined(table, [of_16, cut, rest])
    assert (len(found.payload), found.size) == (2, 16)
    compare([of_16, cut, rest])


def test_a_fragment_without_a_time_waits_for_the_others():
    """However much later they come; those that come never are dropped after as long as any, then."""
    for store in (Fragments(ignored := Counter()), FragmentTable(also := Counter())):

        def add(ident, start, time_ns, more, store=store):
            fragment = Segment(start, start + 8, bytes(8), time_ns, start + 1)
            return store.add((V4, V4, 17, ident), fragment, more=more, next_header=17)

        assert add(1, 0, NO_TIME, True) is None
        assert add(2, 0, NO_TIME, True) is None
        assert add(1, 8, 1_700_000_000_000_000_000, False) is not None
        assert store.frames() == 1
        assert add(3, 0, 1_700_000_000_000_000_000 + 2 * FRAGMENT_NS_MAX, True) is None
        assert store.frames() == 2
        assert add(3, 8, 1_700_000_000_000_000_001 + 3 * FRAGMENT_NS_MAX, True) is None
        assert store.frames() == 1
    store.update_counters()
    assert ignored == also == {"fragment-timeout": 2}


def test_many_datagrams_leave_nothing_behind():
    """So many that the table of keys is rebuilt, each in two parts with others between them."""
    ignored = Counter[str]()
    table = FragmentTable(ignored)
    for number in range(5000):
        for part in (0, 1):
            key = (V4, V4, 6, number - 500 * part)
            if part and number < 500:
                continue
            at = 8 * part
            fragment = Segment(at, at + 8, bytes([part]) * 8, 0, 2 * number + part)
            found = table.add(key, fragment, more=not part, next_header=6)
            assert (found is not None) == bool(part)
            if found is not None:
                assert found == (6, bytes(8) + b"\1" * 8, 16, (2 * number - 1000, 2 * number + 1))
    table.update_counters()
    assert not ignored


def test_a_datagram_of_every_8_bytes_of_the_largest_size():
    """From the last to the first, then all at once again: what has arrived is passed over."""
    rest = [(0, 8 * n, 8, None, True, 6, 1) for n in range(8190, 0, -1)]
    last = (0, 8 * 8191, 7, None, False, 6, 1)
    again = (0, 8, DATAGRAM_MAX - 15, 20, True, 6, 1)
    _, ignored = compare([last, *rest, again, (0, 0, 8, None, True, 6, 1)])
    assert not ignored


# -- captures ------------------------------------------------------------------------------------------------

ACK = h.session_ack()
MESSAGE = h.user_message(properties=h.properties_header(label="label", body=b"body" * 60))


def pieces(packet: bytes, cuts: list[tuple[int, int]], ident: int) -> list[bytes]:
    """Fragments of an IP packet, given by start and end of their part of the payload."""
    six = packet[0] >> 4 == 6
    payload, result = packet[40:] if six else packet[20:], []
    for first, last in cuts:
        start, end = 8 * min(first, len(payload) // 8), min(8 * last, len(payload))
        part, more = payload[start : max(start, end)], end < len(payload)
        if six:
            head = packet[:4] + struct.pack("!HB", 8 + len(part), 44) + packet[7:40]
            head += struct.pack("!BBHI", packet[6], 0, start | more, ident)
        else:
            word = more << 13 | start // 8
            head = packet[:2] + struct.pack("!HHH", 20 + len(part), ident & 0xFFFF, word) + packet[8:20]
        result.append(head + part)
    return result


@st.composite
def segments(draw: st.DrawFn) -> list[bytes]:
    """The IP packets of a connection, with pings and another protocol among them."""
    six = draw(st.booleans())
    client, server = (c.CLIENT_6, c.SERVER_6) if six else (c.CLIENT, c.SERVER)
    talk = c.TcpConversation((client, 50_000), (server, 1801), mss=draw(st.sampled_from([100, 600])))
    talk.handshake()
    for _ in range(draw(st.integers(1, 4))):
        talk.send(draw(st.sampled_from([ACK, MESSAGE, MESSAGE + ACK, MESSAGE[:50]])))
    found = []
    for frame in talk.frames:  # without the padding of Ethernet
        packet = frame.data[14:]
        size = int.from_bytes(packet[4:6], "big") + 40 if six else int.from_bytes(packet[2:4], "big")
        found.append(packet[:size])
    others = [c.udp_packet(PING, src_port=3527), c.ip(bytes(40), client, server, protocol=1)]
    others.append(c.ip(bytes(60), client, server, protocol=51))
    for packet in draw(st.lists(st.sampled_from(others), max_size=3)):
        found.insert(draw(st.integers(0, len(found))), packet)
    return found


@st.composite
def fragmented(draw: st.DrawFn) -> list[c.Frame]:
    """Frames of a connection in fragments: out of order, overlapping, repeated, lost, cut, of one number."""
    frames: list[bytes] = []
    for packet in draw(segments()):
        size = (len(packet) + 7) // 8
        cuts = [(0, 99)]
        if draw(st.booleans()) or draw(st.booleans()):
            step = draw(st.integers(1, max(1, size - 1)))
            cuts = [(at, at + step) for at in range(0, size, step)]
            for _ in range(draw(st.integers(0, 2))):
                at = draw(st.integers(0, size))
                cuts.append((at, at + draw(st.integers(0, 6))))
            if draw(st.booleans()):
                cuts = draw(st.permutations(cuts[:12])) + cuts[12:]
            if draw(st.integers(0, 5)) == 0:
                del cuts[draw(st.integers(0, len(cuts) - 1))]
            frames += pieces(packet, cuts, draw(st.integers(0, 1) | st.integers(0, 1000)))
        else:
            frames.append(packet)
    if draw(st.integers(0, 3)) == 0:
        frames = draw(st.permutations(frames))
    made, time_ns = [], c.START_NS
    for frame in frames:
        time_ns += draw(st.sampled_from([1000] * 20 + [FRAGMENT_NS_MAX, FRAGMENT_NS_MAX + 1]))
        data = c.ethernet(frame)
        if draw(st.integers(0, 19)) == 0:
            data = data[: draw(st.integers(0, len(data)))]
            made.append(c.Frame(time_ns, data, len(c.ethernet(frame))))
        else:
            made.append(c.Frame(time_ns, data))
    return made


@given(fragmented(), st.sampled_from([(1 << 16, 64, 7), (1 << 16, 1 << 12, 100), (1200, 64, 1)]))
def test_both_readers_agree_on_fragments(frames, sizes):
    chunk, arena, rows = sizes
    assert_same([c.pcap_bytes(frames)], CHUNK=chunk, ARENA=arena, ROWS=rows)


@given(fragmented(), fragmented(), st.integers(1, 3))
def test_both_readers_agree_across_files_and_at_limits(first, second, count_max):
    with mock.patch.multiple(limits, FRAGMENTED_MAX=count_max, FRAGMENT_BYTES_MAX=5 * SEGMENT_COST):
        assert_same([c.pcap_bytes(first), c.pcapng_bytes(second)])


def test_a_table_of_few_datagrams_is_never_full_of_removed_ones():
    """More come and go than the table has places: its search ends at an empty one."""
    frames = [
        c.Frame(c.START_NS + number, c.ethernet(c.ipv4(bytes(24), ident=number, more=True)))
        for number in range(200)
    ]
    with mock.patch.object(limits, "FRAGMENTED_MAX", 1):
        assert_same([c.pcap_bytes(frames)])
