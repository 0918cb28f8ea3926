"""Files that commands write for a user: whole or not at all, and nothing else is touched."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from msmqwire.durable import new_content
from tests.support.paths import EXAMPLES
from tests.support.running import in_process as command


def test_a_file_is_replaced_when_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with new_content(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")

    def write() -> None:
        with new_content(path) as file:
            file.write(b"new")
            raise KeyError

    with pytest.raises(KeyError):
        write()
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"old", [path])


def test_the_rights_are_those_of_a_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with new_content(tmp_path / "out"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link, target = tmp_path / "link", tmp_path / "folder" / "target"
    link.symlink_to(target)
    with new_content(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_pipe_is_written_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    with new_content(pipe) as file:
        file.write(b"new")
    reader.join()
    assert (got, stat.S_ISFIFO(pipe.stat().st_mode)) == ([b"new"], True)


def test_a_device_stays_one_when_the_write_fails() -> None:
    with pytest.raises(OSError, match="No space left") as caught, new_content("/dev/full") as file:
        file.write(b"new")
    assert caught.value.filename == "/dev/full"
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_the_error_names_the_path_that_was_given(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, new_content(tmp_path / "no" / "out"):
        pass
    assert caught.value.filename == str(tmp_path / "no" / "out")


def test_a_name_as_long_as_names_can_be(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    with new_content(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("name", ["report", "pcap"])
def test_a_capture_is_not_overwritten(tmp_path: Path, name: str) -> None:
    capture, content = tmp_path / "a.pcap", (EXAMPLES / "session.pcap").read_bytes()
    capture.write_bytes(content)
    done = command(name, capture, "-o", capture)
    assert done.returncode == 2
    assert b"is one of the captures" in done.stderr
    assert capture.read_bytes() == content
