"""An NCP call: a function, a subfunction, and the layouts of its request and reply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msmqwire.schema import Header, fixed_size

FUNCTION_22: Final = 22
"""The function that has directory services of volumes as its subfunctions."""
FUNCTION_23: Final = 23
"""The function that has bindery and queue services as its subfunctions."""
WITH_SUBFUNCTIONS: Final = frozenset({FUNCTION_22, FUNCTION_23})
"""The functions whose requests have an NcpSubfunctionHeader."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of NCP.

    Attributes:
        number: the subfunction, or the function if that has none.
        name: its name in public descriptions.
        request, reply: the layouts of the data after the headers.
        others: further layouts of requests, of other sizes.
        other_replies: further layouts of replies; one is used if `reply` leaves bytes and it takes them all.
        function: the function.
    """

    number: int
    name: str
    request: Header
    reply: Header
    others: tuple[Header, ...] = ()
    other_replies: tuple[Header, ...] = ()
    function: int = FUNCTION_23

    @property
    def has_subfunction(self) -> bool:
        return self.function in WITH_SUBFUNCTIONS

    @property
    def requests(self) -> tuple[Header, ...]:
        """All layouts of requests, the usual one first."""
        return (self.request, *self.others)

    @property
    def replies(self) -> tuple[Header, ...]:
        """All layouts of replies, the usual one first."""
        return (self.reply, *self.other_replies)

    def request_of_size(self, size: int) -> Header:
        """Return the layout of a request with `size` bytes of data: the first one, unless another fits."""
        return next((other for other in self.others if fixed_size(other) == size), self.request)

    def other_reply_of_size(self, size: int) -> Header | None:
        """Return the layout of a reply with `size` bytes of data that is not the usual one."""
        return next((other for other in self.other_replies if fixed_size(other) == size), None)
