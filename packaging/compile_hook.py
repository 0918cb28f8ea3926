"""A build hook: it writes the codec out, and makes the wheel of one platform if asked to.

The code of structures, `msmqwire/schema/generated`, is made for each wheel and editable install.

``MSMQWIRE_NATIVE=1 pip install .`` makes a wheel for one Python and platform, which needs a C compiler. In it
are the library that reads captures, built by packaging/native/build.py, and the modules on the hot path of
the queue manager, compiled with mypyc. Their sources are there too, for tracebacks. Without the variable the
wheel is pure Python.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILED = (
    "msmqwire/names/origins.py",
    "msmqwire/qm/client/manager.py",
    "msmqwire/qm/client/protecting.py",
    "msmqwire/qm/client/sending.py",
    "msmqwire/qm/core.py",
    "msmqwire/qm/model/*.py",
    "msmqwire/qm/protocols/**/*.py",
    "msmqwire/qm/rules/*.py",
    "msmqwire/qm/runtime/connection.py",
    "msmqwire/qm/runtime/control_frames.py",
    "msmqwire/qm/runtime/engine_driver.py",
    "msmqwire/qm/runtime/held_messages.py",
    "msmqwire/qm/runtime/joined.py",
    "msmqwire/qm/runtime/message_json.py",
    "msmqwire/qm/runtime/message_record.py",
    "msmqwire/qm/runtime/pushed.py",
    "msmqwire/qm/runtime/refused.py",
    "msmqwire/qm/runtime/subscriptions.py",
    "msmqwire/qm/runtime/transport.py",
    "msmqwire/qm/security/protection.py",
    "msmqwire/service/alarm.py",
    "msmqwire/service/batch.py",
    "msmqwire/service/beginning.py",
    "msmqwire/service/carrier.py",
    "msmqwire/service/carrying.py",
    "msmqwire/service/clock.py",
    "msmqwire/service/driver.py",
    "msmqwire/service/event_loop.py",
    "msmqwire/service/guest.py",
    "msmqwire/service/origin_shares.py",
    "msmqwire/service/partial_packets.py",
    "msmqwire/service/reporter.py",
    "msmqwire/service/room_watch.py",
    "msmqwire/service/store/changes.py",
    "msmqwire/service/store/memory.py",
    "msmqwire/service/store/read_ahead.py",
    "msmqwire/service/store/sqlite.py",
    "msmqwire/service/unsettled.py",
    # Writers of records are faster interpreted: compiled code reads attributes in slots more slowly.
    # Composers take plain values.
    "msmqwire/schema/generated/composers/packets_usermessage.py",
    "msmqwire/schema/generated/readers/headers_base.py",
    "msmqwire/schema/generated/readers/packets.py",
    "msmqwire/schema/generated/readers/packets_usermessage.py",
    "msmqwire/schema/utf16.py",
)
INTERPRETED = frozenset(
    {
        # Their fields are read by name and annotation, which compiled classes do not keep.
        "msmqwire/qm/model/settings.py",
        # Bases of enumerations that other modules make, which compiled ones can't be.
        "msmqwire/qm/model/timer_kind.py",
        "msmqwire/service/store/table.py",
        # mypyc 2.4 makes C of the first that no compiler takes, and can't have a frozen generic dataclass.
        "msmqwire/qm/model/enumerations.py",
        "msmqwire/qm/rules/expiring_cache.py",
    }
)
EXTRAS = ("columns", "native", "qm")
"""Those that the build needs: numba imports what it compiles, and mypy reads the types of all imports."""
VARIABLE = "MSMQWIRE_NATIVE"


def is_asked_for() -> bool:
    """Whether the variable asks for the wheel of one platform."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def compiled_modules(root: Path) -> list[str]:
    """Return the paths of the modules that are compiled, relative to the root of the project."""
    found = (path for pattern in COMPILED for path in root.glob(pattern) if path.name != "__init__.py")
    return sorted({path.relative_to(root).as_posix() for path in found} - INTERPRETED)


def compile_modules(root: Path, folder: Path) -> dict[str, str]:
    """Compile the modules into a folder; return the place of each library in the wheel by its path."""
    from mypyc.build import mypycify
    from setuptools import Distribution

    with contextlib.chdir(root):  # mypyc names modules by paths relative to the current folder
        extensions = mypycify(
            ["--config-file=", "--ignore-missing-imports", *compiled_modules(root)],
            opt_level="2",
            debug_level="0",
            multi_file=True,
            target_dir=str(folder / "c"),
        )
        command = Distribution({"name": "msmqwire", "ext_modules": extensions}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "objects")
        command.parallel = os.cpu_count()
        command.ensure_finalized()
        command.run()
    libraries = (path for path in (folder / "lib").rglob("*") if path.is_file())
    return {str(path): path.relative_to(folder / "lib").as_posix() for path in libraries}


def library(root: Path) -> dict[str, str]:
    """Build the library beside its package, unless it is up to date; return its place by its path."""
    program = [sys.executable, str(root / "packaging" / "native" / "build.py")]
    path = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    return {path: Path(path).relative_to(root).as_posix()}


def write_codec(root: Path) -> bool:
    """Write the code of structures beside their declarations; return whether that was done."""
    program = [sys.executable, "-I", str(root / "tools" / "generate" / "codec_code.py")]
    return subprocess.run(program, check=False).returncode == 0


class CompileHook(BuildHookInterface[Any]):
    """Adds to a wheel what is generated, and what is compiled."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what the build needs besides hatchling."""
        if not is_asked_for():
            return []
        project = self.metadata.core
        extras = (project.optional_dependencies[name] for name in EXTRAS)
        return [*project.dependencies, *itertools.chain.from_iterable(extras)]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the codec out, and compile if asked to, before the files of the wheel are gathered."""
        root = Path(self.root).resolve()
        if write_codec(root):
            build_data.setdefault("artifacts", []).append("/msmqwire/schema/generated/**/*.py")
        else:
            self.app.display_warning(
                "The codec can't be written out: it is made at the first use of each part."
            )
        if not is_asked_for() or version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory(prefix="msmqwire-compiled-")
        build_data["force_include"] |= library(root) | compile_modules(root, Path(self._folder.name))
        build_data["pure_python"], build_data["infer_tag"] = False, True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made on the way."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()
