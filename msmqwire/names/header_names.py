"""Format names in the headers of a packet: [MS-MQMQ] 2.2.18.1.4, 2.2.18.1.5 and 2.2.19.2.

The wire forms are dicts under the specification's field names; parsing accepts any mapping, or any object
with those attributes. Errors are InvalidName with the field in `path`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal
from uuid import UUID

from msmqwire.constants import QUEUE_FORMAT_TYPE
from msmqwire.names.fields import direct_text, field_of, guid_of, number_of, read_direct, refuse
from msmqwire.names.formats import (
    DirectName,
    DistributionListName,
    FormatName,
    PrivateName,
    PublicName,
)
from msmqwire.names.grammar import UNSUPPORTED_FORMAT_NAME

Role = Literal["destination", "admin", "response"]
"""The queue of the UserHeader, which decides the meaning of a type of name."""

NO_QUEUE, LIKE_ADMIN, AT_SOURCE, AT_DESTINATION, AT_ADMIN, PUBLIC, ELSEWHERE, DIRECT = range(8)
"""The values of UserHeader.Flags.DQ, AQ and RQ; [MS-MQMQ] 2.2.19.2."""

_FIELDS: Final[Mapping[Role, tuple[str, str, frozenset[int]]]] = MappingProxyType(
    {
        "destination": ("DQ", "DestinationQueue", frozenset({NO_QUEUE, AT_DESTINATION, PUBLIC, DIRECT})),
        "admin": (
            "AQ",
            "AdminQueue",
            frozenset({NO_QUEUE, AT_SOURCE, AT_DESTINATION, PUBLIC, ELSEWHERE, DIRECT}),
        ),
        "response": ("RQ", "ResponseQueue", frozenset(range(8))),
    }
)


def to_user_header_queue(
    name: FormatName | None,
    role: Role,
    *,
    source_qm: UUID | None,
    destination_qm: UUID | None,
    admin: FormatName | None = None,
) -> tuple[int, dict[str, Any] | None]:
    """Return a queue of the UserHeader as its type (DQ, AQ or RQ) and its field; [MS-MQMQ] 2.2.19.2.

    The shortest equivalent form is used: a private queue at the source, at the destination or, for
    a response queue, where the administration queue is, needs no GUID, and a response queue that is
    the administration queue takes no bytes. A private destination has its host's GUID in QueueManagerAddress;
    `destination_qm` of None leaves that to the caller.

    Raises:
        InvalidName: for a name that this field can't hold.
    """
    _, field, _ = _FIELDS[role]
    path = f"UserHeader.{field}"
    match name:
        case None:
            return NO_QUEUE, None
        case _ if role == "response" and admin is not None and name == admin:
            return LIKE_ADMIN, None
        case DirectName():
            return DIRECT, {"DirectFormatName": direct_text(name)}
        case PublicName(journal=False):
            return PUBLIC, {"PublicQueueIdentifier": name.guid}
        case PrivateName(journal=False):
            number: dict[str, Any] = {"PrivateQueueIdentifier": name.number}
            if role == "destination":
                if destination_qm not in (None, name.guid):
                    refuse("the private queue is not at the destination queue manager", path)
                return AT_DESTINATION, number
            if name.guid == source_qm:
                return AT_SOURCE, number
            if name.guid == destination_qm:
                return AT_DESTINATION, number
            if role == "response" and isinstance(admin, PrivateName) and admin.guid == name.guid:
                return AT_ADMIN, number
            return ELSEWHERE, {"SourceQueueManager": name.guid, **number}
    refuse(f"{name.canonical} has no form in this header", path, UNSUPPORTED_FORMAT_NAME)


def from_user_header_queue(
    type_value: int,
    value: Any,
    *,
    role: Role,
    source_qm: UUID | None,
    destination_qm: UUID | None,
    admin: FormatName | None = None,
) -> FormatName | None:
    """A queue of the UserHeader from its type (DQ, AQ or RQ) and its field; [MS-MQMQ] 2.2.19.2.

    Args:
        type_value: the value of Flags.DQ, AQ or RQ.
        value: the field, None when the type has none.
        role: the role of the queue, one of three.
        source_qm: UserHeader.SourceQueueManager.
        destination_qm: UserHeader.QueueManagerAddress.
        admin: the administration queue, for a response queue that refers to it.

    Returns:
        The name, or None when there is no such queue, or none that can be named: a response queue on the host
        of an administration queue (RQ 4) that does not tell that host's GUID.

    Raises:
        InvalidName: for a type that the field can't have, a field that breaks the grammar, and a host that is
            not known.
    """
    flag, field, types = _FIELDS[role]
    path = f"UserHeader.{field}"
    if type_value not in types:
        refuse(f"a packet with {flag} {type_value} is an error", f"UserHeader.Flags.{flag}")
    if type_value == NO_QUEUE:
        return None
    if type_value == LIKE_ADMIN:  # MQMQ-2.2.19.2-29, DMPR-3.1.1.12-56
        return admin  # without one there is no response queue either
    if type_value == DIRECT:  # MQQB-3.1.7.15-10, MQQB-3.1.7.15-15
        # MQQB-3.1.7.15-10, MQQB-3.1.7.15-15
        return read_direct(field_of(value, "DirectFormatName", path), f"{path}.DirectFormatName")
    if type_value == PUBLIC:  # MQQB-3.1.7.15-08, MQQB-3.1.7.15-14
        return PublicName(guid_of(value, "PublicQueueIdentifier", path))  # MQQB-3.1.7.15-08, MQQB-3.1.7.15-14
    number = number_of(value, "PrivateQueueIdentifier", path)
    if type_value == ELSEWHERE:  # MQQB-3.1.7.15-09
        return PrivateName(guid_of(value, "SourceQueueManager", path), number)  # MQQB-3.1.7.15-09
    if type_value == AT_ADMIN:  # legal beside any administration queue: MQMQ-2.2.19.2-27
        return PrivateName(admin.guid, number) if isinstance(admin, PrivateName) else None
    # MQQB-3.1.7.15-06, MQQB-3.1.7.15-07, MQQB-3.1.7.15-13
    host = source_qm if type_value == AT_SOURCE else destination_qm
    if host is None:
        refuse("the queue manager of the private queue is not known", path)
    return PrivateName(host, number)


def to_mqf_element(name: FormatName) -> dict[str, Any]:
    """Return a name as an MQFFormatNameElement, ``{"FormatType", "FormatName"}``: [MS-MQMQ] 2.2.18.1.4.

    A distribution list loses its domain, for which the form has no field.

    Raises:
        InvalidName: for a name that has no form there.
    """
    match name:
        case PublicName(journal=False):
            return _element(QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_PUBLIC, PublicQueueIdentifier=name.guid)
        case PrivateName(journal=False):
            return _element(
                QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_PRIVATE,
                SourceQueueManager=name.guid,
                PrivateQueueIdentifier=name.number,
            )
        case DirectName():
            return _element(QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_DIRECT, DirectFormatName=direct_text(name))
        case DistributionListName():
            return _element(QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_DL, DistributionListIdentifier=name.guid)
    refuse(f"{name.canonical} has no form there", "MQFFormatNameElement", UNSUPPORTED_FORMAT_NAME)


def _element(kind: QUEUE_FORMAT_TYPE, **fields: Any) -> dict[str, Any]:
    return {"FormatType": int(kind), "FormatName": fields}


def from_mqf_element(value: Any) -> FormatName:
    """Return the destination in an MQFFormatNameElement; [MS-MQMQ] 2.2.18.1.4.

    Raises:
        InvalidName: for a FormatType other than 1, 2, 3 and 6, and a name that breaks the grammar.
    """
    path = "MQFFormatNameElement"
    kind = field_of(value, "FormatType", path)
    name = field_of(value, "FormatName", path)
    path = f"{path}.FormatName"
    match kind:
        case QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_PUBLIC:
            return PublicName(guid_of(name, "PublicQueueIdentifier", path))
        case QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_PRIVATE:
            guid = guid_of(name, "SourceQueueManager", path)
            return PrivateName(guid, number_of(name, "PrivateQueueIdentifier", path))
        case QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_DIRECT:
            return read_direct(field_of(name, "DirectFormatName", path), f"{path}.DirectFormatName")
        case QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_DL:
            return DistributionListName(guid_of(name, "DistributionListIdentifier", path))
    refuse(f"{kind!r} is none of 1, 2, 3 and 6", "MQFFormatNameElement.FormatType")
