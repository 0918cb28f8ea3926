"""The state of a queue manager and of its queues, from the values of management properties.

[MS-MQMR] 2.2.3, [MS-MQMQ] 2.3.11 and 2.3.12. A value is None where it is not reported; `unavailable` has the
reason where a value came that is none of its property's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from struct import Struct
from types import MappingProxyType
from typing import Any, Final, Self
from uuid import UUID

from msmqwire.constants import (
    CONNECTION_HISTORY_VECTORS,
    CONNECTION_STATUS,
    SOURCE_INFO_VECTORS,
    ManagementMachineProperty,
    ManagementQueueProperty,
    VarEnum,
)
from msmqwire.management.variants import plain
from msmqwire.names.printable import counted

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_NO_VALUE: Final = (int(VarEnum.VT_NULL), int(VarEnum.VT_EMPTY))
_SEQUENCE_INFO: Final = Struct("<qII")
_TEXTS: Final = VarEnum.VT_LPWSTR | VarEnum.VT_VECTOR
_VARIANTS: Final = VarEnum.VT_VARIANT | VarEnum.VT_VECTOR
_FAILURE: Final = 0x80000000
_JOURNAL: Final = ";JOURNAL"


class _NotValue(Exception):
    """A value is none of its property's; the text says why."""


@dataclass(frozen=True, slots=True)
class SequencePosition:
    """A message in a transactional sequence: SEQUENCE_INFO, [MS-MQMQ] 2.2.5.1.

    Attributes:
        sequence: the sequence, signed.
        number: the number of the message in it.
        previous: that of the message before it.
    """

    sequence: int
    number: int
    previous: int

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read SEQUENCE_INFO, little-endian in big-endian PDUs too: MQMR-2.2.3-10. Raises ValueError."""
        if len(data) != _SEQUENCE_INFO.size:
            raise ValueError(f"{counted(len(data), 'byte')}, not {_SEQUENCE_INFO.size}")
        return cls(*_SEQUENCE_INFO.unpack(data))

    def to_bytes(self) -> bytes:
        """Return SEQUENCE_INFO."""
        return _SEQUENCE_INFO.pack(self.sequence, self.number, self.previous)

    def to_json(self) -> dict[str, Any]:
        """Return the members."""
        return {"sequence": self.sequence, "number": self.number, "previous": self.previous}


@dataclass(frozen=True, slots=True)
class Eod:
    """The transactional transfer out of a queue, its exactly-once delivery: [MS-MQMQ] 2.3.12.13 to 2.3.12.23.

    Attributes:
        last_ack: the last message that was acknowledged in order, while some are not.
        last_ack_time: when that acknowledgment came; None for never.
        last_ack_count: how many times it came.
        first_non_ack: the first message sent that has no order acknowledgment.
        last_non_ack: the last one.
        next_sequence: the next message to be sent.
        no_read_count: messages with an order acknowledgment and no receive acknowledgment.
        no_ack_count: messages sent that have no order acknowledgment.
        resend_time: the next attempt to send them again; None for none.
        resend_interval: seconds between attempts.
        resend_count: how many times the last message was sent.
    """

    last_ack: SequencePosition | None = None
    last_ack_time: datetime | None = None
    last_ack_count: int | None = None
    first_non_ack: SequencePosition | None = None
    last_non_ack: SequencePosition | None = None
    next_sequence: SequencePosition | None = None
    no_read_count: int | None = None
    no_ack_count: int | None = None
    resend_time: datetime | None = None
    resend_interval: int | None = None
    resend_count: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the members: times as text, sequences as objects."""
        return _members(self)


