"""PGM: packets come back whole, and on a bad network nothing is lost silently."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from fuzz.readers import pgm
from msmqwire.pgm import (
    Data,
    Nak,
    Nla,
    OptFin,
    OptFragment,
    OptJoin,
    OptLength,
    OptNakList,
    OptRst,
    PgmPacket,
    PgmType,
    Spm,
    build_pgm,
    checksum_is_right,
    parse_pgm,
)
from msmqwire.pgm.constants import TPDU_MAX
from msmqwire.pgm.effects import Deliver, Ended, EndReason, Finished, Joined, Lost
from msmqwire.pgm.receive_window import BUFFER_MAX, MISSING_MAX, TIMERS_MAX, WINDOW_MAX
from msmqwire.pgm.receiver import SOURCES_MAX
from msmqwire.pgm.source import FRAME_MAX, Source
from msmqwire.pgm.values import BODIES
from tests.support.pgm.pgm_network import (
    GROUP,
    GROUP_PORT,
    GSI,
    PORT,
    SOURCE,
    Network,
    receiver,
    source_settings,
)
from tests.support.pgm.pgm_strategies import octet, packets, word

DATA_MAX = TPDU_MAX - FRAME_MAX


@given(packets())
def test_round_trip(packet):
    data = build_pgm(packet)
    assert checksum_is_right(data)
    parsed = parse_pgm(data)
    assert build_pgm(parsed) == data
    plain = tuple(
        replace(option, E=None, OptionLength=None)
        for option in parsed.options
        if not isinstance(option, OptLength)
    )
    given_length = packet.TSDULength is not None
    again = replace(parsed, options=plain, Options=None, Checksum=None)
    assert again == replace(packet, TSDULength=packet.TSDULength if given_length else len(packet.data))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A packet with some bytes changed, its checksum made right again if the draw says so."""
    data = bytearray(build_pgm(draw(packets())))
    for _ in range(draw(st.integers(0, 4))):
        data[draw(st.integers(0, len(data) - 1))] = draw(octet)
    del data[draw(st.integers(16, len(data))) :]
    return bytes(data)


@given(st.one_of(st.binary(max_size=80), damaged()))
def test_any_bytes(data):
    pgm.packets(data)


def deliveries(events):
    return [event.apdu for event in events if isinstance(event, Deliver)]


def judge(events, apdus, ranges):
    """Every APDU from the joined one on is delivered once, in order, or has a part in a reported loss."""
    joined = [event.sequence for event in events if isinstance(event, Joined)]
    if not joined:
        assert events == []
        return
    assert len(joined) == 1
    lost = [(event.first, event.last) for event in events if isinstance(event, Lost)]
    expected = []
    for apdu, (first, last) in zip(apdus, ranges, strict=True):
        if first < joined[0]:
            continue
        if any(start <= last and end >= first for start, end in lost):
            continue
        expected.append(apdu)
    delivered = deliveries(events)
    # A source that ends its session before the end was heard just falls silent: what came is a beginning.
    silent = isinstance(events[-1], Ended) and events[-1].reason is EndReason.SILENT
    assert delivered == (expected[: len(delivered)] if silent else expected)


def simulate(seed, sizes, **window):
    """A session from its beginning until nobody knows of it any more, on a network that loses 30 %."""
    network = Network(seed, 2, loss=0.3, copies=0.2, jitter=0.1, first=100, **window)
    network.run(1.0)
    apdus = [bytes([number]) + network.rng.randbytes(size) for number, size in enumerate(sizes)]
    ranges, following = [], 100
    for apdu in apdus:
        count = 1 if len(apdu) <= DATA_MAX else -(-len(apdu) // DATA_MAX)
        ranges.append((following, following + count - 1))
        following += count
        network.send(apdu)
        network.run(network.rng.random())
    network.carry(-1, network.source.close(network.now))
    network.run(330.0)
    assert network.sourced == [Finished()]
    network.run(330.0)
    return network, apdus, ranges


@pytest.mark.requirement("SRMP-2.1.3-06")
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.integers(0, 6000), min_size=1, max_size=12), st.booleans())
def test_delivered_in_order_exactly_once_or_reported(seed, sizes, patient):
    """Packets are lost, come late, twice and in another order; with a short window much can't be repaired."""
    network, apdus, ranges = simulate(seed, sizes, **({} if patient else {"txw_secs": 2.0}))
    for seen, one in zip(network.seen, network.receivers, strict=True):
        judge(seen.events, apdus, ranges)
        assert len(seen.of(Ended)) == bool(seen.events)
        assert one.kept == one.buffered == 0
        if patient and seen.events:
            assert seen.of(Ended)[0].reason is EndReason.FIN


@pytest.mark.parametrize("seed", range(10))
def test_everything_arrives(seed):
    """With the window of the specification all is repaired in time, but for very bad luck."""
    network, apdus, ranges = simulate(seed, range(0, 9000, 500))
    for seen in network.seen:
        judge(seen.events, apdus, ranges)
        assert not seen.of(Lost)
        assert len(seen.of(Deliver)) >= len(apdus) - 2


def test_a_short_window_does_lose():
    """The simulation above does meet losses that can't be repaired."""
    lost = 0
    for seed in range(10):
        network = Network(seed, 2, loss=0.5, jitter=0.1, first=100, txw_secs=1.0)
        network.run(1.0)
        for _ in range(20):
            network.send(bytes(3000))
            network.run(0.2)
        network.run(30)
        lost += sum(len(seen.of(Lost)) for seen in network.seen)
    assert lost > 5


