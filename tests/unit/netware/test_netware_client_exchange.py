"""The client's end of NCP over TCP without I/O: what it sends, and which replies it takes."""

from __future__ import annotations

import random
import struct

import pytest

from msmqwire.errors import InvalidValue, MalformedPacket, MsmqError, Unreachable
from msmqwire.ncp.packets import CALLS_BY_NAME
from msmqwire.netware.client.exchange import NcpExchange

QUEUE = 0x015D0300
LIST = CALLS_BY_NAME["GetQueueJobList"]
STATUS = CALLS_BY_NAME["ReadQueueCurrentStatus"]
CONNECTION = 0x0102


def unit(packet: bytes) -> bytes:
    return struct.pack(">4sI", b"tNcP", 8 + len(packet)) + packet


def reply(
    sequence: int,
    data: bytes = b"",
    *,
    kind: int = 0x3333,
    connection: int = CONNECTION,
    code: int = 0,
    status: int = 0,
) -> bytes:
    low, high = connection & 0xFF, connection >> 8
    return unit(struct.pack(">HBBBBBB", kind, sequence, low, 1, high, code, status) + data)


def attached() -> NcpExchange:
    exchange = NcpExchange()
    exchange.attach()
    assert exchange.received(reply(0)) is not None
    return exchange


def asked() -> NcpExchange:
    """One that waits for the numbers of the jobs of a queue; the reply has sequence number 1."""
    exchange = attached()
    exchange.request(LIST, {"QueueID": QUEUE, "StartPosition": 1})
    return exchange


NUMBERS = struct.pack("<IIII", 2, 2, 7, 0x0300)


def test_the_bytes_of_requests() -> None:
    exchange = NcpExchange(0x4000)
    assert exchange.attach() == bytes.fromhex("446d6454 00000017 00000001 00004000 1111 00 ff 01 ff 00")
    assert exchange.connection is None
    exchange.received(reply(0))
    assert exchange.connection == CONNECTION
    request = exchange.request(LIST, {"QueueID": QUEUE, "StartPosition": 2})
    assert request == bytes.fromhex(
        "446d6454 00000022 00000001 00004000 2222 01 02 01 01 17 0009 81 015d0300 02000000"
    )
    exchange.received(reply(1, NUMBERS))
    assert exchange.destroy() == bytes.fromhex("446d6454 00000017 00000001 00004000 5555 02 02 01 01 00")


def test_sequence_numbers_wrap() -> None:
    exchange = attached()
    sent = []
    for number in range(1, 260):
        sent.append(exchange.request(LIST, {"QueueID": QUEUE, "StartPosition": 1})[18])
        assert exchange.received(reply(number & 0xFF, NUMBERS)) is not None
    assert sent == [number & 0xFF for number in range(1, 260)]


def test_a_request_that_can_not_be_made_takes_no_sequence_number() -> None:
    exchange = attached()
    with pytest.raises(InvalidValue, match="QueueID"):
        exchange.request(LIST, {"QueueID": -1, "StartPosition": 1})
    assert exchange.request(STATUS, {"QueueID": QUEUE})[18] == 1


def test_a_server_that_is_busy_is_waited_for() -> None:
    exchange = asked()
    assert exchange.received(reply(1, kind=0x9999) * 3) is None
    got = exchange.received(reply(1, kind=0x9999) + reply(1, NUMBERS))
    assert got is not None
    assert got.data is not None
    assert [item.JobNumber for item in got.data.JobNumbers] == [7, 0x0300]


@pytest.mark.parametrize("code", [0xD3, 0xFB, 0x01])
def test_a_completion_code_comes_with_any_data(code: int) -> None:
    got = asked().received(reply(1, b"anything", code=code))
    assert got is not None
    assert (got.header.CompletionCode, got.data) == (code, None)


def test_bytes_behind_the_data_are_no_error() -> None:
    """Some servers add two zero bytes to a reply without data."""
    exchange = attached()
    exchange.request(CALLS_BY_NAME["AbortServicingQueueJob"], {"QueueID": QUEUE, "JobNumber": 7})
    assert exchange.received(reply(1, b"\0\0")) is not None


