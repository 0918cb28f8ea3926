"""Scrapes: shared by pages, kept apart by target, ended in time, and never with values of an earlier one."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from typing import Any

import pytest

from msmqwire.constants import HResult
from msmqwire.errors import (
    AnswerTimeout,
    AuthenticationFailed,
    HostNotFound,
    InvalidName,
    MsmqError,
    ProtocolViolation,
    QueueError,
    RpcFault,
    RpcRefused,
    Unreachable,
)
from msmqwire.exporter import machine
from msmqwire.exporter.asking import DEAD_LETTERS, REASONS
from msmqwire.exporter.scraping import Scraping
from msmqwire.exporter.targets import Target
from msmqwire.management.reports import unasked
from msmqwire.qm.client.managed_listing import NOT_ASKED
from tests.support.fake_targets import FakeManager, connecting, local, outgoing
from tests.support.patience import PATIENCE_S, happens, limit

SHORT_S = 0.05


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, PATIENCE_S))


async def scraping_of(managers: dict[str, FakeManager], *, at_once: int = 16, **target: Any) -> Scraping:
    scraping = Scraping(connecting(managers), at_once=at_once)
    await scraping.use(Target(name, name, **target) for name in managers)
    return scraping


async def page(scraping: Scraping, seconds: float = PATIENCE_S) -> list[str]:
    """The samples of the page of all targets."""
    text = b"".join(await scraping.all(seconds)).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def about(lines: Iterable[str], name: str, target: str = "alpha") -> list[str]:
    """The samples of a family and a target."""
    return [line for line in lines if line.startswith(f'{name}{{target="{target}"')]


@pytest.fixture
def always_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer is so fresh that it counts for the next page."""
    monkeypatch.setattr(machine, "FRESH_S", -1.0)


def test_pages_at_a_time_share_one_scrape() -> None:
    async def work() -> None:
        manager = FakeManager([local()])
        manager.waits = asyncio.Event()
        scraping = await scraping_of({"alpha": manager})
        pages = [asyncio.ensure_future(page(scraping)) for _ in range(50)]
        pages.append(asyncio.ensure_future(_one(scraping)))
        await happens(lambda: manager.asked)
        manager.waits.set()
        texts = await asyncio.gather(*pages)
        assert manager.asked == 1
        assert all(about(text, "msmq_up") == ['msmq_up{target="alpha"} 1'] for text in texts)

    run(work())


async def _one(scraping: Scraping) -> list[str]:
    parts = await scraping.one(scraping.machines["alpha"], PATIENCE_S)
    return b"".join(parts).decode().splitlines()


def test_an_answer_counts_for_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        manager = FakeManager([local()])
        scraping = await scraping_of({"alpha": manager})
        first = await page(scraping)
        second = await page(scraping)
        assert manager.asked == 1
        assert about(first, "windows_msmq_messages_in_queue") == about(
            second, "windows_msmq_messages_in_queue"
        )
        ages = [float(about(text, "msmq_scrape_age_seconds")[0].split()[-1]) for text in (first, second)]
        assert 0 <= ages[0] <= ages[1] < 1
        monkeypatch.setattr(machine, "FRESH_S", ages[1])
        manager.rows = [local(messages=9)]
        third = await page(scraping)
        assert manager.asked == 2
        assert about(third, "windows_msmq_messages_in_queue")[0].endswith(" 9")

    run(work())


