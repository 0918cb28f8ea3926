"""The floors of the design: a module imports only from lower floors, and sideways only where named here."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.support.paths import ROOT

PACKAGES = ("msmqwire", "spark_udfs", "fuzz")

FLOORS = (
    {"constants", "durable", "errors", "extras", "json_text", "moved", "names", "ownership", "schema"},
    {
        "bodies",
        "crypto",
        "framing",
        "headers",
        "management",
        "ncp",
        "packets",
        "pgm",
        "ping",
        "remote_read",
        "rpc",
        "srmp",
    },
    {"capture"},
    {
        "analysis/diagrams",
        "analysis/dissection",
        "analysis/fate",
        "analysis/lint",
        "analysis/protocols",
        "analysis/report",
        "analysis/web_assets",
        "plugins",
        "service",
        "tables",
    },
    {"netware", "qm"},
    {"cli", "exporter", "fuzz", "spark_udfs"},
)
FLOOR = {part: number for number, parts in enumerate(FLOORS) for part in parts}
TOP = len(FLOORS) - 1

# (importer, imported) on the same floor. Keep it free of circles.
SIDEWAYS = {
    ("errors", "constants"),
    ("extras", "errors"),
    ("names", "constants"),
    ("names", "errors"),
    ("ownership", "durable"),
    ("ownership", "errors"),
    ("ownership", "names"),
    ("schema", "errors"),
    ("schema", "json_text"),
    ("schema", "names"),
    ("packets", "headers"),
    ("packets", "ping"),
    ("crypto", "headers"),
    ("framing", "headers"),
    ("framing", "packets"),
    ("management", "rpc"),
    ("remote_read", "headers"),
    ("remote_read", "packets"),
    ("remote_read", "rpc"),
    ("srmp", "crypto"),
    ("analysis/dissection", "analysis/lint"),
    ("analysis/dissection", "analysis/protocols"),
    ("analysis/lint", "analysis/protocols"),
    ("analysis/fate", "analysis/dissection"),
    ("analysis/fate", "analysis/lint"),
    ("analysis/fate", "analysis/protocols"),
    ("analysis/fate", "tables"),
    ("analysis/report", "analysis/dissection"),
    ("analysis/report", "analysis/fate"),
    ("analysis/report", "analysis/lint"),
    ("analysis/report", "analysis/protocols"),
    ("analysis/report", "analysis/web_assets"),
    ("analysis/report", "tables"),
    ("analysis/diagrams", "analysis/dissection"),
    ("analysis/diagrams", "analysis/protocols"),
    ("analysis/diagrams", "analysis/report"),
    ("plugins", "analysis/lint"),
    ("plugins", "analysis/protocols"),
    ("tables", "analysis/dissection"),
    ("tables", "analysis/lint"),
    ("tables", "analysis/protocols"),
    ("cli", "exporter"),
    ("cli", "fuzz"),
}

# The rooms of spark_udfs, in the same manner. `source` is the base: its schema, options and flow numbers
# serve every room. The package itself gathers the rooms above; the jobs start from it.
SPARK_FLOORS = (
    {"java", "lake_files", "source"},
    {"fates", "frames", "functions", "lake_streams", "lakes", "reassembly", "spark_session"},
    {"lake_streams"},
    {"spark_udfs"},
    {"jobs"},
)
SPARK_FLOOR = {room: number for number, rooms in enumerate(SPARK_FLOORS) for room in rooms}

# The package itself exports names of its parts, and `python -m msmqwire` starts the command line.
EXEMPT = {
    Path("msmqwire/__init__.py"),
    Path("msmqwire/__main__.py"),
    Path("msmqwire/analysis/__init__.py"),
}

# The rooms of large parts, and those of its part that each may import. Protocols must not import each other.
ROOMS: dict[str, dict[str, set[str]]] = {
    "tables": {
        "compiled": set(),
        "arrow": {"columns", "compiled", "filters"},
        "scanning": {"arrow", "compiled"},
        "lake": {
            "__init__",
            "columns",
            "exact_parts",
            "expression",
            "expression_parser",
            "filters",
            "part_reader",
            "part_survey",
            "parts",
        },
    },
    "plugins": {"scapy": set(), "wireshark": set()},
    "qm": {
        "model": set(),
        "directory": {"model"},
        "store": {"model"},
        "rules": {"directory", "model"},
        "security": {"directory", "model", "rules"},
        "protocols": {"model", "rules", "security"},
        "core": {"directory", "model", "protocols", "rules", "security"},
        "runtime": {"core", "directory", "model", "protocols", "rules", "security", "store"},
        "client": {"core", "model", "protocols", "rules", "runtime", "security", "store"},
        "sim": {"core", "directory", "model", "protocols", "rules", "runtime", "security", "store"},
    },
    "netware": {
        "model": set(),
        "rules": {"model"},
        "protocol": {"model", "rules"},
        "store": {"model"},
        "runtime": {"model", "protocol", "rules", "store"},
        "client": {"model"},
        "sim": {"client", "model", "protocol", "rules", "runtime", "store"},
    },
}
FREE = {"tables"}  # whose modules outside of rooms may import all of them

# The folders of the protocols that join the queue manager: it finds them by their registration, and imports
# none. Multicast carries messages of SRMP.
JOINED = {
    "srmp": ("qm.protocols.srmp", "qm.runtime.http", "qm.sim.srmp"),
    "multicast": ("qm.protocols.multicast", "qm.runtime.multicast"),
}
JOINED_SIDEWAYS = {("multicast", "srmp")}

# The rooms of service, in the manner of spark_udfs: the driver knows no socket, a listener knows no driver,
# and the store and virtual time know nothing else.
SERVICE_FLOORS = (
    {
        "bounded_page",
        "carrier",
        "credential_files",
        "crowd",
        "descriptors",
        "endpoints",
        "event_loop",
        "guest",
        "keep_alive",
        "logs",
        "origin_rate",
        "origin_shares",
        "page_guard",
        "partial_packets",
        "reporter",
        "store",
        "tasks",
        "tls",
        "virtual",
    },
    {
        "batch",
        "clock",
        "connection",
        "disk",
        "faults",
        "folder",
        "listening_sockets",
        "metrics_page",
        "restoring",
        "supervisor",
    },
    {"alarm", "places", "request_handler", "room_watch", "unsettled"},
    {"carrying"},
    {"beginning"},
    {"control", "driver", "limited_connection", "listener", "watched_connection"},
    {"loop_thread", "page_connections", "page_requests", "rebuilding"},
    {"page_server"},
)
SERVICE_FLOOR = {room: number for number, rooms in enumerate(SERVICE_FLOORS) for room in rooms}

# What a service of any protocol is made of knows none.
SERVICE_MAY_USE = {"constants", "durable", "errors", "extras", "names", "ownership"}

SCAPY_ONLY_IN = ("msmqwire/plugins/scapy/", "fuzz/")  # scapy is GPL-2.0-only and an extra
# Protocol rules without I/O, clock or chance.
PURE = (
    "msmqwire/crypto",
    *(f"msmqwire/qm/{room}" for room in ("model", "protocols", "rules", "security")),
    *(f"msmqwire/netware/{room}" for room in ("model", "protocol", "rules")),
)
IMPURE = {"asyncio", "os", "random", "socket", "sqlite3", "threading", "time"}
HEAVY = {
    "Cryptodome",
    "aiohttp",
    "cryptography",
    "hypothesis",
    "lxml",
    "numba",
    "numpy",
    "pyarrow",
    "pyspark",
    "scapy",
}

MODULES = sorted(
    path.relative_to(ROOT) for package in PACKAGES for path in ROOT.joinpath(package).rglob("*.py")
)


def part_of(module: str) -> str:
    """The part that one of our dotted module names belongs to; "" for the package msmqwire itself.

    The rooms of `analysis` are parts of their own: some are below `tables`, and some above.
    """
    package, *names = module.split(".")
    if package != "msmqwire":
        return package
    return "/".join(names[:2] if names[:1] == ["analysis"] else names[:1])


def imports(source: str, path: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import: at the top, in a function, under TYPE_CHECKING, relative."""
    package = path.with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = [*package[: len(package) - level + 1]] if level else []
                base += [module] if module else []
                yield from ((node.lineno, ".".join([*base, alias.name])) for alias in names)
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def offences(source: str, path: Path) -> list[str]:
    """What the module at this path, relative to the root, must not import."""
    part = part_of(".".join(path.with_suffix("").parts))
    violations = []
    for line, name in imports(source, path):
        root = name.partition(".")[0]
        if root == "scapy" and not path.as_posix().startswith(SCAPY_ONLY_IN):
            violations.append(f"{path}:{line}: scapy is imported only under {SCAPY_ONLY_IN}")
        if root in IMPURE and path.as_posix().startswith(
            tuple(f"{pure}{end}" for pure in PURE for end in "/.")
        ):
            violations.append(f"{path}:{line}: {root} in an engine; time, chance and I/O come from outside")
        if root not in PACKAGES:
            continue
        used = part_of(name)
        if used not in FLOOR:  # `msmqwire` itself, or a name that it exports
            if FLOOR[part] < TOP:
                violations.append(f"{path}:{line}: {name} is on top of everything; import it from its part")
        elif part == "service" and used not in {part, *SERVICE_MAY_USE}:
            violations.append(f"{path}:{line}: a service of any protocol imports {used}")
        elif not (used == part or FLOOR[used] < FLOOR[part] or (part, used) in SIDEWAYS):
            violations.append(
                f"{path}:{line}: {part} (floor {FLOOR[part]}) imports {used} (floor {FLOOR[used]})"
            )
    return violations