def test_a_signed_reply_is_read_without_its_signature() -> None:
    packet = reply(1, NUMBERS)[8:]
    signed = struct.pack(">4sI", b"tNcP", 0x80000000 | 16 + len(packet)) + b"SIGNATUR" + packet
    got = asked().received(signed)
    assert got is not None
    assert got.data is not None
    assert got.data.TotalJobs == 2


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        pytest.param(reply(2, NUMBERS), "NcpReplyHeader.SequenceNumber", id="sequence"),
        pytest.param(reply(0, kind=0x9999), "NcpReplyHeader.SequenceNumber", id="busy with another"),
        pytest.param(
            reply(1, NUMBERS, connection=0x0202), "NcpReplyHeader.ConnectionNumberLow", id="connection"
        ),
        pytest.param(reply(1, NUMBERS, kind=0x2222), "NcpReplyHeader.ReplyType", id="a request"),
        pytest.param(reply(1, NUMBERS) * 2, "NcpReplyHeader.ReplyType", id="two replies"),
        pytest.param(reply(1, NUMBERS[:-1]), "NcpJobList.JobCount", id="data cut"),
        pytest.param(
            reply(1, struct.pack("<II", 0xFFFFFFFF, 0xFFFFFFFF)), "NcpJobList.JobCount", id="giant count"
        ),
        pytest.param(b"DmdT", "NcpTcpReply.Signature", id="signature"),
        pytest.param(struct.pack(">4sI", b"tNcP", 9), "NcpTcpReply.Length", id="unit too short"),
        pytest.param(struct.pack(">4sI", b"tNcP", 0x7FFFFFFF), "NcpTcpReply.Length", id="unit too long"),
        pytest.param(unit(b"\x33\x33"), "NcpReplyHeader", id="header cut"),
    ],
)
def test_what_is_not_the_reply_is_malformed(wrong: bytes, path: str) -> None:
    with pytest.raises(MalformedPacket) as caught:
        asked().received(wrong)
    assert caught.value.path.startswith(path), caught.value


@pytest.mark.parametrize("number", [0, 0xFFFF])
def test_no_connection_has_these_numbers(number: int) -> None:
    exchange = NcpExchange()
    exchange.attach()
    with pytest.raises(MalformedPacket, match="not a connection"):
        exchange.received(reply(0, connection=number))


def test_a_reply_that_nobody_asked_for() -> None:
    with pytest.raises(MalformedPacket, match="no request"):
        attached().received(reply(1, NUMBERS))


def test_a_connection_that_the_server_has_forgotten() -> None:
    with pytest.raises(Unreachable):
        asked().received(reply(1, connection=0, status=0x01))


def test_a_reply_in_pieces() -> None:
    whole = reply(1, NUMBERS)
    for cut in range(len(whole)):
        exchange = asked()
        assert exchange.received(whole[:cut]) is None
        assert exchange.received(whole[cut:]) is not None


def test_a_reply_over_the_requested_size_is_refused_early() -> None:
    exchange = NcpExchange(100)
    exchange.attach()
    exchange.received(reply(0))
    exchange.request(LIST, {"QueueID": QUEUE, "StartPosition": 1})
    with pytest.raises(MalformedPacket) as caught:
        exchange.received(struct.pack(">4sI", b"tNcP", 101))
    assert caught.value.path == "NcpTcpReply.Length"


def test_spoilt_replies_raise_our_errors_only() -> None:
    chance = random.Random(15)
    taken = refused = 0
    for _ in range(500):
        data = bytearray(reply(1, NUMBERS))
        for _ in range(chance.randint(1, 3)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        exchange = asked()
        try:
            got = exchange.received(
                bytes(data[: chance.randint(0, len(data))] if chance.random() < 0.2 else data)
            )
        except MsmqError:
            refused += 1
        else:
            taken += got is not None
    assert refused > 50
    assert taken > 50
