"""``msmqwire check``: whether a folder is whole, and the names of what is lost or damaged."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from msmqwire.netware.runtime.administration import attach as attach_netware
from msmqwire.netware.store.tables import NetwareTable, job_key
from msmqwire.netware.store.tables import open_store as open_netware
from msmqwire.qm.runtime.data_folder import DIRECTORY, STORE
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.user_certificates import open_users
from msmqwire.service.store.changes import Changes
from tests.support.qm.damages import HOSTILE_SCHEMAS, with_schema
from tests.support.qm.stores import change, to_version
from tests.support.running import LEDGER, ORDERS, called, options, process, put, recoverable, served
from tests.support.terminal import on_a_terminal


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A folder with ten messages, numbers 1 to 10, and their identifiers."""
    data = tmp_path_factory.mktemp("intact") / "alpha"
    with served(options(data, ORDERS, LEDGER)), attach(data) as local:
        sent = [put(local, ORDERS, *recoverable(b"%d" % n, label=f"order {n}"))[0] for n in range(1, 11)]
    return data, sent


@pytest.fixture
def folder(tmp_path: Path, intact: tuple[Path, list[str]]) -> Path:
    return Path(shutil.copytree(intact[0], tmp_path / "alpha"))


def checked(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The faults of a damaged folder with one store, and the summary."""
    run = called("check", path, "--json")
    *faults, summary = map(json.loads, run.out.splitlines())
    assert (run.status, run.err, summary["faults"]) == (65 if faults else 0, "", len(faults))
    return faults, summary


def test_a_whole_folder_is_left_as_it_was(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    faults, summary = checked(folder)
    assert not faults
    assert summary["store"] == str(folder / STORE)
    assert (summary["version"], summary["unsummed"], summary["served"]) == (9, 0, False)
    assert summary["rows"] > 20
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_each_lost_or_damaged_message_is_named(folder: Path, intact: tuple[Path, list[str]]) -> None:
    change(
        folder / STORE,
        "UPDATE packet SET content = substr(content, 1, 40) WHERE key = 2",
        "DELETE FROM packet WHERE key = 3",
        "DELETE FROM message WHERE key = 4",
        "UPDATE message SET content = content || x'00' WHERE key = 5",
    )
    faults, _ = checked(folder)
    named = {fault["key"]: fault for fault in faults}
    assert {key: (fault["fault"], fault["table"]) for key, fault in named.items()} == {
        2: ("damaged", "packet"),
        3: ("lost", "packet"),
        4: ("lost", "message"),
        5: ("damaged", "message"),
    }
    assert {fault["what"] for fault in faults} == {"message"}
    assert [named[key]["queue"] for key in (2, 3, 4, 5)] == [ORDERS, ORDERS, None, ORDERS]
    assert (named[4]["label"], named[4]["identifier"]) == ("order 4", intact[1][3])
    assert (named[5]["label"], named[5]["identifier"]) == ("order 5", intact[1][4])
    assert named[4]["name"] == f"message 4, {intact[1][3]}, labelled 'order 4'"


def test_a_message_whose_two_rows_are_lost_is_counted(folder: Path) -> None:
    change(folder / STORE, "DELETE FROM packet WHERE key = 3", "DELETE FROM message WHERE key = 3")
    faults, _ = checked(folder)
    assert [fault["why"] for fault in faults] == [
        "the table message has lost 1 of 10 rows",
        "the table packet has lost 1 of 10 rows",
    ]


def test_a_lost_queue_is_named_by_its_messages(folder: Path) -> None:
    change(folder / STORE, "DELETE FROM queue WHERE CAST(content AS TEXT) LIKE '%orders_,%'")
    faults, _ = checked(folder)
    (queue,) = [fault for fault in faults if fault["what"] == "queue"]
    assert "whose messages were sent to DIRECT=OS:alpha" in queue["name"]
    assert "10 messages in it are without a queue" in queue["why"]


def test_a_damaged_queue_is_named(folder: Path) -> None:
    where = "CAST(content AS TEXT) LIKE '%ledger_,%'"
    change(folder / STORE, f"UPDATE queue SET content = content || ' ' WHERE {where}")
    faults, _ = checked(folder)
    assert {fault["what"] for fault in faults} == {"queue"}
    assert LEDGER in {fault["queue"] for fault in faults}


def test_what_is_readable_around_a_damaged_page_is_read(folder: Path) -> None:
    with closing(sqlite3.connect(folder / STORE)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'packet'").fetchone()
    data = bytearray((folder / STORE).read_bytes())
    data[(page - 1) * 4096 : page * 4096] = bytes(4096)
    (folder / STORE).write_bytes(data)
    faults, summary = checked(folder)
    assert "structure" in {fault["fault"] for fault in faults}
    assert {fault["key"] for fault in faults if fault["what"] == "message"} == set(range(1, 11))
    assert summary["rows"] > 10


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" + bytes(100), bytes(4096)])
def test_a_file_of_which_nothing_can_be_read(folder: Path, content: bytes) -> None:
    (folder / STORE).write_bytes(content)
    faults, _ = checked(folder)
    assert [(fault["fault"], fault["what"]) for fault in faults] == [("damaged", "file")]


def test_a_folder_of_an_earlier_version_stays_one(folder: Path) -> None:
    to_version(folder / STORE, 4)
    before = (folder / STORE).read_bytes()
    faults, summary = checked(folder)
    assert not faults
    assert (summary["version"], summary["unsummed"]) == (4, summary["rows"])
    assert (folder / STORE).read_bytes() == before
    change(folder / STORE, "DELETE FROM packet WHERE key = 3")
    faults, _ = checked(folder)
    assert [fault["name"] for fault in faults] == [f"message 3 of {ORDERS}"]


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("name", HOSTILE_SCHEMAS)
def test_nothing_in_the_schema_of_a_store_is_run(folder: Path, name: str, version: int) -> None:
    with_schema(folder / STORE, *HOSTILE_SCHEMAS[name])
    change(folder / STORE, f"PRAGMA user_version = {version}")
    faults, summary = checked(folder)
    named = f"the table {HOSTILE_SCHEMAS[name][0]} is not as it should be"
    assert named in {fault["why"] for fault in faults if fault["fault"] == "structure"}
    assert summary["rows"] < 100


def test_a_folder_is_checked_while_it_is_served(folder: Path) -> None:
    with process(folder) as server, attach(folder) as local:
        put(local, ORDERS, *recoverable(b"later"))
        assert json.loads(called("check", folder, "--stores").out)["served"]
        put(local, ORDERS, *recoverable(b"latest"))
        assert server.process.poll() is None
    assert checked(folder)[1]["served"] is False


def test_the_store_of_a_program_is_checked_alone(folder: Path, tmp_path: Path) -> None:
    path = (folder / STORE).rename(tmp_path / "outbox.msmq")
    assert checked(path)[1]["store"] == str(path)
    change(path, "DELETE FROM packet WHERE key = 3")
    assert len(checked(path)[0]) == 1


def test_the_directory_is_checked(folder: Path) -> None:
    users = open_users(folder, create=True)
    assert users is not None
    users.close()
    run = called("check", folder)
    assert [line["faults"] for line in run.lines] == [0, 0]
    data = bytearray((folder / DIRECTORY).read_bytes())
    data[4096:5000] = bytes(904)
    (folder / DIRECTORY).write_bytes(data)
    run = called("check", folder)
    assert run.status == 65
    assert [json.loads(line)["store"] for line in run.out.splitlines()][1:] == [str(folder / DIRECTORY)] * 2


@pytest.mark.skipif(os.name != "posix", reason="needs pipes")
@pytest.mark.parametrize("name", [STORE, f"{STORE}-wal", f"{STORE}-journal", DIRECTORY])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    run = called("check", folder)
    assert (run.status, json.loads(run.err)["error"]) == (
        74,
        f"{folder / name}: it is a pipe, not a plain file: move it away",
    )


def test_hostile_labels_do_not_reach_the_terminal(folder: Path) -> None:
    with attach(folder) as local:
        put(local, ORDERS, *recoverable(b"", label="\x1b]0;evil\x07\x1b[2J"))
    change(folder / STORE, "DELETE FROM message WHERE key = (SELECT max(key) FROM message)")
    text = on_a_terminal("check", folder, status=65)
    assert "its place in a queue is lost" in text
    assert not {"\x1b]", "\x1b[2J", "\x07"} & {
        text[at : at + size] for at in range(len(text)) for size in (1, 2, 4)
    }


@pytest.mark.parametrize("path, why", [("none", "no such folder"), (".", "no queue manager and no NetWare")])
def test_a_path_without_a_store(tmp_path: Path, path: str, why: str) -> None:
    assert why in called("check", tmp_path / path).error(66)["error"]
    assert list(tmp_path.iterdir()) == []


def test_text_on_a_terminal(folder: Path) -> None:
    assert on_a_terminal("check", folder).rstrip().endswith("rows read")
    change(folder / STORE, "DELETE FROM packet WHERE key = 3")
    text = on_a_terminal("check", folder, status=65)
    assert f"lost: message 3 of {ORDERS}: its content is lost" in text
    assert "1 fault, " in text


def test_jobs_and_queues_of_netware_are_named(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with attach_netware(data, create=True) as local:
        local.call("queue_create", name="LASER", type="print", path="SYS:SYSTEM")
    path = data / "netware.qms"
    with open_netware(path, create=False) as store:
        ((queue, _),) = list(store.rows(NetwareTable.QUEUE))
        assert isinstance(queue, int)
        changes = Changes()
        changes.put(NetwareTable.ORDER, queue, b"[1,2]")
        store.commit(changes)
    faults, summary = checked(data)
    assert summary["store"] == str(path)
    assert [fault["name"] for fault in faults] == ["job 1 of LASER", "job 2 of LASER"]
    change(path, f"DELETE FROM queue WHERE key = {queue}")
    names = [fault["name"] for fault in checked(data)[0]]
    assert names == ["job 1 of LASER", "job 2 of LASER", "queue LASER"]
    change(path, f"INSERT INTO job VALUES ({job_key(queue, 1)}, x'00', 0)")
    assert "job 1 of LASER" in [fault["name"] for fault in checked(data)[0]]
