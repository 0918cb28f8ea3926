"""Wheel and source distribution: built, installed into an environment, used outside of the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import msmqwire
from tests.support.installed import library
from tests.support.paths import EXAMPLES, ROOT

pytestmark = pytest.mark.xdist_group("distribution")  # built once
SOURCES = ("msmqwire", "spark_udfs", "fuzz")
OPTIONAL = ("aiohttp", "scapy", "pyspark", "hypothesis", "spnego", "fsspec", "prometheus_client")
BUILD_S = 300


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is to be built: nothing that runs leave behind."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    (folder / "packaging").mkdir()
    shutil.copy(ROOT / "packaging" / "compile_hook.py", folder / "packaging")
    for name in SOURCES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
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
    """An environment with the wheel, and with the dependencies that it declares; nothing of the extras.

    The dependencies are those of this environment, found by a finder that refuses what only extras have.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    binaries = folder / ("Scripts" if os.name == "nt" else "bin")
    python = str(binaries / "python")
    (packages,) = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").splitlines()
    run(
        sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index",
        "--disable-pip-version-check", str(wheel),
    )  # fmt: skip
    dependencies = sysconfig.get_path("purelib")
    (Path(packages) / "dependencies.pth").write_text(f"{dependencies}\nimport without_extras\n")
    (Path(packages) / "without_extras.py").write_text(
        "import sys\n"
        "class Refuses:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in {OPTIONAL!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Refuses())\n"
    )
    return binaries


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
        if path.is_file() and path.suffix != ".pyc" and not path.name.startswith("_reader.")
    }
    assert {name for name in packed if ".dist-info/" not in name} == expected
    assert "msmqwire/py.typed" in packed
    assert any(name.startswith("msmqwire/report/assets/") for name in packed)
    assert any(name.startswith("msmqwire/qm/runtime/console/assets/") for name in packed)
    (licence,) = [name for name in packed if name.endswith("/LICENSE")]
    assert packed[licence] == (ROOT / "LICENSE").read_bytes()


def test_the_source_distribution_builds_the_same_wheel(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    source = build(checkout, tmp_path / "sdist", "sdist")
    with tarfile.open(source) as archive:
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
