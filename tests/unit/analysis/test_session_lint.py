"""The order of packets on a connection, their numbers, and pings."""

from __future__ import annotations

from typing import Any

import pytest

import msmqwire
from msmqwire.analysis.lint import Finding, PingLint, SessionLint, lint, lint_packet
from msmqwire.analysis.lint import sequences as tables
from msmqwire.schema import Record
from tests.support.capture.lint_packets import DONE_ELSEWHERE, OTHER, SOURCE, TARGET, brief, make
from tests.support.paths import VECTORS

NULL = "00000000-0000-0000-0000-000000000000"
EC, CP = "EstablishConnectionHeader", "ConnectionParametersHeader"
PT, CS = "InternalHeader.Flags.PT", "InternalHeader.Flags.CS"
ACK = "SessionHeader.AckSequenceNumber"


def establish(**changes: Any) -> Record:
    return make("establish", {key.replace("__", "."): value for key, value in changes.items()})


def parameters(**changes: Any) -> Record:
    return make("parameters", {key.replace("__", "."): value for key, value in changes.items()})


def message(number: int = 1, *, recoverable: bool = False, header: dict[str, int] | None = None) -> Record:
    changes: dict[str, Any] = {"UserHeader.MessageID": number, "UserHeader.Flags.DM": int(recoverable)}
    return make("message", {**changes, **({"SessionHeader": header} if header else {})})


def transactional(
    number: int, previous: int | None = None, *, ident: int = 0, ordinal: int = 1, dm: int = 1
) -> Record:
    return make(
        "transactional",
        {
            "UserHeader.Flags.DM": dm,
            "UserHeader.MessageID": ident or number,
            "TransactionHeader.TxSequenceID.Ordinal": ordinal,
            "TransactionHeader.TxSequenceNumber": number,
            "TransactionHeader.PreviousTxSequenceNumber": number - 1 if previous is None else previous,
        },
    )


def ack(**fields: int) -> Record:
    return make("ack", {f"SessionHeader.{name}": value for name, value in fields.items()})


def opened(window: int = 64, peer_window: int = 64) -> SessionLint:
    session = SessionLint()
    for direction, packet in (
        ("c2s", establish()),
        ("s2c", establish()),
        ("c2s", parameters(ConnectionParametersHeader__WindowSize=window)),
        ("s2c", parameters(ConnectionParametersHeader__WindowSize=peer_window)),
    ):
        assert session.packet(direction, packet) == []  # type: ignore[arg-type]
    return session


def findings(session: SessionLint, direction: Any, packet: Record, **options: Any) -> list[Any]:
    return brief(session.packet(direction, packet, **options))


# -- opening -------------------------------------------------------------------------------------


def test_a_clean_session() -> None:
    session = opened()
    assert session.packet("c2s", message(1, recoverable=True)) == []
    assert (
        session.packet(
            "s2c", ack(AckSequenceNumber=1, RecoverableMsgAckSeqNumber=1, RecoverableMsgAckFlags=1)
        )
        == []
    )
    assert (
        session.packet(False, message(5, header={"UserMsgSequenceNumber": 1, "AckSequenceNumber": 1})) == []
    )
    assert session.state.name == "OPEN"


@pytest.mark.parametrize(
    "name, id, path, offset",
    [
        pytest.param(name, id, path, offset, marks=pytest.mark.requirement(id))
        for name, id, path, offset in (
            ("parameters", "MQQB-3.1.5.4-01", PT, 18),
            ("ack", "MQQB-3.1.5.5-01", PT, 18),
            ("order", "MQQB-3.1.5.6-01", "BaseHeader.Flags.IN", 2),
            ("final", "MQQB-3.1.5.7-01", "BaseHeader.Flags.IN", 2),
            ("message", "MQQB-3.1.5.8-01", "BaseHeader.Flags.IN", 2),
        )
    ],
)
def test_nothing_before_the_session_is_open(name: str, id: str, path: str, offset: int) -> None:
    for before in ([], [("c2s", establish())], [("c2s", establish()), ("s2c", establish())]):
        session = SessionLint()
        for direction, packet in before:
            session.packet(direction, packet)  # type: ignore[arg-type]
        direction = "s2c" if name == "parameters" else "c2s"
        assert findings(session, direction, make(name)) == [(id, "MUST", path, offset)]


