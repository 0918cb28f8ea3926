"""The generated functions match the schemas and columns, and are used."""

from __future__ import annotations

import io
import subprocess
import sys

import msmqwire
from msmqwire.schema.layout import layout
from msmqwire.tables import record_batches
from msmqwire.tables.compiled.generated import FIELD_SLOTS
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.installed import library
from tests.support.paths import ROOT


def test_the_generated_code_is_up_to_date() -> None:
    library("ruff")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "generate" / "columnar_code.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_constant_offsets_are_those_of_the_layout() -> None:
    packet = msmqwire.parse(h.user_message(properties=h.properties_header(body=b"body")))
    offsets = {field.path: (field.offset, field.size) for field in layout(packet)}
    compared = 0
    for path, slot in FIELD_SLOTS["UserMessage"].items():
        if len(slot) == 3 and slot[0] == 0 and path in offsets:
            assert slot[1:] == offsets[path]
            compared += 1
    assert compared >= 8


def test_a_session_in_order_is_not_passed_to_the_generic_reader() -> None:
    talk = c.TcpConversation().handshake().send(h.establish_connection())
    for number in range(50):
        talk.send(h.user_message(properties=h.properties_header(body=bytes(number * 100))))
        talk.send(h.session_ack(), by_client=False)
    dissection = msmqwire.dissect(io.BytesIO(c.pcap_bytes(talk.close().frames)), lint=False)
    rows = sum(batch.num_rows for batch in record_batches(dissection))
    assert (rows, dissection.records) == (101, len(talk.frames))
    assert (
        dissection.handed <= 2
    )  # its first frame sets the clock; the generic reader also sees that connection end