@dataclass(frozen=True, slots=True)
class ConnectionEvent:
    """A state that the connections of an outgoing queue have reached: [MS-MQMQ] 2.3.12.25.

    Attributes:
        time: when; None if the queue manager does not say.
        status: a key of `msmqwire.constants.CONNECTION_STATUS`; with the high bit set a failure.
        error: an HRESULT or another code, 0 for none.
        addresses: those of the other side.
    """

    time: datetime | None
    status: int
    error: int
    addresses: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the state is a failure."""
        return bool(self.status & _FAILURE)

    def to_json(self) -> dict[str, Any]:
        """Return ``{"time", "status", "error", "addresses"}``, the status in words."""
        return {
            "time": _text_of(self.time),
            "status": CONNECTION_STATUS.get(self.status, f"0x{self.status:08X}"),
            "error": f"0x{self.error:08X}" if self.error else None,
            "addresses": list(self.addresses),
        }


@dataclass(frozen=True, slots=True)
class Source:
    """What one sender of transactional messages has sent to a queue: [MS-MQMQ] 2.3.12.24.

    Attributes:
        format_name: the queue, as the sender names it.
        sender: the queue manager of the sender.
        sequence: the last sequence.
        number: the last message in it.
        last_access: when that came; None for never.
        rejected: how many of its messages were rejected.
    """

    format_name: str
    sender: UUID
    sequence: int
    number: int
    last_access: datetime | None
    rejected: int

    def to_json(self) -> dict[str, Any]:
        """Return the members."""
        return _members(self)


@dataclass(frozen=True, slots=True)
class MachineReport:
    """The state of a queue manager: [MS-MQMQ] 2.3.11.

    Attributes:
        host: the host that was asked.
        active_queues: format names of the queues that hold messages or are open, outgoing ones among them.
        private_queues: path names of the private queues.
        directory_server: the directory server in use; None without one.
        connected: whether the queue manager transfers messages, not taken off the network.
        type: versions of operating system and MSMQ, as text.
        bytes_all_queues: bytes of messages in all queues.
        unavailable: for attributes whose value could not be had, the reason.
    """

    host: str
    active_queues: tuple[str, ...] | None = None
    private_queues: tuple[str, ...] | None = None
    directory_server: str | None = None
    connected: bool | None = None
    type: str | None = None
    bytes_all_queues: int | None = None
    unavailable: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the members; names that are not reported are null."""
        return _members(self)


