"""The stand-in for the engine of SRMP in a queue manager that has not needed it yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Protocol, cast

from msmqwire.names import FormatName, MulticastName
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import OutgoingQueue, Queue
from msmqwire.qm.model.enumerations import QueueType
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.tables import Table
from msmqwire.qm.protocols.interface import JoinedProtocol
from msmqwire.qm.protocols.srmp.local_urls import PORTS
from msmqwire.qm.rules.queue_states import is_http
from msmqwire.qm.rules.recovery import Stored
from msmqwire.qm.rules.system_messages import SystemMessages

if TYPE_CHECKING:
    from msmqwire.qm.protocols.srmp.engine import SrmpEngine

_NAME: Final = "srmp"


class Rules(Protocol):
    """The core, as far as the stand-in needs it."""

    context: Context
    system_messages: SystemMessages


class Engines(Protocol):
    """The core, as far as it has the engines of protocols that have joined."""

    def engine(self, name: str) -> JoinedProtocol:
        """Return the engine of a protocol, made on first use."""


def srmp_of(core: Engines) -> SrmpEngine:
    """Return the engine of [MC-MQSRM], made on first use."""
    return cast("SrmpEngine", core.engine(_NAME))


def is_awaited(queue: Queue, position: MessagePosition) -> bool:
    """Return whether the sender of a message asks for SRMP receipts about its fate in a queue here."""
    if queue.queue_type is QueueType.SYSTEM or position.silent:
        return False
    return bool(position.message.negative_journaling_requested and position.message.soap_envelope)


class SrmpOnDemand(JoinedProtocol):
    """Passes the first event for SRMP to the engine, which replaces this stand-in from then on.

    Args:
        core: the core of the queue manager.
        engine: makes the engine.
    """

    def __init__(self, core: Rules, engine: Callable[[], SrmpEngine]) -> None:
        self._context, self._engine = core.context, engine
        core.system_messages.when_due_by_http = self.due

    def start(self, stored: Stored) -> None:
        """Queue Manager Started: the engine is needed at once if the last run of this queue manager needed
        it.
        """
        queues = self._context.queue_manager.queues.values()
        if stored.row(Table.META, PORTS) or any(map(self._serves, queues)):
            self._engine().start(stored)

    def stop(self) -> None:
        """Queue Manager Stopped: there are no transfers."""

    def acknowledge_received(self) -> None:
        """Acknowledge everything received so far: nothing has been received."""

    def serves(self, queue: OutgoingQueue) -> bool:
        """Return whether this protocol carries the messages of a queue: SRMP-3.1.7.7-01."""
        return queue.multicast or is_http(queue.destination)

    def _serves(self, queue: Queue) -> bool:
        return isinstance(queue, OutgoingQueue) and self.serves(queue)

    def may_send_to(self, name: FormatName, origin: str) -> bool:
        """Return whether an outgoing queue may be opened on behalf of a message from an origin."""
        if isinstance(name, MulticastName) or is_http(name):
            return self._engine().may_send_to(name, origin)
        return True

    def leads_back(self, name: FormatName, origin: str) -> bool:
        """Return whether messages to a name go to an origin, as far as is known."""
        return is_http(name) and self._engine().leads_back(name, origin)

    def due(self, message: Message, message_class: int) -> None:
        """An HTTP acknowledgement is due."""
        self._engine().receipts.due(message, message_class)

    def message_position_available(self, queue: Queue, position: MessagePosition) -> None:
        """[MC-MQSRM] 3.1.7.7."""
        if self._serves(queue):
            self._engine().message_position_available(queue, position)

    def message_position_deleted(self, queue: Queue, position: MessagePosition, reason: int) -> None:
        """[MC-MQSRM] 3.1.7.3."""
        if not isinstance(queue, OutgoingQueue) and is_awaited(queue, position):
            self._engine().message_position_deleted(queue, position, reason)

    def queue_paused(self, queue: OutgoingQueue) -> None:
        """Pause Queue Event: there are no transfers."""

    def queue_resumed(self, queue: OutgoingQueue) -> None:
        """Resume Queue Event: there are no transfers."""

    def taken_offline(self) -> None:
        """Take Offline: there are no transfers."""

    def brought_online(self) -> None:
        """Bring Online: there are no transfers."""

    def resend(self, queue: OutgoingQueue) -> None:
        """Resend Transactional Sequence: there are no transfers."""

    def forget_unused(self) -> None:
        """There are no transfers."""

    def send_user_message(self, position: MessagePosition, protocol_data: object) -> None:
        """Send User Message Wrapper: no message has been dispatched here."""

    def untransferred(self) -> Iterator[MessagePosition]:
        """Yield the messages that are not transferred yet: there are none."""
        return iter(())

    def obstacle(self) -> tuple[str, bool] | None:
        """Return why messages are not transferred: none wait."""
        return None
