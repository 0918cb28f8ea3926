"""`msmqwire exporter` as a process: the line that it prints, wrong usage, a new file of targets, the end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_S, limit
from tests.support.rpc.management_server import managed_machine
from tests.support.running import begun, called, command, process, until

pytest.importorskip("aiohttp")
READY = re.compile(r"ready exporter http=127\.0\.0\.1:(\d+) targets=(\d+)\n")
ADDRESS = "127.0.0.1"


class Running:
    """An exporter as a process."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process, self._log = process, log
        assert process.stdout is not None
        found = READY.fullmatch(process.stdout.readline())
        assert found, self._log.read_text()
        self.port, self.targets = int(found[1]), int(found[2])

    def get(self, path: str = "/metrics") -> str:
        with urllib.request.urlopen(f"http://{ADDRESS}:{self.port}{path}", timeout=limit(60)) as answer:
            text: str = answer.read().decode()
            return text

    def logs(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def events(self) -> list[str]:
        return [line["event"] for line in self.logs()]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


@contextmanager
def running(targets: Path, *options: str) -> Iterator[Running]:
    log = targets.with_suffix(".log")
    with log.open("w") as errors:
        process = begun(
            "exporter", "--targets", targets, *(options or ("--listen", f"{ADDRESS}:0")), stderr=errors
        )
    try:
        yield Running(process, log)
    finally:
        process.kill()
        process.communicate()


def written(folder: Path, *targets: str) -> Path:
    path = folder / "targets.toml"
    path.write_text("".join(f"[[target]]\n{one}\n" for one in targets))
    path.chmod(0o644)
    return path


def test_it_runs_until_it_is_stopped(tmp_path: Path) -> None:
    with managed_machine() as machine:
        machine.has_private("orders", 7)
        path = written(tmp_path, f'host = "{ADDRESS}"\nname = "alpha"\nrpc_port = {machine.port}')
        with running(path) as exporter:
            assert exporter.targets == 1
            assert (
                r'windows_msmq_messages_in_queue{target="alpha",name="server7\\private$\\orders"} 7'
                in exporter.get()
            )
            assert 'msmq_up{target="alpha"} 1' in exporter.get("/probe?target=alpha")
            with pytest.raises(urllib.error.HTTPError, match="404"):
                exporter.get("/probe?target=beta")
            assert exporter.stop() == 0
            assert exporter.logs() == []


@pytest.mark.parametrize("access, up", [("callers", 1), ("none", 0)])
def test_a_queue_manager_of_ours(tmp_path: Path, access: str, up: int) -> None:
    """Its queues, outgoing ones and dead letters; nothing, not even names, if it lets nobody in."""
    places = "--rpc", f"{ADDRESS}:0", "--rpc-auth", "none", "--rpc-manage", access
    with process(tmp_path / "qm", *places, "--queue", r"private$\orders", name="ALPHA") as manager:
        name = r"DIRECT=TCP:127.0.0.4\private$\bills"
        sent = command("send", name, "--body", "hi", "--recoverable", "--data", tmp_path / "qm")
        assert sent.status == 0, sent.err
        path = written(tmp_path, f'host = "{ADDRESS}"\nname = "alpha"\nrpc_port = {manager.rpc_port}')
        with running(path) as exporter:
            text = exporter.get()
        assert f'msmq_up{{target="alpha"}} {up}' in text
        if up:
            for queue in (r"private$\\orders", "system$;DEADLETTER", "system$;DEADXACT"):
                assert rf'windows_msmq_messages_in_queue{{target="alpha",name="ALPHA\\{queue}"}} 0' in text
            assert re.search(r'msmq_outgoing_messages\{target="alpha",name="[^"]*bills"\} 1\n', text)
        else:
            assert 'msmq_scrape_errors_total{target="alpha",reason="refused"} 1' in text
            assert "orders" not in text


def test_a_hangup_has_the_file_read_again(tmp_path: Path) -> None:
    """A wrong file changes nothing, and is told in the log and by a metric."""
    path = written(tmp_path, f'host = "{ADDRESS}"\nname = "alpha"\nrpc_port = 9')
    with running(path) as exporter:
        assert 'msmq_up{target="alpha"} 0' in exporter.get()
        written(tmp_path, f'host = "{ADDRESS}"\nname = "beta"\nrpc_port = 9', 'hsot = "gamma"')
        exporter.process.send_signal(signal.SIGHUP)
        until(lambda: "msmq_exporter_last_reload_successful 0" in exporter.get(), "the wrong file")
        assert 'msmq_up{target="alpha"} 0' in exporter.get()
        (told,) = [
            line for line in exporter.logs() if line["event"].startswith("the file of targets is wrong")
        ]
        assert "line 6: target 2: 'hsot' is not a key; did you mean host?" in told["error"]
        path.unlink()

        def told_of_no_file() -> bool:
            exporter.process.send_signal(signal.SIGHUP)  # again: the log has one line of a kind a second
            return any("No such file" in line.get("error", "") for line in exporter.logs())

        until(told_of_no_file, "no file")
        written(tmp_path, f'host = "{ADDRESS}"\nname = "beta"\nrpc_port = 9')
        exporter.process.send_signal(signal.SIGHUP)
        until(lambda: 'msmq_up{target="beta"} 0' in exporter.get(), "the right file")
        text = exporter.get()
        assert "msmq_exporter_last_reload_successful 1" in text
        assert 'target="alpha"' not in text
        assert exporter.stop() == 0


def test_a_target_that_fails_is_told_once(tmp_path: Path) -> None:
    """Each change is a line of the log, not each scrape."""
    with closing(socket.create_server((ADDRESS, 0))) as server:
        port = server.getsockname()[1]
    path = written(tmp_path, f'host = "{ADDRESS}"\nname = "alpha"\nrpc_port = {port}')
    with running(path) as exporter:
        until(lambda: 'reason="unreachable"} 3' in exporter.get(), "three scrapes")
        told = [line for line in exporter.logs() if line["event"] == "a target can't be scraped"]
        assert [(line["target"], line["reason"]) for line in told] == [("alpha", "unreachable")]


def test_an_address_that_others_reach_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, 'host = "alpha"')
    log = tmp_path / "log"
    with log.open("w") as errors:
        process = begun("exporter", "--targets", path, "--listen", "0.0.0.0:0", stderr=errors)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready exporter http=0.0.0.0:")
    finally:
        process.kill()
        process.communicate()
    (line,) = [json.loads(line) for line in log.read_text().splitlines()]
    assert line["level"] == "warning"
    assert "there is no login" in line["event"]


