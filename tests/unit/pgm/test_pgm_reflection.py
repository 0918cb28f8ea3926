"""NAKs go to addresses that were heard, and take no more bytes than came from there: no reflection."""

from __future__ import annotations

import random
from collections import Counter
from ipaddress import ip_address

import pytest

from msmqwire.pgm import Data, Nak, Nla, OptNakList, PgmPacket, PgmType, Spm, build_pgm, parse_pgm
from msmqwire.pgm.constants import NAK_MAX_RTE
from msmqwire.pgm.effects import Deliver, Lost, Multicast, Unicast
from msmqwire.pgm.receiver import NAK_SHARE
from tests.support.pgm.pgm_network import GROUP, GROUP_PORT, GSI, PORT, SOURCE, receiver

ROUTER, VICTIM = ip_address("10.0.0.254"), ip_address("198.51.100.7")
HEADERS = 28


def packet(kind, body, *options, data=b"", gsi=GSI):
    ports = (GROUP_PORT, PORT) if kind == PgmType.NAK else (PORT, GROUP_PORT)
    return build_pgm(PgmPacket(kind, *ports, gsi, body, options, data))


def spm(number, lead, path=SOURCE, gsi=GSI):
    return packet(PgmType.SPM, Spm(number, 0, lead % 2**32, Nla(path)), gsi=gsi)


def odata(sequence, size=1, kind=PgmType.ODATA, gsi=GSI):
    return packet(kind, Data(sequence, 0), data=bytes(size), gsi=gsi)


def asked(nak):
    lists = [option.SequenceNumbers for option in nak.options if isinstance(option, OptNakList)]
    return [nak.body.RequestedSequenceNumber, *(lists[0] if lists else ())]


class Ledger:
    """A receiver, the octets that have come from each address, and those that it has sent there."""

    def __init__(self, ways=1):
        self.receiver, self.ways, self.now = receiver(), ways, 0.0
        self.came, self.went = Counter(), Counter()
        self.effects = []

    def take(self, data, sender=SOURCE):
        self.came[sender] += len(data) + HEADERS
        self.note(self.receiver.received(data, sender, self.now, self.ways))

    def until(self, time):
        while (due := self.receiver.next_time()) <= time:
            self.now = max(self.now, due)
            self.note(self.receiver.tick(self.now))
        self.now = time

    def note(self, effects):
        self.effects += effects
        for effect in effects:
            if isinstance(effect, Unicast):
                self.went[effect.address] += (1 + self.ways) * (len(effect.data) + HEADERS)
                assert self.went[effect.address] <= self.came[effect.address]

    def naks(self):
        """Where each NAK has gone, and for how many packets."""
        sent = [effect for effect in self.effects if isinstance(effect, Unicast)]
        return [(effect.address, asked(parse_pgm(effect.data))) for effect in sent]

    def count(self, kind):
        return sum(isinstance(effect, kind) for effect in self.effects)


@pytest.mark.parametrize("ways", [1, 2])
def test_an_address_that_a_packet_names_gets_nothing(ways):
    """Two SPMs that name a victim and claim that much is missing."""
    run = Ledger(ways)
    run.take(spm(0, -1, VICTIM))
    run.take(spm(1, 5000, VICTIM))
    run.until(110.0)
    assert {address for address, _ in run.naks()} <= {SOURCE}
    assert run.count(Unicast) == run.count(Multicast) == (1 if ways == 1 else 0)


def test_no_packets_make_more_go_to_an_address_than_came():
    """Any packets of three senders, which name each other and a victim: `Ledger.note` compares."""
    chance, run = random.Random(4), Ledger()
    senders = [SOURCE, ROUTER, ip_address("10.0.0.9")]
    for number in range(1000):
        gsi, sequence = bytes([chance.randrange(3)]) * 6, chance.randrange(0, 900)
        named = Nla(chance.choice([*senders, VICTIM]))
        nak = Nak(sequence, named, Nla(GROUP))
        data = chance.choice(
            [
                spm(number, sequence, named.Address, gsi),
                odata(sequence, chance.randrange(300), gsi=gsi),
                packet(PgmType.NCF, nak, gsi=gsi),
                packet(PgmType.NAK, nak, gsi=gsi),
            ]
        )
        run.take(data, chance.choice(senders))
        run.until(run.now + chance.random() * 0.1)
    assert VICTIM not in run.went
    assert min(run.went[sender] for sender in senders) > 300


