"""The URLs at which this queue manager is reached."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Final
from urllib.parse import quote, unquote

from msmqwire.errors import InvalidName
from msmqwire.headers.acknowledgements import ORDER_QUEUE_NAME
from msmqwire.names import DirectName, FormatName
from msmqwire.names.addresses import HTTP_PORTS
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules.lookup import Lookup
from msmqwire.qm.rules.recovery import Stored

PORTS: Final = b"HttpPorts"
"""The row of the ports at which the queue manager has listened."""
_HOSTS: Final = b"HttpHosts"
_ORDER_QUEUE: Final = f"MSMQ/PRIVATE$/{ORDER_QUEUE_NAME}"
_ADMINISTRATION: Final = "?admin="
_PRIVATE: Final = "private$/"
_URL_MAX: Final = 255
"""Characters of a URL that names an administration queue: receivers need not take longer names of queues."""


class LocalUrls:
    """The URLs at which the queue manager listens; its owner reports them once it does.

    Until then, after a restart, the former URLs hold: waiting messages are sent at once.

    Args:
        context: the state of the queue manager.
        lookup: learns the ports of this queue manager.
    """

    def __init__(self, context: Context, lookup: Lookup) -> None:
        self._context, self._lookup = context, lookup
        self._ports: dict[str, int] = {}
        self._is_told = False

    def restore(self, stored: Stored) -> None:
        """Take over the ports of the last run, unless the owner has reported the present ones already."""
        row, hosts = stored.row(Table.META, PORTS), stored.row(Table.META, _HOSTS)
        if row and not self._is_told:
            self._set(json.loads(row))
            self._lookup.receives_http_at(json.loads(hosts) if hosts else None)

    def listens(self, *, http: int | None, https: int | None, hosts: Collection[str] | None = None) -> None:
        """Set the places for requests: the ports, None for none, and the addresses, None for unknown."""
        self._lookup.receives_http_at(hosts)
        if hosts is not None:
            self._context.changes.put(Table.META, _HOSTS, json.dumps(sorted(hosts)).encode())
        ports = {"http": http, "https": https}
        known = {scheme: port for scheme, port in ports.items() if port is not None}
        if known != self._ports or not self._is_told:
            self._is_told = True
            self._set(known)
            self._context.changes.put(Table.META, PORTS, json.dumps(known).encode())

    def _set(self, ports: dict[str, int]) -> None:
        self._ports, self._lookup.http_ports = ports, set(ports.values())

    def is_at(self, address: str) -> None:
        """Note an address of this computer."""
        self._lookup.addresses.add(address)

    def order_queue(self, destination: str, administration: FormatName | None = None) -> str:
        """Return ReceiptsURL for messages to a destination, [MC-MQSRM] 3.1.7.2.4; empty for a multicast one.

        It has the scheme of the destination, if this queue manager can be reached by it, and its port unless
        that is the usual one. The receiver sends all receipts for the first message of a stream there
        (SRMP-3.1.5.1.1-28): those that the application has requested are for `administration`, which the URL
        names if it is a queue here.
        """
        scheme = destination.partition(":")[0]
        if self._ports and scheme not in self._ports:  # SRMP-3.1.7.2.4-20
            scheme = next(iter(self._ports))
        usual = HTTP_PORTS.get(scheme.upper())
        port = self._ports.get(scheme, usual)
        suffix = "" if port == usual else f":{port}"  # SRMP-3.1.7.2.4-20
        url = f"{scheme}://{self._context.queue_manager.computer_name}{suffix}/{_ORDER_QUEUE}"
        if (
            isinstance(administration, DirectName)
            and not (administration.is_read_only or administration.subqueue)
            and self._lookup.is_local_name(administration)
        ):
            folder = _PRIVATE if administration.private else ""
            named = f"{url}{_ADMINISTRATION}{quote(folder + administration.queue, safe='$')}"
            if len(named) <= _URL_MAX and self._lookup.addressed(administration) is not None:
                return named
        return url


def order_queue_parts(name: FormatName) -> tuple[DirectName, DirectName] | None:
    """Return the order queue of a URL, and the administration queue that the URL names; None if it has none.

    Any sender can write the URL: text that is not the name of a queue names none.
    """
    if not isinstance(name, DirectName) or not name.private:
        return None
    queue, _, administration = name.queue.partition(_ADMINISTRATION)
    if not administration or queue.lower() != ORDER_QUEUE_NAME:
        return None
    text = unquote(administration)
    private = text.startswith(_PRIVATE)
    try:
        application = replace(name, queue=text.removeprefix(_PRIVATE), private=private, text="")
    except InvalidName:
        return None
    return replace(name, queue=ORDER_QUEUE_NAME, text=""), application
