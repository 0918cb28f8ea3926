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
from msmqwire.srmp.content import Content, Kept
from msmqwire.srmp.elements import Element, Flag, Group, Ignored, Leaf
from msmqwire.srmp.markup import attribute_xml, is_xml_text, text_xml
from msmqwire.srmp.schema import ENVELOPE
from msmqwire.srmp.schema_names import SOAP, SRMP


class _Form(NamedTuple):
    """How an element is written where it stands.

    Attributes:
        write: the function of a leaf.
        start: its start tag; without > if attributes follow. An empty element is one tag.
        children: those that are written, in their order.
    """

    element: Element
    name: str
    least: int
    most: int
    write: Callable[[Any], str] | None
    start: str
    end: str
    children: tuple[_Form, ...] = ()


def _form(element: Element, default: str) -> _Form:
    """Return the form of an element where a default namespace is declared."""
    tag = f"se:{element.name}" if element.namespace == SOAP else element.name
    start = f"<{tag}"
    children: tuple[_Form, ...] = ()
    if isinstance(element, Group):
        inner = default if element.namespace == SOAP else element.namespace
        if inner != default:
            start += f' xmlns="{inner}"'
        if element.must_understand:
            start += ' se:mustUnderstand="1"'
        children = tuple(_form(child, inner) for child in element.children if not isinstance(child, Ignored))
    write = element.write if isinstance(element, Leaf) else None
    end = f"</{tag}>"
    if isinstance(element, Flag):
        start, end = f"<{tag}/>", ""
    elif not (isinstance(element, Group) and element.attributes):
        start += ">"
    return _Form(element, element.name, element.least, element.most, write, start, end, children)


_ENVELOPE: Final = _form(ENVELOPE, SRMP)


def write_envelope(header: Content, kept: tuple[Kept, ...]) -> str:
    """Return the text of an envelope. Raises InvalidValue."""
    return Writing(kept).envelope(header)


class Writing:
    """One envelope that is being written."""

    def __init__(self, kept: tuple[Kept, ...]) -> None:
        self._kept: dict[str, list[Kept]] = {}
        for item in sorted(kept, key=lambda item: item.position):
            self._kept.setdefault(item.path, []).append(item)

    def envelope(self, header: Content) -> str:
        text = self._children(_ENVELOPE, {"Header": header, "Body": ""}, ENVELOPE.name)
        return f'<se:Envelope xmlns:se="{SOAP}" xmlns="{SRMP}">{text}</se:Envelope>'  # SRMP-3.1.7.2.4-01

    def _children(self, form: _Form, values: Any, path: str) -> str:
        written: list[str] = []
        values = values.by_name if isinstance(values, Content) else values
        for child in form.children:
            value = values.get(child.name)
            if value is None:
                if child.least:
                    raise InvalidValue(
                        f"no {child.name} ({child.element.req[0]})", path=f"{path}.{child.name}"
                    )
                continue
            inside = f"{path}.{child.name}"
            if child.most > 1:
                if len(value) > child.most:
                    raise InvalidValue(f"more than {child.most} ({child.element.req[0]})", path=inside)
                written += [self._element(child, item, f"{inside}[{n}]") for n, item in enumerate(value)]
            else:
                written.append(self._element(child, value, inside))
        for item in self._kept.pop(path, ()) if self._kept else ():
            if not is_xml_text(item.xml):
                raise InvalidValue("a kept element with characters that can't be in XML", path=path)
            written.insert(item.position, item.xml)
        return "".join(written)

    def _element(self, form: _Form, value: Any, path: str) -> str:
        element = form.element
        try:
            if form.write is not None:
                return f"{form.start}{text_xml(form.write(value))}{form.end}"
            if not isinstance(element, Group):
                return f"{form.start}{form.end}"
            start = self._with_attributes(element, form.start, value) if element.attributes else form.start
            self._check_void(element, value, path)
        except InvalidValue:
            raise
        except ValueError as exc:
            raise InvalidValue(str(exc), path=path) from None
        return f"{start}{self._children(form, value, path)}{form.end}"

    def _with_attributes(self, group: Group, start: str, value: Any) -> str:
        for name in group.attributes:
            text = value.get(name)
            if not isinstance(text, str):
                raise ValueError(f"no attribute {name}")
            start += f" {name}={attribute_xml(text)}"
        return f"{start}>"

    def _check_void(self, group: Group, value: Any, path: str) -> None:
        """A sender writes neither form of an empty child: SRMP-2.2.4.4-05."""
        if group.void and value.get(group.void) == "":
            raise InvalidValue("empty; leave the group out", path=f"{path}.{group.void}")
