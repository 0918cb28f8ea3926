"""The torture run of the NetWare queue service: it is killed again and again, and every job is counted.

``python tools/torture/netware_torture.py --kills 100``: users submit jobs over NCP, queue servers take, read
and finish them, while the server is killed by SIGKILL at random moments and started again. In the end the
queue drains. No job that was acknowledged as submitted may be missing, none that was acknowledged as finished
may come back, none may be with two servers at a time, each has to have its data, and in the queue directory
there have to be the system files alone.

The exit status is 0 if that is so, and 1 if not, with all violations printed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from msmqwire.netware.runtime.administration import attach  # noqa: E402
from tests.support.netware.netware_running import RawNcp  # noqa: E402
from tests.support.netware.netware_station import be16, be32, le32, new_job, six_bytes  # noqa: E402
from tools.torture.processes import Supervised  # noqa: E402

ADDRESS: Final = "127.0.0.46"
_READY: Final = re.compile(r"ready netware tcp=\S+:(\d+) ")
_USERS: Final = 4
_SERVERS: Final = 3
_RESTART: Final = 0x10
_READ, _WRITE, _QUEUE_CALL = 72, 73, 23
_CREATE, _START, _SERVICE, _FINISH, _ATTACH = 121, 127, 124, 131, 111
_FULL, _NO_JOB = 0xD4, 0xD5
_PATIENCE_S: Final = 120.0
_BREATH_S: Final = 0.02


def body_of(job: str) -> bytes:
    """Return the data of a job, from which its name can be read."""
    return f"{job}\n".encode() * (1 + sum(job.encode()) % 200)


@dataclass
class Books:
    """The acknowledgements about each job.

    Attributes:
        begun: jobs whose start was requested.
        submitted: jobs acknowledged as submitted.
        finished: jobs acknowledged as finished. taken: the life of the server in which a job was taken, while
            it may be in service.
        wrong: the violations.
        counts: the count of each kind of event.
    """

    begun: set[str] = field(default_factory=set)
    submitted: set[str] = field(default_factory=set)
    finishing: set[str] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)
    taken: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, job: str, data: bytes, life: int) -> None:
        """Enter that a queue server has got a job with its data."""
        with self.lock:
            self.counts["taken"] += 1
            if job not in self.begun:
                self.wrong.append(f"{job}: no client has submitted it")
            if job in self.finished:
                self.wrong.append(f"{job}: it is back, though it was acknowledged as finished")
            if self.taken.get(job) == life:
                self.wrong.append(f"{job}: two servers have it in life {life}")
            if data != body_of(job):
                self.wrong.append(f"{job}: {len(data)} bytes of data, not {len(body_of(job))}")
            self.taken[job] = life

    def balance(self) -> list[str]:
        """Return the violations once the queue has drained."""
        lost = sorted(self.submitted - self.finishing)
        return self.wrong + [f"{job}: it is lost, though it was acknowledged as submitted" for job in lost]


class Torture:
    """A run.

    Attributes:
        books: the acknowledgements so far.
    """

    def __init__(self, folder: Path, kills: int, seed: int, between: tuple[float, float]) -> None:
        self._data, self._kills, self._random, self._between = (
            folder / "data",
            kills,
            random.Random(seed),
            between,
        )
        command = ("netware", "serve", "--data", str(self._data), "--listen", f"{ADDRESS}:0")
        self._server = Supervised("server", folder, lambda _: (sys.executable, "-m", "msmqwire", *command))
        self.books = Books()
        self._life = 0, 0  # port and number of the life of the server
        self._queue = b""
        self._submits, self._serves = True, True
        self._people: dict[str, bytes] = {}

    def run(self) -> list[str]:
        """Torture the server, and return the violations."""
        with attach(self._data, create=True) as local:
            local.call("object_create", name="USER", type="user")
            local.call("object_create", name="PS", type="print-server")
            roles = {"user": ["USER"], "server": ["PS"]}
            queue = local.call("queue_create", name="Q", type="print", path="SYS:SYSTEM", **roles)
        self._queue = bytes.fromhex(queue["id"])
        self._start()
        users = [threading.Thread(target=self._repeat, args=(self._use, f"u{n}")) for n in range(_USERS)]
        servers = [
            threading.Thread(target=self._repeat, args=(self._serve, f"s{n}")) for n in range(_SERVERS)
        ]
        for thread in (*users, *servers):
            thread.start()
        try:
            for _ in range(self._kills):
                time.sleep(self._random.uniform(*self._between))
                self._server.check()
                self._server.kill()
                self._start()
            time.sleep(max(self._between))
        finally:
            self._submits = False
            for thread in users:
                thread.join(_PATIENCE_S)
            self._drain()
            self._serves = False
            for thread in servers:
                thread.join(_PATIENCE_S)
            self._server.kill()
        return self.books.balance() + self._left()

    def _start(self) -> None:
        self._server.start()
        line = self._server.line(_PATIENCE_S)
        ready = _READY.match(line)
        assert ready, f"{line!r} {self._server.last_words()}"
        self._life = int(ready[1]), self._server.lives

    def _drain(self) -> None:
        """Wait until the queue is empty."""
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until and not self.books.wrong:
            with attach(self._data) as local:
                if local.call("queue_show", queue="Q")["jobs"] == 0:
                    return
            time.sleep(_BREATH_S)
        if not self.books.wrong:
            self.books.wrong.append("the queue does not drain")

    def _left(self) -> list[str]:
        """Return the files on disk that should not be left after a restart."""
        with attach(self._data) as local:
            directory = local.call("queue_show", queue="Q")["directory"]
        path = self._data / "volumes" / directory.replace(":", "/").replace("\\", "/")
        stem = f"Q${directory[-4:]}"
        names = sorted(entry.name for entry in path.iterdir())
        return [] if names == [f"{stem}.SRV", f"{stem}.SYS"] else [f"left on disk: {names}"]

    # -- users and queue servers --------------------------------------------------------------------------

    def _repeat(self, live: Callable[[str], None], name: str) -> None:
        """Live again and again; a life ends with the connection."""
        while self._submits if name.startswith("u") else self._serves:
            try:
                live(name)
            except (ConnectionError, TimeoutError):
                self.books.counts["connections lost"] += 1
                time.sleep(_BREATH_S)
            except Exception as exc:
                self.books.wrong.append(f"{name}: {exc!r}")
                return

    def _use(self, name: str) -> None:
        """Submit jobs."""
        with _connected(self._life[0], "USER", 1) as link:
            while self._submits:
                code, head = _asked(link, _CREATE, self._queue + new_job(flags=_RESTART))
                if code == _FULL:
                    time.sleep(_BREATH_S)
                    continue
                _check(code)
                self.books.counts["created"] += 1
                job = f"{name}-{self.books.counts['created']}-{self._random.randrange(1 << 30)}"
                data = body_of(job)
                where = b"\0" + six_bytes(head[62:66]) + be32(0) + be16(len(data))
                _check(_exchanged(link, _WRITE, where + data)[0])
                self.books.begun.add(job)
                _check(_asked(link, _START, self._queue + head[38:42])[0])
                self.books.submitted.add(job)

    def _serve(self, name: str) -> None:
        """Service jobs."""
        port, life = self._life
        with _connected(port, "PS", 7) as link:
            _check(_asked(link, _ATTACH, self._queue)[0])
            while self._serves:
                code, head = _asked(link, _SERVICE, self._queue + be16(0xFFFF))
                if code == _NO_JOB:
                    time.sleep(_BREATH_S)
                    continue
                _check(code)
                where = b"\0" + six_bytes(head[62:66]) + be32(0) + be16(0xFFFF)
                code, read = _exchanged(link, _READ, where)
                _check(code)
                job = read[2:].partition(b"\n")[0].decode()
                self.books.take(job, read[2:], life)
                self.books.finishing.add(job)
                _check(_asked(link, _FINISH, self._queue + head[38:42] + le32(0))[0])
                self.books.finished.add(job)


def _connected(port: int, name: str, type_: int) -> RawNcp:
    """Connect and log in. Raises ConnectionError."""
    try:
        link = RawNcp(ADDRESS, port)
    except AssertionError as exc:  # there is no reply, or half of one
        raise ConnectionError(str(exc)) from None
    try:
        return link.login(name, type_)
    except (AssertionError, IndexError) as exc:
        link.close()
        raise ConnectionError(str(exc)) from None


def _asked(link: RawNcp, subfunction: int, data: bytes) -> tuple[int, bytes]:
    """Make a queue call; return its completion code and the data of its reply."""
    return _exchanged(link, _QUEUE_CALL, be16(len(data) + 1) + bytes((subfunction,)) + data)


def _exchanged(link: RawNcp, function: int, data: bytes) -> tuple[int, bytes]:
    try:
        reply = link.exchange(link.packet(0x2222, data, function=function))
    except AssertionError as exc:
        raise ConnectionError(str(exc)) from None
    if len(reply) < 8 or reply[7] & 0x01:
        raise ConnectionError("the connection has ended")
    return reply[6], reply[8:]


def _check(code: int) -> None:
    if code:
        raise ValueError(f"completion code 0x{code:02X}")


def main() -> int:
    """Run from the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--between", type=float, nargs=2, default=(0.05, 1.5), help="seconds between kills")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        torture = Torture(Path(folder), options.kills, options.seed, tuple(options.between))
        wrong = torture.run()
    books = torture.books
    figures = {"kills": options.kills, "submitted": len(books.submitted), "finished": len(books.finished)}
    print(json.dumps(figures | dict(books.counts) | {"wrong": wrong}, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
