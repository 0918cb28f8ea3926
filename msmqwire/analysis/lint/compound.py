"""Checks of where the message body stands in a CompoundMessageHeader: [MS-MQRR] 2.2.5.1.2.

Windows sends and accepts departures from these, so that they are notes.
"""

from __future__ import annotations

import re
from typing import Any, Final

from msmqwire.analysis.lint.registry import MESSAGES, Problem, rule

_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"(?i)(?:^|\r\n)content-length:[ \t]*(\d{1,10})[ \t]*(?=\r\n|$)")


def _head(header: Any) -> bytes | None:
    """Return the head of the part (or request) that precedes the body; None if there is none."""
    before = header.Data[: header.MsgBodyOffset]
    if not before.endswith(_HEAD_END):
        return None
    head: bytes = before[: -len(_HEAD_END)].rpartition(_HEAD_END)[2]
    return head


@rule(
    "MQRR-2.2.5.1.2.2-06-PLACE",
    "MsgBodyOffset is not that of a body in the HTTP request",
    "CompoundMessageHeader.MsgBodyOffset",
    MESSAGES,
    "NOTE",
)
def _offset(packet: Any) -> Problem:
    header = packet.CompoundMessageHeader
    at, end = header.MsgBodyOffset, header.MsgBodyOffset + header.MsgBodySize
    if not header.MsgBodySize or end > header.HTTPBodySize or _HEAD_END not in header.Data:
        return None  # no body, outside its HTTP body (another check), or no HTTP request
    return f"no head of a body ends at {at}" if _head(header) is None else None


@rule(
    "MQRR-2.2.5.1.2.2-05",
    "MsgBodySize is not the Content-Length of the body",
    "CompoundMessageHeader.MsgBodySize",
    MESSAGES,
    "NOTE",
)
def _size(packet: Any) -> Problem:
    header = packet.CompoundMessageHeader
    announced = _LENGTH.findall(_head(header) or b"")  # the last: bytes before the head may say so too
    if not announced or int(announced[-1]) == header.MsgBodySize:
        return None
    return f"{header.MsgBodySize}, but the Content-Length is {int(announced[-1])}"
