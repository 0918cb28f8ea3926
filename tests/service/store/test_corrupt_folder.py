"""Files of a folder with wrong bytes, or cut off: told as damage, with a status, and left as they are."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from msmqwire.constants import HResult
from msmqwire.errors import QueueError, StoreDamaged, StoreError
from msmqwire.qm.model.tables import Table
from msmqwire.qm.runtime.data_folder import CONTROL, STORE
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.store import open_store
from msmqwire.service.store.changes import Changes
from tests.support.running import (
    LEDGER,
    ORDERS,
    bodies,
    called,
    command,
    listed,
    message,
    options,
    peeked,
    process,
    put,
    recoverable,
    served,
    until,
)

TO_ELSEWHERE = r"DIRECT=TCP:127.0.0.99\private$\x"
BODIES = [b"%d" % number * 50 for number in range(60)]
SERVE = ("--listen", "127.0.0.31:0", "--ping", "off")


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store with messages of all kinds."""
    data = tmp_path_factory.mktemp("intact") / "alpha"
    with served(options(data, ORDERS, f"{LEDGER};transactional")), attach(data) as local:
        put(local, ORDERS, *recoverable(*BODIES))
        transactional = [message(b"t", delivery="transactional") for _ in range(5)]
        put(local, LEDGER, *transactional)
        local.call("send", to=TO_ELSEWHERE, messages=transactional)
    return (data / STORE).read_bytes()


@pytest.fixture
def folder(data: Path, intact: bytes) -> Path:
    data.mkdir(mode=0o700)
    (data / STORE).write_bytes(intact)
    return data


@pytest.mark.parametrize("seed", range(8))
def test_wrong_bytes_in_the_store_are_damage_or_harmless(folder: Path, intact: bytes, seed: int) -> None:
    """No other exception ever; what can be read is what was there."""
    rng = random.Random(seed)
    for _ in range(12):
        data = bytearray(intact)
        data[rng.randrange(len(data))] ^= rng.choice((0xFF, 1 << rng.randrange(8)))
        (folder / STORE).write_bytes(data)
        try:
            with attach(folder) as local:
                found = bodies(local.call("peek", queue=ORDERS, count=1000)["messages"])
                local.call("peek", queue=LEDGER, count=1000)
                local.call("peek", queue=TO_ELSEWHERE, count=1000)
                local.call("list")
        except StoreError:
            continue
        assert found == BODIES


def changed(folder: Path, table: str, content: str, where: str = "TRUE") -> None:
    """Let rows of a table have another content, an expression of SQL, as if it had been written so."""
    with closing(sqlite3.connect(folder / STORE)) as db:
        rows = db.execute(f"SELECT key, CAST({content} AS BLOB) FROM {table} WHERE {where}").fetchall()
    changes = Changes()
    for key, row in rows:
        changes.put(Table(table), key, row)
    with open_store(folder / STORE) as store:
        store.commit(changes)


@pytest.mark.parametrize(
    "table, content",
    [
        ("queue", "x'00'"),
        ("queue", "replace(content, 'scope', 'scopf')"),
        ("queue", "replace(content, 'journal', 'jurnal')"),
        ("queue", "'[]'"),
        ("meta", "'{'"),
        ("meta", "replace(content, 'alpha', 'al' || char(0) || 'ha')"),
        ("message", "substr(content, 1, 9)"),
        ("message", "x'ffffffff' || substr(content, 5)"),
    ],
)
def test_rows_that_nobody_has_written_are_damage(folder: Path, table: str, content: str) -> None:
    changed(folder, table, content)
    before = (folder / STORE).read_bytes()
    error = command("serve", "--data", folder, *SERVE).error(65)
    assert error["error"].startswith(f"{folder / STORE}: its rows can't be read: ")
    assert (folder / STORE).read_bytes() == before
    with pytest.raises(StoreDamaged):
        attach(folder)


@pytest.mark.parametrize("content", ["x'00'", "substr(content, 1, 100)", "content || x'00'"])
def test_an_unreadable_message_is_set_aside_when_read(folder: Path, content: str) -> None:
    """It is named in the log, one reader gets an error, and others get the messages after it."""
    changed(folder, "packet", content, "key = 7")
    with process(folder) as server, attach(folder) as local:
        first = local.call("receive", queue=ORDERS, count=6)["messages"]
        with pytest.raises(QueueError, match="a message is damaged on the disk and set aside") as caught:
            local.call("receive", queue=ORDERS, count=1)
        assert caught.value.hresult == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
        rest = local.call("receive", queue=ORDERS, count=1000)["messages"]
        assert bodies(first + rest) == BODIES[:6] + BODIES[7:]
        until(lambda: "damaged: " in server.log_text(), "the line, which the thread of the log writes")
        (line,) = [line["event"] for line in server.logs() if "damaged: " in str(line)]
        assert f"damaged: message 7 of alpha\\{ORDERS} is set aside" in line
        local.call("purge", queue=ORDERS)
        put(local, ORDERS, *recoverable(b"later"))
        assert bodies(local.call("receive", queue=ORDERS, count=1000)["messages"]) == [b"later"]


