"""``msmqwire netware queue create | list | show | delete | grant | revoke``."""

from __future__ import annotations

from typing import Annotated, Final

from msmqwire.cli.confirm import Yes, confirm
from msmqwire.cli.netware.admin import Data, in_folder
from msmqwire.cli.netware.output import print_one, print_rows
from msmqwire.cli.options import Argument, Group, Option
from msmqwire.cli.wanted_output import AsJson, AsTable, wants_table
from msmqwire.names.printable import counted, safe
from msmqwire.ncp.type_names import QUEUE_TYPES
from msmqwire.netware.runtime.queue_requests import SETS

app = Group("queue", "Administer the queues of the bindery.")

Name = Annotated[
    str,
    Argument(
        metavar="QUEUE[:TYPE]",
        help=f"TYPE ({', '.join(QUEUE_TYPES)}) where queues of several types have the name.",
    ),
]
Property = Annotated[str, Option("--property", metavar="|".join(SETS), help="The set of the queue.")]
Member = Annotated[str, Option("--member", metavar="NAME[:TYPE]", help="The object.")]
_COLUMNS: Final = {
    "queue": "queue",
    "type": "type",
    "ID": "id",
    "jobs": "jobs",
    "status": "status",
    "directory": "directory",
}


@app.command("create")
def create(
    name: Annotated[str, Argument(metavar="NAME", help="The name: at most 47 characters, in capitals.")],
    kind: Annotated[str, Option("--type", metavar="TYPE", help=f"{', '.join(QUEUE_TYPES)}, or a number.")],
    data: Data,
    path: Annotated[str, Option(metavar="PATH", help="The directory for the queue directory: SYS:SYSTEM.")],
    user: Annotated[
        list[str] | None,
        Option(metavar="NAME[:TYPE]", help="A user or group for Q_USERS; may be repeated."),
    ] = None,
    operator: Annotated[
        list[str] | None,
        Option(metavar="NAME[:TYPE]", help="A user or group for Q_OPERATORS; may be repeated."),
    ] = None,
    server: Annotated[
        list[str] | None,
        Option(metavar="NAME[:TYPE]", help="A queue server for Q_SERVERS; may be repeated."),
    ] = None,
    as_json: AsJson = False,
    as_table: AsTable = False,
) -> None:
    """Create a queue, and print its ID and directory; the folder and its bindery too, if they are missing."""
    in_folder(
        data,
        lambda local: print_one(
            local.call(
                "queue_create",
                name=name,
                type=kind,
                path=path,
                user=user or [],
                operator=operator or [],
                server=server or [],
            ),
            wants_table(as_json, as_table),
        ),
        create=True,
    )


@app.command("list")
def list_(data: Data, as_json: AsJson = False, as_table: AsTable = False) -> None:
    """List the queues."""
    in_folder(
        data,
        lambda local: print_rows(
            local.call("queue_list")["queues"], _COLUMNS, wants_table(as_json, as_table)
        ),
    )


@app.command("show")
def show(name: Name, data: Data, as_json: AsJson = False, as_table: AsTable = False) -> None:
    """Show a queue with its sets and its attached queue servers."""
    in_folder(
        data, lambda local: print_one(local.call("queue_show", queue=name), wants_table(as_json, as_table))
    )


@app.command("delete")
def delete(
    name: Name, data: Data, yes: Yes = False, as_json: AsJson = False, as_table: AsTable = False
) -> None:
    """Delete a queue with all its jobs and its directory."""

    table, agreed = wants_table(as_json, as_table), None
    if not yes:
        counts: list[int] = []
        in_folder(data, lambda local: counts.append(local.call("queue_show", queue=name)["jobs"]))
        (agreed,) = counts
        if agreed:
            what = counted(agreed, "job")
            confirm(f"Delete {safe(name)} with its {what}", f"{name} has {what}")
    in_folder(data, lambda local: print_one(local.call("queue_delete", queue=name, at_most=agreed), table))


@app.command("grant")
def grant(
    name: Name,
    set_name: Property,
    member: Member,
    data: Data,
    as_json: AsJson = False,
    as_table: AsTable = False,
) -> None:
    """Add an object to a set of a queue."""
    _change("queue_grant", name, set_name, member, data, wants_table(as_json, as_table))


@app.command("revoke")
def revoke(
    name: Name,
    set_name: Property,
    member: Member,
    data: Data,
    as_json: AsJson = False,
    as_table: AsTable = False,
) -> None:
    """Take an object out of a set of a queue."""
    _change("queue_revoke", name, set_name, member, data, wants_table(as_json, as_table))


def _change(op: str, name: str, set_name: str, member: str, data: Data, table: bool) -> None:
    in_folder(
        data,
        lambda local: print_one(local.call(op, queue=name, property=set_name, member=member), table),
    )
