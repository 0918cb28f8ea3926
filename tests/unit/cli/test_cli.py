"""The command line: what it prints, where, and how it ends. Contract sections 1, 2 and 4."""

from __future__ import annotations

import gzip
import io
import json
import os
import pty
import random
import re
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import msmqwire
from msmqwire.analysis.dissection import dissect as dissected
from msmqwire.cli import build, parse, progress
from msmqwire.cli.captures import capture_input, dissect, filters, lint
from msmqwire.cli.common import from_hex
from msmqwire.names.printable import safe
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.paths import ROOT
from tests.support.patience import limit
from tests.support.running import in_process as command

SESSION, HOSTILE = ROOT / "examples/session.pcap", ROOT / "examples/hostile.pcapng"
SRMP = ROOT / "tests/vectors/srmp"
VECTORS = sorted(path for path in (ROOT / "tests/vectors").glob("*.hex") if ".printed" not in path.name)
ACK = h.session_ack()
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\r\n\u202e\U000e0041:boom:[red]"


def process(*arguments: str | Path, data: bytes = b"", **more) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "msmqwire", *map(str, arguments)],
        input=data, capture_output=True, cwd=ROOT, timeout=limit(60), check=False, **more,
    )  # fmt: skip


def complaint(done: subprocess.CompletedProcess[bytes], status: int = 65) -> dict:
    """The single JSON object on standard error of a command that printed nothing else."""
    assert (done.returncode, done.stdout) == (status, b""), done.stderr
    error = json.loads(done.stderr)
    assert set(error) == {"error", "path", "offset"}
    return error


def evil_message(label: str = EVIL) -> bytes:
    user = {"DestinationQueue": {"DirectFormatName": f"OS:{EVIL}\\q"}}
    properties = {"Label": label, "MessageBody": EVIL.encode("utf-16-le"), "BodyType": 8}
    return msmqwire.build(
        {"packet": "UserMessage", "fields": {"UserHeader": user, "MessagePropertiesHeader": properties}}
    )


def evil_capture() -> bytes:
    talk = c.TcpConversation().handshake().send(evil_message()).send(h.base_header(1)).close()
    return c.pcapng_bytes(talk.frames)


def no_control_characters(text: str) -> None:
    assert all(char.isprintable() or char == "\n" for char in text), ascii(text)


# --- parse and build ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", VECTORS, ids=lambda path: path.stem)
def test_parse_and_build_are_the_identity(vector):
    data = bytes.fromhex(vector.read_text())
    out, err, built = io.StringIO(), io.StringIO(), io.BytesIO()
    assert parse.run(data, out, err) == 0
    assert out.getvalue().count("\n") == 1
    assert json.loads(out.getvalue())["size"] == len(data)
    assert build.run(out.getvalue().encode(), built, err) == 0
    assert built.getvalue() == data
    assert err.getvalue() == ""


def test_parse_and_build_in_a_pipe():
    data = bytes.fromhex(VECTORS[6].read_text())
    parsed = process("parse", data=data)
    assert parsed.returncode == 0
    assert process("build", data=parsed.stdout).stdout == data
    assert process("parse", "--hex", VECTORS[6]).stdout == parsed.stdout
    assert process("build", "--hex", "-", data=parsed.stdout).stdout == data.hex().encode() + b"\n"


@pytest.mark.parametrize("name, data", [("ping", h.ping()), ("remote_read", h.user_message())])
def test_parse_by_protocol(name, data):
    done = command("parse", "--protocol", name, data=data)
    assert json.loads(done.stdout)["packet"] == {"ping": "Ping", "remote_read": "RemoteReadMessage"}[name]
    assert command("build", data=done.stdout).stdout == data


@pytest.mark.parametrize(
    "data, path, offset",
    [
        (b"", "BaseHeader.VersionNumber", 0),
        (b"\x10", "BaseHeader.Reserved", 1),
        (b"\x7fELF" + bytes(20), "BaseHeader.VersionNumber", 0),
        (h.base_header(15), "BaseHeader.PacketSize", 8),
        (ACK + b"x", "BaseHeader.PacketSize", 8),
    ],
)
def test_parse_tells_what_is_wrong_and_where(data, path, offset):
    out, err = io.StringIO(), io.StringIO()
    assert parse.run(data, out, err) == 65
    error = json.loads(err.getvalue())
    assert (error["path"], error["offset"], out.getvalue()) == (path, offset, "")
    assert error["error"]