@pytest.mark.requirement("MQQB-3.1.5.8-01")
def test_a_message_between_the_parameters_is_reported_once() -> None:
    session = SessionLint()
    for direction, packet in (("c2s", establish()), ("s2c", establish()), ("c2s", parameters())):
        session.packet(direction, packet)  # type: ignore[arg-type]
    assert findings(session, "c2s", message(1)) == [("MQQB-3.1.5.8-01", "MUST", "BaseHeader.Flags.IN", 2)]
    assert findings(session, "c2s", message(2)) == []


@pytest.mark.requirement("MQQB-3.1.5.3-01", "MQQB-3.1.5.4-01")
def test_the_opening_does_not_come_twice() -> None:
    session = opened()
    assert findings(session, "c2s", establish()) == [("MQQB-3.1.5.3-01", "MUST", PT, 18)]
    assert findings(session, "c2s", parameters()) == [("MQQB-3.1.5.4-01", "MUST", PT, 18)]
    session = SessionLint()
    assert findings(session, "s2c", establish()) == [("MQQB-3.1.5.3-01", "MUST", PT, 18)]
    session = SessionLint()
    session.packet("c2s", establish())
    assert findings(session, "c2s", establish()) == [("MQQB-3.1.5.3-01", "MUST", PT, 18)]


@pytest.mark.parametrize(
    "changes, expected",
    [
        pytest.param(
            changes,
            expected,
            marks=pytest.mark.requirement(*(id for id, *_ in expected if id not in DONE_ELSEWHERE)),
        )
        for changes, expected in (
            ({f"{EC}.ClientGuid": OTHER}, [("MQQB-3.1.5.3.1-04", "MUST", f"{EC}.ClientGuid", 20)]),
            ({f"{EC}.TimeStamp": 78}, [("MQQB-3.1.5.3.1-06", "MUST", f"{EC}.TimeStamp", 52)]),
            (
                {f"{EC}.OperatingSystem.SE": 0},
                [("MQQB-3.1.5.3.1-07", "MUST", f"{EC}.OperatingSystem.SE", 56)],
            ),
            (
                {f"{EC}.ServerGuid": OTHER},
                [("MQQB-2.2.1-08", "MUST", CS, 18), ("MQQB-2.2.3.1-05", "MUST", f"{EC}.ServerGuid", 36)],
            ),
            ({f"{EC}.ServerGuid": OTHER, CS: 1}, []),
            ({f"{EC}.Padding": "5a" * 511 + "5b"}, [("MQQB-2.2.3.1-18", "MUST", f"{EC}.Padding", 60)]),
        )
        if expected
    ],
)
def test_the_response_to_establish_connection(changes: dict[str, Any], expected: list[Any]) -> None:
    session = SessionLint()
    session.packet("c2s", establish())
    assert findings(session, "s2c", make("establish", changes)) == expected


@pytest.mark.requirement("MQQB-2.2.3.1-18", "MQQB-2.2.3.1-19")
def test_padding_of_a_request_is_anything() -> None:
    assert findings(SessionLint(), "c2s", make("establish", {f"{EC}.Padding": "00" * 512})) == []


@pytest.mark.requirement("MQQB-3.1.5.3.1-05")
def test_the_response_for_a_direct_name() -> None:
    session = SessionLint()
    session.packet("c2s", make("establish", {f"{EC}.ServerGuid": NULL}))
    assert findings(session, "s2c", make("establish", {f"{EC}.ServerGuid": NULL})) == [
        ("MQQB-3.1.5.3.1-05", "MUST", f"{EC}.ServerGuid", 36)
    ]
    session = SessionLint()
    session.packet("c2s", make("establish", {f"{EC}.ServerGuid": NULL}))
    assert findings(session, "s2c", make("establish", {f"{EC}.ServerGuid": TARGET})) == []


@pytest.mark.requirement("MQQB-3.1.5.3.2-03")
def test_nothing_on_a_refused_connection() -> None:
    session = SessionLint()
    session.packet("c2s", establish())
    assert findings(session, "s2c", make("establish", {CS: 1, f"{EC}.ServerGuid": OTHER})) == []
    assert findings(session, "c2s", parameters()) == [("MQQB-3.1.5.3.2-03", "MUST", "BaseHeader", 0)]


