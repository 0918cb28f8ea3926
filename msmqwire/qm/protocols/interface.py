"""The interface by which a protocol joins the core: the queues it serves, and the events reported to it.

The core knows each protocol only as a `TransferProtocol`; a protocol knows of the core only the rules that it
is built with, and names them itself. The bytes and connections of a protocol pass between it and its
transport in `msmqwire.qm.runtime`, past the core.
"""

from __future__ import annotations

from typing import Protocol

from msmqwire.names import FormatName
from msmqwire.qm.model.context import Subscriber
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.rules.recovery import Stored


class TransferProtocol(Subscriber, Protocol):
    """A protocol that transfers messages between queue managers, as the core sees it.

    The events of `Subscriber` reach every protocol: each ignores queues that it does not serve.
    """

    def serves(self, queue: OutgoingQueue) -> bool:
        """Return whether the messages of an outgoing queue go by this protocol. One protocol serves each."""

    def may_send_to(self, name: FormatName, origin: str) -> bool:
        """Return whether an outgoing queue may be opened on behalf of a message from an origin.

        True for a name that this protocol does not serve. A protocol limits here the number of unreachable
        destinations that peers can make it try.
        """

    def leads_back(self, name: FormatName, origin: str) -> bool:
        """Return whether messages to a name go over an open session with an origin."""

    def start(self, stored: Stored) -> None:
        """Queue Manager Started: the queues have their messages again; resume the transfers."""

    def stop(self) -> None:
        """Queue Manager Stopped: close all sessions. Nothing is sent afterwards."""

    def acknowledge_received(self) -> None:
        """Acknowledge all that has come so far without waiting for more. An owner does this before `stop`."""
