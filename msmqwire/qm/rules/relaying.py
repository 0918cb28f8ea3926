"""The rule for forwarding messages of peers to remote queues: `Settings.relay`."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

from msmqwire.names import DirectName, FormatName, MachineName, PrivateName
from msmqwire.qm.directory.attributes import Operator
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.enumerations import Relay
from msmqwire.qm.rules.directory_events import DirectoryEvents
from msmqwire.qm.rules.lookup import Lookup
from msmqwire.qm.rules.routing import Routing


class Relaying:
    """Knows the destinations to which peers may have messages forwarded.

    [MS-MQQB] 3.1.5.8.5 forwards to any destination, and no session has a login: without this rule any peer
    could make a queue manager connect and send to every computer.

    Args:
        hosts: names and addresses of computers that the administrator has named.
    """

    def __init__(
        self,
        context: Context,
        directory: DirectoryEvents,
        routing: Routing,
        lookup: Lookup,
        hosts: Collection[str] = (),
    ) -> None:
        self._relay = context.settings.relay
        self._directory, self._routing, self._lookup = directory, routing, lookup
        self._hosts = {host.lower() for host in hosts}

    def allows(self, destination: FormatName) -> bool:
        """Return whether a message of a peer may be forwarded to a destination."""
        return self._relay is Relay.ALL or (self._relay is Relay.KNOWN and self._is_known(destination))

    def _is_known(self, destination: FormatName) -> bool:
        """Return whether the administrator or an application has named the computer of a destination.

        The fixed route to all destinations without another one names none.
        """
        if self._lookup.is_asked_locally(destination):
            return True
        routes = self._routing.routes
        match destination:
            case DirectName():
                host = destination.host.lower()
                return host in self._hosts or self._is_hop(host) or self._is_in_directory(destination.host)
            case PrivateName() | MachineName():
                known = self._directory.read_by_identifier("QueueManager", destination.guid)
                return destination.guid in routes or known is not None
        return self._routing.get_destination_info(destination) is not None

    def _is_hop(self, host: str) -> bool:
        hops = chain.from_iterable(self._routing.routes.values())
        return any(isinstance(hop, str) and hop.lower() == host for hop in hops)

    def _is_in_directory(self, host: str) -> bool:
        return any(
            self._directory.read_directory("QueueManager", [(name, Operator.EQUALS, host)]).object is not None
            for name in ("ComputerName", "QualifiedComputerName")
        )
