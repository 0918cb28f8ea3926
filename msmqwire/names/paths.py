r"""Path names, the human-readable names of queues (``host\private$\orders``): [MS-MQMQ] 2.1.1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from msmqwire.errors import InvalidName
from msmqwire.names.grammar import (
    COMPUTER_MAX,
    ILLEGAL_PATH_NAME,
    NEWEST_VERSION,
    QUEUE_NAME_2,
    QUEUE_NAME_MAX,
    SUBQUEUE_MAX,
    SUBQUEUES_SINCE,
    VISIBLE,
    Scanner,
    queue_name_characters,
)

_NOT_BACKSLASH: Final = VISIBLE - {"\\"}


@dataclass(frozen=True, slots=True)
class PathName:
    r"""The path of a queue: [MS-MQMQ] 2.1.1.

    Attributes:
        computer: the host of the queue.
        queue: the name of the queue.
        private: whether it is a private queue.
        system: whether it is a system queue (``host\system$;name``).
        subqueue: the subqueue, from MSMQ 4.0 on.
        text: the path as given.
    """

    computer: str
    queue: str
    private: bool = False
    system: bool = False
    subqueue: str | None = None
    text: str = field(default="", compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.text:
            return
        object.__setattr__(self, "text", self.canonical)
        if parse_path_name(self.text) != self:
            raise InvalidName("the parts do not make a path name", hresult=ILLEGAL_PATH_NAME)

    @property
    def canonical(self) -> str:
        """The path with its fixed parts in the spelling of the specification."""
        middle = "private$\\" if self.private else "system$;" if self.system else ""
        subqueue = "" if self.subqueue is None else f";{self.subqueue}"
        return f"{self.computer}\\{middle}{self.queue}{subqueue}"

    def __str__(self) -> str:
        return self.canonical


def parse_path_name(text: str, version: float = NEWEST_VERSION) -> PathName:
    """Parse a path name.

    Args:
        text: the path.
        version: the version of MSMQ whose rules apply, 1.0 to 6.0: it decides the characters of the queue
            name and whether a subqueue may follow (from 4.0).

    Raises:
        InvalidName: with the offset at which the path breaks the grammar of [MS-MQMQ] 2.1.1, and the
            code MQ_ERROR_ILLEGAL_QUEUE_PATHNAME.
    """
    scan = Scanner(text, ILLEGAL_PATH_NAME)  # MQMQ-2.1.1-10
    # The grammar lets a computer name have backslashes; the first one ends it, or no path could be split.
    computer = scan.run(_NOT_BACKSLASH, COMPUTER_MAX, "the computer name")
    if not scan.take("\\"):  # MQMQ-2.1.1-01, MQMQ-2.1.1-10
        scan.fail("no backslash and queue name after the computer name")
    private = scan.take("private$\\")  # MQMQ-2.1.1-02
    system = not private and scan.take("system$;")  # MQMQ-2.1.1-03
    queue = scan.run(queue_name_characters(version), QUEUE_NAME_MAX, "the queue name")
    subqueue = None
    if version >= SUBQUEUES_SINCE and scan.take(";"):  # MQMQ-2.1.1-07
        subqueue = scan.run(QUEUE_NAME_2, SUBQUEUE_MAX, "the subqueue name")
    scan.finish()  # MQMQ-2.1.1-10
    return PathName(computer, queue, private, system, subqueue, text=text)
