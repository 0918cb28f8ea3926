"""Those who ask a source for repairs take turns: a flood of NAKs keeps nobody else from a repair."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from msmqwire.pgm import PgmType
from msmqwire.pgm.constants import TXW_MAX_RTE
from msmqwire.pgm.repairs import ASKED_MAX, ASKERS_MAX, Repairs
from tests.unit.pgm.test_pgm_source import Run, confirmed, nak

HONEST, ATTACKER = ip_address("10.0.0.7"), ip_address("10.0.0.9")


def asks(run, asker, *sequences):
    run.take(run.source.received(nak(*sequences), run.now, asker))


def repairs(run, since):
    return [(at, packet.body.DataPacketSequenceNumber) for at, packet in run.of(PgmType.RDATA, since=since)]


@pytest.mark.requirement("SRMP-2.1.3-04")
def test_one_packet_is_repaired_beside_a_whole_window():
    """An attacker asks for 900 packets, 13 s at the rate of the source; a receiver asks for one of them."""
    run = Run(rate=TXW_MAX_RTE)
    run.send(*[bytes(1000)] * 900)
    run.until(15.0)
    for first in range(0, 900, 60):
        asks(run, ATTACKER, *range(first, first + 60))
    run.until(15.1)
    asks(run, HONEST, 890)
    run.until(15.1 + 0.06 + 4 * 1100 / TXW_MAX_RTE)
    assert 890 in [sequence for _, sequence in repairs(run, 15.1)]
    run.until(40.0)
    assert sorted(sequence for _, sequence in repairs(run, 15.0)) == list(range(900)), "each once"
    assert confirmed(run, since=15.0) == set(range(900))


def test_a_receiver_that_asks_again_is_repaired_again():
    """Its first repair came in the turn of another, and was lost."""
    run = Run()
    run.send(*[bytes(10)] * 10)
    asks(run, ATTACKER, 5)
    asks(run, HONEST, 5)
    run.until(1.0)
    asks(run, HONEST, 5)
    run.until(2.0)
    assert [sequence for _, sequence in repairs(run, 0.0)] == [5, 5]


def test_askers_and_what_they_ask_for_are_bounded():
    one = Repairs()
    for asker in range(10 * ASKERS_MAX):
        assert one.ask(asker, 0.0, asker)
    assert len(one._askers) == ASKERS_MAX + 1
    assert [one.ask(sequence, 0.0, 0) for sequence in range(10_000, 20_000)].count(True) == ASKED_MAX - 1
    count = 0
    while (repair := one.next(1.0)) is not None:
        one.repaired(repair[1])
        count += 1
    assert count == 10 * ASKERS_MAX + ASKED_MAX - 1
    assert one._askers == {}


def test_turns_are_taken_by_address():
    one = Repairs()
    for sequence in range(10):
        one.ask(sequence, 0.0, "many")
    one.ask(100, 0.5, "few")
    order = []
    while (repair := one.next(1.0)) is not None:
        order.append(repair[1])
        one.repaired(repair[1])
    assert order == [0, 100, *range(1, 10)]
    one.ask(7, 5.0, "many")
    assert one.next(1.0) == (5.0, 7)
    one.forget(7)
    assert one.next(9.0) is None
