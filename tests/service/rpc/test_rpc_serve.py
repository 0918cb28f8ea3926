"""Queues of a real server are read remotely, by the RPC stack of impacket."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.rpc.network import RpcOptions
from msmqwire.remote_read.constants import DEFAULT_PORT, Access, Acknowledge, Action, Opnum
from msmqwire.rpc.constants import AuthLevel
from msmqwire.rpc.ndr import NDR20, NDR64
from tests.support.peers.remote_reader import DCERPCException, Reader, mapped
from tests.support.rpc.remote_read_harness import FOREVER
from tests.support.running import (
    ADDRESS,
    ORDERS,
    InThread,
    Process,
    called,
    listed,
    options,
    peeked,
    process,
    put,
    recoverable,
    served,
    until,
)

QUEUE = rf"DIRECT=OS:alpha\{ORDERS}"
ALICE, BOB = "LAB\\alice", "LAB\\bob"
PASSWORD = "Grün: blau 7"
BOBS_HASH = "8846f7eaee8fb117ad06bdd830b7586c"
RPC = ("--rpc", f"{ADDRESS}:0", "--set", "close_s=0.2")
CANCELLED = 0xC00E0008


def users_file(folder: Path, content: str = f"{ALICE}:{PASSWORD}\n{BOB}:$NT${BOBS_HASH}\r\n") -> Path:
    file = folder / "users"
    file.write_bytes(content.encode())
    file.chmod(0o600)
    return file


@pytest.fixture
def anonymous(data: Path) -> Iterator[Process]:
    """A server that lets in everybody."""
    with process(
        data, "--queue", ORDERS, *RPC, "--rpc-auth", "none", "--endpoint-mapper", f"{ADDRESS}:0"
    ) as server:
        yield server


@pytest.fixture(params=["connect", "integrity", "privacy"])
def secured(request: pytest.FixtureRequest, data: Path, tmp_path: Path) -> Iterator[tuple[Process, str]]:
    """A server with users."""
    users = str(users_file(tmp_path))
    # Privacy is the level when none is given.
    level = () if request.param == "privacy" else ("--rpc-auth", request.param)
    with process(data, "--queue", ORDERS, *RPC, "--rpc-users", users, *level) as server:
        yield server, request.param


LIMITS = Limits(close_s=0.2)


@contextmanager
def rpc_server(
    data: Path, *queues: str, limits: Limits = LIMITS, **changed: Any
) -> Iterator[tuple[InThread, int]]:
    """A server in a thread, and its port."""
    rpc = RpcOptions((ADDRESS, 0), **changed)
    with served(options(data, *queues, rpc=rpc, limits=limits)) as server:
        yield server, server.do(lambda running: running.rpc_network.listen[1])


def send(data: Path, *bodies: bytes) -> None:
    with attach(data) as local:
        put(local, ORDERS, *recoverable(*bodies))


def check_reading(data: Path, reader: Reader) -> None:
    """Receive, give back, peek, wait, cancel and purge."""
    send(data, b"1", b"2", b"3")
    queue = reader.open(QUEUE)
    assert reader.read(queue, request=1) == b"1"
    assert reader.end(queue, 1) == 0
    assert reader.read(queue, request=2) == b"2"
    assert peeked(data, ORDERS) == [b"3"]
    assert reader.end(queue, 2, Acknowledge.RR_NACK) == 0
    assert reader.read(queue, Action.MQ_ACTION_PEEK_CURRENT) == b"2"
    assert peeked(data, ORDERS) == [b"2", b"3"]
    assert reader.purge(queue) == 0
    assert peeked(data, ORDERS) == []
    waiting = reader.start(queue, request=3, timeout=FOREVER)
    send(data, b"4" * 20_000)
    assert reader.result(waiting) == b"4" * 20_000
    assert reader.end(queue, 3) == 0
    assert reader.close(queue)[0] == 0
    assert listed(data)[ORDERS]["messages"] == 0


@pytest.mark.requirement(
    "MQRR-2.1-01", "MQRR-2.1-02", "MQRR-2.1-04", "MQRR-3.1.3-01", "MQRR-3.1.4.1-01", "MQRR-4.1-01"
)  # fmt: skip
def test_an_anonymous_client_finds_the_port_by_the_mapper(anonymous: Process) -> None:
    assert mapped(anonymous.mapper_port) == f"ncacn_ip_tcp:{ADDRESS}[{anonymous.rpc_port}]"
    for syntax in (NDR20, NDR64):
        first = Reader(anonymous.rpc_port, syntax=syntax)
        port = first.call(Opnum.R_GetServerPort).status
        assert port == anonymous.rpc_port
        first.disconnect()
        reader = Reader(port, syntax=syntax)
        check_reading(anonymous.data, reader)
        reader.disconnect()


@pytest.mark.requirement("MQRR-2.1-06", "MQRR-1.5-01", "MQRR-5.1-01")
def test_users_read_at_the_least_level_and_above_and_nobody_else(secured: tuple[Process, str]) -> None:
    server, least = secured
    levels = {
        "connect": AuthLevel.CONNECT,
        "integrity": AuthLevel.PKT_INTEGRITY,
        "privacy": AuthLevel.PKT_PRIVACY,
    }
    for level in (AuthLevel.NONE, *levels.values()):
        reader = Reader(server.rpc_port, level, password=PASSWORD)
        if level < levels[least]:
            with pytest.raises(DCERPCException, match="access_denied"):
                reader.open(QUEUE)
        else:
            check_reading(server.data, reader)
        reader.disconnect()
    for user, password, nt_hash in (("alice", "wrong", ""), ("nobody", PASSWORD, ""), ("", "", "")):
        reader = Reader(server.rpc_port, levels[least], user=user, password=password, nt_hash=nt_hash)
        with pytest.raises(DCERPCException, match="access_denied"):
            reader.open(QUEUE)
    reader = Reader(server.rpc_port, levels[least], user="BOB", nt_hash=BOBS_HASH)
    check_reading(server.data, reader)
    assert PASSWORD not in server.log_text()


@pytest.mark.requirement("MQRR-2.1-02")
def test_the_endpoint_mapper_answers_users_too(data: Path) -> None:
    mapper = {"endpoint_mapper": (ADDRESS, 0)}
    with rpc_server(data, users={ALICE: PASSWORD}, **mapper) as (server, port):
        at = server.do(lambda running: running.rpc_network.endpoint_mapper[1])
        for level in (AuthLevel.NONE, AuthLevel.CONNECT, AuthLevel.PKT_PRIVACY):
            assert mapped(at, level, PASSWORD) == f"ncacn_ip_tcp:{ADDRESS}[{port}]"
        with pytest.raises(DCERPCException, match="access_denied"):
            mapped(at, AuthLevel.PKT_INTEGRITY, "wrong")
    with rpc_server(data, level=AuthLevel.NONE, **mapper) as (server, port):
        at = server.do(lambda running: running.rpc_network.endpoint_mapper[1])
        with pytest.raises(DCERPCException, match=r"(?i)authentication.type.not.recognized"):
            mapped(at, AuthLevel.CONNECT, PASSWORD)


def test_wrong_passwords_are_limited_in_rate(data: Path) -> None:
    limits = Limits(close_s=0.2, rpc_logins_per_user=1)
    with rpc_server(data, ORDERS, limits=limits, users={ALICE: PASSWORD, BOB: PASSWORD}) as (server, port):
        for user, password, refused in (("alice", "wrong", 0), ("alice", PASSWORD, 1), ("bob", PASSWORD, 1)):
            reader = Reader(port, AuthLevel.PKT_PRIVACY, user=user, password=password)
            if user == "bob":
                reader.close(reader.open(QUEUE))
            else:
                with pytest.raises(DCERPCException, match="access_denied"):
                    reader.open(QUEUE)
            assert server.do(lambda running: running.rpc_network.traffic.logins_refused) == refused


def test_whom_the_provider_knows_and_the_file_does_not_is_denied(data: Path) -> None:
    """As by Kerberos, which knows everybody of a realm; here the file forgets a user of NTLM."""
    with rpc_server(data, ORDERS, users={ALICE: PASSWORD}) as (server, port):
        reader = Reader(port, AuthLevel.PKT_PRIVACY, password=PASSWORD)
        reader.close(reader.open(QUEUE))
        server.do(lambda running: setattr(running.rpc_network._queues, "_is_known", lambda name: False))
        for _ in range(2):
            with pytest.raises(DCERPCException, match="access_denied"):
                reader.open(QUEUE)
        reader.disconnect()


@pytest.mark.requirement("MQRR-2.1-07")
def test_rights_of_a_queue_by_user(data: Path) -> None:
    users = {ALICE: PASSWORD, BOB: f"$NT${BOBS_HASH}"}

    def check(port: int, alices: str, bobs: str, queue: str = QUEUE) -> None:
        alice = Reader(port, AuthLevel.PKT_PRIVACY, password=PASSWORD)
        bob = Reader(port, AuthLevel.PKT_PRIVACY, user="bob", nt_hash=BOBS_HASH)
        for reader, rights in ((alice, alices), (bob, bobs)):
            for access, right in ((Access.RECEIVE_ACCESS, "receive"), (Access.PEEK_ACCESS, "peek")):
                if right in rights:
                    reader.close(reader.open(queue, access))
                else:
                    with pytest.raises(DCERPCException, match=r"(?i)c00e0025"):
                        reader.open(queue, access)
            reader.disconnect()

    def changed(how: str, *options: str) -> dict:
        return called("queue", how, ORDERS, "--data", data, *options).one

    with rpc_server(data, users=users) as (_, port):
        shown = changed("create", "--deny", f"{BOB}:receive")
        assert shown["deny"] == {BOB: ["receive"]}
        check(port, "receive peek", "peek")
        shown = changed("set", "--deny", "callers:receive,peek", "--allow", f"{BOB}:receive")
        assert (shown["deny"], shown["allow"][BOB]) == ({}, ["receive"])
        check(port, "", "receive peek")
    with rpc_server(data, users=users) as (_, port):
        check(port, "", "receive peek")
        changed("set", "--allow", "callers:receive", "--allow", f"{BOB}:none")
        check(port, "receive peek", "receive peek")
        options = "--data", data, "--deny", "callers:all", "--allow", f"{BOB}:peek"
        deadletter = called("queue", "set", "system$;deadxact", *options).one
        assert (deadletter["allow"], deadletter["deny"]) == ({BOB: ["peek"]}, {})
        assert called("queue", "show", "system$;deadletter", "--data", data).one["allow"] == {BOB: ["peek"]}
        assert called("queue", "show", "system$;journal", "--data", data).one["allow"] == {"callers": ["all"]}
        check(port, "", "peek", rf"DIRECT=OS:{ADDRESS}\SYSTEM$;DEADLETTER")
        check(port, "receive peek", "receive peek", rf"DIRECT=OS:{ADDRESS}\SYSTEM$;JOURNAL")
        wrong = (
            ("--label", "x", 69, "except for allow and deny"),
            ("--allow", "callers:send", 65, "such a queue"),
        )
        for option, value, status, why in wrong:
            run = called("queue", "set", "system$;journal", "--data", data, option, value)
            assert why in run.error(status)["error"]
    run = called("queue", "set", rf"{ORDERS};sub", "--data", data, "--deny", f"{BOB}:receive")
    assert run.status == 66
    with attach(data) as local:
        put(local, ORDERS, *recoverable(b"1"))
        local.call("move", queue=ORDERS, to=rf"{ORDERS};sub")
    run = called("queue", "set", rf"{ORDERS};sub", "--data", data, "--deny", f"{BOB}:receive")
    assert "protected like its queue" in run.error(65)["error"]


@pytest.mark.requirement("MQRR-3.1.6.1-01", "MQRR-3.1.6.1-03", "MQRR-3.1.6.2-01")
def test_messages_that_are_not_ended_come_back(anonymous: Process) -> None:
    data = anonymous.data
    send(data, b"1", b"2", b"3")
    readers = [Reader(anonymous.rpc_port) for _ in range(3)]
    for number, reader in enumerate(readers):
        assert reader.read(reader.open(QUEUE), request=1) == b"%d" % (number + 1)
    assert peeked(data, ORDERS) == []
    readers[0].disconnect()
    until(lambda: peeked(data, ORDERS) == [b"1"], "the message of a client that is gone is back")
    anonymous.kill()
    with process(data, *RPC, "--rpc-auth", "none") as server:
        assert peeked(data, ORDERS) == [b"1", b"2", b"3"]
        reader = Reader(server.rpc_port)
        assert reader.read(reader.open(QUEUE), request=1) == b"1"
        server.stop()
    assert peeked(data, ORDERS) == [b"1", b"2", b"3"]


def test_receives_that_wait_end_with_the_server(anonymous: Process) -> None:
    reader = Reader(anonymous.rpc_port)
    queue = reader.open(QUEUE)
    waiting = [reader.start(queue, request=number, timeout=FOREVER) for number in range(1, 4)]
    until(lambda: listed(anonymous.data)[ORDERS]["open"] == 1, "the queue is open")
    anonymous.stop()
    assert [reader.result(call) for call in waiting] == [CANCELLED] * 3


@pytest.mark.requirement("MQRR-3.1.2.2-02")
def test_a_message_that_is_not_ended_in_time_comes_back(data: Path) -> None:
    assert RpcOptions((ADDRESS, 0)).pending_s == 300  # by default
    with rpc_server(data, ORDERS, level=AuthLevel.NONE, pending_s=1) as (_, port):
        send(data, b"1")
        reader = Reader(port)
        queue = reader.open(QUEUE)
        assert reader.read(queue, request=1) == b"1"
        until(lambda: peeked(data, ORDERS) == [b"1"], "the message is back")
        assert reader.end(queue, 1) != 0
        assert reader.read(queue, request=2) == b"1"


USERS = [
    ("others may read it", f"{ALICE}:x", 0o640, 65, "chmod 600"),
    ("others may write it", f"{ALICE}:x", 0o602, 65, "chmod 600"),
    ("no password", f"{ALICE}:\n", 0o600, 65, "line 1: not DOMAIN"),
    ("no colon", f"{BOB}:secret\n\nsecret\n", 0o600, 65, "line 3: not DOMAIN"),
    ("no user", "LAB\\:secret", 0o600, 65, "is not DOMAIN"),
    ("twice", f"{BOB}:secret\nlab\\BOB:secret", 0o600, 65, "comes twice"),
    ("exactly twice", f"{BOB}:secret\n{BOB}:secret", 0o600, 65, "line 2: .* comes twice"),
    ("no hash", f"{BOB}:$NT$secret", 0o600, 65, "32 hexadecimal digits"),
    ("not UTF-8", "LAB\\b\udce4r:secret", 0o600, 65, "not UTF-8"),
    ("missing", None, 0, 66, "No such file"),
]


@pytest.mark.parametrize(
    "content, mode, status, why", [case[1:] for case in USERS], ids=[case[0] for case in USERS]
)
def test_a_file_of_users_that_is_refused(
    data: Path, tmp_path: Path, content: str | None, mode: int, status: int, why: str
) -> None:
    file = tmp_path / "users"
    if content is not None:
        file.write_bytes(content.encode(errors="surrogateescape"))
        file.chmod(mode)
    run = called(
        "serve", "--data", data, "--listen", f"{ADDRESS}:0", "--ping", "off", *RPC, "--rpc-users", file
    )
    error = run.error(status)
    assert re.search(why, error["error"]), error
    assert "secret" not in run.err


@pytest.mark.parametrize(
    "options, why",
    [
        ((*RPC,), "--rpc needs --rpc-users, or --rpc-auth none"),
        (("--endpoint-mapper", ":0"), "--endpoint-mapper is for --rpc"),
        (("--rpc-users", "users"), "--rpc-users is for --rpc"),
    ],
)
def test_options_that_do_not_go_together(data: Path, options: tuple[str, ...], why: str) -> None:
    run = called("serve", "--data", data, *options)
    assert run.status == 2
    assert why in " ".join(re.sub(r"[^ -~]", " ", run.err).split())


@pytest.mark.requirement("MQRR-3.1.4.1-02", "MQRR-3.1.4.1-04", "MQRR-3.1.4.1-05", "MQRR-2.1-03")
def test_a_taken_default_port_is_replaced_by_a_later_one(data: Path, tmp_path: Path) -> None:
    """A port that was given is not replaced."""
    address = "127.0.0.62"
    assert DEFAULT_PORT == 2103
    with socket.create_server((address, DEFAULT_PORT)), socket.create_server((address, DEFAULT_PORT + 11)):
        with process(data, "--rpc", address, "--rpc-auth", "none") as server:
            assert server.rpc_port == DEFAULT_PORT + 22
            reader = Reader(server.rpc_port, address=address)
            assert reader.call(Opnum.R_GetServerPort).status == server.rpc_port
            reader.disconnect()
        given = ("--rpc", f"{address}:{DEFAULT_PORT}", "--rpc-auth", "none", "--ping", "off")
        error = called("serve", "--data", tmp_path / "b", "--listen", f"{address}:0", *given).error(69)
        assert str(DEFAULT_PORT) in error["error"]
