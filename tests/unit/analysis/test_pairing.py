"""Which answer belongs to which request: one rule, for dissect, columns and fate."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from msmqwire.analysis.dissection import Item, dissect, tracker
from msmqwire.analysis.fate import fates
from msmqwire.analysis.fate.model import EventKind
from msmqwire.capture.tcp import IDLE_NS_MAX
from msmqwire.srmp.message import SrmpMessage
from tests.support import captures as c
from tests.support.capture import srmp_captures as s
from tests.support.capture.both_readers import assert_same, columnar, generic
from tests.support.capture.fate_captures import capture
from tests.support.capture.partial_captures import simulated
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
            if event.what in (EventKind.SENT, EventKind.SENT_AGAIN, EventKind.FORWARDED):
                asked[event.stream] = event.frame
            elif event.what in (EventKind.ACCEPTED, EventKind.NOT_ACCEPTED):
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
def test_a_one_sided_connection_is_marked_however_it_ends(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
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


def serial(count: int, *, midstream: bool = False) -> list[c.Frame]:
    """Requests of a client that waits for each answer; message n is answered by status 200 + n."""
    talk = c.TcpConversation((c.CLIENT, 50_000), (c.SERVER, 80), step_ns=100_000)
    for number in range(1, count + 1):
        if number == 1 and not midstream:
            talk.handshake()
        talk.send(numbered(number)).send(status(200 + number), by_client=False)
    return talk.frames


def late(frames: list[c.Frame], ns: int, *, by_client: bool) -> list[c.Frame]:
    """The frames of a capture in which those of one side have a clock that is late."""
    sides = {True: c.CLIENT, False: c.SERVER}
    moved = [
        replace(frame, time_ns=frame.time_ns + ns)
        if frame.segment is not None and frame.segment.src[0] == sides[by_client]
        else frame
        for frame in frames
    ]
    return sorted(moved, key=lambda frame: frame.time_ns)


def statuses(frames: list[c.Frame]) -> dict[int, int]:
    """By the number of a message the status that it is paired with; both readers pair alike."""
    data = c.pcap_bytes(frames)
    assert_same([data])
    messages: dict[int | None, int] = {}
    found = {}
    for item in dissect(io.BytesIO(data), lint=False):
        if is_message(item):
            messages[item.exchange] = int(item.raw.partition(b"uuid:")[2].partition(b"@")[0])
        elif item.exchange is not None:
            assert isinstance(item.packet, SrmpMessage)
            found[messages[item.exchange]] = item.packet.start.status
    return found


RIGHT = {number: 200 + number for number in range(1, 6)}


@pytest.mark.parametrize("ns", [-2_000_000, -300_000, 0, 300_000, 700_000])
def test_serial_requests_are_never_paired_wrongly_after_a_cut(ns: int) -> None:
    frames = late(serial(5, midstream=True), abs(ns), by_client=ns > 0)
    for cut in range(12):
        assert statuses(frames[cut:]).items() <= RIGHT.items(), cut


@pytest.mark.parametrize("midstream", [False, True])
@pytest.mark.parametrize("ns", [150_000, 500_000, 2_000_000])
def test_a_client_with_a_late_clock_is_never_paired_wrongly(midstream: bool, ns: int) -> None:
    found = statuses(late(serial(5, midstream=midstream), ns, by_client=True))
    assert found.items() <= RIGHT.items()


@pytest.mark.parametrize("midstream", [False, True])
@pytest.mark.parametrize("ns", [150_000, 500_000, 2_000_000])
def test_a_late_server_clock_is_paired_by_acknowledgements(midstream: bool, ns: int) -> None:
    assert statuses(late(serial(5, midstream=midstream), ns, by_client=False)) == RIGHT


def pipelined(*burst_sizes: int) -> list[c.Frame]:
    """Requests that are sent in bursts, each answered as a whole."""
    talk, number = c.TcpConversation((c.CLIENT, 50_000), (c.SERVER, 80), step_ns=100_000).handshake(), 0
    for size in burst_sizes:
        numbers = range(number + 1, number + size + 1)
        for one in numbers:
            talk.send(numbered(one))
        for one in numbers:
            talk.send(status(200 + one), by_client=False)
        number += size
    return talk.frames


def test_pairing_resumes_when_messages_alternate_again() -> None:
    frames = pipelined(3, 1, 1, 1, 1)
    assert statuses(frames) == {number: 200 + number for number in range(1, 8)}
    assert statuses(frames[5:]) == {number: 200 + number for number in range(5, 8)}  # the first is cut off
    assert statuses(pipelined(1, 3, 1, 1, 1)[5:]).items() <= {n: 200 + n for n in range(1, 8)}.items()


@pytest.mark.parametrize("by_client", [True, False])
def test_bursts_with_a_late_clock_are_not_paired_wrongly(by_client: bool) -> None:
    right = {number: 200 + number for number in range(1, 9)}
    for ns in (250_000, 500_000, 1_100_000, 3_000_000):
        assert statuses(late(pipelined(3, 2, 1, 1, 1), ns, by_client=by_client)).items() <= right.items()
