"""The registration by which a protocol joins the analysis of captures: see `CaptureProtocol`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

Getter: TypeAlias = Callable[[Any], Any]
"""Returns the value of a column; None where there is none."""
JoinedPacket: TypeAlias = Any
"""A packet of a protocol that has joined."""


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
        what: the noun for such names.
        names: those to propose.
        unnamed: values besides them, for things without a name.
    """

    what: str
    names: tuple[str, ...]
    unnamed: Callable[[], Collection[str]] = frozenset


class PacketBody(NamedTuple):
    """The body of the message in a packet.

    Attributes:
        body: its bytes.
        body_type: BodyType; 0 if unknown.
        extension: ExtensionData.
    """

    body: bytes
    body_type: int
    extension: bytes


class PacketFacts(NamedTuple):
    """The facts of a report about a packet, besides its summary.

    Attributes:
        protocol: the name of the protocol in a report.
        group: the value of a `msmqwire.analysis.report.facts.Group`.
        queue: the queue it is about; empty if there is none.
        label: the label of the message in it; empty if there is none.
        body_size: bytes of the body of the message that it carries; None if it carries none.
        identity: distinguishes a message from other messages; None if nothing does.
        is_again: whether its protocol says that it was sent before.
    """

    protocol: str
    group: str
    queue: str = ""
    label: str = ""
    body_size: int | None = None
    identity: tuple[str, int] | None = None
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
        stream_ports: those of TCP on which its traffic is looked for.
        datagram_ports: those of UDP.
        streams: its `Dissector` classes.
        datagrams: its `DatagramDissector` classes.
        lint: the function that judges one packet.
        lint_names: its exports in `msmqwire.analysis.lint`, by name. Their modules register its checks.
        columns: its columns by group.
        attributes: returns the getters of the columns that a packet can have.
        values: the names that its columns can have, by column.
        summary: returns a packet in one line, with the number of its exchange.
        placed_fields: the function that yields the fields of a packet with its bytes, and their places.
        facts: returns the facts that a report shows of a packet, by its transport.
        kind_of: returns the name of a packet.
        to_json: returns the fields of a packet.
        body: returns the body of the message in a packet; None if there is none.
        signature_status: returns the status of the signature of a message, as known without keys; None
            without one.
        enclosed: returns the content of this protocol that a packet of MSMQ encloses, as an object; None if
            nothing.
        apdu: the function that reads a message that PGM carries, and judges it if asked to; None for other
            protocols.
        lint_bytes: the function that judges bytes, which may be malformed; for `msmqwire.lint`.
        of_cut: the ids of findings that bytes may have because a capture has left out some.
        scapy: the module with its layers, which has the functions `bind` and `stream_layer`.
        fuzz: the modules of `fuzz.readers` with its targets.
        readings: the class of its readings; None if no field is read in several ways.
    """

    name: str
    order: int
    packet: type
    kinds: tuple[str, ...]
    stream_ports: tuple[int, ...] = ()
    datagram_ports: tuple[int, ...] = ()
    streams: tuple[str, ...] = ()
    datagrams: tuple[str, ...] = ()
    lint: str
    lint_names: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, tuple[ProtocolColumn, ...]]
    attributes: Callable[[Any], Mapping[str, Getter]]
    values: Mapping[str, NameSet] = field(default_factory=dict)
    summary: Callable[[Any, int | None], str]
    placed_fields: str
    facts: Callable[[Any, str], PacketFacts]
    kind_of: Callable[[Any], str]
    to_json: Callable[[Any], dict[str, Any]]
    body: Callable[[Any], PacketBody | None] | None = None
    signature_status: Callable[[Any], str | None] | None = None
    enclosed: Callable[[Any], dict[str, Any] | None] | None = None
    apdu: str = ""
    lint_bytes: str = ""
    of_cut: tuple[str, ...] = ()
    scapy: str
    fuzz: tuple[str, ...] = ()
    readings: type[ProtocolReadings] | None = None
