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
    properties, transaction = packet.MessagePropertiesHeader, packet.TransactionHeader
    return summary_of(
        queue_text(packet),
        properties.MessageClass,
        properties.Label,
        None if transaction is None else transaction.TxSequenceNumber,
        properties.MessageSize,
        is_recoverable=bool(packet.UserHeader.Flags.DM),
    )


def summary_of(
    queue: str,
    message_class: int,
    label: str | bytes | None,
    number: int | None,
    size: int,
    *,
    is_recoverable: bool,
) -> str:
    """Summarise a message of which these fields are known.

    Args:
        queue: its destination for people; empty if there is none.
        message_class: its class.
        label: its label; bytes if they are no text.
        number: its number in a transactional sequence; None if it is in none.
        size: bytes of its body.
        is_recoverable: whether it is saved on its way.
    """
    parts = [queue]
    if message_class:
        parts.append(class_name(message_class))
    if label is not None:
        parts.append(f'"{safe(label)}"' if isinstance(label, str) else f"label {label.hex()}")
    if number is not None:
        parts.append(f"transactional #{number}")
    elif is_recoverable:
        parts.append("recoverable")
    parts.append(counted(size, "byte"))
    return " ".join(part for part in parts if part)
