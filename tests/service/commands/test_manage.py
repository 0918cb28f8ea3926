"""`msmqwire manage` against a scripted computer: output, statuses, and what errors tell to do."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import msmqwire
from msmqwire.constants import ManagementMachineProperty as M
from msmqwire.constants import ManagementQueueProperty as Q
from msmqwire.constants import VarEnum
from msmqwire.errors import InvalidValue
from msmqwire.management.constants import Opnum
from msmqwire.management.interface import INTERFACE
from msmqwire.management.variants import variant
from msmqwire.rpc.constants import AuthLevel
from msmqwire.rpc.endpoint_mapper import ENDPOINT_MAPPER, ENDPOINT_MAPPER_METHODS, EndpointMapper
from tests.support.installed import library
from tests.support.rpc.management_server import BREAK, HOST, SILENCE, ManagedMachine, managed_machine
from tests.support.rpc.rpc_pair import PASSWORD, USER, accept
from tests.support.rpc.rpc_server import map_endpoints, rpc_server
from tests.support.running import Run, begun, called, ended, until
from tests.support.terminal import on_a_terminal, terminal

ORDERS, BILLS = r"private$\orders", r"other\private$\bills"
KEYS = {
    "path", "format_name", "messages", "bytes", "journal_messages", "journal_bytes", "state", "foreign",
    "transactional", "reason", "next_hops", "connection_history", "eod",
}  # fmt: skip


@pytest.fixture
def machine() -> Iterator[ManagedMachine]:
    """A computer with private queues, outgoing ones, and an active one that is gone."""
    with managed_machine() as machine:
        machine.has_private("orders", 3)
        machine.has_private("idle")
        machine.has_outgoing(BILLS, 7)
        machine.active.append(r"DIRECT=OS:gone\private$\old")
        yield machine


def manage(machine: ManagedMachine, *words: str | Path) -> Run:
    return called("manage", "127.0.0.1", *words, "--rpc-port", str(machine.port))


# -- output for programs ---------------------------------------------------------------------------------


def test_the_machine_as_json(machine: ManagedMachine) -> None:
    [info] = manage(machine, "info").lines
    assert info == {
        "host": "127.0.0.1",
        "active_queues": machine.active,
        "private_queues": machine.private,
        "directory_server": None,
        "connected": True,
        "type": "Windows 7, MSMQ 5.0",
        "bytes_all_queues": 1 << 40,
        "unavailable": {},
    }


def test_queues_as_json(machine: ManagedMachine) -> None:
    rows = manage(machine, "queues").lines
    assert [row["path"] for row in rows] == [
        rf"{HOST}\private$\orders", rf"{HOST}\private$\idle", BILLS, r"DIRECT=OS:gone\private$\old",
    ]  # fmt: skip
    for row in rows:
        assert row.keys() >= KEYS
    orders, _, bills, gone = rows
    assert (orders["messages"], orders["bytes"], orders["state"]) == (3, 300, "LOCAL CONNECTION")
    assert (orders["reason"], orders["next_hops"], orders["connection_history"]) == (None, [], [])
    assert (orders["foreign"], orders["transactional"], orders["eod"]) == (False, False, None)
    assert (bills["messages"], bills["state"], bills["next_hops"]) == (7, "WAITING", ["IP=10.0.0.9"])
    [event] = bills["connection_history"]
    assert event.keys() == {"time", "status", "error", "addresses"}
    assert (event["time"], event["error"]) == ("2023-11-14T22:13:20Z", "0xC00E0027")
    assert bills["eod"]["no_ack_count"] == 7
    assert bills["eod"]["last_ack_time"] is None
    assert gone["reason"] == "there is no such queue (MQ_ERROR_QUEUE_NOT_FOUND)"
    assert gone["messages"] is None


def test_without_a_command_the_machine_comes_first(machine: ManagedMachine) -> None:
    info, *rows = manage(machine).lines
    assert info["host"] == "127.0.0.1"
    assert len(rows) == 4


def test_outgoing_queues_as_json(machine: ManagedMachine) -> None:
    rows = manage(machine, "outgoing").lines
    assert [row["path"] for row in rows] == [BILLS, r"DIRECT=OS:gone\private$\old"]  # it may be one
    assert machine.names() == [r"DIRECT=OS:other\PRIVATE$\bills", r"DIRECT=OS:gone\PRIVATE$\old"]


def test_one_queue_and_several(machine: ManagedMachine) -> None:
    [one] = manage(machine, "queue", ORDERS).lines
    assert one["messages"] == 3
    done = manage(machine, "queue", ORDERS, r"private$\none", BILLS)
    assert done.status == 66
    assert [row["reason"] for row in map(json.loads, done.out.splitlines())] == [
        None, "there is no such queue (MQ_ERROR_QUEUE_NOT_FOUND)", None,
    ]  # fmt: skip


def test_queues_of_a_file_are_asked_for_too(machine: ManagedMachine, tmp_path: Path) -> None:
    machine.add(rf"DIRECT=OS:{HOST}\private$\orders;journal", {})
    file = tmp_path / "names"
    file.write_text("\ufeff# of the shop\nprivate$\\orders;journal # kept\n\n;deadletter\n", encoding="utf-8")
    rows = manage(machine, "queues", r"sales\public", "--queues", file).lines
    assert [row["path"] for row in rows[4:]] == [r"sales\public", r"private$\orders;journal", ";deadletter"]
    assert [row["reason"] is None for row in rows[4:]] == [False, True, False]
    assert machine.names()[-2:] == [
        rf"DIRECT=OS:{HOST}\PRIVATE$\orders;JOURNAL", rf"DIRECT=OS:{HOST}\SYSTEM$;DEADLETTER",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text, told",
    [
        (b"a\\b\nprivate$orders\n", r"names, line 2: a backslash is missing after private$"),
        (b"ok\\a\n\n\xff\n", "names, line 3: not a text in UTF-8"),
        (b"DIRECT=XYZ:a\\b", "names, line 1: the protocol is none of TCP"),
    ],
)
def test_a_wrong_line_of_the_file_is_named(
    machine: ManagedMachine, tmp_path: Path, text: bytes, told: str
) -> None:
    file = tmp_path / "names"
    file.write_bytes(text)
    found = manage(machine, "queues", "--queues", file).error(2)
    assert told in found["error"]
    assert machine.calls == []
    missing = manage(machine, "queues", "--queues", tmp_path / "none").error(66)
    assert "No such file" in missing["error"]


# -- what is done ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("word, action", [("pause", "PAUSE"), ("resume", "RESUME"), ("resend", "EOD_RESEND")])
def test_actions_on_queues(machine: ManagedMachine, word: str, action: str) -> None:
    done = manage(machine, word, BILLS, rf"DIRECT=OS:{BILLS}").lines
    assert done == [
        {"host": "127.0.0.1", "action": word, "queue": name} for name in (BILLS, rf"DIRECT=OS:{BILLS}")
    ]
    assert machine.actions == [(action, r"DIRECT=OS:other\PRIVATE$\bills")] * 2


@pytest.mark.parametrize(
    "word, action", [("connect", "CONNECT"), ("disconnect", "DISCONNECT"), ("tidy", "TIDY")]
)
def test_actions_on_the_computer(machine: ManagedMachine, word: str, action: str) -> None:
    [done] = manage(machine, word, "--yes").lines
    assert done == {"host": "127.0.0.1", "action": word, "queue": None}
    assert machine.actions == [(action, None)]


def test_disconnecting_asks(machine: ManagedMachine) -> None:
    found = manage(machine, "disconnect").error(2)
    assert "--yes takes it off the network" in found["error"]
    words = ("manage", "127.0.0.1", "disconnect", "--rpc-port", str(machine.port))
    with terminal(*words) as run:
        run.shown("Stop all messages from and to 127.0.0.1? [y/N] ")
        run.type("n\n")
        assert run.ended() == 1
    assert machine.actions == []
    with terminal(*words) as run:
        run.shown("[y/N] ")
        run.type("y\n")
        assert "127.0.0.1: offline" in run.shown()
        assert run.ended() == 0
    assert machine.actions == [("DISCONNECT", None)]


# -- output for people -----------------------------------------------------------------------------------


def test_tables_for_people(machine: ManagedMachine) -> None:
    output = manage(machine, "--table").out
    assert "Windows 7, MSMQ 5.0" in output
    assert "2 private, 2 active" in output
    assert "1.0 TiB" in output
    orders, idle = (output.index(rf"{HOST}\private$\{name}") for name in ("orders", "idle"))
    assert orders < idle  # those with the most messages first
    assert "WAITING" in output
    assert "there is no such queue (MQ_ERROR_QUEUE_NOT_FOUND)" in output
    sums = " ".join(output[output.rindex("2 queues:") :].split())
    assert sums == ("2 queues: 3 messages, 300 B; 1 outgoing queue: 7 messages, 700 B; 1 queue not asked")


def test_a_queue_for_people(machine: ManagedMachine) -> None:
    machine.queues[rf"direct=os:{BILLS}"].pop(Q.PROPID_MGMT_QUEUE_BYTES_IN_QUEUE)
    machine.queues[rf"direct=os:{BILLS}"][Q.PROPID_MGMT_QUEUE_MESSAGE_COUNT] = variant(VarEnum.VT_LPWSTR, "9")
    words = ("manage", "127.0.0.1", "queue", BILLS, "--rpc-port", str(machine.port))
    output = on_a_terminal(*words)
    shown = {line[:18].strip(): line[18:].strip() for line in output.splitlines()}
    assert (shown["queue"], shown["path name"]) == (rf"DIRECT=OS:{BILLS}", BILLS)
    assert shown["messages"] == "? (a value of type 0x001f, not 0x0013)"
    assert shown["bytes"] == "?"
    assert shown["unacknowledged"] == "7"
    assert shown["acknowledged last"] == "never"
    assert "2023-11-14 22:13:20Z" in shown["connections"]
    assert "(0xC00E0027) at 10.0.0.9" in output


def test_names_from_outside_do_nothing_to_a_terminal(machine: ManagedMachine) -> None:
    machine.machine[M.PROPID_MGMT_MSMQ_TYPE] = variant(VarEnum.VT_LPWSTR, "\x1b[31mWindows")
    machine.private.append("server7\\private$\\\x1b]0;x\x07")
    output = manage(machine, "--table").out
    assert "\x1b" not in output
    assert r"\x1b[31mWindows" in output


def test_watching_shows_changes_and_quits(machine: ManagedMachine) -> None:
    words = ("manage", "127.0.0.1", "queues", "--watch", "--interval", "0.2", "--rpc-port", str(machine.port))
    with terminal(*words) as run:
        run.shown("2 queues: 3 messages")
        machine.queues[rf"direct=os:{HOST}\private$\orders"][Q.PROPID_MGMT_QUEUE_MESSAGE_COUNT] = variant(
            VarEnum.VT_UI4, 4711
        )
        run.shown("4,711")
        machine.denied = 0xC00E0025
        run.shown("access is denied")
        machine.denied = 0
        machine.twists[Opnum.R_QMMgmtGetInfo] = lambda honest, arguments: BREAK
        run.shown("has closed the connection")
        run.type("q")
        assert run.ended() == 0


def test_watching_for_programs_is_lines_of_json(machine: ManagedMachine) -> None:
    words = ("queue", ORDERS, "--watch", "--interval", "0.2", "--rpc-port", str(machine.port))
    with begun("manage", "127.0.0.1", *words) as process:
        out = process.stdout
        assert out is not None
        assert json.loads(out.readline())["messages"] == 3
        machine.queues[rf"direct=os:{HOST}\private$\orders"][Q.PROPID_MGMT_QUEUE_MESSAGE_COUNT] = variant(
            VarEnum.VT_UI4, 4
        )
        until(lambda: json.loads(out.readline())["messages"] == 4, "the next line")
        process.send_signal(signal.SIGINT)
        run = ended(process)
    assert (run.status, run.err) == (0, "")


def test_nothing_is_silent_for_long(machine: ManagedMachine) -> None:
    machine.twists[Opnum.R_QMMgmtGetInfo] = lambda honest, arguments: SILENCE
    words = ("manage", "127.0.0.1", "info", "--timeout", "4", "--rpc-port", str(machine.port))
    output = on_a_terminal(*words, status=69)
    assert "waiting for 127.0.0.1, 4 s at most" in output
    assert "127.0.0.1 has not answered within 4 s; --timeout gives it more time" in output


# -- errors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, told",
    [
        (("queus",), "did you mean queues or queue?"),
        ((ORDERS,), rf"write msmqwire manage 127.0.0.1 queue '{ORDERS}'"),
        (("queue",), "queue of which queue?"),
        (("pause",), "pause of which queue?"),
        (("info", "x"), "'x' is one argument too many"),
        (("tidy", "x"), "'x' is one argument too many"),
        (("pause", r"a\b", "--watch"), "pause is done once"),
        (("info", "--queues", "names"), "it is for the list: queues"),
        (("queue", "private$orders"), "a backslash is missing"),
        (("pause", r"a\b", "DIRECT=x"), "the protocol is none of"),
        (("info", "--user", "anne"), "a user has a password"),
        (("info", "--auth", "privat"), "'privat' is none of none, connect, integrity, privacy"),
        (("info", "--timeout", "0"), "0.001"),
        (("info", "--watch", "--interval", "0"), "0.2"),
        (("info", "--mapper-port", "70000"), "65535"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_usage(machine: ManagedMachine, words: tuple[str, ...], told: str) -> None:
    found = manage(machine, *words).error(2)
    assert told in f"{found['path']} {found['error']}"
    assert machine.calls == []


def test_a_host_with_a_port_is_told_of_the_option() -> None:
    for host in ("127.0.0.1:2103", "server7:2103"):
        with pytest.raises(InvalidValue, match="has a port, which is an argument of its own: --rpc-port"):
            msmqwire.manage(host)
    for host in ("::1", "[::1]", "fe80::1"):
        msmqwire.manage(host)


@pytest.mark.parametrize("code", [0xC00E0025, 5, 0x8007_0005], ids=hex)
@pytest.mark.parametrize("words", [(), ("queue", ORDERS), ("outgoing",), ("pause", BILLS)], ids=str)
def test_refused_rights_tell_who_has_them(machine: ManagedMachine, words: tuple[str, ...], code: int) -> None:
    machine.denied = code
    found = manage(machine, *words).error(69)
    assert "access is denied" in found["error"]
    assert r"try --user DOMAIN\NAME with --password-file" in found["error"]
    assert "administrators of the computer" in found["error"]
    assert "--rpc-manage" in found["error"]
    assert found["hresult"] == f"0x{code:08X}"


def test_a_queue_that_is_not_there_tells_where_names_are(machine: ManagedMachine) -> None:
    for word in ("queue", "pause"):
        found = manage(machine, word, r"private$\none").error(66)
        assert "there is no such queue; the commands queues and outgoing list names" in found["error"]
        assert found["name"] == "MQ_ERROR_QUEUE_NOT_FOUND"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def test_an_unreachable_mapper_tells_of_the_port() -> None:
    found = called("manage", "127.0.0.1", "--mapper-port", str(free_port())).error(69)
    assert "can't be reached: Connection refused" in found["error"]
    assert "--rpc-port names the port of the interface" in found["error"]
    found = called("manage", "127.0.0.1", "--rpc-port", str(free_port())).error(69)
    assert "does a firewall let the port through" in found["error"]


def test_a_name_without_an_address() -> None:
    found = called("manage", "host.invalid", "--rpc-port", "1").error(69)
    assert "host.invalid at port 1 can't be reached" in found["error"]
    assert "firewall" not in found["error"]


def test_an_unknown_interface_tells_what_is_missing(machine: ManagedMachine) -> None:
    interfaces = {ENDPOINT_MAPPER: ENDPOINT_MAPPER_METHODS}
    with rpc_server(interfaces=interfaces, perform=map_endpoints(EndpointMapper({}))) as server:
        found = called("manage", "127.0.0.1", "--mapper-port", str(server.port)).error(69)
    assert "its endpoint mapper does not know the interface: is the Message Queuing service" in found["error"]
    mapper = EndpointMapper({INTERFACE: machine.port})
    with rpc_server(interfaces=interfaces, perform=map_endpoints(mapper)) as server:
        assert called("manage", "127.0.0.1", "info", "--mapper-port", str(server.port)).lines
    with rpc_server() as server:
        found = called("manage", "127.0.0.1", "--rpc-port", str(server.port)).error(69)
    assert "--rpc-port names the right one" in found["error"]


def test_a_user_with_a_password(tmp_path: Path) -> None:
    library("spnego")
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    file.chmod(0o600)
    with managed_machine(security=accept, minimum_level=AuthLevel.PKT_PRIVACY) as machine:
        [info] = manage(machine, "info", "--user", USER, "--password-file", file).lines
        assert info["connected"] is True
        assert machine.callers == {(USER, AuthLevel.PKT_PRIVACY)}
        file.write_text("wrong")
        found = manage(machine, "info", "--user", USER, "--password-file", file).error(69)
        assert PASSWORD not in found["error"]
        found = manage(machine, "info").error(69)
        assert r"try --user DOMAIN\NAME" in found["error"]