@pytest.mark.requirement("MQQB-3.1.5.2.3-02", "MQQB-3.1.5.3.2-06")
def test_requests_have_cs_clear() -> None:
    session = SessionLint()
    assert findings(session, "c2s", make("establish", {CS: 1})) == [("MQQB-3.1.5.2.3-02", "MUST", CS, 18)]
    session.packet("s2c", establish())
    assert findings(session, "c2s", make("parameters", {CS: 1})) == [("MQQB-3.1.5.3.2-06", "MUST", CS, 18)]


@pytest.mark.requirement("MQQB-3.1.5.4.1-02")
@pytest.mark.parametrize(
    "path, value, offset",
    [(f"{CP}.RecoverableAckTimeout", 600, 20), (f"{CP}.AckTimeout", 30_000, 24), (CS, 1, 18)],
)
def test_the_response_to_connection_parameters(path: str, value: int, offset: int) -> None:
    session = SessionLint()
    for direction, packet in (("c2s", establish()), ("s2c", establish()), ("c2s", parameters())):
        session.packet(direction, packet)  # type: ignore[arg-type]
    assert findings(session, "s2c", make("parameters", {path: value})) == [
        ("MQQB-3.1.5.4.1-02", "MUST", path, offset)
    ]


# -- numbers -------------------------------------------------------------------------------------


@pytest.mark.requirement("MQMQ-2.2.20.4-10")
def test_the_count_of_messages_sent() -> None:
    session = opened()
    path = "SessionHeader.UserMsgSequenceNumber"
    assert findings(session, "c2s", ack(UserMsgSequenceNumber=1)) == [
        ("MQMQ-2.2.20.4-10", "SHOULD", path, 28)
    ]
    assert findings(session, "c2s", ack(UserMsgSequenceNumber=1)) == []  # reported once
    wrong = message(1, header={"UserMsgSequenceNumber": 1})
    assert findings(session, "c2s", wrong) == [("MQMQ-2.2.20.4-10", "SHOULD", path, 188)]


@pytest.mark.requirement("MQMQ-2.2.20.4-13")
def test_the_count_of_recoverable_messages_sent() -> None:
    session = opened()
    wrong = message(1, recoverable=True, header={"UserMsgSequenceNumber": 1, "RecoverableMsgSeqNumber": 0})
    path = "SessionHeader.RecoverableMsgSeqNumber"
    assert findings(session, "c2s", wrong) == [("MQMQ-2.2.20.4-13", "MUST", path, 190)]


@pytest.mark.requirement("MQMQ-2.2.20.4-13", "MQQB-3.1.1.4-04")
def test_a_transactional_message_is_recoverable_with_any_dm() -> None:
    session = opened()
    session.packet("c2s", transactional(1, dm=0))
    saved = ack(AckSequenceNumber=1, RecoverableMsgAckSeqNumber=1, RecoverableMsgAckFlags=1)
    assert findings(session, "s2c", saved) == []
    assert findings(session, "c2s", ack(UserMsgSequenceNumber=1, RecoverableMsgSeqNumber=1)) == []


@pytest.mark.requirement("MQMQ-2.2.20.4-03", "MQMQ-2.2.20.4-04", "MQQB-3.1.1.7.3-02")
def test_acknowledgement_packets_are_counted_as_messages() -> None:
    session = opened()
    session.packet("s2c", make("order"))
    session.packet("s2c", make("final"))
    assert findings(session, "s2c", ack(UserMsgSequenceNumber=2, RecoverableMsgSeqNumber=1)) == []


@pytest.mark.requirement("MQMQ-2.2.20.4-06")
def test_an_acknowledgement_of_what_was_never_sent() -> None:
    session = opened()
    session.packet("c2s", message(1))
    assert findings(session, "s2c", ack(AckSequenceNumber=2)) == [("MQMQ-2.2.20.4-06", "MUST", ACK, 20)]
    session = opened()
    assert findings(session, "s2c", ack(AckSequenceNumber=0xFFFF)) == [("MQMQ-2.2.20.4-06", "MUST", ACK, 20)]


@pytest.mark.requirement("MQQB-3.1.1.6.1-02")
def test_an_acknowledgement_that_goes_back() -> None:
    session = opened()
    for number in range(1, 4):
        session.packet("c2s", message(number))
    assert findings(session, "s2c", ack(AckSequenceNumber=3)) == []
    assert findings(session, "s2c", ack(AckSequenceNumber=3)) == []
    assert findings(session, "s2c", ack(AckSequenceNumber=2)) == [("MQQB-3.1.1.6.1-02", "MUST", ACK, 20)]


