"""Environments with a wheel, and with some of the packages that are installed here."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Collection
from pathlib import Path


def fresh_environment(folder: Path, wheel: Path, *, without: Collection[str]) -> Path:
    """Make an environment with a wheel, and return the folder of its programs.

    The other packages are those of this environment, found by a finder that refuses some modules.
    """
    venv.create(folder, symlinks=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", programs / "python", "install", "--quiet", "--no-deps",
         "--no-index", "--disable-pip-version-check", wheel],
        check=True,
    )  # fmt: skip
    variables = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", variables))
    others = sysconfig.get_path("purelib")
    (packages / "others.pth").write_text(f"{others}\nimport without_modules\n")
    (packages / "without_modules.py").write_text(
        "import sys\n"
        "class Refuses:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in {tuple(without)!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Refuses())\n"
    )
    return programs
