"""The cases of the binary protocol before peers that are right, and before peers with one mistake each."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from fuzz.peer.performing import Stage
from fuzz.peer.registry import FUZZED
from fuzz.peer.steps import Case
from fuzz.peer.target import Ports, Target
from fuzz.peer.walks import walk
from tests.support.peers.fuzzed_peer import QUEUE, TRANSACTIONAL, FuzzedPeer, fuzzed_peer
from tests.support.running import LEDGER, ORDERS, options, served

ADDRESS = "127.0.0.93"
SERVER = "127.0.0.94"
BINARY = FUZZED["binary"]


def stage(address: str, port: int, bound: float) -> Stage:
    target = Target(address, Ports(port), queue=QUEUE, transactional_queue=TRANSACTIONAL, bound=bound)
    return Stage(target, {"binary": BINARY}, 1)


@cache
def cases(address: str = ADDRESS) -> list[Case]:
    """The cases for the queues of an address; the peer of these tests does not look at that."""
    target = Target(address, Ports(1801), queue=QUEUE, transactional_queue=TRANSACTIONAL)
    return list(BINARY.checks(target, random.Random(1)))


def ids(case: Case) -> set[str]:
    return {*case.requirements, *(name for step in case.steps for name in step.breaks)}


MISTAKES = {
    # -- what comes over a connection
    "loses the second packet of a segment": "MQMQ-2.2.19.1-19",
    "forgets what is left of a segment": "MQMQ-2.2.19.1-19",
    "goes on after a wrong size": "MQMQ-2.2.19.1-19",
    "does not look at the signature": "MQQB-3.1.5.1.2-02",
    "ignores a malformed packet": "MQMQ-2.2.19.3-41",
    "takes queue types that are not there": "MQMQ-2.2.19.2-22",
    "serves one connection at a time": "MQQB-3.1.5.3.1-03",
    # -- the handshake
    "takes messages before the handshake": "MQQB-3.1.5.8-01",
    "takes EstablishConnection in any state": "MQQB-3.1.5.3-01",
    "takes ConnectionParameters in any state": "MQQB-3.1.5.4-01",
    "accepts a foreign ServerGuid": "MQQB-3.1.5.3.1-09",
    "echoes the wrong ClientGuid": "MQQB-3.1.5.3.1-04",
    "answers its own TimeStamp": "MQQB-3.1.5.3.1-06",
    "forgets SE": "MQQB-3.1.5.3.1-07",
    "pads with zeroes": "MQQB-2.2.3.1-18",
    "answers its own AckTimeout": "MQQB-3.1.5.4.1-02",
    "answers the WindowSize of the request": "MQQB-2.2.2.1-06",
    # -- counts
    "takes a WindowSize of 0": "MQMQ-2.2.20.4-14",
    "sends a WindowSize of 0": "MQMQ-2.2.20.4-14",
    "does not look at counts": "MQQB-3.1.5.5.5-01",
    "loses messages with wrong counts": "MQMQ-2.2.20.4-11",
    "forgets messages beyond the flags": "MQQB-3.1.5.8.7-01",
    "sends no SessionAck": "MQQB-3.1.6.4-01",
    "acknowledges one too many": "MQQB-3.1.6.4-03",
    "acknowledges one too few": "MQQB-3.1.6.4-01",
    "acknowledges express messages as stored": "MQQB-3.1.6.4-06",
    "counts what it never sent": "MQQB-3.1.6.4-04",
    "counts flags from bit 1": "MQMQ-2.2.20.4-09",
    "does not keep its window": "MQQB-3.1.7.1-03",
    # -- delivery
    "sends no arrival acknowledgements": "MQQB-3.1.5.8.10-01",
    "sends arrival acknowledgements twice": "MQQB-3.1.5.8.10-01",
    "acknowledges arrival unasked": "MQMQ-2.2.19.3-02",
    "puts its own GUID into CorrelationID": "MQQB-3.1.7.15-11",
    "writes MessageID in the other byte order": "MQQB-3.1.7.15-11",
    "sends no negative acknowledgements": "MQQB-3.1.5.8.2-13",
    "tells refusals as deleted": "MQQB-3.1.5.8.2-09",
    "takes messages for any queue": "MQQB-3.1.5.8.2-09",
    "takes any message in any queue": "MQQB-3.1.5.8.2-13",
    "takes expired messages": "MQQB-3.1.5.8-04",
    "delivers duplicates": "MQQB-3.1.5.8.1-02",
    "knows duplicates by MessageID alone": "MQMQ-2.2.18.1.3-03",
    # -- transactions
    "accepts gaps": "MQQB-3.1.5.8.6-05",
    "accepts repeated numbers": "MQQB-3.1.5.8.6-05",
    "accepts a sequence in its middle": "MQQB-3.1.5.8.6-05",
    "compares sequences by Ordinal": "MQMQ-2.2.18.1.2-03",
    "acknowledges what it has refused": "MQQB-3.1.5.8.6-05",
    "sends no OrderAck": "MQQB-3.1.5.8.6-02",
    "sends no OrderAck a second time": "MQQB-3.1.5.8.6-02",
    "sends its own TxSequenceID": "MQQB-2.2.4.1-02",
    "tells the wrong previous number": "MQQB-2.2.4.1-04",
    "sends no FinalAck": "MQQB-3.1.5.8.2-12",
    "tells another class in FinalAcks": "MQQB-3.1.5.8.2-12",
    "puts its own GUID into FinalAcks": "MQQB-2.2.5.1-05",
}
# Where the requirement that is broken is not the one that the cases to be done are about.
ABOUT = {
    "serves one connection at a time": "MQQB-3.1.5.10-01",
    "pads with zeroes": "MQQB-3.1.5.3.1-04",
    "sends a WindowSize of 0": "MQQB-3.1.6.4-01",
    "acknowledges one too many": "MQQB-3.1.6.4-01",
    "acknowledges express messages as stored": "MQQB-3.1.6.4-01",
    "counts what it never sent": "MQQB-3.1.6.4-01",
    "counts flags from bit 1": "MQQB-3.1.6.4-01",
    "acknowledges arrival unasked": "MQQB-3.1.5.8.10-01",
    "sends its own TxSequenceID": "MQQB-3.1.5.8.6-02",
    "tells the wrong previous number": "MQQB-3.1.5.8.6-02",
    "puts its own GUID into FinalAcks": "MQQB-3.1.5.8.2-12",
}


def told(number: int, mistake: str) -> set[str]:
    """The requirements that are told of a peer with a mistake, until the right one is among them.

    It is asked with more patience if it was not, as on a busy computer another failure can come first.
    """
    about, address = ABOUT.get(mistake, MISTAKES[mistake]), f"127.0.0.{100 + number}"
    found: set[str] = set()
    for bound in (0.3, 3.0):
        if MISTAKES[mistake] in found:
            break
        with fuzzed_peer(address, mistake) as peer:
            where = stage(address, peer.port, bound)
            for case in cases():
                if about in ids(case) and MISTAKES[mistake] not in found:
                    failure = where.perform(case).failure
                    found |= set(failure.requirements) if failure is not None else set()
    return found


@pytest.fixture(scope="module")
def all_told() -> dict[str, set[str]]:
    """What is told of each peer, many at a time, as that is mostly waiting."""
    cases()
    with ThreadPoolExecutor(12) as pool:
        return dict(zip(MISTAKES, pool.map(told, range(len(MISTAKES)), MISTAKES), strict=True))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_reported_by_the_requirement_it_breaks(
    mistake: str, all_told: dict[str, set[str]]
) -> None:
    assert MISTAKES[mistake] in all_told[mistake]


def test_a_crash_is_seen_by_the_next_session() -> None:
    with fuzzed_peer(ADDRESS, "crashes on a malformed message") as peer:
        where = stage(ADDRESS, peer.port, 1)
        assert where.fresh("binary") is None
        for case in cases():
            if "MQMQ-2.2.19.3-15" in ids(case):
                where.perform(case)
                break
        failure = where.fresh("binary")
        assert failure is not None
        assert failure.what == "gone"


def accused(where: Stage, drawn: list[Case], walks: int) -> list[str]:
    """What is told of a peer after some cases and walks."""
    outcomes = [where.perform(case) for case in drawn]
    walk(where, "binary", 5, walks, float("inf"), lambda outcome: outcomes.append(outcome) is not None)
    return [str(outcome.failure) for outcome in outcomes if outcome.failure is not None]


@pytest.mark.parametrize("habit", ["", "answers over the same session"])
def test_a_right_peer_is_accused_of_nothing(habit: str) -> None:
    with fuzzed_peer(ADDRESS, habit) as peer:
        where = stage(ADDRESS, peer.port, 10)
        assert accused(where, cases()[::7], 1) == []


def test_no_transactional_queue_is_no_mistake() -> None:
    """Transactional messages then go to the other queue, which refuses them with a FinalAck."""
    with fuzzed_peer(ADDRESS) as peer:
        target = Target(ADDRESS, Ports(peer.port), queue=QUEUE, bound=5.0)
        cases = BINARY.checks(target, random.Random(1))
        few = [case for case in cases if any("TxSequence" in step.note for step in case.steps)]
        at = Stage(target, {"binary": BINARY}, 1)
        assert few
        assert [str(failure) for case in few if (failure := at.perform(case).failure) is not None] == []


def test_the_server_is_accused_of_nothing(tmp_path: Path) -> None:
    given = options(tmp_path / "qm", ORDERS, f"{LEDGER};transactional", address=SERVER)
    with served(given) as server:
        where = stage(server.address, server.port, 20)
        assert accused(where, cases(SERVER)[1::6], 1) == []


def test_the_mistakes_are_those_of_the_peer() -> None:
    text = Path(FuzzedPeer.__init__.__code__.co_filename).read_text()
    assert all(f'"{mistake}"' in text for mistake in MISTAKES)
