"""``msmqwire netware``, the commands of a client, against a hand-made server."""

from __future__ import annotations

import json
import os
import signal
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmqwire.netware.client import servicing
from tests.support.netware.netware_peer import NetwarePeer
from tests.support.patience import limit
from tests.support.running import Run, begun, called, until

LASER, MATRIX = 0x015D0300, 0x025D0300
BODY = bytes(range(256)) * 20


@pytest.fixture
def peer() -> Iterator[NetwarePeer]:
    peer = NetwarePeer()
    with peer.in_thread():
        yield peer


def ran(peer: NetwarePeer, command: str, *arguments: str, by: str = "ALICE", data: bytes = b"") -> Run:
    return called("netware", command, *arguments, "--connect", peer.address, "--as", by, data=data)


def submitted(peer: NetwarePeer, *options: str, data: bytes = b"") -> int:
    number: int = ran(peer, "submit", "LASER", "--body-file", "-", *options, "--json", data=data).one["job"]
    return number


def serviced(peer: NetwarePeer, program: str, *options: str) -> Run:
    return ran(peer, "service", "LASER", "--command", program, *options, "--json", by="PS1:print-server")


def test_submitting_and_looking(peer: NetwarePeer, tmp_path: Path) -> None:
    file = tmp_path / "body"
    file.write_bytes(BODY)
    options = ("--description", "Report", "--job-type", "7", "--target-server", "PS1", "--auto-start",
               "--restart", "--at", "2079-12-31T23:59:59", "--queue-record", "0102", "--hold")  # fmt: skip
    submission = ran(peer, "submit", "LASER", "--body-file", str(file), *options)
    number = submission.one["job"]
    assert submission.one == {"job": number, "queue": "LASER", "job_position": 1,
                              "job_file_name": "Q$0300.001", "bytes": len(BODY)}  # fmt: skip
    (job,) = peer.queues[LASER].jobs
    assert job.data == BODY
    assert job.entry[26:32] == bytes((79, 12, 31, 23, 59, 59))
    shown = ran(peer, "show", "LASER", str(number), "--json").one
    assert shown == ran(peer, "jobs", "LASER", "--json").one
    assert (shown["job"], shown["state"], shown["client_name"]) == (number, "held", "ALICE")
    assert (shown["job_type"], shown["job_description"]) == (7, "Report")
    assert shown["job_control_flags"] == [
        f"NWCF_{name}" for name in ("SERVICE_AUTO_START", "SERVICE_RESTART", "USER_HOLD")
    ]
    assert (shown["target_server_id"], shown["target_execution_time"]) == ("0A0B0C03", "2079-12-31T23:59:59")
    assert shown["queue_record"] == "0102" + "00" * 150


def test_queues(peer: NetwarePeer) -> None:
    submitted(peer)
    laser = {
        "queue": "LASER",
        "type": "print",
        "id": "015D0300",
        "queue_status": [],
        "jobs": 1,
        "servers": [],
    }
    listed = ran(peer, "queues").lines
    assert [queue["queue"] for queue in listed] == ["LASER", "MATRIX", "COMPILE"]
    assert listed[0] == laser == ran(peer, "show", "laser").one
    assert [queue["type"] for queue in ran(peer, "queues", "--type", "job").lines] == ["job"]
    assert ran(peer, "show", "COMPILE:job").one["id"] == "035D0300"
    peer.answers[(23, 125)] = 0xD3
    assert {queue["jobs"] for queue in ran(peer, "queues").lines} == {None}
    peer.answers[(23, 125)] = 0xD0
    assert ran(peer, "queues").error(69)["name"] == "ERR_Q_IO_FAILURE"


def test_tables_escape_control_characters_of_peers(peer: NetwarePeer) -> None:
    submitted(peer, "--description", "red\x1b[31m")
    for command in (("jobs", "LASER"), ("show", "LASER", "256")):
        table = ran(peer, *command, "--table").out
        assert "ALICE" in table
        assert "red\\x1b[31m" in table
        assert "\x1b" not in table
    assert ran(peer, "queues", "--table").out.split()[:5] == ["queue", "type", "id", "jobs", "stopped"]


def test_holding_and_releasing(peer: NetwarePeer) -> None:
    number = str(submitted(peer))
    held = {"job": 256, "queue": "LASER", "state": "held", "job_control_flags": ["NWCF_USER_HOLD"]}
    assert ran(peer, "hold", "LASER", number).one == held
    assert ran(peer, "release", "LASER", number).one["state"] == "ready"
    by_operator = ran(peer, "hold", "LASER", number, by="OPERATOR").one
    assert by_operator["job_control_flags"] == ["NWCF_OPERATOR_HOLD"]
    assert ran(peer, "release", "LASER", number, "--user", by="OPERATOR").one["state"] == "held"
    assert ran(peer, "release", "LASER", number, "--operator", by="OPERATOR").one["state"] == "ready"


