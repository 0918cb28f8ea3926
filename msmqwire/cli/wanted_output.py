"""The choice between tables for people and lines of JSON for programs."""

from __future__ import annotations

import sys
from typing import Annotated

from msmqwire.cli.options import Option

AsJson = Annotated[bool, Option("--json", help="One JSON object a line.")]
AsTable = Annotated[bool, Option("--table", help="A table for people; the default on a terminal.")]


def wants_table(as_json: bool, as_table: bool) -> bool:
    """Return whether people are to read the output."""
    return as_table or (sys.stdout.isatty() and not as_json)
