"""The values of an envelope: the contents of groups, and undeclared elements kept beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

from msmqwire.errors import InvalidValue
from msmqwire.srmp.elements import Group


class Departure(NamedTuple):
    """A departure of a parsed envelope from the specification that was accepted all the same."""

    requirement: str
    path: str
    text: str


class UndeclaredElement(NamedTuple):
    """An element that no declaration gives a value, as XML of its own.

    The XML declares the namespaces of its names itself, so that it means the same in any place. Prefixes
    are not those of the peer, and names with a prefix inside a text or attribute are not followed.

    Attributes:
        path: the path of its parent, such as ``Envelope.Header.path``.
        position: the number of elements of the parent before it.
        xml: the element.
        known: whether the specification has it, as one that is ignored.
    """

    path: str
    position: int
    xml: str
    known: bool = False


class Content(Mapping[str, Any]):
    """The content of a group: values by the names of elements, those that are there.

    It does not change; `replace` makes another. As an attribute, an element that is not there is None
    (False for an empty element, () for one that may stand repeatedly). The order is that of the document.
    """

    __slots__ = ("_values", "group")

    def __init__(self, group: Group, values: Mapping[str, Any], path: str = "") -> None:
        """Take values by name; nested groups may be mappings. Raises InvalidValue for an unknown name."""
        path = path or group.name
        declared = group.by_name
        taken: dict[str, Any] = {}
        for name, value in values.items():
            element = declared.get(name)
            if element is None and name not in group.attributes:
                raise InvalidValue(f"{group.name} has no element {name}", path=path)
            if value is None or value is False or (type(value) is tuple and not value):
                continue
            if not isinstance(element, Group):
                taken[name] = value
            elif element.most == 1:
                taken[name] = _group(element, value, f"{path}.{name}")
            else:
                items = value if isinstance(value, tuple | list) else (value,)
                taken[name] = tuple(_group(element, v, f"{path}.{name}[{n}]") for n, v in enumerate(items))
        self.group = group
        self._values = taken

    @classmethod
    def of_read(cls, group: Group, values: dict[str, Any]) -> Content:
        """Return the content of a group that was read: values of its elements, none of them absent."""
        content = cls.__new__(cls)
        content.group = group
        content._values = values
        return content

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self._values.get(name, default)

    @property
    def by_name(self) -> Mapping[str, Any]:
        """The values themselves, for code that looks up many of them."""
        return self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> Any:
        if name in ("_values", "group"):  # of one that is being copied
            raise AttributeError(name)
        try:
            return self._values[name] if name in self._values else self.group.absent[name]
        except KeyError:
            raise AttributeError(f"{self.group.name} has no element {name}") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Content):
            return NotImplemented
        return self.group.name == other.group.name and self._values == other._values

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self.group.name}({', '.join(f'{name}={value!r}' for name, value in self.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.group, self._values)

    def replace(self, **values: Any) -> Self:
        """Return a copy with other values; None leaves an element out. Raises InvalidValue."""
        return type(self)(self.group, {**self._values, **values})


def _group(element: Group, value: Any, path: str) -> Content:
    if isinstance(value, Content) and value.group.name == element.name:
        return value
    if not isinstance(value, Mapping):
        raise InvalidValue(f"{element.name} is a group of elements", path=path)
    return Content(element, value, path)
