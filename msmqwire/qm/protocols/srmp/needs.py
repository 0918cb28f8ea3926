"""The parts of the core that SRMP uses."""

from __future__ import annotations

from typing import Protocol

from msmqwire.qm.model.context import Context
from msmqwire.qm.rules.delivery_outcome import DeliveryOutcome
from msmqwire.qm.rules.dispatch import Dispatch
from msmqwire.qm.rules.history import History
from msmqwire.qm.rules.incoming_sequences import IncomingSequences
from msmqwire.qm.rules.message_identity import MessageIdentity
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.rules.queue_memory import QueueMemory
from msmqwire.qm.rules.queues import Queues
from msmqwire.qm.rules.sequence_identity import SequenceIdentity
from msmqwire.qm.rules.system_messages import SystemMessages


class SrmpNeeds(Protocol):
    """The rules that `SrmpEngine` hands to the parts that use them."""

    context: Context
    messages: MessageEvents
    queues: Queues
    dispatch: Dispatch
    identity: MessageIdentity
    sequence_identity: SequenceIdentity
    history: History
    incoming_sequences: IncomingSequences
    outcome: DeliveryOutcome
    system_messages: SystemMessages
    queue_memory: QueueMemory
