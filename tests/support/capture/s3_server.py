"""A server of S3 on the loopback (moto's) that can fail, wait, and report its requests."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SECRET = "the-secret-of-the-test"
_ERROR = "<?xml version='1.0'?><Error><Code>{}</Code><Message>injected</Message></Error>"
_STATUSES = {
    "error": ("500 Internal Server Error", "InternalError"),
    "denied": ("403 Forbidden", "AccessDenied"),
}


class Request(NamedTuple):
    """A request that was answered, or made to fail.

    Attributes:
        method: GET, HEAD, PUT, POST or DELETE.
        path: bucket and key.
        range: the header of this name; empty without.
        sent: bytes of the body that were sent.
    """

    method: str
    path: str
    range: str
    sent: int


@dataclass
class S3Server:
    """A running server.

    Attributes:
        endpoint: its URL.
        latency: seconds before each answer.
        faults: the faults of the next ranged GETs, one each: ``error`` (status 500), ``denied`` (403),
            ``reset`` of the connection, ``short`` (a body that ends too early), ``slow`` (an answer after
            half a second), or ``ok``.
        requests: all requests, in the order of their answers.
        methods: the methods that faults happen to.
    """

    endpoint: str = ""
    latency: float = 0
    faults: list[str] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    methods: tuple[str, ...] = ("GET",)

    @property
    def options(self) -> dict[str, Any]:
        """The storage options that lead to it."""
        return {
            "endpoint_override": self.endpoint,
            "access_key": "test",
            "secret_key": SECRET,
            "region": "us-east-1",
        }

    @property
    def option_arguments(self) -> list[str]:
        """The same for the command line."""
        return [
            part for name, value in self.options.items() for part in ("--storage-option", f"{name}={value}")
        ]

    def filesystem(self) -> Any:
        """A `pyarrow.fs.S3FileSystem` for the tests' own use."""
        from pyarrow.fs import S3FileSystem

        return S3FileSystem(**self.options, allow_bucket_creation=True)

    def put(self, path: str, data: bytes) -> str:
        """Store an object in a bucket, which is made; return its URL."""
        filesystem = self.filesystem()
        filesystem.create_dir(path.partition("/")[0])
        with filesystem.open_output_stream(path) as stream:
            stream.write(data)
        return f"s3://{path}"

    def fetched(self) -> int:
        """Return how many bytes of objects were sent since the last call, and forget the requests."""
        count = sum(request.sent for request in self.requests if request.range)
        self.requests.clear()
        return count


class _Faulty:
    """The application, with the faults of a test."""

    def __init__(self, app: Any, server: S3Server) -> None:
        self._app, self._server = app, server
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        server, method = self._server, environ["REQUEST_METHOD"]
        ranges = environ.get("HTTP_RANGE", "")
        time.sleep(server.latency)  # of a network
        with self._lock:
            is_meant = method in server.methods and (method != "GET" or ranges)
            fault = server.faults.pop(0) if is_meant and server.faults else "ok"
        body = b""
        if fault == "reset":
            connection: socket.socket = environ["werkzeug.socket"]
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            server.requests.append(Request(method, environ["PATH_INFO"].lstrip("/"), ranges, 0))
            raise ConnectionResetError
        if fault in _STATUSES:
            status, code = _STATUSES[fault]
            body = _ERROR.format(code).encode()
            start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        else:
            time.sleep(0.5 * (fault == "slow"))  # which the client has to bear
            body = b"".join(self._app(environ, start_response))
            body = body[: len(body) // 2] if fault == "short" else body
        server.requests.append(Request(method, environ["PATH_INFO"].lstrip("/"), ranges, len(body)))
        return [body]


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run a server without any buckets, as of now."""
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from moto.s3.models import s3_backends
    from werkzeug.serving import make_server

    class Quiet(MotoRequestHandler):
        def log(self, *arguments: object) -> None:
            """Write nothing."""

    server = S3Server()
    app = _Faulty(DomainDispatcherApplication(create_backend_app), server)
    http = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    http.daemon_threads = True
    server.endpoint = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
        s3_backends[DEFAULT_ACCOUNT_ID].reset()
