"""Lines and frames of the control channel are cut out of the stream wherever its segments end."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.errors import MalformedPacket
from msmqwire.qm.model.message import Message
from msmqwire.qm.runtime import control_frames
from msmqwire.qm.runtime.control_frames import Incoming, message_frame
from msmqwire.qm.runtime.message_record import write_record

Got = list[bytes | tuple[int, int, bytes]]


def fed(*segments: bytes) -> Got:
    got: Got = []
    incoming = Incoming(got.append, lambda *message: got.append(message))
    for segment in segments:
        incoming.feed(segment)
    return got


def header(length: int, kind: int = 1, zero: int = 0) -> bytes:
    return struct.pack("<BBHIIQ", 0, kind, zero, length, 7, 9)


@given(
    st.lists(st.binary(max_size=300) | st.text(st.characters(codec="ascii"), max_size=50), max_size=6),
    st.lists(st.integers(1, 400), max_size=20),
)
def test_what_is_sent_is_got_in_its_order(sent: list[bytes | str], cuts: list[int]) -> None:
    stream, expected = b"", list[object]()
    for number, part in enumerate(sent, 1):
        if isinstance(part, bytes):
            message = Message(body=part)
            stream += message_frame(number, 1 << 40, message)
            expected.append((number, 1 << 40, write_record(message)))
        else:
            line = b"{" + part.replace("\n", "").encode() + b"}"
            stream += line + b"\n"
            expected.append(line)
    segments, start = [], 0
    for size in cuts:
        segments.append(stream[start : start + size])
        start += size
    assert fed(*segments, stream[start:]) == expected
    assert fed(*(stream[at : at + 1] for at in range(len(stream)))) == expected


@pytest.mark.parametrize(
    "wrong, why",
    [
        (header(3, kind=2), "unknown kind 2"),
        (header(3, zero=1), "unknown kind"),
        (header((64 << 20) + 1), "may have 67,108,864"),
        (header(0xFFFFFFFF), "4,294,967,295 bytes"),
        (header(3) + b"abc", "3 bytes of a record"),
        (header(128) + bytes(96) + b"\1" + bytes(31), "129 by its lengths"),
    ],
)
def test_a_wrong_frame_is_refused_before_its_content_arrives(wrong: bytes, why: str) -> None:
    with pytest.raises(MalformedPacket, match=why):
        fed(b"{}\n", wrong)


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_frames, "RECORD_MAX", 10)
    assert fed(b"{" + b"x" * 9) == []
    with pytest.raises(MalformedPacket, match="more than 10 bytes"):
        fed(b"{" + b"x" * 9, b"x")
