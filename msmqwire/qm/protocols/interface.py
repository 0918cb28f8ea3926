"""The interface by which a protocol joins the core: the queues it serves, and the events reported to it.

The core knows each protocol only as a `TransferProtocol`; a protocol knows of the core only the rules that it
is built with, and names them itself. The bytes and connections of a protocol pass between it and its
transport in `msmqwire.qm.runtime`, past the core.

Sessions of [MS-MQQB], which all queue managers need, are a part of the core. Other protocols join by the
`Registration` in their folder, which `registry.py` finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from msmqwire.names import FormatName
from msmqwire.qm.model.context import Subscriber
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules.recovery import Stored


class TransferProtocol(Subscriber, Protocol):
    """A protocol that transfers messages between queue managers, as the core sees it.

    The events of `Subscriber` reach every protocol: each ignores queues that it does not serve.
    """

    def serves(self, queue: OutgoingQueue) -> bool:
        """Return whether this protocol carries the messages of an outgoing queue. One protocol serves
        each.
        """

    def may_send_to(self, name: FormatName, origin: str) -> bool:
        """Return whether an outgoing queue may be opened for a message from an origin.

        True for a name that this protocol does not serve. This is where a protocol limits the number of
        unreachable destinations that peers can make it try.
        """

    def leads_back(self, name: FormatName, origin: str) -> bool:
        """Return whether messages to a name go over an open session with an origin."""

    def resend(self, queue: OutgoingQueue) -> None:
        """Send the transactional messages of a queue without order acknowledgement again, with the numbers
        that they have: Resend Transactional Sequence, [MS-MQMR] 3.1.4.2. Ignored for a queue that this
        protocol does not serve.
        """

    def forget_unused(self) -> None:
        """Remove the outgoing queues that are empty, not open and not being transferred."""

    def start(self, stored: Stored) -> None:
        """Queue Manager Started: the queues have their messages again; resume the transfers."""

    def stop(self) -> None:
        """Queue Manager Stopped: close all sessions. Nothing is sent afterwards."""

    def acknowledge_received(self) -> None:
        """Acknowledge everything received so far without waiting for more. The owner calls this before
        `stop`.
        """


class JoinedProtocol(TransferProtocol, Protocol):
    """A protocol that has joined by a `Registration`."""

    def untransferred(self) -> Iterator[MessagePosition]:
        """Yield the messages that are not transferred yet."""

    def obstacle(self) -> tuple[str, bool] | None:
        """Return why messages are not transferred, and whether the peer refuses them.

        None if no message waits.
        """


class Registration(NamedTuple):
    """A protocol as the rest of the queue manager knows it.

    All parts are named as ``module:name``, and imported on first use. A part that a protocol lacks is empty.

    Attributes:
        name: the name of its folder in `msmqwire.qm.protocols`.
        order: its place among the protocols; events reach the lowest first.
        engine: the class of its engine, a `JoinedProtocol`, made from a core and a configuration, which
            may be None.
        stand_in: the class of a `JoinedProtocol` in place of the engine until that is needed, made from
            a core and the function that makes the engine.
        effects: the kinds of effects that it has besides those of `msmqwire.qm.model.effects`.
        transport: the class of its `msmqwire.qm.runtime.joined.Transport`, made from its options, which may
            be None.
        client_options: returns the options of its transport from arguments of `msmqwire.connect`, by name.
        simulated: its `msmqwire.qm.sim.joined.SimulatedProtocol`.
    """

    name: str
    order: int
    engine: str = ""
    stand_in: str = ""
    effects: tuple[str, ...] = ()
    transport: str = ""
    client_options: str = ""
    simulated: str = ""
