"""A queue manager server: its data folder, sockets and control channel, from start to graceful stop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msmqwire.constants import HResult
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import InvalidName, InvalidValue, StoreError
from msmqwire.ping import PING_PORT
from msmqwire.qm.model.effects import TidyStore
from msmqwire.qm.model.settings import KeptSettings, Settings
from msmqwire.qm.protocols.remote_read.configuration import RemoteReadConfiguration
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.addresses import TCP_PORT, AddressOverrides
from msmqwire.qm.runtime.console import ConsoleOptions
from msmqwire.qm.runtime.data_folder import DataFolder
from msmqwire.qm.runtime.definitions.key_definitions import finish_import
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder import check_domain, check_name, default_name, open_core, stored_name
from msmqwire.qm.runtime.folder_security import FolderSecurity
from msmqwire.qm.runtime.hand_out_file import hand_outs_of
from msmqwire.qm.runtime.health import Health, Stage
from msmqwire.qm.runtime.joined import JoinedCarrier, configurations_of, transports_of
from msmqwire.qm.runtime.kept_options import KeptOptions
from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.local import DISK_S
from msmqwire.qm.runtime.metrics import Metrics
from msmqwire.qm.runtime.named_values import changed_values, with_named_values
from msmqwire.qm.runtime.rpc.network import RpcNetwork, RpcOptions
from msmqwire.qm.runtime.served_session import ServedSession
from msmqwire.qm.runtime.transport import TcpNetwork
from msmqwire.rpc.constants import AuthLevel
from msmqwire.service.control.server import ControlServer
from msmqwire.service.descriptors import OpenConnections
from msmqwire.service.disk import MIN_FREE, DiskRoom
from msmqwire.service.endpoints import LOOPBACK, Endpoint
from msmqwire.service.logs import log
from msmqwire.service.page_connections import PageLimits
from msmqwire.service.page_server import PageServer
from msmqwire.service.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from msmqwire.qm.core import Core
    from msmqwire.qm.runtime.console.server import Console
    from msmqwire.qm.runtime.joined import Transports
    from msmqwire.service.store.store_lock import StoreLock

STOP_S: Final = 10.0
"""Seconds that a start or a stop waits for a disk that refuses commits."""

SETTINGS: Final = Settings(
    recoverable_ack_delay_ms=0,
    ack_delay_ms=20,
    order_ack_timeout_ms=0,
    maximum_order_ack_delay_s=1,
    session_initialization_ms=20_000,
)
"""The settings of a server that differ from the defaults of the specifications.

Acknowledgements of durable messages are sent soon, and half-open peers are given up sooner.
"""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Options of a server.

    Attributes:
        data: path of the data folder.
        name: computer name; None for the name stored in the folder, or else the name of this computer.
        domain: DNS domain of the computer; empty for the last one that the folder was served with.
        listen: address and TCP port; the system chooses a free port for 0.
        ping: address and UDP port for ping requests; None to answer none.
        queues: names of queues to create if they are missing; ``;transactional`` makes one transactional.
        metrics: address and TCP port for Prometheus; None for none.
        metrics_names: host names, besides ``localhost`` and addresses, by which it may be reached there.
        console: the address and rights of the console for browsers; None for none.
        rpc: how queues are served to remote readers; None for not at all.
        readings: how signatures and session keys of messages are read.
        quota: limit of all messages in bytes; None to leave it unchanged.
        min_free: bytes of free disk space below which no new messages are accepted; 0 for no such limit.
        settings: settings of the queue manager.
        keep: settings that the folder is to keep for later starts as well; they take precedence over
            `settings`.
        limits: limits on the resources that peers may use.
        overrides: how other computers are reached.
        protocols: options of the protocols that have joined, by the name of the protocol.
        control_tcp: whether the control channel is a TCP port instead of a Unix socket.
        given: names of the settings and limits that were given, even if they are the defaults: the folder's
            don't replace them. Those that differ from the defaults are given anyway.
    """

    data: Path
    name: str | None = None
    domain: str = ""
    listen: Endpoint = (LOOPBACK, TCP_PORT)
    ping: Endpoint | None = (LOOPBACK, PING_PORT)
    queues: tuple[str, ...] = ()
    metrics: Endpoint | None = None
    metrics_names: tuple[str, ...] = ()
    console: ConsoleOptions | None = None
    rpc: RpcOptions | None = None
    readings: Readings = DEFAULT
    quota: int | None = None
    min_free: int = MIN_FREE
    settings: Settings = SETTINGS
    keep: KeptSettings = field(default_factory=KeptSettings)
    limits: Limits = field(default_factory=Limits)
    overrides: AddressOverrides = field(default_factory=AddressOverrides)
    protocols: Mapping[str, object] = field(default_factory=dict)
    control_tcp: bool = os.name == "nt"
    given: frozenset[str] = frozenset()

    def with_kept(self, kept: KeptOptions) -> ServerOptions:
        """Return these options, with those that a folder keeps where none was given here."""
        given = self.given | changed_values(self.settings, SETTINGS) | changed_values(self.limits, Limits())
        texts = [f"{name}={text}" for name, text in kept.settings.items() if name not in given]
        settings, limits = with_named_values(self.settings, self.limits, texts)
        hosts = {**kept.hosts, **self.overrides.hosts}
        overrides = replace(self.overrides, hosts=hosts)
        return replace(self, settings=settings, limits=limits, overrides=overrides)


