"""Captures of hostile traffic, each of one kind, beside clean ones of the same sessions, for `hostile`.

The clean capture has the mixed sessions of `captures` without any disturbance. Captures with malformed
packets, disorder, holes or fragments are the same sessions with only that changed; floods and garbage are
made by themselves. A seed determines each.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.support.captures import (
    ACK,
    MSMQ,
    MSS,
    PSH,
    CaptureSummary,
    Conversation,
    Sessions,
    write_runs,
    write_sessions,
)
from benchmarks.support.hostile_floods import (
    HEADER,
    Runs,
    bare_acks,
    beyond_gaps,
    cut_flows,
    far_segments,
    fragments,
    held,
    holes_among_headers,
    lone_fragments,
    midstream_flows,
    port_scan,
    post_flows,
    repeated,
    reset_flows,
    short_flows,
    syn_flood,
    syns_again,
    whole_flows,
)
from benchmarks.support.hostile_packets import (
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
from benchmarks.support.hostile_streams import (
    bare_headers,
    empty_records,
    false_headers,
    false_sizes,
    false_versions,
    http_heads,
    large_claims,
    ncp_fragments,
    overlaps,
    packets_among_claims,
    plain_http,
    reversed_windows,
    rpc_fragments,
    with_holes,
)
from benchmarks.support.messages import KIB

THIRD: Final = 1 / 3
TENTH: Final = 1 / 10
_OTHER_PORT: Final = 5999
"""A port on which a connection has to be recognised by its bytes."""

Write = Callable[[Path, int], CaptureSummary]


class Case(NamedTuple):
    """A kind of traffic.

    Attributes:
        group: the group of the aim.
        title: the change of the traffic.
        aim: the least share of the rate of its reference.
        write: writes a capture of a number of frames.
        reference: the clean traffic that it is compared with, by name.
        by_bytes: whether the share is of bytes a second, and a number of frames a second does as well.
    """

    group: str
    title: str
    aim: float
    write: Write
    reference: str = "clean"
    by_bytes: bool = False


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
    """Several segments for each packet, so that they can be out of order."""

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


def _sessions_of(conversation: type[Conversation], file: Path, frames: int) -> CaptureSummary:
    return write_sessions(file, frames, Sessions(SEED, UNDISTURBED, conversation), seed=SEED)


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
         partial(repeated, b"LIOR", _OTHER_PORT)),
        ("LIOR", "garbage", "nothing but LIOR", partial(repeated, b"LIOR", MSMQ)),
        ("headers", "garbage", "headers that claim 4 MiB, and nothing else",
         partial(repeated, HEADER, MSMQ)),
        ("headers-other-port", "garbage", "the same on another port",
         partial(repeated, HEADER, _OTHER_PORT)),
        ("headers-among-text", "garbage", "a header in each 1000 bytes of text",
         partial(repeated, HEADER + b"x" * 984, MSMQ)),
        ("short-flows", "floods", "flows of three frames", short_flows),
        ("midstream-flows", "floods", "flows of three segments, without a SYN", midstream_flows),
        ("whole-flows", "floods", "flows from SYN to FIN, a packet each", whole_flows),
        ("SYN", "floods", "nothing but SYNs", syn_flood),
        ("port-scan", "floods", "connections that are refused", port_scan),
        ("reset-flows", "floods", "flows of a packet that end with a reset", reset_flows),
        ("cut-flows", "floods", "flows that end inside a packet", cut_flows),
        ("bare-ACKs", "floods", "flows with only a single ACK", bare_acks),
        ("SYNs-again", "floods", "SYNs on the same ports again and again", syns_again),
        ("POST-flows", "floods", "flows with the head of an HTTP request", post_flows),
        ("far-segments", "disorder", "segments further away than any window", far_segments),
        ("holes-among-headers", "holes", "holes among headers of every size", holes_among_headers),
        ("held", "limits", "flows with the beginning of a packet",
         partial(held, HEADER.ljust(MSS, b"\0"))),
        ("beyond-gaps", "limits", "flows with segments beyond a gap", beyond_gaps),
        ("lone-fragments", "limits", "fragments without the rest", lone_fragments),
    ]  # fmt: skip
    return {name: Case(group, title, TENTH, partial(_written, runs)) for name, group, title, runs in floods}


def _stream_cases() -> dict[str, Case]:
    """All cases of streams that are hard to put in order or to find packets in, and of empty records."""
    streams: list[tuple[str, str, str, Callable[[], Runs]]] = [
        *(
            (f"holes-{size}-of-{every}{'-acked' if acked else ''}", "holes",
             f"one of {every} segments of {size} is missing{', acknowledged' if acked else ''}",
             partial(with_holes, size, every, acknowledged=acked))
            for acked in (False, True) for every in (2, 10) for size in (8, 200, MSS)
        ),
        *(
            (f"reversed-{size}-by-{window}", "disorder", f"segments of {size} backwards, {window} at a time",
             partial(reversed_windows, size, window))
            for size in (8, 200, MSS) for window in (64, 2000)
        ),
        ("reversed-one-stream", "disorder", f"the same of {MSS}, of one connection",
         partial(reversed_windows, MSS, 2000, 1)),
        ("overlaps-1460-by-146", "disorder", "each segment again with a tenth more",
         partial(overlaps, MSS, 146)),
        ("overlaps-1460-by-1", "disorder", "each segment again with one byte more",
         partial(overlaps, MSS, 1)),
        ("overlaps-1460-by-146-reversed", "disorder", "with a tenth more, backwards, 64 at a time",
         partial(overlaps, MSS, 146, window=64)),
        ("false-sizes", "garbage", "false headers with sizes up to 3000",
         partial(false_headers, false_sizes(3000), MSMQ)),
        ("false-sizes-large", "garbage", "false headers with sizes up to 200,000",
         partial(false_headers, false_sizes(200_000), MSMQ)),
        ("false-sizes-other-port", "garbage", "the same on another port",
         partial(false_headers, false_sizes(200_000), _OTHER_PORT)),
        ("false-versions", "garbage", "false headers with wrong versions",
         partial(false_headers, false_versions, MSMQ)),
        ("bare-headers", "garbage", "headers that say they are all of their packet",
         partial(false_headers, bare_headers, MSMQ)),
        ("large-claims", "garbage", "messages that promise 4 MiB",
         partial(false_headers, large_claims(), MSMQ)),
        ("large-claims-one-stream", "garbage", "the same, of one connection",
         partial(false_headers, large_claims(), MSMQ, 1)),
        ("packets-among-claims", "garbage", "whole messages among those that promise 4 MiB, of one stream",
         partial(false_headers, packets_among_claims(), MSMQ, 1)),
        ("HTTP-heads", "protocols", "HTTP requests without bodies, and answers", http_heads),
        ("HTTP", "protocols", "HTTP requests and answers that are none of SRMP", plain_http),
        ("RPC-fragments", "protocols", "fragments of RPC", rpc_fragments),
        ("NCP-fragments", "protocols", "fragments of NCP", ncp_fragments),
    ]  # fmt: skip
    cases = {
        name: Case(group, title, TENTH, partial(_written, runs), by_bytes=True)
        for name, group, title, runs in streams
    }
    title = "packed records without a byte"
    cases["empty-records"] = Case("files", title, TENTH, empty_records, by_bytes=True)
    return cases


CASES: Final[dict[str, Case]] = {**CLEAN, **_sessions_cases(), **_flood_cases(), **_stream_cases()}
"""All kinds of traffic, by name."""
