"""``msmqwire definitions export | import``: queues, policies and settings as one JSON object."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Annotated, Any, Final

from click import BadParameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from msmqwire.cli.api_client import ApiClient, TokenFile, is_url
from msmqwire.cli.common import NoInput
from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.options import Argument, Group, Option
from msmqwire.cli.progress import waiting_shown
from msmqwire.errors import InvalidValue, StoreRefused, Unreachable
from msmqwire.json_text import dumps
from msmqwire.names.printable import counted, safe
from msmqwire.ownership import write_secret
from msmqwire.qm.runtime.definitions.text import SIZE_MAX, check_size, parse_definitions
from msmqwire.qm.runtime.folder_operations import IMPORT_FILE
from msmqwire.qm.runtime.local import attach

app = Group("definitions", "Export and import queues, policies, certificates and settings.")

Place = Annotated[
    str, Argument(metavar="DIR|URL", help="Folder of a queue manager, or the URL of its console.")
]
_PATH: Final = "/api/v1/definitions"
_INLINE: Final = 8 << 20
"""Bytes of definitions in one request; more are handed over in the folder."""
_REFUSED: Final = (400, 413, 415, 422)


def _check_token(place: str, token_file: str | None) -> None:
    if token_file is not None and not is_url(place):
        raise BadParameter("it is for a URL", param_hint="--token-file")


@app.command("export")
def export(
    place: Place,
    with_secrets: Annotated[
        bool, Option("--with-secrets", help="Include private keys: keep the output secret.")
    ] = False,
    token_file: TokenFile = None,
) -> None:
    """Print the definitions as one JSON object, which import reads; messages and counts are not in it."""
    _check_token(place, token_file)

    def run() -> None:
        with waiting_shown(lambda: "reading the definitions"):
            if is_url(place):
                query = "?with_secrets=true" if with_secrets else ""
                found = ApiClient(place, token_file).done("GET", _PATH + query)
            else:
                with attach(place) as local:
                    found = local.call("definitions_export", secrets=with_secrets)["definitions"]
        print(dumps(found, indent=1))

    run_reporting_errors(run)


@app.command("import")
def import_(
    place: Place,
    file: Annotated[Path, Argument(metavar="FILE", help="The definitions, as export prints them.")],
    dry_run: Annotated[bool, Option("--dry-run", help="Print what would change; change nothing.")] = False,
    token_file: TokenFile = None,
    as_json: Annotated[bool, Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Create and change what a file defines: everything in it, or nothing. Nothing is deleted.

    What the file does not mention stays as it is. A setting is used from the next start of the server on.

    Exit statuses: 0 if all is as the file says; 65 for a wrong item, which is named, and for a file of more
    than 64 MiB; 66 for a missing file or folder; 69 if the server is not there or refuses.
    """
    _check_token(place, token_file)

    def run() -> None:
        content = _content(file)
        definitions = parse_definitions(content)
        with waiting_shown(lambda: "importing the definitions"):
            if is_url(place):
                changes = _by_api(ApiClient(place, token_file), definitions, dry_run=dry_run)
            else:
                changes = _in_folder(Path(place), content, definitions, dry_run=dry_run)
        _show(changes, as_json, dry_run=dry_run)

    run_reporting_errors(run)


def _content(file: Path) -> bytes:
    """Return the content of a file. Raises NoInput, and InvalidValue for one that is too large, unread."""
    try:
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            if stat.S_ISREG(status.st_mode):
                check_size(status.st_size)
            content = opened.read(SIZE_MAX + 1)
    except InvalidValue as exc:
        raise InvalidValue(f"{file}: {exc.why}", path=exc.path) from None
    except OSError as exc:
        raise NoInput(f"{file}: {exc.strerror or exc}") from None
    check_size(len(content))
    return content


def _in_folder(
    folder: Path, content: bytes, definitions: dict[str, Any], *, dry_run: bool
) -> list[dict[str, str]]:
    with attach(folder) as local:
        if len(content) <= _INLINE:
            answer = local.call("definitions_import", definitions=definitions, dry_run=dry_run)
        else:
            try:
                write_secret(folder / IMPORT_FILE, content)
            except OSError as exc:
                raise StoreRefused(exc.strerror or str(exc), file=str(folder / IMPORT_FILE)) from None
            try:
                answer = local.call("definitions_import", file=True, dry_run=dry_run)
            finally:
                (folder / IMPORT_FILE).unlink(missing_ok=True)
    changes: list[dict[str, str]] = answer["changes"]
    return changes


def _by_api(client: ApiClient, definitions: dict[str, Any], *, dry_run: bool) -> list[dict[str, str]]:
    """Import by the API. Raises InvalidValue for a wrong item, and Unreachable."""
    status, told = client.ask("POST", _PATH + ("?dry_run=true" if dry_run else ""), definitions)
    detail = told.get("detail") if isinstance(told, dict) else None
    if status in _REFUSED:
        raise InvalidValue(str(detail), path=str(told.get("path") or "") if isinstance(told, dict) else "")
    if status >= 300 or not isinstance(told, dict) or not isinstance(told.get("changes"), list):
        raise Unreachable(f"{client.url}: {detail or 'refused'} ({status})")
    changes: list[dict[str, str]] = told["changes"]
    return changes


def _show(changes: list[dict[str, str]], as_json: bool, *, dry_run: bool) -> None:
    if as_json or not sys.stdout.isatty():
        for change in changes:
            print(dumps(change))
        return
    if changes:
        table = Table("change", "kind", "name", box=None, pad_edge=False)
        for change in changes:
            table.add_row(*(Text(safe(str(change[name]))) for name in ("change", "kind", "name")))
        Console().print(table)
    made = "would be made" if dry_run else "made"
    print(f"{counted(len(changes), 'change')} {made}" if changes else "everything is as the file says")
