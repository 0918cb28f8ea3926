"""Without the files of a protocol the rest imports, and its tests pass: nothing else depends on them."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import EnumType
from importlib import import_module
from pathlib import Path

import click
import pytest

from msmqwire.analysis.dissection import dissect
from msmqwire.cli import app
from msmqwire.plugins.wireshark import dissector
from tests.support.installed import library
from tests.support.nightly import nightly
from tests.support.paths import EXAMPLES, ROOT

COPIED = ("msmqwire", "fuzz", "tests", "examples", "pyproject.toml")
COMPILED = Path("msmqwire/tables/compiled")
OF_CAPTURES = (
    "dissect", "lint", "fate", "report", "pcap", "parse", "build", "body decode", "lake", "export wireshark",
)  # fmt: skip
"""Commands that need no queue manager."""


@dataclass(frozen=True)
class Removed:
    """A protocol that is taken out.

    Attributes:
        files: its own, by patterns.
        example: a capture with its packets, which are not found any more.
        kind: the kind of one of them.
        tests: those of others that are run without it.
        words: how help names it; a pattern.
        lua: what the script for Wireshark has of it alone; empty if that is nothing.
        beside: packages that need it, and are left out as well. Commands that need them are not asked for.
    """

    files: tuple[str, ...]
    example: str
    kind: str
    tests: tuple[str, ...]
    words: str
    lua: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


MULTICAST = ("msmqwire/qm/protocols/multicast", "msmqwire/qm/runtime/multicast")
"""It carries messages of SRMP over PGM."""
OF_QUEUE_MANAGER = (
    "tests/conformance/dmpr/test_restart.py",
    "tests/conformance/mqqb/test_messages_receiving.py",
    "tests/conformance/mqqb/test_messages_sending.py",
    "tests/conformance/mqrr/test_server_transactions.py",
)
OTHER_TESTS = ("tests/unit/analysis/test_ladder.py", "tests/unit/analysis/test_session_lint.py")
PEERS = ("fuzz/peer", "fuzz/readers")
"""What tests peers of all protocols."""

CALLS = (
    "msmqwire/analysis/*/remote_read*.py",
    "msmqwire/analysis/*/management*.py",
    "msmqwire/cli/protocols/remote_read.py",
    "msmqwire/cli/protocols/management.py",
    "msmqwire/management",
    "msmqwire/plugins/scapy/remote_read.py",
    "msmqwire/plugins/scapy/management.py",
    "msmqwire/remote_read",
)
"""The interfaces of DCE/RPC."""

REMOVED = {
    "management": Removed(
        files=(
            "msmqwire/analysis/dissection/management_calls.py",
            "msmqwire/analysis/lint/management*.py",
            "msmqwire/analysis/protocols/management.py",
            "msmqwire/cli/protocols/management.py",
            "msmqwire/management",
            "msmqwire/plugins/scapy/management.py",
            "fuzz/readers/management.py",
        ),
        example="examples/management.pcap",
        kind="R_QMMgmtGetInfo response",
        tests=OTHER_TESTS,
        words="queue management",
        lua=('"qmmgmt"', "R_QMMgmtGetInfo"),
        beside=("msmqwire/cli/managing", "msmqwire/exporter", "msmqwire/qm", *PEERS),
    ),
    "ncp": Removed(
        files=(
            "msmqwire/analysis/dissection/ncp_*.py",
            "msmqwire/analysis/lint/ncp*.py",
            "msmqwire/analysis/protocols/ncp.py",
            "msmqwire/cli/netware",
            "msmqwire/cli/protocols/ncp.py",
            "msmqwire/ncp",
            "msmqwire/netware",
            "msmqwire/plugins/scapy/netware*.py",
            "msmqwire/schema/generated/*/ncp_*.py",
            "fuzz/readers/netware.py",
        ),
        example="examples/netware.pcap",
        kind="CreateQueueJobAndFile request",
        tests=(*OTHER_TESTS, "tests/unit/tables/test_columns_srmp.py"),
        words="ncp|netware",
    ),
    "pgm": Removed(
        files=(
            "msmqwire/analysis/dissection/pgm_*.py",
            "msmqwire/analysis/lint/pgm.py",
            "msmqwire/analysis/protocols/pgm.py",
            "msmqwire/cli/protocols/pgm.py",
            "msmqwire/pgm",
            "msmqwire/plugins/scapy/pgm.py",
            "msmqwire/schema/generated/*/pgm_*.py",
            *MULTICAST,
        ),
        example="tests/vectors/cases/09_pgm_length_counts_header/pgm_len.pcap",
        kind="PgmPacket",
        tests=(*OTHER_TESTS, *OF_QUEUE_MANAGER, "tests/conformance/srmp/test_outgoing_streams.py"),
        words="pgm",
        beside=PEERS,
    ),
    "remote read": Removed(
        files=(
            "msmqwire/analysis/dissection/remote_read_*.py",
            "msmqwire/analysis/fate/remote_read.py",
            "msmqwire/analysis/lint/remote_read_*.py",
            "msmqwire/analysis/protocols/remote_read.py",
            "msmqwire/cli/protocols/remote_read.py",
            "msmqwire/plugins/scapy/remote_read.py",
            "msmqwire/remote_read",
        ),
        example="examples/remote_read.pcap",
        kind="R_StartReceive response",
        tests=OTHER_TESTS,
        words="remote read",
        lua=('"RemoteRead"', "R_StartReceive"),
        beside=("msmqwire/exporter", "msmqwire/qm", *PEERS),
    ),
    "rpc": Removed(
        files=(
            "msmqwire/analysis/dissection/rpc_*.py",
            "msmqwire/analysis/lint/rpc.py",
            "msmqwire/analysis/protocols/rpc.py",
            "msmqwire/cli/protocols/rpc.py",
            "msmqwire/plugins/scapy/rpc.py",
            "msmqwire/plugins/wireshark/lua/rpc*.lua",
            "msmqwire/rpc",
            "msmqwire/schema/generated/*/rpc_*.py",
        ),
        example="examples/remote_read.pcap",
        kind="bind",
        tests=OTHER_TESTS,
        words="rpc",
        lua=("msmq.rpc.", "msmq_rpc", '"RemoteRead"', '"qmmgmt"'),
        beside=("msmqwire/cli/managing", "msmqwire/exporter", "msmqwire/qm", *CALLS, *PEERS),
    ),
    "srmp": Removed(
        files=(
            "msmqwire/analysis/dissection/http_*.py",
            "msmqwire/analysis/dissection/srmp_*.py",
            "msmqwire/analysis/fate/srmp.py",
            "msmqwire/analysis/lint/srmp*.py",
            "msmqwire/analysis/protocols/srmp.py",
            "msmqwire/cli/protocols/srmp.py",
            "msmqwire/plugins/scapy/srmp.py",
            "msmqwire/plugins/wireshark/lua/srmp*.lua",
            "msmqwire/qm/protocols/srmp",
            "msmqwire/qm/runtime/http",
            "msmqwire/qm/sim/srmp",
            "msmqwire/srmp",
            "fuzz/readers/srmp.py",
        ),
        example="tests/vectors/cases/02_http_begins_inside/http_mid.pcap",
        kind="SrmpMessage",
        tests=(*OTHER_TESTS, *OF_QUEUE_MANAGER),
        words="srmp|over http",
        lua=("show_srmp", "msmq.srmp.", "msmq_srmp"),
        beside=(*MULTICAST, *PEERS),
    ),
}

IMPORTS = """
import importlib, pkgutil, sys
from pathlib import Path
missing = tuple(sys.argv[1:])
for package in ("msmqwire", "fuzz"):
    found = importlib.import_module(package)
    assert Path(found.__file__).is_relative_to(Path.cwd()), found.__file__
    for module in pkgutil.walk_packages(found.__path__, package + "."):
        if not module.name.endswith(("__main__", "._reader", ".kerberos")):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as exc:
                above = module.name.startswith(("msmqwire.cli.", "fuzz."))
                assert above and exc.name.startswith(missing), (module.name, exc)
