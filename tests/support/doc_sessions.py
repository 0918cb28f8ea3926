"""Sessions of commands in pages of the documentation: typed into a shell, their output compared.

In a block ``console`` a line that begins with ``$ `` is a command, up to the next line that does not begin
with ``> ``; the following lines are its output, on both streams. ``...`` matches anything within a line, and
alone in a line for any lines. A block ``python title="NAME"`` is a file that is there when the commands after
it run. A command ends with status 0, unless the next one is ``echo $?``.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.paths import ROOT
from tests.support.patience import limit

_BLOCK: Final = re.compile(
    r'^```(?:(?P<console>console)|python title="(?P<name>[\w.]+)")\n(?P<text>.*?)^```$',
    re.DOTALL | re.MULTILINE,
)
_COMMAND: Final = re.compile(r"^\$ (?P<command>.*(?:\n> .*)*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)
_MARK: Final = "--- step ended with"


@dataclass(frozen=True)
class Step:
    """A command with its output, or a file.

    Attributes:
        command: the command as typed, or the command that writes the file.
        output: the output on the page, with ``...``.
    """

    command: str
    output: str = ""


def steps(page: str) -> list[Step]:
    """Return the steps of a page, in their order."""
    found = []
    for block in _BLOCK.finditer(page):
        if block["console"]:
            typed = _COMMAND.findall(block["text"])
            found += [Step(command.replace("\n> ", "\n"), output) for command, output in typed]
        else:
            found.append(Step(f"printf %s {shlex.quote(block['text'])} >{block['name']}"))
    return found


def run(steps: list[Step], folder: Path, *, loopback: str = "127.0.0.") -> list[tuple[int, str]]:
    """Type the steps into one shell; return the status and the output of each.

    Args:
        steps: the steps of a page.
        folder: the working folder; ``examples`` is there.
        loopback: the prefix of addresses in place of ``127.0.0.``, so that sessions that listen at well-known
            ports can run at the same time.
    """
    programs = folder / "bin"
    programs.mkdir()
    for name, started in (("msmqwire", " -m msmqwire"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)}{started} "$@"\n')
        (programs / name).chmod(0o755)
    session = folder / "session"
    session.mkdir()
    (session / "examples").symlink_to(ROOT / "examples")
    script = "\n".join(f"{step.command}\nend" for step in steps).replace("127.0.0.", loopback)
    end = f'end() {{ local status=$?; printf "\\n{_MARK} %d\\n" "$status"; return "$status"; }}'
    (folder / "script").write_text(f"{end}\n{script}\n")
    environment = {
        **os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "COLUMNS": "120",
    }  # fmt: skip
    with (folder / "output").open("w+b") as output:
        shell = subprocess.Popen(
            ["bash", folder / "script"], cwd=session, env=environment, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            shell.wait(timeout=limit(300))
        finally:
            with contextlib.suppress(ProcessLookupError):  # nothing is left
                os.killpg(shell.pid, signal.SIGKILL)  # servers in the background too
            shell.wait()
    text = (folder / "output").read_text(encoding="utf-8").replace(loopback, "127.0.0.")
    parts = re.split(rf"\n{_MARK} (\d+)\n", text)
    return [(int(status), printed) for printed, status in zip(parts[::2], parts[1::2], strict=False)]


def differences(steps: list[Step], results: list[tuple[int, str]]) -> list[str]:
    """Return the differences between the results of the steps and the page."""
    found = [f"{len(results)} of {len(steps)} steps ended"] if len(results) != len(steps) else []
    following = [step.command for step in steps[1:]] + [""]
    for step, after, (status, printed) in zip(steps, following, results, strict=False):
        if status and after != "echo $?":
            found.append(f"$ {step.command}\nended with {status}:\n{printed}")
        elif not _pattern(step.output).fullmatch(printed.strip("\n")):
            found.append(f"$ {step.command}\nprinted\n{printed}\nnot\n{step.output}")
    return found


def _pattern(output: str) -> re.Pattern[str]:
    lines = []
    for line in output.strip("\n").split("\n"):
        if line == "...":
            lines.append(r"(?:.*\n)*?.*")
        else:
            lines.append(r"[^\n]*?".join(map(re.escape, line.rstrip().split("..."))) + r"[ ]*")
    return re.compile("\n".join(lines))
