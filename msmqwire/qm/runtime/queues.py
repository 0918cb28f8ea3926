"""Queues as JSON, and operations on queues by name."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NoReturn

from msmqwire.constants import HResult, MessageClass
from msmqwire.errors import InvalidValue, QueueError
from msmqwire.names import DirectName
from msmqwire.names.nearest import nearest
from msmqwire.qm.model import access
from msmqwire.qm.model.elements import OpenQueueDescriptor, OutgoingQueue, Queue, short_name
from msmqwire.qm.model.enumerations import (
    INFINITE,
    DirectoryOperationResult,
    OutgoingQueueState,
    PositionState,
    QueueType,
)
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.refusals import SHARE
from msmqwire.qm.runtime.local_names import path_of, queue_name
from msmqwire.qm.runtime.message_json import flag, number
from msmqwire.qm.runtime.queue_access import RightsOn, access_json, changed_access
from msmqwire.qm.runtime.queue_properties import CHANGEABLE, set_properties, settings_of
from msmqwire.qm.runtime.reasons import reason
from msmqwire.qm.runtime.refused import refused_json
from msmqwire.service.control.server import check_at_most

if TYPE_CHECKING:
    from msmqwire.qm.core import Core

_UINT64_MAX: Final = (1 << 64) - 1
_COMPARED_MAX: Final = 1_000
"""Limit of queues whose names are compared with a missing one."""


def text(request: Mapping[str, Any], name: str) -> str:
    """Return a text of a request that must not be empty. Raises InvalidValue."""
    value = request.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidValue("a text is missing", path=name)
    return value


def find(core: Core, request: Mapping[str, Any]) -> Queue:
    """Return the queue named by ``queue`` in a request. Raises QueueError, InvalidName and InvalidValue."""
    name = text(request, "queue")
    format_name = queue_name(name, core.queue_manager.computer_name)
    queue = core.queues.lookup.find(format_name) or core.queues.lookup.outgoing(format_name)
    if queue is None:
        raise refusal(core, HResult.MQ_ERROR_QUEUE_NOT_FOUND, name)
    return queue


def refusal(core: Core, status: int, name: str) -> QueueError:
    """Return the error of a status; for a missing queue it suggests a similar name."""
    why = reason(status, name)
    if status == HResult.MQ_ERROR_QUEUE_NOT_FOUND:
        queues = islice(core.queue_manager.queues.values(), _COMPARED_MAX)
        # By the last part: all private queues begin alike.
        known = {
            short_name(queue).rpartition("\\")[2]: short_name(queue) for queue in queues if is_shown(queue)
        }
        near = nearest(name.rpartition("\\")[2], known)
        why += f"; did you mean {' or '.join(known[one] for one in near)}?" if near else ""
    return QueueError(why, status)


# -- as JSON --------------------------------------------------------------------------------------------


def manager_json(core: Core) -> dict[str, Any]:
    """Return the state of the queue manager."""
    manager = core.queue_manager
    sessions = core.binary.sessions.values()
    settings = core.context.settings
    return {
        "name": manager.computer_name,
        "identifier": str(manager.identifier),
        "quota": manager.queue_manager_quota,
        "used": manager.total_bytes,
        "insecure_nacks": settings.send_insecure_nacks,
        "resend_times": list(settings.resend_timer_table),
        "queues": sum(1 for queue in manager.queues.values() if is_shown(queue)),
        "messages": sum(len(queue.positions) for queue in manager.queues.values()),
        "memory": memory_json(core),
        "shares": shares_json(core),
        "troubles": dict(core.context.troubles),
        "refused": refused_json(core.context.refusals),
        "sessions": [
            {
                "peer": session.remote_address,
                "queue_manager": str(session.remote_guid),
                "role": session.role.value,
            }
            for session in sessions
            if session.is_open
        ],
    }


def memory_json(core: Core) -> dict[str, int]:
    """Return the memory used for peers: bytes by kind, and the total limit."""
    pool = core.messages.pool
    return {"limit": pool.limit, **{kind.value: used for kind, used in pool.used.items()}}


def shares_json(core: Core) -> dict[str, int]:
    """Return the bytes of all messages by the standing of their origins, the share of an unknown one, and how
    many messages it has kept out.
    """
    shares, refused = core.messages.quotas.shares, core.context.refusals.counts
    return {
        "limit": shares.limit,
        "per_origin": shares.per_origin,
        **shares.by_standing()._asdict(),
        "refused": sum(count for (reason, _), count in refused.items() if reason == SHARE),
    }


def listed(core: Core) -> list[dict[str, Any]]:
    """Return the queues that applications see, sorted by name."""
    shown = [queue for queue in core.queue_manager.queues.values() if is_shown(queue)]
    return sorted((queue_json(core, queue) for queue in shown), key=lambda queue: queue["queue"].lower())


def is_shown(queue: Queue) -> bool:
    """Whether applications see a queue; they see journals together with their queues."""
    if isinstance(queue, OutgoingQueue):
        return queue.acknowledged_peer is None
    of_the_computer = queue.owner_queue is None and not queue.private_queue_number
    return queue.queue_type is not QueueType.SYSTEM or of_the_computer


def kind(queue: Queue) -> str:
    """Return ``outgoing``, ``private``, ``public``, ``system`` or ``connector``."""
    return "outgoing" if isinstance(queue, OutgoingQueue) else queue.queue_type.value.lower()


def queue_json(core: Core, queue: Queue) -> dict[str, Any]:
    """Return a queue: its names, its contents and its properties."""
    common = {
        "queue": short_name(queue),
        "kind": kind(queue),
        "messages": len(queue.positions),
        "bytes": queue.total_bytes,
    }
    if isinstance(queue, OutgoingQueue):
        last = queue.connection_history[-1] if queue.connection_history else None
        return {
            **common,
            "state": queue.state.value,
            "next_hops": queue.next_hops,
            "last_connection": None
            if last is None
            else {"status": last.status.value, "error": f"0x{last.error:08X}"},
        }
    private = queue.private_queue_number
    return {
        **common,
        "format_name": f"PRIVATE={core.queue_manager.identifier}\\{private:x}" if private else None,
        "identifier": str(queue.identifier),
        "label": queue.label,
        "transactional": queue.transactional,
        "journal": queue.journaling,
        "journal_messages": len(queue.journal.positions) if queue.journal is not None else 0,
        "quota": _or_none(queue.quota),
        "journal_quota": _or_none(queue.journal_quota),
        "authenticated": queue.authentication,
        "privacy": queue.privacy_level.value.lower(),
        "time_to_live": _or_none(queue.time_to_live),
        "when_full": queue.when_full,
        "delivery_limit": queue.delivery_limit or None,
        "poison": queue.poison,
        "policies": core.queues.policies.names(queue),
        "base_priority": queue.base_priority,
        "type": str(queue.type),
        "multicast": queue.multicast_address,
        "subqueues": {
            sub.pathname.rpartition(";")[2]: len(sub.positions) for sub in queue.subqueues.values()
        },
        "open": len(queue.descriptors),
        **_access_json(core, queue),
    }


def _access_json(core: Core, queue: Queue) -> dict[str, Any]:
    on = _machine_rights(core, queue)
    if on is not None:
        return access_json(core.queue_manager.security, on)
    return access_json(queue.security)


def _machine_rights(core: Core, queue: Queue) -> RightsOn | None:
    """Return the rights of the queue manager that protect a queue of the computer; None for any other."""
    manager = core.queue_manager
    if queue is manager.system_journal_queue:
        return RightsOn.JOURNAL
    if queue in (manager.system_deadletter_queue, manager.system_transactional_deadletter_queue):
        return RightsOn.DEADLETTER
    return None


def _or_none(value: int) -> int | None:
    return None if value == INFINITE else value


# -- operations --------------------------------------------------------------------------------------------


def create(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Create a queue; with ``missing`` an existing one is left as it is."""
    template = Queue(NULL_GUID)
    core.queues.set_defaults(template)
    template.pathname = path_of(text(request, "queue"), core.queue_manager.computer_name)
    template.transactional = flag(request.get("transactional", False), "transactional")
    set_properties(core, template, settings_of(request, "transactional", "missing"))
    status, queue = core.queues.create(template)
    if status == HResult.MQ_ERROR_QUEUE_EXISTS and request.get("missing"):
        queue = find(core, request)
        if queue.transactional != template.transactional:
            kind = "transactional" if queue.transactional else "not transactional"
            raise QueueError(f"{request['queue']}: the queue is there, and {kind}", int(status))
        return queue_json(core, queue)
    if queue is None:
        _refuse(status, text(request, "queue"))
    return queue_json(core, queue)


