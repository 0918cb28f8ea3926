"""The targets by name: ``module.function``, from the modules of this package that have some."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Final, TypeAlias

Check: TypeAlias = Callable[[bytes], None]
Inputs: TypeAlias = Callable[[], Iterable[bytes]]

SIZE_MAX: Final = 2048
"""Bytes of an input, unless a target needs more to reach all that its reader does."""

MODULES: Final = (
    "packets",
    "names",
    "bodies",
    "crypto",
    "pgm",
    "ndr",
    "rpc",
    "srmp",
    "netware",
    "captures",
    "control",
    "columns",
)
"""The modules with targets."""


@dataclass(frozen=True)
class Target:
    """What is fuzzed.

    Attributes:
        name: ``module.function``, with hyphens for underscores.
        check: raises what it should not for bytes that its reader gets wrong.
        seeds: gives inputs to begin with.
        words: gives bytes that its format knows, the dictionary.
        size_max: bytes of the longest input that is tried.
    """

    name: str
    check: Check
    seeds: Inputs
    words: Inputs
    size_max: int


_TARGETS: Final[dict[str, Target]] = {}


def target(
    *, seeds: Inputs = tuple, words: Inputs = tuple, size_max: int = SIZE_MAX
) -> Callable[[Check], Check]:
    """Return a decorator that makes a target of a function over bytes."""

    def register(check: Check) -> Check:
        name = f"{check.__module__.rpartition('.')[2]}.{check.__name__}".replace("_", "-")
        _TARGETS[name] = Target(name, check, seeds, words, size_max)
        return check

    return register


def load(name: str) -> Target:
    """Return a target; only its own module is imported. Raises KeyError for a name that there is not."""
    module = name.partition(".")[0].replace("-", "_")
    if module not in MODULES:
        raise KeyError(name)
    import_module(f"fuzz.readers.{module}")
    return _TARGETS[name]


def all_targets() -> tuple[Target, ...]:
    """Return every target, in the order of the modules."""
    for module in MODULES:
        import_module(f"fuzz.readers.{module}")
    order = {module: number for number, module in enumerate(MODULES)}
    return tuple(
        sorted(_TARGETS.values(), key=lambda each: order[each.name.partition(".")[0].replace("-", "_")])
    )
