"""Metrics for Prometheus."""

from __future__ import annotations

import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from msmqwire.cli.serving import parse_endpoint
from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.local import attach
from tests.support.patience import limit
from tests.support.qm.control_lines import Lines
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

pytest.importorskip("prometheus_client")
NO_REQUEST, TOO_LONG = EVENTS = "not an HTTP request", "a request for a page is too long"
GET = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")


class Figures:
    """The samples that a server reports, by name and labels."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://{ADDRESS}:{port}"

    def text(self) -> str:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=limit(60)) as answer:
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


@contextmanager
def figures_of(data: Path, **limits: Any) -> Iterator[tuple[InThread, Figures]]:
    """A server with metrics, and its figures."""
    queues = ORDERS, f"{LEDGER};transactional"
    with served(options(data, *queues, metrics=(ADDRESS, 0), limits=Limits(**limits))) as server:
        yield server, Figures(server.do(lambda running: running._metrics.port))


@pytest.fixture
def figures(data: Path) -> Iterator[tuple[InThread, Figures]]:
    with figures_of(data) as running:
        yield running


def connections(server: InThread) -> int:
    return server.do(lambda running: len(running._metrics.server.connections))


def fill(server: InThread, size: int) -> None:
    """Make the page long."""
    server.do(lambda running: setattr(running._metrics, "collect", lambda: iter([_long_metric(size)])))


def _long_metric(size: int) -> object:
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily("long", "x" * size, 1)


def test_the_content_of_queues_is_counted(figures: tuple[InThread, Figures]) -> None:
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


def test_connections_and_work_are_counted(figures: tuple[InThread, Figures]) -> None:
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
    with socket.create_connection((server.address, server.port), limit(60)) as peer:
        until(lambda: metrics.value("msmqwire_connections") == 1, "the connection is accepted")
        assert metrics.value("msmqwire_accepted_total") == 1
        peer.sendall(b"x" * 16)
        until(lambda: metrics.value("msmqwire_bytes_received_total") == 16, "the bytes are counted")
    until(lambda: metrics.value("msmqwire_connections") == 0, "the connection has ended")


def test_memory_kept_for_peers_is_reported(figures: tuple[InThread, Figures]) -> None:
    server, metrics = figures
    with attach(server.data) as local:
        put(local, ORDERS, message(b"x" * 1000))
        told = local.call("status")["memory"]
    assert metrics.value("msmqwire_memory_limit_bytes") == told["limit"]
    assert metrics.value("msmqwire_memory_bytes", 'kind="express"') == told["express"] > 1000
    server.do(lambda running: running.driver.core.context.trouble("relay refused", "for a test"))
    assert metrics.value("msmqwire_troubles_total", 'kind="relay refused"') == 1


def test_bytes_of_messages_are_reported_by_origin(figures: tuple[InThread, Figures]) -> None:
    server, metrics = figures
    with attach(server.data) as local:
        put(local, ORDERS, *recoverable(b"x" * 1000))
        told = local.call("status")["shares"]
    assert metrics.value("msmqwire_origin_bytes", 'origin="owner"') == told["owner"] > 1000
    assert (told["known"], told["unknown"], told["refused"]) == (0, 0, 0)
    assert metrics.value("msmqwire_origin_bytes", 'origin="unknown"') == 0
    assert metrics.value("msmqwire_origin_share_bytes") == told["per_origin"] <= told["limit"] // 4


def test_there_is_nothing_else(figures: tuple[InThread, Figures]) -> None:
    _, metrics = figures
    for path in ("/", "/metrics/x", "/queues"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(metrics.url + path, timeout=limit(60))
        assert caught.value.code == 404
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{metrics.url}/metrics", data=b"x", timeout=limit(60))
    assert caught.value.code == 405


def test_it_is_at_the_loopback_unless_an_address_is_given() -> None:
    assert parse_endpoint(":9101", 9101) == ("127.0.0.1", 9101)
    assert parse_endpoint("9101", 0)[0] != "0.0.0.0"


def raw(metrics: Figures, request: bytes) -> bytes:
    """Send bytes; return all of the answer."""
    with socket.create_connection((ADDRESS, metrics.port), limit(60)) as client:
        client.sendall(request)
        answer = b""
        try:
            while data := client.recv(1 << 16):
                answer += data
        except ConnectionResetError:  # it did not read all of the request
            pass
        return answer


@pytest.mark.parametrize(
    "request_, status, event",
    [
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 70 + b"\r\n", [b"400"], NO_REQUEST),
        (b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n", [], TOO_LONG),
        (b"GET /" + b"x" * 5000 + b" HTTP/1.1\r\n\r\n", [b"400"], NO_REQUEST),
        (b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n", [], TOO_LONG),
        (b"\0\xff\r\n\r\n", [b"400"], NO_REQUEST),
        (b"GET  HTTP/1.1\r\n\r\n", [b"400"], NO_REQUEST),
        (b"HEAD /metrics?x HTTP/1.0\r\n\r\n", [b"200"], None),
    ],
    ids=["fields", "many fields", "line", "long line", "bytes", "no target", "HEAD"],
)
def test_what_is_too_long_or_no_request_is_answered_briefly(
    figures: tuple[InThread, Figures],
    request_: bytes,
    status: list[bytes],
    event: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is one short line of the log, without a traceback, however long it is."""
    caplog.set_level("INFO", "msmqwire")
    _, metrics = figures
    answer = raw(metrics, request_)
    assert answer.partition(b"\r\n")[0].split()[1:2] == status
    assert len(answer) < 10_000
    assert metrics.all()
    told = [(record.message, record.exc_info) for record in caplog.records if record.message in EVENTS]
    assert told == ([] if event is None else [(event, None)])
    assert all(len(str(record.__dict__.get("reason", ""))) <= 100 for record in caplog.records)


def test_who_says_nothing_or_does_not_read_is_given_up(data: Path) -> None:
    with figures_of(data, page_read_s=0.1) as (server, metrics):
        with socket.create_connection((ADDRESS, metrics.port), limit(60)) as silent:
            silent.sendall(b"GET /metr")
            assert silent.recv(1) == b""
        fill(server, 50 << 20)
        with socket.create_connection((ADDRESS, metrics.port), limit(60)) as unread:
            unread.sendall(GET)
            until(lambda: not connections(server), "it is given up")


def test_a_stop_does_not_wait_for_who_does_not_read(data: Path) -> None:
    with figures_of(data) as (server, metrics):
        fill(server, 50 << 20)
        client = socket.create_connection((ADDRESS, metrics.port), limit(60))
        client.sendall(GET)
        until(lambda: connections(server), "it is served")
    client.close()


def test_it_ends_with_the_server(data: Path) -> None:
    with served(options(data, metrics=(ADDRESS, 0))) as server:
        port = server.do(lambda running: running._metrics.port)
        assert Figures(port).all()
    with pytest.raises(urllib.error.URLError):
        Figures(port).text()
