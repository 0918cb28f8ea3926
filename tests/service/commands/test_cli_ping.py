"""``msmqwire ping``: against our own server, and against peers that answer otherwise."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from msmqwire.packets import CONNECTION_PARAMETERS, ESTABLISH_CONNECTION, parse
from msmqwire.ping import PING
from tests.support import handmade as h
from tests.support.patience import limit
from tests.support.running import in_process as command
from tests.support.running import options, served

GUID = UUID("557358d1-9150-9595-4997-0c1a2b3c4d5e")
ADDRESS = "127.0.0.93"


@contextmanager
def listening(kind: socket.SocketKind, serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A peer in a thread; yields its port."""
    with socket.socket(socket.AF_INET, kind) as peer:
        peer.bind((ADDRESS, 0))
        if kind == socket.SOCK_STREAM:
            peer.listen()
        peer.settimeout(limit(30))
        thread = threading.Thread(target=serve, args=(peer,))
        thread.start()
        yield peer.getsockname()[1]
        thread.join()


def pinged(*responses: Callable[[Any], bytes]) -> Callable[[socket.socket], None]:
    """Answer one ping with some datagrams."""

    def serve(peer: socket.socket) -> None:
        data, sender = peer.recvfrom(100)
        for response in responses:
            peer.sendto(response(parse(data, protocol="ping")), sender)

    return serve


def response(**fields: Any) -> Callable[[Any], bytes]:
    return lambda request: PING.build({"Cookie": request.Cookie, "QMGuid": GUID, **fields})


def accepted(*answers: bytes | Callable[[Any], bytes]) -> Callable[[socket.socket], None]:
    """Take one connection, answer each packet with the next of these, and close it after the last."""

    def serve(peer: socket.socket) -> None:
        connection, _ = peer.accept()
        with connection:
            connection.settimeout(limit(30))
            for answer in answers:
                request = parse(connection.recv(4096))
                connection.sendall(answer if isinstance(answer, bytes) else answer(request))

    return serve


def established(*, refused: bool = False) -> Callable[[Any], bytes]:
    def answer(request: Any) -> bytes:
        header = request.EstablishConnectionHeader
        return ESTABLISH_CONNECTION.build(
            {
                "InternalHeader": {"Flags": {"CS": refused}},
                "EstablishConnectionHeader": {
                    "ClientGuid": header.ClientGuid, "ServerGuid": GUID, "TimeStamp": header.TimeStamp,
                },
            }
        )  # fmt: skip

    return answer


PARAMETERS = CONNECTION_PARAMETERS.build(
    {"ConnectionParametersHeader": {"AckTimeout": 30_000, "RecoverableAckTimeout": 700, "WindowSize": 32}}
)
REFUSED = CONNECTION_PARAMETERS.build({"InternalHeader": {"Flags": {"CS": True}}})


def test_our_own_server(tmp_path: Path) -> None:
    with served(options(tmp_path / "qm", address=ADDRESS)) as server:
        done = command(
            "ping", server.address, "--port", str(server.port), "--ping-port", str(server.ping_port),
            "-c", "2", "-i", "0.01", "--session", "--json",
        )  # fmt: skip
        guid = server.do(lambda running: str(running.driver.core.queue_manager.identifier))
    assert done.returncode == 0, done.stderr
    first, second, session = map(json.loads, done.stdout.splitlines())
    assert (first["ping"], second["ping"], first["is_refused"]) == (1, 2, False)
    assert first["queue_manager"] == session["queue_manager"] == guid
    assert (session["refused"], session["version"], session["window_size"]) == (None, 0x10, 64)
    assert 0 < session["connect_s"] < session["establish_s"] < session["parameters_s"]


def test_only_the_answer_to_this_request_counts() -> None:
    others = [
        lambda request: b"x" * 24,
        lambda request: PING.build({"Cookie": request.Cookie ^ 1, "QMGuid": GUID}),
        PING.build,  # our own request, come back
        lambda request: response()(request) + b"more",
    ]
    with listening(socket.SOCK_DGRAM, pinged(*others, response(Flags={"RF": True}))) as port:
        done = command("ping", ADDRESS, "--ping-port", str(port), "-c", "1", "--json")
    assert done.returncode == 69
    told = json.loads(done.stdout)
    assert (told["queue_manager"], told["is_refused"]) == (str(GUID), True)


