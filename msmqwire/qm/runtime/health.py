"""The health of a server: the checks of ``/readyz``, of ``msmqwire check`` and of the supervisor."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple

from msmqwire.names.printable import counted, format_endpoint
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.service.disk import free_on_disk
from msmqwire.service.endpoints import Endpoint
from msmqwire.service.store.sqlite import SqliteStore

UNSYNCED_MAX_S: Final = 5.0
"""Age in seconds of a change that is not on disk from which a server is not ready."""
STALLED_S: Final = 300.0
"""Seconds without any progress after which a start is no longer said to go on."""
_PERCENT: Final = 100


class Stage(Enum):
    """The stages of a server."""

    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"


class Check(NamedTuple):
    """One check.

    Attributes:
        name: what was checked.
        ok: whether it is as it should be.
        detail: the state in words.
    """

    name: str
    ok: bool
    detail: str


class Health:
    """What a server says of itself, from its first moment on.

    Attributes:
        stage: the stage of the server.
        store: the store; None until it is open.
        driver: runs the core; None until the store has been restored.
        endpoints: where the server listens, by protocol.
        restore_s: seconds that the opening and restoring of the store took; so far, while it goes on.
    """

    def __init__(self, folder: Path, min_free: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with a server that starts.

        Args:
            folder: its data folder.
            min_free: bytes of free disk space below which it accepts no messages.
            clock: returns seconds.
        """
        self._folder, self._min_free, self._clock = folder, min_free, clock
        self.stage = Stage.STARTING
        self.store: SqliteStore | None = None
        self.driver: EngineDriver | None = None
        self.endpoints: dict[str, Endpoint] = {}
        self._began = self._went_on = clock()
        self._rows = -1
        self._restored_s: float | None = None
        self._waiters: set[asyncio.Future[None]] = set()

    @property
    def restore_s(self) -> float:
        return self._clock() - self._began if self._restored_s is None else self._restored_s

    def restored(self, driver: EngineDriver) -> None:
        """Note that the store has been restored."""
        self.driver, self._restored_s = driver, self._clock() - self._began

    def ready(self, endpoints: Mapping[str, Endpoint]) -> None:
        """Note that the server listens, where, and wake those who wait for that."""
        self.stage, self.endpoints = Stage.READY, dict(endpoints)
        for waiter in list(self._waiters):
            if not waiter.done():
                waiter.set_result(None)

    def when_ready(self) -> asyncio.Future[None]:
        """Return a future that is done once the server is ready; its owner cancels it to wait no more."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        waiter.add_done_callback(self._waiters.discard)
        if self.stage is Stage.READY:
            waiter.set_result(None)
        return waiter

    def goes_on(self) -> bool:
        """Return whether a start is under way, and has made progress in the last `STALLED_S`."""
        rows, now = 0 if self.store is None else self.store.rows_read, self._clock()
        if rows != self._rows:
            self._rows, self._went_on = rows, now
        return self.stage is Stage.STARTING and now - self._went_on < STALLED_S

    @property
    def words(self) -> str:
        """The state in a few words."""
        failed = [check for check in self.checks() if not check.ok]
        if self.stage is not Stage.STARTING:
            return "; ".join(f"{check.name}: {check.detail}" for check in failed) or self.stage.value
        return f"the store {failed[0].detail}" if failed else self.stage.value

    def report(self) -> dict[str, Any]:
        """Return whether the server is ready, and the checks, as JSON."""
        checks = self.checks()
        return {
            "ok": self.stage is Stage.READY and all(check.ok for check in checks),
            "checks": [check._asdict() for check in checks],
        }

    def checks(self) -> list[Check]:
        """Return the checks as of now. They cost next to nothing: strangers may ask for them."""
        return [self._store(), self._disk(), self._listeners(), self._unsynced(), self._draining()]

    def _store(self) -> Check:
        return Check("store", *self._state_of_store())

    def _state_of_store(self) -> tuple[bool, str]:
        driver = self.driver
        if driver is not None:
            if driver.broken.done():
                return False, "can't be used any more: the log has more"
            return True, f"restored in {self.restore_s:.1f} s; {counted(driver.commits, 'commit')} since"
        if self.store is None:
            return False, f"is being opened, for {self.restore_s:.0f} s"
        rows, read = self.store.rows_to_restore, self.store.rows_read
        part = min(_PERCENT, read * _PERCENT // rows) if rows else _PERCENT
        return False, f"is being restored, for {self.restore_s:.0f} s: {part} %"

    def _disk(self) -> Check:
        driver, least = self.driver, self._min_free
        if driver is not None and driver.refused:
            return Check("disk", False, "refuses changes: they wait in memory, and new messages are refused")
        room = None if driver is None else driver.room
        free = free_on_disk(self._folder) if room is None else room.spare + room.least
        enough = free >= least if driver is None else driver.accepts
        needed = "" if enough else f", too little for new messages: the limit is {_mebibytes(least)}"
        return Check("disk", enough, f"{_mebibytes(free)} free{needed}")

    def _listeners(self) -> Check:
        if self.stage is Stage.STARTING:
            return Check("listeners", False, "not open yet, but for those that answer this")
        if self.stage is Stage.STOPPING:
            return Check("listeners", False, "closed: the server stops")
        where = ", ".join(f"{name} {format_endpoint(*at)}" for name, at in self.endpoints.items())
        return Check("listeners", True, where)

    def _unsynced(self) -> Check:
        age = 0.0 if self.driver is None else self.driver.oldest_unsynced_s
        return Check("oldest_unsynced_change", age < UNSYNCED_MAX_S, f"{age:.1f} s")

    def _draining(self) -> Check:
        if self.driver is None:
            return Check("drain", True, "not asked for")
        return Check("drain", not self.driver.drain.on, self.driver.drain.words)


def _mebibytes(size: int) -> str:
    """Return a size in words."""
    return f"{max(size, 0) >> 20:,} MiB"
