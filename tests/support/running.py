"""Servers and commands for tests: as processes, and servers in a thread of this one."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Concatenate, ParamSpec, TypeVar
from unittest import mock

import pytest

from msmqwire.cli import main
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.server import Server, ServerOptions
from msmqwire.service.control.client import Local
from tests.support.paths import ROOT
from tests.support.patience import PATIENCE_S

T = TypeVar("T")
P = ParamSpec("P")
ADDRESS = "127.0.0.31"
LOOP = "MSMQWIRE_LOOP"
"""The environment variable that names the event loop: ``asyncio`` or ``uvloop``."""
asyncio_only = pytest.mark.skipif(
    os.environ.get(LOOP) == "uvloop", reason="start_tls of uvloop 0.23 does not end for accepted connections"
)
"""For tests of a server of TLS."""
ORDERS = r"private$\orders"
LEDGER = r"private$\ledger"
READY = re.compile(
    r"ready (?P<name>\S+) tcp=(?P<address>\S+):(?P<port>\d+) ping=(?:off|\S+:(?P<ping>\d+))"
    r"(?: http=\S+:(?P<http>\d+))?(?: https=\S+:(?P<https>\d+))?"
    r"(?: rpc=\S+:(?P<rpc>\d+))?(?: endpoint-mapper=\S+:(?P<mapper>\d+))?"
    r"(?: console=\S+:(?P<console>\d+))? data=(?P<data>.*)\n"
)


def until(condition: Callable[[], T], what: str) -> T:
    """Wait until a condition returns a true value, and return it; a failure names `what`."""
    end = time.monotonic() + PATIENCE_S
    while not (result := condition()):
        assert time.monotonic() < end, f"in vain: {what}"
        time.sleep(0.02)  # between two looks
    return result


def environment() -> dict[str, str]:
    """The environment of processes that run this package."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


# -- commands -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """A finished command."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """The JSON lines that a successful command printed."""
        assert (self.status, self.err) == (0, ""), self
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def one(self) -> Any:
        """The only line that a successful command printed."""
        (line,) = self.lines
        return line

    def error(self, status: int) -> dict[str, Any]:
        """The JSON object on standard error of a command that failed with `status` and printed nothing."""
        assert (self.status, self.out) == (status, ""), self
        (line,) = self.err.splitlines()
        error: dict[str, Any] = json.loads(line)
        assert (
            {"error", "path", "offset"}
            <= set(error)
            <= {"error", "path", "offset", "hresult", "code", "name"}
        )
        return error


def command_line(*arguments: str | Path) -> list[str]:
    """The command line of ``msmqwire``."""
    module = "tests.support.uvloop_main" if os.environ.get(LOOP) == "uvloop" else "msmqwire"
    return [sys.executable, "-m", module, *map(str, arguments)]


def command(*arguments: str | Path, data: bytes = b"") -> Run:
    """Run ``msmqwire`` and wait for its end."""
    run = subprocess.run(
        command_line(*arguments),
        input=data,
        capture_output=True,
        env=environment(),
        timeout=PATIENCE_S,
        check=False,
    )
    return Run(run.returncode, run.stdout.decode(), run.stderr.decode())


def called(*arguments: str | Path, data: bytes = b"") -> Run:
    """Run ``msmqwire`` in this process, which is ten times as fast."""
    run = in_process(*arguments, data=data)
    return Run(run.returncode, run.stdout.decode(), run.stderr.decode())


