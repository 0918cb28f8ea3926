"""Answers that take long to build: a thread builds one after the other, and the loop goes on."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from msmqwire.qm.runtime.rpc.connection import RpcConnection
from msmqwire.service.logs import log

LONG: Final = 64 << 10
"""Bytes of an answer from which on it is built in a thread: about 2 milliseconds of work."""

Build = Callable[[], bytes]
"""Builds an answer of values that nothing changes any more."""


class _Waiting(NamedTuple):
    connection: RpcConnection
    prepare: Callable[[], Build]
    done: Callable[[bytes], None]


class LongAnswers:
    """Builds the answers of calls in the order of the calls.

    A connection has one such call at most; its further calls wait. The values of a call are taken when its
    turn has come, so that no more than those of one answer are held.
    """

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()
        self._under_way: set[RpcConnection] = set()
        self._executor: ThreadPoolExecutor | None = None
        self._built: asyncio.Future[bytes] | None = None

    def __contains__(self, connection: object) -> bool:
        """Return whether an answer to a connection is being built, or waits for that."""
        return connection in self._under_way

    def add(
        self,
        connection: RpcConnection,
        build: Build,
        prepare: Callable[[], Build],
        done: Callable[[bytes], None],
    ) -> None:
        """Build an answer.

        Args:
            connection: the connection of the call.
            build: builds the answer, if no other one is being built; it is dropped otherwise.
            prepare: makes it anew, when its turn has come.
            done: called with the answer, unless the connection has gone.
        """
        self._under_way.add(connection)
        if self._built is None:
            self._begin(_Waiting(connection, prepare, done), build)
        else:
            self._waiting.append(_Waiting(connection, prepare, done))

    def forget(self, connection: RpcConnection) -> None:
        """A connection has gone."""
        self._under_way.discard(connection)

    def close(self) -> None:
        """Build no more answers."""
        self._waiting.clear()
        self._under_way.clear()
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)

    def _begin(self, call: _Waiting, build: Build) -> None:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "rpc answers")
        self._built = asyncio.get_running_loop().run_in_executor(self._executor, build)
        self._built.add_done_callback(lambda built: self._end(call, built))

    def _end(self, call: _Waiting, built: asyncio.Future[bytes]) -> None:
        self._built = None
        if built.cancelled():
            return
        failure = built.exception()
        if failure is not None:
            log.error("a fault in building an answer", exc_info=failure)
            call.connection.abort()
        elif call.connection in self._under_way:
            self._under_way.discard(call.connection)
            call.done(built.result())
        while self._built is None and self._waiting:
            following = self._waiting.popleft()
            if following.connection in self._under_way:
                self._begin(following, following.prepare())
