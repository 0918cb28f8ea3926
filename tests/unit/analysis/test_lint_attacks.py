"""Attack shapes: packets malformed in known ways, and well-formed ones with a false range."""

from __future__ import annotations

import io
import struct
from typing import Any

import pytest

import msmqwire
from msmqwire.analysis.lint import checks, lint, lint_malformed
from msmqwire.schema.layout import layout
from tests.support import handmade as h
from tests.support.capture.lint_packets import brief, make
from tests.support.capture_files import pcap_bytes
from tests.support.captures import TcpConversation
from tests.support.paths import VECTORS
from tools.pages.conformance import read_tables

FORMATS = {1: "<B", 2: "<H", 4: "<I"}


def patched(name: str, **values: int) -> bytes:
    """The bytes of a clean packet with some fields overwritten; ``__`` stands for a dot."""
    packet = make(name)
    fields = {field.path: field for field in layout(packet)}
    data = bytearray(packet.to_bytes())
    for key, value in values.items():
        field = fields[key.replace("__", ".")]
        struct.pack_into(FORMATS[field.size], data, field.offset, value)
    return bytes(data)


def attacks(data: bytes, **options: Any) -> list[tuple[str, str, int]]:
    return [
        (finding.id, finding.path, finding.offset)
        for finding in lint(data, **options)
        if finding.severity == "ATTACK"
    ]


DATA_LENGTH = "SRMPEnvelopeHeader.DataLength"
HTTP = "CompoundMessageHeader.HTTPBodySize"
LISTS = "MultiQueueFormatHeader"


@pytest.mark.requirement("MQRR-2.2.5.1.2.1-04")
@pytest.mark.parametrize("length", [46, 200, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000008, 0xFFFFFFFF])
def test_queue_jumper(length: int) -> None:
    findings = lint(patched("http", SRMPEnvelopeHeader__DataLength=length))
    assert brief(findings) == [
        ("MQMQ-2.2.19.2-39", "MUST", "UserHeader.Flags.AH", 60),
        ("ATTACK-SRMP-LENGTH", "ATTACK", DATA_LENGTH, 184),
        ("MQRR-2.2.5.1.2.1-04", "MUST", DATA_LENGTH, 184),
    ]
    assert ("wraps" in findings[1].message) == (length >= 0x7FFFFFFF)


def test_a_length_that_wraps_is_reported_as_it_wraps() -> None:
    findings = lint(patched("http", SRMPEnvelopeHeader__DataLength=0x80000008))
    assert findings[1].message.endswith("in 32 bits this wraps to 16")


def test_a_length_that_fits_only_in_bytes() -> None:
    packet = make("http", {"SRMPEnvelopeHeader.DataLength": 110, "SRMPEnvelopeHeader.Data": "e" * 54})
    data = packet.to_bytes()
    assert msmqwire.parse(data).SRMPEnvelopeHeader.Data == "e" * 54
    assert attacks(data) == [("ATTACK-SRMP-LENGTH", DATA_LENGTH, 184)]


@pytest.mark.requirement("MQRR-2.2.5.1.2.2-04")
@pytest.mark.parametrize("size", [41, 0xFFFFFFFD, 0xFFFFFFFF])
def test_http_body_size(size: int) -> None:
    findings = lint(patched("http", CompoundMessageHeader__HTTPBodySize=size))
    assert brief(findings)[1:] == [
        ("ATTACK-HTTP-BODY-SIZE", "ATTACK", HTTP, 224),
        ("MQRR-2.2.5.1.2.2-04", "MUST", HTTP, 224),
    ]


@pytest.mark.requirement("MQRR-2.2.5.1.2.2-06")
@pytest.mark.parametrize(
    "offset, size", [(33, 8), (0xFFFFFFFF, 8), (0xFFFFFFF8, 8), (0, 41), (1, 0xFFFFFFFF)]
)
def test_a_body_outside_its_http_body(offset: int, size: int) -> None:
    values = {"CompoundMessageHeader__MsgBodyOffset": offset, "CompoundMessageHeader__MsgBodySize": size}
    findings = lint(patched("http", **values))
    path = "CompoundMessageHeader.MsgBodyOffset"
    assert ("ATTACK-BODY-RANGE", "ATTACK", path, 232) in brief(findings)
    assert ("MQRR-2.2.5.1.2.2-06", "MUST", path, 232) in brief(findings)
    assert ("wraps" in findings[-1].message) == (offset + size > 0xFFFFFFFF)


