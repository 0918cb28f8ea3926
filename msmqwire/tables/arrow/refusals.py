"""Refusals of compiled code in words: the error of the generic reader for the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from msmqwire.analysis.dissection.skip_reasons import SkipReason, Why
from msmqwire.errors import MalformedPacket
from msmqwire.headers import BASE_HEADER, FINAL_ACK_BODY
from msmqwire.headers.base import PACKET_SIZE_MAX, PACKET_SIZE_MIN, SIGNATURE, VERSION
from msmqwire.ping import PING
from msmqwire.schema import Flags, UInt, reasons
from msmqwire.tables.compiled import packet
from msmqwire.tables.compiled.generated import REFUSALS
from msmqwire.tables.compiled.refusal import FIRST, NUMBER, OFFSET, SECOND, THIRD

_LOW: Final = 0xFFFF_FFFF


class Words(NamedTuple):
    """The words of a refusal.

    Attributes:
        why: the reason.
        path: the field; None where bytes are skipped.
    """

    why: str
    path: str | None


InWords = Callable[[int, int, int], Words]
"""Puts the values of a refusal into words."""


def _at(path: str, why: Callable[[int, int, int], str]) -> InWords:
    return lambda first, second, third: Words(why(first, second, third), path)


def _of_fields(fields: tuple[tuple[str, int], ...], why: Callable[[int, int], str]) -> InWords:
    """Blame the first of some fields for which there are too few bytes: those that are left."""

    def words(left: int, _second: int, _third: int) -> Words:
        for path, size in fields:
            if size > left:
                return Words(why(size, left), path)
            left -= size
        raise AssertionError("all fields are there")

    return words


def _in_region(fields: tuple[tuple[str, int], ...]) -> InWords:
    """Blame the first field that does not fit into its container, or into the bytes that there are."""

    def words(left: int, there: int, _third: int) -> Words:
        for path, size in fields:
            if size > there:
                why = reasons.too_short(size, left) if size > left else reasons.cut_off(size, there)
                return Words(why, path)
            left, there = left - size, there - size
        raise AssertionError("all fields are there")

    return words


def _in_words(form: str, *rest: Any) -> InWords:
    """Return the function that puts a refusal of the generated functions into words."""
    match form, *rest:
        case "too short", fields:
            return _in_region(fields)
        case "cut off", fields:
            return _of_fields(fields, reasons.cut_off)
        case "cut short", path:
            return _at(path, lambda size, left, _: reasons.cut_off(size, left))
        case "too long", path, part, _:
            return _at(path, lambda value, size, left: reasons.too_long(value, part, size, left))
        case "not between", path, low, high:
            return _at(path, lambda value, _, __: reasons.not_between(value, low, high))
        case "none of", path, values:
            return _at(path, lambda value, _, __: reasons.none_of(value, values))
        case "without layout", path:
            return _at(path, lambda value, _, __: reasons.without_layout(value))
        case "not terminated", path:
            return _at(path, lambda size, _, __: reasons.not_terminated(size))
        case "too large", path:
            return _at(path, lambda value, size, _: reasons.too_large(value, size))
        case "too small", path:
            return _at(path, lambda value, _, __: reasons.too_small(value))
        case "beyond", path:
            return _at(path, lambda value, left, _: reasons.beyond(value, left))
        case "too many", path, limit:
            return _at(path, lambda count, _, __: reasons.too_many(count, limit))
        case "too few", path:
            return _at(path, reasons.too_few)
        case "no null", path:
            return _at(path, lambda *_: reasons.NO_NULL)
        case "nothing left", path:
            return _at(path, lambda *_: reasons.NOTHING_LEFT)
        case _:
            raise ValueError(form)


def _of_element(in_words: InWords) -> InWords:
    """Put the number of an element of a list, the third value, into the path."""

    def words(first: int, second: int, third: int) -> Words:
        why, path = in_words(first, second, third)
        assert path is not None
        return Words(why, path.replace("[#]", f"[{third}]"))

    return words


def _skipped(why: Why) -> InWords:
    """Say why bytes are skipped."""
    return lambda value, _, __: Words(SkipReason(why, value).text, None)


def _not_captured(reason: str) -> InWords:
    """Say why bytes are taken for lost."""
    return lambda *_: Words(f"not in the capture: {reason}", None)


_BASE_FIELDS: Final = tuple(
    (f"BaseHeader.{part.name}", part.size) for part in BASE_HEADER.parts if isinstance(part, UInt | Flags)
)
_SIZE: Final = "BaseHeader.PacketSize"
IN_WORDS: Final[dict[int, InWords]] = {
    **{number: _of_element(_in_words(*refusal)) for number, refusal in enumerate(REFUSALS)},
    packet.NOT_INTERNAL: _at("InternalHeader.Flags.PT", lambda kind, _, __: reasons.not_internal(kind)),
    packet.NO_SESSION_HEADER: _at("BaseHeader.Flags.SH", lambda *_: reasons.NO_SESSION_HEADER),
    packet.FINAL_ACK_SIZE: _at(
        "MessagePropertiesHeader.MessageSize",
        lambda size, _, __: reasons.unlike_view(size, FINAL_ACK_BODY.name, FINAL_ACK_BODY.size or 0),
    ),
    packet.OTHER_SIZE: _at(_SIZE, lambda taken, size, _: reasons.other_size(taken, size)),
    packet.OTHER_VERSION: _at(
        "BaseHeader.VersionNumber", lambda version, _, __: reasons.not_constant(version, VERSION, 2)
    ),
    packet.OTHER_SIGNATURE: _at(
        "BaseHeader.Signature", lambda signature, _, __: reasons.not_constant(signature, SIGNATURE, 8)
    ),
    packet.IMPOSSIBLE_SIZE: _at(
        _SIZE, lambda size, _, __: reasons.not_between(size, PACKET_SIZE_MIN, PACKET_SIZE_MAX)
    ),
    packet.CUT_BASE: _of_fields(_BASE_FIELDS, reasons.too_short),
    packet.FOLLOWED_PING: _at(PING.name, lambda size, _, __: reasons.followed(size)),
    **{packet.SKIPPED_FOR + why: _skipped(why) for why in Why},
    **{packet.NOT_CAPTURED + at: _not_captured(reason) for at, reason in enumerate(packet.GAP_REASONS)},
}
"""The functions that put refusals into words, by number."""
CHOOSING: Final = frozenset(
    [number for number, (form, *_) in enumerate(REFUSALS) if form in ("too short", "cut off")]
    + [packet.CUT_BASE, *(packet.SKIPPED_FOR + why for why in (Why.OTHER_VERSION, Why.OTHER_SIGNATURE))]
)
"""Numbers of which more than the places of values in the text depends on these."""
LEFT_MAX: Final = {number: 0xFFFF if number in range(len(REFUSALS)) else 0xFFFF_FFFF for number in CHOOSING}
"""The limit beyond which the text of each does not depend on the first two values: more bytes than all fields
together have."""
TIMES: Final = np.zeros(max(IN_WORDS) + 1, np.int64)
"""For each number the factor by which the first value may give the second one, of which a refusal has the low
32 bits; 0 for none."""
for _number, (_form, *_rest) in enumerate(REFUSALS):
    if _form == "too long":
        TIMES[_number] = _rest[-1]


@lru_cache(maxsize=1 << 12)
def words_of(number: int, first: int, second: int, third: int) -> Words:
    """Return the words of a refusal with these values."""
    return IN_WORDS[number](first, second, third)


def words_of_row(refusal: Sequence[int]) -> Words:
    """Return the words of the refusal in a row of field offsets."""
    number = refusal[NUMBER]
    first, second, third = (refusal[at] & _LOW for at in (FIRST, SECOND, THIRD))
    product = first * int(TIMES[number])
    return words_of(number, first, product if product & _LOW == second else second, third)


def error_of_row(refusal: Sequence[int]) -> MalformedPacket:
    """Return the error of a malformed packet from the refusal in a row of field offsets."""
    why, path = words_of_row(refusal)
    assert path is not None
    return MalformedPacket(why, path=path, offset=refusal[OFFSET])
