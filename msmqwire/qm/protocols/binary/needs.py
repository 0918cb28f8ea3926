"""The parts of the core that the binary protocol uses."""

from __future__ import annotations

from typing import Protocol

from msmqwire.qm.model.context import Context
from msmqwire.qm.rules.delivery_outcome import DeliveryOutcome
from msmqwire.qm.rules.dispatch import Dispatch
from msmqwire.qm.rules.history import History
from msmqwire.qm.rules.identities import Identities
from msmqwire.qm.rules.incoming_sequences import IncomingSequences
from msmqwire.qm.rules.message_identity import MessageIdentity
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.rules.queue_memory import QueueMemory
from msmqwire.qm.rules.queues import Queues
from msmqwire.qm.rules.reflection_limits import ReflectionLimits
from msmqwire.qm.rules.relaying import Relaying
from msmqwire.qm.rules.routing import Routing
from msmqwire.qm.rules.sequence_identity import SequenceIdentity
from msmqwire.qm.rules.system_messages import SystemMessages
from msmqwire.qm.security.protection import Protection


class BinaryNeeds(Protocol):
    """The rules that `BinaryEngine` hands to the parts that use them."""

    context: Context
    messages: MessageEvents
    queues: Queues
    routing: Routing
    dispatch: Dispatch
    identity: MessageIdentity
    sequence_identity: SequenceIdentity
    history: History
    incoming_sequences: IncomingSequences
    outcome: DeliveryOutcome
    system_messages: SystemMessages
    relaying: Relaying
    reflection_limits: ReflectionLimits
    queue_memory: QueueMemory
    identities: Identities
    protection: Protection

    def know(self, address: str, /) -> None:
        """Count a computer as known."""