def test_a_waiting_reader_is_not_given_an_unreadable_message(folder: Path) -> None:
    changed(folder, "packet", "x'00'", "key = 7")
    with process(folder) as server, attach(folder) as local, attach(folder) as other:
        held = local.call("receive", queue=ORDERS, count=6)["messages"]
        with pytest.raises(QueueError, match="set aside"):
            local.call("peek", queue=ORDERS, count=1)
        assert len(other.call("receive", queue=ORDERS, count=1000)["messages"]) == 53
        local.call("end", back=[message["receipt"] for message in held])
        again = local.call("receive", queue=ORDERS, count=1000, timeout=5)["messages"]
        assert bodies(again) == BODIES[:6]
        assert server.process.poll() is None


def test_an_unreadable_message_to_be_sent_refuses_the_start(folder: Path) -> None:
    with open_store(folder / STORE) as store:
        number = max(key for key, _ in store.rows(Table.MESSAGE))
    changed(folder, "packet", "x'00'", f"key = {number}")
    error = command("serve", "--data", folder, *SERVE).error(65)
    assert f"message {number} can't be read" in error["error"]


def test_a_message_without_its_packet_is_reported(folder: Path) -> None:
    with open_store(folder / STORE) as store:
        changes = Changes()
        changes.delete(Table.PACKET, 7)
        store.commit(changes)
    for command_name in ("peek", "receive"):
        run = called(command_name, ORDERS, "--data", folder, "--count", "100")
        assert (run.status, len(run.out.splitlines())) == (65, 6)
        assert "a message is damaged on the disk and set aside" in run.err


@pytest.mark.parametrize("table", ["queue", "message", "packet", "meta"])
def test_a_lost_row_is_reported_before_the_server_is_ready(folder: Path, table: str) -> None:
    with closing(sqlite3.connect(folder / STORE)) as db:
        db.execute(f"DELETE FROM {table} WHERE key = (SELECT max(key) FROM {table})")
        db.commit()
    error = command("serve", "--data", folder, *SERVE).error(65)
    assert f"the table {table} has lost 1 of " in error["error"]
    assert f"`msmqwire check {folder}` names what is lost" in error["error"]


@pytest.mark.parametrize("suffix", ["", "-wal", ".lock", ".new", ".reserve"])
@pytest.mark.parametrize("content", [b"", b"x", b"\0" * 5000, random.Random(1).randbytes(70_000)])
def test_other_store_files_are_refused_or_ignored(folder: Path, suffix: str, content: bytes) -> None:
    (folder / (STORE + suffix)).write_bytes(content)
    if not suffix or (suffix == ".lock" and len(content) > 1):
        with pytest.raises(StoreError, match=suffix or STORE):
            attach(folder)
    else:
        assert peeked(folder, ORDERS) == BODIES


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"path": 7}', '{"path": "/", "port": 0, "token": ""}', "\0"]
)
def test_an_address_that_is_none_is_none(folder: Path, content: str) -> None:
    (folder / CONTROL).write_text(content)
    assert listed(folder)[ORDERS]["messages"] == len(BODIES)
    with served(options(folder)):
        with attach(folder) as local:
            assert local.served
        assert peeked(folder, ORDERS) == BODIES


def test_a_command_says_it_in_one_line(folder: Path, intact: bytes) -> None:
    (folder / STORE).write_bytes(intact[: len(intact) // 2])
    for arguments in (("serve", *SERVE), ("receive", ORDERS), ("queue", "list")):
        error = command(*arguments, "--data", folder).error(65)
        assert error["error"].startswith(f"{folder / STORE}: ")


def test_a_log_with_a_wrong_byte_is_reported(data: Path) -> None:
    with process(data, "--queue", ORDERS) as server:
        with attach(data) as local:
            for body in BODIES:
                put(local, ORDERS, *recoverable(body))
        server.kill()
    log = bytearray((data / f"{STORE}-wal").read_bytes())
    log[5000] ^= 1
    (data / f"{STORE}-wal").write_bytes(log)
    error = command("serve", "--data", data, *SERVE).error(65)
    assert "a part of the log (-wal) is overwritten" in error["error"]
    log[5000] ^= 1
    (data / f"{STORE}-wal").write_bytes(log)
    assert peeked(data, ORDERS) == BODIES
    assert json.loads(command("peek", ORDERS, "--data", data).out)["label"] in (None, "")
