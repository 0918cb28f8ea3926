"""The vocabulary in which the elements of an SRMP envelope are declared, once: [MC-MQSRM] 2.2.1.

A declaration is a value: a tree of the kinds below. Parsing, building, JSON, the documentation and the
Hypothesis strategies traverse that tree. A leaf converts between the text of its element and a value; it
raises ValueError with the reason for a text that is not of its kind, and the walker adds the place.
"""

from __future__ import annotations

import base64
import binascii
import re
import reprlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, NamedTuple
from uuid import UUID

from msmqwire.names.printable import counted
from msmqwire.srmp.identifiers import MessageIdentifier, StreamIdentifier

SPACE: Final = " \t\r\n"
"""The white space of XML; Python's own `strip` would take more."""
UINT32_MAX: Final = 0xFFFF_FFFF
UINT64_MAX: Final = 0xFFFF_FFFF_FFFF_FFFF  # SRMP-2.2.1.3-01

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_GUID = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"  # SRMP-2.2.1.1-01
_GUID_TEXT = re.compile(_GUID)  # SRMP-2.2.1.1-01
_DIGITS_MAX = 20  # of 2^64: SRMP-2.2.1.3-01
_DIGITS = re.compile(f"0*([0-9]{{1,{_DIGITS_MAX}}})")
_DATE = re.compile("[0-9]{8}T([0-9]{2})[0-9]{4}")  # SRMP-2.2.1.2-01 and -02
_IDENTIFIER = re.compile(f"uuid:([0-9]+)@({_GUID})")
_SPACES = re.compile(f"[{SPACE}]+")
_STREAM = re.compile(rf"uid:({_GUID})\\([0-9]+)")  # SRMP-2.2.5.3.1-04


@dataclass(frozen=True, kw_only=True)
class Element:
    """The base of all kinds.

    Attributes:
        name: the local name, in the specification's spelling.
        meaning: one line of documentation.
        req: the requirements that it implements; the first is the one that says it may or must be there.
        section: the section of [MC-MQSRM].
        namespace: that of the enclosing group if empty.
        least, most: the number of times it stands in its group.
        lenient: a requirement for which parsing accepts its absence although the text wants it.
        attribute: the attribute of Message that it becomes, and with which value (``=``, ``+=``).
        also: names that examples of the specification give it, and the requirement that says so. They are
            accepted, noted as departures, and never written.
        tag: namespace and name as an XML reader gives them, ``{http://schemas.xmlsoap.org/rp/}to``.
    """

    kind: ClassVar[str] = ""
    name: str
    meaning: str
    req: tuple[str, ...]
    section: str
    namespace: str = ""
    least: int = 0
    most: int = 1
    lenient: str = ""
    attribute: str = ""
    also: Mapping[str, str] = field(default_factory=dict)
    tag: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tag", f"{{{self.namespace}}}{self.name}")


@dataclass(frozen=True, kw_only=True)
class Leaf(Element):
    """An element that holds text only.

    Attributes:
        strip: white space around it says nothing.
        bare: whether the text of `write` has no character that is special in XML.
    """

    bare: ClassVar[bool] = False
    strip: bool = True

    def read(self, text: str) -> Any:
        """Return the value of a text."""
        raise NotImplementedError

    def write(self, value: Any) -> str:
        """Return the text of a value."""
        raise NotImplementedError

    def to_json(self, value: Any) -> Any:
        """Return the value as JSON has it: its text, unless a kind says otherwise."""
        return self.write(value)

    def from_json(self, value: Any) -> Any:
        """Return the value that `to_json` was made from."""
        return self.read(_typed(value, str))


@dataclass(frozen=True, kw_only=True)
class Flag(Leaf):
    """An empty element: there or not."""

    kind: ClassVar[str] = "empty"
    bare: ClassVar[bool] = True

    def read(self, text: str) -> bool:
        if text:
            raise ValueError("it is not empty")
        return True

    def write(self, value: Any) -> str:
        if value is not True:
            raise ValueError(f"{_shown(value)} is not true or false")
        return ""

    def to_json(self, value: Any) -> bool:
        self.write(value)
        return True

    def from_json(self, value: Any) -> bool:
        return _typed(value, bool)  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class Text(Leaf):
    """A text, taken as it is.

    Attributes:
        starts: beginnings, of which it must have one.
        one_of: all the texts that it may be.
    """

    kind: ClassVar[str] = "text"
    strip: bool = False
    starts: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()

    def read(self, text: str) -> str:
        if self.one_of and text not in self.one_of:
            raise ValueError(f"{_shown(text)} is not one of {', '.join(self.one_of)}")
        if self.starts and not text.startswith(self.starts):
            raise ValueError(f"{_shown(text)} does not begin with {' or '.join(self.starts)}")
        return text

    def write(self, value: Any) -> str:
        text = self.read(_typed(value, str))
        if self.strip and text != text.strip(SPACE):
            raise ValueError(f"white space around {_shown(text)}")
        return text


