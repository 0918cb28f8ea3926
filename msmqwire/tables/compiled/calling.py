"""Calls of functions of the library, with arrays and records of them.

A function of the library takes two addresses: that of its arguments, and that of what it returns. The
arguments are integers of 64 bits: first the size of the head of Python's objects, then for each array the
address of numpy's object, in which address and shape stand as for any C extension; for a record those of its
arrays. Machine code checks nothing, so that the caller does: what an array is, that it is contiguous, whether
it can be written, and the range of integers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from operator import index
from struct import Struct
from types import NoneType
from typing import Any, Final, NamedTuple, get_args, get_type_hints

import numpy as np

from msmqwire.tables.compiled.arrays import ArrayOf
from msmqwire.tables.compiled.decorators import Exported

INT_MIN, INT_MAX = -(1 << 63), (1 << 63) - 1
HEAD: Final = object.__basicsize__
SHAPE_AT: Final = 16
"""Bytes from the address of the elements, the first that numpy has behind the head, to that of the shape."""


class Record(NamedTuple):
    """A record among the arguments of a function.

    Attributes:
        kind: its class.
        fields: its arrays.
    """

    kind: type[Any]
    fields: tuple[ArrayOf, ...]


class Signature(NamedTuple):
    """What a function takes and returns.

    Attributes:
        parameters: by name an array, a record, or one of the types int and bool.
        results: the types of what it returns, int or bool: none, one or those of a tuple.
    """

    parameters: dict[str, ArrayOf | Record | type[Any]]
    results: tuple[type[Any], ...]


def signature_of(function: Callable[..., Any]) -> Signature:
    """Return the signature of a function from its annotations; raise TypeError for what can't be passed."""
    hints = get_type_hints(function, include_extras=True)
    returned = hints.pop("return")
    results = () if returned is NoneType else get_args(returned) or (returned,)
    for kind in results:
        if kind not in (int, bool):
            raise TypeError(f"{function.__name__} can't return {kind}")
    return Signature({name: _parameter(hint) for name, hint in hints.items()}, results)


def _parameter(hint: Any) -> ArrayOf | Record | type[Any]:
    array = _array(hint)
    if array is not None:
        return array
    if isinstance(hint, type) and issubclass(hint, tuple):
        fields = [_array(field) for field in get_type_hints(hint, include_extras=True).values()]
        if None not in fields:
            return Record(hint, tuple(field for field in fields if field is not None))
    if hint not in (int, bool):
        raise TypeError(f"an argument can't be {hint}")
    kind: type[Any] = hint
    return kind


def _array(hint: Any) -> ArrayOf | None:
    return next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, ArrayOf)), None)


def wrong(name: str, value: Any, wanted: tuple[Any, ...]) -> TypeError:
    """Return the error of an argument that is not the array which is wanted."""
    return TypeError(f"{name} is no {ArrayOf(*wanted)}: {getattr(value, 'dtype', type(value))}")


def reads_arrays() -> bool:
    """Whether a library finds the address and the shape of an array in numpy's object."""
    for shape in ((3,), (2, 5), (4, 1, 6)):
        array = np.zeros(shape, np.uint8)
        fields = id(array) + HEAD
        sizes = ctypes.c_void_p.from_address(fields + SHAPE_AT).value
        if ctypes.c_void_p.from_address(fields).value != array.ctypes.data or sizes is None:
            return False
        if tuple((ctypes.c_int64 * len(shape)).from_address(sizes)) != shape:
            return False
    return True


class Checked:
    """The arguments that a function was called with last, whose arrays need no second check.

    The arrays are kept alive, so that no other has their address meanwhile. Their types and shapes are not
    to be changed in place.

    Attributes:
        packed: the arguments; empty if they are not remembered.
    """

    __slots__ = ("_arrays", "packed")

    def __init__(self) -> None:
        self.packed = b""
        self._arrays: tuple[Any, ...] = ()

    def remember(self, packed: bytes, arrays: tuple[Any, ...]) -> None:
        """Remember arguments whose arrays have been checked."""
        self.packed, self._arrays = packed, arrays


class CheckedEachTime(Checked):
    """For calls whose arrays are not to be kept alive."""

    __slots__ = ()

    def remember(self, packed: bytes, arrays: tuple[Any, ...]) -> None:
        """Remember nothing."""


def caller(entry: Exported, native: Any) -> Callable[[Checked], Callable[..., Any]]:
    """Return what makes functions that call one of the library, each with the arguments it remembers."""
    signature = signature_of(entry.function)
    lines, checks, arrays, passed = list[str](), list[str](), list[str](), ["HEAD"]
    for name, parameter in signature.parameters.items():
        if isinstance(parameter, ArrayOf):
            checks.append(_check(name, parameter))
            arrays.append(name)
            passed.append(f"id({name})")
        elif isinstance(parameter, Record):
            fields = [f"{name}_{number}" for number in range(len(parameter.fields))]
            lines.append(f"{', '.join(fields)} = {name}")
            checks += map(_check, fields, parameter.fields)
            arrays += fields
            passed += [f"id({field})" for field in fields]
        elif parameter is bool:
            passed.append(f"bool({name})")
        else:
            lines.append(f"{name} = index({name})")
            lines.append(f"if not {INT_MIN} <= {name} <= {INT_MAX}: raise OverflowError({name!r})")
            passed.append(name)
    lines += [f"packed = pack({', '.join(passed)})", "if packed != checked.packed:"]
    lines += [f"    {check}" for check in checks]
    lines += [f"    checked.remember(packed, ({''.join(f'{each}, ' for each in arrays)}))"]
    lines += ["results = Results()", "native(packed, results)"]
    shown = [
        f"results[{number}] != 0" if kind is bool else f"results[{number}]"
        for number, kind in enumerate(signature.results)
    ]
    lines.append(f"return {', '.join(shown)}")
    names: dict[str, Any] = _NAMES | {
        "native": native,
        "pack": Struct(f"{len(passed)}q").pack,
        "Results": ctypes.c_int64 * len(signature.results),
    }
    native.argtypes, native.restype = [ctypes.c_char_p, ctypes.c_void_p], None
    body = "\n        ".join(lines)
    parameters = ", ".join(signature.parameters)
    exec(f"def make(checked):\n    def call({parameters}):\n        {body}\n    return call\n", names)
    make: Callable[[Checked], Callable[..., Any]] = names["make"]
    return make


def _check(name: str, wanted: ArrayOf) -> str:
    """Return a line that raises TypeError if an argument is not the array which is wanted."""
    # `carray`: contiguous, aligned, and can be written.
    flag = "carray" if wanted.is_written else "c_contiguous"
    fits = (
        f"isinstance({name}, ndarray)",
        f"{name}.dtype == kind_{wanted.kind}",
        f"{name}.ndim == {wanted.dimensions}",
        f"{name}.flags.{flag}",
    )
    return f"if not ({' and '.join(fits)}): raise wrong({name!r}, {name}, {tuple(wanted)})"


_KINDS: Final = ("uint8", "bool", "int32", "int64")
_NAMES: Final[dict[str, Any]] = {
    "HEAD": HEAD,
    "index": index,
    "ndarray": np.ndarray,
    "wrong": wrong,
    **{f"kind_{kind}": np.dtype(kind) for kind in _KINDS},
}
