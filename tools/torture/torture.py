"""The torture run: servers are killed again and again under load, and every message has to be accounted for.

``python tools/torture/torture.py --kills 200``: three servers, senders with files, senders and receivers at
the control channels, remote readers, and one that moves messages, all of them processes. alpha sends to beta
over sessions, and to gamma by HTTP over beta, which stores and forwards: streams, whose receipts come back
straight, and messages in none. beta and a sender with a file reach gamma by HTTP as well. Queues of alpha are
read remotely by anybody and by a user, one of beta by a user alone, with calls encrypted. A server is killed
by SIGKILL at a random moment, while it works or recovers, and restarted; now and then a client is killed too,
a server is stopped in good order, or messages are sent while none runs. At the end all queues drain, and the
books of all participants are balanced: see `tools.torture.books`.

The exit status is 0 if they balance, and 1 if not, with every discrepancy and the story of its message.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from msmqwire.errors import StoreError, Unreachable  # noqa: E402
from msmqwire.qm.runtime.local import attach  # noqa: E402
from tools.torture.books import KINDS, Balance, Book, Wrong, read_books  # noqa: E402
from tools.torture.clients import send_here  # noqa: E402
from tools.torture.participant import PATIENCE_S, Participant, Plan  # noqa: E402
from tools.torture.processes import Broken, Supervised  # noqa: E402

ALPHA, BETA, GAMMA = "alpha", "beta", "gamma"
ADDRESSES: Final = {ALPHA: "127.0.0.41", BETA: "127.0.0.42", GAMMA: "127.0.0.43"}
QUEUES: Final = {
    ALPHA: ("orders", "ledger", "parcels"), BETA: ("distant", "far"), GAMMA: ("inbox", "minutes"),
}  # fmt: skip
TRANSACTIONAL: Final = ("ledger", "parcels", "far", "minutes")
MOVED: Final = ("parcels",)
SHARED: Final = ("orders", "ledger", "far")
BY_HTTP: Final = QUEUES[GAMMA]
_WEIGHTS: Final = {ALPHA: 50, BETA: 25, GAMMA: 25}
"""The number of kills of each server."""
_SENDERS, _MOVERS = ("s1", "s2", "h1", "l1", "l2", "l3"), ("m1",)
_RECEIVERS: Final = ("r1", "r2", "r3", "p1", "p2", "q1", "q2", "q3")
_LEAST_RPC: Final = {ALPHA: "none", BETA: "privacy"}
"""The servers that remote readers read, and the least protection of calls there."""
_USER, _PASSWORD = "LAB\\reader", "torture"
_READY: Final = re.compile(r"ready \S+ tcp=\S+ .*http=\S+ .*\n")
_SETTINGS: Final = {
    "retransmission_timeout_ms": "500",
    "resend_timer_table": "3,6,12",
    "stream_receipt_delay_ms": "100",
}
"""Short times, so that messages held up by a kill are sent again during the run. But beta forwards each
repetition, so messages that wait there must not be repeated faster than they leave.
"""
_SLOWER: Final = 3
"""Times that senders pause longer which send by HTTP: one message is under way there at a time."""
_POLL_S: Final = 0.05
_STARTING: Final = ((0.0, 1.3), (0.75, 1.15))
"""Moments at which a starting server is killed, as fractions of the shortest start; the store is read in the
second half of it."""
_CALM_S: Final = 3.0
"""Seconds of work after the last kill: no message begun then may be lost."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a run.

    Attributes:
        kills: least number of kills of servers, if there is time for them.
        seed: seed of all random numbers.
        between: range of seconds that a server runs.
        pause: range of seconds between the messages of a sender.
        folder: an empty folder for everything.
        seconds: time after which no more servers are killed.
    """

    kills: int
    seed: int
    folder: Path
    between: tuple[float, float] = (0.3, 2.5)
    pause: tuple[float, float] = (0.02, 0.25)
    seconds: float = float("inf")


class Torture:
    """A torture run."""

    def __init__(self, options: Options, out: TextIO = sys.stderr) -> None:
        self._options, self._out = options, out
        self._rng = random.Random(options.seed)
        folder = options.folder
        self._books, self._states, self._logs = folder / "books", folder / "states", folder / "logs"
        for path in (folder, self._books, self._states, self._logs):
            path.mkdir(mode=0o700, exist_ok=True)
        self._ports = {name: free_port(address) for name, address in ADDRESSES.items()}
        self._http_ports = {name: free_port(address) for name, address in ADDRESSES.items()}
        self._rpc_ports = {name: free_port(ADDRESSES[name]) for name in _LEAST_RPC}
        self._servers = {name: Supervised(name, self._logs, self._server_command(name)) for name in QUEUES}
        self._clients: dict[str, Supervised] = {}
        self._away: dict[str, int] = {}
        self._book = Book(self._books, "supervisor")
        self._keeper = Participant({"who": "keeper", "life": 1, **self._local_plan(ALPHA, *QUEUES)})
        self._keeper_rng = self._keeper.rng("store")
        self._figures: Counter[str] = Counter()
        self._starting: list[float] = []
        self._wrong: list[Wrong] = []

    # -- participants -------------------------------------------------------------------------------------

    def _data(self, name: str) -> Path:
        return self._options.folder / name

    def _server_command(self, name: str) -> Callable[[int], Sequence[str]]:
        def command(life: int) -> Sequence[str]:
            arguments = [sys.executable, "-m", "msmqwire", "serve", "--data", str(self._data(name))]
            arguments += ["--name", name, "--ping", "off", "--log", "warning"]
            arguments += ["--listen", f"{ADDRESSES[name]}:{self._ports[name]}"]
            arguments += ["--http", f"{ADDRESSES[name]}:{self._http_ports[name]}"]
            for setting, value in _SETTINGS.items():
                arguments += ["--set", f"{setting}={value}"]
            if name in _LEAST_RPC:
                arguments += ["--rpc", f"{ADDRESSES[name]}:{self._rpc_ports[name]}"]
                arguments += ["--rpc-auth", _LEAST_RPC[name], "--rpc-users", str(self._users)]
            if name == ALPHA:
                arguments += ["--redirections", str(self._redirections)]
            if name == BETA:
                arguments += ["--set", "transparent_store_and_forward=true"]
            for queue in QUEUES[name]:
                arguments += ["--queue", rf"private$\{queue}{';transactional' * (queue in TRANSACTIONAL)}"]
            for other, port in self._ports.items():
                if other != name:
                    arguments += ["--host", f"{other}={ADDRESSES[other]}:{port}"]
            return arguments

        return command

    def _common(self) -> Plan:
        options = self._options
        return {
            "seed": options.seed,
            "books": str(self._books),
            "pause": options.pause,
            "longer": dict.fromkeys(BY_HTTP, _SLOWER),
            "transactional": TRANSACTIONAL,
        }

    @property
    def _redirections(self) -> Path:
        """The file that sends alpha's messages for gamma over beta."""
        return self._options.folder / "redirections.json"

    @property
    def _users(self) -> Path:
        """The file of the users of remote read."""
        return self._options.folder / "users"

    def _write_users(self) -> None:
        self._users.touch(mode=0o600)
        self._users.write_text(f"{_USER}:{_PASSWORD}\n")

    def _write_redirections(self) -> None:
        source, to = f"http://{GAMMA}:{self._http_ports[GAMMA]}/*", f"http://{BETA}:{self._http_ports[BETA]}/"
        collection = {"OutboundRedirectionCollection": [{"From": source, "To": to}]}
        self._redirections.write_text(json.dumps(collection))

    def _name(self, queue: str) -> str:
        """Return the format name of a queue."""
        if queue in BY_HTTP:
            return f"DIRECT=HTTP://{GAMMA}:{self._http_ports[GAMMA]}/msmq/private$/{queue}"
        computer = next(name for name, queues in QUEUES.items() if queue in queues)
        return rf"DIRECT=OS:{computer}\private$\{queue}"

    def _local_plan(self, at: str, *computers: str) -> Plan:
        """Return the plan of a sender at the control channel of a server, for queues of some computers."""
        routes = {ALPHA: [ALPHA], BETA: [ALPHA, BETA], GAMMA: [ALPHA, BETA, GAMMA]}
        queues = {
            queue: (self._name(queue), routes[name][routes[name].index(at) :])
            for name in computers
            for queue in QUEUES[name]
        }
        return {**self._common(), "role": "local", "data": str(self._data(at)), "queues": queues}

    def _plans(self) -> dict[str, Plan]:
        alpha, beta, gamma = (str(self._data(name)) for name in (ALPHA, BETA, GAMMA))
        common = self._common()

        def remote(to: str, *queues: str) -> Plan:
            tcp = {queue: rf"DIRECT=TCP:{ADDRESSES[to]}\private$\{queue}" for queue in queues}
            names = {queue: self._name(queue) if queue in BY_HTTP else tcp[queue] for queue in queues}
            return {
                **common, "role": "remote", "states": str(self._states), "queues": names, "way": [to],
                "port": self._ports[to], "hosts": {to: ADDRESSES[to]},
            }  # fmt: skip

        takes = {**common, "role": "receiver"}

        def readers(**data: str) -> Plan:
            return {**takes, "queues": list(data), "data": data}

        def remote_reader(at: str, auth: str, *queues: str) -> Plan:
            names = {queue: rf"DIRECT=TCP:{ADDRESSES[at]}\private$\{queue}" for queue in queues}
            places = {queue: {"name": name, "port": self._rpc_ports[at]} for queue, name in names.items()}
            user, password = (None, None) if auth == "none" else (_USER, _PASSWORD)
            who = {"user": user, "password": password, "auth": auth}
            return {**common, "role": "reader", "queues": places, **who}

        return {
            "s1": remote(ALPHA, "orders", "ledger"),
            "s2": remote(ALPHA, "orders", "ledger", "parcels"),
            "h1": remote(GAMMA, "inbox"),
            "l1": self._local_plan(ALPHA, ALPHA),
            "l2": self._local_plan(ALPHA, BETA, GAMMA),
            "l3": self._local_plan(BETA, GAMMA),
            "r1": readers(orders=alpha, far=beta),
            "r2": readers(orders=alpha, distant=beta, inbox=gamma),
            "r3": readers(ledger=alpha, parcels=alpha),
            "p1": {**readers(orders=alpha, ledger=alpha), "role": "pushed"},
            "p2": {**readers(far=beta, minutes=gamma), "role": "pushed"},
            "q1": remote_reader(ALPHA, "none", "orders", "ledger"),
            "q2": remote_reader(BETA, "privacy", "far"),
            "q3": remote_reader(ALPHA, "integrity", "orders"),
            "m1": {**common, "role": "mover", "queues": list(MOVED), "data": alpha},
        }

    # -- from the start to the end ------------------------------------------------------------------------

    def run(self) -> Balance:
        """Kill servers, let the queues drain, and balance the books."""
        start = time.monotonic()
        drained = False
        try:
            self._begin()
            until = start + self._options.seconds
            while self._figures["kills"] < self._options.kills and time.monotonic() < until:
                self._round()
            self._end()
            drained = True
        except Broken as exc:
            self._wrong.append(Wrong("broken", "", str(exc)))
        finally:
            for life in (*self._servers.values(), *self._clients.values()):
                if life.process is not None and life.status is None:
                    life.kill()
                    self._book.write("killed", who=life.name)
        entries = read_books(self._books)
        balance = Balance(entries, moved=MOVED, shared=SHARED, by_http=BY_HTTP, drained=drained)
        balance.wrong[:0] = self._wrong
        balance.figures.update(self._figures)
        balance.figures["seconds"] = round(time.monotonic() - start)
        balance.figures["longest start, ms"] = round(max(self._starting, default=0) * 1000)
        return balance

    def _begin(self) -> None:
        """Start everything."""
        self._write_redirections()
        self._write_users()
        for server in self._servers.values():
            server.start()
        for server in self._servers.values():
            self._await_ready(server)
        for who, plan in self._plans().items():
            command = _client_command({**plan, "who": who})
            self._clients[who] = Supervised(who, self._logs, command, defers_sigterm=True)
            self._clients[who].start()

    def _await_ready(self, server: Supervised) -> None:
        begun = time.monotonic()
        while not (line := server.line(_POLL_S)):
            server.check()
            if time.monotonic() > begun + PATIENCE_S:
                raise Broken(f"{server.name} does not get ready")
        if not _READY.fullmatch(line):
            raise Broken(f"{server.name} says {line!r}")
        self._starting.append(time.monotonic() - begun)
        self._book.write("ready", who=server.name)

    def _expect(self, life: Supervised, *others: Supervised) -> None:
        """Wait until a process ends in good order, and check that the others do not end meanwhile."""
        until = time.monotonic() + PATIENCE_S
        while life.status is None and time.monotonic() < until:
            for other in others:
                other.check()
            time.sleep(_POLL_S)
        status = life.ended()
        if status != 0:
            raise Broken(f"{life.name} ended with {status}: {life.last_words()}")

    # -- kills --------------------------------------------------------------------------------------------

    def _wait(self, seconds: float) -> None:
        """Let all run, and check that none ends."""
        until = time.monotonic() + seconds
        while True:
            running = [life for name, life in self._clients.items() if name not in self._away]
            for life in (*self._servers.values(), *running):
                life.check()
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.1))

    def _kill(self, life: Supervised, count: str) -> None:
        life.check()
        self._book.write("killing", who=life.name)
        life.kill()
        self._book.write("killed", who=life.name)
        self._figures[count] += 1

    def _round(self) -> None:
        """Kill a server, once or several times in a row."""
        rng, options = self._rng, self._options
        server = self._servers[rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]]
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
        """Restart clients that were killed, some of them some rounds later."""
        for name, rounds in list(self._away.items()):
            if rounds and not all_of_them:
                self._away[name] = rounds - 1
            else:
                del self._away[name]
                self._clients[name].start()

    def _send_while_none_runs(self) -> None:
        """Send through the store, as a command does that finds no server."""
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
        """Stop the senders, let the queues drain, then stop the receivers and the servers."""
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
        while nonempty := self._nonempty_queues():
            for life in (*servers, *receivers):
                life.check()
            if time.monotonic() > begun + PATIENCE_S:
                self._wrong.append(Wrong("left", "", f"these queues are not empty: {json.dumps(nonempty)}"))
                break
            time.sleep(0.2)
        for life in (*receivers, *servers):
            life.send(signal.SIGTERM)
            self._expect(life)

    def _nonempty_queues(self) -> dict[str, int]:
        """Return the number of messages of each queue that has any."""
        counts: dict[str, int] = {}
        for name in self._servers:
            with attach(self._data(name)) as local:
                for queue in local.call("list")["queues"]:
                    if queue["messages"]:
                        counts[f"{name}: {queue['queue']}"] = queue["messages"]
        return counts


