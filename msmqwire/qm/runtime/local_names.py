r"""Names of queues as people write them at the computer of the queue (``private$\orders``)."""

from __future__ import annotations

from typing import Final

from msmqwire.constants import HResult
from msmqwire.errors import InvalidName
from msmqwire.names import DirectName, FormatName, kind_of, parse_format_name, parse_path_name

_HERE: Final = "."
_DIRECT: Final = "DIRECT=OS:"
_SYSTEM: Final = "system$;"
_JOURNAL: Final = ";journal"
_OF_THE_COMPUTER: Final = ("journal", "deadletter", "deadxact")


def queue_name(text: str, computer: str) -> FormatName:
    r"""The queue that somebody means.

    Args:
        text: a path name with or without the computer (``private$\orders``, ``.\private$\orders``,
            ``host\orders``), with ``;name`` for a subqueue and ``;journal`` for the journal;
            ``system$;journal``, ``;deadletter`` or ``;deadxact`` for those of the computer; or a format name.
        computer: what stands for a computer that is not named, and for ``.``.

    Raises:
        InvalidName: it is none of them; offsets are those in the text.
    """
    if kind_of(text) is not None:
        return parse_format_name(text)
    head, _, tail = text.partition("\\")
    if head == _HERE:
        host, place, before = computer, tail, len(head) + 1
    elif tail and head.lower() != "private$":
        host, place, before = head, tail, len(head) + 1
    else:
        host, place, before = computer, text, 0
    lowered = place.lower()
    begins = 0  # of the host, in what is judged
    try:
        if lowered.startswith(_SYSTEM) and lowered.removeprefix(_SYSTEM) in _OF_THE_COMPUTER:
            begins = len(_DIRECT)
            return DirectName("OS", host, system=lowered.removeprefix(_SYSTEM))
        journal = lowered.endswith(_JOURNAL)
        path = parse_path_name(f"{host}\\{place[: -len(_JOURNAL)] if journal else place}")
        begins = len(_DIRECT)
        return DirectName(
            "OS", path.computer, path.queue, private=path.private, journal=journal, subqueue=path.subqueue
        )
    except InvalidName as exc:
        offset = exc.offset
        if offset is not None:
            offset -= begins
            if not before or offset > len(host):
                offset += before - len(host) - 1
            offset = min(max(0, offset), len(text))
        raise InvalidName(exc.why, path=exc.path, offset=offset, hresult=exc.hresult) from None


def path_of(text: str, computer: str) -> str:
    r"""The path name of a queue that is to be made: ``private$\orders`` becomes ``host\private$\orders``.

    Raises InvalidName, also for a name that is not of this computer.
    """
    name = queue_name(text, computer)
    if not isinstance(name, DirectName) or name.journal or name.system is not None:
        raise InvalidName(
            "not the name of a queue that can be made", hresult=HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME
        )
    if name.host.lower() not in (computer.lower(), _HERE):
        raise InvalidName(
            f"a queue of another computer than {computer}", hresult=HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME
        )
    private = "private$\\" if name.private else ""
    subqueue = "" if name.subqueue is None else f";{name.subqueue}"
    return f"{computer}\\{private}{name.queue}{subqueue}"
