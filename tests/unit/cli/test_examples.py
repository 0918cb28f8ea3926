"""The captures in examples/ are what the tool writes, and they dissect to the expected items."""

from __future__ import annotations

import io
import subprocess
import sys

import click
import pytest

from msmqwire.analysis.dissection import Item, dissect
from msmqwire.analysis.dissection.summaries import summary
from msmqwire.cli.captures import lint
from msmqwire.cli.captures.dissect import Printer, run
from msmqwire.remote_read.constants import Opnum
from tests.support import captures
from tests.support.capture.rpc_captures import HANDLE, Talk, end_arguments, receive_arguments, received
from tests.support.installed import library
from tests.support.paths import ROOT
from tests.support.patience import limit

SESSION, HOSTILE = ROOT / "examples/session.pcap", ROOT / "examples/hostile.pcapng"
REMOTE_READ = ROOT / "examples/remote_read.pcap"
ESTABLISHED = ["EstablishConnection", "EstablishConnection", "ConnectionParameters", "ConnectionParameters"]


def of_stream(items: list[Item], stream: int | None) -> list[Item]:
    return [item for item in items if item.stream == stream]


def attacks(item: Item) -> set[str]:
    return {finding.id for finding in item.findings if finding.severity == "ATTACK"}


def test_they_are_what_the_tool_makes():
    library("Cryptodome")
    library("spnego")
    command = [sys.executable, str(ROOT / "tools/generate/make_examples.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit(120), check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_session_of_the_specification():
    dissection = dissect(SESSION)
    items = list(dissection)
    assert [item.kind for item in items] == ["Ping", "Ping", *ESTABLISHED, "UserMessage", "SessionAck"]
    assert [item.size for item in items] == [24, 24, 572, 572, 32, 32, 2224, 36]
    assert items[6].frames == (14, 15)
    assert items[0].time == "2026-03-01T12:00:00.000001000Z"
    assert not any(map(attacks, items))
    assert dissection.errors == []
    vectors = sorted(p for p in ROOT.glob("tests/vectors/MS-MQQB-4.1.*.hex") if ".printed" not in p.name)
    assert [item.raw for item in items] == [bytes.fromhex(path.read_text()) for path in vectors]


def test_the_hostile_capture():
    dissection = dissect(HOSTILE)
    items = list(dissection)
    assert dissection.errors == []
    kinds = {stream: [item.kind for item in of_stream(items, stream)] for stream in (None, *range(7))}
    assert kinds == {
        None: ["Ping", "Skipped", "Malformed"],
        0: [],  # the web page
        1: [*ESTABLISHED, *["UserMessage"] * 4, "SessionAck", "OrderAck", "UserMessage"],
        2: [
            *ESTABLISHED, *["Malformed"] * 4, "UserMessage", "Malformed", "Skipped", "UserMessage",
        ],
        3: ["Skipped", "UserMessage"],
        4: [*ESTABLISHED, "Malformed", "Skipped", "Skipped", "UserMessage"],
        5: [*ESTABLISHED, "UserMessage"],
        6: [*ESTABLISHED, "Malformed"],
    }  # fmt: skip
    skipped = [(item.stream, item.size, item.reason) for item in items if item.kind == "Skipped"]
    assert skipped == [
        (None, 24, "the size of a ping, without its signature 0x5548"),
        (2, 20, "after a PacketSize that can't be"),
        (3, 1332, "the capture begins inside the stream"),
        (4, 1460, "not in the capture: acknowledged"),
        (4, 3284, "the rest of a packet that is not whole"),
    ]
    assert {item.dst_port for item in of_stream(items, 5)} == {18010, 50004}


def test_the_attacks_in_the_hostile_capture():
    items = list(dissect(HOSTILE))
    shapes = [attacks(item) for item in of_stream(items, 2) if item.kind == "Malformed"]
    assert len(shapes) == 5
    assert all(shapes)
    assert len(set(map(frozenset, shapes))) == 5
    elsewhere = [item for item in items if item.stream not in (2, None)]
    assert not any(map(attacks, elsewhere))  # truncation by the capture is not an attack


def test_messages_of_the_hostile_capture():
    labels = [
        item.packet.MessagePropertiesHeader.Label
        for item in dissect(HOSTILE)
        if item.kind == "UserMessage" and item.packet is not None
    ]
    assert labels[-4:] == ["still found", "resumed", "on another port", "after the hole"]


def test_the_capture_of_remote_read():
    items = list(dissect(REMOTE_READ))
    assert REMOTE_READ.stat().st_size < 40_000
    assert not any(item.findings for item in items)
    streams = sorted({item.stream for item in items})
    anonymous, refused, private = ([item.kind for item in of_stream(items, stream)] for stream in streams)
    for kind, count in (
        ("R_StartReceive response", 6),
        ("R_EndReceive request", 2),
        ("R_CloseQueue response", 1),
    ):
        assert anonymous.count(kind) == count
    assert refused[-1] == "fault"
    assert private[:3] == ["bind", "bind_ack", "rpc_auth_3"]
    assert sum("encrypted by HOME" in summary(item) for item in items) == len(private) - 3 == 8
    shown = [summary(item) for item in items if "response" in item.kind]
    assert sum(r'DIRECT=OS:alpha\private$\orders "order 1"' in text for text in shown) == 2


@pytest.mark.requirement("MQRR-3.1.4.7-17", "MQRR-3.1.4.5-03")
def test_lint_judges_remote_read_in_captures(tmp_path, capsys):
    talk = Talk()
    talk.open()
    talk.receive(ulAction=7)
    talk.call(Opnum.R_CloseCursor, {"phContext": HANDLE, "hCursor": 5}, {"status": 0})
    path = tmp_path / "bad.pcap"
    path.write_bytes(captures.pcap_bytes(talk.close().frames))
    for files, check, status in (
        ([path], True, 65),
        ([path, REMOTE_READ], False, 0),
        ([REMOTE_READ], True, 0),
    ):
        with pytest.raises(click.exceptions.Exit) as ended:
            lint.command([str(file) for file in files], check=check)
        out = capsys.readouterr().out
        assert ended.value.exit_code == status
        expected = path in files
        assert ("R_StartReceive request: MUST MQRR-3.1.4.7-17 ulAction byte 60" in out) is expected
        assert ("R_CloseCursor request: MUST MQRR-3.1.4.5-03 hCursor byte 44" in out) is expected
        assert out.splitlines()[-1 - 3 * expected].startswith("2 findings" if expected else "0 findings")


def test_rows_of_calls_with_long_names_are_aligned():
    talk = Talk()
    unit = {"pTransactionId": {"rgb": bytes(16)}}
    talk.call(Opnum.R_StartTransactionalReceive, {**receive_arguments(), **unit}, received())
    talk.call(Opnum.R_EndTransactionalReceive, end_arguments(), {"status": 0})
    out = io.StringIO()
    run(
        dissect(io.BytesIO(captures.pcap_bytes(talk.close().frames))),
        lambda item: True,
        Printer(out),
        io.StringIO(),
    )
    rows = out.getvalue().splitlines()[-3:]
    assert [row.index(" #") for row in rows] == [rows[0].index(" #")] * 3
