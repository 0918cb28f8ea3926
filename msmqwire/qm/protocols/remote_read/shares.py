"""The counts of open queues, cursors and reads of each caller."""

from __future__ import annotations

from collections import Counter
from typing import Final

from msmqwire.constants import HResult
from msmqwire.qm.protocols.remote_read.calls import Refused
from msmqwire.qm.protocols.remote_read.configuration import Limit, RemoteReadConfiguration


class Share:
    """Counts one kind by caller.

    Attributes:
        total: the sum over all callers.
    """

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self.total = 0
        self._by_caller: Counter[str] = Counter()

    def take(self, caller: str) -> None:
        """Count one more. Raises Refused beyond a limit."""
        if self.total >= self._limit.total or self._by_caller[caller] >= self._limit.per_caller:
            raise Refused(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)
        self.total += 1
        self._by_caller[caller] += 1

    def give_back(self, caller: str, count: int = 1) -> None:
        """Count down."""
        self.total -= count
        self._by_caller[caller] -= count
        if not self._by_caller[caller]:
            del self._by_caller[caller]


class Shares:
    """The counts of all kinds: see `RemoteReadConfiguration`."""

    def __init__(self, configuration: RemoteReadConfiguration) -> None:
        self.handles: Final = Share(configuration.handles)
        self.cursors: Final = Share(configuration.cursors)
        self.waiting: Final = Share(configuration.waiting)
        self.pending: Final = Share(configuration.pending)
        self.transactions: Final = Share(configuration.transactions)
