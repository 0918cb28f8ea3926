"""A browser's requests to the console, each header as a test wants it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from msmqwire.qm.runtime.console import ConsoleOptions
from msmqwire.qm.runtime.console.options import ConsoleLimits
from msmqwire.qm.runtime.data_folder import TOKEN_FILE
from msmqwire.qm.runtime.limits import Limits
from tests.support.running import ADDRESS, LEDGER, ORDERS, PATIENCE_S, InThread, options, served


@dataclass(frozen=True)
class Answer:
    """An answer.

    Attributes:
        status: the HTTP status.
        headers: its header fields; fields of one name are joined.
        body: its bytes.
    """

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def told(self) -> Any:
        """The JSON in it."""
        return json.loads(self.body)


def place(queue: str, *more: str) -> str:
    """Return the path of a queue, or of what is below it, in the API."""
    return "/".join(["queues", quote(queue, safe=""), *more])


@dataclass
class Browser:
    """The state of a browser: a cookie and the token against forged requests.

    Attributes:
        address, port: address and port of the console. headers: sent with each request; None leaves one out
            that would be sent.
    """

    address: str
    port: int
    cookie: str = ""
    csrf: str = ""
    headers: dict[str, str | None] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return f"http://{self.address}:{self.port}"

    def ask(
        self,
        method: str,
        path: str,
        told: object = None,
        headers: Mapping[str, str | None] | None = None,
        data: bytes | None = None,
    ) -> Answer:
        """Send a request on a connection of its own, and return the answer."""
        sent: dict[str, str | None] = {"Host": f"{self.address}:{self.port}"}
        if self.cookie:
            sent["Cookie"] = self.cookie
        if method not in ("GET", "HEAD"):
            sent |= {"Origin": self.origin, "X-CSRF-Token": self.csrf}
        if method in ("POST", "PATCH"):
            data = json.dumps({} if told is None else told).encode() if data is None else data
            sent |= {"Content-Type": "application/json", "Content-Length": str(len(data))}
        sent |= {**self.headers, **(headers or {})}
        connection = http.client.HTTPConnection(self.address, self.port, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(data)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, name: str, **query: Any) -> Answer:
        """Ask a path of the API that changes nothing."""
        return self.ask("GET", f"/api/v1/{name}?{urlencode(query)}" if query else f"/api/v1/{name}")

    def told(self, name: str, **query: Any) -> Any:
        """The JSON of a path of the API that changes nothing."""
        answer = self.get(name, **query)
        assert answer.status == 200, answer
        return answer.told

    def post(self, name: str, **told: Any) -> Answer:
        """Ask for a change."""
        return self.ask("POST", f"/api/v1/{name}", told)

    def patch(self, name: str, **told: Any) -> Answer:
        """Ask for a change of a part."""
        return self.ask("PATCH", f"/api/v1/{name}", told)

    def delete(self, name: str) -> Answer:
        """Ask for the end of something."""
        return self.ask("DELETE", f"/api/v1/{name}")

    def log_in(self, token: str) -> Answer:
        """Log in, and keep the cookie if that succeeds."""
        answer = self.post("login", token=token)
        if answer.status == 200:
            self.cookie = str(answer.headers["Set-Cookie"]).partition(";")[0]
            self.csrf = answer.told["csrf"]
        return answer


def token_of(data: Path) -> str:
    """The token of the console of a folder."""
    return (data / TOKEN_FILE).read_text().strip()


@dataclass
class WithConsole:
    """A server in a thread with a console, and a browser that is logged in.

    Attributes:
        server: the server.
        browser: is logged in.
    """

    server: InThread
    browser: Browser

    @property
    def data(self) -> Path:
        return self.server.data

    def without_login(self) -> Browser:
        """A browser that is not logged in."""
        return Browser(self.browser.address, self.browser.port)


@contextmanager
def with_console(
    data: Path,
    *queues: str,
    write: bool = False,
    names: tuple[str, ...] = (),
    limits: ConsoleLimits | None = None,
    peers: Mapping[str, Any] | None = None,
    **more: Any,
) -> Iterator[WithConsole]:
    """Run a server with a console, whose samples come fast; `peers` are limits of `Limits`."""
    console = ConsoleOptions(
        (ADDRESS, 0),
        write=write,
        names=names,
        limits=limits or replace(ConsoleLimits(), sample_s=0.1, wrong_token_s=0.0),
    )
    chosen = queues or (ORDERS, f"{LEDGER};transactional")
    with served(options(data, *chosen, console=console, limits=Limits(**(peers or {})), **more)) as server:
        at = server.server.console
        assert at is not None
        browser = Browser(*at)
        assert browser.log_in(token_of(data)).status == 200
        yield WithConsole(server, browser)
