"""No time, or one that 64 bits of nanoseconds can't represent: none in any output, and every row is there."""

from __future__ import annotations

import io
import json
import re
import struct
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import msmqwire
from msmqwire.analysis.fate import fates
from msmqwire.capture import open_records
from msmqwire.capture.record import NO_TIME
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.both_readers import assert_same
from tests.support.capture_files import PcapNg
from tests.support.paths import ROOT
from tests.support.running import in_process as command

CASES = sorted((ROOT / "tests/vectors/cases/01_time_beyond_64_bits").glob("*.pcapng"))
assert len(CASES) == 2
MESSAGE = h.user_message(properties=h.properties_header(label="late", body=b"body" * 60))
BEYOND = c.Frame((1 << 64) - 1, b"")


def write(path: Path, *, without: set[int]) -> Path:
    """A connection with three messages, some of whose frames have no time, and a ping that has none."""
    talk = c.TcpConversation().handshake()
    for _ in range(3):
        talk.send(MESSAGE)
    file = PcapNg().section().interface(tsresol=9)
    for number, frame in enumerate(talk.frames):
        file.packet(c.Frame(BEYOND.time_ns, frame.data) if number in without else frame)
    path.write_bytes(file.data)
    return path


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_a_public_capture(case: Path, tmp_path: Path) -> None:
    """No frame of either has a time of this age of the world; the connection goes on whatever they are."""
    done = command("dissect", "--json", case)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert [(row["time"], row["packet"], row["stream"]) for row in rows] == [
        (None, "Malformed", 0), (None, "Skipped", 0),
    ]  # fmt: skip
    table = command("dissect", case).stdout.decode().splitlines()
    assert [line.split()[:2] for line in table[1:]] == [["-", "4"], ["-", "4"]]
    done = command("dissect", "--csv", "--columns", "time,kind", case)
    assert (done.returncode, done.stdout.decode()) == (0, '"time","kind"\n,"Malformed"\n,"Skipped"\n')
    assert msmqwire.read_capture(case)["time"].null_count == 2
    commands: list[list[str | Path]] = [
        ["fate", case], ["lint", case], ["dissect", "--stats", "--json", case],
        ["report", case, "-o", tmp_path / "report.html"],
    ]  # fmt: skip
    for words in commands:
        assert command(*words).returncode == 0, words
    stats = json.loads(command("dissect", "--stats", "--json", case).stdout)
    assert (stats["packets"], stats["start"], stats["end"]) == (2, None, None)
    assert (stats["sessions"][0]["start"], stats["sessions"][0]["end"]) == (None, None)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return write(tmp_path / "capture.pcapng", without={5})


def test_rows_without_a_time_go_to_a_partition_without_a_date(capture: Path, tmp_path: Path) -> None:
    out = tmp_path / "lake"
    done = command("lake", capture, "--out", out)
    assert done.returncode == 0, done.stderr
    files = sorted(path.relative_to(out).parts[0] for path in out.rglob("*.parquet"))
    assert files == ["date=2023-11-14", "date=__HIVE_DEFAULT_PARTITION__"]
    rows = msmqwire.read_lake(out).to_table()
    assert rows.num_rows == 3
    assert rows["time"].null_count == rows["time_ns"].null_count == 1
    parquet = tmp_path / "columns"
    assert command("dissect", "--parquet", parquet, capture).returncode == 0
    times = pq.read_table(parquet)["time"]
    assert times.is_null().to_pylist() == [False, True, False]


def test_python_has_none(capture: Path) -> None:
    items = list(msmqwire.dissect(capture))
    assert [item.time_ns is None for item in items] == [False, True, False]
    assert items[1].time is None
    assert repr(items[1]).startswith("<Item - ")
    assert [item.stream for item in items] == [0, 0, 0]
    message = [fate for fate in fates(capture) if fate.sent_ns is None]
    assert len(message) <= 1
    assert "-" in str(msmqwire.ladder(capture))


def test_no_condition_on_a_time_holds_for_it(capture: Path) -> None:
    for condition in ("time >= 0", "time < '2200-01-01'", "not time >= 0"):
        by_items = command("dissect", "--json", "--where", condition, capture).stdout.splitlines()
        by_columns = msmqwire.read_capture(capture, where=condition)
        assert len(by_items) == by_columns.num_rows == (0 if condition.startswith("not") else 2), condition
    assert msmqwire.read_capture(capture, where="time is null").num_rows == 1
    for words in (["--from", "1970-01-01"], ["--to", "2200-01-01"]):
        for form in ("--json", "--csv"):
            lines = command("dissect", form, *words, capture).stdout.splitlines()
            assert len(lines) == 2 + (form == "--csv"), (words, form)


