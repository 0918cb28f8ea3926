"""A copy of the project with the modules of the queue manager compiled: for its tests and benchmarks.

    python tools/generate/compiled_copy.py FOLDER

The folder must not be there yet. Then ``cd FOLDER`` and run commands on the compiled code there: ``python -m
pytest tests/service/store/test_torture.py``, ``python benchmarks/engine.py``. Tests that replace a function
of the engine fail, since compiled code does not look it up.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))

from compile_hook import compile_modules, compiled_modules, write_codec  # noqa: E402

__all__ = ["compiled_modules", "copy_compiled", "copy_project"]


def copy_project(folder: Path) -> None:
    """Copy the files that git knows into a new folder."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, place)


def copy_compiled(folder: Path) -> list[Path]:
    """Copy the project into a new folder, with the compiled modules beside their sources."""
    copy_project(folder)
    for place in (ROOT, folder):
        write_codec(place)  # git does not know it
    libraries = []
    with tempfile.TemporaryDirectory() as made:
        for path, name in compile_modules(ROOT, Path(made)).items():
            shutil.copy2(path, folder / name)
            libraries.append(folder / name)
    return libraries


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-") or Path(sys.argv[1]).exists():
        sys.exit(__doc__)
    print(f"{len(copy_compiled(Path(sys.argv[1])))} libraries")


if __name__ == "__main__":
    main()
