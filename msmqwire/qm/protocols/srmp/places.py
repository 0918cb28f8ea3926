"""The destinations that messages of peers make this queue manager reach by HTTP."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from msmqwire.names import DirectName, FormatName, MulticastName
from msmqwire.names.origins import origin_of
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.message import Message
from msmqwire.qm.protocols.srmp.queue_names import is_http
from msmqwire.qm.protocols.srmp.transfer import SrmpTransfer, digest_of
from msmqwire.qm.rules.lookup import Lookup
from msmqwire.qm.rules.queue_memory import QueueMemory

_HOSTS_MAX: Final = 4_096


class HttpPlaces:
    """Limits the destinations that peers make this queue manager try, by origin and in total.

    Args:
        context, lookup: parts of the core.
        memory: the memory of outgoing queues.
        transfers: the transfers, by the number of their queue.
        forget: removes a transfer that has nothing to do.
        give_up: gives up all messages of a transfer.
    """

    def __init__(
        self,
        context: Context,
        lookup: Lookup,
        memory: QueueMemory,
        transfers: dict[int, SrmpTransfer],
        *,
        forget: Callable[[SrmpTransfer], None],
        give_up: Callable[[SrmpTransfer], None],
    ) -> None:
        self._context, self._lookup, self._memory = context, lookup, memory
        self._transfers, self._forget, self._give_up = transfers, forget, give_up
        self._origins: OrderedDict[str, str] = OrderedDict()  # by host, for hosts that have answered
        self._evicting = False
        memory.forget_idle.append(self._forget_idle)

    def may_send_to(self, name: FormatName, origin: str) -> bool:
        """Return whether an outgoing queue may be opened for a message of an origin."""
        if isinstance(name, MulticastName):
            return not origin  # peers must not choose a group to flood
        if not origin or not is_http(name) or self._lookup.is_local_name(name):
            return True
        if self._lookup.outgoing(name) is not None:
            return True
        return self._memory.fits(name, origin) and self._may_try(origin)

    def awaits(self, name: FormatName, message: Message) -> bool:
        """Return whether the same request already waits to be forwarded.

        Senders repeat the messages of a stream until there is a receipt. If every repetition waited for its
        turn as well, receipts would be more and more delayed, and repetitions would take the place of
        messages.
        """
        queue = self._lookup.outgoing(name)
        transfer = None if queue is None else self._transfers.get(queue.number)
        return transfer is not None and digest_of(message) in transfer.digests

    def _forget_idle(self, origin: str) -> None:
        for transfer in list(self._transfers.values()):
            if transfer.queue.asked_by == origin and transfer.is_idle:
                self._forget(transfer)

    def _may_try(self, origin: str) -> bool:
        """Return whether one more destination may be tried for an origin.

        The oldest unreachable destination is given up to make room for it.
        """
        settings = self._context.settings
        if len(self._transfers) < min(settings.unreachable_per_origin_max, settings.unreachable_max):
            return True
        places: dict[str, list[SrmpTransfer]] = {}
        for transfer in self._transfers.values():
            asked_by = transfer.queue.asked_by
            if asked_by and transfer.failures and transfer.messages:
                places.setdefault(asked_by, []).append(transfer)
        own = places.get(origin, [])
        if len(own) >= settings.unreachable_per_origin_max:
            return self._evict(own[0])
        if sum(map(len, places.values())) >= settings.unreachable_max:
            return self._evict(max(places.values(), key=len)[0])
        return True

    def _evict(self, transfer: SrmpTransfer) -> bool:
        """Give up a destination; return False if one is being given up already."""
        if self._evicting:
            return False
        self._evicting = True
        self._context.trouble("unreachable", f"{transfer.url:.200} is given up for another destination")
        self._give_up(transfer)
        if transfer.is_idle:
            self._forget(transfer)
        self._evicting = False
        return True

    def reached(self, transfer: SrmpTransfer, address: str) -> None:
        """A destination has answered from an address."""
        name = transfer.queue.destination
        if isinstance(name, DirectName):
            host = name.host.lower()
            self._origins[host] = origin_of(address)
            self._origins.move_to_end(host)
            if len(self._origins) > _HOSTS_MAX:
                self._origins.popitem(last=False)

    def leads_back(self, name: FormatName, origin: str) -> bool:
        """Return whether messages to a name go to an origin, as far as is known."""
        if not isinstance(name, DirectName) or not is_http(name):
            return False
        return origin_of(name.host) == origin or self._origins.get(name.host.lower()) == origin
