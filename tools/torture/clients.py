"""Participants of a torture run, each a process: ``python tools/torture/clients.py PLAN``, a JSON object.

Each continues by itself after any kill: a sender with its file, a receiver at the control channel that asks
for messages or has them pushed, a remote reader. SIGTERM ends them in good order.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import msmqwire  # noqa: E402
from msmqwire.constants import HResult  # noqa: E402
from msmqwire.errors import NotDelivered, QueueError, Unreachable  # noqa: E402
from msmqwire.qm.client import Queue, Sent  # noqa: E402
from msmqwire.qm.runtime.data_folder import DataFolder  # noqa: E402
from msmqwire.service.control.client import Local, server_of  # noqa: E402
from tools.torture import books  # noqa: E402
from tools.torture.books import EXPRESS, RECOVERABLE, TRANSACTIONAL  # noqa: E402
from tools.torture.participant import PATIENCE_S, Participant, Plan  # noqa: E402
from tools.torture.pushed import receive_pushed  # noqa: E402
from tools.torture.readers import read_remotely  # noqa: E402

_POLL_S: Final = 0.05
_WAIT_MS: Final = 300
_BIG: Final = 200_000


def payload(rng: random.Random) -> bytes:
    """Return random bytes, now and then many."""
    return rng.randbytes(_BIG if rng.random() < 0.005 else rng.randrange(10, 3000))


def pause(plan: Plan, queue: str, rng: random.Random) -> float:
    """Return the seconds between two bursts of messages to a queue."""
    return rng.uniform(*plan["pause"]) * float(plan["longer"].get(queue, 1))


def use_server(data: str, participant: Participant, use: Callable[[Local], bool]) -> None:
    """Call `use` with the server of a folder, reconnecting when it is killed, until `use` returns true.

    Never opens the store itself, which the next server is to open.
    """
    done = False
    while not done:
        local = server_of(DataFolder(data))
        if local is None:
            time.sleep(_POLL_S)
            continue
        try:
            with local:
                done = use(local)
        except Unreachable:
            participant.book.write("disconnected")


# -- senders --------------------------------------------------------------------------------------------


async def remote(participant: Participant) -> None:
    """Send by `msmqwire.connect` to several queues, with a file for each."""
    async with asyncio.TaskGroup() as group:
        for queue in participant.plan["queues"]:
            group.create_task(_stream(participant, queue))


async def _stream(participant: Participant, queue: str) -> None:
    plan, rng = participant.plan, participant.rng(queue)
    state = Path(plan["states"]) / f"{participant.who}-{queue}.msmq"
    hosts: dict[str, tuple[str, int | None]] = {host: (at, None) for host, at in plan["hosts"].items()}
    watched: set[asyncio.Task[None]] = set()
    async with msmqwire.connect(
        plan["queues"][queue], state=state, port=plan["port"], hosts=hosts, drain=PATIENCE_S
    ) as to:
        while not participant.stop.is_set():
            names, sent = await (_transaction if queue in plan["transactional"] else _burst)(
                participant, queue, to, rng
            )
            for message, outcome in zip(names, sent, strict=True):
                task = asyncio.create_task(_watch(participant, message, outcome))
                watched.add(task)
                task.add_done_callback(watched.discard)
            await asyncio.sleep(pause(plan, queue, rng))
    await asyncio.gather(*watched)
    participant.book.write("left", queue=queue)


async def _burst(
    participant: Participant, queue: str, to: Queue, rng: random.Random
) -> tuple[list[str], list[Sent]]:
    kinds = rng.choices([EXPRESS, RECOVERABLE], k=rng.randint(1, 6))
    names = participant.begin(queue, kinds, participant.plan["way"], local=False, group=False)

    async def send(message: str, kind: str) -> Sent:
        body = books.body_of(message, payload(rng))
        sent = await to.send(body, label=message, recoverable=kind == RECOVERABLE)
        participant.book.write("stored", messages=[message])
        return sent

    return names, await asyncio.gather(*map(send, names, kinds))


class _Regret(Exception):
    """Aborts a transaction."""


async def _transaction(
    participant: Participant, queue: str, to: Queue, rng: random.Random
) -> tuple[list[str], list[Sent]]:
    count = rng.randint(1, 5)
    names = participant.begin(
        queue, [TRANSACTIONAL] * count, participant.plan["way"], local=False, group=True
    )
    try:
        async with to.transaction() as transaction:
            sent = [
                transaction.send(books.body_of(message, payload(rng)), label=message) for message in names
            ]
            if rng.random() < 0.05:
                raise _Regret
    except _Regret:
        participant.book.write("aborted", messages=names)
        return [], []
    participant.book.write("stored", messages=names)
    return names, sent


async def _watch(participant: Participant, message: str, sent: Sent) -> None:
    try:
        await sent.transferred()
    except NotDelivered as exc:
        participant.book.write("refused", messages=[message], why=str(exc))
    except Unreachable:
        participant.book.write("not transferred", message=message)
    else:
        participant.book.write("transferred", message=message)


def send_here(
    participant: Participant, local: Local, queue: str, rng: random.Random, *, lasting: bool = True
) -> None:
    """Send some messages through the control channel; its answer says that they are stored."""
    name, way = participant.plan["queues"][queue]
    transactional = queue in participant.plan["transactional"]
    loose = [EXPRESS, RECOVERABLE] if lasting else [RECOVERABLE]
    kinds = rng.choices([TRANSACTIONAL] if transactional else loose, k=rng.randint(1, 5))
    names = participant.begin(queue, kinds, way, local=True, group=transactional)
    messages = [
        {"body": b64encode(books.body_of(each, payload(rng))).decode(), "label": each, "delivery": kind}
        for each, kind in zip(names, kinds, strict=True)
    ]
    try:
        answer = local.call("send", to=name, messages=messages)
    except Unreachable:
        participant.book.write("unanswered", messages=names)
        raise
    participant.book.write("stored", messages=names[: len(answer["sent"])])
    if "refused" in answer:
        participant.book.write("refused", messages=names[len(answer["sent"]) :], why=str(answer["refused"]))


def sender_here(participant: Participant, queue: str) -> None:
    """Send through the control channel until asked to stop."""
    rng = participant.rng(queue)

    def use(local: Local) -> bool:
        while not participant.stop.is_set():
            send_here(participant, local, queue, rng)
            time.sleep(pause(participant.plan, queue, rng))
        return True

    use_server(participant.plan["data"], participant, use)


# -- receivers ------------------------------------------------------------------------------------------


class Receiver:
    """Receives messages of a queue, and records messages received, about to end and confirmed as ended."""

    def __init__(self, participant: Participant, queue: str) -> None:
        self._participant, self._queue = participant, queue
        self._rng = participant.rng(queue)
        self._name = rf"private$\{queue}"
        self._done: list[list[Any]] = []
        self._receipts: list[int] = []

    def run(self) -> None:
        """Receive until asked to stop and the queue is empty."""
        use_server(self._participant.plan["data"][self._queue], self._participant, self._use)

    def _use(self, local: Local) -> bool:
        self._done, self._receipts = [], []
        book, rng = self._participant.book, self._rng
        while True:
            stopping = self._participant.stop.is_set()
            asked = time.monotonic()
            messages = local.call(
                "receive", queue=self._name, count=rng.randint(1, 25), wait_ms=_WAIT_MS, done=self._receipts
            )["messages"]
            self._confirmed()
            if not messages:
                if stopping:
                    return True
                continue
            self._write_taken(messages, asked)
            time.sleep(rng.choice((0, 0, 0, rng.uniform(0, 0.1))))
            choice = rng.random()
            if choice < 0.02:
                return False  # leave without ending received messages
            if choice < 0.07:
                book.write("back", messages=[row[0] for row in _rows(messages)])
                local.call("end", back=[message["receipt"] for message in messages])
                continue
            self._done = [[message, place] for message, place, _, _ in _rows(messages)]
            self._receipts = [message["receipt"] for message in messages]
            book.write("ending", messages=self._done)
            if choice < 0.6:  # else with the next request
                local.call("end", done=self._receipts)
                self._confirmed()

    def _confirmed(self) -> None:
        if self._done:
            self._participant.book.write("ended", messages=self._done)
        self._done, self._receipts = [], []

    def _write_taken(self, messages: list[dict[str, Any]], asked: float) -> None:
        self._participant.book.write("taken", queue=self._queue, asked=asked, messages=_rows(messages))


def _rows(messages: list[dict[str, Any]]) -> list[list[Any]]:
    rows = []
    for message in messages:
        name, sound = books.message_of(b64decode(message["body"]), message["label"])
        rows.append([name, message["lookup_identifier"], sound, message["identifier"]])
    return rows


def mover(participant: Participant, queue: str) -> None:
    """Move messages to a subqueue and back, leaving none there at the end."""
    rng = participant.rng(queue)
    name, aside = rf"private$\{queue}", rf"private$\{queue};aside"

    def move(local: Local, source: str, target: str) -> list[str]:
        count = rng.randint(1, 20)
        participant.book.write("moving", source=source, target=target, count=count)
        try:
            moved: list[str] = local.call("move", queue=source, to=target, count=count)["moved"]
        except QueueError as exc:
            if exc.hresult != HResult.MQ_ERROR_QUEUE_NOT_FOUND:
                raise
            moved = []  # an empty subqueue does not exist
        participant.book.write("moved", identifiers=moved)
        return moved

    def use(local: Local) -> bool:
        while not participant.stop.is_set():
            move(local, name, aside)
            time.sleep(rng.uniform(0, 0.1))
            move(local, aside, name)
            time.sleep(rng.uniform(0, 0.2))
        while move(local, aside, name):
            pass
        return True

    use_server(participant.plan["data"], participant, use)


# -- as a process ---------------------------------------------------------------------------------------


def _threads(participant: Participant, run: Callable[[Participant, str], None]) -> None:
    """Run a thread for each queue; an exception in one ends the process."""

    def guarded(queue: str) -> None:
        try:
            run(participant, queue)
        except BaseException:
            traceback.print_exc()
            os._exit(3)

    threads = [threading.Thread(target=guarded, args=(queue,)) for queue in participant.plan["queues"]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _end_with(parent: int) -> None:
    """End this process once its parent has been killed."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(4)


def main(plan: Plan) -> None:
    """Run a plan until SIGTERM."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    participant = Participant(plan)
    signal.signal(signal.SIGTERM, lambda *_: participant.stop.set())
    signal.pthread_sigmask(
        signal.SIG_UNBLOCK, {signal.SIGTERM}
    )  # blocked by tools/torture/torture.py until now
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    match plan["role"]:
        case "remote":
            asyncio.run(remote(participant))
        case "reader":
            asyncio.run(read_remotely(participant))
        case "local":
            _threads(participant, sender_here)
        case "receiver":
            _threads(participant, lambda participant, queue: Receiver(participant, queue).run())
        case "pushed":
            asyncio.run(receive_pushed(participant))
        case "mover":
            _threads(participant, mover)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
