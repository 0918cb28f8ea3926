"""The way from a program to a queue, entered and left."""

from __future__ import annotations

import asyncio
import os
from types import TracebackType
from typing import Final

from msmqwire.errors import Unreachable
from msmqwire.qm.client.manager import ClientManager
from msmqwire.qm.client.plain import Plain, PlainQueue
from msmqwire.qm.client.queue import Queue
from msmqwire.qm.service.network import Ways

_LOOK_S: Final = 0.005
_GRACE_S: Final = 1.0
"""How long the acknowledgements of express messages are waited for."""


class Connection:
    """What `msmqwire.connect` gives; to be entered once.

    Leaving it raises Unreachable when something was not transferred and is lost with it.
    """

    def __init__(
        self,
        format_name: str,
        state: str | os.PathLike[str] | None,
        ways: Ways,
        listen: tuple[str, int] | None,
        drain: float,
    ) -> None:
        self._format_name, self._drain = format_name, drain
        self._given = state, ways, listen
        self._manager: ClientManager | None = None
        self._plain: Plain | None = None

    async def __aenter__(self) -> Queue:
        self._manager = manager = ClientManager(*self._given)
        try:
            await manager.start()
            return Queue(manager, manager.open(self._format_name))
        except BaseException:
            manager.close_store()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        manager = self._manager
        assert manager is not None, "it was entered"
        try:
            if kind is None:
                await self._transferred(manager)
        finally:
            await manager.stop()

    async def _transferred(self, manager: ClientManager) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while waiting := manager.waiting():
            waited = loop.time() - begun
            if waited > self._drain or (waited > _GRACE_S and all(one.gone for one in waiting)):
                break
            await asyncio.sleep(_LOOK_S)
        lost = sum(not (one.kept or one.gone) for one in waiting)
        if lost:
            raise Unreachable(f"{lost} messages were not transferred{manager.obstacle()}")

    def __enter__(self) -> PlainQueue:
        self._plain = Plain(self)
        return self._plain.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._plain is not None, "it was entered"
        self._plain.stop(kind, value, trace)
