"""``msmqwire explain``: what codes of MSMQ mean, what usually causes them, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import fill
from typing import Annotated, Any, Final

import click
from click.exceptions import Exit

from msmqwire.cli.common import EX_DATAERR
from msmqwire.cli.options import Argument, Command, Option
from msmqwire.cli.options import command as made
from msmqwire.constants import is_about_receive, is_legal_class, is_negative
from msmqwire.constants.explanations import (
    Explanation,
    catalogue,
    explained,
    known_names,
    named,
    result_parts,
)
from msmqwire.json_text import dumps
from msmqwire.names.nearest import unknown_name

_WIDTH: Final = 100
_BITS: Final = 32
_CLASS_MAX: Final = 0xFFFF
_MINUS: Final = "\N{MINUS SIGN}"
_NEGATIVE: Final = re.compile(r"-\d+$", re.ASCII)
_DECIMAL: Final = re.compile(r"-?\d{1,20}$", re.ASCII)
_HEX: Final = re.compile(r"(?:0x)?([0-9a-f]{1,16})$", re.IGNORECASE | re.ASCII)
_DIGIT: Final = re.compile(r"-?\d", re.ASCII)
_TAKES: Final = (
    "a code is missing: a number (0xC00E0027, C00E0027, 3222143015, -1072824281, 0x8002), a name "
    "(MQ_ERROR_ACCESS_DENIED, NACK_BAD_DST_Q, SocketConnectFailure) or a state of an outgoing queue "
    "(WAITING), as in msmqwire explain 0xC00E0027; --list prints all"
)


class _Codes(Command):
    """A command with codes, which may begin with a minus sign and are no options then."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Raises click.UsageError."""
        return super().parse_args(
            ctx, [f"{_MINUS}{one[1:]}" if _NEGATIVE.match(one) else one for one in args]
        )


def _explain(
    codes: Annotated[
        list[str] | None, Argument(metavar="CODE...", help="Numbers, names or states: 0xC00E0027, WAITING.")
    ] = None,
    every: Annotated[
        bool, Option("--list", help="Print all codes, a line each, with their meaning.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="One JSON object a line: a meaning of a code.")] = False,
) -> None:
    """Explain codes of MSMQ: what they mean, what usually causes them, and what to do.

    A code is a number, hexadecimal, decimal or signed: a result of a call (0xC00E0027), an error of Windows
    or of remote calls, the class of an acknowledgement (0x8002), or a status of the connection history
    (0x80000004). It may be a name, with or without its first part, or the state of an outgoing queue. All
    meanings of a number are printed.

    Exit statuses: 0; 2 for what is no number and no name; 65 for a number without an entry, whose parts are
    printed.
    """
    if every:
        if codes:
            raise click.UsageError("--list prints all codes: give it none")
        for one in catalogue():
            print(dumps(one.to_json()) if as_json else _row(one))
        return
    if not codes:
        raise click.UsageError(_TAKES)
    found = [(code, *_meanings(code)) for code in (one.replace(_MINUS, "-") for one in codes)]
    for position, (code, number, meanings) in enumerate(found):
        if as_json:
            for line in _json(code, number, meanings):
                print(dumps(line))
            continue
        if position:
            print()
        print("\n\n".join(_text(one) for one in meanings) or _unknown(number))
    if not all(meanings for _, _, meanings in found):
        raise Exit(EX_DATAERR)


command = made("explain", _explain, _Codes)


def _meanings(code: str) -> tuple[int, tuple[Explanation, ...]]:
    """Return a code as a number of 32 bits and its meanings. Raises click.BadParameter."""
    code = code.strip()
    by_name = named(code)
    if by_name:
        return by_name[0].number or 0, by_name
    numbers = list(_numbers(code))
    for number in numbers:
        if meanings := explained(number):
            return number, meanings
    if numbers:
        return numbers[0], ()
    if _DIGIT.match(code):
        raise click.BadParameter(f"{code!r:.80} is not a number of 32 bits", param_hint="CODE")
    wrong = unknown_name(code, known_names(), "code", see="msmqwire explain --list prints all")
    raise click.BadParameter(wrong.why, param_hint="CODE")


def _numbers(code: str) -> Iterator[int]:
    """Yield the numbers of 32 bits that digits may stand for, the likeliest first."""
    if _DECIMAL.match(code):
        value = int(code)
        if -(1 << _BITS - 1) <= value < 1 << _BITS:
            yield value & 0xFFFF_FFFF
    found = _HEX.match(code)
    if found is not None:
        value = int(found[1], 16)
        if value < 1 << _BITS:
            yield value
        elif value >= 0xFFFF_FFFF_8000_0000:  # a negative one in 64 bits
            yield value & 0xFFFF_FFFF


def _signed(number: int) -> int:
    return number - (1 << _BITS) if number >> _BITS - 1 else number


def _text(one: Explanation) -> str:
    code = f"  {one.code}" if one.code else ""
    signed = f" ({_signed(one.number)})" if one.number is not None and one.number >> _BITS - 1 else ""
    lines = [f"{one.name}{code}{signed}  {one.kind.value}", _wrapped(one.meaning)]
    lines += [_wrapped(f"Causes: {one.texts.causes}"), _wrapped(f"What to do: {one.texts.action}")]
    return "\n".join(lines)


def _wrapped(text: str) -> str:
    return fill(
        text,
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def _row(one: Explanation) -> str:
    return f"{one.code or '-':10}  {one.name}: {one.texts.meaning}  [{one.kind.value}]"


def _parts(number: int) -> dict[str, Any]:
    """Return the parts of a number that is not in the catalogue."""
    parts = result_parts(number)._asdict()
    return parts | {"message_class": number <= _CLASS_MAX and is_legal_class(number)}


def _unknown(number: int) -> str:
    """Return what is known of a number without an entry: its parts."""
    if number <= _CLASS_MAX:
        lines = [f"0x{number:04X}  unknown", _wrapped(_as_class(number))]
        return "\n".join(
            [*lines, _wrapped(f"On Windows, net helpmsg {number} explains it if it is an error.")]
        )
    parts = result_parts(number)
    facility = f"facility 0x{parts.facility:03X} ({parts.facility_name or 'unknown'})"
    customer = "another vendor has defined it" if parts.is_customer else "not of another vendor"
    words = f"As a result: {'failure' if parts.is_failure else 'success'}, {customer}, {facility}, code "
    lines = [
        f"0x{number:08X} ({_signed(number)})  unknown",
        _wrapped(f"{words}0x{parts.code:04X} ({parts.code})."),
    ]
    if parts.facility_name == "Win32":
        lines.append(_wrapped(f"On Windows, net helpmsg {parts.code} explains it."))
    return "\n".join(lines)


def _as_class(number: int) -> str:
    if not is_legal_class(number):
        return "As a message class: none that a message may have."
    sign = "negative" if is_negative(number) else "positive"
    about = "receiving" if is_about_receive(number) else "arrival"
    return f"As a message class: of an application, {sign}, about {about}."


def _json(code: str, number: int, meanings: tuple[Explanation, ...]) -> Iterator[dict[str, Any]]:
    given = {"given": code}
    for one in meanings:
        yield given | one.to_json()
    if not meanings:
        unknown = dict.fromkeys(("kind", "name", "meaning", "causes", "action"))
        width = 4 if number <= _CLASS_MAX else 8
        yield given | unknown | {"code": f"0x{number:0{width}X}", "parts": _parts(number)}
