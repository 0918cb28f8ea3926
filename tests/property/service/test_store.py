"""A store has the same rows as a dict, whatever is committed and however often it is reopened."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from msmqwire.qm.model.tables import INTEGER_KEYS, Table
from msmqwire.qm.store import memory_store, open_store
from msmqwire.service.store import Store
from msmqwire.service.store.changes import Changes, Key
from msmqwire.service.store.memory import MemoryStore

NUMBERS = st.integers(0, 9) | st.integers(-(2**63), 2**63 - 1)
FIRST = st.integers(0, 6) | st.sampled_from([2**63 - 6, -(2**63)])
NAMES = st.binary(max_size=2) | st.binary(max_size=40)
CONTENTS = st.binary(max_size=8) | st.integers(0, 20_000).map(lambda size: b"\xa5" * size)


def keys(table: Table) -> st.SearchStrategy[Key]:
    return NUMBERS if table in INTEGER_KEYS else NAMES


CHANGE = st.sampled_from(Table).flatmap(
    lambda table: st.tuples(st.just(table), keys(table), st.none() | CONTENTS)
)
STEP = st.lists(CHANGE, max_size=12)


class StoreAgainstDict(RuleBasedStateMachine):
    store: Store

    def __init__(self) -> None:
        super().__init__()
        self.expected: dict[Table, dict[Key, bytes]] = {table: {} for table in Table}

    def reopen(self) -> None:
        raise NotImplementedError

    @rule(steps=st.lists(STEP, min_size=1, max_size=3))
    def steps_are_committed_together(self, steps: list[list[tuple[Table, Any, bytes | None]]]) -> None:
        merged = Changes()
        for step in steps:
            changes = Changes()
            for table, key, row in step:
                if row is None:
                    changes.delete(table, key)
                    self.expected[table].pop(key, None)
                else:
                    changes.put(table, key, row)
                    self.expected[table][key] = row
            merged.add(changes)
        self.store.commit(merged)

    @rule()
    def the_store_is_reopened(self) -> None:
        self.reopen()

    @rule(table=st.sampled_from(Table), data=st.data())
    def one_row_is_read(self, table: Table, data: st.DataObject) -> None:
        key = data.draw(keys(table) | st.sampled_from(sorted(self.expected[table]) or [0]))
        assert self.store.row(table, key) == self.expected[table].get(key)

    @rule(
        table=st.sampled_from(sorted(INTEGER_KEYS, key=lambda table: table.value)),
        first=FIRST,
        count=st.integers(2, 6),
    )
    def rows_are_read_one_after_the_other(self, table: Table, first: int, count: int) -> None:
        for key in range(first, first + count):
            assert self.store.row(table, key) == self.expected[table].get(key)

    @invariant()
    def the_rows_are_those_of_the_dict(self) -> None:
        for table in Table:
            assert list(self.store.rows(table)) == sorted(self.expected[table].items())


class MemoryAgainstDict(StoreAgainstDict):
    def __init__(self) -> None:
        super().__init__()
        self.store: MemoryStore = memory_store()

    def reopen(self) -> None:
        self.store.close()
        self.store = self.store.copy()


class SqliteAgainstDict(StoreAgainstDict):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = open_store(Path(self.folder.name, "store.db"))

    def reopen(self) -> None:
        self.store.close()
        self.store = open_store(Path(self.folder.name, "store.db"), create=False)

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


@pytest.mark.parametrize("machine", [MemoryAgainstDict, SqliteAgainstDict])
def test_a_store_is_a_dict(machine: type[StoreAgainstDict]) -> None:
    examples = max(1, settings.default.max_examples // 3)  # each is many commits, each of them synced
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=15))