def test_a_report_says_no_time(capture: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert command("report", capture, "-o", page).returncode == 0
    data = json.loads(re.search(r'id="report">(.*?)</script>', page.read_text())[1])  # type: ignore[index]
    assert data["totals"]["packets"] == 3
    assert data["start"][0] == data["sessions"][0]["start"][0] == c.START_NS // 10**9
    assert sum(sum(series) for series in data["timeline"]["series"]) == 2


def test_an_excerpt_keeps_that_there_is_none(capture: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    assert command("pcap", capture, "-o", out).returncode == 0
    assert [record.time_ns == NO_TIME for record in open_records(out)] == [False, True, False]
    refused = command("pcap", capture, "-o", tmp_path / "out.pcap")
    assert refused.returncode == 65
    assert b"frame 6 has a time that pcap can't represent; pcapng may" in refused.stderr


@pytest.mark.parametrize("without", [set(), {0}, {1, 2}, {3}, set(range(20)), set(range(0, 20, 2))])
def test_a_connection_goes_on_over_frames_without_a_time(tmp_path: Path, without: set[int]) -> None:
    path = write(tmp_path / "capture.pcapng", without=without)
    table = msmqwire.read_capture(path, columns=["kind", "stream", "frame"])
    assert table["kind"].to_pylist() == ["UserMessage"] * 3
    assert pc.unique(table["stream"]).to_pylist() == [0]


def test_the_last_time_of_pcap_is_one(tmp_path: Path) -> None:
    """Seconds to 2106, and a fraction of more than a second: 64 bits have them all."""
    (frame,) = c.TcpConversation().segment(True, MESSAGE).frames
    record = struct.pack("<IIII", 0xFFFF_FFFF, 0xFFFF_FFFF, len(frame.data), len(frame.data)) + frame.data
    path = tmp_path / "late.pcap"
    path.write_bytes(c.pcap_bytes([]) + record)
    time_ns = 0xFFFF_FFFF * (10**9 + 1000)
    assert [item.time_ns for item in msmqwire.dissect(path)] == [time_ns]
    assert msmqwire.read_capture(path)["time"].cast("int64").to_pylist() == [time_ns]


@pytest.fixture
def simple(tmp_path: Path) -> Path:
    """The same connection in Simple Packet Blocks, which have no times, and a frame with one behind it."""
    talk = c.TcpConversation().handshake()
    for _ in range(3):
        talk.send(MESSAGE)
    file = PcapNg().section().interface()
    for frame in talk.frames:
        file.simple_packet(frame)
    file.packet(c.Frame(c.START_NS, c.ethernet(c.udp_packet(b"?", dst_port=9))))
    path = tmp_path / "simple.pcapng"
    path.write_bytes(file.data)
    return path


def test_simple_packets_have_no_time(simple: Path, tmp_path: Path) -> None:
    assert_same([simple.read_bytes()])
    rows = [json.loads(line) for line in command("dissect", "--json", simple).stdout.splitlines()]
    assert [(row["packet"], row["time"]) for row in rows] == [("UserMessage", None)] * 3
    table = command("dissect", simple).stdout.decode().splitlines()
    assert {line.split()[0] for line in table[1:]} == {"-"}
    assert msmqwire.read_capture(simple)["time"].null_count == 3
    assert command("dissect", "--csv", "--columns", "time", simple).stdout.decode().count("1970") == 0
    for line in command("lint", "--json", simple).stdout.splitlines():
        assert json.loads(line)["time"] is None
    stats = json.loads(command("dissect", "--stats", "--json", simple).stdout)
    assert (stats["packets"], stats["start"], stats["end"]) == (3, None, None)
    assert (stats["sessions"][0]["start"], stats["sessions"][0]["end"]) == (None, None)
    lives = [json.loads(line) for line in command("fate", "--json", simple).stdout.splitlines()]
    assert {event["time"] for life in lives for event in life["events"]} == {None}
    commands: list[list[str | Path]] = [
        ["fate", simple], ["lint", simple], ["dissect", "--stats", simple],
        ["report", simple, "-o", tmp_path / "report.html"],
    ]  # fmt: skip
    for words in commands:
        done = command(*words)
        assert (done.returncode, b"1970" in done.stdout) == (0, False), words
    assert "1970" not in str(msmqwire.ladder(simple))


def test_no_range_of_times_has_simple_packets(simple: Path) -> None:
    for words in (["--from", "1970-01-01"], ["--to", "2200-01-01"]):
        for form in ("--json", "--csv"):
            lines = command("dissect", form, *words, simple).stdout.splitlines()
            assert len(lines) == (form == "--csv"), (words, form)


def test_an_excerpt_of_simple_packets_has_no_times(simple: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    assert command("pcap", simple, "-o", out).returncode == 0
    assert {record.time_ns for record in open_records(out)} == {NO_TIME}


def test_a_lake_has_simple_packets_without_a_date(simple: Path, tmp_path: Path) -> None:
    out = tmp_path / "lake"
    assert command("lake", simple, "--out", out).returncode == 0
    rows = msmqwire.read_lake(out).to_table()
    assert (rows.num_rows, rows["time"].null_count) == (3, 3)


def test_a_gap_of_simple_packets_is_left_to_the_next_reader() -> None:
    """A segment without a time may be in what the successor reads, if nothing says when that begins."""
    talk = c.TcpConversation().handshake().send(MESSAGE * 20)
    frames = [frame for frame in talk.frames if frame.segment is not None]
    del frames[4]
    file = PcapNg().section().interface()
    for frame in frames[:9]:
        file.simple_packet(frame)
    whole = msmqwire.analysis.dissection.dissect(io.BytesIO(file.data), flush=False)
    assert [item.kind for item in whole if item.kind == "Skipped"] == []
    for successor_ns, kinds in ((0, set()), (c.START_NS, {"Skipped"})):
        part = msmqwire.analysis.dissection.dissect(
            io.BytesIO(file.data), flush=False, successor_ns=successor_ns
        )
        assert {item.kind for item in part if item.kind == "Skipped"} == kinds


def test_fragments_of_simple_packets_are_not_timed_out() -> None:
    """Between a fragment without a time and one of this century there are not sixty seconds."""
    talk = c.TcpConversation().segment(True, MESSAGE)
    packet = talk.frames[0].data[14:]
    first, *rest = map(c.ethernet, c.fragments_4(packet[: int.from_bytes(packet[2:4], "big")], 200))
    file = PcapNg().section().interface().simple_packet(c.Frame(0, first))
    for number, frame in enumerate(rest):
        file.packet(c.Frame(c.START_NS + number, frame))
    assert [item.kind for item in msmqwire.dissect(io.BytesIO(file.data))] == ["UserMessage"]
    assert_same([file.data])
