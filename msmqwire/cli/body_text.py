"""The content of a body, in lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msmqwire.bodies import Body, plain
from msmqwire.names.printable import counted, safe

_LINES: Final = 200
"""Lines of a value that are shown."""


def body_lines(body: Body) -> Iterator[str]:
    """Yield lines for people: format, headers, text, the value if it has more than the text, problems."""
    yield f"format   {body.format}"
    if body.headers_format is not None:
        yield f"headers  {body.headers_format}"
        width = max((len(safe(name)) for name in body.headers), default=0)
        for name, value in body.headers.items():
            yield f"  {safe(name):<{width}}  {safe(value)}"
    if body.text:
        yield f"text     {safe(body.text)}"
    if plain.has_parts(body.value):
        yield "value"
        lines = plain.dumps(body.value, indent=2).split("\n")
        yield from (f"  {safe(line)}" for line in lines[:_LINES])
        if len(lines) > _LINES:
            yield f"  ... {counted(len(lines) - _LINES, 'line')} more: --json prints all"
    for problem in body.problems:
        yield f"problem  {safe(str(problem))}"
