"""Property-based fuzzing of MSMQ peers: strategies, mutations and the invariants they try to break."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msmqwire.extras import importing

if TYPE_CHECKING:
    from fuzz.peer.running import assert_peer_holds as assert_peer_holds

__all__ = ["assert_peer_holds"]


def __getattr__(name: str) -> Any:
    if name != "assert_peer_holds":
        raise AttributeError(name)
    with importing():
        from fuzz.peer.running import assert_peer_holds

    return assert_peer_holds


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
