"""Writing of XML as XmlSerializer writes it, which XmlMessageFormatter uses."""

from __future__ import annotations

import base64
import re
from typing import Any, Final, TypeAlias

from msmqwire.bodies import plain, scalars
from msmqwire.bodies.body import Plain
from msmqwire.bodies.json.writing import without_zeros
from msmqwire.bodies.xml.reading import ARRAY, ATTRIBUTE, INSTANCE, MIXED, NAMESPACE, TEXT, split_name
from msmqwire.bodies.xml.simple import SIMPLE
from msmqwire.errors import InvalidValue
from msmqwire.names.printable import with_article

_SCHEMA: Final = "http://www.w3.org/2001/XMLSchema"
_DECLARATION: Final = '<?xml version="1.0"?>\r\n'
_DECLARED: Final = f' xmlns:xsi="{INSTANCE}" xmlns:xsd="{_SCHEMA}"'
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAME: Final = re.compile(r"[A-Za-z_\u00c0-\ud7ff][\w.\u00b7-]*(:[A-Za-z_\u00c0-\ud7ff][\w.\u00b7-]*)?")
_TYPES_OF_DOLLARS: Final = {
    plain.DECIMAL: "decimal", plain.FLOAT: "double", plain.BYTES: "base64Binary", plain.DATE: "dateTime",
    plain.TIMESPAN: "TimeSpan", plain.GUID: "guid",
}  # fmt: skip
_INTEGERS: Final = {
    "byte": (-(1 << 7), 1 << 7), "unsignedByte": (0, 1 << 8), "short": (-(1 << 15), 1 << 15),
    "unsignedShort": (0, 1 << 16), "int": (-(1 << 31), 1 << 31), "unsignedInt": (0, 1 << 32),
    "long": (-(1 << 63), 1 << 63), "unsignedLong": (0, 1 << 64),
}  # fmt: skip
_OWN_TYPES: Final = ("guid", "char", "TimeSpan", "dateTimeOffset")
"""Types that XML schema has not; .NET names them in a namespace of its own."""
_Path: TypeAlias = "tuple[Any, str | int] | None"
"""The path around, and a name or number in it."""
_Todo: TypeAlias = "tuple[str, Any, _Path, str, str, str]"
"""Work still to do: an element's name, value, path, attributes so far, the namespace around it, and the rule
for its type (``root``, ``item`` of an array, ``any``); or a text that is ``ready``.
"""
_WSDL: Final = "http://microsoft.com/wsdl/types/"


def write(value: Plain, type_: str | None = None) -> bytes:
    """Return a value as XML with a root element named after its type.

    Args:
        value: plain data. An object becomes elements by name, a list repeats its element, ``@name`` is an
            attribute, ``#text`` the text beside attributes, ``#mixed`` a list of texts and elements.
        type_: the name of the root element: ``Order``, ``ArrayOfInt``, ``decimal``. If none is given, the
            ``$type`` of an object, otherwise the type of the value.

    Raises InvalidValue.
    """
    root = type_ if type_ is not None else _root_of(value)
    if not _NAME.fullmatch(root) or ":" in root:
        raise InvalidValue(f"{root!r:.80} is not a name of an element", path="type")
    out = [_DECLARATION]
    _Writer(out).document(value, root)
    return "".join(out).encode()


def _root_of(value: Plain) -> str:
    if isinstance(value, list):
        kinds = {_simple_type(item) for item in value}
        kind = kinds.pop() if len(kinds) == 1 else None
        return f"{ARRAY}{kind[0].upper()}{kind[1:]}" if kind else f"{ARRAY}AnyType"
    kind = _simple_type(value)
    if kind is not None:
        return kind
    if isinstance(value, dict) and isinstance(name := value.get(plain.TYPE), str):
        return name
    why = "the root element of XML is named after the type"
    raise InvalidValue(f"{why}; give type, or write the object with a $type")


def _simple_type(value: Plain) -> str | None:
    """Return the simple type that a value has in XML; None for an object or list."""
    match value:
        case None:
            return "anyType"
        case bool():
            return "boolean"
        case int():
            return _integer_type(value)
        case float():
            return "double"
        case str():
            return "string"
        case {plain.DECIMAL: str(text)} if text.lstrip("-").isdigit():
            return _integer_type(int(text[:400]))
        case dict():
            return _TYPES_OF_DOLLARS.get(next(iter(value), ""))
    return None