def in_process(*arguments: str | Path, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run ``msmqwire`` in this process; its output stays bytes."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    command = ["msmqwire", *map(str, arguments)]
    given = io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        stack.enter_context(mock.patch("sys.argv", command))
        stack.enter_context(mock.patch("sys.stdin", given))
        for name in ("msmqwire", "asyncio"):  # whose logs serve sends to the standard error of this moment
            logger = logging.getLogger(name)
            before = list(logger.handlers), logger.level, logger.propagate
            stack.callback(_restore, logger, *before)
        ending = stack.enter_context(pytest.raises(SystemExit))
        main()
    assert isinstance(ending.value.code, int)
    printed, said = out.detach(), err.detach()
    assert isinstance(printed, io.BytesIO)
    assert isinstance(said, io.BytesIO)
    return subprocess.CompletedProcess(command, ending.value.code, printed.getvalue(), said.getvalue())


def _restore(logger: logging.Logger, handlers: list[logging.Handler], level: int, propagate: bool) -> None:
    logger.handlers[:] = handlers
    logger.setLevel(level)
    logger.propagate = propagate


def begun(*arguments: str | Path, stderr: int | IO[str] = subprocess.PIPE) -> subprocess.Popen[str]:
    """Start ``msmqwire`` in the background."""
    return subprocess.Popen(
        command_line(*arguments),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
        env=environment(), text=True,
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> Run:
    """Wait for the end of a command in the background."""
    out, err = process.communicate(timeout=PATIENCE_S)
    return Run(process.returncode, out, err)


# -- servers as processes -------------------------------------------------------------------------------


class Process:
    """``msmqwire serve`` as a process, ready once constructed; its log goes to a file.

    Attributes:
        data: its data folder.
        name, address: of the computer.
        port, ping_port, http_port, https_port, rpc_port, mapper_port, console_port: of its sockets; 0 if off.
    """

    def __init__(
        self, data: Path, *options: str, address: str = ADDRESS, name: str = "alpha", descriptors: int = 0
    ) -> None:
        """Start it; `descriptors` is its limit of file descriptors, 0 for the limit of this process."""
        self.data = data
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the process
        required = ["serve", "--data", str(data), "--name", name]
        if "--listen" not in options:
            required += ["--listen", f"{address}:0"]
        if "--ping" not in options:
            required += ["--ping", f"{address}:0"]
        self.process = subprocess.Popen(
            limited(descriptors, *command_line(*required, *options)),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._log, env=environment(), text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        ready = READY.fullmatch(line)
        if ready is None:
            self.process.kill()
            self.process.wait(PATIENCE_S)
        assert ready, (line, self.log_text())
        self.name, self.address, self.reported_data = ready["name"], ready["address"], ready["data"]
        self.port, self.ping_port = int(ready["port"]), int(ready["ping"] or 0)
        self.http_port, self.https_port = int(ready["http"] or 0), int(ready["https"] or 0)
        self.rpc_port, self.mapper_port = int(ready["rpc"] or 0), int(ready["mapper"] or 0)
        self.console_port = int(ready["console"] or 0)

    def log_text(self) -> str:
        """Its standard error so far."""
        self._log.seek(0)
        return self._log.read()

    def logs(self) -> list[dict[str, Any]]:
        """The lines of its log."""
        return [json.loads(line) for line in self.log_text().splitlines()]

    def events(self) -> list[str]:
        """The events of its log."""
        return [line["event"] for line in self.logs()]

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Stop the server in good order."""
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE_S)
        assert status == 0, (status, self.log_text())

    def kill(self) -> None:
        """Kill the server."""
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def close(self) -> None:
        """Kill the server if it runs, and close its files."""
        if self.process.poll() is None:
            self.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()


def limited(descriptors: int, *arguments: str) -> list[str]:
    """A command line that is run with a limit of file descriptors; 0 for none."""
    if not descriptors:
        return [*arguments]
    return ["sh", "-c", f'ulimit -n {descriptors} && exec "$@"', "sh", *arguments]


@contextmanager
def process(
    data: Path, *options: str, address: str = ADDRESS, name: str = "alpha", descriptors: int = 0
) -> Iterator[Process]:
    """Run a server as a process; at the end of the block stop it in good order unless that has been done."""
    server = Process(data, *options, address=address, name=name, descriptors=descriptors)
    try:
        yield server
        if server.process.poll() is None:
            server.stop()
    finally:
        server.close()


# -- servers in this process ----------------------------------------------------------------------------


def options(
    data: Path, *queues: str, address: str = ADDRESS, name: str = "alpha", **more: Any
) -> ServerOptions:
    """Options of a server on ports that the system chooses."""
    base = ServerOptions(data, name, listen=(address, 0), ping=(address, 0), queues=queues)
    return replace(base, **more)


@dataclass
class InThread:
    """A server in a thread with a loop of its own.

    Attributes:
        server: to be used through `do` and `run` only.
        failures: contexts of uncaught errors in the loop.
    """

    server: Server
    loop: asyncio.AbstractEventLoop
    failures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def data(self) -> Path:
        return self.server.options.data

    @property
    def address(self) -> str:
        return self.server.listen[0]

    @property
    def port(self) -> int:
        return self.server.listen[1]

    @property
    def ping_port(self) -> int:
        assert self.server.ping is not None
        return self.server.ping[1]

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop of the server."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_S)

    def do(self, action: Callable[Concatenate[Server, P], T], *args: P.args, **more: P.kwargs) -> T:
        """Call a function with the server, in its thread."""

        async def call() -> T:
            return action(self.server, *args, **more)

        return self.run(call())


@contextmanager
def served(options: ServerOptions) -> Iterator[InThread]:
    """Run a server in a thread, stopped in good order when the block ends.

    An uncaught error in the loop fails the test.
    """
    loop = asyncio.new_event_loop()
    running = InThread(Server(options), loop)
    loop.set_exception_handler(lambda _, context: running.failures.append(context))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        running.run(running.server.start())
        yield running
        running.run(running.server.stop())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()
    assert running.failures == []


# -- messages in queues ---------------------------------------------------------------------------------


def message(body: bytes = b"", **properties: Any) -> dict[str, Any]:
    """A message for the request ``send``."""
    return {"body": b64encode(body).decode(), **properties}


def recoverable(*bodies: bytes, **properties: Any) -> list[dict[str, Any]]:
    """Recoverable messages for the request ``send``."""
    return [message(body, delivery="recoverable", **properties) for body in bodies]


def bodies(messages: Sequence[dict[str, Any]]) -> list[bytes]:
    """The bodies of messages that were read."""
    return [b64decode(message["body"]) for message in messages]


def put(local: Local, queue: str, *messages: dict[str, Any], computer: str = "alpha") -> list[str]:
    """Send messages to a queue of this computer; return their identifiers."""
    answer = local.call("send", to=rf"DIRECT=OS:{computer}\{queue}", messages=list(messages))
    assert "refused" not in answer, answer
    sent: list[str] = answer["sent"]
    return sent


def peeked(data: Path, queue: str) -> list[bytes]:
    """The bodies of all available messages of a queue."""
    with attach(data) as local:
        return bodies(local.call("peek", queue=queue, count=1000)["messages"])


def listed(data: Path) -> dict[str, dict[str, Any]]:
    """The queues of a folder by name."""
    with attach(data) as local:
        return {status["queue"]: status for status in local.call("list")["queues"]}
