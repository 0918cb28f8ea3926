"""``msmqwire netware object create | list | show | password | delete``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

from msmqwire.cli.errors import usage
from msmqwire.cli.netware.admin import Data, in_folder
from msmqwire.cli.netware.output import print_one, print_rows
from msmqwire.cli.options import Argument, Group, Option
from msmqwire.cli.passwords import new_password
from msmqwire.cli.wanted_output import AsJson, AsTable, wants_table
from msmqwire.names.printable import safe
from msmqwire.ncp.type_names import OBJECT_TYPES, type_number
from msmqwire.netware.runtime.bindery_requests import RIGHTS
from msmqwire.service.control.client import Local

app = Group("object", "Administer the objects of the bindery.")

Name = Annotated[
    str, Argument(metavar="NAME[:TYPE]", help="TYPE where objects of several types have the name.")
]
_COLUMNS: Final = {"object": "name", "type": "type", "ID": "id"}


@app.command("create")
def create(
    name: Annotated[str, Argument(metavar="NAME", help="The name: at most 47 characters, in capitals.")],
    kind: Annotated[
        str,
        Option(
            "--type",
            metavar="TYPE",
            help="user, group, print-server, job-server, archive-server, file-server, or a number.",
        ),
    ],
    data: Data,
    member_of: Annotated[
        list[str] | None,
        Option(metavar="GROUP", help="A group to be in; more than once for several."),
    ] = None,
    equivalent_to: Annotated[
        list[str] | None,
        Option(
            metavar="NAME[:TYPE]",
            help="An object whose rights it has as well: SUPERVISOR for those of a supervisor; may be "
            "repeated.",
        ),
    ] = None,
    trustee: Annotated[
        list[str] | None,
        Option(
            metavar="PATH=RIGHTS",
            help=f"Rights in a directory of a volume, made if missing: SYS:DATA=RWC, of {''.join(RIGHTS)}.",
        ),
    ] = None,
    as_json: AsJson = False,
    as_table: AsTable = False,
) -> None:
    """Create an object, and print its ID; the folder and its bindery too, if they are missing."""

    def work(local: Local) -> None:
        answer = local.call(
            "object_create",
            name=name,
            type=kind,
            member_of=member_of or [],
            equivalent_to=equivalent_to or [],
            trustee=trustee or [],
        )
        print_one(answer, wants_table(as_json, as_table))

    in_folder(data, work, create=True)


@app.command("list")
def list_(
    data: Data,
    kind: Annotated[
        str | None,
        Option(
            "--type",
            metavar="TYPE",
            help=f"Only objects of this type: {', '.join(OBJECT_TYPES)}, or a number.",
        ),
    ] = None,
    as_json: AsJson = False,
    as_table: AsTable = False,
) -> None:
    """List the objects of the bindery, queues among them, by their IDs."""
    with usage("--type"):
        if kind is not None:
            type_number(kind)
    in_folder(data, lambda local: print_rows(_objects(local, kind), _COLUMNS, wants_table(as_json, as_table)))


def _objects(local: Local, kind: str | None) -> Iterator[dict[str, Any]]:
    after = 0
    while True:
        answer = local.call("object_list", type=kind, after=after)
        yield from answer["objects"]
        if not answer["more"]:
            return
        after = int(answer["objects"][-1]["id"], 16)


@app.command("show")
def show(name: Name, data: Data, as_json: AsJson = False, as_table: AsTable = False) -> None:
    """Show an object with its properties; the value of a password is never shown."""
    in_folder(
        data, lambda local: print_one(local.call("object_show", name=name), wants_table(as_json, as_table))
    )


@app.command("password")
def password(
    name: Name,
    data: Data,
    remove: Annotated[
        bool, Option("--remove", help="Remove its password: anybody can log in by its name then.")
    ] = False,
    as_json: AsJson = False,
    as_table: AsTable = False,
) -> None:
    """Set the password of an object. A terminal is asked for it twice, else standard input has it.

    Capitals and small letters are the same. The object logs in by it from now on; connections that it has
    stay logged in.
    """

    def work(local: Local) -> None:
        shown = local.call("object_show", name=name)  # a wrong name is reported before the question
        whose = f"{safe(shown['name'])}:{shown['type']}"
        new = None if remove else new_password(whose)
        answer = local.call("object_password", name=whose, password=new)
        if wants_table(as_json, as_table):
            print(f"{whose} {'logs in by its new password' if new else 'has no password'}.")
        else:
            print_one(answer, table=False)

    in_folder(data, work)


@app.command("delete")
def delete(name: Name, data: Data, as_json: AsJson = False, as_table: AsTable = False) -> None:
    """Delete an object. It leaves all groups and sets; jobs that it has submitted stay."""
    in_folder(
        data, lambda local: print_one(local.call("object_delete", name=name), wants_table(as_json, as_table))
    )
