"""The records of a stream, read to objects that refer to each other by their ids: [MS-NRBF] 2.3 to 2.7.

A reference stays the four bytes of its id until the objects are put into each other (`graph`): an object
may be referred to before it is there, and the chain of references may be of any length.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import repeat
from typing import Any, Final

from msmqwire.bodies import plain
from msmqwire.bodies.body import Plain
from msmqwire.bodies.limits import ITEM_COST, Budget, LimitExceeded
from msmqwire.bodies.nrbf import layouts
from msmqwire.bodies.nrbf.arrays import VARIABLE_COST, Arrays
from msmqwire.bodies.nrbf.cursor import ENDS, Fault, length, prefix, primitive, string
from msmqwire.bodies.nrbf.layouts import Layout
from msmqwire.bodies.nrbf.methods import read_call, read_return
from msmqwire.bodies.nrbf.primitives import DECIMAL_DIGITS, Junk, is_decimal
from msmqwire.bodies.nrbf.records import NAMES, Record
from msmqwire.bodies.nrbf.stream import Stream

HEADER: Final = struct.Struct("<biiii")
"""A SerializationHeaderRecord, 2.6.1."""
REFERENCE_COST: Final = 48
"""Bytes of memory of a reference."""
_ARRAY_COST: Final = 240
_STRING_COST: Final = 136
"""Bytes of an array and a text and their places by their ids, without their contents."""
_LEAF_COST: Final = 64
"""Bytes of an entry in the leaves."""
_LIBRARY_COST: Final = 120
_FLUSH: Final = 1 << 16
"""Bytes of memory that are counted together."""
_TEXTS: Final = 1 << 20
"""Characters that are counted together."""
_int32: Final = struct.Struct("<i").unpack_from
_two_int32: Final = struct.Struct("<ii").unpack_from
_start_of_string: Final = struct.Struct("<iB").unpack_from


def read_stream(body: bytes, budget: Budget) -> Stream:
    """Read the records after the header up to the end, a fault or a limit, which are problems."""
    stream = Stream(_int32(body, 1)[0])
    reader = _Reader(body, stream, budget)
    try:
        reader.read()
    except Fault as exc:
        if not reader.arrays.is_cut:
            stream.problem(exc.why, exc.path, exc.offset)
        reader.drop_what_was_not_read()
    except (IndexError, struct.error):
        if not reader.arrays.is_cut:
            stream.problem(ENDS, reader.path(), len(body))
        reader.drop_what_was_not_read()
    except LimitExceeded as exc:
        stream.problem(exc.why, reader.path(), reader.at)
        reader.drop_what_was_not_read()
    stream.end = reader.at
    return stream


class _Reader:
    """The state of reading: the place, and the open structures."""

    def __init__(self, body: bytes, stream: Stream, budget: Budget) -> None:
        self._body, self._stream, self._budget = body, stream, budget
        self.at = HEADER.size
        self.arrays = Arrays(body, stream, budget)
        # The containers around the innermost: see `read`.
        self._open: list[tuple[Any, tuple[Any, ...] | None, int, int, bool]] = []
        self._current: tuple[Any, tuple[Any, ...] | None, int] = (None, None, -1)

    def path(self) -> str:
        """Return the item read: a primitive member, or a record."""
        _, steps, at_step = self._current
        if steps is not None and 0 < at_step < len(steps) and steps[at_step - 1].__class__ is tuple:
            name: Any = steps[at_step - 1][-1 if steps[at_step - 1][0] != layouts.CONVERTED else 2]
            return name if isinstance(name, str) else str(name[0])
        try:
            return NAMES.get(self._body[self.at], "")
        except IndexError:
            return ""

    def drop_what_was_not_read(self) -> None:
        """Take away the members of open objects that have no value yet."""
        container, steps, at_step = self._current
        if steps is not None:
            _drop(container, steps[max(at_step - 1, 0) :])
        for container, steps, at_step, _, _ in self._open:
            if steps is not None:
                _drop(container, steps[at_step:])

    def read(self) -> None:
        """Read records up to MessageEnd. Raises Fault, LimitExceeded, IndexError and struct.error."""
        body, stream, budget = self._body, self._stream, self._budget
        size, depth_max = len(body), budget.depth
        objects, classes, leaves, opened = stream.objects, stream.classes, stream.leaves, self._open
        # Open containers: an object with its steps and the number of the next; an array, with None and the
        # number of items that are missing; or nothing, with -1. Then its id, and whether it has no references
        # so far.
        container: Any = None
        steps: tuple[Any, ...] | None = None
        at_step, owner, clean = -1, 0, False
        step: Any = None
        value: Any
        at = start = self.at
        known = texts = memory = references = 0
        try:
            while True:
                if steps is not None:
                    step = steps[at_step]  # NRBF-2.3-01 and NRBF-2.3-02
                    at_step += 1  # NRBF-2.3-01 and NRBF-2.3-02
                    if step.__class__ is not str:
                        if step is None:  # the end
                            if clean:
                                leaves.add(owner)
                                memory += _LEAF_COST
                            container, steps, at_step, owner, clean = opened.pop()
                            continue
                        start = at
                        kind = step[0]
                        if kind == layouts.ONE:
                            _, unpack, width, name = step
                            container[name] = unpack(body, at)[0]  # NRBF-2.5.2-01
                            at += width  # NRBF-2.5.2-01
                        elif kind == layouts.RUN:
                            _, unpack, width, name = step
                            container.update(zip(name, unpack(body, at), strict=True))  # NRBF-2.5.2-01
                            at += width
                        elif kind == layouts.ONE_CONVERTED:
                            _, unpack, width, convert, name = step
                            try:
                                container[name] = convert(unpack(body, at)[0])
                            except Junk as exc:
                                container[name] = exc.value
                                stream.problem(exc.why, name, at)
                            at += width
                        elif kind == layouts.CONVERTED:
                            self._convert(container, step, at)
                            at += step[1].size
                        else:
                            _, number, name = step
                            memory += VARIABLE_COST
                            end = at + 1 + body[at]
                            if number == 5 and end - at < DECIMAL_DIGITS and end <= size:
                                text = str(body[at + 1 : end], "latin-1")
                                if is_decimal(text):
                                    container[name] = {plain.DECIMAL: text}
                                    at = end
                                    continue
                            container[name], at, wrong = primitive(body, at, number, name)
                            if wrong:
                                stream.problem(wrong, name, start)
                        continue
                elif at_step == 0:
                    if clean:
                        leaves.add(owner)
                        memory += _LEAF_COST
                    container, steps, at_step, owner, clean = opened.pop()
                    continue
                start = at
                record = body[at]
                if record == 6:  # BinaryObjectString
                    number, count = _start_of_string(body, at + 1)
                    at += 6
                    if count > 0x7F:
                        count, at = prefix(body, at - 1, "BinaryObjectString.Value")
                    end = at + count  # NRBF-2.1.1.6-05
                    if end > size:
                        raise Fault(ENDS, "BinaryObjectString.Value", size)
                    try:
                        value = body[at:end].decode()
                    except UnicodeDecodeError as exc:
                        value = body[at:end].decode("utf-8", "replace")
                        stream.problem("not well-formed UTF-8", "BinaryObjectString.Value", at + exc.start)
                    at = end
                    texts += count
                    memory += _STRING_COST + (count if value.isascii() else 4 * count)
                    if number in objects:
                        self._twice(number, start + 1)
                    else:
                        objects[number] = value
                    if number <= 0:
                        # NRBF-2.5.7-02
                        stream.problem("the id is not positive", "BinaryObjectString.ObjectId", start + 1)
                    if memory > _FLUSH:
                        budget.spend(memory)
                        memory = 0
                elif record == 9:  # MemberReference
                    value = body[at + 1 : at + 5]
                    at += 5
                    if at > size:
                        raise Fault(ENDS, "MemberReference.IdRef", size)
                    if value[3] > 0x7F or value == b"\0\0\0\0":  # NRBF-2.5.3-02 and NRBF-2.3.1.1-01
                        stream.problem("the id is not positive", "MemberReference.IdRef", start + 1)
                    references += 1
                    memory += REFERENCE_COST
                    clean = False
                    if memory > _FLUSH:
                        budget.spend(memory)
                        budget.references(references)
                        memory = references = 0
                elif record == 10:  # ObjectNull
                    value = None
                    at += 1
                elif record == 1 or 2 <= record <= 5:  # classes
                    if record == 1:
                        number, of = _two_int32(body, at + 1)
                        if of not in classes:  # NRBF-2.3.2.5-02
                            why = f"no class is described by the id {of}"
                            raise Fault(why, "ClassWithId.MetadataId", at + 5)
                        layout, template, characters = classes[of]
                        at += 9
                    else:
                        number = _int32(body, at + 1)[0]
                        layout = layouts.KEPT.read(body, at + 5, record, budget)
                        at += 5 + layout.size
                        template = self._template(layout, at)
                        characters = layout.characters + len(template[plain.TYPE])
                        if number not in classes:
                            classes[number] = (layout, template, characters)
                    memory += layout.cost
                    texts += characters
                    if memory > _FLUSH or texts > _TEXTS:  # before it is made
                        budget.spend(memory)
                        budget.copied(texts)
                        budget.records(len(objects) - known)
                        memory, texts, known = 0, 0, len(objects)
                    made = template.copy()
                    made[plain.ID] = number
                    fresh = number not in objects
                    if fresh:
                        objects[number] = made
                        value = body[start + 1 : start + 5]
                        if layout.known:
                            stream.tables.append(number)
                    else:
                        self._twice(number, start + 1)
                        value = made
                    if steps is not None:
                        container[step] = value
                    elif at_step > 0:
                        container.append(value)
                        at_step -= 1
                    opened.append((container, steps, at_step, owner, False))
                    if len(opened) > depth_max:
                        raise LimitExceeded(f"there are more than {depth_max} objects within each other")
                    container, steps, at_step, owner, clean = made, layout.steps, 0, number, fresh
                    continue
                elif record == 12:  # BinaryLibrary
                    at = self._library(at + 1)  # NRBF-2.7-01
                    if steps is not None:
                        at_step -= 1
                    continue
                elif record == 7 or 15 <= record <= 17:  # arrays
                    self.at = start
                    number, made, items, count, at = self.arrays.read(record, at + 1)
                    memory += _ARRAY_COST
                    fresh = number not in objects
                    if fresh:
                        objects[number] = made
                        value = body[start + 1 : start + 5]
                        if items is None:
                            leaves.add(number)
                    else:
                        self._twice(number, start + 1)
                        value = made
                    clean = False
                    if items is not None:
                        if steps is not None:
                            container[step] = value
                        elif at_step > 0:
                            container.append(value)
                            at_step -= 1
                        opened.append((container, steps, at_step, owner, False))
                        if len(opened) > depth_max:
                            raise LimitExceeded(f"there are more than {depth_max} objects within each other")
                        # NRBF-2.4-02
                        container, steps, at_step, owner, clean = items, None, count, number, fresh
                        continue
                elif record == 8:  # MemberPrimitiveTyped
                    # NRBF-2.5.1-02
                    value, at, wrong = primitive(body, at + 2, body[at + 1], "MemberPrimitiveTyped.Value")
                    memory += VARIABLE_COST
                    if wrong:
                        stream.problem(wrong, "MemberPrimitiveTyped.Value", start + 2)
                    if memory > _FLUSH:
                        budget.spend(memory)
                        memory = 0
                elif record in (13, 14):  # ObjectNullMultiple256, ObjectNullMultiple
                    self.at = start
                    count, at = self._null_count(record, at + 1)
                    if steps is not None:
                        at_step = self._nulls(steps, at_step, count)
                    elif at_step > 0:
                        if count > at_step:  # NRBF-2.4-04
                            why = f"{count} nulls, where {at_step} items are left"
                            stream.problem(why, NAMES[record], start)
                            count = at_step
                        budget.items(count)
                        container.extend(repeat(None, count))
                        at_step -= count
                    else:
                        stream.problem("the value belongs to no object", NAMES[record], start)
                    continue
                elif at_step >= 0:
                    # NRBF-2.4-01
                    raise Fault(f"record {record} is not a value", NAMES.get(record, ""), start)
                elif record == 11:  # MessageEnd, NRBF-2.6.3-01
                    start = at + 1
                    break
                elif record in (21, 22):
                    at = self._method(record, at + 1)
                    continue
                else:
                    # NRBF-2.1.2.1-01
                    raise Fault(f"record {record} can't stand here", NAMES.get(record, ""), start)
                if steps is not None:
                    container[step] = value  # NRBF-2.3-01 and NRBF-2.3-02
                elif at_step > 0:
                    container.append(value)  # NRBF-2.4-01
                    at_step -= 1  # NRBF-2.4-02
                    memory += ITEM_COST
                elif 8 <= record <= 10:
                    stream.problem("the value belongs to no object", NAMES[record], start)
            budget.references(references)
            budget.copied(texts)
            budget.records(len(objects) - known)
            budget.spend(memory)
        finally:
            self.at, self._current = start, (container, steps, at_step)

    def _library(self, at: int) -> int:
        """Read a BinaryLibrary, 2.6.2; return the offset after."""
        number = _int32(self._body, at)[0]
        if number <= 0:
            self._stream.problem("the id is not positive", "BinaryLibrary.LibraryId", at)  # NRBF-2.6.2-02
        name, end = string(self._body, at + 4, "BinaryLibrary.LibraryName")
        self._budget.records()
        self._budget.text(len(name))
        self._budget.spend(_LIBRARY_COST)
        if self._stream.libraries.setdefault(number, name) != name:
            self._stream.problem(f"the id {number} is that of two libraries", "BinaryLibrary.LibraryId", at)
        return end

    def _template(self, layout: Layout, at: int) -> dict[str, Any]:
        """Return an object without values of a class that was just described."""
        libraries = self._stream.libraries
        for number in layout.libraries:
            if number not in libraries:  # NRBF-2.1.1.8-01
                self._stream.no_library(number, "ClassTypeInfo.LibraryId", at)
        if layout.library == layouts.NO_LIBRARY:
            return layout.template("")
        if layout.library not in libraries:  # NRBF-2.3.2.1-02, NRBF-2.3.2.2-03 and NRBF-2.3.2.2-02
            self._stream.no_library(layout.library, "LibraryId", at - 4)
        library = libraries.get(layout.library, "")
        self._budget.spend(len(layout.name) + len(library))  # before the whole name is made of them
        return layout.template(library)

    def _twice(self, number: int, at: int) -> None:
        self._stream.problem(f"the id {number} is that of two objects", "ObjectId", at)

    def _convert(self, container: dict[str, Plain], step: Any, at: int) -> None:
        """Put primitive values, some of which are converted, into an object."""
        _, code, names, converts = step
        values = code.unpack_from(self._body, at)
        for number, (name, value, convert) in enumerate(zip(names, values, converts, strict=True)):
            if convert is None:
                container[name] = value
                continue
            try:
                container[name] = convert(value)
            except Junk as exc:
                container[name] = exc.value
                self._stream.problem(exc.why, name, at + struct.calcsize(code.format[: number + 1]))

    def _null_count(self, record: int, at: int) -> tuple[int, int]:
        if record == Record.OBJECT_NULL_MULTIPLE_256:
            return self._body[at], at + 1  # NRBF-2.5.6-02
        count, end = length(self._body, at, "ObjectNullMultiple.NullCount")
        if count == 0:  # NRBF-2.5.5-02
            self._stream.problem("the count is not positive", "ObjectNullMultiple.NullCount", at)
        return count, end

    def _nulls(self, steps: tuple[Any, ...], at_step: int, count: int) -> int:
        """Pass over a member that is null and those after it, as many as a run has; return the next."""
        if count == 0:
            raise Fault("a member is a run of no nulls", "NullCount", self.at)
        for _ in range(count - 1):
            if steps[at_step].__class__ is not str:
                raise Fault(f"{count} nulls are more than the members there are", "NullCount", self.at)
            at_step += 1
        return at_step

    def _method(self, record: int, at: int) -> int:
        """Read a method call or return; return the offset after."""
        if self._stream.method is not None:
            raise Fault("a second method", NAMES[record], at - 1)
        read = read_call if record == Record.METHOD_CALL else read_return
        faults: list[tuple[str, str, int]] = []
        try:
            self._stream.method = method = read(self._body, at, self._budget, faults)
        finally:
            for why, path, offset in faults:
                self._stream.problem(why, path, offset)
        return method.end


def _drop(container: dict[str, Plain], steps: Iterable[Any]) -> None:
    """Take members away."""
    for step in steps:
        if step is None:
            return
        names = step if step.__class__ is str else step[2 if step[0] == layouts.CONVERTED else -1]
        for name in (names,) if names.__class__ is str else names:
            container.pop(name, None)
