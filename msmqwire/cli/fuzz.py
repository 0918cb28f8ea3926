"""``msmqwire fuzz``: tests a peer by property, and keeps the evidence of failures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

from click.exceptions import Exit

from msmqwire.cli.common import EX_IOERR, EX_USAGE, NoInput, say
from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.fuzz_report import progress, show
from msmqwire.cli.options import Argument, Option
from msmqwire.errors import InvalidValue

if TYPE_CHECKING:
    from fuzz.peer.running import Report

FOUND: Final = 1
"""The exit status when something is wrong with the peer."""
_PROTOCOL_HELP: Final = (
    "binary, srmp, remote-read or ping; may be repeated. HOST:PORT is that of the first. "
    "binary, and ping if it is answered, if none is given."
)
_PORT_HELP: Final = "Port of the peer for another protocol; 1801, 80, 2103 and 3527 (UDP) if not given."


def command(
    peer: Annotated[str, Argument(metavar="HOST:PORT", help="The peer.")],
    seconds: Annotated[float, Option("--time", metavar="SECONDS", help="Duration of the run.")] = 60.0,
    seed: Annotated[
        int, Option("--seed", help="Start of the random numbers: the same seed draws the same inputs.")
    ] = 0,
    out: Annotated[Path, Option("--out", metavar="DIR", help="Folder for the evidence of failures.")] = Path(
        "msmqwire-fuzz"
    ),
    bound: Annotated[
        float,
        Option("--bound", metavar="SECONDS", help="Time within which a fresh session must be answered."),
    ] = 5.0,
    protocol: Annotated[list[str] | None, Option("--protocol", metavar="NAME", help=_PROTOCOL_HELP)] = None,
    port: Annotated[list[str] | None, Option("--port", metavar="PROTOCOL=PORT", help=_PORT_HELP)] = None,
    queue: Annotated[
        str, Option("--queue", metavar="QUEUE", help="A queue that the peer has.")
    ] = r"private$\orders",
    transactional_queue: Annotated[
        str | None,
        Option("--transactional-queue", metavar="QUEUE", help="A transactional queue that the peer has."),
    ] = None,
    replay: Annotated[
        Path | None,
        Option("--replay", metavar="SEEDFILE", help="Repeat a failure that an earlier run found."),
    ] = None,
    restart: Annotated[
        str | None,
        Option(
            "--restart",
            metavar="COMMAND",
            help="Shell command that starts the peer again after it has ended.",
        ),
    ] = None,
    pid: Annotated[
        int | None, Option("--pid", min=1, help="A process whose resident memory is watched.")
    ] = None,
    consent: Annotated[
        str | None, Option("--consent", metavar="HOST", help="Name HOST once more, to test another computer.")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print one JSON document at the end.")] = False,
) -> None:
    """Test a peer by property, and keep the evidence of each failure: a capture, a seed to replay, a test.

    Sends to this computer only, unless HOST is named a second time with --consent. The exit status is 0 if no
    failure is found, else 1.
    """
    from fuzz.peer.evidence import Seed
    from fuzz.peer.running import announcement, choose, fuzz_peer, replay_seed, replay_target
    from fuzz.peer.target import RunOptions, queue_path

    if not all(math.isfinite(number) and number > 0 for number in (seconds, bound)):
        _refuse("--time and --bound are numbers of seconds above 0")

    def run() -> Report:
        if replay is not None:
            try:
                kept = Seed.read(replay)
            except OSError as exc:
                raise NoInput(f"{replay}: {exc.strerror or exc}") from None
            return replay_seed(replay_target(kept, peer, consent, bound), kept, out)
        names = {"queue": queue_path(queue), "transactional_queue": queue_path(transactional_queue or "")}
        target, protocols = choose(peer, protocol or [], _ports(port or []), consent, bound=bound, **names)
        options = RunOptions(protocols, seconds, seed, out, restart, pid)
        with progress(seconds) as watcher:
            watcher.line(announcement(target, options))
            return fuzz_peer(target, options, watcher)

    def report() -> None:
        try:
            result = run()
        except InvalidValue as exc:
            _refuse(exc.why)
        except OSError as exc:
            say(f"{exc.filename or out}: {exc.strerror or exc}")
            raise Exit(EX_IOERR) from None
        show(result, as_json=as_json)
        if result.failures:
            raise Exit(FOUND)

    run_reporting_errors(report)


def _ports(given: list[str]) -> dict[str, int]:
    """Return the ports of protocols, given as PROTOCOL=PORT. Raises InvalidValue."""
    ports = {}
    for text in given:
        name, equals, number = text.partition("=")
        if not equals or not number.isascii() or not number.isdigit() or not 0 < int(number) < 65536:
            raise InvalidValue(f"{text!r} is not PROTOCOL=PORT")
        ports[name] = int(number)
    return ports


def _refuse(why: str) -> NoReturn:
    say(why)
    raise Exit(EX_USAGE)
