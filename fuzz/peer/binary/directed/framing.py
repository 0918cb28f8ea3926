"""Framing of packets in the stream: segments, halves, sizes: [MS-MQMQ] 2.2.19.1, [MS-MQQB] 3.1.5.1."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from fuzz.peer.binary import messages
from fuzz.peer.binary.cases import MALFORMED, OPENED, Draw, case, opened, send
from fuzz.peer.binary.live import with_counts
from fuzz.peer.steps import Case, Step
from msmqwire.headers.base import BASE_HEADER_SIZE, PACKET_SIZE_MAX

_SIZE: Final = ("MQMQ-2.2.19.1-19",)
"""PacketSize alone tells where a packet ends."""
_SESSION_SIZE: Final = ("MQMQ-2.2.19.1-20",)


def framing(draw: Draw) -> Iterator[Case]:
    """Return the cases of this module."""
    yield from _signature(draw)
    yield from _sizes(draw)
    yield from _segments(draw)
    yield from _halves(draw)


def _signature(draw: Draw) -> Iterator[Case]:
    source, ids = draw.source, ("MQQB-3.1.5.1.2-02",)
    text = "A packet with another version or signature ends the session."
    packet = draw.message()
    wrong = (
        ("BaseHeader.Signature", source.randrange(1 << 32), "a random signature"),
        ("BaseHeader.Signature", 0x4C494F52, "the signature in the other byte order"),
        ("BaseHeader.VersionNumber", source.choice([0, 0x0F, 0x11, 0x20, 0xFF]), "another version"),
    )
    for path, value, what in wrong:
        data = messages.changed(packet, path, value)
        yield case(ids, text, *OPENED, send(data, "closed", f"a UserMessage with {what}", ids))
    for steps, first in ((OPENED[:1], messages.establish()), (OPENED[:2], messages.parameters())):
        data = messages.changed(first, "BaseHeader.Signature", source.randrange(1 << 32))
        note = f"{first.schema.name} with a random signature"
        yield case(ids, text, *steps, send(data, "closed", note, ids))
    noise = source.randbytes(64).replace(b"\x10", b"\x11") + bytes(600)
    yield case(ids, text, OPENED[0], send(noise, "closed", "bytes that are not a packet", ids))
    web = b"GET / HTTP/1.1\r\nHost: msmqwire\r\n\r\n" + bytes(600)
    yield case(ids, text, OPENED[0], send(web, "closed", "a request of another protocol", ids))


def _sizes(draw: Draw) -> Iterator[Case]:
    source = draw.source
    packet = draw.message({"MessagePropertiesHeader": {"MessageBody": source.randbytes(100)}})
    whole = len(packet.to_bytes())
    text = "A PacketSize that no packet has ends the session."
    for size in (0, source.randrange(1, 15), BASE_HEADER_SIZE - 1):
        data = messages.changed(packet, "BaseHeader.PacketSize", size)
        ids = (MALFORMED, *_SIZE)
        yield case(ids, text, *OPENED, send(data, "closed", f"a PacketSize of {size}", ids))
    for size in (PACKET_SIZE_MAX + 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
        data = messages.changed(packet, "BaseHeader.PacketSize", size) + bytes(1 << 16)
        ids = ("MQMQ-2.2.19.1-21", MALFORMED)
        yield case(ids, text, *OPENED, send(data, "closed", f"a PacketSize of {size}", ids))
    text = "A PacketSize within the headers of the packet ends the session."
    for size in (BASE_HEADER_SIZE, 20, 63, source.randrange(24, whole - 104)):
        data = messages.changed(packet, "BaseHeader.PacketSize", size)
        ids = (MALFORMED, *_SIZE)
        yield case(ids, text, *OPENED, send(data, "closed", f"a UserMessage cut to {size} bytes", ids))
    cut = whole - source.randrange(4, 60) & ~3
    data = messages.changed(packet, "BaseHeader.PacketSize", cut)[:cut]
    ids = (MALFORMED, "MQMQ-2.2.19.3-15")
    text = "A body that goes beyond PacketSize ends the session."
    yield case(ids, text, *OPENED, send(data, "closed", "a body that goes beyond PacketSize", ids))


def _segments(draw: Draw) -> Iterator[Case]:
    source = draw.source
    text = "All packets of one segment are processed."
    for count in (2, 3, source.randrange(4, 20)):
        many = [draw.message(recoverable=bool(source.randrange(2)), wants=messages.PA) for _ in range(count)]
        data = b"".join(packet.to_bytes() for packet in many)
        yield case(_SIZE, text, *OPENED, send(data, "taken", f"{count} messages in one segment", _SIZE))
    first, second = draw.message(wants=messages.PA), draw.message(wants=messages.PA)
    ack = with_counts(messages.session_ack().to_bytes())
    data = first.to_bytes() + ack + second.to_bytes()
    note = "a message, a SessionAck and a message in one segment"
    yield case(_SIZE, text, *OPENED, send(data, "taken", note, _SIZE))
    carrier = draw.message({"SessionHeader": {}}, wants=messages.PA)
    data = with_counts(carrier.to_bytes()) + draw.message(wants=messages.PA).to_bytes()
    note = "a message with a SessionHeader and another one in one segment"
    yield case(_SESSION_SIZE, text, *OPENED, send(data, "taken", note, _SESSION_SIZE))
    sized = {"MessagePropertiesHeader": {"MessageBody": source.randbytes(source.randrange(1, 9000))}}
    data = draw.message(sized, wants=messages.PA).to_bytes() + draw.message(wants=messages.PA).to_bytes()
    note = "a long message and another one in one segment"
    yield case(_SIZE, text, *OPENED, send(data, "taken", note, _SIZE))
    large = {"MessagePropertiesHeader": {"MessageBody": source.randbytes(300_000)}}
    note = "a message of 300,000 bytes"
    step = send(draw.message(large, wants=messages.PA), "taken", note, _SIZE)
    yield case(_SIZE, "A large message is taken.", *OPENED, step)
    yield from _cut(draw)


def _cut(draw: Draw) -> Iterator[Case]:
    source = draw.source
    text = "Segments need not be packets."
    packet = draw.message(wants=messages.PA).to_bytes()
    two = packet + draw.message(wants=messages.PA).to_bytes()
    cuts = {
        "a message in segments of one byte at first": tuple(range(1, 40)),
        "a message in segments of one byte at its end": tuple(range(len(packet) - 24, len(packet))),
        "two messages in segments of random sizes": tuple(sorted(source.sample(range(1, len(two)), 12))),
        "two messages, cut in the header of the second": (len(packet) + source.randrange(1, 16),),
        "two messages, cut one byte before and after the end of the first": (
            len(packet) - 1,
            len(packet) + 1,
        ),
    }
    for note, places in cuts.items():
        data = packet if note.startswith("a ") else two
        yield case(_SIZE, text, *OPENED, send(data, "taken", note, _SIZE, cuts=places))
    carrier = with_counts(draw.message({"SessionHeader": {}}, wants=messages.PA).to_bytes())
    places = (len(carrier) - 16, len(carrier) - source.randrange(1, 16))
    note = "a message with a SessionHeader, cut before that and in it"
    yield case(_SESSION_SIZE, text, *OPENED, send(carrier, "taken", note, _SESSION_SIZE, cuts=places))
    establish, agree = OPENED[1], OPENED[2]
    yield case(
        _SIZE,
        text,
        OPENED[0],
        Step(
            "establish",
            data=establish.data,
            cuts=tuple(chain(range(1, 20), (source.randrange(20, 572),))),
            note="EstablishConnection in many segments",
        ),
        Step(
            "agree", data=agree.data, cuts=tuple(range(1, 32)), note="ConnectionParameters in many segments"
        ),
        send(draw.message(wants=messages.PA), "taken", "a message"),
    )


def _halves(draw: Draw) -> Iterator[Case]:
    """A packet that has begun and not ended must not keep the peer from other sessions."""
    source, ids = draw.source, ("MQQB-3.1.5.10-01",)
    text = "A packet that has begun on one connection keeps no other one waiting."
    whole = draw.message(wants=messages.PA)
    packet = whole.to_bytes()
    at = source.randrange(messages.place(whole, "MessagePropertiesHeader.Flags"), len(packet))
    places = {"half a message": at, "half a BaseHeader": source.randrange(1, 16), "a BaseHeader alone": 16}
    for note, size in places.items():
        yield case(
            ids,
            text,
            *OPENED,
            send(packet[:size], "open", note, ids),
            *opened(1),
            send(draw.message(wants=messages.PA), "taken", f"a message beside {note}", ids, 1),
            Step("settle"),
            send(packet[size:], "taken", f"the rest after {note}", ids),
        )
    for steps, first, kind in (
        (OPENED[:1], OPENED[1].data, "EstablishConnection"),
        (OPENED[:2], OPENED[2].data, "ConnectionParameters"),
    ):
        size, note = source.randrange(1, len(first)), f"half of {kind}"
        message = send(draw.message(wants=messages.PA), "taken", f"a message beside {note}", ids, 1)
        yield case(ids, text, *steps, send(first[:size], "", note, ids), *opened(1), message)
    silent = tuple(Step("connect", number) for number in range(1, 9))
    message = send(draw.message(wants=messages.PA), "taken", "a message beside silent connections", ids)
    yield case(ids, text, *silent, *OPENED, message)
    text = "A connection that ends within a packet harms no other one."
    large = messages.changed(draw.message(), "BaseHeader.PacketSize", PACKET_SIZE_MAX)
    for note, data in (("half a message", packet[:at]), ("the beginning of a message of 4 MiB", large)):
        for end in ("shutdown", "close", "reset"):
            yield case(
                ids,
                text,
                *OPENED,
                send(data, "", f"{note} and the end of the connection", ids),
                Step(end),
                *opened(1),
                send(draw.message(wants=messages.PA), "taken", "a message", ids, 1),
            )
    for count in (1, 2, 3):
        note = ("a connection", "EstablishConnection", "a session")[count - 1]
        yield case(
            ids,
            "A connection that is reset harms no other one.",
            *OPENED[:count],
            Step("reset"),
            *opened(1),
            send(draw.message(wants=messages.PA), "taken", f"a message after {note} and a RST", ids, 1),
        )