def test_no_answer() -> None:
    with listening(socket.SOCK_DGRAM, pinged()) as port:
        done = command("ping", ADDRESS, "--ping-port", str(port), "-c", "1", "-W", "0.3")
    assert done.returncode == 69
    assert done.stdout == b"1 sent, 0 answered, 0 would refuse a session\n"
    assert json.loads(done.stderr)["error"] == f"{ADDRESS}, UDP {port}: no answer in time"


@pytest.mark.parametrize(
    ("host", "error"),
    [
        ("127.0.0.300", "no computer of this name is found; check it, or use an address"),
        ("a..b", "no computer can have this name"),
        ("x" * 64 + ".example", "no computer can have this name"),
    ],
)
@pytest.mark.parametrize("options_", [(), ("--session",), ("--no-ping",)])
def test_a_name_of_no_computer_is_said_once(host: str, error: str, options_: tuple[str, ...]) -> None:
    done = command("ping", host, *options_)
    assert (done.returncode, done.stdout) == (69, b"")
    (line,) = done.stderr.splitlines()
    assert json.loads(line)["error"].endswith(f": {error}")


@pytest.mark.parametrize("option", ["--interval", "--timeout"])
@pytest.mark.parametrize("seconds", ["inf", "nan", "3601", "0"])
def test_seconds_that_nobody_waits(option: str, seconds: str) -> None:
    done = command("ping", ADDRESS, "-c", "1", option, seconds)
    assert done.returncode == 2
    assert option.encode() in done.stderr


def test_a_session_is_reported() -> None:
    with listening(socket.SOCK_STREAM, accepted(established(), PARAMETERS)) as port:
        done = command("ping", ADDRESS, "--no-ping", "--port", str(port))
    assert done.returncode == 0
    first, second, third = done.stdout.decode().splitlines()
    assert first.startswith(f"{ADDRESS}: session on port {port} open; connected after ")
    assert second == f"  queue manager {GUID}, workstation-class, packet version 0x10"
    assert third == "  window 32 messages, AckTimeout 30000 ms, RecoverableAckTimeout 700 ms"


@pytest.mark.parametrize(
    "answers, refused",
    [
        ([established(refused=True)], "EstablishConnection"),
        ([established(), REFUSED], "ConnectionParameters"),
    ],
)
def test_a_refused_session(answers: list[Any], refused: str) -> None:
    with listening(socket.SOCK_STREAM, accepted(*answers)) as port:
        done = command("ping", ADDRESS, "--no-ping", "--port", str(port), "--json")
    assert (done.returncode, json.loads(done.stdout)["refused"]) == (69, refused)


@pytest.mark.parametrize(
    "answers, error",
    [
        ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], "BaseHeader.VersionNumber, byte 0"),
        ([h.base_header(0x0040_0000)], "BaseHeader.PacketSize, byte 8"),
        ([PARAMETERS], "ConnectionParameters where EstablishConnection should be"),
        ([established(), h.session_ack()], "SessionAck where ConnectionParameters should be"),
        ([b""], "the connection was closed before the answer"),
        ([b"\x10"], "the connection was closed before the answer"),
    ],
)
def test_not_a_handshake(answers: list[Any], error: str) -> None:
    with listening(socket.SOCK_STREAM, accepted(*answers)) as port:
        done = command("ping", ADDRESS, "--no-ping", "--port", str(port))
    told = json.loads(done.stderr)
    assert (done.returncode, done.stdout) == (69, b"")
    assert error in f"{told['path']}, byte {told['offset']}: {told['error']}"


def test_a_peer_that_says_nothing() -> None:
    done_waiting = threading.Event()

    def serve(peer: socket.socket) -> None:
        connection, _ = peer.accept()
        with connection:
            done_waiting.wait(limit(30))

    with listening(socket.SOCK_STREAM, serve) as port:
        done = command("ping", ADDRESS, "--no-ping", "--port", str(port), "-W", "0.3")
        done_waiting.set()
    assert done.returncode == 69
    assert json.loads(done.stderr)["error"] == f"{ADDRESS}, TCP {port}: no answer in time"
