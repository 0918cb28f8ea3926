"""The receiver against RFC 3208 section 6 and the clarifications of [MC-MQSRM] 2.1.3."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from msmqwire.pgm import (
    Data,
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
    Spm,
    build_pgm,
    checksum_is_right,
    parse_pgm,
)
from msmqwire.pgm.effects import Deliver, Ended, EndReason, Joined, Lost, Multicast, Tsi, Unicast
from msmqwire.pgm.receiver import SILENCE_MAX
from tests.support.pgm.pgm_network import GROUP, GROUP_PORT, GSI, PORT, SOURCE, receiver

TSI = Tsi(GSI, PORT)
PATH = ip_address("10.9.9.9")


class Run:
    """A receiver with all that it wants done, as (time, effect)."""

    def __init__(self, draw=lambda: 0.5):
        self.receiver = receiver(draw)
        self.now = 0.0
        self.effects = []
        self.spms = 0

    def take(self, data):
        self.effects += [(self.now, effect) for effect in self.receiver.received(data, SOURCE, self.now)]

    def spm(self, trail, lead, *options, **more):
        self.take(packet(PgmType.SPM, Spm(self.spms, trail, lead, Nla(PATH)), *options, **more))
        self.spms += 1

    def earn(self, before=2**32):
        """Hear a packet that has come already: NAKs may take as many bytes as were heard."""
        self.data(before - 1, bytes(20_000), trail=before - 1)

    def data(self, sequence, data=b"", *options, trail=0, kind=PgmType.ODATA, **more):
        body = Data(sequence % 2**32, trail % 2**32)
        self.take(packet(kind, body, *options, data=data or b"%d" % sequence, **more))

    def nak(self, kind, first, *others):
        ports = (GROUP_PORT, PORT) if kind == PgmType.NAK else (PORT, GROUP_PORT)
        options = (OptNakList(others),) if others else ()
        self.take(packet(kind, Nak(first, Nla(SOURCE), Nla(GROUP)), *options, ports=ports))

    def until(self, time):
        while (due := self.receiver.next_time()) <= time:
            self.now = max(self.now, due)
            self.effects += [(self.now, effect) for effect in self.receiver.tick(self.now)]
        self.now = time

    def of(self, *kinds):
        return [effect for _, effect in self.effects if isinstance(effect, kinds)]

    @property
    def apdus(self):
        return [effect.apdu for effect in self.of(Deliver)]

    def naks(self):
        """(time, sequence numbers) of each NAK."""
        found = []
        for at, effect in self.effects:
            if isinstance(effect, Multicast):
                nak = parse_pgm(effect.data)
                lists = [option for option in nak.options if isinstance(option, OptNakList)]
                others = lists[0].SequenceNumbers if lists else ()
                found.append((pytest.approx(at), [nak.body.RequestedSequenceNumber, *others]))
        return found


def packet(kind, body, *options, data=b"", gsi=GSI, ports=(PORT, GROUP_PORT), checksum=None):
    return build_pgm(PgmPacket(kind, *ports, gsi, body, options, data, Checksum=checksum))


def started(draw=lambda: 0.5):
    run = Run(draw)
    run.spm(0, 2**32 - 1)
    run.earn()
    return run


def fragment(run, first, offset, length, data, sequence=None):
    run.data(first if sequence is None else sequence, data, OptFragment(first, offset, length))


@pytest.mark.requirement("SRMP-2.1.3-06")
def test_in_order_whatever_the_order_of_arrival():
    run = started()
    for sequence in (2, 0, 4, 2, 1, 0, 3, 3):
        run.data(sequence)
        assert run.apdus == [b"%d" % number for number in range(len(run.apdus))]
    assert len(run.apdus) == 5
    assert run.receiver.buffered == 0


def test_numbers_go_around():
    run = Run()
    for sequence in (2**32 - 2, 2**32, 2**32 - 1, 2**32 + 1):
        run.data(sequence, trail=2**32 - 2)
    assert run.apdus == [b"%d" % (2**32 - 2 + number) for number in range(4)]
    assert run.of(Joined) == [Joined(TSI, 2**32 - 2)]


@pytest.mark.requirement("SRMP-2.1.2-02")
def test_another_port_is_not_heard():
    run = Run()
    run.take(packet(PgmType.SPM, Spm(0, 0, 5, Nla(PATH)), ports=(PORT, GROUP_PORT + 1)))
    run.take(packet(PgmType.ODATA, Data(0, 0), ports=(PORT, GROUP_PORT + 1)))
    assert run.effects == []
    run.data(0)
    assert run.apdus == [b"0"]


@pytest.mark.requirement("SRMP-2.1.3-07", "SRMP-2.1.3.1-10")
@pytest.mark.parametrize("drawn, delay", [(0.0, 0.01), (0.5, 0.03), (1.0, 0.05)])
def test_a_nak_goes_to_the_source_and_to_the_group_with_ttl_1(drawn, delay):
    run = started(lambda: drawn)
    run.data(1)
    run.until(delay - 0.0001)
    assert run.naks() == []
    run.until(delay + 0.0001)
    assert run.naks() == [(delay, [0])]
    (unicast,), (multicast,) = run.of(Unicast), run.of(Multicast)
    assert (unicast.address, multicast.ttl) == (SOURCE, 1)
    assert unicast.data == multicast.data
    assert checksum_is_right(unicast.data)
    nak = parse_pgm(unicast.data)
    assert (nak.Type, nak.SourcePort, nak.DestinationPort, nak.GSI) == (PgmType.NAK, GROUP_PORT, PORT, GSI)
    assert (nak.body.SourceNLA.Address, nak.body.MulticastGroupNLA.Address) == (SOURCE, GROUP)


def test_gaps_are_asked_for_in_lists():
    run = started()
    run.data(100)
    run.until(0.1)
    assert [numbers for _, numbers in run.naks()] == [list(range(63)), list(range(63, 100))]


def test_an_spm_tells_what_is_missing_at_the_end():
    run = started()
    run.data(0)
    run.spm(0, 2)
    run.until(0.1)
    assert run.naks() == [(0.03, [1, 2])]


def test_nobody_is_asked_before_an_spm():
    """No path is known yet: RFC 3208 section 6.3."""
    run = Run()
    run.data(0)
    run.data(2)
    run.until(1.0)
    assert run.naks() == []
    run.spm(0, 2)
    run.until(2.0)
    assert run.naks()[0][1] == [1]


@pytest.mark.requirement("SRMP-2.1.3.1-06", "SRMP-2.1.3.1-08")
def test_no_ncf():
    run = started()
    run.data(1)
    run.until(30)
    # Each time a back-off of 0.03 and a wait of 0.75.
    assert run.naks() == [(0.03 + number * 0.78, [0]) for number in range(11)]
    (at, lost), (_, deliver) = run.effects[-2:]
    assert (at, lost) == (pytest.approx(11 * 0.78), Lost(TSI, 0, 0))
    assert deliver == Deliver(TSI, b"1")


@pytest.mark.requirement("SRMP-2.1.3.1-07", "SRMP-2.1.3.1-08")
def test_no_data():
    run = started()
    run.data(1)
    run.until(0.031)
    for number in range(11):
        assert len(run.naks()) == number + 1
        run.nak(PgmType.NCF, 0)
        run.until(run.now + 1.999)
        assert run.of(Lost) == []
        run.until(run.now + 0.002 + 0.03)  # the back-off
    assert run.of(Lost) == [Lost(TSI, 0, 0)]
    assert len(run.naks()) == 11


def test_an_ncf_or_a_nak_of_another_suppresses_ours():
    run = started()
    run.data(3)
    run.nak(PgmType.NCF, 0)
    run.nak(PgmType.NAK, 1)
    run.until(0.1)
    assert run.naks() == [(0.03, [2])]
    run.until(1.0)
    assert run.naks()[1:] == [(0.78, [1]), (0.81, [2])]
    run.until(2.1)
    assert [0] in [numbers for _, numbers in run.naks()]


def test_an_ncf_tells_of_loss_before_anything_else_does():
    run = started()
    run.nak(PgmType.NCF, 2)
    run.until(1)
    assert run.naks()[0] == (0.03, [0, 1])
    assert all(2 not in numbers for _, numbers in run.naks())
    run.until(2.1)
    assert any(2 in numbers for _, numbers in run.naks())


def test_a_repair_ends_the_asking():
    run = started()
    run.data(1)
    run.until(0.1)
    run.data(0, kind=PgmType.RDATA)
    run.until(60)
    assert run.apdus == [b"0", b"1"]
    assert len(run.naks()) == 1


def test_what_left_the_transmit_window_is_lost():
    run = started()
    for sequence in (1, 3, 4):
        run.data(sequence)
    run.data(8, trail=4)
    assert run.of(Lost) == [Lost(TSI, 0, 0), Lost(TSI, 2, 2)]
    assert run.apdus == [b"1", b"3", b"4"]
    run.spm(7, 8)
    assert run.of(Lost)[2:] == [Lost(TSI, 5, 6)]
    run.data(7)
    assert run.apdus[3:] == [b"7", b"8"]


def test_fragments():
    run = started()
    fragment(run, 0, 3, 8, b"def", sequence=1)
    fragment(run, 0, 6, 8, b"gh", sequence=2)
    assert run.apdus == []
    fragment(run, 0, 0, 8, b"abc")
    run.data(3)
    assert run.apdus == [b"abcdefgh", b"3"]
    assert run.of(Lost) == []


def test_a_lost_fragment_takes_its_apdu_along():
    run = started()
    fragment(run, 0, 0, 6, b"aa")
    fragment(run, 0, 4, 6, b"cc", sequence=2)
    fragment(run, 3, 0, 4, b"dd")
    fragment(run, 3, 2, 4, b"ee", sequence=4)
    run.until(20)
    assert run.of(Lost) == [Lost(TSI, 0, 1)]
    assert run.apdus == [b"ddee"]


def test_a_lost_first_fragment_takes_its_apdu_along():
    run = started()
    fragment(run, 0, 2, 4, b"bb", sequence=1)
    run.data(2)
    run.until(20)
    assert run.of(Lost) == [Lost(TSI, 0, 0)]
    assert run.apdus == [b"2"]


def test_joining_inside_an_apdu():
    run = Run()
    fragment(run, 0, 2, 4, b"bb", sequence=1)
    run.data(2)
    assert run.of(Joined) == [Joined(TSI, 1)]
    assert run.of(Lost) == []
    assert run.apdus == [b"2"]


@pytest.mark.requirement("SRMP-2.1.3.1-15")
@pytest.mark.parametrize(
    "fragments, lost",
    [
        ([(0, 0, 65_537, b"x"), (0, 1, 65_537, b"y")], [(0, 0)]),
        ([(0, 0, 2**32 - 1, b"x")], [(0, 0)]),
        ([(0, 0, 4, b"too much")], [(0, 0)]),
        ([(0, 0, 4, b"ab"), (0, 3, 4, b"c")], [(0, 1)]),
        ([(0, 0, 4, b"ab"), (0, 2, 5, b"c")], [(0, 1)]),
        ([(0, 0, 4, b"ab"), (1, 0, 2, b"c"), (1, 1, 2, b"d")], [(0, 0)]),
        ([(0, 0, 4, b"ab"), (5, 2, 4, b"cd")], [(0, 1)]),
        ([(9, 0, 4, b"ab")], [(0, 0)]),
    ],
)
def test_fragments_that_do_not_fit(fragments, lost):
    """One over 64 KB is refused before anything of it is kept; none of them stops what follows."""
    run = started()
    for sequence, (first, offset, length, data) in enumerate(fragments):
        fragment(run, first, offset, length, data, sequence=sequence)
    run.data(len(fragments), b"after")
    assert [(one.first, one.last) for one in run.of(Lost)] == lost
    assert run.apdus[-1] == b"after"
    assert run.apdus[:-1] in ([], [b"cd"])


@pytest.mark.requirement("SRMP-2.1.3-09")
def test_opt_syn_changes_nothing():
    effects = []
    for options in ((), (OptSyn(),)):
        run = Run()
        run.data(5, b"a", *options)
        run.data(6, b"b")
        effects.append(run.effects)
    assert effects[0] == effects[1]
    assert [type(effect) for _, effect in effects[0]] == [Joined, Deliver, Deliver]


def test_opt_join_lets_a_late_joiner_ask():
    run = Run()
    run.spm(3, 9, OptJoin(7))
    run.earn(before=7)
    assert run.of(Joined) == [Joined(TSI, 7)]
    run.until(0.1)
    assert run.naks() == [(0.03, [7, 8, 9])]


@pytest.mark.requirement("SRMP-2.1.3-10")
def test_opt_fin_ends_after_all_data():
    run = started()
    run.data(0)
    run.spm(0, 2, OptFin())
    run.data(2)
    assert run.of(Ended) == []
    run.data(1, kind=PgmType.RDATA)
    assert [effect for _, effect in run.effects][-3:] == [
        Deliver(TSI, b"1"),
        Deliver(TSI, b"2"),
        Ended(TSI, EndReason.FIN),
    ]
    run.spm(0, 2, OptFin())
    run.data(2, kind=PgmType.RDATA)
    assert len(run.of(Ended, Joined)) == 2


@pytest.mark.requirement("SRMP-2.1.3-10")
def test_opt_fin_waits_for_the_last_data():
    run = started()
    run.data(0)
    run.data(1)
    run.spm(0, 2, OptFin())
    assert run.of(Ended) == []
    run.data(2, kind=PgmType.RDATA)
    assert [effect for _, effect in run.effects][-2:] == [Deliver(TSI, b"2"), Ended(TSI, EndReason.FIN)]


def test_opt_fin_inside_an_apdu():
    run = started()
    fragment(run, 0, 0, 6, b"aa")
    run.spm(0, 0, OptFin())
    assert [type(effect) for _, effect in run.effects] == [Joined, Lost, Ended]


@pytest.mark.requirement("SRMP-2.1.3-11")
def test_opt_rst_ends_at_once():
    run = started()
    run.data(0)
    run.data(2)
    run.spm(0, 2, OptRst(U=0x45))
    assert run.of(Ended) == [Ended(TSI, EndReason.RST, 5)]
    run.until(100)
    assert run.naks() == []
    assert run.apdus == [b"0"]
    assert run.receiver.kept == 0


def test_a_source_that_is_silent_is_forgotten():
    run = started()
    run.data(0)
    run.data(1)
    run.until(SILENCE_MAX + 1)
    assert run.of(Ended) == [Ended(TSI, EndReason.SILENT)]
    assert run.receiver.next_time() == float("inf")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes(40),
        packet(PgmType.SPM, Spm(1, 9, 5, Nla(PATH))),  # trails behind its lead
        packet(PgmType.ODATA, Data(5, 6)),
        packet(PgmType.RDATA, Data(5, 5)),
        packet(PgmType.SPM, Spm(1, 0, 5, Nla(PATH)), checksum=1),
        packet(PgmType.ODATA, Data(5, 5), checksum=0),
        packet(PgmType.SPM, Spm(1, 0, 5, Nla(PATH)), OptFin()),
        packet(PgmType.SPM, Spm(1, 0, 5, Nla(PATH)), OptRst()),
        packet(PgmType.NCF, Nak(1, Nla(PATH), Nla(PATH))),
        packet(PgmType.NAK, Nak(1, Nla(PATH), Nla(PATH)), ports=(GROUP_PORT, PORT)),
    ],
)
def test_what_begins_no_session(data):
    run = Run()
    run.take(data)
    assert run.effects == []
    assert run.receiver.refused == 1
    assert run.receiver.next_time() == float("inf")


def test_an_overtaken_spm_is_passed_over():
    run = started()
    run.spms = 5
    run.spm(0, 0)
    run.spms = 4
    run.spm(0, 7)
    run.until(0.1)
    assert run.naks() == [(0.03, [0])]


def test_what_finds_no_room_is_asked_for_again():
    """A long gap in a fast stream: nothing is lost, though not everything can be kept."""
    run = started()
    for sequence in range(1, 5000):
        run.data(sequence, bytes(400))
    assert run.receiver.buffered <= 1 << 20
    for _ in range(40):
        asked = [number for _, numbers in run.naks() for number in numbers]
        run.effects = [one for one in run.effects if not isinstance(one[1], Multicast)]
        for sequence in asked:
            run.data(sequence, bytes(400), kind=PgmType.RDATA)
        run.until(run.now + 0.1)
    assert len(run.apdus) == 5000
    assert run.of(Lost) == []
