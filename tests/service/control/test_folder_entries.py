"""Entries of a data folder, whatever their names: ours, plain files, for nobody else to write; or refused."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from msmqwire.errors import StoreRefused
from msmqwire.netware.runtime.folder import NetwareFolder
from msmqwire.qm.runtime.console import ConsoleOptions
from msmqwire.qm.runtime.data_folder import STORE, DataFolder
from msmqwire.qm.runtime.folder import default_name
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.store import open_store
from msmqwire.service.folder import ControlAddress
from tests.support.running import ADDRESS, ORDERS, called, options, peeked, put, recoverable, served

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions of Unix")
needs_root = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs root")
STRANGER = 4712
TO = rf"DIRECT=OS:.\{ORDERS}"
GUESTS = (
    "queues.msmq-journal",
    "queues.msmq-wal",
    "queues.msmq-shm",
    "queues.msmq.lock-journal",
    "queues.msmq.lock-wal",
    "directory.msmq-journal",
    "directory.msmq-wal",
    "directory.msmq-shm",
    "keys.lock",
    "keys.lock-journal",
    "netware.qms-journal",
    "netware.qms.lock",
    "console-token",
    "volumes",
    "README",
)


@pytest.fixture
def folder(data: Path) -> Path:
    """A data folder with a message, and no server."""
    with attach(data, create=True) as local:
        local.call("create", queue=ORDERS)
        put(local, ORDERS, *recoverable(b"honest"), computer=".")
    return data


def refusal(folder: Path) -> StoreRefused:
    """Return how a server refuses a folder, as both kinds and the commands do."""
    refusals = []
    for open_ in (
        DataFolder(folder).create,
        NetwareFolder(folder).create,
        lambda: attach(folder).close(),
        lambda: DataFolder(folder).open_store(create=False).close(),
    ):
        with pytest.raises(StoreRefused) as caught:
            open_()
        refusals.append(caught.value)
    assert len(set(map(str, refusals))) == 1
    return refusals[0]


def assert_opened(folder: Path) -> None:
    assert peeked(folder, ORDERS) == [b"honest"]


@needs_root
@pytest.mark.parametrize("name", GUESTS)
def test_an_entry_of_another_user_is_refused_by_name(folder: Path, name: str) -> None:
    (folder / name).touch()
    os.chown(folder / name, STRANGER, STRANGER)
    error = refusal(folder)
    assert error.file == str(folder / name)
    assert f"another user, of number {STRANGER}: move it away" in error.why
    (folder / name).unlink()
    assert_opened(folder)


@needs_root
def test_a_planted_journal_changes_no_message(folder: Path, tmp_path: Path) -> None:
    """SQLite plays back a hot journal beside any store that it opens."""
    store, copy = folder / STORE, tmp_path / "copy"
    shutil.copy(store, copy)
    with closing(sqlite3.connect(copy)) as db:  # in the mode of a journal: its pages are those of before
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("BEGIN")
        db.execute("DELETE FROM message")
        db.execute("PRAGMA cache_spill = 1")
        before = store.read_bytes()
        shutil.copy(f"{copy}-journal", f"{store}-journal")
        db.execute("ROLLBACK")
    os.chown(f"{store}-journal", STRANGER, STRANGER)
    assert refusal(folder).file == f"{store}-journal"
    assert store.read_bytes() == before
    Path(f"{store}-journal").unlink()
    assert_opened(folder)


def a_link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def a_pipe(path: Path) -> None:
    os.mkfifo(path, 0o600)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def writable(path: Path) -> None:
    path.touch()
    path.chmod(0o646)


def twice(path: Path) -> None:
    (path.parent.parent / "elsewhere").touch(0o600)
    os.link(path.parent.parent / "elsewhere", path)


@pytest.mark.parametrize("name", ["keys.json", "queues.msmq-journal", "control", "README"])
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (a_link, "it is a link, not a plain file: move it away"),
        (a_pipe, "it is a pipe, not a plain file: move it away"),
        (a_socket, "it is a socket, not a plain file: move it away"),
        (writable, "it has the mode 0646: other users may write it; use chmod go-w {}"),
        (twice, "it has 2 names, hard links: move it away, or put a copy in its place"),
    ],
)
def test_what_is_no_plain_file_of_ours_is_refused(
    folder: Path, make: Callable[[Path], None], why: str, name: str
) -> None:
    make(folder / name)
    error = refusal(folder)
    assert (error.file, error.why) == (str(folder / name), why.format(folder / name))
    (folder / name).unlink()
    assert_opened(folder)


@needs_root
def test_a_device_is_refused(folder: Path) -> None:
    try:
        os.mknod(folder / "queues.msmq-shm", 0o020600, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("no devices can be made here")
    assert "it is a device" in refusal(folder).why


def test_innocent_entries_are_left_alone(folder: Path) -> None:
    """Notes, folders that are never opened, and sockets of other services."""
    (folder / "README").write_text("ours")
    (folder / "README~").write_text("ours")
    (folder / ".DS_Store").write_bytes(b"\0")
    (folder / "lost+found").mkdir(0o700)
    a_socket(folder / "netware-control.sock")
    with served(options(folder, name=default_name())):
        assert_opened(folder)
    assert_opened(folder)
    assert (folder / "README").read_text() == "ours"


def test_the_others_are_counted(folder: Path) -> None:
    for name in ("a", "b", "c"):
        writable(folder / name)
    error = refusal(folder)
    assert error.file == str(folder / "a")
    assert error.why.endswith("(and 2 more entries are not safe)")


def test_a_group_of_one_user_is_that_user(folder: Path) -> None:
    (folder / "README").touch()
    (folder / "README").chmod(0o664)
    if (folder / "README").stat().st_gid in (0, os.geteuid()):
        assert_opened(folder)
    else:
        assert "it has the mode 0664" in refusal(folder).why


@needs_root
def test_a_group_of_several_users_is_not(folder: Path) -> None:
    (folder / "README").touch()
    os.chown(folder / "README", 0, STRANGER)
    (folder / "README").chmod(0o664)
    assert "use chmod go-w" in refusal(folder).why


@needs_root
def test_a_volume_of_root_may_be_its_groups(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As containers get them: the folder of root, its files of the group that may write there anyway."""
    data.mkdir()
    os.chown(data, 0, STRANGER)
    data.chmod(0o2775)
    (data / STORE).touch()
    os.chown(data / STORE, STRANGER + 1, STRANGER)
    (data / STORE).chmod(0o660)
    (data / "other").touch()
    os.chown(data / "other", STRANGER + 1, STRANGER + 2)
    (data / "other").chmod(0o660)
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER + 1)
    with pytest.raises(StoreRefused, match="it has the mode 0660") as caught:
        DataFolder(data).secure()
    assert caught.value.file == str(data / "other")
    (data / "other").unlink()
    DataFolder(data).secure()