def test_hex_with_blanks_and_remarks():
    assert from_hex(b"10 00\t03:00,\r\n4c # 49 is left out\n4f\n") == bytes.fromhex("1000 0300 4c4f")
    assert from_hex(b"") == b""
    for text, offset in ((b"1", 1), (b"10 0", 4), (b"0x10", 1), (b"10\xff", 2)):
        with pytest.raises(msmqwire.LocatedError) as raised:
            from_hex(text)
        assert raised.value.offset == offset


@pytest.mark.parametrize(
    "text",
    [
        b"", b"[]", b"null", b"1", b'"text"', b"{}", b'{"packet": 5}', b'{"packet": "Nope", "fields": {}}',
        b'{"packet": "Ping", "fields": []}', b'{"packet": "Ping", "fields": {"Cookie": NaN}}',
        b'{"packet": "Ping", "fields": {"Cookie": 1e999}}', b'{"packet": "Ping", "fields": {"Cookie": "x"}}',
        b'{"packet": "Ping", "fields": {"Nope": 1}}', b'{"packet": "Ping"', b"\x10\0\x1b\0LIOR", b"\xff\xfe",
        b"[" * 200_000, b"9" * 5000, b'{"packet": "Ping", "fields": {"Cookie": ' + b"9" * 4000 + b"}}",
        b'{"packet": "Ping", "fields": {"Cookie": -1}}', b'{"packet": "Ping", "fields": {"QMGuid": "1"}}',
        b'{"packet": "UserMessage", "fields": {"MessagePropertiesHeader": {"Label": "\\ud800"}}}',
        b'{"packet": "UserMessage", "fields": {"MessagePropertiesHeader": {"MessageBody": "xyz"}}}',
        b'{"packet": "UserMessage", "fields": {"UserHeader": {"DestinationQueue": {"Nope": 1}}}}',
    ],
)  # fmt: skip
def test_build_tells_what_is_wrong(text):
    out, err = io.BytesIO(), io.StringIO()
    assert build.run(text, out, err) == 65
    assert set(json.loads(err.getvalue())) == {"error", "path", "offset"}
    assert out.getvalue() == b""


def test_build_computes_missing_fields_and_keeps_given_ones():
    out = io.BytesIO()
    value = {"packet": "SessionAck", "fields": {"SessionHeader": {"WindowSize": 7}}}
    assert build.run(b"\xef\xbb\xbf" + json.dumps(value).encode(), out, io.StringIO()) == 0
    assert out.getvalue() == h.session_ack(h.session_header(window=7))
    value["fields"]["BaseHeader"] = {"PacketSize": 5}
    out = io.BytesIO()
    build.run(json.dumps(value).encode(), out, io.StringIO())
    assert out.getvalue()[8] == 5


# --- how commands end --------------------------------------------------------------------------------------


def test_version_and_help():
    done = process("--version")
    assert (done.returncode, done.stdout.decode()) == (0, f"msmqwire {msmqwire.__version__}\n")
    for options in (("--version", "--verbose"), ("--verbose", "--version")):
        version, engine = process(*options).stdout.decode().splitlines()
        assert version == f"msmqwire {msmqwire.__version__}"
        assert re.fullmatch("columns: (the library .*_reader.*|the portable reader, in Python)", engine)
    for name in ("parse", "build", "dissect", "lint"):
        assert name.encode() in command("--help").stdout
        assert command(name, "--help").returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["nope"], ["parse", "--nope"], ["parse", "a", "b"], ["parse", "--protocol", "smtp"], ["dissect"],
        ["lint"], ["lint", "--protocol", "smtp", SESSION],
        ["dissect", "--json", "--table", SESSION], ["dissect", "--port", "0", SESSION],
        ["dissect", "--workers", "2", SESSION], ["dissect", "--csv", "--workers", "0", SESSION],
        ["dissect", "--port", "65536", SESSION], ["dissect", "--port", "x", SESSION],
        ["dissect", "--kind", "Nope", SESSION], ["dissect", "--from", "yesterday", SESSION],
    ],
)  # fmt: skip
def test_wrong_usage(arguments):
    done = command(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["parse", "build", "dissect", "lint"])
