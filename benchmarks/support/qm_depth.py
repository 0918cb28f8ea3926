"""The cost of a long queue: memory, start and rates with many messages queued, for benchmarks/qm.py."""

from __future__ import annotations

import os
import shutil
import time
from base64 import b64encode
from pathlib import Path
from typing import Final

from benchmarks.support.qm_clients import BODY, clock
from benchmarks.support.qm_daemons import ADDRESS, QUEUE, Daemon, Msmqwire, Rabbit, Redis, rabbit_parameters

AT_ONCE: Final = 500
FEW: Final = 100
ROUND: Final = 50
"""Messages sent and received in turn, so that the depth of the queue does not change."""
SETTLE_S: Final = 3.0
KIB: Final = 1 << 10
START_AIM_S: Final = 5.0
MEMORY_AIM: Final = KIB
_NAME: Final = f"DIRECT=OS:bench\\private$\\{QUEUE}"


def depths(daemons: list[Daemon], count: int) -> None:
    """Fill the queue of each side with recoverable messages, one side after the other."""
    print(f"\n{count:,} recoverable messages of 1 KiB queued")
    head = f"{'MiB empty':>21}{'full':>7}{'restarted':>11}{'KiB each':>10}{'s to start':>12}{'of disk':>14}"
    print(head)
    for daemon in daemons:
        with daemon:
            fill(daemon, FEW)
            few = turns(daemon)
            empty = daemon.resident()
            fill(daemon, count - FEW)
            time.sleep(SETTLE_S)
            full = daemon.resident()
            many = turns(daemon)
            daemon.stop()
            disk = sum(file.stat().st_size for file in daemon.folder.rglob("*") if file.is_file())
            flush_caches(daemon.folder)
            daemon.start()
            started, restarted = daemon.started_s, daemon.resident()
            each = (full - empty) / count / KIB
            print(
                f"{daemon.side:10}{empty >> 20:>11}{full >> 20:>7}{restarted >> 20:>11}{each:>10.2f}"
                f"{started:>12.1f}{disk >> 20:>10} MiB",
                flush=True,
            )
            if isinstance(daemon, Msmqwire):
                told = "reached" if each * KIB < MEMORY_AIM else "missed"
                print(f"  aim, less than 1 KiB of memory each beside bodies, which stay on disk: {told}")
                print(
                    f"  aim, a start in {START_AIM_S} s: {'reached' if started < START_AIM_S else 'missed'}"
                )
                for depth, (sent, received) in ((FEW, few), (count, many)):
                    print(
                        f"  with {depth:>9,} queued: {sent:,.1f} µs to put one in, {received:,.1f} µs to take"
                    )
        shutil.rmtree(daemon.folder, ignore_errors=True)


def flush_caches(folder: Path) -> None:
    """Drop the files of a folder from the system's cache, as far as an unprivileged process can."""
    if not hasattr(os, "posix_fadvise"):
        return
    for file in folder.rglob("*"):
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def fill(daemon: Daemon, count: int) -> None:
    """Send recoverable messages; the queue has them when this returns."""
    {Msmqwire.side: _fill_msmqwire, Rabbit.side: _fill_rabbit, Redis.side: _fill_redis}[daemon.side](
        daemon, count
    )


def _fill_msmqwire(daemon: Daemon, count: int) -> None:
    from msmqwire.qm.runtime.local import attach

    message = {"body": b64encode(BODY).decode(), "delivery": "recoverable"}
    with attach(daemon.where["data"]) as local:
        while count > 0:
            local.call("send", to=_NAME, messages=[message] * min(AT_ONCE, count))
            count -= AT_ONCE


def _fill_rabbit(daemon: Daemon, count: int) -> None:
    import pika

    with pika.BlockingConnection(rabbit_parameters(daemon.where)) as connection:
        channel = connection.channel()
        properties = pika.BasicProperties(delivery_mode=2)
        wanted = channel.queue_declare(QUEUE, passive=True).method.message_count + count
        for _ in range(count):
            channel.basic_publish("", QUEUE, BODY, properties)
        while channel.queue_declare(QUEUE, passive=True).method.message_count < wanted:
            time.sleep(0.1)


def _fill_redis(daemon: Daemon, count: int) -> None:
    import redis

    client = redis.Redis(ADDRESS, daemon.where["port"])
    while count > 0:
        pipeline = client.pipeline(transaction=False)
        for _ in range(min(AT_ONCE, count)):
            pipeline.xadd(QUEUE, {"body": BODY})
        pipeline.execute()
        count -= AT_ONCE


def turns(daemon: Daemon, seconds: float = 2.0) -> tuple[float, float]:
    """Return the microseconds to send and to receive one of `ROUND` messages, of our side only."""
    if not isinstance(daemon, Msmqwire):
        return 0.0, 0.0
    from msmqwire.qm.runtime.local import attach

    sent, received, rounds = 0.0, 0.0, 0
    message = {"body": b64encode(BODY).decode(), "delivery": "recoverable"}
    with attach(daemon.where["data"]) as local:
        while sent + received < seconds:
            begin = clock()
            local.call("send", to=_NAME, messages=[message] * ROUND)
            between = clock()
            messages = local.call("receive", queue=f"private$\\{QUEUE}", count=ROUND)["messages"]
            local.call("end", done=[message["receipt"] for message in messages])
            sent, received, rounds = sent + between - begin, received + clock() - between, rounds + 1
    return 1e6 * sent / rounds / ROUND, 1e6 * received / rounds / ROUND
