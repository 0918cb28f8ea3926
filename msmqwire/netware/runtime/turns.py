"""Turns of peers: whatever the number of requests from one address, other peers wait for at most a slice."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from typing import Final

SLICE_S: Final = 0.002
"""Seconds of a turn of the loop that requests of one peer take; one request may take longer."""


class PeerTurns:
    """The peers that may work in a turn of the event loop.

    A peer that has used its slice waits for the next turn, in which it gets one request more for each that
    it finishes in time. Its connections are served in the order in which they have asked.
    """

    def __init__(self) -> None:
        self._used: defaultdict[str, float] = defaultdict(float)  # seconds in this turn
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._scheduled = False

    def may_go(self, peer: str) -> bool:
        """Return whether a peer may work now, without waiting."""
        return peer not in self._waiting and self._used.get(peer, 0.0) < SLICE_S

    def turn(self, peer: str) -> asyncio.Future[None]:
        """Return a future that is done when it is the peer's turn; its caller may cancel it."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(peer, deque()).append(turn)
        self._schedule()
        return turn

    def spent(self, peer: str, seconds: float) -> None:
        """Note the time that a peer has used."""
        self._used[peer] += seconds
        if peer in self._waiting and self._used[peer] < SLICE_S:
            self._let_one_go(peer)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        self._scheduled = False
        self._used.clear()
        for peer in list(self._waiting):
            self._let_one_go(peer)
        if self._waiting:
            self._schedule()

    def _let_one_go(self, peer: str) -> None:
        waiting = self._waiting[peer]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                break
        if not waiting:
            del self._waiting[peer]
