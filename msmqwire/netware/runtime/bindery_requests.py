"""Requests of administrators about bindery objects: create, list, show, password, delete.

They are made with the rights of SUPERVISOR. Objects are named ``NAME``, or ``NAME:TYPE`` where objects of
several types have the name. A request that fails halfway is undone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from msmqwire.errors import InvalidValue, NcpRefused
from msmqwire.ncp.constants import SUPERVISOR_ID, CompletionCode, ObjectType, TrusteeRights
from msmqwire.ncp.type_names import OBJECT_TYPES, type_number, type_word
from msmqwire.netware.model import names
from msmqwire.netware.model.bindery import PASSWORD, SECURITY_EQUALS, BinderyObject, Property
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.passwords import PasswordHashing, to_bytes
from msmqwire.netware.rules.service import QueueService

Request = Mapping[str, Any]
Answer = dict[str, Any]

SUPERVISOR: Final = Caller(0, object_id=SUPERVISOR_ID)
"""The caller of all requests; it is not a connection, and has nothing open."""
RIGHTS: Final = {
    "R": TrusteeRights.TR_READ,
    "W": TrusteeRights.TR_WRITE,
    "O": TrusteeRights.TR_OPEN,
    "C": TrusteeRights.TR_CREATE,
    "E": TrusteeRights.TR_ERASE,
    "A": TrusteeRights.TR_ACCESS_CTRL,
    "F": TrusteeRights.TR_FILE_SCAN,
    "M": TrusteeRights.TR_MODIFY,
}
"""The letters of trustee rights."""
QUEUE_OBJECT_TYPES: Final = frozenset(
    {ObjectType.NWOT_PRINT_QUEUE, ObjectType.NWOT_ARCHIVE_QUEUE, ObjectType.NWOT_JOB_QUEUE}
)
_LIST_MAX: Final = 1000


def create(service: QueueService, request: Request) -> Answer:
    """Create an object, in groups, equivalent to other objects, and with rights in directories."""
    name, type_ = text(request, "name"), type_number(text(request, "type"))
    if type_ in QUEUE_OBJECT_TYPES:
        raise InvalidValue("a queue is created by a separate request", path="type")
    groups = [
        found(service, one, "member_of", (ObjectType.NWOT_GROUP,)) for one in texts(request, "member_of")
    ]
    others = [found(service, one, "equivalent_to") for one in texts(request, "equivalent_to")]
    trustees = [_trustee(one) for one in texts(request, "trustee")]
    new = service.bindery.create_object(SUPERVISOR, name, type_)
    try:
        for group in _without_repeats(groups):
            service.properties.join_group(SUPERVISOR, new.id, group.id)
        for other in _without_repeats(others):
            if other.id not in service.objects[new.id].members(SECURITY_EQUALS):  # as its groups are
                service.properties.make_equivalent(SUPERVISOR, new.id, other.id)
        for path, rights in trustees:
            _make_directories(service, path)
            service.volumes.set_trustee(SUPERVISOR, path, new.id, rights)
    except NcpRefused:
        service.bindery.delete_object(SUPERVISOR, new.id)
        raise
    return {"id": id_text(new.id)}


def list_(service: QueueService, request: Request) -> Answer:
    """List the objects, or those of a type, up to a thousand in an answer, after the ID `after`."""
    type_ = None if request.get("type") is None else type_number(text(request, "type"))
    objects: list[Answer] = []
    for one in service.objects.following(number(request, "after")):
        if type_ in (None, one.type):
            if len(objects) == _LIST_MAX:
                return {"objects": objects, "more": True}
            objects.append(_brief(one))
    return {"objects": objects, "more": False}


def show(service: QueueService, request: Request) -> Answer:
    """Show an object with its properties."""
    one = found(service, text(request, "name"), "name")
    return {
        **_brief(one),
        "security": f"0x{one.security:02X}",
        "dynamic": one.dynamic,
        "password": PASSWORD in one.properties,
        "properties": {
            name: _value(service, held) for name, held in one.properties.items() if name != PASSWORD
        },
    }


def password(service: QueueService, request: Request, hashing: PasswordHashing) -> Answer:
    """Give an object a password, or remove it if the password is null. By `hashing` raises HashNeeded."""
    one = found(service, text(request, "name"), "name")
    new = b"" if request.get("password") is None else to_bytes(text(request, "password"))
    service.logins.change_password(SUPERVISOR, one.id, b"", new, hashing)
    return {**_brief(one), "password": bool(new)}


def delete(service: QueueService, request: Request) -> Answer:
    """Delete an object, which leaves all sets."""
    one = found(service, text(request, "name"), "name")
    service.bindery.delete_object(SUPERVISOR, one.id)
    return _brief(one)


def found(
    service: QueueService, wanted: str, path: str, types: Collection[int] | None = None
) -> BinderyObject:
    """Return the object of ``NAME[:TYPE]``; without a type it has to be one of `types`, if given.

    Raises NcpRefused if there is none, InvalidValue if several have the name; `path` is the path of the
    value.
    """
    name, _, word = wanted.partition(":")
    if word:
        return service.objects.named(name, type_number(word))
    name = names.object_name(name)
    candidates = [one for one in service.objects if one.name == name and (types is None or one.type in types)]
    if not candidates:
        kinds = "" if types is None else ": no " + ", ".join(type_word(one) for one in sorted(types))
        raise NcpRefused(f"there is no object {name}{kinds}", CompletionCode.NO_SUCH_OBJECT)
    if len(candidates) > 1:
        raise InvalidValue(
            f"{name} is of several types: say {' or '.join(map(full_name, candidates))}", path=path
        )
    return candidates[0]


def full_name(one: BinderyObject) -> str:
    """Return the name and type of an object for `found`."""
    return f"{one.name}:{type_word(one.type)}"


def member_names(service: QueueService, one: BinderyObject, set_name: str) -> list[str]:
    """Return the names and types of the members of a set, in the order of their IDs."""
    return [full_name(service.objects[member]) for member in sorted(one.members(set_name))]


def id_text(object_id: int) -> str:
    """Return the ID of an object as eight hexadecimal digits."""
    return f"{object_id:08X}"


# -- values of requests -----------------------------------------------------------------------------------


def text(request: Request, name: str) -> str:
    """Return a text of a request. Raises InvalidValue."""
    value = request.get(name)
    if not isinstance(value, str):
        raise InvalidValue(f"{value!r:.100} is not text", path=name)
    return value


def texts(request: Request, name: str) -> list[str]:
    """Return a list of texts of a request, empty if it is missing. Raises InvalidValue."""
    values = request.get(name, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InvalidValue(f"{values!r:.100} is not a list of texts", path=name)
    return values


def number(request: Request, name: str) -> int:
    """Return a number of a request, 0 if it is missing. Raises InvalidValue."""
    value = request.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 0xFFFFFFFF:
        raise InvalidValue(f"{value!r:.100} is not a number", path=name)
    return value


def _brief(one: BinderyObject) -> Answer:
    return {"id": id_text(one.id), "name": one.name, "type": type_word(one.type, OBJECT_TYPES)}


def _value(service: QueueService, held: Property) -> list[str] | str:
    """Return the value of a property: names of members, text, or hexadecimal digits of other bytes."""
    if held.is_set:
        return [full_name(service.objects[member]) for member in sorted(held.members)]
    value = b"".join(held.segments).rstrip(b"\0")
    shown = value.decode("ascii", errors="replace")
    return shown if shown.isascii() and shown.isprintable() else value.hex()


def _without_repeats(objects: Collection[BinderyObject]) -> list[BinderyObject]:
    return list({one.id: one for one in objects}.values())


def _trustee(wanted: str) -> tuple[str, int]:
    """Return the directory and the rights of ``PATH=LETTERS``. Raises InvalidValue."""
    path, _, letters = wanted.rpartition("=")
    rights = 0
    for letter in letters.upper():
        if letter not in RIGHTS:
            raise InvalidValue(f"{letter!r} is none of the rights {''.join(RIGHTS)}", path="trustee")
        rights |= RIGHTS[letter]
    if not path:
        raise InvalidValue(f"{wanted!r:.100} is not PATH=RIGHTS, SYS:DATA=RWC", path="trustee")
    return path, rights


def _make_directories(service: QueueService, path: str) -> None:
    """Create a directory of a volume and its missing parents."""
    path = names.volume_path(path)
    above = names.parent(path)
    if path != above and service.volumes.entry(path) is None:
        _make_directories(service, above)
        service.volumes.create_directory(SUPERVISOR, path)
