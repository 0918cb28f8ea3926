"""A server that is short of file descriptors: it goes on, says so in a few lines, and recovers."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from msmqwire.qm.runtime.local import attach
from msmqwire.service.descriptors import DescriptorBudget, OpenConnections
from msmqwire.service.logs import KINDS_MAX, OncePerSecond
from tests.support.peers.raw_peer import Message, Session
from tests.support.running import (
    LEDGER,
    ORDERS,
    PATIENCE_S,
    Process,
    bodies,
    environment,
    message,
    process,
    put,
    until,
)

resource = pytest.importorskip("resource")
DESCRIPTORS = 64
ATTACKER = "127.0.0.35"


@contextmanager
def limited_server(data: Path) -> Iterator[tuple[Process, float]]:
    """A server with few descriptors, and the time when it started."""
    began = time.monotonic()
    queues = "--queue", ORDERS, "--queue", f"{LEDGER};transactional"
    with process(data, *queues, descriptors=DESCRIPTORS) as server:
        yield server, began


@contextmanager
def attack(server: Process, count: int) -> Iterator[list[socket.socket]]:
    """Open connections that say nothing; the system takes them all, whatever the server does."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                socket.create_connection(
                    (server.address, server.port), PATIENCE_S, source_address=(ATTACKER, 0)
                )
            )
            for _ in range(count)
        ]


def is_ended(peer: socket.socket) -> bool:
    peer.setblocking(False)
    try:
        return peer.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def lines_are_few(server: Process, began: float) -> Counter[str]:
    """Check that no kind of line came more often than once a second; return how often each came."""
    lines = server.logs()  # each of them is JSON
    kinds = Counter(line["event"] for line in lines if line["level"] != "debug")
    assert max(kinds.values()) <= time.monotonic() - began + 1
    assert not any("traceback" in line for line in lines), lines
    return kinds


def is_served(server: Process, body: bytes) -> None:
    with Session.opened((server.address, server.port)) as peer:
        peer.push(Message(body, recoverable=True))
        assert peer.until_acknowledged() == []


@pytest.mark.uvloop
def test_two_hundred_connections_leave_descriptors_for_all_else(data: Path) -> None:
    with limited_server(data) as (server, began):
        for _ in range(3):
            with attack(server, 200) as peers:
                until(lambda peers=peers: sum(map(is_ended, peers)) >= 200 - 24, "most are refused")
                time.sleep(0.2)  # in which the rest is not refused
                assert sum(not is_ended(peer) for peer in peers) > 0, "some are accepted"
                with ExitStack() as stack:
                    users = [stack.enter_context(attach(data)) for _ in range(5)]
                    for number, local in enumerate(users):
                        put(local, ORDERS, message(b"%d" % number, delivery="recoverable"))
                        assert local.call("status")["name"] == "alpha"
                    answer = users[0].call("receive", queue=ORDERS, count=5)
                    assert bodies(answer["messages"]) == [b"0", b"1", b"2", b"3", b"4"]
                    users[0].call("end", done=[got["receipt"] for got in answer["messages"]])
        kinds = lines_are_few(server, began)
        assert kinds["a connection of MSMQ makes room for another"] >= 1
        until(lambda: free_connections(data), "the attackers are forgotten")
        is_served(server, b"honest")


def free_connections(data: Path) -> bool:
    with attach(data) as local:
        return not local.call("status")["sessions"]


@pytest.mark.uvloop
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="the limit of another process can't be set")
def test_no_descriptor_at_all_is_a_pause(data: Path) -> None:
    with limited_server(data) as (server, began):
        is_served(server, b"1")
        pid = server.process.pid
        used = max(map(int, os.listdir(f"/proc/{pid}/fd"))) + 1
        before = processor_seconds(pid)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, DESCRIPTORS))
        with attack(server, 200) as peers:
            time.sleep(2.5)  # the time of which the processor's is measured
            tried_again = "no connection can be accepted; retried"
            until(lambda: lines_are_few(server, began)[tried_again] >= 2, "it is tried again, twice")
            assert processor_seconds(pid) - before < 1.5, "it waits"
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
            until(lambda: sum(map(is_ended, peers)) >= 200 - 24, "most are refused")
        until(lambda: free_connections(data), "the attackers are forgotten")
        is_served(server, b"2")
        lines_are_few(server, began)
        with attach(data) as local:
            assert bodies(local.call("peek", queue=ORDERS, count=9)["messages"]) == [b"1", b"2"]


