"""The source against RFC 3208 section 5 and the clarifications of [MC-MQSRM] 2.1.3."""

from __future__ import annotations

from ipaddress import ip_address
from itertools import pairwise

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.pgm import (
    Nak,
    Nla,
    OptFin,
    OptFragment,
    OptJoin,
    OptNakList,
    OptRst,
    OptSyn,
    PgmPacket,
    PgmType,
    build_pgm,
    checksum_is_right,
    parse_pgm,
)
from msmqwire.pgm.constants import NCF_SHARE, TXW_MAX_RTE
from msmqwire.pgm.effects import Finished, Multicast, Transmitted
from msmqwire.pgm.source import WAITING_MAX, Source
from tests.support.pgm.pgm_network import GROUP, GROUP_PORT, GSI, PORT, SOURCE, Network, source_settings

FAST = 1e9  # a rate that never makes anything wait


class Run:
    """A source with all that it has sent, as (time, packet)."""

    def __init__(self, first=0, rate=FAST, **more):
        self.source = Source(source_settings(txw_max_rte=rate, **more), 0.0, first=first)
        self.sent: list[tuple[float, PgmPacket]] = []
        self.sizes: list[tuple[float, int]] = []
        self.finished = False
        self.transmitted = 0
        self.now = 0.0
        self.take(self.source.tick(0.0))

    def take(self, effects):
        for effect in effects:
            if isinstance(effect, Finished):
                self.finished = True
                continue
            if isinstance(effect, Transmitted):
                self.transmitted += 1
                continue
            assert isinstance(effect, Multicast)
            assert checksum_is_right(effect.data)
            assert effect.ttl is None
            packet = parse_pgm(effect.data)
            self.sent.append((self.now, packet))
            if packet.Type != PgmType.NCF:
                self.sizes.append((self.now, len(effect.data)))

    def until(self, time):
        while (due := self.source.next_time()) <= time:
            self.now = max(self.now, due)
            self.take(self.source.tick(self.now))
        self.now = time

    def send(self, *apdus):
        for apdu in apdus:
            self.take(self.source.send(apdu, self.now))

    def nak(self, *sequences, **more):
        self.take(self.source.received(nak(*sequences, **more), self.now))

    def of(self, *types, since=0.0):
        return [(at, packet) for at, packet in self.sent if packet.Type in types and at >= since]


def nak(first, *others, gsi=GSI, kind=PgmType.NAK, ports=(GROUP_PORT, PORT), checksum=None):
    body = Nak(first, Nla(SOURCE), Nla(GROUP))
    options = (OptNakList(others),) if others else ()
    return build_pgm(PgmPacket(kind, *ports, gsi, body, options, Checksum=checksum))


def kinds(run):
    return [PgmType(packet.Type).name for _, packet in run.sent]


def option(packet, kind):
    return next((one for one in packet.options if isinstance(one, kind)), None)


def confirmed(run, since=0.0):
    """The packets that NCFs name."""
    numbers = set()
    for _, packet in run.of(PgmType.NCF, since=since):
        more = option(packet, OptNakList)
        numbers |= {packet.body.RequestedSequenceNumber, *(more.SequenceNumbers if more else ())}
    return numbers


def test_it_begins_with_an_spm_and_opt_syn():
    run = Run(first=7)
    run.send(b"one", b"two")
    spm, one, two = [packet for _, packet in run.sent]
    assert (spm.body.TrailingEdgeSequenceNumber, spm.body.LeadingEdgeSequenceNumber) == (7, 6)
    assert spm.body.PathNLA.Address == SOURCE
    assert (spm.SourcePort, spm.DestinationPort, spm.GSI) == (PORT, GROUP_PORT, GSI)
    assert [one.body.DataPacketSequenceNumber, two.body.DataPacketSequenceNumber] == [7, 8]
    assert [one.data, two.data] == [b"one", b"two"]
    assert option(one, OptSyn)
    assert not option(two, OptSyn)


