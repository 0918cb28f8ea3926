"""Steps and cases of SRMP."""

from __future__ import annotations

from typing import Final

from fuzz.peer.steps import Case, Step

NAME: Final = "srmp"


def accepted(
    requirement: str, data: bytes, note: str, connection: int = 0, cuts: tuple[int, ...] = ()
) -> Step:
    """Return the step of a request that is taken; a peer that does otherwise breaks the requirement."""
    return Step("request", connection, data, cuts, expects=f"accepted {requirement}", note=note)


def refused(requirement: str, data: bytes, note: str, expects: str = "status 400") -> Step:
    """Return the step of a request that breaks a requirement."""
    return Step("request", data=data, breaks=(requirement,), expects=expects, note=note)


def case(requirement: str, text: str, *steps: Step) -> Case:
    """Return a case."""
    return Case(NAME, steps, (requirement,), text)


def changed(text: bytes, old: str, new: str) -> bytes:
    """Return an envelope with a piece of text in the place of another, which stands there once."""
    before, found, after = text.partition(old.encode())
    if not found or old.encode() in after:
        raise ValueError(f"{old!r} does not stand once in {text!r}")
    return before + new.encode() + after
