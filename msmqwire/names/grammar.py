"""Grammar rules shared by format names and path names: character sets, limits and a scanner."""

from __future__ import annotations

from typing import Final, NoReturn
from uuid import UUID

from msmqwire.constants import HResult
from msmqwire.errors import InvalidName
from msmqwire.names.printable import counted

ILLEGAL_FORMAT_NAME: Final = int(HResult.MQ_ERROR_ILLEGAL_FORMATNAME)
ILLEGAL_PATH_NAME: Final = int(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME)  # MQMQ-2.1.1-10
UNSUPPORTED_FORMAT_NAME: Final = int(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION)

COMPUTER_MAX: Final = 256  # MQMQ-2.1.1-04
QUEUE_NAME_MAX: Final = 124  # MQMQ-2.1.1-05
SUBQUEUE_MAX: Final = 32  # MQMQ-2.1.1-08
DOMAIN_MAX: Final = 255  # MQMQ-2.1.5-02
PORT_MAX: Final = 65535  # MQMQ-2.1.6-08

NEWEST_VERSION: Final = 6.0
SUBQUEUES_SINCE: Final = 4.0  # MQMQ-2.1.1-07, MQMQ-2.1.2-13
MULTICAST_SINCE: Final = 3.0  # MQMQ-2.1.6-09

VISIBLE: Final = frozenset(map(chr, range(0x21, 0x7F)))
# MQMQ-2.1.1-05, MQMQ-2.1.1-09
QUEUE_NAME_1: Final = frozenset(map(chr, range(0x21, 0x80))) - frozenset(";\\")
QUEUE_NAME_2: Final = QUEUE_NAME_1 - frozenset('"+,')  # MQMQ-2.1.1-06
HEX: Final = frozenset("0123456789abcdefABCDEF")
DIGITS: Final = frozenset("0123456789")

_GUID_FORM = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"


def queue_name_characters(version: float) -> frozenset[str]:
    """Return the characters of a queue name for a version of MSMQ (1.0 to 6.0); [MS-MQMQ] 2.1.1."""
    return QUEUE_NAME_1 if version < 2 else QUEUE_NAME_2


def same_letters(text: str, literal: str) -> bool:
    """Return whether a text is a literal of the grammar in any case.

    ABNF has ASCII letters only: str.upper() alone would take a dotless i for an I.
    """
    return len(text) == len(literal) and text.isascii() and text.upper() == literal.upper()  # MQMQ-2.1-02


class Scanner:
    """Scans part of a text from left to right; refusals give the offset in the whole text."""

    __slots__ = ("_hresult", "end", "position", "text")

    def __init__(self, text: str, hresult: int, *, start: int = 0, end: int | None = None) -> None:
        self.text, self.position, self._hresult = text, start, hresult
        self.end = len(text) if end is None else end

    def fail(self, why: str, position: int | None = None) -> NoReturn:
        """Refuse the name at a position, by default the current one."""
        raise InvalidName(why, offset=self.position if position is None else position, hresult=self._hresult)

    def next_is(self, literal: str) -> bool:
        return same_letters(self.text[self.position : min(self.position + len(literal), self.end)], literal)

    def rest_is(self, literal: str) -> bool:
        return same_letters(self.text[self.position : self.end], literal)

    def take(self, literal: str) -> bool:
        """Consume a literal if it is next; return whether it was."""
        if not self.next_is(literal):
            return False
        self.position += len(literal)
        return True

    def run(self, allowed: frozenset[str], most: int, what: str) -> str:
        """Consume and return one to `most` characters of a set."""
        start, text = self.position, self.text
        stop = min(self.end, start + most)
        while self.position < stop and text[self.position] in allowed:
            self.position += 1
        if self.position == start:
            self.fail(f"{what} has no character that may stand here")
        if self.position == stop < self.end and text[stop] in allowed:
            self.fail(f"{what} has more than {counted(most, 'character')}")
        return text[start : self.position]

    def finish(self) -> None:
        """Refuse trailing characters."""
        if self.position < self.end:
            self.fail(f"{self.text[self.position]!a} can't stand here")

    def guid(self) -> UUID:
        """Consume and return a GUID in its usual form, without braces."""
        start = self.position
        for offset, form in enumerate(_GUID_FORM, start):
            if offset >= self.end:  # MQMQ-2.1.3-02
                self.fail("the GUID is too short", offset)
            character = self.text[offset]
            if not (character == "-" if form == "-" else character in HEX):  # MQMQ-2.1.3-02
                self.fail("not a GUID of 8, 4, 4, 4 and 12 hexadecimal digits", offset)
        self.position = start + len(_GUID_FORM)  # MQMQ-2.1.3-02
        return UUID(self.text[start : self.position])

    def decimal(self, most: int, what: str) -> int:
        """Consume and return a decimal number up to `most` without leading zeroes."""
        start = self.position
        digits = self.run(DIGITS, len(str(most)), what)
        if (len(digits) > 1 and digits[0] == "0") or int(digits) > most:
            self.fail(f"{what} is not 0 to {most} without leading zeroes", start)
        return int(digits)