def _refuse(status: int | DirectoryOperationResult, name: str) -> NoReturn:
    if isinstance(status, DirectoryOperationResult):
        answer = f"the directory, which queues without private$ are in, answers {status.value}"
        why = f"{name}: {answer}; private$\\{name} needs none"
        raise QueueError(why, HResult.MQ_ERROR_NO_DS)
    raise QueueError(reason(status, name), status)


def _check_application_queue(queue: Queue, request: Mapping[str, Any], action: str) -> None:
    """Raise QueueError for a queue of the computer, a journal and an outgoing queue."""
    if queue.queue_type is QueueType.SYSTEM or isinstance(queue, OutgoingQueue):
        raise QueueError(
            f"{request['queue']}: such a queue can't be {action}", HResult.MQ_ERROR_ACCESS_DENIED
        )


def change(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Set properties of a queue, or ``paused`` of an outgoing one."""
    if "paused" in request:
        queue = find(core, request)
        if not isinstance(queue, OutgoingQueue):
            raise InvalidValue("only an outgoing queue can be paused", path="paused")
        for name in settings_of(request, "paused"):
            raise InvalidValue(f"only paused can be set of an outgoing queue, not {name}", path=name)
        if flag(request["paused"], "paused") != (queue.state is OutgoingQueueState.ON_HOLD):
            (core.queues.pause if request["paused"] else core.queues.resume)(queue)
        return queue_json(core, queue)
    queue = find(core, request)
    on = _machine_rights(core, queue)
    if on is not None:
        _set_machine_rights(core, queue, on, request)
        return queue_json(core, queue)
    _check_application_queue(queue, request, "changed")
    settings = settings_of(request)
    if not settings:
        raise InvalidValue(f"there is nothing to set: {', '.join(CHANGEABLE)}", path="queue")
    set_properties(core, queue, settings)
    core.queues.changed(queue)
    return queue_json(core, queue)


def _set_machine_rights(core: Core, queue: Queue, on: RightsOn, request: Mapping[str, Any]) -> None:
    """Set the readers of a queue of the computer, and the other dead-letter queue with one of the two."""
    settings, manager = settings_of(request), core.queue_manager
    if not settings or settings.keys() - {"allow", "deny"}:
        _check_application_queue(queue, request, "changed, except for allow and deny")
    changes = settings.get("deny", ()), settings.get("allow", ())
    access.set_security(manager, changed_access(manager.security, *changes, on=on))
    core.changed()


def available_position(queue: Queue, request: Mapping[str, Any]) -> MessagePosition:
    """Return the position named by ``lookup_identifier`` in a request.

    Raises InvalidValue, and QueueError if there is none or another reader has that message.
    """
    wanted = number(request.get("lookup_identifier"), "lookup_identifier", _UINT64_MAX)
    position = queue.positions.find(wanted)
    if position is None or position.state is not PositionState.AVAILABLE:
        code = HResult.MQ_ERROR_MESSAGE_NOT_FOUND
        raise QueueError(reason(code, text(request, "queue")), code)
    return position


def purge(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Delete all readable messages, or only the one with a lookup identifier.

    With ``at_most`` a queue that has more messages is left as it is, as in `delete`.
    """
    queue = find(core, request)
    before = len(queue.positions)
    check_at_most(request, before, "message")
    if request.get("lookup_identifier") is None:
        core.messages.purge(queue)
    else:
        position = available_position(queue, request)
        core.messages.position_deleted(queue, position, MessageClass.MQMSG_CLASS_NACK_Q_PURGED)
    return {"queue": short_name(queue), "purged": before - len(queue.positions)}


def delete(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Delete a queue and all its messages."""
    queue = find(core, request)
    _check_application_queue(queue, request, "deleted")
    parts = [queue, *queue.subqueues.values(), *filter(None, [queue.journal])]
    check_at_most(request, sum(len(part.positions) for part in parts), "message")
    answer = {"queue": short_name(queue), "deleted": len(queue.positions)}
    core.queues.delete(queue)
    return answer


def move_target(core: Core, descriptor: OpenQueueDescriptor, name: str) -> Queue:
    """Return the queue that messages of an open one move to: its main queue or one of its subqueues.

    A missing subqueue is created. Raises QueueError and InvalidName.
    """
    format_name = queue_name(name, core.queue_manager.computer_name)
    source = descriptor.queue
    target = core.queues.lookup.find(format_name)
    if target is None and isinstance(format_name, DirectName) and format_name.subqueue is not None:
        target = core.queues.create_subqueue(format_name)
    if target is None:
        raise refusal(core, HResult.MQ_ERROR_QUEUE_NOT_FOUND, name)
    assert source is not None, "it has just been opened"
    if _main_queue(target) is not _main_queue(source) or QueueType.SYSTEM in (
        target.queue_type,
        source.queue_type,
    ):
        rule = "messages move between a queue and its subqueues only"
        raise QueueError(f"{name}: {rule}", HResult.MQ_ERROR_INVALID_PARAMETER)
    if target is source:
        raise QueueError(f"{name}: they are there already", HResult.MQ_ERROR_INVALID_PARAMETER)
    return target


def check_resend(source: Queue, target: Queue | None, message: Message, request: Mapping[str, Any]) -> None:
    """Raise QueueError for a message that can't be sent again, to `target` or, if that is None, elsewhere."""
    name = text(request, "queue")
    if isinstance(source, OutgoingQueue):
        raise QueueError(f"{name}: it is under way already", HResult.MQ_ERROR_ACCESS_DENIED)
    if target is source:
        raise QueueError(f"{request['to']}: it is there already", HResult.MQ_ERROR_INVALID_PARAMETER)
    if message.encrypted:
        why = f"{name}: the body is encrypted for another computer, and can't be read here"
        raise QueueError(why, HResult.MQ_ERROR_INVALID_PARAMETER)


def _main_queue(queue: Queue) -> Queue:
    return queue.owner_queue if queue.owner_queue is not None else queue