@pytest.mark.requirement("MQMQ-2.2.20.4-07", "MQMQ-2.2.20.4-09")
def test_recoverable_messages_that_were_never_sent() -> None:
    session = opened()
    session.packet("c2s", message(1, recoverable=True))
    number, flags = "SessionHeader.RecoverableMsgAckSeqNumber", "SessionHeader.RecoverableMsgAckFlags"
    fine = {"AckSequenceNumber": 1, "RecoverableMsgAckSeqNumber": 1}
    assert findings(session, "s2c", ack(**fine, RecoverableMsgAckFlags=1)) == []
    assert findings(session, "s2c", ack(**fine, RecoverableMsgAckFlags=3)) == [
        ("MQMQ-2.2.20.4-09-SENT", "MUST", flags, 24)
    ]
    fine["RecoverableMsgAckSeqNumber"] = 2
    assert findings(session, "s2c", ack(**fine, RecoverableMsgAckFlags=1)) == [
        ("MQMQ-2.2.20.4-07", "MUST", number, 22)
    ]
    fine["RecoverableMsgAckSeqNumber"] = 0
    assert findings(session, "s2c", ack(**fine, RecoverableMsgAckFlags=1)) == [
        ("MQMQ-2.2.20.4-09-SENT", "MUST", flags, 24)
    ]


@pytest.mark.requirement("MQMQ-2.2.20.4-19")
def test_numbers_wrap() -> None:
    session = opened()
    for number in range(1, 66_000):
        session.packet("c2s", message_of(number))
        if not number % 32:
            session_ack = ack(
                AckSequenceNumber=number & 0xFFFF,
                RecoverableMsgAckSeqNumber=(number - 31) & 0xFFFF,
                RecoverableMsgAckFlags=0xFFFFFFFF,
            )
            assert session.packet("s2c", session_ack) == []
    count = 65_999 & 0xFFFF
    assert findings(session, "c2s", ack(UserMsgSequenceNumber=count, RecoverableMsgSeqNumber=count)) == []
    assert findings(session, "s2c", ack(AckSequenceNumber=count + 1)) == [
        ("MQMQ-2.2.20.4-06", "MUST", ACK, 20)
    ]


TEMPLATE = message(1, recoverable=True)


def message_of(number: int) -> Record:
    return TEMPLATE.replace(UserHeader=TEMPLATE.UserHeader.replace(MessageID=number))


@pytest.mark.requirement("MQQB-3.1.7.1-03")
@pytest.mark.parametrize("window, peer, severity", [(2, 9, "MUST"), (9, 2, "SHOULD"), (2, 2, "MUST")])
def test_a_full_window(window: int, peer: int, severity: str) -> None:
    session = opened(window, peer)
    assert findings(session, "c2s", message(1)) == findings(session, "c2s", message(2)) == []
    id = "MQQB-3.1.7.1-03" + ("-PEER" if severity == "SHOULD" else "")
    assert findings(session, "c2s", message(3)) == [(id, severity, "UserHeader.MessageID", 56)]
    assert findings(session, "c2s", message(4)) == []  # reported once
    session.packet("s2c", ack(AckSequenceNumber=4, WindowSize=peer))
    for number in range(5, 7):
        assert findings(session, "c2s", message(number)) == []
    assert findings(session, "c2s", message(7))[0][:2] == (id, severity)


@pytest.mark.requirement("MQQB-3.1.6.3-02")
def test_a_peer_that_is_silent_for_too_long() -> None:
    session, second = opened(), 1_000_000_000
    assert findings(session, "c2s", message(1), time_ns=0) == []
    assert findings(session, "c2s", message(2), time_ns=240 * second) == []
    late = [("MQQB-3.1.6.3-02", "MUST", "BaseHeader", 0)]
    assert findings(session, "c2s", message(3), time_ns=241 * second) == late
    session = opened()
    session.packet("c2s", message(1), time_ns=0)
    session.packet("s2c", ack(AckSequenceNumber=1), time_ns=200 * second)
    assert findings(session, "c2s", message(2), time_ns=9_000 * second) == []


# -- captures that begin late or have gaps ---------------------------------------------------------


