"""The clients of benchmarks/qm.py: each function is a process that sends to, or receives from, one server."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.support.qm_daemons import ADDRESS, EXPRESS, QUEUE, TRANSACTIONAL, Where, rabbit_parameters

BODY: Final = random.Random(1801).randbytes(1024)
WINDOW: Final = 64
"""Unacknowledged messages of a sender that does not await each: the limit of a session."""
BATCH: Final = 100
"""Messages received at once where not one by one."""
PROFILE: Final = os.environ.get("QM_BENCHMARK_PROFILE", "")
"""A file for the profile of a client of ours."""


class Sample(NamedTuple):
    """The result of a process.

    Attributes:
        begin, end: by the clock of the machine: the time of the first send, and of the last confirmed
            delivery.
        count: messages.
        latencies: seconds of each one that was awaited.
        processor_s: seconds of processor time; 0 if not measured.
    """

    begin: float
    end: float
    count: int
    latencies: list[float]
    processor_s: float = 0.0


Start = Callable[[], None]
"""Wait until all processes are ready."""


def clock() -> float:
    """Seconds, the same in all processes of the machine."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


@contextmanager
def _profiled() -> Iterator[None]:
    """Write the profile of the block, if requested."""
    if not PROFILE:
        yield
        return
    import cProfile

    with cProfile.Profile() as profile:
        yield
    profile.dump_stats(PROFILE)


# -- sending: one by one, each awaited until the other side has it; or many under way ------------------------


def msmqwire_sends(where: Where, kind: str, window: int, seconds: float, start: Start) -> Sample:
    """Send by `msmqwire.connect`, in a number of tasks, each awaiting the transfer of its message."""
    queue = {"transactional": TRANSACTIONAL, "express": EXPRESS}.get(kind, QUEUE)
    name = f"DIRECT=TCP:{ADDRESS}\\private$\\{queue}"
    return asyncio.run(_msmqwire_sends(name, where, kind, window, seconds, start))


def msmqwire_posts(where: Where, kind: str, window: int, seconds: float, start: Start) -> Sample:
    """The same by HTTP: of the messages under way one is in a request, and the others wait for theirs."""
    name = f"DIRECT=HTTP://{ADDRESS}:{where['http']}/msmq/private$/{QUEUE}"
    return asyncio.run(_msmqwire_sends(name, where, kind, window, seconds, start))


async def _msmqwire_sends(
    name: str, where: Where, kind: str, window: int, seconds: float, start: Start
) -> Sample:
    import msmqwire

    latencies: list[float] = []
    transactional = kind == "transactional"
    async with msmqwire.connect(name, port=where["port"]) as queue:

        async def send_one() -> None:
            begin = clock()
            if transactional:
                sent = await queue.send(BODY, transactional=True)
            else:
                sent = await queue.send(BODY, recoverable=kind == "recoverable")
            await sent.transferred()
            latencies.append(clock() - begin)

        async def many() -> None:
            while clock() < until:
                await send_one()

        await send_one()  # establishes the session
        latencies.clear()
        start()
        begin, used = clock(), time.process_time()
        until = begin + seconds
        with _profiled():
            await asyncio.gather(*(many() for _ in range(window)))
        end, used = clock(), time.process_time() - used
    return Sample(begin, end, len(latencies), latencies, used)


def aiohttp_posts(where: Where, kind: str, window: int, seconds: float, start: Start) -> Sample:
    """Post bodies by aiohttp, one after the other."""
    return asyncio.run(_aiohttp_posts(where, seconds, start))


async def _aiohttp_posts(where: Where, seconds: float, start: Start) -> Sample:
    import aiohttp

    url = f"http://{ADDRESS}:{where['port']}/bodies"
    latencies: list[float] = []
    async with aiohttp.ClientSession() as session:

        async def post() -> None:
            begin = clock()
            async with session.post(url, data=BODY) as answer:
                assert answer.status == 200
            latencies.append(clock() - begin)

        await post()  # connects
        latencies.clear()
        start()
        begin, used = clock(), time.process_time()
        while clock() < begin + seconds:
            await post()
        end, used = clock(), time.process_time() - used
    return Sample(begin, end, len(latencies), latencies, used)