def test_what_is_missing_or_a_folder(name, tmp_path):
    error = complaint(command(name, tmp_path / "none"), 66)
    assert str(tmp_path / "none") in error["error"]
    said = complaint(command(name, tmp_path), 66)["error"].lower()
    assert "directory" in said or said.endswith("a folder without files")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
@pytest.mark.parametrize("name", ["parse", "build", "dissect", "lint"])
def test_what_may_not_be_read(name, tmp_path):
    path = tmp_path / "secret"
    path.touch(0o000)
    assert "ermission" in complaint(command(name, path), 66)["error"]


@pytest.mark.parametrize("name", ["parse", "build"])
def test_standard_input_that_is_closed(name):
    done = process(name, preexec_fn=lambda: os.close(0))
    assert complaint(done, 66)["error"] == "standard input is closed"


@pytest.mark.parametrize("lines", [0, 1])
@pytest.mark.parametrize(
    "arguments", [["dissect", "--json", HOSTILE], ["dissect", SESSION], ["lint", HOSTILE]]
)
def test_a_reader_that_goes_away(arguments, lines):
    process = subprocess.Popen(
        [sys.executable, "-m", "msmqwire", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    for _ in range(lines):
        process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(limit(60)) in (0, 1)
    process.stderr.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_an_output_that_is_full():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "msmqwire", "dissect", str(SESSION)],
            stdout=full, stderr=subprocess.PIPE, cwd=ROOT, timeout=limit(60), check=False,
        )  # fmt: skip
    assert done.returncode == 74
    assert json.loads(done.stderr)["error"] == os.strerror(28)


def test_a_fault_of_our_own():
    code = "import sys; from msmqwire.cli import main, parse; parse.parse = None; sys.argv = ['', 'parse']"
    code += "; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], input=ACK, capture_output=True, cwd=ROOT, timeout=limit(60), check=False
    )
    assert (done.returncode, done.stdout) == (70, b"")
    assert "a fault of msmqwire itself" in json.loads(done.stderr.splitlines()[-1])["error"]


# --- dissect -----------------------------------------------------------------------------------------------


def test_dissect_as_json():
    done = process("dissect", "--json", SESSION, HOSTILE)
    assert (done.returncode, done.stderr) == (0, b"")
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    items = list(dissected([SESSION, HOSTILE]))
    assert objects == [item.to_json() for item in items]
    for item in objects:
        assert {"time", "frames", "transport", "stream", "src", "src_port", "dst", "dst_port"} < set(item)
        assert {"packet", "size", "findings", "error"} < set(item)
        assert ("fields" in item) == (item["packet"] not in ("Malformed", "Skipped"))
        assert ("raw" in item) == (item["packet"] == "Malformed")
        assert ("reason" in item) == (item["packet"] == "Skipped")


def test_dissect_as_a_table():
    done = command("dissect", SESSION)
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    assert lines[0].split() == ["time", "frames", "st", "from", "to", "packet", "size", "find", "about"]
    assert len(lines) == 9
    row = lines[7].split()
    assert row[:7] == [
        "2026-03-01T12:00:00.002619000Z", "14-15", "0", "10.0.0.1:49759", "10.0.0.2:1801", "UserMessage",
        "2224",
    ]  # fmt: skip
    assert '"mqsender label"' in lines[7]
    assert command("dissect", "--table", SESSION).stdout == done.stdout


def test_dissect_as_a_hex_dump():
    done = command("dissect", "--hexdump", SESSION)
    text = done.stdout.decode()
    assert done.returncode == 0
    for expected in ("BaseHeader.Signature", "4c 49 4f 52", "UserHeader.DestinationQueue", "bytes more"):
        assert expected in text
    malformed = command("dissect", "--hexdump", "--kind", "Malformed", HOSTILE).stdout.decode()
    assert "10 00 03" in malformed
    assert "ATTACK" in malformed


