"""The openssl command with its legacy algorithms. Without it, modules that import this one are skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.patience import limit

OPENSSL = shutil.which("openssl")
PROVIDERS = ("-provider", "legacy", "-provider", "default")


def _works() -> bool:
    """Whether it has the algorithms that messages need: those of the legacy provider of openssl 3."""
    if OPENSSL is None:
        return False
    command = [OPENSSL, "list", "-cipher-algorithms", *PROVIDERS]
    run = subprocess.run(command, capture_output=True, timeout=limit(60), check=False)
    return run.returncode == 0 and b"RC2-40-CBC" in run.stdout


if not _works() and os.environ.get("CI") != "true":
    pytest.skip("openssl 3 with its legacy provider is not installed", allow_module_level=True)


class OpenSSL:
    """openssl in a folder, for the files that it reads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def file(self, name: str, content: bytes) -> str:
        """Write a file and return its path."""
        path = self._folder / name
        path.write_bytes(content)
        return str(path)

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Return the output of a command with these arguments; fail if it fails."""
        run = self.try_to_run(*arguments, stdin=stdin)
        assert run.returncode == 0, run.stderr.decode()
        return run.stdout

    def try_to_run(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a command with these arguments."""
        assert OPENSSL is not None, "openssl is not installed"
        command = [OPENSSL, arguments[0], *PROVIDERS, *arguments[1:]]
        return subprocess.run(command, input=stdin, capture_output=True, timeout=limit(60), check=False)