def test_all_lying_sizes_are_found_not_only_the_first() -> None:
    data = patched(
        "http",
        SRMPEnvelopeHeader__DataLength=0x7FFFFFFE,
        CompoundMessageHeader__HTTPBodySize=0xFFFFFFFD,
        CompoundMessageHeader__MsgBodyOffset=0xFFFFFFFF,
    )
    assert attacks(data) == [
        ("ATTACK-SRMP-LENGTH", DATA_LENGTH, 184),
        ("ATTACK-HTTP-BODY-SIZE", HTTP, 224),
        ("ATTACK-BODY-RANGE", "CompoundMessageHeader.MsgBodyOffset", 232),
    ]


@pytest.mark.parametrize(
    "name, path, offset, value, id",
    [
        ("message", "MessagePropertiesHeader.LabelLength", 105, 250, "MQMQ-2.2.19.3-07-SIZE"),
        ("message", "MessagePropertiesHeader.MessageSize", 136, 0xFFFFFFFF, "MQMQ-2.2.19.3-15"),
        ("message", "MessagePropertiesHeader.AllocationBodySize", 140, 0x7FFFFFFF, "MQMQ-2.2.19.3-16-SIZE"),
        ("message", "MessagePropertiesHeader.ExtensionSize", 156, 0xFFFFFFFC, "MQMQ-2.2.19.3-41"),
        ("message", "MessagePropertiesHeader.ExtensionSize", 156, 5, "MQMQ-2.2.19.3-41"),
        ("signed", "SecurityHeader.SenderIdSize", 106, 0xFFFF, "MQMQ-2.2.20.6-15"),
        ("signed", "SecurityHeader.EncryptionKeySize", 108, 0xFFFF, "MQMQ-2.2.20.6-16"),
        ("signed", "SecurityHeader.SignatureSize", 110, 0xFFFF, "MQMQ-2.2.20.6-17"),
        ("signed", "SecurityHeader.SenderCertSize", 112, 0xFFFFFFFF, "MQMQ-2.2.20.6-18-SIZE"),
        ("signed", "SecurityHeader.ProviderInfoSize", 116, 0x80000000, "MQMQ-2.2.20.6-19"),
        ("signed", "SecurityHeader.ProviderInfoSize", 116, 200, "MQMQ-2.2.20.6-19"),
        ("soap", "SoapHeader.HeaderDataLength", 184, 0x80000000, "MQMQ-2.2.20.7-03"),
        ("soap", "SoapHeader.BodyDataLength", 204, 0x80000000, "MQMQ-2.2.20.7-07"),
        ("message", "UserHeader.DestinationQueue.Count", 64, 0xFFFF, "MQMQ-2.2.18.1.5.2-05"),
        ("several", f"{LISTS}.Response.HeaderSize", 240, 0xFFFFFFF0, "MQMQ-2.2.20.2-01"),
        ("several", f"{LISTS}.Signature.Size", 256, 0xFFFFFFF0, "MQMQ-2.2.20.3-03"),
    ],
)
def test_other_sizes_past_the_packet(name: str, path: str, offset: int, value: int, id: str) -> None:
    findings = lint(patched(name, **{path.replace(".", "__"): value}))
    assert ("ATTACK-LENGTH", "ATTACK", path, offset) in brief(findings)
    assert (id, "MUST", path, offset) in brief(findings)
    assert {finding.path for finding in findings} == {path}


def test_two_sizes_of_one_header() -> None:
    data = patched("signed", SecurityHeader__SignatureSize=0xFFFF, SecurityHeader__SenderCertSize=0xFFFFFFFF)
    assert attacks(data) == [
        ("ATTACK-LENGTH", "SecurityHeader.SignatureSize", 110),
        ("ATTACK-LENGTH", "SecurityHeader.SenderCertSize", 112),
    ]


@pytest.mark.requirement("MQMQ-2.2.19.3-07")
def test_a_label_that_is_too_long_does_not_hide_the_rest() -> None:
    values = {"MessagePropertiesHeader__LabelLength": 251, "MessagePropertiesHeader__MessageSize": 1 << 31}
    assert attacks(patched("message", **values)) == [
        ("ATTACK-LENGTH", "MessagePropertiesHeader.LabelLength", 105),
        ("ATTACK-LENGTH", "MessagePropertiesHeader.MessageSize", 136),
    ]


