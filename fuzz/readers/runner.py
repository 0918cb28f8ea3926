"""Targets run one after the other, each in a process of its own, and their results."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from fuzz.readers.corpora import corpus, regressions
from fuzz.readers.inputs import ROOT
from fuzz.readers.registry import Target

TIMEOUT_S: Final = 20
MEMORY_MIB: Final = 1024
"""The limits at which libFuzzer stops an input: seconds, and memory of the process."""
_EXECUTED: Final = re.compile(r"^stat::number_of_executed_units: (\d+)", re.MULTILINE)
_STATUS: Final = re.compile(r"^#(\d+)\s.*?cov: (\d+) ft: (\d+) corp: (\d+)", re.MULTILINE)
_FOUND: Final = ("crash-*", "timeout-*", "oom-*", "slow-unit-*")
_SHRINK_S: Final = 120


@dataclass(frozen=True)
class Finding:
    """An input that its target finds wrong.

    Attributes:
        file: the file that holds it.
        kind: the exception, ``slow``, or how the process ended.
        text: the fault.
    """

    file: str
    kind: str
    text: str


@dataclass(frozen=True)
class Result:
    """The result of a target.

    Attributes:
        executions: the number of inputs tried.
        seconds: the duration.
        edges, features: libFuzzer's coverage: branches, and these with counters and compared values.
        inputs: of the corpus that was found.
        findings: the findings that fail again when repeated.
    """

    target: str
    executions: int
    seconds: float
    edges: int
    features: int
    inputs: int
    findings: tuple[Finding, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """Return the attributes, JSON-ready."""
        return asdict(self)


def run(target: Target, folder: Path, *, seconds: float = 0, runs: int = 0) -> Result:
    """Fuzz one target for a number of seconds or runs.

    The folder keeps its corpus, for the next time, and the inputs of findings. A process that ends without an
    input of a finding is a finding too: one of its initial inputs is wrong.
    """
    inputs, artifacts = folder / "corpora" / target.name, folder / "findings" / target.name
    _write_inputs(inputs, target)
    artifacts.mkdir(parents=True, exist_ok=True)
    before = set(artifacts.iterdir())
    options = [
        str(inputs),
        f"-max_total_time={max(1, round(seconds))}" if seconds else f"-runs={runs}",
        "-print_final_stats=1",
        f"-timeout={TIMEOUT_S}",
        "-report_slow_units=2",
        f"-rss_limit_mb={MEMORY_MIB}",
        f"-artifact_prefix={artifacts}{os.sep}",
    ]
    words = [word for word in dict.fromkeys(target.words()) if word]
    if words:
        dictionary = folder / f"{target.name}.dict"
        dictionary.write_text("".join(f'"{_escaped(word)}"\n' for word in words))
        options.append(f"-dict={dictionary}")
    started = os.times().elapsed
    process = _python("fuzz.readers.child", target.name, *options, folder=folder)
    log = process.stderr.decode(errors="replace")
    new = sorted(path for pattern in _FOUND for path in artifacts.glob(pattern) if path not in before)
    findings = [found for found in (_finding(target, path, folder) for path in new) if found is not None]
    if process.returncode and not new:
        findings.append(Finding(str(inputs), f"ended with {process.returncode}", log[-2000:]))
    status = _STATUS.findall(log)
    executed = _EXECUTED.search(log)
    return Result(
        target=target.name,
        executions=int(executed[1]) if executed else int(status[-1][0]) if status else 0,
        seconds=round(os.times().elapsed - started, 1),
        edges=int(status[-1][1]) if status else 0,
        features=int(status[-1][2]) if status else 0,
        inputs=sum(1 for _ in inputs.iterdir()),
        findings=tuple(findings),
    )


def _write_inputs(folder: Path, target: Target) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    known: Iterable[bytes] = (*target.seeds(), *corpus(target.name), *regressions(target.name).values())
    for data in known:
        (folder / sha256(data).hexdigest()[:32]).write_bytes(data)


def _finding(target: Target, path: Path, folder: Path) -> Finding | None:
    """Return the finding in a file, made small; None if it is not wrong again: it was slow by chance."""
    try:
        process = _python("fuzz.readers.shrink", target.name, str(path), folder=folder, timeout=_SHRINK_S)
    except subprocess.TimeoutExpired:
        return Finding(str(path), "endless", f"not done after {_SHRINK_S} s")
    if process.returncode:
        text = process.stderr.decode(errors="replace")[-2000:]
        return Finding(str(path), f"ended with {process.returncode}", text)
    wrong = json.loads(process.stdout.splitlines()[-1])
    if wrong is None:
        path.unlink()
        return None
    return Finding(str(path), wrong["kind"], wrong["text"])


def _python(
    module: str, *arguments: str, folder: Path, timeout: float | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a module in a process in which every index of compiled functions is checked."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        "MSMQWIRE_ENGINE": "interpreted",
    }
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, timeout=timeout, check=False)


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)
