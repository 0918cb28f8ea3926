"""Compiles by numba what is marked to be compiled, each function when it is first called or needed.

Machine code is cached beside the source, or in the user's cache if that can't be written, so that only the
first use on a machine waits for the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from types import ModuleType
from typing import Any, Final

import numba

from msmqwire.columnar.compiled.compile_cache import StampedCache
from msmqwire.columnar.compiled.decorators import COMPILED, EXPORTED, IN_LLVM
from msmqwire.columnar.compiled.intrinsics import INTRINSICS

OPTIONS: Final[dict[str, Any]] = {
    "error_model": "numpy",  # no exceptions, so calls need no error path
    "_nrt": False,  # no allocation, so arrays need no reference counts
}


def compile_with_numba(modules: Iterable[ModuleType], *, is_cached: bool = True, **options: Any) -> None:
    """Replace the functions of the modules, all that are compiled, by numba's compilers of them.

    Args:
        modules: the modules.
        is_cached: whether machine code is kept on disk, and taken from there.
        options: more options of numba.
    """
    compilers: dict[int, Any] = {id(function): INTRINSICS[function.__name__] for function in IN_LLVM}
    for function, how in COMPILED.items():
        compilers[id(function)] = _compiler(
            function, is_cached, forceinline=how.is_inlined, nogil=not how.keeps_lock, **options
        )
    for entry in EXPORTED:
        compilers[id(entry)] = entry.call = compilers[id(entry.function)]
    for module in modules:
        for name, value in list(vars(module).items()):
            if (compiler := compilers.get(id(value))) is not None:
                setattr(module, name, compiler)


def _compiler(function: Callable[..., Any], is_cached: bool, **options: Any) -> Any:
    compiler = numba.njit(**OPTIONS, **options)(function)
    if is_cached:
        with suppress(RuntimeError):  # no folder can be written: each process compiles anew
            compiler._cache = StampedCache(function)  # type: ignore[no-untyped-call]
    return compiler
