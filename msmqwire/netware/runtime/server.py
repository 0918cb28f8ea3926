"""A NetWare server: its data folder, the service in it, and its sockets, from start to graceful stop."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, field
from pathlib import Path

from msmqwire.errors import EngineFailed
from msmqwire.ncp.headers import NCP_PORT
from msmqwire.ncp.readings import PROPOSED, Readings
from msmqwire.netware.model.names import SERVER_NAME
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.runtime.administration import control_server
from msmqwire.netware.runtime.driver import ServiceDriver
from msmqwire.netware.runtime.folder import NetwareFolder
from msmqwire.netware.runtime.limits import NcpLimits
from msmqwire.netware.runtime.ncp_listener import NcpListener
from msmqwire.service.control.server import ControlServer
from msmqwire.service.disk import MIN_FREE, DiskRoom
from msmqwire.service.endpoints import LOOPBACK, Endpoint
from msmqwire.service.logs import log
from msmqwire.service.store.sqlite import SqliteStore


@dataclass(frozen=True, slots=True)
class NetwareOptions:
    """Options of a server.

    Attributes:
        data: path of the data folder.
        listen: address and TCP port; the system chooses a free port for 0.
        settings: limits on the data that the service keeps.
        limits: limits on the resources that clients may use.
        readings: the readings of the disputed fields of calls.
        name: the name of the file server, at most 47 characters.
        min_free: bytes of disk space below which no file is created or grows; 0 for no such limit.
    """

    data: Path
    listen: Endpoint = (LOOPBACK, NCP_PORT)
    settings: Settings = field(default_factory=Settings)
    limits: NcpLimits = field(default_factory=NcpLimits)
    readings: Readings = PROPOSED
    min_free: int = MIN_FREE
    name: str = SERVER_NAME


class NetwareServer:
    """A running server.

    Attributes:
        listen: its address, with the port that the system has chosen.
        broken: done after a fault of msmqwire itself, which ends the server.
    """

    def __init__(self, options: NetwareOptions) -> None:
        self.options, self.listen = options, options.listen
        self.broken: asyncio.Future[EngineFailed] = asyncio.get_running_loop().create_future()
        self._folder = NetwareFolder(options.data)
        self._store: SqliteStore | None = None
        self._driver: ServiceDriver | None = None
        self._listener: NcpListener | None = None
        self._control: ControlServer | None = None
        self._stopped = False

    async def start(self) -> None:
        """Open the folder, restore its service, and listen.

        Raises the subclasses of StoreError, and OSError for the address.
        """
        try:
            await self._start()
        except BaseException:
            await self._end()
            raise

    async def _start(self) -> None:
        options = self.options
        self._store = self._folder.open_store(create=True)
        volumes = self._folder.open_volumes()
        room = DiskRoom(self._store, options.min_free)
        self._driver = driver = ServiceDriver(self._store, volumes, settings=options.settings, room=room)
        await driver.start()
        self._listener = listener = NcpListener(
            driver, options.limits, readings=options.readings, name=options.name
        )
        driver.on_restart = listener.restarted
        self.listen = options.listen[0], await listener.bind(*options.listen)
        listener.accept()
        self._control = control_server(driver, self._folder)
        await self._control.start()
        log.info("ready", extra={"listen": self.listen})

    def fail(self, exc: BaseException) -> None:
        """End after a fault of msmqwire itself: see `LoopFaults`."""
        if not self.broken.done():
            log.critical("a fault of msmqwire itself: the server ends", exc_info=exc)
            self.broken.set_result(EngineFailed(exc))

    async def stop(self) -> None:
        """Accept no more requests, answer those being performed, and shut down; a second call does nothing.

        Connections are lost: jobs that were open or in service are started, kept or removed by their flags.
        """
        if self._stopped:
            return
        self._stopped = True
        log.info("stops")
        await self._end()
        log.info("stopped", extra={} if self._listener is None else asdict(self._listener.traffic))

    async def _end(self) -> None:
        if self._control is not None:
            await self._control.stop()
        if self._listener is not None:
            if self.broken.done():
                self._listener.abort()  # its answers may be wrong
            await self._listener.close()
        if self._driver is not None:
            await self._driver.close()
        if self._store is not None:
            self._store.close()