def rabbit_sends(where: Where, kind: str, window: int, seconds: float, start: Start) -> Sample:
    """By pika: persistent and confirmed; for ``express`` neither, until the queue has them all.

    For ``transactional`` each message is committed by a transaction of its own.
    """
    if kind == "transactional":
        return _rabbit_commits(where, window, seconds, start)
    if kind != "express" and window > 1:
        return _rabbit_sends_many(where, window, seconds, start)
    import pika

    latencies = []
    with pika.BlockingConnection(rabbit_parameters(where)) as connection:
        channel = connection.channel()
        properties = pika.BasicProperties(delivery_mode=1 if kind == "express" else 2)
        queue = EXPRESS if kind == "express" else QUEUE
        if kind != "express":
            channel.confirm_delivery()
        channel.basic_publish("", queue, BODY, properties)
        start()
        begin = clock()
        until, count = begin + seconds, 0
        while (now := clock()) < until:
            channel.basic_publish("", queue, BODY, properties)
            count += 1
            latencies.append(clock() - now)
        if kind == "express":
            channel.queue_declare(queue, passive=True)  # answered once the queue has everything sent before
        end = clock()
    return Sample(begin, end, count, [] if kind == "express" else latencies)


def _rabbit_sends_many(where: Where, window: int, seconds: float, start: Start) -> Sample:
    """Persistent messages, with a number that have no confirm yet."""
    import pika

    latencies: list[float] = []
    under_way: deque[float] = deque()
    properties = pika.BasicProperties(delivery_mode=2)
    state: dict[str, Any] = {"first": 1, "until": 0.0, "begin": 0.0, "end": 0.0}

    def publish(channel: Any) -> None:
        while len(under_way) < window and clock() < state["until"]:
            under_way.append(clock())
            channel.basic_publish("", QUEUE, BODY, properties)
        if not under_way:
            state["end"] = clock()
            connection.close()

    def confirmed(channel: Any, frame: Any) -> None:
        assert isinstance(frame.method, pika.spec.Basic.Ack), "nothing is refused"
        now, tag = clock(), frame.method.delivery_tag
        last = tag if not frame.method.multiple else state["first"] + len(under_way) - 1
        # Confirms of a queue arrive in order, so that the confirm of a tag covers all before it.
        for _ in range(min(tag, last) - state["first"] + 1):
            latencies.append(now - under_way.popleft())
            state["first"] += 1
        publish(channel)

    def opened(channel: Any) -> None:
        def selected(_: Any) -> None:
            start()
            state["begin"] = clock()
            state["until"] = state["begin"] + seconds
            publish(channel)

        channel.confirm_delivery(lambda frame: confirmed(channel, frame), selected)

    connection = pika.SelectConnection(
        rabbit_parameters(where),
        on_open_callback=lambda made: made.channel(on_open_callback=opened),
        on_close_callback=lambda made, _: made.ioloop.stop(),
    )
    connection.ioloop.start()
    return Sample(state["begin"], state["end"], len(latencies), latencies)


def _rabbit_commits(where: Where, window: int, seconds: float, start: Start) -> Sample:
    """Persistent messages, with a number of channels that each await the commit of a transaction of one."""
    import pika

    latencies: list[float] = []
    properties = pika.BasicProperties(delivery_mode=2)
    state: dict[str, Any] = {"open": 0, "until": 0.0, "begin": 0.0, "end": 0.0}
    channels: list[Any] = []

    def publish(channel: Any) -> None:
        begin = clock()
        if begin > state["until"]:
            state["open"] -= 1
            if not state["open"]:
                state["end"] = begin
                connection.close()
            return

        def committed(_: Any) -> None:
            latencies.append(clock() - begin)
            publish(channel)

        channel.basic_publish("", QUEUE, BODY, properties)
        channel.tx_commit(committed)

    def selected(channel: Any) -> None:
        channels.append(channel)
        if len(channels) == window:
            start()
            state["open"], state["begin"] = window, clock()
            state["until"] = state["begin"] + seconds
            for each in channels:
                publish(each)

    def opened(made: Any) -> None:
        for _ in range(window):
            made.channel(on_open_callback=lambda channel: channel.tx_select(lambda _: selected(channel)))

    connection = pika.SelectConnection(
        rabbit_parameters(where),
        on_open_callback=opened,
        on_close_callback=lambda made, _: made.ioloop.stop(),
    )
    connection.ioloop.start()
    return Sample(state["begin"], state["end"], len(latencies), latencies)


