"""A queue manager that serves: its folder, sockets and control channel, from start to a graceful stop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from msmqwire.constants import HResult
from msmqwire.errors import InvalidName, InvalidValue, StoreError
from msmqwire.ping import PING_PORT
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.control import ControlServer
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder import DataFolder, check_name, default_name, open_core, stored_name
from msmqwire.qm.runtime.logs import log
from msmqwire.qm.runtime.metrics import Metrics
from msmqwire.qm.runtime.transport import TCP_PORT, AddressOverrides, Limits, TcpNetwork
from msmqwire.qm.store.sqlite import SqliteStore

STOP_S: Final = 30.0
"""How long a stop waits for a disk that refuses commits."""
LOOPBACK: Final = "127.0.0.1"
Endpoint = tuple[str, int]

SETTINGS: Final = Settings(
    recoverable_ack_delay_ms=0,
    ack_delay_ms=20,
    order_ack_timeout_ms=0,
    maximum_order_ack_delay_s=1,
    session_initialization_ms=20_000,
)
"""What a server does other than the defaults of the specifications: it acknowledges what it has on disk soon,
and half-open peers are given up sooner."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How to serve.

    Attributes:
        data: the folder.
        name: of the computer; None for the one that the folder has, or that of this computer.
        listen: address and TCP port; port 0 for one that the system chooses.
        ping: address and UDP port for ping requests; None not to answer any.
        queues: queues to be made where they are missing: names, with ``;transactional`` for that.
        metrics: address and TCP port for Prometheus; None for none.
        quota: bytes of all messages; None to leave it as it is.
        settings: of the queue manager.
        limits: what others may take.
        overrides: how others are reached.
        control_tcp: whether the control channel is a TCP port instead of a Unix socket.
    """

    data: Path
    name: str | None = None
    listen: Endpoint = (LOOPBACK, TCP_PORT)
    ping: Endpoint | None = (LOOPBACK, PING_PORT)
    queues: tuple[str, ...] = ()
    metrics: Endpoint | None = None
    quota: int | None = None
    settings: Settings = SETTINGS
    limits: Limits = field(default_factory=Limits)
    overrides: AddressOverrides = field(default_factory=AddressOverrides)
    control_tcp: bool = os.name == "nt"


class Server:
    """One running queue manager.

    Attributes:
        name: of its computer.
        listen, ping: where it can be reached, with the ports that the system has chosen.
        driver, network: its parts.
    """

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.name = ""
        self.listen, self.ping = options.listen, options.ping
        self._folder = DataFolder(options.data)
        self._store: SqliteStore | None = None
        self.driver: EngineDriver | None = None
        self.network: TcpNetwork | None = None
        self._control: ControlServer | None = None
        self._metrics: Metrics | None = None
        self._stopped = False

    async def start(self) -> None:
        """Open the folder, listen, and go on with what is there.

        Raises the subclasses of StoreError, InvalidName for names, InvalidValue for a name that the folder
        does not have, QueueError for a queue that can't be made, and OSError for addresses.
        """
        try:
            await self._start()
        except BaseException:
            await self._end()
            raise

    async def _start(self) -> None:
        options = self.options
        wanted = [_wanted(queue) for queue in options.queues]
        if options.name is not None:
            check_name(options.name)
        self._store = store = self._folder.open_store(create=True)
        known = stored_name(store)
        self.name = check_name(options.name or known or default_name())
        if known and known.lower() != self.name.lower():
            raise InvalidValue(f"the queue manager of this folder is {known}, not {self.name}", path="name")
        self.name = known or self.name
        core = open_core(
            store,
            self.name,
            settings=options.settings,
            addresses=() if options.listen[0] in _ANY else (options.listen[0],),
            quota=options.quota,
        )
        self.driver = driver = EngineDriver(core, store)
        self.network = driver.network = TcpNetwork(driver, limits=options.limits, overrides=options.overrides)
        driver.start()
        for queue in wanted:
            driver.call(queues.create, core, queue)
        await driver.durable()
        self.listen = options.listen[0], await self.network.listen(*options.listen)
        if options.ping is not None:
            self.ping = options.ping[0], await self.network.answer_pings(*options.ping)
        self._control = ControlServer(driver, self._folder)
        if options.metrics is not None:
            self._metrics = Metrics(driver, self.network, self._control)
            await self._metrics.start(*options.metrics)
        await self._control.start(tcp=options.control_tcp)
        log.info(
            "ready",
            extra={"computer": self.name, "listen": self.listen, "ping": self.ping},
        )

    async def stop(self) -> None:
        """Take nothing new, acknowledge and store what has come, give back what is in hands, and end.

        A second time does nothing.
        """
        if self._stopped:
            return
        self._stopped = True
        log.info("stops")
        if self.network is not None:
            self.network.stop_listening()
        if self._control is not None:
            await self._control.stop()
        if self.driver is not None and not self.driver.broken.done():
            await self._finish(self.driver)
        await self._end()
        log.info("stopped")

    async def _finish(self, driver: EngineDriver) -> None:
        try:
            async with asyncio.timeout(STOP_S):
                driver.call(driver.core.engine.acknowledge_received)
                await driver.durable()
                await driver.stop()
        except (TimeoutError, StoreError):
            driver.abandon()
            log.error("the disk does not take what has changed last: it is lost, and was told to nobody")

    async def _end(self) -> None:
        if self._metrics is not None:
            await self._metrics.stop()
        if self._control is not None:
            await self._control.stop()
        if self.network is not None:
            await self.network.close()
        if self._store is not None:
            self._store.close()


_ANY: Final = ("0.0.0.0", "::", "")
_TRANSACTIONAL: Final = ";transactional"


def _wanted(queue: str) -> Mapping[str, object]:
    """A queue as the option ``--queue`` names it. Raises InvalidName."""
    transactional = queue.lower().endswith(_TRANSACTIONAL)
    name = queue[: -len(_TRANSACTIONAL)] if transactional else queue
    if ";" in name:
        why = f"{queue!r:.200}: behind the name of a queue only {_TRANSACTIONAL} may stand"
        raise InvalidName(why, hresult=HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME)
    return {"queue": name, "transactional": transactional, "missing": True}


def with_limits(
    settings: Settings,
    *,
    sessions: int | None = None,
    packet_size: int | None = None,
    unacknowledged_bytes: int | None = None,
    idle_s: float | None = None,
    half_open_s: float | None = None,
) -> Settings:
    """Settings with the limits that are given."""
    wanted: dict[str, Any] = {
        "max_in_sessions": sessions,
        "packet_size_max": packet_size,
        "unacknowledged_bytes_max": unacknowledged_bytes,
        "session_cleanup_ms": None if idle_s is None else int(idle_s * 1000),
        "session_initialization_ms": None if half_open_s is None else int(half_open_s * 1000),
    }
    return replace(settings, **{name: value for name, value in wanted.items() if value is not None})
