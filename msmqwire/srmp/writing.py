"""Writing an envelope by the declarations of its elements: [MC-MQSRM] 3.1.7.2.4.

There is no white space between elements, and one blank between the two declarations of Envelope: in that
form the envelope of 4.5 has exactly the 779 bytes that its Content-Length says, and any line break would be
one too many. Those of 1.3.12 and 4.2 are then one byte short of their 775, and the receipts of 4.3 two of
their 959 and 994: one byte for each name of a computer in them, so the names in the captures must have been
one character longer than the ``machine1`` and ``machine2`` of the print.
"""

from __future__ import annotations

from typing import Any

from msmqwire.errors import InvalidValue
from msmqwire.srmp.content import Content, Kept
from msmqwire.srmp.elements import Blank, Element, Flag, Group, Ignored, Leaf
from msmqwire.srmp.markup import attribute_xml, is_xml_text, text_xml
from msmqwire.srmp.schema import ENVELOPE
from msmqwire.srmp.schema_names import SOAP, SRMP


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
        envelope = {"Header": header, "Body": ""}
        text = self._children(ENVELOPE, envelope, ENVELOPE.name, SRMP)
        return f'<se:Envelope xmlns:se="{SOAP}" xmlns="{SRMP}">{text}</se:Envelope>'  # SRMP-3.1.7.2.4-01

    def _children(self, group: Group, values: Any, path: str, default: str) -> str:
        written: list[str] = []
        for child in group.children:
            if isinstance(child, Ignored):
                continue
            inside = f"{path}.{child.name}"
            value = values.get(child.name)
            if value is None:
                if child.least:
                    raise InvalidValue(f"no {child.name} ({child.req[0]})", path=inside)
                continue
            if child.most > 1:
                if len(value) > child.most:
                    raise InvalidValue(f"more than {child.most} ({child.req[0]})", path=inside)
                items = (self._element(child, v, f"{inside}[{n}]", default) for n, v in enumerate(value))
                written.extend(items)
            else:
                written.append(self._element(child, value, inside, default))
        for item in self._kept.pop(path, ()):
            if not is_xml_text(item.xml):
                raise InvalidValue("a kept element with characters that can't be in XML", path=path)
            written.insert(item.position, item.xml)
        return "".join(written)

    def _element(self, element: Element, value: Any, path: str, default: str) -> str:
        name = f"se:{element.name}" if element.namespace == SOAP else element.name
        try:
            if isinstance(element, Group):
                inner = default if element.namespace == SOAP else element.namespace
                start = name if inner == default else f'{name} xmlns="{inner}"'
                if element.must_understand:
                    start += ' se:mustUnderstand="1"'
                for attribute in element.attributes:
                    start += f" {attribute}={attribute_xml(self._attribute(value, attribute))}"
                self._check_void(element, value, path)
                return f"<{start}>{self._children(element, value, path, inner)}</{name}>"
            if isinstance(element, Flag):
                return f"<{name}{element.write(value)}/>"
            if isinstance(element, Blank):
                return f"<{name}></{name}>"
            assert isinstance(element, Leaf)
            return f"<{name}>{text_xml(element.write(value))}</{name}>"
        except InvalidValue:
            raise
        except ValueError as exc:
            raise InvalidValue(str(exc), path=path) from None

    def _attribute(self, value: Any, name: str) -> str:
        text = value.get(name)
        if not isinstance(text, str):
            raise ValueError(f"no attribute {name}")
        return text

    def _check_void(self, group: Group, value: Any, path: str) -> None:
        """A sender writes neither form of an empty child: SRMP-2.2.4.4-05."""
        if group.void and value.get(group.void) == "":
            raise InvalidValue("empty; leave the group out", path=f"{path}.{group.void}")
