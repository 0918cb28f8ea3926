"""Peers that are gone for some seconds after a case, and peers that hang: what is reported, and how soon."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fuzz.peer import campaign
from fuzz.peer.running import Report, choose, fuzz_peer
from fuzz.peer.target import RunOptions
from tests.support.own_addresses import own_loopback
from tests.support.patience import limit
from tests.support.peers.fuzzed_peer import QUEUE, TRANSACTIONAL, fuzzed_peer
from tests.support.peers.troubled_relay import HOW, TroubledRelay, troubled_relay

DEADLY = b"GET / HTTP/1.1"
"""One case alone sends it."""
GRACE_S = 2.0


class Lines:
    """Keeps what people are told, and when."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.last = time.monotonic()
        self.longest = 0.0

    def _heard(self) -> None:
        now = time.monotonic()
        self.longest, self.last = max(self.longest, now - self.last), now

    def line(self, text: str) -> None:
        self.lines.append(text)
        self._heard()

    def tick(self, seconds: float, packets: int, failures: int) -> None:
        self._heard()


def fuzzed(relay: TroubledRelay, out: Path, seconds: float, bound: float) -> tuple[Report, Lines]:
    queues = {"queue": QUEUE, "transactional_queue": TRANSACTIONAL}
    target, _ = choose(f"{relay.address}:{relay.port}", ["binary"], bound=bound, **queues)
    lines = Lines()
    return fuzz_peer(target, RunOptions(("binary",), seconds, 1, out), lines), lines


def test_a_peer_gone_for_seconds_is_one_report(tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "SHRINK_S", 8.0)
    address = own_loopback(35)
    with fuzzed_peer(address) as peer, troubled_relay(address, peer.port, deadly=DEADLY, gone_s=3.0) as relay:
        report, lines = fuzzed(relay, tmp_path, 15.0, 2.0)
    assert relay.outages >= 3, "once in the run, and twice to see it again"
    assert [kept.requirements for kept in report.failures] == [("MQQB-3.1.5.1.2-02",)]
    [kept] = report.failures
    assert "down after a request of another protocol" in kept.text
    assert kept.replayed
    assert (kept.packets, kept.cases) == (1, 1)
    assert any("the peer does not serve: waiting up to" in line for line in lines.lines)
    assert any("the peer serves again, after" in line for line in lines.lines)


@pytest.mark.parametrize("served", [0, 12])
@pytest.mark.parametrize("hangs", HOW)
def test_a_run_ends_in_time_whatever_hangs(tmp_path, monkeypatch, hangs, served):
    monkeypatch.setattr(campaign, "GRACE_S", GRACE_S)
    address, how = own_loopback(36), {"hangs": hangs, "served": served}
    began = time.monotonic()
    with fuzzed_peer(address) as peer, troubled_relay(address, peer.port, **how) as relay:
        report, lines = fuzzed(relay, tmp_path, 5.0, 0.5)
    assert time.monotonic() - began < limit(5.0 + GRACE_S + 1.0)
    [kept] = report.failures
    assert not kept.replayed
    assert lines.lines


def test_no_wait_goes_on_after_the_end_of_a_run(tmp_path, monkeypatch):
    """The bound is much longer than what is left of the time."""
    monkeypatch.setattr(campaign, "GRACE_S", GRACE_S)
    address = own_loopback(37)
    with fuzzed_peer(address) as peer, troubled_relay(address, peer.port, hangs="silent", served=4) as relay:
        began = time.monotonic()
        fuzzed(relay, tmp_path, 2.0, 60.0)
        assert time.monotonic() - began < limit(2.0 + GRACE_S + 1.0)
