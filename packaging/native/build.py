"""Builds the library of compiled functions beside their package, as `make native` does, and prints its path.

It takes numba and a C compiler, as a linker, and about two minutes; what is there and up to date is kept.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from msmqwire.tables.compiled.library import FOLDER, NAME, Refused, load, stamp  # noqa: E402

_C: Final = Path(__file__).with_name("library.c")


class Progress:
    """Lines that say what is done; on a terminal each in place of the one before."""

    def __init__(self) -> None:
        self._start, self._width = time.monotonic(), 0

    def show(self, text: str) -> None:
        """Show what is done next."""
        line = f"{time.monotonic() - self._start:4.0f} s  {text}"
        if sys.stderr.isatty():
            print(f"\r{line:{self._width}}", end="", file=sys.stderr, flush=True)
            self._width = len(line)
        else:
            print(line, file=sys.stderr, flush=True)

    def end(self, text: str) -> None:
        """Show a last line."""
        self.show(text)
        if sys.stderr.isatty():
            print(file=sys.stderr)


def build(path: Path, progress: Progress) -> None:
    """Build the library and put it at a path, in place of another all at once."""
    import compiling

    built_from = stamp()  # before the sources can change
    progress.show(f"functions for {compiling.PROCESSOR}")
    module = compiling.make_module(
        lambda name, number, count: progress.show(f"function {number} of {count}: {name}")
    )
    progress.show("optimizing")
    compiling.optimize(module)
    progress.show("machine code")
    machine_code = compiling.machine_code(module)
    progress.show("linking")
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".building-") as folder:
        library = _link(machine_code, built_from, Path(folder))
        load(library)  # not at its place: what was loaded from there is not loaded again
        os.replace(library, path)


def _link(machine_code: bytes, built_from: str, folder: Path) -> Path:
    """Return a library, in a folder, of machine code and what is in C."""
    from setuptools._distutils.ccompiler import new_compiler
    from setuptools._distutils.sysconfig import customize_compiler

    compiler = new_compiler()
    customize_compiler(compiler)
    source, code = folder / "library.c", folder / f"functions{compiler.obj_extension}"
    source.write_text(f'{_C.read_text()}\nEXPORTED const char msmqwire_stamp[] = "{built_from}";\n')
    code.write_bytes(machine_code)
    objects = compiler.compile([str(source)], output_dir=str(folder))
    # Parts of a path that is absolute would come again below the folder.
    compiler.link_shared_object([*objects, str(code)], str(folder / NAME))
    return folder / NAME


def main() -> int:
    path, progress = FOLDER / NAME, Progress()
    try:
        load(path)
    except Refused:
        build(path, progress)
        progress.end(f"{path.stat().st_size // 1024} KiB")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
