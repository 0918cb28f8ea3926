"""The pages of the exporter over HTTP, with targets in the process of the test."""

from __future__ import annotations

import asyncio
import http.client
import io
import re
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from msmqwire.errors import QueueError
from msmqwire.exporter import machine
from msmqwire.exporter.pages import TIMEOUT_HEADER
from msmqwire.exporter.server import Exporter, ExporterOptions
from msmqwire.exporter.targets import Target
from msmqwire.service.page_connections import PageLimits
from msmqwire.service.page_guard import HEADERS
from tests.support.fake_targets import FakeManager, connecting, local, outgoing
from tests.support.patience import PATIENCE_S, happens, limit

pytest.importorskip("aiohttp")
ADDRESS = "127.0.0.1"
SHORT = PageLimits(seconds=0.2)


@dataclass
class Answer:
    """An answer of the exporter."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Running:
    """An exporter in the loop of the test, with fake targets."""

    def __init__(self, exporter: Exporter, managers: dict[str, FakeManager]) -> None:
        self.exporter, self.managers = exporter, managers
        self.port = exporter.listen[1]

    async def get(self, path: str, *fields: str, method: str = "GET", host: str = "localhost") -> Answer:
        lines = "\r\n".join((f"{method} {path} HTTP/1.1", f"Host: {host}", *fields))
        return parsed(await self.send(f"{lines}\r\n\r\n".encode()), method)

    async def send(self, request: bytes) -> bytes:
        """What comes until the end of the connection."""
        reader, writer = await asyncio.open_connection(ADDRESS, self.port)
        writer.write(request)
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()


def parsed(data: bytes, method: str = "GET") -> Answer:
    """Read an answer, as a client of the library of Python does."""

    class Stream:
        def makefile(self, *_: object) -> io.BytesIO:
            return io.BytesIO(data)

    answer = http.client.HTTPResponse(Stream(), method=method)  # type: ignore[arg-type]
    answer.begin()
    return Answer(answer.status, answer.msg, answer.read())


@asynccontextmanager
async def running(names: tuple[str, ...] = (), **managers: FakeManager) -> AsyncIterator[Running]:
    options = ExporterOptions(Path("targets.toml"), (ADDRESS, 0), names)
    exporter = Exporter(options, connecting(managers))
    await exporter.start([Target(name, name, timeout=limit(60)) for name in managers])
    try:
        yield Running(exporter, managers)
    finally:
        await exporter.stop()


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, PATIENCE_S))


def test_a_page_is_what_prometheus_reads() -> None:
    parser = pytest.importorskip("prometheus_client.parser")

    async def work() -> None:
        rows = [local(), outgoing(), local('odd "name"\n\\')]
        async with running(alpha=FakeManager(rows), beta=FakeManager([local()])) as found:
            answer = await found.get("/metrics")
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert {key: answer.headers[key] for key in HEADERS} == HEADERS
        families = list(parser.text_string_to_metric_families(answer.text))
        assert len({family.name for family in families}) == len(families) > 20
        samples = {
            (sample.name, *sample.labels.values()): sample.value for one in families for sample in one.samples
        }
        assert len(samples) == sum(len(family.samples) for family in families)
        assert samples["windows_msmq_messages_in_queue", "alpha", 'odd "name"\n\\'] == 7
        assert samples["msmq_outgoing_state", "alpha", r"DIRECT=OS:beta\private$\orders", "WAITING"] == 1
        assert samples["msmq_up", "beta"] == 1
        assert samples["msmq_exporter_targets",] == 2

    run(work())


def test_a_probe_has_one_target() -> None:
    async def work() -> None:
        async with running(alpha=FakeManager([local()]), beta=FakeManager([local()])) as found:
            answer = await found.get("/probe?target=beta")
            assert answer.status == 200
            assert 'msmq_up{target="beta"} 1' in answer.text
            assert 'alpha"' not in answer.text
            assert "msmq_exporter" not in answer.text
            assert found.managers["alpha"].asked == 0

    run(work())


@pytest.mark.parametrize(
    "path, status, told",
    [
        ("/probe?target=betta", 404, "'betta' is not a target; did you mean beta?"),
        ("/probe?target=10.0.0.9", 404, "'10.0.0.9' is not a target"),
        ("/probe", 400, "/probe has one target: /probe?target=NAME"),
        ("/probe?target=beta&target=alpha", 400, "/probe has one target"),
        ("/probe?target=beta&module=x", 400, "'module' is no argument of /probe, which has only target"),
        ("/metrics?target=beta", 400, "'target' is no argument of /metrics, which has none"),
        ("/other", 404, "Not Found"),
    ],
)
def test_wrong_requests_are_told_what_is_right(path: str, status: int, told: str) -> None:
    async def work() -> None:
        async with running(beta=FakeManager([local()])) as found:
            answer = await found.get(path)
            assert (answer.status, found.managers["beta"].asked) == (status, 0)
            assert told in answer.text

    run(work())


@pytest.mark.parametrize("text", ["0", "-1", "nan", "soon", ""])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    async def work() -> None:
        async with running(alpha=FakeManager()) as found:
            answer = await found.get("/metrics", f"{TIMEOUT_HEADER}: {text}")
            assert answer.status == 400
            assert "not a number of seconds above 0" in answer.text

    run(work())


def test_the_time_of_prometheus_is_kept() -> None:
    """The page comes before that time, with the targets that have answered."""

    async def work() -> None:
        async with running(alpha=FakeManager([local()]), slow=FakeManager([local()])) as found:
            found.managers["slow"].waits = asyncio.Event()
            begin = asyncio.get_running_loop().time()
            seconds = limit(1)
            answer = await found.get("/metrics", f"{TIMEOUT_HEADER}: {seconds}")
            assert asyncio.get_running_loop().time() - begin < seconds
            assert 'msmq_up{target="alpha"} 1' in answer.text
            assert 'msmq_up{target="slow"} 0' in answer.text
            assert 'msmq_scrape_errors_total{target="slow",reason="timeout"} 1' in answer.text

    run(work())


def test_a_long_scrape_outlasts_the_limit_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request has ten seconds to come; its answer may take longer."""
    monkeypatch.setattr("msmqwire.exporter.server._LIMITS", SHORT)

    async def work() -> None:
        async with running(slow=FakeManager([local()])) as found:
            found.managers["slow"].waits = asyncio.Event()
            answer = asyncio.ensure_future(found.get("/metrics"))
            silent = asyncio.ensure_future(found.send(b"GET /metrics HTTP/1.1\r\n"))
            await happens(lambda: found.managers["slow"].asked)
            assert await silent == b"", "it was ended by its limit"
            found.managers["slow"].waits.set()
            assert 'msmq_up{target="slow"} 1' in (await answer).text

    run(work())


