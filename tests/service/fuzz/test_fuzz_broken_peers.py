"""Peers that each make one mistake, written from the specification alone: each is caught and explained."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import msmqwire
from fuzz import assert_peer_holds
from fuzz.peer.evidence import Seed
from fuzz.peer.running import choose, fuzz_peer
from fuzz.peer.target import RunOptions
from tests.support.nightly import nightly
from tests.support.own_addresses import own_loopback
from tests.support.paths import ROOT

QUEUES = {"queue": r"private$\orders", "transactional_queue": r"private$\tx"}
BOUND = 1.0
PACKETS = 4
"""A few packets show each of these."""
FEW = 4_000
"""Packets of a run until it has found one of these and made it short."""
TURNS = {"loses_second": 3}
"""Turns of a mistake that depends on joined segments: a busy machine joins and parts them itself."""


class BrokenPeer:
    """A process with a peer that makes a mistake; `restart` is the shell command that brings it back."""

    def __init__(self, mistake: str, address: str) -> None:
        module = "tests.support.broken_peers"
        places = ["--listen", f"{address}:18010", "--ping", f"{address}:3527", "--http", f"{address}:18080"]
        self._command = [sys.executable, "-m", module, "--mistake", mistake, *places]
        self.at, self.address = f"{address}:18010", address
        self.restart = f"cd {shlex.quote(str(ROOT))} && exec {shlex.join(self._command)}"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        process = subprocess.Popen(self._command, cwd=ROOT, stdout=subprocess.PIPE)
        assert process.stdout is not None
        json.loads(process.stdout.readline())
        process.stdout.close()

    def end(self) -> None:
        """End it, whoever started it."""
        for place in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                if place.read_bytes().rstrip(b"\0").split(b"\0") == [part.encode() for part in self._command]:
                    os.kill(int(place.parent.name), signal.SIGKILL)


@contextmanager
def broken_peer(mistake: str) -> Iterator[BrokenPeer]:
    peer = BrokenPeer(mistake, own_loopback(31))
    peer.start()
    try:
        yield peer
    finally:
        peer.end()


@pytest.mark.parametrize(
    ("mistake", "protocol", "requirements"),
    [
        ("trusts_data_length", "binary", {"MQRR-2.2.5.1.2.1-04", "MQQB-3.1.5.1.3-01"}),
        ("window_zero", "binary", {"MQMQ-2.2.20.4-14"}),
        ("before_handshake", "binary", {"MQQB-3.1.5.8-01"}),
        ("wrong_cookie", "ping", {"MQQB-2.2.7-11", "MQQB-3.1.7.7-02"}),
        # Only joined segments show it: a busy machine parts them.
        pytest.param("loses_second", "binary", {"MQMQ-2.2.19.1-19"}, marks=nightly),
        ("body_a_byte_beyond", "binary", {"MQMQ-2.2.19.3-15"}),
        ("http_answers_a_byte_early", "srmp", {"SRMP-2.1.1-11"}),
    ],
)
def test_the_mistake_is_caught_made_short_and_explained(tmp_path, mistake, protocol, requirements):
    with broken_peer(mistake) as peer:
        at = {"ping": f"{peer.address}:3527", "srmp": f"{peer.address}:18080"}.get(protocol, peer.at)
        target, protocols = choose(at, [protocol], bound=BOUND, **QUEUES)
        options = RunOptions(protocols, 60.0, 1, tmp_path, restart=peer.restart, failures_max=1)
        for _ in range(TURNS.get(mistake, 1)):
            report = fuzz_peer(target, options)
            [kept] = report.failures
            assert report.packets < FEW, "a first pass finds each of these"
            if requirements & set(kept.requirements):
                break
        assert requirements & set(kept.requirements), kept
        assert kept.replayed
        assert 1 <= kept.packets <= PACKETS
        assert list(msmqwire.dissect(tmp_path / kept.pcap))
        assert Seed.read(tmp_path / kept.seed).failure.requirements == kept.requirements
        for _ in range(TURNS.get(mistake, 1)):
            if not holds(at, tmp_path / kept.seed, tmp_path / "again"):
                return
        pytest.fail("the seed does not show the mistake")


def holds(at: str, seed: Path, out: Path) -> bool:
    """Whether the peer at `at` holds when the packets of `seed` are sent once more."""
    try:
        assert_peer_holds(at, replay=seed, out=out)
    except AssertionError:
        return False
    return True
