"""The registration of multicast: without an engine, since that of SRMP sends and receives its messages."""

from __future__ import annotations

from typing import Final

from msmqwire.qm.protocols.interface import Registration

PROTOCOL: Final = Registration(
    name="multicast",
    order=20,
    transport="msmqwire.qm.runtime.multicast.transport:MulticastTransport",
    client_options="msmqwire.qm.runtime.multicast.options:client_options",
)