def test_pages_for_people_and_for_programs() -> None:
    async def work() -> None:
        async with running(**{"alpha": FakeManager(), "<b>": FakeManager(), "a b&c": FakeManager()}) as found:
            start = await found.get("/")
            assert start.headers["Content-Type"] == "text/html; charset=utf-8"
            links = re.findall(r'href="([^"]*)"', start.text)
            assert links == [
                "/metrics", "/probe?target=alpha", "/probe?target=%3Cb%3E", "/probe?target=a%20b%26c",
            ]  # fmt: skip
            assert "<b>" not in start.text
            for link in links:
                assert (await found.get(link)).status == 200
            healthy = await found.get("/-/healthy")
            assert (healthy.status, healthy.text) == (200, "healthy\n")

    run(work())


def test_a_head_asks_no_target() -> None:
    async def work() -> None:
        async with running(alpha=FakeManager([local()])) as found:
            answer = await found.get("/metrics", method="HEAD")
            assert (answer.status, answer.body, found.managers["alpha"].asked) == (200, b"", 0)
            assert answer.headers["Content-Type"].startswith("text/plain")
            post = await found.get("/metrics", method="POST")
            assert (post.status, post.headers["Allow"]) == (405, "GET,HEAD")

    run(work())


def test_pages_of_other_sites_get_nothing() -> None:
    """A foreign name that leads here (DNS rebinding), and the scripts of another page."""

    async def work() -> None:
        async with running(("exporter.example",), alpha=FakeManager()) as found:
            for host, status in (
                (f"{ADDRESS}:{found.port}", 200),
                ("exporter.example", 200),
                ("evil.example", 421),
            ):
                answer = await found.get("/metrics", host=host)
                assert answer.status == status, host
            assert "--metrics-name NAME allows it" in answer.text
            assert (await found.get("/metrics", "Origin: http://evil.example")).status == 403
            assert (await found.get("/metrics", "Sec-Fetch-Site: cross-site")).status == 403

    run(work())


