"""The lines of msmqwire that an input reaches, and the fewest inputs that reach the lines of all.

Measured without atheris, by the interpreter's own tracing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias

Step: TypeAlias = tuple[str, int, int]
"""A file, a line, and the line before it in the same function."""

PACKAGE: Final = Path(__file__).resolve().parents[2] / "msmqwire"
_OURS: Final = str(PACKAGE)
_GENERATED: Final = "<generated"


def steps_of(check: Callable[[bytes], None], data: bytes) -> set[Step]:
    """Return the steps of our code, and of code generated from declarations, that an input takes."""
    steps: set[Step] = set()

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith((_OURS, _GENERATED)):
            return None
        before = 0

        def follow(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal before
            if event == "line":
                steps.add((name, frame.f_lineno, before))
                before = frame.f_lineno
            return follow

        return follow

    previous = sys.gettrace()
    sys.settrace(enter)
    try:
        check(data)
    finally:
        sys.settrace(previous)
    return steps


def fewest(check: Callable[[bytes], None], inputs: Iterable[bytes], limit: int) -> list[bytes]:
    """Return inputs, short ones first, that together take all steps; at most `limit` bytes of them."""
    taken: set[Step] = set()
    chosen, size = list[bytes](), 0
    for data in sorted(set(inputs), key=lambda data: (len(data), data)):
        steps = steps_of(check, data)
        if steps <= taken or size + len(data) > limit:
            continue
        taken |= steps
        chosen.append(data)
        size += len(data)
    return chosen


def lines_of(path: Path) -> set[int]:
    """Return the lines of the functions in a module that can be reached: without lines that importing
    runs.
    """
    module = compile(path.read_text(encoding="utf-8"), str(path), "exec")
    return {line for code in _functions(module) for _, _, line in code.co_lines() if line} - {
        code.co_firstlineno for code in _functions(module)
    }


def _functions(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & _NEW_LOCALS:
                yield constant
            yield from _functions(constant)


_NEW_LOCALS: Final = 2  # inspect.CO_NEWLOCALS: a function, no class body
