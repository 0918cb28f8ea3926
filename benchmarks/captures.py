"""Writes captures for the benchmarks: mixed MSMQ sessions as a busy network shows them.

    python benchmarks/captures.py FILE [FRAMES]

Many TCP sessions at a time on port 1801, each with its handshake, greeting, messages, acknowledgements and
end; pings; about two frames in a hundred of other traffic (DNS, HTTP, ARP). Of the segments with data, about
one in a hundred each comes out of order and twice, one in two hundred is late, one in a thousand missing; one
packet in a thousand can't be read. One seed makes one capture, and a shorter capture is the beginning of a
longer one, but for the packets that its end cuts off. Checksums are 0.
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.messages import Packets, Template, message_of

ACTIVE: Final = 64
"""Sessions at a time."""
MSS: Final = 1460
START_US: Final = 1_772_366_400_000_000
FIN, SYN, PSH, ACK = 0x01, 0x02, 0x08, 0x10
MSMQ, PING, HTTP, DNS = 1801, 3527, 80, 53

_FILE_HEADER: Final = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0x40000, 1)
_RECORD: Final = struct.Struct("<IIII")
_MACS: Final = bytes.fromhex("020000000002020000000001")
_IPV4: Final = struct.Struct("!12sHBBHHHBBH8s")
_IPV6: Final = struct.Struct("!12sHIHBB32s")
_TCP: Final = struct.Struct("!HHIIBBHHH")
_UDP: Final = struct.Struct("!HHHH")
_LEAST: Final = 60
"""Bytes of an Ethernet frame as it is received; shorter ones are padded."""


class Made(NamedTuple):
    """What was written.

    Attributes:
        frames: records of the file.
        packets: MSMQ packets, pings, lost and broken ones included, and the last few that the end cuts off.
        bytes: size of the file.
    """

    frames: int
    packets: int
    bytes: int


Side = tuple[str, int]


class Way:
    """One direction between two sides: addresses, ports, and the next sequence number."""

    def __init__(self, src: Side, dst: Side, seq: int, *, padded: bool) -> None:
        self._addresses = ip_address(src[0]).packed + ip_address(dst[0]).packed
        self._ports = src[1], dst[1]
        self._six, self._padded = ":" in src[0], padded
        self.seq = seq

    def frame(self, flags: int, seq: int, ack: int, payload: bytes = b"") -> bytes:
        """A frame with a TCP segment."""
        head = _TCP.pack(*self._ports, seq & 0xFFFF_FFFF, ack & 0xFFFF_FFFF, 0x50, flags, 0xFFFF, 0, 0)
        return self._ip(6, head + payload)

    def datagram(self, payload: bytes) -> bytes:
        """A frame with a UDP datagram."""
        return self._ip(17, _UDP.pack(*self._ports, 8 + len(payload), 0) + payload)

    def _ip(self, protocol: int, payload: bytes) -> bytes:
        size = len(payload)
        if self._six:
            return _IPV6.pack(_MACS, 0x86DD, 6 << 28, size, protocol, 64, self._addresses) + payload
        head = _IPV4.pack(
            _MACS, 0x0800, 0x45, 0, 20 + size, 0, 0x4000, 64, protocol, 0, self._addresses
        )  # fmt: skip
        frame = head + payload
        return frame.ljust(_LEAST, b"\0") if self._padded else frame


GOOD: Final = 0.02
"""Trouble of a good network: of 10,000 segments two overtaken, two sent again, one late or lost to the
capture; of a million packets 20 malformed."""
BAD: Final = 1.0
"""Trouble of a bad one: of 1,000 segments ten overtaken, ten sent again, five late, one lost to the capture;
of a thousand packets one malformed."""


class Talk:
    """A TCP connection; every call appends the frames it brings about to `frames`.

    The capture is made at the server: what comes from the client is padded, and may come out of
    order, twice, late or not at all.
    """

    def __init__(self, client: Side, server: Side, rng: random.Random, trouble: float = BAD) -> None:
        self.frames: list[bytes] = []
        self._rng, self._trouble = rng, trouble
        self._ways = {
            True: Way(client, server, rng.getrandbits(32), padded=True),
            False: Way(server, client, rng.getrandbits(32), padded=False),
        }
        self._late: dict[bool, tuple[bytes, int]] = {}  # a frame that will come, and the hole it leaves
        self._unacknowledged = 0

    def control(self, by_client: bool, flags: int) -> None:
        """A segment without data; SYN and FIN count one."""
        way = self._ways[by_client]
        ack = self._acknowledged(by_client) if flags & ACK else 0
        self.frames.append(way.frame(flags, way.seq, ack))
        way.seq += bool(flags & (SYN | FIN))

    def open(self) -> None:
        self.control(True, SYN)
        self.control(False, SYN | ACK)
        self.control(True, ACK)

    def close(self) -> None:
        self.control(True, FIN | ACK)
        self.control(False, FIN | ACK)
        self.control(True, ACK)

    def send(self, by_client: bool, data: bytes) -> None:
        """Data in segments; the other side acknowledges every second one."""
        way, random_, frames = self._ways[by_client], self._rng.random, self.frames
        for at in range(0, len(data), MSS):
            part = data[at : at + MSS]
            flags = ACK | PSH if at + MSS >= len(data) else ACK
            frame = way.frame(flags, way.seq, self._acknowledged(by_client), part)
            fate = random_() / self._trouble
            if fate > 0.026:
                frames.append(frame)
            elif fate < 0.01:  # overtaken
                frames.insert(max(0, len(frames) - 2), frame)
            elif fate < 0.02:  # sent again
                frames += (frame, frame)
            elif fate < 0.025 and by_client not in self._late:
                self._late[by_client] = frame, way.seq
            # else it is lost to the capture alone
            way.seq += len(part)
            self._unacknowledged += 1
            if self._unacknowledged & 1 == 0:
                self.control(not by_client, ACK)
            if self._unacknowledged & 7 == 0:
                self.catch_up()

    def catch_up(self) -> None:
        """What is late comes, and is acknowledged."""
        for by_client in list(self._late):
            self.frames.append(self._late.pop(by_client)[0])
            self.control(not by_client, ACK)

    def _acknowledged(self, by_client: bool) -> int:
        """Up to where this side has the other side's data."""
        late = self._late.get(not by_client)
        return late[1] if late else self._ways[not by_client].seq


