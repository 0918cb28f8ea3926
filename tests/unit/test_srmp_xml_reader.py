"""Names that strangers choose do not stay in memory."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from msmqwire.errors import MalformedPacket
from msmqwire.srmp import xml_reader
from msmqwire.srmp.envelope import parse_envelope
from msmqwire.srmp.message import parse_message
from tests.support.paths import ROOT, VECTORS

WINDOWS = parse_message(VECTORS.joinpath("srmp", "4.2.http").read_bytes()).envelope_bytes or b""
GROWTH = """
from msmqwire.srmp.envelope import parse_envelope
from msmqwire.srmp.xml_reader import in_own_thread
from tests.unit.test_srmp_xml_reader import WINDOWS, stranger

def megabytes():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20

def send(number):
    parse_envelope(stranger(number))

for number in range(5):
    send(number)
before = megabytes()
for number in range(5, 65):
    send(number)
print(megabytes() - before)
"""


def stranger(number: int) -> bytes:
    """An envelope with three thousand names that no other one has."""
    own = b"".join(b"<n%d.%d a%d.%d=''/>" % (number, one, number, one) for one in range(3000))
    return WINDOWS.replace(b"<se:Header>", b"<se:Header><x>" + own + b"</x>")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_new_names_are_forgotten():
    run = subprocess.run(
        [sys.executable, "-c", GROWTH], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    assert int(run.stdout) < 5, run.stdout


@pytest.mark.parametrize(
    ("change", "known"),
    [
        (lambda data: data, True),
        (lambda data: data.replace(b"20503", b"1"), True),
        (lambda data: data.replace(b"<action>MSMQ:", b"<action>MSMQ:a &gt; b > c"), True),
        (lambda data: data.replace(b"<to>", b"<too>"), False),
        (lambda data: data.replace(b"</to>", b"</too>"), False),
        (lambda data: data.replace(b"<to>", b"<to x='1'>"), False),
        (lambda data: data.replace(b"xmlns:se=", b"xmlns:sf=").replace(b"se:", b"sf:"), False),
        (lambda data: data.replace(b"srmp/", b"srmp/2"), False),
        (lambda data: data.replace(b"<to>", b" \t" * 8 + b"<to>"), False),
        (lambda data: data.replace(b"<to>", b"\r\n   <to>"), True),
        (lambda data: data.replace(b"<to>", b"<!-- --><to>"), False),
        (lambda data: data + b"<?a?>", False),
    ],
)
def test_what_is_read_in_a_thread_of_its_own(change, known):
    assert xml_reader.has_known_names(change(WINDOWS)) is known


def test_what_goes_wrong_there_is_told_here():
    with pytest.raises(MalformedPacket):
        parse_envelope(b"<n><m></n>")
    before = threading.active_count()
    assert xml_reader.parse_xml(b"<n/>").tag == "n"
    assert threading.active_count() == before