@pytest.mark.parametrize(
    "error, reason",
    [
        (Unreachable("gone"), "unreachable"),
        (HostNotFound("no such host"), "unreachable"),
        (TimeoutError("slow"), "timeout"),
        (QueueError("no", HResult.MQ_ERROR_ACCESS_DENIED), "refused"),
        (AuthenticationFailed("no"), "refused"),
        (RpcRefused("no"), "refused"),
        (RpcFault(5, "denied"), "refused"),
        (AnswerTimeout("slow"), "timeout"),
        (ProtocolViolation("odd"), "protocol"),
        (RpcFault(0x1C01_0002, "nca_op_rng_error"), "protocol"),
        (MsmqError("odd"), "protocol"),
        (InvalidName("bad", hresult=HResult.MQ_ERROR_ILLEGAL_FORMATNAME), "name"),
        (ZeroDivisionError("ours"), "fault"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
@pytest.mark.usefixtures("always_asked")
def test_a_failed_scrape_has_a_reason_and_no_values(error: Exception, reason: str) -> None:
    async def work() -> None:
        managers = {"alpha": FakeManager([local(), outgoing()]), "beta": FakeManager([local()])}
        scraping = await scraping_of(managers)
        assert about(await page(scraping), "windows_msmq_messages_in_queue")
        managers["alpha"].fails = error
        for count in (1, 2):
            text = await page(scraping)
            found = [line for line in text if 'target="alpha"' in line and "_seconds{" not in line]
            assert found == [
                'msmq_up{target="alpha"} 0',
                f'msmq_scrape_errors_total{{target="alpha",reason="{reason}"}} {count}',
            ]
            assert about(text, "msmq_up", "beta") == ['msmq_up{target="beta"} 1']
            assert about(text, "windows_msmq_messages_in_queue", "beta")
        assert managers["alpha"].closed == (3 if reason == "unreachable" else 2), (
            "no wrong connection is kept"
        )
        managers["alpha"].fails = None
        assert about(await page(scraping), "msmq_up") == ['msmq_up{target="alpha"} 1']

    assert reason in REASONS
    run(work())


@pytest.mark.usefixtures("always_asked")
def test_a_target_that_does_not_answer_ends_in_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_GRACE_S", 0.0)

    async def work() -> None:
        managers = {"alpha": FakeManager([local()]), "beta": FakeManager([local()])}
        managers["alpha"].waits = asyncio.Event()
        scraping = await scraping_of(managers, timeout=SHORT_S)
        text = await page(scraping)
        assert about(text, "msmq_up") == ['msmq_up{target="alpha"} 0']
        assert about(text, "msmq_scrape_errors_total")[0].endswith('reason="timeout"} 1')
        assert about(text, "msmq_up", "beta") == ['msmq_up{target="beta"} 1']
        managers["alpha"].waits.set()
        assert about(await page(scraping), "msmq_up") == ['msmq_up{target="alpha"} 1']

    run(work())


@pytest.mark.usefixtures("always_asked")
def test_a_page_ends_in_the_time_of_its_client() -> None:
    """The scrape goes on: a later page gets its result."""

    async def work() -> None:
        managers = {"alpha": FakeManager([local()]), "beta": FakeManager([local()])}
        managers["alpha"].waits = asyncio.Event()
        scraping = await scraping_of(managers, timeout=PATIENCE_S)
        text = await page(scraping, SHORT_S)
        assert about(text, "msmq_up") == ['msmq_up{target="alpha"} 0']
        assert about(text, "msmq_scrape_errors_total")[0].endswith('reason="timeout"} 1')
        assert float(about(text, "msmq_scrape_duration_seconds")[0].split()[-1]) >= SHORT_S * 0.9
        assert about(text, "msmq_up", "beta") == ['msmq_up{target="beta"} 1']
        waiting = asyncio.ensure_future(page(scraping))
        await asyncio.sleep(0)  # it joins the scrape
        managers["alpha"].waits.set()
        assert about(await waiting, "msmq_up") == ['msmq_up{target="alpha"} 1']
        assert managers["alpha"].asked == 1

    run(work())


@pytest.mark.usefixtures("always_asked")
def test_silent_targets_do_not_keep_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at a time; the eight that are silent wait among themselves once they are known."""
    monkeypatch.setattr(machine, "_GRACE_S", 0.0)

    async def work() -> None:
        silent = {f"silent{number}": FakeManager() for number in range(8)}
        for manager in silent.values():
            manager.waits = asyncio.Event()
        well = {f"well{number}": FakeManager([local()]) for number in range(8)}
        scraping = await scraping_of({**silent, **well}, at_once=2, timeout=0.1)
        first = await page(scraping, SHORT_S)
        assert about(first, "msmq_scrape_errors_total", "well7") == [
            'msmq_scrape_errors_total{target="well7",reason="busy"} 1'
        ]
        await happens(lambda: all(scraping.machines[name].reason for name in silent))
        await happens(lambda: all(scraping.machines[name].reason == "" for name in well))
        for _ in range(2):
            text = await page(scraping, limit(0.1))
            assert {about(text, "msmq_up", name)[0][-1] for name in well} == {"1"}
            assert {about(text, "msmq_up", name)[0][-1] for name in silent} == {"0"}
        await scraping.close()

    run(work())


@pytest.mark.usefixtures("always_asked")
def test_conversations_at_a_time_have_a_limit() -> None:
    async def work() -> None:
        under_way, most = 0, 0

        class Counted(FakeManager):
            async def queues(self, *arguments: Any, **named: Any) -> Any:
                nonlocal under_way, most
                under_way += 1
                most = max(most, under_way)
                await asyncio.sleep(0.001)  # so that they overlap
                under_way -= 1
                return [local()]

        scraping = await scraping_of({f"t{number}": Counted() for number in range(40)}, at_once=4)
        assert (
            len([line for line in await page(scraping) if line.startswith("msmq_up") and line[-1] == "1"])
            == 40
        )
        assert most == 4

    run(work())


@pytest.mark.usefixtures("always_asked")
def test_a_connection_is_kept_and_made_again() -> None:
    """A computer that restarted between two scrapes answers the first one after."""

    async def work() -> None:
        made: list[FakeManager] = []

        def connect(target: Target) -> FakeManager:
            made.append(FakeManager([local(messages=len(made))]))
            return made[-1]

        scraping = Scraping(connect)
        await scraping.use([Target("alpha", "alpha")])
        for _ in range(5):
            assert about(await page(scraping), "windows_msmq_messages_in_queue")[0].endswith(" 0")
        assert len(made) == 1
        made[0].fails = Unreachable("the connection is gone")
        text = await page(scraping)
        assert about(text, "windows_msmq_messages_in_queue")[0].endswith(" 1")
        assert about(text, "msmq_scrape_errors_total") == []
        assert (len(made), made[0].closed, made[1].closed) == (2, 1, 0)
        made[1].fails = QueueError("no", HResult.MQ_ERROR_ACCESS_DENIED)
        assert about(await page(scraping), "msmq_up") == ['msmq_up{target="alpha"} 0']
        assert len(made) == 2, "a refusal is no lost connection"

    run(work())


@pytest.mark.usefixtures("always_asked")
def test_what_did_not_change_stays_with_a_new_file() -> None:
    async def work() -> None:
        managers = {name: FakeManager([local()]) for name in ("alpha", "beta", "gamma")}
        scraping = await scraping_of(managers)
        managers["alpha"].fails = RpcRefused("no")
        await page(scraping)
        managers["beta"].waits = asyncio.Event()
        running = asyncio.ensure_future(page(scraping))
        await happens(lambda: managers["beta"].asked == 2)
        old = dict(scraping.machines)
        changed = replace(old["beta"].target, password="another")
        await scraping.use([old["alpha"].target, changed])
        text = await running
        assert about(text, "msmq_up", "beta") == [], "no target any more, and no values of it"
        assert list(scraping.machines) == ["alpha", "beta"]
        assert scraping.machines["alpha"] is old["alpha"]
        assert scraping.machines["beta"] is not old["beta"]
        assert (managers["beta"].closed, managers["gamma"].closed) == (1, 1)
        text = await page(scraping, SHORT_S)
        assert about(text, "msmq_scrape_errors_total")[0].endswith(" 3")
        assert not any('target="gamma"' in line for line in text)
        assert "msmq_exporter_targets 2" in text
        assert "msmq_exporter_last_reload_successful 1" in text
        scraping.keep()
        assert "msmq_exporter_last_reload_successful 0" in await page(scraping, SHORT_S)
        await scraping.close()

    run(work())


def test_dead_letters_and_configured_queues_are_asked() -> None:
    async def work() -> None:
        rows = [
            local(),
            unasked("typo", "there is no such queue"),
            unasked(DEAD_LETTERS[0], "there is no such queue"),
            *(unasked(f"q{number}", NOT_ASKED) for number in range(3)),
        ]
        manager = FakeManager(rows)
        scraping = await scraping_of({"alpha": manager}, queues=("orders", "typo"))
        text = await page(scraping)
        assert manager.names == ("orders", "typo", ";deadletter", ";deadxact")
        assert about(text, "msmq_queues")[0].endswith(" 1")
        assert about(text, "msmq_queues_left_out")[0].endswith(" 3")
        assert about(text, "msmq_queues_refused")[0].endswith(" 1"), "older systems don't report dead letters"
        assert about(text, "msmq_scrape_errors_total") == [
            'msmq_scrape_errors_total{target="alpha",reason="name"} 1'
        ]
        assert about(text, "msmq_up") == ['msmq_up{target="alpha"} 1']

    run(work())


@pytest.mark.usefixtures("always_asked")
def test_ten_thousand_scrapes_take_no_memory() -> None:
    async def work() -> None:
        manager = FakeManager([local(), unasked("typo", "there is no such queue")])
        scraping = await scraping_of({"alpha": manager})
        blocks = []
        for count in range(10_001):
            manager.fails = RpcRefused("no") if count % 7 == 3 else None
            b"".join(await scraping.all(PATIENCE_S))
            if count in (1_000, 10_000):
                gc.collect()
                blocks.append(sys.getallocatedblocks())
        assert manager.asked == 10_001
        assert blocks[1] - blocks[0] < 500, "objects of Python"

    logging.disable()  # pytest keeps all lines of the log
    try:
        run(work())
    finally:
        logging.disable(logging.NOTSET)
