"""Targets for PGM: packets, and a receiver and a source fed with any stream of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Address

from fuzz.readers.registry import target
from msmqwire.errors import MalformedPacket
from msmqwire.pgm import (
    Data,
    Nak,
    Nla,
    Opaque,
    OptFin,
    OptFragment,
    OptJoin,
    OptNakList,
    OptSyn,
    PgmPacket,
    PgmType,
    Poll,
    Polr,
    Spm,
    build_pgm,
    checksum_is_right,
    parse_pgm,
    read_pgm,
)
from msmqwire.pgm.effects import Deliver
from msmqwire.pgm.layouts import OptionFlags
from msmqwire.pgm.packet_json import fields_to_json
from msmqwire.pgm.receive_window import BUFFER_MAX, TIMERS_MAX, WINDOW_MAX
from msmqwire.pgm.receiver import SOURCES_MAX, Receiver, ReceiverSettings
from msmqwire.pgm.source import Source, SourceSettings

SOURCE, GROUP = IPv4Address("10.0.0.1"), IPv4Address("234.1.1.1")
GSI, PORT, GROUP_PORT = bytes.fromhex("a1a2a3a4a5a6"), 50_000, 8001
WAITS = (0.0, 0.001, 0.04, 1.0, 3.0, 400.0)
TICKS_MAX = 40


def _packets() -> Iterator[PgmPacket]:
    path = Nla(SOURCE)
    for body, kind, options, content in (
        (Spm(1, 0, 5, path), PgmType.SPM, (OptJoin(0),), b""),
        (Data(5, 0), PgmType.ODATA, (OptSyn(), OptFragment(5, 0, 9)), b"content"),
        (Data(6, 0), PgmType.RDATA, (OptFragment(5, 7, 9),), b"ds"),
        (Data(6, 0), PgmType.ODATA, (), b"a whole APDU"),
        (Spm(2, 0, 9, path), PgmType.SPM, (OptFin(),), b""),
        (Nak(3, path, Nla(GROUP)), PgmType.NCF, (OptNakList((4, 5)),), b""),
        (Poll(1, 2, 3, path, 4, 5, 6), PgmType.POLL, (), b""),
        (Polr(1, 2), PgmType.POLR, (), b""),
        (Opaque(b"what?"), 99, (), b""),
    ):
        yield PgmPacket(kind, PORT, GROUP_PORT, GSI, body, options, content)
    yield PgmPacket(PgmType.NAK, GROUP_PORT, PORT, GSI, Nak(0, path, Nla(GROUP)), (OptNakList((1, 2)),))


def _words() -> Iterator[bytes]:
    yield from (SOURCE.packed, GROUP.packed, b"\0\1\0\0", b"\0\2\0\0", GSI)
    yield from (number.to_bytes(4, "big") for number in (0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF))


@target(seeds=lambda: map(build_pgm, _packets()), words=_words, size_max=512)
def packets(data: bytes) -> None:
    """A packet comes back whole, and worked out anew it is the same packet with a right checksum."""
    right = checksum_is_right(data)
    try:
        packet, fault = read_pgm(data)
        assert build_pgm(packet) == data
        if fault is not None:
            raise fault
    except MalformedPacket as refusal:
        assert refusal.offset is not None
        assert 0 <= refusal.offset <= len(data)
        return
    assert not packet.trailing
    assert fields_to_json(packet)["Type"] == packet.Type
    anew = build_pgm(replace(packet, Checksum=None))
    assert checksum_is_right(anew)
    assert parse_pgm(anew) == replace(packet, Checksum=parse_pgm(anew).Checksum)
    assert anew == data or not right or packet.Checksum == 0
    assert packet.Options is not None
    assert bool(packet.options) == bool(packet.Options & OptionFlags.E) or isinstance(packet.body, Opaque)


def _sessions() -> Iterator[bytes]:
    built = [build_pgm(packet) for packet in _packets()]
    yield b"".join(bytes([1, len(data)]) + data for data in built)
    for data in built:
        yield bytes([2, len(data)]) + data


def _right(data: bytes) -> bytes:
    """Return a packet with a checksum that fits; bytes that are none as they are."""
    try:
        return build_pgm(replace(parse_pgm(data), Checksum=None))
    except MalformedPacket:
        return data


@target(seeds=_sessions, words=_words, size_max=1024)
def sessions(data: bytes) -> None:
    """Any packets, at any times: only effects come of them, and memory stays within its bounds."""
    now, at = 0.0, 0
    receiver = Receiver(ReceiverSettings(group=GROUP, group_port=GROUP_PORT), lambda: 0.5)
    source = Source(
        SourceSettings(gsi=GSI, port=PORT, group_port=GROUP_PORT, address=SOURCE, group=GROUP), 0.0
    )
    source.send(bytes(3000), 0.0)
    while at + 2 <= len(data):
        now += WAITS[data[at] % len(WAITS)]
        packet = _right(data[at + 2 : at + 2 + data[at + 1]])
        at += 2 + data[at + 1]
        for effect in receiver.received(packet, SOURCE, now):
            assert not isinstance(effect, Deliver) or len(effect.apdu) <= 0x10000
        source.received(packet, now)
        for _ in range(TICKS_MAX):
            due = min(receiver.next_time(), source.next_time())
            if due > now:
                break
            receiver.tick(now)
            source.tick(now)
        assert receiver.sources <= SOURCES_MAX
        assert receiver.kept <= (WINDOW_MAX + TIMERS_MAX) * receiver.sources
        assert receiver.buffered <= (BUFFER_MAX + 0x10000) * receiver.sources
