"""How a protocol joins the core: what it serves, what it is told, and what it may call.

The core knows each protocol only as a `TransferProtocol`; a protocol knows the core only by the
`CoreServices` that it is built with. The bytes and connections of a protocol pass between it and its
transport in `msmqwire.qm.runtime`, past the core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from msmqwire.names import FormatName
from msmqwire.qm.model.context import Context, Subscriber
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.rules.delivery_outcome import DeliveryOutcome
from msmqwire.qm.rules.dispatch import Dispatch
from msmqwire.qm.rules.history import History
from msmqwire.qm.rules.identities import Identities
from msmqwire.qm.rules.incoming_sequences import IncomingSequences
from msmqwire.qm.rules.message_identity import MessageIdentity
from msmqwire.qm.rules.messages import Messages
from msmqwire.qm.rules.queue_memory import QueueMemory
from msmqwire.qm.rules.queues import Queues
from msmqwire.qm.rules.recovery import Stored
from msmqwire.qm.rules.relaying import Relaying
from msmqwire.qm.rules.routing import Routing
from msmqwire.qm.rules.sequence_identity import SequenceIdentity
from msmqwire.qm.rules.system_messages import SystemMessages
from msmqwire.qm.rules.third_places import ThirdPlaces
from msmqwire.qm.rules.transactions import Transactions
from msmqwire.qm.security.protection import Protection


@dataclass(frozen=True, slots=True)
class CoreServices:
    """What a protocol may call.

    Attributes:
        context: the data model, the time, the settings, timers, and where changes and effects are collected.
        messages: the events on messages in queues, [MS-MQDMPR] 3.1.7.
        queues: the events on queues, and which queue a format name means.
        transactions: the transactions that the queue manager takes part in.
        dispatch: DispatchCollection, where messages wait for their turn to be sent.
        routing: the next hops to a queue manager.
        identity, sequence_identity: identifiers of messages and of transactional sequences that begin here.
        history: the messages received last.
        incoming_sequences: how far the transactional sequences of others have come.
        outcome: where messages go that are delivered or given up.
        system_messages: administration acknowledgements and reports.
        relaying: which messages of others are forwarded.
        queue_memory: limits the outgoing queues that they ask for.
        third_places: limits what they make this queue manager send elsewhere than back to them.
        identities: the users of the directory.
        protection: signatures and encryption.
    """

    context: Context
    messages: Messages
    queues: Queues
    transactions: Transactions
    dispatch: Dispatch
    routing: Routing
    identity: MessageIdentity
    sequence_identity: SequenceIdentity
    history: History
    incoming_sequences: IncomingSequences
    outcome: DeliveryOutcome
    system_messages: SystemMessages
    relaying: Relaying
    queue_memory: QueueMemory
    third_places: ThirdPlaces
    identities: Identities
    protection: Protection


class TransferProtocol(Subscriber, Protocol):
    """A protocol that transfers messages between queue managers, as the core sees it.

    The events of `Subscriber` reach every protocol: each ignores queues that it does not serve.
    """

    def serves(self, queue: OutgoingQueue) -> bool:
        """Return whether the messages of an outgoing queue go by this protocol. One protocol serves each."""

    def may_send_to(self, name: FormatName, origin: str) -> bool:
        """Return whether an outgoing queue may be opened on behalf of a message from an origin.

        True for a name that this protocol does not serve. A protocol limits here how many unreachable
        destinations others can make it try.
        """

    def leads_back(self, name: FormatName, origin: str) -> bool:
        """Return whether messages to a name go over an open session with an origin."""

    def start(self, stored: Stored) -> None:
        """Queue Manager Started: the queues have their messages again; resume the transfers."""

    def stop(self) -> None:
        """Queue Manager Stopped: close all sessions. Nothing is sent afterwards."""

    def acknowledge_received(self) -> None:
        """Acknowledge what has come so far without waiting for more. An owner does this before `stop`."""
