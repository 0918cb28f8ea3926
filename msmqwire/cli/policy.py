"""``msmqwire policy set | list | show | delete``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.limits import limit_of
from msmqwire.cli.options import Argument, Group, Option
from msmqwire.json_text import dumps
from msmqwire.names.printable import safe
from msmqwire.qm.model.policies import POISON, WHEN_FULL
from msmqwire.qm.runtime.local import attach

app = Group("policy", "Give many queues properties at once, by their names.")

Data = Annotated[Path, Option(help="Folder of the queue manager.")]
Name = Annotated[str, Argument(metavar="NAME", help="Name of the policy.")]
AsJson = Annotated[bool, Option("--json", help="One JSON object a line.")]


def _print(policies: list[dict[str, Any]], as_json: bool) -> None:
    if as_json or not sys.stdout.isatty():
        for policy in policies:
            print(dumps(policy))
        return
    table = Table("policy", "pattern", "order", "properties", box=None, pad_edge=False)
    for policy in policies:
        others = {name: value for name, value in policy.items() if name not in ("name", "pattern", "order")}
        properties = ", ".join(f"{name} {_text(value)}" for name, value in others.items())
        row = (policy["name"], policy["pattern"], str(policy["order"]), properties)
        table.add_row(*(Text(safe(cell)) for cell in row))
    Console().print(table)


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


@app.command("set")
def set_(
    name: Name,
    data: Data,
    pattern: Annotated[
        str,
        Option(metavar="GLOB", help=r"Names of its queues, as private$\orders*: * is any text."),
    ],
    order: Annotated[int, Option(help="Of the policies of a queue the one with the highest order counts.")],
    quota: Annotated[str | None, Option(metavar="KIB", help="KiB of messages, or none for no limit.")] = None,
    journal: Annotated[
        bool | None, Option("--journal/--no-journal", help="Keep received messages in the journal.")
    ] = None,
    time_to_live: Annotated[
        str | None,
        Option(metavar="S", help="Seconds after which messages that arrive expire, or none for no limit."),
    ] = None,
    when_full: Annotated[
        str | None,
        Option(metavar="|".join(WHEN_FULL), help="What a full queue does with one more message."),
    ] = None,
    delivery_limit: Annotated[
        str | None,
        Option(metavar="N", help="Deliveries after which a message is poison, or none for no limit."),
    ] = None,
    poison: Annotated[
        str | None,
        Option(metavar="|".join(POISON), help="Where poison messages go."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add a policy, or replace the one of this name; it holds for its queues at once.

    What was set on a queue itself wins over policies: queue set --quota default forgets it.
    """

    def run() -> None:
        given = {"journal": journal, "when_full": when_full, "poison": poison}
        settings: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        limits = {"quota": quota, "time_to_live": time_to_live, "delivery_limit": delivery_limit}
        settings |= {key: limit_of(text, key) for key, text in limits.items() if text is not None}
        with attach(data) as local:
            _print([local.call("policy_set", name=name, pattern=pattern, order=order, **settings)], as_json)

    run_reporting_errors(run)


@app.command("list")
def list_(data: Data, as_json: AsJson = False) -> None:
    """List the policies."""

    def run() -> None:
        with attach(data) as local:
            _print(local.call("policy_list")["policies"], as_json)

    run_reporting_errors(run)


@app.command("show")
def show(name: Name, data: Data, as_json: AsJson = False) -> None:
    """Show a policy."""

    def run() -> None:
        with attach(data) as local:
            _print([local.call("policy_show", name=name)], as_json)

    run_reporting_errors(run)


@app.command("delete")
def delete(name: Name, data: Data, as_json: AsJson = False) -> None:
    """Delete a policy: its queues have what other policies say, or the defaults."""

    def run() -> None:
        with attach(data) as local:
            _print([local.call("policy_delete", name=name)], as_json)

    run_reporting_errors(run)