def _integer_type(value: int) -> str:
    for name in ("int", "long", "unsignedLong"):
        low, end = _INTEGERS[name]
        if low <= value < end:
            return name
    return "decimal"


class _Writer:
    """One document on its way to text, with a stack of its own in place of recursion."""

    def __init__(self, out: list[str]) -> None:
        self._out = out
        self._at: _Path = None
        self._prefixes = 0

    def document(self, value: Plain, root: str) -> None:
        declared = "" if root in SIMPLE and value is not None else _DECLARED
        todo: list[_Todo] = [(root, value, None, declared, "", "root")]
        try:
            while todo:
                entry = todo.pop()
                if entry[-1] == "ready":
                    self._out.append(entry[0])
                else:
                    self._at = entry[2]
                    todo += reversed(self._element(*entry))
        except InvalidValue as exc:
            raise InvalidValue(exc.why, path=_rendered(self._at)) from None

    def _element(
        self, name: str, value: Any, path: _Path, extra: str, namespace: str, kind: str
    ) -> list[_Todo]:
        """Write the start of an element, and return the rest."""
        space, name = split_name(name) if name.startswith("{") else (namespace, name)
        if not _NAME.fullmatch(name):
            raise InvalidValue(f"{name!r:.80} is not a name of an element; a list or a text may hold it")
        if isinstance(value, dict) and isinstance(own := value.get(NAMESPACE), str):
            space = own
        if space != namespace:
            extra += f' xmlns="{_escaped(space, attribute=True)}"'
        out = self._out
        if value is None:
            out.append(f'<{name}{extra} xsi:nil="true" />')
            return []
        if kind == "any":
            extra += _typed(value)
        if isinstance(value, list):
            return self._array(name, value, path, extra, space)
        if isinstance(value, dict) and next(iter(value), "") not in plain.SCALARS:
            return self._object(name, value, path, extra, space, kind)
        text = _escaped(_text(value, name if kind in {"root", "item"} else ""))
        out.append(f"<{name}{extra}>{text}</{name}>" if text else f"<{name}{extra} />")
        return []

    def _array(self, name: str, value: list[Plain], path: _Path, extra: str, namespace: str) -> list[_Todo]:
        if not name.startswith(ARRAY) or len(name) == len(ARRAY):
            why = f"a list is not an element {name}; write an object with its items under their name"
            raise InvalidValue(f"{why}, or name the element ArrayOfInt or so")
        if not value:
            self._out.append(f"<{name}{extra} />")
            return []
        item = name[len(ARRAY) :]
        small = item[:1].lower() + item[1:]
        item = small if small in SIMPLE or small == "anyType" else item
        inner = "any" if item == "anyType" else "item"
        if item in _INTEGERS and set(map(type, value)) == {int} and _fit(value, item):
            items = "".join([f"<{item}>{number}</{item}>" for number in value])
            self._out.append(f"<{name}{extra}>{items}</{name}>")
            return []
        self._out.append(f"<{name}{extra}>")
        parts: list[_Todo] = [
            (item, entry, (path, number), "", namespace, inner) for number, entry in enumerate(value)
        ]
        return [*parts, _ready(f"</{name}>")]

    def _object(
        self, name: str, value: dict[str, Plain], path: _Path, extra: str, namespace: str, kind: str
    ) -> list[_Todo]:
        parts: list[_Todo] = []
        for key, item in value.items():
            here = self._at = (path, key)
            if key == plain.TYPE:
                if kind not in {"root", "any"}:
                    extra += f' xsi:type="{_escaped(_text(item, ""), attribute=True)}"'
            elif key == NAMESPACE:
                continue
            elif key.startswith(ATTRIBUTE):
                extra += self._attribute(key[1:], item)
            elif key == TEXT:
                parts.append(_ready(_escaped(_text(item, ""))))
            elif key == MIXED:
                parts += self._mixed(item, here, namespace)
            elif isinstance(item, list) and not key.startswith(ARRAY):
                parts += [(key, entry, (here, n), "", namespace, "") for n, entry in enumerate(item)]
            else:
                parts.append((key, item, here, "", namespace, ""))
        if not parts:
            self._out.append(f"<{name}{extra} />")
            return []
        self._out.append(f"<{name}{extra}>")
        return [*parts, _ready(f"</{name}>")]

    def _attribute(self, name: str, value: Plain) -> str:
        space, local = split_name(name) if name.startswith("{") else ("", name)
        if not _NAME.fullmatch(local):
            raise InvalidValue(f"{local!r:.80} is not a name of an attribute")
        text = _escaped(_text(value, ""), attribute=True)
        if space == INSTANCE:
            return f' xsi:{local}="{text}"'
        if space:
            # A prefix of its own for each, since the namespaces of attributes may differ.
            self._prefixes += 1
            prefix = f"a{self._prefixes}"
            return f' xmlns:{prefix}="{_escaped(space, attribute=True)}" {prefix}:{local}="{text}"'
        return f' {local}="{text}"'

    def _mixed(self, pieces: Plain, path: _Path, namespace: str) -> list[_Todo]:
        if not isinstance(pieces, list):
            raise InvalidValue("#mixed is a list of texts and of objects with one element each")
        parts: list[_Todo] = []
        for number, piece in enumerate(pieces):
            here = self._at = (path, number)
            if isinstance(piece, str):
                parts.append(_ready(_escaped(piece)))
            elif isinstance(piece, dict) and len(piece) == 1:
                ((key, item),) = piece.items()
                parts.append((key, item, (here, key), "", namespace, ""))
            else:
                raise InvalidValue("is neither a text nor an object with one element")
        return parts