def test_dissect_from_standard_input_and_packed(tmp_path):
    expected = command("dissect", SESSION).stdout
    assert command("dissect", "-", data=SESSION.read_bytes()).stdout == expected
    packed = gzip.compress(SESSION.read_bytes())
    assert command("dissect", "-", data=packed).stdout == expected
    assert command("dissect", str(SESSION.parent / "sess*.pcap")).stdout == expected


def test_dissect_a_file_that_breaks_off():
    done = command("dissect", "--json", "-", data=SESSION.read_bytes()[:3000])
    assert done.returncode == 65
    assert len(done.stdout.splitlines()) == 6
    error = json.loads(done.stderr)
    assert error["offset"] == 2208
    assert "ends within" in error["error"]


@pytest.mark.parametrize("data", [b"", b"no capture at all"])
def test_dissect_other_files(data):
    assert complaint(command("dissect", "--json", "-", data=data))["offset"] == 0


def test_dissect_with_one_file_missing_prints_nothing(tmp_path):
    complaint(command("dissect", "--json", SESSION, tmp_path / "none"), 66)


def test_dissect_other_ports():
    talk = c.TcpConversation((c.CLIENT, 5), (c.SERVER, 6)).handshake().send(b"x")
    data = c.pcap_bytes(talk.frames)
    assert command("dissect", "--json", "-", data=data).stdout == b""
    done = command("dissect", "--json", "--port", "7", "--port", "6", "-", data=data)
    assert [json.loads(line)["packet"] for line in done.stdout.splitlines()] == ["Skipped"]


def test_findings_are_left_out_when_not_wanted():
    done = command("dissect", "--json", "--no-lint", HOSTILE)
    assert all(json.loads(line)["findings"] == [] for line in done.stdout.splitlines())


# --- filters -----------------------------------------------------------------------------------------------


def filtered(*conditions: filters.Filter) -> list[tuple[str, int]]:
    out, err = io.StringIO(), io.StringIO()
    printer = dissect.Printer(out, as_json=True)

    def is_wanted(item: msmqwire.Item) -> bool:
        return all(condition(item) for condition in conditions)

    assert dissect.run(dissected(HOSTILE), is_wanted, printer, err) == 0
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    return [(row["packet"], row["stream"]) for row in rows]


def test_filters():
    assert filtered(filters.meets([filters.by_kind(["ORDERACK", "ping"])])) == [
        ("Ping", None),
        ("OrderAck", 1),
    ]
    assert filtered(filters.by_endpoint(":18010"), filters.meets([filters.by_kind(["UserMessage"])])) == [
        ("UserMessage", 5)
    ]
    assert filtered(filters.by_endpoint("10.0.0.66:4058")) == [("Skipped", None)]
    assert {stream for _, stream in filtered(filters.by_endpoint("10.0.0.66"))} == {None, 2}
    assert filtered(filters.by_label("*ELSE*")) == []
    assert filtered(filters.by_label("ON ANOTHER ?ORT")) == [("UserMessage", 5)]
    assert len(filtered(filters.by_label("transaction*"))) == 3
    assert (
        len(filtered(filters.by_queue("orders"))) == 10 == len(filtered(filters.by_queue("direct=*\\ORDERS")))
    )
    assert filtered(filters.by_queue("")) == []
    malformed = filtered(filters.by_findings(["attack"]))
    assert ("Malformed", 2) in malformed
    assert ("UserMessage", 1) not in malformed
    assert len(filtered(filters.by_findings(["any"]))) > len(malformed)
    assert filtered(filters.by_findings(["attack-header-id"])) == [("Malformed", 2)]
    assert filtered(filters.by_findings(["attack-header"])) == [("Malformed", 2)]
    assert filtered(filters.by_findings(["mqrr-2.2.5"])) == filtered(filters.by_findings(["MQRR"])) != []
    late = filtered(filters.meets(filters.by_time("2026-03-01T12:00:06", None)))
    assert {stream for _, stream in late} == {6}


