"""The server of the console: its token, its connections, its files and its end."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from aiohttp import web

from msmqwire.analysis.web_assets import CHART_SCRIPT, CHART_STYLE, COPIED_CELLS, web_asset
from msmqwire.ownership import write_secret
from msmqwire.qm.runtime.api.api import Api
from msmqwire.qm.runtime.api.guard import Guard, Handler, guarded_refusal
from msmqwire.qm.runtime.api.logins import ConsoleLogins
from msmqwire.qm.runtime.api.rights import Caller
from msmqwire.qm.runtime.api.tokens import Tokens, new_token
from msmqwire.qm.runtime.console.options import ConsoleOptions
from msmqwire.qm.runtime.console.samples import Samples
from msmqwire.qm.runtime.data_folder import TOKEN_FILE
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.health import Health
from msmqwire.service.logs import RecentRecords, log
from msmqwire.service.page_guard import add_headers
from msmqwire.service.page_server import PageServer

_PACKAGE: Final = "msmqwire"
_LAST_ANSWER_S: Final = 0.5
_TYPES: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class Console:
    """The console of a running queue manager.

    Attributes:
        port: the TCP port that it listens on; 0 before `start`.
        api: the API for programs, at the same port.
        pages: its connections.
        token_file: the file with the token of this run.
    """

    def __init__(
        self, driver: EngineDriver, options: ConsoleOptions, pages: PageServer, health: Health, folder: Path
    ) -> None:
        """Make the console at pages that answer already."""
        self._options, self._limits = options, options.limits
        self.pages = pages
        self.port = 0
        self.token_file = folder.resolve() / TOKEN_FILE
        self._token = new_token()
        tokens = Tokens(self._token)
        cookie = f"msmqwire-{driver.core.queue_manager.identifier.hex[:12]}"
        self._guard = Guard(
            ConsoleLogins(tokens, options.limits), tokens, cookie, options.names, write=options.write
        )
        self._samples, self._records = Samples(driver, options.limits), RecentRecords()
        tokens.use(driver.core.tokens)
        self.api = Api(driver, self._guard, self._samples, self._records, options.limits, health)
        tokens.on_revoked.append(self._revoked)
        self._started = False

    def _application(self) -> web.Application:
        application = web.Application(
            client_max_size=self._limits.request_bytes, middlewares=[self._guard.middleware]
        )
        self.api.mount(application)
        application.on_response_prepare.append(add_headers)
        for path, (content, kind) in _assets().items():
            application.router.add_get(path, _sender(content, kind))
        return application

    async def start(self, port: int) -> None:
        """Write the token, and answer at a port, at which the pages listen. Raises OSError."""
        self.port = port
        await asyncio.get_running_loop().run_in_executor(
            None, write_secret, self.token_file, f"{self._token}\n".encode()
        )
        logging.getLogger(_PACKAGE).addHandler(self._records)
        self._samples.start()
        self._started = True
        await self.pages.replace(self._application(), guarded_refusal, self._guard.logins.is_known)
        self._tell()

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
        if self._started:
            self._started = False
            logging.getLogger(_PACKAGE).removeHandler(self._records)
            await self._samples.stop()
            with suppress(OSError):
                self.token_file.unlink(missing_ok=True)
        self.api.close()
        await self.pages.stop()

    def _revoked(self, caller: Caller) -> None:
        """End the connections of a token that does not hold any more, once it has read its last answers."""
        loop = asyncio.get_running_loop()
        loop.call_later(_LAST_ANSWER_S, self.pages.connections.end_login, caller.key)


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
    for name in (CHART_SCRIPT, CHART_STYLE, COPIED_CELLS):
        assets[f"/assets/{name}"] = web_asset(name), _TYPES[Path(name).suffix]
    return assets


def _sender(content: bytes, kind: str) -> Handler:
    async def send(request: web.Request) -> web.StreamResponse:
        return web.Response(body=content, content_type=kind, charset="utf-8")

    return send
