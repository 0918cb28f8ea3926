"""Writes `docs/api.txt`: public names with their signatures, so that a change of the API is seen in a diff.

python tools/pages/public_api.py            writes the file
python tools/pages/public_api.py --check    fails if the file is out of date
"""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.pages.generated_pages import write_or_check  # noqa: E402

TARGET: Final = ROOT / "docs" / "api.txt"
MODULES: Final = (
    "msmqwire",
    "msmqwire.bodies",
    "msmqwire.tables",
    "msmqwire.errors",
    "msmqwire.analysis.fate",
    "msmqwire.tables.lake",
    "msmqwire.analysis.lint",
    "msmqwire.netware",
    "msmqwire.packets",
    "msmqwire.qm.client",
    "msmqwire.analysis.report",
    "msmqwire.schema",
    "spark_udfs",
    "fuzz",
)
"""Modules whose names are public."""

_DEFAULT_MAX: Final = 40


def names(module: ModuleType) -> list[str]:
    """Return the public names of a module: the names in ``__all__``, else its definitions."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    )


def entry(name: str, value: Any) -> Iterator[str]:
    """Yield the lines of a name: its kind and signature, and for a class its members."""
    if inspect.isclass(value):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        yield f"class {name}({bases})" if bases else f"class {name}"
        yield from (f"    {line}" for line in members(value))
    elif inspect.isroutine(value):
        yield f"{_definition(value)} {name}{_signature(value)}"
    else:
        yield f"{name}: {type(value).__name__}"


def members(cls: type) -> Iterator[str]:
    """Yield the public members that a class defines itself."""
    if issubclass(cls, enum.Enum):
        yield from (f"{name} = {member.value!r}" for name, member in cls.__members__.items())
    if "__init__" in vars(cls):
        yield f"def __init__{_signature(cls.__init__)}"
    annotated = inspect.get_annotations(cls)
    for name in sorted(name for name in {*vars(cls), *annotated} if not name.startswith("_")):
        value = inspect.getattr_static(cls, name, None)
        if isinstance(value, property | functools.cached_property):
            yield f"property {name}"
        elif isinstance(value, classmethod | staticmethod):
            yield f"{type(value).__name__} {name}{_signature(value.__func__)}"
        elif inspect.isroutine(value):
            yield f"{_definition(value)} {name}{_signature(value)}"
        elif name in annotated:
            yield f"{name}: {_annotation(annotated[name])}"


def _definition(value: Any) -> str:
    return "async def" if inspect.iscoroutinefunction(value) else "def"


def _annotation(value: Any) -> str:
    return value if isinstance(value, str) else inspect.formatannotation(value)


def _signature(value: Any) -> str:
    """The signature, with annotations as they are written, on any version of Python."""
    try:
        signature = inspect.signature(value)
    except ValueError:
        return "(...)"
    shown = [_shown(parameter) for parameter in signature.parameters.values()]
    returned = signature.return_annotation
    arrow = "" if returned is signature.empty else f" -> {_annotation(returned)}"
    return f"{inspect.Signature(shown)}{arrow}"


def _shown(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter whose default is `...` unless it is short and the same in every process."""
    if parameter.annotation is not parameter.empty:
        parameter = parameter.replace(annotation=_Words(_annotation(parameter.annotation)))
    default = repr(parameter.default)
    if parameter.default is parameter.empty or (len(default) <= _DEFAULT_MAX and "<" not in default):
        return parameter
    return parameter.replace(default=_Words("..."))


class _Words(str):
    """Text that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def page() -> str:
    """Return the text of the file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = ["# Every public name. Made by: make generated", "", "# Programs"]
    lines += [f"{name} = {target}" for name, target in sorted(project["scripts"].items())]
    for name in MODULES:
        module = importlib.import_module(name)
        lines += ["", f"# {name}"]
        for one in names(module):
            lines += entry(one, getattr(module, one))
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None, target: Path = TARGET) -> int:
    return write_or_check(page, target, "public_api.py", arguments)


if __name__ == "__main__":
    sys.exit(main())
