"""Pages of queues for people: searched, sorted and counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msmqwire.errors import InvalidValue
from msmqwire.qm.model.elements import OutgoingQueue, Queue, short_name
from msmqwire.qm.model.enumerations import QueueType
from msmqwire.qm.runtime.message_json import flag, number
from msmqwire.qm.runtime.queues import is_shown, kind

if TYPE_CHECKING:
    from msmqwire.qm.core import Core

PAGE_MAX: Final = 200
"""Limit of queues on a page."""
FIND_MAX: Final = 256
"""Limit of a search text in characters."""
APPLICATION, OUTGOING, SYSTEM, JOURNALS = "application", "outgoing", "system", "journals"
_UINT32_MAX: Final = 0xFFFFFFFF


def group_of(queue: Queue) -> str | None:
    """Return the group that a queue is shown in; None if it is not shown.

    ``application`` has private and public queues, ``journals`` the journals of queues, ``system`` the journal
    and the dead-letter queues of the computer.
    """
    if queue.queue_type is QueueType.SYSTEM and queue.owner_queue is not None:
        return JOURNALS
    if not is_shown(queue):
        return None
    if isinstance(queue, OutgoingQueue):
        return OUTGOING
    return SYSTEM if queue.queue_type is QueueType.SYSTEM else APPLICATION


SORTS: Final[Mapping[str, Callable[[Queue], Any]]] = {
    "queue": lambda queue: short_name(queue).lower(),
    "kind": kind,
    "messages": lambda queue: len(queue.positions),
    "bytes": lambda queue: queue.total_bytes,
    "label": lambda queue: "" if isinstance(queue, OutgoingQueue) else queue.label.lower(),
    "state": lambda queue: queue.state.value if isinstance(queue, OutgoingQueue) else "",
}


def page(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return some of the queues.

    A request may have ``group`` (all groups if it has none), ``find`` (a part of the name or label, in any
    case), ``sort`` and ``descending``, ``offset`` and ``count``. The answer has ``total``, the number of
    queues that were found, and ``groups``: queues, messages and bytes of each group, independent of the
    search.

    Raises InvalidValue.
    """
    wanted, find = request.get("group"), request.get("find", "")
    if wanted not in (None, APPLICATION, OUTGOING, SYSTEM, JOURNALS):
        raise InvalidValue(f"{wanted!r:.100} is not a group of queues", path="group")
    if not isinstance(find, str) or len(find) > FIND_MAX:
        raise InvalidValue(f"not a text of at most {FIND_MAX} characters", path="find")
    sort = SORTS.get(str(request.get("sort", "queue")))
    if sort is None:
        raise InvalidValue(f"{request['sort']!r:.100} is none of {', '.join(SORTS)}", path="sort")
    descending = flag(request.get("descending", False), "descending")
    offset = number(request.get("offset", 0), "offset", _UINT32_MAX)
    count = number(request.get("count", 50), "count", PAGE_MAX, 1)
    groups = {
        name: {"queues": 0, "messages": 0, "bytes": 0} for name in (APPLICATION, OUTGOING, SYSTEM, JOURNALS)
    }
    found: list[Queue] = []
    for queue in core.queue_manager.queues.values():
        group = group_of(queue)
        if group is None:
            continue
        figures = groups[group]
        figures["queues"] += 1
        figures["messages"] += len(queue.positions)
        figures["bytes"] += queue.total_bytes
        if wanted in (None, group) and matches(queue, find.lower()):
            found.append(queue)
    found.sort(key=SORTS["queue"])
    if sort is not SORTS["queue"] or descending:
        found.sort(key=sort, reverse=descending)
    shown = [summary(queue) for queue in found[offset : offset + count]]
    return {"queues": shown, "total": len(found), "groups": groups}


def matches(queue: Queue, find: str) -> bool:
    """Return whether a text, in small letters, is a part of the name or label of a queue."""
    if not find:
        return True
    return find in short_name(queue).lower() or (
        not isinstance(queue, OutgoingQueue) and find in queue.label.lower()
    )


def summary(queue: Queue) -> dict[str, Any]:
    """Return the entry of a queue in a list.

    ``put`` and ``taken`` count the messages that were put into it and that have left it, since the start.
    """
    figures = {
        "queue": short_name(queue),
        "kind": kind(queue),
        "group": group_of(queue),
        "messages": len(queue.positions),
        "bytes": queue.total_bytes,
        "put": queue.positions.inserted,
        "taken": queue.positions.inserted - len(queue.positions),
    }
    if isinstance(queue, OutgoingQueue):
        last = queue.connection_history[-1] if queue.connection_history else None
        return {
            **figures,
            "state": queue.state.value,
            "next_hops": queue.next_hops,
            "last_status": None if last is None else last.status.value,
            "last_error": None if last is None or not last.error else f"0x{last.error:08X}",
        }
    return {
        **figures,
        "label": queue.label,
        "transactional": queue.transactional,
        "journal": queue.journaling,
        "journal_messages": len(queue.journal.positions) if queue.journal is not None else 0,
        "open": len(queue.descriptors),
    }
