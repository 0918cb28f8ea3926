"""Two servers in network namespaces of their own exchange multicast messages, and tshark reads them.

This needs root: namespaces, and raw sockets.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from msmqwire.qm.runtime.local import attach
from tests.support.capture.tshark import tshark
from tests.support.paths import ROOT
from tests.support.patience import limit
from tests.support.running import (
    ORDERS,
    PATIENCE_S,
    READY,
    called,
    environment,
    message,
    peeked,
    until,
)

IP, DUMPCAP = shutil.which("ip"), shutil.which("dumpcap")
ADDRESSES = {"alpha": "10.83.0.1", "beta": "10.83.0.2"}
GROUP_ADDRESS = "234.9.8.4"
GROUP = f"{GROUP_ADDRESS}:8001"
UDP_PORT = 3055
PGM_OVER_UDP = ("-d", f"udp.port=={UDP_PORT},pgm", "-o", "pgm.check_checksum:TRUE")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(IP), *arguments], capture_output=True, text=True, check=False, timeout=limit(30)
    )


@pytest.fixture(scope="module")
def namespaces() -> Iterator[dict[str, str]]:
    """The names of two network namespaces with a wire between them; its ends are called wire."""
    if IP is None:
        pytest.skip("iproute2 is not installed")
    names = {name: f"msmqwire-{os.getpid()}-{name}" for name in ADDRESSES}
    with ExitStack() as stack:
        for namespace in names.values():
            made = run("netns", "add", namespace)
            if made.returncode:
                pytest.skip(f"no network namespace: {made.stderr.strip()}")
            stack.callback(run, "netns", "del", namespace)
        one, two = names.values()
        wire = run("-n", one, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", two)
        if wire.returncode:
            pytest.skip(f"no virtual wire: {wire.stderr.strip()}")
        for name, namespace in names.items():
            for command in (
                ("link", "set", "lo", "up"),
                ("address", "add", f"{ADDRESSES[name]}/24", "dev", "wire"),
                ("link", "set", "wire", "up"),
            ):
                assert run("-n", namespace, *command).returncode == 0
        yield names


@contextmanager
def serving(namespaces: dict[str, str], folder: Path, *options: str) -> Iterator[None]:
    """A server in each namespace, whose multicast sockets lose packets."""
    servers = {
        name: subprocess.Popen(
            [str(IP), "netns", "exec", namespace, sys.executable, "-m", "tests.support.pgm.lossy_multicast",
             "serve", "--data", str(folder / name), "--name", name, "--listen", f"{ADDRESSES[name]}:0",
             "--ping", "off", "--pgm-interface", ADDRESSES[name], "--pgm-rate", "1000000", *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True,
        )
        for name, namespace in namespaces.items()
    }  # fmt: skip
    try:
        for server in servers.values():
            assert server.stdout is not None
            line = server.stdout.readline()
            assert READY.fullmatch(line), (line, server.communicate(timeout=PATIENCE_S))
        yield
        for server in servers.values():
            server.terminate()
        for server in servers.values():
            _, errors = server.communicate(timeout=PATIENCE_S)
            assert server.returncode == 0, errors
            assert '"level": "error"' not in errors, errors
    finally:
        for server in servers.values():
            server.kill()
            server.wait(PATIENCE_S)


@contextmanager
def captured(namespace: str, path: Path) -> Iterator[None]:
    """Capture what passes the wire of a namespace."""
    if DUMPCAP is None:
        pytest.skip("dumpcap is not installed")
    capture = subprocess.Popen(
        [str(IP), "netns", "exec", namespace, str(DUMPCAP), "-q", "-i", "wire", "-w", str(path)],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        until(lambda: path.exists() and path.stat().st_size > 0, "the capture begins")
        yield
        time.sleep(limit(0.3))  # dumpcap reads what has come up to its next look, and then the signal
        capture.send_signal(signal.SIGINT)
        capture.communicate(timeout=PATIENCE_S)
    finally:
        capture.kill()
        capture.wait(PATIENCE_S)


@pytest.mark.requirement("SRMP-2.1.2-01", "SRMP-2.1.2-02", "SRMP-2.1.3-07")
@pytest.mark.parametrize("mode", ["raw", "udp"])
def test_messages_pass_between_namespaces(tmp_path: Path, namespaces: dict[str, str], mode: str) -> None:
    alpha, beta, capture = tmp_path / "alpha", tmp_path / "beta", tmp_path / "wire.pcapng"
    sent = [b"%d " % number * 1500 for number in range(12)]
    with captured(namespaces["beta"], capture), serving(namespaces, tmp_path, "--pgm", mode):
        for data in (alpha, beta):  # both receive, and alpha what it sends itself
            called("queue", "create", ORDERS, "--data", data, "--multicast", GROUP)
        for namespace in namespaces.values():  # the group is joined once the change is durable
            until(lambda n=namespace: GROUP_ADDRESS in run("-n", n, "maddress").stdout, "the group is joined")
        with attach(alpha) as local:
            local.call("send", to=f"MULTICAST={GROUP}", messages=[message(body) for body in sent])
        for data in (alpha, beta):
            until(lambda data=data: len(peeked(data, ORDERS)) == len(sent), "all messages come")
            assert peeked(data, ORDERS) == sent
    rows = tshark(
        capture, *PGM_OVER_UDP, "-Y", "pgm", "-T", "fields", "-E", "occurrence=l",
        "-e", "ip.proto", "-e", "pgm.hdr.type", "-e", "pgm.hdr.cksum.status", "-e", "ip.src", "-e", "ip.dst",
        "-e", "ip.ttl", "-e", "_ws.malformed", "-e", "_ws.expert.message",
    ).splitlines()  # fmt: skip
    packets = [tuple(row.split("\t")[:6]) for row in rows]
    assert {tuple(row.split("\t")[6:]) for row in rows} == {("", "")}, "tshark has nothing to complain of"
    assert {row[0] for row in packets} == {"113" if mode == "raw" else "17"}
    assert {row[2] for row in packets} == {"1"}, "all checksums are right"
    group = GROUP_ADDRESS
    to_group = {int(kind, 16) for _, kind, _, _, to, ttl in packets if (to, ttl) == (group, "16")}
    assert to_group == {0x00, 0x04, 0x05, 0x0A}, "SPM, ODATA, RDATA and NCF"
    naks = {(source, to, ttl) for _, kind, _, source, to, ttl in packets if int(kind, 16) == 0x08}
    source, receiver = ADDRESSES.values()
    assert (receiver, group, "1") in naks, "NAKs go to the group with a TTL of 1"
    assert any((origin, to) == (receiver, source) for origin, to, _ in naks), "and to the source"


def test_a_network_that_comes_and_goes() -> None:
    """Without a route, and while the interface is down, messages fail; nothing is raised, all comes back."""
    namespace = f"msmqwire-{os.getpid()}-alone"
    if IP is None or run("netns", "add", namespace).returncode:
        pytest.skip("no network namespace")
    try:
        for command in ("link add wire type veth peer name end", "link set end up"):
            assert run("-n", namespace, *command.split()).returncode == 0
        program = [sys.executable, "-m", "tests.support.qm.multicast_without_network", "udp"]
        done = run("netns", "exec", namespace, "env", f"PYTHONPATH={ROOT}", *program)
        assert done.returncode == 0, done.stderr
    finally:
        run("netns", "del", namespace)
    unreachable = "group 234.9.8.3: Network is unreachable"
    seen = json.loads(done.stdout)
    assert seen["no route"] == [["failed", 0, unreachable]]
    assert sorted(seen["up"]) == [["received", "up"], ["sent", 1]]
    assert seen["down"] == [["failed", 2, unreachable]]
    assert sorted(seen["up again"]) == [["received", "up again"], ["sent", 3]]
