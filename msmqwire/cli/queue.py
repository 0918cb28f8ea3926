"""``msmqwire queue create | list | show | why | set | purge | delete``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from msmqwire.cli.confirm import Yes, confirm
from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.limits import DEFAULT, limit_of
from msmqwire.cli.options import Argument, Group, Option
from msmqwire.cli.why import print_why
from msmqwire.errors import InvalidValue
from msmqwire.json_text import dumps
from msmqwire.management.advice import Commands
from msmqwire.management.report_json import queue_report_from_json
from msmqwire.management.reports import MachineReport
from msmqwire.management.why import why
from msmqwire.names.nearest import nearest
from msmqwire.names.printable import counted, safe
from msmqwire.qm.model.policies import POISON, SETTABLE, WHEN_FULL
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.queue_access import RIGHTS


class _Queues(Group):
    """The commands for queues; ``queue --why QUEUE`` is ``queue why QUEUE``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Raises click.UsageError."""
        if _WHY in args and args[0].startswith("-"):
            args = ["why", *(one for one in args if one != _WHY)]
        return super().parse_args(ctx, args)


_WHY = "--why"
app = _Queues("queue", "Administer the queues of a folder.")

Data = Annotated[Path, Option(help="Folder of the queue manager.")]
Name = Annotated[str, Argument(metavar="QUEUE", help=r"Its name: private$\orders.")]
Label = Annotated[str | None, Option(help="A description of the queue for people.")]
Quota = Annotated[str | None, Option(metavar="KIB", help="KiB of its messages, or none for no limit.")]
Journal = Annotated[
    bool | None, Option("--journal/--no-journal", help="Keep received messages in the journal of the queue.")
]
JournalQuota = Annotated[str | None, Option(metavar="KIB", help="KiB of its journal, or none.")]
Authenticated = Annotated[
    bool | None, Option("--authenticated/--not-authenticated", help="Take signed messages only.")
]
Privacy = Annotated[
    str | None,
    Option(metavar="none|optional|body", help="Take messages that are not encrypted: none, optional, body."),
]
Priority = Annotated[int | None, Option(help="Base priority, -32768 to 32767.")]
Kind = Annotated[str | None, Option("--type", metavar="GUID", help="GUID of the service type of the queue.")]
Multicast = Annotated[
    str | None,
    Option(metavar="ADDR:PORT", help="Multicast group to receive from, 234.1.1.1:8001, or none."),
]
_ACCESS = "USER:RIGHT,RIGHT"
Allow = Annotated[
    list[str] | None,
    Option(
        metavar=_ACCESS,
        help=r"Rights of a remote reader; may be repeated. USER is DOMAIN\user, a SID, callers "
        f"(all that the server lets in), everyone or anonymous; RIGHT is of {', '.join(RIGHTS)}, or none "
        f"to forget the rights that were set.",
    ),
]
Deny = Annotated[
    list[str] | None,
    Option(
        metavar=_ACCESS,
        help="Rights that are denied to a remote reader; they take precedence over the rights of callers.",
    ),
]
TimeToLive = Annotated[
    str | None,
    Option(metavar="S", help="Seconds after which messages that arrive expire at the latest, or none."),
]
WhenFull = Annotated[
    str | None,
    Option(
        metavar="|".join(WHEN_FULL),
        help="What a full queue does with one more message.",
    ),
]
DeliveryLimit = Annotated[
    str | None,
    Option(metavar="N", help="Deliveries without an end after which a message is poison, or none."),
]
Poison = Annotated[
    str | None,
    Option(metavar="|".join(POISON), help="Where poison messages go."),
]
AsJson = Annotated[bool, Option("--json", help="One JSON object a line.")]


def _settings(
    label: str | None,
    quota: str | None,
    journal: bool | None,
    journal_quota: str | None,
    authenticated: bool | None,
    privacy: str | None,
    base_priority: int | None,
    kind: str | None,
    multicast: str | None,
    allow: list[str] | None,
    deny: list[str] | None,
    time_to_live: str | None,
    when_full: str | None,
    delivery_limit: str | None,
    poison: str | None,
    forget: list[str] | None = None,
) -> dict[str, Any]:
    """Return the options given on the command line by their names in the control channel."""
    options = {
        "label": label,
        "journal": journal,
        "authenticated": authenticated,
        "privacy": privacy,
        "base_priority": base_priority,
        "type": kind,
        "when_full": when_full,
        "poison": poison,
        "allow": allow or None,
        "deny": deny or None,
    }
    settings: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    limits = {
        "quota": quota, "journal_quota": journal_quota, "time_to_live": time_to_live,
        "delivery_limit": delivery_limit,
    }  # fmt: skip
    settings |= {key: limit_of(text, key, default=True) for key, text in limits.items() if text is not None}
    for name in forget or ():
        if name not in SETTABLE:
            near = nearest(name, SETTABLE)
            hint = f"; did you mean {near[0]}?" if near else f": {', '.join(SETTABLE)}"
            raise InvalidValue(f"{name[:100]!r} is not a property that can be set{hint}", path="default")
        settings[name] = None if name == "label" else DEFAULT
    if multicast is not None:
        settings["multicast"] = None if multicast.lower() == "none" else multicast
    return settings


def _print(queues: list[dict[str, Any]], as_json: bool) -> None:
    if as_json or not sys.stdout.isatty():
        for queue in queues:
            print(dumps(queue))
        return
    if len(queues) == 1:
        for name, value in queues[0].items():
            print(f"{name:18} {_text(value)}")
        return
    table = Table("queue", "kind", box=None, pad_edge=False)
    table.columns[0].overflow = "fold"
    for name in ("messages", "bytes"):
        table.add_column(name, justify="right")
    table.add_column("notes", overflow="fold")
    for queue in queues:
        notes = [name for name in ("transactional", "journal", "authenticated") if queue.get(name)]
        notes += [queue["state"]] if "state" in queue else []
        notes += [queue["label"]] if queue.get("label") else []
        row = (queue["queue"], queue["kind"], str(queue["messages"]), str(queue["bytes"]), ", ".join(notes))
        table.add_row(*(Text(safe(cell)) for cell in row))
    Console().print(table)


def _text(value: Any) -> str:
    """Format a property of a queue for human readers."""
    match value:
        case bool():
            return "yes" if value else "no"
        case dict():
            return ", ".join(f"{safe(name)}: {_text(item)}" for name, item in value.items()) or "-"
        case list():
            return ", ".join(map(_text, value)) or "-"
        case None | "":
            return "-"
    return safe(str(value))


def _print_done(result: dict[str, Any], text: str, as_json: bool) -> None:
    """Print the result of an operation, as text on a terminal."""
    print(dumps(result) if as_json or not sys.stdout.isatty() else f"{safe(result['queue'])}: {text}")


@app.command("create")
def create(
    queue: Name,
    data: Data,
    transactional: Annotated[
        bool, Option("--transactional", help="Take transactional messages only.")
    ] = False,
    label: Label = None,
    quota: Quota = None,
    journal: Journal = None,
    journal_quota: JournalQuota = None,
    authenticated: Authenticated = None,
    privacy: Privacy = None,
    base_priority: Priority = None,
    kind: Kind = None,
    multicast: Multicast = None,
    allow: Allow = None,
    deny: Deny = None,
    time_to_live: TimeToLive = None,
    when_full: WhenFull = None,
    delivery_limit: DeliveryLimit = None,
    poison: Poison = None,
    as_json: AsJson = False,
) -> None:
    """Create a queue; the folder and its queue manager too, if they are missing."""

    def run() -> None:
        settings = _settings(
            label, quota, journal, journal_quota, authenticated, privacy, base_priority, kind, multicast,
            allow, deny, time_to_live, when_full, delivery_limit, poison,
        )  # fmt: skip
        with attach(data, create=True) as local:
            _print([local.call("create", queue=queue, transactional=transactional, **settings)], as_json)

    run_reporting_errors(run)


@app.command("list")
def list_(data: Data, as_json: AsJson = False) -> None:
    """List the queues of a folder, including those on the way to other computers."""

    def run() -> None:
        with attach(data) as local:
            _print(local.call("list")["queues"], as_json)

    run_reporting_errors(run)


@app.command("show")
def show(queue: Name, data: Data, as_json: AsJson = False) -> None:
    """Show a queue with its properties."""

    def run() -> None:
        with attach(data) as local:
            _print([local.call("show", queue=queue)], as_json)

    run_reporting_errors(run)


@app.command("why")
def why_(
    queue: Name,
    data: Data,
    as_json: Annotated[bool, Option("--json", help="The report of the queue, with the advice.")] = False,
) -> None:
    """Say why a queue is stuck, or that it is not: what is known, what it means, and what to do.

    Of a queue on the way to another computer this is its state, its connections and what the other side has
    not acknowledged; queue --why QUEUE is the same.
    """

    def run() -> None:
        with attach(data) as local:
            answer = local.call("report", queue=queue)
            served = local.served
        report = queue_report_from_json(answer["report"])
        machine = MachineReport(host="", connected=answer["connected"])
        commands = Commands.of_folder(str(data), queue)
        advice = why(report, datetime.now(UTC), machine=machine, commands=commands, served=served)
        print_why(report, advice, as_json=as_json)

    run_reporting_errors(run)


@app.command("set")
def set_(
    queue: Name,
    data: Data,
    label: Label = None,
    quota: Quota = None,
    journal: Journal = None,
    journal_quota: JournalQuota = None,
    authenticated: Authenticated = None,
    privacy: Privacy = None,
    base_priority: Priority = None,
    kind: Kind = None,
    multicast: Multicast = None,
    allow: Allow = None,
    deny: Deny = None,
    time_to_live: TimeToLive = None,
    when_full: WhenFull = None,
    delivery_limit: DeliveryLimit = None,
    poison: Poison = None,
    forget: Annotated[
        list[str] | None,
        Option(
            "--default",
            metavar="PROPERTY",
            help="Forget what was set for a property: a policy or the default holds. May be repeated; "
            "--quota default is the same.",
        ),
    ] = None,
    paused: Annotated[
        bool | None,
        Option("--pause/--resume", help="Stop or resume sending; of a queue on the way to another computer."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change properties of a queue."""

    def run() -> None:
        settings = _settings(
            label, quota, journal, journal_quota, authenticated, privacy, base_priority, kind, multicast,
            allow, deny, time_to_live, when_full, delivery_limit, poison, forget,
        )  # fmt: skip
        if paused is not None:
            settings["paused"] = paused
        with attach(data) as local:
            _print([local.call("set", queue=queue, **settings)], as_json)

    run_reporting_errors(run)


