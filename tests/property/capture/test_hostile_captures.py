"""Hostile traffic of every kind that is measured gives the same columns with both readers."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from benchmarks.support import captures
from benchmarks.support.hostile_captures import CASES
from benchmarks.support.hostile_packets import refusals
from msmqwire import MalformedPacket, parse
from tests.support.capture.both_readers import assert_same
from tests.support.paths import ROOT
from tests.support.patience import limit


@pytest.mark.parametrize("name", CASES)
def test_both_readers_agree(name, tmp_path, monkeypatch):
    monkeypatch.setattr(captures, "ACTIVE", 3)  # so that a session has many of the frames
    path = tmp_path / "capture"
    written = CASES[name].write(path, 400)
    assert written.frames == 400
    assert_same([path.read_bytes()])


def test_small_segments_are_compared_with_segments_as_small(tmp_path):
    sizes = {}
    for name in ("clean", "clean-small", "swapped", "twice"):
        sizes[name] = CASES[name].write(tmp_path / name, 3000).bytes
    assert 2 * sizes["clean-small"] < sizes["clean"]
    for name in ("swapped", "twice"):
        assert CASES[name].reference == "clean-small"
        assert 0.8 < sizes[name] / sizes["clean-small"] < 1.25


def test_joined_fragments_need_little_room(tmp_path, monkeypatch):
    monkeypatch.setattr(captures, "ACTIVE", 3)
    path = tmp_path / "capture"
    CASES["fragments-shuffled"].write(path, 400)
    assert_same([path.read_bytes()], CHUNK=3000, ARENA=64, ROWS=1)
    assert_same([path.read_bytes()], CHUNK=3000, ARENA=64, ROWS=7)


def test_each_refusal_is_one():
    assert len(refusals()) >= 20
    for (where, why), packet in refusals().items():
        with pytest.raises(MalformedPacket) as caught:
            parse(packet)
        assert (caught.value.path, re.sub(r"\d+", "#", caught.value.why)) == (where, why)


def test_the_benchmark_names_its_cases():
    command = [sys.executable, "benchmarks/hostile.py", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit(60), check=True)
    shown = "".join(done.stdout.split())  # names are wrapped, too
    assert [name for name in CASES if name not in shown] == []


def test_the_benchmark_tells_rates_and_aims():
    command = [sys.executable, "benchmarks/hostile.py", "--frames", "300", "--runs", "1", "lone-fragments"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit(300), check=True)
    lines = done.stdout.splitlines()
    rates = [line.split() for line in lines if line.startswith(("clean", "limits "))]
    assert [words[0] for words in rates] == ["clean", "clean", "limits", "clean", "clean"]
    assert all(words[-7] == "300" for words in rates)
    assert sum(" aim 0.10 and 100000: " in line for line in lines) == 1
    assert any(line.startswith("limits: 32 MiB for incomplete packets") for line in lines)
    assert any(line.startswith("memory: ") and "reached" in line for line in lines)
