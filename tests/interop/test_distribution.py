"""Wheel and source distribution: built, installed into an environment, used outside of the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import msmqwire
from tests.support.fresh_environment import fresh_environment
from tests.support.installed import library
from tests.support.paths import EXAMPLES, ROOT
from tests.support.patience import limit

pytestmark = pytest.mark.xdist_group("distribution")  # built once
SOURCES = ("msmqwire", "spark_udfs", "fuzz")
OPTIONAL = ("aiohttp", "scapy", "pyspark", "hypothesis", "spnego", "fsspec", "prometheus_client")
STRAY = "msmqwire/tables/_reader.so"
BUILD_S = limit(300)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is to be built, with a library of compiled functions, which does not belong into it."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    (folder / "packaging").mkdir()
    shutil.copy(ROOT / "packaging" / "compile_hook.py", folder / "packaging")
    for name in SOURCES:
        left = shutil.ignore_patterns("__pycache__", "_reader.*")
        shutil.copytree(ROOT / name, folder / name, ignore=left)
    (folder / STRAY).write_bytes(b"machine code")
    return folder


def build(source: Path, target: Path, kind: str) -> Path:
    """Build a distribution with the backend that is installed; return its file."""
    library("build")
    library("hatchling")
    run(sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(target), str(source))
    (made,) = target.iterdir()
    return made


def run(*command: str, folder: Path | None = None) -> str:
    """What a command prints; it has nothing of this process's paths."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=BUILD_S, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(checkout, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, and with the dependencies that it declares; nothing of the extras."""
    return fresh_environment(tmp_path_factory.mktemp("environment"), wheel, without=OPTIONAL)


def files(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel but for its list of them."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/RECORD")]
        return {name: archive.read(name) for name in names}


def test_every_file_of_the_packages_is_in_the_wheel(checkout: Path, wheel: Path) -> None:
    packed = files(wheel)
    expected = {
        path.relative_to(checkout).as_posix()
        for name in SOURCES
        for path in (checkout / name).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert {name for name in packed if ".dist-info/" not in name} == expected - {STRAY}
    assert wheel.name.endswith("-py3-none-any.whl")
    assert "msmqwire/py.typed" in packed
    assert any(name.startswith("msmqwire/analysis/report/assets/") for name in packed)
    assert any(name.startswith("msmqwire/qm/runtime/console/assets/") for name in packed)
    (licence,) = [name for name in packed if name.endswith("/LICENSE")]
    assert packed[licence] == (ROOT / "LICENSE").read_bytes()


def test_the_source_distribution_builds_the_same_wheel(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    source = build(checkout, tmp_path / "sdist", "sdist")
    with tarfile.open(source) as archive:
        assert not [name for name in archive.getnames() if name.endswith(STRAY)]
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert files(build(unpacked, tmp_path / "again", "wheel")) == files(wheel)


def test_the_library_comes_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    where = run(str(installed / "python"), "-c", "import msmqwire; print(msmqwire.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)


@pytest.mark.parametrize("module", OPTIONAL)
def test_extras_are_not_there(installed: Path, tmp_path: Path, module: str) -> None:
    code = f"try: import {module}\nexcept ModuleNotFoundError: print('none')"
    assert run(str(installed / "python"), "-c", code, folder=tmp_path) == "none\n"


def test_commands_without_extras(installed: Path, tmp_path: Path) -> None:
    program = str(installed / "msmqwire")
    capture = str(shutil.copy(EXAMPLES / "session.pcap", tmp_path))
    assert run(program, "--version", folder=tmp_path) == f"msmqwire {msmqwire.__version__}\n"
    rows = run(program, "dissect", capture, "--json", folder=tmp_path).splitlines()
    assert len(rows) == len(list(msmqwire.dissect(capture))) == 8
    assert run(program, "lint", capture, folder=tmp_path).count("MUST") > 0
    run(program, "report", capture, "-o", "report.html", folder=tmp_path)
    assert "</html>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "msmq" in run(program, "export", "wireshark", folder=tmp_path)


def test_queues_without_extras(installed: Path, tmp_path: Path) -> None:
    program = str(installed / "msmqwire")
    run(program, "queue", "create", r"private$\orders", "--data", "qm", folder=tmp_path)
    assert r"private$\\orders" in run(program, "queue", "list", "--data", "qm", folder=tmp_path)
