"""The output of tshark for a capture file. Without tshark, modules that import this one are skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.patience import limit

TSHARK = shutil.which("tshark")

if TSHARK is None and os.environ.get("CI") != "true":
    pytest.skip("tshark is not installed", allow_module_level=True)

DISORDERS: dict[str, dict[str, float]] = {
    "none": {},
    "reorder": {"reorder": 0.3},
    "duplicate": {"duplicate": 0.3},
    "resegment": {"resegment": 0.5},
    "overlap": {"overlap": 0.3},
    "all": {"reorder": 0.2, "duplicate": 0.2, "resegment": 0.3, "overlap": 0.2},
}
"""Arguments of `captures.disorder` for frames that tshark still reassembles."""


def tshark(path: Path, *arguments: str) -> str:
    """The output of tshark."""
    assert TSHARK is not None, "tshark is not installed"
    command = [TSHARK, "-n", "-r", str(path), "-o", "tcp.desegment_tcp_streams:FALSE", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=limit(60)).stdout


def followed(path: Path, stream: int) -> dict[str, bytes]:
    """The bytes of both directions, by the address and port of the sender."""
    nodes: dict[int, str] = {}
    data: dict[str, bytes] = defaultdict(bytes)
    for line in tshark(path, "-q", "-z", f"follow,tcp,raw,{stream}").splitlines():
        if line.startswith("Node "):
            nodes[int(line[5])] = line[8:]
        elif len(nodes) == 2 and not line.startswith("="):
            data[nodes[line.startswith("\t")]] += bytes.fromhex(line.strip())
    return {node: data[node] for node in nodes.values()}
