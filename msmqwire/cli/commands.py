"""The commands of the command line, each imported when it is asked for: no command needs what all need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, Final

import click

from msmqwire.cli.options import Command, Group, command

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
_SUMMARIES: Final = {
    "parse": (
        "Parse one packet and print it as one JSON object; of RPC each PDU as an object, of NCP each unit."
    ),
    "build": "Build the bytes of a packet from the JSON object that parse prints.",
    "dissect": (
        "Dissect captures: every MSMQ packet in them, named, decoded and judged; also over HTTP, PGM and RPC."
    ),
    "lint": "Judge packets and messages of SRMP, in captures also calls of remote read and of NCP.",
    "pcap": "Write the frames that carry packets to a capture: all MSMQ packets, or those that are wanted.",
    "ping": (
        "Ask a queue manager whether it is there, by the ping of [MS-MQQB] 2.1.2, and open a session with it."
    ),
    "fate": "Say of each message in captures what became of it, and why it is stuck.",
    "report": "Write a report of captures: one page for the browser that works without a network.",
    "lake": "Decode captures into a lake: Parquet files by date, to which later runs add what is new.",
    "serve": "Run a queue manager: it takes messages from other computers and sends them there.",
    "send": (
        "Send a message, with --data by a queue manager here, else straight to the computer of the queue."
    ),
    "receive": "Take messages out of a queue and print them; nothing is printed when none comes in time.",
    "peek": "Print messages of a queue and leave them there.",
    "purge": "Delete the messages of a queue of another computer; see queue purge for those of a folder.",
    "move": "Move messages between a queue and its subqueues, which are made if they are missing.",
    "queue": "Queues of a folder.",
    "key": "Keys of a queue manager.",
    "cert": "Certificates of users.",
    "fuzz": "Test a peer by property, and keep what shows each failure: a capture, a seed to replay, a test.",
    "export": "Write what makes other tools understand the protocols.",
    "top": "Show queues, sessions and counters of a queue manager; q ends it.",
    "netware": "NetWare's queue services: a server, its bindery and queues, and a client.",
}
"""The first sentence of the help of each command: a list of commands imports none of them."""


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
def _command(name: str, module: str, attribute: str) -> Command | Group:
    found = getattr(import_module(f"msmqwire.cli.{module}"), attribute)
    return found if isinstance(found, Group) else command(name, found)


class LazyGroup(Group):
    """A group whose commands are imported when they are asked for.

    Attributes:
        places: the module of each command, and what it is there: a function, or a group.
        summaries: the first sentence of the help of each command.
    """

    places: ClassVar[Mapping[str, tuple[str, str]]] = _PLACES
    summaries: ClassVar[Mapping[str, str]] = _SUMMARIES

    def __init__(self, name: str, help: str, **attributes: Any) -> None:
        super().__init__(name, help, **attributes)
        self.commands: Any = LazyCommands(self.places)

    def sections(self, ctx: click.Context) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield the list of commands, without importing them."""
        yield "Commands", [(name, self.summaries[name]) for name in self.places]
