"""``msmqwire check --accept``: a damaged folder is served again, with everything that was whole."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from msmqwire.errors import StoreDamaged, StoreRefused
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules.message_identity import MESSAGE_ID_ORDINAL
from msmqwire.qm.rules.stored_rows import SEQUENTIAL_ID
from msmqwire.qm.runtime.data_folder import STORE
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.store import open_store
from msmqwire.service.store import salvage
from tests.support.qm.damages import DAMAGES, HOSTILE_SCHEMAS, damaged, whole_rows, with_schema
from tests.support.qm.stores import change, to_version
from tests.support.running import (
    LEDGER,
    ORDERS,
    Run,
    called,
    listed,
    options,
    peeked,
    process,
    put,
    recoverable,
    served,
)
from tests.support.terminal import on_a_terminal, terminal

COUNT = 40
BODIES = {number: b"%d " % number * (number * 97 % 1500 + 1) for number in range(1, COUNT + 1)}
"""The bodies of the messages by their numbers: some take pages of their own."""


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A folder with 40 messages, and its store when it had 20."""
    data = tmp_path_factory.mktemp("intact") / "alpha"
    with served(options(data, ORDERS, LEDGER)), attach(data) as local:
        for number in range(1, COUNT // 2 + 1):
            put(local, ORDERS, *recoverable(BODIES[number]))
    older = (data / STORE).read_bytes()
    with attach(data) as local:
        for number in range(COUNT // 2 + 1, COUNT + 1):
            put(local, ORDERS, *recoverable(BODIES[number]))
    return data, older


@pytest.fixture
def folder(tmp_path: Path, intact: tuple[Path, bytes]) -> Path:
    return Path(shutil.copytree(intact[0], tmp_path / "alpha"))


def accepted(path: Path) -> list[dict[str, Any]]:
    """Accept the loss of a folder with one store; return the lines, the last of which is of a whole store."""
    run = called("check", path, "--accept", "--yes")
    assert (run.status, run.err) == (0, ""), run
    lines: list[dict[str, Any]] = run.lines
    assert lines[-1]["faults"] == 0
    assert called("check", path).status == 0
    return lines


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", DAMAGES)
def test_all_that_was_whole_is_received(
    folder: Path, intact: tuple[Path, bytes], kind: str, seed: int, tmp_path: Path
) -> None:
    data, older = intact
    rng = random.Random(f"{kind} {seed}")
    damage = damaged(kind, (data / STORE).read_bytes(), older, rng)
    (folder / STORE).write_bytes(damage)
    (tmp_path / "damage").write_bytes(damage)
    run = called("check", folder, "--accept", "--yes")
    if run.status:
        assert "nothing of it can be read" in run.error(65)["error"]
        assert (folder / STORE).read_bytes() == damage
        assert damage[:4096] != (data / STORE).read_bytes()[:4096]
        return
    assert called("check", folder).lines[-1]["faults"] == 0
    whole = whole_rows(tmp_path / "damage", data / STORE, BODIES, "message", "packet")
    with attach(folder) as local:
        queues = [queue["queue"] for queue in local.call("list")["queues"]]
    received = [body for queue in queues for body in peeked(folder, queue)]
    assert {BODIES[number] for number in whole} <= set(received) <= set(BODIES.values())
    assert len(received) == len(set(received))


def test_a_server_starts_on_what_is_left(folder: Path) -> None:
    change(folder / STORE, "UPDATE packet SET content = x'00' WHERE key = 2")
    change(folder / STORE, "DELETE FROM message WHERE key = 3")
    with pytest.raises(StoreDamaged, match=r"go on without what is lost: msmqwire check .* --accept"):
        open_store(folder / STORE)
    accepted(folder)
    with process(folder), attach(folder) as local:
        put(local, ORDERS, *recoverable(b"new"))
        assert peeked(folder, ORDERS) == [BODIES[number] for number in BODIES if number not in (2, 3)] + [
            b"new"
        ]


def test_a_whole_store_is_left_alone(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert called("check", folder, "--accept").one["faults"] == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_each_copy_of_a_damaged_store_is_kept(folder: Path) -> None:
    before_all = {path.name for path in folder.iterdir()}
    old = os.umask(0)
    try:
        for number in (1, 2):
            change(folder / STORE, f"DELETE FROM packet WHERE key = {number}")
            before = (folder / STORE).read_bytes()
            line = next(line for line in accepted(folder) if "accepted" in line)
            copy = folder / f"{STORE}.damaged-{number}"
            assert (line["accepted"], line["copy"]) == (1, str(copy))
            assert copy.read_bytes() == before
            assert stat.S_IMODE(copy.stat().st_mode) == 0o600
            assert stat.S_IMODE((folder / STORE).stat().st_mode) == 0o600
    finally:
        os.umask(old)
    copy = called("check", folder / f"{STORE}.damaged-1")
    assert (copy.status, json.loads(copy.out.splitlines()[0])["key"]) == (65, 1)
    assert {path.name for path in folder.iterdir()} - before_all == {
        f"{STORE}.damaged-1", f"{STORE}.damaged-1.lock", f"{STORE}.damaged-2"
    }  # fmt: skip


def test_the_log_of_a_killed_server_is_kept_and_read(folder: Path) -> None:
    with process(folder) as server, attach(folder) as local:
        put(local, ORDERS, *recoverable(b"in the log"))
        shutil.copytree(folder, folder.with_name("killed"), ignore=shutil.ignore_patterns("control*"))
        server.process.kill()
        server.process.wait()
    killed = folder.with_name("killed")
    log = (killed / f"{STORE}-wal").read_bytes()
    assert log
    data = bytearray((killed / STORE).read_bytes())
    page = data.rindex(BODIES[2][:40]) // 4096
    data[page * 4096 : page * 4096 + 4096] = bytes(4096)
    (killed / STORE).write_bytes(data)
    accepted(killed)
    assert (killed / f"{STORE}.damaged-1").read_bytes() == data
    assert (killed / f"{STORE}.damaged-1-wal").read_bytes() == log
    assert not (killed / f"{STORE}-wal").exists()
    received = peeked(killed, ORDERS)
    assert received[-1] == b"in the log"
    assert COUNT - 10 < len(received) < COUNT + 1


def test_a_served_folder_is_refused(folder: Path) -> None:
    change(folder / STORE, "UPDATE packet SET content = x'00' WHERE key = 2")
    with closing(sqlite3.connect(folder / f"{STORE}.lock", isolation_level=None)) as server:
        server.execute("BEGIN EXCLUSIVE")
        before = (folder / STORE).read_bytes()
        refused = called("check", folder, "--accept", "--yes").error(69)
    assert "a server has the store open; stop it first" in refused["error"]
    assert (folder / STORE).read_bytes() == before
    assert not list(folder.glob("*damaged*"))


def test_nothing_is_accepted_unasked(folder: Path) -> None:
    change(folder / STORE, "DELETE FROM packet WHERE key = 2")
    before = (folder / STORE).read_bytes()
    run = called("check", folder, "--accept")
    assert run.status == 2
    assert json.loads(run.err)["error"] == f"{folder / STORE} has 1 fault; --yes goes on without what is lost"
    assert called("check", folder, "--yes").error(2)["path"] == "--yes"
    question = "and go on without what is lost? [y/N] "
    for answer in ("n\n", "\n", "\x04"):
        with terminal("check", folder, "--accept") as run_there:
            run_there.shown(question)
            run_there.type(answer)
            assert run_there.ended() == 1
        assert (folder / STORE).read_bytes() == before
    with terminal("check", folder, "--accept") as run_there:
        run_there.shown(question)
        run_there.type("y\n")
        assert run_there.ended() == 0
        text = run_there.shown()
    assert f"lost: message 2 of {ORDERS}: its content is lost" in text
    assert "1 fault accepted, " in text
    assert f"the damaged store is {folder / STORE}.damaged-1" in text
    assert "whole, " in text.splitlines()[-1]


def test_a_report_on_a_terminal_names_the_next_step(folder: Path) -> None:
    change(folder / STORE, "DELETE FROM packet WHERE key = 2")
    assert f"msmqwire check {folder} --accept" in on_a_terminal("check", folder, status=65)


@pytest.mark.parametrize("lost", ["%orders_,%", "%"])
def test_a_lost_queue_is_made_again(folder: Path, lost: str) -> None:
    before = {name: queue["journal"] for name, queue in listed(folder).items()}
    change(folder / STORE, f"DELETE FROM queue WHERE CAST(content AS TEXT) LIKE '{lost}'")
    repaired = [line for line in accepted(folder) if line.get("fault") == "repaired"]
    assert repaired[0]["name"] == f"queue {ORDERS}"
    assert "made again with 40 messages" in repaired[0]["why"]
    assert peeked(folder, ORDERS) == list(BODIES.values())
    assert ORDERS in before
    with attach(folder) as local:  # its journal is there too
        local.call("set", queue=ORDERS, journal=True)
    assert called("receive", ORDERS, "--data", folder).status == 0
    assert listed(folder)[ORDERS]["journal_messages"] == 1


def test_a_queue_whose_name_is_not_known_is_made_again(folder: Path) -> None:
    change(
        folder / STORE,
        "UPDATE message SET sum = NULL",
        "UPDATE message SET content = x'63' || substr(content, 2)",
    )
    with closing(sqlite3.connect(folder / STORE)) as db:
        db.execute("UPDATE row_count SET content = x'00' WHERE CAST(key AS TEXT) = 'message'")
        db.commit()
    accepted(folder)
    assert peeked(folder, r"private$\recovered-99") == list(BODIES.values())
    assert peeked(folder, ORDERS) == []


def test_a_lost_journal_is_made_again(folder: Path) -> None:
    change(folder / STORE, "DELETE FROM queue WHERE CAST(content AS TEXT) LIKE '%journal_of_: 6%'")
    line = next(line for line in accepted(folder) if line.get("fault") == "repaired")
    assert (line["name"], line["why"]) == (f"queue {ORDERS};journal", "it is made again, empty")
    with attach(folder) as local:
        local.call("set", queue=ORDERS, journal=True)
    assert called("receive", ORDERS, "--data", folder).status == 0
    assert listed(folder)[ORDERS]["journal_messages"] == 1


def test_no_number_is_used_again(folder: Path) -> None:
    change(folder / STORE, "DELETE FROM meta WHERE CAST(key AS TEXT) IN ('SequentialID', 'MessageIdOrdinal')")
    accepted(folder)
    with open_store(folder / STORE) as store:
        for key in (SEQUENTIAL_ID, MESSAGE_ID_ORDINAL):
            assert int.from_bytes(store.row(Table.META, key) or b"", "little") > COUNT + 1_000_000
    with attach(folder) as local:
        (new,) = put(local, ORDERS, *recoverable(b"new"))
    assert int(new.rpartition("\\")[2]) > COUNT + 1_000_000
    assert peeked(folder, ORDERS) == [*BODIES.values(), b"new"]


def test_a_store_of_an_earlier_version_stays_one(folder: Path) -> None:
    to_version(folder / STORE, 4)
    change(folder / STORE, "DELETE FROM packet WHERE key = 3", "DELETE FROM queue WHERE key = 6")
    accepted(folder)
    with closing(sqlite3.connect(folder / STORE)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (4,)
    assert peeked(folder, ORDERS) == [BODIES[number] for number in BODIES if number != 3]


def test_no_statement_of_a_store_is_run(folder: Path, tmp_path: Path) -> None:
    to_version(folder / STORE, 4)
    planted = tmp_path / "planted"
    with_schema(folder / STORE, "meta", f"ATTACH '{planted}' AS other")
    with_schema(folder / STORE, "queue", "CREATE TABLE other.planted AS SELECT 1 AS one")
    accepted(folder)
    assert not planted.exists()


@pytest.mark.parametrize("name", HOSTILE_SCHEMAS)
def test_a_hostile_schema_is_replaced(folder: Path, name: str) -> None:
    with_schema(folder / STORE, *HOSTILE_SCHEMAS[name])
    accepted(folder)
    open_store(folder / STORE).close()


def test_a_full_disk_leaves_the_store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(folder / STORE, "DELETE FROM packet WHERE key = 3")
    before = (folder / STORE).read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("msmqwire.service.store.salvage.os.fsync", full)
    with pytest.raises(StoreRefused, match="no copy of the store can be kept: No space left on device"):
        salvage.keep_copy(folder / STORE)
    assert "No space left" in _error(called("check", folder, "--accept", "--yes"), 74)
    assert (folder / STORE).read_bytes() == before
    assert not list(folder.glob("*damaged*"))


def _error(run: Run, status: int) -> str:
    assert run.status == status
    return str(json.loads(run.err.splitlines()[-1])["error"])


@pytest.mark.parametrize("keys", ["numbers", "bytes"])
def test_rows_between_damaged_pages_are_read(tmp_path: Path, keys: str) -> None:
    """Two damaged pages lie far apart; nothing else is lost."""
    from msmqwire.service.store.around_damage import all_rows

    path, of_bytes = tmp_path / "db", keys == "bytes"
    kind, end = ("BLOB", " WITHOUT ROWID") if of_bytes else ("INTEGER", "")
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"CREATE TABLE t (key {kind} PRIMARY KEY, content BLOB){end}")
        names: list[Any] = [random.Random(n).randbytes(20) if of_bytes else n * 7 for n in range(5000)]
        rows = [(name, b"%d" % n * 10) for n, name in enumerate(names)]
        db.executemany("INSERT INTO t VALUES (?, ?)", rows)
        db.commit()
    data = bytearray(path.read_bytes())
    leaf = 0x0A if of_bytes else 0x0D
    leaves = [at for at in range(4096, len(data), 4096) if data[at] == leaf]
    hurt = [leaves[0], leaves[len(leaves) // 3], leaves[len(leaves) // 2], leaves[-1]]
    on_them = sum(int.from_bytes(data[at + 3 : at + 5], "big") for at in hurt)
    for at in hurt:
        data[at : at + 4096] = bytes(4096)
    path.write_bytes(data)
    with closing(sqlite3.connect(path)) as db:
        found = [row[0] for row in all_rows(db, "t", "key", of_bytes=of_bytes)]
    assert len(found) == len(set(found)) == len(names) - on_them
    assert set(found) < set(names)