@app.command("purge")
def purge(queue: Name, data: Data, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete the messages of a queue."""

    def found(status: dict[str, Any]) -> tuple[int, str, str]:
        what = counted(status["messages"], "message")
        return status["messages"], f"Delete {what} of {safe(queue)}", f"{queue} has {what}"

    def run() -> None:
        result = _delete_agreed(data, "purge", queue, found, yes=yes)
        _print_done(result, f"messages deleted: {result['purged']}", as_json)

    run_reporting_errors(run)


@app.command("delete")
def delete(queue: Name, data: Data, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a queue and all its messages."""

    def found(status: dict[str, Any]) -> tuple[int, str, str]:
        there = {
            "": status["messages"],
            " in its journal": status.get("journal_messages", 0),
            " in its subqueues": sum(status.get("subqueues", {}).values()),
        }
        parts = [counted(count, "message") + where for where, count in there.items() if count]
        what = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
        return sum(there.values()), f"Delete {safe(queue)} with its {what}", f"{queue} has {what}"

    def run() -> None:
        result = _delete_agreed(data, "delete", queue, found, yes=yes)
        _print_done(result, f"deleted, messages in it: {result['deleted']}", as_json)

    run_reporting_errors(run)


def _delete_agreed(
    data: Path, op: str, queue: str, found: Callable[[dict[str, Any]], tuple[int, str, str]], *, yes: bool
) -> dict[str, Any]:
    """Make a request that deletes the messages of a queue, once that was agreed to; return its answer.

    If more have come than was said, it is asked again. The folder is not open while a question waits.

    Args:
        data, op, queue: the folder; the request and its queue.
        found: returns from the properties of the queue how many messages would be deleted, and the question
            and reason of `confirm`.
        yes: whether not to ask.
    """
    agreed = None
    while True:
        if not yes:
            with attach(data) as local:
                agreed, question, why = found(local.call("show", queue=queue))
            if agreed:
                confirm(question, why)
        with attach(data) as local:
            try:
                return local.call(op, queue=queue, at_most=agreed)
            except InvalidValue as exc:
                if yes or exc.path != "at_most":
                    raise
