"""Reading an envelope by the declarations of its elements: [MC-MQSRM] 2.2 and 3.1.5.1.1."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.errors import MalformedPacket
from msmqwire.srmp.content import Content, Departure, Kept
from msmqwire.srmp.elements import SPACE, Blank, Element, Group, Ignored, Leaf
from msmqwire.srmp.markup import own_xml
from msmqwire.srmp.scan import BOM, NOT_XML, Place, scan
from msmqwire.srmp.schema import ENVELOPE
from msmqwire.srmp.schema_names import MUST_UNDERSTAND

_VOID: Final = object()


def read_document(data: bytes) -> tuple[Any, list[Place]]:
    """Return the root element of a document and the places of all its elements. Raises MalformedPacket."""
    from lxml import etree

    places = scan(data)
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        load_dtd=False,
        dtd_validation=False,
        no_network=True,
        huge_tree=False,
        recover=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        return etree.fromstring(data, parser), places
    except etree.LxmlError as exc:
        line, column = getattr(exc, "position", None) or (0, 0)
        raise MalformedPacket(
            f"not well-formed XML: {str(exc.msg)[:200]} ({NOT_XML})",
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


class Reading:
    """One envelope that is being read. It ends with `header`, `kept` and `departures`.

    Attributes:
        offsets: by path, where each element begins.
    """

    def __init__(self, data: bytes) -> None:
        root, places = read_document(data)
        elements = list(root.iter())
        if len(elements) != len(places):
            raise MalformedPacket(
                "tags that are no elements",
                path=ENVELOPE.name,
                offset=len(BOM),
                requirement=NOT_XML,
            )
        self._places = dict(zip(elements, places, strict=True))
        self.kept: list[Kept] = []
        self.departures: list[Departure] = []
        self.offsets: dict[str, int] = {ENVELOPE.name: self._places[root].start}
        if root.tag != _tag(ENVELOPE):
            raise self._malformed(f"the root is {root.tag[:200]}", ENVELOPE.req, ENVELOPE.name, root)
        self.header: Content = self._group(ENVELOPE, root, ENVELOPE.name)["Header"]

    def _group(self, group: Group, parent: Any, path: str) -> Content:
        self._check_attributes(group, parent, path)
        known = {_tag(child): child for child in group.children}
        known |= {f"{{{child.namespace}}}{name}": child for child in group.children for name in child.also}
        values: dict[str, Any] = {name: parent.get(name) for name in group.attributes}
        found: dict[str, list[Any]] = {}
        position = last = 0
        self._check_text(parent.text, group, parent, path)
        for number, node in enumerate(parent):
            self._check_text(node.tail, group, parent, path)
            element = known.get(node.tag)
            inside = f"{path}.{node.tag.rpartition('}')[2]}" if element is None else f"{path}.{element.name}"
            if group.in_order:
                self._check_order(group, element, number, node, inside)
            if element is None or isinstance(element, Ignored):
                self._keep(group, element, node, path, position, inside)
                position += 1
                continue
            of_name = found.setdefault(element.name, [])
            if element.most > 1:
                inside += f"[{len(of_name)}]"
            self.offsets[inside] = self._places[node].start
            if len(of_name) == element.most:
                raise self._malformed(f"more than {element.most}", element.req, inside, node)
            if node.tag != _tag(element):
                name = node.tag.rpartition("}")[2]
                self._depart(element.also[name], inside, f"{name} instead of {element.name}")
            value = self._value(element, node, inside)
            if value is _VOID:
                continue
            of_name.append(value)
            position += 1
            index = group.children.index(element)
            if index < last and group.order_req:
                self._depart(group.order_req, inside, f"after {group.children[last].name}")
            last = max(index, last)
        self._check_absent(group, found, parent, path)
        for name, of_name in found.items():  # in the order of the document
            if of_name and not isinstance(element := group.child(name), Blank):
                values[name] = tuple(of_name) if element.most > 1 else of_name[0]
        return Content(group, values)

    def _value(self, element: Element, node: Any, path: str) -> Any:
        if isinstance(element, Group):
            return self._void(element, node, path) or self._group(element, node, path)
        if isinstance(element, Blank):
            if len(node) or (node.text or "").strip(SPACE):
                self._depart(element.req[1], path, "not empty")
            return None
        assert isinstance(element, Leaf)
        if len(node):
            raise self._malformed("elements inside a text", element.req, path, node)
        text = node.text or ""
        try:
            return element.read(text.strip(SPACE) if element.strip else text)
        except ValueError as exc:
            raise self._malformed(str(exc), element.req[-1:], path, node) from None

    def _void(self, group: Group, node: Any, path: str) -> Any:
        """Return a mark if the group counts as absent: SRMP-2.2.4.4-04."""
        if not group.void or len(node) != 1:
            return None
        only = node[0]
        if only.tag != _tag(group.child(group.void)) or len(only) or (only.text or "").strip(SPACE):
            return None
        if not self._places[only].single:
            self._depart(group.void_req, f"{path}.{group.void}", "empty, in the long form")
        return _VOID

    def _check_attributes(self, group: Group, node: Any, path: str) -> None:
        if group.must_understand and node.get(MUST_UNDERSTAND) != "1":
            raise self._malformed('no se:mustUnderstand="1"', (group.must_understand,), path, node)
        for name in group.attributes:
            if name not in node.attrib:
                raise self._malformed(f"no attribute {name}", group.req, path, node)

    def _check_text(self, text: str | None, group: Group, node: Any, path: str) -> None:
        if text and text.strip(SPACE):
            raise self._malformed("text between elements", group.req, path, node)

    def _check_absent(self, group: Group, found: dict[str, list[Any]], node: Any, path: str) -> None:
        for child in group.children:
            if found.get(child.name):
                continue
            if child.least:
                raise self._malformed(f"no {child.name}", child.req, f"{path}.{child.name}", node)
            if child.lenient:
                self._depart(child.lenient, f"{path}.{child.name}", f"no {child.name}")

    def _check_order(self, group: Group, element: Element | None, number: int, node: Any, path: str) -> None:
        wanted = group.children[number] if number < len(group.children) else None
        if wanted is not None and element is not wanted:
            raise self._malformed(f"here should be {wanted.name}", wanted.req, path, node)

    def _keep(
        self, group: Group, element: Ignored | None, node: Any, path: str, position: int, inside: str
    ) -> None:
        if element is None and group.refuses and node.get(MUST_UNDERSTAND) in ("1", "true"):
            raise self._malformed(f"{node.tag[:200]} is not understood", (group.refuses,), inside, node)
        if element is not None and element.departure:
            self._depart(element.req[0], inside, "not in the specification")
        self.kept.append(Kept(path, position, own_xml(node), element is not None))
        self.offsets.setdefault(inside, self._places[node].start)

    def _depart(self, requirement: str, path: str, text: str) -> None:
        self.departures.append(Departure(requirement, path, text))

    def _malformed(self, why: str, req: tuple[str, ...], path: str, node: Any) -> MalformedPacket:
        offset = self._places[node].start
        return MalformedPacket(f"{why} ({req[0]})", path=path, offset=offset, requirement=req[0])


def _tag(element: Element) -> str:
    return f"{{{element.namespace}}}{element.name}"