def test_a_router_is_asked_once_it_is_heard():
    """An SPM names it; its NCF, to a NAK that it overheard, shows that it is there."""
    run = Ledger()
    run.take(odata(0, 1000))
    run.take(spm(0, 0, ROUTER))
    run.take(odata(2, 1000))
    run.until(0.1)
    assert run.naks() == [(SOURCE, [1])]
    run.take(packet(PgmType.NCF, Nak(1, Nla(SOURCE), Nla(GROUP))), ROUTER)
    run.take(spm(9, 2, ROUTER), ROUTER)
    run.until(2.5)
    assert run.naks()[1:] == [(ROUTER, [1])], "the data were awaited for 2 s after its NCF"
    run.take(odata(1, 1000, PgmType.RDATA))
    assert run.count(Deliver) == 3


def test_a_router_that_fell_silent_is_not_asked_forever():
    """What it has sent is used up; then the source is asked."""
    run = Ledger()
    run.take(odata(0, 3000))
    run.take(spm(0, 0, ROUTER))
    run.take(packet(PgmType.NCF, Nak(0, Nla(SOURCE), Nla(GROUP))), ROUTER)
    run.take(spm(5, 0, ROUTER), ROUTER)
    run.take(odata(2, 1000))
    run.until(3.0)
    assert [address for address, _ in run.naks()] == [ROUTER, SOURCE, SOURCE, SOURCE]


def test_others_do_not_pose_as_the_router():
    """An NCF from elsewhere keeps nobody from asking, and earns nothing."""
    run = Ledger()
    run.take(odata(0, 1000))
    run.take(spm(0, 0, ROUTER))
    run.take(odata(2, 1000))
    run.take(packet(PgmType.NCF, Nak(1, Nla(SOURCE), Nla(GROUP))), VICTIM)
    run.until(0.1)
    assert run.naks() == [(SOURCE, [1])]
    assert VICTIM not in run.went


def test_what_was_heard_first_pays_for_the_first_repair():
    """A source that has sent SPMs alone, its first data lost: one packet is asked for, then the rest."""
    run = Ledger()
    run.take(spm(0, -1))
    run.take(spm(1, 9))
    run.until(0.1)
    assert run.naks() == [(SOURCE, [0])]
    run.take(odata(0, 1000, PgmType.RDATA))
    run.until(1.0)
    assert run.naks()[1:] == [(SOURCE, list(range(1, 10)))]
    for sequence in range(1, 10):
        run.take(odata(sequence, 1000, PgmType.RDATA))
    assert (run.count(Deliver), run.count(Lost)) == (10, 0)


def test_what_may_not_be_asked_for_waits_and_is_not_lost():
    """A quiet source: its heartbeats pay for a NAK after half a minute, later than patience ends."""
    run = Ledger(ways=2)
    run.take(spm(0, -1))
    run.take(spm(1, 0))
    run.until(30.0)
    assert run.naks() == []
    run.take(spm(2, 0))
    run.until(31.0)
    assert run.naks() == [(SOURCE, [0])]
    assert run.count(Lost) == 0


def test_forged_naks_of_others_do_not_keep_us_from_asking():
    """They are multicast to receivers alone, just before each NAK of ours is due."""
    run = Ledger()
    run.take(odata(0, 20_000))
    run.take(spm(0, 1))
    while run.now < 8.0:
        run.take(packet(PgmType.NAK, Nak(1, Nla(SOURCE), Nla(GROUP))), VICTIM)
        run.until(run.now + 0.01)
    assert run.count(Unicast) >= 5
    run.take(odata(1, 1000, PgmType.RDATA))
    assert (run.count(Deliver), run.count(Lost)) == (2, 0)


def test_one_address_does_not_use_up_the_rate_of_naks():
    """Sources of one address that pay for many NAKs, and an honest one beside them."""
    run = Ledger()
    attacker = ip_address("10.0.0.9")
    run.take(odata(0, 1000))
    run.take(spm(0, 0))
    for number in range(8):
        run.take(spm(0, -1, gsi=bytes([number]) * 6), attacker)
    for second in range(1, 5):
        for number in range(8):
            for part in range(20):
                sequence = 10_000 * second + 200 * part
                run.take(odata(sequence % 2**32, 9000, gsi=bytes([number]) * 6), attacker)
        run.until(float(second))
    assert 0.5 * 4.0 * NAK_SHARE * NAK_MAX_RTE < run.went[attacker] <= 5.0 * NAK_SHARE * NAK_MAX_RTE
    run.take(odata(2, 1000))
    run.until(run.now + 0.06)
    assert run.naks()[-1] == (SOURCE, [1])
