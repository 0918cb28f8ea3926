"""The bytes of NetWare's queue services: NCP requests and replies, and the structures of jobs in them.

``msmqwire.netware.connect("10.0.0.5:524", name="ALICE")`` uses the queues of a file server.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msmqwire.netware.client import connect

__all__ = ["connect"]


def __getattr__(name: str) -> Any:
    """Import the client on first use: whoever reads bytes does not need it."""
    if name == "connect":
        from msmqwire.netware.client import connect

        return connect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
