"""A log of a store with a wrong byte is refused, not cut short, if what follows shows that it was durable."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from msmqwire.errors import StoreDamaged
from msmqwire.qm.store import open_store
from msmqwire.service.store.log_check import checksum, lost_transactions
from msmqwire.service.store.sqlite import PAGE_SIZE
from tests.support.qm.stores import after, everything, last_step, step

FRAME = 24 + PAGE_SIZE
STEPS = 12


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """The folder of a store that was not closed, and the sizes of its log after each step."""
    folder = tmp_path_factory.mktemp("log")
    ends = []
    with open_store(folder / "open.db") as store:
        for number in range(1, STEPS + 1):
            store.commit(step(number))
            ends.append((folder / "open.db-wal").stat().st_size)
        (folder / "store.db").write_bytes((folder / "open.db").read_bytes())
        (folder / "store.db-wal").write_bytes((folder / "open.db-wal").read_bytes())
    return folder, ends


def changed(killed: Path, tmp_path: Path, at: int, size: int = 1) -> Path:
    """A copy of the store whose log has other bytes at an offset."""
    for name in ("store.db", "store.db-wal"):
        shutil.copy(killed / name, tmp_path / name)
    with (tmp_path / "store.db-wal").open("r+b") as file:
        file.seek(at)
        before = file.read(size)
        file.seek(at)
        file.write(bytes(byte ^ 0xFF for byte in before))
    return tmp_path / "store.db"


def slow_checksum(seed: tuple[int, int], data: bytes) -> tuple[int, int]:
    """As the documentation of the format has it."""
    first, second = seed
    for at in range(0, len(data), 8):
        first = (first + int.from_bytes(data[at : at + 4], "little") + second) & 0xFFFFFFFF
        second = (second + int.from_bytes(data[at + 4 : at + 8], "little") + first) & 0xFFFFFFFF
    return first, second


@pytest.mark.parametrize("size", [8, 24, 1024, PAGE_SIZE])
def test_the_checksum_is_that_of_the_format(size: int) -> None:
    rng = random.Random(1801)
    for _ in range(3):
        data, seed = rng.randbytes(size), (rng.getrandbits(32), rng.getrandbits(32))
        assert checksum(seed, data, "<") == slow_checksum(seed, data)


def test_an_intact_log_has_lost_nothing(killed: tuple[Path, list[int]], tmp_path: Path) -> None:
    assert lost_transactions(killed[0] / "store.db-wal", PAGE_SIZE) == 0
    assert lost_transactions(tmp_path / "missing", PAGE_SIZE) == 0
    (tmp_path / "empty").touch()
    assert lost_transactions(tmp_path / "empty", PAGE_SIZE) == 0


@pytest.mark.parametrize(
    "at", [0, 8, 16, 24, 31, 32, 36, 40, 48, 56, 3000, FRAME + 31, FRAME + 32, FRAME + 90]
)
def test_a_wrong_byte_before_durable_transactions_is_damage(
    killed: tuple[Path, list[int]], tmp_path: Path, at: int
) -> None:
    path = changed(killed[0], tmp_path, at)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for _ in range(2):
        with pytest.raises(StoreDamaged, match=r"of the log \(-wal\)"):
            open_store(path)
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_a_wrong_byte_is_damage_unless_in_the_last_transactions(
    killed: tuple[Path, list[int]], tmp_path: Path
) -> None:
    folder, ends = killed
    rng = random.Random(1801)
    for at in sorted(rng.sample(range(ends[-1]), 80)):
        path = changed(folder, tmp_path, at)
        index = sum(end <= at for end in ends)  # of the step whose frames are hit
        try:
            with open_store(path) as store:
                # the last one may have been cut off by a power failure, and its predecessor's frames too
                assert last_step(store) >= STEPS - 1
                assert everything(store) == after(last_step(store))
                assert index >= STEPS - 1
        except StoreDamaged:
            assert index < STEPS
        for left in tmp_path.iterdir():
            left.unlink()


def test_frames_of_an_earlier_log_are_none_of_the_present_one(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_store(path) as store:
        for number in range(1, 10):
            store.commit(step(number))
        store._writer.execute("PRAGMA wal_checkpoint(RESTART)")
        for number in range(10, 13):
            store.commit(step(number))
        log = path.with_name("store.db-wal")
        assert lost_transactions(log, PAGE_SIZE) == 0
        data = bytearray(log.read_bytes())
    copy = tmp_path / "copy-wal"
    data[32 + 24] ^= 1
    copy.write_bytes(data)
    assert lost_transactions(copy, PAGE_SIZE) == 2
