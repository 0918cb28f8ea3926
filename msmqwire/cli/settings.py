"""``msmqwire settings set | unset | list``: the options of ``serve`` that a folder keeps."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Final

from click import BadParameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.network_options import address_overrides
from msmqwire.cli.options import Argument, Group, Option
from msmqwire.errors import InvalidValue
from msmqwire.json_text import dumps
from msmqwire.names.printable import format_endpoint, safe
from msmqwire.ping import PING_PORT
from msmqwire.qm.model.settings import KeptSettings
from msmqwire.qm.runtime.addresses import TCP_PORT
from msmqwire.qm.runtime.data_folder import STORE
from msmqwire.qm.runtime.folder_operations import settings_definitions
from msmqwire.qm.runtime.kept_options import KeptOptions, is_route, setting_json
from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.named_values import changed_values, named_values, with_named_values
from msmqwire.qm.runtime.server import SETTINGS, ServerOptions

app = Group("settings", "Keep options of serve in its folder.")

Data = Annotated[Path, Option(help="Folder of the queue manager.")]
AsJson = Annotated[bool, Option("--json", help="One JSON object a line.")]
OPTION: Final = "option"
FOLDER: Final = "folder"
DEFAULT: Final = "default"
_LATER: Final = "a server that runs uses it from its next start on"


def show_settings(options: ServerOptions, as_json: bool) -> None:
    """Print all settings, hosts and routes of a server with these options, and where each is from.

    Raises as `attach` does.
    """
    kept, settings_kept = KeptOptions(), KeptSettings()
    if (options.data / STORE).exists():
        with attach(options.data) as local:
            answer = local.call("options_kept")
        hosts = {name: (address, port) for name, (address, port) in answer["hosts"].items()}
        kept, settings_kept = KeptOptions(hosts, answer["settings"]), KeptSettings(**answer["kept"])
    print_rows(_rows(options, kept, settings_kept), as_json)


def _rows(options: ServerOptions, kept: KeptOptions, settings_kept: KeptSettings) -> list[dict[str, Any]]:
    merged = options.with_kept(kept)
    settings = settings_kept.changed_by(options.keep).applied_to(merged.settings)
    given = {
        *options.given, *changed_values(options.settings, SETTINGS),
        *changed_values(options.limits, Limits()), *_names(options.keep),
    }  # fmt: skip
    of_folder = {*kept.settings, *_names(settings_kept)}
    rows = []
    for name in named_values():
        value = getattr(settings if hasattr(settings, name) else merged.limits, name)
        origin = OPTION if name in given else FOLDER if name in of_folder else DEFAULT
        rows.append({"name": name, "value": setting_json(value), "from": origin, "kind": "setting"})
    for name, (address, port) in sorted(merged.overrides.hosts.items()):
        origin = OPTION if name in options.overrides.hosts else FOLDER
        at = address if port is None else format_endpoint(address, port)
        rows.append(
            {"name": name, "value": at, "from": origin, "kind": "route" if is_route(name) else "host"}
        )
    return rows


def _names(keep: KeptSettings) -> set[str]:
    """Return the settings that kept ones decide."""
    given = keep.given
    names = {"send_insecure_nacks"} & given.keys()
    return names | ({"resend_timer_table"} if given.keys() - names else set())


def print_rows(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Print settings, hosts and routes."""
    if as_json or not sys.stdout.isatty():
        for row in rows:
            print(dumps(row))
        return
    table = Table("name", "value", "from", "kind", box=None, pad_edge=False)
    for row in rows:
        value = row["value"]
        text = ",".join(map(str, value)) if isinstance(value, list) else _text(value)
        table.add_row(*(Text(safe(cell)) for cell in (row["name"], text, row["from"], row["kind"])))
    Console().print(table)


def _text(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


@app.command("set")
def set_(
    data: Data,
    values: Annotated[
        list[str] | None, Argument(metavar="NAME=VALUE", help="Settings, as for serve --set.")
    ] = None,
    host: Annotated[
        list[str] | None,
        Option(metavar="NAME=ADDR[:PORT]", help="A host or route, as for serve --host; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Keep settings, hosts and routes for later starts of serve, whose options override them."""
    if not values and not host:
        raise BadParameter("there is nothing to set: NAME=VALUE, or --host NAME=ADDR")
    try:
        with_named_values(SETTINGS, Limits(), values or ())
    except InvalidValue as exc:
        raise BadParameter(str(exc), param_hint="NAME=VALUE") from None
    overrides = address_overrides(host or [], TCP_PORT, PING_PORT)
    hosts = [
        {"name": name, "address": address} | ({} if port is None else {"port": port})
        for name, (address, port) in overrides.hosts.items()
    ]
    pairs = dict(text.split("=", 1) for text in values or ())
    settings = {name.strip(): value.strip() for name, value in pairs.items()}

    def run() -> None:
        with attach(data) as local:
            changed = local.call("definitions_import", definitions=settings_definitions(settings, hosts))[
                "changes"
            ]
            served = local.served
        if as_json or not sys.stdout.isatty():
            for change in changed:
                print(dumps(change))
        else:
            for change in changed:
                print(safe(f"{change['kind']} {change['name']} is kept" + (f": {_LATER}" if served else "")))

    run_reporting_errors(run)


@app.command("unset")
def unset(
    data: Data,
    name: Annotated[str, Argument(metavar="NAME", help="Name of a setting, host or route.")],
) -> None:
    """Forget a setting, host or route that the folder keeps."""

    def run() -> None:
        with attach(data) as local:
            local.call("options_forget", name=name)

    run_reporting_errors(run)


@app.command("list")
def list_(data: Data, as_json: AsJson = False) -> None:
    """List what the folder keeps; serve --print-settings lists everything that holds."""

    def run() -> None:
        if not (data / STORE).exists():
            attach(data).close()  # its error says what to do
        options = ServerOptions(data)
        with attach(data) as local:
            answer = local.call("options_kept")
        hosts = {name: (address, port) for name, (address, port) in answer["hosts"].items()}
        rows = _rows(options, KeptOptions(hosts, answer["settings"]), KeptSettings(**answer["kept"]))
        print_rows([row for row in rows if row["from"] == FOLDER], as_json)

    run_reporting_errors(run)
