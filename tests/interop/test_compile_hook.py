"""The build hook of the platform wheel: what it compiles, and that nothing is unless that is asked for."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT

sys.path.insert(0, str(ROOT / "packaging"))

import compile_hook

CODEC = {"artifacts": ["/msmqwire/schema/generated/**/*.py"]}


def hook() -> Any:
    metadata = pytest.importorskip("hatchling.metadata.core").ProjectMetadata(str(ROOT), None)
    return compile_hook.CompileHook(str(ROOT), {}, None, metadata, "", "wheel")


def test_hot_modules_are_compiled_except_interpreted_ones() -> None:
    modules = set(compile_hook.compiled_modules(ROOT))
    assert {"msmqwire/qm/core.py", "msmqwire/qm/protocols/binary/receiving.py"} < modules
    assert {"msmqwire/qm/rules/serialization.py", "msmqwire/qm/model/timers.py"} < modules
    assert not modules & compile_hook.INTERPRETED
    assert not [name for name in modules if name.endswith("__init__.py")]
    assert [name for name in compile_hook.INTERPRETED if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("path", sorted(compile_hook.compiled_modules(ROOT)))
def test_no_compiled_exception_has_a_default_in_its_class(path: str) -> None:
    """A class with a base of C, as exceptions are, gets no defaults from mypyc: the attribute is missing."""
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    for name, value in inspect.getmembers(module, inspect.isclass):
        if issubclass(value, BaseException) and value.__module__ == module.__name__:
            assert value.__dict__.keys().isdisjoint(inspect.get_annotations(value)), name


@pytest.mark.parametrize("value", [None, "", "0"])
def test_a_wheel_is_pure_unless_the_variable_is_set(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv(compile_hook.VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(compile_hook.VARIABLE, value)
    for name in ("compile_modules", "library"):
        monkeypatch.setattr(compile_hook, name, lambda *_: pytest.fail("it compiles"))
    data: dict[str, Any] = {"force_include": {}}
    hook().initialize("standard", data)
    assert (data, hook().dependencies()) == ({"force_include": {}, **CODEC}, [])


def test_a_compiled_wheel_has_its_libraries_and_one_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compile_hook.VARIABLE, "1")
    modules, reader = {"/made/core.so": "msmqwire/qm/core.so"}, {"/made/_reader.so": "msmqwire/_reader.so"}
    monkeypatch.setattr(compile_hook, "compile_modules", lambda root, folder: modules)
    monkeypatch.setattr(compile_hook, "library", lambda root: reader)
    data: dict[str, Any] = {"force_include": {}}
    one = hook()
    one.initialize("standard", data)
    one.finalize("standard", data, "")
    assert data == {"force_include": modules | reader, "pure_python": False, "infer_tag": True, **CODEC}
    editable: dict[str, Any] = {"force_include": {}}
    hook().initialize("editable", editable)
    assert editable == {"force_include": {}, **CODEC}


def test_a_compiled_build_requires_all_that_mypy_and_numba_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(compile_hook.VARIABLE, "1")
    names = {re.split("[<>]", each)[0] for each in hook().dependencies()}
    assert names > {"mypy[mypyc]", "numba", "setuptools", "numpy", "pyarrow"}
    assert names > {"cryptography", "lxml", "aiohttp", "pyspnego"}
    assert not names & {"pytest", "pyspark"}


def test_the_library_is_where_the_build_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    programs = []

    def built(program: list[str], **options: Any) -> Any:
        programs.append(program)
        return subprocess.CompletedProcess(program, 0, stdout=f"{tmp_path / 'msmqwire' / '_reader.so'}\n")

    monkeypatch.setattr(subprocess, "run", built)
    path = str(tmp_path / "msmqwire" / "_reader.so")
    assert compile_hook.library(tmp_path) == {path: "msmqwire/_reader.so"}
    assert programs == [[sys.executable, str(tmp_path / "packaging" / "native" / "build.py")]]
