"""``msmqwire serve`` when it can't start at once, or not at all."""

from __future__ import annotations

import asyncio
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from msmqwire.cli import serve as serve_module
from msmqwire.errors import InvalidName, StoreInUse
from msmqwire.qm.runtime.data_folder import CONTROL, STORE
from msmqwire.qm.store import open_store
from tests.support.running import (
    ADDRESS,
    ORDERS,
    PATIENCE_S,
    InThread,
    called,
    command,
    command_line,
    environment,
    listed,
    options,
)

FULL = Path("/dev/full")


def test_a_command_that_uses_the_folder_is_waited_for(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_module, "_IN_USE_S", PATIENCE_S)
    data.mkdir()
    store = open_store(data / STORE)

    async def serve() -> None:
        with pytest.raises(StoreInUse):
            open_store(data / STORE)
        asyncio.get_running_loop().call_later(0.3, store.close)
        server = await serve_module._started(options(data, ORDERS))
        await server.stop()

    asyncio.run(serve())
    assert ORDERS in listed(data)


def test_a_folder_that_stays_in_use_is_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_module, "_IN_USE_S", 0.2)
    data.mkdir()
    store = open_store(data / STORE)
    (data / CONTROL).write_text(
        '{"path": "/nowhere/control.sock", "port": 0, "token": ""}'
    )  # of a killed server
    try:
        with pytest.raises(StoreInUse):
            asyncio.run(serve_module._started(options(data)))
    finally:
        store.close()


def test_a_second_server_is_refused_at_once(server: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_module, "_IN_USE_S", 1e9)
    with pytest.raises(StoreInUse):
        asyncio.run(asyncio.wait_for(serve_module._started(options(server.data)), PATIENCE_S))
    assert ORDERS in listed(server.data)  # the first server still runs


def test_a_name_that_can_not_be_an_address_is_said(data: Path) -> None:
    run = command("serve", "--data", data, "--listen", "x" * 100, "--ping", "off")
    assert run.status == 69
    assert json.loads(run.err.splitlines()[-1])["error"].startswith("can't listen: ")


@pytest.mark.skipif(not FULL.exists(), reason="the system has no /dev/full")
def test_output_that_goes_nowhere_is_not_a_failure_to_listen(data: Path) -> None:
    arguments = command_line("serve", "--data", data, "--listen", f"{ADDRESS}:0", "--ping", "off")
    with FULL.open("w") as full:
        run = subprocess.run(
            arguments, stdout=full, stderr=subprocess.PIPE, env=environment(), timeout=PATIENCE_S,
            check=False, text=True,
        )  # fmt: skip
    assert run.returncode == 74
    lines = [json.loads(line) for line in run.stderr.splitlines()]
    assert lines[-1]["error"] == "No space left on device"
    assert lines[-2]["event"] == "stopped"
    assert not (data / CONTROL).exists()


@pytest.mark.parametrize("option", ["--remote-port", "--remote-ping-port"])
@pytest.mark.parametrize("port", ["0", "65536", "-1"])
def test_ports_of_others_are_ports(data: Path, option: str, port: str) -> None:
    run = called("serve", "--data", data, option, port)
    assert (run.status, run.out) == (2, "")
    assert option in run.err
    assert not data.exists()


@pytest.mark.parametrize("domain", [".example.com", "example..com", "example.com.", "exa mple", "x" * 300])
def test_a_domain_that_can_not_be_is_refused(data: Path, domain: str) -> None:
    with pytest.raises(InvalidName, match=r"is not|more than 256"):
        asyncio.run(serve_module._started(replace(options(data), domain=domain)))


def test_the_domain_of_a_folder_is_kept(data: Path) -> None:
    async def full_name(domain: str) -> str:
        server = await serve_module._started(replace(options(data), domain=domain))
        try:
            assert server.driver is not None
            return server.driver.core.queue_manager.qualified_computer_name
        finally:
            await server.stop()

    names = [asyncio.run(full_name(domain)) for domain in ("", "example.com", "", "example.org")]
    computer = names[0]
    assert names[1:] == [f"{computer}.{domain}" for domain in ("example.com", "example.com", "example.org")]
