"""Checks of values that a reader takes for granted: sizes, counts and presence bits.

A parsed packet can't break them (the bytes would be another packet, or malformed); one that was built with
wrong values can.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from msmqwire.analysis.lint.registry import MESSAGES, SENT, FieldOffsets, Problem, rule
from msmqwire.headers.base import PACKET_SIZE_MAX
from msmqwire.headers.session import SESSION_HEADER_SIZE
from msmqwire.names.printable import counted
from msmqwire.schema import Record
from msmqwire.schema.layout import layout
from msmqwire.schema.texts import encode_text


@rule(
    "MQMQ-2.2.19.1-19",
    "PacketSize is not the size of the packet",
    "BaseHeader.PacketSize",
    MESSAGES,
    measured=True,
)
def _packet_size(packet: Any) -> Problem:
    announced = packet.BaseHeader.PacketSize
    if announced > PACKET_SIZE_MAX:
        return None  # reported by MQMQ-2.2.19.1-21
    full = FieldOffsets(packet).packet_size()
    size = full - (SESSION_HEADER_SIZE if packet.SessionHeader is not None else 0)
    if packet.schema.name == "RemoteReadMessage":
        return None if announced <= full else f"{announced}, but the packet has {counted(full, 'byte')}"
    has_session = packet.SessionHeader is not None and announced == full  # reported by the next rule
    return (
        f"{announced}, but the packet has {counted(size, 'byte')}"
        if announced != size and not has_session
        else None
    )


@rule(
    "MQMQ-2.2.19.1-20",
    "PacketSize counts the SessionHeader",
    "BaseHeader.PacketSize",
    SENT,
    measured=True,
)
def _session_counted(packet: Any) -> Problem:
    announced = packet.BaseHeader.PacketSize
    if packet.SessionHeader is not None and announced == FieldOffsets(packet).packet_size():
        return f"{announced} counts the 16 bytes of the SessionHeader"
    return None


def _present(id: str, flag: str, header: str) -> None:
    """Register a check that a bit is set exactly if a header (or field) is present."""
    bit, part = attrgetter(flag), attrgetter(header)

    @rule(id, f"{flag} does not say whether {header} is there", flag, MESSAGES, measured=True)
    def _(packet: Any) -> Problem:
        announced, present = bool(bit(packet)), part(packet) is not None
        if announced == present:
            return None
        return "set, but it is not there" if announced else "clear, but it is there"


_present("MQMQ-2.2.19.1-11", "BaseHeader.Flags.SH", "SessionHeader")
_present("MQMQ-2.2.19.1-12", "BaseHeader.Flags.DH", "DebugHeader")
_present("MQMQ-2.2.19.2-31", "UserHeader.Flags.SH", "SecurityHeader")
_present("MQMQ-2.2.19.2-32", "UserHeader.Flags.TH", "TransactionHeader")
_present("MQMQ-2.2.19.2-35", "UserHeader.Flags.CQ", "UserHeader.ConnectorType")
_present("MQMQ-2.2.19.2-36", "UserHeader.Flags.MQ", "MultiQueueFormatHeader")
_present("MQMQ-2.2.19.2-41", "UserHeader.Flags.HH", "SoapHeader")
_present("MQMQ-2.2.20.5-04", "TransactionHeader.Flags.CG", "TransactionHeader.ConnectorQMGuid")
_present("MQRR-2.2.5.1.2.1-01", "UserHeader.Flags.AH", "SRMPEnvelopeHeader")
_present("MQRR-2.2.5.1.2.2-01", "UserHeader.Flags.AH", "CompoundMessageHeader")


@rule(
    "MQMQ-2.2.20.8-05",
    "QT does not say whether QueueIdentifier is there",
    "DebugHeader.Flags.QT",
    MESSAGES,
    measured=True,
)
def _trace_queue(packet: Any) -> Problem:
    header = packet.DebugHeader
    present = header.QueueIdentifier is not None
    return (
        f"{header.Flags.QT}, but the queue is {'' if present else 'not '}there"
        if ((header.Flags.QT == 1) != present)
        else None
    )


def _layout_of(id: str, flag: str, queue: str, empty: tuple[int, ...], forms: dict[int, str]) -> None:
    """The bits that tell the form of a queue fit the one that is there."""

    @rule(id, f"{flag} is not the form of {queue}", f"UserHeader.Flags.{flag}", MESSAGES, measured=True)
    def _(packet: Any) -> Problem:
        kind, value = getattr(packet.UserHeader.Flags, flag), packet.UserHeader[queue]
        expected = forms.get(kind)
        name = value.schema.name if value is not None else None
        if expected == name or (expected is None and kind not in empty):
            return None
        return f"{kind}, but {queue} is {name or 'not there'}"


_ID, _PUBLIC = "PrivateQueueFormatNameId", "PublicQueueFormatName"
_PRIVATE, _DIRECT = "PrivateQueueFormatName", "DirectQueueFormatName"
_layout_of("MQMQ-2.2.19.2-21", "DQ", "DestinationQueue", (0,), {3: _ID, 5: _PUBLIC, 7: _DIRECT})
_layout_of(
    "MQMQ-2.2.19.2-25", "AQ", "AdminQueue", (0,), {2: _ID, 3: _ID, 5: _PUBLIC, 6: _PRIVATE, 7: _DIRECT}
)
_layout_of(
    "MQMQ-2.2.19.2-28",
    "RQ",
    "ResponseQueue",
    (0, 1),
    {2: _ID, 3: _ID, 4: _ID, 5: _PUBLIC, 6: _PRIVATE, 7: _DIRECT},
)


def _counts(id: str, path: str, part: str, measure: Callable[[Any], int]) -> None:
    """Register a check that a field has the size (or count) of a part."""
    get, counted = attrgetter(path), attrgetter(part)

    @rule(
        id,
        f"{path.rpartition('.')[2]} is not that of {part.rpartition('.')[2]}",
        path,
        MESSAGES,
        measured=True,
    )
    def _(packet: Any) -> Problem:
        announced, size = get(packet), measure(counted(packet))
        return None if announced == size else f"{announced}, but it is {size}"


def _units(text: Any) -> int:
    return -(-len(encode_text(text)) // 2)


def _provider(info: Record | None) -> int:
    return 0 if info is None else sum(field.size for field in layout(info))


_PROPERTIES, _SECURITY = "MessagePropertiesHeader", "SecurityHeader"
_counts("MQMQ-2.2.19.3-07-SIZE", f"{_PROPERTIES}.LabelLength", f"{_PROPERTIES}.Label", _units)
_counts("MQMQ-2.2.19.3-15", f"{_PROPERTIES}.MessageSize", f"{_PROPERTIES}.MessageBody", len)
_counts("MQMQ-2.2.19.3-41", f"{_PROPERTIES}.ExtensionSize", f"{_PROPERTIES}.ExtensionData", len)
for _id, _size, _item, _measure in (
    ("MQMQ-2.2.20.6-15", "SenderIdSize", "SecurityID", len),
    ("MQMQ-2.2.20.6-16", "EncryptionKeySize", "EncryptionKey", len),
    ("MQMQ-2.2.20.6-17", "SignatureSize", "Signature", len),
    ("MQMQ-2.2.20.6-18-SIZE", "SenderCertSize", "SenderCert", len),
    ("MQMQ-2.2.20.6-19", "ProviderInfoSize", "ProviderInfo", _provider),
):
    _counts(_id, f"{_SECURITY}.{_size}", f"{_SECURITY}.SecurityData.{_item}", _measure)
_counts("MQMQ-2.2.20.7-03", "SoapHeader.HeaderDataLength", "SoapHeader.Header", _units)
_counts("MQMQ-2.2.20.7-07", "SoapHeader.BodyDataLength", "SoapHeader.Body", _units)
for _name in ("Destination", "Administration", "Response"):
    _path = f"MultiQueueFormatHeader.{_name}"
    _counts("MQMQ-2.2.20.2-05", f"{_path}.ElementCount", f"{_path}.FormatNameList", len)
_counts(
    "MQMQ-2.2.20.3-03",
    "MultiQueueFormatHeader.Signature.Size",
    "MultiQueueFormatHeader.Signature.Signature",
    len,
)
_counts("MQRR-2.2.5.1.2.2-04", "CompoundMessageHeader.HTTPBodySize", "CompoundMessageHeader.Data", len)


@rule(
    "MQMQ-2.2.18.1.5.2-01",
    "Count is not the size of DirectFormatName",
    "UserHeader.DestinationQueue.Count",
    MESSAGES,
    measured=True,
)
def _direct(packet: Any) -> Problem:
    for name in ("DestinationQueue", "AdminQueue", "ResponseQueue"):
        queue = packet.UserHeader[name]
        if queue is not None and queue.get("Count") is not None:
            size = len(encode_text(queue.DirectFormatName))
            if queue.Count != size:
                return f"UserHeader.{name}.Count", f"{queue.Count}, but it is {size}"
    return None


@rule(
    "MQMQ-2.2.20.2-01",
    "HeaderSize is not that of the part",
    "MultiQueueFormatHeader.Destination.HeaderSize",
    MESSAGES,
    measured=True,
)
def _list_size(packet: Any) -> Problem:
    for name in ("Destination", "Administration", "Response"):
        part = packet.MultiQueueFormatHeader[name]
        full = sum(field.size for field in layout(part))
        if not full - len(part.Padding) <= part.HeaderSize <= full:
            return f"MultiQueueFormatHeader.{name}.HeaderSize", f"{part.HeaderSize}, but it is {full}"
    return None
