"""Idempotency keys: kept a day or 100,000 of them, by owner, over restarts if their request was durable."""

from __future__ import annotations

from uuid import uuid4

import pytest

from msmqwire.qm.core import Core
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules import idempotency
from msmqwire.qm.rules.idempotency import KEPT_S, KeptAnswer
from msmqwire.qm.store import memory_store
from msmqwire.service.store.memory import MemoryStore

KEPT = KeptAnswer(bytes(range(32)), b"answer")
BEGIN = 1_700_000_000


class Kept:
    """The keys of a queue manager, which is started again by `again`."""

    def __init__(self) -> None:
        self.store: MemoryStore = memory_store()
        self.utc = BEGIN
        self.again()

    def again(self) -> None:
        self.core = Core(self.store, new_guid=uuid4, computer_name="alpha")
        self.at(self.utc)
        self.core.start()
        self.commit()
        self.keys = self.core.idempotency

    def at(self, utc: int) -> None:
        self.utc = utc
        self.core.at((utc - BEGIN) * 1000, utc)

    def put(self, owner: str, key: str, kept: KeptAnswer = KEPT, *, durable: bool = True) -> None:
        self.keys.put(owner, key, kept, durable=durable)
        self.commit()

    def commit(self) -> None:
        changes, _ = self.core.take()
        self.store.commit(changes)

    @property
    def rows(self) -> int:
        return len(list(self.store.rows(Table.IDEMPOTENCY)))


def test_a_key_belongs_to_its_owner() -> None:
    kept = Kept()
    kept.put("ann", "k")
    assert kept.keys.find("ann", "k") == KEPT
    assert kept.keys.find("bob", "k") is None
    assert kept.keys.find("ann", "K") is None


@pytest.mark.parametrize("key", ["k", "\U0001f600" * 255, "a\\b/..'\"", " "])
def test_a_durable_key_is_kept_over_a_restart(key: str) -> None:
    kept = Kept()
    kept.put("ann", key)
    kept.put("ann", "express", durable=False)
    assert kept.keys.find("ann", "express") == KEPT
    kept.again()
    assert kept.keys.find("ann", key) == KEPT
    assert kept.keys.find("ann", "express") is None


def test_a_key_ends_after_a_day_in_the_store_as_well() -> None:
    kept = Kept()
    kept.put("ann", "k")
    kept.at(BEGIN + KEPT_S - 1)
    assert kept.keys.find("ann", "k") == KEPT
    kept.at(BEGIN + KEPT_S)
    assert kept.keys.find("ann", "k") is None
    assert kept.rows == 1
    kept.put("bob", "other")
    assert (kept.rows, len(kept.keys)) == (1, 1)
    kept.at(BEGIN + 3 * KEPT_S)
    kept.again()
    assert (kept.rows, len(kept.keys)) == (0, 0)


def test_an_owner_has_so_many_keys_and_loses_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "KEYS_MAX", 3)
    kept = Kept()
    kept.put("bob", "b")
    for number in range(5):
        kept.put("ann", str(number))
    assert [number for number in range(5) if kept.keys.find("ann", str(number))] == [2, 3, 4]
    assert kept.keys.find("bob", "b") == KEPT
    assert kept.rows == 4
    kept.again()
    kept.put("ann", "5")
    assert [number for number in range(6) if kept.keys.find("ann", str(number))] == [3, 4, 5]


def test_a_revoked_owner_leaves_no_key() -> None:
    kept = Kept()
    kept.put("ann", "k")
    kept.put("ann", "express", durable=False)
    kept.put("bob", "k")
    kept.keys.forget_owner("ann")
    kept.commit()
    assert (kept.rows, len(kept.keys)) == (1, 1)
    assert kept.keys.find("bob", "k") == KEPT


def test_a_key_that_is_put_again_has_the_later_answer() -> None:
    kept = Kept()
    kept.put("ann", "k")
    later = KeptAnswer(bytes(32), b"")
    kept.put("ann", "k", later, durable=False)
    assert (kept.keys.find("ann", "k"), kept.rows) == (later, 0)
    kept.put("ann", "k", KEPT)
    kept.again()
    assert kept.keys.find("ann", "k") == KEPT


def test_damaged_rows_are_no_keys() -> None:
    kept = Kept()
    kept.core.context.changes.put(Table.IDEMPOTENCY, b"short", b"")
    kept.core.context.changes.put(Table.IDEMPOTENCY, bytes(32), b"short")
    kept.commit()
    kept.again()
    assert len(kept.keys) == 0
