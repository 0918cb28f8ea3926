"""The parts of the simulator that protocols have registered: see `Registration.simulated`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from msmqwire.qm.protocols.registry import registered
from msmqwire.qm.sim.fates import OF_SESSIONS, Fates
from msmqwire.service.carrier import Performers

if TYPE_CHECKING:
    from msmqwire.qm.core import Core
    from msmqwire.qm.model.timer_kind import TimerKind
    from msmqwire.qm.sim.capture import Capture
    from msmqwire.qm.sim.environment import Environment
    from msmqwire.qm.sim.host import Host
    from msmqwire.qm.sim.ledger import MessageLedger, NodeView
    from msmqwire.qm.sim.store_contents import StoreContents
    from msmqwire.service.virtual.mistake import Mistake


class Surroundings(Protocol):
    """The network that a network of a protocol belongs to.

    Attributes:
        environment: the environment of the run.
        capture: records the traffic; None for no capture.
        hosts: the nodes, by name; looked up whenever one is needed.
        views: the nodes, as observers see them.
        ledger, contents: the records that observers use.
    """

    environment: Environment
    capture: Capture | None
    hosts: Mapping[str, Host]
    views: Mapping[str, NodeView]
    ledger: MessageLedger
    contents: StoreContents

    def blocked_until(self, first: Host, second: Host) -> int:
        """Return the time until which nothing passes between two nodes."""


class SimulatedNetwork(Protocol):
    """The traffic of a protocol between the nodes of a run."""

    def performers(self, host: Host) -> Performers:
        """Return the carrier of its effects at a node."""

    def under_way(self, host: Host) -> Sequence[Any]:
        """Return the exchanges that a node takes part in."""

    def cut(self, exchange: Any) -> None:
        """Cut the connection of an exchange."""

    def crashed(self, host: Host) -> None:
        """End the exchanges of a node that goes down."""


class SimulatedProtocol(Protocol):
    """A protocol in the simulator."""

    @property
    def form(self) -> str:
        """The form of the names of queues that it reaches."""

    @property
    def fates(self) -> Fates:
        """The fates of its messages."""

    @property
    def mistakes(self) -> Mapping[str, Mistake]:
        """Deliberate mistakes in its engine, by name."""

    def network(self, surroundings: Surroundings) -> SimulatedNetwork:
        """Return the network of a run."""

    def booted(self, core: Core) -> None:
        """Report the listening addresses to the engine of a node that starts."""

    def check_step(self, node: str, core: Core) -> None:
        """Check the engine of a node after a step. Raises Violation."""

    def pending(self, core: Core, ledger: MessageLedger, *, drained: bool) -> str | None:
        """Describe a message of a node that waits for something to happen; None if none does."""

    def idle_timer(self, core: Core) -> TimerKind | None:
        """Return a timer that runs although it has nothing to do."""

    def remainder(self, core: Core) -> str | None:
        """Describe the state that a node still keeps of ended transfers; None if there is none."""


@cache
def simulated() -> tuple[SimulatedProtocol, ...]:
    """Return the protocols that have registered, in their order."""
    return tuple(protocol for _, protocol in registered("simulated"))


@cache
def fates_of(form: str | None) -> Fates:
    """Return the fates of messages to names of a form."""
    return next((protocol.fates for protocol in simulated() if protocol.form == form), OF_SESSIONS)


def each(ask: Callable[[SimulatedProtocol], str | None]) -> str | None:
    """Return the first answer of a protocol to a question."""
    return next(filter(None, map(ask, simulated())), None)
