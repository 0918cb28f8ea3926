"""Hostile clients of the HTTP listener: each gets its refusal, and honest ones are served meanwhile."""

from __future__ import annotations

import asyncio
import socket
import time
import tracemalloc

import pytest

from msmqwire.srmp.fields import FIELD_COUNT_MAX, HEAD_SIZE_MAX
from tests.support.patience import happens, limit
from tests.support.srmp.http_service import HEAD, Peer, Service, ask, peer, post, service, status_of

pytestmark = pytest.mark.usefixtures("computers")
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
SMUGGLED = b"POST /msmq/smuggled HTTP/1.1\r\nHost: alpha\r\nContent-Length: 0\r\n\r\n"
MALFORMED = {
    "length and chunks": HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "two equal lengths": HEAD + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "a list of lengths": HEAD + b"Content-Length: 5, 5\r\n\r\nhello",
    "a sign": HEAD + b"Content-Length: +5\r\n\r\nhello",
    "a negative length": HEAD + b"Content-Length: -5\r\n\r\nhello",
    "a hexadecimal length": HEAD + b"Content-Length: 0x5\r\n\r\nhello",
    "an underscore": HEAD + b"Content-Length: 0_5\r\n\r\nhello",
    "an empty length": HEAD + b"Content-Length:\r\n\r\nhello",
    "other digits": HEAD + "Content-Length: \u0665\r\n\r\nhello".encode(),
    "chunked twice": HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked twice in one": HEAD + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "chunked not last": HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "almost chunked": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked behind a tab": HEAD + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "chunked in 1.0": CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0") + b"0\r\n\r\n",
    "a folded field": HEAD + b"X: a\r\n b\r\nContent-Length: 5\r\n\r\nhello",
    "a folded length": HEAD + b"Content-Length:\r\n 5\r\n\r\nhello",
    "line feeds alone": post().replace(b"\r\n", b"\n"),
    "a line feed alone": HEAD + b"X: a\nContent-Length: 5\r\n\r\nhello",
    "a carriage return alone": HEAD + b"X: a\rContent-Length: 5\r\n\r\nhello",
    "an end with line feed": HEAD + b"Content-Length: 5\r\n\nhello",
    "a blank before the colon": HEAD + b"Content-Length : 5\r\n\r\nhello",
    "chunked before a blank": HEAD + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a null in a value": HEAD + b"X: a\0b\r\nContent-Length: 5\r\n\r\nhello",
    "a null in a name": HEAD + b"X\0: a\r\nContent-Length: 5\r\n\r\nhello",
    "a null in the target": post(head=HEAD.replace(b"$/q", b"$/q\0")),
    "no name": HEAD + b": a\r\nContent-Length: 5\r\n\r\nhello",
    "no colon": HEAD + b"X\r\nContent-Length: 5\r\n\r\nhello",
    "no host": post(head=HEAD.replace(b"Host: alpha\r\n", b"")),
    "two hosts": post(head=HEAD + b"Host: beta\r\n"),
    "a host that is none": post(head=HEAD.replace(b"alpha", b"al pha")),
    "a host with a path": post(head=HEAD.replace(b"alpha", b"alpha/msmq")),
    "a tab in the line": post(head=HEAD.replace(b"POST ", b"POST\t")),
    "a chunk without end": CHUNKED + b"5\r\nhelloXX0\r\n\r\n",
    "a chunk with line feed": CHUNKED + b"5\nhello\r\n0\r\n\r\n",
    "a chunk of hexadecimal": CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n",
    "a negative chunk": CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n",
    "a chunk extension with line feed": CHUNKED + b"5;a\nb\r\nhello\r\n0\r\n\r\n",
    "a length in the trailer": CHUNKED + b"5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n",
    "too many fields": HEAD + b"X: y\r\n" * FIELD_COUNT_MAX + b"Content-Length: 5\r\n\r\nhello",
}
OTHER = {
    "another path": (404, post(head=HEAD.replace(b"/msmq/", b"/other/"))),
    "the root": (404, post(head=HEAD.replace(b"/msmq/private$/q", b"/msmq"))),
    "another method": (405, post(head=HEAD.replace(b"POST", b"PUT"))),
    "a tunnel": (404, b"CONNECT alpha:80 HTTP/1.1\r\nHost: alpha\r\n\r\n"),
    "of a web page": (403, post(b"hello", b"Origin: http://evil.example")),
    "of a page without origin": (403, post(b"hello", b"Sec-Fetch-Site: same-origin")),
    "compressed": (415, post(b"hello", b"Content-Encoding: gzip")),
    "an unknown coding": (501, HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    "an unknown expectation": (417, post(b"hello", b"Expect: the unexpected")),
    "the preface of HTTP/2": (400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "a long target": (431, post(head=HEAD.replace(b"$/q", b"$/" + b"q" * HEAD_SIZE_MAX))),
    "a long field": (431, post(b"hello", b"X: " + b"y" * HEAD_SIZE_MAX)),
    "too long an entity": (413, post(b"", head=HEAD + b"Content-Length: 1000001\r\n")[:-21] + b"\r\n"),
    "too long chunks": (413, CHUNKED + b"80000\r\n" + bytes(0x80000) + b"\r\n80000\r\n" + bytes(0x80000)),
}


async def refused(server: Service, data: bytes, status: int) -> None:
    """Check that bytes are refused, and what stands behind them is not read as a request."""
    got, answer = await ask(server.port, data + SMUGGLED)
    assert got == status, answer
    assert answer.count(b"HTTP/1.") == 1, answer
    assert b"\r\nContent-Length: 0\r\n" in answer
    assert answer.endswith(b"\r\n\r\n"), "an answer is its status, and nothing that tells more"
    assert b"aiohttp" not in answer
    assert server.entities == []


@pytest.mark.parametrize("name", MALFORMED)
def test_requests_with_more_than_one_reading_are_refused(name: str) -> None:
    """Two readers could take them for different requests."""

    async def run() -> None:
        async with service() as server:
            await refused(server, MALFORMED[name], 400)
            await server.serves()

    asyncio.run(run())


@pytest.mark.parametrize("name", OTHER)
def test_requests_for_no_queue_are_refused(name: str) -> None:
    async def run() -> None:
        async with service(http_request_bytes=1_000_000) as server:
            await refused(server, OTHER[name][1], OTHER[name][0])
            await server.serves()

    asyncio.run(run())


@pytest.mark.parametrize("version", [b"HTTP/0.9", b"HTTP/1.9", b"HTTP/2.0", b"HTTP/3.0"])
def test_other_versions_are_refused(version: bytes) -> None:
    async def run() -> None:
        async with service() as server:
            status, answer = await ask(server.port, post(head=HEAD.replace(b"HTTP/1.1", version)))
            assert status in (400, 505)
            assert answer.startswith(b"HTTP/1."), "an answer is of a version that we speak"
            assert server.entities == []

    asyncio.run(run())


def test_slow_peers_have_a_limited_time() -> None:
    async def run() -> None:
        async with service(http_read_s=0.6, http_idle_s=0.9) as server:
            silent, head, body, chunks, kept = [await Peer.connect(server.port) for _ in range(5)]
            began = time.monotonic()

            async def drip(slow: Peer, data: bytes) -> None:
                for byte in data:
                    if server.port and slow.reader.at_eof():
                        return
                    await slow.send(bytes([byte]))
                    await asyncio.sleep(0.02)  # the pace of who never comes to an end

            await body.send(HEAD + b"Content-Length: 1000\r\n\r\n")
            await chunks.send(CHUNKED)
            await kept.send(post())
            assert status_of(await kept.head()) == 200
            drips = asyncio.gather(
                drip(head, HEAD * 9), drip(body, b"x" * 900), drip(chunks, b"1\r\nx\r\n" * 99)
            )
            assert [status_of(await slow.ended()) for slow in (head, body, chunks)] == [408] * 3
            assert time.monotonic() - began < limit(5)
            assert await silent.ended() == await kept.ended() == b""
            await drips
            await server.serves()
            assert server.entities == [b"hello", b"honest"]
            for connection in (silent, head, body, chunks, kept):
                await connection.close()

    asyncio.run(run())


async def speaking(server: Service, address: str) -> Peer:
    """A connection over which a request was answered."""
    connection = await Peer.connect(server.port, address)
    await connection.send(post())
    assert status_of(await connection.head()) == 200
    return connection


def test_connections_are_limited_in_all_and_from_one_address() -> None:
    async def run() -> None:
        limits = {"http_connections": 6, "http_connections_per_peer": 4, "reserved_percent": 0}
        async with service(**limits) as server:
            mine = [await speaking(server, "127.0.0.2") for _ in range(4)]
            mine.append(await Peer.connect(server.port, "127.0.0.2"))
            assert await mine[4].ended() == b""
            others = [await speaking(server, "127.0.0.3") for _ in range(2)]
            others.append(await Peer.connect(server.port, "127.0.0.3"))
            assert await others[2].ended() == b""
            assert server.http.traffic.refused == 2
            await mine[0].close()
            await happens(lambda: len(server.connections) < 6, "the end of a connection")
            await server.serves()
            for connection in (*mine, *others):
                await connection.close()

    asyncio.run(run())


ENDLESS = {
    "an extension": (CHUNKED + b"5;", b"x"),
    "many extensions": (CHUNKED + b"5", b";x=y"),
    "a size": (CHUNKED, b"0"),
    "a trailer": (CHUNKED + b"5\r\nhello\r\n0\r\nX: ", b"y"),
    "many trailers": (CHUNKED + b"5\r\nhello\r\n0\r\n", b"X: y\r\n"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_line_without_end_is_not_read_on_and_on(name: str) -> None:
    """Such lines are no content of the request, and count for its size."""
    begin, goes_on = ENDLESS[name]

    async def run() -> None:
        most = 100_000
        limits = {"http_request_bytes": most, "http_read_s": 3600.0, "unwanted_bytes": 10 * most}
        async with service(**limits) as server:
            async with peer(server.port, address="127.0.0.2") as endless:
                await endless.send(begin)
                sent, piece = 0, goes_on * (10_000 // len(goes_on))
                while not endless.writer.is_closing() and sent < 100 * most:
                    await endless.send(piece)
                    sent += len(piece)
                    await asyncio.sleep(0)
                assert sent < 100 * most, "it is ended"
                assert status_of(await endless.ended()) in (0, 400, 413)
            await server.serves()
            assert server.entities == [b"honest"]

    asyncio.run(run())


def test_incomplete_requests_are_bounded_over_all_connections() -> None:
    """The largest ones that wait longest are ended; memory stays near the limit."""

    async def run() -> None:
        limit, most = 4_000_000, 1_000_000
        async with service(http_held_bytes=limit, http_request_bytes=most) as server:
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            greedy = [await Peer.connect(server.port) for _ in range(12)]
            for connection in greedy:
                await connection.send(HEAD + b"Content-Length: %d\r\n\r\n" % most + bytes(most - 1))
            await happens(lambda: server.http.traffic.turned_away >= 8, "ended connections")
            peak = tracemalloc.get_traced_memory()[1] - before
            tracemalloc.stop()
            assert peak < 4 * limit
            await server.serves()
            assert server.entities == [b"honest"]
            for connection in greedy:
                await connection.close()

    asyncio.run(run())


def test_requests_that_wait_for_their_answer_are_limited() -> None:
    async def run() -> None:
        async with service(http_requests=3) as server:
            server.engine.status = None
            waiting = [await Peer.connect(server.port) for _ in range(3)]
            for connection in waiting:
                await connection.send(post())
            await happens(lambda: len(server.engine.waiting) == 3, "requests")
            status, answer = await ask(server.port, post())
            assert status == 503
            assert b"\r\nRetry-After: 5\r\n" in answer
            server.driver.call(server.engine.answer, 500)
            assert [status_of(await connection.head()) for connection in waiting] == [500] * 3
            server.engine.status = 200
            await server.serves()
            for connection in waiting:
                await connection.close()

    asyncio.run(run())


def test_requests_behind_one_that_waits_take_no_memory() -> None:
    async def run() -> None:
        async with service(http_request_bytes=100_000) as server:
            server.engine.status = None
            async with peer(server.port) as flood:
                await flood.send(post())
                await happens(lambda: server.engine.waiting, "a request")
                sending = asyncio.ensure_future(flood.send(post(bytes(90_000)) * 200))
                (connection,) = server.connections
                transport = connection._transport
                await happens(lambda: not transport.is_reading(), "no more is read")
                assert connection.held < 1_000_000
                sending.cancel()
                assert server.entities == [b"hello"]
            server.engine.status = 200
            await server.serves()

    asyncio.run(run())


def test_many_small_chunks_cost_little() -> None:
    async def run() -> None:
        async with service(http_request_bytes=300_000) as server:
            began = time.process_time()
            await refused(server, CHUNKED + b"1\r\nx\r\n" * 290_000, 413)
            assert time.process_time() - began < 10
            await server.serves()

    asyncio.run(run())


def test_who_does_not_read_the_answers_is_ended() -> None:
    async def run() -> None:
        async with service(http_idle_s=0.5, http_read_s=0.5) as server, peer(server.port) as deaf:
            await deaf.send(post())
            assert status_of(await deaf.head()) == 200
            (connection,) = server.connections
            deaf.writer.transport.pause_reading()  # type: ignore[attr-defined]
            for end, option in ((connection._transport, socket.SO_SNDBUF), (deaf.writer, socket.SO_RCVBUF)):
                assert end is not None
                end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, option, 4096)
            sending = asyncio.ensure_future(deaf.send(post() * 20_000))
            await happens(lambda: not server.connections, "the end of the connection")
            assert len(server.entities) < 20_000
            sending.cancel()
            await server.serves()

    asyncio.run(run())


def test_a_flood_of_connections_that_say_nothing_lets_others_in() -> None:
    async def run() -> None:
        async with service(http_connections_per_peer=20) as server:
            silent = [await Peer.connect(server.port, "127.0.0.2") for _ in range(60)]
            await server.serves()
            for connection in silent:
                await connection.close()

    asyncio.run(run())
