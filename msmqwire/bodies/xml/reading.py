"""Reading of XML to plain data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from msmqwire.bodies import plain, texts
from msmqwire.bodies.body import Content, Plain, Problem
from msmqwire.bodies.limits import DEFAULT, DICT_COST, TEXT_COST, Budget
from msmqwire.bodies.xml.simple import SIMPLE
from msmqwire.errors import MalformedBody
from msmqwire.names.printable import with_article

INSTANCE: Final = "http://www.w3.org/2001/XMLSchema-instance"
ATTRIBUTE, TEXT, MIXED, NAMESPACE = "@", "#text", "#mixed", "@xmlns"
ARRAY: Final = "ArrayOf"

_TYPE: Final = f"{{{INSTANCE}}}type"
_NIL: Final = f"{{{INSTANCE}}}nil"
_START: Final = re.compile(r"\s*<[?!A-Za-z_:\u0080-\U0010ffff]")
ATTRIBUTES_MAX: Final = 10_000
"""Attributes of one element."""
_NUMBERS: Final = ("int", "long")
_SHORT_NUMBERS: Final = re.compile(r"-?[0-9]{1,9}(?:,-?[0-9]{1,9}+)*+")
_ROOT: Final = re.compile(rb"(?>\s+|<\?.*?\?>|<!--.*?-->)*+<[A-Za-z_:\x80-\xff][^>]*>", re.DOTALL)
_ARRAY: Final = re.compile(
    rb"(?:<\?xml version=\"1\.0\"(?: encoding=\"[A-Za-z0-9-]+\")?(?: standalone=\"yes\")? ?\?>\s*)?"
    rb"<ArrayOf(?P<kind>[A-Z][A-Za-z]+)(?P<names>(?:\s+xmlns:xs[id]=\"[^\"<>&]+\"){0,2})\s*>"
)
_ARRAYS: Final = frozenset(
    (
        "string", "boolean", "byte", "unsignedByte", "short", "unsignedShort", "int", "unsignedInt", "long",
        "float", "double",
    )
)  # fmt: skip
"""Simple types whose values take little memory."""
_NOT_IN_ARRAYS: Final = re.compile(rb"[<>&\r]|INF|NaN")
"""Content that keeps items of an array from the quick way: markup, and objects as values."""
_MEMORY_OF_ARRAY: Final = 8
"""Bytes of memory for each byte of an array, at the least."""
_VALUES: Final = re.compile(rb"(?<=\")[^\"<]*(?=\")|(?<=')[^'<]*(?=')")
"""The value of an attribute: all characters between two quotation marks."""
_PATH_MAX: Final = 200
_PROBLEMS_MAX: Final = 100
ELEMENT_COST: Final = 168
"""Bytes of memory that an element takes while it is read, without its attributes."""
_SMALL: Final = 4096
"""Bytes that no limit but that of depth can be met with, unless limits are set."""
ATTRIBUTE_COST: Final = 4 * TEXT_COST
_Frame: TypeAlias = "tuple[Iterator[Any], Any, frozenset[str] | None, str, str]"
"""Children, their container, names of those that are repeated (None if mixed), namespace and path."""
_TRUE: Final = ("true", "1")


def recognises(body: bytes) -> bool:
    """Return whether bytes look like XML, by their beginning."""
    text = texts.decoded(body)
    return text is not None and looks_like_xml(text)


def looks_like_xml(text: str) -> bool:
    """Return whether a text begins as XML does."""
    return _START.match(text) is not None


def read(body: bytes, budget: Budget) -> Content:
    """Read XML. Raises MalformedBody if the bytes are not text or have no root element."""
    text = texts.decoded(body)
    if text is None:
        raise MalformedBody("the bytes are not text in UTF-8 or UTF-16, which XML is", offset=0)
    return of_text(text, budget)


def of_text(text: str, budget: Budget) -> Content:
    """Read XML from a text. Raises MalformedBody if it has no root element."""
    data = text.strip().encode()
    array = _array(data, budget)
    if array is not None:
        return Content("xml", array)
    root = _quickly(data) if _is_within(data, budget) else None
    if root is not None:
        start = _ROOT.match(data)
        bare = start is not None and data.find(b"=", start.end()) < 0
        try:
            return _Mapping((), budget.depth, bare=bare).content(root)
        except _TooDeepError:
            del root
    from msmqwire.bodies.xml.careful import Doctype, read_carefully

    try:
        root, problems = read_carefully(data, budget, len(text) - len(text.lstrip()))
    except Doctype as exc:
        why = "has a document type, with which XML is not read"
        return Content("xml", text, plain.one_line(text), (Problem(why, "DOCTYPE", exc.offset),))
    return _Mapping(problems, budget.depth + 1).content(root)


def _array(data: bytes, budget: Budget) -> list[Plain] | None:
    """Return the items of an array of numbers, booleans or texts without faults; None for anything else.

    All elements are alike and all that is between two of them is the same, so none has to be parsed.
    """
    start = _ARRAY.match(data)
    if start is None or max(map(start["names"].count, (b"xmlns:xsi", b"xmlns:xsd"))) > 1:
        return None
    if budget.limits is not DEFAULT or budget.memory < _MEMORY_OF_ARRAY * len(data) or b"\f" in data:
        return None
    kind = start["kind"].decode()
    kind = kind[:1].lower() + kind[1:]
    ending = b"</ArrayOf" + start["kind"] + b">"
    first, end = start.end(), len(data) - len(ending)
    opening, closing = f"<{kind}>".encode(), f"</{kind}>".encode()
    last = data.rfind(closing, first, end)
    if kind not in _ARRAYS or last < 0 or not data.endswith(ending):
        return None
    begin = data.find(opening, first, last)
    after = data.find(closing, first, last)
    following = data.find(opening, after, last) if after >= 0 else last
    if begin < 0 or following < 0 or (data[first:begin] + data[last + len(closing) : end]).strip():
        return None
    between = data[after:following] + opening if after >= 0 else closing + opening
    inside = data[begin + len(opening) : last]
    if between[len(closing) : -len(opening)].strip() or _NOT_IN_ARRAYS.search(inside.replace(between, b"")):
        return None
    found = inside.decode().split(between.decode())
    if len(found) > min(budget.limits.items, budget.limits.records):
        return None
    if kind == "string":
        return list(found)
    read = SIMPLE[kind]
    try:
        if kind in _NUMBERS and _SHORT_NUMBERS.fullmatch(",".join(found)):
            return list(map(int, found))  # which fails on 1,2
        return [read(one.strip()) for one in found]
    except (ValueError, ArithmeticError):
        return None


def _quickly(data: bytes) -> Any:
    """Return the root element of XML without faults; None if there are any."""
    # ElementTree is fast, and safe without a document type, which does not come here.
    import xml.etree.ElementTree as ElementTree

    # The declared encoding was that of the bytes, and the text has been decoded already.
    parser = ElementTree.XMLParser(encoding="utf-8")
    try:
        parser.feed(data)
        return parser.close()
    except ElementTree.ParseError:
        return None


def _is_within(data: bytes, budget: Budget) -> bool:
    """Return whether XML is surely within all limits and has no document type."""
    if b"<!D" in data:
        return False
    elements = data.count(b"<")
    if budget.limits is DEFAULT and len(data) <= _SMALL and budget.memory > _SMALL * DICT_COST:
        return True
    elements -= data.count(b"</")
    attributes = data.count(b"=")
    if b"xmlns" in data:
        # Each name is made with the name of its namespace before it.
        longest = max((len(found) for found in _VALUES.findall(data)), default=0)
        if (elements + attributes) * longest > budget.memory:
            return False
    memory = elements * (ELEMENT_COST + DICT_COST + TEXT_COST) + attributes * ATTRIBUTE_COST + 3 * len(data)
    return (
        memory <= budget.memory
        and attributes <= ATTRIBUTES_MAX
        and elements <= budget.limits.records
        and len(data) <= budget.limits.text
    )


class _TooDeepError(Exception):
    """Elements are deeper than the limit, which the careful reader reports."""


class _Mapping:
    """One document on its way to plain data."""

    def __init__(self, problems: tuple[Problem, ...], depth: int, *, bare: bool = False) -> None:
        """Begin with the problems so far; in a bare document only the root has attributes."""
        self._problems: list[Problem] = list(problems)
        self._depth = depth
        self._bare = bare

    def content(self, root: Any) -> Content:
        value = self._document(root)
        return Content("xml", value, None, tuple(self._problems))

    def _document(self, root: Any) -> Any:
        """Return the value of a root element, with a stack of its own in place of recursion."""
        tag = root.tag
        if tag in SIMPLE and not len(root) and not (root.attrib.keys() - {_NIL}):
            return self._simple(root, tag, tag)
        namespace, name = split_name(tag)
        value, inner = self._begin(root, namespace, name)
        if isinstance(value, dict):
            # The name of the root is its type, which comes first.
            whole: dict[str, Plain] = {plain.TYPE: name}
            if namespace:
                whole[NAMESPACE] = namespace
            if plain.TYPE in value:
                whole[f"{ATTRIBUTE}{_TYPE}"] = value.pop(plain.TYPE)
            whole.update(value)
            if inner is not None and inner[1] is value:
                inner = (inner[0], whole, *inner[2:])
            value = whole
        elif inner is None and not isinstance(value, list) and not (root.keys() and _is_typed(root)):
            return {plain.TYPE: name, **({NAMESPACE: namespace} if namespace else {}), TEXT: value}
        stack = [inner] if inner is not None else []
        bare = self._bare
        while stack:
            children, into, repeated, namespace, path = stack[-1]
            for child in children:
                if type(child) is str:
                    into.append(child)
                    continue
                tag = child.tag
                if not len(child) and (bare or not child.keys()):
                    item: Any = child.text or _empty(child)
                    inner = None
                else:
                    space, name = split_name(tag)
                    item, inner = self._begin(child, space, f"{path}.{name}"[-_PATH_MAX:])
                key = tag[len(namespace) + 2 :] if namespace and tag.startswith(f"{{{namespace}}}") else tag
                if repeated is None:
                    into.append({key: item})
                elif type(into) is list:
                    into.append(item)
                elif key in repeated:
                    into.setdefault(key, []).append(item)
                else:
                    into[key] = item
                if inner is not None:
                    stack.append(inner)
                    if len(stack) >= self._depth:
                        raise _TooDeepError
                    break
            else:
                stack.pop()
        return value

    def _begin(self, element: Any, namespace: str, path: str) -> tuple[Any, _Frame | None]:
        """Return the value of an element, and the parts still to be put into it."""
        value: dict[str, Plain] = {}
        if element.keys():
            attributes = dict(element.items())
            nil, kind = attributes.pop(_NIL, ""), attributes.pop(_TYPE, "")
            if nil in _TRUE and not attributes and not kind and not len(element):
                return None, None
            if kind:
                local = kind.rpartition(":")[2]
                if local in SIMPLE and not len(element) and not attributes:
                    return self._simple(element, local, path), None
                value[plain.TYPE] = local
            if nil:
                value[f"{ATTRIBUTE}{_NIL}"] = nil
            for name, text in attributes.items():
                value[ATTRIBUTE + name] = text
        text = element.text or ""
        if not len(element):
            if not value:
                return text or _empty(element), None
            if text:
                value[TEXT] = text
            return value, None
        return self._with_children(element, value, namespace, path)

    def _with_children(
        self, element: Any, value: dict[str, Plain], namespace: str, path: str
    ) -> tuple[Any, _Frame | None]:
        children = list(element)
        if _is_mixed(element, children):
            mixed: list[Plain] = []
            value[MIXED] = mixed
            return value, (_pieces(element), mixed, None, namespace, path)
        name, tags = element.tag, [child.tag for child in children]
        distinct = set(tags)
        leaves = not any(map(len, children))
        if len(distinct) == 1 and not value and name.startswith(ARRAY):
            item, tag = name[len(ARRAY) :], tags[0]
            small = item[:1].lower() + item[1:]
            if leaves and tag == small and tag in SIMPLE:
                return self._simples(element, tag, path), None
            if tag in (item, small):
                items: list[Plain] = []
                return items, (iter(children), items, frozenset(), namespace, path)
        if namespace:
            own = f"{{{namespace}}}"
            tags = [tag.removeprefix(own) for tag in tags]
        if len(distinct) == len(tags):
            if leaves and (self._bare or not any(child.keys() for child in children)):
                for tag, child in zip(tags, children, strict=True):
                    value[tag] = child.text or _empty(child)
                return value, None
            return value, (iter(children), value, frozenset(), namespace, path)
        repeated = frozenset(tag for tag, count in Counter(tags).items() if count > 1)
        return value, (iter(children), value, repeated, namespace, path)

    def _simple(self, element: Any, kind: str, path: str) -> Plain:
        """Return the value of an element of a simple type, its text if it is none of the type."""
        if element.attrib and element.get(_NIL) in _TRUE:
            return None
        text = element.text or ""
        try:
            return SIMPLE[kind](text if kind == "string" else text.strip())
        except (ValueError, ArithmeticError):
            if len(self._problems) < _PROBLEMS_MAX:
                self._problems.append(Problem(f"{text[:40]!r} is not {with_article(kind)}", path))
            return text

    def _simples(self, root: Any, kind: str, path: str) -> list[Plain]:
        found = [child.text or "" for child in root]
        if self._bare or not any(child.keys() for child in root):
            if kind == "string":
                return found
            read = SIMPLE[kind]
            try:
                if kind in _NUMBERS and _SHORT_NUMBERS.fullmatch(",".join(found)):
                    return list(map(int, found))  # which fails on 1,2
                return [read(text.strip()) for text in found]
            except (ValueError, ArithmeticError):
                pass
        return [self._simple(child, kind, f"{path}[{number}]") for number, child in enumerate(root)]


def split_name(tag: str) -> tuple[str, str]:
    """Return the namespace of a name, ``""`` for none, and the name in it."""
    if tag[0] != "{":
        return "", tag
    namespace, _, name = tag[1:].rpartition("}")
    return namespace, name


def _is_typed(element: Any) -> bool:
    return element.get(_NIL) in _TRUE or element.get(_TYPE) is not None


def _empty(element: Any) -> Plain:
    """Return the value of an element without content: an array has no items, another one no text."""
    return [] if element.tag.startswith(ARRAY) else ""


def _is_mixed(element: Any, children: list[Any]) -> bool:
    tails = {child.tail for child in children}
    tails.add(element.text)
    for tail in tails:  # noqa: SIM110, which is slower
        if tail and not tail.isspace():
            return True
    return False


def _pieces(element: Any) -> Iterator[Any]:
    """Yield the texts of an element, and its children as elements that are not mixed, in their order."""
    if element.text:
        yield element.text
    for child in element:
        yield child
        if child.tail:
            yield child.tail
