"""``receive``, ``peek``, ``purge`` and ``move --remote`` against a hand-made server."""

from __future__ import annotations

import io
import socket
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from msmqwire.cli import main
from msmqwire.cli import messages as printing
from msmqwire.constants import HResult
from msmqwire.qm.runtime.message_json import message_json
from msmqwire.qm.runtime.rpc import client as rpc_client
from msmqwire.qm.runtime.rpc.security import acceptors
from msmqwire.remote_read.constants import Access, Acknowledge, Opnum
from msmqwire.rpc.constants import AuthLevel, FaultStatus
from tests.support.rpc.remote_read_server import (
    BREAK,
    NAME,
    SILENCE,
    RemoteQueue,
    message,
    received,
    remote_queue,
)
from tests.support.rpc.rpc_pair import PASSWORD, USER
from tests.support.rpc.rpc_users import USERS
from tests.support.running import Run, called

BODIES = [b"body 1", b"body 2", b"body 3"]


@pytest.fixture
def queue() -> Iterator[RemoteQueue]:
    """A server with three messages."""
    with remote_queue(message(1), message(2), message(3)) as queue:
        yield queue


def run(queue: RemoteQueue, command: str, *arguments: str | Path, name: str = NAME) -> Run:
    agreed = ["--yes"] if command == "purge" else []
    return called(command, "--remote", name, *agreed, *arguments, "--rpc-port", str(queue.port))


def bodies(run: Run) -> list[bytes]:
    return [b64decode(line["body"]) for line in run.lines]


def test_receiving(queue: RemoteQueue) -> None:
    expected = {**message_json(message(1)), "text": "body 1"}
    assert run(queue, "receive", "--json").one == expected
    assert expected["time_to_reach_queue"] == 3600
    assert expected["lookup_identifier"] == 4 << 56 | 1
    assert bodies(run(queue, "receive", "--count", "5")) == BODIES[1:]
    assert run(queue, "receive") == Run(0, "", "")  # nothing in time is not an error
    ends = [end.dwAck for end in queue.arguments(Opnum.R_EndReceive)]
    assert ends == [Acknowledge.RR_ACK] * 3
    assert queue.opened == {}


def test_the_timeout(queue: RemoteQueue) -> None:
    queue.twists[Opnum.R_StartReceive] = lambda honest, arguments: {
        "status": int(HResult.MQ_ERROR_IO_TIMEOUT)
    }
    assert run(queue, "receive", "--timeout", "2.5") == Run(0, "", "")
    assert run(queue, "peek", "--timeout", "1") == Run(0, "", "")
    assert [read.ulTimeout for read in queue.arguments(Opnum.R_StartReceive)] == [2500, 1000]


def test_peeking_moving_and_purging(queue: RemoteQueue) -> None:
    queue.rights = (Access.PEEK_ACCESS,)
    assert bodies(run(queue, "peek")) == BODIES[:1]
    assert bodies(run(queue, "peek", "--count", "2")) == BODIES[:2]
    assert bodies(run(queue, "peek", "--count", "9")) == BODIES
    queue.rights = tuple(Access)
    poison = rf"{NAME};poison"
    moved = called("move", "--remote", NAME, poison, "--rpc-port", str(queue.port), "--count", "2")
    assert moved.lines == [
        {"identifier": message_json(message(n))["identifier"], "to": poison} for n in (1, 2)
    ]
    assert [number for number, _ in queue.moved] == [1, 2]
    identifier = message_json(message(3))["identifier"]
    options = "--rpc-port", str(queue.port), "--identifier"
    assert called("move", "--remote", NAME, poison, *options, identifier.replace("3", "4")) == Run(0, "", "")
    assert (
        called("move", "--remote", NAME, poison, *options, identifier.upper()).one["identifier"] == identifier
    )
    queue.messages.append(message(4))
    refused = called("purge", "--remote", NAME, "--rpc-port", str(queue.port))
    assert (refused.status, refused.out, queue.bodies) == (2, "", [b"body 4"])
    assert "--yes deletes them" in refused.err
    assert run(queue, "purge").one == {"queue": NAME}
    assert queue.bodies == []