def test_a_request_has_a_size() -> None:
    async def work() -> None:
        async with running(alpha=FakeManager([local()])) as found:
            assert await found.send(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 9000) == b""
            assert (await found.get("/metrics", f"X: {'x' * 5000}")).status == 400
            assert (await found.get("/metrics")).status == 200

    run(work())


def test_clients_that_leave_take_their_work_along() -> None:
    """No page waits for targets whose client is gone: a flood of them would fill the memory."""

    async def work() -> None:
        async with running(slow=FakeManager([local()])) as found:
            found.managers["slow"].waits = asyncio.Event()
            scraping, waiting, begun = found.exporter.scraping, 0, 0
            page = scraping.all

            async def counted(seconds: float) -> Iterator[bytes]:
                nonlocal waiting, begun
                waiting, begun = waiting + 1, begun + 1
                try:
                    return await page(seconds)
                finally:
                    waiting -= 1

            scraping.all = counted  # type: ignore[method-assign]
            for number in range(1, 41):
                _, writer = await asyncio.open_connection(ADDRESS, found.port)
                writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                await happens(lambda number=number: begun == number)  # type: ignore[misc]
                writer.transport.abort()
            await happens(lambda: len(found.exporter._pages.connections) == 0)
            await happens(lambda: waiting == 0, "the end of pages that nobody reads")
            found.managers["slow"].waits.set()
            assert (await found.get("/metrics")).status == 200
            assert found.managers["slow"].asked == 1

    run(work())


def test_a_client_that_does_not_read_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is made in parts: what such a client holds up is not made, and its time ends."""
    monkeypatch.setattr("msmqwire.exporter.pages.SEND_S", 0.3)

    async def work() -> None:
        rows = [local(f"q{number}" + "x" * 400) for number in range(20_000)]
        async with running(alpha=FakeManager(rows)) as found:
            reader, writer = await asyncio.open_connection(ADDRESS, found.port, limit=1024)
            writer.write(
                f"GET /metrics HTTP/1.1\r\nHost: localhost\r\n{TIMEOUT_HEADER}: 0.1\r\n\r\n".encode()
            )
            await happens(lambda: found.managers["alpha"].asked)
            await happens(lambda: len(found.exporter._pages.connections) == 0, "the end of the slow client")
            writer.close()
            assert len((await found.get("/metrics")).body) > 8_000_000
            assert reader is not None

    run(work())


def test_a_target_that_fails_is_not_a_failed_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "FRESH_S", -1.0)

    async def work() -> None:
        async with running(
            alpha=FakeManager(fails=QueueError("no", 5)), beta=FakeManager([local()])
        ) as found:
            for count in (1, 2):
                answer = await found.get("/metrics")
                assert answer.status == 200
                assert f'{{target="alpha",reason="refused"}} {count}' in answer.text
                assert 'msmq_up{target="beta"} 1' in answer.text

    run(work())