def test_filters_by_option():
    done = command(
        "dissect", "--json", "--kind", "UserMessage", "--label", "mq*", "--endpoint", "10.0.0.2:1801",
        "--queue", "a04bm02", "--findings", "any", "--from", "2026-03-01T12:00:00Z",
        "--to", "2026-03-01T13:00:01+01:00", SESSION, HOSTILE,
    )  # fmt: skip
    (row,) = map(json.loads, done.stdout.splitlines())
    assert row["fields"]["MessagePropertiesHeader"]["Label"] == "mqsender label"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("0", 0),
        ("1772366400", 1_772_366_400_000_000_000),
        ("1772366400.000001", 1_772_366_400_000_001_000),
        ("1772366400.1234567894", 1_772_366_400_123_456_789),
        ("2026-03-01", 1_772_323_200_000_000_000),
        ("2026-03-01T12:00:00Z", 1_772_366_400_000_000_000),
        ("2026-03-01 13:00:00+01:00", 1_772_366_400_000_000_000),
        ("2026-03-01T12:00:00.123456789Z", 1_772_366_400_123_456_789),
        ("2026-03-01T12:00:00.5", 1_772_366_400_500_000_000),
        ("1969-12-31T23:59:59.75Z", -250_000_000),
    ],
)
def test_times(text, expected):
    assert filters.parse_time(text) == expected


@pytest.mark.parametrize("text", ["", "now", "1.2.3", "-5", "inf", "2026-13-01", "\u0661", "9" * 5000])
def test_not_a_time(text):
    with pytest.raises(ValueError):  # noqa: PT011 - whatever its text
        filters.parse_time(text)


def test_the_time_of_an_item_finds_it():
    for item in dissected(SESSION):
        assert filters.parse_time(item.time) == item.time_ns


# --- what a peer may not do --------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [["--json"], ["--table"], ["--hexdump"]])
def test_no_control_characters_from_a_peer(options):
    done = command("dissect", *options, "-", data=evil_capture())
    assert done.returncode == 0
    text = done.stdout.decode()
    assert "owned" in text
    no_control_characters(text)
    if options == ["--json"]:
        message = json.loads(text.splitlines()[0])
        assert message["fields"]["MessagePropertiesHeader"]["Label"] == EVIL


@pytest.mark.parametrize("arguments", [["parse"], ["lint", "-"], ["lint", "--json", "-"]])
def test_no_control_characters_from_a_packet(arguments):
    done = command(*arguments, data=evil_message(EVIL * 6))
    no_control_characters(done.stdout.decode() + done.stderr.decode())


def test_no_control_characters_in_errors(tmp_path):
    done = command("dissect", tmp_path / "\x1b[2J\x7f")
    assert complaint(done, 66)
    no_control_characters(done.stderr.decode())
    done = command("build", data=json.dumps({"packet": EVIL}).encode())
    assert complaint(done)
    no_control_characters(done.stderr.decode())


def test_safe():
    assert safe("label \xe4\u4e2d") == "label \xe4\u4e2d"
    assert safe("\x1b[0m\x07\x7f\x9b\u202e\ud800\n") == "\\x1b[0m\\x07\\x7f\\x9b\\u202e\\ud800\\n"


def test_an_encoding_that_has_not_all_letters():
    data = c.pcapng_bytes(c.TcpConversation().handshake().send(evil_message("\u4e2d\xe4")).frames)
    for encoding in ("ascii", "latin-1"):
        done = process("dissect", "-", data=data, env={**os.environ, "PYTHONIOENCODING": encoding})
        assert done.returncode == 0
        assert "\\u4e2d" in done.stdout.decode("latin-1")


@pytest.mark.parametrize("seed", range(5))
def test_anything_can_be_shown(seed):
    """Packets with random bytes changed, through every printer and every filter."""
    rng = random.Random(seed)
    parts = [evil_message(), h.order_ack(), h.final_ack(), ACK, h.establish_connection(), h.ping()]
    parts += [h.user_message(transaction=h.transaction_header(), security=h.security_header())]
    parts += [h.user_message(multi_queue=h.multi_queue_format_header([h.mqf_direct("OS:a\\b")]))]
    talk = c.TcpConversation().handshake()
    for _ in range(150):
        data = bytearray(rng.choice(parts))
        for _ in range(rng.randrange(4)):
            data[rng.choice([*range(16, min(80, len(data))), *range(len(data))])] = rng.randrange(256)
        talk.send(bytes(data), by_client=rng.random() < 0.5)
    pings = [c.Frame(c.START_NS, c.ethernet(c.udp_packet(rng.randbytes(24)))) for _ in range(20)]
    capture = c.pcapng_bytes([*pings, *talk.frames])
    tests = [
        filters.by_label("*"), filters.by_queue("*"), filters.by_findings(["any"]),
        filters.meets([filters.by_kind(["ping"])]), filters.by_endpoint("10.9.9.9"),
        filters.meets(filters.by_time("0", "1")),
    ]  # fmt: skip
    for style in ({"as_json": True}, {}, {"dump": True}):
        out = io.StringIO()
        printer = dissect.Printer(out, **style)
        for item in dissected(io.BytesIO(capture)):
            printer.item(item)
            for test in tests:
                test(item)
        no_control_characters(out.getvalue())
    out = io.StringIO()
    lint.run_capture(dissected(io.BytesIO(capture)), out)
    no_control_characters(out.getvalue())


