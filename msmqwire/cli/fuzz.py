"""``msmqwire fuzz``: tests a peer by property, and keeps what it finds."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from msmqwire.cli.common import EX_SOFTWARE, EX_USAGE, NoInput, dumps, say
from msmqwire.cli.errors import run_reporting_errors
from msmqwire.errors import InvalidValue, LocatedError

if TYPE_CHECKING:
    from fuzz.peer.running import Report

FOUND = 1
"""The exit status when something is wrong with the peer."""


def command(
    peer: Annotated[str, typer.Argument(metavar="HOST:PORT", help="The peer.")],
    time: Annotated[float, typer.Option("--time", metavar="SECONDS", min=0.1, help="How long.")] = 60.0,
    seed: Annotated[int, typer.Option("--seed", help="What is drawn depends on it alone.")] = 0,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where what is found is written.")] = Path(
        "msmqwire-fuzz"
    ),
    bound: Annotated[
        float,
        typer.Option("--bound", metavar="SECONDS", min=0.1, help="A fresh session is answered within it."),
    ] = 5.0,
    protocol: Annotated[
        list[str] | None,
        typer.Option("--protocol", help="binary, srmp, remote-read or ping; more than once."),
    ] = None,
    queue: Annotated[str, typer.Option("--queue", help="A queue that the peer has.")] = r"private$\orders",
    transactional_queue: Annotated[
        str | None, typer.Option("--transactional-queue", help="A transactional queue that the peer has.")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option("--replay", metavar="SEEDFILE", help="Do again what an earlier run found.")
    ] = None,
    restart: Annotated[
        str | None, typer.Option("--restart", metavar="COMMAND", help="Brings the peer back after its end.")
    ] = None,
    pid: Annotated[int | None, typer.Option("--pid", help="The process whose memory is watched.")] = None,
    consent: Annotated[
        str | None, typer.Option("--consent", metavar="HOST", help="Another computer, named once more.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One document at the end.")] = False,
) -> None:
    """Test a peer by property: a queue manager that others may have written.

    Sends to this computer only, unless the host is named a second time with --consent.
    """

    def run() -> None:
        try:
            from fuzz.peer.evidence import Seed
            from fuzz.peer.running import fuzz_peer, replay_seed, target_of
            from fuzz.peer.target import PROTOCOLS, RunOptions
        except ModuleNotFoundError as exc:
            say(f"{exc.name} is missing: pip install 'msmqwire[fuzz]'")
            raise typer.Exit(EX_SOFTWARE) from None
        protocols = tuple(dict.fromkeys(protocol or ["binary"]))
        if unknown := [name for name in protocols if name not in PROTOCOLS]:
            _wrong_usage(f"{unknown[0]} is no protocol: {', '.join(PROTOCOLS)}")
        try:
            target = target_of(
                peer, consent, queue=queue, transactional_queue=transactional_queue, bound=bound
            )
        except InvalidValue as exc:
            _wrong_usage(exc.why)
        options = RunOptions(protocols, time, seed, out, restart, pid)
        if replay is not None:
            report = _replayed(target, replay, out, Seed, replay_seed)
        else:
            print(
                f"{', '.join(protocols)} to {target.host}:{target.ports.binary} for {time:g} s, seed {seed}; "
                f"what is found goes to {out}",
                file=sys.stderr,
            )
            report = fuzz_peer(target, options, lambda line: print(line, file=sys.stderr))
        _show(report, as_json=as_json)
        if report.failures:
            raise typer.Exit(FOUND)

    run_reporting_errors(run)


def _wrong_usage(why: str) -> None:
    say(why)
    raise typer.Exit(EX_USAGE)


def _replayed(target: Any, path: Path, out: Path, seed_type: Any, replay_seed: Any) -> Report:
    try:
        seed = seed_type.read(path)
    except LocatedError:
        raise
    except OSError as exc:
        raise NoInput(f"{path}: {exc.strerror or exc}") from None
    ports = replace(seed.target.ports, binary=target.ports.binary)
    there = replace(seed.target, host=target.host, ports=ports, bound=target.bound)
    report: Report = replay_seed(there, seed, out)
    return report


def _show(report: Report, *, as_json: bool) -> None:
    if as_json:
        print(dumps(report.to_json()))
        return
    print(f"{report.packets} packets in {report.seconds:.1f} s, {len(report.failures)} failures")
    for kept in report.failures:
        print(f"{kept.test}: {', '.join(kept.requirements)}: {kept.text}")