def room_of(module: str) -> str:
    """The room of a dotted module name of spark_udfs; the package itself for a name that it exports."""
    _, _, rest = module.partition(".")
    room = rest.partition(".")[0]
    return room if room in SPARK_FLOOR else "spark_udfs"


def spark_offences(source: str, path: Path) -> list[str]:
    """What the module of spark_udfs at this path, relative to the root, must not import."""
    room = room_of(".".join(path.with_suffix("").parts))
    return [
        f"{path}:{line}: {room} (floor {SPARK_FLOOR[room]}) imports {name} (floor {SPARK_FLOOR[used]})"
        for line, name in imports(source, path)
        if name.partition(".")[0] == "spark_udfs"
        and (used := room_of(name)) != room
        and SPARK_FLOOR[used] >= SPARK_FLOOR[room]
    ]


def service_offences(source: str, path: Path) -> list[str]:
    """What the module of msmqwire.service at this path, relative to the root, must not import."""
    room = path.with_suffix("").parts[2]
    used = {
        (line, parts[2])
        for line, name in imports(source, path)
        if (parts := name.split("."))[:2] == ["msmqwire", "service"] and len(parts) > 2
    }
    return [
        f"{path}:{line}: {room} (floor {SERVICE_FLOOR[room]}) imports {other} (floor {SERVICE_FLOOR[other]})"
        for line, other in used
        if other != room and SERVICE_FLOOR[other] >= SERVICE_FLOOR[room]
    ]


