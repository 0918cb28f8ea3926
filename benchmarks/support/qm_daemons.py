"""The servers that benchmarks/qm.py compares: each started in a folder of its own, and stopped."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
ADDRESS: Final = "127.0.0.1"
QUEUE: Final = "bench"
"""A durable queue, a stream, or ``private$\\bench``; ours has a transactional one beside it."""
TRANSACTIONAL: Final = "exact"
EXPRESS: Final = "express"
"""A queue for express messages, which is purged after each measurement: they are in memory."""
_START_S: Final = 120.0
_PORTS: Final = ("tcp", "http", "rpc")
"""The words of our ``ready`` line that have a port."""
_RABBIT_SCRIPTS: Final = ("/usr/lib/rabbitmq/bin/rabbitmq-server",)
"""The script that Debian's ``/usr/sbin/rabbitmq-server`` calls after it has set its own folders."""

Where = dict[str, Any]
"""The place of a server for clients: port, folder."""


class Daemon:
    """A server as a process; ``with`` ends it.

    Attributes:
        side: its name in tables.
        client: the side whose clients are used.
        says_ready: whether it reports on standard output when it can be used.
        where: its place for clients. started_s: seconds from its start until it could be used.
    """

    side = ""
    client = ""
    says_ready = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.where: Where = {}
        self.started_s = 0.0
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        """Stop it, and wait for its end."""
        process, self.process = self.process, None
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def __enter__(self) -> Daemon:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(
        self, command: list[str], environment: Mapping[str, str] | None = None, root: Path = ROOT
    ) -> None:
        self.folder.mkdir(exist_ok=True)
        self._begun = time.perf_counter()
        with (self.folder / "log").open("w") as log:
            self.process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE if self.says_ready else log,
                stderr=log,
                text=True,
                cwd=root,
                env=None if environment is None else {**os.environ, **environment},
            )

    def _wait_until_ready(self) -> None:
        """Wait until a client can use it."""
        while True:
            assert self.process is not None, "it was started"
            if self.process.poll() is not None:
                raise SystemExit(f"{self.side} does not start: see {self.folder / 'log'}")
            try:
                self.ready()
                break
            except OSError:
                if time.perf_counter() - self._begun > _START_S:
                    raise SystemExit(f"{self.side} is not ready after {_START_S} s") from None
                time.sleep(0.05)
        self.started_s = time.perf_counter() - self._begun

    def ready(self) -> None:
        """Raise OSError while it can't be used."""
        socket.create_connection((ADDRESS, self.where["port"]), 5).close()

    def _ready_line(self) -> str:
        """Return the line with which it says that it can be used."""
        assert self.process is not None, "it was started"
        assert self.process.stdout is not None, "it tells when it is ready"
        line = self.process.stdout.readline()
        self.started_s = time.perf_counter() - self._begun
        if not line.startswith("ready "):
            raise SystemExit(f"{self.side} does not start: see {self.folder / 'log'}")
        return line

    def purge(self) -> None:
        """Delete the messages in the queue for express messages."""
        raise NotImplementedError

    def resident(self) -> int:
        """Return the resident bytes of the process and its children."""
        assert self.process is not None, "it was started"
        return sum(_resident(number) for number in _family(self.process.pid))

    def processor_s(self) -> float:
        """Return the processor time of the process in seconds."""
        assert self.process is not None, "it was started"
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


class Msmqwire(Daemon):
    """``python -m msmqwire serve``."""

    side = client = "msmqwire"
    says_ready = True
    under: tuple[str, ...] = ()
    """A program that runs it."""
    root = ROOT
    """The copy of the project that is run."""
    program: tuple[str, ...] = ("-m", "msmqwire")
    options: tuple[str, ...] = ()

    def start(self) -> None:
        command = [*self.under, sys.executable, *self.program, "serve", "--data", str(self.folder / "data")]
        command += ["--listen", f"{ADDRESS}:0", "--ping", "off", "--name", "bench", "--log", "warning"]
        command += ["--queue", f"private$\\{QUEUE}", "--queue", f"private$\\{TRANSACTIONAL};transactional"]
        command += ["--queue", f"private$\\{EXPRESS}"]
        self._run([*command, *self.options], {"PYTHONPATH": str(self.root)}, self.root)
        line = self._ready_line()
        places = dict(word.split("=", 1) for word in line.split() if "=" in word)
        ports = {name: int(places[name].rpartition(":")[2]) for name in places if name in _PORTS}
        self.where = {**ports, "port": ports["tcp"], "data": str(self.folder / "data")}

    def purge(self) -> None:
        import msmqwire

        with msmqwire.attach(self.where["data"]) as manager:
            manager.queue(f"private$\\{EXPRESS}").purge()


