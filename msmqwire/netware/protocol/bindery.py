"""The bindery calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import SEGMENT_SIZE, CompletionCode, PropertyFlags
from msmqwire.netware.model.bindery import BinderyObject
from msmqwire.netware.protocol.calls import NO_DATA, CallContext, Fields, Operation
from msmqwire.schema.texts import OEM_CODE_PAGE

_YES: Final = 0xFF
_FROM_THE_BEGINNING: Final = 0xFFFFFFFF
_ID_SIZE: Final = 4


def _object(call: CallContext) -> int:
    """Return the ID of the object that a request names."""
    return call.service.bindery.get_id(call.caller, call.data.ObjectName, call.data.ObjectType).id


def _named(found: BinderyObject) -> dict[str, Any]:
    return {"ObjectID": found.id, "ObjectType": found.type, "ObjectName": found.name}


def _password(text: str) -> bytes:
    return text.encode(OEM_CODE_PAGE)


def _login(call: CallContext) -> Fields:
    data = call.data
    call.service.login(call.caller, data.ObjectName, data.ObjectType, _password(data.Password), call.hashing)
    call.caller.login_time = call.now
    return NO_DATA


def _logout(call: CallContext) -> Fields:
    call.service.logout(call.caller)
    return NO_DATA


def _create_object(call: CallContext) -> Fields:
    data = call.data
    call.service.bindery.create_object(
        call.caller,
        data.ObjectName,
        data.ObjectType,
        security=data.ObjectSecurity,
        dynamic=bool(data.ObjectFlags & PropertyFlags.BF_DYNAMIC),
    )
    return NO_DATA


def _delete_object(call: CallContext) -> Fields:
    call.service.bindery.delete_object(call.caller, _object(call))
    return NO_DATA


def _get_id(call: CallContext) -> Fields:
    return _named(call.service.bindery.get_id(call.caller, call.data.ObjectName, call.data.ObjectType))


def _get_name(call: CallContext) -> Fields:
    return _named(call.service.bindery.get_name(call.caller, call.data.ObjectID))


def _scan_object(call: CallContext) -> Fields:
    data = call.data
    found = call.service.bindery.scan(call.caller, data.ObjectName, data.ObjectType, after=data.LastObjectID)
    return {
        **_named(found),
        "ObjectFlags": int(found.dynamic),
        "ObjectSecurity": found.security,
        "HasProperties": _YES * bool(found.properties),
    }


def _create_property(call: CallContext) -> Fields:
    data = call.data
    call.service.properties.create(
        call.caller,
        _object(call),
        data.PropertyName,
        is_set=bool(data.PropertyFlags & PropertyFlags.BF_SET),
        security=data.PropertySecurity,
        dynamic=bool(data.PropertyFlags & PropertyFlags.BF_DYNAMIC),
    )
    return NO_DATA


def _delete_property(call: CallContext) -> Fields:
    call.service.properties.delete(call.caller, _object(call), call.data.PropertyName)
    return NO_DATA


def _scan_property(call: CallContext) -> Fields:
    """Return a property by its place among the matching ones: the instance in a reply is that of the next."""
    data = call.data
    found = call.service.properties.scan(call.caller, _object(call), data.PropertyName)
    place = 0 if data.SearchInstance == _FROM_THE_BEGINNING else data.SearchInstance
    if place >= len(found):
        raise NcpRefused("there are no more properties", CompletionCode.NO_SUCH_PROPERTY)
    this = found[place]
    return {
        "PropertyName": this.name,
        "PropertyFlags": int(this.flags),
        "PropertySecurity": this.security,
        "SearchInstance": place + 1,
        "HasValue": _YES * bool(this.segments or this.members),
        "MoreProperties": _YES * (place + 1 < len(found)),
    }


def _read_value(call: CallContext) -> Fields:
    data = call.data
    value = call.service.properties.read(call.caller, _object(call), data.PropertyName, data.SegmentNumber)
    members = b"".join(member.to_bytes(_ID_SIZE, "big") for member in value.members)
    return {
        "PropertyValue": (value.data or members).ljust(SEGMENT_SIZE, b"\0"),
        "MoreSegments": _YES * value.more,
        "PropertyFlags": int(value.flags),
    }


def _write_value(call: CallContext) -> Fields:
    data = call.data
    call.service.properties.write(
        call.caller,
        _object(call),
        data.PropertyName,
        data.PropertyValue,
        segment=data.SegmentNumber,
        more=bool(data.MoreSegments),
    )
    return NO_DATA


def _change_password(call: CallContext) -> Fields:
    old, new = _password(call.data.OldPassword), _password(call.data.NewPassword)
    call.service.logins.change_password(call.caller, _object(call), old, new, call.hashing)
    return NO_DATA


def _member(call: CallContext) -> tuple[int, str, int]:
    """Return the object, the set and the member that a request names."""
    data = call.data
    member = call.service.bindery.get_id(call.caller, data.MemberName, data.MemberType)
    return _object(call), data.PropertyName, member.id


def _add_member(call: CallContext) -> Fields:
    call.service.properties.add_member(call.caller, *_member(call))
    return NO_DATA


def _delete_member(call: CallContext) -> Fields:
    call.service.properties.delete_member(call.caller, *_member(call))
    return NO_DATA


def _check_member(call: CallContext) -> Fields:
    call.service.properties.check_member(call.caller, *_member(call))
    return NO_DATA


OPERATIONS: Final[Mapping[str, Operation]] = {
    "LoginObject": _login,
    "Logout": _logout,
    "CreateBinderyObject": _create_object,
    "DeleteBinderyObject": _delete_object,
    "GetBinderyObjectID": _get_id,
    "GetBinderyObjectName": _get_name,
    "ScanBinderyObject": _scan_object,
    "CreateProperty": _create_property,
    "DeleteProperty": _delete_property,
    "ScanProperty": _scan_property,
    "ReadPropertyValue": _read_value,
    "WritePropertyValue": _write_value,
    "ChangeBinderyObjectPassword": _change_password,
    "AddBinderyObjectToSet": _add_member,
    "DeleteBinderyObjectFromSet": _delete_member,
    "IsBinderyObjectInSet": _check_member,
}
"""ChangeBinderyObjectSecurity is not performed: "not supported"."""
