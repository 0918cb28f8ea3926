"""``msmqwire pcap``: what is wanted of captures, as a capture again."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire.capture import open_records
from msmqwire.capture.record import NO_TIME, Record
from msmqwire.capture.writing import PcapngWriter, PcapWriter
from msmqwire.errors import InvalidValue
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.paths import EXAMPLES, ROOT
from tests.support.patience import limit
from tests.support.running import in_process as command

SESSION, HOSTILE = EXAMPLES / "session.pcap", EXAMPLES / "hostile.pcapng"
CAPTURES = [SESSION, HOSTILE, EXAMPLES / "remote_read.pcap", EXAMPLES / "netware.pcap"]


def process(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    words = [sys.executable, "-m", "msmqwire", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, cwd=ROOT, timeout=limit(60), check=False)


def seen(*captures: Path) -> list[tuple[Any, ...]]:
    """What does not depend on the numbers of frames and connections."""
    items = msmqwire.dissect(captures, lint=False)
    return [(i.time_ns, i.src, i.src_port, i.kind, i.size, i.raw) for i in items]


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.name)
@pytest.mark.parametrize("suffix", ["pcap", "pcapng"])
def test_whole_connections_dissect_to_the_same_packets(tmp_path: Path, capture: Path, suffix: str) -> None:
    out = tmp_path / f"out.{suffix}"
    done = command("pcap", "--connections", capture, "-o", out)
    assert (done.returncode, done.stdout) == (0, b"")
    assert seen(out) == seen(capture)
    assert {path.name for path in tmp_path.iterdir()} == {out.name}


def test_frames_of_the_wanted_packets_alone(tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    done = command("pcap", SESSION, "-o", out, "--where", "kind == 'UserMessage'")
    wanted = [item for item in msmqwire.dissect(SESSION) if item.kind == "UserMessage"]
    numbers = [number for item in wanted for number in item.frames]
    assert (len(wanted), done.stderr.decode()) == (1, f"1 packet, {len(numbers)} frames\n")
    records = [record for record in open_records(SESSION) if record.number in numbers]
    assert [(r.time_ns, r.data, r.length) for r in open_records(out)] == [
        (r.time_ns, r.data, r.length) for r in records
    ]


def test_a_packet_that_begins_in_the_file_before(tmp_path: Path) -> None:
    packet = h.user_message(properties=h.properties_header(body=b"x" * 3000))
    talk = c.TcpConversation().handshake().send(packet[:1000]).send(packet[1000:])
    cut = 5
    for name, frames in (("a.pcap", talk.frames[:cut]), ("b.pcap", talk.frames[cut:])):
        (tmp_path / name).write_bytes(c.pcap_bytes(frames))
    whole = msmqwire.dissect([tmp_path / "a.pcap", tmp_path / "b.pcap"])
    assert [item.kind for item in whole] == ["UserMessage"]
    out = tmp_path / "out.pcap"
    command("pcap", tmp_path / "a.pcap", tmp_path / "b.pcap", "-o", out)
    assert [item.raw for item in msmqwire.dissect(out)] == [packet]


def test_the_frames_of_a_capture_that_breaks_off(tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(SESSION.read_bytes()[:-7])
    done = command("pcap", cut, "-o", tmp_path / "out.pcap")
    assert done.returncode == 65
    told, complaint = done.stderr.decode().splitlines()
    assert told == "8 packets, 9 frames"
    assert "ends within a record" in json.loads(complaint)["error"]
    assert len(seen(tmp_path / "out.pcap")) == 8


def test_standard_input_and_output() -> None:
    done = command("pcap", "-", "-o", "-", "--kind", "ping", data=SESSION.read_bytes())
    assert [item.kind for item in msmqwire.dissect(io.BytesIO(done.stdout))] == ["Ping", "Ping"]


def test_a_capture_is_not_overwritten(tmp_path: Path) -> None:
    capture = tmp_path / "a.pcap"
    shutil.copy(SESSION, capture)
    done = command("pcap", capture, "-o", tmp_path / "." / "a.pcap")
    assert done.returncode == 2
    assert b"is one of the captures" in done.stderr
    assert capture.read_bytes() == SESSION.read_bytes()


@pytest.mark.parametrize(
    "arguments, status, told",
    [
        (["nowhere.pcap", "-o", "x.pcap"], 66, "nowhere.pcap"),
        ([SESSION, "-o", "s3://bucket/x.pcap"], 2, "a local file"),
        ([SESSION, "-o", "x.pcap", "--where", "label = "], 2, "a text in quotes is expected"),
        ([SESSION, "-o", "x.pcap", "--kind", "usermesage"], 2, "did you mean UserMessage"),
        ([SESSION], 2, "--output"),
    ],
)
def test_a_mistake_is_reported(
    arguments: list[Any], status: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command("pcap", *arguments)
    assert done.returncode == status, done.stderr
    assert told in done.stderr.decode()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_what_is_written(tmp_path: Path) -> None:
    for name in ("out.pcap", "out.pcapng"):
        command("pcap", SESSION, "-o", tmp_path / name)
        fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len"]
        done = subprocess.run(
            ["tshark", "-r", tmp_path / name, *fields], capture_output=True, text=True, check=True
        )
        expected = [
            f"{r.time_ns // 10**9}.{r.time_ns % 10**9:09d}\t{r.length}" for r in open_records(tmp_path / name)
        ]
        assert done.stdout.splitlines() == expected != []


def test_output_that_can_not_be_written(tmp_path: Path) -> None:
    done = process("pcap", SESSION, "-o", tmp_path / "nowhere/x.pcap")
    assert done.returncode == 74
    assert "nowhere" in json.loads(done.stderr)["error"]


def record(linktype: int, time_ns: int = c.START_NS, data: bytes = b"abcde") -> Record:
    return Record("x", 1, time_ns, linktype, data, 1500, 0)


def test_a_pcapng_file_has_an_interface_for_each_link_type() -> None:
    file = io.BytesIO()
    writer = PcapngWriter(file)
    records = [record(1), record(113, data=b"abcd"), record(1, time_ns=0), record(1, time_ns=(1 << 63) - 1)]
    for each in records:
        writer.write(each)
    file.seek(0)
    read = list(open_records(file))
    assert [(r.linktype, r.time_ns, r.data, r.length) for r in read] == [
        (r.linktype, r.time_ns, r.data, r.length) for r in records
    ]
    assert [r.interface for r in read] == [0, 1, 0, 0]


def test_a_pcapng_file_takes_any_time() -> None:
    """Frames before 1970 have an interface of their own."""
    file = io.BytesIO()
    writer = PcapngWriter(file)
    times = [-1, 0, 1 - (1 << 63), NO_TIME, -(10**18)]
    for time_ns in times:
        writer.write(record(1, time_ns=time_ns))
    file.seek(0)
    read = list(open_records(file))
    assert [one.time_ns for one in read] == times
    assert [one.interface for one in read] == [0, 1, 0, 1, 0]


def test_a_pcap_file_has_one_link_type_and_times_until_2106() -> None:
    writer = PcapWriter(io.BytesIO())
    writer.write(record(1))
    with pytest.raises(InvalidValue, match="link type 113"):
        writer.write(record(113))
    with pytest.raises(InvalidValue, match="time"):
        writer.write(record(1, time_ns=(1 << 32) * 10**9))