def processor_seconds(pid: int) -> float:
    """The time that a process has computed."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_the_limit_is_raised_as_far_as_it_may() -> None:
    code = "from msmqwire.service.descriptors import *; raise_limit(); print(limit())"
    arguments = [
        "sh",
        "-c",
        'ulimit -Sn 100 && ulimit -Hn 200 && exec "$@"',
        "sh",
        sys.executable,
        "-c",
        code,
    ]
    run = subprocess.run(arguments, capture_output=True, env=environment(), check=True, timeout=PATIENCE_S)
    assert run.stdout == b"200\n"


@pytest.mark.parametrize("available", [1, 8, 64, 256, 1024, 65_536])
def test_each_direction_has_a_share_and_the_rest_is_kept(available: int) -> None:
    budget = DescriptorBudget(available)
    incoming = outgoing = 0
    while budget.allows(incoming, outgoing):
        incoming += 1
    while budget.allows(outgoing, incoming):
        outgoing += 1
    assert min(incoming, outgoing) >= 1
    assert available < 4 or incoming + outgoing + min(available // 2, 128) <= available
    assert not budget.allows(incoming, outgoing)
    assert available < 64 or outgoing >= available // 8


def record(
    text: str, at: float, level: int = logging.WARNING, name: str = "msmqwire.qm"
) -> logging.LogRecord:
    made = logging.LogRecord(name, level, "x.py", 1, text, None, None)
    made.created = at
    return made


def test_a_kind_of_line_is_logged_once_a_second_with_a_count() -> None:
    once = OncePerSecond()
    times = [10.0, 10.1, 10.9, 11.0, 11.5, 13.0, 2.0, 2.5]
    records = [record("refused", at) for at in times]
    assert [once.filter(each) for each in records] == [True, False, False, True, False, True, True, False]
    assert [getattr(each, "suppressed", 0) for each in records] == [0, 0, 0, 2, 0, 1, 0, 0]
    assert once.filter(record("another", 2.5))
    assert once.filter(record("refused", 2.6, logging.DEBUG))


def test_the_texts_of_asyncio_are_one_kind() -> None:
    once = OncePerSecond()
    assert [once.filter(record(f"handle {n}", 1.0, name="asyncio")) for n in range(3)] == [True, False, False]


def test_the_kinds_that_are_counted_are_bounded() -> None:
    once = OncePerSecond()
    assert all(once.filter(record(f"kind {number}", 1.0)) for number in range(3 * KINDS_MAX))
    assert len(once._kinds) == KINDS_MAX
    assert not once.filter(record(f"kind {3 * KINDS_MAX - 1}", 1.5))


def test_all_transports_share_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msmqwire.service.descriptors.limit", lambda: 32)  # 16 in all, 12 of one direction
    counts = {"tcp": (0, 0), "http": (0, 0)}
    shared = OpenConnections()
    shared.add(lambda: counts["tcp"])
    shared.add(lambda: counts["http"])
    assert shared.quarter == 3
    counts.update(tcp=(6, 0), http=(5, 0))
    assert shared.allows_incoming(is_known=True)
    assert not shared.allows_incoming(), "an eighth is for known origins"
    counts["http"] = (6, 0)
    assert not shared.allows_incoming(is_known=True)
    assert shared.allows_outgoing()
    counts["http"] = (6, 4)
    assert not shared.allows_outgoing()
    counts.update(tcp=(3, 4), http=(6, 3))
    assert not shared.allows_incoming(is_known=True)
    counts.update(tcp=(4, 0), http=(6, 0))
    assert shared.allows_incoming()
