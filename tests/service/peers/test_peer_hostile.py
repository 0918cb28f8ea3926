"""Invalid bytes from a hand-written peer: the session ends, and no other session is affected."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

import pytest

from tests.support import handmade as h
from tests.support.peers.raw_peer import TX_QUEUE, Message, Session, direct, establish, parameters
from tests.support.qm.peer_server import LEDGER, ORDERS, alpha, at, in_queue, serves, sessions, until
from tests.support.running import InThread

HUGE = 0xFFFFFFFF
MAX = 0x0040_0000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    with alpha(tmp_path_factory.mktemp("alpha")) as server:
        yield server


@pytest.fixture(autouse=True)
def honest_peers_are_served(server: InThread) -> Iterator[None]:
    yield
    serves(server)
    until(lambda: sessions(server) == 0, "every session ends with its connection")


def is_refused(server: InThread, packet: bytes, *, opened: bool = True) -> None:
    """Check that a packet ends the session without an answer, and puts nothing into a queue."""
    before = [in_queue(server, queue) for queue in (ORDERS, LEDGER)]
    with Session.opened(at(server)) if opened else Session.connect(at(server)) as peer:
        peer.send(packet)
        assert peer.ended() == []
    assert [in_queue(server, queue) for queue in (ORDERS, LEDGER)] == before


# -- BaseHeader -----------------------------------------------------------------------------------------

BASES = {
    "version 0x11": h.base_header(572, 0x0B, version=0x11),
    "version 0": h.base_header(572, 0x0B, version=0),
    "signature ROIL": h.base_header(572, 0x0B, signature=0x4C494F52),
    "signature 0": h.base_header(572, 0x0B, signature=0),
    "PacketSize 0": h.base_header(0, 0x0B),
    "PacketSize 15": h.base_header(15, 0x0B),
    "PacketSize 4 MiB + 1": h.base_header(MAX + 1, 0x03),
    "PacketSize 0x80000000": h.base_header(0x8000_0000, 0x03),
    "PacketSize 0xFFFFFFF0 and a SessionHeader": h.base_header(0xFFFF_FFF0, 0x13),
    "PacketSize 0xFFFFFFFF": h.base_header(HUGE, 0x03),
}


@pytest.mark.requirement("MQQB-3.1.5.1.2-01", "MQQB-3.1.5.1.2-02", "MQMQ-2.2.19.1-21", "MQQB-3.1.5.1.3-01")
@pytest.mark.parametrize("opened", [False, True], ids=["first", "open"])
@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_a_base_header_that_can_not_be_is_not_waited_behind(
    server: InThread, base: bytes, opened: bool
) -> None:
    is_refused(server, base, opened=opened)


def sized(packet: bytes, size: int) -> bytes:
    """A packet cut or padded to a size, with a PacketSize to match."""
    return packet[:8] + struct.pack("<L", size) + packet[12:size].ljust(size - 12, b"\0")


@pytest.mark.requirement("MQQB-3.1.5.1.3-01", "MQQB-2.2.3-01", "MQQB-2.2.2-01")
@pytest.mark.parametrize("size", [16, 17, 19, 20, 36, 51, 571, 573, 600])
def test_the_request_has_its_size(server: InThread, size: int) -> None:
    is_refused(server, sized(establish(), size), opened=False)


@pytest.mark.requirement("MQQB-3.1.5.1.3-01", "MQQB-2.2.6-01")
@pytest.mark.parametrize("size", [16, 19, 20, 35, 37, 52])
def test_a_session_acknowledgement_has_its_size(server: InThread, size: int) -> None:
    is_refused(server, sized(h.session_ack(), size))


@pytest.mark.requirement("MQQB-3.1.5.1.3-01")
@pytest.mark.parametrize("cut", [16, 40, 63, 64, 66, 100, 140, 160, -8, -1])
def test_a_message_that_is_cut_by_its_size(server: InThread, cut: int) -> None:
    packet = Message(b"sixteen bytes...", recoverable=True, label="label").bytes()
    is_refused(server, sized(packet, cut if cut > 0 else len(packet) + cut))


@pytest.mark.requirement("MQMQ-2.2.20-12")
@pytest.mark.parametrize("more", [1, 4, 64])
def test_bytes_behind_the_last_header_do_no_harm(server: InThread, more: int) -> None:
    """The packet behind them is found by PacketSize."""
    first, second = (Message(b"%d bytes, %s" % (more, name), recoverable=True) for name in (b"one", b"two"))
    with Session.opened(at(server)) as peer:
        peer.send(sized(first.bytes(), len(first.bytes()) + more))
        peer.send(second.bytes())
        until(lambda: {first.body, second.body} <= set(in_queue(server)), "both are in the queue")


# -- sizes and values within a message ------------------------------------------------------------------

USER = Message(recoverable=True).user()


def built(**parts: bytes) -> bytes:
    """A message with some parts replaced."""
    return h.user_message(**{"user": USER, **parts})


def named(length: int) -> bytes:
    """A message whose direct name claims a length."""
    packet = bytearray(built())
    struct.pack_into("<H", packet, 64, length)
    return bytes(packet)


def forms(dq: int = 7, aq: int = 0, *, dm: int = 1) -> bytes:
    """A message whose queues are named in these forms."""
    packet = bytearray(built())
    struct.pack_into("<L", packet, 60, h.MP | dm << 5 | dq << 10 | aq << 13)
    return bytes(packet)


MESSAGES = {
    **{f"MessageSize {size:#x}": built(properties=h.properties_header(body=b"body", message_size=size))
       for size in (5, 0x7FFFFFFF, 0xFFFFFFFC, HUGE)},
    **{f"AllocationBodySize {size:#x}":
       built(properties=h.properties_header(body=b"body", allocation_body_size=size))
       for size in (8, 0x7FFFFFFF, HUGE)},
    **{f"ExtensionSize {size:#x}": built(properties=h.properties_header(extension_size=size))
       for size in (4, 0x80000000, HUGE)},
    **{f"LabelLength {length}": built(properties=h.properties_header(label_length=length))
       for length in (2, 250, 251, 255)},
    **{f"Count {length}": named(length) for length in (0, 1, 0x33, 0x100, 0xFFFF)},
    **{f"DQ {form}": forms(form) for form in (1, 2, 4, 6)},
    **{f"AQ {form}": forms(aq=form) for form in (1, 4)},
    **{f"DM {mode}": forms(dm=mode) for mode in (2, 3)},
    "SecurityIDSize": built(security=h.security_header(sizes=(0xFFFF, 0, 0, 0, 0))),
    "SenderCertSize": built(security=h.security_header(sizes=(0, 0, 0, HUGE, 0))),
    "ProviderInfoSize": built(security=h.security_header(sizes=(0, 0, 0, 0, 0x7FFFFFFF))),
    "MQFAddressHeader": built(multi_queue=h.mqf_address_header(0x64, size=HUGE) + bytes(64)),
    "ElementCount": built(multi_queue=h.mqf_address_header(0x64, count=HUGE) + bytes(64)),
    "SoapHeader": built(soap=struct.pack("<HHL", 0x320, 0, HUGE) + bytes(16)),
    "no TransactionHeader": built()[:60] + struct.pack("<L", h.MP | h.TH | 0x1C20) + built()[64:],
}  # fmt: skip


@pytest.mark.requirement("MQQB-3.1.5.1.3-01", "MQMQ-2.2.19.2-22", "MQMQ-2.2.19.2-24")
@pytest.mark.parametrize("packet", MESSAGES.values(), ids=MESSAGES)
def test_a_message_that_can_not_be(server: InThread, packet: bytes) -> None:
    is_refused(server, packet)


def test_the_message_that_those_are_made_of_is_taken(server: InThread) -> None:
    for packet in (built(properties=h.properties_header(body=b"whole")), forms()):
        assert len(packet) < 300
        with Session.opened(at(server)) as peer:
            peer.send(packet)
            peer.sent = peer.recoverable_sent = 1
            assert peer.until_acknowledged() == []
    assert b"whole" in in_queue(server)


@pytest.mark.requirement("MQMQ-2.2.19.1-21")
def test_a_message_of_four_megabytes_is_taken(server: InThread) -> None:
    empty = len(Message(recoverable=True).bytes())
    message = Message(b"\xa5" * (MAX - empty), recoverable=True)
    assert len(message.bytes()) == MAX
    with Session.opened(at(server)) as peer:
        peer.push(message)
        assert peer.until_acknowledged() == []
    assert message.body in in_queue(server)
    is_refused(server, Message(b"\xa5" * (MAX - empty + 4), recoverable=True).bytes()[:4096])


@pytest.mark.requirement("MQMQ-2.2.20.5-13")
def test_a_place_in_a_sequence_is_not_zero(server: InThread) -> None:
    is_refused(server, Message(b"zero", direct(TX_QUEUE), tx=(1_000, 1, 0, 0)).bytes())


# -- garbage --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opened", [False, True], ids=["first", "open"])
@pytest.mark.parametrize("seed", range(5))
def test_garbage(server: InThread, seed: int, opened: bool) -> None:
    is_refused(server, random.Random(seed).randbytes(5_000), opened=opened)


@pytest.mark.parametrize(
    "text",
    [b"GET / HTTP/1.1\r\nHost: alpha\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32)],
    ids=["HTTP", "TLS"],
)
def test_another_protocol(server: InThread, text: bytes) -> None:
    is_refused(server, text, opened=False)


def test_what_came_whole_before_the_garbage_is_not_lost(server: InThread) -> None:
    with Session.opened(at(server)) as peer:
        peer.send(Message(b"before", recoverable=True).bytes() + random.Random(9).randbytes(64))
        peer.ended()
    assert in_queue(server).count(b"before") == 1


@pytest.mark.parametrize("seed", range(40))
def test_a_flipped_byte_does_no_harm(server: InThread, seed: int) -> None:
    """One bit of a handshake and three messages is flipped: the session ends or continues."""
    rng = random.Random(seed)
    messages = (Message(b"flip", wants=0x0F), Message(b"flip", recoverable=True, label="l"))
    transactional = Message(b"flip", direct(TX_QUEUE), tx=(1_000_000, seed + 1, 1, 0))
    packets = [
        establish(),
        parameters(),
        *(message.bytes() for message in (*messages, transactional)),
        h.session_ack(),
    ]
    stream = bytearray(b"".join(packets))
    offset = rng.choice([rng.randrange(52), rng.randrange(572, len(stream))])
    stream[offset] ^= 1 << rng.randrange(8)
    with Session.connect(at(server)) as peer:
        peer.send(bytes(stream))
        peer.finish()


# -- SessionHeader --------------------------------------------------------------------------------------

WRONG = {
    "UserMsgSequenceNumber 3": {"sent": 3},
    "UserMsgSequenceNumber 1": {"sent": 1},
    "RecoverableMsgSeqNumber 2": {"recoverable_sent": 2},
    "RecoverableMsgSeqNumber 0": {"recoverable_sent": 0},
    "WindowSize 0": {"window": 0},
}


@pytest.mark.requirement("MQQB-3.1.5.5.5-01", "MQMQ-2.2.20.4-14")
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_wrong_acknowledgement_counts_end_the_session(server: InThread, wrong: dict[str, int]) -> None:
    with Session.opened(at(server)) as peer:
        peer.push(Message(b"1"), Message(b"2", recoverable=True))
        peer.until_acknowledged()
        peer.acknowledge(**wrong)
        assert peer.ended() == []


@pytest.mark.requirement("MQQB-3.1.5.5.5-01", "MQMQ-2.2.20.4-11")
@pytest.mark.parametrize("wrong", [{"sent": 0}, {"sent": 2}, {"recoverable_sent": 0}])
def test_the_message_that_wrong_counts_ride_on_is_delivered(server: InThread, wrong: dict[str, int]) -> None:
    message = Message(b"rides", recoverable=True)
    before = in_queue(server).count(b"rides")
    with Session.opened(at(server)) as peer:
        peer.count(message)
        peer.send(message.bytes(session=peer.acknowledging_header(**wrong)))
        assert peer.ended() == []
    assert in_queue(server).count(b"rides") == before + 1


@pytest.mark.requirement("MQMQ-2.2.20.4-14")
def test_a_window_of_nothing_on_a_message_ends_the_session(server: InThread) -> None:
    message = Message(b"no window", recoverable=True)
    with Session.opened(at(server)) as peer:
        peer.count(message)
        peer.send(message.bytes(session=peer.acknowledging_header(window=0)))
        assert peer.ended() == []


def test_acknowledgements_of_what_was_never_sent_are_nothing(server: InThread) -> None:
    with Session.opened(at(server)) as peer:
        for wrong in (
            {"ack": 1}, {"ack": 0x7FFF}, {"ack": 0xFFFF}, {"recoverable_flags": HUGE},
            {"ack": 9, "recoverable_ack": 0xFFFF, "recoverable_flags": HUGE},
        ):  # fmt: skip
            peer.acknowledge(**wrong)
        peer.send(Message(b"goes on", recoverable=True).bytes())
        peer.sent = peer.recoverable_sent = 1
        assert peer.until_acknowledged() == []
        assert peer.fence() == []