def room_offences(source: str, path: Path) -> list[str]:
    """What the module of msmqwire at this path, relative to the root, must not import of its own part."""
    part, *inner = path.with_suffix("").parts[1:]
    if part not in ROOMS or inner in ([], ["__init__"]) or (part in FREE and inner[0] not in ROOMS[part]):
        return []
    room, violations = inner[0], []
    for line, name in imports(source, path):
        package, *used = name.split(".")
        if package != "msmqwire" or used[:1] != [part] or len(used) < 2:
            continue
        used = used[1:]
        if used[0] == room == "protocols":
            if used[1:] and len(inner) > 1 and used[1] not in ("interface", inner[1]):
                violations.append(f"{path}:{line}: a protocol imports {name}")
            continue
        folder = ROOT / "msmqwire" / part
        is_module = folder.joinpath(used[0]).is_dir() or folder.joinpath(f"{used[0]}.py").is_file()
        if (used[0] if is_module else "__init__") not in {room, *ROOMS[part][room]}:
            violations.append(f"{path}:{line}: the room {part}/{room} imports {name}")
    return violations


def joined_of(module: str) -> str:
    """The protocol of those that join the queue manager that a dotted module name belongs to; "" for none."""
    for protocol, folders in JOINED.items():
        if any(f"{module}.".startswith(f"msmqwire.{folder}.") for folder in folders):
            return protocol
    return ""


def joined_offences(source: str, path: Path) -> list[str]:
    """What the module of the queue manager at this path, relative to the root, must not import."""
    own = joined_of(".".join(path.with_suffix("").parts))
    return [
        f"{path}:{line}: {own or 'the queue manager'} imports {name}"
        for line, name in imports(source, path)
        if (used := joined_of(name)) not in ("", own) and (own, used) not in JOINED_SIDEWAYS
    ]


