"""Messages from server to server by multicast: queues that listen to a group, and names that send to it."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.multicast import MulticastOnDemand, PgmMode, PgmOptions
from msmqwire.qm.runtime.server import Server
from tests.support.own_addresses import own_group
from tests.support.running import ORDERS, InThread, called, listed, message, options, served, until
from tests.support.sending import arrived

ADDRESS = own_group(5)
GROUP = f"{ADDRESS}:8001"
OTHER = r"private$\other"


@pytest.fixture
def pgm() -> PgmOptions:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    return PgmOptions(PgmMode.UDP, port, port, IPv4Address("127.0.0.1"))


@pytest.fixture(autouse=True)
def no_lingering(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loopback loses nothing: no repairs need be waited for."""
    monkeypatch.setattr("msmqwire.qm.runtime.multicast.network.LINGER_S", 0.0)


def send(server: InThread, group: str, *bodies: bytes) -> None:
    with attach(server.data) as local:
        answer = local.call("send", to=f"MULTICAST={group}", messages=[message(body) for body in bodies])
    assert "refused" not in answer


def groups(server: InThread) -> set[IPv4Address]:
    def joined(one: Server) -> set[IPv4Address]:
        carrier = one.joined["multicast"]
        assert isinstance(carrier, MulticastOnDemand)
        network = carrier.network
        return set() if network is None else set(network._groups)

    return server.do(joined)


@pytest.mark.requirement("SRMP-2.1.2-01", "SRMP-2.1.2-02", "SRMP-3.1.5.1.1-11", "SRMP-3.1.7.9-02")
@pytest.mark.requirement("DMPR-3.1.1.2-15", "MQMQ-2.3.1.23-01")
def test_a_message_to_all_queues_of_a_group(tmp_path: Path, pgm: PgmOptions) -> None:
    alpha, beta = tmp_path / "alpha", tmp_path / "beta"
    with (
        served(options(alpha, ORDERS, name="alpha", protocols={"multicast": pgm})) as one,
        served(
            options(beta, name="beta", protocols={"multicast": pgm}, listen=("127.0.0.32", 0), ping=None)
        ) as two,
    ):
        assert groups(one) == groups(two) == set()
        created = called("queue", "create", ORDERS, "--data", beta, "--multicast", GROUP).one
        assert created["multicast"] == GROUP
        assert listed(beta)[ORDERS]["multicast"] == GROUP
        assert (
            called("queue", "create", OTHER, "--data", beta, "--multicast", GROUP).one["multicast"] == GROUP
        )
        assert called("queue", "set", ORDERS, "--data", alpha, "--multicast", GROUP).one["multicast"] == GROUP
        until(lambda: groups(two) == {IPv4Address(ADDRESS)}, "the group is joined")
        send(one, GROUP, b"to all", bytes(40_000))
        send(one, f"{ADDRESS}:8002", b"to another port")
        for server, queue in ((two, ORDERS), (two, OTHER), (one, ORDERS)):
            assert arrived(server, 2, queue) == [b"to all", bytes(40_000)]
        until(lambda: listed(alpha)[f"MULTICAST={GROUP}"]["messages"] == 0, "nothing waits any more")
        # Leaving: one queue of beta goes on listening, the last one ends it.
        called("queue", "set", ORDERS, "--data", beta, "--multicast", "none")
        assert groups(two) == {IPv4Address(ADDRESS)}
        send(one, GROUP, b"third")
        assert len(arrived(two, 3, OTHER)) == 3
        assert called("queue", "delete", OTHER, "--yes", "--data", beta).one["deleted"] == 3
        until(lambda: groups(two) == set(), "the group is left")
        assert listed(beta)[ORDERS]["messages"] == 2