@pytest.mark.requirement("MQMQ-2.2.20.2-02", "MQMQ-2.2.20.3-01", "MQMQ-2.2.20.2-08")
def test_wrong_ids_in_a_multi_queue_format_header() -> None:
    values = {f"{LISTS}__Administration__HeaderID": 0x0064, f"{LISTS}__Signature__ID": 0x0320}
    assert brief(lint(patched("several", **values))) == [
        ("ATTACK-HEADER-ID", "ATTACK", f"{LISTS}.Administration.HeaderID", 232),
        ("MQMQ-2.2.20.2-02", "MUST", f"{LISTS}.Administration.HeaderID", 232),
        ("ATTACK-HEADER-ID", "ATTACK", f"{LISTS}.Signature.ID", 252),
        ("MQMQ-2.2.20.3-01", "MUST", f"{LISTS}.Signature.ID", 252),
    ]


@pytest.mark.requirement("MQMQ-2.2.20.2-05")
@pytest.mark.parametrize("count", [10, 0x40000000, 0xFFFFFFFF])
def test_an_absurd_element_count(count: int) -> None:
    path = f"{LISTS}.Destination.ElementCount"
    assert brief(lint(patched("several", MultiQueueFormatHeader__Destination__ElementCount=count))) == [
        ("ATTACK-ELEMENT-COUNT", "ATTACK", path, 188),
        ("MQMQ-2.2.20.2-05", "MUST", path, 188),
    ]


@pytest.mark.requirement("MQMQ-2.2.20.2-01")
def test_a_part_smaller_than_its_head() -> None:
    path = f"{LISTS}.Destination.HeaderSize"
    findings = brief(lint(patched("several", MultiQueueFormatHeader__Destination__HeaderSize=11)))
    assert ("MQMQ-2.2.20.2-01", "MUST", path, 180) in findings


@pytest.mark.requirement("MQMQ-2.2.19.1-21", "MQMQ-2.2.19.1-19")
@pytest.mark.parametrize(
    "size, id", [(0, "-19"), (15, "-19"), (0x400001, "-21"), (0xFFFFFFFF, "-21"), (100, "-19"), (178, "-19")]
)
def test_a_packet_size_that_cannot_be(size: int, id: str) -> None:
    findings = brief(lint(patched("message", BaseHeader__PacketSize=size)))
    assert findings[:2] == [
        ("ATTACK-PACKET-SIZE", "ATTACK", "BaseHeader.PacketSize", 8),
        (f"MQMQ-2.2.19.1{id}", "MUST", "BaseHeader.PacketSize", 8),
    ]


@pytest.mark.parametrize("cut", range(0, 180, 7))
def test_cut_packets(cut: int) -> None:
    findings = lint(make("message").to_bytes()[:cut])
    assert brief(findings)[-1:] == [
        ("ATTACK-TRUNCATED", "ATTACK", "BaseHeader.PacketSize", 8 if cut >= 16 else cut)
    ]


def test_the_printed_frame_is_cut() -> None:
    data = bytes.fromhex((VECTORS / "MS-MQQB-4.1.7-UserMessage.printed.hex").read_text())
    assert brief(lint(data)) == [("ATTACK-TRUNCATED", "ATTACK", "BaseHeader.PacketSize", 8)]


@pytest.mark.requirement("MQMQ-2.2.19.1-02", "MQMQ-2.2.19.1-18", "MQQB-3.1.5.1.2-01")
def test_version_and_signature() -> None:
    values = {"BaseHeader__VersionNumber": 0x11, "BaseHeader__Signature": 0x4C494F52}
    assert brief(lint(patched("parameters", **values))) == [
        ("MQMQ-2.2.19.1-02", "MUST", "BaseHeader.VersionNumber", 0),
        ("MQMQ-2.2.19.1-18", "MUST", "BaseHeader.Signature", 4),
    ]


@pytest.mark.requirement("MQQB-2.2.1-04")
def test_an_unknown_internal_packet() -> None:
    findings = lint(patched("ack", InternalHeader__Flags=5))
    assert brief(findings) == [("MQQB-2.2.1-04", "MUST", "InternalHeader.Flags.PT", 18)]