def test_midstream_learns_its_numbers() -> None:
    session = SessionLint(midstream=True)
    assert session.packet("c2s", message(1)) == []
    assert session.packet("s2c", ack(AckSequenceNumber=900, UserMsgSequenceNumber=7)) == []
    header = {"UserMsgSequenceNumber": 902, "RecoverableMsgSeqNumber": 40, "AckSequenceNumber": 7}
    assert session.packet("c2s", message(2, header=header)) == []
    assert session.packet("c2s", message(3, recoverable=True)) == []
    assert session.packet("s2c", ack(AckSequenceNumber=903, UserMsgSequenceNumber=7)) == []
    wrong = ack(AckSequenceNumber=904, UserMsgSequenceNumber=7)
    assert findings(session, "s2c", wrong) == [("MQMQ-2.2.20.4-06", "MUST", ACK, 20)]
    wrong = ack(UserMsgSequenceNumber=903, RecoverableMsgSeqNumber=40, AckSequenceNumber=7)
    assert [id for id, *_ in findings(session, "c2s", wrong)] == ["MQMQ-2.2.20.4-13"]


def test_midstream_may_see_a_new_opening() -> None:
    session = SessionLint(midstream=True)
    for direction, packet in (("c2s", establish()), ("s2c", establish()), ("c2s", parameters())):
        assert session.packet(direction, packet) == []  # type: ignore[arg-type]
    assert session.packet("s2c", parameters()) == []
    assert findings(session, "s2c", ack(AckSequenceNumber=1)) == [("MQMQ-2.2.20.4-06", "MUST", ACK, 20)]


def test_a_gap_makes_numbers_unknown() -> None:
    session = opened()
    session.packet("c2s", transactional(1))
    session.gap()
    assert session.packet("c2s", transactional(9, 8)) == []
    assert session.packet("s2c", ack(AckSequenceNumber=30)) == []
    assert session.packet("c2s", ack(UserMsgSequenceNumber=31)) == []
    assert findings(session, "s2c", ack(AckSequenceNumber=32))[0][0] == "MQMQ-2.2.20.4-06"