@dataclass(frozen=True, kw_only=True)
class Uri(Text):
    """A text around which white space says nothing: SRMP-2.2.5.3.4-03."""

    kind: ClassVar[str] = "URI"
    strip: bool = True


@dataclass(frozen=True, kw_only=True)
class Number(Leaf):
    """An xs:unsignedLong that has to fit into `maximum`: [MC-MQSRM] 2.2.1.3."""

    kind: ClassVar[str] = "number"
    bare: ClassVar[bool] = True
    maximum: int = UINT32_MAX

    def read(self, text: str) -> int:
        return _number(text, self.maximum)

    def write(self, value: Any) -> str:
        if type(value) is int and 0 <= value <= self.maximum:
            return str(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= self.maximum:
            raise ValueError(f"{_shown(value)} is not a number from 0 to {self.maximum}")
        return str(int(value))

    def to_json(self, value: Any) -> int:
        return int(self.write(value))

    def from_json(self, value: Any) -> int:
        return int(self.write(value))


@dataclass(frozen=True, kw_only=True)
class Guid(Leaf):
    """A GUID without braces: [MC-MQSRM] 2.2.1.1."""

    kind: ClassVar[str] = "GUID"
    bare: ClassVar[bool] = True

    def read(self, text: str) -> UUID:
        if not _GUID_TEXT.fullmatch(text):  # SRMP-2.2.1.1-01
            raise ValueError(f"{_shown(text)} is not a GUID")
        return UUID(text)

    def write(self, value: Any) -> str:
        return str(_typed(value, UUID))


@dataclass(frozen=True, kw_only=True)
class Date(Leaf):
    """A date and time in UTC, ``20070619T210654``: [MC-MQSRM] 2.2.1.2."""

    kind: ClassVar[str] = "date"
    bare: ClassVar[bool] = True

    def read(self, text: str) -> datetime:
        parts = _DATE.fullmatch(text)
        if parts is None:
            raise ValueError(f"{_shown(text)} is not a date of the form YYYYMMDDThhmmss")
        try:
            if parts[1] != "24":  # which newer Pythons take for the next midnight
                return datetime.fromisoformat(f"{text}Z")
        except ValueError:
            pass
        raise ValueError(f"{text} is not a date of any calendar")

    def write(self, value: Any) -> str:
        date = _typed(value, datetime)
        if date.tzinfo is UTC and not date.microsecond:
            text: str = date.isoformat()[: len("2007-06-19T21:06:54")]
            return text.replace("-", "").replace(":", "")
        if date.tzinfo is None or date.microsecond:
            raise ValueError(f"{_shown(value)} has no time zone, or more than whole seconds")
        try:
            date = date.astimezone(UTC)
        except OverflowError:
            raise ValueError(f"{_shown(value)} is not a date in UTC") from None
        return f"{date.year:04}{date:%m%dT%H%M%S}"


@dataclass(frozen=True, kw_only=True)
class Base64(Leaf):
    """Bytes in base64 with padding, `length` of them; any number if None. JSON has them in hex."""

    kind: ClassVar[str] = "base64"
    bare: ClassVar[bool] = True
    length: int | None = None

    def read(self, text: str) -> bytes:
        packed = _SPACES.sub("", text) if _SPACES.search(text) else text
        try:
            data = binascii.a2b_base64(packed, strict_mode=True)
        except (binascii.Error, ValueError):
            raise ValueError(f"{_shown(text)} is not base64") from None
        return self._sized(data)

    def write(self, value: Any) -> str:
        return base64.b64encode(self._sized(_typed(value, bytes))).decode("ascii")

    def to_json(self, value: Any) -> str:
        return str(self._sized(_typed(value, bytes)).hex())

    def from_json(self, value: Any) -> bytes:
        return self._sized(bytes.fromhex(_typed(value, str)))

    def _sized(self, data: bytes) -> bytes:
        if self.length is not None and len(data) != self.length:
            raise ValueError(f"{counted(len(data), 'byte')}, not {self.length}")
        return data


@dataclass(frozen=True, kw_only=True)
class Names(Leaf):
    """One or more names of queues.

    2.2.6 has them separated by white space and 3.1.5.1.1 ended by line breaks: they are split at any white
    space, and written with a line feed after each, which satisfies both.
    """

    kind: ClassVar[str] = "names"

    def read(self, text: str) -> tuple[str, ...]:
        names = tuple(filter(None, _SPACES.split(text)))
        if not names:
            raise ValueError("it has no name")
        return names

    def write(self, value: Any) -> str:
        names = _typed(value, tuple)
        if not names:
            raise ValueError("it has no name")
        text = "".join([f"{name}\n" for name in names])
        if text.split() != list(names):  # looked at closely: Python has more white space than XML
            for name in names:
                if not isinstance(name, str) or not name or _SPACES.search(name):
                    raise ValueError(f"{_shown(name)} is not a name without white space")
        return text

    def to_json(self, value: Any) -> list[str]:
        self.write(value)
        return list(value)

    def from_json(self, value: Any) -> tuple[str, ...]:
        names = tuple(_typed(value, list))
        self.write(names)
        return names


@dataclass(frozen=True, kw_only=True)
class Identifier(Leaf):
    """``uuid:``, a number of 32 bits, ``@`` and a GUID.

    With `any_text`, a text of another form is its own value: without Msmq nothing looks at it (2.2.4.3).
    """

    kind: ClassVar[str] = "identifier"
    any_text: bool = False

    def read(self, text: str) -> MessageIdentifier | str:
        parts = _IDENTIFIER.fullmatch(text)
        try:
            if parts is None:
                raise ValueError(f"{_shown(text)} is not of the form uuid:NUMBER@GUID")
            return MessageIdentifier(_number(parts[1], UINT32_MAX), UUID(parts[2]))  # SRMP-2.2.4.3-06
        except ValueError:
            if self.any_text:
                return text
            raise

    def write(self, value: Any) -> str:
        if isinstance(value, str) and self.any_text and self.read(value) == value == value.strip(SPACE):
            return value
        identifier = _typed(value, MessageIdentifier)
        if _is_uint(identifier.uniquifier, UINT32_MAX) and type(identifier.lineage) is UUID:
            return str(identifier)
        if not isinstance(identifier.lineage, UUID) or self.read(str(identifier)) != identifier:
            raise ValueError(f"{_shown(value)} is not a number of 32 bits and a GUID")
        return str(identifier)


@dataclass(frozen=True, kw_only=True)
class StreamId(Leaf):
    r"""``uid:``, a GUID, ``\`` and a number of 64 bits."""

    kind: ClassVar[str] = "stream identifier"
    bare: ClassVar[bool] = True

    def read(self, text: str) -> StreamIdentifier:
        parts = _STREAM.fullmatch(text)
        if parts is None:
            raise ValueError(rf"{_shown(text)} is not of the form uid:GUID\NUMBER")
        return StreamIdentifier(UUID(parts[1]), _number(parts[2], UINT64_MAX))

    def write(self, value: Any) -> str:
        stream = _typed(value, StreamIdentifier)
        if type(stream.queue_manager) is UUID and _is_uint(stream.number, UINT64_MAX):
            return str(stream)
        if not isinstance(stream.queue_manager, UUID) or self.read(str(stream)) != stream:
            raise ValueError(f"{_shown(value)} is not a GUID and a number of 64 bits")
        return str(stream)


class Child(NamedTuple):
    """The entry that is looked up for a tag inside a group.

    Attributes:
        number: the place of the element among the children.
        element: None for a tag that is not declared.
        name, most: of the element.
        read: the function of a leaf.
        strip: whether it is given its text without white space around it.
        other_name: the requirement in `also`, for a tag that is not the one that is written.
    """

    number: int
    element: Element | None
    name: str
    most: int
    read: Callable[[str], Any] | None
    strip: bool
    other_name: str


NO_CHILD: Final = Child(0, None, "", 0, None, False, "")


def _by_tag(children: tuple[Element, ...]) -> Iterator[tuple[str, Child]]:
    for number, element in enumerate(children):
        leaf = element if isinstance(element, Leaf) else None
        read, strip = (None, False) if leaf is None else (leaf.read, leaf.strip)
        child = Child(number, element, element.name, element.most, read, strip, "")
        yield element.tag, child
        for name, requirement in element.also.items():
            yield f"{{{element.namespace}}}{name}", child._replace(other_name=requirement)


@dataclass(frozen=True, kw_only=True)
class Ignored(Element):
    """An element that has no value: it is skipped, and kept as it stands.

    With `departure`, the text does not know it, only an example does.
    """

    kind: ClassVar[str] = "ignored"
    most: int = 0x4000
    departure: bool = False


@dataclass(frozen=True, kw_only=True)
class Blank(Element):
    """An element that is written empty; its content is ignored: SRMP-2.2.2-04, SRMP-2.2.2-05."""

    kind: ClassVar[str] = "empty"


@dataclass(frozen=True, kw_only=True)
class Group(Element):
    """An element of elements, written in the order of `children`.

    Attributes:
        attributes: the XML attributes, without namespace, that it must have. They are values of the group.
        must_understand: it bears ``se:mustUnderstand="1"``.
        in_order: the children stand first and in their order; else any order is accepted and noted.
        order_req: the requirement that gives the order.
        refuses: the requirement that an unknown child with ``se:mustUnderstand="1"`` breaks.
        void: the name of a child; if that is empty, so is the group, as if it were absent.
        void_req: the requirement by which only the short form of that empty child is right.
        by_tag: the children by their tags.
        by_name: the children that have a value, by their names.
        expected: the children whose absence is an error or a departure.
        absent: the stand-in for a child or an attribute that is not there, by its name.
    """

    kind: ClassVar[str] = "group"
    children: tuple[Element, ...] = ()
    attributes: tuple[str, ...] = ()
    must_understand: str = ""
    in_order: bool = False
    order_req: str = ""
    refuses: str = ""
    void: str = ""
    void_req: str = ""
    by_tag: Mapping[str, Child] = field(init=False, repr=False, compare=False)
    by_name: Mapping[str, Element] = field(init=False, repr=False, compare=False)
    expected: tuple[Element, ...] = field(init=False, repr=False, compare=False)
    absent: Mapping[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        inherited = tuple(self._inherit(child) for child in self.children)
        object.__setattr__(self, "children", inherited)
        by_name = {child.name: child for child in inherited if not isinstance(child, Ignored | Blank)}
        object.__setattr__(self, "by_tag", dict(_by_tag(inherited)))
        object.__setattr__(self, "by_name", by_name)
        object.__setattr__(self, "expected", tuple(c for c in inherited if c.least or c.lenient))
        absent = {**dict.fromkeys(self.attributes), **{child.name: _absent(child) for child in inherited}}
        object.__setattr__(self, "absent", absent)

    def _inherit(self, child: Element) -> Element:
        return child if child.namespace else replace(child, namespace=self.namespace)

    def child(self, name: str) -> Element:
        """Return the child of that name. Raises KeyError."""
        for child in self.children:
            if child.name == name:
                return child
        raise KeyError(name)


def _absent(element: Element) -> Any:
    return False if isinstance(element, Flag) else () if element.most > 1 else None


def _number(text: str, maximum: int) -> int:
    if len(text) <= _DIGITS_MAX and text.isdecimal() and text.isascii():
        number = int(text)
    else:
        digits = _DIGITS.fullmatch(text)
        number = maximum + 1 if digits is None else int(digits[1])
    if number > maximum:
        raise ValueError(f"{_shown(text)} is not a number from 0 to {maximum}")
    return number


def _is_uint(value: Any, maximum: int) -> bool:
    """Whether a value is a number of exactly this type, which is written as it is."""
    return type(value) is int and 0 <= value <= maximum


def _typed(value: Any, wanted: type) -> Any:
    if not isinstance(value, wanted):
        raise ValueError(f"{_shown(value)} is not a {wanted.__name__}")
    return value


def _shown(value: Any) -> str:
    """Return a value for an error, cut short: a peer decides how long it is."""
    return _SHORT.repr(value)
