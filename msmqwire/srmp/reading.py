"""Reading an envelope by the declarations of its elements: [MC-MQSRM] 2.2 and 3.1.5.1.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msmqwire.errors import MalformedPacket
from msmqwire.srmp.content import Content, Departure, UndeclaredElement
from msmqwire.srmp.elements import NO_CHILD, SPACE, Child, Element, Group, Ignored
from msmqwire.srmp.markup import own_xml
from msmqwire.srmp.scan import BOM, NOT_XML, Place, is_within_limits, scan
from msmqwire.srmp.schema import ENVELOPE
from msmqwire.srmp.schema_names import MUST_UNDERSTAND
from msmqwire.srmp.xml_reader import UndeclaredPrefix, parse_xml


def read_document(data: bytes) -> tuple[Any, list[Place] | None]:
    """Return the root element of a document, and the places of all elements if that was looked at.

    Raises MalformedPacket.
    """
    places = None if is_within_limits(data) else scan(data)
    try:
        return parse_xml(data), places
    except UndeclaredPrefix as exc:
        start = (places or scan(data))[exc.number].start
        why = f"not well-formed XML: {exc.msg} ({NOT_XML})"
        raise MalformedPacket(why, path=ENVELOPE.name, offset=start, requirement=NOT_XML) from None
    except SyntaxError as exc:  # the base of lxml's errors about a document
        scan(data)  # which knows better where a tag does not end
        line, column = getattr(exc, "position", None) or (0, 0)
        raise MalformedPacket(
            f"not well-formed XML: {str(getattr(exc, 'msg', exc))[:200]} ({NOT_XML})",
            path=ENVELOPE.name,
            offset=_offset(data, line, column),
            requirement=NOT_XML,
        ) from None


def _offset(data: bytes, line: int, column: int) -> int | None:
    """Return the byte at a line and column of the XML reader, which counts both from 1."""
    if line < 1:
        return None
    start = 0
    for _ in range(line - 1):  # not split: 4 MiB may be millions of lines
        start = data.find(b"\n", start) + 1
        if not start:
            return None
    end = data.find(b"\n", start)
    text = data[start : len(data) if end < 0 else end].decode("utf-8", "replace")
    return start + len(text[: max(column - 1, 0)].encode("utf-8"))


def element_offsets(data: bytes) -> Mapping[str, int]:
    """Return where each element of an envelope begins, by path. Raises MalformedPacket."""
    offsets: dict[str, int] = {}
    Reading(data, offsets)
    return offsets


class Reading:
    """One envelope that is being read. It ends with `header`, `kept` and `departures`.

    Offsets of elements are computed when something asks for them: an error, or `offsets`.
    """

    def __init__(self, data: bytes, offsets: dict[str, int] | None = None) -> None:
        """Read an envelope; put where each element begins into `offsets`. Raises MalformedPacket."""
        self._data, self._offsets = data, offsets
        self._root, places = read_document(data)
        self._places = None if places is None else self._located(places)
        self.kept: list[UndeclaredElement] = []
        self.departures: list[Departure] = []
        if offsets is not None:
            offsets[ENVELOPE.name] = self._place(self._root).start
        if self._root.tag != ENVELOPE.tag:
            raise self._malformed(
                f"the root is {self._root.tag[:200]}", ENVELOPE.req, ENVELOPE.name, self._root
            )
        self.header: Content = self._group(ENVELOPE, self._root, ENVELOPE.name)["Header"]

    def _located(self, places: list[Place]) -> dict[Any, Place]:
        elements = list(self._root.iter())
        if len(elements) != len(places):
            raise MalformedPacket(
                "tags that are not elements", path=ENVELOPE.name, offset=len(BOM), requirement=NOT_XML
            )
        return dict(zip(elements, places, strict=True))

    def _place(self, node: Any) -> Place:
        if self._places is None:
            self._places = self._located(scan(self._data))
        return self._places[node]

    def _group(self, group: Group, parent: Any, path: str) -> Content:
        values: dict[str, Any] = {}
        if group.must_understand or group.attributes:
            values = self._attributes(group, parent, path)
        if (text := parent.text) and text.strip(SPACE):
            raise self._text(group, parent, path)
        by_tag, in_order, offsets = group.by_tag, group.in_order, self._offsets
        position = last = 0
        for node in parent:
            if (text := node.tail) and text.strip(SPACE):
                raise self._text(group, parent, path)
            known: Child = by_tag.get(node.tag, NO_CHILD)  # SRMP-2.2.3-06, SRMP-2.2.5-02
            index, element, name, most, read, strip, other_name = known
            if in_order:
                self._check_order(group, element, position, node, path)
            if element is None or isinstance(element, Ignored):
                self._keep(group, element, node, path, position)
                position += 1
                continue
            inside = f"{path}.{name}"
            before: tuple[Any, ...] = ()
            if most > 1:
                before = values.get(name, ())
                inside += f"[{len(before)}]"
            if offsets is not None:
                offsets[inside] = self._place(node).start
            if name in values and (most == 1 or len(before) == most):
                raise self._malformed(f"more than {most}", element.req, inside, node)
            if other_name:
                self._depart(other_name, inside, f"{_local(node)} instead of {name}")
            if read is not None:
                if len(node):
                    raise self._malformed("elements inside a text", element.req, inside, node)
                text = node.text or ""
                try:
                    value = read(text.strip(SPACE) if strip else text)
                except ValueError as exc:
                    raise self._malformed(str(exc), element.req[-1:], inside, node) from None
            elif isinstance(element, Group):
                if element.void and self._is_void(element, node, inside):
                    continue
                value = self._group(element, node, inside)
            else:
                value = None
                self._check_blank(element, node, inside)
            values[name] = value if most == 1 else (*before, value)
            position += 1
            if index >= last:
                last = index
            elif group.order_req:  # SRMP-2.2.4-05 and SRMP-2.2.5-03
                self._depart(group.order_req, inside, f"after {group.children[last].name}")
        for child in group.expected:
            if child.name not in values:
                self._absent(child, parent, path)
        return Content.of_read(group, values)

    def _check_blank(self, element: Element, node: Any, path: str) -> None:
        if len(node) or (node.text or "").strip(SPACE):
            self._depart(element.req[1], path, "not empty")

    def _is_void(self, group: Group, node: Any, path: str) -> bool:
        """Whether the group counts as absent: SRMP-2.2.4.4-04."""
        if len(node) != 1:
            return False
        only = node[0]
        if only.tag != group.child(group.void).tag or len(only) or (only.text or "").strip(SPACE):
            return False
        if not self._place(only).single:
            self._depart(group.void_req, f"{path}.{group.void}", "empty, in the long form")
        return True

    def _attributes(self, group: Group, node: Any, path: str) -> dict[str, Any]:
        # SRMP-2.2.4-04, SRMP-2.2.5.1-02, SRMP-2.2.5.2-02 and SRMP-2.2.5.3-02
        if group.must_understand and node.get(MUST_UNDERSTAND) != "1":
            raise self._malformed('no se:mustUnderstand="1"', (group.must_understand,), path, node)
        for name in group.attributes:
            if name not in node.attrib:
                raise self._malformed(f"no attribute {name}", group.req, path, node)
        return {name: node.get(name) for name in group.attributes}

    def _check_order(self, group: Group, element: Element | None, number: int, node: Any, path: str) -> None:
        wanted = group.children[number] if number < len(group.children) else None
        if wanted is not None and element is not wanted:
            inside = f"{path}.{_local(node) if element is None else element.name}"
            raise self._malformed(f"here should be {wanted.name}", wanted.req, inside, node)

    def _absent(self, child: Element, parent: Any, path: str) -> None:
        inside, why = f"{path}.{child.name}", f"no {child.name}"
        if child.least:
            raise self._malformed(why, child.req, inside, parent)
        self._depart(child.lenient, inside, why)

    def _keep(self, group: Group, element: Ignored | None, node: Any, path: str, position: int) -> None:
        name = _local(node) if element is None else element.name
        inside = f"{path}.{name}"
        # SRMP-2.2.5-04 and SRMP-2.2.5.2.2-06
        if element is None and group.refuses and node.get(MUST_UNDERSTAND) in ("1", "true"):
            raise self._malformed(f"{node.tag[:200]} is not understood", (group.refuses,), inside, node)
        if element is not None and element.departure:
            self._depart(element.req[0], inside, "not in the specification")
        self.kept.append(UndeclaredElement(path, position, own_xml(node), element is not None))
        if self._offsets is not None:
            self._offsets.setdefault(inside, self._place(node).start)

    def _text(self, group: Group, node: Any, path: str) -> MalformedPacket:
        return self._malformed("text between elements", group.req, path, node)

    def _depart(self, requirement: str, path: str, text: str) -> None:
        self.departures.append(Departure(requirement, path, text))

    def _malformed(self, why: str, req: tuple[str, ...], path: str, node: Any) -> MalformedPacket:
        offset = self._place(node).start
        return MalformedPacket(f"{why} ({req[0]})", path=path, offset=offset, requirement=req[0])


def _local(node: Any) -> str:
    return str(node.tag.rpartition("}")[2])
