"""Sessions that a hand-written peer opens to a server: [MS-MQQB] 3.1.5.3, 3.1.5.4 and 3.1.5.10 over TCP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import handmade as h
from tests.support.paths import VECTORS
from tests.support.peers.raw_peer import (
    GUID,
    OTHER,
    TIME_STAMP,
    Message,
    Session,
    establish,
    parameters,
)
from tests.support.qm.peer_server import ORDERS, alpha, at, identity, in_queue, serves, sessions, until
from tests.support.running import InThread


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    """One server for all tests, which must serve honest peers after each."""
    with alpha(tmp_path_factory.mktemp("alpha")) as server:
        yield server


@pytest.fixture(autouse=True)
def honest_peers_are_served(server: InThread) -> Iterator[None]:
    yield
    serves(server)
    until(lambda: sessions(server) == 0, "every session ends with its connection")


# -- as it should be ------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQQB-3.1.5.3.1-03", "MQQB-3.1.5.3.1-04", "MQQB-3.1.5.3.1-05", "MQQB-3.1.5.3.1-06", "MQQB-3.1.5.3.1-07",
    "MQQB-3.1.5.3.1-08", "MQQB-3.1.5.4.1-02", "MQQB-2.2.3.1-18", "MQQB-2.2.3.1-19",
)  # fmt: skip
@pytest.mark.parametrize("named", [False, True], ids=["direct", "by GUID"])
@pytest.mark.parametrize("fill", [b"\x5a", b"\x00", b"\xa7"])
def test_a_session_is_opened_byte_for_byte(server: InThread, named: bool, fill: bytes) -> None:
    guid = identity(server)
    with Session.connect(at(server)) as peer:
        peer.send(establish(guid if named else h.NULL_GUID, fill=fill * 512, operating_system=0x0310))
        expected = h.establish_connection_header(
            client=GUID, server=guid, time_stamp=TIME_STAMP, operating_system=0x0310
        )
        assert peer.packet() == h.establish_connection(expected)
        peer.send(parameters(window=33, ack=45_000, recoverable=1_480))
        fields = h.connection_parameters_header(recoverable_ack_timeout=1_480, ack_timeout=45_000, window=64)
        assert peer.packet() == h.connection_parameters(fields)
        assert peer.fence() == []


def test_the_published_session_is_played(tmp_path: Path) -> None:
    """Frames 3, 5 and 7 of [MS-MQQB] chapter 4, with the GUID of this server, are answered as published."""
    frames = {
        number: bytes.fromhex((VECTORS / name).read_text())
        for number, name in enumerate(
            (
                "MS-MQQB-4.1.3-EstablishConnectionRequest.hex",
                "MS-MQQB-4.1.4-EstablishConnectionResponse.hex",
                "MS-MQQB-4.1.5-ConnectionParametersRequest.hex",
                "MS-MQQB-4.1.6-ConnectionParametersResponse.hex",
                "MS-MQQB-4.1.7-UserMessage.hex",
                "MS-MQQB-4.1.8-SessionAck.hex",
            ),
            start=3,
        )
    }
    with alpha(tmp_path / "alpha") as server:
        guid = identity(server)
        with Session.connect(at(server)) as peer:
            peer.send(frames[3][:36] + guid + frames[3][52:])
            answer = peer.packet()
            # The system that answered in frame 4 did not declare itself a server system (OS), and its GUIDs
            # are those of another capture (MQQB-4.1.4-02).
            assert answer[:1] + answer[2:20] == frames[4][:1] + frames[4][2:20]
            assert answer[20:52] == frames[3][20:36] + guid
            assert answer[52:57] + answer[58:] == frames[4][52:57] + frames[4][58:]
            peer.send(frames[5])
            assert _without_reserved(peer.packet()) == _without_reserved(frames[6])
            peer.send(frames[7])
            assert _without_reserved(peer.packet()) == _without_reserved(frames[8])
        assert in_queue(server) == [], "the message has expired long ago"


def _without_reserved(packet: bytes) -> bytes:
    """A packet without BaseHeader.Reserved, which may have any value."""
    return packet[:1] + packet[2:]


@pytest.mark.requirement("MQQB-2.2.2.1-06")
def test_a_window_of_nothing_in_the_parameters_is_accepted(server: InThread) -> None:
    with Session.opened(at(server), window=0) as peer:
        peer.push(Message(b"1", recoverable=True), Message(b"2"))
        assert peer.until_acknowledged() == []


@pytest.mark.parametrize("cut", [1, 8, 12, 16, 19, 20, 300, 571])
def test_a_request_may_come_in_two_segments(server: InThread, cut: int) -> None:
    with Session.connect(at(server)) as peer:
        packet = establish()
        peer.send(packet[:cut])
        until(lambda: sessions(server) == 1, "the connection is accepted")
        peer.send(packet[cut:])
        assert not peer.take().CS


def test_all_of_it_may_come_one_byte_at_a_time(server: InThread) -> None:
    message = Message(b"slowly", recoverable=True)
    with Session.connect(at(server)) as peer:
        for packet in (establish(), parameters(), message.bytes()):
            for byte in packet:
                peer.send(bytes([byte]))
        peer.count(message)
        assert not peer.take().CS
        assert peer.take().kind == "ConnectionParameters"
        assert peer.until_acknowledged() == []
        assert in_queue(server).count(b"slowly") == 1


def test_all_of_it_may_come_at_once(server: InThread) -> None:
    message = Message(b"at once", recoverable=True)
    with Session.connect(at(server)) as peer:
        peer.send(establish(), parameters(), message.bytes())
        peer.count(message)
        kinds = [peer.take().kind, peer.take().kind]
        assert kinds == ["EstablishConnection", "ConnectionParameters"]
        assert peer.until_acknowledged() == []
        assert in_queue(server).count(b"at once") == 1


# -- for another, or out of state -----------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.5.3.1-09", "MQQB-2.2.1-08")
def test_a_request_for_another_queue_manager_is_refused(server: InThread) -> None:
    with Session.connect(at(server)) as peer:
        peer.send(establish(OTHER))
        fields = h.establish_connection_header(
            client=GUID, server=identity(server), time_stamp=TIME_STAMP, operating_system=0x0310
        )
        assert peer.packet() == h.establish_connection(fields, internal=0x12)


MESSAGE = Message(b"out of state", recoverable=True)
ACK = h.session_ack()
ORDER_ACK = h.order_ack()
FINAL_ACK = h.final_ack()


@pytest.mark.requirement(
    "MQQB-3.1.5.4-01", "MQQB-3.1.5.5-01", "MQQB-3.1.5.6-01", "MQQB-3.1.5.7-01", "MQQB-3.1.5.8-01",
    "MQQB-3.1.5.9-01",
)  # fmt: skip
@pytest.mark.parametrize(
    "packet",
    [MESSAGE.bytes(), parameters(), ACK, ORDER_ACK, FINAL_ACK],
    ids=["UserMessage", "ConnectionParameters", "SessionAck", "OrderAck", "FinalAck"],
)
def test_what_comes_before_the_request_ends_the_session(server: InThread, packet: bytes) -> None:
    with Session.connect(at(server)) as peer:
        peer.send(packet)
        assert peer.ended() == []
    assert b"out of state" not in in_queue(server)


@pytest.mark.requirement(
    "MQQB-3.1.5.3-01", "MQQB-3.1.5.5-01", "MQQB-3.1.5.6-01", "MQQB-3.1.5.7-01", "MQQB-3.1.5.8-01"
)
@pytest.mark.parametrize(
    "packet",
    [MESSAGE.bytes(), establish(), ACK, ORDER_ACK, FINAL_ACK],
    ids=["UserMessage", "EstablishConnection", "SessionAck", "OrderAck", "FinalAck"],
)
def test_what_comes_instead_of_the_parameters_ends_the_session(server: InThread, packet: bytes) -> None:
    with Session.connect(at(server)) as peer:
        peer.send(establish())
        assert not peer.take().CS
        peer.send(packet)
        assert peer.ended() == []
    assert b"out of state" not in in_queue(server)


@pytest.mark.requirement("MQQB-3.1.5.3-01", "MQQB-3.1.5.4-01")
@pytest.mark.parametrize("packet", [establish(), parameters()], ids=["EC", "CP"])
def test_an_open_session_is_not_opened_again(server: InThread, packet: bytes) -> None:
    with Session.opened(at(server)) as peer:
        peer.send(packet)
        assert peer.ended() == []


@pytest.mark.requirement("MQQB-3.1.5.4-03", "MQQB-2.2.2.1-02", "MQQB-2.2.2.1-04")
@pytest.mark.parametrize(
    "packet",
    [
        parameters(cs=True), parameters(ack=19_999), parameters(ack=120_001),
        parameters(recoverable=499), parameters(recoverable=120_001),
    ],
    ids=["CS", "AckTimeout-", "AckTimeout+", "RecoverableAckTimeout-", "RecoverableAckTimeout+"],
)  # fmt: skip
def test_parameters_that_can_not_be_end_the_session(server: InThread, packet: bytes) -> None:
    with Session.connect(at(server)) as peer:
        peer.send(establish())
        assert not peer.take().CS
        peer.send(packet)
        assert peer.ended() == []


@pytest.mark.requirement("MQQB-2.2.1-05")
@pytest.mark.parametrize("kind", [0, 4, 15])
def test_an_internal_packet_of_no_kind_ends_the_session(server: InThread, kind: int) -> None:
    with Session.opened(at(server)) as peer:
        peer.send(h.connection_parameters(internal=kind))
        assert peer.ended() == []


@pytest.mark.requirement("MQQB-2.2.1-11", "MQMQ-2.2.19.1-17")
def test_reserved_bits_are_ignored(server: InThread) -> None:
    with Session.connect(at(server)) as peer:
        header = h.establish_connection_header(client=GUID, server=h.NULL_GUID, operating_system=0xFB10)
        peer.send(h.establish_connection(header, flags=0xFECB, internal=0xFFE2))
        assert not peer.take().CS
        peer.send(h.connection_parameters(flags=0xFECB, internal=0xFFE3))
        assert peer.take().kind == "ConnectionParameters"
        assert peer.fence() == []


# -- silent and slow peers ------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.5.10-02", "MQQB-3.1.2.1-02")
@pytest.mark.parametrize(
    "packets",
    [b"", establish()[:7], establish()[:300], establish(), establish() + parameters()[:31]],
    ids=["nothing", "7 bytes", "300 bytes", "EC", "EC and half of CP"],
)
def test_who_does_not_go_on_is_cut_off(tmp_path: Path, packets: bytes) -> None:
    with alpha(tmp_path / "alpha", session_initialization_ms=300) as impatient:
        with Session.connect(at(impatient)) as peer:
            peer.send(packets)
            answers = peer.ended()
            assert [answer.kind for answer in answers] == ["EstablishConnection"] * (len(packets) >= 572)
        serves(impatient)


@pytest.mark.requirement("MQQB-3.1.2.1-02")
def test_an_open_session_is_not_cut_off_so_soon(tmp_path: Path) -> None:
    with (
        alpha(tmp_path / "alpha", session_initialization_ms=2_000) as server,
        Session.opened(at(server)) as peer,
        Session.connect(at(server)) as silent,
    ):
        assert silent.ended() == [], "the later connection has timed out"
        assert peer.fence() == []


def test_who_falls_silent_in_a_packet_is_cut_off_as_idle(tmp_path: Path) -> None:
    with alpha(tmp_path / "alpha", session_cleanup_ms=300) as impatient:
        with Session.opened(at(impatient)) as peer:
            peer.send(Message(b"half", recoverable=True).bytes()[:100])
            assert peer.ended() == []
        assert in_queue(impatient) == []
        until(lambda: sessions(impatient) == 0, "the session is removed")


@pytest.mark.parametrize("by_reset", [False, True], ids=["FIN", "RST"])
@pytest.mark.parametrize("opened", [False, True], ids=["half-open", "open"])
def test_who_goes_in_the_middle_of_a_packet_leaves_nothing(
    server: InThread, opened: bool, by_reset: bool
) -> None:
    peer = Session.opened(at(server)) if opened else Session.connect(at(server))
    peer.send((Message(b"cut off", recoverable=True).bytes() if opened else establish())[:150])
    until(lambda: sessions(server) == 1, "the connection is accepted")
    if by_reset:
        peer.reset()
    else:
        peer.close()
    until(lambda: sessions(server) == 0, "the session is removed")
    assert b"cut off" not in in_queue(server, ORDERS)
