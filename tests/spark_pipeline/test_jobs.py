"""The jobs: their tables, reports and exit statuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import msmqwire
from spark_udfs.jobs import decode, findings, sessions
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import unread_frames as u
from tests.support.paths import ROOT
from tests.support.patience import limit

EC, CP, ACK = h.establish_connection(), h.connection_parameters(), h.session_ack()
SMALL = h.user_message(session=h.session_header(), properties=h.properties_header(label="a", body=b"small"))
DAY = 86_400 * 10**9


def talk(port: int, days: int = 0) -> c.TcpConversation:
    conversation = c.TcpConversation(("10.0.0.1", port), start_ns=c.START_NS + days * DAY).handshake()
    return conversation.send(EC).send(EC, by_client=False).send(SMALL).send(ACK, by_client=False).close()


@pytest.fixture
def captures(tmp_path: Path) -> Path:
    """Two files from two days."""
    folder = tmp_path / "captures"
    folder.mkdir()
    for day in range(2):
        frames = c.merged(talk(5000, day).frames, talk(5001, day).frames)
        (folder / f"day-{day}.pcapng").write_bytes(c.pcapng_bytes(frames))
    return folder


def last_line(text: str) -> dict[str, object]:
    """The last line on standard error: the counts."""
    line: dict[str, object] = json.loads(text.splitlines()[-1])
    return line


def test_decode(spark, captures, tmp_path, capsys):
    out = tmp_path / "table"
    assert decode.main([str(captures), "--out", str(out), "--by-kind", "--partitions", "3"]) == 0
    counts = {"packets": 16, "malformed": 0, "skipped_bytes": 0, "damaged_files": 0, "frames_not_read": []}
    assert last_line(capsys.readouterr().err) == counts
    assert sorted(path.name for path in out.glob("date=*")) == ["date=2023-11-14", "date=2023-11-15"]
    table = pq.read_table(out)
    expected = msmqwire.read_capture([str(path) for path in sorted(captures.iterdir())])
    assert Counter(map(str, table.column("kind").to_pylist())) == Counter(expected.column("kind").to_pylist())
    columns = ["src", "src_port", "label", "body", "client_guid"]
    rows, expected_rows = (Counter(map(repr, rows.select(columns).to_pylist())) for rows in (table, expected))
    assert rows == expected_rows
    assert decode.main([str(captures), "--out", str(out)]) == 2  # the folder exists


@pytest.mark.parametrize("job", [decode, findings, sessions])
def test_frames_that_were_not_read(spark, captures, tmp_path, capsys, job):
    """They are said and counted, once, however the files are divided; the status is 0."""
    frames = [u.UNREAD[name][:2] for name in ("radiotap", "ESP", "radiotap", "GTP", "radiotap")]
    (captures / "day-2.pcapng").write_bytes(u.capture_of([*frames, *u.OTHERS.values()]))
    arguments = [str(captures), "--out", str(tmp_path / "table"), "--split-size", "300"]
    assert job.main(arguments) == 0
    err = capsys.readouterr().err
    assert last_line(err)["frames_not_read"] == [
        {"reason": "link type 127", "frames": 3},
        {"reason": "encrypted (ESP)", "frames": 1},
        {"reason": "tunnelled (GTP)", "frames": 1},
    ]
    line = "5 frames were not read: 3 of link type 127, 1 encrypted (ESP), 1 tunnelled (GTP)"
    assert err.splitlines().count(line) == 1


@pytest.mark.parametrize("name", ["bigts", "ts_nsasus"])
def test_times_that_64_bits_do_not_have(spark, tmp_path, capsys, name):
    """Rows without a time; 65, as of any capture with skipped bytes."""
    case = ROOT / "tests/vectors/cases/01_time_beyond_64_bits" / f"{name}.pcapng"
    for number, job in enumerate((decode, findings, sessions)):
        assert job.main([str(case), "--out", str(tmp_path / str(number))]) == 65
    rows = pq.read_table(tmp_path / "0", partitioning=None).to_pylist()
    assert [(row["time"], row["kind"]) for row in rows] == [(None, "Malformed"), (None, "Skipped")]
    (session,) = pq.read_table(tmp_path / "2").to_pylist()
    assert session["last"] is None or session["last"].year == 2023
    packets = spark.read.format("msmq").load(str(case))
    assert [row.time for row in packets.collect()] == [None, None]
    assert spark.read.format("msmq").option("read", "sessions").load(str(case)).count() == 1


def test_decode_reports_what_was_lost(spark, captures, tmp_path, capsys):
    bad = c.TcpConversation(("10.0.0.1", 6000)).handshake().send(SMALL).send(b"noise").send(SMALL).close()
    (captures / "bad.pcapng").write_bytes(c.pcapng_bytes(bad.frames))
    with (captures / "day-1.pcapng").open("rb+") as file:
        file.truncate(file.seek(0, os.SEEK_END) - 7)
    out = tmp_path / "table"
    arguments = [str(captures), "--out", str(out), "--columns", "time,kind,error"]
    assert decode.main(arguments) == 65
    err = capsys.readouterr().err
    counts = {"packets": 18, "malformed": 0, "skipped_bytes": 5, "damaged_files": 1, "frames_not_read": []}
    assert last_line(err) == counts
    assert "day-1.pcapng, byte" in err
    skipped = pq.read_table(out).filter(pc.field("kind") == "Skipped")
    errors = sorted(skipped.column("error").to_pylist())
    assert errors[0].startswith("byte ")
    assert errors[1].startswith("no packet begins here")


def test_a_malformed_packet_is_no_loss(spark, tmp_path, capsys):
    wrong = SMALL[:60] + b"\xff\xff\xff\xff" + SMALL[64:]
    frames = c.TcpConversation().handshake().send(wrong).send(SMALL).close().frames
    (tmp_path / "one.pcapng").write_bytes(c.pcapng_bytes(frames))
    assert decode.main([str(tmp_path / "one.pcapng"), "--out", str(tmp_path / "table")]) == 0
    assert last_line(capsys.readouterr().err) == {
        "packets": 1, "malformed": 1, "skipped_bytes": 0, "damaged_files": 0, "frames_not_read": [],
    }  # fmt: skip


def test_sessions(spark, captures, tmp_path, capsys):
    out = tmp_path / "table"
    assert sessions.main([str(captures / "day-*.pcapng"), "--out", str(out)]) == 0
    assert last_line(capsys.readouterr().err)["packets"] == 16
    table = pq.read_table(out)
    assert sorted(table.column("client_port").to_pylist()) == [5000, 5000, 5001, 5001]
    assert set(table.column("handshake").to_pylist()) == {"incomplete"}


def test_findings(spark, captures, tmp_path, capsys):
    out = tmp_path / "table"
    assert findings.main([str(captures), "--out", str(out)]) == 0
    output = capsys.readouterr()
    assert last_line(output.err)["packets"] == 16
    items = msmqwire.dissect([str(path) for path in sorted(captures.iterdir())])
    expected = Counter(finding.id for item in items for finding in item.findings)
    assert expected
    assert Counter(pq.read_table(out).column("id").to_pylist()) == expected
    summary = {line.split()[2]: int(line.split()[0]) for line in output.out.splitlines()}
    assert summary == expected


def test_a_missing_capture_and_wrong_usage(tmp_path, capsys):
    out = str(tmp_path / "table")
    assert decode.main([str(tmp_path / "none.pcap"), "--out", out]) == 66
    assert "none.pcap" in last_line(capsys.readouterr().err)["error"]
    for arguments in ([], ["a.pcap"], ["a.pcap", "--out", out, "--columns", "colour"]):
        with pytest.raises(SystemExit) as ended:
            decode.main(arguments)
        assert ended.value.code == 2
    with pytest.raises(SystemExit) as ended:
        sessions.main(["a.pcap", "--out", out, "--ports", "70000"])
    assert ended.value.code == 2


@pytest.mark.parametrize(
    "out, why",
    [
        ("s3a://bucket/x", r"no file system for s3a: .*=org\.apache\.hadoop:hadoop-aws:3\.[\d.]+; java"),
        ("s3://bucket/x", r"no file system for s3: .*hadoop-aws:3\.[\d.]+, and write s3a: for s3:; "),
        ("abfss://c@account/x", r"no file system for abfss: .*hadoop:hadoop-azure:"),
        ("zz://bucket/x", r"no file system for zz: URLs; No FileSystem for scheme"),
        ("hdfs://127.0.0.1:1/x", r"--out hdfs://127\.0\.0\.1:1/x: .*Connection refused"),
        ("", "Can not create a Path from an empty string"),
        ("s3a://secret@bucket/x", "^--out: credentials in a URL would be shown"),
    ],
)
def test_where_spark_cannot_write(spark, captures, capsys, out, why):
    """One line, before any work."""
    assert findings.main([str(captures), "--out", out]) == 2
    reported, refused = capsys.readouterr().err.splitlines()
    assert reported.startswith("2 files, ")
    assert re.search(why, json.loads(refused)["error"])
    assert "secret" not in refused


def test_spark_submit_runs_a_job_as_it_is(cluster, captures, tmp_path):
    """The script runs where the package is not installed, with only the zip file that is shipped."""
    import pyspark

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    script = Path(decode.__file__)
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONSAFEPATH": "1"}
    ran = subprocess.run(
        [submit, "--master", "local[1]", "--py-files", cluster.package, "--conf", "spark.ui.enabled=false",
         "--conf", "spark.sql.shuffle.partitions=2", script, captures, "--out", tmp_path / "table"],
        capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=limit(180), check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    # spark-submit merges both output streams of a script.
    lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]
    assert json.loads(lines[-1])["packets"] == 16
    assert pq.read_table(tmp_path / "table").num_rows == 16
