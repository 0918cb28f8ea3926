"""The commands of the command line, each imported when it is asked for: no command needs what all need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final

import typer
import typer.core
import typer.main

_PLACES: Final = {
    "parse": ("parse", "command"),
    "build": ("build", "command"),
    "dissect": ("dissect", "command"),
    "lint": ("lint", "command"),
    "serve": ("serve", "command"),
    "send": ("send", "command"),
    "receive": ("reading", "receive"),
    "peek": ("reading", "peek"),
    "purge": ("remote_reading", "purge"),
    "move": ("reading", "move"),
    "queue": ("queue", "app"),
    "key": ("key", "app"),
    "cert": ("cert", "app"),
    "fuzz": ("fuzz", "command"),
    "export": ("export", "app"),
}
"""The module of each command, and what it is there: a function, or a group."""


class _Commands(Mapping[str, Any]):
    """The commands by name."""

    def __getitem__(self, name: str) -> Any:
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


@cache
def _command(name: str) -> Any:
    """Import a command. Raises KeyError."""
    module, attribute = _PLACES[name]
    app = getattr(import_module(f"msmqwire.cli.{module}"), attribute)
    if not isinstance(app, typer.Typer):
        function, app = app, typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name)(function)
    return typer.main.get_command(app)


class LazyGroup(typer.core.TyperGroup):
    """A group of these commands."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = _Commands()
