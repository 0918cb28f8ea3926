"""The URLs at which this queue manager is reached."""

from __future__ import annotations

from typing import Final

from msmqwire.names.addresses import HTTP_PORTS
from msmqwire.qm.model.elements import QueueManager
from msmqwire.qm.rules.lookup import Lookup

_ORDER_QUEUE: Final = "MSMQ/PRIVATE$/order_queue$"


class LocalUrls:
    """Knows where the queue manager listens, which its owner says once it does.

    Args:
        queue_manager: the local one.
        lookup: learns which ports are those of this queue manager.
    """

    def __init__(self, queue_manager: QueueManager, lookup: Lookup) -> None:
        self._queue_manager, self._lookup = queue_manager, lookup
        self._ports: dict[str, int] = {}

    def listens(self, *, http: int | None, https: int | None) -> None:
        """Set the ports at which requests are received; None for none."""
        ports = {"http": http, "https": https}
        self._ports = {scheme: port for scheme, port in ports.items() if port is not None}
        self._lookup.http_ports = set(self._ports.values())

    def is_at(self, address: str) -> None:
        """Note an address of this computer."""
        self._lookup.addresses.add(address)

    def order_queue(self, destination: str) -> str:
        """Return ReceiptsURL for messages to a destination, [MC-MQSRM] 3.1.7.2.4; empty for a multicast one.

        It has the scheme of the destination, unless this queue manager is not reached by that, and its port
        unless that is the usual one.
        """
        scheme = destination.partition(":")[0]
        if self._ports and scheme not in self._ports:
            scheme = next(iter(self._ports))
        usual = HTTP_PORTS.get(scheme.upper())
        port = self._ports.get(scheme, usual)
        suffix = "" if port == usual else f":{port}"
        return f"{scheme}://{self._queue_manager.computer_name}{suffix}/{_ORDER_QUEUE}"