class Server:
    """A running queue manager.

    Attributes:
        name: computer name.
        listen, ping, console: its addresses, with the ports that the system has chosen.
        driver: runs the core; None before the start.
        network: its sockets; None before the start.
        rpc_network: those of remote read; None before the start, and without remote read.
        health: what it says of itself, from the first moment on.
        joined: the carriers of protocols that have joined, by the name of the protocol.
    """

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.name = ""
        self.listen, self.ping = options.listen, options.ping
        self.console = None if options.console is None else options.console.endpoint
        self._folder = DataFolder(options.data)
        self._store: SqliteStore | None = None
        self.driver: EngineDriver | None = None
        self.network: TcpNetwork | None = None
        self.rpc_network: RpcNetwork | None = None
        self.joined: dict[str, JoinedCarrier] = {}
        self._control: ControlServer | None = None
        self._metrics: Metrics | None = None
        self._console: Console | None = None
        self._security: FolderSecurity | None = None
        self.health = Health(options.data, options.min_free)
        self._lock: StoreLock | None = None
        self._pages: dict[str, PageServer] = {}
        self._metrics_port = 0
        self._restoring = ThreadPoolExecutor(1, "msmqwire-restore")
        self._stopped = False

    async def start(self) -> None:
        """Open the folder, restore its queues, and listen.

        Raises the subclasses of StoreError, InvalidName for names, InvalidValue for a name other than that of
        the folder and for unusable keys in it, QueueError for a queue that can't be created, and OSError for
        addresses.
        """
        try:
            await self._start()
        except BaseException:
            if self.driver is not None:
                self.driver.abandon()
            await self._end()
            raise

    async def _start(self) -> None:
        options = self.options
        queue_requests = [_queue_request(queue) for queue in options.queues]
        if options.name is not None:
            check_name(options.name)
        transports = transports_of(options.protocols)
        self._lock = lock = self._folder.lock_store()
        await self._answer_first()
        self._control = ControlServer(
            partial(ServedSession, self.health), self._folder, refused=lambda: self._refused
        )
        await self._control.start(tcp=options.control_tcp)
        loop = asyncio.get_running_loop()
        core = await loop.run_in_executor(self._restoring, self._open, lock, transports)
        assert self._store is not None and self._security is not None, "they are open"  # noqa: PT018
        store, security, options = self._store, self._security, self.options
        self.driver = driver = EngineDriver(core, store)
        driver.security, driver.kept = security, KeptOptions.read(store)
        self.network = TcpNetwork(driver, limits=options.limits, overrides=options.overrides)
        driver.register(self.network)
        driver.traffic = self.network.traffic
        for name, transport in transports.items():
            self.joined[name] = carrier = transport.carrier(driver, self.network, options.overrides)
            driver.register(carrier)
        if options.rpc is not None:
            self.rpc_network = RpcNetwork(driver, options.rpc, options.limits, self.network.open_connections)
            driver.register(self.rpc_network)
        driver.perform_by(TidyStore, lambda effect: store.shorten_log())
        driver.room, driver.refused_s = DiskRoom(store, options.min_free), DISK_S
        # Messages sent at the start already name the address for their receipts.
        for carrier in self.joined.values():
            await carrier.bind()
        if self.rpc_network is not None:
            await self.rpc_network.bind()
        await driver.start_beside(self._restoring)
        self.health.restored(driver)
        self._restoring.shutdown(wait=False)
        for request in queue_requests:
            driver.call(queues.create, core, request)
        await driver.durable_within(STOP_S)
        self.listen = options.listen[0], await self.network.listen(*options.listen)
        if options.ping is not None:
            self.ping = options.ping[0], await self.network.answer_pings(*options.ping)
        for carrier in self.joined.values():
            carrier.accept()
        if self.rpc_network is not None:
            self.rpc_network.accept()
        if options.metrics is not None:
            self._metrics = Metrics(
                driver,
                self.network,
                self.joined.values(),
                self.rpc_network,
                self._control,
                names=options.metrics_names,
                pages=self._pages["metrics"],
                health=self.health,
            )
            await self._metrics.start(self._metrics_port)
        if options.console is not None:
            await self._start_console(driver, options.console)
        for pages in self._pages.values():
            self._count_pages(pages, self.network)
        security.read_again()  # a command may have changed keys without a server to notify
        driver.call(security.use, core)
        self.health.ready(self.endpoints)
        log.info(
            "ready",
            extra={"computer": self.name, "listen": self.listen, "ping": self.ping},
        )

    async def _answer_first(self) -> None:
        """Answer at the ports of the console and the metrics, before all else. Raises OSError."""
        options, limits, opened = self.options, self.options.limits, OpenConnections()
        of_metrics = _within(limits.metrics_pages(), opened)
        if options.console is not None:
            import msmqwire.qm.runtime.console.server  # noqa: F401 - now: later it would hold the loop up

            guard = ("the console is", options.console.names, "--console-name")
            at, of_console = options.console.endpoint, _within(limits.console_pages(), opened)
            self.console = at[0], await self._first_pages("console", at, guard, of_console)
        if options.metrics is not None:
            guard = ("the metrics are", options.metrics_names, "--metrics-name")
            self._metrics_port = await self._first_pages("metrics", options.metrics, guard, of_metrics)

    async def _first_pages(
        self, name: str, at: Endpoint, guarded: tuple[str, tuple[str, ...], str], limits: PageLimits
    ) -> int:
        from msmqwire.qm.runtime.health_pages import starting_pages
        from msmqwire.service.page_guard import PageGuard  # with aiohttp, which few servers need

        self._pages[name] = pages = starting_pages(name, self.health, PageGuard(*guarded), limits)
        port = await pages.bind(*at)
        pages.accept()
        return port

    def _open(self, lock: StoreLock, transports: Transports) -> Core:
        """Open the store and the keys of the folder, in a thread, and return the core. Raises as `start`."""
        self._store = self.health.store = store = self._folder.open_locked(lock)
        finish_import(store, self.options.data)
        self.options = options = self.options.with_kept(KeptOptions.read(store))
        stored = stored_name(store)
        self.name = check_name(options.name or stored or default_name())
        if stored and stored.lower() != self.name.lower():
            raise InvalidValue(f"the queue manager of this folder is {stored}, not {self.name}", path="name")
        self.name = stored or self.name
        domain = check_domain(options.domain, self.name)
        self._security = security = FolderSecurity(options.data, options.readings)
        core = open_core(
            store,
            self.name,
            settings=options.settings,
            keep=options.keep,
            listening=options.listen[0],
            known_hosts=options.overrides.known_hosts,
            domain=domain,
            configurations=configurations_of(transports),
            remote_read=_remote_read(options),
            security=security.configuration,
            routes=options.overrides.routes,
            quota=options.quota,
            hand_outs=hand_outs_of(store),
        )
        core.make_engines()  # here, where the loop need not wait for that
        return core

    @property
    def _refused(self) -> bool:
        return self.driver is not None and self.driver.refused

    @property
    def endpoints(self) -> dict[str, Endpoint]:
        """Where it listens, by protocol."""
        places: dict[str, Endpoint | None] = {"tcp": self.listen, "ping": self.ping}
        for carrier in self.joined.values():
            places |= carrier.endpoints
        if (rpc := self.rpc_network) is not None:
            places |= {"rpc": rpc.listen, "endpoint-mapper": rpc.endpoint_mapper}
        places["console"] = self.console
        return {name: at for name, at in places.items() if at is not None}

    async def _start_console(self, driver: EngineDriver, options: ConsoleOptions) -> None:
        """Serve the console to browsers. Raises OSError."""
        from msmqwire.qm.runtime.console.server import Console

        assert self.console is not None, "its pages answer"
        pages = self._pages["console"]
        self._console = console = Console(driver, options, pages, self.health, self.options.data)
        await console.start(self.console[1])
        if self._metrics is not None:
            self._metrics.add_page("console", console.pages.connections.traffic)

    @staticmethod
    def _count_pages(server: PageServer, network: TcpNetwork) -> None:
        """Count the connections of a server of pages among those of this process."""
        network.open_connections.add(lambda: (len(server.connections), 0))

    async def stop(self) -> None:
        """Accept no more messages, store and acknowledge the received ones, and shut down.

        Messages that local clients have received and not ended return to their queues. A second call does
        nothing.
        """
        if self._stopped:
            return
        self._stopped = True
        self.health.stage = Stage.STOPPING
        log.info("stops")
        if self.driver is not None:
            self.driver.stop_listening()
        if self._console is not None:
            await self._console.stop()
        if self._control is not None:
            await self._control.stop()
        if self.driver is not None and not self.driver.broken.done():
            await self._finish(self.driver)
        await self._end()
        log.info("stopped")

    async def _finish(self, driver: EngineDriver) -> None:
        await driver.finish_carriers()
        try:
            await driver.finish(STOP_S)
        except (TimeoutError, StoreError):
            driver.abandon()
            log.error("the disk refuses the last changes: only unanswered changes are lost")

    async def _end(self) -> None:
        if self._metrics is not None:
            await self._metrics.stop()
        if self._console is not None:
            await self._console.stop()
        for pages in self._pages.values():
            await pages.stop()
        if self._control is not None:
            await self._control.stop()
        if self.driver is not None:
            await self.driver.close_carriers()
        await self._close_store()

    async def _close_store(self) -> None:
        """Close the store, also one that a thread opens or restores for a start that was given up."""
        if self._store is not None:
            self._store.close()  # its next row ends the restoring
        await asyncio.get_running_loop().run_in_executor(None, self._restoring.shutdown)
        if self._security is not None:
            self._security.close()
        if self._store is not None:
            self._store.close()
        if self._lock is not None:
            self._lock.close()


def _within(limits: PageLimits, open_connections: OpenConnections) -> PageLimits:
    """Return limits of pages that leave the other protocols most of the file descriptors."""
    return replace(limits, connections=min(limits.connections, open_connections.quarter))


def _remote_read(options: ServerOptions) -> RemoteReadConfiguration | None:
    rpc = options.rpc
    if rpc is None:
        return None
    return options.limits.remote_read(anonymous=rpc.level is AuthLevel.NONE, pending_s=rpc.pending_s)


_TRANSACTIONAL: Final = ";transactional"


def _queue_request(queue: str) -> Mapping[str, object]:
    """Return the request that creates a queue of the option ``--queue``. Raises InvalidName."""
    transactional = queue.lower().endswith(_TRANSACTIONAL)
    name = queue[: -len(_TRANSACTIONAL)] if transactional else queue
    if ";" in name:
        reason = f"{queue!r:.200}: after the name of a queue only {_TRANSACTIONAL} may stand"
        raise InvalidName(reason, hresult=HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME)
    return {"queue": name, "transactional": transactional, "missing": True}