# --- lint --------------------------------------------------------------------------------------------------


def test_lint_a_capture():
    done = process("lint", HOSTILE)
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    count = sum(len(item.findings) for item in dissected(HOSTILE))
    assert f"{count} findings: " in done.stdout.decode()
    assert sum(line.startswith("2026-") for line in lines) == count
    assert command("lint", "-", data=HOSTILE.read_bytes()).stdout.count(b"findings: ") == 1
    objects = [json.loads(line) for line in command("lint", "--json", HOSTILE).stdout.splitlines()]
    assert len(objects) == count
    assert {"id", "severity", "path", "offset", "message", "frames", "stream", "packet"} <= set(objects[0])


def test_lint_check():
    assert command("lint", "--check", HOSTILE).returncode == 65
    clean = c.pcap_bytes([c.ethernet(c.udp_packet(h.ping(), src_port=4000))])
    assert command("lint", "--check", "-", data=clean).returncode == 0


def test_lint_a_packet(tmp_path):
    data = bytes.fromhex(VECTORS[6].read_text())
    path = tmp_path / "packet"
    path.write_bytes(data)
    done = command("lint", path)
    assert done.returncode == 0
    assert b"MQMQ-2.2.19.2-26" in done.stdout
    assert (
        command("lint", "-", data=data).stdout == done.stdout == command("lint", "--hex", VECTORS[6]).stdout
    )
    bad = command("lint", "-", data=h.base_header(0xFFFFFFFF))
    assert bad.returncode == 65
    assert b"ATTACK" in bad.stdout
    assert json.loads(bad.stderr)["path"] == "BaseHeader.PacketSize"


def test_a_note_passes_check():
    done = command("lint", "--check", "--hex", VECTORS[6])
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == [b"NOTE"]


def test_lint_a_message_of_srmp():
    """An HTTP message or an envelope alone, as `parse` takes them."""
    message = (SRMP / "4.3-1.http").read_bytes()
    done = command("lint", SRMP / "4.3-1.http")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"SRMP-2.2.4.1-02" in done.stdout
    assert command("lint", "--protocol", "srmp", "-", data=message).stdout == done.stdout
    found = json.loads(command("lint", "--json", SRMP / "4.1.http").stdout)
    assert (found["id"], found["severity"]) == ("SRMP-2.2.6-01-ABSENT", "SHOULD")
    assert command("lint", "--check", SRMP / "4.2.http").returncode == 0
    assert command("lint", "--check", SRMP / "4.3-1.http").returncode == 65
    bad = command("lint", "-", data=b"<!DOCTYPE x><x/>")
    assert (bad.returncode, json.loads(bad.stderr)["path"]) == (65, "Envelope")
    assert b"ATTACK-XML-ENTITY" in bad.stdout


def test_lint_captures_of_which_one_is_none(tmp_path):
    path = tmp_path / "text"
    path.write_text("no capture")
    done = command("lint", SESSION, path)
    assert done.returncode == 65
    assert b"findings: " in done.stdout
    assert "not a capture" in json.loads(done.stderr)["error"]


# --- on a terminal -----------------------------------------------------------------------------------------


