"""Checks of remotely read messages: [MS-MQRR] 2.2.5."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.analysis.lint.registry import REMOTE, Problem, exactly, rule, value
from msmqwire.constants import is_legal_class
from msmqwire.headers.remote import SOURCE_ADDRESS, size_after_extension
from msmqwire.names.header_names import DIRECT
from msmqwire.names.printable import counted
from msmqwire.schema import OddPadding
from msmqwire.schema.layout import layout

IP, IPV6 = 1, 6
ADDRESS_SIZES: Final = {IP: 4, IPV6: 16}
_OVERLAY = "UserHeader.QueueManagerAddress"


def _source(packet: Any) -> Any:
    """Return the address that QueueManagerAddress holds with a direct destination, else None."""
    user = packet.UserHeader
    return SOURCE_ADDRESS.parse(user.QueueManagerAddress.bytes_le) if user.Flags.DQ == DIRECT else None


@rule("MQRR-2.2.5.1-07", "AddressLength is not that of the address", _OVERLAY, REMOTE)
def _length(packet: Any) -> Problem:
    source = _source(packet)
    if source is None or source.AddressType not in ADDRESS_SIZES:
        return None
    size = ADDRESS_SIZES[source.AddressType]
    return f"AddressLength {source.AddressLength} is not {size}" if source.AddressLength != size else None


@rule("MQRR-2.2.5.1-08", "AddressType is not 1 or 6", _OVERLAY, REMOTE)
def _type(packet: Any) -> Problem:
    source = _source(packet)
    if source is None or source.AddressType in ADDRESS_SIZES:
        return None
    return f"AddressType {source.AddressType} is neither 1 nor 6"


@rule("MQRR-2.2.5.1-09", "AddressScope is not 0, and the address is IPv4", _OVERLAY, REMOTE)
def _scope(packet: Any) -> Problem:
    source = _source(packet)
    if source is not None and source.AddressType == IP and source.AddressScope:
        return f"AddressScope {source.AddressScope} with an IPv4 address"
    return None


def _presence(id: str, name: str, header: str, *, always: bool) -> None:
    path = f"ExtensionHeader.Flags.{name}"

    title = f"{name} is clear" if always else f"{name} does not say whether a {header} is there"

    @rule(id, title, path, REMOTE, measured=not always)
    def _(packet: Any) -> Problem:
        flag = bool(getattr(packet.ExtensionHeader.Flags, name))
        if always:
            return None if flag else "clear"
        present = packet.get(header) is not None
        return f"{'set' if flag else 'clear'}, against the headers that follow" if flag != present else None


_presence("MQRR-2.2.5.2-04", "DL", "DeadLetterHeader", always=False)
_presence("MQRR-2.2.5.2-05", "SQ", "SubqueueHeader", always=True)
_presence("MQRR-2.2.5.2-08", "EA", "ExtendedAddressHeader", always=True)

for _id, _name, _size in (
    ("MQRR-2.2.5.2-01", "ExtensionHeader", 12),
    ("MQRR-2.2.5.3-01", "SubqueueHeader", 148),
    ("MQRR-2.2.5.5-01", "ExtendedAddressHeader", 28),
):
    exactly(_id, f"HeaderSize is not {_size}", f"{_name}.HeaderSize", REMOTE, _size)


@rule(
    "MQRR-2.2.5.2-02",
    "RemainingHeadersSize is not that of the headers after it",
    "ExtensionHeader.RemainingHeadersSize",
    REMOTE,
)
def _remaining(packet: Any) -> Problem:
    size = size_after_extension(packet)
    announced = packet.ExtensionHeader.RemainingHeadersSize
    return f"{announced}, but {counted(size, 'byte', 'follow')}" if announced != size else None


value("MQRR-2.2.5.3-03", "TM is set", "SubqueueHeader.Flags.TM", REMOTE, lambda number: not number, "set")
value(
    "MQRR-2.2.5.3-04",
    "AcknowledgementClass has bits of 0x1E00",
    "SubqueueHeader.Flags.AcknowledgementClass",
    REMOTE,
    is_legal_class,
    "{:#06x} has bits of 0x1e00",
)
for _id, _name in (("MQRR-2.2.5.3-09", "SubqueueName"), ("MQRR-2.2.5.3-10", "TargetSubqueueName")):
    value(
        _id,
        f"{_name} is not text with nulls after it",
        f"SubqueueHeader.{_name}",
        REMOTE,
        lambda text: isinstance(text, str),
        "no text with nulls after it",
    )


@rule(
    "MQRR-2.2.5.4-01",
    "HeaderSize does not count the padding to 4 bytes",
    "DeadLetterHeader.HeaderSize",
    REMOTE,
)
def _dead_letter(packet: Any) -> Problem:
    header = packet.DeadLetterHeader
    size = sum(field.size for field in layout(header))
    if header.HeaderSize != size or isinstance(header.Padding, OddPadding):
        return f"{header.HeaderSize} is not {size}, a multiple of 4"
    return None


value(
    "MQRR-2.2.5.4-02",
    "DeadLetterPathName is not null-terminated text",
    "DeadLetterHeader.DeadLetterPathName",
    REMOTE,
    lambda text: isinstance(text, str),
    "no null-terminated UTF-16 text",
)


@rule(
    "MQRR-2.2.5.5-02",
    "AddressLength is not that of the address",
    "ExtendedAddressHeader.AddressLength",
    REMOTE,
)
def _extended_length(packet: Any) -> Problem:
    header = packet.ExtendedAddressHeader
    size = ADDRESS_SIZES.get(header.AddressType, header.AddressLength)
    return f"{header.AddressLength} is not {size}" if header.AddressLength != size else None


value(
    "MQRR-2.2.5.5-03",
    "AddressType is not 0, 1 or 6",
    "ExtendedAddressHeader.AddressType",
    REMOTE,
    lambda number: number in (0, IP, IPV6),
    "{} is none of 0, 1 and 6",
)


@rule(
    "MQRR-2.2.5.5-05",
    "AddressScope is not 0, and the address is not IPv6",
    "ExtendedAddressHeader.AddressScope",
    REMOTE,
)
def _extended_scope(packet: Any) -> Problem:
    header = packet.ExtendedAddressHeader
    if header.AddressType == IP and header.AddressScope:
        return f"{header.AddressScope} with an IPv4 address"
    return None
