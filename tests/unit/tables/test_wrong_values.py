"""Wrong values of filters and options are wrong usage that names the right ones; never an empty result."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pytest

import msmqwire
from msmqwire.analysis.dissection.kinds import KINDS
from msmqwire.analysis.lint import checks
from msmqwire.cli import app
from msmqwire.cli.captures import filter_options, filters
from msmqwire.constants import class_name
from msmqwire.errors import InvalidArgument, InvalidValue
from msmqwire.tables import COLUMNS, read_packets
from msmqwire.tables.arrow.rows import value_of
from msmqwire.tables.columns import TEXT
from msmqwire.tables.compiled.packet import KINDS as COMPILED_KINDS
from msmqwire.tables.expression_parser import InvalidExpression, parse_expression
from msmqwire.tables.filters import refuse_wrong
from msmqwire.tables.possible_values import POSSIBLE, RANGES, refuse_impossible
from tests.support.capture_files import pcap_bytes
from tests.support.paths import EXAMPLES, ROOT
from tests.support.patience import limit
from tests.support.running import in_process as command

SESSION = str(EXAMPLES / "session.pcap")
NETWARE = str(EXAMPLES / "netware.pcap")
CAPTURES = sorted(EXAMPLES.glob("*.pcap*"))

FILTERS: Final = [
    (("--kind", "UserMesage"), "'UserMesage' is not a kind of packet; did you mean UserMessage"),
    (("--kind", "Xyz"), "'Xyz' is not a kind of packet: docs/columns.md#values lists all"),
    (("--kind", "usermessage", "--kind", "Pnig"), "did you mean Ping?"),
    (("--findings", "WRONG"), "'WRONG' is not a finding"),
    (("--findings", "MSUT"), "did you mean MUST?"),
    (("--findings", "MQMQ-2.2.19.3-9999"), "did you mean MQMQ-2.2.19.3-"),
    (("--findings", "ATTACK-HEADER-IDS"), "did you mean ATTACK-HEADER-ID"),
    (("--endpoint", "10.0.0.300"), "--endpoint: '10.0.0.300' is not an address"),
    (("--endpoint", "10.0.0.0/99"), "'10.0.0.0/99' is not an address"),
    (("--endpoint", "10.0.0.0/8"), "is not an address, but a network"),
    (("--endpoint", "server"), "'server' is not an address"),
    (("--endpoint", ":99999"), "a port is 0 to 65,535"),
    (("--endpoint", ":0655351"), "a port is 0 to 65,535"),
    (("--endpoint", "10.0.0.1:port"), "a port is 0 to 65,535"),
    (("--endpoint", "[::1"), "is not ADDRESS, ADDRESS:PORT or :PORT"),
    (("--endpoint", ""), "is not ADDRESS, ADDRESS:PORT or :PORT"),
    (("--from", "noon"), "--from: 'noon' is not a time"),
    (("--to", ""), "--to: '' is not a time"),
    (("--from", "2026-03-02", "--to", "2026-03-01"), "--to: '2026-03-01' is not after --from '2026-03-02'"),
    (("--port", "99999"), "--port"),
    (("--where", "kind == 'UserMesage'"), "--where: 'UserMesage' is not a kind of packet; did you mean User"),
    (("--where", "labl == 'x'"), "'labl' is not a column; did you mean label"),
    (("--reading", "job_numbr=big"), "--reading: 'job_numbr' is not a reading; did you mean job_number"),
    (("--reading", "job_number=bg"), "'bg' is not a possible value; did you mean big?"),
]
"""What the commands that choose packets have in common."""
ROWS: Final = [
    *((("dissect", SESSION), *row) for row in FILTERS),
    *((("pcap", SESSION, "-o", "out.pcap"), *row) for row in FILTERS),
    *(
        (("lake", SESSION, "--out", "lake"), *row)
        for row in FILTERS
        if row[0][0] in ("--kind", "--from", "--to", "--port", "--reading")
    ),
    *(
        ((name, SESSION), *row)
        for name in ("lint", "report")
        for row in FILTERS
        if row[0][0] in ("--port", "--reading")
    ),
    (("dissect", SESSION), ("--no-lint", "--findings", "MUST"), "it finds nothing with --no-lint"),
    (("dissect", SESSION, "--csv"), ("--columns", "kind,colour"), "'colour' is not a column"),
    (("dissect", SESSION, "--parquet", "out"), ("--columns", "lable"), "did you mean label"),
    (("dissect", SESSION, "--arrow", "out"), ("--columns", ""), "--columns: '' is not a column"),
    (("lake", SESSION, "--out", "lake"), ("--columns", "kind,lable"), "did you mean label"),
    (("lake", SESSION, "--out", "lake"), ("--by", "kinds"), "--by: 'kinds' is not a key of partitions"),
    (("lake", SESSION, "--out", "lake"), ("--splits", "exakt"), "'exakt' is not a way to divide captures"),
    (("lake", "--out", "lake"), ("--retain", "30"), "--retain: '30' is not an age: a number with s, m, h, d"),
    (("lake", "--out", "lake"), ("--vacuum", "week"), "--vacuum: 'week' is not an age"),
    (("lake", "--out", "lake"), ("--delete-where", "labl == 'x'"), "'labl' is not a column; did you mean"),
    (("fate", SESSION), ("--state", "recieved"), "--state: 'recieved' is not a state; did you mean received"),
    (("fate", SESSION), ("--port", "0"), "--port"),
    (("lint", SESSION), ("--protocol", "foo"), "session, ping, remote_read, srmp"),
    (("parse", SESSION), ("--protocol", "foo"), "remote_read, srmp, rpc, ncp"),
    (("parse", SESSION), ("--protocol", "ncp", "--call", "CreateQueu"), "did you mean CreateQueue"),
    (("parse", SESSION), ("--protocol", "ncp", "--reading", "charge=bigg"), "did you mean big?"),
    (("key", "create", "--data", "q"), ("--provider", "bsae"), "'bsae' is not a provider; did you mean"),
    (("serve", "--data", "q"), ("--log", "warn"), "--log: 'warn' is not a level; did you mean warning?"),
    (("serve", "--data", "q"), ("--set", "windowsize=1"), "did you mean window_size"),
    (("serve", "--data", "q"), ("--set", "relay=non"), "did you mean none or known? There are"),
    (("manage", "h"), ("--timeout", "0"), "--timeout: 0 is not 0.001 to 86400"),
    (("manage", "h"), ("--interval", "x"), "--interval: 'x' is not a number, as 2.5"),
    (("manage", "h"), ("--rpc-port", "70000"), "--rpc-port: 70000 is not 1 to 65535"),
    (("manage", "h"), ("--mapper-port", "0"), "--mapper-port: 0 is not 1 to 65535"),
    (("manage", "h"), ("--auth", "privat"), "--auth: 'privat' is none of none, connect, integrity, privacy"),
    (("manage", "h", "queues"), ("--why", "q"), "--why: it goes with no command, as 'queues'"),
    (("manage", "h"), ("--user", "anne"), "--password-file: a user has a password"),
    (("exporter", "--targets", "t"), ("--log", "warn"), "--log: 'warn' is not a level; did you mean warn"),
    (("netware", "queues", "--connect", "[::1]:1", "--as", "u"), ("--type", "prnt"), "mean print?"),
    (("netware", "object", "list", "--data", "q"), ("--type", "usr"), "--type: 'usr' is not a type; did"),
    (("netware", "serve", "--data", "q"), ("--log", "warn"), "did you mean warning?"),
    (("netware", "serve", "--data", "q"), ("--reading", "charg=big"), "did you mean charge"),
]  # fmt: skip


@pytest.mark.parametrize(
    "words, wrong, told", ROWS, ids=[" ".join((words[0], *wrong)) for words, wrong, _ in ROWS]
)
def test_a_wrong_value_is_wrong_usage(
    words: tuple[str, ...], wrong: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command(*words, *wrong)
    assert done.returncode == 2, done.stderr
    assert done.stdout == b""
    error = json.loads(done.stderr)
    assert told in " ".join(f"{error['path']}: {error['error']}".split())
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_protocol_of_the_fuzzer_is_wrong_usage(tmp_path: Path) -> None:
    pytest.importorskip("hypothesis")
    done = command("fuzz", "127.0.0.1:1", "--out", tmp_path / "out", "--protocol", "binry")
    assert done.returncode == 2
    assert b"did you mean binary? There are" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_target_of_the_readers() -> None:
    words = [sys.executable, "-m", "fuzz.readers", "--target", "packets.sesion", "--runs", "1"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=limit(60), check=False)
    assert done.returncode == 2
    assert (
        "'packets.sesion' is not a target; did you mean packets.session? (--list prints all)" in done.stderr
    )


# -- every option of the commands about captures ----------------------------------------------------------

ANY_VALUE: Final = {
    "--label", "--title", "--queue", "--output", "--out", "--parquet", "--arrow", "--key", "--cert",
    "--storage-option", "--interface", "--capture-filter", "--restart", "--replay", "--consent",
    "--transactional-queue",
}  # fmt: skip
"""Options whose values are free text, patterns or names of what is elsewhere."""
NUMBERS: Final = {
    "--body-limit": "-1", "--workers": "0", "--record-size-max": "0", "--packets": "-1", "--details": "-1",
    "--port": "99999", "--time": "0", "--bound": "nan", "--seed": "x", "--pid": "0", "--every": "0",
    "--target-size": "0",
}  # fmt: skip
"""Options that take numbers, each with one that can't be."""
OF_A_SET: Final = {
    "--kind", "--findings", "--endpoint", "--from", "--to", "--where", "--columns", "--by", "--splits",
    "--state", "--protocol", "--call", "--reading", "--retain", "--vacuum", "--delete-where",
}  # fmt: skip
"""Options whose values are of a set, or of a form: `ROWS` has a wrong one of each."""
ABOUT_CAPTURES: Final = (
    "parse", "build", "dissect", "lint", "pcap", "fate", "report", "lake", "export wireshark", "fuzz",
)  # fmt: skip


