"""``msmqwire dissect --stats``: counts as those of all items, for people and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire.analysis.report.limits import Limits
from msmqwire.analysis.report.statistics import Statistics
from msmqwire.cli.captures.stats import ROWS_MAX
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.paths import EXAMPLES
from tests.support.running import in_process as command

CAPTURES = sorted(EXAMPLES.glob("*.pcap*"))
HOSTILE = EXAMPLES / "hostile.pcapng"


def stats(*arguments: str | Path) -> dict[str, Any]:
    done = command("dissect", *map(str, arguments), "--stats", "--json")
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 1
    counts: dict[str, Any] = json.loads(done.stdout)
    return counts


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_the_counts_are_those_of_the_items(path: Path) -> None:
    items = list(msmqwire.dissect(path))
    counts = stats(path)
    assert counts["packets"] == len(items)
    assert counts["bytes"] == sum(item.size for item in items)
    found = Counter(finding.severity for item in items for finding in item.findings)
    assert {name: count for name, count in counts["severities"].items() if count} == found
    for one in counts["kinds"]:
        of_kind = [item for item in items if item.kind == one["kind"]]
        assert one["packets"] == len(of_kind) > 0
        assert one["bytes"] == sum(item.size for item in of_kind)
        assert one["findings"] == sum(len(item.findings) for item in of_kind)
    assert len(counts["kinds"]) == len({item.kind for item in items})
    by_id = Counter((finding.severity, finding.id) for item in items for finding in item.findings)
    assert {(one["severity"], one["id"]): one["count"] for one in counts["requirements"]} == by_id
    sessions = {one["stream"]: one for one in counts["sessions"] if one["stream"] is not None}
    for stream, one in sessions.items():
        assert sum(one["packets"]) == sum(item.stream == stream for item in items)
        assert sum(one["bytes"]) == sum(item.size for item in items if item.stream == stream)
    assert sessions.keys() == {item.stream for item in items} - {None}
    assert counts["start"] == min(item.time for item in items)
    assert counts["end"] == max(item.time for item in items)
    assert set(counts["left_out"].values()) == {0}


def test_queues() -> None:
    (orders, other) = stats(HOSTILE)["queues"]
    assert orders["queue"] == "DIRECT=TCP:10.0.0.2\\private$\\orders"
    assert (orders["messages"], orders["body_bytes"], orders["findings"]) == (10, 12_719, 1)
    assert other["messages"] == 1


def test_filters_choose_what_is_counted() -> None:
    assert stats(HOSTILE, "--kind", "usermessage")["kinds"] == [
        {"kind": "UserMessage", "packets": 10, "bytes": 14_944, "findings": 1}
    ]
    attacks = stats(HOSTILE, "--findings", "ATTACK")
    assert attacks["packets"] == sum(
        any(finding.severity == "ATTACK" for finding in item.findings) for item in msmqwire.dissect(HOSTILE)
    )
    assert stats(HOSTILE, "--where", "kind == 'Ping'")["packets"] == 1
    assert stats(HOSTILE, "--no-lint")["findings"] == 0


def test_tables_for_people() -> None:
    text = command("dissect", str(HOSTILE), "--stats").stdout.decode()
    head, *_ = lines = text.splitlines()
    counts = "46 packets, 31,048 bytes, 16 findings (6 ATTACK, 9 MUST, 1 NOTE), 2 sent again, 2026-"
    assert head.startswith(counts)
    assert [line for line in lines if line and not line.startswith(" ")][1:] == [
        "Kinds", "Queues", "Sessions", "Findings",
    ]  # fmt: skip
    assert "  UserMessage                10  14,944         1" in lines
    assert any(line.startswith("  MUST      MQMQ-2.2.19.2-39") for line in lines)
    assert text.isascii()


def test_long_tables_are_cut_and_say_so(tmp_path: Path) -> None:
    clients = [(c.CLIENT, 50_000 + number) for number in range(ROWS_MAX + 5)]
    talks = [c.TcpConversation(client).handshake().send(h.session_ack()) for client in clients]
    path = tmp_path / "many.pcap"
    path.write_bytes(c.pcap_bytes([frame for talk in talks for frame in talk.frames]))
    lines = command("dissect", str(path), "--stats").stdout.decode().splitlines()
    assert "  and 5 more: --json has all" in lines
    assert len(stats(path)["sessions"]) == ROWS_MAX + 5


def test_memory_is_bounded_and_what_is_left_out_is_counted() -> None:
    counter = Statistics(Limits(sessions=2, queues=1, requirements=3))
    dissection = msmqwire.dissect(HOSTILE)
    for item in dissection:
        counter.add(item)
    counts = counter.to_json(dissection)
    assert (counter._collector.table.count, counter._collector.details.rows) == (0, [])  # no packets are kept
    assert (len(counts["sessions"]), len(counts["queues"]), len(counts["requirements"])) == (2, 1, 3)
    assert counts["packets"] == 46
    assert counts["left_out"]["sessions"] == 46 - sum(sum(one["packets"]) for one in counts["sessions"])
    assert counts["left_out"]["queues"] == 1
    assert counts["left_out"]["requirements"] == 16 - sum(one["count"] for one in counts["requirements"])


@pytest.mark.parametrize("option", ["--table", "--hexdump", "--csv"])
def test_it_goes_with_json_only(option: str) -> None:
    done = command("dissect", str(HOSTILE), "--stats", option)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--stats goes with --json only" in done.stderr


def test_a_damaged_capture_is_counted_and_ends_with_65(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes((EXAMPLES / "session.pcap").read_bytes()[:-10])
    done = command("dissect", str(path), "--stats", "--json")
    assert done.returncode == 65
    assert json.loads(done.stdout)["packets"] == 8


def test_output_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "stats.json"
    done = command("dissect", str(HOSTILE), "--stats", "--json", "-o", str(path))
    assert (done.returncode, done.stdout) == (0, b"")
    assert json.loads(path.read_text()) == stats(HOSTILE)
