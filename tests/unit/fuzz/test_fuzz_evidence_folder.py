"""The folder of evidence: nobody else's seed is replayed from it, and no link in it is written through."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fuzz.peer.evidence import Seed, keep, prepare_folder
from fuzz.peer.failure import PeerFailure
from fuzz.peer.recording import Recording
from fuzz.peer.steps import Case
from fuzz.peer.target import Ports, Target
from msmqwire.errors import LocatedError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions of Unix")
needs_root = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs root")


def test_a_link_in_place_of_evidence_is_refused(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    out = tmp_path / "found"
    prepare_folder(out)
    (out / "failure_001.json").symlink_to(precious)
    with pytest.raises(OSError, match="it is a link") as caught:
        prepare_folder(out)
    assert caught.value.filename == str(out / "failure_001.json")
    (out / "failure_001.json").unlink()
    prepare_folder(out)


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    with pytest.raises(OSError, match="other users may write into the folder"):
        prepare_folder(tmp_path)


def test_our_own_evidence_is_safe_without_an_umask(tmp_path: Path) -> None:
    """As a container may have none."""
    seed = Seed(Target("127.0.0.1", Ports(1801)), (Case("ping", ()),), PeerFailure((), "it hangs", "hang"))
    before = os.umask(0)
    try:
        for number in (1, 2):
            kept = keep(tmp_path / "found", number, seed, [Recording()], replayed=True)
    finally:
        os.umask(before)
    assert {path.name for path in (tmp_path / "found").iterdir()} >= {kept.pcap, kept.seed, kept.test}
    assert Seed.read(tmp_path / "found" / kept.seed).cases == seed.cases


@needs_root
def test_a_test_that_somebody_else_has_put_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_failure_001.py").touch()
    os.chown(tmp_path / "test_failure_001.py", 4712, 4712)
    with pytest.raises(OSError, match="another user, of number 4712"):
        prepare_folder(tmp_path)


@pytest.mark.parametrize("kind", ["pipe", "link", "writable"])
def test_no_seed_is_read_that_somebody_else_may_have_written(tmp_path: Path, kind: str) -> None:
    """Nor is a pipe waited for."""
    path = tmp_path / "seed.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(tmp_path / "other")
    else:
        path.touch()
        path.chmod(0o666)
    with pytest.raises(LocatedError) as caught:
        Seed.read(path)
    assert str(path) in caught.value.why
