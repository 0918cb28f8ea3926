"""``msmqwire netware files``: the bytes of all files of a queue service."""

from __future__ import annotations

from msmqwire.cli.netware.admin import Data, in_folder
from msmqwire.cli.netware.output import print_one
from msmqwire.cli.wanted_output import AsJson, AsTable, wants_table


def command(data: Data, as_json: AsJson = False, as_table: AsTable = False) -> None:
    """Show the bytes of all files, and whose they are."""
    in_folder(data, lambda local: print_one(local.call("files_show"), wants_table(as_json, as_table)))
