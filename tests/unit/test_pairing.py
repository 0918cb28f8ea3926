"""Which answer belongs to which request: one rule, for dissect, columns and fate."""

from __future__ import annotations

import io

import pytest

from msmqwire.capture.tcp import IDLE_NS_MAX
from msmqwire.dissection import Item, dissect, tracker
from msmqwire.fate import fates
from msmqwire.fate.model import What
from msmqwire.srmp.message import SrmpMessage
from tests.support import captures as c
from tests.support import srmp_captures as s
from tests.support.both_readers import columnar, generic
from tests.support.fate_captures import capture
from tests.support.partial_captures import simulated
from tests.support.paths import ROOT

CAPTURES = sorted([*ROOT.glob("examples/*.pcap*"), *ROOT.glob("tests/vectors/cases/*/*.pcap*")])
SENT, OK = s.published("4.3-1"), s.published("4.3-2")
ORIGINAL = b"uuid:1@00000000-0000-0000-0000-000000000008"


def numbered(number: int) -> bytes:
    return SENT.replace(ORIGINAL, ORIGINAL.replace(b":1@", b":%d@" % number))


def status(number: int) -> bytes:
    return OK.replace(b"200 OK", b"%d Other" % number)


def talks() -> dict[str, list[c.TcpConversation]]:
    """Connections in which the order of answers is all that tells what they belong to."""
    get, page = b"GET /index.html HTTP/1.1\r\nHost: b\r\n\r\n", s.PAGE
    several = s.http().send(numbered(1) + numbered(2) + numbered(3))
    interim = s.http().send(numbered(1)).send(status(100) + status(500), by_client=False)
    between = s.http().send(numbered(1) + get + numbered(2))
    unreadable = s.http().send(numbered(1)).send(OK.replace(b"/1.1 200", b"/1.1 2x0"), by_client=False)
    wrong = numbered(1).replace(b"Content-Length:", b"Content-Length: x")
    malformed = s.http().send(wrong).send(status(400), by_client=False)
    return {
        "pipelined": [several.send(status(400) + status(202) + status(500), by_client=False)],
        "interim": [interim.send(numbered(2)).send(status(202), by_client=False)],
        "between others": [between.send(status(202) + page + status(400), by_client=False)],
        "unreadable answer": [unreadable.send(numbered(2)).send(status(202), by_client=False)],
        "unreadable request": [malformed.send(numbered(2)).send(status(202), by_client=False)],
    }


def pairs_of_dissect(data: bytes) -> set[tuple[int, int, int]]:
    """The last frames of requests of SRMP with a message, and the frame and status of the answers."""
    items = list(dissect(io.BytesIO(data)))
    asks = {item.frames[-1] for item in items if is_message(item)}
    return {
        (item.request_frame, item.frames[-1], item.packet.start.status)
        for item in items
        if isinstance(item.packet, SrmpMessage) and item.request_frame in asks
        if item.packet.start.status >= 200
    }


def is_message(item: Item) -> bool:
    packet = item.packet
    return isinstance(packet, SrmpMessage) and packet.envelope is not None and hasattr(packet.start, "method")


def pairs_of_fate(data: bytes) -> set[tuple[int, int, int]]:
    found = set()
    for fate in fates([io.BytesIO(data)], acknowledgements=True):
        asked: dict[int | None, int | None] = {}
        for event in fate.events:
            if event.what in (What.SENT, What.SENT_AGAIN, What.FORWARDED):
                asked[event.stream] = event.frame
            elif event.what in (What.ACCEPTED, What.NOT_ACCEPTED):
                found.add((asked[event.stream], event.frame, int(event.detail.rpartition(" ")[2])))
    return found


@pytest.mark.parametrize("name", talks())
def test_dissect_and_fate_pair_alike(name: str) -> None:
    data = capture(*talks()[name]).getvalue()
    pairs = pairs_of_dissect(data)
    assert pairs
    assert pairs_of_fate(data) == pairs
    both = generic([data])[1], columnar([data])[1]
    assert both[0]["exchange"].to_pylist() == both[1]["exchange"].to_pylist()
    assert set(both[0]["one_sided"].to_pylist()) <= {None, False}


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_of_captures(path) -> None:
    data = path.read_bytes()
    assert pairs_of_fate(data) == pairs_of_dissect(data)


@pytest.mark.parametrize("seed", [5, 8, 10])
def test_of_simulated_runs(seed: int) -> None:
    data = simulated(seed)
    pairs = pairs_of_dissect(data)
    assert len(pairs) > 3
    assert pairs_of_fate(data) == pairs


def test_what_they_are() -> None:
    data = capture(*talks()["between others"]).getvalue()
    states = {fate.message_id: (fate.state, fate.reason) for fate in fates([io.BytesIO(data)])}
    assert states == {1: ("received", ""), 2: ("refused", "HTTP status 400")}
    data = capture(*talks()["unreadable answer"]).getvalue()
    first, second = fates([io.BytesIO(data)])
    assert (first.state, first.missing, second.state) == ("sent", "", "received")
    assert first.explanation.startswith("sent to 10.0.0.2; its response can't be read")


def test_frames_of_requests_are_numbered_in_their_files() -> None:
    talk = s.http().send(SENT)
    first, middle = capture(talk), len(talk.frames)
    talk.send(OK, by_client=False).send(numbered(2)).send(OK, by_client=False)
    second = io.BytesIO(c.pcap_bytes(talk.frames[middle:], nanoseconds=True))
    frames = [(item.frames, item.request_frame) for item in dissect([first, second])]
    requests = [frames[0][0][-1], frames[2][0][-1]]
    assert [asked for _, asked in frames] == [None, requests[0], None, requests[1]]
    assert requests[1] < middle


@pytest.mark.parametrize("by", ["idle", "evicted", "reused", "capture"])
def test_a_connection_of_one_side_is_known_as_such_however_it_ends(
    by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its only request is delivered as it ends, when the reassembler has forgotten the connection."""
    talk = c.TcpConversation((c.CLIENT, 50_001), (c.SERVER, 80)).send(SENT, acknowledged=False)
    late = talk.time_ns + 1000
    if by == "idle":
        late += 2 * IDLE_NS_MAX
    others = [c.TcpConversation((c.CLIENT, 50_002 + at), (c.SERVER, 80), start_ns=late) for at in range(99)]
    frames = [frame for other in others for frame in other.handshake().frames]
    if by == "evicted":
        monkeypatch.setattr(tracker, "CONNECTIONS_MAX", 16)
    elif by == "reused":
        again = c.TcpConversation((c.CLIENT, 50_001), (c.SERVER, 80), client_isn=9 << 20, start_ns=late)
        frames = again.handshake().frames
    elif by == "capture":
        frames = []
    data = c.pcap_bytes([*talk.frames, *frames])
    (item,) = dissect(io.BytesIO(data))
    assert (item.src_port, item.one_sided) == (50_001, True)
    both = generic([data])[1], columnar([data])[1]
    assert [rows["one_sided"].to_pylist() for rows in both] == [[True], [True]]
