"""The public entrances: a run against a peer, the replay of a seed, and an assertion for tests."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fuzz.peer.campaign import Campaign, coverage
from fuzz.peer.campaign import replay as replay_cases
from fuzz.peer.evidence import Kept, Seed, keep
from fuzz.peer.performing import Stage
from fuzz.peer.registry import FUZZED
from fuzz.peer.target import Ports, RunOptions, Target, consented
from msmqwire.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a run.

    Attributes:
        packets: how many were sent.
        failures: what was found.
        coverage: how often each requirement was tested, and a packet of each kind sent.
        seconds: how long it took.
        seed: of the run.
    """

    packets: int
    failures: tuple[Kept, ...]
    coverage: dict[str, Any]
    seconds: float
    seed: int

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``msmqwire fuzz --json``."""
        return {
            "packets": self.packets,
            "failures": [_plain(kept) for kept in self.failures],
            "coverage": self.coverage,
            "seconds": round(self.seconds, 3),
            "seed": self.seed,
        }


def _plain(kept: Kept) -> dict[str, Any]:
    return {**asdict(kept), "requirements": list(kept.requirements)}


def fuzz_peer(target: Target, options: RunOptions, say: Callable[[str], None] = lambda line: None) -> Report:
    """Test a peer by property for some time.

    Args:
        target: the peer.
        options: of the run.
        say: takes lines of progress.

    Raises Unreachable if the peer is not there, and OSError if nothing can be written.
    """
    began = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(target, options, {name: FUZZED[name] for name in options.protocols}, say)
    campaign.run()
    return Report(
        campaign.stage.packets,
        tuple(campaign.failures),
        coverage(campaign.stage),
        time.monotonic() - began,
        options.seed,
    )


def replay_seed(target: Target, seed: Seed, out: Path) -> Report:
    """Do again what a seed file has; the report has its failure if the peer fails once more."""
    began = time.monotonic()
    names = dict.fromkeys(case.protocol for case in seed.cases)
    if unknown := [name for name in names if name not in FUZZED]:
        raise InvalidValue(f"{unknown[0]} is no protocol", path="cases.protocol")
    stage = Stage(target, {name: FUZZED[name] for name in names}, time.time_ns())
    again = replay_cases(stage, seed.cases, None)
    failures: tuple[Kept, ...] = ()
    if again is not None:
        found = Seed(target, again.cases, again.failure)
        failures = (keep(out, 1, found, again.recordings, replayed=True),)
    return Report(stage.packets, failures, coverage(stage), time.monotonic() - began, 0)


def target_of(peer: str, consent: str | None = None, **more: Any) -> Target:
    """Return the target that ``HOST:PORT`` names. Raises InvalidValue."""
    host, colon, port = peer.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise InvalidValue(f"{peer!r} is not HOST:PORT")
    return Target(consented(host, consent), Ports(int(port)), **more)


def assert_peer_holds(
    peer: str,
    *,
    replay: Path | str | None = None,
    protocols: Sequence[str] = ("binary",),
    time: float = 10.0,
    seed: int = 0,
    out: Path | str | None = None,
    consent: str | None = None,
    **more: Any,
) -> Report:
    """Assert that a peer holds against a run, or against what a seed file has.

    Args:
        peer: ``HOST:PORT``.
        replay: a seed file of an earlier run.
        protocols: in which the peer is tested, see `fuzz.peer.target.PROTOCOLS`.
        time: seconds.
        seed: what is drawn depends on it alone.
        out: the folder for what is found; a temporary one that is kept if it is None.
        consent: the host once more, if it is another computer.
        more: attributes of `fuzz.peer.target.Target`: ``queue``, ``transactional_queue``, ``bound``.

    Raises AssertionError with what was found; InvalidValue, LocatedError and Unreachable.
    """
    target = target_of(peer, consent, **more)
    folder = Path(tempfile.mkdtemp(prefix="msmqwire-fuzz-")) if out is None else Path(out)
    if replay is None:
        report = fuzz_peer(target, RunOptions(tuple(protocols), time, seed, folder))
    else:
        kept = Seed.read(Path(replay))
        target = replace(
            kept.target, host=target.host, ports=replace(kept.target.ports, binary=target.ports.binary)
        )
        report = replay_seed(target, kept, folder)
    if report.failures:
        lines = [f"{', '.join(kept.requirements)}: {kept.text} ({kept.seed})" for kept in report.failures]
        raise AssertionError("\n".join([f"the peer fails; see {folder}", *lines]))
    return report
