"""``msmqwire manage``: the queues of another computer, seen and steered by [MS-MQMR]."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from click import BadParameter, UsageError
from click.exceptions import Exit

from msmqwire.cli.confirm import confirm
from msmqwire.cli.errors import run_reporting_errors, status_of, wrong_value
from msmqwire.cli.managing.advice import advice_for
from msmqwire.cli.managing.names_file import OPTION, names_in
from msmqwire.cli.options import Argument, Option
from msmqwire.cli.passwords import password_of
from msmqwire.cli.progress import waiting_shown
from msmqwire.cli.wanted_output import AsJson, AsTable, wants_table
from msmqwire.cli.why import print_why
from msmqwire.errors import InvalidValue, QueueError, RpcFault, RpcRefused, Unreachable
from msmqwire.json_text import dumps
from msmqwire.management.advice import Commands
from msmqwire.management.reports import unasked
from msmqwire.management.why import why
from msmqwire.names.nearest import unknown_name
from msmqwire.names.printable import in_seconds, safe
from msmqwire.qm.client.managed_names import managed_queue
from msmqwire.qm.client.management import TIMEOUT_MAX, SyncManagedHost, manage
from msmqwire.qm.client.management_connection import refusal_reason
from msmqwire.qm.client.remote_options import AUTH_LEVELS
from msmqwire.rpc.constants import ENDPOINT_MAPPER_PORT

if TYPE_CHECKING:
    from rich.console import RenderableType

_PORT_MAX: Final = 0xFFFF
_QUIT: Final = ("q", "Q", "\x03", "\x04")
_ON_QUEUES: Final = {
    "pause": (SyncManagedHost.pause, "paused"),
    "resume": (SyncManagedHost.resume, "resumed"),
    "resend": (SyncManagedHost.resend, "sent again"),
}
_ON_COMPUTER: Final = {
    "connect": (SyncManagedHost.connect_network, "online"),
    "disconnect": (SyncManagedHost.disconnect_network, "offline"),
    "tidy": (SyncManagedHost.tidy, "tidied"),
}
_WHY: Final = "--why"
_SHOWN: Final = ("info", "queues", "queue", "outgoing")
_COMMANDS: Final = (*_SHOWN, *_ON_QUEUES, *_ON_COMPUTER)


@dataclass(frozen=True)
class _Wanted:
    """What is to be shown: its name, the queues that were named, and how it is shown."""

    what: str
    names: Sequence[str]
    table: bool


def command(
    host: Annotated[str, Argument(metavar="HOST", help="Name or address of the computer; . is this one.")],
    what: Annotated[
        str | None,
        Argument(
            metavar="[COMMAND]",
            help="info, queues, queue QUEUE..., outgoing; pause, resume or resend QUEUE...; connect, "
            "disconnect, tidy. Without one: info and queues.",
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        Argument(
            metavar="[QUEUE]...",
            help=r"Path names, private$\orders, with ;journal for a journal; ;deadletter, ;deadxact; or "
            "format names, as outgoing shows them.",
        ),
    ] = None,
    user: Annotated[
        str | None,
        Option(metavar=r"DOMAIN\NAME", help="Caller: on Windows an administrator of the computer."),
    ] = None,
    password_file: Annotated[
        Path | None,
        Option(help="File with the password; a newline at its end is not part of it. - asks for it."),
    ] = None,
    auth: Annotated[
        str | None,
        Option(
            metavar="|".join(AUTH_LEVELS),
            help="Protection of the calls, by default privacy with a user, none without.",
        ),
    ] = None,
    rpc_port: Annotated[
        int | None,
        Option(
            min=1,
            max=_PORT_MAX,
            metavar="PORT",
            help="Port of the interface; else the endpoint mapper is asked.",
        ),
    ] = None,
    mapper_port: Annotated[
        int, Option(min=1, max=_PORT_MAX, metavar="PORT", help="Port of the endpoint mapper.")
    ] = ENDPOINT_MAPPER_PORT,
    timeout: Annotated[
        float, Option(min=0.001, max=TIMEOUT_MAX, help="Seconds for the whole answer to a question.")
    ] = 10.0,
    queues: Annotated[
        Path | None,
        Option(
            OPTION,
            metavar="FILE",
            help="More queues for the list, one name a line: a computer lists no idle public queues, and no "
            "journals.",
        ),
    ] = None,
    why_queue: Annotated[
        str | None,
        Option("--why", metavar="QUEUE", help="Instead of a command: say why a queue is stuck."),
    ] = None,
    watch: Annotated[bool, Option("--watch", help="Ask again and again; q quits.")] = False,
    interval: Annotated[
        float, Option(min=0.2, max=3600, metavar="SECONDS", help="With --watch: time between questions.")
    ] = 2.0,
    yes: Annotated[bool, Option("--yes", "-y", help="Disconnect without asking.")] = False,
    as_json: AsJson = False,
    as_table: AsTable = False,
) -> None:
    """See and steer the queues of another computer, a Windows server for example.

    By [MS-MQMR]: which messages wait where, and what is stuck. Outgoing queues hold messages on their way to
    other computers; resend sends those again that are not acknowledged. disconnect takes the queue manager
    off the network until connect; tidy frees disk space, and deletes no message.
    """
    if why_queue is not None:
        if what is not None:
            raise BadParameter(f"it goes with no command, as {what!r:.80}", param_hint="--why")
        what, names = _WHY, [why_queue]
    wanted = _Wanted(
        *_checked(host, what, names or (), watch=watch, file=queues), wants_table(as_json, as_table)
    )

    def run() -> None:
        more = () if queues is None else names_in(queues)
        password = None if password_file is None else password_of(password_file)
        try:
            management = manage(
                host,
                port=rpc_port,
                mapper_port=mapper_port,
                user=user,
                password=password,
                auth=auth,  # type: ignore[arg-type]  # it is checked there
                timeout=timeout,
            )
        except InvalidValue as exc:
            raise wrong_value(exc, password="password-file", port="rpc-port") from None
        if wanted.what == "disconnect" and not yes:
            confirm(
                f"Stop all messages from and to {safe(host)}",
                f"{host} would exchange no messages any more",
                "takes it off the network",
            )
        with management as managed:
            if wanted.what == _WHY:
                _say_why(managed, wanted.names[0], timeout, as_json=as_json)
            elif wanted.what in _SHOWN or not wanted.what:
                _show(managed, wanted, more, interval if watch else None, timeout)
            else:
                _act(managed, wanted, timeout)

    run_reporting_errors(run, advice_for(user=user, rpc_port=rpc_port))


def _checked(
    host: str, what: str | None, names: Sequence[str], *, watch: bool, file: Path | None
) -> tuple[str, Sequence[str]]:
    """Return the command and its queues. Raises UsageError, and InvalidName for queues."""
    if what is not None and what not in (_WHY, *_COMMANDS):
        if "\\" in what or "=" in what:
            raise UsageError(f"{what!r:.80} is not a command; write msmqwire manage {host} queue '{what}'")
        raise UsageError(unknown_name(what, _COMMANDS, "command").why)
    takes_names = what in (*_ON_QUEUES, "queue", _WHY)
    if takes_names and not names:
        raise UsageError(rf"{what} of which queue? Write msmqwire manage {host} {what} 'private$\orders'")
    if names and not takes_names and what != "queues":
        raise UsageError(f"{names[0]!r:.80} is one argument too many")
    if watch and what not in (None, *_SHOWN):
        raise BadParameter(f"{what} is done once", param_hint="--watch")
    if file is not None and what not in (None, "queues"):
        raise BadParameter("it is for the list: queues", param_hint=OPTION)
    return what or "", names


# -- what is seen ----------------------------------------------------------------------------------------


class _Answer(NamedTuple):
    """Reports to be printed, and the exit status."""

    reports: list[Any]
    status: int = 0


def _show(
    managed: SyncManagedHost, wanted: _Wanted, more: Sequence[str], interval: float | None, timeout: float
) -> None:
    def ask() -> _Answer:
        return _asked(managed, wanted, more)

    def patience() -> str:
        return _patience(managed, timeout)

    if interval is None:
        with waiting_shown(patience):
            answer = ask()
        _print(answer.reports, wanted)
        if answer.status:
            raise Exit(answer.status)
    elif wanted.table and sys.stdout.isatty():
        _watch(ask, wanted, interval, patience)
    else:
        try:
            while True:
                _print(ask().reports, wanted)
                time.sleep(interval)
        except KeyboardInterrupt:
            return


def _asked(managed: SyncManagedHost, wanted: _Wanted, more: Sequence[str]) -> _Answer:
    names = [*wanted.names, *more]
    match wanted.what:
        case "info":
            return _Answer([managed.machine()])
        case "queues":
            return _Answer(managed.queues(names))
        case "outgoing":
            return _Answer(managed.outgoing())
        case "queue" if len(names) == 1:
            return _Answer([managed.queue(names[0])])
        case "queue":
            return _many(managed, names)
    return _Answer([managed.machine(), *managed.queues(names)])


def _many(managed: SyncManagedHost, names: Sequence[str]) -> _Answer:
    """Ask for queues one by one; the status is that of the first that can't be asked."""
    for name in names:
        managed_queue(name)  # a wrong one before any is asked for
    reports, status = [], 0
    for name in names:
        try:
            reports.append(managed.queue(name))
        except (QueueError, RpcFault) as exc:
            why = refusal_reason(exc) if isinstance(exc, QueueError) else str(exc)
            reports.append(unasked(name, why))
            status = status or status_of(exc)
    return _Answer(reports, status)


