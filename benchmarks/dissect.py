"""Benchmark of reading a capture, compared with tshark.

    python benchmarks/dissect.py [MEGABYTES]

Generates a capture of sessions with messages of 1 KiB (100 MB by default), then reads it with `dissect`, with
and without linting, and with tshark printing seven TCP fields (it does not support MSMQ), one process each.
Prints frames and megabytes per second, and the peak resident memory.
"""

from __future__ import annotations

import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import msmqwire  # noqa: E402
from tests.support.captures import TcpConversation, pcap_bytes  # noqa: E402

MESSAGES = 2000  # per session
FIELDS = ("frame.time_epoch", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "tcp.seq", "tcp.len")
READ = """
import resource, sys, msmqwire
count = sum(1 for item in msmqwire.dissect(sys.argv[1], lint=sys.argv[2] == "lint"))
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def make(path: Path, megabytes: int) -> int:
    """Write the capture; return its number of frames."""
    rng = random.Random(1801)
    fields = {"UserHeader": {"DestinationQueue": {"DirectFormatName": "TCP:10.0.0.2\\private$\\orders"}}}
    messages = [
        msmqwire.build(
            {
                "packet": "UserMessage",
                "fields": {
                    **fields,
                    "MessagePropertiesHeader": {"Label": f"order {i}", "MessageBody": rng.randbytes(1024)},
                },
            }
        )
        for i in range(64)
    ]
    ack = msmqwire.build({"packet": "SessionAck"})
    greeting = [msmqwire.build({"packet": kind}) for kind in ("EstablishConnection", "ConnectionParameters")]
    frames, port = 0, 1023
    with path.open("wb") as file:
        file.write(pcap_bytes([]))
        while file.tell() < megabytes * 1_000_000:
            port += 1
            conversation = TcpConversation(("10.0.0.1", port), ("10.0.0.2", 1801), step_ns=10_000).handshake()
            for packet in greeting:
                conversation.send(packet).send(packet, by_client=False)
            for i in range(MESSAGES):
                conversation.send(messages[i % 64])
                if i % 32 == 31:
                    conversation.send(ack, by_client=False)
            file.write(pcap_bytes(conversation.close().frames)[24:])
            frames += len(conversation.frames)
    return frames


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sessions.pcap"
        frames = make(path, megabytes)
        size = path.stat().st_size / 1e6
        print(f"{size:.0f} MB, {frames} frames (Python {sys.version.split()[0]})")
        print(f"{'':<34} {'seconds':>8} {'frames/s':>10} {'MB/s':>7} {'MiB resident':>13}")
        for name, mode in (("msmqwire.dissect", "no"), ("msmqwire.dissect, judging", "lint")):
            start = time.perf_counter()
            process = subprocess.run(
                [sys.executable, "-c", READ, str(path), mode],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
            )
            seconds = time.perf_counter() - start
            memory = int(process.stdout.split()[1]) / 1024
            print(
                f"{name:<34} {seconds:>8.1f} {frames / seconds:>10.0f} {size / seconds:>7.1f} {memory:>13.0f}"
            )
        tshark = shutil.which("tshark")
        if tshark is None:
            print("tshark is not installed")
            return
        command = [tshark, "-r", str(path), "-T", "fields", *(part for f in FIELDS for part in ("-e", f))]
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        seconds = time.perf_counter() - start
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        name = "tshark, seven TCP fields"
        print(f"{name:<34} {seconds:>8.1f} {frames / seconds:>10.0f} {size / seconds:>7.1f} {memory:>13.0f}")


if __name__ == "__main__":
    main()