@pytest.mark.parametrize("size", [0, 1, 1000, 1348, 1349, 5000, 65_536])
def test_fragments(size):
    run = Run(first=2**32 - 2)
    apdu = bytes(range(256)) * 256
    run.send(apdu[:size])
    packets = [packet for _, packet in run.of(PgmType.ODATA)]
    assert b"".join(packet.data for packet in packets) == apdu[:size]
    assert all(len(build_pgm(packet)) <= 1400 for packet in packets)
    assert (len(packets) > 1) == (size > 1348)
    at = 0
    for number, packet in enumerate(packets):
        assert packet.body.DataPacketSequenceNumber == (2**32 - 2 + number) % 2**32
        fragment = option(packet, OptFragment)
        assert (fragment is not None) == (len(packets) > 1)
        if fragment:
            assert (fragment.FirstSequenceNumber, fragment.Offset, fragment.Length) == (2**32 - 2, at, size)
        at += len(packet.data)


@pytest.mark.requirement("SRMP-2.1.3.1-15")
def test_an_apdu_over_64_kb_is_refused():
    run = Run()
    run.send(bytes(65_536))
    with pytest.raises(InvalidValue):
        run.source.send(bytes(65_537), 0.0)


@pytest.mark.parametrize("size", [52, 65_536])
def test_a_packet_size_that_cannot_be(size):
    with pytest.raises(InvalidValue):
        Run(tpdu_max=size)


@pytest.mark.requirement("SRMP-2.1.3.1-01", "SRMP-2.1.3.1-09", "SRMP-2.1.3-03")
def test_rate_of_spm_odata_and_rdata_together():
    run = Run(rate=70_000.0)
    assert source_settings().txw_max_rte == 70_000
    run.send(*[bytes(65_536)] * 8)
    assert run.sent[-1][0] == 0.0
    assert sum(size for _, size in run.sizes) <= 2800
    for tenth in range(60):
        run.until(tenth / 10)
        run.nak(0, 1)
    run.until(6)
    assert len(run.of(PgmType.RDATA)) > 50
    total = sum(size for _, size in run.sizes)
    assert 0.97 * 6 * 70_000 < total < 6 * 70_000 + 2800 + 1400
    for start in range(0, len(run.sizes), 20):
        seen, (begin, _) = 0, run.sizes[start]
        for at, size in run.sizes[start:]:
            seen += size
            # SPMs are not delayed: two of them may be ahead of their tokens.
            assert seen <= 2800 + 1400 + 100 + (at - begin) * 70_000


@pytest.mark.requirement("SRMP-2.1.3.1-09")
def test_the_bucket_holds_the_bytes_of_40_ms():
    run = Run(rate=70_000.0)
    run.send(*[bytes(50)] * 100)
    largest = max(size for _, size in run.sizes)
    assert 2800 - largest < sum(size for _, size in run.sizes) <= 2800
    assert run.source.waiting > 0


def test_a_packet_larger_than_the_bucket_goes():
    run = Run(rate=10_000.0)
    run.send(bytes(5000))
    run.until(2)
    assert len(run.of(PgmType.ODATA)) == 4
    assert run.source.waiting == 0


@pytest.mark.requirement("SRMP-2.1.3.1-05")
def test_heartbeats():
    run = Run()
    run.until(0.5)
    run.send(b"data")
    run.until(80)
    times = [at for at, _ in run.of(PgmType.SPM) if at > 0]
    # The ambient SPM after the data is at once: the last one is half a second ago.
    assert times[0] == 0.5
    assert [late - early for early, late in pairwise(times)] == [1, 2, 4, 8, 15, 15, 15, 15]
    run.send(b"more")
    run.until(83)
    times = [at for at, _ in run.of(PgmType.SPM, since=80)]
    assert times == [80.0, 81.0, 83.0]
    numbers = [packet.body.SPMSequenceNumber for _, packet in run.of(PgmType.SPM)]
    assert numbers == list(range(len(numbers)))


