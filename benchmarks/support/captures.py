"""Generate captures for the benchmarks: mixed MSMQ sessions as on a busy network.

    python benchmarks/support/captures.py FILE [FRAMES]

Many concurrent TCP sessions on port 1801, each with handshake, greeting, messages, acknowledgements and end;
pings; about 2 % of other traffic (DNS, HTTP, ARP). Of the segments with data, at `BAD` about 1 % each are out
of order or repeated, 0.5 % late, 0.1 % missing; 0.1 % of the packets are malformed. A seed determines the
capture, and a shorter capture is a prefix of a longer one, except for packets cut off at its end. Checksums
are 0.
"""

from __future__ import annotations

import random
import struct
import sys
import time
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.support.messages import Packets, Template, message_of

ACTIVE: Final = 64
"""Concurrent sessions."""
MSS: Final = 1460
START_US: Final = 1_772_366_400_000_000
FIN, SYN, PSH, ACK = 0x01, 0x02, 0x08, 0x10
MSMQ, PING, HTTP, DNS = 1801, 3527, 80, 53

FILE_HEADER: Final = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0x40000, 1)
_RECORD: Final = struct.Struct("<IIII")
_MACS: Final = bytes.fromhex("020000000002020000000001")
_IPV4: Final = struct.Struct("!12sHBBHHHBBH8s")
_IPV6: Final = struct.Struct("!12sHIHBB32s")
_TCP: Final = struct.Struct("!HHIIBBHHH")
_UDP: Final = struct.Struct("!HHHH")
_FRAME_SIZE_MIN: Final = 60
"""Minimum size of a received Ethernet frame in bytes; shorter ones are padded."""


class CaptureSummary(NamedTuple):
    """Size and contents of a generated capture.

    Attributes:
        frames: records of the file.
        packets: MSMQ packets and pings, including lost, malformed and truncated ones.
        bytes: size of the file in bytes.
    """

    frames: int
    packets: int
    bytes: int


Endpoint = tuple[str, int]


class Direction:
    """One direction between two endpoints: addresses, ports, and the next sequence number."""

    def __init__(self, src: Endpoint, dst: Endpoint, seq: int, *, padded: bool) -> None:
        self._addresses = ip_address(src[0]).packed + ip_address(dst[0]).packed
        self._ports = src[1], dst[1]
        self._is_ipv6, self._padded = ":" in src[0], padded
        self.seq = seq

    def frame(self, flags: int, seq: int, ack: int, payload: bytes = b"") -> bytes:
        """Return a frame with a TCP segment."""
        head = _TCP.pack(*self._ports, seq & 0xFFFF_FFFF, ack & 0xFFFF_FFFF, 0x50, flags, 0xFFFF, 0, 0)
        return self._ip(6, head + payload)

    def datagram(self, payload: bytes) -> bytes:
        """Return a frame with a UDP datagram."""
        return self._ip(17, _UDP.pack(*self._ports, 8 + len(payload), 0) + payload)

    def _ip(self, protocol: int, payload: bytes) -> bytes:
        size = len(payload)
        if self._is_ipv6:
            return _IPV6.pack(_MACS, 0x86DD, 6 << 28, size, protocol, 64, self._addresses) + payload
        head = _IPV4.pack(
            _MACS, 0x0800, 0x45, 0, 20 + size, 0, 0x4000, 64, protocol, 0, self._addresses
        )  # fmt: skip
        frame = head + payload
        return frame.ljust(_FRAME_SIZE_MIN, b"\0") if self._padded else frame


GOOD: Final = 0.02
"""Impairment of a good network: of 10,000 segments two out of order, two repeated, one late or missing from
the capture; of a million packets 20 malformed."""
BAD: Final = 1.0
"""Impairment of a bad one: of 1,000 segments ten out of order, ten repeated, five late, one missing from the
capture; of a thousand packets one malformed."""


