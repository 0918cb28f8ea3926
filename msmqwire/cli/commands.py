"""The commands of the command line, each imported when it is asked for: no command needs what all need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, Final

import typer
import typer.core
import typer.main

_PLACES: Final = {
    "parse": ("parse", "command"),
    "build": ("build", "command"),
    "dissect": ("dissect", "command"),
    "lint": ("lint", "command"),
    "pcap": ("pcap", "command"),
    "ping": ("ping", "command"),
    "fate": ("fate", "command"),
    "report": ("report", "command"),
    "lake": ("lake", "command"),
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
    "top": ("top", "command"),
    "netware": ("netware", "app"),
}
"""The module of each command, and what it is there: a function, or a group."""


class LazyCommands(Mapping[str, Any]):
    """Commands by name, each imported when it is asked for."""

    def __init__(self, places: Mapping[str, tuple[str, str]]) -> None:
        self._places = places

    def __getitem__(self, name: str) -> Any:
        module, attribute = self._places[name]
        return _command(name, module, attribute)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@cache
def _command(name: str, module: str, attribute: str) -> Any:
    app = getattr(import_module(f"msmqwire.cli.{module}"), attribute)
    if not isinstance(app, typer.Typer):
        function, app = app, typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name)(function)
    return typer.main.get_command(app)


class LazyGroup(typer.core.TyperGroup):
    """The group of these commands."""

    places: ClassVar[Mapping[str, tuple[str, str]]] = _PLACES

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = LazyCommands(self.places)
