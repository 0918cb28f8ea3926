"""Runs against a peer: what is found is found again, made short, kept, and told once."""

from __future__ import annotations

import json
import time

import pytest

from fuzz.peer import campaign, memory, upkeep, watcher
from fuzz.peer.campaign import Campaign, coverage
from fuzz.peer.evidence import Seed
from fuzz.peer.failure import PeerFailure
from fuzz.peer.target import Ports, RunOptions, Target
from fuzz.peer.watcher import Silent
from msmqwire import dissect
from msmqwire.errors import Unreachable
from tests.support.patience import limit
from tests.support.peers.fake_peer import FakePeer, protocol

TARGET = Target("127.0.0.1", Ports(2))


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(upkeep, "BACK_S", 0.01)
    monkeypatch.setattr(upkeep, "_PAUSE_S", 0.0)
    monkeypatch.setattr(campaign, "SHRINK_S", 2.0)
    monkeypatch.setattr(campaign, "LATE_S", 0.5)
    monkeypatch.setattr(campaign, "_PAUSE_S", 0.0)


@pytest.fixture
def run(tmp_path, monkeypatch):
    def run(peer, *, sent=(), walked=(), packets=400, **options):
        monkeypatch.setattr(campaign, "PACKETS_MAX", packets)  # ends by what was done, on any machine
        given = RunOptions(("binary",), 60.0, 7, tmp_path / "out", **options)
        result = Campaign(TARGET, given, {"binary": protocol(peer, sent, walked)}, Silent())
        result.run()
        return result

    return run


def wrong_on(data):
    """A peer that answers some data wrongly."""

    def rule(peer):
        return PeerFailure((f"ID-{data.decode()}",), "wrong", "answer") if peer.heard[-1] == data else None

    return rule


def dies_on(data, before=()):
    """A peer that ends when it gets some data, after it got other data in earlier sessions."""

    def rule(peer):
        peer.down = peer.heard[-1] == data and set(before) <= set(peer.heard)

    return rule


def test_nothing_is_found_in_a_peer_that_does_nothing_wrong(run):
    result = run(FakePeer(), sent=(b"a", b"b"))
    assert not result.failures
    counts = coverage(result.stage)
    assert set(counts["requirements"]) == {"ID-a", "ID-b"}
    assert set(counts["kinds"]) == {"a", "b", "walked"}
    assert result.stage.packets == sum(counts["kinds"].values())


def test_a_wrong_answer_is_reported_once_and_kept(run, tmp_path):
    result = run(FakePeer(wrong_on(b"c")), sent=(b"a", b"b", b"c", b"d"))
    assert [(kept.requirements, kept.text, kept.packets) for kept in result.failures] == [
        (("ID-c",), "wrong", 1)
    ]
    kept = result.failures[0]
    assert kept.replayed
    seed = Seed.read(tmp_path / "out" / kept.seed)
    assert [step.data for case in seed.cases for step in case.steps] == [b"c"]
    assert seed.failure.key == ("answer", ("ID-c",))
    assert (tmp_path / "out" / kept.pcap).stat().st_size > 24
    list(dissect(tmp_path / "out" / kept.pcap))
    compile((tmp_path / "out" / kept.test).read_text(), kept.test, "exec")


def test_a_wrong_answer_in_a_walk_is_made_short(run):
    result = run(FakePeer(wrong_on(b"bad")), walked=(b"good", b"fine", b"bad"), failures_max=1)
    assert [kept.packets for kept in result.failures] == [1]


def test_a_failure_is_reproduced_with_its_earlier_sessions(run):
    def rule(peer):
        return (
            PeerFailure(("ID-z",), "late", "answer")
            if peer.heard[-1] == b"z" and b"k" in peer.heard
            else None
        )

    peer = FakePeer(rule)
    original = rule

    def forgetful(peer):
        """After its first failure it begins anew, so that the earlier session is needed again."""
        failure = original(peer)
        if failure is not None:
            peer.start()
        return failure

    peer.rule = forgetful
    result = run(peer, sent=(b"k", b"z"), failures_max=1)
    assert [kept.packets for kept in result.failures] == [2]


def test_a_dead_peer_is_restarted_and_the_right_case_blamed(run, monkeypatch):
    peer = FakePeer(dies_on(b"deadly"))
    monkeypatch.setattr(upkeep.subprocess, "Popen", lambda *_, **__: peer.start())
    result = run(peer, sent=(b"a", b"b", b"deadly", b"d"), restart="start it")
    assert [(kept.requirements, kept.packets) for kept in result.failures] == [(("ID-deadly",), 1)]
    assert "down after deadly" in result.failures[0].text
    assert peer.starts >= 2


def test_without_restart_a_peer_that_stays_down_ends_the_run(run):
    result = run(FakePeer(dies_on(b"deadly")), sent=(b"deadly",))
    assert result.lost
    assert [(kept.requirements, kept.replayed) for kept in result.failures] == [(("ID-deadly",), False)]


