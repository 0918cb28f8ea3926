"""Messages with a UserHeader that few senders write: [MS-MQMQ] 2.2.19.2.

Every form of ResponseQueue is taken. A clear MP bit is refused, without loss of the other messages. Bytes
behind the last header do no harm.
"""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.packets import parse
from msmqwire.qm.model.enumerations import Relay
from tests.support import handmade
from tests.support.engine_harness import (
    OWN_ID,
    PEER_ADDRESS,
    PEER_ID,
    THIRD_ID,
    EngineHarness,
    harness_with_peer,
)
from tests.support.peers.handwritten_peer import DM, PA, direct
from tests.support.qm.queue_contents import bodies, messages

ADMIN_QUEUES = {
    0: b"",
    2: handmade.private_id(6),
    3: handmade.private_id(6),
    5: THIRD_ID.bytes_le,
    6: handmade.private_name(THIRD_ID.bytes_le, 6),
    7: direct("adm", "10.0.0.3")[1],
}
ADMIN_NAMES = {
    0: None,
    2: f"PRIVATE={PEER_ID}\\00000006",
    3: f"PRIVATE={OWN_ID}\\00000006",
    5: f"PUBLIC={THIRD_ID}",
    6: f"PRIVATE={THIRD_ID}\\00000006",
    7: r"DIRECT=TCP:10.0.0.3\private$\adm",
}
ADMIN_HOSTS = {2: PEER_ID, 3: OWN_ID, 6: THIRD_ID}
RESPONSE_QUEUES = {
    0: b"",
    1: b"",
    2: handmade.private_id(7),
    3: handmade.private_id(7),
    4: handmade.private_id(7),
    5: THIRD_ID.bytes_le,
    6: handmade.private_name(THIRD_ID.bytes_le, 7),
    7: direct("answers", "10.0.0.3")[1],
}


def response_name(form: int, admin: int) -> str | None:
    """The response queue by the table of [MS-MQMQ] 2.2.19.2."""
    if form == 1:
        return ADMIN_NAMES[admin]
    if form == 4:
        host = ADMIN_HOSTS.get(admin)
        return None if host is None else f"PRIVATE={host}\\00000007"
    return {
        0: None,
        2: f"PRIVATE={PEER_ID}\\00000007",
        3: f"PRIVATE={OWN_ID}\\00000007",
        5: f"PUBLIC={THIRD_ID}",
        6: f"PRIVATE={THIRD_ID}\\00000007",
        7: r"DIRECT=TCP:10.0.0.3\private$\answers",
    }[form]


@pytest.mark.requirement("MQMQ-2.2.19.2-27", "MQMQ-2.2.19.2-29", "MQMQ-2.2.19.2-30")
@pytest.mark.parametrize("admin", ADMIN_QUEUES)
@pytest.mark.parametrize("form", RESPONSE_QUEUES)
def test_each_form_of_response_queue_fits_each_admin_queue(form, admin):
    harness = EngineHarness()
    queue, peer = harness.queue(), harness.accept_session()
    peer.send_message(b"before")
    peer.send_message(
        b"asks for an answer",
        destination=(3, handmade.private_id(queue.private_queue_number)), address=OWN_ID.bytes_le,
        acks=PA if admin else 0, admin=(admin, ADMIN_QUEUES[admin]), response=(form, RESPONSE_QUEUES[form]),
        recoverable=True,
    )  # fmt: skip
    assert not peer.closed
    peer.send_message(b"after")
    assert bodies(queue) == [b"before", b"asks for an answer", b"after"]
    for messages_there in (messages(queue), messages(harness.restarted().find_queue())):
        (message,) = (message for message in messages_there if message.body == b"asks for an answer")
        assert (message.response and message.response.text) == response_name(form, admin)
        assert (message.administration and message.administration.text) == ADMIN_NAMES[admin]


# -- MP -------------------------------------------------------------------------------------------------


def lacking(peer, *, tx=None, properties=b"", recoverable=False, session=None, dm=DM, **user):
    """A message to the harness with MP clear, with or without the header that it denies.

    `session` has fields of a SessionHeader that acknowledges all received.
    """
    transaction = b"" if tx is None else handmade.transaction_header(number=tx[0], previous=tx[1])
    saved = recoverable or tx is not None
    peer.count_sent(recoverable=saved)
    user = {"destination": direct(), "message_id": next(peer.harness.message_ids), **user}
    return handmade.user_message(
        user=handmade.user_header(source=peer.identifier.bytes_le, flags=dm if saved else 0, **user),
        transaction=transaction,
        properties=properties,
        session=b"" if session is None else peer.acknowledging_header(**session),
        user_flags=0,
        flags=0 if tx else 3,
    )


HEADERS = pytest.mark.parametrize(
    "properties", [b"", handmade.properties_header(flags=0x0F, body=b"never")], ids=["absent", "denied"]
)


