"""Classes of a stream: their members by 2.3.1.1 and 2.3.1.2, made once and kept for later bodies.

Senders repeat the same classes in every body, so layouts are kept by their bytes, within bounds.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from typing import Any, Final

from msmqwire.bodies import plain
from msmqwire.bodies.body import Plain
from msmqwire.bodies.limits import Budget
from msmqwire.bodies.nrbf.cursor import ENDS, Fault, length, string
from msmqwire.bodies.nrbf.primitives import FIXED
from msmqwire.bodies.nrbf.records import NAMES, Binary, Primitive, Record

_LAYOUT_COST: Final = 1000
MEMBER_COST: Final = 320
"""Bytes of memory that a layout and a member in it take."""
_KEPT_BYTES: Final = 1 << 17
_KEPT_MEMBERS: Final = 64
_KEPT_SIZE: Final = 4096
_KEPT_EACH: Final = 256
"""Limits of the cache: bytes of descriptions, members and bytes of one, and the overhead of each."""
_KEPT_LIBRARIES: Final = 4
_KEPT_LIBRARY_SIZE: Final = 512
_OBJECT_COST: Final = 92
"""The number of an object, and its place by it."""
NO_LIBRARY: Final = -1 << 40
"""The stand-in for the library of a system class; no INT32."""
TABLES: Final = frozenset({"XmlDiffGram", "DataSet.Tables.Count", "DataTable.Columns.Count"})
"""Members of which one is in each DataSet or DataTable."""
_TYPED: Final = (Record.CLASS_WITH_MEMBERS_AND_TYPES, Record.SYSTEM_CLASS_WITH_MEMBERS_AND_TYPES)
_WITH_LIBRARY: Final = (Record.CLASS_WITH_MEMBERS_AND_TYPES, Record.CLASS_WITH_MEMBERS)
_int32: Final = struct.Struct("<i")

Step = Any
"""The way to read one or more members: the name of one that is a record; or a tuple that begins with one of
the kinds below; None at the end.
"""
ONE, RUN, CONVERTED, VARYING, ONE_CONVERTED = range(5)
"""Kinds of steps: a primitive value (with its reader, size and name), several (with their names), several of
which some are converted (with the compiled struct, names and conversions), one whose size varies (with its
type and name), and one that is converted (with its reader, size, conversion and name)."""


class Layout:
    """A class as its first object describes it.

    Attributes:
        name: the name of the class.
        library: the id of its library; of a system class one that no library has.
        libraries: the ids of libraries that types of members name.
        types: the names of classes that types of members name.
        steps: the ways to read the members, one after the other.
        characters: the characters of the names of members.
        cost: the memory of an object and its place by its id, without values that are records.
        size: the bytes of the description.
        known: whether the members are those of a DataSet or DataTable.
        templates: objects without values, by the name of the library.
    """

    __slots__ = (
        "characters", "cost", "known", "libraries", "library", "name", "names", "size", "steps", "templates",
        "types",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        names: list[str],
        types: list[tuple[int, int]],
        classes: tuple[str, ...],
        library: int,
        libraries: tuple[int, ...],
        size: int,
    ) -> None:
        self.name, self.names, self.types = name, names, classes
        self.library, self.libraries, self.size = library, libraries, size
        self.templates: dict[str, dict[str, Plain]] = {}
        self.characters = sum(map(len, names))
        self.steps, cost = _steps(names, types)
        self.cost = cost + sys.getsizeof(self.template("").copy()) + _OBJECT_COST
        self.known = not TABLES.isdisjoint(names)

    def template(self, library: str) -> dict[str, Plain]:
        """Return an object without values of the class in a library; the name is empty if it has none."""
        template = self.templates.get(library)
        if template is None:
            # NRBF-4-02
            template = {plain.TYPE: f"{self.name}, {library}" if library else self.name, plain.ID: 0}
            template |= dict.fromkeys(self.names)
            if len(library) <= _KEPT_LIBRARY_SIZE:
                if len(self.templates) >= _KEPT_LIBRARIES:
                    self.templates.clear()
                self.templates[library] = template
        return template


def _steps(names: list[str], types: list[tuple[int, int]]) -> tuple[tuple[Step, ...], int]:
    steps: list[Step] = []
    run: list[tuple[str, int]] = []
    cost = 0

    def end_run() -> None:
        if run:
            fixed = [FIXED[number] for _, number in run]
            converts: tuple[Callable[..., Plain] | None, ...] | None = tuple(one.convert for one in fixed)
            if converts is not None and not any(converts):
                converts = None
            code = struct.Struct("<" + "".join(one.code for one in fixed))
            members = tuple(name for name, _ in run)
            if converts is not None and len(run) == 1:
                steps.append((ONE_CONVERTED, code.unpack_from, code.size, converts[0], run[0][0]))
            elif converts is not None:
                steps.append((CONVERTED, code, members, converts))
            elif len(run) == 1:
                steps.append((ONE, code.unpack_from, code.size, run[0][0]))
            else:
                steps.append((RUN, code.unpack_from, code.size, members))
            run.clear()

    for name, (binary, primitive) in zip(names, types, strict=True):
        if binary == Binary.PRIMITIVE and primitive in FIXED:
            run.append((name, primitive))
            cost += FIXED[primitive].cost
            continue
        end_run()
        steps.append((VARYING, primitive, name) if binary == Binary.PRIMITIVE else name)
    end_run()
    return (*steps, None), cost


class Layouts:
    """Layouts of earlier bodies, by kind of record and by the bytes of their names, in bounds."""

    def __init__(self) -> None:
        self._by_name: dict[tuple[int, bytes], tuple[bytes, Layout]] = {}
        self._bytes = 0

    def read(self, body: bytes, at: int, record: int, budget: Budget) -> Layout:
        """Return the class that is described at an offset, that of its name. Raises Fault, LimitExceeded."""
        end = at + 1 + body[at]  # of a long name a part, which is as good to find it by
        kept = self._by_name.get((record, body[at:end]))
        if kept is not None and body.startswith(kept[0], at):
            return kept[1]
        layout = _read(body, at, record, budget)
        if layout.size <= _KEPT_SIZE and len(layout.names) <= _KEPT_MEMBERS:
            self._bytes += layout.size + _KEPT_EACH
            if self._bytes > _KEPT_BYTES:
                self._by_name.clear()
                self._bytes = layout.size + _KEPT_EACH
            self._by_name[record, body[at:end]] = (body[at : at + layout.size], layout)
        return layout


KEPT: Final = Layouts()


def _read(body: bytes, start: int, record: int, budget: Budget) -> Layout:
    path = f"{NAMES[record]}.ClassInfo"
    name, at = string(body, start, path + ".Name")
    budget.text(len(name))
    count, at = length(body, at, path + ".MemberCount")  # NRBF-2.3.1.1-03
    typed = record in _TYPED
    if count * (2 if typed else 1) > len(body) - at:
        raise Fault(f"{count} members do not fit into the body", path + ".MemberCount", at - 4)
    budget.spend(_LAYOUT_COST + MEMBER_COST * count)
    names: dict[str, None] = {}
    for _ in range(count):
        member, at = string(body, at, path + ".MemberNames")
        member = plain.member(member)
        if member in names:  # .NET gives members of base classes other names
            member = f"{member}#{len(names)}"
        names[member] = None  # NRBF-2.3.1.1-04
    types: list[tuple[int, int]] = [(Binary.OBJECT, 0)] * count
    classes: list[str] = []
    libraries: list[int] = []
    if typed:
        binaries = body[at : at + count]  # NRBF-2.3.1.2-01 and NRBF-2.3.1.2-02
        if len(binaries) < count:
            raise Fault(ENDS, "MemberTypeInfo.BinaryTypeEnums", len(body))
        at += count
        types = []
        for binary in binaries:
            primitive, at = additional(body, at, binary, at - count, classes, libraries)
            types.append((binary, primitive))  # NRBF-2.3.1.2-04
    library = NO_LIBRARY
    if record in _WITH_LIBRARY:
        if at + 4 > len(body):
            raise Fault(ENDS, f"{NAMES[record]}.LibraryId", len(body))
        library = _int32.unpack_from(body, at)[0]
        at += 4
    return Layout(name, list(names), types, tuple(classes), library, tuple(libraries), at - start)


def additional(
    body: bytes, at: int, binary: int, offset: int, classes: list[str], libraries: list[int]
) -> tuple[int, int]:
    """Read the details of a type beyond its number, AdditionalInfos of 2.3.1.2.

    Returns:
        The primitive type, 0 if it is none, and the offset after. Names of classes and ids of libraries are
        added to the lists.
    """
    if binary in (Binary.PRIMITIVE, Binary.PRIMITIVE_ARRAY):  # NRBF-2.3.1.2-03 and NRBF-2.4.3.1-08
        if at >= len(body):
            raise Fault(ENDS, "MemberTypeInfo.AdditionalInfos", len(body))
        primitive = body[at]
        # NRBF-2.3.1.2-05 and NRBF-2.4.3.1-09
        if primitive not in FIXED and primitive not in (Primitive.CHAR, Primitive.DECIMAL):
            raise Fault(
                f"{primitive} is not a primitive type of a member", "MemberTypeInfo.AdditionalInfos", at
            )
        return primitive, at + 1
    if binary in (Binary.SYSTEM_CLASS, Binary.CLASS):  # NRBF-2.3.1.2-03 and NRBF-2.4.3.1-08
        name, at = string(body, at, "MemberTypeInfo.AdditionalInfos")
        classes.append(name)
        if binary == Binary.CLASS:
            if at + 4 > len(body):
                raise Fault(ENDS, "ClassTypeInfo.LibraryId", len(body))
            libraries.append(_int32.unpack_from(body, at)[0])
            at += 4
    elif binary > Binary.PRIMITIVE_ARRAY:
        raise Fault(f"{binary} is not a type of a member", "MemberTypeInfo.BinaryTypeEnums", offset)
    return 0, at  # NRBF-2.3.1.2-03 and NRBF-2.4.3.1-08
