"""Metrics for Prometheus."""

from __future__ import annotations

import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.metrics import Metrics
from tests.support.control_lines import Lines
from tests.support.running import (
    ADDRESS,
    LEDGER,
    ORDERS,
    InThread,
    message,
    options,
    put,
    recoverable,
    served,
    until,
)

pytestmark = pytest.mark.uvloop

pytest.importorskip("aiohttp")
pytest.importorskip("prometheus_client")
SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")


class Figures:
    """The samples that a server reports, by name and labels."""

    def __init__(self, port: int) -> None:
        self.url = f"http://{ADDRESS}:{port}"

    def text(self) -> str:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=60) as answer:
            assert answer.status == 200
            assert answer.headers["Content-Type"].startswith("text/plain")
            text: str = answer.read().decode()
            return text

    def all(self) -> dict[tuple[str, str], float]:
        matches = [SAMPLE.fullmatch(line) for line in self.text().splitlines() if not line.startswith("#")]
        assert all(matches)
        return {(sample[1], sample[2] or ""): float(sample[3]) for sample in matches if sample}

    def value(self, name: str, labels: str = "") -> float:
        return self.all()[name, labels]

    def messages(self, queue: str, kind: str = "private") -> float:
        queue = queue.replace("\\", "\\\\")
        return self.value("msmqwire_queue_messages", f'kind="{kind}",queue="{queue}"')


@pytest.fixture
def figures(data: Path) -> Iterator[tuple[InThread, Figures]]:
    with served(options(data, ORDERS, f"{LEDGER};transactional", metrics=(ADDRESS, 0))) as server:

        def port(running) -> int:
            metrics: Metrics = running._metrics
            return int(metrics._runner.addresses[0][1])

        yield server, Figures(server.do(port))


def test_what_is_in_the_queues_is_told(figures: tuple[InThread, Figures]) -> None:
    server, metrics = figures
    assert (metrics.messages(ORDERS), metrics.messages(LEDGER)) == (0, 0)
    with attach(server.data) as local:
        put(local, ORDERS, message(b"x" * 1000), *recoverable(b"y"))
        put(local, LEDGER, message(delivery="transactional"))
        local.call("send", to=r"DIRECT=TCP:127.0.0.99\private$\x", messages=recoverable(b"z"))
        assert (metrics.messages(ORDERS), metrics.messages(LEDGER)) == (2, 1)
        assert metrics.messages(r"DIRECT=TCP:127.0.0.99\PRIVATE$\x", "outgoing") == 1
        shown = local.call("show", queue=ORDERS)["bytes"]
        labels = 'kind="private",queue="private$\\\\orders"'
        assert metrics.value("msmqwire_queue_bytes", labels) == shown > 1000
        received = local.call("receive", queue=ORDERS, count=2)["messages"]
        local.call("end", done=[message["receipt"] for message in received])
        assert metrics.messages(ORDERS) == 0
        assert metrics.value("msmqwire_used_bytes") == local.call("status")["used"]


def test_who_is_connected_and_what_was_done_is_told(figures: tuple[InThread, Figures]) -> None:
    server, metrics = figures
    before = metrics.value("msmqwire_commits_total")
    assert metrics.value("msmqwire_control_users") == 0
    with Lines(server.data) as lines:
        assert lines.ask({"op": "create", "queue": r"private$\new"})["answer"]["messages"] == 0
        assert metrics.value("msmqwire_control_users") == 1
    assert metrics.value("msmqwire_commits_total") == before + 1
    assert metrics.value("msmqwire_disk_refuses") == 0
    until(lambda: metrics.value("msmqwire_control_users") == 0, "the client is forgotten")


def test_connections_and_bytes_are_counted(figures: tuple[InThread, Figures]) -> None:
    server, metrics = figures
    with socket.create_connection((server.address, server.port), 60) as peer:
        until(lambda: metrics.value("msmqwire_connections") == 1, "the connection is accepted")
        assert metrics.value("msmqwire_accepted_total") == 1
        peer.sendall(b"x" * 16)
        until(lambda: metrics.value("msmqwire_bytes_received_total") == 16, "the bytes are counted")
    until(lambda: metrics.value("msmqwire_connections") == 0, "the connection has ended")


def test_what_others_make_it_keep_is_told(figures: tuple[InThread, Figures]) -> None:
    server, metrics = figures
    with attach(server.data) as local:
        put(local, ORDERS, message(b"x" * 1000))
        told = local.call("status")["memory"]
    assert metrics.value("msmqwire_memory_limit_bytes") == told["limit"]
    assert metrics.value("msmqwire_memory_bytes", 'kind="express"') == told["express"] > 1000
    server.do(lambda running: running.driver.core.context.trouble("relay refused", "for a test"))
    assert metrics.value("msmqwire_troubles_total", 'kind="relay refused"') == 1


def test_there_is_nothing_else(figures: tuple[InThread, Figures]) -> None:
    _, metrics = figures
    for path in ("/", "/metrics/x", "/queues"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(metrics.url + path, timeout=60)
        assert caught.value.code == 404
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{metrics.url}/metrics", data=b"x", timeout=60)
    assert caught.value.code == 405


def test_it_ends_with_the_server(data: Path) -> None:
    with served(options(data, metrics=(ADDRESS, 0))) as server:
        port = server.do(lambda running: running._metrics._runner.addresses[0][1])
        assert Figures(port).all()
    with pytest.raises(urllib.error.URLError):
        Figures(port).text()
