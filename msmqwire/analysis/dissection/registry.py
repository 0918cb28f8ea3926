"""The dissectors of captures, in the order in which they are asked; the first that recognises one has it.

A tracker makes its dissectors when it is made: it knows those that are registered by then. The built reader
of columns looks for the protocols of this program only; the items of other protocols come from
`msmqwire.dissect`.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

from msmqwire.analysis.dissection.dissector import DatagramDissector, Dissector
from msmqwire.analysis.dissection.msmq_connection import MsmqSessions
from msmqwire.analysis.dissection.ping_datagrams import PingDatagrams
from msmqwire.analysis.protocols import protocols

STREAMS: list[type[Dissector]] = []
"""The dissectors of TCP."""
DATAGRAMS: list[type[DatagramDissector]] = []
"""The dissectors of UDP and PGM."""


def register(dissector: type[Dissector] | type[DatagramDissector]) -> None:
    """Register a dissector, which is asked before those registered earlier."""
    _beside(dissector).insert(0, dissector)


def unregister(dissector: type[Dissector] | type[DatagramDissector]) -> None:
    """Let a dissector be asked no more."""
    _beside(dissector).remove(dissector)


def _beside(dissector: type[Dissector] | type[DatagramDissector]) -> list[Any]:
    return DATAGRAMS if issubclass(dissector, DatagramDissector) else STREAMS


for _protocol in protocols():
    for _place in _protocol.traffic.dissectors:
        _dissector = resolve_name(_place)
        _beside(_dissector).append(_dissector)
STREAMS.append(MsmqSessions)
DATAGRAMS.append(PingDatagrams)
