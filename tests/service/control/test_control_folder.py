"""A folder that was there before: nobody else can, or has, put anything into it, nor reads what is there."""

from __future__ import annotations

import json
import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from msmqwire import ownership
from msmqwire.errors import StoreRefused
from msmqwire.qm.runtime.data_folder import CONTROL, STORE, DataFolder
from msmqwire.qm.runtime.local import attach
from msmqwire.service.folder import ControlAddress
from tests.support.running import ORDERS, called, options, put, recoverable, served

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions of Unix")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_to_all(data: Path) -> Path:
    data.mkdir()
    data.chmod(0o777)
    return data


@pytest.mark.parametrize("tcp", [False, True])
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_files_in_a_world_readable_folder_are_private(open_to_all: Path, tcp: bool, umask: int) -> None:
    before = os.umask(umask)
    try:
        with served(options(open_to_all, ORDERS, control_tcp=tcp)):
            with attach(open_to_all) as local:
                put(local, ORDERS, *recoverable(b"secret"))
            assert mode(open_to_all) == 0o755
            modes = {path.name: mode(path) for path in open_to_all.iterdir()}
            assert (CONTROL in modes, "control.sock" in modes) == (True, not tcp)
            assert set(modes.values()) == {0o600}
    finally:
        os.umask(before)


def test_a_folder_that_is_made_is_its_owners_alone(data: Path) -> None:
    with served(options(data)):
        assert mode(data) == 0o700


@pytest.mark.parametrize("name", [CONTROL, f"{CONTROL}.new", "control.sock"])
def test_a_link_in_place_of_a_file_is_not_followed(open_to_all: Path, tmp_path: Path, name: str) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (open_to_all / name).symlink_to(precious)
    with pytest.raises(StoreRefused, match="a link") as caught, served(options(open_to_all, ORDERS)):
        pass
    assert caught.value.file == str(open_to_all / name)
    assert precious.read_text() == "precious"
    (open_to_all / name).unlink()
    with served(options(open_to_all, ORDERS)), attach(open_to_all) as local:
        assert local.served


class AnotherUser:
    """This process as if it ran for another user than the one who made the files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ownership.os, "geteuid", lambda: 4711)
        self._monkeypatch = monkeypatch

    def owns(self, *paths: Path) -> None:
        """Let these paths be this user's, and all others a third one's."""
        stat_, lstat = Path.stat, Path.lstat

        def of(result: os.stat_result, path: Path) -> os.stat_result:
            values = list(result)
            values[4] = 4711 if path in paths else 4712
            return os.stat_result(values)

        self._monkeypatch.setattr(Path, "stat", lambda path, **more: of(stat_(path, **more), path))
        self._monkeypatch.setattr(Path, "lstat", lambda path: of(lstat(path), path))


def test_a_folder_of_somebody_else_is_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data.mkdir()
    with monkeypatch.context() as patch:
        AnotherUser(patch).owns()
        with pytest.raises(StoreRefused, match="belongs to another user") as caught:
            DataFolder(data).create()
    assert caught.value.file == str(data)


@pytest.mark.parametrize(
    "name", [STORE, f"{STORE}-wal", f"{STORE}.lock", f"{STORE}.new", CONTROL, "control.sock"]
)
def test_a_file_that_somebody_else_has_put_there_is_refused(
    open_to_all: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (open_to_all / name).symlink_to(tmp_path / "precious")
    with monkeypatch.context() as patch:
        AnotherUser(patch).owns(open_to_all)
        with pytest.raises(StoreRefused, match="belongs to another user") as caught:
            DataFolder(open_to_all).create()
    assert caught.value.file == str(open_to_all / name)
    assert not (tmp_path / "precious").exists()


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs root")
def test_the_same_with_a_real_other_user(open_to_all: Path) -> None:
    path = open_to_all / f"{STORE}.lock"
    path.touch()
    os.chown(path, 4712, 4712)
    run = called("serve", "--data", open_to_all, "--listen", "127.0.0.31:0", "--ping", "off")
    assert (run.status, run.out) == (74, "")
    error = json.loads(run.err.splitlines()[-1])["error"]
    assert error.startswith(f"{path}: it belongs to another user, of number 4712: move it away")


def test_the_address_is_replaced_as_a_whole(data: Path) -> None:
    folder = DataFolder(data)
    folder.create()
    (data / f"{CONTROL}.new").write_text("left by one that was killed")
    (data / f"{CONTROL}.new").chmod(0o644)
    folder.write_control(ControlAddress(port=7, token="secret"))
    assert json.loads((data / CONTROL).read_text()) == {"path": "", "port": 7, "token": "secret"}
    assert mode(data / CONTROL) == 0o600
    assert not (data / f"{CONTROL}.new").exists()


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs root")
def test_a_client_of_another_user_is_not_let_in() -> None:
    """The system refuses to open the socket: its permissions are the whole of the login."""
    with tempfile.TemporaryDirectory() as path:
        data = Path(path)
        data.chmod(0o755)
        with served(options(data, ORDERS)), socket.socket(socket.AF_UNIX) as client:
            assert mode(data / "control.sock") == 0o600
            os.seteuid(4712)
            try:
                assert list(data.iterdir())
                with pytest.raises(PermissionError):
                    client.connect(str(data / "control.sock"))
                with pytest.raises(PermissionError):
                    (data / CONTROL).read_bytes()
            finally:
                os.seteuid(0)