def test_a_message_that_was_not_printed_stays_in_its_queue(
    queue: RemoteQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("sys.argv", ["msmqwire", "receive", "--remote", NAME, "--rpc-port", str(queue.port)])
    monkeypatch.setattr("sys.stdout", Full())
    with suppress(SystemExit, OSError):
        main()
    assert queue.called(Opnum.R_StartReceive, Opnum.R_EndReceive) == [
        Opnum.R_StartReceive,
        Opnum.R_EndReceive,
    ]
    assert queue.bodies == BODIES


def test_a_message_is_printed_before_it_is_acknowledged(
    queue: RemoteQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    from msmqwire.cli import remote_reading

    acknowledged: list[list[Opnum]] = []

    def show(shown: dict[str, Any], as_json: bool, *, decode: bool) -> None:
        acknowledged.append(queue.called(Opnum.R_EndReceive))
        printing.show(shown, as_json, decode=decode)

    monkeypatch.setattr(remote_reading, "show", show)
    assert len(run(queue, "receive", "--count", "2").lines) == 2
    assert acknowledged == [[], [Opnum.R_EndReceive]]


# -- exit statuses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["receive", "peek", "purge"])
def test_a_queue_that_is_not_there(queue: RemoteQueue, command: str) -> None:
    error = run(queue, command, name=r"DIRECT=TCP:127.0.0.1\private$\nothing").error(66)
    assert error["name"] == "MQ_ERROR_QUEUE_NOT_FOUND"


def test_a_message_that_can_not_be_read_is_given_back(queue: RemoteQueue) -> None:
    def cut(honest: Any, arguments: Any) -> Any:
        honest()
        return received(message(1), 3)

    queue.twists[Opnum.R_StartReceive] = cut
    assert "were asked for" in run(queue, "receive").error(65)["error"]
    assert queue.bodies == BODIES
    assert "were asked for" in run(queue, "peek").error(65)["error"]
    assert len(queue.arguments(Opnum.R_EndReceive)) == 1


@pytest.mark.parametrize("answer, name", [
    ({"status": int(HResult.MQ_ERROR_ACCESS_DENIED)}, "MQ_ERROR_ACCESS_DENIED"),
    ({"status": 0xC0000008}, "STATUS_INVALID_HANDLE"),
    (int(FaultStatus.ACCESS_DENIED), None),
    (int(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES), "MQ_ERROR_INSUFFICIENT_RESOURCES"),
    (BREAK, None),
], ids=["denied", "ntstatus", "fault", "hresult", "break"])  # fmt: skip
def test_a_server_that_refuses(queue: RemoteQueue, answer: Any, name: str | None) -> None:
    queue.twists[Opnum.R_StartReceive] = lambda honest, arguments: answer
    assert run(queue, "receive").error(69).get("name") == name
    queue.twists = {Opnum.R_PurgeQueue: lambda honest, arguments: answer}
    assert run(queue, "purge").error(69).get("name") == name


@pytest.mark.parametrize("answer", [
    {"status": int(HResult.MQ_ERROR_MESSAGE_NOT_FOUND)}, int(FaultStatus.NCA_S_FAULT_UNSPEC), BREAK, b"",
], ids=["status", "fault", "break", "cut"])  # fmt: skip
def test_a_server_that_fails_at_the_end(queue: RemoteQueue, answer: Any) -> None:
    queue.twists[Opnum.R_EndReceive] = lambda honest, arguments: answer
    failed = run(queue, "receive", "--count", "3")
    assert (failed.status, len(failed.out.splitlines())) == (69, 1)  # it was printed before


@pytest.mark.requirement("MQRR-3.1.2.1-01")
@pytest.mark.parametrize("opnum", [Opnum.R_OpenQueue, Opnum.R_StartReceive, Opnum.R_EndReceive])
def test_a_silent_server(queue: RemoteQueue, monkeypatch: pytest.MonkeyPatch, opnum: Opnum) -> None:
    assert (rpc_client.ANSWER_S, rpc_client.WHOLE_ANSWER_S) == (20, 300)
    monkeypatch.setattr(rpc_client, "ANSWER_S", 0.2)
    queue.twists[opnum] = lambda honest, arguments: SILENCE
    failed = run(queue, "receive", "--timeout", "0.3")
    assert (failed.status, "does not answer" in failed.err) == (69, True)


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for options in (("--rpc-port", port), ("--endpoint-mapper", port)):
        error = called("receive", "--remote", NAME, *map(str, options)).error(69)
        assert "refused" in error["error"]


def test_wrong_usage(tmp_path: Path) -> None:
    for arguments in (
        ("receive", "private$\\q"),
        ("peek", "private$\\q"),
        ("move", "private$\\q", "private$\\q;x"),
        ("purge", NAME),
        ("receive", "--remote", "private$\\q"),
        ("receive", "--remote", NAME, "--user", "HOME\\anne"),
        ("receive", "--remote", NAME, "--auth", "privacy"),
        ("receive", "--remote", NAME, "--auth", "much"),
        ("receive", "--remote", NAME, "--rpc-port", "0"),
    ):
        assert called(*arguments).status == 2, arguments
    missing = called(
        "receive", "--remote", NAME, "--user", "HOME\\anne", "--password-file", tmp_path / "none"
    )
    assert "none" in missing.error(66)["error"]
    (tmp_path / "bytes").write_bytes(b"\xff")
    broken = called(
        "receive", "--remote", NAME, "--user", "HOME\\anne", "--password-file", tmp_path / "bytes"
    )
    assert broken.error(65)["path"] == "password-file"
    unreadable = called("receive", "--remote", r"DIRECT=HTTP://host/msmq/private$/q")
    assert unreadable.error(69)["name"] == "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"


# -- users -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_the_password_of_a_file(tmp_path: Path, ending: str) -> None:
    (tmp_path / "password").write_bytes(f"{PASSWORD}{ending}".encode())
    options = "--user", USER, "--password-file", tmp_path / "password"
    with remote_queue(message(1), message(2), security=acceptors(USERS)) as queue:
        assert len(run(queue, "receive", *options).lines) == 1
        assert queue.callers == {(USER, AuthLevel.PKT_PRIVACY)}
        assert len(run(queue, "receive", *options, "--auth", "integrity").lines) == 1
        assert (USER, AuthLevel.PKT_INTEGRITY) in queue.callers
        run(queue, "purge", *options, "--auth", "none")
        assert ("", AuthLevel.NONE) in queue.callers
        (tmp_path / "password").write_bytes(f"{PASSWORD}\n\n".encode())  # only the last one is not part of it
        refused = run(queue, "receive", *options)
    assert (refused.status, refused.out) == (69, "")
    assert PASSWORD not in refused.err