hostile_numbers = st.one_of(
    st.integers(0, 20), st.integers(2**32 - 20, 2**32 - 1), st.integers(2**31 - 5, 2**31 + 5), word,
    st.integers(0, 10_000),
)  # fmt: skip


@st.composite
def hostile(draw: st.DrawFn) -> bytes:
    number = hostile_numbers
    path = Nla(SOURCE)
    kind = draw(
        st.sampled_from([PgmType.SPM, PgmType.ODATA, PgmType.ODATA, PgmType.RDATA, PgmType.NCF, PgmType.NAK])
    )
    sequence = draw(number)
    trail = draw(st.one_of(number, st.just(sequence)))
    body = {
        Spm: Spm(draw(number), trail, sequence, path),
        Data: Data(sequence, trail),
        Nak: Nak(sequence, path, Nla(GROUP)),
    }[BODIES[kind]]
    fragment = st.builds(
        OptFragment, st.one_of(number, st.just(sequence)), st.sampled_from([0, 5, 2**31]), number
    )
    few = draw(
        st.lists(
            st.one_of(
                fragment, st.builds(OptJoin, number),
                st.builds(OptNakList, st.lists(number, max_size=9).map(tuple)),
                *([st.just(OptFin()), st.just(OptRst())] if draw(octet) < 10 else []),
            ),
            max_size=2,
        )
    )  # fmt: skip
    ports = (GROUP_PORT, PORT) if kind == PgmType.NAK else (PORT, GROUP_PORT)
    gsi = draw(st.sampled_from([GSI, GSI, bytes(6)]))
    data = (
        bytes(draw(st.sampled_from([0, 5, 1400, 60_000]))) if kind in (PgmType.ODATA, PgmType.RDATA) else b""
    )
    return build_pgm(PgmPacket(kind, *ports, gsi, body, tuple(few), data))


def bounded(one):
    limit = WINDOW_MAX + TIMERS_MAX  # a number is kept, missing or given up, and only one of them
    assert one.kept <= limit * len(one._sessions)
    assert one.buffered <= (BUFFER_MAX + 0x10000) * len(one._sessions)
    assert len(one._sessions) <= SOURCES_MAX


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(hostile(), st.sampled_from([0.0, 0.001, 0.04, 1.0, 3.0, 400.0])), max_size=30))
def test_hostile_packets(story):
    """Nothing but effects comes of them, memory stays within its bounds, and time goes on."""
    now, one, source = 0.0, receiver(), Source(source_settings(), 0.0)
    source.send(bytes(5000), 0.0)
    for data, wait in story:
        now += wait
        for effect in one.received(data, SOURCE, now):
            assert not isinstance(effect, Deliver) or len(effect.apdu) <= 0x10000
        source.received(data, now)
        bounded(one)
    for _ in range(3000):
        now = one.next_time()
        if now == float("inf"):
            return
        one.tick(now)
        bounded(one)
    raise AssertionError("it never comes to rest")


@given(st.binary(max_size=60))
def test_any_bytes_for_source_and_receiver(data):
    one, source = receiver(), Source(source_settings(), 0.0)
    for bytes_ in (data, bytes(4) + data):
        one.received(bytes_, ip_address("::1"), 0.0)
        source.received(bytes_, 0.0)


def test_a_flood_of_jumping_windows():
    """Each SPM claims a thousand packets more and takes them back: neither timers nor numbers gather."""
    one = receiver()
    for number in range(300):
        trail = number * MISSING_MAX * 2
        spm = Spm(number, trail, trail + MISSING_MAX, Nla(SOURCE))
        one.received(build_pgm(PgmPacket(PgmType.SPM, PORT, GROUP_PORT, GSI, spm)), SOURCE, 0.0)
        bounded(one)


def test_a_flood_of_empty_packets_behind_a_gap():
    one = receiver()
    for sequence in range(0, 20_000, 2):
        data = build_pgm(PgmPacket(PgmType.ODATA, PORT, GROUP_PORT, GSI, Data(sequence, 0)))
        one.received(data, SOURCE, 0.0)
        bounded(one)


def test_an_apdu_without_an_end():
    """What is put together never grows beyond 64 KiB, whatever its fragments claim."""
    one = receiver()
    for sequence in range(20):
        option = OptFragment(0, sequence * 60_000, 2**32 - 1)
        packet = PgmPacket(PgmType.ODATA, PORT, GROUP_PORT, GSI, Data(sequence, 0), (option,), bytes(60_000))
        effects = one.received(build_pgm(packet), SOURCE, 0.0)
        assert [type(effect) for effect in effects] == ([] if sequence else [Joined, Lost])


def test_a_lead_half_the_numbers_away():
    one = receiver()
    for lead in (0, 2**31 - 1):
        spm = Spm(lead, 0, lead, Nla(SOURCE))
        one.received(build_pgm(PgmPacket(PgmType.SPM, PORT, GROUP_PORT, GSI, spm)), SOURCE, 0.0)
    lost = 0
    for _ in range(20_000):
        now = one.next_time()
        if now == float("inf"):
            break
        for effect in one.tick(now):
            lost += isinstance(effect, Lost)
        bounded(one)
    assert now == float("inf")
    assert lost
