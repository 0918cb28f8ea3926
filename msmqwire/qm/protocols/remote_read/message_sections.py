"""Messages of queues in the form for remote readers: [MS-MQRR] 2.2.5 and 3.1.4.7."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Any, Final

from msmqwire.names import parse_path_name
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules import serialization
from msmqwire.qm.rules.lookup import Lookup
from msmqwire.remote_read.message_packet import MessageState, message_packet
from msmqwire.remote_read.sections import full_section, sections_of

_THIS_HOST: Final = IPv4Address("127.0.0.1")


class MessageSections:
    """Makes the SectionBuffers of messages.

    The latest are kept: many readers may peek at the same message.
    """

    def __init__(self, lookup: Lookup) -> None:
        """Take the lookup of local queues, for dead-letter queues."""
        self._lookup = lookup
        self._last: tuple[MessagePosition, MessageState, int, int] | None = None
        self._sections: Sequence[Any] = ()

    def of(
        self, message: Message, position: MessagePosition, max_body: int, max_compound: int, *, received: bool
    ) -> Sequence[Any]:
        """Return the SectionBuffers of a message.

        Args:
            message: the message.
            position: its position.
            max_body: requested bytes of the body of a binary message.
            max_compound: requested bytes of the CompoundMessageHeader of an SRMP message.
            received: whether it was received now, and so is not being moved.

        Raises InvalidValue, InvalidName and MalformedPacket for a message that no packet can hold.
        """
        source = _source(message.origin)
        address = source if isinstance(source, IPv4Address) else None
        target = "" if received else _target(position)
        state = _state(message, position, self._lookup, address, target)
        wanted = position, state, max_body, max_compound
        if wanted == self._last:
            return self._sections
        if not message.origin:
            source = _THIS_HOST
        # The last host is known by its GUID only if it is the first one as well.
        sender = None if message.hop_count else message.source_machine_identifier  # MQRR-2.2.5.1-05
        packet = message_packet(serialization.to_readable(message), state, sender=sender, source=source)
        if min(max_body, max_compound) >= len(packet):
            sections: Sequence[Any] = (full_section(packet),)
        else:
            sections = sections_of(packet, max_body, max_compound)
        self._last, self._sections = wanted, sections
        return sections


def _source(origin: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a message came from; of an IPv6 address only the network is known."""
    try:
        network = ip_network(origin)
    except ValueError:  # a message of this computer, or stored by a version that kept no origin
        return None
    return network.network_address


def _state(
    message: Message, position: MessagePosition, lookup: Lookup, address: IPv4Address | None, target: str
) -> MessageState:
    # MQRR-2.2.5.3-06, MQRR-2.2.5.3-07, MQRR-2.2.5.3-08
    history = position.history
    dead_letter_queue = message.application_deadletter_queue
    named = lookup.path(dead_letter_queue) if dead_letter_queue else None  # MQRR-2.2.5.2-06
    return MessageState(
        address=address,
        abort_count=history.abort_count,
        move_count=history.move_count,
        last_move_time=history.last_move_time,
        subqueue=_subqueue(position.queue),  # MQRR-2.2.5.3-09
        target_subqueue=target,
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
            if operation.position is position:
                return _subqueue(operation.target)
    return ""


def _subqueue(queue: Queue | None) -> str:
    """Return the name of a subqueue; empty for any other queue."""
    if queue is None or queue.owner_queue is None or queue.owner_queue.journal is queue:
        return ""
    return parse_path_name(queue.pathname).subqueue or ""
