"""The server of the console: its token, its connections, its files and its end."""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import suppress
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from aiohttp import web

from msmqwire.analysis.web_assets import CHART_SCRIPT, CHART_STYLE, web_asset
from msmqwire.ownership import write_secret
from msmqwire.qm.runtime.console.api import Api
from msmqwire.qm.runtime.console.events import Events
from msmqwire.qm.runtime.console.guard import SESSION, Guard, Handler, add_headers, guarded_refusal
from msmqwire.qm.runtime.console.logins import TOKEN_BYTES, ConsoleLogins
from msmqwire.qm.runtime.console.options import ConsoleOptions
from msmqwire.qm.runtime.console.samples import Samples
from msmqwire.qm.runtime.data_folder import TOKEN_FILE
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.service.limited_connection import LimitedConnection
from msmqwire.service.listening_sockets import ListeningSockets
from msmqwire.service.logs import RecentRecords, log
from msmqwire.service.page_requests import PageRequestHandler

_PACKAGE: Final = "msmqwire"
_TYPES: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_KNOWN_S: Final = 120.0
"""Seconds that a connection of a login lasts after its last request."""
_STOP_S: Final = 0.1


class Console:
    """The console of a running queue manager.

    Attributes:
        port: the TCP port that it listens on; 0 before `start`.
        token_file: the file with the token of this run.
    """

    def __init__(self, driver: EngineDriver, options: ConsoleOptions, folder: Path) -> None:
        self._options, self._limits = options, options.limits
        self.port = 0
        self.token_file = folder.resolve() / TOKEN_FILE
        self._token = secrets.token_urlsafe(TOKEN_BYTES)
        cookie = f"msmqwire-{driver.core.queue_manager.identifier.hex[:12]}"
        self._guard = Guard(
            ConsoleLogins(self._token, options.limits), cookie, options.names, write=options.write
        )
        self._samples, self._records = Samples(driver, options.limits), RecentRecords()
        self._api = Api(driver, self._guard, self._samples, self._records)
        self._events = Events(self._guard, self._samples, self._records, options.limits)
        self._runner: web.AppRunner | None = None
        self._sockets = ListeningSockets(options.limits.connections_per_s)
        self._connections: dict[LimitedConnection, web.RequestHandler] = {}  # the oldest first
        self._known: set[LimitedConnection] = set()
        self._started = False

    async def start(self) -> int:
        """Write the token and listen; return the port. Raises OSError."""
        application = web.Application(
            client_max_size=self._limits.request_bytes, middlewares=[self._guard.middleware, self._notice]
        )
        application.on_response_prepare.append(add_headers)
        application.add_routes(self._api.routes())
        application.router.add_get("/api/events", self._events.stream, allow_head=False)
        for path, (content, kind) in _assets().items():
            application.router.add_get(path, _sender(content, kind))
        self._runner = web.AppRunner(application, shutdown_timeout=_STOP_S)
        await self._runner.setup()
        self.port = await self._sockets.bind(*self._options.endpoint, self._connection)
        await asyncio.get_running_loop().run_in_executor(
            None, write_secret, self.token_file, f"{self._token}\n".encode()
        )
        logging.getLogger(_PACKAGE).addHandler(self._records)
        self._samples.start()
        self._started = True
        self._sockets.accept()
        self._tell()
        return self.port

    def _tell(self) -> None:
        address = self._options.endpoint[0]
        extra = {"address": address, "port": self.port, "token_file": str(self.token_file)}
        log.info("the console is ready; the token to log in is in the file", extra=extra)
        if not _is_loopback(address):
            log.warning(
                "the console can be reached from other computers, and HTTP exposes token and messages",
                extra={"address": address, "port": self.port},
            )

    async def stop(self) -> None:
        """End all connections and logins. A second call does nothing."""
        self._sockets.close()
        await self._sockets.wait_closed()
        if self._started:
            self._started = False
            logging.getLogger(_PACKAGE).removeHandler(self._records)
            await self._samples.stop()
            with suppress(OSError):
                self.token_file.unlink(missing_ok=True)
        for connection in list(self._connections):
            connection.abort()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    # -- connections --------------------------------------------------------------------------------------

    def _connection(self) -> asyncio.BaseProtocol:
        server = None if self._runner is None else self._runner.server
        handler = None if server is None else PageRequestHandler(server, guarded_refusal)
        limits = self._limits
        connection = LimitedConnection(self, handler, limits.unauthenticated_s, limits.unauthenticated_bytes)
        if handler is not None:
            self._connections[connection] = handler
        return connection

    def admit(self, connection: LimitedConnection) -> bool:
        """See `msmqwire.service.limited_connection.ConnectionAdmission`."""
        if len(self._connections) <= self._limits.connections:
            return True
        oldest = next((one for one in self._connections if one not in self._known), connection)
        if oldest is connection:
            return False
        self.forget(oldest)  # now: a connection already lost will never report it
        oldest.abort()
        return True

    def forget(self, connection: LimitedConnection) -> None:
        """See `msmqwire.service.limited_connection.ConnectionAdmission`."""
        self._connections.pop(connection, None)
        self._known.discard(connection)

    @web.middleware
    async def _notice(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let a connection with a login last longer than others."""
        if SESSION in request:
            for connection, of in self._connections.items():
                if of is request.protocol:
                    self._known.add(connection)
                    connection.send_any_number()
                    streams = request.path == "/api/events"
                    connection.last(self._limits.session_s if streams else _KNOWN_S)
        return await handler(request)


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _assets() -> dict[str, tuple[bytes, str]]:
    """Return the files of the pages by path, each with its type."""
    assets = {}
    for file in files(f"{_PACKAGE}.qm.runtime.console").joinpath("assets").iterdir():
        suffix = Path(file.name).suffix
        if suffix in _TYPES:
            path = "/" if file.name == "index.html" else f"/assets/{file.name}"
            assets[path] = file.read_bytes(), _TYPES[suffix]
    for name in (CHART_SCRIPT, CHART_STYLE):
        assets[f"/assets/{name}"] = web_asset(name), _TYPES[Path(name).suffix]
    return assets


def _sender(content: bytes, kind: str) -> Handler:
    async def send(request: web.Request) -> web.StreamResponse:
        return web.Response(body=content, content_type=kind, charset="utf-8")

    return send
