"""Calls of functions of the library, with arrays and records of them.

A function of the library takes integers of 64 bits and addresses: for each array its address and its shape,
for a record those of its arrays, and behind them an address for what it returns, if that is anything.
Machine code checks nothing, so that the caller does: what an array is, that it is contiguous, whether it can
be written, and the range of integers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from operator import index
from types import NoneType
from typing import Any, Final, NamedTuple, get_args, get_type_hints

import numpy as np

from msmqwire.columnar.compiled.arrays import ArrayOf
from msmqwire.columnar.compiled.decorators import Exported

INT_MIN, INT_MAX = -(1 << 63), (1 << 63) - 1


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


def wrong(name: str, value: Any, wanted: ArrayOf) -> TypeError:
    """Return the error of an argument that is not the array which is wanted."""
    return TypeError(f"{name} is not an array of {wanted}: {getattr(value, 'dtype', type(value))}")


def caller(entry: Exported, library: ctypes.CDLL) -> Callable[..., Any]:
    """Return a function that calls one of the library."""
    signature, native = signature_of(entry.function), getattr(library, f"msmqwire_{entry.name}")
    kinds: list[Any] = []
    lines, passed = list[str](), list[str]()
    names: dict[str, Any] = {
        "native": native, "index": index, "wrong": wrong, "results": ctypes.c_int64 * len(signature.results),
    }  # fmt: skip
    for name, parameter in signature.parameters.items():
        if isinstance(parameter, ArrayOf):
            _pass_array(name, parameter, names, lines, passed, kinds)
        elif isinstance(parameter, Record):
            fields = [f"{name}_{number}" for number in range(len(parameter.fields))]
            lines.append(f"{', '.join(fields)} = {name}")
            for field, array in zip(fields, parameter.fields, strict=True):
                _pass_array(field, array, names, lines, passed, kinds)
        else:
            lines.append(f"{name} = {'bool' if parameter is bool else 'index'}({name})")
            if parameter is int:
                lines.append(f"if not {INT_MIN} <= {name} <= {INT_MAX}: raise OverflowError({name!r})")
            passed.append(name)
            kinds.append(ctypes.c_int64)
    if signature.results:
        lines.append("result = results()")
        passed.append("result")
        kinds.append(ctypes.c_void_p)
    lines.append(f"native({', '.join(passed)})")
    if signature.results:
        shown = [
            f"result[{n}] != 0" if kind is bool else f"result[{n}]"
            for n, kind in enumerate(signature.results)
        ]
        lines.append(f"return {', '.join(shown)}")
    native.argtypes, native.restype = kinds, None
    body = "\n    ".join(lines)
    exec(f"def call({', '.join(signature.parameters)}):\n    {body}\n", names)
    call: Callable[..., Any] = names["call"]
    return call


_SHAPES: Final = ("n0", "n1", "n2")


def _pass_array(
    name: str, array: ArrayOf, names: dict[str, Any], lines: list[str], passed: list[str], kinds: list[Any]
) -> None:
    """Add the checks of an array, and what is passed for it."""
    kind, wanted = f"kind_{array.kind}", f"wanted_{name}"
    names[kind], names[wanted] = np.dtype(array.kind), array
    # `carray`: contiguous, aligned, and can be written.
    fits = f"{name}.flags.carray" if array.is_written else f"{name}.flags.c_contiguous"
    lines.append(
        f"if {name}.dtype != {kind} or {name}.ndim != {array.dimensions} or not {fits}: "
        f"raise wrong({name!r}, {name}, {wanted})"
    )
    sizes = [f"{name}_{size}" for size in _SHAPES[: array.dimensions]]
    lines.append(f"{', '.join(sizes)}, = {name}.shape")
    passed += [f"{name}.ctypes.data", *sizes]
    kinds += [ctypes.c_void_p, *[ctypes.c_int64] * array.dimensions]
