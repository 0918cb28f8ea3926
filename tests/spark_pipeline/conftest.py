"""A real cluster for the tests: a master and two workers as processes on this machine, with an address each.

The executors import the library from the zip file shipped to them, as on any cluster.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import captures as c
from tests.support import handmade as h
from tests.support.paths import ROOT
from tests.support.patience import limit

WORKERS = 2
START_SECONDS = limit(60)


@pytest.hookimpl(tryfirst=True)  # xdist looks at the marks in a hook of this name
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run all tests of the cluster in one process where tests are distributed (``--dist loadgroup``)."""
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if "cluster" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group("cluster"))


@dataclass(frozen=True)
class Cluster:
    """A running standalone cluster.

    Attributes:
        master: its address for Spark, ``spark://...``.
        package: the zip file with the library, for ``--py-files``.
        folder: the working folder of its processes.
    """

    master: str
    package: Path
    folder: Path


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def package(folder: Path) -> Path:
    """Return the library as a zip file for ``--py-files``, with all subpackages and what is compiled."""
    path = folder / "msmqwire.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("msmqwire", "spark_udfs"):
            for file in sorted([*(ROOT / name).rglob("*.py"), *(ROOT / name).rglob("_reader.*")]):
                archive.write(file, file.relative_to(ROOT))
    return path


def start(
    java: Path, folder: Path, name: str, kind: str, *arguments: str, host: str = "127.0.0.1"
) -> subprocess.Popen[bytes]:
    import pyspark

    home = Path(pyspark.__file__).parent
    scala = next(home.glob("jars/scala-library-*.jar")).name.split("-")[2].rpartition(".")[0]
    opened = [f"--add-opens=java.base/{part}=ALL-UNNAMED" for part in ("java.nio", "sun.nio.ch", "java.lang")]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {
        "SPARK_HOME": str(home),
        "SPARK_SCALA_VERSION": scala,
        "SPARK_LOCAL_IP": host,
        "SPARK_PUBLIC_DNS": host,
        "XDG_CACHE_HOME": str(folder / "cache"),  # compiled functions, extracted from the zip file
    }
    work = folder / name
    work.mkdir()
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [java / "bin" / "java", "-Xmx256m", *opened, "-cp", str(home / "jars" / "*"),
             f"org.apache.spark.deploy.{kind}", "--host", host, *arguments],
            stdout=log, stderr=subprocess.STDOUT, cwd=work, env=environment,
        )  # fmt: skip


def wait_for_workers(status: str, processes: list[subprocess.Popen[bytes]], folder: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if any(process.poll() is not None for process in processes):
            break
        try:
            with urllib.request.urlopen(status, timeout=limit(5)) as response:
                if json.load(response)["aliveworkers"] == WORKERS:
                    return
        except (OSError, ValueError):
            pass  # it does not listen yet, or answers with a page until its JSON is there
        time.sleep(0.2)  # between two looks
    logs = "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(folder.glob("*.log")))
    raise RuntimeError(f"the cluster did not start:\n{logs}")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers, which have room for two programs at a time, stopped at the end.

    Each worker has an address of its own: Spark starts a second attempt at a slow task on another host only.
    """
    pytest.importorskip("pyspark")
    from spark_udfs.java import use_java

    java, folder = use_java(), tmp_path_factory.mktemp("cluster")
    port, web = free_port(), free_port()
    master = f"spark://127.0.0.1:{port}"
    processes = [
        start(java, folder, "master", "master.Master", "--port", str(port), "--webui-port", str(web))
    ]
    try:
        for number in range(WORKERS):
            name = f"worker{number}"
            processes.append(
                start(
                    java, folder, name, "worker.Worker", "--cores", "2", "--memory", "1g",
                    "--webui-port", str(free_port()), "--work-dir", str(folder / name), master,
                    host=f"127.0.0.{1 + number}",
                )
            )  # fmt: skip
        wait_for_workers(f"http://127.0.0.1:{web}/json/", processes, folder)
        archive = package(folder)
        yield Cluster(master, archive, folder)
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            try:
                process.wait(limit(20))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def settings(cluster: Cluster) -> dict[str, str]:
    """The configuration of a driver of the cluster."""
    return {
        "spark.master": cluster.master,
        "spark.submit.pyFiles": str(cluster.package),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "768m",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.cores.max": str(WORKERS),
        "spark.task.maxFailures": "1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(cluster.folder / "warehouse"),
        "spark.local.dir": str(cluster.folder / "local"),
    }


@pytest.fixture(scope="session")
def spark(cluster: Cluster) -> Iterator[Any]:
    """A session on the cluster with the data source and the functions."""
    from pyspark.sql import SparkSession

    import spark_udfs

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # for the planning processes and the executors
        builder = SparkSession.builder.appName("tests")
        for key, value in settings(cluster).items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        try:
            spark_udfs.register(session)
            yield session
        finally:
            session.stop()


def numbered_session(port: int, start_ns: int) -> c.TcpConversation:
    """A session whose messages are numbered by their labels."""
    talk = c.TcpConversation((c.CLIENT, port), start_ns=start_ns)
    talk.handshake().send(h.establish_connection())
    talk.send(h.establish_connection(), by_client=False)
    for number in range(30):
        header = h.properties_header(label=f"{port}/{number}", body=bytes(200 + number))
        talk.send(h.user_message(properties=header))
    talk.send(h.session_ack(), by_client=False)
    return talk.close()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of three connections in three files, one compressed; packets cross the ends of files."""
    folder = tmp_path_factory.mktemp("captures")
    talks = [numbered_session(50_000 + n, c.START_NS + n * 100_000) for n in range(3)]
    frames = c.merged(*(talk.frames for talk in talks))
    frames = c.disorder(frames, random.Random(1), reorder=0.1)
    first, second = len(frames) // 2, len(frames) * 3 // 4
    (folder / "a-1.pcap").write_bytes(c.pcap_bytes(frames[:first], nanoseconds=True))
    (folder / "a-2.pcapng.gz").write_bytes(gzip.compress(c.pcapng_bytes(frames[first:second])))
    (folder / "a-3.pcapng").write_bytes(c.pcapng_bytes(frames[second:]))
    return folder


@pytest.fixture(scope="session")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good packet, a malformed one, skipped bytes and a good one, in a truncated file."""
    ack = h.session_ack()
    talk = c.TcpConversation().handshake().send(ack + h.base_header(0x400001) + b"junk" + ack).close()
    path = tmp_path_factory.mktemp("bad") / "bad.pcap"
    path.write_bytes(c.pcap_bytes(talk.frames)[:-7])
    return path
