"""CPU time and memory of the processes that this one has started, read from /proc. Linux only."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

KINDS = ("java", "python")


def descendants(files: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the processes that this one has started, directly or not: the kind, and texts from /proc by file.

    A process may end before it is read.

    Args:
        files: the names of files in its folder in /proc, besides ``stat``.
    """
    processes = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            processes[int(folder.name)] = {name: (folder / name).read_text() for name in ("stat", *files)}
        except (FileNotFoundError, ProcessLookupError):
            continue
    parents = {pid: int(_stat_fields(texts)[1]) for pid, texts in processes.items()}
    for pid, texts in processes.items():
        ancestor = parents[pid]
        while ancestor in parents and ancestor != os.getpid():
            ancestor = parents[ancestor]
        if ancestor == os.getpid():
            yield "java" if "(java)" in texts["stat"] else "python", texts


def _stat_fields(texts: dict[str, str]) -> list[str]:
    """The fields of ``/proc/PID/stat`` that follow the name of the program."""
    return texts["stat"].rpartition(")")[2].split()


def cpu_seconds() -> dict[str, float]:
    """Return the CPU seconds so far, by kind, of descendants and of the processes that they have waited
    for.
    """
    seconds = dict.fromkeys(KINDS, 0.0)
    for kind, texts in descendants(()):
        seconds[kind] += sum(map(int, _stat_fields(texts)[11:15])) / os.sysconf("SC_CLK_TCK")
    return seconds


class MemoryWatch(threading.Thread):
    """Watches the peak resident memory of descendants.

    Attributes:
        peak: by kind, the MiB of the largest process.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = dict.fromkeys(KINDS, 0.0)
        self._finished = threading.Event()

    def run(self) -> None:
        while not self._finished.wait(0.5):
            self.sample()

    def stop(self) -> None:
        self._finished.set()
        self.join()

    def sample(self) -> None:
        for kind, texts in descendants(["status"]):
            fields = dict(line.split(":", 1) for line in texts["status"].splitlines())
            mebibytes = int(fields.get("VmHWM", "0").split()[0]) / 1024
            self.peak[kind] = max(self.peak[kind], mebibytes)
