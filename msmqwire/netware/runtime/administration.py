"""Administration of a queue service: its requests, over the control channel or in the store of a folder."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from msmqwire.errors import InvalidValue
from msmqwire.netware.rules.service import QueueService
from msmqwire.netware.runtime import bindery_requests, file_requests, queue_requests
from msmqwire.netware.runtime.driver import ServiceDriver
from msmqwire.netware.runtime.folder import NetwareFolder
from msmqwire.netware.runtime.password_hashing import PasswordHasher
from msmqwire.service.control.client import Local, attach_to
from msmqwire.service.control.server import ControlServer

if TYPE_CHECKING:
    from typing import Self

_OPERATIONS: Final[Mapping[str, Callable[[QueueService, Mapping[str, Any]], dict[str, Any]]]] = {
    "object_create": bindery_requests.create,
    "object_list": bindery_requests.list_,
    "object_show": bindery_requests.show,
    "object_delete": bindery_requests.delete,
    "files_show": file_requests.show,
    "queue_create": queue_requests.create,
    "queue_list": queue_requests.list_,
    "queue_show": queue_requests.show,
    "queue_delete": queue_requests.delete,
    "queue_grant": queue_requests.grant,
    "queue_revoke": queue_requests.revoke,
}
_PASSWORD: Final = "object_password"


class AdministrationSession:
    """The session of an administrator; it holds nothing."""

    def __init__(self, driver: ServiceDriver) -> None:
        self._driver = driver
        self._hasher = PasswordHasher()

    async def run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Run a request, and return its answer once its changes are durable.

        Raises InvalidValue for an invalid request, NcpRefused for a refused one, and StoreError.
        """
        name = request.get("op")
        if name == _PASSWORD:
            return await self._hasher.run(
                self._driver, lambda service, hashing: bindery_requests.password(service, request, hashing)
            )
        operation = _OPERATIONS.get(name) if isinstance(name, str) else None
        if operation is None:
            raise InvalidValue(f"{name!r:.100} is none of {', '.join((*_OPERATIONS, _PASSWORD))}", path="op")
        return await self._driver.run(lambda service: operation(service, request))

    def notify(self, request: Mapping[str, Any]) -> bool:
        """Return False: all requests have answers."""
        return False

    def stop_waiting(self) -> None:
        """Do nothing: no request waits."""

    def close(self) -> None:
        """End the thread that hashes passwords."""
        self._hasher.close()


def control_server(driver: ServiceDriver, folder: NetwareFolder) -> ControlServer:
    """Return the control channel of a service, to be started and stopped."""
    return ControlServer(
        lambda _: AdministrationSession(driver),
        folder,
        refused=lambda: driver.refused,
        outlives_store_errors=True,
    )


def attach(path: str | os.PathLike[str], *, create: bool = False) -> Local:
    """Reach the queue service of a folder: through its server, or in its store if none runs.

    `create`: make a queue service if the folder has none. Raises the subclasses of StoreError: StoreMissing
    if the folder has none, StoreInUse if another process has its store open without serving it.
    """
    folder = NetwareFolder(path)
    return attach_to(folder, lambda: ServiceInStore(folder, create=create))


class ServiceInStore:
    """A queue service in this process, over the store of a folder, opened exclusively."""

    served = False

    def __init__(self, folder: NetwareFolder, *, create: bool) -> None:
        self._store = folder.open_store(create=create)
        self._loop = asyncio.new_event_loop()
        try:
            self._driver = self._loop.run_until_complete(self._start(folder))
        except BaseException:
            self._close()
            raise
        self._session = AdministrationSession(self._driver)

    async def _start(self, folder: NetwareFolder) -> ServiceDriver:
        driver = ServiceDriver(self._store, folder.open_volumes())
        try:
            await driver.start()
        except BaseException:
            await driver.close()
            raise
        return driver

    def call(self, op: str, /, **request: Any) -> dict[str, Any]:
        """Run a request, and return its answer."""
        return self._loop.run_until_complete(self._session.run({"op": op, **request}))

    def close(self) -> None:
        """End the service."""
        if not self._loop.is_closed():
            self._session.close()
            try:
                self._loop.run_until_complete(self._driver.close())
            finally:
                self._close()

    def _close(self) -> None:
        self._loop.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