def test_what_is_not_seen_again_is_not_a_failure(run):
    failures = iter([PeerFailure(("ID-a",), "once", "answer")])
    result = run(FakePeer(lambda peer: next(failures, None)), sent=(b"a",))
    assert result.failures == []


def test_a_failure_of_several_cases_is_counted(run):
    def rule(peer):
        wrong = peer.heard[-1] in (b"bad 1", b"bad 2")
        return PeerFailure(("ID-bad",), f"wrong {peer.heard[-1].decode()}", "answer") if wrong else None

    result = run(FakePeer(rule), sent=(b"bad 1", b"bad 2"), packets=20)
    assert [(kept.requirements, kept.text) for kept in result.failures] == [(("ID-bad",), "wrong bad 1")]
    assert result.failures[0].cases >= 2


def late_end(peer):
    """Count the sessions until the end of a peer, and those that miss it until its next start."""
    if peer.left > 0:
        peer.left, peer.missed = peer.left - 1, 0
        peer.down = peer.left == 0
    elif peer.down:
        peer.missed += 1
        peer.down = peer.missed < 4


@pytest.mark.parametrize("late", [0.5, 0.0], ids=["in time", "the machine is busy"])
def test_a_peer_that_goes_down_later_has_the_earlier_case_blamed(run, monkeypatch, late):
    """It ends in the second session after the case, and is back after it was missed some times."""
    monkeypatch.setattr(campaign, "LATE_S", late)

    def rule(peer):
        peer.left = 2 if peer.heard[-1] == b"deadly" else peer.left

    peer = FakePeer(rule, connected=late_end)
    result = run(peer, sent=(b"deadly", b"a", b"b", b"c", b"d", b"e", b"f"), packets=60)
    assert {kept.requirements for kept in result.failures} == {("ID-deadly",)}


def test_an_outage_that_no_case_brings_about_blames_none(run):
    """It is gone once, and what was sent before does not end it again."""
    ends = iter([True])

    def rule(peer):
        peer.down = peer.heard[-1] == b"c" and next(ends, False)

    peer = FakePeer(rule, connected=late_end)
    result = run(peer, sent=(b"a", b"b", b"c", b"d"))
    assert [(kept.requirements, kept.replayed) for kept in result.failures] == [((), False)]
    assert "after one of 4 cases, but is up after each of them alone" in result.failures[0].text


def test_a_wait_is_reported_once_it_takes_long(monkeypatch):
    lines = []

    class Lines(Silent):
        def line(self, text):
            lines.append(text)

    monkeypatch.setattr(watcher, "PATIENCE_S", 0.05)
    with watcher.noticing(Lines(), "a short wait") as short:
        pass
    with watcher.noticing(Lines(), "a long wait") as long:
        late = time.monotonic() + limit(5)
        while not lines and time.monotonic() < late:
            time.sleep(0.01)  # the watcher has a thread of its own
    assert lines == ["a long wait"]
    assert (short.noticed, long.noticed) == (False, True)


def test_a_peer_that_is_not_there_is_no_failure(run):
    peer = FakePeer()
    peer.down = True
    with pytest.raises(Unreachable):
        run(peer)


def test_growing_memory_is_blamed_on_the_case_that_makes_it_grow(run, monkeypatch):
    peer = FakePeer()
    monkeypatch.setattr(
        memory,
        "resident_bytes",
        lambda pid: (100 << 20) + sum(data == b"leak" for data in peer.heard) * (4 << 20),
    )
    result = run(peer, sent=(b"a", b"leak", b"c"), pid=1, packets=1_000_000, failures_max=1)
    assert [(kept.requirements, "4,194,304" in kept.text) for kept in result.failures] == [
        (("ID-leak",), True)
    ]


def test_memory_that_holds_what_was_sent_is_no_failure(run, monkeypatch):
    peer = FakePeer()
    monkeypatch.setattr(memory, "resident_bytes", lambda pid: (100 << 20) + sum(map(len, peer.heard)))
    assert run(peer, sent=(b"a", b"b"), pid=1).failures == []


def test_the_same_seed_sends_the_same(tmp_path):
    def heard():
        peer = FakePeer()
        given = RunOptions(("binary",), 30.0, 7, tmp_path)
        result = Campaign(TARGET, given, {"binary": protocol(peer, walked=(b"a", b"b", b"c"))}, Silent())
        result._walks("binary", 0)
        return peer.heard

    assert heard() == heard() != []


def test_the_seed_file_is_json_for_other_programs(run, tmp_path):
    kept = run(FakePeer(wrong_on(b"c")), sent=(b"c",)).failures[0]
    document = json.loads((tmp_path / "out" / kept.seed).read_text())
    assert document["requirements"] == ["ID-c"]
    assert document["cases"][0]["steps"][-1]["data"] == b"c".hex()
