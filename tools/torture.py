"""The torture run: servers are killed again and again under load, and every message has to be accounted for.

``python tools/torture.py --kills 200``: two servers, one of which forwards to the other, senders with files,
senders and receivers at the control channels, and one who moves messages, all of them processes. A server is
killed by SIGKILL at a moment that chance chooses, while it works or while it recovers, and started again; now
and then a client is killed with it, a server is stopped in good order, or something is sent while none runs.
At the end all drains, and the books that everybody has kept are balanced: see `tools.torture_books`.

Exit status 0 when they balance and 1 when they do not, with what is wrong and the story of each such message.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, TextIO

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from msmqwire.errors import StoreError, Unreachable  # noqa: E402
from msmqwire.qm.runtime.local import attach  # noqa: E402
from tools.torture_books import KINDS, Balance, Book, Wrong, read_books  # noqa: E402
from tools.torture_clients import PATIENCE_S, Desk, Plan, send_here  # noqa: E402

ALPHA, BETA = "alpha", "beta"
ADDRESSES: Final = {ALPHA: "127.0.0.41", BETA: "127.0.0.42"}
QUEUES: Final = {ALPHA: ("orders", "ledger", "parcels"), BETA: ("distant", "far")}
TRANSACTIONAL: Final = ("ledger", "parcels", "far")
MOVED: Final = ("parcels",)
SHARED: Final = ("orders",)
_SENDERS, _RECEIVERS, _MOVERS = ("s1", "s2", "l1", "l2"), ("r1", "r2", "r3"), ("m1",)
_READY: Final = re.compile(r"ready \S+ tcp=[^:]+:(\d+) .*\n")
_LOOK_S: Final = 0.05
_STARTING: Final = ((0.0, 1.3), (0.75, 1.15))
"""Moments at which a server is killed that has just been started, in parts of the shortest start: the second
half of it is when the store is read."""
_KILLED_S: Final = 60.0
_CALM_S: Final = 3.0
"""How long all go on after the last kill: none of what is begun then may be lost."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to torture.

    Attributes:
        kills: of servers, at least.
        seed: of all chance.
        between: seconds that a server runs, from and to.
        pause: seconds between what a sender sends, from and to.
        folder: for everything; it must not have anything in it.
    """

    kills: int
    seed: int
    folder: Path
    between: tuple[float, float] = (0.3, 2.5)
    pause: tuple[float, float] = (0.02, 0.25)


class Broken(Exception):
    """Something ended that nobody has killed, or does not come to an end."""


class Life:
    """A process that is killed and started again."""

    def __init__(self, name: str, logs: Path, command: Callable[[int], Sequence[str]]) -> None:
        self.name, self._command = name, command
        self._log = logs / f"{name}.log"
        self.lives = 0
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it."""
        self.lives += 1
        with self._log.open("a") as log:
            self.process = subprocess.Popen(
                self._command(self.lives),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip

    @property
    def status(self) -> int | None:
        """With what it has ended; None while it runs."""
        assert self.process is not None, "it was started"
        return self.process.poll()

    def check(self) -> None:
        """Raises Broken if it has ended."""
        if self.status is not None:
            raise Broken(f"{self.name} has ended with {self.status}: {self.last_words()}")

    def send(self, number: int) -> None:
        """Send it a signal."""
        assert self.process is not None, "it was started"
        self.process.send_signal(number)

    def ended(self) -> int:
        """Wait for its end; gives its status. Raises Broken if that does not come."""
        assert self.process is not None, "it was started"
        try:
            status = self.process.wait(_KILLED_S)
        except subprocess.TimeoutExpired:
            raise Broken(f"{self.name} does not end") from None
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status

    def kill(self) -> None:
        """End it at once."""
        self.send(signal.SIGKILL)
        self.ended()

    def line(self, wait: float) -> str:
        """What it prints within a time; nothing if it does not, or has ended."""
        assert self.process is not None
        out: IO[str] | None = self.process.stdout
        assert out is not None
        return out.readline() if select.select([out], [], [], wait)[0] else ""

    def last_words(self) -> str:
        """The end of its log."""
        return self._log.read_text()[-2000:] if self._log.exists() else ""


class Torture:
    """One run."""

    def __init__(self, options: Options, out: TextIO = sys.stderr) -> None:
        self._options, self._out = options, out
        self._rng = random.Random(options.seed)
        folder = options.folder
        self._books, self._states, self._logs = folder / "books", folder / "states", folder / "logs"
        for path in (folder, self._books, self._states, self._logs):
            path.mkdir(mode=0o700, exist_ok=True)
        self._ports: dict[str, int] = {}
        self._servers = {name: Life(name, self._logs, self._server_command(name)) for name in QUEUES}
        self._clients: dict[str, Life] = {}
        self._away: dict[str, int] = {}
        self._book = Book(self._books, "supervisor")
        self._keeper = Desk({"who": "keeper", "life": 1, "role": "local", **self._here(ALPHA)})
        self._keeper_rng = self._keeper.rng("store")
        self._figures: Counter[str] = Counter()
        self._starting: list[float] = []
        self._wrong: list[Wrong] = []

    # -- who takes part -----------------------------------------------------------------------------------

    def _data(self, name: str) -> Path:
        return self._options.folder / name

    def _server_command(self, name: str) -> Callable[[int], Sequence[str]]:
        def command(life: int) -> Sequence[str]:
            found = [sys.executable, "-m", "msmqwire", "serve", "--data", str(self._data(name))]
            found += ["--name", name, "--ping", "off", "--log", "warning"]
            found += ["--listen", f"{ADDRESSES[name]}:{self._ports.get(name, 0)}"]
            for queue in QUEUES[name]:
                found += ["--queue", rf"private$\{queue}{';transactional' * (queue in TRANSACTIONAL)}"]
            for other, port in self._ports.items():
                if other != name:
                    found += ["--host", f"{other}={ADDRESSES[other]}:{port}"]
            return found

        return command

    def _common(self) -> Plan:
        options = self._options
        found: Plan = {"seed": options.seed, "books": str(self._books), "pause": options.pause}
        return {**found, "transactional": TRANSACTIONAL}

    def _here(self, *computers: str) -> Plan:
        """Of a sender at the control channel of alpha: to its own queues and to those of others."""
        ways = {ALPHA: [ALPHA], BETA: [ALPHA, BETA]}
        queues = {queue: (name, ways[name]) for name in computers for queue in QUEUES[name]}
        return {**self._common(), "data": str(self._data(ALPHA)), "queues": queues}

    def _plans(self) -> dict[str, Plan]:
        alpha, beta = str(self._data(ALPHA)), str(self._data(BETA))
        common = self._common()
        far = {
            **common, "role": "remote", "states": str(self._states), "address": ADDRESSES[ALPHA],
            "port": self._ports[ALPHA], "way": [ALPHA],
        }  # fmt: skip
        takes = {**common, "role": "receiver"}

        def readers(**data: str) -> Plan:
            return {**takes, "queues": list(data), "data": data}

        return {
            "s1": {**far, "queues": ["orders", "ledger"]},
            "s2": {**far, "queues": ["orders", "ledger", "parcels"]},
            "l1": {**self._here(ALPHA), "role": "local"},
            "l2": {**self._here(BETA), "role": "local"},
            "r1": readers(orders=alpha, far=beta),
            "r2": readers(orders=alpha, distant=beta),
            "r3": readers(ledger=alpha, parcels=alpha),
            "m1": {**common, "role": "mover", "queues": list(MOVED), "data": alpha},
        }

    # -- from the start to the end ------------------------------------------------------------------------

    def run(self) -> Balance:
        """Torture, drain, and balance."""
        begun = time.monotonic()
        drained = False
        try:
            self._begin()
            while self._figures["kills"] < self._options.kills:
                self._round()
            self._end()
            drained = True
        except Broken as exc:
            self._wrong.append(Wrong("broken", "", str(exc)))
        finally:
            for life in (*self._servers.values(), *self._clients.values()):
                if life.process is not None and life.status is None:
                    life.kill()
        entries = read_books(self._books)
        balance = Balance(entries, moved=MOVED, shared=SHARED, drained=drained)
        balance.wrong[:0] = self._wrong
        balance.figures.update(self._figures)
        balance.figures["seconds"] = round(time.monotonic() - begun)
        balance.figures["longest start, ms"] = round(max(self._starting, default=0) * 1000)
        return balance

    def _begin(self) -> None:
        """The servers choose ports, and have them from now on."""
        for name, server in self._servers.items():
            server.start()
            self._ports[name] = self._await_ready(server)
        for server in self._servers.values():
            server.send(signal.SIGTERM)
            self._expect(server)
        for server in self._servers.values():
            server.start()
            self._await_ready(server)
        for who, plan in self._plans().items():
            self._clients[who] = Life(who, self._logs, _client_command({**plan, "who": who}))
            self._clients[who].start()

    def _await_ready(self, server: Life) -> int:
        begun = time.monotonic()
        while not (line := server.line(_LOOK_S)):
            server.check()
            if time.monotonic() > begun + PATIENCE_S:
                raise Broken(f"{server.name} does not get ready")
        found = _READY.fullmatch(line)
        if found is None:
            raise Broken(f"{server.name} says {line!r}")
        self._starting.append(time.monotonic() - begun)
        self._book.write("ready", who=server.name)
        return int(found[1])

    def _expect(self, life: Life, *others: Life) -> None:
        """It ends in good order, and the others do not end meanwhile."""
        until = time.monotonic() + PATIENCE_S
        while life.status is None and time.monotonic() < until:
            for other in others:
                other.check()
            time.sleep(_LOOK_S)
        status = life.ended()
        if status != 0:
            raise Broken(f"{life.name} ended with {status}: {life.last_words()}")

    # -- kills --------------------------------------------------------------------------------------------

    def _wait(self, seconds: float) -> None:
        """Let all run, and see that nobody ends."""
        until = time.monotonic() + seconds
        while True:
            here = [life for name, life in self._clients.items() if name not in self._away]
            for life in (*self._servers.values(), *here):
                life.check()
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.1))

    def _kill(self, life: Life, count: str) -> None:
        life.check()
        life.kill()
        self._book.write("killed", who=life.name)
        self._figures[count] += 1

    def _round(self) -> None:
        """One server is killed, once or several times in a row."""
        rng, options = self._rng, self._options
        server = self._servers[rng.choices((ALPHA, BETA), (80, 20))[0]]
        self._wait(rng.uniform(*options.between) + (2.0 if rng.random() < 0.1 else 0.0))
        if rng.random() < 0.05:
            server.check()
            server.send(signal.SIGTERM)
            self._expect(server)
            self._book.write("killed", who=server.name, how="stopped")
            self._figures["stops in good order"] += 1
        else:
            self._kill(server, "kills")
        if rng.random() < 0.3:
            victim = rng.choice(sorted(self._clients.keys() - self._away.keys()))
            self._kill(self._clients[victim], "kills of clients")
            self._away[victim] = rng.choice((0, 0, 1, 4))
        if server.name == ALPHA and rng.random() < 0.2:
            self._send_while_none_runs()
        server.start()
        while rng.random() < 0.3:
            time.sleep(rng.uniform(*rng.choice(_STARTING)) * min(self._starting))
            self._kill(server, "kills")
            self._figures["kills of starting servers"] += 1
            server.start()
        self._await_ready(server)
        self._bring_back()
        if self._figures["kills"] % 20 == 0:
            print(f"{self._figures['kills']} kills", file=self._out, flush=True)

    def _bring_back(self, *, all_of_them: bool = False) -> None:
        """Clients that were killed come back, some of them some rounds later."""
        for name, rounds in list(self._away.items()):
            if rounds and not all_of_them:
                self._away[name] = rounds - 1
            else:
                del self._away[name]
                self._clients[name].start()

    def _send_while_none_runs(self) -> None:
        """A command that finds no server opens the store itself."""
        queue = self._rng.choice(sorted(self._keeper.plan["queues"]))
        try:
            with attach(self._data(ALPHA)) as local:
                if local.served:
                    raise Broken("a server answers after it was killed")
                send_here(self._keeper, local, queue, self._keeper_rng, lasting=False)
        except (StoreError, Unreachable) as exc:
            raise Broken(f"the store of a killed server: {exc}") from exc
        self._figures["sent while none runs"] += 1

    # -- the end ------------------------------------------------------------------------------------------

    def _end(self) -> None:
        """No more kills: the senders stop, all drains, the receivers and the servers stop."""
        self._bring_back(all_of_them=True)
        self._wait(_CALM_S)
        self._book.write("drain")
        servers, clients = list(self._servers.values()), self._clients
        receivers = [clients[name] for name in _RECEIVERS]
        for names in (_SENDERS, _MOVERS):
            for name in names:
                clients[name].send(signal.SIGTERM)
            for name in names:
                self._expect(clients[name], *servers, *receivers)
        begun = time.monotonic()
        while left := self._left():
            for life in (*servers, *receivers):
                life.check()
            if time.monotonic() > begun + PATIENCE_S:
                self._wrong.append(Wrong("left", "", f"these queues are not empty: {json.dumps(left)}"))
                break
            time.sleep(0.2)
        for life in (*receivers, *servers):
            life.send(signal.SIGTERM)
            self._expect(life)

    def _left(self) -> dict[str, int]:
        """The queues that have messages."""
        found: dict[str, int] = {}
        for name in self._servers:
            with attach(self._data(name)) as local:
                for queue in local.call("list")["queues"]:
                    if queue["messages"]:
                        found[f"{name}: {queue['queue']}"] = queue["messages"]
        return found


