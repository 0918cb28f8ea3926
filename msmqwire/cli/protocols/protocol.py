"""The registration by which a protocol joins the command line: see `CliProtocol`.

A list of commands reads all of them, so that their modules import nothing of the protocol itself: functions
import what they need when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple


class CommandGroup(NamedTuple):
    """A command, or a group of them, of the protocol alone.

    Attributes:
        name: its name.
        place: its module in `msmqwire.cli`, and the name there.
        summary: the first sentence of its help.
        title: the title above it in the list of commands.
        examples: the examples by command, as ``module:name``.
    """

    name: str
    place: tuple[str, str]
    summary: str
    title: str
    examples: str


class Format(NamedTuple):
    """The form of its packets in files.

    Attributes:
        name: its name as a value of ``--protocol``.
        title: its name for people.
        parse: yields packets as JSON objects. It gets the options by name; raises LocatedError, BadParameter.
        options: options of ``parse`` for this format, by name, as annotations of a parameter.
        build: returns the bytes of such an object; None if packets are not built.
        is_built: whether ``build`` knows packets of a name.
        starts: the first bytes by which it is recognised; none if it has to be named.
        packet: returns the packet that ``lint`` judges; None if it takes none.
    """

    name: str
    title: str
    parse: Callable[..., Iterable[dict[str, Any]]]
    options: Mapping[str, Any] = {}
    build: Callable[[dict[str, Any]], bytes] | None = None
    is_built: Callable[[str], bool] = bool
    starts: tuple[bytes, ...] = ()
    packet: Callable[[bytes], object] | None = None


class Enclosed(NamedTuple):
    """The protocol inside of packets of MSMQ.

    Attributes:
        header: the header that has it.
        to_json: returns it as a JSON object; None if there is none.
    """

    header: str
    to_json: Callable[[Any], dict[str, Any] | None]


class Refusals(NamedTuple):
    """The errors by which its peers refuse.

    Attributes:
        error: the name of their class in `msmqwire.errors`.
        is_missing: whether a thing is not there.
        shown: returns an error as a JSON object.
    """

    error: str
    is_missing: Callable[[Any], bool]
    shown: Callable[[Any], dict[str, object]]


class CliProtocol(NamedTuple):
    """A protocol as the command line knows it.

    Attributes:
        name: that in `msmqwire.analysis.protocols`.
        order: its place among the protocols, as there.
        words: its part of texts that name protocols, by their marks: see `texts`.
        styles: styles of its kinds of packets on a terminal.
        commands: its own commands; None if it has none.
        format: the form of its packets in files; None if no command takes them.
        enclosed: how packets of MSMQ enclose it; None if they do not.
        refusals: the errors of its peers; None if there are none of its own.
    """

    name: str
    order: int
    words: Mapping[str, str]
    styles: Mapping[str, str] = {}
    commands: CommandGroup | None = None
    format: Format | None = None
    enclosed: Enclosed | None = None
    refusals: Refusals | None = None
