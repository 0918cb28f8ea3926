"""Time against size: ``python -m fuzz.readers.growth [TARGET...]`` looks for quadratic time.

libFuzzer's inputs are too short to show it. Here parts of kept inputs are repeated until they are long, and
four times as long: inputs that take more than eight times as long then, and long at all, are printed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from fuzz.readers.corpora import corpus
from fuzz.readers.registry import Check, Target, all_targets, load
from msmqwire.names.printable import counted

SIZE: Final = 1 << 15
TIMES: Final = 4
"""Bytes of the shorter input, and how many times longer the other one is."""
RATIO_MAX: Final = 8.0
SECONDS_MIN: Final = 0.5
"""Shorter runs are not judged: their time is chance."""
INPUTS: Final = 12
"""Kept inputs of a target that are looked at."""
PARTS: Final = 6
"""Limit of parts of an input that are repeated, besides the whole."""


class Growth(NamedTuple):
    """The time of an input, and of one in which a part of it is repeated more often."""

    start: int
    end: int
    seconds: float
    longer: float

    @property
    def is_quadratic(self) -> bool:
        """Whether the longer one takes much longer than its size accounts for."""
        return self.longer > max(SECONDS_MIN, RATIO_MAX * self.seconds)


def repeated(data: bytes, start: int, end: int, size: int) -> bytes:
    """Return an input of at least a size by repetition of a part."""
    missing = max(0, size - len(data))
    return data[:end] + data[start:end] * (missing // max(1, end - start) + 1) + data[end:]


def growths(check: Check, data: bytes) -> Iterator[Growth]:
    """Yield the growth of the time as parts of an input are repeated, whatever the check finds then."""
    step = max(1, len(data) // PARTS)
    for start, end in [(0, len(data)), *((at, at + step) for at in range(0, len(data), step))]:
        longer = _seconds(check, repeated(data, start, end, TIMES * SIZE))
        if longer > SECONDS_MIN:
            yield Growth(start, end, _seconds(check, repeated(data, start, end, SIZE)), longer)


def _seconds(check: Check, data: bytes) -> float:
    started = time.process_time()
    with suppress(AssertionError):
        check(data)
    return time.process_time() - started


def _report(target: Target) -> int:
    found = 0
    inputs = sorted({*target.seeds(), *corpus(target.name)})
    inputs = inputs[:: -(-len(inputs) // INPUTS)]
    for data in inputs:
        for growth in growths(target.check, data):
            if growth.is_quadratic:
                found += 1
                times = f"{growth.seconds:.2f} s, then {growth.longer:.2f} s"
                print(f"{target.name}: {times}, by {data[growth.start : growth.end]!r} in {data!r:.200}")
    print(f"{target.name}: {counted(len(inputs), 'input')}, {found} of quadratic time", flush=True)
    return found


def main() -> int:
    """Return 1 if something takes quadratic time."""
    chosen = [load(name) for name in sys.argv[1:]] or list(all_targets())
    return 1 if sum(map(_report, chosen)) else 0


if __name__ == "__main__":
    sys.exit(main())
