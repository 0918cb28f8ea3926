"""Cases that each test one requirement of SRMP."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from fuzz.peer.srmp import http_checks, length_checks, malformed, streams, taken
from fuzz.peer.srmp.cases import NAME, accepted
from fuzz.peer.srmp.messages import envelope, post
from fuzz.peer.steps import Case
from fuzz.peer.target import Target

FRESH: Final = 0x0F0F
"""The number of the message of a fresh session."""


def fresh(target: Target) -> Case:
    """Return the case of one message, which is taken."""
    step = accepted("SRMP-3.1.1.1.2.2-04", post(target, envelope(target, FRESH)), "a message")
    return Case(NAME, (step,), ("SRMP-3.1.1.1.2.2-04",), "A message is answered with 200.")


def checks(target: Target, source: random.Random) -> Iterator[Case]:
    """Return the cases, each with values that are drawn anew."""
    yield from taken.checks(target, source)
    yield from length_checks.checks(target, source)
    yield from malformed.checks(target, source)
    yield from http_checks.checks(target, source)
    yield from streams.checks(target, source)
