"""The first costs for a newcomer: the size of an installation, and the first run of each command on it.

    python benchmarks/first_minute.py [--wheel WHEEL] [--runs N] [--megabytes N]

Makes a fresh virtual environment with the base of this checkout and one with the extra `columns`; with
`--wheel` another one with that wheel, which may have the library of compiled code. Prints the seconds that
pip took (its cache of packages is left as it is), the megabytes in site-packages without pip and setuptools,
the processor time of commands to a port where nobody listens (median of the runs), that of the first
decoding of a small capture, and that of the first batch of rows of a capture which is written for it:
nothing is compiled or cached before it.
"""

from __future__ import annotations

import argparse
import os
import resource
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
sys.path.insert(0, str(ROOT))

from benchmarks.support import captures  # noqa: E402

CAPTURE: Final = str(ROOT / "examples/session.pcap")
QUEUE: Final = r"DIRECT=TCP:127.0.0.1\private$\orders"
PORT: Final = "1"
INSTALLERS: Final = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
UNAVAILABLE: Final = 69
"""The status of a command to a closed port."""
CLOSED: Final = {
    "send": ("send", QUEUE, "--body", "x", "--port", PORT, "--timeout", "0"),
    "receive --remote": ("receive", QUEUE, "--remote", "--rpc-port", PORT),
    "netware jobs": ("netware", "jobs", "PRINT_Q", "--connect", f"127.0.0.1:{PORT}", "--as", "ANNA"),
}
READ: Final = f"import msmqwire; msmqwire.read_capture({CAPTURE!r})"
FIRST_BATCH: Final = "import sys, msmqwire; next(msmqwire.read_capture(sys.argv[1], batch_rows=65_536))"
FRAMES_PER_MB: Final = 1_295
"""Sizes of captures that `benchmarks.support.captures` writes."""


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


def processor_time(
    command: Sequence[str | Path], environment: Mapping[str, str], *, status: int = 0
) -> float:
    """Run a command that ends with a status; return the seconds of processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, env=environment, cwd=tempfile.gettempdir(), capture_output=True, text=True, check=False
    )
    if done.returncode != status:
        sys.exit(f"{command} ended with {done.returncode}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def median_time(
    command: Sequence[str | Path], environment: Mapping[str, str], runs: int, status: int = 0
) -> float:
    """Return the median of runs after a first one, which compiles sources to bytecode."""
    processor_time(command, environment, status=status)
    return statistics.median(processor_time(command, environment, status=status) for _ in range(runs))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wheel", type=Path, help="a wheel with the library of compiled code")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--megabytes", type=int, default=100, help="size of the large capture, by default 100"
    )
    arguments = parser.parse_args()
    requirements = {"base": str(ROOT), "columns": f"{ROOT}[columns]"}
    if arguments.wheel is not None:
        requirements["wheel"] = f"{arguments.wheel.resolve()}[columns]"
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HOME": folder, "XDG_CACHE_HOME": f"{folder}/cache"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # bytecode is kept, as where nothing is set
        large = Path(folder, "large.pcap")
        captures.write(large, arguments.megabytes * FRAMES_PER_MB)
        for name, requirement in requirements.items():
            python, seconds, size = install(Path(folder, name), requirement)
            print(f"{name}: pip {seconds:.1f} s, {size:.0f} MB", flush=True)
            program = shutil.which("msmqwire", path=str(python.parent))
            assert program is not None
            if name == "base":
                for title, command in CLOSED.items():
                    seconds = median_time([program, *command], environment, arguments.runs, UNAVAILABLE)
                    print(f"  {title:18} {seconds:.3f} s of processor time", flush=True)
                seconds = median_time([program, "dissect", CAPTURE], environment, arguments.runs)
                print(f"  {'dissect':18} {seconds:.3f} s", flush=True)
                continue
            print(
                f"  first read_capture {processor_time([python, '-c', READ], environment):.2f} s", flush=True
            )
            target = Path(folder, f"{name}.parquet")
            command = [program, "dissect", "--parquet", target, CAPTURE]
            print(f"  --parquet          {processor_time(command, environment):.2f} s", flush=True)
            if name == "columns":
                continue  # read packet by packet: its first batch takes as long as the others
            seconds = processor_time([python, "-c", FIRST_BATCH, large], environment)
            print(f"  first batch        {seconds:.2f} s, of {large.stat().st_size / 1e6:.0f} MB", flush=True)


if __name__ == "__main__":
    sys.exit(main())