@pytest.mark.requirement("SRMP-2.1.3.1-11")
def test_ambient_spm_every_50_packets():
    run = Run()
    run.send(*[b"data"] * 40)
    run.nak(0, 1, 2, 3, 4)
    run.until(0.2)  # 45 with the repairs
    run.send(*[b"data"] * 120)
    counts, count = [], 0
    for name in kinds(run)[1:]:
        if name == "SPM":
            counts.append(count)
            count = 0
        count += name in ("ODATA", "RDATA")
    assert counts == [50, 50, 50]
    assert count == 15


@pytest.mark.requirement("SRMP-2.1.3.1-11")
def test_ambient_spm_every_half_second():
    run = Run()
    for number in range(100):
        run.until(number * 0.1)
        run.send(b"data")
    times = [at for at, _ in run.of(PgmType.SPM)]
    assert all(late - early <= 0.5 + 1e-9 for early, late in pairwise(times))
    assert all(late - early >= 0.5 - 1e-9 for early, late in pairwise(times))


@pytest.mark.requirement("SRMP-2.1.3-04", "SRMP-2.1.3-05", "SRMP-2.1.3.1-12")
def test_ncf_at_once_and_rdata_after_the_delay():
    run = Run(first=100)
    run.send(*[bytes([number]) for number in range(100)])
    run.until(1)
    for at in range(20):  # no matter how many come
        run.until(1 + at)
        run.nak(150)
        assert [packet.body.RequestedSequenceNumber for _, packet in run.of(PgmType.NCF, since=run.now)] == [
            150
        ]
        assert not run.of(PgmType.RDATA, since=run.now)
        run.until(run.now + 0.0299)
        assert not run.of(PgmType.RDATA, since=1 + at)
        run.until(run.now + 0.0002)
        ((_, rdata),) = run.of(PgmType.RDATA, since=1 + at)
        assert (rdata.body.DataPacketSequenceNumber, rdata.data) == (150, bytes([50]))
    run.nak(100)
    assert run.of(PgmType.RDATA, since=run.now), "the trailing packet without delay"


def test_asked_twice_repaired_once():
    run = Run()
    run.send(*[b"data"] * 10)
    run.nak(5)
    run.nak(5, 5, 6)
    run.until(1)
    assert len(run.of(PgmType.NCF)) == 2
    repaired = [packet.body.DataPacketSequenceNumber for _, packet in run.of(PgmType.RDATA)]
    assert repaired == [5, 6]


def test_lists_of_naks():
    run = Run(first=2**32 - 3)
    run.send(*[b"data"] * 10)
    run.nak(2**32 - 1, 1, 6, 7, 2**32 - 4)
    ((_, ncf),) = run.of(PgmType.NCF)
    assert ncf.body.RequestedSequenceNumber == 2**32 - 1
    assert option(ncf, OptNakList).SequenceNumbers == (1, 6)
    assert ncf.body.SourceNLA.Address == SOURCE
    assert ncf.body.MulticastGroupNLA.Address == GROUP


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 40,
        nak(5),
        nak(0, gsi=bytes(6)),
        nak(0, kind=PgmType.NNAK),
        nak(0, kind=PgmType.NCF),
        nak(0, ports=(PORT, GROUP_PORT)),
        nak(0, checksum=1),
    ],
)
def test_what_is_not_answered(data):
    run = Run()
    run.send(b"data")
    before = len(run.sent)
    run.take(run.source.received(data, 0.0))
    assert run.source.refused == 1
    assert len(run.sent) == before


