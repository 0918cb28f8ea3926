"""The file of targets: what it may have, and errors that name the line, the target and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.exporter.targets import Target, read_targets
from msmqwire.ownership import HAS_MODES

SECRET = "correct horse"


def written(folder: Path, text: str) -> Path:
    """A file of targets, beside a file with a password."""
    secret = folder / "alpha.secret"
    secret.write_text(f"{SECRET}\n")
    secret.chmod(0o600)
    path = folder / "targets.toml"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)
    return path


def test_all_keys_of_a_target(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        r"""
        [[target]]
        host = "alpha.example"
        name = "alpha"
        rpc_port = 2103
        auth = "integrity"
        user = 'CORP\reader'
        password_file = "alpha.secret"
        queues = ['orders', 'private$\orders;journal', 'DIRECT=OS:beta\private$\q', 'alpha\public']
        timeout = 2.5

        [[target]]
        host = "[::1]"
        """,
    )
    first, second = read_targets(path)
    names = ("orders", r"private$\orders;journal", r"DIRECT=OS:beta\private$\q", r"alpha\public")
    assert first == Target("alpha.example", "alpha", 2103, "integrity", r"CORP\reader", SECRET, names, 2.5)
    assert second == Target("::1", "::1")
    assert SECRET not in repr(first)


HEAD = '[[target]]\nhost = "alpha"\n'
WRONG = [
    ("", "no target in it; the least is"),
    ("[[targets]]\nhost = 'a'", "line 1: 'targets' is not a table; did you mean target?"),
    ("target = 'alpha'", "line 1: each target is a table of its own"),
    ("[target]\nhost = 'a'", "line 1: each target is a table of its own"),
    ("[[target]]\nhost = alpha", "no TOML: Invalid value (at line 2, column 8)"),
    ("[[target]]\nname = 'a'", "line 1: target 1 (a): `host` is missing"),
    (f"{HEAD}\n[[target]]\nhsot = 'b'\n", "line 5: target 2: 'hsot' is not a key; did you mean host?"),
    (f"{HEAD}password = 'hunter2'\n", "line 3: target 1 (alpha): a password stands in a file of its own"),
    (f"{HEAD}rpc_port = 0", "line 3: target 1 (alpha): `rpc_port` is 0, not a number of 1 to 65535"),
    (f"{HEAD}rpc_port = true", "`rpc_port` is True, not a number"),
    (f"{HEAD}rpc_port = '2103'", "`rpc_port` is '2103', not a number"),
    (f"{HEAD}timeout = 0", "`timeout` is 0, not a number of seconds"),
    (f"{HEAD}timeout = nan", "`timeout` is nan, not a number of seconds"),
    (f"{HEAD}timeout = 601", "`timeout` is 601, not a number of seconds, more than 0 to 600"),
    (f"{HEAD}timeout = true", "`timeout` is True, not a number of seconds"),
    (f"{HEAD}queues = 'a'", "`queues` is 'a', not a list of names"),
    (f"{HEAD}queues = [7]", "`queues` has 7, which is no text in quotes"),
    (f"{HEAD}queues = ['DIRECT=OS:']", "line 3: target 1 (alpha): `queues`: 'DIRECT=OS:' is no name"),
    (f"{HEAD}auth = 'kerberos'", "`auth`: 'kerberos' is none of none, connect, integrity, privacy"),
    (f"{HEAD}auth = 'privacy'", "`auth` needs `user`"),
    (f"{HEAD}user = 'u'", "`user` needs `password_file`"),
    (f"{HEAD}password_file = 'alpha.secret'", "`password_file` needs `user`"),
    ("[[target]]\nhost = 'alpha:2103'", "line 2: target 1 (alpha:2103): `host` is 'alpha:2103': without"),
    ("[[target]]\nhost = 'a b'", "neither the name of a computer nor an address"),
    ("[[target]]\nhost = ''", "`host` is '', not 1 to 255 printable characters"),
    ("[[target]]\nhost = 7", "`host` is 7, not a text in quotes"),
    (f"{HEAD}name = 'a\\nb'".replace("'", '"'), "`name` is 'a\\nb', not 1 to 255 printable characters"),
    (f"{HEAD}\n{HEAD}", "line 5: target 2 (alpha): another target has the name 'alpha' too"),
]  # fmt: skip


@pytest.mark.parametrize("text, told", WRONG, ids=[told[:60] for _, told in WRONG])
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InvalidValue) as caught:
        read_targets(path)
    assert told in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "hunter2" not in str(caught.value)


def test_a_target_in_another_notation_has_no_line(tmp_path: Path) -> None:
    path = written(tmp_path, "target = [{host = 'alpha'}, {host = 'beta', rpc_port = 70000}]")
    with pytest.raises(InvalidValue, match=r"targets\.toml: target 2 \(beta\): `rpc_port` is 70000"):
        read_targets(path)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "")
    path.write_bytes(b"[[target]]\nhost = '\xff'")
    with pytest.raises(InvalidValue, match="byte 19: not a text in UTF-8"):
        read_targets(path)


def test_a_missing_file_of_a_password_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, f"{HEAD}user = 'u'\npassword_file = 'other.secret'")
    with pytest.raises(OSError, match=r"line 4: target 1 \(alpha\): .*other\.secret: No such file"):
        read_targets(path)


@pytest.mark.skipif(not HAS_MODES, reason="no modes of files here")
@pytest.mark.parametrize("file, remedy", [("alpha.secret", "chmod 600"), ("targets.toml", "chmod go-w")])
def test_files_that_others_may_use_are_refused(tmp_path: Path, file: str, remedy: str) -> None:
    path = written(tmp_path, f"{HEAD}user = 'u'\npassword_file = 'alpha.secret'")
    assert read_targets(path)[0].password == SECRET
    (tmp_path / file).chmod(0o666)
    with pytest.raises(InvalidValue, match=rf"mode 0666: other users may .*{remedy}") as caught:
        read_targets(path)
    assert SECRET not in str(caught.value)
