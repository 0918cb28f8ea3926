"""A program's requests to the API, on a connection that stays open."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msmqwire.qm.runtime.console import ConsoleOptions
from msmqwire.qm.runtime.console.options import ConsoleLimits
from msmqwire.qm.runtime.limits import Limits
from tests.support.qm.console_client import Answer, token_of
from tests.support.running import ADDRESS, LEDGER, ORDERS, PATIENCE_S, InThread, options, served


class ApiClient:
    """A client with a token.

    Attributes:
        address, port: those of the API.
        token: its token; empty for none.
    """

    def __init__(self, address: str, port: int, token: str) -> None:
        self.address, self.port, self.token = address, port, token
        self._connection: http.client.HTTPConnection | None = None

    def ask(
        self,
        method: str,
        path: str,
        told: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
    ) -> Answer:
        """Send a request below ``/api/v1`` and return the answer."""
        sent = {} if not self.token else {"Authorization": f"Bearer {self.token}"}
        if told is not None:
            data = json.dumps(told).encode()
        if data is not None:
            sent["Content-Type"] = "application/json"
        sent |= headers or {}
        connection = self._connection or http.client.HTTPConnection(
            self.address, self.port, timeout=PATIENCE_S
        )
        self._connection = None
        try:
            connection.request(method, f"/api/v1{path}", data, sent)
            got = connection.getresponse()
            answer = Answer(got.status, got.headers, got.read())
        except BaseException:
            connection.close()
            raise
        if got.will_close:
            connection.close()
        else:
            self._connection = connection
        return answer

    def told(self, method: str, path: str, told: object = None, status: int = 200) -> Any:
        """Return the JSON of an answer, whose status is expected."""
        answer = self.ask(method, path, told)
        assert answer.status == status, answer
        return answer.told if answer.body else None

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class WithApi:
    """A server in a thread with an API.

    Attributes:
        server: the server.
        own: a client with the console's own token.
    """

    def __init__(self, server: InThread, own: ApiClient) -> None:
        self.server, self.own = server, own

    def client(self, token: str = "") -> ApiClient:
        """Return a client with another token, or none."""
        return ApiClient(self.own.address, self.own.port, token)


@contextmanager
def with_api(
    data: Path,
    *queues: str,
    write: bool = True,
    limits: ConsoleLimits | None = None,
    peers: Mapping[str, Any] | None = None,
    **more: Any,
) -> Iterator[WithApi]:
    """Run a server with an API; `peers` are limits of `Limits`."""
    console = ConsoleOptions((ADDRESS, 0), write=write, limits=limits or ConsoleLimits(wrong_token_s=0.0))
    chosen = queues or (ORDERS, f"{LEDGER};transactional")
    with served(options(data, *chosen, console=console, limits=Limits(**(peers or {})), **more)) as server:
        at = server.server.console
        assert at is not None
        own = ApiClient(*at, token_of(data))
        try:
            yield WithApi(server, own)
        finally:
            own.close()
