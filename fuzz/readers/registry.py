"""The targets by name: ``module.function``, from the modules of this package that have some."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Final, TypeAlias

Check: TypeAlias = Callable[[bytes], None]
Inputs: TypeAlias = Callable[[], Iterable[bytes]]

SIZE_MAX: Final = 2048
"""Bytes of an input, unless a target needs more to reach all that its reader does."""

_BEFORE: Final = ("packets", "names", "bodies", "crypto")
_AFTER: Final = ("captures", "control", "columns")
"""The modules with targets, besides those of protocols that register theirs."""


@dataclass(frozen=True)
class Target:
    """The target of a fuzzer.

    Attributes:
        name: ``module.function``, with hyphens for underscores.
        check: raises an unexpected exception for bytes that its reader gets wrong.
        seeds: returns initial inputs.
        words: returns bytes of its format, the dictionary.
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


def modules() -> tuple[str, ...]:
    """Return the modules with targets, in their order."""
    from msmqwire.analysis.protocols import protocols  # not earlier: a target's own code is instrumented

    return (*_BEFORE, *(module for protocol in protocols() for module in protocol.plugins.fuzz), *_AFTER)


def load(name: str) -> Target:
    """Return a target; only its own module is imported. Raises KeyError for a name that there is not."""
    module = name.partition(".")[0].replace("-", "_")
    if module.startswith("_") or find_spec(f"{__package__}.{module}") is None:
        raise KeyError(name)
    import_module(f"{__package__}.{module}")
    return _TARGETS[name]


def all_targets() -> tuple[Target, ...]:
    """Return every target, in the order of the modules."""
    order = {module: number for number, module in enumerate(modules())}
    for module in order:
        import_module(f"{__package__}.{module}")
    return tuple(
        sorted(_TARGETS.values(), key=lambda each: order[each.name.partition(".")[0].replace("-", "_")])
    )
