"""``msmqwire netware``: NetWare's queue services, a server of them and a client, and their bindery."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import typer

from msmqwire.cli.commands import LazyGroup

_CLIENT: Final = ("queues", "jobs", "show", "submit", "hold", "release", "position", "move", "remove")


class _NetwareGroup(LazyGroup):
    """The commands of NetWare's queue services."""

    places: ClassVar[Mapping[str, tuple[str, str]]] = {
        "serve": ("netware_serve", "command"),
        "object": ("netware_objects", "app"),
        "queue": ("netware_queues", "app"),
        **{name: ("netware_client", name) for name in _CLIENT},
        "service": ("netware_service", "command"),
    }


app = typer.Typer(cls=_NetwareGroup, add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def main() -> None:
    """NetWare's queue services: a server, its bindery and queues, and a client."""
