"""Live capture of real traffic by dumpcap and tcpdump, on the loopback."""

from __future__ import annotations

import io
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

import msmqwire
from msmqwire.capture.live import CaptureFailed, LiveCapture
from msmqwire.cli import app
from tests.support import captures as c
from tests.support.capture import unread_frames as u
from tests.support.installed import installed
from tests.support.own_addresses import own_loopback
from tests.support.paths import ROOT
from tests.support.patience import limit

SECONDS = limit(60)
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


def frames_by(filter_: str, capture: Path) -> int:
    """How many frames of a capture tcpdump finds by a filter."""
    words = [str(installed("tcpdump")), "-r", str(capture), "-w", "-", filter_]
    done = subprocess.run(words, capture_output=True, check=True, timeout=SECONDS)
    return sum(1 for _ in msmqwire.capture.open_records(io.BytesIO(done.stdout)))


def test_filters_of_help_and_guide_find_what_they_say(tmp_path: Path) -> None:
    segment = c.ip(c.tcp(b"x" * 100), c.CLIENT, c.SERVER, protocol=6, ident=7)
    other = c.ip(c.tcp(b"x" * 100, dst_port=80), c.CLIENT, c.SERVER, protocol=6)
    fragments = [c.ethernet(part) for part in c.fragments_4(segment, 64)]
    kinds = {
        "plain": [c.ethernet(segment)],
        "a tag": [c.ethernet(segment, [5])],
        "two tags": [c.ethernet(segment, [6, 5])],
        "first fragment": fragments[:1],
        "later fragments": fragments[1:],
        "tunnel": [u.in_udp(u.VXLAN + c.ethernet(segment), 4789)],
        "others": [c.ethernet(other), c.ethernet(other, [5])],
    }
    (tagged,) = re.findall("'(.*?)'", _capture_filter_help())
    guide = (ROOT / "docs/guide-captures.md").read_text()
    expected = {
        "tcp port 1801": {"plain", "first fragment"},
        tagged: {"plain", "first fragment", "a tag"},
        f"{tagged} or (vlan and tcp port 1801)": {"plain", "first fragment", "a tag", "two tags"},
        "tcp port 1801 or ip[6:2] & 0x3fff != 0": {"plain", "first fragment", "later fragments"},
        "tcp port 1801 or udp port 4789": {"plain", "first fragment", "tunnel"},
    }
    for filter_, found in expected.items():
        assert f"`{filter_}`" in guide
        for kind, frames in kinds.items():
            capture = tmp_path / "capture.pcap"
            capture.write_bytes(c.pcap_bytes(frames))
            assert frames_by(filter_, capture) == (len(frames) if kind in found else 0), (filter_, kind)


def _capture_filter_help() -> str:
    command = app.get_command(click.Context(app), "dissect")
    assert command is not None
    (option,) = [one for one in command.params if "--capture-filter" in one.opts]
    return str(vars(option)["help"])