@needs_root
def test_root_does_not_work_in_the_folder_of_another_user(folder: Path) -> None:
    """Links there would lead root wherever their maker likes."""
    os.chown(folder, STRANGER, STRANGER)
    error = refusal(folder)
    assert (
        error.why == f"the folder belongs to another user, of number {STRANGER}: run the command as that user"
    )


@needs_root
def test_root_uses_the_server_of_another_user(folder: Path) -> None:
    with served(options(folder, name=default_name())):
        for path in (folder, *folder.iterdir()):
            os.chown(path, STRANGER, STRANGER)
        with attach(folder) as local:
            assert local.served
        assert_opened(folder)
        for path in (folder, *folder.iterdir()):
            os.chown(path, 0, 0)


@needs_root
def test_an_address_of_another_user_is_not_believed(folder: Path) -> None:
    """His server would be given the messages."""
    (folder / "control").write_text(json.dumps({"path": "/tmp/his.sock", "port": 0, "token": ""}))
    os.chown(folder / "control", STRANGER, STRANGER)
    run = called("send", TO, "--data", folder, "--body", "secret")
    assert (run.status, run.out) == (74, "")
    assert f"{folder / 'control'}: it belongs to another user" in run.err


def test_a_file_system_without_modes_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.chmod(0o777)
    monkeypatch.setattr(Path, "chmod", lambda path, mode: None)
    assert refusal(folder).why == "other users may write into the folder"