"""

HELP = """
import re, sys
import click
from msmqwire.cli import app
SPEAKING = {"msmqwire fuzz", "msmqwire send", "msmqwire serve"}  # they speak several protocols to peers
words, missing, shown = sys.argv[1], tuple(sys.argv[2:]), []
def helps(command, above):
    context = click.Context(command, info_name=command.name, parent=above)
    yield context, command.get_help(context)
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        try:
            inner = command.get_command(context, name)
        except ModuleNotFoundError as exc:
            assert exc.name.startswith(missing), (name, exc)
            continue
        yield from helps(inner, context)
for context, text in helps(app, None):
    shown.append(context.command_path)
    named = re.findall(words, " ".join(text.split()), re.I)
    assert not named or context.command_path in SPEAKING, (context.command_path, named)
print(*shown, sep="\\n")
"""

LUA = """
import sys
from msmqwire.plugins.wireshark import dissector
sys.stdout.write(dissector())
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


def definition(name: str, value: object) -> str:
    """The source of a constant, or of an enumeration of numbers."""
    if isinstance(value, EnumType):
        members = {one.name: one.value for one in value}
        return f"from enum import IntEnum\n{name} = IntEnum({name!r}, {members!r})\n"
    return f"{name} = {value!r}\n"


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
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(definition(name, value) for name, value in values.items()))