@pytest.mark.parametrize("how", ["express", "recoverable"])
def test_a_message_of_a_program_without_a_folder(tmp_path: Path, pgm: PgmOptions, how: str) -> None:
    data = tmp_path / "alpha"
    port = pgm.multicast_port
    options_of_send = ["--pgm", f"udp:{port}:{port}", "--pgm-interface", "127.0.0.1", "--body", "straight"]
    with served(options(data, ORDERS, protocols={"multicast": pgm})) as server:
        called("queue", "set", ORDERS, "--data", data, "--multicast", GROUP)
        until(lambda: groups(server), "the group is joined")
        how_to = ["--recoverable"] if how == "recoverable" else []
        sent = called("send", f"MULTICAST={GROUP}", *options_of_send, *how_to)
        assert (sent.status, sent.err) == (0, "")
        assert arrived(server, 1) == [b"straight"]
        acknowledged = called("send", f"MULTICAST={GROUP}", *options_of_send, "--ack", "full_reach_queue")
        assert acknowledged.error(acknowledged.status)["path"] == "acknowledge"
        wrong = called("send", f"MULTICAST={GROUP}", "--pgm", "tcp", "--body", "x")
        assert wrong.error(wrong.status)["path"] == "pgm"


@pytest.mark.requirement("DMPR-3.1.1-12")
def test_a_group_is_joined_again_after_a_restart(tmp_path: Path, pgm: PgmOptions) -> None:
    data = tmp_path / "alpha"
    with served(options(data, protocols={"multicast": PgmOptions(PgmMode.OFF)})):
        called("queue", "create", ORDERS, "--data", data, "--multicast", GROUP)
    with served(options(data, protocols={"multicast": pgm})) as server:
        until(lambda: groups(server) == {IPv4Address(ADDRESS)}, "the group is joined")
        send(server, GROUP, b"to myself")
        assert arrived(server, 1) == [b"to myself"]


@pytest.mark.requirement("SRMP-2.1.3.1-15", "SRMP-2.2.2-18")
def test_a_message_that_is_too_long_is_given_up(tmp_path: Path, pgm: PgmOptions) -> None:
    """It can never be sent, so those behind it need not wait for it."""
    data = tmp_path / "alpha"
    with served(options(data, ORDERS, protocols={"multicast": pgm})) as server:
        called("queue", "set", ORDERS, "--data", data, "--multicast", GROUP)
        with attach(data) as local:
            long = message(bytes(65_536), dead_letter=True)
            local.call("send", to=f"MULTICAST={GROUP}", messages=[long, message(b"short")])
        assert arrived(server, 1) == [b"short"]
        assert listed(data)[f"MULTICAST={GROUP}"]["messages"] == 0
        assert listed(data)["system$;deadletter"]["messages"] == 1


def test_a_transactional_queue_listens_to_no_group(tmp_path: Path) -> None:
    data = tmp_path / "alpha"
    wrong = called("queue", "create", ORDERS, "--data", data, "--transactional", "--multicast", GROUP)
    assert wrong.status != 0
    assert wrong.error(wrong.status)["path"] == "multicast"
    called("queue", "create", OTHER, "--data", data, "--transactional")
    assert called("queue", "set", OTHER, "--data", data, "--multicast", GROUP).status == wrong.status
    assert listed(data)[OTHER]["multicast"] is None


@pytest.mark.requirement("MQMQ-2.3.1.23-02")
@pytest.mark.parametrize("address", ["234.1.1.1", "223.1.1.1:80", "240.0.0.1:80", "234.1.1.1:65536", "x", ""])
def test_addresses_that_are_no_group(tmp_path: Path, address: str) -> None:
    data = tmp_path / "alpha"
    called("queue", "create", ORDERS, "--data", data)
    result = called("queue", "set", ORDERS, "--data", data, "--multicast", address)
    assert result.status != 0
    assert '"path": "multicast"' in result.err.replace('":"', '": "')
    assert listed(data)[ORDERS]["multicast"] is None


@pytest.mark.parametrize(
    "arguments", [("--pgm", "tcp"), ("--pgm", "udp:0"), ("--pgm-interface", "lo"), ("--pgm-ttl", "0")]
)
def test_wrong_options(tmp_path: Path, arguments: tuple[str, str]) -> None:
    result = called("serve", "--data", tmp_path / "alpha", *arguments)
    assert result.status == 2
    assert arguments[0] in result.err
