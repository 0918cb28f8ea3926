r"""Names of the queues of a managed computer, as its users and its lists have them: [MS-MQMQ] 2.1."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from msmqwire.errors import InvalidName
from msmqwire.names import DirectName, FormatName, kind_of, parse_path_name
from msmqwire.names.addresses import is_ip, without_brackets
from msmqwire.names.meant import format_name_meant
from msmqwire.qm.runtime.local_names import queue_name

ASKED: Final = "."
"""The computer of a name that leaves it to the computer that is asked."""
_OF_COMPUTER: Final = re.compile(
    r"(?:(?P<host>[^\\]+)\\)?"
    r"(?:(?:system\$)?;(?P<suffix>journal|deadletter|deadxact)|(?P<word>journal|deadletter|xactdeadletter)\$)",
    re.IGNORECASE,
)
r"""The journal and dead letters of a computer: ``;deadletter``, and ``host\DeadLetter$`` as .NET has it."""
_WORDS: Final = {"xactdeadletter": "deadxact"}
_NET_JOURNAL: Final = re.compile(r"(?P<queue>.+\\.+)\\journal\$", re.IGNORECASE)


def managed_queue(text: str) -> FormatName:
    r"""Return the queue that a user names.

    Args:
        text: a path name with or without the computer (``private$\orders``, ``host\orders``), with
            ``;journal`` for its journal and ``;name`` for a subqueue; ``;journal``, ``;deadletter`` or
            ``;deadxact`` for the queues of the computer itself; the same as .NET writes them
            (``host\private$\orders\Journal$``, ``host\DeadLetter$``); or a format name.

    The computer of a name without one is `ASKED`. Raises InvalidName.
    """
    if match := _OF_COMPUTER.fullmatch(text):
        system = (match["suffix"] or match["word"]).lower()
        return _addressed(DirectName("OS", match["host"] or ASKED, system=_WORDS.get(system, system)))
    if match := _NET_JOURNAL.fullmatch(text):
        text = f"{match['queue']};journal"
    name = queue_name(text, ASKED)
    return (
        name if kind_of(text) is not None else _addressed(name)
    )  # a format name stays as it is: MQMR-4.1-02


def listed_queue(text: str) -> FormatName:
    """Return a queue that a computer lists: by its format name or path name, if need be nearly spelled.

    Raises InvalidName.
    """
    try:
        return managed_queue(text)
    except InvalidName:
        meant = format_name_meant(text, ASKED)
        if meant is None:
            raise
        return managed_queue(meant)


def of_computer(name: FormatName, computer: str) -> FormatName:
    """Return a name with the computer that is asked in place of `ASKED`."""
    if not is_of_asked(name):
        return name
    assert isinstance(name, DirectName), "only they have addresses"
    return _addressed(replace(name, address=computer, text=""))


def is_of_asked(name: FormatName) -> bool:
    """Whether a name leaves its computer to the one that is asked."""
    return isinstance(name, DirectName) and name.address == ASKED


def computer_of(path: str) -> str | None:
    """Return the computer of a path name, None for another text."""
    try:
        return parse_path_name(path).computer
    except InvalidName:
        return None


def _addressed(name: FormatName) -> FormatName:
    """Return a direct name with an IP address as the one over TCP that it is."""
    if isinstance(name, DirectName) and name.protocol == "OS" and is_ip(without_brackets(name.address)):
        return replace(name, protocol="TCP", text="")
    return name
