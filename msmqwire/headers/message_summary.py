"""A message in one line, for people: that of a UserMessage, and of one inside of another packet."""

from __future__ import annotations

from msmqwire.constants import class_name
from msmqwire.headers.queue_names import destination
from msmqwire.names.printable import counted, safe
from msmqwire.schema import Record


def queue_text(packet: Record) -> str:
    """Return the destination of a message as a format name; a direct one as in the packet."""
    return safe(destination(packet.UserHeader) or "")


def message_summary(packet: Record) -> str:
    """Summarise a message in one line."""
    properties = packet.MessagePropertiesHeader
    label = properties.Label
    parts = [queue_text(packet)]
    if properties.MessageClass:
        parts.append(class_name(properties.MessageClass))
    if label is not None:
        parts.append(f'"{safe(label)}"' if isinstance(label, str) else f"label {label.hex()}")
    if packet.TransactionHeader is not None:
        parts.append(f"transactional #{packet.TransactionHeader.TxSequenceNumber}")
    elif packet.UserHeader.Flags.DM:
        parts.append("recoverable")
    parts.append(counted(properties.MessageSize, "byte"))
    return " ".join(part for part in parts if part)
