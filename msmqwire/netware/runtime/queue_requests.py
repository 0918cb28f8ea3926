"""Requests of administrators about queues: create, list, show, delete, and the members of their sets."""

from __future__ import annotations

from typing import Final

from msmqwire.errors import NcpRefused
from msmqwire.names.nearest import unknown_name
from msmqwire.ncp.constants import CompletionCode, ObjectType, QueueStatus
from msmqwire.ncp.type_names import QUEUE_TYPES, type_number, type_word
from msmqwire.netware.model.bindery import Q_OPERATORS, Q_SERVERS, Q_USERS, BinderyObject
from msmqwire.netware.model.queue import JobQueue
from msmqwire.netware.rules.service import QueueService
from msmqwire.netware.runtime.bindery_requests import (
    QUEUE_OBJECT_TYPES,
    SUPERVISOR,
    Answer,
    Request,
    found,
    full_name,
    id_text,
    member_names,
    text,
    texts,
)
from msmqwire.service.control.server import check_at_most

_PEOPLE: Final = frozenset({ObjectType.NWOT_USER, ObjectType.NWOT_GROUP})
_SERVERS: Final = frozenset(
    {ObjectType.NWOT_PRINT_SERVER, ObjectType.NWOT_JOB_SERVER, ObjectType.NWOT_ARCHIVE_SERVER}
)
SETS: Final = {Q_USERS: _PEOPLE, Q_OPERATORS: _PEOPLE, Q_SERVERS: _SERVERS}
"""The sets of a queue, and the types of objects that a name alone can mean."""
_BY_REQUEST: Final = {"user": Q_USERS, "operator": Q_OPERATORS, "server": Q_SERVERS}


def create(service: QueueService, request: Request) -> Answer:
    """Create a queue, with members in its sets."""
    name, path = text(request, "name"), text(request, "path")
    type_ = type_number(text(request, "type"), QUEUE_TYPES)
    members = [
        (set_name, member)
        for option, set_name in _BY_REQUEST.items()
        for member in {one.id: one for one in _members(service, request, option, set_name)}.values()
    ]
    queue_id = service.queues.create(SUPERVISOR, name, type_, path)
    try:
        for set_name, member in members:
            service.properties.add_member(SUPERVISOR, queue_id, set_name, member.id)
    except NcpRefused:
        service.queues.destroy(SUPERVISOR, queue_id)
        raise
    return {"id": id_text(queue_id), "directory": service.queue_table[queue_id].row.directory}


def _members(service: QueueService, request: Request, option: str, set_name: str) -> list[BinderyObject]:
    return [found(service, one, option, SETS[set_name]) for one in texts(request, option)]


def list_(service: QueueService, request: Request) -> Answer:
    """List all queues."""
    return {"queues": [_brief(service, queue) for queue in service.queue_table.values()]}


def show(service: QueueService, request: Request) -> Answer:
    """Show a queue with its sets and its attached queue servers."""
    queue = _queue(service, request)
    holder = service.objects[queue.id]
    return {
        **_brief(service, queue),
        **{set_name: member_names(service, holder, set_name) for set_name in SETS},
        "attached": [
            {"server": None if one is None else full_name(one), "station": station}
            for station, server in queue.servers.items()
            for one in (service.objects.get(server.object_id),)  # None once it has been deleted
        ],
    }


def delete(service: QueueService, request: Request) -> Answer:
    """Delete a queue with its jobs and its directory; a queue with more than ``at_most`` jobs is left as it
    is.
    """
    queue = _queue(service, request)
    name, jobs = service.objects[queue.id].name, len(queue.jobs)
    check_at_most(request, jobs, "job")
    service.queues.destroy(SUPERVISOR, queue.id)
    return {"queue": name, "deleted": jobs}


def grant(service: QueueService, request: Request) -> Answer:
    """Add an object to a set of a queue."""
    queue, set_name, member = _membership(service, request)
    service.properties.add_member(SUPERVISOR, queue.id, set_name, member.id)
    return _granted(service, queue, set_name)


def revoke(service: QueueService, request: Request) -> Answer:
    """Take an object out of a set of a queue."""
    queue, set_name, member = _membership(service, request)
    service.properties.delete_member(SUPERVISOR, queue.id, set_name, member.id)
    return _granted(service, queue, set_name)


def _membership(service: QueueService, request: Request) -> tuple[JobQueue, str, BinderyObject]:
    set_name = text(request, "property").upper()
    if set_name not in SETS:
        raise unknown_name(set_name, SETS, "set of a queue", path="property")
    return (
        _queue(service, request),
        set_name,
        found(service, text(request, "member"), "member", SETS[set_name]),
    )


def _granted(service: QueueService, queue: JobQueue, set_name: str) -> Answer:
    holder = service.objects[queue.id]
    return {
        "queue": holder.name,
        "property": set_name,
        "members": member_names(service, holder, set_name),
    }


def _queue(service: QueueService, request: Request) -> JobQueue:
    """Return the queue of ``NAME[:TYPE]``, TYPE a word for queues or for objects."""
    name, colon, word = text(request, "queue").partition(":")
    if colon:
        number = type_number(word, QUEUE_TYPES) if word.lower() in QUEUE_TYPES else type_number(word)
        holder = service.objects.named(name, number)
    else:
        holder = found(service, name, "queue", QUEUE_OBJECT_TYPES)
    queue = service.queue_table.get(holder.id)
    if queue is None:
        raise NcpRefused(f"{full_name(holder)} is not a queue", CompletionCode.ERR_NO_QUEUE)
    return queue


def _brief(service: QueueService, queue: JobQueue) -> Answer:
    holder = service.objects[queue.id]
    return {
        "id": id_text(queue.id),
        "queue": holder.name,
        "type": type_word(holder.type, QUEUE_TYPES),
        "directory": queue.row.directory,
        "status": [flag.name for flag in QueueStatus if queue.row.status & flag],
        "jobs": len(queue.jobs),
    }
