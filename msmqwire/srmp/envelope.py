"""The SOAP envelope of an SRMP message: parsed, built, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.names.printable import counted
from msmqwire.srmp.content import Content, Departure, UndeclaredElement
from msmqwire.srmp.elements import Group, Leaf
from msmqwire.srmp.reading import Reading, element_offsets
from msmqwire.srmp.rules import Weight, broken
from msmqwire.srmp.scan import SIZE_MAX
from msmqwire.srmp.schema import HEADER
from msmqwire.srmp.writing import write_envelope


@dataclass(frozen=True)
class Envelope:
    """An envelope. It does not change; `replace` makes another. Compared by `header` and `kept`.

    The groups of the header are attributes under the names of the specification: ``envelope.path.to``,
    ``envelope.Msmq.Class``. A group that is not there is None.

    Attributes:
        header: the groups of se:Header; a mapping of mappings may be given.
        kept: the elements without a value, in the order of their paths: those that are ignored, and those
            that nobody declared.
        departures: those of the parsed bytes from the specification.
        source: the bytes that it was parsed from; None for a new one.
    """

    header: Content
    kept: tuple[UndeclaredElement, ...] = ()
    departures: tuple[Departure, ...] = field(default=(), init=False, compare=False)
    source: bytes | None = field(default=None, init=False, compare=False, repr=False)

    __hash__ = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        header: Any = self.header
        if not isinstance(header, Mapping):
            raise InvalidValue("the header is a group of elements", path="Envelope.Header")
        if not isinstance(header, Content) or header.group.name != HEADER.name:
            object.__setattr__(self, "header", Content(HEADER, header, "Envelope.Header"))
        object.__setattr__(self, "kept", tuple(sorted(self.kept)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("header", "kept", "departures", "source"):
            raise AttributeError(name)
        return getattr(self.header, name)

    @cached_property
    def offsets(self) -> Mapping[str, int]:
        """The offset of each element in `source`, by path; of several unknown ones with a name the first."""
        return {} if self.source is None else element_offsets(self.source)

    @property
    def unknown(self) -> tuple[UndeclaredElement, ...]:
        """The kept elements that the specification does not have."""
        return tuple(item for item in self.kept if not item.known)

    def replace(self, **groups: Any) -> Self:
        """Return a copy with other groups; None leaves one out. Raises InvalidValue."""
        return type(self)(self.header.replace(**groups), self.kept)

    def to_json(self) -> dict[str, Any]:
        """Return JSON-ready data. Raises InvalidValue for a value that can't be built."""
        return {
            "Header": _to_json(self.header, "Envelope.Header"),
            "kept": [item._asdict() for item in self.kept],
            "departures": [item._asdict() for item in self.departures],
        }


def parse_envelope(data: bytes) -> Envelope:
    """Return the envelope that these bytes are. Raises MalformedPacket with path and offset."""
    data = bytes(data)
    reading = Reading(data)
    departures = reading.departures
    for weight, departure in broken(reading.header):
        if weight is Weight.MALFORMED:
            why = f"{departure.text} ({departure.requirement})"
            offset = element_offsets(data)[departure.path]
            raise MalformedPacket(why, path=departure.path, offset=offset, requirement=departure.requirement)
        departures.append(departure)
    envelope = Envelope(reading.header, tuple(reading.kept))
    object.__setattr__(envelope, "departures", tuple(departures))
    object.__setattr__(envelope, "source", data)
    return envelope


def build_envelope(envelope: Envelope) -> bytes:
    """Return the bytes of an envelope: those that it was parsed from, else as 3.1.7.2.4 has them.

    Raises InvalidValue with a path.
    """
    if envelope.source is not None:
        return envelope.source
    data = write_envelope(envelope.header, envelope.kept).encode("utf-8")
    for weight, departure in broken(envelope.header):
        if weight is not Weight.NOTE:
            raise InvalidValue(f"{departure.text} ({departure.requirement})", path=departure.path)
    if len(data) > SIZE_MAX:
        raise InvalidValue(f"{counted(len(data), 'byte')}, more than {SIZE_MAX:,}", path="Envelope")
    if envelope.kept:
        _check_kept(envelope, data)
    return data


def envelope_from_json(obj: Any) -> Envelope:
    """Return the envelope of such data as `Envelope.to_json` makes; `departures` is not read.

    Raises InvalidValue with a path.
    """
    if not isinstance(obj, Mapping) or not {"Header"} <= obj.keys() <= {"Header", "kept", "departures"}:
        raise InvalidValue("an envelope is an object with Header, kept and departures", path="Envelope")
    header = _from_json(HEADER, obj["Header"], "Envelope.Header")
    kept = obj.get("kept", [])
    if not isinstance(kept, list):
        raise InvalidValue("kept is a list", path="Envelope")
    return Envelope(header, tuple(map(_kept_from_json, kept)))


def _check_kept(envelope: Envelope, data: bytes) -> None:
    """XML that is given from outside must not say anything else than that it stands where it stands."""
    try:
        parsed = parse_envelope(data)
    except MalformedPacket as exc:
        raise InvalidValue(f"with the kept elements: {exc.why}", path=exc.path) from None
    if parsed != envelope:
        raise InvalidValue("a kept element is not read again as it is", path="Envelope")


def _to_json(content: Content, path: str) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in content.items():
        element = None if name in content.group.attributes else content.group.child(name)
        inside = f"{path}.{name}"
        if isinstance(element, Group):
            several = element.most > 1
            result[name] = [_to_json(v, inside) for v in value] if several else _to_json(value, inside)
        elif isinstance(element, Leaf):
            try:
                result[name] = element.to_json(value)
            except ValueError as exc:
                raise InvalidValue(str(exc), path=inside) from None
        else:
            result[name] = value
    return result


def _from_json(group: Group, obj: Any, path: str) -> Content:
    if not isinstance(obj, Mapping):
        raise InvalidValue(f"{group.name} is an object", path=path)
    values: dict[str, Any] = {}
    for name, value in obj.items():
        element = next((child for child in group.children if child.name == name), None)
        inside = f"{path}.{name}"
        if isinstance(element, Group) and element.most > 1:
            if not isinstance(value, list):
                raise InvalidValue(f"{name} is a list", path=inside)
            values[name] = tuple(_from_json(element, item, f"{inside}[{n}]") for n, item in enumerate(value))
        elif isinstance(element, Group) and value is not None:
            values[name] = _from_json(element, value, inside)
        elif isinstance(element, Leaf) and value is not None:
            try:
                values[name] = element.from_json(value)
            except ValueError as exc:
                raise InvalidValue(str(exc), path=inside) from None
        else:
            values[name] = value
    return Content(group, values, path)


def _kept_from_json(obj: Any) -> UndeclaredElement:
    match obj:
        case {"path": str(path), "position": int(position), "xml": str(xml), **rest} if position >= 0:
            known = rest.pop("known", False)
            if isinstance(known, bool) and not rest:
                return UndeclaredElement(path, position, xml, known)
    raise InvalidValue("a kept element is an object with path, position, xml and known", path="Envelope")