def free_port(address: str) -> int:
    """Return an unused TCP port at an address."""
    with socket.create_server((address, 0)) as server:
        return int(server.getsockname()[1])


def _client_command(plan: Plan) -> Callable[[int], Sequence[str]]:
    def command(life: int) -> Sequence[str]:
        return [sys.executable, str(ROOT / "tools/torture/clients.py"), json.dumps({**plan, "life": life})]

    return command


def summary(balance: Balance) -> list[str]:
    """Return the figures as lines of text."""
    count = balance.figures
    lines = [f"{'':14}" + "".join(f"{kind:>15}" for kind in KINDS)]
    for what in ("begun", "aborted", "stored", "transferred", "received", "read again"):
        lines.append(f"{what:14}" + "".join(f"{count[f'{kind} {what}']:15}" for kind in KINDS))
    others = [name for name in count if name.partition(" ")[0] not in KINDS]
    others += ["express lost by kills", "express twice by kills", "express never answered for"]
    return lines + [f"{name}: {count[name]}" for name in others]


def report(balance: Balance, out: TextIO = sys.stdout) -> int:
    """Print the result; return the exit status."""
    print("\n".join(summary(balance)), file=out)
    for wrong in balance.stories():
        print(wrong, file=out)
    what = Counter(wrong.what for wrong in balance.wrong)
    print("the books balance" if not what else f"the books do not balance: {dict(what)}", file=out)
    return 1 if what else 0