def options_of(name: str) -> Iterator[tuple[str, bool]]:
    """The options of a command that take a value, by their long names."""
    found: Any = app
    for word in name.split():
        found = found.commands[word]
        inner = getattr(found, "commands", {})
        found = inner[word] if list(inner) == [word] else found
    for parameter in found.params:
        long = [option for option in parameter.opts if option.startswith("--")]
        if long and not parameter.is_flag and long[0] != "--help":
            yield long[-1], bool(parameter.multiple)


@pytest.mark.parametrize("name", ABOUT_CAPTURES)
def test_no_option_is_forgotten(name: str) -> None:
    """A new option stands in one of the lists above, and then a wrong value of it is refused."""
    wrong_of = {option for _, wrong, _ in ROWS for option in wrong if option.startswith("--")}
    assert wrong_of >= OF_A_SET
    for option, _ in options_of(name):
        assert option in ANY_VALUE | NUMBERS.keys() | OF_A_SET, f"{name} {option}"


@pytest.mark.parametrize("name", ["dissect", "pcap", "lint", "fate", "report", "lake"])
def test_a_number_that_can_not_be_is_wrong_usage(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    needed = {"pcap": ("-o", "x.pcap"), "lake": ("--out", "x"), "dissect": ("--csv",)}.get(name, ())
    for option in NUMBERS.keys() & {option for option, _ in options_of(name)}:
        done = command(name, SESSION, *needed, option, NUMBERS[option])
        assert (done.returncode, done.stdout) == (2, b""), option
        assert option in done.stderr.decode()
    assert list(tmp_path.iterdir()) == []


# -- conditions and expressions ---------------------------------------------------------------------------

CONDITIONS: Final = [
    (("kind", "==", "UserMesage"), "'UserMesage' is not a kind of packet; did you mean UserMessage"),
    (("kind", "!=", "ping"), "did you mean Ping?"),
    (("kind", "in", ["Ping", "Pong"]), "'Pong' is not a kind of packet; did you mean Ping"),
    (("transport", "==", "tpc"), "'tpc' is not a transport; did you mean tcp? There are tcp, udp and pgm"),
    (("class_name", "==", "NACK_BAD_DST"), "is not a message class; did you mean NACK_BAD_DST_Q"),
    (("class_name", "==", "0x80ff"), "did you mean 0x80FF?"),
    (("class_name", "==", "0x8000"), "'0x8000' is not a message class"),
    (("signature_status", "==", "good"), "there are none, valid, invalid, unknown_sender and unsupported"),
    (("receipt", "==", "delivery"), "did you mean delivery receipt"),
    (("call", "==", "CreateQueu"), "did you mean CreateQueue"),
    (("completion", "==", "NO_SUCH_PROPRTY"), "did you mean NO_SUCH_PROPERTY"),
    (("queue_handle", "==", "12"), "'12' is not a handle of 40 hex digits"),
    (("src", "==", "10.0.0.300"), "'10.0.0.300' is not an address"),
    (("src", "==", "10.0.0.0/8"), "is not an address, but a network"),
    (("dst", "in", ["::1", "FE80::1"]), "did you mean fe80::1?"),
    (("dst", "!=", "fe80::1%eth0"), "is not an address"),
    (("qm_guid", "==", "12"), "'12' is not a GUID"),
    (("source_qm", "==", "557358D1-9150-9595-4997-B6E611EA26C6"), "did you mean 557358d1-9150-9595-4997-"),
    (("dst_port", "==", 99_999), "dst_port is 0 to 65535, never 99999"),
    (("priority", "==", 8), "priority is 0 to 7, never 8"),
    (("labl", "==", "x"), "'labl' is not a column; did you mean label"),
    (("kind", "like", "User%"), "'like' is not an operator of a condition"),
    (("kind", "==", 3), "kind is text, not 3"),
    (("kind", "==", None), "kind is text, not nothing"),
    (("kind", "in", "Ping"), "kind in: a list of values is wanted, not 'Ping'"),
    (("source_qm", "==", UUID(int=1)), "source_qm is text"),
    (("src_port", "==", "1801"), "src_port is a number of 32 bits, not '1801'"),
    (("body_size", ">", 1 << 63), "body_size is a number of 64 bits"),
    (("signed", "==", "yes"), "signed is true or false, not 'yes'"),
    (("body", "==", 5), "body is bytes, not 5"),
    (("time", ">", "noon"), "time is a time"),
    (("kind", "=="), "a condition is (column, operator, value)"),
    ("kind", "a condition is (column, operator, value), not 'kind'"),
]  # fmt: skip


@pytest.mark.parametrize("condition, told", CONDITIONS, ids=lambda value: str(value)[:60])
def test_a_condition_that_nothing_can_meet(condition: Any, told: str, tmp_path: Path) -> None:
    for read in (
        lambda: msmqwire.read_capture(SESSION, where=[condition]),
        lambda: msmqwire.read_capture("nowhere.pcap", where=[condition], batch_rows=10),
        lambda: msmqwire.write_lake(SESSION, tmp_path / "lake", where=[condition]),
    ):
        with pytest.raises(InvalidValue) as caught:
            read()
        assert told in caught.value.why
        assert caught.value.path == "where"
    assert list(tmp_path.iterdir()) == []


EXPRESSIONS: Final = [
    ("kind == 'UserMesage'", 8, "did you mean UserMessage"),
    ("size > 5 and kind in ('Ping', 'Pong')", 30, "'Pong' is not a kind of packet; did you mean Ping"),
    ("not (transport != 'tpc')", 18, "did you mean tcp?"),
    ("class_name == 'NAK_BAD_DST_Q'", 14, "did you mean NACK_BAD_DST_Q"),
    ("kind like 'UserMesage%'", 10, "is matched by 'UserMesage%'; did you mean UserMessage"),
    ("kind not like 'user%'", 14, "no kind of packet is matched by 'user%'; did you mean UserMessage"),
    ("kind matches '^Usr'", 13, "no kind of packet is matched by '^Usr'"),
    ("kind contains 'Mesage'", 14, "no kind of packet is matched by 'Mesage'"),
    ("class_name like 'NAK%'", 16, "no message class is matched by 'NAK%'"),
    ("src like '10.x.%'", 9, "no address has 'x' in it"),
    ("dst contains 'server'", 13, "no address has"),
    ("qm_guid like '557358D1%'", 13, "no GUID has 'D' in it"),
    ("src == '10.0.0.300'", 7, "'10.0.0.300' is not an address"),
    ("src_port in (1801, 70000)", 19, "src_port is 0 to 65535, never 70000"),
    ("labl is null", 0, "'labl' is not a column; did you mean label"),
]  # fmt: skip


@pytest.mark.parametrize("text, position, told", EXPRESSIONS)
def test_an_expression_that_nothing_can_meet(text: str, position: int, told: str) -> None:
    with pytest.raises(InvalidExpression) as caught:
        msmqwire.read_capture("nowhere.pcap", where=text)
    assert told in caught.value.why
    assert (caught.value.position, caught.value.path) == (position, "where")
    assert isinstance(caught.value, InvalidValue)


@pytest.mark.parametrize(
    "text",
    [
        "kind like 'User%' or kind ilike 'user%' or kind matches 'Message$' or kind contains 'Read'",
        "class_name like 'NACK%' or class_name == '0x80FF' or class_name like '0x8%'",
        "src like '10.0.%' or src ilike 'FE80:%' or src matches '^10' or src < '2' or src >= 'x'",
        "src_port < 70000 and src_port >= -1 and priority <= 9 and message_class == 99999",
        "destination == 'DIRECT=OS:nowhere' or label == 'x' or provider == 'nobody' or error_path == 'x'",
        "qm_guid ilike 'ABC%' or completion == '0xd3' or completion == 'ERR_NO_QUEUE'",
    ],
)
def test_what_may_be_is_not_refused(text: str) -> None:
    msmqwire.read_capture(SESSION, columns=["kind"], where=text)


# -- Python ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, path, told",
    [
        ({"columns": ["kind", "lable"]}, "columns", "'lable' is not a column; did you mean label"),
        ({"columns": "kind"}, "columns", "a list of names is wanted, not 'kind'"),
        ({"ports": [99_999]}, "ports", "a port is 1 to 65,535, not 99999"),
        ({"ports": ["1801"]}, "ports", "a port is 1 to 65,535, not '1801'"),
        ({"workers": 0}, "workers", "at least one"),
    ],
)
def test_an_argument_of_read_capture(arguments: dict[str, Any], path: str, told: str) -> None:
    with pytest.raises(InvalidArgument, match=told) as caught:
        msmqwire.read_capture(SESSION, **arguments)
    assert caught.value.path == path