class Sessions:
    """MSMQ sessions from one seed, each as bursts of frames."""

    def __init__(self, seed: int, trouble: float) -> None:
        self._rng, self._trouble = random.Random(seed), trouble
        self._packets = Packets(seed)
        self._count = 0
        self._message_id = 0
        self.packets = 0

    def pings(self) -> list[bytes]:
        """A ping and its answer."""
        rng = self._rng
        client, server = f"10.1.{rng.randrange(4)}.{rng.randrange(1, 250)}", f"10.2.0.{rng.randrange(1, 9)}"
        ping = self._packets.ping(rng.getrandbits(32))
        self.packets += 2
        return [
            Way((client, PING), (server, PING), 0, padded=True).datagram(ping),
            Way((server, PING), (client, PING), 0, padded=False).datagram(ping),
        ]

    def session(self) -> Iterator[list[bytes]]:
        """The bursts of the next session, 200 to 5000 frames in all."""
        rng, number = self._rng, self._count
        self._count += 1
        wanted = round(200 * 25 ** rng.random())
        net = "fd00::1:" if number % 20 == 7 else "10.1.0."
        far = "fd00::2:" if number % 20 == 7 else "10.2.0."
        client = f"{net}{1 + number % 250}", 49_152 + number % 16_000
        talk = Talk(client, (f"{far}{1 + number % 8}", MSMQ), rng, self._trouble)
        chosen = rng.sample(self._packets.common, 24)
        talk.open()
        for packet in self._packets.greeting:
            talk.send(True, packet)
            talk.send(False, packet)
        self.packets += 2 * len(self._packets.greeting)
        sent = 0
        tx = 0
        while wanted > 0:
            by_client = rng.random() > 0.1
            burst = []
            for _ in range(rng.randrange(1, 13)):
                template = self._message(chosen)
                tx += bool(template.sequence)
                self._message_id += 1
                sent += 1
                packet = template.sent(self._message_id, number, tx)
                burst.append(
                    rng.choice(self._packets.broken) if rng.random() < 0.001 * self._trouble else packet
                )
            for data in [b"".join(burst)] if rng.random() < 0.4 else burst:
                talk.send(by_client, data)
            answers = [self._packets.session_ack(sent)]
            if tx and rng.random() < 0.3:
                answers.append(self._packets.order_ack.sent(sent, number, tx))
            if tx and rng.random() < 0.1:
                answers.append(self._packets.final_ack.sent(sent, number, tx))
            talk.send(not by_client, b"".join(answers))
            talk.catch_up()
            self.packets += len(burst) + len(answers)
            wanted -= len(talk.frames)
            yield talk.frames
            talk.frames = []
        talk.close()
        yield talk.frames

    def _message(self, chosen: list[Template]) -> Template:
        return self._rng.choice(self._packets.large if self._rng.random() < 0.005 else chosen)


