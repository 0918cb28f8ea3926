"""Participants of a torture run, each a process: ``python tools/torture_clients.py PLAN``, a JSON object.

They go on by themselves whatever is killed: a sender and its file, a receiver and the control channel.
SIGTERM has them come to an end in good order.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import sys
import threading
import time
import traceback
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import msmqwire  # noqa: E402
from msmqwire.constants import HResult  # noqa: E402
from msmqwire.errors import NotDelivered, QueueError, Unreachable  # noqa: E402
from msmqwire.qm.client import Queue, Sent  # noqa: E402
from msmqwire.qm.runtime.folder import DataFolder  # noqa: E402
from msmqwire.qm.runtime.local import Local, Served  # noqa: E402
from tools import torture_books as books  # noqa: E402
from tools.torture_books import EXPRESS, RECOVERABLE, TRANSACTIONAL, Book  # noqa: E402

PATIENCE_S: Final = 400.0
"""How long anything may take at the end: the machine may have much else to do."""
_LOOK_S: Final = 0.05
_WAIT_MS: Final = 300
_BIG: Final = 200_000
Plan = dict[str, Any]


class Desk:
    """What all participants have: who they are, their book, their chance, and whether they are to end."""

    def __init__(self, plan: Plan) -> None:
        self.who: str = plan["who"]
        self.plan = plan
        self.books = Path(plan["books"])
        self.book = Book(self.books, self.who)
        self.stop = threading.Event()
        self.numbers: dict[str, int] = {}
        for entry in books.entries_of(books.path_of(self.books, self.who)):
            if entry["event"] == "begun":
                stream, number = books.stream_of(entry["message"])
                self.numbers[stream] = number
        self.book.write("started")

    def rng(self, part: str) -> random.Random:
        """Chance of its own for a part of this life of the participant."""
        return random.Random(f"{self.plan['seed']}/{self.who}/{self.plan['life']}/{part}")

    def begin(self, queue: str, kinds: list[str], way: list[str], *, local: bool, group: bool) -> list[str]:
        """Write down messages that are to be sent now; gives their names."""
        stream = f"{self.who}-{queue}"
        first = self.numbers.get(stream, 0) + 1
        self.numbers[stream] = first + len(kinds) - 1
        names = [f"{stream}/{first + at}" for at in range(len(kinds))]
        together = names[0] if group else ""
        for name, kind in zip(names, kinds, strict=True):
            self.book.write(
                "begun", message=name, kind=kind, queue=queue, way=way, group=together, local=local
            )
        return names


def payload(rng: random.Random) -> bytes:
    """Some bytes, now and then many."""
    return rng.randbytes(_BIG if rng.random() < 0.005 else rng.randrange(10, 3000))


def served(data: str) -> Local | None:
    """The server of a folder, if it can be reached; never the store itself, which a server is to have."""
    address = DataFolder(data).control()
    if address is None:
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address.path)
    except OSError:
        connection.close()
        return None
    return Served(connection, address.token)


def used(data: str, desk: Desk, use: Callable[[Local], bool]) -> None:
    """Use a server, again and again, also after it was killed, until `use` says that it is done."""
    done = False
    while not done:
        local = served(data)
        if local is None:
            time.sleep(_LOOK_S)
            continue
        try:
            with local:
                done = use(local)
        except Unreachable:
            desk.book.write("disconnected")


# -- senders --------------------------------------------------------------------------------------------


async def remote(desk: Desk) -> None:
    """Send by `msmqwire.connect`, to several queues, with a file for each."""
    async with asyncio.TaskGroup() as group:
        for queue in desk.plan["queues"]:
            group.create_task(_stream(desk, queue))


async def _stream(desk: Desk, queue: str) -> None:
    plan, rng = desk.plan, desk.rng(queue)
    state = Path(plan["states"]) / f"{desk.who}-{queue}.msmq"
    name = rf"DIRECT=TCP:{plan['address']}\private$\{queue}"
    watched: set[asyncio.Task[None]] = set()
    async with msmqwire.connect(name, state=state, port=plan["port"], drain=PATIENCE_S) as to:
        while not desk.stop.is_set():
            names, sent = await (_transaction if queue in plan["transactional"] else _burst)(
                desk, queue, to, rng
            )
            for message, one in zip(names, sent, strict=True):
                task = asyncio.create_task(_watch(desk, message, one))
                watched.add(task)
                task.add_done_callback(watched.discard)
            await asyncio.sleep(rng.uniform(*plan["pause"]))
    await asyncio.gather(*watched)
    desk.book.write("left", queue=queue)


async def _burst(desk: Desk, queue: str, to: Queue, rng: random.Random) -> tuple[list[str], list[Sent]]:
    kinds = rng.choices([EXPRESS, RECOVERABLE], k=rng.randint(1, 6))
    names = desk.begin(queue, kinds, desk.plan["way"], local=False, group=False)

    async def send(message: str, kind: str) -> Sent:
        body = books.body_of(message, payload(rng))
        sent = await to.send(body, label=message, recoverable=kind == RECOVERABLE)
        desk.book.write("stored", messages=[message])
        return sent

    return names, await asyncio.gather(*map(send, names, kinds))


class _Regret(Exception):
    """Why a transaction is aborted."""


async def _transaction(desk: Desk, queue: str, to: Queue, rng: random.Random) -> tuple[list[str], list[Sent]]:
    count = rng.randint(1, 5)
    names = desk.begin(queue, [TRANSACTIONAL] * count, desk.plan["way"], local=False, group=True)
    try:
        async with to.transaction() as transaction:
            sent = [
                transaction.send(books.body_of(message, payload(rng)), label=message) for message in names
            ]
            if rng.random() < 0.05:
                raise _Regret
    except _Regret:
        desk.book.write("aborted", messages=names)
        return [], []
    desk.book.write("stored", messages=names)
    return names, sent


async def _watch(desk: Desk, message: str, sent: Sent) -> None:
    try:
        await sent.transferred()
    except NotDelivered as exc:
        desk.book.write("refused", messages=[message], why=str(exc))
    except Unreachable:
        desk.book.write("not transferred", message=message)
    else:
        desk.book.write("transferred", message=message)


def send_here(desk: Desk, local: Local, queue: str, rng: random.Random, *, lasting: bool = True) -> None:
    """Send some messages through the control channel; answered is stored."""
    computer, way = desk.plan["queues"][queue]
    transactional = queue in desk.plan["transactional"]
    loose = [EXPRESS, RECOVERABLE] if lasting else [RECOVERABLE]
    kinds = rng.choices([TRANSACTIONAL] if transactional else loose, k=rng.randint(1, 5))
    names = desk.begin(queue, kinds, way, local=True, group=transactional)
    given = [
        {"body": b64encode(books.body_of(name, payload(rng))).decode(), "label": name, "delivery": kind}
        for name, kind in zip(names, kinds, strict=True)
    ]
    try:
        answer = local.call("send", to=rf"DIRECT=OS:{computer}\private$\{queue}", messages=given)
    except Unreachable:
        desk.book.write("unanswered", messages=names)
        raise
    desk.book.write("stored", messages=names[: len(answer["sent"])])
    if "refused" in answer:
        desk.book.write("refused", messages=names[len(answer["sent"]) :], why=str(answer["refused"]))


def sender_here(desk: Desk, queue: str) -> None:
    """Send through the control channel until told to stop."""
    rng = desk.rng(queue)

    def use(local: Local) -> bool:
        while not desk.stop.is_set():
            send_here(desk, local, queue, rng)
            time.sleep(rng.uniform(*desk.plan["pause"]))
        return True

    used(desk.plan["data"], desk, use)


# -- receivers ------------------------------------------------------------------------------------------


class Receiver:
    """Takes messages of one queue, and writes down what it took, what it ends, and what is confirmed."""

    def __init__(self, desk: Desk, queue: str) -> None:
        self._desk, self._queue = desk, queue
        self._rng = desk.rng(queue)
        self._name = rf"private$\{queue}"
        self._done: list[list[Any]] = []
        self._receipts: list[int] = []

    def run(self) -> None:
        """Receive until told to stop and nothing is left."""
        used(self._desk.plan["data"][self._queue], self._desk, self._use)

    def _use(self, local: Local) -> bool:
        self._done, self._receipts = [], []
        book, rng = self._desk.book, self._rng
        while True:
            stopping = self._desk.stop.is_set()
            asked = time.monotonic()
            found = local.call(
                "receive", queue=self._name, count=rng.randint(1, 25), wait_ms=_WAIT_MS, done=self._receipts
            )["messages"]
            self._confirmed()
            if not found:
                if stopping:
                    return True
                continue
            self._write_taken(found, asked)
            time.sleep(rng.choice((0, 0, 0, rng.uniform(0, 0.1))))
            does = rng.random()
            if does < 0.02:
                return False  # leave, without a word about what was taken
            if does < 0.07:
                book.write("back", messages=[_rows(found)[at][0] for at in range(len(found))])
                local.call("end", back=[one["receipt"] for one in found])
                continue
            self._done = [[message, place] for message, place, _, _ in _rows(found)]
            self._receipts = [one["receipt"] for one in found]
            book.write("ending", messages=self._done)
            if does < 0.6:  # else with the next request
                local.call("end", done=self._receipts)
                self._confirmed()

    def _confirmed(self) -> None:
        if self._done:
            self._desk.book.write("ended", messages=self._done)
        self._done, self._receipts = [], []

    def _write_taken(self, found: list[dict[str, Any]], asked: float) -> None:
        self._desk.book.write("taken", queue=self._queue, asked=asked, messages=_rows(found))


def _rows(found: list[dict[str, Any]]) -> list[list[Any]]:
    rows = []
    for one in found:
        message, sound = books.message_of(b64decode(one["body"]), one["label"])
        rows.append([message, one["lookup_identifier"], sound, one["identifier"]])
    return rows


def mover(desk: Desk, queue: str) -> None:
    """Move messages to a subqueue and back, and leave none there at the end."""
    rng = desk.rng(queue)
    name, aside = rf"private$\{queue}", rf"private$\{queue};aside"

    def move(local: Local, source: str, target: str) -> list[str]:
        count = rng.randint(1, 20)
        desk.book.write("moving", source=source, target=target, count=count)
        try:
            moved: list[str] = local.call("move", queue=source, to=target, count=count)["moved"]
        except QueueError as exc:
            if exc.hresult != HResult.MQ_ERROR_QUEUE_NOT_FOUND:
                raise
            moved = []  # there is no subqueue as long as nothing is in it
        desk.book.write("moved", identifiers=moved)
        return moved

    def use(local: Local) -> bool:
        while not desk.stop.is_set():
            move(local, name, aside)
            time.sleep(rng.uniform(0, 0.1))
            move(local, aside, name)
            time.sleep(rng.uniform(0, 0.2))
        while move(local, aside, name):
            pass
        return True

    used(desk.plan["data"], desk, use)


# -- as a process ---------------------------------------------------------------------------------------


def _threads(desk: Desk, run: Callable[[Desk, str], None]) -> None:
    """One thread for each queue; what goes wrong in one ends the process."""

    def guarded(queue: str) -> None:
        try:
            run(desk, queue)
        except BaseException:
            traceback.print_exc()
            os._exit(3)

    threads = [threading.Thread(target=guarded, args=(queue,)) for queue in desk.plan["queues"]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _end_with(parent: int) -> None:
    """Nobody tells this process to end if its parent has been killed."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(4)


def main(plan: Plan) -> None:
    """Do what a plan says until SIGTERM."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    desk = Desk(plan)
    signal.signal(signal.SIGTERM, lambda *_: desk.stop.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    match plan["role"]:
        case "remote":
            asyncio.run(remote(desk))
        case "local":
            _threads(desk, sender_here)
        case "receiver":
            _threads(desk, lambda desk, queue: Receiver(desk, queue).run())
        case "mover":
            _threads(desk, mover)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
