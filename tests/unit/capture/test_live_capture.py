"""Live capture and standard input, with tools that are only played: what they say, and how they end."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from tests.support.captures import TcpConversation, pcap_bytes
from tests.support.handmade import session_ack
from tests.support.paths import EXAMPLES, ROOT
from tests.support.patience import limit
from tests.support.running import until

SESSION = ROOT / "examples/session.pcap"
SECONDS = limit(60)
"""How long anything may take, on a machine that is busy with other things."""
SLOW_SECONDS = limit(5)
"""How long a packet may take that waits for wall time alone: 250 ms, and what a busy machine adds."""

PLAYED = """#!{python}
import os, signal, sys, time
say = lambda text: os.write(2, text.encode() + b"\\n")
out = lambda data: os.write(1, data)
data = open({capture!r}, "rb").read()
stopped = False
def stop(*_):
    global stopped
    stopped = True
signal.signal(signal.SIGINT, stop)
{play}
"""
WAITS = """
say("Capturing on 'eth7'")
out(data[:24]); time.sleep(0.05); out(data[24:{size}])  # the header comes some time before the packets
while not stopped:
    time.sleep(0.01)  # until the signal
say("Packets received/dropped on interface 'eth7': 20/3 (pcap:0/dumpcap:0/flushed:3/ps_ifdrop:0) (87.0%)")
"""


def play(folder: Path, script: str, tool: str = "dumpcap", capture: Path = SESSION) -> dict[str, str]:
    """The environment in which a tool is what a script plays, with a capture."""
    path = folder / tool
    path.write_text(PLAYED.format(python=sys.executable, capture=str(capture), play=script))
    path.chmod(0o755)
    return {**os.environ, "PATH": str(folder)}


@contextmanager
def running(*arguments: str, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A command that is read while it runs; it is killed at the end."""
    command = [sys.executable, "-m", "msmqwire", "dissect", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, bufsize=0, **more
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def lines(process: subprocess.Popen[bytes], count: int) -> list[bytes]:
    """The next lines of its output, while it runs."""
    text, deadline = b"", time.monotonic() + SECONDS
    assert process.stdout is not None
    while text.count(b"\n") < count:
        ready, _, _ = select.select([process.stdout], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"only {text!r}"
        data = process.stdout.read(1 << 16)
        assert data, f"ended after {text!r}: {process.communicate()}"
        text += data
    assert process.poll() is None
    return text.splitlines()


def ended(process: subprocess.Popen[bytes]) -> tuple[int, list[bytes], list[str]]:
    """Its status, and the lines that were left on its output and its standard error."""
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out.splitlines(), err.decode().splitlines()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_rows_come_while_it_captures_and_a_signal_ends_it(tmp_path: Path, number: signal.Signals) -> None:
    expected = [item.to_json() for item in msmqwire.dissect(SESSION)]
    environment = play(tmp_path, WAITS.format(size=""))
    with running("--json", "--interface", "eth7", env=environment) as process:
        rows = [json.loads(line) for line in lines(process, len(expected))]
        process.send_signal(number)
        status, rest, err = ended(process)
    assert [row | {"file": str(SESSION)} for row in rows] == expected
    assert {row["file"] for row in rows} == {"eth7"}
    assert (status, rest) == (0, [])
    with_findings = sum(bool(item["findings"]) for item in expected)
    frames = sum(1 for _ in msmqwire.capture.open_records(SESSION))
    assert err == [
        "eth7: capturing, by dumpcap",
        f"eth7: {frames} frames, 3 dropped; {len(expected)} packets, {with_findings} with findings",
    ]


def test_a_frame_that_is_cut_where_it_was_stopped_is_no_damage(tmp_path: Path) -> None:
    environment = play(tmp_path, WAITS.format(size="-5"))
    with running("--interface", "eth7", env=environment) as process:
        lines(process, 3)
        process.send_signal(signal.SIGINT)
        status, _, err = ended(process)
    assert (status, len(err)) == (0, 2)


def test_a_packet_of_an_older_connection_appears_once_acked(tmp_path: Path) -> None:
    capture = tmp_path / "growing.pcap"
    capture.write_bytes((ROOT / "tests/vectors/cases/07_live_begins_inside/fol_mid.pcap").read_bytes())
    with running("--json", "--follow", str(capture)) as process:
        assert json.loads(lines(process, 1)[0])["frames"] == [1, 2]
        process.send_signal(signal.SIGINT)
        status, rest, _ = ended(process)
    assert (status, rest) == (0, [])


@pytest.mark.parametrize("source", ["pipe", "file", "interface"])
def test_an_unacknowledged_direction_starts_by_wall_time(tmp_path: Path, source: str) -> None:
    """Its SYN is not in the capture, and after its only segment no frame comes any more."""
    talk = TcpConversation().handshake().send(session_ack())
    inside = TcpConversation(("10.0.0.9", 50_000), start_ns=talk.time_ns).send(
        session_ack(), acknowledged=False
    )
    (tmp_path / "growing.pcap").write_bytes(pcap_bytes([*talk.frames, *inside.frames]))
    arguments, more = ["-"], {"stdin": subprocess.PIPE}
    if source == "file":
        arguments, more = ["--follow", str(tmp_path / "growing.pcap")], {}
    elif source == "interface":
        environment = play(tmp_path, WAITS.format(size=""), capture=tmp_path / "growing.pcap")
        arguments, more = ["--interface", "eth7"], {"env": environment}
    with running("--json", *arguments, **more) as process:
        if process.stdin is not None:
            process.stdin.write((tmp_path / "growing.pcap").read_bytes())
            process.stdin.flush()
        rows = lines(process, 1)
        shown = time.monotonic()
        rows += lines(process, 2 - len(rows))
        assert time.monotonic() - shown < SLOW_SECONDS
        assert [json.loads(row)["src"] for row in rows] == ["10.0.0.1", "10.0.0.9"]
        process.send_signal(signal.SIGINT)
        status, rest, _ = ended(process)
    assert (status, rest) == (0, [])


def test_rows_come_while_a_capture_grows(tmp_path: Path) -> None:
    expected = [item.to_json() for item in msmqwire.dissect(SESSION)]
    capture, data = tmp_path / "growing.pcap", SESSION.read_bytes()
    capture.write_bytes(b"")
    with running("--json", "--follow", str(capture)) as process, capture.open("ab", buffering=0) as file:
        file.write(data[:600])
        rows = lines(process, 2)
        file.write(data[600:-7])
        rows += lines(process, len(expected) - 2)
        process.send_signal(signal.SIGINT)
        status, rest, err = ended(process)
    assert [json.loads(row) | {"file": str(SESSION)} for row in rows] == expected
    assert (status, rest) == (0, [])
    assert err[0].startswith(f"{capture}: 20 frames; {len(expected)} packets, ")


@pytest.mark.parametrize("fate", ["became shorter", "is gone", "was replaced by another file"])
def test_a_followed_capture_that_is_lost_ends(tmp_path: Path, fate: str) -> None:
    capture = tmp_path / "growing.pcap"
    capture.write_bytes(SESSION.read_bytes())
    with running("--json", "--follow", str(capture)) as process:
        lines(process, 8)
        if fate == "became shorter":
            os.truncate(capture, 24)
        elif fate == "is gone":
            capture.unlink()
        else:
            other = tmp_path / "other.pcap"
            other.write_bytes(b"")
            other.replace(capture)
        status, rest, err = ended(process)
    assert (status, rest, err) == (0, [], [f"{capture} {fate}"])


def test_rows_for_a_file_are_counted_once(tmp_path: Path) -> None:
    environment, out = play(tmp_path, WAITS.format(size="")), tmp_path / "rows.arrow"
    rows = len(list(msmqwire.dissect(SESSION)))
    every = (
        "--endpoint",
        "10.0.0.1",
    )  # no condition of the compiled decoder, which might have to be compiled
    with running("--interface", "eth7", "--arrow", str(out), *every, env=environment) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"eth7: capturing, by dumpcap\n"
        until(out.exists, "the file of the rows is there")
        process.send_signal(signal.SIGINT)
        status, _, err = ended(process)
    assert (status, len(err)) == (0, 1)
    assert err[0].endswith(f"3 dropped; {rows} rows")
    with running("--arrow", str(out), *every, "-", stdin=SESSION.open("rb")) as process:
        assert ended(process) == (0, [], [f"{rows} rows"])


def test_a_tool_that_fails_later_is_an_error_after_the_rows(tmp_path: Path) -> None:
    script = 'out(data); say("dumpcap: The network adapter is gone."); say("more"); sys.exit(2)'
    with running("--json", "--interface", "eth7", env=play(tmp_path, script)) as process:
        status, rows, err = ended(process)
    assert (status, len(rows)) == (66, len(list(msmqwire.dissect(SESSION))))
    assert json.loads(err[-1]) == {"error": "eth7: The network adapter is gone.", "path": "", "offset": None}


def test_what_was_not_read_is_said_even_if_the_tool_fails(tmp_path: Path) -> None:
    captured = tmp_path / "captured.pcap"
    captured.write_bytes(pcap_bytes([bytes(60)] * 3, linktype=127))
    script = f'out(open({str(captured)!r}, "rb").read()); say("dumpcap: It is gone."); sys.exit(2)'
    with running("--json", "--interface", "eth7", env=play(tmp_path, script)) as process:
        status, rows, err = ended(process)
    assert (status, rows) == (66, [])
    assert json.loads(err[-2])["error"] == "eth7: It is gone."
    assert err[-1] == "3 frames were not read: 3 of link type 127"


@pytest.mark.parametrize(
    "tool, script, error",
    [
        (
            "dumpcap",
            'say("Capturing on x\\ndumpcap: There is no x.\\n(No such)"); sys.exit(1)',
            "There is no x.",
        ),
        (
            "tcpdump",
            'say("tcpdump: x: You don\'t have permission"); sys.exit(1)',
            "x: You don't have permission",
        ),
        ("tcpdump", 'say("tcpdump: eth7: No such device exists"); sys.exit(1)', "No such device exists"),
        ("tcpdump", "sys.exit(3)", "tcpdump ended with status 3"),
        ("dumpcap", "pass", "dumpcap captured nothing"),
        ("dumpcap", 'out(b""); os.write(2, b"x" * 100_000); sys.exit(1)', "x" * 1000),
        ("other", "pass", "neither dumpcap nor tcpdump is installed"),
    ],
    ids=["no interface", "no permission", "name", "status", "nothing", "long", "no tool"],
)
def test_what_a_tool_says_is_passed_on_in_one_line(
    tmp_path: Path, tool: str, script: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msmqwire.capture.live._PATH_MORE", str(tmp_path))
    monkeypatch.setenv("PATH", play(tmp_path, script, tool)["PATH"])
    with pytest.raises(msmqwire.capture.live.CaptureFailed) as caught:
        msmqwire.capture.live.LiveCapture("eth7")
    assert str(caught.value) == f"eth7: {error}"


def test_the_arguments_of_tools() -> None:
    arguments = msmqwire.capture.live._arguments
    assert arguments("dumpcap", "lo", "tcp") == ["-q", "-i", "lo", "-w", "-", "-f", "tcp"]
    assert arguments("tcpdump", "lo", "-z x")[-4:] == ["-w", "-", "--", "-z x"]


@pytest.mark.parametrize(
    "arguments, about",
    [
        ((), "--interface"),
        (("--interface", ""), "no name"),
        (("--interface", "lo", str(SESSION)), "not both"),
        (("--capture-filter", "tcp", str(SESSION)), "--capture-filter"),
        (("--follow", "--interface", "lo"), "--follow"),
        (("--follow", "-", str(SESSION)), "--follow"),
        (("--follow", str(EXAMPLES)), "--follow"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], about: str) -> None:
    with running(*arguments) as process:
        status, out, err = ended(process)
    assert (status, out) == (2, [])
    assert about in " ".join(err)


def test_standard_input_gives_rows_at_once_until_a_signal() -> None:
    data, expected = SESSION.read_bytes(), [item.to_json() for item in msmqwire.dissect(SESSION)]
    with running("--json", "-", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(data[:-9])
        process.stdin.flush()
        rows = [json.loads(line) for line in lines(process, len(expected) - 1)]
        assert [row["packet"] for row in rows] == [item["packet"] for item in expected[: len(rows)]]
        process.send_signal(signal.SIGINT)
        status, rest, err = ended(process)
    assert status == 0
    frames = sum(1 for _ in msmqwire.capture.open_records(SESSION)) - 1
    summary = f"<stdin>: {frames} frames; {len(expected)} packets, "
    assert len(rows) + len(rest) == len(expected)
    assert [line[: len(summary)] for line in err] == [summary]


def test_a_second_signal_ends_a_tool_that_does_not_stop(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    script = WAITS.format(size="").replace(
        "while not stopped:", f"while True:\n    if stopped: open({str(asked)!r}, 'w').close()"
    )
    with running("--interface", "eth7", env=play(tmp_path, script)) as process:
        lines(process, 3)
        process.send_signal(signal.SIGTERM)
        until(asked.exists, "the tool is asked to end")
        assert process.poll() is None  # the tool does not end
        process.send_signal(signal.SIGTERM)
        status, _, err = ended(process)
    assert (status, len(err)) == (0, 2)