def all_offences(path: Path) -> list[str]:
    """All that a module of ours must not import."""
    source = (ROOT / path).read_text(encoding="utf-8")
    found = [] if path in EXEMPT else offences(source, path)
    if path.parts[0] == "spark_udfs":
        found += spark_offences(source, path)
    elif path.parts[:2] == ("msmqwire", "service") and path.name != "__init__.py":
        found += service_offences(source, path)
    elif path.parts[:2] == ("msmqwire", "qm"):
        found += joined_offences(source, path)
    return found + (room_offences(source, path) if path.parts[0] == "msmqwire" else [])


def test_imports_go_down() -> None:
    parts = {part_of(".".join(path.with_suffix("").parts)) for path in MODULES if path not in EXEMPT}
    assert parts <= FLOOR.keys(), "give each part a floor in FLOORS"
    assert [offence for path in MODULES for offence in all_offences(path)] == []


@pytest.mark.parametrize(
    ("path", "source", "allowed"),
    [
        ("core.py", "from msmqwire.qm.protocols.srmp.engine import SrmpEngine", False),
        ("core.py", "from msmqwire.qm.protocols import registry", True),
        ("client/manager.py", "def f():\n    from msmqwire.qm.runtime.http import network", False),
        ("runtime/http/network.py", "from msmqwire.qm.protocols.srmp.effects import HttpRequest", True),
        ("runtime/multicast/transport.py", "from msmqwire.qm.protocols.srmp.on_demand import srmp_of", True),
        ("protocols/srmp/sending.py", "from msmqwire.qm.runtime.multicast import PgmOptions", False),
    ],
)
def test_the_rule_of_joined_protocols_itself(path: str, source: str, allowed: bool) -> None:
    assert (joined_offences(source, Path("msmqwire", "qm", path)) == []) is allowed


def test_each_module_is_used() -> None:
    """By another of ours, or by name: a command, an entry point, a module that is run."""
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in MODULES}
    used = {name for path, source in texts.items() for _, name in imports(source, path)}
    named = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named += (ROOT / "scapy_extension" / "pyproject.toml").read_text(encoding="utf-8")
    registered = (ROOT / "msmqwire" / "analysis" / "protocols").glob("*.py")
    named += "".join(path.read_text(encoding="utf-8") for path in registered)
    unused = []
    for path in MODULES:
        name = ".".join(path.with_suffix("").parts)
        if path.name in ("__init__.py", "__main__.py") or name in used or name in named:
            continue
        if 'if __name__ == "__main__"' in texts[path]:
            continue
        if any(f"{name}.".startswith(f"{one}.") or one.startswith(f"{name}.") for one in used):
            continue
        stem = re.compile(rf"[\"'.]{path.stem}[\"']|[\"']{path.stem}\b")
        if not any(stem.search(source) for other, source in texts.items() if other != path):
            unused.append(path.as_posix())
    assert unused == []


def test_each_room_of_spark_udfs_has_a_floor() -> None:
    rooms = {path.with_suffix("").parts[1] for path in MODULES if path.parts[0] == "spark_udfs"}
    assert rooms - {"__init__"} == SPARK_FLOOR.keys() - {"spark_udfs"}


SERVICE = [path for path in MODULES if path.parts[:2] == ("msmqwire", "service") and len(path.parts) > 2]


def test_each_room_of_service_has_a_floor() -> None:
    rooms = {path.with_suffix("").parts[2] for path in SERVICE}
    assert rooms - {"__init__"} == SERVICE_FLOOR.keys()


@pytest.mark.parametrize(
    ("path", "source", "allowed"),
    [
        ("driver.py", "from msmqwire.service.guest import Guest", True),
        ("driver.py", "from msmqwire.service.listener import Listener", False),
        ("driver.py", "def f():\n    from msmqwire.service import rebuilding", False),
        ("listener.py", "from msmqwire.service.driver import Driver", False),
        ("listener.py", "from msmqwire.service.partial_packets import PartialPackets", True),
        ("rebuilding.py", "from msmqwire.service.driver import Driver", True),
        ("store/sqlite.py", "from msmqwire.service.store.table import Table", True),
        ("store/sqlite.py", "from msmqwire.service.logs import log", False),
        ("virtual/loop.py", "from .process_loop import ProcessLoop", True),
        ("virtual/loop.py", "from msmqwire.service.event_loop import EventLoop", False),
    ],
)
def test_the_rule_of_the_rooms_of_service_itself(path: str, source: str, allowed: bool) -> None:
    assert (service_offences(source, Path("msmqwire/service", path)) == []) is allowed


