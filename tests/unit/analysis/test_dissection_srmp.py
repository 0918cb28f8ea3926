"""SRMP over HTTP in captures: which connections are followed, what is an item, which response is whose."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

import pytest

import msmqwire
from msmqwire.analysis.dissection import Item, dissect, tracker
from msmqwire.analysis.dissection.http_connection import UNANSWERED_MAX
from msmqwire.analysis.dissection.http_finder import HttpFinder
from msmqwire.analysis.dissection.stream_finder import MALFORMED_MAX
from msmqwire.analysis.lint import lint_srmp
from msmqwire.srmp import message_json
from msmqwire.srmp.http_framer import parse_http
from msmqwire.srmp.message import SrmpMessage, parse_message
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import srmp_captures as s
from tests.support.paths import VECTORS

FIRST, SECOND = s.published("4.2"), s.published("4.4-1")


def items(frames: Sequence[c.Frame], **options) -> list[Item]:
    return list(dissect(io.BytesIO(c.pcap_bytes(frames)), **options))


def shown(found: list[Item]) -> list[tuple]:
    """Kind and size; with the number of the exchange, if there is one."""
    return [(i.kind, i.size) if i.exchange is None else (i.kind, i.size, i.exchange) for i in found]


@pytest.mark.requirement("SRMP-2.1.1-04", "SRMP-2.1.1-12")
@pytest.mark.parametrize("mss", [1, 7, 1460])
def test_pipelined_requests_and_responses_share_numbers(mss):
    talk = s.http(mss=mss).send(FIRST + SECOND).send(s.RESPONSE * 2, by_client=False).close()
    found = items(talk.frames)
    size = len(s.RESPONSE)
    assert shown(found) == [
        ("SrmpMessage", len(FIRST), 0), ("SrmpMessage", len(SECOND), 1),
        ("SrmpMessage", size, 0), ("SrmpMessage", size, 1),
    ]  # fmt: skip
    assert [item.request_frame for item in found] == [None, None, found[0].frames[-1], found[1].frames[-1]]
    assert [item.raw for item in found] == [FIRST, SECOND, s.RESPONSE, s.RESPONSE]
    assert {(item.transport, item.stream) for item in found} == {("tcp", 0)}


def test_an_item_prints_as_parse_does():
    found = items(s.http().send(SECOND).send(s.RESPONSE, by_client=False).frames)
    for item, data in zip(found, (SECOND, s.RESPONSE), strict=True):
        printed = json.loads(json.dumps(item.to_json()))
        assert printed["fields"] == message_json.to_json(parse_message(data))["fields"]
        assert (printed["packet"], printed["size"], printed["error"]) == ("SrmpMessage", len(data), None)
    assert [item.to_json().get("request_frame") for item in found] == [None, found[0].frames[-1]]
    assert found[0].findings == lint_srmp(parse_message(SECOND))
    assert found[0].findings
    assert not items(s.http().send(SECOND).frames, lint=False)[0].findings


@pytest.mark.requirement("SRMP-2.1.1-11")
@pytest.mark.parametrize("mss", [1, 1460])
def test_chunks_are_put_together(mss):
    data = s.chunked(FIRST, 1, 200)
    (item,) = items(s.http(mss=mss).send(data).frames)
    assert isinstance(item.packet, SrmpMessage)
    assert item.packet.envelope == parse_message(FIRST).envelope
    assert item.raw == data


def test_another_port_is_followed_from_the_first_post_on():
    talk = s.http(8080).send(s.GET).send(s.PAGE, by_client=False)
    talk.send(FIRST).send(s.RESPONSE, by_client=False).close()
    size = len(s.RESPONSE)
    assert shown(items(talk.frames)) == [
        ("Skipped", len(s.GET)), ("SrmpMessage", len(FIRST), 0),
        ("Skipped", len(s.PAGE)), ("SrmpMessage", size, 0),
    ]  # fmt: skip


def test_a_multipart_body_of_srmp_may_go_to_any_path():
    moved = FIRST.replace(b"/msmq/", b"/other/", 1)
    assert shown(items(s.http(8080).send(moved).frames)) == [("SrmpMessage", len(moved), 0)]
    other = moved.replace(b"xmlsoap.org/srmp/", b"xmlsoap.org/abcd/").replace(b"MSMQMessage", b"CreateOrder")
    assert items(s.http(8080).send(other).frames) == []


@pytest.mark.parametrize("port", [80, 8080])
def test_web_traffic_without_srmp_is_not_shown(port):
    talk = s.http(port).send(s.GET * 3).send(s.PAGE * 3, by_client=False)
    talk.send(b"POST /form HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na=b").send(b"\0\xff\n" * 900)
    assert items(talk.close().frames) == []


def test_web_traffic_between_srmp_is_skipped_and_pairs_apart():
    """Its responses are not taken for those of SRMP."""
    talk = s.http().send(FIRST + s.GET + s.GET + SECOND)
    talk.send(s.RESPONSE + s.PAGE * 2 + s.RESPONSE, by_client=False).close()
    found = items(talk.frames)
    assert shown(found) == [
        ("SrmpMessage", len(FIRST), 0), ("Skipped", 2 * len(s.GET)), ("SrmpMessage", len(SECOND), 1),
        ("SrmpMessage", len(s.RESPONSE), 0), ("Skipped", 2 * len(s.PAGE)),
        ("SrmpMessage", len(s.RESPONSE), 1),
    ]  # fmt: skip
    assert found[1].reason == "HTTP that is not SRMP"


def test_an_interim_response_leaves_its_request_unanswered():
    """The final response has the same request."""
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    talk = s.http().send(FIRST).send(interim + s.RESPONSE, by_client=False).close()
    assert shown(items(talk.frames))[1:] == [
        ("SrmpMessage", len(interim), 0), ("SrmpMessage", len(s.RESPONSE), 0)
    ]  # fmt: skip


@pytest.mark.requirement("SRMP-3.1.5.1.2-02")
def test_a_bad_envelope_is_malformed_and_the_next_is_read():
    bad = FIRST.replace(b"<path", b"<pith")
    found = items(s.http().send(FIRST + bad + SECOND).frames)
    assert shown(found) == [
        ("SrmpMessage", len(FIRST), 0), ("Malformed", len(bad), 1), ("SrmpMessage", len(SECOND), 2)
    ]  # fmt: skip
    error = found[1].error
    assert error is not None
    assert error.path == "Envelope"
    assert bad[: error.offset].endswith(b"</path>")
    assert found[1].raw == bad


@pytest.mark.parametrize("mss", [1, 100, 1460])
def test_lost_framing_resumes_at_the_next_start_line(mss):
    bad = FIRST.replace(b"Host:", b"Ho st:")
    talk = s.http(mss=mss).send(FIRST + bad + SECOND).send(s.RESPONSE * 3, by_client=False)
    found = items(talk.frames)
    assert shown(found)[:3] == [
        ("SrmpMessage", len(FIRST), 0), ("Malformed", len(bad), 1), ("SrmpMessage", len(SECOND), 2)
    ]  # fmt: skip
    error = found[1].error
    assert error is not None
    assert (error.path, error.offset) == ("HeaderFields", bad.index(b"Ho st"))
    assert [item.exchange for item in found[3:]] == [0, 1, 2]


def test_a_message_that_can_not_be_framed_is_shown_up_to_a_limit():
    bad = FIRST.replace(b"Content-Length:", b"Content-Length: 7\r\nContent-Length:", 1)
    rest = b"x" * (2 * MALFORMED_MAX)
    talk = s.http().send(bad + rest + b"\r\n" + SECOND).close()
    malformed, skipped, *others = items(talk.frames)
    assert malformed.kind == "Malformed"
    assert MALFORMED_MAX < malformed.size < MALFORMED_MAX + 20_000
    assert skipped.reason == "after a message that can't be framed"
    assert sum(item.size for item in (malformed, skipped, *others)) == len(bad + rest + SECOND) + 2
    assert shown(others[-1:]) == [("SrmpMessage", len(SECOND), 1)]


def test_attacks_are_findings_of_malformed_messages():
    smuggled = FIRST.replace(b"Content-Length:", b"Content-Length: 7\r\nContent-Length:", 1)
    laughs = FIRST.replace(b"<se:Envelope", b"<!DOCTYPE se:Envelope><se:Envelope", 1)
    found = items(s.http().send(smuggled + laughs).frames)
    ids = [{finding.id for finding in item.findings} for item in found]
    assert [item.kind for item in found[:2]] == ["Malformed", "Malformed"]
    assert "ATTACK-HTTP-LENGTH" in ids[0]
    assert "ATTACK-XML-ENTITY" in ids[1]
    (cut,) = items(s.http().send(FIRST[:300]).frames)
    (short,) = items(s.http().send(FIRST[:300]).close().frames)
    assert "ATTACK-TRUNCATED" not in {finding.id for finding in cut.findings}
    assert "ATTACK-TRUNCATED" in {finding.id for finding in short.findings}


def test_content_codings_are_not_decoded():
    coded = FIRST.replace(b"Host:", b"Content-Encoding: gzip\r\nHost:", 1)
    same = FIRST.replace(b"Host:", b"content-encoding: Identity\r\nHost:", 1)
    first, second = items(s.http().send(coded + same).frames)
    assert first.error is not None
    assert (first.error.path, first.error.offset) == (
        "HeaderFields.Content-Encoding",
        coded.index(b"Content-Encoding"),
    )
    assert second.kind == "SrmpMessage"


def test_a_hole_ends_a_message_and_the_next_one_is_found():
    talk = s.http(mss=500).send(FIRST + s.published("4.3-1"), acknowledged=False)
    lost = talk.frames.pop(4)
    assert lost.segment is not None
    talk.send(SECOND).send(s.RESPONSE * 3, by_client=False).close()
    found = items(talk.frames)
    assert shown(found)[0] == ("Malformed", 500, 0)
    assert shown(found)[1] == ("Skipped", 500)
    assert shown(found)[-1] == ("SrmpMessage", len(SECOND), 2)
    sent = [item.size for item in found if item.dst_port == 80]
    assert sum(sent) == len(FIRST + s.published("4.3-1") + SECOND)


def test_a_hole_before_anything_is_recognised_is_not_counted():
    form = b"POST /form HTTP/1.1\r\nHost: x\r\nContent-Length: 947\r\n\r\n".ljust(1000, b"x")
    talk = s.http(mss=500).send(form * 3, acknowledged=False)
    del talk.frames[5]
    found = items(talk.send(FIRST).close().frames)
    assert shown(found) == [("Skipped", 2500), ("SrmpMessage", len(FIRST), 0)]


def test_memory_for_messages_that_are_not_whole_is_bounded(monkeypatch):
    monkeypatch.setattr(tracker, "HELD_MAX", 100_000)
    talks = [s.http(client=(c.CLIENT, 5000 + number), start_ns=c.START_NS + number) for number in range(9)]
    large = FIRST.replace(b"Content-Length: 1273", b"Content-Length: 99999", 1)
    for talk in talks:
        talk.send(FIRST + large + b"x" * 20_000)
    dissection = dissect(io.BytesIO(c.pcap_bytes(c.merged(*(talk.frames for talk in talks)))))
    found = []
    for item in dissection:
        found.append(item)
        assert dissection.tracker.held <= 100_000
    let_go = [item for item in found if item.reason.startswith("let go")]
    assert let_go
    assert sum(item.size for item in found) == sum(len(talk.sent[True]) for talk in talks)


def test_of_a_message_that_was_let_go_nothing_is_in_the_next_one():
    finder = HttpFinder()
    assert not list(finder.feed(FIRST[:300], 1, 1))
    assert [found.size for found in finder.discard()] == [300]
    (found,) = finder.feed(SECOND, 2, 2)
    assert found.message == parse_http(SECOND)


@pytest.mark.parametrize("closing", ["fin", "capture"])
def test_a_message_that_breaks_off_is_malformed(closing):
    talk = s.http().send(FIRST[:700])
    if closing == "fin":
        talk.close()
    (item,) = items(talk.frames)
    assert shown([item]) == [("Malformed", 700, 0)]
    assert item.error is not None
    assert (item.error.path, item.error.offset) == ("Entity", 700)


def test_a_response_without_length_ends_with_the_connection():
    response = b"HTTP/1.1 400 Bad Request\r\n\r\nno"
    found = items(s.http().send(FIRST).send(response, by_client=False).close().frames)
    assert shown(found)[1:] == [("SrmpMessage", len(response), 0)]


def test_a_capture_that_begins_inside_a_connection():
    talk = s.http().send(FIRST).send(SECOND).send(s.RESPONSE * 2, by_client=False)
    found = items(talk.frames[4:])
    assert found[0].reason == "before anything was recognised as MSMQ"
    assert shown(found)[1:] == [
        ("SrmpMessage", len(SECOND), 0),  # how many wait before these, nobody knows
        ("SrmpMessage", len(s.RESPONSE)), ("SrmpMessage", len(s.RESPONSE)),
    ]  # fmt: skip
    assert found[0].size == len(FIRST) - 1460


@pytest.mark.parametrize("port", [80, 8080])
def test_a_request_waiting_before_recognition_is_remembered(port):
    """Its response is not taken for that of the first request of SRMP."""
    talk = s.http(port).send(s.GET).send(FIRST).send(s.PAGE + s.RESPONSE, by_client=False).close()
    assert shown(items(talk.frames)) == [
        ("Skipped", len(s.GET)), ("SrmpMessage", len(FIRST), 0), ("Skipped", len(s.PAGE)),
        ("SrmpMessage", len(s.RESPONSE), 0),
    ]  # fmt: skip


def test_answered_requests_outside_srmp_are_dropped():
    form = b"POST /form HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na=b"
    talk = s.http().send(form).send(s.PAGE, by_client=False)
    before = c.pcap_bytes(talk.frames)
    dissection = dissect(io.BytesIO(before), flush=False)
    assert list(dissection) == []
    (connection,) = dissection.tracker.connections.values()
    assert connection.followed is None
    found = items(talk.send(form + FIRST).send(s.PAGE + s.RESPONSE, by_client=False).frames)
    assert shown(found) == [
        ("Skipped", 2 * len(form)), ("SrmpMessage", len(FIRST), 0), ("Skipped", len(s.PAGE)),
        ("Skipped", len(s.PAGE)), ("SrmpMessage", len(s.RESPONSE), 0),
    ]  # fmt: skip


@pytest.mark.parametrize("port", [80, 8080])
def test_packets_on_a_port_of_http_are_still_found(port):
    talk = s.http(port).send(b"garbage").send(h.session_ack() * 2).close()
    assert shown(items(talk.frames)) == [("Skipped", 7), ("SessionAck", 36), ("SessionAck", 36)]


def test_a_packet_inside_a_message_is_no_reason_to_stop():
    body = h.session_ack() * 5
    head = b"POST /msmq/q HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n\r\n"
    data = head % len(body) + body
    assert shown(items(s.http(8080, mss=50).send(data + FIRST).frames)) == [
        ("Malformed", len(data), 0), ("SrmpMessage", len(FIRST), 1)
    ]  # fmt: skip


def test_too_many_requests_without_response_are_not_paired():
    tiny = b"GET / HTTP/1.1\r\n\r\n"
    talk = s.http().send(FIRST + tiny * (UNANSWERED_MAX + 1)).send(s.RESPONSE, by_client=False)
    (response,) = (item for item in items(talk.frames) if item.src_port == 80)
    assert shown([response]) == [("SrmpMessage", len(s.RESPONSE))]


def test_a_response_before_its_reordered_request_stays_unpaired():
    """The next request does not get it either."""
    talk = s.http(mss=1000).send(FIRST).send(s.RESPONSE, by_client=False)
    talk.send(SECOND).send(s.RESPONSE, by_client=False)
    talk.send(FIRST).send(s.RESPONSE, by_client=False)
    late = talk.frames.pop(8)
    assert late.segment is not None
    talk.frames.insert(13, late)
    found = items(list(c.timed(frame.data for frame in talk.frames)))
    assert [item.exchange for item in found] == [0, 0, None, 1, 2, 2]


BEGINS_INSIDE = VECTORS / "cases" / "02_http_begins_inside"


@pytest.mark.parametrize("name", ["http_mid", "ka500", "slow_resp"])
def test_responses_are_paired_in_a_connection_begun_earlier(name):
    """Each answer is captured in the frame after its request, and shown after it."""
    found = [item for item in dissect(BEGINS_INSIDE / f"{name}.pcap") if isinstance(item.packet, SrmpMessage)]
    assert [item.frames[0] for item in found] == sorted(item.frames[0] for item in found)
    responses = [item for item in found if item.src_port == 80]
    assert len(responses) >= 4
    assert [item.request_frame for item in responses] == [item.frames[0] - 1 for item in responses]
    assert [item.exchange for item in responses] == [*range(len(responses))]


@pytest.mark.parametrize("first", range(4, 18))
def test_a_capture_begun_anywhere_shows_messages_in_order(first):
    talk = s.http()
    for _ in range(4):
        talk.send(FIRST).send(s.RESPONSE, by_client=False)
    found = items(talk.frames[first:])
    messages = [item for item in found if isinstance(item.packet, SrmpMessage)]
    assert [item.frames[-1] for item in messages] == sorted(item.frames[-1] for item in messages)
    asked = None
    for item in messages:
        if item.src_port != 80:
            asked = item.frames[-1]
        elif asked is not None:
            assert item.request_frame == asked
    assert asked is not None


REQUEST = s.published("4.3-3")


@pytest.mark.parametrize("port", [80, 8080])
@pytest.mark.parametrize(
    ("said", "kinds"),
    [
        ([(True, REQUEST + h.session_ack())], ["SrmpMessage", "Malformed"]),
        ([(True, REQUEST[:238] + h.session_ack())], ["Malformed"]),
        ([(False, b"POST "), (True, REQUEST[:238] + h.session_ack())], ["Malformed"]),
        ([(True, b"POST /a HTTP/1.1\r\nContent-Length: 36\r\n\r\n" + h.session_ack())], []),
    ],
)
def test_a_post_with_a_packet_of_msmq_inside_is_http(port, said, kinds):
    """It was recognised as HTTP, left for the packet, and recognised as HTTP, without end."""
    conversation = s.http(port)
    for by_client, data in said:
        conversation.send(data, by_client=by_client)
    honest = c.TcpConversation((c.CLIENT, 40_000), start_ns=c.START_NS + 10**9).handshake()
    honest.send(h.user_message())
    data = c.pcap_bytes([*conversation.close().frames, *honest.close().frames])
    assert [item.kind for item in dissect(io.BytesIO(data))] == [*kinds, "UserMessage"]
    assert msmqwire.read_capture(io.BytesIO(data)).column("kind").to_pylist() == [*kinds, "UserMessage"]