def _client_command(plan: Plan) -> Callable[[int], Sequence[str]]:
    def command(life: int) -> Sequence[str]:
        return [sys.executable, str(ROOT / "tools/torture_clients.py"), json.dumps({**plan, "life": life})]

    return command


def summary(balance: Balance) -> list[str]:
    """The figures, for people."""
    count = balance.figures
    told = [f"{'':14}" + "".join(f"{kind:>15}" for kind in KINDS)]
    for what in ("begun", "aborted", "stored", "transferred", "received", "read again"):
        told.append(f"{what:14}" + "".join(f"{count[f'{kind} {what}']:15}" for kind in KINDS))
    others = [name for name in count if name.partition(" ")[0] not in KINDS]
    others += ["express lost by kills", "express twice by kills", "express never answered for"]
    return told + [f"{name}: {count[name]}" for name in others]


def report(balance: Balance, out: TextIO = sys.stdout) -> int:
    """Tell how it was; gives the exit status."""
    print("\n".join(summary(balance)), file=out)
    for wrong in balance.told():
        print(wrong, file=out)
    what = Counter(wrong.what for wrong in balance.wrong)
    print("the books balance" if not what else f"the books do not balance: {dict(what)}", file=out)
    return 1 if what else 0


def _span(text: str) -> tuple[float, float]:
    first, _, last = text.partition(":")
    return float(first), float(last or first)


def main(arguments: Sequence[str] | None = None) -> int:
    """Torture as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200, help="of servers, at least")
    parser.add_argument("--seed", type=int, default=None, help="of all chance; one of its own without it")
    parser.add_argument("--seconds-between", type=_span, default=(0.3, 2.5), metavar="A:B", help="kills")
    parser.add_argument("--pause", type=_span, default=(0.02, 0.25), metavar="A:B", help="seconds of senders")
    parser.add_argument("--data", type=Path, help="an empty folder; without it one of the system's")
    parser.add_argument("--keep", action="store_true", help="keep the folder also when the books balance")
    given = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1 << 32) if given.seed is None else given.seed
    folder = given.data or Path(tempfile.mkdtemp(prefix="torture-"))
    if folder.exists() and any(folder.iterdir()):
        parser.error(f"{folder} is not empty")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and not without ending all others first
    print(f"seed {seed}, folder {folder}", file=sys.stderr, flush=True)
    balance = Torture(Options(given.kills, seed, folder, given.seconds_between, given.pause)).run()
    status = report(balance)
    if status == 0 and not given.keep:
        shutil.rmtree(folder)
    return status


if __name__ == "__main__":
    sys.exit(main())