@needs_root
@pytest.mark.parametrize("suffix", ["-journal", "-wal", ".lock", ".lock-journal", ".new", "-mj00C0FFEE"])
def test_a_store_alone_has_no_guests_either(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "outbox.msmq"
    open_store(path).close()
    guest = tmp_path / f"outbox.msmq{suffix}"
    guest.touch()
    os.chown(guest, STRANGER, STRANGER)
    with pytest.raises(StoreRefused, match="another user") as caught:
        open_store(path)
    assert caught.value.file == str(guest)
    guest.rename(tmp_path / f"outbox.msmq_{suffix}")  # of another file
    open_store(path).close()


def test_a_store_alone_is_in_a_folder_of_its_owner(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    try:
        with pytest.raises(StoreRefused, match="other users may write into the folder"):
            open_store(tmp_path / "outbox.msmq")
        assert not any(tmp_path.iterdir())
    finally:
        tmp_path.chmod(0o700)


@needs_root
def test_one_who_can_replace_the_folder_is_named(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    data.mkdir()
    os.chown(data.parent, STRANGER, STRANGER)
    DataFolder(data).create()
    (record,) = [r for r in caplog.records if "in its place" in r.message]
    assert vars(record)["writable"] == str(data.parent)


@needs_root
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (
            lambda path: os.chown(path, STRANGER, STRANGER),
            f"it belongs to another user, of number {STRANGER}",
        ),
        (lambda path: path.chmod(0o777), "it has the mode 0777: other users may write it; use chmod go-w"),
    ],
)
@pytest.mark.parametrize("name", ["", "SYS", "SYS/SYSTEM", "SYS/SYSTEM/01000001.QDR"])
def test_all_volumes_are_ours(data: Path, make: Callable[[Path], None], why: str, name: str) -> None:
    with NetwareFolder(data).open_store(create=True):
        NetwareFolder(data).open_volumes()
        path = data / "volumes" / name
        (data / "volumes" / "SYS/SYSTEM/01000001.QDR").mkdir(parents=True)
        NetwareFolder(data).open_volumes()
        make(path)
        with pytest.raises(StoreRefused) as caught:
            NetwareFolder(data).open_volumes()
        assert caught.value.file == str(path)
        assert caught.value.why.startswith(why)


# -- sockets in the temporary folder ---------------------------------------------------------------------


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder as a server with a long path has made it; its server was killed, the system started again."""
    path = Path(tempfile.mkdtemp(prefix="msmqwire-"))
    yield path
    if path.is_symlink():
        path.unlink()
    else:
        shutil.rmtree(path)


def named(folder: Path, path: Path) -> None:
    DataFolder(folder).write_control(ControlAddress(path=str(path)))


@needs_root
def test_a_socket_in_a_folder_of_another_user_is_given_nothing(folder: Path, temporary: Path) -> None:
    """Whoever saw the name makes the folder again, and listens."""
    with socket.socket(socket.AF_UNIX) as his:
        his.bind(str(temporary / "control.sock"))
        his.listen()
        his.setblocking(False)
        os.chown(temporary, STRANGER, STRANGER)
        named(folder, temporary / "control.sock")
        run = called("send", TO, "--data", folder, "--body", "secret", "--recoverable")
        assert run.status == 0
        with pytest.raises(BlockingIOError):
            his.accept()
        with served(options(folder, name=default_name())), attach(folder) as local:
            assert local.served


def test_a_link_to_a_folder_of_sockets_removes_none(folder: Path, temporary: Path, tmp_path: Path) -> None:
    """That of another server of the same user, which would lose its control channel."""
    other = tmp_path / "other"
    other.mkdir(0o700)
    a_socket(other / "control.sock")
    temporary.rmdir()
    temporary.symlink_to(other)
    named(folder, temporary / "control.sock")
    with served(options(folder, name=default_name())):
        assert (other / "control.sock").exists()
    assert (other / "control.sock").exists()


@pytest.mark.parametrize("umask", [0o000, 0o002])
def test_all_that_we_make_ourselves_is_safe(tmp_path: Path, umask: int) -> None:
    """Keys, users, queues, volumes, sockets and what a killed server leaves; whatever the umask."""
    before, data = os.umask(umask), tmp_path / "data"
    try:
        assert called("key", "create", "--data", data, "--bits", "1024").status == 0
        assert called("cert", "create", "--data", data, "--sid", "S-1-5-21-1-2-3-1000").status == 0
        with NetwareFolder(data).open_store(create=True):
            NetwareFolder(data).open_volumes()
        with served(options(data, ORDERS, console=ConsoleOptions((ADDRESS, 0)))), attach(data) as local:
            put(local, ORDERS, *recoverable(b"honest"))
            DataFolder(data).secure()
            for path in [entry for entry in data.iterdir() if entry.is_file()]:
                shutil.copy(path, data / f"{path.name}.new")  # as one that was killed leaves them
            DataFolder(data).secure()
        with NetwareFolder(data).open_store(create=False):
            NetwareFolder(data).open_volumes()
        assert peeked(data, ORDERS) == [b"honest"]
    finally:
        os.umask(before)