def _span(text: str) -> tuple[float, float]:
    first, _, last = text.partition(":")
    return float(first), float(last or first)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200, help="of servers, at least")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="for fewer kills than that")
    parser.add_argument("--seed", type=int, default=None, help="of all chance; one of its own without it")
    parser.add_argument("--seconds-between", type=_span, default=(0.3, 2.5), metavar="A:B", help="kills")
    parser.add_argument("--pause", type=_span, default=(0.02, 0.25), metavar="A:B", help="seconds of senders")
    parser.add_argument("--data", type=Path, help="an empty folder; without it one of the system's")
    parser.add_argument("--keep", action="store_true", help="keep the folder also when the books balance")
    parsed = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1 << 32) if parsed.seed is None else parsed.seed
    folder = parsed.data or Path(tempfile.mkdtemp(prefix="torture-"))
    if folder.exists() and any(folder.iterdir()):
        parser.error(f"{folder} is not empty")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and not before ending all others
    print(f"seed {seed}, folder {folder}", file=sys.stderr, flush=True)
    options = Options(parsed.kills, seed, folder, parsed.seconds_between, parsed.pause, 60 * parsed.minutes)
    balance = Torture(options).run()
    status = report(balance)
    if status == 0 and not parsed.keep:
        shutil.rmtree(folder)
    return status


if __name__ == "__main__":
    sys.exit(main())
