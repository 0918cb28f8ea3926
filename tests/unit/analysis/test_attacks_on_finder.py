"""False headers cost no more than a bounded number of parses for each byte, shown by counting bytes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pytest

import msmqwire
from msmqwire.analysis import dissection
from msmqwire.analysis.dissection import finder as finder_module
from msmqwire.errors import MalformedPacket
from msmqwire.packets import parse, well_formed
from tests.support import handmade as h
from tests.support.capture import attacks
from tests.support.capture.finders import PacketFinder

PARSES_MAX = 24
"""How often a byte may be handed to the parser, on average."""
SIZE = 4_096
CONNECTIONS = 8


class Parsed:
    """Counts the bytes that the finder hands to the parser."""

    def __init__(self) -> None:
        self.bytes = 0

    def parse(self, data: bytes) -> object:
        self.bytes += len(data)
        return parse(data)

    def well_formed(self, data: bytes, start: int, end: int, *, strict: bool = False) -> bool:
        self.bytes += end - start
        return well_formed(data, start, end, strict=strict)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Parsed:
    counter = Parsed()
    monkeypatch.setattr(finder_module, "parse", counter.parse)
    monkeypatch.setattr(finder_module, "well_formed", counter.well_formed)
    return counter


def find(data: bytes, *, midstream: bool, gaps: bool) -> int:
    """Feed a stream to a finder in segments; return how many bytes its results are."""
    packet_finder, size = PacketFinder(midstream=midstream), 0
    for number, at in enumerate(range(0, len(data), 1460), 1):
        size += sum(result.size for result in packet_finder.feed(data[at : at + 1460], number, number))
        if gaps and number % 5 == 0:
            size += sum(r.size for r in packet_finder.gap(10, "cut", number, number) if r.reason[:3] != "not")
    return size + sum(result.size for result in packet_finder.end())


@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize("midstream", [False, True], ids=["in sync", "midstream"])
@pytest.mark.parametrize("name", attacks.STREAMS)
def test_no_byte_is_parsed_more_than_a_few_times(name, midstream, gaps, parsed):
    for size in (SIZE, 8 * SIZE):
        parsed.bytes = 0
        data = attacks.STREAMS[name](size)
        find(data, midstream=midstream, gaps=gaps)
        assert 0 < parsed.bytes <= PARSES_MAX * size


@pytest.mark.parametrize("read", [dissection.dissect, msmqwire.read_capture], ids=["dissect", "columns"])
@pytest.mark.parametrize("name", attacks.STREAMS)
def test_nor_through_a_capture(name, read: Callable[[io.BytesIO], object], parsed):
    """Several connections: nothing is granted to each that is out of proportion to its bytes."""
    capture = attacks.pcap(
        frame
        for client in range(CONNECTIONS)
        for frame in attacks.one_stream(attacks.STREAMS[name](SIZE), client=client)
    )
    rows = read(io.BytesIO(capture))
    assert sum(1 for _ in rows) if isinstance(rows, Iterator) else len(rows)
    assert parsed.bytes <= PARSES_MAX * CONNECTIONS * SIZE  # none at all where the compiled scan does it


def test_a_message_is_well_formed_only_if_it_can_be_parsed():
    """An acknowledgement with a body of another size is none."""
    for message in (h.final_ack(), h.final_ack(body=bytes(100)), h.order_ack(), h.order_ack(body=bytes(9))):
        try:
            parse(message)
        except MalformedPacket:
            assert not well_formed(message, 0, len(message))
        else:
            assert well_formed(message, 0, len(message))


@pytest.mark.parametrize("midstream", [False, True])
def test_small_packets_are_found_among_large_false_claims(midstream):
    """All but those in the claim that the end of the stream cuts off."""
    claim, ack = h.base_header(0x8000) + bytes(44), h.session_ack()
    packet_finder = PacketFinder(midstream=midstream)
    results = [
        result for number in range(2000) for result in packet_finder.feed(claim + ack, number + 1, number)
    ]
    results += packet_finder.end()
    found = sum(result.packet is not None for result in results)
    assert found >= 2000 - 0x8000 // len(claim + ack)


def test_a_packet_claimed_too_often_is_skipped_with_a_reason():
    """Four malformed packets of its size cover it, each made shorter by the good packet that follows."""
    claim = h.base_header(0x1_0000) + bytes(44)
    good = h.user_message(properties=h.properties_header(body=bytes(0xF000)))
    stream = (claim + h.session_ack()) * 6 + good + h.session_ack() + bytes(0x1_0000)
    packet_finder = PacketFinder()
    results = packet_finder.feed(stream, 1, 1) + packet_finder.end()
    assert sum(result.size for result in results) == len(stream)
    skipped = [result.reason for result in results if result.reason.startswith("not checked")]
    assert (
        skipped
        == ["not checked: malformed packets were found whose sizes cover this one"] * len(skipped)
        != []
    )
    assert [r.packet.schema.name for r in results if r.packet][-1] == "SessionAck"


def test_skipped_bytes_in_many_frames_count_as_memory():
    packet_finder = PacketFinder(midstream=True)
    for number in range(1, 5_000):
        assert packet_finder.feed(b"x", number, number) == []
    assert packet_finder.held > 5_000 * 100
    skipped = packet_finder.discard()
    assert sum(result.size for result in skipped) == 4_999
    assert len(skipped[0].frames) > 4_900
    assert packet_finder.held == 0
