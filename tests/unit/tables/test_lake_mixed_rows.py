"""Rows that wait for others of their partitions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from msmqwire.tables.lake import mixed_rows
from msmqwire.tables.lake.mixed_rows import MixedRows

ROW_BYTES = 24


def batch(count: int, numbers: np.ndarray, rng: np.random.Generator) -> tuple[pa.RecordBatch, np.ndarray]:
    times = rng.integers(0, 1000, count)
    columns = {"number": numbers, "time": times, "id": rng.integers(0, 1 << 60, count)}
    return pa.RecordBatch.from_pydict(columns), times


def allocated() -> int:
    pools = {pool.backend_name: pool for pool in (pa.default_memory_pool(), pa.system_memory_pool())}
    return sum(pool.bytes_allocated() for pool in pools.values())


def test_each_row_comes_once_with_its_partition_in_time_order(monkeypatch):
    monkeypatch.setattr(mixed_rows, "BYTES_MAX", 300 * ROW_BYTES)
    monkeypatch.setattr(mixed_rows, "ENOUGH_BYTES", 60 * ROW_BYTES)
    rng, mixed = np.random.default_rng(1), MixedRows()
    added, found, sizes = Counter[int](), Counter[int](), list[int]()
    for _ in range(40):
        numbers = np.where(rng.random(100) < 0.7, 3, rng.integers(0, 30, 100))
        rows, times = batch(100, numbers, rng)
        added.update(rows.column("id").to_pylist())
        for number, taken, _, taken_times in mixed.add(rows, times, numbers):
            assert set(taken.column("number").to_pylist()) == {number}
            assert taken.column("time").to_pylist() == taken_times.tolist()
            found.update(taken.column("id").to_pylist())
            if number == 3:  # enough in each batch
                assert taken_times.tolist() == sorted(times[numbers == 3].tolist())
            else:
                sizes.append(taken.num_rows)
        assert not found - added
        assert added.total() - found.total() <= 300
    assert np.mean(sizes) > 5  # of a batch it has one
    for _, taken, _, _ in mixed.take():
        found.update(taken.column("id").to_pylist())
    assert found == added
    assert list(mixed.take()) == []


def test_what_waits_keeps_no_memory_of_what_does_not(monkeypatch):
    """One row of each batch waits."""
    monkeypatch.setattr(mixed_rows, "ENOUGH_BYTES", 60 * ROW_BYTES)
    rng, mixed = np.random.default_rng(1), MixedRows()
    before = allocated()
    for _ in range(50):
        rows, times = batch(100_000, np.append(np.zeros(99_999, np.int64), 1), rng)
        assert [number for number, *_ in mixed.add(rows, times, rows.column("number").to_numpy())] == [0]
    del rows
    assert allocated() - before < 10 * 100_000 * ROW_BYTES
    assert sum(taken.num_rows for _, taken, _, _ in mixed.take()) == 50
