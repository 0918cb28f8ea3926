"""``msmqwire token create | list | revoke``: the tokens of the API."""

from __future__ import annotations

import sys
from typing import Annotated

from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.folder_keys import AsJson, Data, show_rows
from msmqwire.cli.options import Argument, Group, Option
from msmqwire.json_text import dumps
from msmqwire.names.printable import safe
from msmqwire.qm.rules.api_tokens import Right
from msmqwire.qm.runtime.local import attach

app = Group("token", "Administer the tokens of the HTTP API.")

Name = Annotated[str, Argument(metavar="NAME", help="The name of the token.")]


@app.command("create")
def create(
    name: Name,
    data: Data,
    right: Annotated[
        Right,
        Option(
            help="read: list, show and peek; read-write: also send, receive and move; administer: everything."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Create a token, and print it this once: the folder keeps a digest of it alone.

    A request shows it as Authorization: Bearer TOKEN. A server takes changes by the API with
    --console-write only, whatever the right of the token.
    """

    def run() -> None:
        with attach(data) as local:
            created = local.call("token_create", name=name, right=right.value)
        if as_json or not sys.stdout.isatty():
            print(dumps(created))
        else:
            print(created["token"])
            print(
                f"The token of {safe(name)} is not shown again; revoke it with msmqwire token revoke.",
                file=sys.stderr,
            )

    run_reporting_errors(run)


@app.command("list")
def list_(data: Data, as_json: AsJson = False) -> None:
    """List the tokens by name, without their secrets."""

    def run() -> None:
        with attach(data) as local:
            show_rows(local.call("token_list")["tokens"], as_json)

    run_reporting_errors(run)


@app.command("revoke")
def revoke(name: Name, data: Data, as_json: AsJson = False) -> None:
    """Revoke a token: it does not hold any more, and what it has open ends."""

    def run() -> None:
        with attach(data) as local:
            revoked = local.call("token_revoke", name=name)
        if as_json or not sys.stdout.isatty():
            print(dumps(revoked))
        else:
            print(f"revoked: {safe(name)}")

    run_reporting_errors(run)
