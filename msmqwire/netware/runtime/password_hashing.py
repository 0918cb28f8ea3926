"""Hashing of passwords away from the event loop: one at a time, each peer in its turn.

A hash takes a thread some 50 ms. Whatever the number of logins from one address, other peers wait for at most
one hash of each address, and calls without a password for none. An address has its next hash once its last
one is compared, and after a wrong password it waits.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeVar

from msmqwire.errors import NcpRefused, Unreachable
from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.model import passwords
from msmqwire.netware.model.passwords import SALT_SIZE, HashNeeded, PasswordHashing
from msmqwire.netware.rules.service import QueueService
from msmqwire.netware.runtime.driving import OperationDriver

T = TypeVar("T")
WRONG_S: Final = 0.5
"""Seconds from a wrong password to the next hash for its peer."""
_HASHES_MAX: Final = 4
"""Hashes of one call: an old and a new password, again if another call changes the password meanwhile."""


class _Known(PasswordHashing):
    """The hashes of a call that have been computed; it is made again after each."""

    def __init__(self) -> None:
        super().__init__(os.urandom(SALT_SIZE))
        self._digests: dict[tuple[bytes, bytes], bytes] = {}

    def digest(self, password: bytes, salt: bytes) -> bytes:
        needed = HashNeeded(password, salt)
        found = self._digests.get((needed.password, salt))
        if found is None:
            raise needed
        return found

    def add(self, needed: HashNeeded, digest: bytes) -> None:
        """Keep a hash that was asked for."""
        self._digests[needed.password, needed.salt] = digest

    def __len__(self) -> int:
        return len(self._digests)


@dataclass(slots=True)
class _Wait:
    """A call that waits for a hash."""

    owner: Hashable
    known: _Known
    needed: HashNeeded
    result: asyncio.Future[bytes]


class PasswordHasher:
    """Performs calls that may need hashes of passwords.

    Args:
        wrong_s: seconds that a peer waits after a wrong password.
    """

    def __init__(self, wrong_s: float = WRONG_S) -> None:
        self._wrong_s = wrong_s
        self._thread: ThreadPoolExecutor | None = None
        self._waiting: dict[str, deque[_Wait]] = {}  # by peer, in the order of their turns
        self._undecided: dict[str, _Known] = {}  # by peer, the call whose hash is not compared yet
        self._not_before: dict[str, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._busy = self._closed = False
        self.hashes = 0

    @property
    def waiting(self) -> int:
        """The number of calls that wait for a hash to begin."""
        return sum(map(len, self._waiting.values()))

    async def run(
        self,
        driver: OperationDriver,
        operation: Callable[[QueueService, PasswordHashing], T],
        *,
        peer: str = "",
        owner: Hashable = None,
    ) -> T:
        """Perform an operation as `OperationDriver.run` does, each time with one hash more that it needs.

        Args:
            peer: the address or network that takes turns with other peers.
            owner: the connection of the call, for `forget`.

        Raises what `OperationDriver.run` raises.
        """
        known = _Known()

        def attempt(service: QueueService) -> T | HashNeeded:
            try:
                return operation(service, known)
            except HashNeeded as needed:
                return needed

        try:
            while True:
                try:
                    result = await driver.run(attempt)
                except NcpRefused as exc:
                    if exc.code == CompletionCode.FAILURE and len(known):
                        self._not_before[peer] = asyncio.get_running_loop().time() + self._wrong_s
                    raise
                if not isinstance(result, HashNeeded):
                    return result
                if len(known) >= _HASHES_MAX:
                    raise NcpRefused("the password changes all the time", CompletionCode.FAILURE)
                self._decided(peer, known)
                known.add(result, await self._hash(peer, owner, known, result))
        finally:
            self._decided(peer, known)

    def forget(self, owner: Hashable) -> None:
        """Refuse the waiting calls of a connection that is lost: nobody reads their replies."""
        for peer in list(self._waiting):
            for wait in [wait for wait in self._waiting[peer] if wait.owner == owner]:
                self._waiting[peer].remove(wait)
                _refuse(wait, NcpRefused("the connection is lost", CompletionCode.FAILURE))
            if not self._waiting[peer]:
                del self._waiting[peer]

    def close(self) -> None:
        """Refuse all waiting calls, and those that come."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for waits in self._waiting.values():
            for wait in waits:
                _refuse(wait, _stopped())
        self._waiting.clear()
        if self._thread is not None:
            self._thread.shutdown(wait=False)

    def _decided(self, peer: str, known: _Known) -> None:
        """Let a peer have its next hash, if the last one was for this call."""
        if self._undecided.get(peer) is known:
            del self._undecided[peer]
            self._begin()

    async def _hash(self, peer: str, owner: Hashable, known: _Known, needed: HashNeeded) -> bytes:
        if self._closed:
            raise _stopped()
        result: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(peer, deque()).append(_Wait(owner, known, needed, result))
        self._begin()
        return await result

    def _begin(self) -> None:
        """Begin the next hash, if none is under way: that of the peer whose turn it is."""
        if self._busy or self._closed:
            return
        now = asyncio.get_running_loop().time()
        self._not_before = {peer: when for peer, when in self._not_before.items() if when > now}
        held = self._not_before.keys() | self._undecided.keys()
        peer = next((peer for peer in self._waiting if peer not in held), None)
        if peer is None:
            self._begin_later(now)
            return
        waits = self._waiting.pop(peer)
        wait = waits.popleft()
        if waits:
            self._waiting[peer] = waits
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "qms-passwords")
        self._busy = True
        self._undecided[peer] = wait.known
        self.hashes += 1
        work = asyncio.get_running_loop().run_in_executor(
            self._thread, passwords.digest, wait.needed.password, wait.needed.salt
        )
        work.add_done_callback(lambda done: self._done(wait, done))

    def _begin_later(self, now: float) -> None:
        """Begin when the first of the peers that wait after a wrong password may have its next hash."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        times = [self._not_before[peer] for peer in self._waiting if peer in self._not_before]
        if times:
            self._timer = asyncio.get_running_loop().call_later(min(times) - now, self._begin)

    def _done(self, wait: _Wait, work: asyncio.Future[bytes]) -> None:
        self._busy = False
        if work.cancelled():
            _refuse(wait, _stopped())
        elif (exc := work.exception()) is not None:
            refusal = NcpRefused(f"no hash: {exc}", CompletionCode.SERVER_OUT_OF_MEMORY)
            refusal.__cause__ = exc
            _refuse(wait, refusal)
        elif not wait.result.done():
            wait.result.set_result(work.result())
        self._begin()


def _refuse(wait: _Wait, exc: Exception) -> None:
    if not wait.result.done():
        wait.result.set_exception(exc)


def _stopped() -> Unreachable:
    return Unreachable("the server has stopped")
