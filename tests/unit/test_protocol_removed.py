"""Without the files of a protocol the rest imports, and its tests pass: nothing else depends on them."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

from msmqwire.analysis.dissection import dissect
from tests.support.installed import library
from tests.support.paths import EXAMPLES, ROOT

COPIED = ("msmqwire", "fuzz", "tests", "examples", "pyproject.toml")
COMPILED = Path("msmqwire/tables/compiled")


@dataclass(frozen=True)
class Removed:
    """A protocol that is taken out.

    Attributes:
        files: its own, by patterns.
        tests: those of others that are run without it.
        example: a capture with its packets, which are not found any more; empty for none.
        kind: the kind of one of them.
        beside: packages that need it, and are left out as well.
    """

    files: tuple[str, ...]
    tests: tuple[str, ...]
    example: str = ""
    kind: str = ""
    beside: tuple[str, ...] = ()


MULTICAST = ("msmqwire/qm/protocols/multicast", "msmqwire/qm/runtime/multicast")
"""It carries messages of SRMP."""
OF_QUEUE_MANAGER = (
    "tests/conformance/dmpr/test_restart.py",
    "tests/conformance/mqqb/test_messages_receiving.py",
    "tests/conformance/mqqb/test_messages_sending.py",
    "tests/conformance/mqrr/test_server_transactions.py",
)
REMOVED = {
    "ncp": Removed(
        files=(
            "msmqwire/analysis/dissection/ncp_*.py",
            "msmqwire/analysis/lint/ncp*.py",
            "msmqwire/analysis/protocols/ncp.py",
            "msmqwire/cli/netware",
            "msmqwire/ncp",
            "msmqwire/netware",
            "msmqwire/plugins/scapy/netware.py",
            "msmqwire/schema/generated/*/ncp_*.py",
            "fuzz/readers/netware.py",
        ),
        example="examples/netware.pcap",
        kind="CreateQueueJobAndFile request",
        tests=(
            "tests/unit/tables/test_columns_srmp.py",
            "tests/unit/analysis/test_ladder.py",
            "tests/unit/analysis/test_session_lint.py",
        ),
    ),
    "srmp": Removed(
        files=(
            "msmqwire/analysis/dissection/http_*.py",
            "msmqwire/analysis/dissection/srmp_*.py",
            "msmqwire/analysis/lint/srmp*.py",
            "msmqwire/analysis/protocols/srmp.py",
            "msmqwire/plugins/scapy/srmp.py",
            "msmqwire/qm/protocols/srmp",
            "msmqwire/qm/runtime/http",
            "msmqwire/qm/sim/srmp",
            "msmqwire/srmp",
            "fuzz/readers/srmp.py",
        ),
        example="tests/vectors/cases/02_http_begins_inside/http_mid.pcap",
        kind="SrmpMessage",
        tests=(
            "tests/unit/analysis/test_ladder.py",
            "tests/unit/analysis/test_session_lint.py",
            *OF_QUEUE_MANAGER,
        ),
        beside=("msmqwire/cli", *MULTICAST, "fuzz/peer", "fuzz/readers"),
    ),
    "multicast": Removed(
        files=MULTICAST,
        tests=(*OF_QUEUE_MANAGER, "tests/conformance/srmp/test_outgoing_streams.py"),
        beside=("msmqwire/cli",),
    ),
}

IMPORTS = """
import importlib, pkgutil, sys
from pathlib import Path
for package in ("msmqwire", "fuzz"):
    found = importlib.import_module(package)
    assert Path(found.__file__).is_relative_to(Path.cwd()), found.__file__
    for module in pkgutil.walk_packages(found.__path__, package + "."):
        if not module.name.endswith(("__main__", "._reader", ".kerberos")):
            importlib.import_module(module.name)
"""

USES = """
import sys
import msmqwire
from msmqwire.analysis.lint import checks
session, removed, kind = sys.argv[1:]
items = list(msmqwire.dissect(session))
assert {item.kind for item in items} >= {"UserMessage", "SessionAck", "EstablishConnection"}
for item in items:
    assert msmqwire.lint(item) == list(item.findings)
    repr(item), item.to_json()
assert str(msmqwire.table(items)) and list(checks())
assert msmqwire.read_capture(session)["kind"].to_pylist() == [item.kind for item in items]
others = list(msmqwire.dissect(removed))
assert kind not in {item.kind for item in others}
assert msmqwire.read_capture(removed)["kind"].to_pylist() == [item.kind for item in others]
try:
    import msmqwire.plugins.scapy as layers
