"""Requests of HTTP and HTTPS that come in: what the engine gets of them, and what their senders."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import struct
from contextlib import suppress
from pathlib import Path

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.qm.runtime.http import handshakes
from msmqwire.service.tls import client_context, server_context
from msmqwire.srmp.fields import Field
from msmqwire.srmp.http_framer import parse_http
from msmqwire.srmp.http_message import Chunking, HttpMessage, RequestLine
from tests.support.certificates import Certificates
from tests.support.many_computers import many_computers
from tests.support.paths import ROOT
from tests.support.patience import happens
from tests.support.running import asyncio_only
from tests.support.srmp.http_service import HEAD, OK, Peer, ask, peer, post, service, status_of

EXAMPLE = (ROOT / "tests/vectors/srmp/4.2.http").read_bytes()


@pytest.mark.requirement("SRMP-2.1.1-01", "SRMP-2.1.1-05", "SRMP-2.1.1-12")
@pytest.mark.requirement("SRMP-2.1.1-13", "SRMP-2.1.2-05")
def test_a_request_reaches_the_engine_as_it_was_sent() -> None:
    async def run() -> None:
        async with service() as server:
            for status in (200, 400, 500, 503):
                server.engine.status = status
                async with peer(server.port, address="127.0.0.5") as windows:
                    await windows.send(EXAMPLE)
                    answer = await windows.head()
                line, *fields = answer.decode().split("\r\n")
                assert re.fullmatch(rf"HTTP/1\.1 {status} [A-Za-z ]+", line)
                assert fields[:2] == ["Content-Length: 0", "Server: msmqwire"]
                assert re.fullmatch("Date: .+ GMT", fields[2])
                assert fields[3:] == ["", ""]
            assert server.engine.requested_ones == [(parse_http(EXAMPLE), "127.0.0.5")] * 4
            assert server.engine.requested_ones[0][0].to_bytes() == EXAMPLE

    asyncio.run(run())


@pytest.mark.requirement("SRMP-2.1.1-04")
def test_fields_and_target_keep_their_form() -> None:
    async def run() -> None:
        target = "/mSmQ/Private$/q%41;x?SenderStream=a%2Fb&&c#d"
        request = (
            f"POST {target} HTTP/1.1\r\nhOST: alpha:8080\r\nX-a:1\r\nx-A:\t2 \r\nContent-LENGTH: 2\r\n\r\nhi"
        )
        async with service() as server:
            assert (await ask(server.port, request.encode() + post(b"", b"Connection: close")))[0] == 200
            http = server.engine.requested_ones[0][0]
            assert http.start == RequestLine("POST", target)
            assert [(field.name, field.value) for field in http.fields] == [
                ("hOST", "alpha:8080"), ("X-a", "1"), ("x-A", "2"), ("Content-LENGTH", "2"),
            ]  # fmt: skip

    asyncio.run(run())


@pytest.mark.parametrize(
    "head",
    [
        b"POST http://alpha/MSMQ/q HTTP/1.1\r\nHost: beta\r\n",
        b"POST /msmq/q HTTP/1.1\r\nHost: [::1]:80\r\n",
        b"POST /msmq/q HTTP/1.1\r\nHost: \r\n",
        b"\r\nPOST /msmq/q HTTP/1.1\r\nHost: alpha\r\n",
        b"POST /msmq/q HTTP/1.1\r\nHost: alpha\r\nContent-Encoding: Identity\r\n",
        b"POST /msmq/q HTTP/1.0\r\n",  # RFC 9112 3.2 asks for Host in 1.1 alone
    ],
)
def test_other_sound_forms_are_taken(head: bytes) -> None:
    async def run() -> None:
        async with service() as server:
            assert (await ask(server.port, post(b"x", b"Connection: close", head=head)))[0] == 200
            assert server.entities == [b"x"]

    asyncio.run(run())


def test_chunks_become_one_entity() -> None:
    async def run() -> None:
        chunks = b"5;name=value\r\nhello\r\n6\r\n world\r\n0\r\nX-Trailer: 1\r\n\r\n"
        async with service() as server:
            request = HEAD + b"Transfer-Encoding: CHUNKED\r\nConnection: close\r\n\r\n" + chunks
            assert (await ask(server.port, request))[0] == 200
            http = server.engine.requested_ones[0][0]
            assert http.entity == b"hello world"
            assert http.chunking == Chunking(("b", "0"))
            assert parse_http(http.to_bytes()) == http

    asyncio.run(run())


def test_one_connection_takes_requests_split_or_pipelined() -> None:
    async def run() -> None:
        requests = [post(b"%d" % number * number) for number in range(1, 8)]
        async with service() as server, peer(server.port) as kept:
            for byte in b"".join(requests[:3]):
                await kept.send(bytes([byte]))
                await asyncio.sleep(0.001)  # each byte comes alone
            await kept.send(b"".join(requests[3:]))
            assert [status_of(await kept.head()) for _ in requests] == [200] * 7
            assert server.entities == [b"%d" % number * number for number in range(1, 8)]
            assert server.http.traffic.accepted == 1

    asyncio.run(run())


def test_who_has_sent_all_may_still_read_the_answers() -> None:
    async def run() -> None:
        async with service() as server, peer(server.port) as half:
            server.engine.status = None
            await half.send(post() * 3)
            half.writer.write_eof()
            for _ in range(3):
                await happens(lambda: server.engine.waiting, "a request")
                server.driver.call(server.engine.answer, 200)
            assert (await half.ended()).count(b" 200 OK") == 3

    asyncio.run(run())


def test_a_client_that_asks_first_gets_100_continue() -> None:
    async def run() -> None:
        async with service() as server, peer(server.port) as polite:
            await polite.send(HEAD + b"Expect: 100-Continue\r\nContent-Length: 4000000\r\n\r\n")
            assert await polite.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
            await polite.send(bytes(4_000_000))
            assert status_of(await polite.head()) == 200
            assert server.entities == [bytes(4_000_000)]

    asyncio.run(run())


def test_an_answer_and_a_stop_wait_for_the_engine() -> None:
    async def run() -> None:
        async with service() as server:
            server.engine.status = None
            async with peer(server.port) as kept, peer(server.port) as idle:
                await kept.send(post())
                await happens(lambda: server.engine.waiting, "a request")
                server.http.stop_listening()
                stopping = asyncio.ensure_future(server.http.finish())
                await asyncio.sleep(0.05)  # it waits for the answer
                assert not stopping.done()
                await idle.send(post())
                assert status_of(await idle.head()) == 503
                server.driver.call(server.engine.answer, 200)
                answer = await kept.ended()
                assert status_of(answer) == 200
                assert b"\r\nConnection: close\r\n" in answer
                await stopping
            with pytest.raises(ConnectionRefusedError):
                await Peer.connect(server.port)

    asyncio.run(run())


def test_the_answer_to_one_who_has_gone_is_dropped() -> None:
    async def run() -> None:
        async with service() as server:
            server.engine.status = None
            async with peer(server.port) as gone:
                await gone.send(post())
                await happens(lambda: server.engine.waiting, "a request")
                raw = gone.writer.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset it
            await happens(lambda: not server.connections, "the end of the connection")
            server.engine.status = 200
            await server.serves()  # which answers both

    asyncio.run(run())


@asyncio_only
@pytest.mark.requirement("SRMP-2.1.1-02")
def test_https_both_ways(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    message = HttpMessage(
        RequestLine("POST", "/msmq/q"), (Field("Host", "alpha"), Field("Content-Length", "5")), b"hello"
    )

    async def run() -> None:
        own = server_context(*certificates.issue("alpha"))
        trusting = client_context(certificates.authority)
        hosts: dict[str, tuple[str, int | None]] = {"alpha": ("127.0.0.1", None), "beta": ("127.0.0.1", None)}
        async with service(context=own, client_context=trusting, hosts=hosts) as server:
            port = server.port
            assert await server.send(1, f"https://alpha:{port}/msmq/q", message) == (200, "127.0.0.1")
            assert "beta" in await server.send(2, f"https://beta:{port}/msmq/q", message)
            async with peer(port, context=trusting) as tls:
                await tls.send(post(bytes(3_000_000)) + post())
                assert [status_of(await tls.head()) for _ in range(2)] == [200, 200]
            assert (await ask(port, post()))[0] == 0, "no HTTP where TLS is expected"
            assert server.entities == [b"hello", bytes(3_000_000), b"hello"]
        async with service(context=own, client_context=client_context(), hosts=hosts) as server:
            reason = await server.send(1, f"https://alpha:{server.port}/msmq/q", message)
            assert "certificate" in reason
        careless = client_context(verify=False)
        async with service(context=own, client_context=careless, hosts=hosts) as server:
            result = await server.send(1, f"https://beta:{server.port}/msmq/q", message)
            assert result == (200, "127.0.0.1")

    asyncio.run(run())


def handshake(client: ssl.SSLContext, server: ssl.SSLContext) -> str | None:
    """The version of TLS that two contexts agree on; raises ssl.SSLError if on none."""
    sent, answered = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(answered, sent, server_hostname="alpha"),
        server.wrap_bio(sent, answered, server_side=True),
    ]
    for _ in range(6):
        for end in ends:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    return ends[1].version()


@pytest.mark.requirement("SRMP-5.1-02")
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize("older", ["client", "server"])
def test_https_takes_what_the_platform_offers_from_tls_1_2(tmp_path: Path, older: str) -> None:
    certificates = Certificates(tmp_path)

    def version(limit: ssl.TLSVersion) -> str | None:
        contexts = {
            "client": client_context(certificates.authority),
            "server": server_context(*certificates.issue("alpha")),
        }
        peer = contexts[older]
        peer.set_ciphers("DEFAULT:@SECLEVEL=0")
        peer.minimum_version, peer.maximum_version = ssl.TLSVersion.MINIMUM_SUPPORTED, limit
        return handshake(**contexts)

    assert version(ssl.TLSVersion.MAXIMUM_SUPPORTED) == "TLSv1.3"
    assert version(ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
    for refused in (ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1):
        with pytest.raises(ssl.SSLError, match=r"VERSION|PROTOCOL"):
            version(refused)
    for context in (client_context(), server_context(*certificates.issue("alpha"))):
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2
        assert ssl.OP_NO_SSLv3 in context.options


@asyncio_only
def test_handshakes_of_one_address_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In number, and in the work that they cause: others are served meanwhile."""

    async def run() -> None:
        own = server_context(*Certificates(tmp_path).issue("alpha"))
        trusting = ssl.create_default_context(cafile=tmp_path / "authority.pem")

        async def is_served(address: str) -> bool:
            try:
                async with peer(server.port, context=trusting, address=address) as tls:
                    await tls.send(post())
                    return status_of(await tls.head()) == 200
            except (OSError, ssl.SSLError):
                return False

        limits = {"tls_handshakes_per_peer": 4, "tls_handshake_s": 3600.0}
        async with service(context=own, **limits) as server:
            silent = [await Peer.connect(server.port, "127.0.0.2") for _ in range(10)]
            await happens(lambda: len(server.connections) == 4, "the oldest ones end")
            assert [await connection.ended() for connection in silent[:6]] == [b""] * 6
            assert await is_served("127.0.0.3")
            assert server.http.traffic.refused == 0
            for connection in silent:
                await connection.close()
            await happens(lambda: not server.connections, "they are forgotten")
        monkeypatch.setattr(handshakes, "HANDSHAKE_MS", 600.0)
        async with service(context=own, **limits) as server:
            assert await is_served("127.0.0.2")
            assert not await is_served("127.0.0.2")
            assert await is_served("127.0.0.3")
            assert server.http.traffic.refused == 1
            await happens(lambda: not server.connections, "they are forgotten")

    with many_computers():
        asyncio.run(run())


