"""``msmqwire serve``: its start, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import sqlite3
import stat
from pathlib import Path

import pytest

from msmqwire.qm.runtime.data_folder import CONTROL, STORE
from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.named_values import with_named_values
from msmqwire.qm.runtime.server import SETTINGS, ServerOptions
from tests.support.patience import limit
from tests.support.running import (
    ADDRESS,
    LEDGER,
    ORDERS,
    Process,
    Run,
    called,
    command,
    listed,
    options,
    peeked,
    process,
    put,
    recoverable,
    served,
)


def refused(data: Path, *more: str) -> Run:
    """Run a server that does not start."""
    return command("serve", "--data", data, "--listen", f"{ADDRESS}:0", "--ping", "off", *more)


def last_error(run: Run, status: int) -> dict:
    """The last line of a server that fails to start, after its log; it never says that it is ready."""
    assert (run.status, run.out) == (status, ""), run
    error: dict = json.loads(run.err.splitlines()[-1])
    assert {"error", "path", "offset"} <= set(error)
    return error


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# -- starting -------------------------------------------------------------------------------------------


def test_it_says_that_it_is_ready_and_where(alpha: Process) -> None:
    assert (alpha.name, alpha.address, alpha.reported_data) == ("alpha", ADDRESS, str(alpha.data))
    socket.create_connection((ADDRESS, alpha.port), limit(20)).close()
    assert alpha.ping_port > 0


def test_it_binds_to_the_loopback_by_default() -> None:
    assert ServerOptions(Path("x")).listen == ("127.0.0.1", 1801)
    assert ServerOptions(Path("x")).ping == ("127.0.0.1", 3527)
    shown = called("serve", "--help").out
    assert "[default: 127.0.0.1:1801]" in " ".join(shown.split())


def test_an_address_without_a_port_and_a_port_without_an_address(data: Path) -> None:
    with process(data, "--listen", ":0", "--ping", ":0") as server:
        assert server.address == "127.0.0.1"


def test_pings_can_be_off(data: Path) -> None:
    with process(data, "--ping", "off") as server:
        assert server.ping_port == 0


def test_what_it_has_is_for_its_owner_alone(data: Path) -> None:
    before = os.umask(0)
    try:
        with process(data):
            assert mode(data) == 0o700
            assert mode(data / CONTROL) == 0o600
            assert mode(data / "control.sock") & 0o077 == 0
    finally:
        os.umask(before)


def test_its_log_is_lines_of_json_on_standard_error(alpha: Process) -> None:
    alpha.stop()
    logs = alpha.logs()
    for line in logs:
        assert set(line) >= {"time", "level", "event"}
        assert line["level"] in ("debug", "info", "warning", "error")
        assert line["time"].endswith("Z")
    assert [line["event"] for line in logs] == ["ready", "stops", "stopped"]
    assert logs[0]["computer"] == "alpha"
    assert logs[0]["listen"] == [ADDRESS, alpha.port]


def test_log_levels_give_more_or_fewer_lines(data: Path) -> None:
    with process(data, "--log", "debug") as server:
        socket.create_connection((ADDRESS, server.port), limit(20)).close()
        server.stop()
        assert "accepted" in server.events()
    with process(data, "--log", "warning") as server:
        server.stop()
        assert server.logs() == []
    assert called("serve", "--data", data, "--log", "chatty").status == 2


# -- queues and name ------------------------------------------------------------------------------------


def test_missing_queues_are_created_and_existing_ones_kept(data: Path) -> None:
    with process(data, "--queue", ORDERS, "--queue", f"{LEDGER};TRANSACTIONAL") as server:
        queues = listed(data)
        assert (queues[ORDERS]["transactional"], queues[LEDGER]["transactional"]) == (False, True)
        with attach(data) as local:
            put(local, ORDERS, *recoverable(b"stored"))
            local.call("set", queue=ORDERS, label="mine", quota=1000)
        server.stop()
    with process(data, "--queue", ORDERS, "--queue", r".\private$\more", "--queue", r"ALPHA\private$\again"):
        queues = listed(data)
        assert set(queues) > {ORDERS, LEDGER, r"private$\more", r"private$\again"}
        assert (queues[ORDERS]["label"], queues[ORDERS]["quota"]) == ("mine", 1000)
        assert peeked(data, ORDERS) == [b"stored"]


@pytest.mark.parametrize(
    "queue, reason",
    [
        (f"{ORDERS};transactional", r"private$\orders: the queue is there, and not transactional"),
        (LEDGER, r"private$\ledger: the queue is there, and transactional"),
    ],
)
def test_a_queue_that_is_there_and_of_the_other_kind_is_refused(data: Path, queue: str, reason: str) -> None:
    called("queue", "create", ORDERS, "--data", data)
    called("queue", "create", LEDGER, "--data", data, "--transactional")
    error = last_error(refused(data, "--queue", queue), 69)
    assert (error["error"], error["name"]) == (reason, "MQ_ERROR_QUEUE_EXISTS")


@pytest.mark.parametrize(
    "queue, status, offset",
    [
        (r"a\b\c\d", 2, 3),
        (r"other\private$\x", 2, None),
        (r"system$;journal", 2, None),
        (rf"{ORDERS};journal", 2, None),
        ("", 65, None),
    ],
)
def test_a_queue_that_can_not_be_made_is_refused(
    data: Path, queue: str, status: int, offset: int | None
) -> None:
    error = last_error(refused(data, "--name", "alpha", "--queue", queue), status)
    assert error["offset"] == offset
    assert error["error"]


def test_the_name_is_kept_and_another_one_refused(data: Path) -> None:
    with process(data, name="Alpha-1.x") as server:
        server.stop()
    with process(data, name="ALPHA-1.X") as server:
        assert server.name == "Alpha-1.x"
    error = last_error(refused(data, "--name", "beta"), 65)
    assert error == {
        "error": "the queue manager of this folder is Alpha-1.x, not beta", "path": "name", "offset": None
    }  # fmt: skip


@pytest.mark.parametrize("name", ["a b", "a\\b", "\N{SNOWMAN}", ".", "a/b", "a;b"])
def test_a_wrong_name_of_a_computer_is_refused(data: Path, name: str) -> None:
    assert last_error(refused(data, "--name", name), 2)["error"]


# -- existing stores and servers ------------------------------------------------------------------------


def test_a_second_server_of_a_folder_is_refused(alpha: Process) -> None:
    error = last_error(refused(alpha.data), 69)
    assert str(alpha.data) in error["error"]
    assert ORDERS in listed(alpha.data)  # over the control channel, which the second server has not touched
    with attach(alpha.data) as local:
        assert local.served


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir() if file.name != f"{STORE}.lock"}


def foreign(path: Path) -> None:
    sqlite3.connect(path).execute("CREATE TABLE someone_elses (a)").connection.close()


def later(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 4000")
    db.close()


def damaged(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def garbage(path: Path) -> None:
    path.write_bytes(b"this is no store at all" * 1000)


@pytest.mark.parametrize("spoil", [foreign, later, damaged, garbage], ids=lambda function: function.__name__)
def test_a_store_that_is_not_its_own_is_refused_and_untouched(data: Path, spoil) -> None:
    called("queue", "create", ORDERS, "--data", data)
    if spoil is foreign:
        shutil.rmtree(data)
        data.mkdir()
    spoil(data / STORE)
    before = files(data)
    commands = (("queue", "list"), ("peek", ORDERS), ("queue", "create", ORDERS))
    for run in (refused(data), *(called(*arguments, "--data", data) for arguments in commands)):
        assert str(data / STORE) in last_error(run, 65)["error"]
    assert files(data) == before


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        assert str(path) in last_error(refused(path), 74)["error"]


def test_a_port_in_use_is_refused_and_named(alpha: Process, tmp_path: Path) -> None:
    beta = tmp_path / "beta"
    in_use = f"{ADDRESS}:{alpha.port}"
    called("queue", "create", ORDERS, "--data", beta)
    error = last_error(command("serve", "--data", beta, "--listen", in_use, "--ping", "off"), 69)
    assert "listen" in error["error"]
    assert str(alpha.port) in error["error"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind((ADDRESS, 0))
        port = udp.getsockname()[1]
        run = command("serve", "--data", beta, "--listen", f"{ADDRESS}:0", "--ping", f"{ADDRESS}:{port}")
        assert "listen" in last_error(run, 69)["error"]
    assert last_error(refused(beta, "--metrics", in_use), 69)["error"]
    assert not (beta / CONTROL).exists()
    assert (
        called("queue", "create", LEDGER, "--data", beta).status == 0
    )  # nothing of the failed start is left
    assert {ORDERS, LEDGER} < set(listed(beta))


def test_an_address_that_is_not_of_this_computer_is_refused(data: Path) -> None:
    run = command("serve", "--data", data, "--listen", "192.0.2.1:0", "--ping", "off")
    assert "192.0.2.1" in last_error(run, 69)["error"]


@pytest.mark.parametrize(
    "option",
    [
        ("--listen", "127.0.0.1:port"),
        ("--listen", "127.0.0.1:70000"),
        ("--host", "beta"),
        ("--host", "=127.0.0.1"),
        ("--host", "beta="),
        ("--host", "beta=127.0.0.1:x"),
        ("--max-connections", "0"),
        ("--set", "packet_size_max=1"),
        ("--set", "session_cleanup_ms=0"),
        ("--set", "session_initialization_ms=inf"),
        ("--min-free", "-1"),
        ("--quota", "0"),
        ("--resend-times", "30,300,1800"),
        ("--resend-times", "30,300,1800,x"),
        ("--resend-times", "30,300,1800,0"),
        ("--resend-times", "30,300,1800,4294967296"),
        ("--resend-times", "30,300,1800," + "9" * 5000),
    ],
)
def test_options_that_mean_nothing_are_wrong_usage(data: Path, option: tuple[str, str]) -> None:
    run = called("serve", "--data", data, *option)
    assert (run.status, run.out) == (2, "")
    assert option[1] in run.err or option[0] in run.err
    assert not data.exists()


OF_SETTINGS = [
    ("--max-connections-per-peer", "connections_per_peer"), ("--max-partial", "partial_bytes"),
    ("--max-pings", "pings"), ("--max-pings-per-network", "pings_per_network"),
    ("--max-resolutions", "resolutions"), ("--max-sessions", "max_in_sessions"),
    ("--max-packet", "packet_size_max"), ("--max-unacknowledged", "unacknowledged_bytes_max"),
    ("--idle", "session_cleanup_ms"), ("--half-open", "session_initialization_ms"),
    ("--unreachable", "unreachable_per_origin_max"), ("--bind-senders", "bind_senders"),
]  # fmt: skip


@pytest.mark.parametrize(("option", "setting"), OF_SETTINGS)
def test_what_was_an_option_says_which_setting_it_is(data: Path, option: str, setting: str) -> None:
    error = called("serve", "--data", data, option, "1").error(2)
    assert error["path"] == option
    (example,) = re.findall(r"--set (\w+=\w+)", error["error"])
    assert example.startswith(f"{setting}=")
    with_named_values(SETTINGS, Limits(), [example])


# -- long paths -----------------------------------------------------------------------------------------


def test_a_folder_with_a_very_long_path_is_served(tmp_path: Path) -> None:
    data = tmp_path / ("long" * 40) / "alpha"
    with process(data, "--queue", ORDERS) as server:
        control = json.loads((data / CONTROL).read_text())
        assert len(control["path"]) < 100
        assert mode(Path(control["path"]).parent) == 0o700
        with attach(data) as local:
            assert local.served
            put(local, ORDERS, *recoverable(b"1"))
        server.stop()
        assert server.events()[-1] == "stopped"
    assert not Path(control["path"]).parent.exists()
    assert not (data / CONTROL).exists()
    assert peeked(data, ORDERS) == [b"1"]


def test_one_program_runs_several_servers(tmp_path: Path) -> None:
    first, second = options(tmp_path / "a", ORDERS, name="a"), options(tmp_path / "b", name="b")
    with served(first) as a, served(second) as b:
        assert a.port != b.port
        assert ORDERS in listed(a.data)
        assert ORDERS not in listed(b.data)


def test_the_command_needs_a_folder() -> None:
    run = called("serve")
    assert (run.status, run.out) == (2, "")
    assert "--data" in run.err
