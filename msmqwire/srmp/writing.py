"""Writing an envelope by the declarations of its elements: [MC-MQSRM] 3.1.7.2.4.

There is no white space between elements, and one blank between the two declarations of Envelope: in that
form the envelope of 4.5 has exactly the 779 bytes that its Content-Length says, and any line break would be
one too many. Those of 1.3.12 and 4.2 are then one byte short of their 775, and the receipts of 4.3 two of
their 959 and 994: one byte for each name of a computer in them, so the names in the captures must have been
one character longer than the ``machine1`` and ``machine2`` of the print.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from msmqwire.errors import InvalidValue
from msmqwire.srmp.content import Content, UndeclaredElement
from msmqwire.srmp.elements import Element, Flag, Group, Ignored, Leaf
from msmqwire.srmp.markup import attribute_xml, is_xml_text, text_xml
from msmqwire.srmp.schema import ENVELOPE
from msmqwire.srmp.schema_names import SOAP, SRMP


class _Form(NamedTuple):
    """The written form of an element at its place.

    Attributes:
        most: of the element.
        write, bare: of a leaf, which stands at most once.
        start: its start tag; without > if attributes follow. An empty element is one tag.
        children: name, least and form of those that are written, in their order.
    """

    element: Element
    most: int
    write: Callable[[Any], str] | None
    bare: bool
    start: str
    end: str
    children: tuple[tuple[str, int, _Form], ...] = ()


def _form(element: Element, default: str) -> _Form:
    """Return the form of an element where a default namespace is declared."""
    tag = f"se:{element.name}" if element.namespace == SOAP else element.name
    start = f"<{tag}"
    children: tuple[tuple[str, int, _Form], ...] = ()
    if isinstance(element, Group):
        inner = default if element.namespace == SOAP else element.namespace
        if inner != default:
            start += f' xmlns="{inner}"'  # SRMP-2.2.3-05, SRMP-3.1.7.2.4-03
        if element.must_understand:
            start += ' se:mustUnderstand="1"'  # SRMP-2.2.4-03, SRMP-3.1.7.2.4-03
        children = tuple(
            (child.name, child.least, _form(child, inner))
            for child in element.children
            if not isinstance(child, Ignored)  # SRMP-2.2.4.5-02 and SRMP-2.2.5.1.3-02
        )
    write, bare = (element.write, element.bare) if isinstance(element, Leaf) else (None, False)
    assert write is None or element.most == 1, "no leaf may stand repeatedly"
    end = f"</{tag}>"
    if isinstance(element, Flag):
        start, end = f"<{tag}/>", ""
    elif not (isinstance(element, Group) and element.attributes):
        start += ">"
    return _Form(element, element.most, write, bare, start, end, children)


_ENVELOPE: Final = _form(ENVELOPE, SRMP)


def write_envelope(header: Content, kept: tuple[UndeclaredElement, ...]) -> str:
    """Return the text of an envelope. Raises InvalidValue."""
    return Writing(kept).envelope(header)


class Writing:
    """One envelope that is being written."""

    def __init__(self, kept: tuple[UndeclaredElement, ...]) -> None:
        self._kept: dict[str, list[UndeclaredElement]] = {}
        for item in sorted(kept, key=lambda item: item.position):
            self._kept.setdefault(item.path, []).append(item)

    def envelope(self, header: Content) -> str:
        text = self._children(_ENVELOPE, {"Header": header, "Body": ""}, ENVELOPE.name)
        return f'<se:Envelope xmlns:se="{SOAP}" xmlns="{SRMP}">{text}</se:Envelope>'  # SRMP-3.1.7.2.4-01

    def _children(self, form: _Form, values: Any, path: str) -> str:
        written: list[str] = []
        values = values.by_name if isinstance(values, Content) else values
        for name, least, child in form.children:
            value = values.get(name)
            if value is None:
                if least:
                    raise InvalidValue(f"no {name} ({child.element.req[0]})", path=f"{path}.{name}")
                continue
            element, most, write, bare, start, end, _ = child
            if write is not None:
                try:
                    text = write(value)
                    written.append(f"{start}{text if bare else text_xml(text)}{end}")
                except ValueError as exc:
                    raise InvalidValue(str(exc), path=f"{path}.{name}") from None
            elif most == 1:
                written.append(self._group(child, value, f"{path}.{name}"))
            else:
                if len(value) > most:
                    raise InvalidValue(f"more than {most} ({element.req[0]})", path=f"{path}.{name}")
                items = enumerate(value)
                written += [self._group(child, item, f"{path}.{name}[{number}]") for number, item in items]
        for item in self._kept.pop(path, ()) if self._kept else ():
            if not is_xml_text(item.xml):
                raise InvalidValue("a kept element with characters that can't be in XML", path=path)
            written.insert(item.position, item.xml)
        return "".join(written)  # SRMP-3.1.7.2.4-02 and -45

    def _group(self, form: _Form, value: Any, path: str) -> str:
        element, start = form.element, form.start
        if not isinstance(element, Group):  # it is empty
            return f"{start}{form.end}"
        for name in element.attributes:
            start += f" {name}={self._attribute(value, name, path)}"
        if element.attributes:
            start += ">"
        if element.void and value.get(element.void) == "":  # a sender writes neither form: SRMP-2.2.4.4-05
            raise InvalidValue("empty; leave the group out", path=f"{path}.{element.void}")
        return f"{start}{self._children(form, value, path)}{form.end}"

    def _attribute(self, value: Any, name: str, path: str) -> str:
        text = value.get(name)
        if not isinstance(text, str):
            raise InvalidValue(f"no attribute {name}", path=path)
        try:
            return attribute_xml(text)
        except ValueError as exc:
            raise InvalidValue(str(exc), path=path) from None
