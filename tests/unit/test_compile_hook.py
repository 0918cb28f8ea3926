"""The build hook that compiles modules: which ones, and that nothing is compiled unless that is asked for."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.support.paths import ROOT

sys.path.insert(0, str(ROOT / "packaging"))

import compile_hook


def hook() -> Any:
    return compile_hook.CompileHook(str(ROOT), {}, None, None, "", "wheel")


def test_modules_on_the_hot_path_are_compiled_and_those_that_cannot_be_are_not() -> None:
    modules = set(compile_hook.compiled_modules(ROOT))
    assert {"msmqwire/qm/core.py", "msmqwire/qm/protocols/binary/receiving.py"} < modules
    assert {"msmqwire/qm/rules/serialization.py", "msmqwire/qm/model/timers.py"} < modules
    assert not modules & compile_hook.INTERPRETED
    assert not [name for name in modules if name.endswith("__init__.py")]
    assert [name for name in compile_hook.INTERPRETED if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("value", [None, "", "0"])
def test_a_wheel_is_pure_unless_the_variable_is_set(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv(compile_hook.VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(compile_hook.VARIABLE, value)
    monkeypatch.setattr(compile_hook, "compile_modules", lambda *_: pytest.fail("it compiles"))
    data: dict[str, Any] = {"force_include": {}}
    hook().initialize("standard", data)
    assert (data, hook().dependencies()) == ({"force_include": {}}, [])


def test_a_compiled_wheel_has_the_libraries_and_is_of_one_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compile_hook.VARIABLE, "1")
    made = {"/made/core.so": "msmqwire/qm/core.so"}
    monkeypatch.setattr(compile_hook, "compile_modules", lambda root, folder: made)
    data: dict[str, Any] = {"force_include": {}}
    one = hook()
    one.initialize("standard", data)
    one.finalize("standard", data, "")
    assert data == {"force_include": made, "pure_python": False, "infer_tag": True}
    assert [name.partition(">")[0] for name in one.dependencies()] == ["mypy[mypyc]", "setuptools"]
    editable: dict[str, Any] = {"force_include": {}}
    hook().initialize("editable", editable)
    assert editable == {"force_include": {}}
