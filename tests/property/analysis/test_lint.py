"""Lint judges anything without raising, and finds nothing in sessions that conform to the specification."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from msmqwire.analysis.lint import (
    SEVERITIES,
    Finding,
    PingLint,
    SessionLint,
    lint,
    lint_malformed,
    lint_packet,
)
from msmqwire.errors import MalformedPacket
from msmqwire.packets import parse
from msmqwire.schema import Record
from tests.support.capture.lint_packets import CLEAN, SOURCE, TARGET, make

BYTES = {name: make(name).to_bytes() for name in CLEAN}
PROTOCOLS: Any = st.sampled_from(["session", "ping", "remote_read"])


def judged(findings: list[Finding], size: int) -> None:
    assert findings == sorted(findings, key=lambda finding: finding.offset)
    for finding in findings:
        assert finding.severity in SEVERITIES
        assert finding.severity == "ATTACK" or not finding.id.startswith("ATTACK")
        assert finding.message
        assert 0 <= finding.offset <= size
        assert list(finding.to_json()) == ["id", "severity", "path", "offset", "message"]


@given(st.binary(max_size=200), PROTOCOLS)
def test_any_bytes(data: bytes, protocol: Any) -> None:
    judged(lint(data, protocol=protocol), len(data))
    error = MalformedPacket("why", path="UserHeader.Flags", offset=0)
    judged(lint_malformed(data, error, protocol), len(data))


@given(st.sampled_from(sorted(BYTES)), st.data(), PROTOCOLS)
def test_broken_packets(name: str, data: st.DataObject, protocol: Any) -> None:
    broken = bytearray(BYTES[name])
    changes = st.tuples(st.integers(0, len(broken) - 1), st.sampled_from([0, 1, 4, 0x10, 0x7F, 0x80, 0xFF]))
    for at, value in data.draw(st.lists(changes, min_size=1, max_size=8)):
        broken[at] = value
    cut = data.draw(st.integers(0, len(broken)) | st.just(len(broken)))
    findings = lint(bytes(broken[:cut]), protocol=protocol)
    judged(findings, cut)
    try:
        parse(bytes(broken[:cut]), protocol=protocol)
    except MalformedPacket:
        assert findings  # a malformed packet always has at least one


@given(st.sampled_from(sorted(BYTES)), st.binary(max_size=64), st.integers(16, 300))
def test_a_session_packet_with_any_tail(name: str, tail: bytes, at: int) -> None:
    data = BYTES[name][:at] + tail
    data = data[:8] + len(data).to_bytes(4, "little") + data[12:]
    judged(lint(data), len(data))


KINDS = sorted(name for name, (kind, _) in CLEAN.items() if kind not in ("Ping", "RemoteReadMessage"))


@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.booleans(), st.integers(0, 3)), max_size=30), st.booleans()
)
def test_any_order_of_packets(steps: list[tuple[str, bool, int]], midstream: bool) -> None:
    session = SessionLint(midstream=midstream)
    for number, (name, direction, gap) in enumerate(steps):
        if not gap:
            session.gap()
        packet = make(name)
        judged(session.packet(direction, packet, None, number * 10**10), len(packet.to_bytes()))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.booleans()), max_size=20))
def test_any_order_of_pings(steps: list[tuple[bool, int, bool]]) -> None:
    pings = PingLint()
    for direction, cookie, refused in steps:
        judged(pings.packet(direction, make("ping", {"Cookie": cookie, "Flags.RF": refused})), 24)


class Side:
    """A side of a session that conforms to the specification."""

    def __init__(self) -> None:
        self.sent = self.recoverable = self.received = self.stored = self.acked = self.number = 0
        self.ordinal = 1

    def header(self, window: int = 64) -> dict[str, int]:
        waiting = self.stored - self.acked
        fields = {
            "AckSequenceNumber": self.received,
            "RecoverableMsgAckSeqNumber": self.acked + 1 if waiting else 0,
            "RecoverableMsgAckFlags": (1 << waiting) - 1,
            "UserMsgSequenceNumber": self.sent,
            "RecoverableMsgSeqNumber": self.recoverable,
            "WindowSize": window,
        }
        self.acked = self.stored
        return fields


def send(sides: dict[bool, Side], initiator: bool, name: str, *, piggyback: bool) -> Record:
    """The next message of this side."""
    side, peer = sides[initiator], sides[not initiator]
    changes: dict[str, Any] = {"UserHeader.MessageID": side.sent + 1}
    changes["UserHeader.SourceQueueManager"] = SOURCE if initiator else TARGET
    recoverable = name in ("transactional", "final", "private")
    if name == "private":
        changes["UserHeader.Flags.DM"] = 1
        changes["UserHeader.QueueManagerAddress"] = TARGET if initiator else SOURCE
    if name == "transactional":
        side.number += 1
        changes["TransactionHeader.TxSequenceID.Ordinal"] = side.ordinal
        changes["TransactionHeader.TxSequenceNumber"] = side.number
        changes["TransactionHeader.PreviousTxSequenceNumber"] = side.number - 1
    if name == "order":
        changes["OrderAckBody.TxSequenceID.Ordinal"] = peer.ordinal
        changes["OrderAckBody.TxSequenceNumber"] = peer.number
        changes["OrderAckBody.TxPreviousSequenceNumber"] = peer.number - 1
    side.sent += 1
    side.recoverable += recoverable
    if piggyback and name not in ("order", "final"):
        changes["SessionHeader"] = side.header()
    peer.received += 1
    peer.stored += recoverable
    return make(name, changes)


STEPS = st.tuples(
    st.booleans(),
    st.sampled_from(["message", "private", "transactional", "order", "ack", "next"]),
    st.booleans(),
)


@given(st.lists(STEPS, max_size=60), st.integers(0, 4), st.integers(0, 40))
def test_clean_sessions_break_nothing(steps: list[tuple[bool, str, bool]], skipped: int, gap: int) -> None:
    packets: list[tuple[bool, Record]] = [
        (True, make("establish")),
        (False, make("establish")),
        (True, make("parameters")),
        (False, make("parameters")),
    ]
    sides = {True: Side(), False: Side()}
    unacknowledged = {True: 0, False: 0}
    for initiator, name, piggyback in steps:
        side, peer = sides[initiator], sides[not initiator]
        if name == "next":  # everything is acknowledged: the next sequence begins
            side.ordinal, side.number = side.ordinal + (side.number > 0), 0
            continue
        if name == "order" and not peer.number:
            continue
        if name == "ack" or unacknowledged[not initiator] >= 20 or side.stored - side.acked >= 20:
            changes = {f"SessionHeader.{field}": value for field, value in side.header().items()}
            packets.append((initiator, make("ack", changes)))
            unacknowledged[not initiator] = 0
        if name != "ack":
            unacknowledged[initiator] += 1
            packets.append((initiator, send(sides, initiator, name, piggyback=piggyback)))
    if not any(unacknowledged[side] > 60 for side in unacknowledged):
        session = SessionLint()
        for initiator, packet in packets:
            assert session.packet(initiator, packet) == [], packet
    for _, packet in packets:
        assert lint_packet(packet) == []
        assert lint(packet.to_bytes()) == []
    late = SessionLint(midstream=True)
    for number, (initiator, packet) in enumerate(packets[4 + skipped :]):
        if number == gap:
            late.gap()
        assert late.packet(initiator, packet) == []
