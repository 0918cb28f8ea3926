"""Memory stays bounded while a large capture is dissected; measured in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.nightly import nightly
from tests.support.paths import ROOT
from tests.support.patience import limit

MEASURE = '''
import itertools, random, sys
from msmqwire.analysis.dissection import dissect
from tests.support import captures as c
from tests.support import handmade as h

name, size = sys.argv[1], int(sys.argv[2]) << 20
MESSAGE = h.user_message(properties=h.properties_header(body=bytes(20_000)))
FAKE = h.base_header(0x400000)


def resident(what):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) >> 10 for line in status if line.startswith(what))


def record(frame, number):
    seconds, rest = divmod(1_700_000_000_000_000 + number * 10, 1_000_000)
    return b"".join(n.to_bytes(4, "little") for n in (seconds, rest, len(frame), len(frame))) + frame


def segment(payload, number, seq, port=50_000, src=c.CLIENT):
    """Headers with checksums of zero, which nobody looks at: quick to make."""
    head = c.tcp(b"", src_port=port, seq=seq)[:16] + bytes(4)
    return record(c.ethernet(c.ipv4(head + payload, src)), number)


def flow():
    """An endless session of which every hundredth segment is missing."""
    data, seq = (MESSAGE * 8), 1
    for number in itertools.count():
        at = seq % len(MESSAGE)
        if number % 100 != 50:
            yield segment(data[at : at + 40_000], number, seq)
        seq = (seq + 40_000) & 0xFFFFFFFF


def hostile():
    """Headers that promise 4 MiB, in many connections at once."""
    fake = FAKE * 2500
    for number in itertools.count():
        yield segment(fake, number, 1 + number // 100 * len(fake), 2000 + number % 100)


def lonely():
    """Connections that send one packet and then fall silent, ten per second."""
    ack = h.session_ack()
    for number in itertools.count():
        yield segment(ack, number * 10_000, 1, 1000 + number % 60_000, f"10.1.0.{number // 60_000}")


class Capture:
    def __init__(self, records):
        self.records = records
        self.buffered = bytearray(c.pcap_bytes([]))
        self.consumed = 0

    def read(self, count):
        if self.consumed >= size:
            return b""
        while len(self.buffered) < count:
            self.buffered += next(self.records)
        data = bytes(self.buffered[:count])
        del self.buffered[:count]
        self.consumed += len(data)
        return data


before, packets, skipped = resident("VmRSS"), 0, 0
for item in dissect(Capture({"flow": flow, "hostile": hostile, "lonely": lonely}[name]())):
    packets += item.packet is not None
    skipped += item.kind == "Skipped"
print(resident("VmHWM") - before, packets, skipped)
'''


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "name, megabytes, growth_max",
    [("flow", 150, 100), ("hostile", 40, 100), pytest.param("lonely", 8, 90, marks=nightly)],
)
def test_memory_is_bounded(name, megabytes, growth_max):
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, name, str(megabytes)],
        capture_output=True, text=True, cwd=ROOT, timeout=limit(300), check=True,
    )  # fmt: skip
    growth, packets, skipped = map(int, done.stdout.split())
    assert (packets > 1000) == (name != "hostile")
    assert (skipped > 20) == (name != "lonely")
    assert growth < growth_max, f"it grew by {growth} MiB"
