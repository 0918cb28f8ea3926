"""Files with keys and passwords that other users may read are refused, whatever option names them."""

from __future__ import annotations

import os
import stat
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import msmqwire
from msmqwire.errors import InvalidValue, StoreRefused
from msmqwire.ownership import read_own, read_secret, secret_fault
from msmqwire.qm.runtime.key_ring import KeyFile
from msmqwire.qm.runtime.user_certificates import open_users
from tests.support.paths import EXAMPLES
from tests.support.running import ADDRESS, called

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions of Unix")
CAPTURE = EXAMPLES / "protected.pcap"
CERTIFICATE = EXAMPLES / "keys" / "alice.crt"
QUEUE = r"DIRECT=OS:127.0.0.99\private$\q"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A private key; as a password it is as good as any."""
    file = tmp_path / "the secret"
    file.write_bytes((EXAMPLES / "keys" / "queue-manager.pem").read_bytes())
    return file


SERVE = ("serve", "--listen", f"{ADDRESS}:0", "--ping", "off")
COMMANDS = {
    "tls": (
        *SERVE,
        "--data",
        "DATA",
        "--https",
        f"{ADDRESS}:0",
        "--tls-cert",
        CERTIFICATE,
        "--tls-key",
        "FILE",
    ),
    "http signature": (
        *(*SERVE, "--data", "DATA", "--http", f"{ADDRESS}:0"),
        *("--http-sign-cert", CERTIFICATE, "--http-sign-key", "FILE"),
    ),
    "rpc users": (*SERVE, "--data", "DATA", "--rpc", f"{ADDRESS}:0", "--rpc-users", "FILE"),
    "remote read": ("receive", "--remote", QUEUE, "--user", "HOME\\anne", "--password-file", "FILE"),
    "netware": (
        "netware",
        "jobs",
        "Q",
        "--connect",
        f"{ADDRESS}:9",
        "--as",
        "ANNE",
        "--password-file",
        "FILE",
    ),
    "send": ("send", QUEUE, "--body", "x", "--sign", "--cert", CERTIFICATE, "--key", "FILE"),
    "key import": ("key", "import", "FILE", "--data", "DATA"),
    "dissect": ("dissect", CAPTURE, "--key", "FILE"),
    "lint": ("lint", CAPTURE, "--key", "FILE"),
    "report": ("report", CAPTURE, "--key", "FILE", "-o", "DATA"),
    "lake": ("lake", CAPTURE, "--key", "FILE", "--out", "DATA"),
}


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_secret_of_others_is_refused(
    tmp_path: Path, secret: Path, command: tuple[str, ...], mode: int
) -> None:
    secret.chmod(mode)
    run = called(*({"FILE": secret, "DATA": tmp_path / "data"}.get(str(word), word) for word in command))
    text = f"has the mode {mode:04o}: other users may use it; use chmod 600 '{secret}'"
    assert text in run.error(65)["error"]
    assert run.out == ""


def test_the_same_in_python(secret: Path) -> None:
    secret.chmod(0o644)
    with pytest.raises(InvalidValue, match="it has the mode 0644"):
        list(msmqwire.dissect(CAPTURE, keys=secret))
    secret.chmod(0o600)
    assert any(item.decrypted for item in msmqwire.dissect(CAPTURE, keys=secret))
    assert any(item.decrypted for item in msmqwire.dissect(CAPTURE, keys=secret.read_bytes()))


def test_a_certificate_in_place_of_a_key_is_said_to_be_one(tmp_path: Path) -> None:
    file = tmp_path / "alice.crt"
    file.write_bytes(CERTIFICATE.read_bytes())
    file.chmod(0o644)
    assert (
        "a certificate: it verifies signatures"
        in called("dissect", CAPTURE, "--key", file).error(65)["error"]
    )


def test_a_link_is_judged_by_what_it_leads_to(tmp_path: Path, secret: Path) -> None:
    """As mounted secrets are: tls.key -> ..data/tls.key."""
    (tmp_path / "tls.key").symlink_to(secret)
    assert read_secret(tmp_path / "tls.key", 1 << 20) == secret.read_bytes()
    secret.chmod(0o440)
    with pytest.raises(InvalidValue, match="mode 0440"):
        read_secret(tmp_path / "tls.key", 1 << 20)


def test_a_pipe_is_waited_for(tmp_path: Path) -> None:
    """As ``--password-file <(command)`` gives it."""
    read, write = os.pipe()
    os.write(write, b"secret")
    os.close(write)
    try:
        assert read_secret(Path(f"/dev/fd/{read}"), 100) == b"secret"
    finally:
        os.close(read)


@contextmanager
def pipe_without_end(path: Path, mode: int) -> Iterator[None]:
    os.mkfifo(path)
    path.chmod(mode)
    end = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        yield
    finally:
        os.close(end)


def test_a_pipe_that_others_may_use_is_not_waited_for(tmp_path: Path) -> None:
    """Nor is it looked at again for a certificate."""
    path = tmp_path / "key.pem"
    with pipe_without_end(path, 0o644):
        assert "mode 0644" in called("dissect", CAPTURE, "--key", path).error(65)["error"]


def test_keys_of_a_folder_are_a_plain_file(tmp_path: Path, secret: Path) -> None:
    file = KeyFile(tmp_path)
    file.path.symlink_to(secret)
    with pytest.raises(InvalidValue, match=r"keys\.json: it is a link, not a plain file: move it away"):
        file.read()
    file.path.unlink()
    with (
        pipe_without_end(file.path, 0o600),
        pytest.raises(InvalidValue, match="it is a pipe, not a plain file"),
    ):
        file.read()


def test_users_of_a_missing_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="No such file or directory"):
        open_users(tmp_path / "missing", create=True)


def test_a_limit_takes_no_memory(secret: Path) -> None:
    tracemalloc.start()
    try:
        content = read_own(secret, 1 << 30, None)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert content == secret.read_bytes()
    with pytest.raises(InvalidValue, match=f"it has more than {len(content) - 1:,} bytes"):
        read_own(secret, len(content) - 1, None)


def test_a_folder_in_place_of_a_file_stays_closed(tmp_path: Path) -> None:
    before = os.listdir("/dev/fd")
    with pytest.raises(IsADirectoryError):
        read_own(tmp_path, 100, None)
    assert os.listdir("/dev/fd") == before


@pytest.mark.parametrize(
    ("owner", "mode", "user", "is_safe"),
    [
        (1000, 0o600, 1000, True),
        (1000, 0o400, 1000, True),
        (1000, 0o440, 1000, False),
        (0, 0o440, 1000, True),  # a secret of Kubernetes with fsGroup, a credential of systemd
        (0, 0o640, 1000, True),
        (0, 0o660, 1000, False),
        (0, 0o444, 1000, False),
        (0, 0o440, 0, False),
        (0, 0o400, 0, True),
        (1001, 0o440, 1000, False),
    ],
)
def test_what_root_gives_to_a_service(
    owner: int, mode: int, user: int, is_safe: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    status = os.stat_result((stat.S_IFREG | mode, 1, 1, 1, owner, 1000, 10, 0, 0, 0))
    assert (secret_fault(Path("file"), status) == "") is is_safe