class MsmqwireUvloop(Msmqwire):
    """``serve`` on the event loop of uvloop."""

    side = "uvloop"
    program = (
        "-c",
        "import asyncio, uvloop, msmqwire.cli\n"
        "asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())\n"
        "msmqwire.cli.main()",
    )


class Rabbit(Daemon):
    """rabbitmq-server with a node name, folders and ports of its own."""

    side = client = "RabbitMQ"

    def start(self) -> None:
        port, distribution, self._epmd = free_port(), free_port(), free_port()
        self.where = {"port": port}
        self.folder.mkdir(exist_ok=True)
        plugins = self.folder / "plugins"
        plugins.write_text("[].\n")
        self._environment = {
            "HOME": str(self.folder),
            "ERL_EPMD_PORT": str(self._epmd),
            "ERL_EPMD_ADDRESS": ADDRESS,
            "RABBITMQ_NODENAME": f"bench{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": ADDRESS,
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "logs"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "none"),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "none"),
        }
        script = rabbit_script()
        assert script is not None, "it was looked for"
        self._run([script], self._environment)
        self._wait_until_ready()

    def ready(self) -> None:
        import pika

        try:
            with pika.BlockingConnection(rabbit_parameters(self.where)) as connection:
                channel = connection.channel()
                channel.queue_declare(QUEUE, durable=True)
                channel.queue_declare(EXPRESS, durable=True)
        except pika.exceptions.AMQPError as exc:
            raise ConnectionRefusedError(str(exc)) from exc

    def purge(self) -> None:
        import pika

        with pika.BlockingConnection(rabbit_parameters(self.where)) as connection:
            connection.channel().queue_purge(EXPRESS)

    def stop(self) -> None:
        was_started = self.process is not None
        super().stop()
        if was_started:  # Erlang's port mapper runs on; this one is used by this folder only
            environment = {**os.environ, **self._environment}
            subprocess.run(["epmd", "-kill"], env=environment, capture_output=True, check=False)


class Redis(Daemon):
    """redis-server that writes and syncs every command before it answers."""

    side = client = "Redis"

    def start(self) -> None:
        port = free_port()
        self.where = {"port": port}
        self.folder.mkdir(exist_ok=True)
        self._run(
            ["redis-server", "--bind", ADDRESS, "--port", str(port), "--dir", str(self.folder), "--save", "",
             "--appendonly", "yes", "--appendfsync", "always", "--daemonize", "no"],
        )  # fmt: skip
        self._wait_until_ready()

    def ready(self) -> None:
        import redis

        try:
            redis.Redis(ADDRESS, self.where["port"]).ping()
        except redis.exceptions.RedisError as exc:
            raise ConnectionRefusedError(str(exc)) from exc


def rabbit_script() -> str | None:
    """Return the script that starts RabbitMQ; None if it is not installed."""
    return next(
        (script for script in _RABBIT_SCRIPTS if Path(script).exists()), shutil.which("rabbitmq-server")
    )


def rabbit_parameters(where: Where) -> Any:
    """Return the parameters of a pika connection."""
    import pika

    return pika.ConnectionParameters(ADDRESS, where["port"], heartbeat=0, blocked_connection_timeout=None)


def missing() -> dict[str, str]:
    """Return the sides that can't be measured, and the missing packages."""
    lacking_by_side = {}
    if importlib.util.find_spec("uvloop") is None:
        lacking_by_side[MsmqwireUvloop.side] = "the Python package uvloop"
    for side, program, module in (
        (Rabbit.side, rabbit_script(), "pika"),
        (Redis.side, shutil.which("redis-server"), "redis"),
    ):
        lacking = [] if program else [f"{side.lower()}-server (apt-get install {side.lower()}-server)"]
        if importlib.util.find_spec(module) is None:
            lacking.append(f"the Python package {module}")
        if lacking:
            lacking_by_side[side] = " and ".join(lacking)
    return lacking_by_side


def free_port() -> int:
    """Return a free TCP port."""
    with socket.create_server((ADDRESS, 0)) as server:
        return int(server.getsockname()[1])


def _family(number: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                stat = Path(f"/proc/{name}/stat").read_text()
            except OSError:
                continue
            parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(name))
    family = [number]
    for member in family:
        family += parents.get(member, [])
    return family


def _resident(number: int) -> int:
    try:
        lines = Path(f"/proc/{number}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:")), 0)