@dataclass(frozen=True, slots=True)
class QueueReport:
    """The state of a queue: [MS-MQMQ] 2.3.12.

    Attributes:
        asked: the name by which it was asked for.
        type: PUBLIC, PRIVATE, MACHINE, CONNECTOR or MULTICAST.
        location: LOCAL, or REMOTE for an outgoing queue.
        foreign: whether it is a foreign queue; None for unknown, too.
        messages: number of messages.
        bytes: bytes of them; 0xFFFFFFFF for 4 GiB and more, as for `journal_bytes`.
        journal_messages: number of messages in its journal.
        state: LOCAL CONNECTION, or the state of an outgoing queue: CONNECTED, WAITING, NEED VALIDATION, ...
        next_hops: addresses of the next hop, of a queue that is connected or waiting.
        eod: the transactional transfer out of it; None for a queue that is not outgoing.
        sources: what transactional senders have sent to it.
        connection_history: the latest states of connections, of an outgoing queue, as they were reported.
        subqueues: their names.
        reason: why it could not be asked; None if it could.
        unavailable: for attributes whose value could not be had, the reason.
    """

    asked: str
    path: str | None = None
    format_name: str | None = None
    type: str | None = None
    location: str | None = None
    transactional: bool | None = None
    foreign: bool | None = None
    messages: int | None = None
    bytes: int | None = None
    journal_messages: int | None = None
    journal_bytes: int | None = None
    state: str | None = None
    next_hops: tuple[str, ...] = ()
    eod: Eod | None = None
    sources: tuple[Source, ...] = ()
    connection_history: tuple[ConnectionEvent, ...] = ()
    subqueues: tuple[str, ...] | None = None
    reason: str | None = None
    unavailable: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its path name, else its format name, else the name by which it was asked for.

        Several outgoing queues may have one path name: their format names tell them apart. A journal may have
        that of its queue, and has a suffix here.
        """
        if self.outgoing:
            return self.format_name or self.path or self.asked
        name = self.path or self.format_name or self.asked
        is_journal = (self.format_name or "").upper().endswith(_JOURNAL)
        return name + _JOURNAL if is_journal and not name.upper().endswith(_JOURNAL) else name

    @property
    def outgoing(self) -> bool:
        """Whether it is an outgoing queue."""
        return self.location == "REMOTE"

    def to_json(self) -> dict[str, Any]:
        """Return the members; `path` is the name that was asked for where none is reported."""
        result = _members(self)
        result["path"] = self.path or result.pop("asked")
        result.pop("asked", None)
        return result


# -- values --------------------------------------------------------------------------------------------------


def _text_of(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat().replace("+00:00", "Z")


def _json(value: Any) -> Any:
    """Return a value as JSON-ready data."""
    if isinstance(value, datetime):
        return _text_of(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, tuple):
        return [_json(one) for one in value]
    if isinstance(value, Mapping):
        return dict(value)
    return value.to_json() if hasattr(value, "to_json") else value


def _members(value: Any) -> dict[str, Any]:
    """Return the members of a report as JSON-ready data."""
    return {one.name: _json(getattr(value, one.name)) for one in fields(value)}


def time_of(seconds: int) -> datetime | None:
    """Return the time of VT_I4 seconds since 1970, read modulo 2^32; None for 0, which means never."""
    return datetime.fromtimestamp(seconds & 0xFFFFFFFF, UTC) if seconds else None


def _same(value: Any) -> Any:
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _NotValue("a null pointer" if value is None else "a text that is not well-formed UTF-16")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(_text(one) for one in value)


def _capitals(value: Any) -> str:
    return _text(value).upper()


def _choice(words: Mapping[str, bool | None]) -> Callable[[Any], bool | None]:
    """Return the conversion of one of some words, compared without regard to case."""

    def convert(value: Any) -> bool | None:
        word = _text(value).upper()
        if word not in words:
            raise _NotValue(f"{word!r:.60} is none of {', '.join(words)}")
        return words[word]

    return convert


_YES_NO: Final = _choice({"YES": True, "NO": False, "UNKNOWN": None})


def _position(value: Any) -> SequencePosition:
    try:
        return SequencePosition.from_bytes(value)
    except ValueError as exc:
        raise _NotValue(str(exc)) from None


def _vectors(values: Any, types: Sequence[int], kinds: Sequence[int]) -> list[tuple[Any, ...]]:
    """Return parallel vectors as the rows that they stand for."""
    if len(values) != len(types):
        raise _NotValue(f"{counted(len(values), 'vector')}, not {len(types)}")
    for number, (kind, wanted) in enumerate(zip(kinds, types, strict=True)):
        if kind != wanted:
            raise _NotValue(f"vector {number} is of type {kind:#06x}, not {wanted:#06x}")
    if len({len(one) for one in values}) > 1:
        raise _NotValue(f"vectors of different lengths: {', '.join(str(len(one)) for one in values)}")
    return list(zip(*values, strict=True))


def _sources(value: Any) -> tuple[Source, ...]:
    kinds = [one.vt for one in value]
    rows = _vectors([plain(one) or () for one in value], SOURCE_INFO_VECTORS, kinds)
    return tuple(
        Source(_text(name), sender, sequence, number, time_of(last), rejected)
        for name, sender, sequence, number, last, rejected in rows
    )


def _history(value: Any) -> tuple[ConnectionEvent, ...]:
    kinds, values = [one.vt for one in value], [plain(one) or () for one in value]
    if kinds[-1:] == [_TEXTS]:  # a flat vector of addresses, MQMR-3.1.4.1-61
        kinds[-1] = _VARIANTS
        values[-1] = tuple((one,) for one in values[-1])
    rows = _vectors(values, CONNECTION_HISTORY_VECTORS, kinds)
    return tuple(
        ConnectionEvent(time_of(time), status, error & 0xFFFFFFFF, _texts(addresses or ()))
        for status, time, error, addresses in rows
    )


_Property = tuple[ManagementMachineProperty | ManagementQueueProperty, str, Callable[[Any], Any]]
_M, _Q = ManagementMachineProperty, ManagementQueueProperty
_MACHINE: Final[tuple[_Property, ...]] = (
    (_M.PROPID_MGMT_MSMQ_ACTIVEQUEUES, "active_queues", _texts),
    (_M.PROPID_MGMT_MSMQ_PRIVATEQ, "private_queues", _texts),
    (_M.PROPID_MGMT_MSMQ_DSSERVER, "directory_server", _text),
    (_M.PROPID_MGMT_MSMQ_CONNECTED, "connected", _choice({"CONNECTED": True, "DISCONNECTED": False})),
    (_M.PROPID_MGMT_MSMQ_TYPE, "type", _text),
    (_M.PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES, "bytes_all_queues", _same),
)
_QUEUE: Final[tuple[_Property, ...]] = (
    (_Q.PROPID_MGMT_QUEUE_PATHNAME, "path", _text),
    (_Q.PROPID_MGMT_QUEUE_FORMATNAME, "format_name", _text),
    (_Q.PROPID_MGMT_QUEUE_TYPE, "type", _capitals),
    (_Q.PROPID_MGMT_QUEUE_LOCATION, "location", _capitals),
    (_Q.PROPID_MGMT_QUEUE_XACT, "transactional", _YES_NO),
    (_Q.PROPID_MGMT_QUEUE_FOREIGN, "foreign", _YES_NO),
    (_Q.PROPID_MGMT_QUEUE_MESSAGE_COUNT, "messages", _same),
    (_Q.PROPID_MGMT_QUEUE_BYTES_IN_QUEUE, "bytes", _same),
    (_Q.PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT, "journal_messages", _same),
    (_Q.PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL, "journal_bytes", _same),
    (_Q.PROPID_MGMT_QUEUE_STATE, "state", _capitals),
    (_Q.PROPID_MGMT_QUEUE_NEXTHOPS, "next_hops", _texts),
    (_Q.PROPID_MGMT_QUEUE_EOD_LAST_ACK, "eod.last_ack", _position),
    (_Q.PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME, "eod.last_ack_time", time_of),
    (_Q.PROPID_MGMT_QUEUE_EOD_LAST_ACK_COUNT, "eod.last_ack_count", _same),
    (_Q.PROPID_MGMT_QUEUE_EOD_FIRST_NON_ACK, "eod.first_non_ack", _position),
    (_Q.PROPID_MGMT_QUEUE_EOD_LAST_NON_ACK, "eod.last_non_ack", _position),
    (_Q.PROPID_MGMT_QUEUE_EOD_NEXT_SEQ, "eod.next_sequence", _position),
    (_Q.PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT, "eod.no_read_count", _same),
    (_Q.PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT, "eod.no_ack_count", _same),
    (_Q.PROPID_MGMT_QUEUE_EOD_RESEND_TIME, "eod.resend_time", time_of),
    (_Q.PROPID_MGMT_QUEUE_EOD_RESEND_INTERVAL, "eod.resend_interval", _same),
    (_Q.PROPID_MGMT_QUEUE_EOD_RESEND_COUNT, "eod.resend_count", _same),
    (_Q.PROPID_MGMT_QUEUE_EOD_SOURCE_INFO, "sources", _sources),
    (_Q.PROPID_MGMT_QUEUE_CONNECTION_HISTORY, "connection_history", _history),
    (_Q.PROPID_MGMT_QUEUE_SUBQUEUE_COUNT, "subqueue_count", _same),
    (_Q.PROPID_MGMT_QUEUE_SUBQUEUE_NAMES, "subqueues", _texts),
)
_OF_MACHINE: Final = {int(row[0]): row for row in _MACHINE}
_OF_QUEUE: Final = {int(row[0]): row for row in _QUEUE}
_OTHER_TYPES: Final[Mapping[int, int]] = {_Q.PROPID_MGMT_QUEUE_SUBQUEUE_NAMES: _VARIANTS}
"""A second type that values have: MQMR-3.1.4.1-63."""
_NESTED: Final = (_Q.PROPID_MGMT_QUEUE_EOD_SOURCE_INFO, _Q.PROPID_MGMT_QUEUE_CONNECTION_HISTORY)


def machine_report(
    host: str, values: Mapping[int, Any], unavailable: Mapping[str, str] = _NOTHING
) -> MachineReport:
    """Return the report of a queue manager.

    Args:
        host: the host that was asked.
        values: the PROPVARIANT of each property, a `ManagementMachineProperty`.
        unavailable: by attribute, the reason why a property was not asked for.
    """
    attributes, wrong = _attributes(_OF_MACHINE, values)
    return MachineReport(host, **attributes, unavailable={**unavailable, **wrong})


def queue_report(
    asked: str, values: Mapping[int, Any], unavailable: Mapping[str, str] = _NOTHING
) -> QueueReport:
    """Return the report of a queue.

    Args:
        asked: the name by which it was asked for.
        values: the PROPVARIANT of each property, a `ManagementQueueProperty`.
        unavailable: by attribute, the reason why a property was not asked for.
    """
    attributes, wrong = _attributes(_OF_QUEUE, values)
    attributes.pop("subqueue_count", None)  # the names say it
    eod = {name[4:]: attributes.pop(name) for name in list(attributes) if name.startswith("eod.")}
    if eod:
        attributes["eod"] = Eod(**eod)
    return QueueReport(asked, **attributes, unavailable={**unavailable, **wrong})


def unasked(asked: str, reason: str) -> QueueReport:
    """Return the row of a queue that could not be asked."""
    return QueueReport(asked, reason=reason)


def _attributes(
    known: Mapping[int, _Property], values: Mapping[int, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the attributes that values give, and for those that they don't the reason."""
    attributes: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for number, value in values.items():
        if value.vt in _NO_VALUE:
            continue
        key, name, convert = known[number]
        try:
            attributes[name] = convert(_checked(key, value))
        except _NotValue as exc:
            wrong[name] = str(exc)
    return attributes, wrong


def _checked(key: ManagementMachineProperty | ManagementQueueProperty, value: Any) -> Any:
    """Return the value of a PROPVARIANT, for the conversion; another type is no value: MQMR-3.2.4-06."""
    if value.vt != key.vt and value.vt != _OTHER_TYPES.get(key):
        raise _NotValue(f"a value of type {value.vt:#06x}, not {key.vt:#06x}")
    if key in _NESTED:
        return value.value.pElems or ()
    return plain(value)