def on_a_terminal(*arguments: str | Path, streams: str = "oe", **env: str) -> tuple[int, str, bytes]:
    """The exit status, what the terminal showed, and what was written to a piped standard output."""
    leader, follower = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLORTERM")}
    process = subprocess.Popen(
        [sys.executable, "-m", "msmqwire", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=follower if "o" in streams else subprocess.PIPE,
        stderr=follower if "e" in streams else subprocess.DEVNULL,
        cwd=ROOT,
        env={**environment, "TERM": "xterm-256color", **env},
    )
    os.close(follower)
    shown, piped = b"", b""
    while True:
        ready = [leader] + ([process.stdout] if process.stdout else [])
        for source in select.select(ready, [], [], limit(60))[0]:
            if source is leader:
                try:
                    chunk = os.read(leader, 1 << 16)
                except OSError:  # how Linux reports that the other end was closed
                    chunk = b""
                shown += chunk
            else:
                chunk = os.read(source.fileno(), 1 << 16)
                piped += chunk
        if not chunk:
            break
    if process.stdout:
        piped += process.stdout.read()
        process.stdout.close()
    os.close(leader)
    return process.wait(limit(60)), shown.decode(), piped


def test_colours_on_a_terminal_and_none_in_a_pipe():
    status, shown, _ = on_a_terminal("dissect", HOSTILE)
    assert status == 0
    assert "\x1b[1;31m" in shown
    assert "Malformed" in shown
    status, shown, _ = on_a_terminal("dissect", HOSTILE, NO_COLOR="1")
    assert "\x1b[1;31m" not in shown
    assert b"\x1b" not in process("dissect", HOSTILE).stdout


def test_json_on_a_terminal_has_no_colours():
    status, shown, _ = on_a_terminal("dissect", "--json", SESSION)
    assert status == 0
    assert "\x1b" not in shown
    assert len([json.loads(line) for line in shown.splitlines()]) == 8


def test_a_peer_can_not_reach_a_terminal(tmp_path):
    path = tmp_path / "evil"
    path.write_bytes(evil_capture())
    for option in ("--table", "--wide", "--hexdump"):
        status, shown, _ = on_a_terminal("dissect", option, path, NO_COLOR="1")
        assert status == 0
        assert (":boom:[red]" in shown) is (option != "--table")
        for bad in ("\x1b]", "\x1b[2J", "\x07", "\x9b", "\x7f", "\u202e"):
            assert bad not in shown


def test_no_progress_for_what_takes_no_time():
    status, shown, piped = on_a_terminal("dissect", "--json", SESSION, streams="e")
    assert (status, shown) == (0, "")
    assert len(piped.splitlines()) == 8


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("patience_s", [0.0, 1e9])
def test_progress_is_shown_on_a_terminal_once_it_takes_long(monkeypatch, patience_s):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "PATIENCE_S", patience_s)
    monkeypatch.setenv("TERM", "xterm")
    with capture_input.opened([SESSION], []) as dissection:
        kinds = [item.kind for item in dissection]
    assert len(kinds) == 8
    size = SESSION.stat().st_size
    assert (f"{size / 1000:.1f}" in terminal.getvalue()) == (patience_s == 0)
    terminal.truncate(0)
    with capture_input.opened([SESSION], [], shows_packets=True) as dissection:
        assert [item.kind for item in dissection] == kinds
    assert terminal.getvalue() == ""


def test_output_to_a_file(tmp_path):
    out = tmp_path / "out"
    for options in (["--json"], ["--csv"], ["--hexdump"]):
        done = command("dissect", *options, "-o", out, SESSION)
        assert (done.returncode, done.stdout) == (0, b"")
        assert out.read_bytes() == command("dissect", *options, SESSION).stdout != b""
    shutil.copy(SESSION, out)
    done = command("dissect", "-o", out, tmp_path)
    assert done.returncode == 2
    assert b"is one of the captures" in done.stderr
    assert out.read_bytes() == SESSION.read_bytes()
    assert complaint(command("dissect", "-o", tmp_path / "no/where", SESSION), 74)["error"].startswith(
        str(tmp_path)
    )
    assert command("dissect", "-o", out, "--arrow", out, SESSION).returncode == 2


def test_one_packet_on_a_terminal_is_indented(tmp_path):
    path = tmp_path / "ack"
    path.write_bytes(ACK)
    status, shown, _ = on_a_terminal("parse", path)
    assert status == 0
    assert shown.count("\n") > 20
    assert json.loads(shown)["packet"] == "SessionAck"
