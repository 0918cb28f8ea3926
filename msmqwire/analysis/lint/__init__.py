"""Checks of packets against the specifications: which requirement is broken, and where.

`lint_packet` checks one packet, `SessionLint` the order of the packets on a connection, `PingLint` ping
requests and responses, `lint_malformed` bytes that are not a packet; `lint_srmp` a message of SRMP,
`lint_malformed_srmp` bytes that are none; `lint_rpc` a PDU, call or answer of DCE/RPC, `RemoteReadLint` the
order of those of remote read, `lint_malformed_rpc` bytes of RPC that can't be read; `NcpLint` packets of NCP
and their order, `lint_malformed_ncp` bytes that are none; `lint_pgm` a packet of PGM. `checks` lists all
rules. `lint` judges any of them alone.

The package itself can be called as `lint`: ``msmqwire.lint(packet)``.
"""

from __future__ import annotations

import sys
from pkgutil import resolve_name
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msmqwire.analysis.lint.attacks import lint_malformed
from msmqwire.analysis.lint.finding import BREACHES, SEVERITIES, Finding, Severity
from msmqwire.analysis.lint.packet import checks, lint_packet
from msmqwire.analysis.lint.pings import PingLint
from msmqwire.analysis.lint.queue_managers import QueueManagers
from msmqwire.analysis.lint.registry import Check
from msmqwire.analysis.lint.security import lint_wrong_signature
from msmqwire.analysis.lint.session import SessionLint
from msmqwire.analysis.lint.single_packet import lint
from msmqwire.analysis.protocols import protocols

if TYPE_CHECKING:  # of protocols that join: see `_join`
    from msmqwire.analysis.lint.ncp_attacks import lint_malformed_ncp as lint_malformed_ncp
    from msmqwire.analysis.lint.ncp_session import NcpLint as NcpLint
    from msmqwire.analysis.lint.pgm import lint_pgm as lint_pgm
    from msmqwire.analysis.lint.remote_read_session import RemoteReadLint as RemoteReadLint
    from msmqwire.analysis.lint.rpc import lint_malformed_rpc as lint_malformed_rpc
    from msmqwire.analysis.lint.rpc import lint_rpc as lint_rpc
    from msmqwire.analysis.lint.srmp import lint_srmp as lint_srmp
    from msmqwire.analysis.lint.srmp_attacks import lint_malformed_srmp as lint_malformed_srmp

__all__ = [
    "BREACHES",
    "SEVERITIES",
    "Check",
    "Finding",
    "PingLint",
    "QueueManagers",
    "SessionLint",
    "Severity",
    "checks",
    "lint",
    "lint_malformed",
    "lint_packet",
    "lint_wrong_signature",
]


class _Callable(ModuleType):
    """A package that can be called.

    `msmqwire.lint` is this package, as it was when the function and its modules had one name: so it can be
    called like the function. Type checkers see the function.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> list[Finding]:
        """Judge one packet: see the function `lint`."""
        return lint(*args, **kwargs)


def _join() -> None:
    """Register the checks of protocols, and export their names: they were imported from here before."""
    for protocol in protocols():
        resolve_name(protocol.judging.judge)
        for place in protocol.judging.exports:
            name = place.partition(":")[2]
            globals()[name] = resolve_name(place)
            __all__.append(name)


_join()
sys.modules[__name__].__class__ = _Callable
