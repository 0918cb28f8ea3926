"""A node, for the networks of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from msmqwire.qm.core import Core
from msmqwire.service.virtual.loop import VirtualLoop


class Host(Protocol):
    """A node, for the network.

    Attributes:
        core: None while it is down.
        epoch: the number of its starts.
        loop: the event loop of the run. refuses_until, unresolved_until: faults that last for a time.
    """

    name: str
    address: str
    core: Core | None
    epoch: int
    loop: VirtualLoop
    refuses_until: int
    unresolved_until: int

    def call(self, action: Callable[[Core], Any]) -> Any:
        """Call into the core, if the node is up."""

    def datagram(self, data: bytes, address: str, port: int, *, request: bool) -> None:
        """A datagram has come."""

    def socket(self) -> asyncio.Protocol:
        """Return the queue manager's end of a connection that comes in; the node is up."""
