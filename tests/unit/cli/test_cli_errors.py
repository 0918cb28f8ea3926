"""Errors of commands: text on a terminal, one JSON object elsewhere and with --json, wrong usage as well."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.support.paths import EXAMPLES
from tests.support.running import called
from tests.support.terminal import on_a_terminal, terminal

SESSION = str(EXAMPLES / "session.pcap")
WRONG = [
    (("dissect", SESSION, "--port", "99999"), "--port", "99999 is not 1 to 65535"),
    (("dissect", SESSION, "--port", "http"), "--port", "'http' is not a whole number, as 10"),
    (("dissect", SESSION, "--portt", "1"), "--portt", "there is no such option; did you mean --port?"),
    (("lint", SESSION, "--where", "x"), "--where", "there is no such option"),
    (("dissect", SESSION, "--port"), "--port", "its value is missing, as in --port PORT"),
    (("dissect", SESSION, "--json=1"), "--json", "it takes no value"),
    (("ping", "127.0.0.1", "--interval", "soon"), "--interval", "'soon' is not a number, as 2.5"),
    (("ping", "127.0.0.1", "--interval", "nan"), "--interval", "'nan' is not a number, as 2.5"),
    (("ping", "127.0.0.1", "-c", "0"), "--count", "0 is not at least 1"),
    (("ping", "127.0.0.1", "127.0.0.2"), "", "'127.0.0.2' is one argument too many"),
    (("ping",), "HOST", "it is missing, as in msmqwire ping 127.0.0.1"),
    (("lint",), "FILES", "it is missing, as in msmqwire lint examples/session.pcap"),
    (("dissect",), "CAPTURES",
     "captures are missing, as in msmqwire dissect examples/session.pcap; or give an --interface"),
    (("move", r"private$\orders"), "TO",
     r"it is missing, as in msmqwire move 'private$\orders' 'private$\orders;poison' --data ./qm --count 5"),
    (("key", "list"), "--data", "it is missing, as --data PATH"),
    (("key", "import", "x", "--data", "d", "--use", "both"), "--use",
     "'both' is not one of exchange, signature"),
    (("key", "import", "x", "--data", "d", "--peer", "7"), "--peer",
     "'7' is not a GUID, as 6f9619ff-8b86-d011-b42d-00c04fc964ff"),
    (("disect",), "", "'disect' is not a command; did you mean dissect?"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "path", "why"), WRONG, ids=lambda value: str(value)[-40:])
def test_wrong_usage_is_one_json_object(words: tuple[str, ...], path: str, why: str) -> None:
    assert called(*words).error(2) == {"error": why, "path": path, "offset": None}


def test_wrong_usage_on_a_terminal_is_text_that_says_what_to_do() -> None:
    assert on_a_terminal("dissect", SESSION, "--port", "99999", status=2) == (
        "error: --port: 99999 is not 1 to 65535\nmsmqwire dissect --help shows how it is used.\n"
    )
    shown = on_a_terminal("dissect", SESSION, "--where", "kind ==", status=2)
    assert shown.startswith("error: --where: ")
    assert "\n  kind ==\n         ^\nmsmqwire dissect --help" in shown


def test_a_wrong_expression_is_one_line_in_json_and_says_where() -> None:
    error = called("dissect", SESSION, "--where", "size == 1\nand kidn == 'UserMessage'").error(2)
    assert error["path"] == "--where"
    assert error["error"].startswith("'kidn' is not a column; did you mean kind?")
    assert error["error"].endswith(" (at character 15)")
    assert "\n" not in error["error"]


def test_an_error_on_a_terminal_is_text_and_with_json_an_object(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"\x10")
    shown = on_a_terminal("parse", tmp_path / "short", status=65)
    assert shown.startswith("error: BaseHeader")
    assert ", byte 1: " in shown
    assert on_a_terminal("queue", "list", "--data", tmp_path / "none", status=66).startswith("error: ")
    shown = on_a_terminal("queue", "list", "--data", tmp_path / "none", "--json", status=66)
    assert json.loads(shown)["path"] == ""


def test_an_error_on_a_terminal_escapes_its_input() -> None:
    assert r"\x1b[31m" in on_a_terminal("dissect", SESSION, "--kind", "\x1b[31m", status=2)


def test_no_arguments_show_the_help_of_a_group() -> None:
    done = called("key")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("Usage: msmqwire key")


@pytest.mark.parametrize(
    ("words", "content", "why"),
    [
        (("build", "FILE"), b'{"a": 1,}', "not JSON from line 1, column 9 on"),
        (("build", "FILE"), b"\xff", "not JSON: byte 0 is not UTF-8"),
        (("cert", "register", "--cert", "FILE", "--data", "qm"), b"x",
         "a certificate that can't be read: damaged"),
        (("netware", "queues", "--connect", "10.0.0.5:0", "--as", "A"), b"",
         "'10.0.0.5:0' is not ADDRESS:PORT, as"),
        (("cert", "create", "--sid", "anne", "--data", "qm"), b"",
         "'anne' is not a SID, as S-1-5-21-1-2-3-1001"),
    ],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
def test_no_sentence_of_a_library_is_an_error(
    words: tuple[str, ...], content: bytes, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE").write_bytes(content)
    run = called(*words)
    error = run.error(run.status)["error"]
    assert error.startswith(why)
    assert not any(word in error for word in ("Expecting", "Illegal", "ParseError", "Invalid", "codec"))


def test_serve_logs_json_on_a_terminal_and_errors_as_text(tmp_path: Path) -> None:
    with terminal("serve", "--data", tmp_path / "qm", "--listen", "127.0.0.77:0", "--ping", "off") as run:
        run.shown("ready ")
        run.process.send_signal(signal.SIGTERM)
        logged = [line for line in run.shown().splitlines() if line.startswith("{")]
        assert run.ended() == 0
    assert [json.loads(line)["event"] for line in logged] == ["ready", "stops", "stopped"]
    error = on_a_terminal("serve", "--data", tmp_path / "qm", "--listen", "192.0.2.1:1", status=69)
    assert error.startswith("error: can't listen: 192.0.2.1")
