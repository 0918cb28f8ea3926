"""One life of the simulated server, from its start to its end or its death."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.service import QueueService
from msmqwire.netware.runtime.driver import ServiceDriver
from msmqwire.netware.runtime.ncp_connection import NcpServerConnection
from msmqwire.netware.runtime.ncp_listener import NcpListener
from msmqwire.netware.sim.disk import Disk, Power, SimulatedStore, SimulatedVolumes
from msmqwire.netware.sim.network import NcpStream

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of the server's clock at the beginning of a run."""
SETTINGS: Final = Settings(jobs_max=40, job_list_max=5)


class ServerHost:
    """A server on a disk.

    Attributes:
        power: whether it lives.
        died: done when it is dead.
        driver: the driver of its service.
    """

    def __init__(
        self, disk: Disk, chance: random.Random, killed: Callable[[], None], refused: Callable[[], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._chance, self._on_kill = chance, killed
        self.died: asyncio.Future[None] = self._loop.create_future()
        self.power = Power(self._dead, refused)
        self.driver = ServiceDriver(
            SimulatedStore(disk, self.power), SimulatedVolumes(disk, self.power), settings=SETTINGS
        )
        self._listener = NcpListener(self.driver, clock=self.now)
        self._streams: list[NcpStream] = []
        self._ready = False

    def now(self) -> datetime:
        """Return the time of the server's clock."""
        return START + timedelta(seconds=self._loop.time())

    async def boot(self) -> bool:
        """Restore the service; return False if the server is killed meanwhile. `open` follows."""
        starting = self._loop.create_task(self.driver.start())
        await asyncio.wait({starting, self.died}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            return False
        await starting
        self.driver.on_restart = self._listener.restarted
        return self.power.is_on

    def open(self) -> None:
        """Listen."""
        self._ready = True

    def connect(self, receive: Callable[[bytes], None], broken: Callable[[], None]) -> NcpStream | None:
        """Make a connection; None if the server does not listen."""
        if not (self._ready and self.power.is_on):
            return None
        stream = NcpStream(NcpServerConnection(self._listener), self._chance, receive, broken)
        self._streams = [one for one in self._streams if not one.is_closing()]
        self._streams.append(stream)
        return stream

    async def service(self) -> QueueService:
        """Return the service, for inspection."""
        return await self.driver.run(lambda service: service)

    def cut_one(self) -> None:
        """Break a connection of a client."""
        if self._streams:
            self._chance.choice(self._streams).cut()

    def _dead(self) -> None:
        for stream in self._streams:
            stream.vanish()
        if not self.died.done():
            self.died.set_result(None)
        self._on_kill()
