"""Queue names of messages to fields of packets and back, cached: a few names recur all the time."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final, NamedTuple
from uuid import UUID

from msmqwire.errors import InvalidName, MalformedPacket
from msmqwire.headers import MULTI_QUEUE_FORMAT_HEADER, USER_HEADER
from msmqwire.names import (
    DirectName,
    FormatName,
    MulticastName,
    Role,
    from_mqf_element,
    from_user_header_queue,
    parse_format_name,
    to_mqf_element,
    to_user_header_queue,
)
from msmqwire.qm.model.enumerations import QueueFormatType
from msmqwire.qm.model.message import Message
from msmqwire.schema import Record

NAMES_CACHED: Final = 2048
"""Limit of cached names of each kind."""
LISTS_CACHED: Final = 16
"""Limit of cached lists of names: a message to several queues is written several times."""
_NAME_LENGTH_CACHED: Final = 512  # characters; longer names are rare


class QueueField(NamedTuple):
    """A queue name in the UserHeader.

    Attributes:
        kind: Flags.DQ, AQ or RQ.
        data: the bytes of the field.
    """

    kind: int
    data: bytes


_IPV4: Final = 4
_DIRECT: Final = int(QueueFormatType.DIRECT_QUEUE)
_SAME_AS_ADMINISTRATION: Final = int(QueueFormatType.SAME_AS_ADMINISTRATION_QUEUE)
_NO_QUEUE: Final = QueueField(0, b"")
_FIELDS: Final[dict[Role, tuple[str, str]]] = {
    "destination": ("DestinationQueue", "DQ"),
    "admin": ("AdminQueue", "AQ"),
    "response": ("ResponseQueue", "RQ"),
}


# -- to the packet -------------------------------------------------------------------------------------


def queue_fields(message: Message) -> tuple[QueueField, QueueField, QueueField]:
    """Return DestinationQueue, AdminQueue and ResponseQueue of a message. Raises InvalidName."""
    destination, admin, response = message.destination, message.administration, message.response
    source, address = message.source_machine_identifier, message.queue_manager_address
    return (
        _field(destination, "destination", source, address, None),  # DMPR-3.1.1.12-28
        _field(admin, "admin", source, address, None),
        _field(response, "response", source, address, admin) if response is not None else _NO_QUEUE,
    )


def _field(
    name: FormatName | None, role: Role, source: UUID, address: UUID, admin: FormatName | None
) -> QueueField:
    if name is None:  # DMPR-3.1.7.1.32-44, -45 and -47
        return _NO_QUEUE
    if isinstance(name, MulticastName) and role == "destination":
        name = DirectName("TCP", name.address, str(name.port))
    admin_text = None if admin is None else admin.text
    if type(name) is DirectName:  # independent of source and address
        return _cached_field(name.text, role, None, None, admin_text)
    return _cached_field(name.text, role, source, address, admin_text)


@lru_cache(maxsize=NAMES_CACHED)
def _cached_field(
    text: str, role: Role, source: UUID | None, address: UUID | None, admin: str | None
) -> QueueField:
    kind, value = to_user_header_queue(
        parse_format_name(text, spx=True),
        role,
        source_qm=source,
        destination_qm=address,
        admin=None if admin is None else parse_format_name(admin, spx=True),
    )
    name, flag = _FIELDS[role]
    # Built as part of a UserHeader, because a direct name is aligned relative to its start.
    user = USER_HEADER.make({"Flags": {flag: kind}, "DestinationQueue": None, name: value})
    field: Record | None = user[name]
    return QueueField(kind, b"" if field is None else field.to_bytes())


@lru_cache(maxsize=LISTS_CACHED)
def queue_lists(
    destinations: tuple[str, ...], administrations: tuple[str, ...], responses: tuple[str, ...]
) -> tuple[bytes, bytes, bytes]:
    """Return the three lists of a MultiQueueFormatHeader with these names. Raises InvalidName."""
    header = MULTI_QUEUE_FORMAT_HEADER.make(
        {
            "Destination": _list(destinations),  # DMPR-3.1.7.1.32-48
            "Administration": _list(administrations),  # DMPR-3.1.7.1.32-49
            "Response": _list(responses),  # DMPR-3.1.7.1.32-50
        }
    )
    return header.Destination.to_bytes(), header.Administration.to_bytes(), header.Response.to_bytes()


def _list(names: tuple[str, ...]) -> dict[str, Any]:
    # DMPR-3.1.1.12-29
    return {"FormatNameList": [to_mqf_element(parse_format_name(text, spx=True)) for text in names]}


# -- from the packet -----------------------------------------------------------------------------------


def multicast_of(name: FormatName | None) -> FormatName | None:
    """Return the multicast address that a stored destination encodes, or the name itself.

    The UserHeader has no form for a multicast address; it is written as a queue of that address, which no
    computer has.
    """
    if isinstance(name, DirectName) and name.protocol == "TCP" and name.queue.isdecimal():
        address = ip_address(name.host)
        if address.is_multicast and address.version == _IPV4:
            return MulticastName(name.host, int(name.queue))
    return name


def read_queue(
    kind: int, field: Record | None, role: Role, source: UUID, address: UUID, admin: FormatName | None = None
) -> FormatName | None:
    """Read a queue name of the UserHeader. Raises MalformedPacket for an invalid one."""
    if not kind:
        return None
    try:
        if kind == _DIRECT:
            text = field.DirectFormatName  # type: ignore[union-attr]
            if type(text) is str and len(text) <= _NAME_LENGTH_CACHED:
                return _cached_direct(text, role)
        elif kind != _SAME_AS_ADMINISTRATION:
            return _cached_guid_name(kind, tuple(dict(field or {}).items()), role, source, address, admin)
        return from_user_header_queue(
            kind, field, role=role, source_qm=source, destination_qm=address, admin=admin
        )
    except InvalidName as exc:
        raise MalformedPacket(exc.why, path=exc.path) from exc


@lru_cache(maxsize=NAMES_CACHED)
def _cached_direct(text: str, role: Role) -> FormatName | None:
    field = {"DirectFormatName": text}
    return from_user_header_queue(
        QueueFormatType.DIRECT_QUEUE, field, role=role, source_qm=None, destination_qm=None
    )


@lru_cache(maxsize=NAMES_CACHED)
def _cached_guid_name(
    kind: int,
    field: tuple[tuple[str, Any], ...],
    role: Role,
    source: UUID,
    address: UUID,
    admin: FormatName | None,
) -> FormatName | None:
    return from_user_header_queue(
        kind, dict(field), role=role, source_qm=source, destination_qm=address, admin=admin
    )


def read_list(part: Record, path: str) -> tuple[FormatName, ...]:
    """Read the names of a part of the MultiQueueFormatHeader. Raises MalformedPacket."""
    try:
        return tuple(from_mqf_element(element) for element in part.FormatNameList)
    except InvalidName as exc:
        raise MalformedPacket(exc.why, path=f"MultiQueueFormatHeader.{path}.{exc.path}") from exc