def missing_in_commands(protocol: Removed) -> list[str]:
    """The packages that commands may miss without a protocol: its own, and those that need it.

    Options of commands that send and serve are about the protocols that a queue manager speaks.
    """
    return [name.replace("/", ".") for name in (*protocol.files, *protocol.beside) if "*" not in name]


def help_of(command: click.Command, above: click.Context | None = None) -> dict[str, str]:
    """The help of a command and of all below it, by their paths."""
    context = click.Context(command, info_name=command.name, parent=above)
    found = {context.command_path: command.get_help(context)}
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            found |= help_of(inner, context)
    return found


def run(folder: Path, *arguments: str) -> str:
    """The output of Python in a folder, whose packages come before those of the project."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, *arguments],
        check=False,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module", params=REMOVED)
def removed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Removed, Path]:
    protocol, folder = REMOVED[request.param], tmp_path_factory.mktemp(request.param)
    copy_without(protocol, folder)
    return protocol, folder


@pytest.mark.xdist_group("removed")
def test_all_modules_import_without_it(removed: tuple[Removed, Path]) -> None:
    protocol, folder = removed
    for extra in ("aiohttp", "prometheus_client", "pyspark", "scapy", "spnego"):
        library(extra)
    run(folder, "-c", IMPORTS, *missing_in_commands(protocol))


@pytest.mark.xdist_group("removed")
def test_captures_are_read_without_it(removed: tuple[Removed, Path]) -> None:
    protocol, folder = removed
    example = ROOT / protocol.example
    assert protocol.kind in {item.kind for item in dissect(example)}, "with it"
    run(folder, "-c", USES, str(EXAMPLES / "session.pcap"), str(example), protocol.kind)


@pytest.mark.xdist_group("removed")
def test_help_does_not_name_it(removed: tuple[Removed, Path]) -> None:
    protocol, folder = removed
    with_it = help_of(app)
    assert any(re.search(protocol.words, text, re.I) for text in with_it.values()), "with it"
    shown = run(folder, "-c", HELP, protocol.words, *missing_in_commands(protocol)).splitlines()
    left_out = set(with_it) - set(shown)
    assert set(shown) < set(with_it)
    assert left_out.isdisjoint(f"msmqwire {name}" for name in OF_CAPTURES)


@pytest.mark.xdist_group("removed")
def test_the_script_for_wireshark_has_nothing_of_it(removed: tuple[Removed, Path]) -> None:
    protocol, folder = removed
    whole, script = dissector(), run(folder, "-c", LUA)
    assert all(name in whole and name not in script for name in protocol.lua)
    assert (script == whole) == (protocol.lua == ())


@pytest.mark.xdist_group("removed")
def test_wireshark_runs_the_script_without_it(removed: tuple[Removed, Path]) -> None:
    from tests.support.capture import wireshark

    protocol, folder = removed
    if not protocol.lua:
        pytest.skip("the script is the same")
    script = folder / "msmq.lua"
    script.write_text(run(folder, "-c", LUA), encoding="utf-8")
    frames = wireshark.shown(script, EXAMPLES / "session.pcap").values()
    assert {"UserMessage", "SessionAck"} <= {item.packet for items in frames for item in items}


@pytest.mark.xdist_group("removed")
@pytest.mark.parametrize(
    "removed", [name for name in REMOVED if "msmqwire/qm" not in REMOVED[name].beside], indirect=True
)
def test_a_queue_manager_delivers_without_it(removed: tuple[Removed, Path], tmp_path: Path) -> None:
    run(removed[1], "-c", DELIVERS, str(tmp_path / "alpha"))


@nightly
@pytest.mark.xdist_group("removed")
def test_other_tests_pass_without_it(removed: tuple[Removed, Path]) -> None:
    protocol, folder = removed
    run(folder, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *protocol.tests)