def test_sideways_stays_on_its_floor_and_has_no_circle() -> None:
    assert all(FLOOR[importer] == FLOOR[imported] for importer, imported in SIDEWAYS)
    left = set(SIDEWAYS)
    while ends := {arrow for arrow in left if arrow[1] not in {importer for importer, _ in left}}:
        left -= ends
    assert not left, f"a circle: {sorted(left)}"


@pytest.mark.parametrize(
    ("path", "source", "allowed"),
    [
        ("headers/base.py", "from msmqwire.schema import UInt16", True),
        ("headers/base.py", "from . import user", True),
        ("headers/__init__.py", "from .base import BASE_HEADER", True),
        ("headers/base.py", "from .. import schema", True),
        ("headers/base.py", "from ..schema import UInt16", True),
        ("headers/base.py", "from .. import packets", False),
        ("headers/base.py", "from ..packets import identify", False),
        ("headers/base.py", "import msmqwire.packets", False),
        ("headers/base.py", "import msmqwire.packets as p", False),
        ("headers/base.py", "import os, msmqwire.qm.protocols.binary", False),
        ("headers/base.py", "def f():\n    from msmqwire import lint", False),
        ("headers/base.py", "if TYPE_CHECKING:\n    from msmqwire.qm import model", False),
        ("headers/base.py", "importlib.import_module('msmqwire.qm')", False),
        ("headers/base.py", "import msmqwire", False),
        ("headers/base.py", "from msmqwire import parse", False),
        ("headers/base.py", "import fuzz", False),
        ("errors.py", "from .schema import UInt16", False),
        ("packets.py", "from .headers import base", True),
        ("packets.py", "from .framing import frame_length", False),
        ("lint.py", "import scapy.all", False),
        ("cli/parse.py", "from scapy.packet import Packet", False),
        ("plugins/scapy/base.py", "from scapy.packet import Packet", True),
        ("cli/parse.py", "import msmqwire", True),
        ("cli/parse.py", "from fuzz import mutations", True),
        ("cli/parse.py", "import spark_udfs.stages", False),
        ("qm/protocols/binary/session.py", "from time import monotonic", False),
        ("qm/rules/messages.py", "import sqlite3", False),
        ("qm/model.py", "import random", False),
        ("qm/server.py", "import asyncio, time", True),
        ("netware/rules/jobs.py", "from msmqwire.ncp.constants import QueueStatus", True),
        ("plugins/wireshark/reader.py", "from scapy.packet import Packet", False),
        ("netware/rules/jobs.py", "import os", False),
        ("analysis/lint/base.py", "from msmqwire.analysis.dissection import Item", False),
        ("analysis/fate/rows.py", "from msmqwire.analysis.dissection import Item", True),
        ("analysis/fate/rows.py", "from msmqwire.tables import read_capture", True),
        ("tables/decoder.py", "from msmqwire.analysis.fate import fate", False),
        ("ncp/framing.py", "from msmqwire.netware.model import job", False),
        ("service/driver.py", "from msmqwire.errors import StoreError", True),
        ("service/driver.py", "from msmqwire.headers import BASE_HEADER", False),
        ("service/driver.py", "from msmqwire.qm.core import Core", False),
    ],
)
def test_the_rule_itself(path: str, source: str, allowed: bool) -> None:
    assert (offences(source, Path("msmqwire", path)) == []) is allowed


@pytest.mark.parametrize(
    ("path", "source", "allowed"),
    [
        ("source/parts.py", "from .schema import TIME", True),
        ("source/parts.py", "from spark_udfs.reassembly import packets", False),
        ("source/parts.py", "def f():\n    from spark_udfs.jobs.sessions import main", False),
        ("source/parts.py", "import spark_udfs", False),
        ("functions.py", "from spark_udfs.source.schema import TIME", True),
        ("functions.py", "from spark_udfs.reassembly.packets import packets", False),
        ("reassembly/packets.py", "from spark_udfs.source.schema import TIME", True),
        ("reassembly/packets.py", "if TYPE_CHECKING:\n    from spark_udfs import jobs", False),
        ("__init__.py", "from spark_udfs.reassembly.packets import packets", True),
        ("__init__.py", "from spark_udfs.jobs import decode", False),
        ("jobs/decode.py", "from spark_udfs import register", True),
        ("jobs/decode.py", "from spark_udfs.reassembly.packets import packets", True),
    ],
)
def test_the_rule_of_the_rooms_itself(path: str, source: str, allowed: bool) -> None:
    assert (spark_offences(source, Path("spark_udfs", path)) == []) is allowed


