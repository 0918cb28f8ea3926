"""The captures in examples/ are what the tool writes, and they dissect to the expected items."""

from __future__ import annotations

import subprocess
import sys

from msmqwire.dissection import Item, dissect
from tests.support.paths import ROOT

SESSION, HOSTILE = ROOT / "examples/session.pcap", ROOT / "examples/hostile.pcapng"
ESTABLISHED = ["EstablishConnection", "EstablishConnection", "ConnectionParameters", "ConnectionParameters"]


def of_stream(items: list[Item], stream: int | None) -> list[Item]:
    return [item for item in items if item.stream == stream]


def attacks(item: Item) -> set[str]:
    return {finding.id for finding in item.findings if finding.severity == "ATTACK"}


def test_they_are_what_the_tool_makes():
    command = [sys.executable, str(ROOT / "tools/make_examples.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
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
        None: ["Ping", "Malformed", "Malformed"],
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
    assert not any(map(attacks, elsewhere))  # truncation by the capture is no attack


def test_messages_of_the_hostile_capture():
    labels = [
        item.packet.MessagePropertiesHeader.Label
        for item in dissect(HOSTILE)
        if item.kind == "UserMessage" and item.packet is not None
    ]
    assert labels[-4:] == ["still found", "resumed", "on another port", "after the hole"]