class Conversation:
    """A TCP connection; every call appends its frames to `frames`.

    The capture is taken at the server: frames from the client are padded. Segments may be out of order,
    repeated, late or missing.
    """

    def __init__(
        self, client: Endpoint, server: Endpoint, rng: random.Random, impairment: float = BAD
    ) -> None:
        self.frames: list[bytes] = []
        self._rng, self._impairment = rng, impairment
        self._directions = {
            True: Direction(client, server, rng.getrandbits(32), padded=True),
            False: Direction(server, client, rng.getrandbits(32), padded=False),
        }
        self._late: dict[bool, tuple[bytes, int]] = {}  # a late frame, and the sequence number of its gap
        self._unacknowledged = 0

    def control(self, by_client: bool, flags: int) -> None:
        """Send a segment without data; SYN and FIN take one sequence number."""
        direction = self._directions[by_client]
        ack = self._acknowledged(by_client) if flags & ACK else 0
        self.frames.append(direction.frame(flags, direction.seq, ack))
        direction.seq += bool(flags & (SYN | FIN))

    def open(self) -> None:
        self.control(True, SYN)
        self.control(False, SYN | ACK)
        self.control(True, ACK)

    def close(self) -> None:
        self.control(True, FIN | ACK)
        self.control(False, FIN | ACK)
        self.control(True, ACK)

    def send(self, by_client: bool, data: bytes) -> None:
        """Send data in segments; the other side acknowledges every second one."""
        direction, random_, frames = self._directions[by_client], self._rng.random, self.frames
        for at in range(0, len(data), MSS):
            part = data[at : at + MSS]
            flags = ACK | PSH if at + MSS >= len(data) else ACK
            frame = direction.frame(flags, direction.seq, self._acknowledged(by_client), part)
            fate = random_() / self._impairment
            if fate > 0.026:
                frames.append(frame)
            elif fate < 0.01:  # out of order
                frames.insert(max(0, len(frames) - 2), frame)
            elif fate < 0.02:  # repeated
                frames += (frame, frame)
            elif fate < 0.025 and by_client not in self._late:
                self._late[by_client] = frame, direction.seq
            # otherwise it is missing from the capture
            direction.seq += len(part)
            self._unacknowledged += 1
            if self._unacknowledged & 1 == 0:
                self.control(not by_client, ACK)
            if self._unacknowledged & 7 == 0:
                self.catch_up()

    def catch_up(self) -> None:
        """Send the late segments and acknowledge them."""
        for by_client in list(self._late):
            self.frames.append(self._late.pop(by_client)[0])
            self.control(not by_client, ACK)

    def _acknowledged(self, by_client: bool) -> int:
        """Return the acknowledgement number of one side."""
        late = self._late.get(not by_client)
        return late[1] if late else self._directions[not by_client].seq


class Sessions:
    """MSMQ sessions generated from a seed, each as bursts of frames."""

    def __init__(self, seed: int, impairment: float, conversation: type[Conversation] = Conversation) -> None:
        self._rng, self._impairment = random.Random(seed), impairment
        self._conversation = conversation
        self._packets = Packets(seed)
        self._count = 0
        self._message_id = 0
        self.packets = 0

    def pings(self) -> list[bytes]:
        """Return a ping and its response."""
        rng = self._rng
        client, server = f"10.1.{rng.randrange(4)}.{rng.randrange(1, 250)}", f"10.2.0.{rng.randrange(1, 9)}"
        ping = self._packets.ping(rng.getrandbits(32))
        self.packets += 2
        return [
            Direction((client, PING), (server, PING), 0, padded=True).datagram(ping),
            Direction((server, PING), (client, PING), 0, padded=False).datagram(ping),
        ]

    def session(self) -> Iterator[list[bytes]]:
        """Yield the bursts of the next session, 200 to 5000 frames in all."""
        rng, number = self._rng, self._count
        self._count += 1
        remaining = round(200 * 25 ** rng.random())
        client_net = "fd00::1:" if number % 20 == 7 else "10.1.0."
        server_net = "fd00::2:" if number % 20 == 7 else "10.2.0."
        client = f"{client_net}{1 + number % 250}", 49_152 + number % 16_000
        server = f"{server_net}{1 + number % 8}", MSMQ
        conversation = self._conversation(client, server, rng, self._impairment)
        templates = rng.sample(self._packets.common, 24)
        conversation.open()
        for packet in self._packets.greeting:
            conversation.send(True, packet)
            conversation.send(False, packet)
        self.packets += 2 * len(self._packets.greeting)
        sent = 0
        tx = 0
        while remaining > 0:
            by_client = rng.random() > 0.1
            burst = []
            for _ in range(rng.randrange(1, 13)):
                template = self._message(templates)
                tx += bool(template.sequence)
                self._message_id += 1
                sent += 1
                burst.append(self.altered(template.sent(self._message_id, number, tx)))
            for data in [b"".join(burst)] if rng.random() < 0.4 else burst:
                conversation.send(by_client, data)
            answers = [self._packets.session_ack(sent)]
            if tx and rng.random() < 0.3:
                answers.append(self._packets.order_ack.sent(sent, number, tx))
            if tx and rng.random() < 0.1:
                answers.append(self._packets.final_ack.sent(sent, number, tx))
            conversation.send(not by_client, b"".join(answers))
            conversation.catch_up()
            self.packets += len(burst) + len(answers)
            remaining -= len(conversation.frames)
            yield conversation.frames
            conversation.frames = []
        conversation.close()
        yield conversation.frames

    def altered(self, packet: bytes) -> bytes:
        """Return the message that is sent in place of a well-formed one: mostly that itself."""
        broken = self._rng.random() < 0.001 * self._impairment
        return self._rng.choice(self._packets.broken) if broken else packet

    def _message(self, templates: list[Template]) -> Template:
        return self._rng.choice(self._packets.large if self._rng.random() < 0.005 else templates)