@asyncio_only
def test_a_handshake_has_a_limited_time_and_holds_up_nobody(tmp_path: Path) -> None:
    async def run() -> None:
        own = server_context(*Certificates(tmp_path).issue("alpha"))
        async with service(context=own, tls_handshake_s=0.5) as server:
            silent = [await Peer.connect(server.port) for _ in range(40)]
            trusting = ssl.create_default_context(cafile=tmp_path / "authority.pem")
            async with peer(server.port, context=trusting) as tls:
                await tls.send(post())
                assert status_of(await tls.head()) == 200
            assert [await connection.ended() for connection in silent] == [b""] * 40
            await happens(lambda: not server.connections, "they are forgotten")
            for connection in silent:
                await connection.close()

    asyncio.run(run())


def test_files_that_make_no_context_are_refused(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    certificate, key = certificates.issue("alpha")
    other = certificates.issue("beta")[1]
    encrypted = certificates.encrypt(key)
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text(OK.decode())
    for first, second, path, why in (
        (certificate, other, "tls_key", "is not the key of the certificate"),
        (certificate, tmp_path / "missing", "tls_key", "can't be read: No such file"),
        (tmp_path, key, "tls_cert", "can't be read: Is a directory"),
        (certificate, encrypted, "tls_key", "is encrypted"),
        (nonsense, key, "tls_cert", "are not a certificate and its key"),
    ):
        with pytest.raises(InvalidValue, match=why) as caught:
            server_context(first, second)
        assert caught.value.path == path
    with pytest.raises(InvalidValue, match="has no certificate in PEM") as caught:
        client_context(nonsense)
    assert caught.value.path == "tls_ca"