@pytest.mark.requirement("MQMQ-2.2.19.2-22")
def test_an_illegal_destination() -> None:
    findings = lint(patched("message", UserHeader__Flags=0x0020_0400))
    assert brief(findings) == [("MQMQ-2.2.19.2-22", "MUST", "UserHeader.Flags.DQ", 60)]


@pytest.mark.requirement("MQMQ-2.2.19.2-24")
def test_an_illegal_admin_queue() -> None:
    findings = lint(patched("message", UserHeader__Flags=0x0020_9C00))
    assert brief(findings) == [("MQMQ-2.2.19.2-24", "MUST", "UserHeader.Flags.AQ", 60)]


@pytest.mark.requirement("MQMQ-2.2.19.2-34")
@pytest.mark.parametrize("session", [b"", h.session_header(sent=1)], ids=["alone", "with a SessionHeader"])
@pytest.mark.parametrize("properties", [b"", h.properties_header(body=b"body")], ids=["absent", "denied"])
def test_a_message_that_claims_to_have_no_properties(session: bytes, properties: bytes) -> None:
    """The bit is to blame, whether the header is there or the packet is malformed without it."""
    user = h.user_header(flags=0, address=h.CLIENT)
    data = h.user_message(user=user, properties=properties, session=session, user_flags=0)
    assert brief(lint(data)) == [("MQMQ-2.2.19.2-34", "MUST", "UserHeader.Flags.MP", 60)]
    (item,) = msmqwire.dissect(io.BytesIO(pcap_bytes(TcpConversation().handshake().send(data).frames)))
    assert item.kind == ("UserMessage" if properties else "Malformed")
    assert item.findings[0].id == "MQMQ-2.2.19.2-34"


@pytest.mark.requirement("MQMQ-2.2.18.1.5.2-05")
def test_a_name_that_does_not_end() -> None:
    findings = lint(patched("message", UserHeader__DestinationQueue__Count=13))
    assert brief(findings) == [("MQMQ-2.2.18.1.5.2-05", "MUST", "UserHeader.DestinationQueue.Count", 64)]


@pytest.mark.requirement("MQMQ-2.2.18.1.4-01")
def test_an_unknown_format_type() -> None:
    packet = make("several")
    at = next(field.offset for field in layout(packet) if field.path.endswith(".FormatType"))
    data = packet.to_bytes()
    findings = lint(data[:at] + b"\x04\0" + data[at + 2 :])
    path = f"{LISTS}.Destination.FormatNameList[0].FormatType"
    assert brief(findings) == [("MQMQ-2.2.18.1.4-01", "MUST", path, at)]


@pytest.mark.requirement("MQQB-2.2.5-07")
def test_a_final_ack_with_another_body() -> None:
    findings = lint(patched("final", MessagePropertiesHeader__MessageSize=32))
    assert brief(findings) == [("MQQB-2.2.5-07-SIZE", "MUST", "MessagePropertiesHeader.MessageSize", 100)]


def test_a_body_that_ends_past_the_packet_is_no_acknowledgement() -> None:
    """Alone the size would fit, behind the label the body ends past the packet."""
    changes = {"MessagePropertiesHeader.Label": "l" * 40, "MessagePropertiesHeader.MessageBody": "61" * 80}
    packet = make("message", changes).to_bytes()
    size_at = 136
    data = packet[:size_at] + (100).to_bytes(4, "little") + packet[size_at + 4 :]
    findings = [(found.id, found.path, found.offset) for found in lint(data)]
    path = "MessagePropertiesHeader.MessageSize"
    assert findings == [("ATTACK-LENGTH", path, size_at), ("MQMQ-2.2.19.3-15", path, size_at)]


@pytest.mark.requirement("MQQB-2.2.7-01", "MQQB-2.2.7-08")
def test_pings() -> None:
    data = make("ping").to_bytes()
    assert brief(lint(data[:20], protocol="ping")) == [
        ("ATTACK-TRUNCATED", "ATTACK", "", 20),
        ("MQQB-2.2.7-01", "MUST", "", 20),
    ]
    assert brief(lint(data + b"\0", protocol="ping")) == [("MQQB-2.2.7-01", "MUST", "", 24)]
    assert brief(lint(data[:2] + b"\0\0" + data[4:], protocol="ping")) == [
        ("MQQB-2.2.7-08", "MUST", "Signature", 2)
    ]


