"""The example session of [MS-MQQB] 4.1, played by two queue managers with its identifiers and settings.

Each packet is compared with the captured one field by field; where they differ, the test names the field and
says why. All other fields are equal.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Final
from uuid import UUID

import pytest

from msmqwire.qm.model.effects import Connect, Resolve, Send, SendDatagram
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import AcknowledgementsRequested, SenderIdentifierType
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.protocols.binary.states import SessionState
from tests.support import handmade as h
from tests.support.engine_harness import EngineHarness
from tests.support.paths import VECTORS
from tests.support.qm.received_packets import ReceivedPacket

CLIENT, SERVER = UUID(bytes_le=h.CLIENT), UUID(bytes_le=h.SERVER)
NAME: Final = r"DIRECT=OS:a04bm02\q"
TIME_STAMP: Final = 501_140_046
ROUND_TRIP: Final = 187
"""Milliseconds: an eighth of RecoverableAckTimeout in frames 5 and 6."""
SENT: Final = 1_141_966_310
"""SentTime as decoded in the text of frame 7."""
SID: Final = bytes.fromhex("010500000000000515000000AD4A9EBD36D9FA3D63A656DAE8030000")

BASE: Final = {
    "VersionNumber": (0, 1), "Reserved": (1, 2), "Flags": (2, 4), "Signature": (4, 8), "PacketSize": (8, 12),
    "TimeToReachQueue": (12, 16),
}  # fmt: skip
INTERNAL: Final = BASE | {"Internal.Reserved": (16, 18), "Internal.Flags": (18, 20)}
PING: Final = {"Flags": (0, 2), "Signature": (2, 4), "Cookie": (4, 8), "QMGuid": (8, 24)}
ESTABLISH: Final = INTERNAL | {
    "ClientGuid": (20, 36), "ServerGuid": (36, 52), "TimeStamp": (52, 56), "OperatingSystem": (56, 58),
    "EC.Reserved": (58, 60), "Padding": (60, 572),
}  # fmt: skip
PARAMETERS: Final = INTERNAL | {
    "RecoverableAckTimeout": (20, 24), "AckTimeout": (24, 28), "CP.Reserved": (28, 30), "WindowSize": (30,
    32),
}  # fmt: skip
ACK: Final = INTERNAL | {
    "AckSequenceNumber": (20, 22), "RecoverableMsgAckSeqNumber": (22, 24), "RecoverableMsgAckFlags": (24, 28),
    "UserMsgSequenceNumber": (28, 30), "RecoverableMsgSeqNumber": (30, 32), "WindowSize": (32, 34),
    "Reserved2": (34, 36),
}  # fmt: skip
MESSAGE: Final = BASE | {
    "SourceQueueManager": (16, 32), "QueueManagerAddress": (32, 48), "TimeToBeReceived": (48, 52),
    "SentTime": (52, 56),
    "MessageID": (56, 60), "UserHeader.Flags": (60, 64), "DestinationQueue": (64, 92),
    "Security.Flags": (92, 94),
    "Security.Sizes": (94, 108), "SecurityID": (108, 136), "AcksRequested": (136, 137), "LabelLength": (137,
    138),
    "MessageClass": (138, 140), "CorrelationID": (140, 160), "BodyType": (160, 164), "ApplicationTag": (164,
    168),
    "MessageSize": (168, 172), "AllocationBodySize": (172, 176), "PrivacyLevel": (176, 180),
    "HashAlgorithm": (180, 184),
    "EncryptionAlgorithm": (184, 188), "ExtensionSize": (188, 192), "Label": (192, 222), "Body": (222, 2222),
    "Padding": (2222, 2224),
}  # fmt: skip


def captured(frame: int) -> bytes:
    (path,) = (
        path for path in VECTORS.glob(f"MS-MQQB-4.1.{frame}-*.hex") if not path.name.endswith(".printed.hex")
    )
    return bytes.fromhex(path.read_text())


def differences(ours: bytes, frame: int, layout: Mapping[str, tuple[int, int]]) -> dict[str, tuple[str, str]]:
    """The fields in which our packet and the captured one differ, both as hex."""
    expected = captured(frame)
    assert len(ours) == len(expected)
    places = sorted(layout.values())
    assert places[0][0] == 0
    assert all(end == start for (_, end), (start, _) in itertools.pairwise(places))
    assert places[-1][1] == len(expected)
    return {
        name: (ours[start:end].hex(), expected[start:end].hex())
        for name, (start, end) in layout.items()
        if ours[start:end] != expected[start:end]
    }


class Session:
    """The session from the first ping to the acknowledgement; `frames` holds our packets by number."""

    def __init__(self, *, ping: bool) -> None:
        self.frames: dict[int, bytes] = {}
        common = {"ack_wait_timeout_ms": 120_000, "server_class": True}
        began = TIME_STAMP - (ROUND_TRIP if ping else 0)
        self.client = client = EngineHarness(
            identifier=CLIENT, computer_name="client", now=began, utc=SENT, ping=ping, **common
        )
        self.server = server = EngineHarness(
            identifier=SERVER, computer_name="a04bm02", addresses=["10.0.0.2"], now=5_000, utc=SENT, **common
        )
        client.engine.pings.cookie = 3
        client.core.identity._ordinal = client.core.identity._reserved_until = 2_285
        self.queue = self._queue()
        client.send(
            "a".encode("utf-16-le") * 1000,
            to=NAME,
            body_type=8,
            label="mqsender label",
            acknowledgements_requested=AcknowledgementsRequested(0x0F),
            sender_identifier=SID,
            sender_identifier_type=SenderIdentifierType.SID,
            hash_algorithm=0x8004,
            encryption_algorithm=0x6801,
        )
        assert client.last_effect(Resolve).host == "a04bm02"
        client.resolve("10.0.0.2")
        if ping:
            self._ping()
        self.to_server = client.last_effect(Connect).connection
        client.engine.connected(self.to_server)
        self.to_client = server.engine.next_connection()
        server.engine.accepted(self.to_client, "10.0.0.1")
        self._carry(3, 93)
        self._carry(4, 94)
        self._carry(5, 0)
        self._carry(6, 0)
        self._carry(7, 0)
        server.advance(60_000)
        self._carry(8, 0)

    def _queue(self) -> Queue:
        template = Queue(NULL_GUID)
        self.server.core.queues.set_defaults(template)
        template.pathname = "a04bm02\\q"
        status, queue = self.server.core.queues.create(template, skip_directory=True)
        assert status == 0
        assert queue is not None
        return queue

    def _ping(self) -> None:
        self.client.run()
        self.frames[1] = self.client.effects_of(SendDatagram)[-1].data
        self.server.engine.datagram(self.frames[1], "10.0.0.1", 4057, request=True)
        self.server.run()
        answer = self.server.effects_of(SendDatagram)[-1]
        assert answer.port == 4057
        self.frames[2] = answer.data
        self.client.advance(ROUND_TRIP)
        self.client.engine.datagram(answer.data, "10.0.0.2", 3527, request=False)
        self.client.run()

    def _carry(self, frame: int, delay: int) -> None:
        """Deliver the next packet in either direction and advance both clocks."""
        by_client = frame in (3, 5, 7)
        source, sink = (self.client, self.server) if by_client else (self.server, self.client)
        source.run()
        self.frames[frame] = packet = source.effects_of(Send)[-1].data
        self.client.advance(delay)
        self.server.advance(delay)
        sink.engine.received(self.to_client if by_client else self.to_server, packet)
        sink.run()


@pytest.fixture(scope="module")
def played() -> Session:
    return Session(ping=True)


@pytest.mark.requirement("MQQB-4.1-01")
def test_the_kinds_and_directions(played: Session) -> None:
    assert list(played.frames) == [1, 2, 3, 4, 5, 6, 7, 8]
    kinds = [
        "EstablishConnection", "EstablishConnection", "ConnectionParameters", "ConnectionParameters",
        "UserMessage", "SessionAck",
    ]  # fmt: skip
    assert [ReceivedPacket(played.frames[frame]).kind for frame in range(3, 9)] == kinds
    assert [ReceivedPacket(captured(frame)).kind for frame in range(3, 9)] == kinds


def test_frame_1_the_ping_request(played: Session) -> None:
    # Unused bits are arbitrary. RC says that the client is not a server system; its frame 3 says it is one.
    assert differences(played.frames[1], 1, PING) == {"Flags": ("0000", "017d")}


def test_frame_2_the_ping_response(played: Session) -> None:
    # As above; RC repeats that of the request.
    assert differences(played.frames[2], 2, PING) == {"Flags": ("0000", "95b2")}


@pytest.mark.requirement("MQQB-3.1.5.2.3-02", "MQQB-3.1.5.2.3-03", "MQQB-3.1.5.2.3-04", "MQQB-3.1.5.2.3-06")
def test_frame_3_the_establish_connection_request(played: Session) -> None:
    assert differences(played.frames[3], 3, ESTABLISH) == {
        "Reserved": ("00", "c0"),  # arbitrary
        "ServerGuid": (
            "00" * 16,
            h.SERVER.hex(),
        ),  # MQQB-3.1.5.2.3-05: the queue is named directly in frame 7
        "OperatingSystem": ("1002", "1003"),  # MQQB-3.1.5.2.3-06: SE is 0 after a ping
    }


@pytest.mark.requirement("MQQB-3.1.5.2.3-06")
def test_frame_3_without_a_ping() -> None:
    differing = differences(Session(ping=False).frames[3], 3, ESTABLISH)
    assert list(differing) == ["Reserved", "ServerGuid"]


def test_frame_4_the_establish_connection_response(played: Session) -> None:
    assert (
        differences(played.frames[4], 4, ESTABLISH)
        == {
            "Reserved": ("00", "5a"),  # arbitrary
            "ClientGuid": (h.CLIENT.hex(), captured(4)[20:36].hex()),  # MQQB-4.1.4-02: from another capture
            "ServerGuid": (h.SERVER.hex(), captured(4)[36:52].hex()),
            "OperatingSystem": ("1002", "1003"),  # SE repeats that of the request
        }
    )


@pytest.mark.requirement("MQQB-3.1.5.3.2-05", "MQQB-3.1.5.3.2-06", "MQQB-4.1.5-02")
def test_frame_5_the_connection_parameters_request(played: Session) -> None:
    assert differences(played.frames[5], 5, PARAMETERS) == {"Reserved": ("00", "c0")}


@pytest.mark.requirement("MQQB-3.1.5.4.1-02")
def test_frame_6_the_connection_parameters_response(played: Session) -> None:
    assert differences(played.frames[6], 6, PARAMETERS) == {"Reserved": ("00", "c0")}


def test_frame_7_the_message(played: Session) -> None:
    assert differences(played.frames[7], 7, MESSAGE) == {
        "SentTime": (SENT.to_bytes(4, "little").hex(), b"LIOR".hex()),  # MQQB-4.1.7-03: an error in the dump
    }


@pytest.mark.requirement("MQQB-3.1.6.4-03", "MQQB-3.1.6.4-04", "MQQB-3.1.6.4-05", "MQQB-3.1.6.4-07")
def test_frame_8_the_session_acknowledgement(played: Session) -> None:
    assert differences(played.frames[8], 8, ACK) == {"Reserved": ("00", "cd")}


def test_the_message_has_arrived_and_left(played: Session) -> None:
    (position,) = played.queue.positions
    assert position.message.label == "mqsender label"
    assert len(played.client.outgoing(NAME).positions) == 0
    states = [
        session.state
        for harness in (played.client, played.server)
        for session in harness.engine.sessions.values()
    ]
    assert states == [SessionState.OPEN] * 2


@pytest.mark.requirement("MQQB-4.1.2-02")
def test_the_captured_ping_response_is_an_acceptance() -> None:
    client = EngineHarness(identifier=CLIENT, ping=True)
    client.engine.pings.cookie = 3
    client.send(to=NAME)
    client.resolve("10.0.0.2")
    assert client.effects_of(Connect) == []
    client.engine.datagram(captured(2), "10.0.0.2", 3527, request=False)
    client.run()
    assert [connect.address for connect in client.effects_of(Connect)] == ["10.0.0.2"]


@pytest.mark.requirement("MQQB-4.1-01", "MQQB-4.1.7-08")
def test_the_captured_client_is_served_as_it_was() -> None:
    """The server receives the captured bytes of frames 1, 3, 5 and 7."""
    harness = EngineHarness(identifier=SERVER, computer_name="a04bm02", utc=SENT)
    template = Queue(NULL_GUID)
    harness.core.queues.set_defaults(template)
    template.pathname = "a04bm02\\q"
    status, queue = harness.core.queues.create(template, skip_directory=True)
    assert status == 0
    assert queue is not None
    harness.engine.datagram(captured(1), "10.0.0.1", 4057, request=True)
    harness.run()
    assert differences(harness.effects_of(SendDatagram)[-1].data, 2, PING) == {"Flags": ("0100", "95b2")}
    peer = harness.accept_connection()
    peer.send(captured(3))
    answer, request = peer.take()[0], captured(3)
    assert answer[2:] == request[2:], "identifiers and time stamp are echoed"
    peer.send(captured(5))
    assert peer.take()[0][2:] == captured(6)[2:]
    peer.send(captured(7))
    harness.advance(60_000)
    assert [packet[2:] for packet in peer.take()] == [captured(8)[2:]]
    assert len(queue.positions) == 1
    assert peer.state is SessionState.OPEN
    assert len(harness.receive(queue)) == 2000
    harness.advance(60_000)
    assert peer.take() == [], "all four acknowledgements are requested, and none has a place to go"
    assert harness.effects_of(Resolve) == []