@pytest.mark.requirement("SRMP-2.1.3.1-02", "SRMP-2.1.3.1-03", "SRMP-2.1.3.1-04", "SRMP-2.1.3.1-13")
@pytest.mark.requirement("SRMP-2.1.3-02", "SRMP-2.1.3-13", "SRMP-2.1.3-14")
@pytest.mark.parametrize("asked", [False, True])
def test_window_advances_every_45_seconds(asked):
    """NAKs for what is not at the trailing edge change nothing."""
    run = Run()
    trails = []
    for second in range(700):
        run.until(float(second))
        run.send(b"x")
        if asked:
            run.nak(second)
        trails.append(run.of(PgmType.ODATA)[-1][1].body.TrailingEdgeSequenceNumber)
    moves = [second for second, (early, late) in enumerate(pairwise(trails), 1) if early != late]
    assert moves == [270, 315, 360, 405, 450, 495, 540, 585, 630, 675]
    assert [late - early for early, late in pairwise(trails) if early != late] == [15] + [45] * 9
    assert all(255 <= second - trail <= 300 for second, trail in enumerate(trails) if second > 255)


@pytest.mark.requirement("SRMP-2.1.3.1-02")
@pytest.mark.requirement("SRMP-2.1.3.1-03", "SRMP-2.1.3.1-04")
def test_another_txw_secs():
    run = Run(txw_secs=20.0)
    run.send(b"x")
    run.until(17.9)
    run.nak(0)
    assert run.of(PgmType.NCF)
    run.until(18.1)
    run.nak(0)
    assert not run.of(PgmType.NCF, since=18)


@pytest.mark.requirement("SRMP-2.1.3.1-14")
def test_a_pending_nak_holds_the_window_back():
    run = Run()
    run.send(*[b"x"] * 100)
    run.until(269.99)
    run.nak(50)
    run.until(270.001)
    run.send(b"y")
    assert run.sent[-1][1].body.TrailingEdgeSequenceNumber == 50
    run.until(271)
    assert len(run.of(PgmType.RDATA)) == 1
    run.until(316)
    run.send(b"z")
    assert run.of(PgmType.ODATA)[-1][1].body.TrailingEdgeSequenceNumber == 100


def test_close_sends_waiting_data_then_opt_fin_to_the_end():
    """The end is when the window is empty."""
    run = Run(rate=70_000.0)
    run.send(bytes(20_000))
    run.take(run.source.close(0.0))
    assert run.source.waiting > 0
    with pytest.raises(InvalidValue):
        run.source.send(b"late", 0.0)
    run.until(200)
    odata = [packet for _, packet in run.of(PgmType.ODATA)]
    assert b"".join(packet.data for packet in odata) == bytes(20_000)
    assert [bool(option(packet, OptFin)) for packet in odata] == [False] * (len(odata) - 1) + [True]
    spms = [packet for _, packet in run.of(PgmType.SPM, since=1)]
    assert len(spms) > 5
    assert all(option(spm, OptFin) and spm.body.LeadingEdgeSequenceNumber == len(odata) - 1 for spm in spms)
    run.nak(3)
    run.until(201)
    assert run.of(PgmType.RDATA)
    assert not run.finished
    run.until(301)
    assert run.finished
    assert run.source.next_time() == float("inf")


@pytest.mark.requirement("SRMP-2.1.3-12")
def test_cancelled_with_opt_rst():
    run = Run(rate=70_000.0)
    run.send(bytes(20_000))
    run.take(run.source.cancel(run.now))
    assert option(run.sent[-1][1], OptRst)
    assert run.sent[-1][1].Type == PgmType.SPM
    assert run.finished
    before = len(run.sent)
    run.nak(0)
    run.until(100)
    assert len(run.sent) == before
    assert run.source.cancel(run.now) == []


