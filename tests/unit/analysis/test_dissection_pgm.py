"""PGM in captures: each packet, and the messages put together from them."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

import pytest

from msmqwire.analysis.dissection import Item, dissect
from msmqwire.analysis.dissection.pgm_sessions import PARTS_MAX, SESSIONS_MAX, Apdu, Lost, PgmSessions
from msmqwire.capture import Datagram
from msmqwire.capture.segment_buffer import SEGMENT_COST
from msmqwire.pgm import Data, OptFragment, OptRst, PgmPacket, PgmType, build_pgm
from msmqwire.pgm.receive_window import WINDOW_MAX
from msmqwire.srmp.message import SrmpMessage, parse_message
from tests.support import captures as c
from tests.support.capture import srmp_captures as s

MESSAGE = s.published("4.5")
PARTS = s.data_packets(MESSAGE, 1, 400)


def items(frames: Sequence[c.Frame] | list[bytes], **options) -> list[Item]:
    return list(dissect(io.BytesIO(c.pcap_bytes(frames)), **options))


def messages(packets: list[bytes]) -> list[Item]:
    """What else than packets there is in these, over UDP."""
    return [item for item in items(list(s.over_udp(packets))) if item.kind != "PgmPacket"]


@pytest.mark.requirement("SRMP-2.1.2-01", "SRMP-2.1.2-03")
@pytest.mark.parametrize(("carry", "transport"), [(s.over_udp, "udp"), (s.over_ip, "pgm")])
def test_lost_fragments_are_repaired_and_copies_change_nothing(carry, transport):
    packets = s.multicast_with_a_repair()
    found = items(list(carry(packets)))
    assert [item.raw for item in found if item.kind == "PgmPacket"] == packets
    first, second = (item for item in found if item.kind == "SrmpMessage")
    assert (first.raw, second.raw) == (MESSAGE, MESSAGE)
    assert (first.frames, second.frames) == ((2, 3, 4, 7), (6, 8, 9, 10))
    assert first.time_ns == found[6].time_ns > found[5].time_ns
    assert found.index(first) == 7  # behind the packet that completes it
    assert {(i.transport, i.stream, i.src, i.src_port, i.dst, i.dst_port) for i in found[:2]} == {
        (transport, None, s.SOURCE, 50_001, s.GROUP, s.PGM_PORT)
    }


def test_over_ipv6_and_in_fragments_of_ip():
    packet = s.data_packets(MESSAGE, 1, 5000)[0]
    found = items([c.ethernet(part) for part in c.fragments_6(c.ipv6(packet, protocol=113), 512)])
    assert [(item.kind, item.frames, item.src) for item in found] == [
        ("PgmPacket", (1, 2, 3), c.CLIENT_6), ("SrmpMessage", (1, 2, 3), c.CLIENT_6)
    ]  # fmt: skip


def test_a_packet_prints_with_the_names_of_the_rfc():
    (item,) = items(list(s.over_ip([PARTS[1]])))
    printed = json.loads(json.dumps(item.to_json()))
    assert printed["fields"] == {
        "SourcePort": 50_001, "DestinationPort": 3055, "Type": 4, "TypeName": "ODATA", "Options": 1,
        "Checksum": int.from_bytes(PARTS[1][6:8], "big"), "GSI": s.GSI.hex(), "TSDULength": 400,
        "Body": {"DataPacketSequenceNumber": 2, "TrailingEdgeSequenceNumber": 1},
        "OptionExtensions": [
            {"OptionType": 0, "Name": "OPT_LENGTH", "E": False, "OptionLength": 4, "TotalLength": 20},
            {"OptionType": 1, "Name": "OPT_FRAGMENT", "E": True, "OptionLength": 16, "Reserved": 0, "U": 0,
             "FirstSequenceNumber": 1, "Offset": 400, "Length": len(MESSAGE)},
        ],
        "Data": MESSAGE[400:800].hex(),
    }  # fmt: skip
    (spm,) = items(list(s.over_ip([s.spm(7, 1, 4)])))
    assert spm.to_json()["fields"]["Body"]["PathNLA"] == {"Address": s.SOURCE, "Reserved": 0}


def test_what_the_transmit_window_has_left_is_lost():
    following = s.data_packets(MESSAGE, 5, 400, trail=5)
    lost, message = messages([PARTS[0], *PARTS[2:], *following])
    assert (lost.kind, lost.size, lost.reason) == (
        "Skipped", 0, "not in the capture: sequence numbers 1 to 2 of PGM"
    )  # fmt: skip
    assert (message.raw, message.frames) == (MESSAGE, (4, 5, 6, 7))


def test_what_is_missing_at_the_end_of_the_capture_is_lost():
    (lost,) = messages([s.spm(0, 1, 0), PARTS[0], s.spm(1, 1, 4)])
    assert lost.reason == "not in the capture: sequence numbers 1 to 4 of PGM"
    assert messages([s.spm(0, 1, 0), *PARTS, s.spm(1, 1, 4)])[0].kind == "SrmpMessage"


def test_a_session_that_is_cancelled_waits_for_nothing():
    reset = PgmPacket(
        PgmType.ODATA, 50_001, s.PGM_PORT, s.GSI, Data(4, 1),
        (OptFragment(1, 1200, len(MESSAGE)), OptRst()), MESSAGE[1200:],
    )  # fmt: skip
    found = messages([*PARTS[:2], build_pgm(reset), PARTS[2]])
    assert [item.reason for item in found] == ["not in the capture: sequence numbers 1 to 3 of PGM"]
    assert found[0].frames == (3,)


def test_a_packet_with_a_wrong_checksum_is_reported_and_unused():
    damaged = PARTS[1][:-1] + bytes([PARTS[1][-1] ^ 1])
    found = items(list(s.over_udp([PARTS[0], damaged, *PARTS[2:], s.as_rdata(PARTS[1])])))
    assert [[finding.id for finding in item.findings] for item in found[:3]] == [[], ["PGM-CHECKSUM"], []]
    assert found[-1].raw == MESSAGE


def test_a_message_that_can_not_be_read_is_malformed():
    bad = MESSAGE.replace(b"<path", b"<pith")
    (item,) = messages(s.data_packets(bad, 1, 400))
    assert (item.kind, item.size, item.raw) == ("Malformed", len(bad), bad)
    assert item.error is not None
    assert item.error.path == "Envelope"
    assert messages(s.data_packets(b"another protocol", 1, 400)) == []


@pytest.mark.requirement("SRMP-2.1.2-04")
def test_the_header_of_a_message_does_not_matter():
    head, blank, entity = MESSAGE.partition(b"\r\n\r\n")
    for other in (head.replace(b"Content-Length: 1067", b"Content-Length: 5"), b"anything"):
        (item,) = messages(s.data_packets(other + blank + entity, 1, 400))
        assert (item.kind, item.raw) == ("SrmpMessage", other + blank + entity)
        assert isinstance(item.packet, SrmpMessage)
        assert item.packet.envelope == parse_message(MESSAGE).envelope
        assert "Envelope" in json.dumps(item.to_json())


def test_bytes_that_are_no_packet():
    (cut,) = items(list(s.over_ip([PARTS[0][:19]])))
    assert (cut.kind, cut.raw) == ("Malformed", PARTS[0][:19])
    assert cut.error is not None
    assert cut.error.path == "body.DataPacketSequenceNumber"
    name_lookup = c.udp_packet(b"a name?", c.CLIENT, 3055, c.SERVER, 53)
    assert items([c.ethernet(name_lookup)]) == []
    to_source = c.udp_packet(s.nak(3), c.SERVER, 3056, c.CLIENT, 50_001)
    assert [item.kind for item in items([c.ethernet(to_source)])] == ["PgmPacket"]


def test_a_source_that_begins_anew_far_away_is_followed_there():
    far = s.data_packets(MESSAGE, 1 << 31, 400, trail=1 << 31)
    assert [item.raw for item in messages([*PARTS, *far, *PARTS])] == [MESSAGE] * 3


# --- bounds ------------------------------------------------------------------------------------------------


def fed(sessions: PgmSessions, packet: PgmPacket, frame: int) -> list[Apdu | Lost]:
    datagram = Datagram("pgm", s.SOURCE, 50_001, s.GROUP, 3055, frame, (frame,), "", b"", 0, 0, 0, 0)
    return list(sessions.feed(datagram, packet))


def odata(number: int, *options: OptFragment, gsi: bytes = s.GSI, size: int = 1) -> PgmPacket:
    return PgmPacket(PgmType.ODATA, 50_001, 3055, gsi, Data(number, 1), options, bytes(size))


@pytest.mark.parametrize(("size", "kept"), [(1, WINDOW_MAX - 1), (5000, (1 << 20) // 5000)])
def test_what_waits_for_a_gap_is_bounded(size, kept):
    sessions = PgmSessions()
    assert len(fed(sessions, odata(1), 1)) == 1
    for number in range(3, 3 + kept):
        assert fed(sessions, odata(number, size=size), number) == []
    assert 0 < sessions.held < 2 << 20
    lost, *apdus = fed(sessions, odata(3 + kept, size=size), 3 + kept)
    assert isinstance(lost, Lost)
    assert (lost.first, lost.last, lost.frame) == (2, 2, 3 + kept)
    assert len(apdus) == kept + 1
    assert list(sessions.flush()) == []


def test_empty_fragments_take_no_memory_for_ever():
    sessions = PgmSessions()
    for number in range(1, 2 * PARTS_MAX):
        assert fed(sessions, odata(number, OptFragment(1, 0, 9), size=0), number) == []
    assert sessions.held <= SEGMENT_COST * PARTS_MAX


def test_sessions_are_bounded():
    sessions = PgmSessions()
    for number in range(2 * SESSIONS_MAX):
        part = odata(1, OptFragment(1, 0, 9), gsi=number.to_bytes(6, "big"))
        assert len(fed(sessions, part, number + 1)) == (number >= SESSIONS_MAX)
    assert len(list(sessions.flush())) == SESSIONS_MAX
    assert sessions.held == 0