def test_positions_moves_and_removal(peer: NetwarePeer) -> None:
    first, second = (str(submitted(peer)) for _ in range(2))
    assert ran(peer, "position", "LASER", second, "1", by="OPERATOR").one["job_position"] == 1
    assert [job["job"] for job in ran(peer, "jobs", "LASER").lines] == [int(second), int(first)]
    moved = ran(peer, "move", "LASER", first, "MATRIX", by="OPERATOR").one
    assert (moved["queue"], moved["from_job"]) == ("MATRIX", int(first))
    assert ran(peer, "jobs", "MATRIX").one["job"] == moved["job"]
    assert ran(peer, "remove", "LASER", second).one == {"job": int(second), "queue": "LASER"}
    assert ran(peer, "jobs", "LASER").lines == []


def test_job_numbers_of_another_byte_order(peer: NetwarePeer) -> None:
    submitted(peer)
    assert ran(peer, "show", "LASER", "1", "--reading", "job_number=high-low").one["job"] == 1
    assert ran(peer, "show", "LASER", "1", "--reading", "job_number=low").status == 2


@pytest.mark.parametrize(
    ("arguments", "status", "name"),
    [
        (("jobs", "NOPE"), 66, "NO_SUCH_OBJECT"),
        (("show", "LASER", "77"), 66, "ERR_NO_Q_JOB"),
        (("remove", "LASER", "77"), 66, "ERR_NO_Q_JOB"),
        (("submit", "LASER", "--body-file", "/nonexistent"), 66, None),
        (("submit", "LASER", "--body-file", "/dev/null", "--target-server", "NOBODY"), 66, "NO_SUCH_OBJECT"),
        (("position", "LASER", "256", "1"), 69, "ERR_NO_Q_RIGHTS"),
        (("service", "LASER", "--command", "true"), 69, "ERR_NO_Q_RIGHTS"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_what_is_refused(peer: NetwarePeer, arguments: tuple[str, ...], status: int, name: str) -> None:
    if arguments[0] == "position":
        submitted(peer)
    error = ran(peer, *arguments).error(status)
    assert error.get("name") == name
    assert name is None or f"{name} ({error['code']})" in error["error"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("jobs", "LASER:printer"),
        ("jobs", "LASER", "--table", "--as", "ALICE:nobody"),
        ("show", "LASER", "-1"),
        ("show", "LASER", "x"),
        ("submit", "LASER"),
        ("submit", "LASER", "--body-file", "/dev/null", "--description", "x" * 50),
        ("submit", "LASER", "--body-file", "/dev/null", "--job-type", "65535"),
        ("submit", "LASER", "--body-file", "/dev/null", "--at", "tomorrow"),
        ("submit", "LASER", "--body-file", "/dev/null", "--at", "2080-01-01T00:00:00"),
        ("submit", "LASER", "--body-file", "/dev/null", "--queue-record", "zz"),
        ("submit", "LASER", "--body-file", "/dev/null", "--queue-record", "00" * 153),
        ("position", "LASER", "1", "0"),
        ("service", "LASER"),
        ("service", "LASER", "--command", "true", "--as", "PS1:print-server", "--server-status", "x" * 65),
    ],
    ids=lambda arguments: " ".join(arguments)[:60],
)
def test_wrong_usage(peer: NetwarePeer, arguments: tuple[str, ...]) -> None:
    command, *rest = arguments
    by = () if "--as" in rest else ("--as", "ALICE")
    run = called("netware", command, *rest, "--connect", peer.address, *by)
    assert (run.status, run.out) == (2, "")
    assert all(not queue.jobs for queue in peer.queues.values())


def test_absent_refusing_and_faulty_servers_are_reported(peer: NetwarePeer) -> None:
    refused = ran(peer, "jobs", "LASER", by="BOB").error(69)
    assert (refused["name"], refused["code"]) == ("NO_SUCH_OBJECT", "0xFC")
    nowhere = called("netware", "jobs", "LASER", "--connect", "127.0.0.1:1", "--as", "ALICE")
    assert "can't be reached" in nowhere.error(69)["error"]
    assert called("netware", "jobs", "LASER", "--connect", "a:b", "--as", "ALICE").status == 2
    peer.spoil = lambda unit: unit[:-1] + b"\xff\xff"
    assert ran(peer, "jobs", "LASER").error(65)["path"]


# -- service --------------------------------------------------------------------------------------------


def test_a_command_gets_the_job(peer: NetwarePeer, tmp_path: Path) -> None:
    number = submitted(peer, "--description", "Report $(false)", "--job-type", "7", data=BODY)
    body, environment = tmp_path / "body", tmp_path / "environment"
    run = serviced(peer, f"cat > {body} && env -0 > {environment}", "--job-type", "7")
    assert run.one == {"job": number, "queue": "LASER", "bytes": len(BODY), "status": 0, "finished": True}
    assert body.read_bytes() == BODY
    fields = dict(line.split("=", 1) for line in environment.read_text().split("\0") if line)
    assert {name: fields[f"QMS_{name}"] for name in ("QUEUE", "JOB_NUMBER", "JOB_TYPE", "FILE_SIZE")} == {
        "QUEUE": "LASER", "JOB_NUMBER": str(number), "JOB_TYPE": "7", "FILE_SIZE": str(len(BODY)),
    }  # fmt: skip
    assert fields["QMS_JOB_DESCRIPTION"] == "Report $(false)"
    assert fields["QMS_CLIENT_ID"] == "0A0B0C01"
    assert "QMS_TARGET_EXECUTION_TIME" not in fields
    assert peer.queues[LASER].jobs == []
    assert serviced(peer, "true") == Run(0, "", "")  # nothing in time is not an error


@pytest.mark.parametrize(("program", "status"), [("cat >/dev/null; exit 3", 3), ("kill -TERM $$", 143)])
@pytest.mark.parametrize("restart", [False, True])
def test_a_command_that_fails(peer: NetwarePeer, program: str, status: int, restart: bool) -> None:
    number = submitted(peer, *(["--restart"] if restart else []), data=BODY)
    run = serviced(peer, program, "--count", "5")
    assert (run.status, run.err) == (1, "")
    assert json.loads(run.out) == {
        "job": number, "queue": "LASER", "bytes": len(BODY), "status": status, "finished": False,
    }  # fmt: skip
    assert len(peer.queues[LASER].jobs) == restart
    assert not any(any(job.entry[74:78]) for job in peer.queues[LASER].jobs)


def test_several_jobs_and_a_command_that_does_not_read(peer: NetwarePeer) -> None:
    numbers = [submitted(peer, data=bytes(300_000)) for _ in range(3)]
    run = serviced(peer, "exec <&-; true", "--count", "2", "--server-status", "ready")
    assert [line["job"] for line in run.lines] == numbers[:2]
    assert peer.queues[LASER].record == b"ready".ljust(64, b"\0")
    assert len(peer.queues[LASER].jobs) == 1


def test_waiting_for_jobs(peer: NetwarePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servicing, "_POLL_S", 0.01)
    assert serviced(peer, "true", "--wait", "0.3") == Run(0, "", "")
    assert peer.calls().count((23, 124)) > 2


def test_a_job_that_was_removed_meanwhile(peer: NetwarePeer) -> None:
    submitted(peer)
    peer.answers[(23, 131)] = 0xD5
    assert serviced(peer, "true").error(66)["name"] == "ERR_NO_Q_JOB"


def test_a_file_that_breaks_off_never_looks_whole(peer: NetwarePeer, tmp_path: Path) -> None:
    """The command is killed before it sees an end of its input."""
    submitted(peer, "--restart", data=BODY)
    peer.answers[(23, 135)] = lambda data: data + struct.pack(">I", len(BODY) + 1)
    end = tmp_path / "end"
    run = serviced(peer, f"cat >/dev/null; touch {end}")
    assert "ends at byte 5120" in run.error(65)["error"]
    assert not end.exists()
    assert len(peer.queues[LASER].jobs) == 1


def test_a_command_is_killed_when_the_server_is_lost(
    peer: NetwarePeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(data: bytes) -> bytes:
        until(lambda: pid.exists() and pid.read_text(), "the command runs")
        raise ConnectionResetError

    pid = tmp_path / "pid"
    submitted(peer)
    peer.answers[(23, 125)] = lost
    monkeypatch.setattr(servicing, "_KEEP_ALIVE_S", 0.01)
    run = serviced(peer, f"echo $$ > {pid}; exec sleep 600")
    assert "closed the connection" in run.error(69)["error"]
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_queue_server_that_is_ended_aborts_its_job(peer: NetwarePeer, tmp_path: Path) -> None:
    submitted(peer, "--restart", data=BODY)
    started = tmp_path / "started"
    process = begun("netware", "service", "LASER", "--connect", peer.address, "--as", "PS1:print-server",
                    "--command", f"echo $$ > {started}; exec sleep 600")  # fmt: skip
    pid = int(until(lambda: started.exists() and started.read_text(), "the command runs"))
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=limit(60))
    assert (process.returncode, out) == (143, "")
    assert peer.calls().count((23, 132)) == 1
    assert not any(peer.queues[LASER].jobs[0].entry[74:78])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
