"""The readers that `decode` and `spark` compare, each run in a separate process.

    python benchmarks/support/readers.py READER CAPTURE [--first SMALL] [--runs N] [--columns a,b,c]
    [--batch-rows N]

Reads the capture and prints a JSON object: `counted` rows or packets (0 if the reader does not say), `first`
the seconds of a first run over the small capture (start-up and compilation), `seconds` those of the fastest
run, `memory` the peak of resident MiB; or `missing`, the library that is not installed. Linux only: it
uses one core and reads /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

FIELDS: Final = (
    "frame.time_epoch", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "tcp.seq", "tcp.len",
)  # fmt: skip
BLOCK: Final = 1 << 20
"""Bytes of the file that the floor reads at a time; small enough to stay in a cache."""

Scan = Callable[[Any], tuple[int, int, int]]


class Request(NamedTuple):
    """The input; all but the path is for readers that make columns."""

    path: str
    columns: list[str] | None = None
    batch_rows: int = 65_536


Reader = Callable[[Request], int]


def columnar(request: Request) -> int:
    """Captures as record batches."""
    import msmqwire

    path, columns, batch_rows = request
    return sum(b.num_rows for b in msmqwire.read_capture(path, columns=columns, batch_rows=batch_rows))


def columnar_headers(request: Request) -> int:
    """The same without bodies."""
    from msmqwire.tables.columns import USUAL

    names = [column.name for column in USUAL if column.name != "body"]
    return columnar(request._replace(columns=names))


def generic(request: Request) -> int:
    """The same columns as `columnar`, packet by packet."""
    import msmqwire
    from msmqwire.tables.arrow.rows import batches
    from msmqwire.tables.columns import USUAL

    columns = list(USUAL)
    items = msmqwire.dissect(request.path, lint=False)
    return sum(batch.num_rows for batch in batches(items, columns, batch_rows=request.batch_rows))


def tshark(request: Request) -> int:
    """Seven fields of each frame."""
    if shutil.which("tshark") is None:
        raise ModuleNotFoundError(name="tshark")
    fields = [part for field in FIELDS for part in ("-e", field)]
    command = ["tshark", "-r", request.path, "-T", "fields", *fields]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return 0


def dpkt(request: Request) -> int:
    """Ethernet, IP and TCP headers, without the contents of segments."""
    import dpkt  # type: ignore[import-untyped]

    segments = 0
    with open(request.path, "rb") as file:
        for _, frame in dpkt.pcap.Reader(file):
            segments += isinstance(getattr(dpkt.ethernet.Ethernet(frame).data, "data", None), dpkt.tcp.TCP)
    return segments


def scapy(request: Request) -> int:
    """Its layers up to TCP, for all frames."""
    from scapy.layers.inet import TCP
    from scapy.utils import PcapReader

    with PcapReader(request.path) as reader:
        return sum(bool(TCP in packet) for packet in reader)


def construct(request: Request) -> int:
    """Frames by hand, then each packet by construct; out-of-order segments are skipped."""
    import construct as cs

    from msmqwire.errors import MalformedPacket
    from msmqwire.headers import BASE_HEADER, INTERNAL_HEADER
    from msmqwire.packets import CONNECTION_PARAMETERS, ESTABLISH_CONNECTION, SESSION_ACK, USER_MESSAGE
    from msmqwire.ping import PING, PING_PORT

    internal = {1: SESSION_ACK, 2: ESTABLISH_CONNECTION, 3: CONNECTION_PARAMETERS}
    held: dict[bytes, tuple[int, bytes]] = {}
    packets = 0
    for protocol, flow, seq, payload in _segments(request.path):
        if protocol == 17:
            if PING_PORT in struct.unpack("!HH", flow[-4:]):
                PING.construct.parse(payload)
                packets += 1
            continue
        due, data = held.get(flow, (seq, b""))
        if (seq - due) & 0x8000_0000:
            continue
        data = payload if seq != due else data + payload
        due = (seq + len(payload)) & 0xFFFF_FFFF
        while len(data) >= 16:
            base = BASE_HEADER.construct.parse(data)
            flags = struct.unpack_from("<H", data, 2)[0]
            size = base.PacketSize + (16 if flags & 0x18 == 0x10 else 0)
            if base.Signature != 0x524F494C or size < 16 or size > 4 << 20:
                data = b""
                break
            if size > len(data):
                break
            if flags & 8:
                kind = INTERNAL_HEADER.construct.parse(data[16:20])
                schema = internal[kind.Flags.PT]
            else:
                schema = USER_MESSAGE
            try:
                schema.construct.parse(data[:size])
                packets += 1
            except (cs.ConstructError, MalformedPacket):
                pass  # a broken packet; its size is known, the next one follows
            data = data[size:]
        held[flow] = due, data
    return packets


def floor(request: Request) -> int:
    """One compiled pass: record, IP, TCP, signature and PacketSize, and nothing more."""
    import numba  # type: ignore[import-untyped,import-not-found,unused-ignore]
    import numpy as np

    scan = _compiled(numba)
    block = bytearray(BLOCK)
    view, array = memoryview(block), np.frombuffer(block, np.uint8)
    packets = held = 0
    with open(request.path, "rb", buffering=0) as file:
        file.seek(24)
        while count := file.readinto(view[held:]):
            held += count
            at, in_block, _ = scan(array[:held])
            packets += in_block
            held -= at
            view[:held] = bytes(view[at : at + held])
    return packets


READERS: Final[dict[str, Reader]] = {
    reader.__name__: reader
    for reader in (columnar, columnar_headers, generic, tshark, dpkt, scapy, construct, floor)
}


def _segments(path: str) -> Iterator[tuple[int, bytes, int, bytes]]:
    """Protocol, addresses with ports, sequence number and payload of TCP segments with data and datagrams."""
    with open(path, "rb") as file:
        file.seek(24)
        while len(head := file.read(16)) == 16:
            frame = file.read(struct.unpack_from("<8xI", head)[0])
            kind = frame[12:14]
            if kind == b"\x08\0":
                at, protocol, addresses = 14 + 4 * (frame[14] & 15), frame[23], frame[26:34]
                end = 14 + struct.unpack_from("!H", frame, 16)[0]
            elif kind == b"\x86\xdd":
                at, protocol, addresses, end = 54, frame[20], frame[22:54], len(frame)
            else:
                continue
            flow = addresses + frame[at : at + 4]
            if protocol == 17:
                yield 17, flow, 0, frame[at + 8 : end]
            elif protocol == 6:
                seq = struct.unpack_from("!I", frame, at + 4)[0]
                payload = frame[at + 4 * (frame[at + 12] >> 4) : end]
                if payload:
                    yield 6, flow, seq, payload


def _scan(data: Any) -> tuple[int, int, int]:
    """Return the offset of the first incomplete record; the packets that begin a segment; their bytes."""
    at = packets = total = 0
    size = data.size
    while at + 16 <= size:
        length = data[at + 8] | data[at + 9] << 8 | data[at + 10] << 16 | data[at + 11] << 24
        end = at + 16 + length
        if end > size:
            break
        ip = at + 30
        at = end
        if ip + 40 > end:
            continue
        kind = data[ip - 2] << 8 | data[ip - 1]
        if kind == 0x0800:
            if data[ip + 9] != 6:
                continue
            tcp = ip + 4 * (data[ip] & 15)
            end = ip + (data[ip + 2] << 8 | data[ip + 3])
        elif kind == 0x86DD:
            if data[ip + 6] != 6:
                continue
            tcp = ip + 40
        else:
            continue
        if end > at or tcp + 20 > end:
            continue
        packet = tcp + 4 * (data[tcp + 12] >> 4)
        if packet + 12 > end:
            continue
        head = data[packet + 4 : packet + 11]
        if head[0] == 0x4C and head[1] == 0x49 and head[2] == 0x4F and head[3] == 0x52:  # LIOR
            packets += 1
            total += head[4] | head[5] << 8 | head[6] << 16
    return at, packets, total


def _compiled(numba: Any) -> Scan:
    global _kernel  # noqa: PLW0603 - compiled once in a process
    if _kernel is None:
        _kernel = numba.njit(_scan, boundscheck=False)
    return _kernel


_kernel: Scan | None = None


def resident() -> float:
    """Return the peak of resident MiB of this process, or of the largest child it has waited for."""
    status = Path("/proc/self/status").read_text()
    this = int(status.split("VmHWM:")[1].split()[0])  # ru_maxrss would count the process it was forked from
    return max(this, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024


def measured(
    reader: str,
    capture: Path,
    *,
    first: Path | None = None,
    runs: int = 1,
    columns: Sequence[str] = (),
    batch_rows: int = 65_536,
) -> dict[str, Any]:
    """Run this program for a reader in a process of its own; return the object that it prints."""
    command = [sys.executable, __file__, reader, str(capture)]
    command += ["--runs", str(runs), "--batch-rows", str(batch_rows)]
    command += ["--first", str(first)] if first else []
    command += ["--columns", ",".join(columns)] if columns else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{reader}: {done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("reader", choices=READERS)
    parser.add_argument("capture")
    parser.add_argument("--first")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--columns", type=lambda names: names.split(","))
    parser.add_argument("--batch-rows", type=int, default=65_536)
    args = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    reader, request = READERS[args.reader], Request(args.capture, args.columns, args.batch_rows)
    try:
        start = time.perf_counter()
        if args.first:
            reader(request._replace(path=args.first))
        first = time.perf_counter() - start
        taken = []
        for _ in range(args.runs):
            start = time.perf_counter()
            counted = reader(request)
            taken.append(time.perf_counter() - start)
    except ModuleNotFoundError as exc:
        print(json.dumps({"missing": exc.name}))
        return
    print(json.dumps({"counted": counted, "first": first, "seconds": min(taken), "memory": resident()}))


if __name__ == "__main__":
    main()