def _fit(numbers: list[Any], kind: str) -> bool:
    low, end = _INTEGERS[kind]
    return bool(low <= min(numbers) and max(numbers) < end)


def _ready(text: str) -> _Todo:
    return text, None, None, "", "", "ready"


def _rendered(path: _Path) -> str:
    names: list[str | int] = []
    while path is not None:
        path, name = path
        names.append(name)
    return scalars.path_of(reversed(names))


def _typed(value: Plain) -> str:
    """Return the ``xsi:type`` that names the type of an item of any type."""
    kind = _simple_type(value)
    if kind is None:
        own = value.get(plain.TYPE) if isinstance(value, dict) else None
        return f' xsi:type="{_escaped(own, attribute=True)}"' if isinstance(own, str) else ""
    if kind in _OWN_TYPES:
        return f' xmlns:q1="{_WSDL}" xsi:type="q1:{kind}"'
    return f' xsi:type="xsd:{kind}"'


def _text(value: Plain, kind: str) -> str:
    """Return a value as the text of an element or attribute, checked if its type is known."""
    if kind not in SIMPLE:
        kind = ""
    if isinstance(value, str):
        if kind == "char":
            return _character(value)
        _check(value, kind)
        return value
    if value is None or isinstance(value, list):
        raise InvalidValue(f"{scalars.shown(value)} is not text")
    if isinstance(value, bool):
        _check("true" if value else "false", kind)
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        text = plain.scalar(value) if isinstance(value, int) else _float(value)
        _check(text, kind)
        return text
    name = next(iter(value), "")
    text = _dollar(value, name)
    if kind and kind != _TYPES_OF_DOLLARS.get(name):
        _check(text, kind)
    return text


def _dollar(value: dict[str, Plain], name: str) -> str:
    if name == plain.BYTES:
        return base64.b64encode(scalars.bytes_of(value)).decode()
    if name == plain.DATE:
        return without_zeros(scalars.date_of(value))
    if name == plain.DECIMAL:
        return format(scalars.decimal_of(value), "f")
    if name == plain.GUID:
        return scalars.guid_of(value)
    if name == plain.FLOAT:
        return _float(scalars.float_of(value))
    text = value.get(name)
    if name != plain.TIMESPAN or not isinstance(text, str):
        raise InvalidValue(f"{scalars.shown(value)} is not text")
    _check(text, "duration")
    return text


def _float(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "INF" if value > 0 else "-INF"
    return repr(value).upper() if "e" in repr(value) else repr(value).removesuffix(".0")


def _character(value: str) -> str:
    if len(value) != 1 or ord(value) > 0xFFFF:
        raise InvalidValue(f"{value!r:.40} is not a character of one UTF-16 code unit")
    return str(ord(value))


def _check(text: str, kind: str) -> None:
    if not kind or kind == "string":
        return
    try:
        SIMPLE[kind](text)
    except (ValueError, ArithmeticError):
        raise InvalidValue(f"{text!r:.60} is not {with_article(kind)}") from None


def _escaped(text: str, *, attribute: bool = False) -> str:
    forbidden = _FORBIDDEN.search(text)
    if forbidden is not None:
        why = f"{forbidden[0]!a} is a character that XML forbids; write the text as base64, in a $bytes"
        raise InvalidValue(why)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#xD;")
    if attribute:
        return text.replace('"', "&quot;").replace("\n", "&#xA;").replace("\t", "&#x9;")
    return text
