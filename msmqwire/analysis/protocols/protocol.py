"""The registration by which a protocol joins the analysis of captures: see `CaptureProtocol`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

Getter: TypeAlias = Callable[[Any], Any]
"""Returns the value of a column; None where there is none."""


class JoinedPacket(Protocol):
    """A packet of a protocol that has joined."""

    @property
    def kind(self) -> str:
        """Its name."""

    def to_json(self) -> dict[str, Any]:
        """Return its fields."""


class ProtocolColumn(NamedTuple):
    """A column of a protocol.

    Attributes:
        name: snake_case.
        type: the name of its type in `msmqwire.tables.columns`: TEXT, INT32, INT64, BOOL, BINARY, SECONDS.
        meaning: one line, with the unit if it has one.
    """

    name: str
    type: str
    meaning: str


class NameSet(NamedTuple):
    """The names that the values of a column are out of.

    Attributes:
        what: the kind of thing that they name.
        names: those to propose.
        unnamed: values besides them, for things without a name.
    """

    what: str
    names: tuple[str, ...]
    unnamed: Callable[[], Collection[str]] = frozenset


class PacketFacts(NamedTuple):
    """The facts of a report about a packet, besides its summary.

    Attributes:
        group: the value of a `msmqwire.analysis.report.facts.Group`.
        queue: the queue it is about; empty if there is none.
        label: the label of the message in it; empty if there is none.
        is_again: whether its protocol says that it was sent before.
    """

    group: str
    queue: str = ""
    label: str = ""
    is_again: bool = False


class ProtocolReadings(Protocol):
    """The class of the readings of a protocol: one value for each field that sources describe differently."""

    @classmethod
    def fields(cls) -> Mapping[str, tuple[str, ...]]:
        """Return the names of all fields with the values that each can have, the default first."""

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Any:
        """Return the readings with these values. Raises InvalidArgument."""


@dataclass(frozen=True, kw_only=True)
class CaptureProtocol:
    """A protocol as the analysis of captures knows it.

    Parts that need more than the bytes of the protocol, as dissectors and lint, are named as ``module:name``
    and imported when they are asked for.

    Attributes:
        name: that of its module in `msmqwire.analysis.protocols`.
        order: its place among the protocols: the lower is asked first, and listed first.
        packet: the class of its packets.
        kinds: the names that its packets have.
        ports: those of TCP and UDP on which its traffic is looked for.
        streams: its `Dissector` classes.
        datagrams: its `DatagramDissector` classes.
        lint: the function that judges one packet.
        lint_names: its exports in `msmqwire.analysis.lint`, by name. Their modules register its checks.
        columns: its columns by group.
        attributes: returns the getters of the columns that a packet can have.
        values: the names that its columns can have, by column.
        summary: returns a packet in one line, with the number of its exchange.
        placed_fields: the function that yields the fields of a packet with its bytes, and their places.
        title: its name in a report.
        facts: returns what a report says of a packet.
        scapy: the module with its layers, which has the functions `bind` and `stream_layer`.
        fuzz: the modules of `fuzz.readers` with its targets.
        readings: the class of its readings; None if no field is read in several ways.
    """

    name: str
    order: int
    packet: type
    kinds: tuple[str, ...]
    ports: tuple[int, ...] = ()
    streams: tuple[str, ...] = ()
    datagrams: tuple[str, ...] = ()
    lint: str
    lint_names: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, tuple[ProtocolColumn, ...]]
    attributes: Callable[[Any], Mapping[str, Getter]]
    values: Mapping[str, NameSet] = field(default_factory=dict)
    summary: Callable[[Any, int | None], str]
    placed_fields: str
    title: str
    facts: Callable[[Any], PacketFacts]
    scapy: str
    fuzz: tuple[str, ...] = ()
    readings: type[ProtocolReadings] | None = None