def test_remotely_read_messages() -> None:
    data = patched("remote", ExtensionHeader__HeaderSize=0xFFFFFFFF)
    assert attacks(data, protocol="remote_read") == [("ATTACK-LENGTH", "ExtensionHeader.HeaderSize", 124)]


@pytest.mark.requirement("MQQB-3.1.5.1.3-01")
def test_what_has_no_rule_of_its_own() -> None:
    error = msmqwire.MalformedPacket("no reason", path="UserHeader.MessageID", offset=56)
    assert brief(lint_malformed(make("message").to_bytes(), error)) == [
        ("MQQB-3.1.5.1.3-01", "MUST", "UserHeader.MessageID", 56)
    ]


def test_every_attack_shape_is_listed() -> None:
    listed = {check.id for check in checks() if check.severity == "ATTACK"}
    assert listed == {
        "ATTACK-BODY-BINARY",
        "ATTACK-BODY-DTD",
        "ATTACK-BODY-GADGET",
        "ATTACK-BODY-RANGE",
        "ATTACK-ELEMENT-COUNT",
        "ATTACK-HEADER-ID",
        "ATTACK-HTTP-BODY-SIZE",
        "ATTACK-HTTP-CHUNK",
        "ATTACK-HTTP-FLOOD",
        "ATTACK-HTTP-LENGTH",
        "ATTACK-HTTP-LINE",
        "ATTACK-LENGTH",
        "ATTACK-MIME-PART",
        "ATTACK-NCP-COUNT",
        "ATTACK-NCP-LENGTH",
        "ATTACK-NCP-SEQUENCE",
        "ATTACK-NCP-TRAILING",
        "ATTACK-PACKET-SIZE",
        "ATTACK-RPC-ALLOC",
        "ATTACK-RPC-AUTH",
        "ATTACK-RPC-COUNT",
        "ATTACK-RPC-FRAGMENT",
        "ATTACK-RPC-HANDLE",
        "ATTACK-SRMP-LENGTH",
        "ATTACK-TRUNCATED",
        "ATTACK-XML-DEPTH",
        "ATTACK-XML-ENCODING",
        "ATTACK-XML-ENTITY",
        "ATTACK-XML-SIZE",
    }
    assert all(check.title for check in checks())


def test_every_other_id_is_a_requirement() -> None:
    known = {id for table in read_tables().values() for id in table}
    used = {check.requirement for check in checks() if check.severity != "ATTACK"}
    # Nothing is wrong where a reading is told, and RFC 3208 is for all that use PGM.
    assert {id for id in used if not id.startswith(("READING-", "PGM-"))} <= known


HIDING = [
    ({"MessagePropertiesHeader": {"LabelLength": 251, "Label": "l" * 250}}, "MQMQ-2.2.19.3-07"),
    (
        {"UserHeader": {"DestinationQueue": {"DirectFormatName": {"utf16le": "61006200"}}}},
        "MQMQ-2.2.18.1.5.2-05",
    ),
]


@pytest.mark.parametrize("damage, req", HIDING)
def test_an_attack_is_seen_behind_another_fault(damage, req):
    srmp = {
        "SRMPEnvelopeHeader": {"Data": "<e/>"},
        "CompoundMessageHeader": {"HTTPBodySize": 0xFFFFFFFD, "Data": b"POST /"},
    }
    data = msmqwire.build({"packet": "UserMessage", "fields": {**damage, **srmp}})
    with pytest.raises(msmqwire.MalformedPacket) as caught:
        msmqwire.parse(data)
    paths = {finding.id: finding.path for finding in lint_malformed(data, caught.value)}
    assert paths["ATTACK-HTTP-BODY-SIZE"] == "CompoundMessageHeader.HTTPBodySize"
    assert req in paths


def test_more_names_than_there_is_room_for():
    destination = {
        "FormatNameList": [{"FormatName": {"PublicQueueIdentifier": bytes(16).hex()}}],
        "ElementCount": 3,
    }
    data = msmqwire.build(
        {"packet": "UserMessage", "fields": {"MultiQueueFormatHeader": {"Destination": destination}}}
    )
    with pytest.raises(msmqwire.MalformedPacket) as caught:
        msmqwire.parse(data)
    [finding] = [f for f in lint_malformed(data, caught.value) if f.severity == "ATTACK"]
    assert (finding.id, finding.path) == (
        "ATTACK-ELEMENT-COUNT",
        "MultiQueueFormatHeader.Destination.ElementCount",
    )
