"""Shared by the commands that change keys and certificates of a folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from msmqwire.cli.options import Option
from msmqwire.errors import StoreMissing
from msmqwire.json_text import dumps
from msmqwire.names.printable import safe
from msmqwire.qm.runtime.data_folder import DataFolder
from msmqwire.qm.runtime.key_ring import KeyFile
from msmqwire.service.control.client import server_of

Data = Annotated[Path, Option(help="Folder of the queue manager.")]
AsJson = Annotated[bool, Option("--json", help="One JSON object a line.")]


def key_file(data: Path, *, create: bool = False) -> KeyFile:
    """Return the file with the keys of a folder; make the folder if it is missing.

    Raises the subclasses of StoreError.
    """
    if create:
        DataFolder(data).create()
    elif not data.is_dir():
        raise StoreMissing("there is no such folder", file=str(data))
    return KeyFile(data)


def tell_server(data: Path) -> None:
    """Let the server of a folder, if one runs, use its keys and users as they are now.

    Raises InvalidValue and QueueError if it can't, and Unreachable.
    """
    server = server_of(DataFolder(data))
    if server is not None:
        with server:
            server.call("refresh_keys")


def show_rows(rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    """Print rows with the same columns: as JSON lines, or on a terminal as a table."""
    if as_json or not sys.stdout.isatty():
        for row in rows:
            print(dumps(row))
        return
    if not rows:
        return
    table = Table(*rows[0], box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(safe("-" if value is None else str(value))) for value in row.values()))
    Console().print(table)
