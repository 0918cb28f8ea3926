"""Access to the queues of a folder in its store, while no server has it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from msmqwire.errors import StoreRefused
from msmqwire.qm.runtime.data_folder import STORE, DataFolder
from msmqwire.qm.runtime.definitions.key_definitions import finish_import
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder import check_name, default_name, open_core, stored_name
from msmqwire.qm.runtime.folder_security import FolderSecurity
from msmqwire.qm.runtime.hand_out_file import hand_outs_of
from msmqwire.qm.runtime.kept_options import KeptOptions
from msmqwire.qm.runtime.local import DISK_S
from msmqwire.qm.runtime.operations import LocalSession
from msmqwire.service.control.client import LocalBase
from msmqwire.service.tasks import cancel_other_tasks

T = TypeVar("T")
_POLL_S: Final = 0.1


class InStore(LocalBase):
    """Access to the store of a folder, opened exclusively; nothing is sent to other computers."""

    served = False

    def __init__(self, folder: DataFolder, *, create: bool) -> None:
        self._path = str(folder.path / STORE)
        self._refused: StoreRefused | None = None
        self._store = folder.open_store(create=create)
        self._loop = asyncio.new_event_loop()
        self._security: FolderSecurity | None = None
        try:
            finish_import(self._store, folder.path)
            self._security = FolderSecurity(folder.path)
            name = stored_name(self._store) or check_name(default_name())
            self._driver, self._session = self._loop.run_until_complete(self._start(name))
        except BaseException:
            self._close()
            raise

    async def _start(self, name: str) -> tuple[EngineDriver, LocalSession]:
        assert self._security is not None, "it was read before"
        core = open_core(
            self._store,
            name,
            security=self._security.configuration,
            hand_outs=hand_outs_of(self._store),
        )
        driver = EngineDriver(core, self._store)
        driver.security, driver.kept = self._security, KeptOptions.read(self._store)
        driver.core.queues.take_offline()
        driver.start()
        return driver, LocalSession(driver, lasting=False)

    def call(self, op: str, /, **request: Any) -> dict[str, Any]:
        if self._refused is not None:
            raise self._refused
        return self._loop.run_until_complete(self._run(self._session.run({"op": op, **request})))

    async def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` to its end. Raises StoreRefused if the disk persistently refuses its changes."""
        task = asyncio.ensure_future(work)
        refused_since: float | None = None
        try:
            while not task.done():
                await asyncio.wait((task,), timeout=_POLL_S)
                if not self._driver.refused:
                    refused_since = None
                elif refused_since is None:
                    refused_since = time.monotonic()
                elif time.monotonic() - refused_since > DISK_S:
                    self._driver.abandon()
                    reason = "the disk does not take what was to be changed"
                    self._refused = StoreRefused(reason, file=self._path)
                    raise self._refused
            return task.result()
        finally:
            if not task.done():
                task.cancel()

    def close(self) -> None:
        if self._loop.is_closed():
            return
        try:
            self._loop.run_until_complete(cancel_other_tasks())  # left by an interrupted request
            if not self._driver.refused:  # otherwise only unanswered changes are lost
                self._session.close()
                self._loop.run_until_complete(self._run(self._driver.stop()))
        finally:
            self._driver.abandon()
            self._close()

    def _close(self) -> None:
        self._loop.close()
        if self._security is not None:
            self._security.close()
        self._store.close()
