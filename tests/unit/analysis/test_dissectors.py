"""A protocol joins the dissection by registering: nothing else knows it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence

import pytest

from msmqwire.analysis.dissection import Item, Tracker, dissect, registry, rpc_finder
from msmqwire.analysis.dissection.dissector import DatagramDissector, Dissector, Opening
from msmqwire.analysis.dissection.finder import ScanResult
from msmqwire.analysis.dissection.followed_conversation import FollowedConversation
from msmqwire.analysis.dissection.followed_direction import UNKNOWN, FollowedDirection, Ignored
from msmqwire.analysis.dissection.ncp_exchanges import NcpExchanges
from msmqwire.analysis.dissection.rpc_finder import RpcFinder
from msmqwire.analysis.dissection.stream_finder import StreamFinder, StreamRange
from msmqwire.analysis.lint import Finding
from msmqwire.capture import Datagram, Flow
from msmqwire.capture.events import Endpoint, Event
from msmqwire.errors import MalformedPacket
from msmqwire.rpc import pdu
from msmqwire.schema import Packet, Record, uint
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import rpc_captures as r
from tests.support.capture import srmp_captures as s
from tests.support.paths import EXAMPLES

TOY = Packet("Toy", "none", (uint(16, "Signature", default=0x5954), uint(16, "Number")), "A toy.", size=4)
ONE, TWO = b"TY\1\0", b"TY\2\0"
PORT = 7000


class ToyFinder(StreamFinder[Record]):
    """Finds toys: four bytes, of which the first two are TY."""

    _kind = "toy"

    def _message_size(self) -> int:
        if not b"TY".startswith(self._buffer[:2]):
            raise MalformedPacket("no toy", path="Toy.Signature", offset=0)
        return 4 if len(self._buffer) >= 4 else 0

    def _take(self, size: int) -> StreamRange[Record]:
        return self._range(size, TOY.read(bytes(self._buffer[:size]))[0])

    def _begin_search(self, offset: int) -> None: ...

    def _search(self) -> tuple[int, bool]:
        at = self._buffer.find(b"TY", 1)
        return (at, True) if at > 0 else (len(self._buffer), False)

    def _broken_off(self, size: int) -> MalformedPacket:
        return MalformedPacket(f"{size} of 4 bytes", path="Toy", offset=size)

    def _consumed(self, size: int) -> None: ...


class ToyConversation(FollowedConversation[FollowedDirection[ToyFinder]]):
    def _new_direction(self, flow: Flow, ignored: Ignored) -> FollowedDirection[ToyFinder]:
        size, frame, time_ns = ignored
        return FollowedDirection(flow, ToyFinder(), size, UNKNOWN, frame, time_ns)

    def _results(
        self, direction: FollowedDirection[ToyFinder], ranges: Iterable[StreamRange[Record]]
    ) -> Iterator[ScanResult]:
        for found in ranges:
            yield from direction.report_skipped()
            yield ScanResult(
                found.data, found.size, found.message, found.error, "", found.frames, found.time_ns
            )

    def _lose(self, direction: FollowedDirection[ToyFinder]) -> None: ...

    def _kind(self, packet: Record) -> str:
        return packet.schema.name

    def _lint(self, flow: Flow, result: ScanResult, packet: Record) -> list[Finding]:
        return []

    def _lint_malformed(self, data: bytes, error: MalformedPacket) -> list[Finding]:
        return [Finding("TOY-1", "MUST", "Toy", 0, "no toy")]


class Toys(Dissector):
    def recognises(self, opening: Opening) -> bool | None:
        return opening.data.startswith(b"TY") or (None if opening.data == b"T" else False)

    def follow(self, flow: Flow, first: Flow, ignored: dict[Endpoint, Ignored]) -> ToyConversation:
        return ToyConversation(self._around, ignored)


class ToyDatagrams(DatagramDissector):
    def recognises(self, datagram: Datagram) -> bool:
        return datagram.payload.startswith(b"TY")

    def items(self, datagram: Datagram) -> Iterator[Item]:
        yield self._item(datagram, TOY.read(datagram.payload)[0], "Toy", [])


@pytest.fixture
def toys() -> Iterator[None]:
    """Toys are registered, and no more afterwards."""
    for kind in (Toys, ToyDatagrams):
        registry.register(kind)
    yield
    for kind in (Toys, ToyDatagrams):
        registry.unregister(kind)


def items(frames: Sequence[c.Frame]) -> list[Item]:
    found = list(dissect(io.BytesIO(c.pcap_bytes(frames))))
    for item in found:
        json.dumps(item.to_json())
        repr(item)
    return found


def capture(port: int = PORT) -> list[c.Frame]:
    talk = c.TcpConversation((c.CLIENT, 50_001), (c.SERVER, port), mss=3).handshake()
    talk.send(b"hello").send(ONE, by_client=False).send(TWO).send(b"TX", by_client=False).close()
    datagram = c.Frame(c.START_NS, c.ethernet(c.udp_packet(ONE, c.CLIENT, PORT, c.SERVER, PORT)))
    session = c.TcpConversation(start_ns=talk.time_ns).handshake().send(h.session_ack())
    return [datagram, *talk.frames, *session.frames]


@pytest.mark.parametrize("port", [PORT, 80, 524, 1801, 2103])
def test_a_protocol_joins_by_one_registration(toys: None, port: int) -> None:
    found = items(capture(port))
    kinds = ["Toy", "Toy", "Toy", "Malformed", "SessionAck"]
    if port in (524, 1801):  # what begins there is NCP or MSMQ
        assert [item.kind for item in found if item.kind == "Toy"] == ["Toy"]
        return
    assert [item.kind for item in found if item.kind != "Skipped"] == kinds
    assert [(item.src, item.size) for item in found if item.kind == "Skipped"] == [(c.CLIENT, 5)]
    toys_ = [item for item in found if item.kind == "Toy"]
    assert [item.to_json()["fields"]["Number"] for item in toys_] == [1, 1, 2]
    assert [item.src for item in toys_] == [c.CLIENT, c.SERVER, c.CLIENT]
    (malformed,) = (item for item in found if item.kind == "Malformed")
    assert (malformed.error.why, malformed.findings[0].id) == ("no toy", "TOY-1")


def test_without_it_nobody_knows_the_protocol() -> None:
    assert [item.kind for item in items(capture())] == ["SessionAck"]


def test_what_was_pending_of_a_direction_is_reported_as_its_own(toys: None) -> None:
    """Each side has sent what may begin a protocol when that of the client is recognised."""
    talk = c.TcpConversation((c.CLIENT, 50_001), (c.SERVER, PORT)).handshake()
    talk.send(b"T", by_client=False).send(b"T").send(TWO[1:]).send(b"YX1", by_client=False).close()
    found = items(talk.frames)
    assert [(item.src, item.kind) for item in found] == [(c.CLIENT, "Toy"), (c.SERVER, "Toy")]


def test_the_order_is_fixed() -> None:
    names = [kind.__name__ for kind in (*registry.STREAMS, *registry.DATAGRAMS)]
    assert names == [
        "SrmpOverHttp", "Rpc", "NcpOverTcp", "MsmqSessions",
        "PgmItems", "NcpDatagrams", "PingDatagrams",
    ]  # fmt: skip


# -- what is held, and read once ---------------------------------------------------------------------------

CAPTURES = {
    "NCP": (EXAMPLES / "netware.pcap").read_bytes(),
    "RPC": (EXAMPLES / "remote_read.pcap").read_bytes(),
    **{name: c.pcap_bytes(frames) for name, frames in s.samples().items()},
}


@pytest.mark.parametrize("name", CAPTURES)
def test_what_is_held_is_right_after_each_event(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    items_of = Tracker.items_of

    def checked(tracker: Tracker, event: Event) -> Iterator[Item]:
        yield from items_of(tracker, event)
        followed = [connection.followed for connection in tracker.connections.values()]
        for conversation in followed:
            if isinstance(conversation, FollowedConversation):
                assert conversation.held == conversation._count_held()
        assert tracker.held == sum(conversation.held for conversation in followed if conversation)

    monkeypatch.setattr(Tracker, "items_of", checked)
    assert list(dissect(io.BytesIO(CAPTURES[name]), lint=False))


def test_what_is_held_is_worked_out_once_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    held, items_of = list[object](), Tracker.items_of
    events = list[Event]()
    monkeypatch.setattr(NcpExchanges, "held", property(lambda exchanges: held.append(exchanges) or 0))
    monkeypatch.setattr(
        Tracker, "items_of", lambda self, event: events.append(event) or items_of(self, event)
    )
    assert list(dissect(io.BytesIO(CAPTURES["NCP"]), lint=False))
    assert 0 < len(held) <= len(events)


def test_the_header_of_a_pdu_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    heads, parse_header = list[bytes](), pdu.parse_header

    def counting(data: bytes) -> Record:
        heads.append(bytes(data))
        return parse_header(data)

    pdus = [data for by_client, data in r.session().pdus if by_client]
    finder = RpcFinder()
    monkeypatch.setattr(pdu, "parse_header", counting)
    monkeypatch.setattr(rpc_finder, "parse_header", counting)
    found = list(finder.feed(b"".join(pdus), 1, 0))
    assert [part.message for part in found] == [pdu.parse_pdu(data) for data in pdus]
    assert len(heads) == 2 * len(pdus)  # once by the finder, once above
