r"""Names of queues as users type them at the computer of the queue (``private$\orders``)."""

from __future__ import annotations

from typing import Final

from msmqwire.constants import HResult
from msmqwire.errors import InvalidName
from msmqwire.names import DirectName, FormatName, kind_of, parse_path_name
from msmqwire.names.grammar import ILLEGAL_PATH_NAME
from msmqwire.names.meant import check_backslash, wanted_format_name

_LOCAL: Final = "."
_DIRECT: Final = "DIRECT=OS:"
_SYSTEM: Final = "system$;"
_JOURNAL: Final = ";journal"
_COMPUTER_QUEUES: Final = ("journal", "deadletter", "deadxact")


def queue_name(text: str, computer: str) -> FormatName:
    r"""Return the queue that a text names.

    Args:
        text: a path name with or without the computer (``private$\orders``, ``.\private$\orders``,
            ``host\orders``), with ``;name`` for a subqueue and ``;journal`` for the journal;
            ``system$;journal``, ``;deadletter`` or ``;deadxact`` for the computer's queues; or a format name.
        computer: the computer meant by ``.`` and by names without one.

    Raises:
        InvalidName: it is none of them; the offset counts characters of `text`.
    """
    if kind_of(text) is not None:
        return wanted_format_name(text)
    head, _, tail = text.partition("\\")
    if head == _LOCAL:
        host, path, prefix = computer, tail, len(head) + 1
    elif tail and head.lower() != "private$":
        host, path, prefix = head, tail, len(head) + 1
    else:
        host, path, prefix = computer, text, 0
    if not path.lower().startswith("private$\\"):
        check_backslash(path, text)
    elif "\\" in path[9:]:
        meant = text[: -len(path)] + path[:9] + path[9:].replace("\\", ".")
        why = f"the name of a queue has no backslash; write {meant}"
        at = len(text) - len(path) + path.index("\\", 9)
        raise InvalidName(why, offset=at, hresult=ILLEGAL_PATH_NAME, near=(meant,))
    lowered = path.lower()
    host_start = 0  # in the text that error offsets count in
    try:
        if lowered.startswith(_SYSTEM) and lowered.removeprefix(_SYSTEM) in _COMPUTER_QUEUES:
            host_start = len(_DIRECT)
            return DirectName("OS", host, system=lowered.removeprefix(_SYSTEM))
        journal = lowered.endswith(_JOURNAL)
        queue = parse_path_name(f"{host}\\{path[: -len(_JOURNAL)] if journal else path}")
        host_start = len(_DIRECT)
        return DirectName(
            "OS", queue.computer, queue.queue, private=queue.private, journal=journal, subqueue=queue.subqueue
        )
    except InvalidName as exc:
        offset = exc.offset
        if offset is not None:
            offset -= host_start
            if not prefix or offset > len(host):
                offset += prefix - len(host) - 1
            offset = min(max(0, offset), len(text))
        raise InvalidName(exc.why, path=exc.path, offset=offset, hresult=exc.hresult) from None


def path_of(text: str, computer: str) -> str:
    r"""Return the path name of a queue to be created: ``private$\orders`` becomes ``host\private$\orders``.

    Raises InvalidName, also for a queue of another computer.
    """
    name = queue_name(text, computer)
    if not isinstance(name, DirectName) or name.journal or name.system is not None:
        raise InvalidName(
            "not the name of a queue that can be made", hresult=HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME
        )
    if name.host.lower() not in (computer.lower(), _LOCAL):
        raise InvalidName(
            f"a queue of another computer than {computer}", hresult=HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME
        )
    private = "private$\\" if name.private else ""
    subqueue = "" if name.subqueue is None else f";{name.subqueue}"
    return f"{computer}\\{private}{name.queue}{subqueue}"
