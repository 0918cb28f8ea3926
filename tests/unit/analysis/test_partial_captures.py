"""Captures of which a part is missing: what is unknown is not judged."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from msmqwire.analysis.dissection import dissect
from msmqwire.analysis.fate import State, fates
from msmqwire.analysis.lint import SessionLint
from msmqwire.tables import read_capture
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import srmp_captures as s
from tests.support.capture.fate_captures import Link, capture, fate_in, fates_in, message, session_ack
from tests.support.capture.partial_captures import findings_of, one_direction, records_of, simulated, written
from tests.support.paths import ROOT

CAPTURES = sorted([*ROOT.glob("examples/*.pcap*"), *ROOT.glob("tests/vectors/cases/*/*.pcap*")])
ONE_SIDED = "nothing that the other side sent was captured, so an acknowledgement may have been missed"


def whole_captures() -> Iterator[object]:
    for path in CAPTURES:
        yield pytest.param(path.read_bytes, id=path.name)
    for seed in range(4):
        yield pytest.param(lambda seed=seed: simulated(seed), id=f"simulated {seed}")


@pytest.mark.parametrize("of_first", [True, False])
@pytest.mark.parametrize("whole", list(whole_captures()))
def test_one_direction_has_no_findings_that_both_have_not(whole, of_first: bool) -> None:
    data = whole()
    part = one_direction(data, of_first=of_first)
    assert findings_of(part) <= findings_of(data)
    of_whole = list(fates([io.BytesIO(data)]))
    stuck = {fate.identity for fate in of_whole if fate.stuck}
    lacking = {fate.identity for fate in of_whole if fate.missing}
    for fate in fates([io.BytesIO(part)]):
        assert not fate.stuck or fate.identity in stuck, fate.explanation
        assert not fate.missing or fate.identity in lacking, fate.explanation


@pytest.mark.parametrize("seed", [0, 2, 5, 6, 7, 10])
def test_frames_that_are_missing_are_no_fault_of_peers(seed: int) -> None:
    data, rng = simulated(seed), random.Random(seed)
    records = records_of(data)
    left = [record for record in records if rng.random() > 0.03]
    assert findings_of(written(left)) <= findings_of(data)
    third = len(records) // 3
    for part in (records[third:], records[: 2 * third]):
        assert findings_of(written(part)) <= findings_of(data)


def test_messages_of_one_direction_are_only_known_as_sent() -> None:
    link = Link().send(message(1)).send(message(2, recoverable=True, acks=1))
    link.answer(session_ack(ack=2, recoverable_ack=1, recoverable_flags=1))
    part = one_direction(capture(link).getvalue(), of_first=True)
    for fate in fates([io.BytesIO(part)]):
        assert (fate.state, fate.stuck, fate.missing) == (State.SENT, False, "")
        assert fate.explanation == f"sent to 10.0.0.2; {ONE_SIDED}"


def test_a_silent_peer_is_no_gap_in_the_capture() -> None:
    fate = fate_in(Link().send(message(1)))
    assert (fate.state, fate.stuck, fate.missing) == (State.SENT, True, "session acknowledgement")
    talk = s.http().send(s.published("4.3-1"))
    assert [fate.missing for fate in fates_in(talk)] == ["response"]
    part = one_direction(capture(talk).getvalue(), of_first=True)
    (fate,) = fates([io.BytesIO(part)])
    assert (fate.state, fate.stuck, fate.missing) == (State.SENT, False, "")
    assert "nothing that the other side sent was captured" in fate.explanation


def test_more_messages_than_a_window_lets_were_acknowledged() -> None:
    link = Link(window=2).send(message(1))
    link.answer(session_ack(ack=1, window=2))
    for number in range(2, 7):
        link.send(message(number))
    late = fates_in(link)[-1]
    assert (late.stuck, late.missing) == (False, "")
    assert "more were sent than the window of 2 lets" in late.explanation


def test_a_missing_response_is_not_taken_for_none() -> None:
    """A response that can't be read, or that a hole may hide, is not missing at its sender."""
    sent, ok = s.published("4.3-1"), s.published("4.3-2")
    talk = s.http().send(sent).send(ok.replace(b"HTTP/1.1 200", b"HTTP/1.1 2x0"), by_client=False).close()
    (fate,) = fates_in(talk)
    assert (fate.stuck, fate.missing) == (False, "")


def test_acks_of_uncaptured_messages_are_not_judged() -> None:
    """The frame of one message is missing; the receiver's next packet acknowledges it."""
    link = Link().send(message(1))
    lost = len(link.frames)
    link.send(message(2), acknowledged=False)
    del link.frames[lost:]
    link.answer(session_ack(ack=2))
    assert not [
        f for item in dissect([capture(link)]) for f in item.findings if f.id.startswith("MQMQ-2.2.20.4")
    ]
    # The same acknowledgement of a message that nobody has sent is.
    link = Link().send(message(1)).answer(session_ack(ack=2))
    found = [f.id for item in dissect([capture(link)]) for f in item.findings]
    assert "MQMQ-2.2.20.4-06" in found


def test_the_opening_is_judged_where_both_sides_are_captured() -> None:
    talk = c.TcpConversation().handshake().send(h.connection_parameters())
    found = [f.id for item in dissect([capture(talk)]) for f in item.findings]
    assert found == ["MQQB-3.1.5.4-01"]
    lint = SessionLint()
    from tests.support.capture.lint_packets import make

    assert lint.packet("s2c", make("establish"), is_behind=True) == []
    assert lint.packet("s2c", make("parameters"), is_behind=True) == []
    assert lint.packet("s2c", make("ack"), is_behind=True) == []


OPENING = [h.establish_connection(), h.connection_parameters()]
"""What an initiator sends, without the answers that it waits for in between."""


def of_columns(frames: list[c.Frame]) -> list[str | None]:
    table = read_capture(io.BytesIO(c.pcap_bytes(frames)), columns=["finding_ids"])
    return table.column("finding_ids").to_pylist()


@pytest.mark.parametrize("answered", [False, True])
def test_nothing_is_claimed_of_one_direction_that_begins_late(answered: bool) -> None:
    """Its packets come when the capture, or the connection, ends: nothing else says where it begins."""
    talk = c.TcpConversation().handshake().send(b"".join(OPENING))
    sent = next(frame for frame in talk.frames if frame.segment.payload)
    listener = replace(talk.frames[1].segment, flags=c.SYN)  # tells where it begins itself, and no more
    answer = [c.Frame(c.START_NS, c.ethernet(listener.packet()))] if answered else []
    reused = c.TcpConversation(start_ns=c.START_NS + 10**9, client_isn=7).handshake().frames[:1]
    expected = ["MQQB-3.1.5.4-01"] if answered else []
    for after in ([], reused):
        frames = [*answer, sent, *after]
        items = list(dissect(io.BytesIO(c.pcap_bytes(frames))))
        assert [f.id for item in items for f in item.findings] == expected
        assert of_columns(frames) == [None, *(expected or [None])]
