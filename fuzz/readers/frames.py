"""Captures from scripts: bytes that encode the segments and datagrams, whole or not, and their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import pack
from typing import Final

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
BY_SERVER, OTHER, OUT_OF_ORDER, DATAGRAM = 0x01, 0x02, 0x04, 0x08
BEGINS, ENDS, RESETS, LATE = 0x10, 0x20, 0x40, 0x80
"""The bits of a step: sent by the server; in the second connection; at another sequence number than is due; a
UDP datagram; with SYN, FIN or RST; much later than the one before."""
STEP: Final = 4
"""Bytes of a step before its payload: bits, a distance or port, 16 bits of size."""
PAYLOAD_MAX: Final = 1400

_START_NS: Final = 1_700_000_000_000_000_000
_PORTS: Final = (1801, 1801, 80, 2103, 135, 2000)
_UDP_PORTS: Final = (3527, 53, 3055, 9)
_LATE_NS: Final = 31_000_000_000


def step(bits: int, number: int, payload: bytes = b"") -> bytes:
    """Return a step of a script."""
    return bytes([bits, number]) + len(payload).to_bytes(2, "big") + payload


def script_of(stream: bytes, by_server: bool, port_choice: int = 0) -> bytes:
    """Return the script of a whole connection in which one end sends a stream."""
    steps = [step(BEGINS, port_choice), step(BEGINS | BY_SERVER, port_choice)]
    for at in range(0, len(stream), PAYLOAD_MAX):
        steps.append(step(BY_SERVER if by_server else 0, port_choice, stream[at : at + PAYLOAD_MAX]))
    return b"".join([*steps, step(ENDS, port_choice), step(ENDS | BY_SERVER, port_choice)])


def capture_of(script: bytes) -> bytes:
    """Return a pcap file of Ethernet frames, as the script says."""
    head = pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 0x40000, 1)
    return head + b"".join(_records(_frames(script)))


def _records(frames: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
    for time_ns, frame in frames:
        seconds, fraction = divmod(time_ns, 1_000_000_000)
        yield pack("<IIII", seconds, fraction, len(frame), len(frame)) + frame


def _frames(script: bytes) -> Iterator[tuple[int, bytes]]:
    time_ns, at = _START_NS, 0
    due: dict[tuple[bool, bool], int] = {}
    while at + STEP <= len(script):
        bits, number = script[at], script[at + 1]
        size = int.from_bytes(script[at + 2 : at + STEP], "big") % (PAYLOAD_MAX + 1)
        payload = script[at + STEP : at + STEP + size]
        at += STEP + size
        time_ns += _LATE_NS if bits & LATE else 1_000_000
        by_server, other = bool(bits & BY_SERVER), bool(bits & OTHER)
        if bits & DATAGRAM:
            port = _UDP_PORTS[number % len(_UDP_PORTS)]
            content = pack("!HHHH", 40_000 + other, port, 8 + len(payload), 0) + payload
            yield time_ns, _packet(17, by_server, content)
            continue
        seq = due.get((by_server, other), 0xFFFF_FF00 if other else 1000)
        shown = (seq + (number - 128) * 8 if bits & OUT_OF_ORDER else seq) % (1 << 32)
        flags = ACK * (not bits & BEGINS or by_server)
        flags |= FIN * bool(bits & ENDS) | SYN * bool(bits & BEGINS) | RST * bool(bits & RESETS)
        ports = (50_000 + other, _PORTS[(number if other else 0) % len(_PORTS)])
        if by_server:
            ports = (ports[1], ports[0])
        ack = due.get((not by_server, other), 0)
        header = pack("!HHIIBBHHH", *ports, shown, ack, 5 << 4, flags, 0xFFFF, 0, 0)
        yield time_ns, _packet(6, by_server, header + payload)
        if not bits & OUT_OF_ORDER:
            due[by_server, other] = (seq + len(payload) + bool(bits & (BEGINS | ENDS))) % (1 << 32)


def _packet(protocol: int, by_server: bool, content: bytes) -> bytes:
    ends = (b"\x0a\0\0\1", b"\x0a\0\0\2")
    if by_server:
        ends = ends[::-1]
    head = pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(content), 0, 0, 64, protocol, 0, *ends)
    return bytes.fromhex("0200000000020200000000010800") + head + content
