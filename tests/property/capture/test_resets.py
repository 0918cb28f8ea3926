"""Connections that are reset, refused or used again: the compiled scan and the generic reader agree."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.both_readers import assert_same, columnar

PACKET = h.user_message(properties=h.properties_header(label="label", body=b"body"))
SYN, SYN_ACK, BOTH = 0x02, c.ACK | 0x02, c.RST | c.ACK


def refused(port: int) -> list[c.Frame]:
    talk = c.TcpConversation(client=(c.CLIENT, port))
    return talk.segment(True, flags=SYN).segment(False, flags=BOTH, seq=0).frames


def reset(port: int, by_client: bool) -> list[c.Frame]:
    talk = c.TcpConversation(client=(c.CLIENT, port)).handshake().send(PACKET)
    return talk.reset(by_client).segment(not by_client).reset(not by_client).frames


def test_resets_need_no_generic_reader() -> None:
    for frames_of in (refused, lambda port: reset(port, True), lambda port: reset(port, False)):
        files = [c.pcap_bytes([frame for port in range(2000, 2050) for frame in frames_of(port)])]
        assert_same(files)
        assert columnar(files)[0].handed <= 2


@pytest.mark.parametrize("ahead", [-1, 0, 1, (1 << 30) - 1, 1 << 30])
def test_a_reset_counts_from_the_next_byte_on(ahead: int) -> None:
    talk = c.TcpConversation().handshake().send(PACKET)
    talk.segment(True, flags=c.RST, seq=1_001 + len(PACKET) + ahead).send(PACKET)
    assert_same([c.pcap_bytes(talk.frames)])


steps = st.one_of(
    st.tuples(
        st.booleans(),
        st.sampled_from([c.RST, BOTH, BOTH, SYN, SYN_ACK, c.ACK, c.FIN | c.ACK, c.RST | SYN, c.RST | c.FIN]),
        st.sampled_from([b"", b"", b"", PACKET, PACKET[:40], b"z"]),
        st.sampled_from([None, None, None, 0, 1_000, 1_001, 9_000, 9_001, 1_002]),
    ),
)


@given(
    opened=st.booleans(), sent=st.integers(0, 2), then=st.lists(steps, min_size=1, max_size=8),
    port=st.sampled_from([1801, 5999]), again=st.booleans(),
)  # fmt: skip
@settings(max_examples=max(200, settings.default.max_examples))
def test_any_segments_around_a_reset(
    opened: bool, sent: int, then: list[tuple[bool, int, bytes, int | None]], port: int, again: bool
) -> None:
    talk = c.TcpConversation(server=(c.SERVER, port))
    talk = talk.handshake() if opened else talk.segment(True, flags=SYN)
    for _ in range(sent):
        talk.send(PACKET)
    for by_client, flags, payload, seq in then:
        talk.segment(by_client, payload, flags, seq=seq)
    frames = [
        *talk.frames,
        *c.TcpConversation(server=(c.SERVER, port)).handshake().send(PACKET).frames * again,
    ]
    cut = len(frames) // 2
    assert_same([c.pcap_bytes(frames)])
    assert_same([c.pcap_bytes(frames[:cut]), c.pcap_bytes(frames[cut:])])
