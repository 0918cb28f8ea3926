"""Compiles by numba what is marked to be compiled, each function when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Final

import numba
from intrinsics import INTRINSICS

from msmqwire.tables.compiled.decorators import COMPILED, EXPORTED, IN_LLVM

OPTIONS: Final[dict[str, Any]] = {
    "error_model": "numpy",  # no exceptions, so calls need no error path
    "_nrt": False,  # no allocation, so arrays need no reference counts
}


def compile_with_numba(modules: Iterable[ModuleType], **options: Any) -> None:
    """Replace the functions of the modules, all that are compiled, by numba's compilers of them.

    Args:
        modules: the modules.
        options: more options of numba.
    """
    compilers: dict[int, Any] = {id(function): INTRINSICS[function.__name__] for function in IN_LLVM}
    for function, how in COMPILED.items():
        compilers[id(function)] = _compiler(
            function, forceinline=how.is_inlined, nogil=not how.keeps_lock, **options
        )
    for entry in EXPORTED:
        compilers[id(entry)] = entry.call = compilers[id(entry.function)]
    for module in modules:
        for name, value in list(vars(module).items()):
            if (compiler := compilers.get(id(value))) is not None:
                setattr(module, name, compiler)


def _compiler(function: Callable[..., Any], **options: Any) -> Any:
    return numba.njit(**OPTIONS, **options)(function)