def test_a_gap_while_opening() -> None:
    session = SessionLint()
    session.packet("c2s", establish())
    session.gap()
    assert session.packet("c2s", message(4)) == []


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="is not c2s"):
        SessionLint().packet("up", message(1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not a packet of a session"):
        SessionLint().packet("c2s", make("ping"))


# -- transactional sequences ---------------------------------------------------------------------

TX = "TransactionHeader"


@pytest.mark.requirement("MQMQ-2.2.20.5-13", "MQMQ-2.2.20.5-14", "MQQB-3.1.1.5-01")
def test_transactional_sequences() -> None:
    session = opened()
    for number in (1, 2):
        assert findings(session, "c2s", transactional(number)) == []
    assert findings(session, "c2s", transactional(4, 2)) == []  # 3 expired
    assert findings(session, "c2s", transactional(4, 2)) == []  # sent again
    path = f"{TX}.PreviousTxSequenceNumber"
    assert findings(session, "c2s", transactional(7, 5)) == [("MQMQ-2.2.20.5-14-MISSING", "MUST", path, 120)]
    path = f"{TX}.TxSequenceNumber"
    assert findings(session, "c2s", transactional(6, 5)) == [("MQMQ-2.2.20.5-13-GROWS", "MUST", path, 116)]
    assert findings(session, "c2s", transactional(2, ident=99)) == [("MQQB-3.1.1.5-01", "MUST", path, 116)]


@pytest.mark.requirement("MQQB-3.1.1.5-07", "MQQB-3.1.5.8.6-04")
def test_sequences_follow_each_other() -> None:
    session = opened()
    session.packet("c2s", transactional(5, ordinal=3))
    path = f"{TX}.PreviousTxSequenceNumber"
    assert findings(session, "c2s", transactional(2, 1, ident=9, ordinal=4)) == [
        ("MQQB-3.1.5.8.6-04", "MUST", path, 120)
    ]
    path = f"{TX}.TxSequenceID"
    assert findings(session, "c2s", transactional(6, 5, ordinal=3)) == [
        ("MQQB-3.1.1.5-07", "MUST", path, 108)
    ]
    assert findings(session, "s2c", transactional(1, ordinal=1)) == []  # the other direction


@pytest.mark.requirement("MQQB-2.2.4.1-03", "MQQB-2.2.5.1-03")
@pytest.mark.parametrize("name, id", [("order", "MQQB-2.2.4.1-03-SENT"), ("final", "MQQB-2.2.5.1-03-SENT")])
def test_acknowledgements_of_what_was_never_sent(name: str, id: str) -> None:
    session = opened()
    session.packet("c2s", transactional(1))
    session.packet("c2s", transactional(2))
    body = "OrderAckBody" if name == "order" else "FinalAckBody"
    assert findings(session, "s2c", make(name)) == [(id, "MUST", f"{body}.TxSequenceNumber", 164)]
    session.packet("c2s", transactional(3))
    assert findings(session, "s2c", make(name)) == []
    assert findings(opened(), "s2c", make(name)) == []  # of another session


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "SEQUENCES_MAX", 4)
    monkeypatch.setattr(tables, "NUMBERS_MAX", 4)
    session = opened()
    for ordinal in range(1, 20):
        session.packet("c2s", transactional(1, ordinal=ordinal))
    for number in range(2, 20):
        session.packet("c2s", transactional(number, ordinal=19))
    sequences = session._sequences
    assert len(sequences._sequences) == len(sequences._by_id) == 4
    assert all(len(sequence.messages) <= 4 for sequence in sequences._sequences.values())
    assert findings(session, "c2s", transactional(3, ordinal=19)) == []  # forgotten: no judgement


# -- captured frames -----------------------------------------------------------------------------


def frame(number: int) -> bytes:
    paths = [path for path in VECTORS.glob(f"MS-MQQB-4.1.{number}-*.hex") if "printed" not in path.name]
    return bytes.fromhex(paths[0].read_text())


def test_captured_frames_by_themselves() -> None:
    findings: dict[int, list[Finding]] = {
        number: lint(frame(number), protocol="ping" if number < 3 else "session") for number in range(1, 9)
    }
    assert {number: brief(one) for number, one in findings.items() if one} == {
        7: [("MQMQ-2.2.19.2-26", "NOTE", "UserHeader.Flags.AQ", 60)],
    }
    assert list(findings[7][0].to_json()) == ["id", "severity", "path", "offset", "message"]


@pytest.mark.requirement("MQQB-4.1.4-02")
def test_captured_frames_as_a_session() -> None:
    """Frames 3 and 4 are from different sessions: their GUIDs differ."""
    session = SessionLint()
    packets = [msmqwire.parse(frame(number)) for number in range(3, 9)]
    directions = ["c2s", "s2c", "c2s", "s2c", "c2s", "s2c"]
    results = [
        findings(session, direction, packet) for direction, packet in zip(directions, packets, strict=True)
    ]
    assert results == [
        [],
        [
            ("MQQB-2.2.1-08", "MUST", CS, 18),
            ("MQQB-3.1.5.3.1-04", "MUST", f"{EC}.ClientGuid", 20),
            ("MQQB-2.2.3.1-05", "MUST", f"{EC}.ServerGuid", 36),
        ],
        [],
        [],
        [],
        [],
    ]


# -- pings ---------------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-2.2.7-04", "MQQB-2.2.7-05", "MQQB-2.2.7-11")
def test_pings() -> None:
    pings = PingLint()
    assert pings.packet("s2c", make("ping", {"Cookie": 9})) == []  # its request was not seen
    assert pings.packet("c2s", make("ping")) == []
    assert pings.packet("s2c", make("ping", {"Flags.RF": 1, "QMGuid": TARGET})) == []
    assert brief(pings.packet("s2c", make("ping", {"Flags.RC": 1}))) == [
        ("MQQB-2.2.7-04", "MUST", "Flags.RC", 0)
    ]
    assert brief(pings.packet("s2c", make("ping", {"Cookie": 5}))) == [("MQQB-2.2.7-11", "MUST", "Cookie", 4)]
    assert brief(pings.packet(True, make("ping", {"Flags.RF": 1}))) == [
        ("MQQB-2.2.7-05", "MUST", "Flags.RF", 0)
    ]


def test_captured_pings() -> None:
    pings = PingLint()
    request, response = (msmqwire.parse(frame(number), protocol="ping") for number in (1, 2))
    assert pings.packet("c2s", request) == pings.packet("s2c", response) == []
    assert lint_packet(request) == []
    assert str(request.QMGuid) == SOURCE
