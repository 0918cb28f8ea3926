"""The contract of `Store`: one suite, run on every implementation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from msmqwire.qm.model.tables import INTEGER_KEYS, Table
from msmqwire.qm.store import memory_store, open_store
from msmqwire.service.store import Store
from msmqwire.service.store.changes import Changes, Key
from msmqwire.service.store.memory import MemoryStore
from msmqwire.service.store.sqlite import SqliteStore
from tests.support.qm.stores import after, everything, step

Reopen = Callable[[Store], Store]


def reopen_in_memory(store: Store) -> Store:
    assert isinstance(store, MemoryStore)
    store.close()
    return store.copy()


def reopen_on_disk(store: Store) -> Store:
    assert isinstance(store, SqliteStore)
    store.close()
    return open_store(store.path, create=False)


@pytest.fixture(params=["memory", "sqlite"])
def store_and_reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Reopen]]:
    """A new store, and a function that closes and reopens it."""
    if request.param == "memory":
        yield memory_store(), reopen_in_memory
        return
    opened: list[Store] = [open_store(tmp_path / "store.db")]

    def reopen(store: Store) -> Store:
        opened.append(reopen_on_disk(store))
        return opened[-1]

    yield opened[0], reopen
    for store in opened:
        store.close()


@pytest.fixture
def store(store_and_reopen: tuple[Store, Reopen]) -> Store:
    return store_and_reopen[0]


def changes(*rows: tuple[Table, Key, bytes | None]) -> Changes:
    result = Changes()
    for table, key, row in rows:
        if row is None:
            result.delete(table, key)
        else:
            result.put(table, key, row)
    return result


def key_of(table: Table, number: int) -> Key:
    return number if table in INTEGER_KEYS else number.to_bytes(8, "big")


def test_a_new_store_is_empty(store: Store) -> None:
    assert everything(store) == {table: [] for table in Table}
    assert all(store.row(table, key_of(table, 1)) is None for table in Table)
    assert store.version >= 1


@pytest.mark.parametrize("table", Table)
def test_rows_stay_in_their_table_and_survive(store_and_reopen: tuple[Store, Reopen], table: Table) -> None:
    store, reopen = store_and_reopen
    keys = [key_of(table, number) for number in (3, 1, 2)]
    store.commit(changes(*((table, key, b"row %d" % number) for number, key in enumerate(keys))))
    expected = {other: [] for other in Table} | {
        table: [(keys[1], b"row 1"), (keys[2], b"row 2"), (keys[0], b"row 0")]
    }
    assert everything(store) == expected
    store = reopen(store)
    assert everything(store) == expected
    assert [store.row(table, key) for key in keys] == [b"row 0", b"row 1", b"row 2"]


def test_one_commit_changes_many_tables(store_and_reopen: tuple[Store, Reopen]) -> None:
    store, reopen = store_and_reopen
    for number in range(1, 31):
        store.commit(step(number))
        assert everything(store) == after(number)
    assert everything(reopen(store)) == after(30)


def test_rows_come_in_the_order_of_their_keys(store: Store) -> None:
    numbers = [0, 1, 255, 256, -1, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63)]
    names = [
        b"",
        b"\0",
        b"\0\0",
        b"\x01",
        b"\x7f",
        b"\x80",
        b"\xff",
        b"\xff\0",
        b"a" * 5000,
        b"a" * 4999 + b"b",
    ]
    store.commit(
        changes(
            *((Table.MESSAGE, number, b"") for number in reversed(numbers)),
            *((Table.HISTORY, name, b"") for name in reversed(names)),
        )
    )
    assert [key for key, _ in store.rows(Table.MESSAGE)] == sorted(numbers)
    assert [key for key, _ in store.rows(Table.HISTORY)] == sorted(names)


def test_the_last_change_wins(store: Store) -> None:
    steps = changes((Table.QUEUE, 1, b"first"), (Table.QUEUE, 2, b"first"), (Table.QUEUE, 3, None))
    steps.add(changes((Table.QUEUE, 1, b"second"), (Table.QUEUE, 2, None), (Table.QUEUE, 3, b"second")))
    store.commit(steps)
    assert list(store.rows(Table.QUEUE)) == [(1, b"second"), (3, b"second")]
    store.commit(changes((Table.QUEUE, 1, b"third"), (Table.QUEUE, 3, None)))
    assert list(store.rows(Table.QUEUE)) == [(1, b"third")]


def test_deleting_missing_keys_and_committing_nothing(store_and_reopen: tuple[Store, Reopen]) -> None:
    store, reopen = store_and_reopen
    store.commit(changes((Table.META, b"a", b"1")))
    store.commit(Changes())
    store.commit(changes((Table.META, b"b", None), (Table.PACKET, 7, None)))
    assert list(reopen(store).rows(Table.META)) == [(b"a", b"1")]


@pytest.mark.parametrize("size", [0, 1, 4061, 4062, 70_000, 4 << 20])
def test_rows_of_any_size(store_and_reopen: tuple[Store, Reopen], size: int) -> None:
    store, reopen = store_and_reopen
    content, name = (b"\0\xff'\"" * (size // 4 + 1))[:size], b"k" * min(size, 100_000)
    store.commit(changes((Table.PACKET, 1, content), (Table.INCOMING, name, content)))
    store = reopen(store)
    assert store.row(Table.PACKET, 1) == content
    assert store.row(Table.INCOMING, name) == content
    store.commit(changes((Table.PACKET, 1, None), (Table.INCOMING, name, None)))
    assert store.row(Table.PACKET, 1) is store.row(Table.INCOMING, name) is None


def test_an_iteration_sees_the_rows_of_its_first_step(store: Store) -> None:
    before = changes(*((Table.MESSAGE, number, b"old") for number in range(1000)))
    store.commit(before)
    rows = store.rows(Table.MESSAGE)
    first = next(rows)
    store.commit(changes(*((Table.MESSAGE, number, b"new") for number in range(0, 2000, 2))))
    assert store.row(Table.MESSAGE, 998) == b"new"
    assert [first, *rows] == [(number, b"old") for number in range(1000)]
    assert sum(row == b"new" for _, row in store.rows(Table.MESSAGE)) == 1000


def test_two_iterations_do_not_disturb_each_other(store: Store) -> None:
    store.commit(changes(*((Table.MESSAGE, number, b"") for number in range(500))))
    first, second = store.rows(Table.MESSAGE), store.rows(Table.MESSAGE)
    assert [key for pair in zip(first, second, strict=True) for key, _ in pair] == [
        number for number in range(500) for _ in range(2)
    ]


def test_other_threads_read_while_one_commits(store: Store) -> None:
    """They see a whole number of commits, and never fewer than before."""
    steps, done = 150, threading.Event()
    inconsistent: list[object] = []
    reads = count()

    def read_all() -> None:
        previous = 0
        while not done.is_set():
            rows = dict(store.rows(Table.MESSAGE))
            newest = max(rows, default=0)
            if newest < previous or list(rows.items()) != after(newest)[Table.MESSAGE]:  # type: ignore[operator]
                inconsistent.append(rows)
            previous = newest  # type: ignore[assignment]
            next(reads)

    def read_one() -> None:
        previous = 0
        while not done.is_set():
            last = int(store.row(Table.META, b"last") or 0)
            packet = store.row(Table.PACKET, last) if last else None
            if last < previous or packet not in (None, last.to_bytes(4, "big") * 325):
                inconsistent.append((last, packet))
            previous = last
            next(reads)

    threads = [threading.Thread(target=target) for target in (read_all, read_one, read_one)]
    for thread in threads:
        thread.start()
    try:
        for number in range(1, steps + 1):
            store.commit(step(number))
            assert store.row(Table.META, b"last") == b"%d" % number
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not inconsistent
    assert next(reads) > 0
    assert everything(store) == after(steps)


def test_commits_of_several_threads_are_serialised(store: Store) -> None:
    def commit(first: int) -> None:
        for number in range(first, first + 25):
            store.commit(changes((Table.MESSAGE, number, b"m"), (Table.PACKET, number, b"p")))

    threads = [threading.Thread(target=commit, args=(first,)) for first in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    keys = [number for first in (0, 100, 200) for number in range(first, first + 25)]
    assert [key for key, _ in store.rows(Table.MESSAGE)] == keys
    assert [key for key, _ in store.rows(Table.PACKET)] == keys


def test_a_closed_store_raises_value_error(store: Store) -> None:
    store.commit(step(1))
    started = store.rows(Table.META)
    with store as same:
        assert same is store
        next(started)
    store.close()
    with pytest.raises(ValueError, match="closed"):
        store.row(Table.META, b"last")
    with pytest.raises(ValueError, match="closed"):
        next(store.rows(Table.META))
    for late in (step(2), Changes()):
        with pytest.raises(ValueError, match="closed"):
            store.commit(late)


def test_a_copy_in_memory_is_independent() -> None:
    store = memory_store()
    store.commit(step(1))
    copy = store.copy()
    store.commit(step(2))
    store.close()
    assert everything(copy) == after(1)
    assert everything(store.copy()) == after(2)
    copy.commit(step(2))
    assert everything(copy) == after(2)
