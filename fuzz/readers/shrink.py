"""The input of a finding made small: ``python -m fuzz.readers.shrink TARGET FILE``.

It is written back to the file, and the fault to standard output, as JSON. An input that is not wrong any
more leaves the file as it is.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from fuzz.readers.registry import Check, load
from msmqwire.names.printable import counted

SECONDS: Final = 30.0
"""Seconds spent on making inputs smaller."""
SLOW_S: Final = 1.0
"""Seconds that no input may take: the longest has a few kilobytes."""


class Wrong(NamedTuple):
    """The fault of an input: inputs of one fault are alike.

    Attributes:
        kind: the exception, or ``slow``.
        place: the function, its file and line, in which it was raised.
        text: for people.
    """

    kind: str
    place: str
    text: str


def what_is_wrong(check: Check, data: bytes) -> Wrong | None:
    """Return the fault of an input, None if there is none."""
    start = time.perf_counter()
    try:
        check(data)
    except Exception as exc:
        frame = traceback.extract_tb(exc.__traceback__)[-1]
        place = f"{frame.name}, {Path(frame.filename).name}:{frame.lineno}"
        return Wrong(type(exc).__name__, place, "".join(traceback.format_exception(exc))[-2000:])
    took = time.perf_counter() - start
    if took < SLOW_S:
        return None
    return Wrong("slow", "", f"{counted(len(data), 'byte', 'take')} {took:.1f} s")


def shrunk(check: Check, data: bytes, *, until: Callable[[], bool]) -> bytes:
    """Return the shortest input found that is wrong in the same way; `until` says that it is enough."""
    wrong = what_is_wrong(check, data)
    if wrong is None:
        return data

    def same(candidate: bytes) -> bool:
        found = what_is_wrong(check, candidate)
        return found is not None and (found.kind, found.place) == (wrong.kind, wrong.place)

    size, length = max(1, len(data) // 2), len(data)
    while size and not until():
        at = 0
        while at < len(data) and not until():
            candidate = data[:at] + data[at + size :]
            if same(candidate):
                data = candidate
            else:
                at += size
        size //= 2
        if not size and len(data) < length:  # a part that was needed before may not be needed now
            size, length = max(1, len(data) // 2), len(data)
    for at in range(len(data)):
        candidate = data[:at] + b"\0" + data[at + 1 :]
        if data[at] and not until() and same(candidate):
            data = candidate
    return data


def main() -> None:
    """Shrink the input of a file."""
    name, file = sys.argv[1:]
    path, check = Path(file), load(name).check
    data = path.read_bytes()
    for seed in load(name).seeds():  # code compiled on first use takes its time now
        check(seed)
        break
    what_is_wrong(check, data)
    wrong = what_is_wrong(check, data)
    if wrong is not None:
        deadline = time.monotonic() + SECONDS
        data = shrunk(check, data, until=lambda: time.monotonic() > deadline)
        path.write_bytes(data)
        wrong = what_is_wrong(check, data) or wrong
    print(json.dumps(None if wrong is None else wrong._asdict()))


if __name__ == "__main__":
    main()
