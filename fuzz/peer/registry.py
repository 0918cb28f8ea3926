"""The protocols that peers are tested in."""

from __future__ import annotations

from typing import Final

from fuzz.peer.binary import checks as binary_checks
from fuzz.peer.binary import messages as binary_messages
from fuzz.peer.binary import walk as binary_walk
from fuzz.peer.binary.player import BinaryPlayer
from fuzz.peer.ping import checks as ping_checks
from fuzz.peer.ping import datagrams as ping_datagrams
from fuzz.peer.ping import walk as ping_walk
from fuzz.peer.ping.player import PingPlayer
from fuzz.peer.protocols import FuzzedProtocol
from fuzz.peer.remote_read import checks as remote_read_checks
from fuzz.peer.remote_read import walk as remote_read_walk
from fuzz.peer.remote_read.player import RemoteReadPlayer
from fuzz.peer.srmp import checks as srmp_checks
from fuzz.peer.srmp import messages as srmp_messages
from fuzz.peer.srmp import walk as srmp_walk
from fuzz.peer.srmp.player import SrmpPlayer

FUZZED: Final = {
    protocol.name: protocol
    for protocol in (
        FuzzedProtocol(
            "binary",
            BinaryPlayer,
            binary_checks.fresh,
            binary_checks.checks,
            binary_walk.walk,
            binary_messages.kind,
            binary_checks.serving,
            binary_checks.has_queue,
        ),
        FuzzedProtocol(
            "ping",
            PingPlayer,
            ping_checks.fresh,
            ping_checks.checks,
            ping_walk.walk,
            ping_datagrams.kind,
        ),
        FuzzedProtocol(
            "srmp",
            SrmpPlayer,
            srmp_checks.fresh,
            srmp_checks.checks,
            srmp_walk.walk,
            srmp_messages.kind,
        ),
        FuzzedProtocol(
            "remote-read",
            RemoteReadPlayer,
            remote_read_checks.fresh,
            remote_read_checks.checks,
            remote_read_walk.walk,
            remote_read_checks.kind,
            has_queue=remote_read_checks.has_queue,
        ),
    )
}
"""The targets by name."""
