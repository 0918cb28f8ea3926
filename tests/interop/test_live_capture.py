"""Live capture of real traffic by dumpcap and tcpdump, on the loopback."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import msmqwire
from msmqwire.capture.live import CaptureFailed, LiveCapture
from tests.support.installed import installed
from tests.support.own_addresses import own_loopback
from tests.support.paths import ROOT

SECONDS = 60
PING = next(iter(msmqwire.dissect(ROOT / "examples/session.pcap"))).raw


@pytest.fixture(params=["dumpcap", "tcpdump"])
def tool_folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder that has just one tool; skipped where it is missing or may not capture."""
    program = installed(request.param)
    (tmp_path / request.param).symlink_to(program)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        try:
            LiveCapture("lo").close()
        except CaptureFailed as exc:
            pytest.skip(f"nothing can be captured here: {exc}")
    return tmp_path


def test_packets_are_shown_while_they_are_sent(tool_folder: Path) -> None:
    address = own_loopback(77)
    command = [
        sys.executable, "-m", "msmqwire", "dissect", "--json", "--interface", "lo",
        "--capture-filter", f"udp port 3527 and host {address}",
    ]  # fmt: skip
    environment = {**os.environ, "PATH": str(tool_folder)}
    with (
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=environment, bufsize=0
        ) as process,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
    ):
        assert process.stdout is not None
        receiver.bind((address, 3527))
        sender.bind((address, 0))
        deadline, text = time.monotonic() + SECONDS, b""
        while text.count(b"\n") < 3 and time.monotonic() < deadline:
            sender.sendto(PING, (address, 3527))
            if select.select([process.stdout], [], [], 0.2)[0]:
                text += process.stdout.read(1 << 16)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS)
    rows = [json.loads(line) for line in (text + out).splitlines()]
    assert len(rows) >= 3
    assert {(row["packet"], row["dst"], row["dst_port"], row["file"]) for row in rows} == {
        ("Ping", address, 3527, "lo")
    }
    assert process.returncode == 0
    first, last = err.decode().splitlines()
    assert first.startswith("lo: capturing, by ")
    assert last == f"lo: {len(rows)} frames, 0 dropped; {len(rows)} packets, 0 with findings"


@pytest.mark.parametrize(
    "interface, capture_filter, error",
    [("no-such-one", "", "no-such-one: .*[Nn]o such device|device named"), ("lo", "zzz", "lo: .*filter")],
    ids=["interface", "filter"],
)
def test_what_can_not_be_captured(
    tool_folder: Path, interface: str, capture_filter: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tool_folder))
    with pytest.raises(CaptureFailed, match=error) as caught:
        LiveCapture(interface, capture_filter)
    assert "\n" not in str(caught.value)