def _other_traffic(rng: random.Random) -> list[bytes]:
    """Return traffic that is not MSMQ: a DNS query, an HTTP request or an ARP request, with the response."""
    client = f"10.1.0.{rng.randrange(1, 250)}"
    kind = rng.randrange(8)
    if kind < 4:
        endpoints = (client, rng.randrange(1024, 65_000)), ("10.2.0.53", DNS)
        name = b"\7server%d\7example\3com\0" % rng.randrange(1, 9)
        query = rng.randbytes(2) + bytes.fromhex("01000001000000000000") + name + b"\0\1\0\1"
        response = (
            query[:2]
            + bytes.fromhex("81800001000100000000")
            + query[12:]
            + b"\xc0\x0c\0\1\0\1".ljust(16, b"\0")
        )
        return [
            Direction(*endpoints, 0, padded=True).datagram(query),
            Direction(*endpoints[::-1], 0, padded=False).datagram(response),
        ]
    if kind < 6:
        arp = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + bytes(6) + ip_address(client).packed + bytes(10)
        return [(b"\xff" * 6 + _MACS[6:] + b"\x08\x06" + arp).ljust(_FRAME_SIZE_MIN, b"\0")]
    conversation = Conversation((client, rng.randrange(1024, 65_000)), ("10.2.0.80", HTTP), rng)
    conversation.open()
    conversation.send(True, b"GET /orders HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
    conversation.send(False, b"HTTP/1.1 200 OK\r\nContent-Length: 6000\r\n\r\n" + b"<p>order</p>" * 500)
    conversation.catch_up()
    conversation.close()
    return conversation.frames


def _mixed(sessions: Sessions, rng: random.Random) -> Iterator[list[bytes]]:
    """Yield runs of frames endlessly, from `ACTIVE` sessions in random order."""
    running = [sessions.session() for _ in range(ACTIVE)]
    bursts: list[list[bytes]] = [[] for _ in running]
    while True:
        chance = rng.random()
        if chance < 0.02:
            yield _other_traffic(rng)
        elif chance < 0.025:
            yield sessions.pings()
        index = rng.randrange(ACTIVE)
        burst = bursts[index]
        while not burst:
            burst = next(running[index], [])
            if not burst:
                running[index] = sessions.session()
        size = rng.randrange(1, 9)
        yield burst[:size]
        bursts[index] = burst[size:]


class _Writer:
    """Writer of a pcap file with times in microseconds."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._file.write(FILE_HEADER)
        self._time_us = START_US
        self.frames = 0

    def write(self, frames: list[bytes], step_us: int) -> None:
        out = []
        for frame in frames:
            self._time_us += step_us
            size = len(frame)
            out.append(_RECORD.pack(*divmod(self._time_us, 1_000_000), size, size))
            out.append(frame)
        self._file.write(b"".join(out))
        self.frames += len(frames)

    def close(self, packets: int) -> CaptureSummary:
        size = self._file.tell()
        self._file.close()
        return CaptureSummary(self.frames, packets, size)


def write(path: Path, frames: int, *, seed: int = 1801, impairment: float = GOOD) -> CaptureSummary:
    """Write a capture of mixed sessions with this many frames.

    `impairment` is the share that is out of order, repeated, lost or malformed: `GOOD` to `BAD`.
    """
    return write_sessions(path, frames, Sessions(seed, impairment), seed=seed)


def write_sessions(path: Path, frames: int, sessions: Sessions, *, seed: int = 1801) -> CaptureSummary:
    """Write a capture with this many frames of sessions, mixed, and of other traffic."""
    rng = random.Random(seed + 1)
    written = write_runs(path, frames, _mixed(sessions, rng), rng)
    return written._replace(packets=sessions.packets)


def write_runs(path: Path, frames: int, runs: Iterator[list[bytes]], rng: random.Random) -> CaptureSummary:
    """Write the first frames of runs, up to this many; its packets are not counted."""
    writer = _Writer(path)
    for run in runs:
        remaining = frames - writer.frames
        writer.write(run[:remaining], rng.randrange(1, 25))
        if remaining <= len(run):
            break
    return writer.close(0)


def write_flow(path: Path, size: int) -> CaptureSummary:
    """Write one session of about this many bytes of frames: consecutive messages of 64 KiB."""
    message, rng, writer = message_of(64 << 10), random.Random(size), _Writer(path)
    conversation = Conversation(("10.9.0.1", 50_000), ("10.9.0.2", MSMQ), rng)
    conversation.open()
    written, packets = 0, 0
    while written < size:
        packets += 1
        conversation.send(True, message.sent(packets, 0, 0))
        conversation.catch_up()
        written += sum(map(len, conversation.frames))
        writer.write(conversation.frames, 2)
        conversation.frames = []
    conversation.close()
    writer.write(conversation.frames, 2)
    return writer.close(packets)


def main() -> None:
    path, frames = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    start = time.perf_counter()
    summary = write(path, frames)
    seconds = time.perf_counter() - start
    megabytes = summary.bytes / 1e6
    print(f"{summary.frames} frames, {summary.packets} packets, {megabytes:.0f} MB in {seconds:.1f} seconds")


if __name__ == "__main__":
    main()
