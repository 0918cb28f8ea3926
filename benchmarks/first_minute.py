"""What a newcomer pays first: the size of an installation, and the first run of each command on it.

    python benchmarks/first_minute.py [--wheel WHEEL] [--runs N]

Makes a fresh virtual environment with the base of this checkout and one with the extra `columns`; with
`--wheel` another one with that wheel, which may have the library of compiled code. Prints the seconds that
pip took (its cache of packages is left as it is), the megabytes in site-packages without pip and setuptools,
the processor time of commands to a port where nobody listens (median of the runs), and that of the first
decoding of a small capture: nothing is compiled or cached before it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
CAPTURE: Final = str(ROOT / "examples/session.pcap")
QUEUE: Final = r"DIRECT=TCP:127.0.0.1\private$\orders"
PORT: Final = "1"
INSTALLERS: Final = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
CLOSED: Final = {
    "send": ("send", QUEUE, "--body", "x", "--port", PORT, "--timeout", "0"),
    "receive --remote": ("receive", QUEUE, "--remote", "--rpc-port", PORT),
    "netware jobs": ("netware", "jobs", "PRINT_Q", "--connect", f"127.0.0.1:{PORT}", "--as", "ANNA"),
    "dissect": ("dissect", CAPTURE),
}
READ: Final = f"import msmqwire; msmqwire.read_capture({CAPTURE!r}).read_all()"


def install(folder: Path, requirement: str) -> tuple[Path, float, float]:
    """Make an environment; return its Python, the seconds of pip, and the megabytes."""
    venv.create(folder, with_pip=True)
    python = folder / "bin/python"
    start = time.perf_counter()
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", requirement], check=True, stderr=subprocess.PIPE
    )
    seconds = time.perf_counter() - start
    (packages,) = folder.glob("lib/python*/site-packages")
    size = sum(
        path.lstat().st_size
        for entry in packages.iterdir()
        if not entry.name.startswith(INSTALLERS)
        for path in ([entry] if entry.is_file() else entry.rglob("*"))
        if path.is_file()
    )
    return python, seconds, size / 1e6


def processor_time(command: Sequence[str | Path], environment: Mapping[str, str]) -> float:
    """Run a command; return the seconds of processor time that it and its children took."""
    before = os.times()
    subprocess.run(command, env=environment, cwd=tempfile.gettempdir(), capture_output=True, check=False)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wheel", type=Path, help="a wheel with the library of compiled code")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    requirements = {"base": str(ROOT), "columns": f"{ROOT}[columns]"}
    if arguments.wheel is not None:
        requirements["wheel"] = f"{arguments.wheel.resolve()}[columns]"
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HOME": folder, "XDG_CACHE_HOME": f"{folder}/cache"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # bytecode is kept, as where nothing is set
        for name, requirement in requirements.items():
            python, seconds, size = install(Path(folder, name), requirement)
            print(f"{name}: pip {seconds:.1f} s, {size:.0f} MB", flush=True)
            program = shutil.which("msmqwire", path=str(python.parent))
            assert program is not None
            if name == "base":
                for title, command in CLOSED.items():
                    processor_time([program, *command], environment)  # compiles the sources to bytecode
                    times = [processor_time([program, *command], environment) for _ in range(arguments.runs)]
                    print(f"  {title:18} {statistics.median(times):.3f} s of processor time", flush=True)
                continue
            print(
                f"  first read_capture {processor_time([python, '-c', READ], environment):.2f} s", flush=True
            )
            target = Path(folder, f"{name}.parquet")
            command = [program, "dissect", "--parquet", target, CAPTURE]
            print(f"  --parquet          {processor_time(command, environment):.2f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
