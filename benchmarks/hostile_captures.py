"""Captures of hostile traffic, each of one kind, beside clean ones of the same sessions, for `hostile`.

The clean capture has the mixed sessions of `captures` without any disturbance. Those with malformed packets,
disorder, holes or fragments are the same sessions with only that changed; floods and garbage are made by
themselves. A seed determines each.
"""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.captures import (
    ACK,
    FIN,
    MSMQ,
    MSS,
    PSH,
    SYN,
    CaptureSummary,
    Conversation,
    Direction,
    Sessions,
    write_runs,
    write_sessions,
)
from benchmarks.hostile_packets import (
    LOST,
    SEED,
    UNDISTURBED,
    AlteredSessions,
    ChangedSessions,
    NamedSessions,
    message,
    of_path,
    refusals,
    signed_messages,
)
from benchmarks.messages import KIB

THIRD: Final = 1 / 3
TENTH: Final = 1 / 10
_OTHER_PORT: Final = 5999
"""A port on which a connection has to be recognised by what it carries."""

Runs = Iterator[list[bytes]]
Write = Callable[[Path, int], CaptureSummary]


class Case(NamedTuple):
    """A kind of traffic.

    Attributes:
        group: what the aim is for.
        title: what is done to the traffic.
        aim: the least share of the rate of its reference.
        write: writes a capture of a number of frames.
        reference: the clean traffic that it is compared with, by name.
    """

    group: str
    title: str
    aim: float
    write: Write
    reference: str = "clean"


# --- packets -----------------------------------------------------------------------------------------------


def _malformed(path: str, share: float, file: Path, frames: int) -> CaptureSummary:
    return write_sessions(file, frames, AlteredSessions([of_path(path)], share), seed=SEED)


def _changed(change: Callable[[bytes], bytes], share: float, file: Path, frames: int) -> CaptureSummary:
    return write_sessions(file, frames, ChangedSessions(change, share), seed=SEED)


def _all_refusals(file: Path, frames: int) -> CaptureSummary:
    return write_sessions(file, frames, AlteredSessions(list(refusals().values()), 1.0), seed=SEED)


def _signed(certificates: str, file: Path, frames: int) -> CaptureSummary:
    return write_sessions(file, frames, AlteredSessions(signed_messages(certificates), 1.0), seed=SEED)


def _response_at_admin(file: Path, frames: int) -> CaptureSummary:
    """Write messages whose ResponseQueue is where an AdminQueue is that says no queue manager."""
    packets = []
    for number in range(512):
        queues = {
            "AdminQueue": {"DirectFormatName": f"OS:server{number}\\admin"},
            "ResponseQueue": {"PrivateQueueIdentifier": number},
            "Flags": {"RQ": 4},
        }
        packets.append(message(KIB, UserHeader=queues).data)
    return write_sessions(file, frames, AlteredSessions(packets, 1.0), seed=SEED)


def _named(file: Path, frames: int) -> CaptureSummary:
    return write_sessions(file, frames, NamedSessions(), seed=SEED)


