"""What forged packets can't do to a receiver of PGM: its memory, its NAKs and its honest sources."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from msmqwire.pgm import Data, Nla, OptFin, OptFragment, OptRst, PgmPacket, PgmType, Spm, build_pgm
from msmqwire.pgm.constants import NAK_MAX_RTE
from msmqwire.pgm.effects import Deliver, Ended, EndReason, Lost, Multicast, Unicast
from msmqwire.pgm.memory import Memory
from msmqwire.pgm.receive_window import Arrived, ReceiveWindow
from msmqwire.pgm.receiver import SOURCES_MAX, SOURCES_PER_ADDRESS_MAX, Receiver, ReceiverSettings
from tests.support.pgm.pgm_network import GROUP, GROUP_PORT, GSI, PORT, SOURCE, receiver

LEAD = 2**32 - 1


def spm(gsi=GSI, trail=0, lead=LEAD, *options, number=0, path=SOURCE):
    body = Spm(number, trail, lead, Nla(path))
    return build_pgm(PgmPacket(PgmType.SPM, PORT, GROUP_PORT, gsi, body, options))


def odata(sequence, data=b"x", *options, gsi=GSI):
    return build_pgm(PgmPacket(PgmType.ODATA, PORT, GROUP_PORT, gsi, Data(sequence, 0), options, data))


def gsi_of(number):
    return number.to_bytes(6, "big")


def address_of(number):
    return ip_address(0x0A010000 + number)


def apdus(effects):
    return [effect.apdu for effect in effects if isinstance(effect, Deliver)]


def test_one_address_takes_few_places():
    one = receiver()
    one.received(spm(), SOURCE, 0.0)
    for number in range(500):
        effects = one.received(odata(0, gsi=gsi_of(number)), address_of(1), 0.0)
        assert apdus(effects) == [b"x"], "each is heard, at the cost of another of this address"
    assert one.sources == 1 + SOURCES_PER_ADDRESS_MAX
    assert apdus(one.received(odata(0, b"honest"), SOURCE, 1.0)) == [b"honest"]


def test_a_new_source_beside_any_number_of_forged_ones():
    """Forged ones say that they are there and deliver nothing; whoever has delivered stays."""
    one = receiver()
    assert apdus(one.received(odata(0, b"early"), SOURCE, 0.0)) == [b"early"]
    for number in range(1000):
        one.received(spm(gsi_of(number)), address_of(number), 1.0)
        assert one.sources <= SOURCES_MAX
    newcomer = ip_address("10.0.0.7")
    one.received(spm(b"newest"), newcomer, 2.0)
    for sequence, part in ((0, b"ab"), (1, b"cd")):
        effects = one.received(
            odata(sequence, part, OptFragment(0, 2 * sequence, 4), gsi=b"newest"), newcomer, 2.0
        )
    assert apdus(effects) == [b"abcd"]
    assert apdus(one.received(odata(1, b"late"), SOURCE, 2.0)) == [b"late"]


def test_delivering_sources_give_way_last_and_oldest_go_first():
    """The oldest is the one that was silent for longest."""
    one = receiver()
    for number in range(SOURCES_MAX):
        one.received(odata(0, gsi=gsi_of(number)), address_of(number), number / 100)
    effects = one.received(odata(0, b"new"), SOURCE, 10.0)
    ended = [effect for effect in effects if isinstance(effect, Ended)]
    assert [(effect.tsi.gsi, effect.reason) for effect in ended] == [(gsi_of(0), EndReason.REPLACED)]
    assert apdus(effects) == [b"new"]
    assert one.sources == SOURCES_MAX


def test_one_that_has_ended_gives_way_first():
    one = receiver()
    for number in range(SOURCES_MAX):
        one.received(odata(0, gsi=gsi_of(number)), address_of(number), 0.0)
    one.received(odata(1, b"end", OptFin(), gsi=gsi_of(9)), address_of(9), 1.0)
    effects = one.received(odata(0, b"new"), SOURCE, 10.0)
    assert [type(effect).__name__ for effect in effects] == ["Joined", "Deliver"]


@pytest.mark.parametrize(
    "data",
    [spm(GSI, 0, 5, OptRst(), number=9), spm(GSI, 0, 1, OptFin(), number=9), odata(1, b"false"),
     spm(GSI, 900, 1000, number=9)],
    ids=["OPT_RST", "OPT_FIN", "ODATA", "window"],
)  # fmt: skip
def test_nobody_else_speaks_for_a_source(data):
    one = receiver()
    one.received(spm(), SOURCE, 0.0)
    one.received(odata(0, b"0"), SOURCE, 0.0)
    assert one.received(data, address_of(1), 1.0) == []
    assert one.refused == 1
    assert apdus(one.received(odata(1, b"1"), SOURCE, 1.0)) == [b"1"]


def test_memory_of_all_sources_together():
    """All forged sources keep as much as they can; an honest one that loses a packet gets all the same."""
    memory = Memory(1_000_000)
    one = Receiver(ReceiverSettings(group=GROUP, group_port=GROUP_PORT), lambda: 0.5, memory)
    for number in range(20):
        one.received(spm(gsi_of(number)), address_of(number), 0.0)
        for sequence in range(1, 90):
            one.received(odata(sequence, bytes(1400), gsi=gsi_of(number)), address_of(number), 0.0)
            assert memory.used <= 1_000_000
    assert memory.used > 800_000
    one.received(spm(), SOURCE, 0.0)
    for sequence in range(1, 6):
        one.received(odata(sequence, b"%d" % sequence), SOURCE, 0.0)
    assert apdus(one.received(odata(0, b"0"), SOURCE, 0.1)) == [b"0", b"1", b"2", b"3", b"4", b"5"]
    one.close()
    assert memory.used == 0


def test_who_gives_way_asks_again():
    """What a window has to drop is asked for and arrives in order: nothing is lost."""
    memory = Memory(100_000)
    one = Receiver(ReceiverSettings(group=GROUP, group_port=GROUP_PORT), lambda: 0.5, memory)
    one.received(spm(), SOURCE, 0.0)
    for sequence in range(1, 60):
        one.received(odata(sequence, bytes(1400)), SOURCE, 0.0)
    other = address_of(1)
    one.received(spm(gsi_of(1)), other, 0.0)
    for sequence in range(1, 20):
        one.received(odata(sequence, bytes(1400), gsi=gsi_of(1)), other, 0.0)
    got, lost, now = 0, 0, 0.0
    for _ in range(100):
        now += 0.05
        effects = one.tick(now)
        for sequence in range(60):
            effects += one.received(odata(sequence, bytes(1400)), SOURCE, now)
        got += len(apdus(effects))
        lost += sum(isinstance(effect, Lost) for effect in effects)
    assert (got, lost) == (60, 0)
    assert one.kept < 60


@pytest.mark.parametrize("path", ["255.255.255.255", "0.0.0.0", "224.0.0.1", "127.0.0.1", "240.0.0.1"])
def test_naks_go_to_no_address_that_is_not_one_computer(path):
    one = receiver()
    one.received(spm(path=ip_address(path)), SOURCE, 0.0)
    one.received(odata(1, bytes(1000)), SOURCE, 0.0)
    one.received(spm(number=1), ip_address(path), 0.0)
    sent = [effect.address for effect in one.tick(1.0) if isinstance(effect, Unicast)]
    assert sent == [SOURCE]


def test_naks_of_all_sources_keep_to_a_rate():
    """Many addresses send enough to be asked, and claim that much is missing: NAKs stay within a rate."""
    one, now, size = receiver(), 0.0, 0
    for number in range(300):
        now += 0.001
        gsi, sender = gsi_of(number), address_of(number)
        effects = one.received(spm(gsi, 0, 255 * 2, path=address_of(70_000)), sender, now)
        effects += one.received(odata(1000, bytes(9000), gsi=gsi), sender, now)
        effects += one.tick(now)
        size += sum(len(effect.data) for effect in effects if isinstance(effect, Multicast | Unicast))
    assert 50_000 < size <= (now + 1.0) * NAK_MAX_RTE


def test_a_released_window_does_not_request_lost_packets_again():
    window, now = ReceiveWindow(0, lambda: 0.5, Memory()), 0.0
    window.store(Arrived(2, None, b"kept"))
    window.heard(0, 5)
    window.look_for_gaps(now)
    while window.next_time() < 60.0:
        now = window.next_time()
        window.due(now)
    window.release()
    window.look_for_gaps(now)
    assert window.due(now + 1.0) == [2]
