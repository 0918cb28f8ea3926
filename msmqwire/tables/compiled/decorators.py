"""Marks of the functions that are compiled.

Until an engine is chosen, which the first call of an exported function does, they are plain functions: see
`msmqwire.tables.compiled.engine`. With the library none of them is ever called but through `Exported`;
without it they stay as they are. ``packaging/native`` compiles them with numba.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Final, NamedTuple, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


class Options(NamedTuple):
    """How a function is compiled.

    Attributes:
        is_inlined: into its callers.
        keeps_lock: whether it keeps the lock of the interpreter.
    """

    is_inlined: bool = False
    keeps_lock: bool = False


COMPILED: Final[dict[Callable[..., Any], Options]] = {}
"""The functions of the modules that have been imported."""


class Exported:
    """A compiled function that interpreted code calls.

    Attributes:
        function: the function itself.
        options: how it is compiled.
        call: what a call does, which an engine sets.
        repeated: returns what calls the function and checks no array again that it has passed last; an
            engine sets it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.function, self.options = function, COMPILED[function]
        self.call: Callable[..., Any] = self._call_first
        self.repeated: Callable[[], Callable[..., Any]] = self._repeat_first

    def __call__(self, *arguments: Any) -> Any:
        return self.call(*arguments)

    def _call_first(self, *arguments: Any) -> Any:
        from msmqwire.tables.compiled.engine import chosen

        chosen()
        return self.call(*arguments)

    def _repeat_first(self) -> Callable[..., Any]:
        from msmqwire.tables.compiled.engine import chosen

        chosen()
        return self.repeated()

    @property
    def name(self) -> str:
        """The name of the function with that of its module, as the library has it."""
        return f"{self.function.__module__.rpartition('.')[2]}_{self.function.__name__}"


EXPORTED: Final[list[Exported]] = []
"""Those of the modules that have been imported."""
IN_LLVM: Final[list[Callable[..., Any]]] = []
"""The functions for which there are instructions of LLVM: see ``packaging/native/intrinsics.py``."""


def jit(function: F) -> F:
    """Compile a function."""
    COMPILED[function] = Options()
    return function


def inlined(function: F) -> F:
    """Compile a function into its callers.

    It is for what is called for each frame, packet or cell: a call would cost more than many a function does,
    since each array is passed as seven or ten integers on the stack.
    """
    COMPILED[function] = Options(is_inlined=True)
    return function


def brief(function: F) -> F:
    """Compile a function that keeps the lock of the interpreter.

    It is for what takes some microseconds: to wait for the lock afterwards, while another thread has it,
    would take longer.
    """
    COMPILED[function] = Options(keeps_lock=True)
    return function


def exported(function: F) -> F:
    """Let interpreted code call a compiled function, as well as other compiled functions.

    Its annotations say what the arguments are: see `msmqwire.tables.compiled.arrays`.
    """
    EXPORTED.append(Exported(function))
    return cast(F, EXPORTED[-1])


def repeated(function: F) -> F:
    """Return an exported function for a caller that passes the same arrays again and again.

    It checks no array again that it has passed last, and keeps these alive. The caller does not change their
    types and shapes in place.
    """
    assert isinstance(function, Exported)
    return cast(F, function.repeated())


def in_llvm(function: F) -> F:
    """Mark a function that compiled code has in one instruction of LLVM, or a few."""
    IN_LLVM.append(function)
    return function
