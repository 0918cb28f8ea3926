"""What the networks of a run need of a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from msmqwire.qm.core import Core


class Host(Protocol):
    """What the network needs of a node.

    Attributes:
        core: None while it is down.
        epoch: how often it was started.
        refuses_until, unresolved_until: faults that last for a time.
    """

    name: str
    address: str
    core: Core | None
    epoch: int
    refuses_until: int
    unresolved_until: int

    def call(self, action: Callable[[Core], Any]) -> Any:
        """Call into the core, if the node is up."""
