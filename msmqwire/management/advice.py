"""Advice about a queue, and the words that it is made of."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Self

from msmqwire.management.reports import QueueReport
from msmqwire.names.printable import counted, safe

ANY_HOST: Final = "HOST"
"""Stands for the asked computer in a command, where its name is not known."""
_BYTES_MAX: Final = 0xFFFF_FFFF
"""What is reported for 4 GiB and more."""
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,252}", re.ASCII)
_HOP: Final = re.compile(r"(?:IP|IPv6)=(.*)", re.IGNORECASE | re.ASCII)
_DIRECT: Final = re.compile(r"DIRECT=(?:OS|TCP):([^\\]*)\\", re.IGNORECASE | re.ASCII)
_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing that there is to say of a queue, in sentences.

    Attributes:
        fact: what its report shows.
        meaning: what that means.
        action: what to do; empty for nothing.
    """

    fact: str
    meaning: str
    action: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return ``{"fact", "meaning", "action"}``."""
        return {"fact": self.fact, "meaning": self.meaning, "action": self.action or None}


class Commands(NamedTuple):
    """The commands that advice names, each a line for a shell.

    Attributes:
        look: shows the advice again.
        resume: ends a pause of the queue.
        resend: sends its messages without an order acknowledgement again.
        connect: connects its queue manager to the network.
        start: starts the server of its folder; empty for another computer.
    """

    look: str
    resume: str
    resend: str
    connect: str
    start: str = ""

    @classmethod
    def of_host(cls, host: str, name: str) -> Self:
        """Return those for a queue of another computer, which is managed by remote calls."""
        of = f"msmqwire manage {_word(host)}"
        queue = _word(name)
        return cls(f"{of} --why {queue}", f"{of} resume {queue}", f"{of} resend {queue}", f"{of} connect")

    @classmethod
    def of_folder(cls, folder: str, name: str) -> Self:
        """Return those for a queue of a folder; what only remote calls can do is done by these."""
        queue, data = _word(name), f"--data {_word(folder)}"
        far = cls.of_host(ANY_HOST, name)
        return cls(
            f"msmqwire queue why {queue} {data}",
            f"msmqwire queue set {queue} {data} --resume",
            far.resend,
            far.connect,
            f"msmqwire serve {data}",
        )


def sentence(clause: str) -> str:
    """Return a clause of the catalogue as a sentence."""
    return f"{clause[0].upper()}{clause[1:]}."


def bytes_text(size: int | None) -> str:
    """Return bytes in brackets after a number of messages; empty if they are not reported."""
    if size is None:
        return ""
    return " (4 GiB or more)" if size >= _BYTES_MAX else f" ({counted(size, 'byte')})"


def time_text(time: datetime) -> str:
    """Return a time as text, in UTC."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def past(time: datetime, now: datetime) -> str:
    """Return a past time with its age; one ahead of `now` is that of another clock."""
    seconds = int((now - time).total_seconds())
    if seconds < 0:
        return f"at {time_text(time)}, ahead of the clock here"
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"at {time_text(time)}, {counted(seconds // unit, name)} ago"
    return f"at {time_text(time)}, just now"


def and_joined(texts: Sequence[str]) -> str:
    """Return texts as one: ``a, b and c``."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def with_destination(action: str, report: QueueReport) -> str:
    """Return an action of the catalogue with the destination in its ping, as far as the report has it."""
    destination = destination_of(report)
    return action.replace("ping HOST", f"ping {destination}") if destination else action


def destination_of(report: QueueReport) -> str:
    """Return the computer that an outgoing queue sends to: its next hop, else that of its format name."""
    found = [_HOP.fullmatch(hop) for hop in report.next_hops]
    found += [_DIRECT.match(name) for name in (report.format_name, report.path, report.asked) if name]
    hosts = [one[1] for one in found if one is not None and _HOST.fullmatch(one[1])]
    return hosts[0] if hosts else ""


def _word(text: str) -> str:
    """Return a text as one word of a shell."""
    return shlex.quote(safe(text))
