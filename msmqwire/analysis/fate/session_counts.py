"""The numbers of the messages that one side of a session sends, which both sides count: [MS-MQQB] 3.1.1.6.

No message carries its number. It follows from the number of those before it, if the session was captured
from its beginning, or from the counts in the next SessionHeader of the same side.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Final, NamedTuple

COUNTS: Final = 1 << 16
_HALF: Final = COUNTS // 2
_ACK_FLAGS: Final = 32
_LOW_BITS: Final = {(1 << bits) - 1: bits for bits in range(1, _ACK_FLAGS + 1)}
OUTSTANDING_MAX: Final = _HALF
"""Messages of one side without an acknowledgement that are followed. Of more, numbers would be ambiguous."""


class Outstanding(NamedTuple):
    """A message that waits for an acknowledgement.

    Attributes:
        key: its identity.
        number: its number in the session; None until it is known.
    """

    key: str
    number: int | None


_outstanding: Final = partial(tuple.__new__, Outstanding)
"""Makes one of a pair, in half the time: there is one for each message."""


class Counter:
    """Messages of one kind, all of them or the recoverable ones, and those of them that wait.

    Attributes:
        outstanding: the messages not acknowledged so far, in the order in which they were sent.
        lost: whether messages may be missing in the capture, before the first one or since.
        acknowledged: the last number that was acknowledged; None if none was.
    """

    def __init__(self, *, from_start: bool) -> None:
        self.outstanding: deque[Outstanding] = deque()
        self.lost = not from_start
        self.acknowledged: int | None = None
        self._count: int | None = 0 if from_start else None
        self._unnumbered = 0  # at the end of `outstanding`

    @property
    def count(self) -> int | None:
        """The number of the last message that was sent; None if it is unknown."""
        return self._count

    @property
    def waits_for_numbers(self) -> bool:
        """Whether the first message that waits has no number so far."""
        return bool(self.outstanding) and self.outstanding[0].number is None

    def sent(self, key: str) -> int:
        """Count a message; return 1, or 0 if the oldest outstanding one was dropped for it."""
        if self._count is None:
            self._unnumbered += 1
        else:
            self._count = (self._count + 1) % COUNTS
        self.outstanding.append(_outstanding((key, self._count)))
        if len(self.outstanding) > OUTSTANDING_MAX:
            self.outstanding.popleft()
            self._unnumbered = min(self._unnumbered, len(self.outstanding))
            return 0
        return 1

    def gap(self) -> None:
        """Messages may be missing here: numbers are unknown until the next count."""
        self._count, self.lost = None, True

    def synchronise(self, count: int) -> None:
        """Take the sender's own count of its messages, if no other count is known."""
        if not self.lost:  # Windows is known to send wrong ones: MQMQ-2.2.20.4-12
            return
        self._count = count
        for back in range(self._unnumbered):
            message = self.outstanding[-1 - back]
            self.outstanding[-1 - back] = message._replace(number=(count - back) % COUNTS)
        self._unnumbered = 0

    def disorder(self, message: Outstanding) -> str:
        """Return why a message that waits may have been received; nothing if nothing says so."""
        if message.number is None or self.acknowledged is None:
            return ""
        if (self.acknowledged - message.number) % COUNTS >= _HALF:
            return ""
        return f"its number {message.number} was acknowledged before it, so the capture is not in order"

    def acknowledge(self, number: int) -> list[Outstanding]:
        """Return those that an acknowledgement of all up to a number covers for the first time.

        Numbers wrap: one less than half the range ahead is new, any other is old.
        """
        self.acknowledged = number
        covered: list[Outstanding] = []
        outstanding = self.outstanding
        while outstanding:
            first = outstanding[0][1]
            if first is None or (number - first) % COUNTS >= _HALF:
                break
            covered.append(outstanding.popleft())
        return covered

    def acknowledge_some(self, base: int, flags: int) -> list[Outstanding]:
        """Return those that were stored, by RecoverableMsgAckSeqNumber and -Flags: [MS-MQQB] 3.1.5.5.3.

        Flags leave out fewer than 32 numbers; of a sender whose counts repeat numbers no more are looked at.
        """
        if not base and not flags:
            return []
        flags = flags & 0xFFFFFFFF | 1  # the base itself is stored
        if flags in _LOW_BITS:
            return self.acknowledge((base + _LOW_BITS[flags] - 1) % COUNTS)
        self.acknowledged = (base + flags.bit_length() - 1) % COUNTS
        covered: list[Outstanding] = []
        left: list[Outstanding] = []
        while self.outstanding and self.outstanding[0].number is not None and len(left) < _ACK_FLAGS:
            distance = (self.outstanding[0].number - base) % COUNTS
            if _ACK_FLAGS <= distance < _HALF:
                break
            message = self.outstanding.popleft()
            stored = distance >= _HALF or flags >> distance & 1
            (covered if stored else left).append(message)
        self.outstanding.extendleft(reversed(left))
        return covered
