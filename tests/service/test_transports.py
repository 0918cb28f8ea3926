"""Transports and ports, [MS-MQQB] 2.1, tested with plain sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import msmqwire
from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.server import ServerOptions
from tests.support.own_addresses import has_ipv6, own_loopback
from tests.support.paths import VECTORS
from tests.support.running import PATIENCE_S, process

pytestmark = pytest.mark.uvloop

SESSION_PORT, PING_PORT = 1801, 3527
ESTABLISH = bytes.fromhex((VECTORS / "MS-MQQB-4.1.3-EstablishConnectionRequest.hex").read_text())
PING = bytes.fromhex((VECTORS / "MS-MQQB-4.1.1-PingRequest.hex").read_text())
SERVER_GUID = slice(36, 52)
OPERATING_SYSTEM = slice(56, 58)
SE = 0x0100


def receive(connection: socket.socket, size: int) -> bytes:
    """Receive exactly `size` bytes."""
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        assert chunk, f"the connection ends after {len(data)} of {size} bytes"
        data += chunk
    return data


@contextmanager
def connected(address: str, port: int) -> Iterator[socket.socket]:
    with socket.create_connection((address, port), PATIENCE_S) as connection:
        yield connection


def establish(address: str, port: int, *, server_edition: bool) -> bytes:
    """The answer to an EstablishConnection request for any queue manager."""
    request = bytearray(ESTABLISH)
    request[SERVER_GUID] = bytes(16)
    flags = int.from_bytes(request[OPERATING_SYSTEM], "little") & ~SE | (SE if server_edition else 0)
    request[OPERATING_SYSTEM] = flags.to_bytes(2, "little")
    with connected(address, port) as connection:
        connection.sendall(request)
        return receive(connection, len(request))


def ping(server: tuple[str, int], address: str) -> tuple[bytes, tuple[str, int]]:
    """The answer to a Ping request from an address, and its source."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(PATIENCE_S)
        client.bind((address, 0))
        client.sendto(PING, server)
        return client.recvfrom(100)


@pytest.mark.requirement("MQQB-2.1.1-04", "MQQB-2.1.1-05", "MQQB-2.1.1-06", "MQQB-1.9-01")
def test_an_initiator_connects_to_port_1801_from_any_port() -> None:
    address, ports, requests = own_loopback(41), [], []
    with socket.create_server((address, SESSION_PORT)) as listener:
        listener.settimeout(PATIENCE_S)

        def accept() -> None:
            for _ in range(2):
                connection, peer = listener.accept()
                with connection:
                    connection.settimeout(PATIENCE_S)
                    requests.append(receive(connection, len(ESTABLISH)))
                    ports.append(peer[1])

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        for _ in range(2):
            with (
                pytest.raises(msmqwire.Unreachable, match="a message was not transferred"),
                msmqwire.connect(rf"DIRECT=TCP:{address}\private$\orders", drain=0.5) as client,
            ):
                client.send(b"", recoverable=True)
        acceptor.join(PATIENCE_S)
    assert [packet[4:8] for packet in requests] == [b"LIOR"] * 2
    assert ports[0] != ports[1]
    assert SESSION_PORT not in ports


@pytest.mark.requirement("MQQB-1.9-01", "MQQB-2.1.1-04", "MQQB-2.1.1-05", "MQQB-2.1.1-07")
@pytest.mark.requirement("MQQB-2.1.2-03", "MQQB-2.1.2-04", "MQQB-2.1.2-06")
def test_the_default_ports(tmp_path: Path) -> None:
    options, others = ServerOptions(tmp_path), AddressOverrides()
    assert (options.listen[1], others.port) == (SESSION_PORT, SESSION_PORT)
    assert options.ping is not None
    assert (options.ping[1], others.ping_port) == (PING_PORT, PING_PORT)


@pytest.mark.requirement("MQQB-1.9-01", "MQQB-2.1.2-06")
@pytest.mark.requirement("MQQB-2.1.1-04", "MQQB-2.1.1-07", "MQQB-2.1.2-03", "MQQB-2.1.2-07")
def test_a_server_listens_on_tcp_1801_and_udp_3527(tmp_path: Path) -> None:
    address = own_loopback(42)
    with process(tmp_path / "alpha", "--listen", address, "--ping", address) as server:
        assert (server.port, server.ping_port) == (SESSION_PORT, PING_PORT)
        answer = establish(address, SESSION_PORT, server_edition=True)
        assert (answer[4:8], len(answer)) == (b"LIOR", len(ESTABLISH))
        response, source = ping((address, PING_PORT), own_loopback(43))
        assert source == (address, PING_PORT)
        assert response[4:8] == PING[4:8]  # the cookie


@pytest.mark.skipif(not has_ipv6(), reason="this computer has no IPv6")
def test_a_socket_of_ipv6_answers_pings_over_ipv4(tmp_path: Path) -> None:
    with process(tmp_path / "alpha", "--ping", "[::]:0") as server:
        response, _ = ping(("127.0.0.1", server.ping_port), "127.0.0.1")
    assert response[4:8] == PING[4:8]


@pytest.mark.requirement("MQQB-2.2.3.1-11")
@pytest.mark.parametrize("server_edition", [True, False])
def test_the_answer_has_the_edition_of_the_request(tmp_path: Path, server_edition: bool) -> None:
    with process(tmp_path / "alpha", address="127.0.0.44") as server:
        answer = establish(server.address, server.port, server_edition=server_edition)
    assert bool(int.from_bytes(answer[OPERATING_SYSTEM], "little") & SE) == server_edition