except msmqwire.extras.MissingExtra:
    sys.exit()
from scapy.utils import rdpcap
assert any(layers.MSMQUserHeader in packet for packet in rdpcap(session))
"""


DELIVERS = r"""
import asyncio, sys
from pathlib import Path
import msmqwire
from msmqwire.qm.runtime.server import Server, ServerOptions
from msmqwire.qm.sim.plan import make_plan
from msmqwire.qm.sim.world import World
from msmqwire.service.endpoints import LOOPBACK

async def deliver(data):
    at, queue = (LOOPBACK, 0), r"private$\orders"
    server = Server(ServerOptions(data, "alpha", listen=at, ping=None, queues=(queue,)))
    await server.start()
    name = rf"DIRECT=TCP:{LOOPBACK}\{queue}"
    async with msmqwire.connect(name, port=server.listen[1]) as orders:
        sent = await orders.send(b"body", recoverable=True, acknowledge="full_reach_queue")
        await sent.arrived(timeout=30)
    await server.stop()

asyncio.run(deliver(Path(sys.argv[1])))
with msmqwire.attach(sys.argv[1]) as manager:
    assert manager.queue(r"private$\orders").receive(timeout=5).body == b"body"
outcome = World(make_plan(1)).run()
assert outcome.violation is None and outcome.counts["messages"]
"""


def names_built_in(missing: set[str]) -> Iterator[tuple[str, str]]:
    """Yield modules out of some, with the constants of them that are built into the compiled functions.

    They are ports, signatures and kinds, by which the scan passes on what it does not read.
    """
    for path in sorted((ROOT / COMPILED).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in missing:
                yield from ((node.module, alias.name) for alias in node.names)


def copy_without(protocol: Removed, folder: Path) -> None:
    """Copy the project without a protocol, but for the constants that are compiled in."""
    ignored = shutil.ignore_patterns("__pycache__", ".hypothesis")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder)
    missing = set()
    for pattern in protocol.files + protocol.beside:
        found = list(folder.glob(pattern))
        assert found or "generated" in pattern, pattern
        for path in found:
            modules = path.rglob("*.py") if path.is_dir() else [path]
            names = [".".join(one.relative_to(folder).with_suffix("").parts) for one in modules]
            missing |= {name.removesuffix(".__init__") for name in names}
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    constants: dict[str, dict[str, object]] = {}
    for module, name in names_built_in(missing):
        constants.setdefault(module, {})[name] = getattr(import_module(module), name)
    for module, values in constants.items():
        file = folder / Path(*module.split(".")).with_suffix(".py")
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(f"{name} = {value!r}\n" for name, value in values.items()))


def run(folder: Path, *arguments: str) -> None:
    """Run Python in a folder, whose packages come before those of the project."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *arguments],
        check=False,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.fixture(scope="module", params=REMOVED)
def removed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Removed, Path]:
    protocol, folder = REMOVED[request.param], tmp_path_factory.mktemp(request.param)
    copy_without(protocol, folder)
    return protocol, folder


@pytest.mark.xdist_group("removed")
def test_all_modules_import_without_it(removed: tuple[Removed, Path]) -> None:
    for extra in ("aiohttp", "prometheus_client", "pyspark", "scapy", "spnego"):
        library(extra)
    run(removed[1], "-c", IMPORTS)


@pytest.mark.xdist_group("removed")
@pytest.mark.parametrize("removed", [name for name in REMOVED if REMOVED[name].example], indirect=True)
def test_captures_are_read_without_it(removed: tuple[Removed, Path]) -> None:
    protocol, folder = removed
    example = ROOT / protocol.example
    assert protocol.kind in {item.kind for item in dissect(example)}, "with it"
    run(folder, "-c", USES, str(EXAMPLES / "session.pcap"), str(example), protocol.kind)


@pytest.mark.xdist_group("removed")
def test_a_queue_manager_delivers_without_it(removed: tuple[Removed, Path], tmp_path: Path) -> None:
    run(removed[1], "-c", DELIVERS, str(tmp_path / "alpha"))


@pytest.mark.xdist_group("removed")
def test_other_tests_pass_without_it(removed: tuple[Removed, Path]) -> None:
    protocol, folder = removed
    run(folder, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *protocol.tests)
