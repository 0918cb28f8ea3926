"""Arrays of a stream, and their items of primitive types: [MS-NRBF] 2.4."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any, Final

from msmqwire.bodies import plain
from msmqwire.bodies.body import Plain
from msmqwire.bodies.limits import Budget, LimitExceeded
from msmqwire.bodies.nrbf import layouts
from msmqwire.bodies.nrbf.cursor import Fault, length, primitive
from msmqwire.bodies.nrbf.primitives import FIXED, Fixed, Junk
from msmqwire.bodies.nrbf.records import NAMES, ArrayType, Binary, Primitive, Record
from msmqwire.bodies.nrbf.stream import Stream

RANK_MAX: Final = 32
"""Dimensions that an array of .NET may have."""
VARIABLE_COST: Final = 300
"""Bytes of a value of any primitive type, at most."""
_CHARACTER_COST: Final = 80
_DISTINCT_COST: Final = 120
_CHUNK: Final = 4096
_int32: Final = struct.Struct("<i").unpack_from


class Arrays:
    """Reads the starts of arrays, and whole arrays of primitive items.

    Attributes:
        is_cut: whether an array of primitive items could not be read to its end: nothing is read after it.
    """

    def __init__(self, body: bytes, stream: Stream, budget: Budget) -> None:
        self._body, self._stream, self._budget = body, stream, budget
        self.is_cut = False

    def read(self, record: int, at: int) -> tuple[int, Any, list[Plain] | None, int, int]:
        """Read the start of an array, and primitive items; `at` is that of the ObjectId.

        Returns:
            The id, the array, the list of its items, or None if it is complete, the number of items that
            follow, and the offset after.
        """
        body = self._body
        number = _int32(body, at)[0]
        if number <= 0:
            # NRBF-2.4.2.1-01 and NRBF-2.4.3.1-02
            self._stream.problem("the id is not positive", NAMES[record] + ".ObjectId", at)
        if record == Record.BINARY_ARRAY:
            return number, *self._binary_array(at + 4)
        count, at = length(body, at + 4, NAMES[record] + ".ArrayInfo.Length")  # NRBF-2.4.2.1-02
        if record == Record.ARRAY_SINGLE_PRIMITIVE:
            kind = body[at]
            if kind not in FIXED and kind not in (Primitive.CHAR, Primitive.DECIMAL):  # NRBF-2.4.3.3-02
                raise Fault(
                    f"{kind} is not a primitive type of items", NAMES[record] + ".PrimitiveTypeEnum", at
                )
            items, at = self._primitives(count, kind, at + 1)  # NRBF-2.4.3.3-03 and NRBF-2.4.3.3-04
            return number, plain.raw(items) if kind == Primitive.BYTE else items, None, 0, at
        made: list[Plain] = []
        return number, made, made, count, at

    def _binary_array(self, at: int) -> tuple[Any, list[Plain] | None, int, int]:
        body = self._body
        kind = body[at]
        if kind > ArrayType.RECTANGULAR_OFFSET:
            raise Fault(f"{kind} is not a type of an array", "BinaryArray.BinaryArrayTypeEnum", at)
        rank, at = length(body, at + 1, "BinaryArray.Rank")  # NRBF-2.4.3.1-03
        if not 0 < rank <= RANK_MAX:
            raise Fault(f"{rank} dimensions, an array has 1 to {RANK_MAX}", "BinaryArray.Rank", at - 4)
        lengths = []
        for _ in range(rank):  # NRBF-2.4.3.1-04
            count, at = length(body, at, "BinaryArray.Lengths")  # NRBF-2.4.3.1-05
            lengths.append(count)  # NRBF-2.4.3.1-04
        lower = [0] * rank
        if kind >= ArrayType.SINGLE_OFFSET:  # NRBF-2.4.3.1-07
            lower = list(struct.unpack_from(f"<{rank}i", body, at))  # NRBF-2.4.3.1-06
            at += 4 * rank  # NRBF-2.4.3.1-06
        binary = body[at]
        libraries: list[int] = []
        primitive_type, end = layouts.additional(body, at + 1, binary, at, self._stream.types, libraries)
        for number in libraries:
            if number not in self._stream.libraries:
                self._stream.no_library(number, "ClassTypeInfo.LibraryId", end - 4)
        count = math.prod(lengths)  # NRBF-2.4-03
        whole = rank == 1 and lower == [0]
        items: Any = []
        if binary == Binary.PRIMITIVE:
            items, end = self._primitives(count, primitive_type, end)
            if primitive_type == Primitive.BYTE:
                items = plain.raw(items) if whole else list(items)
        made = items if whole else {plain.LENGTHS: lengths, plain.LOWER: lower, plain.ITEMS: items}
        return made, None if binary == Binary.PRIMITIVE else items, count, end

    def _primitives(self, count: int, kind: int, at: int) -> tuple[Any, int]:
        """Read the items of an array of primitive values; bytes come as they are.

        The part before a fault, a limit or the end of the body is kept; the offset then is that end.
        """
        body, budget = self._body, self._budget
        fixed = FIXED.get(kind)
        size = struct.calcsize(fixed.code) if fixed is not None else 1
        fits = min(count, (len(body) - at) // size)  # NRBF-4-01 and NRBF-2.4-03
        if fits < count:
            self._stream.problem(f"{count} items do not fit into the body", "Length", at)
            self.is_cut = True
        items: list[Plain] = []
        found: Any = b"" if kind == Primitive.BYTE else items
        try:
            if kind == Primitive.BYTE:
                budget.spend(2 * fits)
                found = body[at : at + fits]
                at += fits
            else:
                budget.items(fits)
                if fixed is None:
                    at = self._varying(items, fits, kind, at)
                else:
                    at = self._fixed(items, fits, fixed, size, at)
        except Fault as exc:
            if not self.is_cut:
                self._stream.problem(exc.why, exc.path, exc.offset)
            self.is_cut = True
        except LimitExceeded as exc:
            self._stream.problem(exc.why, f"[{len(items)}]", at)
            self.is_cut = True
        return found, len(body) if self.is_cut else at

    def _fixed(self, items: list[Plain], count: int, fixed: Fixed, size: int, at: int) -> int:
        body, budget = self._body, self._budget
        distinct: dict[Any, Any] | None = {} if size <= 2 else None
        for begin in range(0, count, _CHUNK):
            number = min(_CHUNK, count - begin)
            values = struct.unpack_from(f"<{number}{fixed.code}", body, at)
            at += number * size  # NRBF-2.5.2-01
            if fixed.convert is not None:
                budget.spend(fixed.cost * number)
                self._converted(items, values, fixed.convert, at - number * size, size)
            elif distinct is not None:  # of values of two bytes only one of a kind is kept
                before = len(distinct)
                items.extend(map(distinct.setdefault, values, values))
                budget.spend(_DISTINCT_COST * (len(distinct) - before))
            else:
                budget.spend(fixed.cost * number)
                items.extend(values)  # NRBF-2.5.2-01
        return at

    def _converted(
        self, items: list[Plain], values: tuple[Any, ...], convert: Callable[..., Plain], at: int, size: int
    ) -> None:
        for number, value in enumerate(values):
            try:
                items.append(convert(value))
            except Junk as exc:
                items.append(exc.value)
                self._stream.problem(exc.why, f"[{len(items) - 1}]", at + number * size)

    def _varying(self, items: list[Plain], count: int, kind: int, at: int) -> int:
        """Read characters or decimals; a character beyond 16 bits counts twice, as in .NET."""
        body, budget = self._body, self._budget
        left = count
        while left > 0:
            value, end, wrong = primitive(body, at, kind, f"[{len(items)}]")
            left -= 1
            if kind == Primitive.CHAR:
                left -= end - at == 4
                budget.spend(0 if end - at == 1 else _CHARACTER_COST)
            else:
                budget.spend(VARIABLE_COST)
            if wrong:
                self._stream.problem(wrong, f"[{len(items)}]", at)
            items.append(value)
            at = end
        return at
