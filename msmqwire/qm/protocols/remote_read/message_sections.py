"""Messages of queues as remote readers get them: [MS-MQRR] 2.2.5 and 3.1.4.7."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import AddressValueError, IPv4Address
from typing import Any

from msmqwire.names import parse_path_name
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import OperationType
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules import serialization
from msmqwire.qm.rules.lookup import Lookup
from msmqwire.remote_read.message_packet import MessageState, message_packet
from msmqwire.remote_read.sections import sections_of


def message_sections(
    message: Message, position: MessagePosition, lookup: Lookup, max_body: int, max_compound: int
) -> Sequence[Any]:
    """Return the SectionBuffers of a message.

    Args:
        message: the message.
        position: where it is.
        lookup: of the queues here, for its dead-letter queue.
        max_body: bytes of the body of a binary message that are asked for.
        max_compound: bytes of the CompoundMessageHeader of an SRMP message that are asked for.

    Raises InvalidValue, InvalidName and MalformedPacket for a message that no packet can hold.
    """
    # The last host is known by its GUID only if it is the first one as well.
    sender = None if message.hop_count else message.source_machine_identifier
    packet = message_packet(
        serialization.to_stored(message), _state(message, position, lookup), sender=sender
    )
    return sections_of(packet, max_body, max_compound)


def _state(message: Message, position: MessagePosition, lookup: Lookup) -> MessageState:
    try:
        address = IPv4Address(message.origin)
    except AddressValueError:  # of this computer, or of a network of IPv6 of which no more is known
        address = None
    dead_letter_queue = message.application_deadletter_queue
    named = lookup.path(dead_letter_queue) if dead_letter_queue else None
    return MessageState(
        address=address,
        subqueue=_subqueue(position.queue),
        target_subqueue=_target(position),
        dead_letter_queue=dead_letter_queue,
        dead_letter_invalid=named is None or (position.queue.transactional and not named.transactional),
    )


def _target(position: MessagePosition) -> str:
    """Return the subqueue that a transaction will move a message to."""
    manager = position.queue.queue_manager
    if not position.transaction or manager is None:
        return ""
    for transaction in manager.transactions.values():
        for operation in transaction.operations:
            if operation.position is position and operation.operation_type is OperationType.MOVE:
                return _subqueue(operation.target)
    return ""


def _subqueue(queue: Queue | None) -> str:
    """Return the name of a subqueue; empty for any other queue."""
    if queue is None or queue.owner_queue is None or queue.owner_queue.journal is queue:
        return ""
    return parse_path_name(queue.pathname).subqueue or ""
