"""Multicast for a queue manager that may never use it: its code is loaded on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msmqwire.qm.model.effects import Multicast, MulticastGroups
from msmqwire.qm.runtime.multicast.options import PgmOptions
from msmqwire.service.carrier import Performers

if TYPE_CHECKING:
    from msmqwire.qm.runtime.multicast.network import MulticastNetwork


class MulticastOnDemand:
    """A `MulticastNetwork` from the first group or message on.

    Args:
        options, received, sent, failed, refused: the arguments of the network.

    Attributes:
        network: None as long as it is not used.
    """

    def __init__(
        self,
        options: PgmOptions,
        received: Callable[[bytes, str, str, int], None],
        sent: Callable[[int], None],
        failed: Callable[[int, str], None],
        refused: Callable[[int], None],
    ) -> None:
        self._options = options
        self._received, self._sent, self._failed, self._refused = received, sent, failed, refused
        self.network: MulticastNetwork | None = None

    def _opened(self) -> MulticastNetwork:
        if self.network is None:
            from msmqwire.qm.runtime.multicast.network import MulticastNetwork

            self.network = MulticastNetwork(
                self._options, self._received, self._sent, self._failed, self._refused
            )
            self.network.begin()
        return self.network

    @property
    def performers(self) -> Performers:
        return {MulticastGroups: self.set_groups, Multicast: self.send}

    def set_groups(self, effect: MulticastGroups) -> None:
        """Carry out `MulticastGroups`."""
        if effect.groups or self.network is not None:
            self._opened().set_groups(effect.groups)

    def send(self, effect: Multicast) -> None:
        """Carry out `Multicast`."""
        self._opened().send(*effect)

    def stop_listening(self) -> None:
        """Do nothing: received messages still have to be stored, and `finish` ends multicast."""

    async def finish(self) -> None:
        """Send all waiting messages, and close everything, while the outcome can still be stored."""
        await self.close()

    def abort(self) -> None:
        """Nothing is connected."""

    async def close(self) -> None:
        """See `finish`; a second call does nothing."""
        if self.network is not None:
            await self.network.close()
