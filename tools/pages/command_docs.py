"""The page of all commands with their options: the output of `--help`, made when the documentation is
built.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import click

from msmqwire.cli import app

HEAD = """\
# Commands

What `--help` prints. A shell completes them after `msmqwire export completion`.
"""


def commands() -> Iterator[tuple[str, str]]:
    """Yield each command with its help, groups before their commands."""
    with patch.dict(os.environ, {"COLUMNS": "84", "NO_COLOR": "1"}):
        yield from _below(app, click.Context(app, info_name="msmqwire", terminal_width=84))


def _below(command: Any, context: click.Context) -> Iterator[tuple[str, str]]:
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from _below(
                    below, click.Context(below, info_name=name, parent=context, terminal_width=84)
                )


def page() -> str:
    """Return the page in Markdown."""
    parts = [HEAD]
    for path, text in commands():
        level = "##" if path.count(" ") < 2 else "###"
        parts.append(f"{level} {path}\n\n```text\n{text.rstrip()}\n```\n")
    return "\n".join(parts)