def _signatures_in_bodies(file: Path, frames: int) -> CaptureSummary:
    packet = message(b"LIOR" * (KIB // 4)).data
    return write_sessions(file, frames, AlteredSessions([packet], 1.0), seed=SEED)


# --- segments ----------------------------------------------------------------------------------------------


class Segmented(Conversation):
    """A connection that sends its data in segments of its own making, every second of them acknowledged."""

    def send(self, by_client: bool, data: bytes) -> None:
        direction, seq = self._directions[by_client], self._directions[by_client].seq
        for start, end in self.segments(len(data)):
            ack = self._directions[not by_client].seq
            part = data[start:end]
            self.frames.append(direction.frame(ACK | PSH, seq + start, ack, part))
            direction.seq = max(direction.seq, seq + end)
            self._unacknowledged += 1
            if self._unacknowledged & 1 == 0:
                self.control(not by_client, ACK)
        direction.seq = seq + len(data)

    def segments(self, size: int) -> Iterator[tuple[int, int]]:
        """Yield the start and the end of each segment of data of this size."""
        return self.whole(size, MSS)

    def whole(self, size: int, mss: int) -> Iterator[tuple[int, int]]:
        """Yield segments in order."""
        return ((at, min(at + mss, size)) for at in range(0, size, mss))


class OneByte(Segmented):
    """Segments of one byte."""

    def segments(self, size: int) -> Iterator[tuple[int, int]]:
        return self.whole(size, 1)


class _Small(Segmented):
    """Segments of which there are several to a packet, so that they can be out of order."""

    mss = 200

    def segments(self, size: int) -> Iterator[tuple[int, int]]:
        return self.whole(size, self.mss)


class Swapped(_Small):
    """Every second segment before the one that it follows."""

    def segments(self, size: int) -> Iterator[tuple[int, int]]:
        parts = list(self.whole(size, self.mss))
        for at in range(0, len(parts), 2):
            yield from reversed(parts[at : at + 2])


class Backwards(_Small):
    """Segments backwards, sixteen at a time."""

    def segments(self, size: int) -> Iterator[tuple[int, int]]:
        parts = list(self.whole(size, self.mss))
        for at in range(0, len(parts), 16):
            yield from reversed(parts[at : at + 16])


class Shuffled(_Small):
    """Segments in random order, sixteen at a time."""

    def segments(self, size: int) -> Iterator[tuple[int, int]]:
        parts = list(self.whole(size, self.mss))
        for at in range(0, len(parts), 16):
            some = parts[at : at + 16]
            yield from self._rng.sample(some, len(some))


class Twice(_Small):
    """Every segment twice."""

    def segments(self, size: int) -> Iterator[tuple[int, int]]:
        return (part for part in self.whole(size, self.mss) for _ in range(2))


class ShuffledTwice(Shuffled):
    """Every segment twice, in random order."""

    def segments(self, size: int) -> Iterator[tuple[int, int]]:
        parts = [part for part in self.whole(size, self.mss) for _ in range(2)]
        for at in range(0, len(parts), 16):
            some = parts[at : at + 16]
            yield from self._rng.sample(some, len(some))


class Overlapping(_Small):
    """Every segment with the last half of the one before it once more."""

    def segments(self, size: int) -> Iterator[tuple[int, int]]:
        return ((max(0, start - self.mss // 2), end) for start, end in self.whole(size, self.mss))


class OverlappingSwapped(_Small):
    """The same, every second segment before the one that it follows."""

    def segments(self, size: int) -> Iterator[tuple[int, int]]:
        parts = [(max(0, start - self.mss // 2), end) for start, end in self.whole(size, self.mss)]
        for at in range(0, len(parts), 2):
            yield from reversed(parts[at : at + 2])


class OneInHundredLost(_Small):
    """One of 100 segments is not in the capture."""

    lost = 0.01

    def segments(self, size: int) -> Iterator[tuple[int, int]]:
        return (part for part in self.whole(size, self.mss) if self._rng.random() >= self.lost)


class OneInTenLost(OneInHundredLost):
    """One of ten segments is not in the capture."""

    lost = 0.1


class Fragmented(Segmented):
    """Segments in IP packets in four fragments each."""

    def send(self, by_client: bool, data: bytes) -> None:
        before = len(self.frames)
        super().send(by_client, data)
        whole = self.frames[before:]
        del self.frames[before:]
        for frame in whole:
            self.frames += self.in_order(fragments(frame, self._rng.getrandbits(32)))

    def in_order(self, parts: list[bytes]) -> list[bytes]:
        """Return the fragments of a datagram in the order in which they arrive."""
        return parts


class FragmentedShuffled(Fragmented):
    """The same, in random order."""

    def in_order(self, parts: list[bytes]) -> list[bytes]:
        return self._rng.sample(parts, len(parts))


def fragments(frame: bytes, ident: int) -> list[bytes]:
    """Return the frames of an IP packet in four fragments, or the frame itself if it has no data."""
    six = frame[12:14] == b"\x86\xdd"
    at = 54 if six else 34
    end = at + struct.unpack_from("!H", frame, 18)[0] if six else 14 + struct.unpack_from("!H", frame, 16)[0]
    payload = frame[at:end]
    if len(payload) < 64:
        return [frame]
    step, frames = (len(payload) // 4 + 7) & ~7, []
    for start in range(0, len(payload), step):
        part, more = payload[start : start + step], start + step < len(payload)
        if six:
            head = frame[:18] + struct.pack("!HB", 8 + len(part), 44) + frame[21:54]
            head += struct.pack("!BBHI", frame[20], 0, start | more, ident)
        else:
            word = more << 13 | start // 8
            head = frame[:16] + struct.pack("!HHH", 20 + len(part), ident & 0xFFFF, word) + frame[22:34]
        frames.append((head + part).ljust(60, b"\0"))
    return frames


def _sessions_of(conversation: type[Conversation], file: Path, frames: int) -> CaptureSummary:
    return write_sessions(file, frames, Sessions(SEED, UNDISTURBED, conversation), seed=SEED)


# --- floods ------------------------------------------------------------------------------------------------


def _endpoints(number: int, port: int) -> tuple[Direction, Direction]:
    """Return both directions of the connection with this number."""
    client = f"10.{16 + (number >> 23 & 127)}.{number >> 15 & 255}.{1 + (number >> 23 & 1)}"
    ends = (client, 1024 + (number & 0x7FFF)), ("10.2.0.1", port)
    return Direction(*ends, 1000, padded=True), Direction(*ends[::-1], 2000, padded=False)


def _short_flows() -> Runs:
    """Yield connections of three frames: SYN, its answer, and a packet."""
    packet = message(64).data
    for number in range(1 << 30):
        there, back = _endpoints(number, MSMQ)
        yield [
            there.frame(SYN, 1000, 0), back.frame(SYN | ACK, 2000, 1001),
            there.frame(ACK | PSH, 1001, 2001, packet),
        ]  # fmt: skip


def _midstream_flows() -> Runs:
    """Yield connections of which only three segments are seen, a packet in each."""
    packet = message(64).data
    for number in range(1 << 30):
        there, _ = _endpoints(number, MSMQ)
        yield [there.frame(ACK | PSH, 1001 + len(packet) * n, 2001, packet) for n in range(3)]


def _syn_flood() -> Runs:
    for number in range(1 << 30):
        there, _ = _endpoints(number, MSMQ)
        yield [there.frame(SYN, 1000, 0)]


def _whole_flows() -> Runs:
    """Yield connections from their SYN to their FIN, with one packet each."""
    packet = message(64).data
    for number in range(1 << 30):
        there, back = _endpoints(number, MSMQ)
        end = 1001 + len(packet)
        yield [
            there.frame(SYN, 1000, 0), back.frame(SYN | ACK, 2000, 1001), there.frame(ACK, 1001, 2001),
            there.frame(ACK | PSH, 1001, 2001, packet), there.frame(FIN | ACK, end, 2001),
            back.frame(FIN | ACK, 2001, end + 1), there.frame(ACK, end + 1, 2002),
        ]  # fmt: skip


def _streams(data: bytes, port: int, *, streams: int = 64) -> Runs:
    """Yield segments of connections that carry these bytes again and again."""
    links = [_endpoints(number, port)[0] for number in range(streams)]
    for number, there in enumerate(links):
        back = _endpoints(number, port)[1]
        yield [there.frame(SYN, 1000, 0), back.frame(SYN | ACK, 2000, 1001)]
    stream, sent = data * (MSS // len(data) + 2), 0
    while True:
        for there in links:
            at = sent % len(data)
            yield [there.frame(ACK | PSH, 1001 + sent, 2001, stream[at : at + MSS])]
        sent += MSS


def _held(beginning: bytes) -> Runs:
    """Yield connections each with the beginning of a packet of 4 MiB, of which more never comes."""
    for number in range(1 << 30):
        there, back = _endpoints(number, MSMQ)
        yield [
            there.frame(SYN, 1000, 0), back.frame(SYN | ACK, 2000, 1001),
            there.frame(ACK | PSH, 1001, 2001, beginning),
        ]  # fmt: skip


def _beyond_gaps() -> Runs:
    """Yield connections each with 20 segments beyond a gap that is never filled."""
    for number in range(1 << 30):
        there, back = _endpoints(number, MSMQ)
        run = [there.frame(SYN, 1000, 0), back.frame(SYN | ACK, 2000, 1001)]
        yield run + [there.frame(ACK | PSH, 1011 + MSS * n, 2001, bytes(MSS)) for n in range(20)]


def _lone_fragments() -> Runs:
    """Yield first fragments of datagrams that are never complete."""
    there, _ = _endpoints(0, MSMQ)
    frame = there.frame(ACK | PSH, 1001, 2001, bytes(4 * MSS))
    for number in range(1 << 30):
        yield fragments(frame, number)[:1]


def _written(runs: Callable[[], Runs], file: Path, frames: int) -> CaptureSummary:
    return write_runs(file, frames, runs(), random.Random(SEED))


# --- all ---------------------------------------------------------------------------------------------------

CLEAN: Final = {
    "clean": Case("clean", "mixed sessions", 1.0, partial(_sessions_of, Segmented)),
    "clean-small": Case(
        "clean", "the same in segments of 200 bytes", 1.0, partial(_sessions_of, _Small), "clean-small"
    ),
}
"""Clean traffic to compare with: a frame of 200 bytes is read faster than one of 1460."""
_KINDS: Final = (
    "MessagePropertiesHeader.AllocationBodySize", "MessagePropertiesHeader.ExtensionSize",
    "MessagePropertiesHeader.LabelLength", "UserHeader.Flags.DQ", "UserHeader.DestinationQueue.Count",
    "SecurityHeader.SignatureSize",
)  # fmt: skip
_CERTIFICATES: Final = {
    "none": "without a certificate",
    "junk": "no certificate is one",
    "key": "all signatures wrong",
}
_HEADER: Final = struct.pack("<BBHIII", 0x10, 0, 3, 0x524F494C, 0x0040_0000, 0xFFFF_FFFF)


def _sessions_cases() -> dict[str, Case]:
    """All cases that are the clean sessions with one thing changed."""
    cases = {}
    for path in _KINDS:
        for share in (0.01, 0.1, 0.5):
            name = f"{path.rpartition('.')[2]}-{share:.0%}"
            title = f"{share:.0%} malformed: {path}"
            cases[name] = Case("malformed", title, THIRD, partial(_malformed, path, share))
    for kind, (what, change) in LOST.items():
        for share in (0.01, 0.1, 0.5):
            title = f"{share:.0%} lose synchronisation: {what}"
            cases[f"{kind}-{share:.0%}"] = Case("lost", title, TENTH, partial(_changed, change, share))
    cases["refusals"] = Case("malformed", "all malformed, each refusal in turn", THIRD, _all_refusals)
    title = "ResponseQueue of type 4, AdminQueue not private"
    cases["response-at-admin"] = Case("names", title, THIRD, _response_at_admin)
    cases["names"] = Case("names", "no name or label twice", THIRD, _named)
    for certificate, what in _CERTIFICATES.items():
        title = f"all messages signed, {what}"
        cases[f"signed-{certificate}"] = Case("signed", title, TENTH, partial(_signed, certificate))
    cases["LIOR-bodies"] = Case("garbage", "bodies full of LIOR", TENTH, _signatures_in_bodies)
    shapes: list[tuple[str, str, float, type[Conversation]]] = [
        ("one-byte", "disorder", THIRD, OneByte),
        ("swapped", "disorder", THIRD, Swapped),
        ("backwards", "disorder", THIRD, Backwards),
        ("shuffled", "disorder", THIRD, Shuffled),
        ("twice", "disorder", THIRD, Twice),
        ("shuffled-twice", "disorder", THIRD, ShuffledTwice),
        ("overlapping", "disorder", THIRD, Overlapping),
        ("overlapping-swapped", "disorder", THIRD, OverlappingSwapped),
        ("holes-1%", "holes", TENTH, OneInHundredLost),
        ("holes-10%", "holes", TENTH, OneInTenLost),
        ("fragments", "fragments", TENTH, Fragmented),
        ("fragments-shuffled", "fragments", TENTH, FragmentedShuffled),
    ]
    for name, group, aim, conversation in shapes:
        summary = (conversation.__doc__ or "").partition("\n")[0].rstrip(".")
        title = summary[0].lower() + summary[1:]
        reference = "clean-small" if issubclass(conversation, _Small | OneByte) else "clean"
        cases[name] = Case(group, title, aim, partial(_sessions_of, conversation), reference)
    return cases


def _flood_cases() -> dict[str, Case]:
    """All cases that are made by themselves."""
    floods: list[tuple[str, str, str, Callable[[], Runs]]] = [
        ("LIOR-other-port", "garbage", "nothing but LIOR, on another port",
         partial(_streams, b"LIOR", _OTHER_PORT)),
        ("LIOR", "garbage", "nothing but LIOR", partial(_streams, b"LIOR", MSMQ)),
        ("headers", "garbage", "headers that claim 4 MiB, and nothing else",
         partial(_streams, _HEADER, MSMQ)),
        ("headers-other-port", "garbage", "the same on another port",
         partial(_streams, _HEADER, _OTHER_PORT)),
        ("headers-among-text", "garbage", "a header in each 1000 bytes of text",
         partial(_streams, _HEADER + b"x" * 984, MSMQ)),
        ("short-flows", "floods", "flows of three frames", _short_flows),
        ("midstream-flows", "floods", "flows of three segments, without a SYN", _midstream_flows),
        ("whole-flows", "floods", "flows from SYN to FIN, a packet each", _whole_flows),
        ("SYN", "floods", "nothing but SYNs", _syn_flood),
        ("held", "limits", "flows with the beginning of a packet",
         partial(_held, _HEADER.ljust(MSS, b"\0"))),
        ("beyond-gaps", "limits", "flows with segments beyond a gap", _beyond_gaps),
        ("lone-fragments", "limits", "fragments of which the rest is missing", _lone_fragments),
    ]  # fmt: skip
    return {name: Case(group, title, TENTH, partial(_written, runs)) for name, group, title, runs in floods}


CASES: Final[dict[str, Case]] = {**CLEAN, **_sessions_cases(), **_flood_cases()}
"""All kinds of traffic, by name."""
