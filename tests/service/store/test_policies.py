"""Policies: properties of queues by their names, kept in the store."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from msmqwire.errors import InvalidValue, QueueError
from msmqwire.qm.model.hand_outs import HandOuts
from msmqwire.qm.model.policies import Pattern
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules import policies as policy_rules
from msmqwire.qm.runtime import policies as policy_operations
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder import open_core
from msmqwire.qm.runtime.hand_out_file import HandOutFile
from msmqwire.qm.runtime.operations import LocalSession
from msmqwire.qm.store import memory_store
from msmqwire.service.store.changes import Changes
from tests.support.running import LEDGER, ORDERS, PATIENCE_S, message


class Bench:
    """A queue manager whose store survives it."""

    def __init__(self, store: Any = None, hand_outs: HandOuts | None = None) -> None:
        self.store = store or memory_store()
        core = open_core(self.store, "alpha", quota=1 << 20, hand_outs=hand_outs)
        self.driver = EngineDriver(core, self.store)
        self.driver.start()
        self.session = LocalSession(self.driver)

    async def ask(self, op: str, **request: Any) -> Any:
        return await self.session.run({"op": op, **request})

    async def create(self, queue: str = ORDERS, **properties: Any) -> None:
        await self.ask("create", queue=queue, **properties)

    async def policy(self, name: str, pattern: str = "*", order: int = 0, **properties: Any) -> None:
        await self.ask("policy_set", name=name, pattern=pattern, order=order, **properties)

    async def of(self, queue: str = ORDERS) -> tuple[dict[str, Any], dict[str, str]]:
        """The properties that policies have, and which of them decide."""
        shown = await self.ask("show", queue=queue)
        names = ("quota", "journal", "time_to_live", "when_full", "delivery_limit", "poison")
        return {name: shown[name] for name in names}, shown["policies"]

    async def send(self, *bodies: bytes, queue: str = ORDERS, **properties: Any) -> None:
        entries = [message(body, delivery="recoverable", **properties) for body in bodies]
        await self.ask("send", to=rf"DIRECT=OS:alpha\{queue}", messages=entries)

    async def messages(self, queue: str = ORDERS) -> list[dict[str, Any]]:
        answer = await self.ask("peek", queue=queue, count=1000)
        found: list[dict[str, Any]] = answer["messages"]
        return found

    async def give_back(self, queue: str = ORDERS) -> None:
        (received,) = (await self.ask("receive", queue=queue))["messages"]
        await self.ask("end", back=[received["receipt"]])

    def again(self) -> Bench:
        self.driver.abandon()
        return Bench(self.store)


NOTHING = {
    "quota": None, "journal": False, "time_to_live": None, "when_full": "refuse", "delivery_limit": None,
    "poison": "subqueue",
}  # fmt: skip


def run(scenario: Callable[[Bench], Awaitable[None]]) -> None:
    async def scene() -> None:
        await scenario(Bench())

    asyncio.run(asyncio.wait_for(scene(), PATIENCE_S))


# -- patterns -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern, name, fits",
    [
        (r"private$\orders", r"private$\orders", True),
        (r"PRIVATE$\Orders", r"private$\orders", True),
        (r"private$\order", r"private$\orders", False),
        (r"private$\orders*", r"private$\orders;poison", True),
        ("*", "", True),
        ("*", "anything", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a*b*c", "axxbyyc", True),
        ("a*b*c", "axxcyyb", False),
        ("*ab*ab*", "aab", False),
        ("*ab*ab*", "abab", True),
        ("**x**", "x", True),
        ("[a]?", "[a]?", True),
        ("[a]?", "ab", False),
        ("a.c", "abc", False),
        ("*Ä", "ä", True),
    ],
)
def test_a_star_is_any_text_and_all_else_is_itself(pattern: str, name: str, fits: bool) -> None:
    assert Pattern(pattern).matches(name) is fits


def test_hostile_patterns_take_linear_time() -> None:
    begun = time.perf_counter()
    for pattern in ("*a" * 256, "a*" * 256 + "b", "*" * 512, "*".join(["aaaa"] * 100) + "*b"):
        for name in ("a" * 250, "a" * 249 + "c"):
            Pattern(pattern).matches(name)
    assert time.perf_counter() - begun < 0.5  # backtracking would take ages


# -- what holds -----------------------------------------------------------------------------------------


def test_what_was_set_on_a_queue_wins_until_it_is_forgotten() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.policy("all", journal=True, quota=10)
        await bench.create(quota=7)
        assert await bench.of() == ({**NOTHING, "journal": True, "quota": 7}, {"journal": "all"})
        await bench.ask("set", queue=ORDERS, quota=None)
        assert await bench.of() == ({**NOTHING, "journal": True}, {"journal": "all"})
        await bench.ask("set", queue=ORDERS, quota="default")
        assert await bench.of() == (
            {**NOTHING, "journal": True, "quota": 10}, {"journal": "all", "quota": "all"},
        )  # fmt: skip
        await bench.ask("policy_delete", name="all")
        assert await bench.of() == (NOTHING, {})

    run(scenario)


@pytest.mark.parametrize(
    "name, value, default",
    [
        ("quota", 5, None), ("journal", True, False), ("journal_quota", 5, None), ("label", "x", ""),
        ("authenticated", True, False), ("privacy", "body", "optional"), ("delivery_limit", 3, None),
        ("multicast", "234.1.1.1:8001", None), ("time_to_live", 60, None),
        ("poison", "dead-letters", "subqueue"),
        ("when_full", "oldest-to-dead-letters", "refuse"),
        ("type", "6f9619ff-8b86-d011-b42d-00c04fc964ff", "00000000-0000-0000-0000-000000000000"),
    ],
)  # fmt: skip
def test_each_property_can_be_forgotten(name: str, value: Any, default: Any) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.create()
        await bench.ask("set", queue=ORDERS, **{name: value})
        assert bench.driver.core.queues.lookup.path(rf"alpha\{ORDERS}").own == {name: value}  # type: ignore[union-attr]
        bench = bench.again()
        assert (await bench.ask("show", queue=ORDERS))[name] == value
        forget = None if name == "label" else "default"
        await bench.ask("set", queue=ORDERS, **{name: forget})
        bench = bench.again()
        assert (await bench.ask("show", queue=ORDERS))[name] == default
        assert bench.driver.core.queues.lookup.path(rf"alpha\{ORDERS}").own == {}  # type: ignore[union-attr]

    run(scenario)


def test_the_highest_order_counts_then_the_first_name() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.create()
        await bench.policy("c", order=1, quota=2, delivery_limit=4)
        await bench.policy("b", order=1, quota=1, journal=True)
        await bench.policy("a", order=0, quota=3, delivery_limit=5, time_to_live=6)
        expected = {"quota": 1, "journal": True, "delivery_limit": 4, "time_to_live": 6}
        deciding = {"delivery_limit": "c", "journal": "b", "quota": "b", "time_to_live": "a"}
        assert await bench.of() == ({**NOTHING, **expected}, deciding)
        await bench.policy("a", r"private$\other", order=9, quota=3)
        assert (await bench.of())[0]["time_to_live"] is None
        await bench.policy("c", order=2, quota=2)
        assert (await bench.of())[1] == {"journal": "b", "quota": "c"}

    run(scenario)


def test_policies_hold_for_new_queues_and_after_a_start() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.policy("new", r"*orders*", quota=3)
        await bench.create()
        await bench.send(b"1")
        await bench.ask("move", queue=ORDERS, to=rf"{ORDERS};retry")
        await bench.create(r"private$\other")
        bench = bench.again()
        assert (await bench.of())[0]["quota"] == 3
        assert (await bench.of(rf"{ORDERS};retry"))[1] == {"quota": "new"}
        assert await bench.of(r"private$\other") == (NOTHING, {})
        assert (await bench.ask("show", queue="system$;deadletter"))["policies"] == {}
        await bench.ask("policy_delete", name="new")
        assert await bench.again().of() == (NOTHING, {})

    run(scenario)


def test_what_an_older_store_has_counts_as_set() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.create(quota=4, label="old")
        changes = Changes()
        for key, row in list(bench.store.rows(Table.QUEUE)):
            content = json.loads(row)
            for name in ("own", "time_to_live", "when_full", "delivery_limit", "poison"):
                del content[name]
            changes.put(Table.QUEUE, key, json.dumps(content).encode())
        bench.store.commit(changes)
        bench = bench.again()
        await bench.policy("all", quota=9, journal=True)
        assert await bench.of() == ({**NOTHING, "quota": 4, "journal": True}, {"journal": "all"})
        assert bench.driver.core.queues.lookup.path(rf"alpha\{ORDERS}").own == {"quota": 4, "label": "old"}  # type: ignore[union-attr]

    run(scenario)


@pytest.mark.parametrize(
    "wrong, path",
    [
        ({"name": ""}, "name"), ({"name": "a b"}, "name"), ({"name": "x" * 65}, "name"),
        ({"name": 1}, "name"),
        ({"pattern": ""}, "pattern"), ({"pattern": "x" * 513}, "pattern"), ({"pattern": "a\n"}, "pattern"),
        ({"pattern": None}, "pattern"), ({"order": None}, "order"), ({"order": 1.5}, "order"),
        ({"order": 1 << 31}, "order"), ({"quota": -1}, "quota"), ({"quota": "many"}, "quota"),
        ({"delivery_limit": 0}, "delivery_limit"), ({"delivery_limit": 65536}, "delivery_limit"),
        ({"time_to_live": 0}, "time_to_live"), ({"when_full": "drop"}, "when_full"),
        ({"poison": []}, "poison"),
        ({"journal": 1}, "journal"), ({"label": "x"}, "label"), ({"quota": "default"}, "quota"),
    ],
)  # fmt: skip
def test_a_wrong_policy_is_refused_by_its_value(wrong: dict[str, Any], path: str) -> None:
    async def scenario(bench: Bench) -> None:
        request = {"name": "p", "pattern": "*", "order": 1, "quota": 5, **wrong}
        with pytest.raises(InvalidValue) as caught:
            await bench.ask("policy_set", **request)
        assert caught.value.path == path
        assert await bench.ask("policy_list") == {"policies": []}

    run(scenario)


def test_there_is_a_limit_of_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_operations, "POLICIES_MAX", 2)

    async def scenario(bench: Bench) -> None:
        await bench.policy("a", quota=1)
        await bench.policy("b", quota=1)
        await bench.policy("a", quota=2)
        with pytest.raises(QueueError, match="there are 2 policies"):
            await bench.policy("c", quota=1)
        await bench.ask("policy_delete", name="b")
        await bench.policy("c", quota=1)
        with pytest.raises(QueueError, match="no policy"):
            await bench.ask("policy_show", name="b")

    run(scenario)
    assert policy_rules.POLICIES_MAX == 1_000


# -- poison messages ------------------------------------------------------------------------------------


def test_at_the_limit_a_message_goes_to_the_poison_subqueue() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.policy("limit", delivery_limit=2)
        await bench.create()
        await bench.send(b"1", b"2")
        await bench.give_back()
        assert [one["deliveries"] for one in await bench.messages()] == [1, 0]
        await bench.give_back()
        assert [one["body"] for one in await bench.messages()] == ["Mg=="]
        for _ in range(3):  # it stays there, and counts on
            bench = bench.again()
            (poison,) = await bench.messages(rf"{ORDERS};poison")
            await bench.give_back(rf"{ORDERS};poison")
        assert (poison["deliveries"], poison["reason"]) == (4, "delivery_limit")
        await bench.ask("move", queue=rf"{ORDERS};poison", to=ORDERS)
        (_, again) = await bench.messages()
        assert (again["deliveries"], again["reason"]) == (0, None)

    run(scenario)


def test_a_subqueue_has_its_poison_in_that_of_its_queue() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.create()
        await bench.send(b"1")
        await bench.ask("move", queue=ORDERS, to=rf"{ORDERS};retry")
        await bench.policy("limit", "*;retry", delivery_limit=1)
        await bench.give_back(rf"{ORDERS};retry")
        (poison,) = await bench.messages(rf"{ORDERS};poison")
        assert (poison["deliveries"], poison["reason"]) == (1, "delivery_limit")

    run(scenario)


@pytest.mark.parametrize("transactional", [False, True])
def test_poison_may_be_a_dead_letter(transactional: bool) -> None:
    async def scenario(bench: Bench) -> None:
        name = LEDGER if transactional else ORDERS
        await bench.create(name, transactional=transactional, delivery_limit=1, poison="dead-letters")
        await bench.create(r"private$\reports")
        delivery = "transactional" if transactional else "express"
        to_reports = r"DIRECT=OS:alpha\private$\reports"
        entry = message(b"1", delivery=delivery, acknowledge="full_receive", admin_queue=to_reports)
        await bench.ask("send", to=rf"DIRECT=OS:alpha\{name}", messages=[entry])
        if transactional:
            transaction = (await bench.ask("begin"))["transaction"]
            await bench.ask("read", queue=name, action="receive", transaction=transaction)
            await bench.ask("abort", transaction=transaction)
        else:
            await bench.give_back()
        dead, other = ("deadxact", "deadletter") if transactional else ("deadletter", "deadxact")
        (letter,) = await bench.messages(f"system$;{dead}")
        assert (letter["deliveries"], letter["reason"]) == (1, "delivery_limit")
        assert await bench.messages(f"system$;{other}") == await bench.messages(name) == []
        assert [one["class_name"] for one in await bench.messages(r"private$\reports")] == [
            "NACK_RECEIVE_REJECTED"
        ]

    run(scenario)


def test_a_limit_of_now_moves_nothing_before_the_next_return() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.create()
        await bench.send(b"1")
        for _ in range(3):
            await bench.give_back()
        await bench.policy("limit", delivery_limit=2)
        assert [one["deliveries"] for one in await bench.messages()] == [3]
        await bench.give_back()
        assert [one["deliveries"] for one in await bench.messages(rf"{ORDERS};poison")] == [4]

    run(scenario)


# -- full queues ----------------------------------------------------------------------------------------

KIB = bytes(600)


def test_a_full_queue_moves_its_oldest_messages() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.create(quota=2, when_full="oldest-to-dead-letters")
        for number in range(4):
            await bench.send(bytes([number]) + KIB, label=str(number))
        assert [one["label"] for one in await bench.messages()] == ["2", "3"]
        letters = await bench.again().messages("system$;deadletter")
        assert [(one["label"], one["reason"]) for one in letters] == [("0", "quota"), ("1", "quota")]

    run(scenario)


def test_the_oldest_of_all_priorities_leaves() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.create(quota=3, when_full="oldest-to-dead-letters")
        for number, priority in enumerate([3, 7, 0, 5]):
            await bench.send(KIB, label=str(number), priority=priority)
        assert [one["label"] for one in await bench.messages("system$;deadletter")] == ["0"]
        assert [one["label"] for one in await bench.messages()] == ["1", "3", "2"]

    run(scenario)


def test_messages_that_readers_have_stay_in_a_full_queue() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.create(quota=2, when_full="oldest-to-dead-letters")
        for number in range(2):
            await bench.send(KIB, label=str(number))
        await bench.ask("receive", queue=ORDERS)
        await bench.send(KIB, label="2")
        assert [one["label"] for one in await bench.messages("system$;deadletter")] == ["1"]
        await bench.ask("receive", queue=ORDERS)
        assert "refused" in await bench.ask(
            "send", to=rf"DIRECT=OS:alpha\{ORDERS}", messages=[message(b"0"), message(KIB)]
        )

    run(scenario)


def test_a_message_above_the_quota_moves_nothing() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.create(quota=1, when_full="oldest-to-dead-letters")
        await bench.send(b"small")
        with pytest.raises(QueueError, match="quota of the queue"):
            await bench.send(bytes(2000))
        assert len(await bench.messages()) == 1
        assert await bench.messages("system$;deadletter") == []

    run(scenario)


def test_dead_letters_of_policies_have_a_share_of_the_quota() -> None:
    async def scenario(bench: Bench) -> None:  # the queue manager has 1 MiB
        await bench.create(quota=64, when_full="oldest-to-dead-letters")
        for number in range(20):
            await bench.send(bytes(20_000), label=str(number))
        core = bench.driver.core
        letters = await bench.messages("system$;deadletter")
        labels = [int(one["label"]) for one in letters]
        assert labels == list(range(labels[0], 17))
        assert 80_000 < core.queue_manager.system_deadletter_queue.total_bytes <= (1 << 20) // 10  # type: ignore[union-attr]
        assert core.own_moves.dropped == labels[0] > 0
        bench = bench.again()
        await bench.ask(
            "purge", queue="system$;deadletter", lookup_identifier=letters[0]["lookup_identifier"]
        )
        await bench.send(bytes(20_000), label="20")
        assert bench.driver.core.own_moves.dropped == 0  # the purged one has made room
        await bench.send(bytes(20_000), label="21")
        assert bench.driver.core.own_moves.dropped == 1

    run(scenario)


# -- time to live ---------------------------------------------------------------------------------------


def test_messages_expire_at_the_limit_of_their_queue() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.create(time_to_live=60)
        await bench.send(b"1", label="limited")
        await bench.send(b"2", label="shorter", time_to_be_received=30)
        await bench.send(b"3", label="longer", time_to_be_received=3000)
        await bench.ask("set", queue=ORDERS, time_to_live=None)
        await bench.send(b"4", label="later")
        for _ in range(2):  # the row is written anew
            await bench.give_back()
            bench = bench.again()
        core = bench.driver.core
        now, utc = core.context.now, core.context.utc
        left = {}
        for seconds in (29, 31, 59, 61):
            bench.driver.call(core.at, now + 1000 * seconds, utc + seconds)
            left[seconds] = [one["label"] for one in await bench.messages()]
        assert left == {
            29: ["limited", "shorter", "longer", "later"], 31: ["limited", "longer", "later"],
            59: ["limited", "longer", "later"], 61: ["later"],
        }  # fmt: skip

    run(scenario)


# -- a queue manager that is killed ---------------------------------------------------------------------


@pytest.mark.parametrize("poison", ["subqueue", "dead-letters"])
def test_a_message_that_kills_its_server_is_poison_in_the_end(tmp_path: Path, poison: str) -> None:
    notes = tmp_path / "notes"

    async def scenario() -> None:
        bench = Bench(hand_outs=HandOutFile(notes))
        await bench.create(delivery_limit=2, poison=poison)
        await bench.send(b"1")
        for count in (0, 1):
            assert [one["deliveries"] for one in await bench.messages()] == [count]
            await bench.ask("receive", queue=ORDERS)
            bench.driver.abandon()
            bench = Bench(bench.store, HandOutFile(notes))
        place = rf"{ORDERS};poison" if poison == "subqueue" else "system$;deadletter"
        for _ in range(2):
            (moved,) = await bench.messages(place)
            assert (moved["deliveries"], moved["reason"], await bench.messages()) == (2, "delivery_limit", [])
            bench = bench.again()

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