def test_arguments_of_other_functions(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="a port is 1 to 65,535"):
        msmqwire.dissect(SESSION, ports=[0])
    for arguments, path in (
        ({"by": "kinds"}, "by"), ({"splits": "exakt"}, "splits"), ({"ports": [0]}, "ports"),
        ({"workers": 0}, "workers"), ({"overlap": -1}, "overlap"), ({"columns": ["x"]}, "columns"),
    ):  # fmt: skip
        with pytest.raises(InvalidArgument) as caught:
            msmqwire.write_lake(SESSION, tmp_path / "lake", **arguments)  # type: ignore[arg-type]
        assert caught.value.path == path
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidArgument, match="'src' is not a column of packets"):
        read_packets(pa.array([b""]), columns=["kind", "src"])
    with pytest.raises(InvalidArgument, match="not none"):
        read_packets(pa.array([b""]), columns=[])


@pytest.mark.parametrize("read", [msmqwire.parse, msmqwire.analysis.lint])
def test_an_unknown_protocol_of_bytes(read: Any) -> None:
    with pytest.raises(InvalidArgument, match="'sesion' is not session, ping or remote_read") as caught:
        read(bytes(40), protocol="sesion")
    assert caught.value.path == "protocol"


# -- empty results that are right --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, told",
    [
        (("dissect", "--label", "nobody"), "no packet matches: 8 packets were read"),
        (("dissect", "--json", "--label", "nobody"), "no packet matches: 8 packets were read"),
        (
            ("dissect", "--stats", "--json", "--endpoint", "10.9.9.9"),
            "no packet matches: 8 packets were read",
        ),
        (("dissect", "--csv", "--where", "label == 'nobody'"), "no packet matches: 21 frames were read"),
        (("dissect", "--csv", "--label", "nobody"), "no packet matches: 21 frames were read"),
        (("pcap", "-o", "out.pcap", "--kind", "OrderAck"), "no packet matches: 8 packets were read"),
        (("fate", "--label", "nobody"), "no message matches: 1 message was read"),
        (("lake", "--out", "lake", "--kind", "OrderAck"), "no packet matches: 1 capture was read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value.partition(":")[0],
)
@pytest.mark.parametrize("at_terminal", [True, False])
def test_a_person_is_notified_that_nothing_matches(
    words: tuple[str, ...],
    told: str,
    at_terminal: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(filter_options, "is_terminal", lambda stream: at_terminal)
    name, *options = words
    done = command(name, SESSION, *options)
    assert done.returncode == 0, done.stderr
    assert done.stderr.decode().splitlines().count(told) == at_terminal
    assert told.encode() not in done.stdout


def test_nothing_is_reported_without_a_filter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_options, "is_terminal", lambda stream: True)
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(pcap_bytes([]))
    for words in (("dissect",), ("fate",), ("pcap", "-o", tmp_path / "x.pcap")):
        done = command(words[0], empty, *words[1:])
        assert (done.returncode, b"matches" in done.stderr) == (0, False)


@pytest.mark.parametrize("at_terminal", [True, False])
def test_a_person_is_notified_that_a_capture_has_no_messages(
    at_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filter_options, "is_terminal", lambda stream: at_terminal)
    done = command("fate", NETWARE)
    assert (done.returncode, done.stdout) == (0, b"")
    told = "no messages: 140 frames were read; msmqwire dissect --stats counts the packets in them"
    assert done.stderr.decode().splitlines() == [told] * at_terminal


# -- nothing that can be is refused ------------------------------------------------------------------------


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.name)
def test_every_value_of_a_reader_is_possible(capture: Path) -> None:
    limited = [column for column in COLUMNS if column.name in {*POSSIBLE, *RANGES}]
    assert len(limited) == len(POSSIBLE) + len(RANGES)
    known = {check.id for check in checks()}
    for item in msmqwire.dissect(capture):
        for column in limited:
            value = value_of(column, item)
            if value is not None:
                refuse_impossible(column, value)
        for finding in item.findings:
            filters.by_findings([finding.id, finding.severity])
            assert finding.id in known
        filters.by_endpoint(f"{item.src}")
        filters.by_kind([item.kind])


def test_the_kinds_are_those_of_the_compiled_reader() -> None:
    assert set(KINDS) == set(COMPILED_KINDS)
    assert len(KINDS) == len(set(KINDS))


def test_every_class_and_completion_is_possible() -> None:
    columns = {column.name: column for column in COLUMNS}
    for number in range(0x1_0000):
        refuse_impossible(columns["class_name"], class_name(number))
    for number in range(0x100):
        refuse_impossible(columns["completion"], f"{number:#04x}")
    for name, possible in POSSIBLE.items():
        for value in getattr(possible, "names", ()):
            refuse_wrong((name, "==", value))
            parse_expression(f"{name} == '{value}'")
        assert columns[name].type == TEXT
