"""Options that choose packets: the same output by the compiled scan, which asks columns, and without it."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from msmqwire.analysis.dissection import scan
from tests.support.paths import EXAMPLES, ROOT
from tests.support.running import in_process as command

VECTORS = ROOT / "tests/vectors/cases"
CAPTURES = [
    *sorted(EXAMPLES.glob("*.pcap*")),
    *sorted(path for path in VECTORS.rglob("*.pcap") if path.stat().st_size > 4000)[:4],
]
OPTIONS = [
    ["--kind", "UserMessage"],
    ["--kind", "Malformed", "--kind", "Skipped"],
    ["--where", "kind == 'UserMessage' and label like '%'"],
    ["--where", "src_port == 1801 or body_size > 10"],
    ["--where", "not (size < 100 or frame < 20)"],
    ["--where", "label matches '.*1' or request_id > 0"],
    ["--from", "2010-01-01", "--to", "2026-06-01"],
    ["--endpoint", ":1801"],
    ["--endpoint", ":1801", "--kind", "UserMessage", "--findings", "any"],
    ["--label", "*1*"],
    ["--queue", "*"],
    ["--queue", "private$", "--where", "size > 200"],
]


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_packets_are_the_same_by_either_reader(tmp_path: Path, options: list[str]) -> None:
    several = CAPTURES[:3]
    for captures in [*([one] for one in CAPTURES), several]:
        made = []
        for size_min in (0, 1 << 40):
            with mock.patch.object(scan, "SIZE_MIN", size_min):
                out = tmp_path / f"{size_min}.pcapng"
                done = [
                    command("pcap", *captures, "-o", out, *options),
                    command("dissect", *captures, *options),
                    command("dissect", *captures, *options, "--json"),
                    command("dissect", *captures, *options, "--stats"),
                ]
            made.append([(one.returncode, one.stdout, one.stderr) for one in done] + [out.read_bytes()])
        assert made[0] == made[1]


def test_the_options_choose_some() -> None:
    for options in OPTIONS:
        found = command("dissect", *CAPTURES, *options).stdout.count(b"\n") - 1
        assert 0 < found < 2000, options
