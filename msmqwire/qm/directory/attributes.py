"""Directory attributes by the names of the specification, and the filters over them: [MS-MQDMPR] 3.1.7.1.20.

The names are derived from the fields of the elements, so that they are listed only once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from enum import StrEnum
from operator import ge, gt, le, lt
from types import MappingProxyType
from typing import Any, Final

from msmqwire.qm.model.directory_objects import (
    ConnectedNetwork,
    DirectoryObject,
    Enterprise,
    RoutingLink,
    Site,
    User,
)
from msmqwire.qm.model.elements import Queue, QueueManager

Attributes = Mapping[str, str]
"""The field of an element by the name of the directory attribute."""

Filter = tuple[str, str, object]
"""An attribute-filter expression: name of the attribute, an `Operator`, value."""


class Operator(StrEnum):
    """The operators of attribute-filter expressions: DMPR-3.1.7.1.20-02."""

    EQUALS = "EQUALS"
    NOT_EQUALS = "NOT-EQUALS"
    LESS_THAN = "LESS-THAN"
    GREATER_THAN = "GREATER-THAN"
    LESS_THAN_OR_EQUAL = "LESS-THAN-OR-EQUAL"
    GREATER_THAN_OR_EQUAL = "GREATER-THAN-OR-EQUAL"


# The fields of an element begin with the published ones; this is the last of them.
_LAST_PUBLISHED: Final[Mapping[type[DirectoryObject], str]] = {
    QueueManager: "clustered",  # DMPR-2.3-01, DMPR-3.1.1-06
    Queue: "directory_path",  # Scope is constant, and published with [MS-MQDS] only: DMPR-3.1.1.2-20
    Enterprise: "security",  # DMPR-2.3-01, DMPR-3.1.1-06
    Site: "security",  # DMPR-2.3-01, DMPR-3.1.1-06
    RoutingLink: "site_gate_identifier_list",  # DMPR-2.3-01, DMPR-3.1.1-06
    ConnectedNetwork: "security",  # DMPR-2.3-01, DMPR-3.1.1-06
    User: "groups",  # DMPR-2.3-01, DMPR-3.1.1-06
}
# DMPR-2.3-01
_UNPUBLISHED: Final = {"private_queue_number"}  # of private queues, which no directory has
_ACRONYMS: Final = {"ldap": "LDAP"}  # DMPR-2.3-01

MISSING: Final = object()
"""The value of an attribute that an object of the directory does not have."""


def _attribute_name(field: str) -> str:
    return "".join(_ACRONYMS.get(word, word.capitalize()) for word in field.split("_"))


def _attributes(kind: type[DirectoryObject], last: str) -> Attributes:
    names = [field.name for field in fields(kind)]
    published = names[: names.index(last) + 1]
    return MappingProxyType({_attribute_name(name): name for name in published if name not in _UNPUBLISHED})


# DMPR-3.1.1-06
TYPES: Final[Mapping[str, type[DirectoryObject]]] = MappingProxyType(
    {kind.__name__: kind for kind in _LAST_PUBLISHED}
)
"""The types of objects, by name."""

ATTRIBUTES: Final[Mapping[str, Attributes]] = MappingProxyType(
    {kind.__name__: _attributes(kind, last) for kind, last in _LAST_PUBLISHED.items()}
)
"""The directory attributes, by the name of the type."""


def update(target: DirectoryObject, source: DirectoryObject) -> None:
    """Copy the directory attributes, apart from the identifier, to another element of the same type.

    A Site gets the site gates too: they change with the directory, though they are not directory attributes.
    """
    for field in ATTRIBUTES[type(source).__name__].values():
        if field != "identifier":
            setattr(target, field, getattr(source, field))
    if isinstance(target, Site) and isinstance(source, Site):
        target.site_gates = source.site_gates


def satisfies(filters: Iterable[Filter], value_of: Callable[[str], object]) -> bool:
    """Whether an object satisfies all expressions: DMPR-3.1.7.1.20-01.

    Text is compared without regard to case, as directories do. A list satisfies a comparison with a value if
    any member does. A missing attribute is not equal to anything, neither less nor greater.

    Args:
        filters: the expressions, with valid operators.
        value_of: returns the value of an attribute by its name; `MISSING` for one that is not set.
    """
    return all(_compare(value_of(name), Operator(operator), value) for name, operator, value in filters)


def known_filters(object_type: str, filters: Sequence[Filter]) -> bool:
    """Whether all attributes and operators of filters are valid."""
    attributes = ATTRIBUTES[object_type]
    return all(name in attributes and operator in set(Operator) for name, operator, _ in filters)


_ORDERINGS: Final[Mapping[Operator, Callable[[Any, Any], bool]]] = {
    Operator.LESS_THAN: lt,
    Operator.GREATER_THAN: gt,
    Operator.LESS_THAN_OR_EQUAL: le,
    Operator.GREATER_THAN_OR_EQUAL: ge,
}


def _compare(left: object, operator: Operator, right: object) -> bool:
    if operator is Operator.NOT_EQUALS:
        return not _compare(left, Operator.EQUALS, right)
    if isinstance(left, list) and not isinstance(right, list):
        return any(_compare(member, operator, right) for member in left)
    left, right = _casefold(left), _casefold(right)
    if operator is Operator.EQUALS:
        return left == right
    try:
        return _ORDERINGS[operator](left, right)
    except TypeError:  # of different types, or of a type without an order
        return False


def _casefold(value: object) -> object:
    if isinstance(value, list):
        return [_casefold(member) for member in value]
    return value.casefold() if isinstance(value, str) else value


def sort_key(value: object) -> tuple[int, Any]:
    """Return the sort key of an attribute value: objects without the attribute come first."""
    if value is None or value is MISSING:
        return 0, 0
    if isinstance(value, list):
        return 1, [sort_key(member) for member in value]
    return 1, str(value).casefold() if not isinstance(value, int | bytes) else value
