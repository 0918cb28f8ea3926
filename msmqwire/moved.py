"""The former names of modules that have moved, which can still be imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Final
from warnings import warn

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # that module imports tempfile and all that compresses: a fifth of the start of a command

_BYTES_OF_NCP: Final = (
    "attributes", "bindery_calls", "calls", "constants", "file_calls", "framing", "headers", "job_structures",
    "job_times", "ncp_packet", "packet_json", "packets", "print_record", "queue_calls", "readings",
    "type_names",
)  # fmt: skip
_PACKAGE: Final = f"{__package__}."
MOVED: Final = {
    "columnar": "tables",
    "diagrams": "analysis.diagrams",
    "display": "schema.display",
    "dissection": "analysis.dissection",
    "fate": "analysis.fate",
    "lake": "tables.lake",
    "layers": "plugins.scapy",
    "lint": "analysis.lint",
    "qm.runtime.redirections_file": "qm.runtime.http.redirections_file",
    "qm.runtime.signature_files": "qm.runtime.http.signature_files",
    "qms": "netware",
    "remote_read.queue_format": "rpc.queue_format",
    "report": "analysis.report",
    "wireshark": "plugins.wireshark",
    **{f"netware.{name}": f"ncp.{name}" for name in _BYTES_OF_NCP},
}
"""The present name of each, both without the name of the package before it."""


def present_name(name: str) -> str | None:
    """Return where a module is that had this name; None if it has not moved."""
    if not name.startswith(_PACKAGE):
        return None
    parts = name.removeprefix(_PACKAGE).split(".")
    for size in range(len(parts), 0, -1):
        if (moved := MOVED.get(".".join(parts[:size]))) is not None:
            return _PACKAGE + ".".join([moved, *parts[size:]])
    return None


class Finder:
    """Finds modules by their former names, before all other finders; the first import of each warns."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a specification that loads the module of the present name; None if it has not moved."""
        present = present_name(name)
        return None if present is None else ModuleSpec(name, _Loader(present))


class _Loader(Loader):
    """Loads a module that has moved: the same module, under its former name too."""

    def __init__(self, present: str) -> None:
        self._present = present

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the import make the module."""

    def exec_module(self, module: ModuleType) -> None:
        former = module.__name__
        sys.modules[former] = import_module(self._present)
        warn(f"{former} is {self._present} now", DeprecationWarning, stacklevel=2)
