"""The registration by which a protocol joins the analysis of captures: see `CaptureProtocol`.

It has a part for each consumer, which sees that part alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from msmqwire.schema import Record

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


class TextForm(NamedTuple):
    """The form that all values of a column have.

    Attributes:
        what: their kind.
        form: returns the text in the form that a column has; raises ValueError if it has none.
        alphabet: the characters of such texts.
        example: one of them.
    """

    what: str
    form: Callable[[str], str]
    alphabet: str
    example: str


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


class EnclosedMessage(Protocol):
    """A message of MSMQ inside of a packet."""

    @property
    def whole(self) -> Record:
        """The packet of the message."""

    @property
    def body_size(self) -> int:
        """The bytes of its body."""

    @property
    def time_to_reach_queue(self) -> int:
        """Its time to reach the queue, seconds."""

    @property
    def cut(self) -> bool:
        """Whether a part of it was left out."""


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


def _no_attributes(_packet: Any) -> Mapping[str, Getter]:
    return _NO_ATTRIBUTES


_NO_ATTRIBUTES: Final[Mapping[str, Getter]] = {}


class Packets(NamedTuple):
    """The packets of a protocol, for all that shows or counts packets.

    Attributes:
        type: their class.
        kinds: the names that they have; of several, each packet has its own as `kind`.
        to_json: returns the part of a packet in the JSON object of its item: ``fields``, and others.
        summary: returns a packet in one line, with the number of its exchange.
        facts: returns the facts that a report shows of a packet, by its transport.
        placed_fields: the function that yields the fields of a packet with its bytes, and their places.
        body: returns the body of the message in a packet; None if there is none.
        signature_status: returns the status of the signature of a message, as known without keys; None
            without one.
        message: the attribute of a packet that has the message of MSMQ in it, as remote read returns one;
            empty if no packet has.
    """

    type: type
    kinds: tuple[str, ...]
    to_json: Callable[[Any], dict[str, Any]]
    summary: Callable[[Any, int | None], str]
    facts: Callable[[Any, str], PacketFacts]
    placed_fields: str
    body: Callable[[Any], PacketBody | None] | None = None
    signature_status: Callable[[Any], str | None] | None = None
    message: str = ""

    def kind_of(self, packet: Any) -> str:
        """Return the name of a packet."""
        name: str = self.kinds[0] if len(self.kinds) == 1 else packet.kind
        return name

    def message_in(self, packet: Any) -> EnclosedMessage | None:
        """Return the message of MSMQ in a packet; None if there is none."""
        return getattr(packet, self.message) if self.message else None


class Traffic(NamedTuple):
    """The place of a protocol in captures, for dissection and for the scan of columns.

    Attributes:
        dissectors: its `Dissector` and `DatagramDissector` classes.
        stream_ports: the ports of TCP on which it is looked for.
        datagram_ports: those of UDP.
        in_messages: returns the content of this protocol that a packet of MSMQ encloses, as an object; None
            if nothing.
        in_payloads: the function that reads a message that a transport protocol as PGM carries, and judges it
            if asked to; it returns None for other protocols.
        readings: the class of its readings; None if no field is read in several ways.
        reduce: the function that pickles objects of its state that pickle has no name for: `state_pickle`.
        interface: the `CapturedInterface` class of its calls, of a protocol over DCE/RPC.
    """

    dissectors: tuple[str, ...]
    stream_ports: tuple[int, ...] = ()
    datagram_ports: tuple[int, ...] = ()
    in_messages: Callable[[Any], dict[str, Any] | None] | None = None
    in_payloads: str = ""
    readings: type[ProtocolReadings] | None = None
    reduce: str = ""
    interface: str = ""


class Judging(NamedTuple):
    """The checks of a protocol, for lint.

    Attributes:
        judge: the function that judges one packet. Its module registers checks, or imports those that do.
        judge_bytes: the function that judges bytes, which may be malformed, for `msmqwire.lint`; empty if
            there is none.
        exports: its exports in `msmqwire.analysis.lint`. Their modules register its checks.
        of_cut: the ids of findings that bytes may have because a capture has left out some.
        judge_stub: the function that returns the rule which a stub of DCE/RPC breaks that can't be read, by
            the bytes and the error; None for a stub of another protocol. Empty if it has none.
    """

    judge: str
    judge_bytes: str = ""
    exports: tuple[str, ...] = ()
    of_cut: tuple[str, ...] = ()
    judge_stub: str = ""


class Columns(NamedTuple):
    """The columns of a protocol, for tables and filters.

    Attributes:
        groups: its columns by group.
        attributes: returns the getters of the columns that a packet can have: one object for all that are
            alike, which stays.
        values: the values that its columns can have, by column.
        queue: the column with the queue that a packet is about; empty if filters by queue do not take it.
        is_later: whether lakes that are no tables yet were made before it had them.
    """

    groups: Mapping[str, tuple[ProtocolColumn, ...]] = {}
    attributes: Callable[[Any], Mapping[str, Getter]] = _no_attributes
    values: Mapping[str, NameSet | TextForm] = {}
    queue: str = ""
    is_later: bool = False

    def value(self, column: str, packet: Any) -> Any:
        """Return the value of a column; None if the packet does not have it."""
        getter = self.attributes(packet).get(column)
        return None if getter is None else getter(packet)


class LuaPart(NamedTuple):
    """The part of a protocol in the script for Wireshark.

    Attributes:
        declarations: the file in ``plugins/wireshark/lua`` that declares its fields.
        functions: the file with its functions and dissectors.
        in_message: the line that shows its content of a message; empty if there is none in messages.
        constants: the numbers that stand as ``@NAME@`` in these files, by name.
    """

    declarations: str
    functions: str
    in_message: str = ""
    constants: Mapping[str, int] = {}


class Plugins(NamedTuple):
    """The parts of a protocol in other programs.

    Attributes:
        scapy: the module with its layers, which has the functions `bind` and `stream_layer`.
        lua: its part of the script for Wireshark; None if the script does not have it.
        fuzz: the modules of `fuzz.readers` with its targets.
    """

    scapy: str
    lua: LuaPart | None = None
    fuzz: tuple[str, ...] = ()


class CaptureProtocol(NamedTuple):
    """A protocol as the analysis of captures knows it.

    Parts that need more than the bytes of the protocol, as dissectors and lint, are named as ``module:name``
    and imported when they are asked for.

    Attributes:
        name: that of its module in `msmqwire.analysis.protocols`.
        order: its place among the protocols: the lower is asked first, and listed first.
        packets: its packets.
        traffic: its place in captures.
        judging: its checks.
        plugins: its parts in other programs.
        columns: its columns.
        follower: the `Follower` class for the fates of its messages; empty if it carries none.
    """

    name: str
    order: int
    packets: Packets
    traffic: Traffic
    judging: Judging
    plugins: Plugins
    columns: Columns = Columns()
    follower: str = ""
