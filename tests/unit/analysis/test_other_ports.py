"""Connections on unknown ports: recognised by the signature, every byte accounted for."""

from __future__ import annotations

import io

import pytest

import msmqwire
from tests.support.captures import TcpConversation, pcap_bytes

ACK = msmqwire.build({"packet": "SessionAck"})
MESSAGE = msmqwire.build(
    {"packet": "UserMessage", "fields": {"MessagePropertiesHeader": {"MessageBody": bytes(600)}}}
)


def dissected(conversation: TcpConversation) -> list[tuple[str, int, str]]:
    items = msmqwire.dissect(io.BytesIO(pcap_bytes(conversation.frames)), lint=False)
    return [(item.kind, item.size, item.reason) for item in items]


def conversation() -> TcpConversation:
    return TcpConversation(server=("10.0.0.2", 18010))


def test_bytes_before_the_first_packet_are_accounted_for() -> None:
    items = dissected(conversation().handshake().send(b"GREETING").send(ACK).close())
    assert items == [
        ("Skipped", 8, "before anything was recognised as MSMQ"),
        ("SessionAck", 36, ""),
    ]


def test_a_packet_that_begins_inside_a_segment_is_found() -> None:
    """The capture begins inside a message; its tail shares a segment with the next one."""
    late = conversation()
    late.send(MESSAGE[700:] + MESSAGE, by_client=False).send(ACK)
    items = dissected(late)
    assert [kind for kind, _, _ in items if kind != "Skipped"] == ["UserMessage", "SessionAck"]
    assert sum(size for _, size, _ in items) == len(MESSAGE[700:]) + len(MESSAGE) + len(ACK)


def test_the_other_direction_is_accounted_for_too() -> None:
    items = dissected(
        conversation()
        .handshake()
        .send(b"hello", by_client=False)
        .send(ACK)
        .send(ACK, by_client=False)
        .close()
    )
    assert items == [
        ("SessionAck", 36, ""),
        ("Skipped", 5, "before anything was recognised as MSMQ"),
        ("SessionAck", 36, ""),
    ]


@pytest.mark.parametrize("size", [1, 5, 11])
def test_a_header_in_tiny_segments_is_recognised(size: int) -> None:
    tiny = TcpConversation(server=("10.0.0.2", 18010), mss=size).handshake().send(ACK + MESSAGE).close()
    assert [kind for kind, _, _ in dissected(tiny)] == ["SessionAck", "UserMessage"]


def test_other_protocols_are_left_alone() -> None:
    assert (
        dissected(conversation().handshake().send(b"GET / LIOR 0x10\r\n\r\n").send(b"x" * 5000).close()) == []
    )


def test_stored_errors_keep_no_stack_frames() -> None:
    bad = bytes.fromhex("10000300 4c494f52 18000000 ffffffff 0000000000000000")
    capture = pcap_bytes(TcpConversation().handshake().send(bad).close().frames)
    [item] = msmqwire.dissect(io.BytesIO(capture))
    assert item.error is not None
    assert item.error.__traceback__ is item.error.__context__ is None
