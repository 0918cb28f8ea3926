"""Objects that are entered with ``async with`` or ``with``, once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from msmqwire.errors import InvalidValue
from msmqwire.service.loop_thread import SyncConnection

OpenedT = TypeVar("OpenedT")
SynchronousT = TypeVar("SynchronousT")


class EnteredOnce(ABC, Generic[OpenedT, SynchronousT]):
    """A context manager of both kinds: ``with`` does the work of ``async with`` in a thread of its own."""

    _path: ClassVar[str]
    """The name of the object in errors."""
    _example: ClassVar[str]
    """The way to enter the object, and its purpose, in words."""

    def __init__(self) -> None:
        self._sync: SyncConnection | None = None
        self._entered = False

    @abstractmethod
    async def _open(self) -> OpenedT:
        """Return the value of ``async with``."""

    @abstractmethod
    def _synchronous(self, sync: SyncConnection, opened: OpenedT) -> SynchronousT:
        """Return the value of ``with``."""

    @abstractmethod
    async def _leave(self, *, wait: bool) -> None:
        """End it, after an exception without waiting for anything."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Refuse any use before entering, with the way to enter."""
            why = f"{type(self).__name__!r} object has no attribute {name!r}"
            if not name.startswith("_"):
                why += f" before it is entered; write {self._example}.{name}(...)"
            raise AttributeError(why)

    def _enter(self) -> None:
        if self._entered:
            raise InvalidValue("it was entered before: make another one", path=self._path)
        self._entered = True

    async def __aenter__(self) -> OpenedT:
        self._enter()
        return await self._open()

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._leave(wait=kind is None)

    def __enter__(self) -> SynchronousT:
        self._enter()
        self._sync = sync = SyncConnection()
        return self._synchronous(sync, sync.start(self._open()))

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._sync is not None, "it was entered"
        self._sync.stop(self._leave(wait=kind is None))