@pytest.mark.requirement("SRMP-2.1.3-08", "SRMP-2.1.3-12")
def test_a_closed_session_has_neither_opt_join_nor_opt_rst():
    network = Network(1, loss=0.2, jitter=0.01)
    for size in range(0, 20_000, 1500):
        network.send(bytes(size))
        network.run(0.3)
    network.carry(-1, network.source.close(network.now))
    network.run(320)
    assert network.sourced == [Finished()]
    packets = [parse_pgm(data) for _, sender, data in network.sent if sender == -1]
    assert not any(option(packet, OptJoin) or option(packet, OptRst) for packet in packets)


def test_ipv6():
    source = ip_address("fd00::1")
    settings = source_settings()
    six = type(settings)(gsi=GSI, port=1, group_port=2, address=source, group=ip_address("ff15::1"))
    (spm,) = Source(six, 0.0).tick(0.0)
    assert parse_pgm(spm.data).body.PathNLA.Address == source


def test_the_owner_learns_when_an_apdu_has_gone_out():
    run = Run(rate=70_000.0)
    run.send(bytes(20_000), b"", b"next")
    assert run.transmitted == 0
    run.until(0.2)
    assert run.transmitted == 0, "the first takes 0.29 s"
    run.until(0.5)
    assert run.transmitted == 3


@pytest.mark.requirement("SRMP-2.1.3-04")
def test_a_flood_of_naks():
    """NCFs keep to their rate, each number asked for is confirmed and repaired, and new data go on."""
    run = Run(rate=TXW_MAX_RTE)
    run.send(*[bytes(1000)] * 100)
    run.until(2.0)
    run.send(bytes(60_000))
    for turn in range(2000):
        run.until(2.0 + turn / 1000)
        run.nak(*[(turn + number) % 100 for number in range(60)])
    run.until(8.0)
    ncfs = run.of(PgmType.NCF)
    sizes = sum(len(build_pgm(packet)) for at, packet in ncfs if at < 4.0)
    assert sizes <= 2.0 * TXW_MAX_RTE * NCF_SHARE + 600
    assert confirmed(run) == set(range(100))
    assert {packet.body.DataPacketSequenceNumber for _, packet in run.of(PgmType.RDATA)} == set(range(100))
    data = run.of(PgmType.ODATA, since=2.0)
    assert sum(len(packet.data) for _, packet in data) == 60_000
    assert data[-1][0] < 2.0 + 2.5 * 60_000 / TXW_MAX_RTE
    total = sum(size for at, size in run.sizes if 2.0 <= at < 4.0)
    assert total <= 2.0 * TXW_MAX_RTE + 0.04 * TXW_MAX_RTE + 1500


def test_too_much_that_waits_is_refused():
    run = Run(rate=1000.0)
    accepted = 0
    while run.source.has_room(60_000):
        run.send(bytes(60_000))
        accepted += 1
    assert 60 <= accepted <= WAITING_MAX // 60_000 + 1
    with pytest.raises(InvalidValue):
        run.source.send(bytes(60_000), 0.0)
    run.until(300.0)
    assert run.source.has_room(60_000)
    count = 0
    while run.source.has_room(0) and count < 200_000:
        run.send(b"")
        count += 1
    assert count < WAITING_MAX // 50


def test_the_window_does_not_grow_without_limit(monkeypatch):
    monkeypatch.setattr("msmqwire.pgm.source.WINDOW_MAX", 100_000)
    run = Run()
    for _ in range(300):
        run.send(bytes(1000))
        run.nak(0, 250)
    window = run.source._window
    assert (window.size, window.trail, window.lead) == (100_000, 200, 299)
    run.until(1.0)
    repaired = {packet.body.DataPacketSequenceNumber for _, packet in run.of(PgmType.RDATA)}
    assert repaired == {0, 250}


def test_naks_do_not_hold_the_window_back_forever():
    """Somebody asks for the trailing packet all the time: it leaves the window all the same."""
    run = Run()
    run.send(b"first")
    for second in range(0, 700):
        run.until(second - 1e-6)
        run.send(b"x")
        run.nak(0, 1)
        run.until(float(second))
    assert run.source._window.trail > 50
