"""The public entrances: a run against a peer, the replay of a seed, and an assertion for tests."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fuzz.peer.campaign import Campaign, coverage
from fuzz.peer.evidence import ReportedFailure, Seed, keep
from fuzz.peer.performing import Stage
from fuzz.peer.ports import ping_port
from fuzz.peer.registry import FUZZED
from fuzz.peer.replaying import replay as replay_cases
from fuzz.peer.target import PACKETS_A_SECOND, PROTOCOLS, RunOptions, Target, target_of
from fuzz.peer.watcher import Silent, Watcher
from msmqwire.names.printable import in_seconds


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a run.

    Attributes:
        packets: the number sent.
        failures: the failures found.
        coverage: the number of tests of each requirement, and of packets sent of each kind.
        seconds: its duration.
        seed: the seed of the run.
    """

    packets: int
    failures: tuple[ReportedFailure, ...]
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


def _plain(kept: ReportedFailure) -> dict[str, Any]:
    return {**asdict(kept), "requirements": list(kept.requirements)}


def choose(
    peer: str,
    protocols: Sequence[str],
    ports: Mapping[str, int] | None = None,
    consent: str | None = None,
    **more: Any,
) -> tuple[Target, tuple[str, ...]]:
    """Return the target of ``HOST:PORT``, and the protocols to test it in.

    Without `protocols` these are the binary one, and ping if the peer answers one. The port of ping is
    looked for, if it is not given: the usual one, or that of the first protocol. Raises InvalidValue.
    """
    names = tuple(dict.fromkeys(protocols)) or ("binary",)
    target = target_of(peer, names, ports, consent, **more)
    if names[0] == "ping" or "ping" in (ports or {}) or (protocols and "ping" not in names):
        return target, names
    found = ping_port(target.host, target.port(names[0]))
    if found is None:
        return target, names
    target = replace(target, ports=replace(target.ports, ping=found))
    return target, names if "ping" in names else (*names, "ping")


def announcement(target: Target, options: RunOptions) -> str:
    """Return the plan of a run, in a sentence."""
    places = ", ".join(f"{name} at {target.host}:{target.port(name)}" for name in options.protocols)
    return (
        f"Testing {places} for {in_seconds(options.time)} with seed {options.seed}, at most "
        f"{PACKETS_A_SECOND:,} packets a second; evidence goes to {options.out}"
    )


def fuzz_peer(target: Target, options: RunOptions, watcher: Watcher | None = None) -> Report:
    """Test a peer by property for some time.

    Args:
        target: the peer.
        options: the options of the run. watcher: is notified of events.

    Raises Unreachable if the peer is not there, InvalidValue if it does not have a queue of the target, and
    OSError if nothing can be written.
    """
    began = time.monotonic()
    protocols = {name: FUZZED[name] for name in options.protocols}
    campaign = Campaign(target, options, protocols, watcher or Silent())
    campaign.run()
    return Report(
        campaign.stage.packets,
        tuple(campaign.failures),
        coverage(campaign.stage),
        time.monotonic() - began,
        options.seed,
    )


def replay_seed(target: Target, seed: Seed, out: Path) -> Report:
    """Repeat a seed file; the report has its failure if the peer fails again."""
    began = time.monotonic()
    names = dict.fromkeys(case.protocol for case in seed.cases)
    stage = Stage(target, {name: FUZZED[name] for name in names}, time.time_ns())
    again = replay_cases(stage, seed.cases, None)
    failures: tuple[ReportedFailure, ...] = ()
    if again is not None:
        found = Seed(target, again.cases, again.failure)
        failures = (keep(out, 1, found, again.recordings, replayed=True),)
    return Report(stage.packets, failures, coverage(stage), time.monotonic() - began, 0)


def replay_target(seed: Seed, peer: str, consent: str | None = None, bound: float | None = None) -> Target:
    """Return the target of a seed at ``HOST:PORT``, the port of its first protocol. Raises InvalidValue."""
    kept = seed.target
    names = list(dict.fromkeys(case.protocol for case in seed.cases))
    others = {name: kept.port(name) for name in PROTOCOLS if name != names[0]}
    return target_of(
        peer,
        names,
        others,
        consent,
        queue=kept.queue,
        transactional_queue=kept.transactional_queue,
        bound=bound or kept.bound,
    )


def assert_peer_holds(
    peer: str,
    *,
    replay: Path | str | None = None,
    protocols: Sequence[str] = ("binary",),
    time: float = 10.0,
    seed: int = 0,
    out: Path | str | None = None,
    consent: str | None = None,
    ports: Mapping[str, int] | None = None,
    **more: Any,
) -> Report:
    """Assert that a peer withstands a run, or a seed file.

    Args:
        peer: ``HOST:PORT``, the port of the first protocol.
        replay: a seed file of an earlier run.
        protocols: in which the peer is tested, see `fuzz.peer.target.PROTOCOLS`.
        time: seconds.
        seed: the same seed draws the same inputs.
        out: the folder for findings; for None a temporary one that is kept.
        consent: the host once more, if it is another computer.
        ports: those of the other protocols, where they are not the usual ones.
        more: attributes of `fuzz.peer.target.Target`: ``queue``, ``transactional_queue``, ``bound``; only
            the last one with `replay`.

    Raises AssertionError with the failures found; InvalidValue, LocatedError and Unreachable.
    """
    folder = Path(tempfile.mkdtemp(prefix="msmqwire-fuzz-")) if out is None else Path(out)
    if replay is None:
        target, names = choose(peer, protocols, ports, consent, **more)
        report = fuzz_peer(target, RunOptions(names, time, seed, folder))
    else:
        kept = Seed.read(Path(replay))
        report = replay_seed(replay_target(kept, peer, consent, **more), kept, folder)
    if report.failures:
        lines = [f"{', '.join(kept.requirements)}: {kept.text} ({kept.seed})" for kept in report.failures]
        raise AssertionError("\n".join([f"the peer fails; see {folder}", *lines]))
    return report
