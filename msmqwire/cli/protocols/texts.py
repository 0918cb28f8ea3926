"""Texts of help that name protocols: those that have joined, in place of a mark as ``{over}``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from msmqwire.cli.protocols import protocols

_Joining: TypeAlias = Callable[[Sequence[str]], str]


def _listed(last: str, *first: str) -> _Joining:
    """Return the function that lists words after the first ones, the last of all after a conjunction."""

    def joined(words: Sequence[str]) -> str:
        *before, end = *first, *words
        return f"{', '.join(before)} {last} {end}" if before else end

    return joined


def _after(start: str, between: str) -> _Joining:
    """Return the function that puts words between others, and begins with some if there are any."""
    return lambda words: start + between.join(words) if words else ""


_JOININGS: Final[Mapping[str, _Joining]] = {
    "over": lambda words: f", also over {_listed('and')(words)}" if words else "",
    "also": _after("", " "),
    "judged": _listed("and", "packets"),
    "judged each": _listed("or", "packet"),
    "calls": _after("; in captures, also calls of ", " and of "),
    "parsed": _after("; of ", ", of "),
    "bytes": _listed("or", "the bytes of one packet"),
    "kinds": _listed("or", "UserMessage"),
    "port": _listed("or", "MSMQ"),
    "readings": _after(", and of ", " and of "),
}
"""Joins the words of protocols, by the mark that the text stands for."""
_MARK: Final = re.compile(r"\{([a-z ]+)\}")
_EMPTY: Final = re.compile(r"\n(?: *\n){2,}")


def filled(text: str) -> str:
    """Return a text with words in place of its marks."""
    return _EMPTY.sub("\n\n", _MARK.sub(_words, text)) if "{" in text else text


def _words(mark: re.Match[str]) -> str:
    name = mark[1]
    return _JOININGS[name]([protocol.words[name] for protocol in protocols() if name in protocol.words])