def redis_sends(where: Where, kind: str, window: int, seconds: float, start: Start) -> Sample:
    """Send by redis-py: XADD, one by one or in a pipeline."""
    import redis

    latencies: list[float] = []
    client = redis.Redis(ADDRESS, where["port"])
    client.xadd(QUEUE, {"body": BODY})
    start()
    begin = clock()
    count = 0
    while (now := clock()) < begin + seconds:
        if window == 1:
            client.xadd(QUEUE, {"body": BODY})
        else:
            pipeline = client.pipeline(transaction=False)
            for _ in range(window):
                pipeline.xadd(QUEUE, {"body": BODY})
            pipeline.execute()
        count += window
        latencies += [clock() - now] * window
    return Sample(begin, clock(), count, latencies)


SENDERS: Final = {
    "msmqwire": msmqwire_sends,
    "msmqwire by HTTP": msmqwire_posts,
    "aiohttp": aiohttp_posts,
    "RabbitMQ": rabbit_sends,
    "Redis": redis_sends,
}


# -- receiving: one by one, or many at once -----------------------------------------------------------------


def msmqwire_receives(where: Where, batch: int, seconds: float, start: Start) -> Sample:
    """By `Queue.messages`: with a window of 1, or of as many as the prefetch of the other side."""
    return asyncio.run(_msmqwire_receives(where, batch, seconds, start))


async def _msmqwire_receives(where: Where, batch: int, seconds: float, start: Start) -> Sample:
    import msmqwire

    async with msmqwire.attach(where["data"]) as manager:
        queue = manager.queue(f"private$\\{QUEUE}")
        async with queue.messages(1 if batch == 1 else 2 * batch, timeout=2) as messages:
            await anext(messages)
            start()
            with _profiled():
                begin, used = clock(), time.process_time()
                last, count, latencies = begin, 0, list[float]()
                async for message in messages:
                    assert message.body == BODY
                    count += 1
                    if count % batch == 0:
                        now = clock()
                        latencies.append(now - last)
                        last = now
                        if now - begin > seconds:
                            break
                used = time.process_time() - used
            await messages.durable()
    return Sample(begin, last, count, latencies, used)


def rabbit_receives(where: Where, batch: int, seconds: float, start: Start) -> Sample:
    """By pika: basic_consume with a prefetch, and one ack for half of it; one by one with a prefetch of 1.

    That is faster than basic_get, and has the same number of messages under way as a window of ours.
    """
    import pika

    with pika.BlockingConnection(rabbit_parameters(where)) as connection:
        channel = connection.channel()

        def consumed() -> Iterator[int]:
            channel.basic_qos(prefetch_count=1 if batch == 1 else 2 * batch)
            deliveries = channel.consume(QUEUE, inactivity_timeout=2)
            for taken, (method, _, body) in enumerate(deliveries, 1):
                if method is None:
                    return
                assert body == BODY
                if taken % batch == 0:
                    channel.basic_ack(method.delivery_tag, multiple=batch > 1)
                    yield batch

        sample = _received(consumed(), seconds, start)
        channel.cancel()
        channel.queue_declare(QUEUE, passive=True)  # everything before has been received
    return sample


def redis_receives(where: Where, batch: int, seconds: float, start: Start) -> Sample:
    """By redis-py: XREADGROUP, then XACK and XDEL in one request."""
    import redis

    client = redis.Redis(ADDRESS, where["port"])
    group = f"group{time.time_ns()}"
    client.xgroup_create(QUEUE, group, id="0")

    def some() -> Iterator[int]:
        while streams := client.xreadgroup(group, "one", {QUEUE: ">"}, count=batch):
            entries: list[tuple[bytes, dict[bytes, bytes]]] = streams[0][1]  # type: ignore[index]
            assert all(content[b"body"] == BODY for _, content in entries)
            numbers = [number for number, _ in entries]
            pipeline = client.pipeline(transaction=False)
            pipeline.xack(QUEUE, group, *numbers)
            pipeline.xdel(QUEUE, *numbers)
            pipeline.execute()
            yield len(numbers)

    return _received(some(), seconds, start)


def _received(steps: Iterator[int], seconds: float, start: Start) -> Sample:
    next(steps)
    start()
    latencies = []
    begin = now = clock()
    count = 0
    for taken in steps:
        count += taken
        before, now = now, clock()
        latencies.append(now - before)
        if now - begin > seconds:
            break
    return Sample(begin, now, count, latencies)


RECEIVERS: Final = {"msmqwire": msmqwire_receives, "RabbitMQ": rabbit_receives, "Redis": redis_receives}