def test_an_address_in_use_is_unavailable(tmp_path: Path) -> None:
    path = written(tmp_path, 'host = "alpha"')
    with closing(socket.create_server((ADDRESS, 0))) as server:
        run = command("exporter", "--targets", path, "--listen", f"{ADDRESS}:{server.getsockname()[1]}")
    assert "can't listen: " in run.error(69)["error"]


@pytest.mark.parametrize(
    "text, status, told",
    [
        ('hsot = "a"', 65, "target 1: 'hsot' is not a key; did you mean host?"),
        ('host = "a"\nuser = "u"\npassword_file = "none"', 66, "none: No such file or directory"),
        ('host = "a"\nuser = "u"\npassword_file = "loose"', 65, "has the mode 0644: other users may use it"),
    ],
    ids=["key", "no password", "loose password"],
)
def test_a_wrong_file_ends_the_start(tmp_path: Path, text: str, status: int, told: str) -> None:
    if os.name != "posix":
        pytest.skip("modes of files are of Unix")
    loose = tmp_path / "loose"
    loose.write_text("correct horse\n")
    loose.chmod(0o644)
    path = written(tmp_path, text)
    for options in ((), ("--check",)):
        run = called("exporter", "--targets", path, *options)
        error = run.error(status)
        assert told in f"{error['path']}: {error['error']}"
        assert "line" in f"{error['path']}: {error['error']}"
        assert "correct horse" not in run.err


def test_a_missing_file_of_targets() -> None:
    assert called("exporter", "--targets", "nowhere.toml").error(66)["error"].startswith("nowhere.toml: ")
    assert "--targets" in called("exporter").error(2)["error"]


def test_a_check_prints_the_number_of_targets(tmp_path: Path) -> None:
    run = called("exporter", "--targets", written(tmp_path, 'host = "a"', 'host = "b"'), "--check")
    assert (run.status, run.out) == (0, f"{tmp_path}/targets.toml: 2 targets\n")


@pytest.mark.parametrize(
    "options, told",
    [
        (("--listen", "nowhere:port"), "is not ADDRESS:PORT"),
        (("--at-once", "0"), "--at-once"),
        (("--queues-max", "0"), "--queues-max"),
        (("--metrics-name", "http://a"), "a name of a host, without scheme and port"),
    ],
)
def test_wrong_usage_says_what_is_right(tmp_path: Path, options: tuple[str, ...], told: str) -> None:
    error = called("exporter", "--targets", written(tmp_path, 'host = "a"'), *options).error(2)
    assert told in f"{error['path']}: {error['error']}"
