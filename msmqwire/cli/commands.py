"""The commands of the command line, each imported only when it is asked for."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final

import click

from msmqwire.cli.options import Command, Group, command

if TYPE_CHECKING:
    from msmqwire.cli.protocols.protocol import CommandGroup

_PLACES: Final = {
    "dissect": ("captures.dissect", "command"),
    "lint": ("captures.lint", "command"),
    "fate": ("captures.fate", "command"),
    "report": ("captures.report", "command"),
    "pcap": ("captures.pcap", "command"),
    "parse": ("parse", "command"),
    "build": ("build", "command"),
    "body": ("body", "app"),
    "lake": ("captures.lake", "command"),
    "export": ("export", "app"),
    "send": ("send", "command"),
    "receive": ("reading", "receive"),
    "peek": ("reading", "peek"),
    "move": ("reading", "move"),
    "purge": ("remote_reading", "purge"),
    "serve": ("serve", "command"),
    "queue": ("queue", "app"),
    "policy": ("policy", "app"),
    "definitions": ("definitions", "app"),
    "settings": ("settings", "app"),
    "manage": ("managing.command", "command"),
    "check": ("check", "command"),
    "drain": ("drain", "command"),
    "top": ("top", "command"),
    "exporter": ("exporter", "command"),
    "explain": ("explain", "command"),
    "ping": ("ping", "command"),
    "fuzz": ("fuzz", "command"),
    "key": ("key", "app"),
    "cert": ("cert", "app"),
    "token": ("token", "app"),
}
"""The module of each command, and its name there: a function, or a group."""
_SUMMARIES: Final = {
    "dissect": ("Dissect captures: name, decode and judge every MSMQ packet in them{over}."),
    "lint": "Judge {judged}{calls}.",
    "fate": "Trace each message in captures: the state it reached, and the reason if it is stuck.",
    "report": "Write a report of captures: one page for the browser that works without a network.",
    "pcap": (
        "Write the frames that carry MSMQ packets to a capture: all of them, or those that the options "
        "choose."
    ),
    "parse": ("Parse one packet and print it as one JSON object{parsed}."),
    "build": "Build the bytes of a packet from the JSON object that parse prints.",
    "body": "Decode bodies of messages, and encode values as bodies.",
    "lake": "Decode captures into a lake: Parquet files by date, to which later runs add new packets.",
    "export": "Write files for other tools: a dissector for Wireshark, a manual page, shell completion.",
    "send": (
        "Send a message: with --data through a queue manager here, else straight to the computer of the "
        "queue."
    ),
    "receive": "Take messages out of a queue and print them; nothing is printed if none arrives in time.",
    "peek": "Print messages of a queue and leave them there.",
    "move": "Move messages between a queue and its subqueues, which are made if they are missing.",
    "purge": "Delete the messages of a queue of another computer; see queue purge for those of a folder.",
    "serve": (
        "Run a queue manager: it keeps queues in a folder, and exchanges messages with other computers."
    ),
    "queue": "Administer the queues of a folder.",
    "definitions": "Export and import queues, policies, certificates and settings.",
    "settings": "Keep options of serve in its folder.",
    "policy": "Give many queues properties at once, by their names.",
    "manage": "See and steer the queues of another computer, a Windows server for example.",
    "check": (
        "Check whether a server is ready, or that everything that was stored in a folder is there and right."
    ),
    "drain": "Drain a server before it is stopped: nothing new begins, and what is under way ends.",
    "top": "Watch the queues, sessions and counters of a queue manager; q quits.",
    "exporter": "Export metrics of the queues of many computers, Windows or msmqwire, to Prometheus.",
    "explain": "Explain codes of MSMQ: what they mean, what usually causes them, and what to do.",
    "ping": ("Ping a queue manager, as [MS-MQQB] 2.1.2 has it, and open a session with it."),
    "fuzz": (
        "Test a peer by property, and keep the evidence of each failure: a capture, a seed to replay, a test."
    ),
    "key": "Administer the keys of a queue manager.",
    "cert": "Administer the certificates of users.",
    "token": "Administer the tokens of the HTTP API.",
}
"""The first sentence of the help of each command: a list of commands imports none of them.

Marks as ``{over}`` stand for protocols: see `msmqwire.cli.protocols.texts`.
"""
_SECTIONS: Final = {
    "dissect": "Captures and packets",
    "lake": "Tables and other tools",
    "send": "Queues and messages",
    "ping": "Testing a peer",
    "key": "Keys and certificates",
}
"""The titles in the list of commands, by the first command below each."""


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


class RootCommands(LazyCommands):
    """The commands of the program: its own, then those of protocols that have joined."""

    def __getitem__(self, name: str) -> Any:
        if name in self._places:
            return super().__getitem__(name)
        return _command(name, *_joined()[name].place)

    def __iter__(self) -> Iterator[str]:
        yield from super().__iter__()
        yield from _joined()

    def __len__(self) -> int:
        return super().__len__() + len(_joined())


@cache
def _joined() -> Mapping[str, CommandGroup]:
    from msmqwire.cli.protocols import protocols  # not for a command of the program, and its version

    groups = (protocol.commands for protocol in protocols())
    return {group.name: group for group in groups if group is not None}


@cache
def _command(name: str, module: str, attribute: str) -> Command | Group:
    # Modules stay imported to the end. To look for garbage in it, meanwhile and once more at the end, takes a
    # fifth of the time of a short command.
    collects = gc.isenabled()
    gc.disable()
    try:
        found = getattr(import_module(f"msmqwire.cli.{module}"), attribute)
    finally:
        gc.freeze()
        if collects:
            gc.enable()
    return found if isinstance(found, Command | Group) else command(name, found)


class LazyGroup(Group):
    """A group whose commands are imported when they are asked for.

    Attributes:
        places: the module of each command, and its name there: a function, or a group.
        summaries: the first sentence of the help of each command.
        titles: those in the list of commands, by the first command below each.
    """

    places: ClassVar[Mapping[str, tuple[str, str]]] = _PLACES
    summaries: ClassVar[Mapping[str, str]] = _SUMMARIES
    titles: ClassVar[Mapping[str, str]] = _SECTIONS

    def __init__(self, name: str, help: str, **attributes: Any) -> None:
        super().__init__(name, help, **attributes)
        self.commands: Any = LazyCommands(self.places)

    def sections(self, ctx: click.Context) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield the list of commands, without importing them."""
        found: dict[str, list[tuple[str, str]]] = {}
        title = "Commands"
        for name in self.places:
            title = self.titles.get(name, title)
            found.setdefault(title, []).append((name, self.summaries[name]))
        yield from found.items()


class RootGroup(LazyGroup):
    """The commands of the program, and of protocols that have joined."""

    def __init__(self, name: str, help: str, **attributes: Any) -> None:
        super().__init__(name, help, **attributes)
        self.commands = RootCommands(self.places)

    def sections(self, ctx: click.Context) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield the list of commands, without importing them."""
        from msmqwire.cli.protocols.texts import filled

        for title, rows in super().sections(ctx):
            yield title, [(name, filled(summary)) for name, summary in rows]
        for group in _joined().values():
            yield group.title, [(group.name, group.summary)]
