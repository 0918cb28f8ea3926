"""The data of the bindery calls around queues: NCP function 23, subfunctions below 100; function 25.

Names have a byte with their length in front; object types and ids are big-endian.
"""

from __future__ import annotations

from typing import Final

from msmqwire.ncp.calls import Call
from msmqwire.ncp.constants import OBJECT_NAME_MAX, PROPERTY_NAME_MAX, SEGMENT_SIZE
from msmqwire.ncp.queue_calls import EMPTY
from msmqwire.schema import Header, Part, Ref, oem_text, raw, uint

_SECTION: Final = "NCP function 23, bindery services"


def _name(name: str, meaning: str = "") -> tuple[Part, Part]:
    return uint(8, f"{name}Length"), oem_text(name, Ref(f"{name}Length"), meaning)


def _type(name: str = "ObjectType") -> Part:
    return uint(16, name, "The type of the object; 0xFFFF: any.", big_endian=True)


_OBJECT: Final = (_type(), *_name("ObjectName", "The name of the object."))
_PROPERTY: Final = _name("PropertyName", "The name of the property.")
_ID: Final = uint(32, "ObjectID", "The id of the object.", big_endian=True)
_OBJECT_FLAGS: Final = uint(8, "ObjectFlags", "1 for a dynamic object, 0 for a static one.")
_OBJECT_SECURITY: Final = uint(8, "ObjectSecurity", "High half: who may write; low half: who may read.")
_PROPERTY_FLAGS: Final = uint(8, "PropertyFlags", "Bit 0: dynamic; bit 1: a set.")
_PROPERTY_SECURITY: Final = uint(8, "PropertySecurity", "High half: who may write; low half: who may read.")
_SEGMENT: Final = uint(8, "SegmentNumber", "The segment of the value; 1 is the first.")
_NAMED: Final = (_ID, _type(), oem_text("ObjectName", OBJECT_NAME_MAX + 1, "The name of the object."))


def _structure(name: str, *parts: Part, meaning: str = "") -> Header:
    return Header(f"Ncp{name}", _SECTION, parts, meaning)


LOGIN: Final = _structure("Login", *_OBJECT, *_name("Password"), meaning="An object and its password.")
CREATE_OBJECT: Final = _structure("CreateObject", _OBJECT_FLAGS, _OBJECT_SECURITY, *_OBJECT)
OBJECT: Final = _structure("Object", *_OBJECT, meaning="An object by its type and name.")
OBJECT_ID: Final = _structure("ObjectID", _ID, meaning="An object by its id.")
NAMED_OBJECT: Final = _structure("NamedObject", *_NAMED, meaning="An object with its id.")
SCAN_OBJECT: Final = _structure(
    "ScanObject",
    uint(32, "LastObjectID", "The object before; 0xFFFFFFFF to begin.", default=0xFFFFFFFF, big_endian=True),
    *_OBJECT,
)
SCANNED_OBJECT: Final = _structure(
    "ScannedObject",
    *_NAMED,
    _OBJECT_FLAGS,
    _OBJECT_SECURITY,
    uint(8, "HasProperties", "0xFF if the object has properties, 0 if not."),
)
OBJECT_SECURITY: Final = _structure("ObjectSecurity", _OBJECT_SECURITY, *_OBJECT)
CREATE_PROPERTY: Final = _structure(
    "CreateProperty", *_OBJECT, _PROPERTY_FLAGS, _PROPERTY_SECURITY, *_PROPERTY
)
PROPERTY: Final = _structure("Property", *_OBJECT, *_PROPERTY, meaning="A property of an object.")
SCAN_PROPERTY: Final = _structure(
    "ScanProperty",
    *_OBJECT,
    uint(
        32,
        "SearchInstance",
        "From the reply before; 0xFFFFFFFF at first.",
        default=0xFFFFFFFF,
        big_endian=True,
    ),
    *_PROPERTY,
)
SCANNED_PROPERTY: Final = _structure(
    "ScannedProperty",
    oem_text("PropertyName", PROPERTY_NAME_MAX + 1, "The name of the property."),
    _PROPERTY_FLAGS,
    _PROPERTY_SECURITY,
    uint(32, "SearchInstance", big_endian=True),
    uint(8, "HasValue", "0xFF if the property has a value, 0 if not."),
    uint(8, "MoreProperties", "0xFF if there are more, 0 if not."),
)
READ_VALUE: Final = _structure("ReadPropertyValue", *_OBJECT, _SEGMENT, *_PROPERTY)
PROPERTY_VALUE: Final = _structure(
    "PropertyValue",
    raw("PropertyValue", SEGMENT_SIZE, "A segment of the value; of a set, ids of its members."),
    uint(8, "MoreSegments", "0xFF if there are more, 0 if not."),
    _PROPERTY_FLAGS,
)
WRITE_VALUE: Final = _structure(
    "WritePropertyValue",
    *_OBJECT,
    _SEGMENT,
    uint(8, "MoreSegments", "0: segments after this one are removed."),
    *_PROPERTY,
    raw("PropertyValue", SEGMENT_SIZE, "A segment of the value."),
)
CHANGE_PASSWORD: Final = _structure("ChangePassword", *_OBJECT, *_name("OldPassword"), *_name("NewPassword"))
MEMBER: Final = _structure(
    "Member",
    *_OBJECT,
    *_PROPERTY,
    _type("MemberType"),
    *_name("MemberName", "The name of the member."),
    meaning="A member of a set.",
)

BINDERY_CALLS: Final = (
    Call(20, "LoginObject", LOGIN, EMPTY),
    Call(50, "CreateBinderyObject", CREATE_OBJECT, EMPTY),
    Call(51, "DeleteBinderyObject", OBJECT, EMPTY),
    Call(53, "GetBinderyObjectID", OBJECT, NAMED_OBJECT),
    Call(54, "GetBinderyObjectName", OBJECT_ID, NAMED_OBJECT),
    Call(55, "ScanBinderyObject", SCAN_OBJECT, SCANNED_OBJECT),
    Call(56, "ChangeBinderyObjectSecurity", OBJECT_SECURITY, EMPTY),
    Call(57, "CreateProperty", CREATE_PROPERTY, EMPTY),
    Call(58, "DeleteProperty", PROPERTY, EMPTY),
    Call(60, "ScanProperty", SCAN_PROPERTY, SCANNED_PROPERTY),
    Call(61, "ReadPropertyValue", READ_VALUE, PROPERTY_VALUE),
    Call(62, "WritePropertyValue", WRITE_VALUE, EMPTY),
    Call(64, "ChangeBinderyObjectPassword", CHANGE_PASSWORD, EMPTY),
    Call(65, "AddBinderyObjectToSet", MEMBER, EMPTY),
    Call(66, "DeleteBinderyObjectFromSet", MEMBER, EMPTY),
    Call(67, "IsBinderyObjectInSet", MEMBER, EMPTY),
    Call(25, "Logout", EMPTY, EMPTY, function=25),
)
