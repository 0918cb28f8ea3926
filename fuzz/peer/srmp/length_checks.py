"""Each length of a request at the number that there is room for, one more and one less: the Content-Length of
the request and of its parts, the size of a chunk.

A request that says that it is a byte longer has not come: it has to stay without success until that byte
comes.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Final

from fuzz.boundaries import near
from fuzz.peer.srmp.cases import accepted, case
from fuzz.peer.srmp.messages import post
from fuzz.peer.srmp.taken import TAKEN, asking, number_of
from fuzz.peer.steps import Case, Step
from fuzz.peer.target import Target
from msmqwire.names.printable import counted

WHOLE: Final = "SRMP-2.1.1-11"
PARTS: Final = "SRMP-2.2.2-17"
_NEXT: Final = 30
"""The connection of the message after a wrong length."""
_LENGTH: Final = re.compile(rb"Content-Length: (\d+)\r\n")
_END: Final = b"\r\n\r\n"


def checks(target: Target, source: random.Random) -> Iterator[Case]:
    """Return the cases; the numbers of their messages are drawn, their lengths are not."""
    for body in (None, b"the body"):
        what = "a message" if body is None else "a message of two parts"
        data = post(target, asking(target, number_of(source)), body)
        for step in (*_lengths(data, what), *_chunks(data, what)):
            following = accepted(TAKEN, post(target, asking(target, number_of(source))), "a message", _NEXT)
            yield case(step.breaks[0], f"After {step.note} the next message is taken.", step, following)


def _lengths(data: bytes, what: str) -> Iterator[Step]:
    """Yield requests with another number in one of their fields Content-Length."""
    start = data.index(_END) + len(_END)
    for field in _LENGTH.finditer(data):
        right = int(field[1])
        counted = data.index(_END, field.start()) + len(_END)
        whole = counted == start
        ids = (WHOLE if whole else PARTS,)
        for number in near(right, len(data) - counted):
            wrong = data[: field.start(1)] + b"%d" % number + data[field.end(1) :]
            where = "" if whole else " in one of them"
            note = f"{what} with Content-Length {number} instead of {right}{where}"
            if not whole:
                grown = len(wrong) - len(data)  # the request has as many bytes as it says
                wrong = _LENGTH.sub(b"Content-Length: %d\r\n" % (len(data) - start + grown), wrong, count=1)
                yield Step("request", data=wrong, breaks=ids, expects="refused", note=note)
            elif number > right:
                yield Step("incomplete", data=wrong, breaks=ids, note=note)
            else:
                yield Step("request", data=wrong, breaks=ids, expects="answered", note=note)


def _chunks(data: bytes, what: str) -> Iterator[Step]:
    """Yield requests of one chunk with another size of it."""
    head, entity = data.split(_END, 1)
    coded = _LENGTH.sub(b"Transfer-Encoding: chunked\r\n", head + b"\r\n", count=1) + b"\r\n"
    last = b"\r\n0\r\n\r\n"
    right, room = len(entity), len(entity + last)
    for number in near(right, room):
        wrong = coded + b"%x\r\n" % number + entity + last
        note = f"{what} in a chunk of {counted(number, 'byte')} in place of {right}"
        if number >= room:
            yield Step("incomplete", data=wrong, breaks=(WHOLE,), note=note)
        else:
            yield Step("bytes", data=wrong, breaks=(WHOLE,), note=note)