def _other(rng: random.Random) -> list[bytes]:
    """Traffic that is not MSMQ: a question to a name server, a page, or an address asked for."""
    client = f"10.1.0.{rng.randrange(1, 250)}"
    kind = rng.randrange(8)
    if kind < 4:
        sides = (client, rng.randrange(1024, 65_000)), ("10.2.0.53", DNS)
        name = b"\7server%d\7example\3com\0" % rng.randrange(1, 9)
        asked = rng.randbytes(2) + bytes.fromhex("01000001000000000000") + name + b"\0\1\0\1"
        told = (
            asked[:2]
            + bytes.fromhex("81800001000100000000")
            + asked[12:]
            + b"\xc0\x0c\0\1\0\1".ljust(16, b"\0")
        )
        return [
            Way(*sides, 0, padded=True).datagram(asked),
            Way(*sides[::-1], 0, padded=False).datagram(told),
        ]
    if kind < 6:
        arp = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + bytes(6) + ip_address(client).packed + bytes(10)
        return [(b"\xff" * 6 + _MACS[6:] + b"\x08\x06" + arp).ljust(_LEAST, b"\0")]
    talk = Talk((client, rng.randrange(1024, 65_000)), ("10.2.0.80", HTTP), rng)
    talk.open()
    talk.send(True, b"GET /orders HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
    talk.send(False, b"HTTP/1.1 200 OK\r\nContent-Length: 6000\r\n\r\n" + b"<p>order</p>" * 500)
    talk.catch_up()
    talk.close()
    return talk.frames


def _mixed(sessions: Sessions, rng: random.Random) -> Iterator[list[bytes]]:
    """Runs of frames without end, from `ACTIVE` sessions in turn by chance."""
    running = [sessions.session() for _ in range(ACTIVE)]
    bursts: list[list[bytes]] = [[] for _ in running]
    while True:
        chance = rng.random()
        if chance < 0.02:
            yield _other(rng)
        elif chance < 0.025:
            yield sessions.pings()
        at = rng.randrange(ACTIVE)
        burst = bursts[at]
        while not burst:
            burst = next(running[at], [])
            if not burst:
                running[at] = sessions.session()
        size = rng.randrange(1, 9)
        yield burst[:size]
        bursts[at] = burst[size:]


class _Writer:
    """A pcap file with times in microseconds."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._file.write(_FILE_HEADER)
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

    def close(self, packets: int) -> Made:
        size = self._file.tell()
        self._file.close()
        return Made(self.frames, packets, size)


def write(path: Path, frames: int, *, seed: int = 1801, trouble: float = GOOD) -> Made:
    """Writes a capture of mixed sessions with this many frames.

    `trouble` says how much is out of order, repeated, lost or malformed: `GOOD` to `BAD`.
    """
    sessions, rng, writer = Sessions(seed, trouble), random.Random(seed + 1), _Writer(path)
    for run in _mixed(sessions, rng):
        left = frames - writer.frames
        writer.write(run[:left], rng.randrange(1, 25))
        if left <= len(run):
            break
    return writer.close(sessions.packets)


def write_flow(path: Path, size: int) -> Made:
    """Writes one session, of about this many bytes of frames: messages of 64 KiB, one after the other."""
    message, rng, writer = message_of(64 << 10), random.Random(size), _Writer(path)
    talk = Talk(("10.9.0.1", 50_000), ("10.9.0.2", MSMQ), rng)
    talk.open()
    written, packets = 0, 0
    while written < size:
        packets += 1
        talk.send(True, message.sent(packets, 0, 0))
        talk.catch_up()
        written += sum(map(len, talk.frames))
        writer.write(talk.frames, 2)
        talk.frames = []
    talk.close()
    writer.write(talk.frames, 2)
    return writer.close(packets)


def main() -> None:
    path, frames = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    start = time.perf_counter()
    made = write(path, frames)
    seconds = time.perf_counter() - start
    megabytes = made.bytes / 1e6
    print(f"{made.frames} frames, {made.packets} packets, {megabytes:.0f} MB in {seconds:.1f} seconds")


if __name__ == "__main__":
    main()
