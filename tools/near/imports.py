"""The imports among the Python files of a checkout, read without running them."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

CONFTEST = "conftest.py"


@dataclass(frozen=True)
class Imports:
    """The names that a file imports."""

    all: list[str] = field(default_factory=list)
    """Dotted names, wherever the import stands."""
    at_import: list[str] = field(default_factory=list)
    """The imports that run with the module itself, which it therefore needs."""


class Tree:
    """The Python files below some folders of a root, by path relative to it."""

    def __init__(self, root: Path, folders: Iterable[str], cache_file: Path | None = None) -> None:
        self.root = root
        paths = sorted(path for folder in folders for path in (root / folder).rglob("*.py"))
        known = _kept(cache_file)
        read = {}
        for path in paths:
            file, stat = path.relative_to(root).as_posix(), path.stat()
            stamp = [stat.st_mtime_ns, stat.st_size]
            kept = known.get(file)
            read[file] = kept if kept and kept[0] == stamp else [stamp, *_imports_of(path, file)]
        if cache_file and read != known:
            cache_file.parent.mkdir(parents=True, exist_ok=True)
            cache_file.write_text(json.dumps(read), encoding="utf-8")
        self.imports = {file: Imports(all_, at_import) for file, (_, all_, at_import) in read.items()}
        self._files = {dotted(file): file for file in self.imports}

    def tests(self) -> list[str]:
        """The test files."""
        return [file for file in self.imports if Path(file).name.startswith("test_")]

    def uses(self, file: str) -> set[str]:
        """The files that a file imports itself."""
        return {used for name in self.imports[file].all if (used := self.file(name)) not in (None, file)}

    def file(self, name: str) -> str | None:
        """The file of a dotted name, which may be one that its module defines; None for a library."""
        while name:
            if name in self._files:
                return self._files[name]
            name = name.rpartition(".")[0]
        return None

    def importers(self) -> Mapping[str, set[str]]:
        """By file, the files that import it."""
        found: dict[str, set[str]] = {file: set() for file in self.imports}
        for file in self.imports:
            for used in self.uses(file):
                found[used].add(file)
        return found

    def missing(self, test: str) -> list[str]:
        """The libraries that a test file needs to be imported and that are not installed."""
        return sorted(name for name in self.libraries(test) if not _is_installed(name))

    def libraries(self, test: str) -> set[str]:
        """The libraries, besides Python's own, that importing a test file takes."""
        seen, waiting, libraries = set(), [test, *self._conftests(test)], set()
        while waiting:
            file = waiting.pop()
            if file in seen:
                continue
            seen.add(file)
            waiting += self._packages(file)
            for name in self.imports[file].at_import:
                used = self.file(name)
                if used is not None:
                    waiting.append(used)
                elif name:
                    libraries.add(name.partition(".")[0])
        scripts = {Path(file).stem for file in self.imports if file.startswith("packaging/")}
        return libraries - sys.stdlib_module_names - scripts

    def _packages(self, file: str) -> Iterator[str]:
        """The packages that a module is in: they are imported with it."""
        for folder in Path(file).parents:
            if (package := (folder / "__init__.py").as_posix()) in self.imports:
                yield package

    def _conftests(self, file: str) -> Iterator[str]:
        for folder in Path(file).parents:
            if (conftest := (folder / CONFTEST).as_posix()) in self.imports:
                yield conftest


def dotted(file: str) -> str:
    """The dotted name of a module; of a package the name of its folder."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@cache
def _is_installed(name: str) -> bool:
    if name in sys.modules:
        return True
    with suppress(ImportError, ValueError):
        return importlib.util.find_spec(name) is not None
    return False


def _kept(cache_file: Path | None) -> dict[str, list]:
    if cache_file and cache_file.is_file():
        with suppress(ValueError):  # cut short by an interrupted run: it is read anew
            return dict(json.loads(cache_file.read_text(encoding="utf-8")))
    return {}


def _imports_of(path: Path, file: str) -> tuple[list[str], list[str]]:
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError:  # being edited: pytest says where
        return [], []
    package = dotted(file).split(".")[: None if path.name == "__init__.py" else -1]
    return (
        sorted({name for node in ast.walk(tree) for name in _names(node, package)}),
        sorted({name for node in _run_at_import(tree.body) for name in _names(node, package)}),
    )


def _run_at_import(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that always run when the module is imported; code in a try block may fail."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.With):
            yield from _run_at_import(node.body)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.If | ast.Try):
            yield node


def _names(node: ast.AST, package: list[str]) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            base = [*package[: len(package) - level + 1]] if level else []
            base += [module] if module else []
            yield from (".".join([*base, alias.name]) for alias in names)
        case ast.Call(
            func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            yield name