@pytest.mark.requirement("MQMQ-2.2.19.2-34", "MQQB-3.1.5.8.2-14")
@HEADERS
@pytest.mark.parametrize("recoverable", [False, True])
def test_a_message_without_properties_is_refused_and_counted(properties, recoverable):
    harness = EngineHarness()
    queue, admin, peer = harness.queue(), harness.queue("adm"), harness.accept_session()
    peer.send(
        peer.message(b"1", recoverable=recoverable)
        + lacking(peer, properties=properties, recoverable=recoverable, admin=direct("adm"))
        + peer.message(b"3", recoverable=recoverable)
    )
    assert not peer.closed
    assert (bodies(queue), bodies(admin)) == ([b"1", b"3"], [])
    harness.advance(20_000)
    (ack,) = peer.acks
    assert ack.ack == 3, "the number that the sender gave to the last message"
    assert (ack.recoverable_ack, ack.recoverable_flags) == ((1, 0b111) if recoverable else (0, 0))


@HEADERS
def test_a_sequence_goes_on_past_a_message_without_properties(properties):
    """Its position is taken, and its sender told by a FinalAck; a resent one is a duplicate."""
    harness = EngineHarness()
    queue, peer = harness.queue(transactional=True), harness.accept_session()
    bad = lacking(peer, tx=(2, 1), properties=properties, message_id=99)
    peer.send(peer.message(b"1", tx=(1, 0)), bad, peer.message(b"3", tx=(3, 2)), bad)
    peer.count_sent(recoverable=True)
    harness.advance(20_000)
    assert not peer.closed
    assert bodies(queue) == [b"1", b"3"]
    (final,) = (packet for packet in peer.all_packets if packet.kind == "FinalAck")
    assert (final.MessageClass, final.acknowledged_tx) == (0x8004, (2, 1, 2, 1))
    assert final.acknowledged_message == (PEER_ID.bytes_le, 99)
    order_acks = [packet.acknowledged_tx for packet in peer.all_packets if packet.kind == "OrderAck"]
    assert set(order_acks) == {(2, 1, 3, 2)}


def test_the_header_of_a_message_without_properties_is_heard():
    harness = harness_with_peer()
    harness.send(b"out")
    (peer,) = harness.called
    assert len(harness.transfer().table) == 1
    peer.send(lacking(peer, session={}))
    assert not peer.closed
    assert len(harness.transfer().table) == 0
    peer.send(lacking(peer, session={"sent": 1}))  # it is the second one
    assert peer.closed


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"destination": (4, handmade.private_id(5))}, id="no form of a queue"),
        pytest.param({"destination": (0, b"")}, id="no destination"),
        pytest.param({"destination": (7, b"\xff\xff" + bytes(40))}, id="a name past the end"),
        pytest.param({"destination": (7, b"\x10\x00")}, id="a name that would end in the SessionHeader"),
        pytest.param({"recoverable": True, "dm": 0x60}, id="DM 3"),
        pytest.param({"tx": (0, 0)}, id="no number"),
        pytest.param({"session": {"window": 0}}, id="no window"),
    ],
)
def test_a_malformed_message_without_properties_ends_the_session(wrong):
    harness = EngineHarness()
    peer = harness.accept_session()
    peer.send(lacking(peer, **({"session": {}} | wrong)))
    assert peer.closed


def test_a_message_without_properties_closes_an_unopened_session():
    harness = EngineHarness()
    peer = harness.accept_connection()
    peer.send(lacking(peer))
    assert peer.closed


# -- bytes behind the last header -----------------------------------------------------------------------

TAILS = pytest.mark.parametrize(
    "tail", [handmade.extension_header(0, 0), b"\xff", bytes(40)], ids=["extension", "byte", "zeros"]
)


@TAILS
@pytest.mark.parametrize("session", [False, True])
def test_a_message_with_bytes_behind_its_last_header_is_taken(tail, session):
    """As receivers of the real world do; the packets behind it are found."""
    harness = EngineHarness()
    queue, peer = harness.queue(), harness.accept_session()
    peer.send(
        peer.message(b"1", recoverable=True, trailing=tail, session=session),
        peer.message(b"2", recoverable=True),
    )
    assert not peer.closed
    assert bodies(queue) == [b"1", b"2"]
    assert bodies(harness.restarted().find_queue()) == [b"1", b"2"]


@TAILS
def test_bytes_behind_the_last_header_are_forwarded(tail):
    """A packet that is forwarded keeps them, also out of the store.

    With a DebugHeader, behind which the peer does not look for the end of the packet.
    """
    harness = EngineHarness(relay=Relay.ALL)
    unknown_peer = harness.accept_session(address="10.0.0.99", client=UUID(int=0x99))
    unknown_peer.send(
        unknown_peer.message(
            b"far",
            destination=direct(address=PEER_ADDRESS), address=PEER_ID.bytes_le, recoverable=True,
            trailing=tail, trace=THIRD_ID,
        )
    )  # fmt: skip
    harness = harness.restarted(relay=Relay.ALL)
    harness.resolve(PEER_ADDRESS)
    peer = harness.connect()
    peer.answer_handshake()
    (packet,) = peer.take("UserMessage")
    assert packet.body == b"far"
    assert parse(packet).TrailingData == tail