def _print(reports: list[Any], wanted: _Wanted) -> None:
    if not wanted.table:
        for report in reports:
            print(dumps(report.to_json()), flush=True)
        return
    from rich.console import Console

    console = Console()
    console.print(_tables(reports, wanted, console.width))


def _tables(reports: list[Any], wanted: _Wanted, width: int, *, cut: bool = False) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from msmqwire.cli.managing.tables import machine_table, queue_table, queue_tables

    match wanted.what:
        case "info":
            return machine_table(reports[0])
        case "queue" if len(reports) == 1:
            return queue_table(reports[0])
        case "":
            return Group(machine_table(reports[0]), Text(""), queue_tables(reports[1:], width, cut=cut))
    return queue_tables(reports, width, cut=cut)


def _watch(ask: Callable[[], _Answer], wanted: _Wanted, interval: float, patience: Callable[[], str]) -> None:
    """Show reports until q or Ctrl-C. Raises the error of the first question; later the computer may go."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    from msmqwire.cli.keys import keys

    console = Console()
    with waiting_shown(patience):
        reports, problem = ask().reports, ""
    with keys() as pressed, Live(console=console, screen=True, auto_refresh=False) as live:
        try:
            while True:
                head = Text(f"{time.strftime('%H:%M:%S')}  {safe(problem)}", "bold red" if problem else "dim")
                live.update(Group(head, _tables(reports, wanted, console.width, cut=True)), refresh=True)
                if pressed(interval) in _QUIT:
                    return
                try:
                    reports, problem = ask().reports, ""
                except (Unreachable, RpcRefused, RpcFault, QueueError) as exc:
                    problem = str(exc)
        except KeyboardInterrupt:
            return


def _say_why(managed: SyncManagedHost, name: str, timeout: float, *, as_json: bool) -> None:
    """Say why a queue is stuck, or that it is not."""
    with waiting_shown(lambda: _patience(managed, timeout)):
        report, machine = managed.queue(name), managed.machine()
    commands = Commands.of_host(managed.host, name)
    print_why(report, why(report, datetime.now(UTC), machine=machine, commands=commands), as_json=as_json)


def _patience(managed: SyncManagedHost, timeout: float) -> str:
    return f"waiting for {safe(managed.host)}, {in_seconds(timeout)} at most"


# -- what is done ----------------------------------------------------------------------------------------


def _act(managed: SyncManagedHost, wanted: _Wanted, timeout: float) -> None:
    """Carry out an action, on each queue or on the computer."""
    if wanted.what in _ON_QUEUES:
        on_queue, done = _ON_QUEUES[wanted.what]
        for name in wanted.names:
            managed_queue(name)  # a wrong one before anything is done
        for name in wanted.names:
            with waiting_shown(lambda: _patience(managed, timeout)):
                on_queue(managed, name)
            _print_done(managed, wanted, done, name)
        return
    on_computer, done = _ON_COMPUTER[wanted.what]
    with waiting_shown(lambda: _patience(managed, timeout)):
        on_computer(managed)
    _print_done(managed, wanted, done)


def _print_done(managed: SyncManagedHost, wanted: _Wanted, done: str, name: str | None = None) -> None:
    if wanted.table:
        print(f"{safe(managed.host if name is None else name)}: {done}", flush=True)
    else:
        print(dumps({"host": managed.host, "action": wanted.what, "queue": name}), flush=True)