# Who reports that changes are durable, and so decides what comes before the effects.
REPORTERS = {
    "benchmarks/engine.py",  # measures bare cores
    "msmqwire/qm/sim/driver_mistakes.py",  # one of which is to report it early
    "msmqwire/qm/sim/observed_core.py",  # passes on what the driver reports
    "msmqwire/service/driver.py",
}


def test_only_the_driver_says_what_is_durable() -> None:
    reporters = {
        path.relative_to(ROOT).as_posix()
        for folder in (*PACKAGES, "benchmarks", "examples", "tests", "tools")
        for path in ROOT.joinpath(folder).rglob("*.py")
        if re.search(r"\.committed\(\)", path.read_text(encoding="utf-8"))
    }
    assert reporters == REPORTERS


def test_importing_msmqwire_is_light() -> None:
    program = "import msmqwire, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not HEAVY & set(run.stdout.split())


COMPILERS = {"jit", "njit", "inlined", "intrinsic"}


def compiles(source: str) -> list[str]:
    """The functions of a module that are compiled."""
    if not any(name in source for name in COMPILERS):
        return []
    return [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if ast.unparse(decorator).partition("(")[0].rpartition(".")[2] in COMPILERS
    ]


def test_compiled_functions_are_all_under_compiled() -> None:
    compiled = {path for path in MODULES if compiles((ROOT / path).read_text(encoding="utf-8"))}
    assert compiled
    folder = Path("msmqwire/tables/compiled")
    assert {path for path in compiled if folder not in path.parents} == set()


@pytest.mark.parametrize("decorator", ["jit", "inlined", "jit.inlined", "numba.njit(nogil=True)"])
def test_compiled_functions_are_recognised(decorator: str) -> None:
    assert compiles(f"@{decorator}\ndef scan(state): ...\n") == ["scan"]


@pytest.mark.parametrize(
    ("path", "source", "allowed"),
    [
        ("qm/rules/messages.py", "from msmqwire.qm.model import message", True),
        ("qm/rules/messages.py", "from msmqwire.qm.runtime import server", False),
        ("qm/core.py", "from msmqwire.qm.runtime import server", False),
        ("qm/protocols/srmp/sender.py", "from msmqwire.qm.protocols.srmp.states import State", True),
        ("qm/protocols/srmp/sender.py", "from msmqwire.qm.protocols.interface import Effect", True),
        ("qm/protocols/srmp/sender.py", "from msmqwire.qm.protocols.binary.session import Session", False),
        ("netware/rules/jobs.py", "def f():\n    from msmqwire.netware.store import rows", False),
        ("tables/compiled/scan.py", "from msmqwire.tables.arrow import batch", False),
        ("tables/arrow/batch.py", "from msmqwire.tables.columns import COLUMNS", True),
        ("tables/decoder.py", "from msmqwire.tables.arrow import batch", True),
        ("tables/arrow/batch.py", "from msmqwire.tables import read_capture", False),
        ("tables/lake/writing.py", "from msmqwire.tables import Where", True),
    ],
)
def test_the_rule_of_rooms_itself(path: str, source: str, allowed: bool) -> None:
    assert (room_offences(source, Path("msmqwire", path)) == []) is allowed


LINES_MAX: Final = 500
"""Of a module: one that has more has more than one subject."""
GENERATED: Final = (
    "msmqwire/schema/generated/",
    "msmqwire/tables/compiled/generated.py",
    "msmqwire/tables/compiled/packet_judge.py",
)


def long_modules(lines: Mapping[str, int]) -> set[str]:
    """The modules, of those with these numbers of lines, that are written by hand and too long."""
    return {path for path, count in lines.items() if count > LINES_MAX and not path.startswith(GENERATED)}


def test_a_module_has_at_most_500_lines() -> None:
    lines = {path.as_posix(): len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert all(any(path.startswith(made) for path in lines) for made in GENERATED)
    assert long_modules(lines) == set()


def test_the_rule_of_lines_itself() -> None:
    generated = "msmqwire/tables/compiled/generated.py"
    assert long_modules({"msmqwire/extras.py": 501, "fuzz/run.py": 500, generated: 1000}) == {
        "msmqwire/extras.py"
    }
