"""The eight frames of [MS-MQQB] chapter 4: every field, from the bytes printed in the document."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

import msmqwire
from msmqwire.schema.layout import layout
from tests.support import handmade
from tests.support.codec_checks import assert_refused, assert_values, flat, requirement
from tests.support.paths import VECTORS

FRAMES = [
    "4.1.1-PingRequest",
    "4.1.2-PingResponse",
    "4.1.3-EstablishConnectionRequest",
    "4.1.4-EstablishConnectionResponse",
    "4.1.5-ConnectionParametersRequest",
    "4.1.6-ConnectionParametersResponse",
    "4.1.7-UserMessage",
    "4.1.8-SessionAck",
]
CLIENT = UUID("557358d1-9150-9595-4997-b6e611ea26c6")
SERVER = UUID("43cd8907-394c-8f11-4445-9078909ea0fc")
CLIENT_BYTES = bytes.fromhex("D1 58 73 55 50 91 95 95 49 97 B6 E6 11 EA 26 C6")
SERVER_BYTES = bytes.fromhex("07 89 CD 43 4C 39 11 8F 44 45 90 78 90 9E A0 FC")
BASE_FLAGS = ("IN", "SH", "DH", "X9", "X8", "TR", "X6", "X5", "X4", "X3", "X2", "X1", "X0")


def frame(number: int) -> bytes:
    return bytes.fromhex((VECTORS / f"MS-MQQB-{FRAMES[number - 1]}.hex").read_text())


def parsed(number: int) -> Any:
    return msmqwire.parse(frame(number), protocol="ping" if number < 3 else "session")


def clear(path: str, *names: str) -> dict[str, Any]:
    return {f"{path}.{name}": False for name in names}


def base(reserved: int, size: int, ttrq: int, *bits: str) -> dict[str, Any]:
    """A BaseHeader of priority 3 with these flags."""
    return {
        "BaseHeader.VersionNumber": 0x10,
        "BaseHeader.Reserved": reserved,
        "BaseHeader.Flags.PR": 3,
        **{f"BaseHeader.Flags.{name}": name in bits for name in BASE_FLAGS},
        "BaseHeader.Signature": 0x524F494C,
        "BaseHeader.PacketSize": size,
        "BaseHeader.TimeToReachQueue": ttrq,
    }


def internal(kind: int) -> dict[str, Any]:
    return {
        "InternalHeader.Reserved": 0,
        "InternalHeader.Flags.PT": kind,
        **clear("InternalHeader.Flags", "CS", *(f"X{bit}" for bit in range(5, 16))),
    }


def establish(client: UUID, server: UUID) -> dict[str, Any]:
    path = "EstablishConnectionHeader"
    return {
        f"{path}.ClientGuid": client,
        f"{path}.ServerGuid": server,
        f"{path}.TimeStamp": 501140046,
        f"{path}.OperatingSystem.RE": 0x10,
        f"{path}.OperatingSystem.SE": True,
        f"{path}.OperatingSystem.OS": True,
        **clear(f"{path}.OperatingSystem", "QS", "X11", "X12", "X13", "X14", "X15"),
        f"{path}.Reserved": 0,
        f"{path}.Padding": b"\x5a" * 512,
    }


def ping(word: int, guid: UUID) -> dict[str, Any]:
    names = ["RC", "RF", *(f"X{bit}" for bit in range(2, 16))]
    bits = {f"Flags.{name}": bool(word >> bit & 1) for bit, name in enumerate(names)}
    return {**bits, "Signature": 0x5548, "Cookie": 4, "QMGuid": guid}


@requirement("MQQB-4.1-01", "MQMQ-2.2.19-01")
def test_all_eight_frames() -> None:
    """Each frame decodes in the order of the diagram and round-trips as a record and as JSON."""
    kinds = [
        "Ping",
        "Ping",
        *["EstablishConnection"] * 2,
        *["ConnectionParameters"] * 2,
        "UserMessage",
        "SessionAck",
    ]
    assert [parsed(number).schema.name for number in range(1, 9)] == kinds
    assert [len(frame(number)) for number in range(1, 9)] == [24, 24, 572, 572, 32, 32, 2224, 36]
    for number in range(1, 9):
        packet = parsed(number)
        as_json = msmqwire.to_json(packet)
        assert as_json["size"] == len(frame(number))
        assert msmqwire.build(packet) == msmqwire.build(as_json) == frame(number)
    # bits are numbered from the lowest of the little-endian word
    assert frame(3)[2:4] == b"\x0b\0"
    assert (parsed(3).BaseHeader.Flags.PR, parsed(3).BaseHeader.Flags.IN) == (3, True)
    assert frame(8)[2:4] == b"\x1b\0"
    assert parsed(8).BaseHeader.Flags.SH is True
    assert frame(7)[60:64] == b"\x00\x1c\x28\x00"
    flags = parsed(7).UserHeader.Flags
    assert (flags.DQ, flags.SH, flags.MP) == (7, True, True)
    assert frame(7)[92:94] == b"\x01\x00"
    assert parsed(7).SecurityHeader.Flags.ST == 1


@requirement("MQQB-4.1-02")
def test_guids_of_the_peers() -> None:
    """GUIDs in packet byte order; the document prints the sixteen bytes backwards."""
    assert handmade.guid(str(CLIENT)) == CLIENT_BYTES
    assert handmade.guid(str(SERVER)) == SERVER_BYTES
    assert "".join(f"{byte:02X}" for byte in reversed(CLIENT_BYTES)) == "C626EA11E6B6974995959150557358D1"
    guids = {
        number: [v for v in flat(parsed(number)).values() if v in (CLIENT, SERVER)] for number in range(1, 8)
    }
    assert guids == {1: [CLIENT], 2: [SERVER], 3: [CLIENT, SERVER], 4: [], 5: [], 6: [], 7: [CLIENT]}
    assert msmqwire.to_json(parsed(1))["fields"]["QMGuid"] == "557358d1-9150-9595-4997-b6e611ea26c6"
    for number, offset, raw in (
        (1, 8, CLIENT_BYTES),
        (2, 8, SERVER_BYTES),
        (3, 20, CLIENT_BYTES),
        (3, 36, SERVER_BYTES),
    ):
        assert frame(number)[offset : offset + 16] == raw
    assert frame(7)[16:32] == CLIENT_BYTES


@requirement("MQQB-4.1.1-01")
def test_frame_1() -> None:
    data = bytes.fromhex("01 7D 48 55 04 00 00 00 D1 58 73 55 50 91 95 95 49 97 B6 E6 11 EA 26 C6")
    assert frame(1) == data
    packet = assert_values(parsed(1).schema, data, ping(0x7D01, CLIENT))
    assert (int(packet.Flags), packet.Flags.RC, packet.Flags.RF) == (0x7D01, True, False)
    fields = {"Flags": 0x7D01, "Cookie": 4, "QMGuid": str(CLIENT)}
    assert msmqwire.build({"packet": "Ping", "fields": fields}) == data


@requirement("MQQB-4.1.2-01")
def test_frame_2() -> None:
    data = bytes.fromhex("95 B2 48 55 04 00 00 00 07 89 CD 43 4C 39 11 8F 44 45 90 78 90 9E A0 FC")
    assert frame(2) == data
    packet = assert_values(parsed(2).schema, data, ping(0xB295, SERVER))
    assert (int(packet.Flags), packet.Flags.RC, packet.Flags.RF) == (0xB295, True, False)
    assert (
        msmqwire.build({"packet": "Ping", "fields": {"Flags": 0xB295, "Cookie": 4, "QMGuid": SERVER}}) == data
    )


@requirement("MQQB-4.1.2-02")
def test_frame_2_answers_frame_1() -> None:
    """The reply accepts the ping: same cookie and RC, RF clear."""
    request, response = parsed(1), parsed(2)
    assert (request.Cookie, request.Flags.RC) == (response.Cookie, response.Flags.RC) == (4, True)
    assert request.Flags.RF is response.Flags.RF is False


@requirement("MQQB-4.1.3-01", "MQQB-4.1.3-02", "MQQB-4.1.3-03")
def test_frame_3() -> None:
    data = (
        bytes.fromhex("10 C0 0B 00 4C 49 4F 52 3C 02 00 00 FF FF FF FF 00 00 02 00")
        + CLIENT_BYTES
        + SERVER_BYTES
    )
    data += bytes.fromhex("4E CA DE 1D 10 03 00 00") + b"\x5a" * 512
    assert frame(3) == data
    packet = assert_values(
        parsed(3).schema, data, base(0xC0, 572, 0xFFFFFFFF, "IN") | internal(2) | establish(CLIENT, SERVER)
    )
    header = packet.EstablishConnectionHeader
    assert (int(packet.BaseHeader.Flags), int(packet.InternalHeader.Flags)) == (0x000B, 0x0002)
    assert (int(header.OperatingSystem), header.Reserved) == (0x0310, 0)
    offsets = {field.path: field.offset for field in layout(packet)}
    assert offsets["EstablishConnectionHeader.OperatingSystem"] == 20 + 36 == data.index(b"\x10\x03")
    assert offsets["EstablishConnectionHeader.Reserved"] == 20 + 38
    establish_fields = {
        "ClientGuid": CLIENT,
        "ServerGuid": SERVER,
        "TimeStamp": 501140046,
        "OperatingSystem": 0x0310,
    }
    fields = {"BaseHeader": {"Reserved": 0xC0}, "EstablishConnectionHeader": establish_fields}
    assert msmqwire.build({"packet": "EstablishConnection", "fields": fields}) == data


@requirement("MQQB-4.1.4-01", "MQQB-4.1.4-02")
def test_frame_4() -> None:
    guids = "05 23 74 1F 5E BE 77 41 BC 77 C4 DD 77 19 E4 74 EB 6A 3A 3C 67 F5 43 41 87 D3 85 CF 4D 68 CE B4"
    data = bytes.fromhex("10 5A 0B 00 4C 49 4F 52 3C 02 00 00 FF FF FF FF 00 00 02 00") + bytes.fromhex(guids)
    data += bytes.fromhex("4E CA DE 1D 10 03 00 00") + b"\x5a" * 512
    assert frame(4) == data
    client, server = (
        UUID("1f742305-be5e-4177-bc77-c4dd7719e474"),
        UUID("3c3a6aeb-f567-4143-87d3-85cf4d68ceb4"),
    )
    packet = assert_values(
        parsed(4).schema, data, base(0x5A, 572, 0xFFFFFFFF, "IN") | internal(2) | establish(client, server)
    )
    request = parsed(3).EstablishConnectionHeader
    header = packet.EstablishConnectionHeader
    assert packet.InternalHeader.Flags.CS is False
    assert header.TimeStamp == request.TimeStamp
    assert header.OperatingSystem.SE is request.OperatingSystem.SE is True
    assert header.ClientGuid != request.ClientGuid
    assert header.ServerGuid != request.ServerGuid


PARAMETERS = "10 C0 0B 00 4C 49 4F 52 20 00 00 00 FF FF FF FF 00 00 03 00 D8 05 00 00 C0 D4 01 00 00 00 40 00"


@requirement("MQMQ-2.2.19.1-03")
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(5, marks=requirement("MQQB-4.1.5-01")),
        pytest.param(6, marks=requirement("MQQB-4.1.6-01")),
    ],
)
def test_frames_5_and_6(number: int) -> None:
    data = bytes.fromhex(PARAMETERS)
    assert frame(number) == data
    path = "ConnectionParametersHeader"
    packet = assert_values(
        parsed(number).schema,
        data,
        {
            **base(0xC0, 32, 0xFFFFFFFF, "IN"),
            **internal(3),
            f"{path}.RecoverableAckTimeout": 1496,
            f"{path}.AckTimeout": 120000,
            f"{path}.Reserved": 0,
            f"{path}.WindowSize": 64,
        },
    )
    assert int(packet.InternalHeader.Flags) == 0x0003
    parameters = {"RecoverableAckTimeout": 1496, "AckTimeout": 120000, "WindowSize": 64}
    fields = {"BaseHeader": {"Reserved": 0xC0}, path: parameters}
    assert msmqwire.build({"packet": "ConnectionParameters", "fields": fields}) == data


@requirement("MQQB-4.1.6-01")
def test_frame_6_is_frame_5() -> None:
    assert frame(6) == frame(5)
    assert frame(6)[30:32] == b"\x40\x00"


@requirement("MQQB-4.1.5-02")
def test_timeouts_of_frame_5() -> None:
    header = parsed(5).ConnectionParametersHeader
    assert header.RecoverableAckTimeout == 8 * 187
    assert 500 <= header.RecoverableAckTimeout <= 120_000 == header.AckTimeout


SID = bytes.fromhex("01 05 00 00 00 00 00 05 15 00 00 00 AD 4A 9E BD 36 D9 FA 3D 63 A6 56 DA E8 03 00 00")
MESSAGE: dict[str, Any] = {
    **base(0, 2224, 345600),
    "UserHeader.SourceQueueManager": CLIENT,
    "UserHeader.QueueManagerAddress": UUID(int=0),
    "UserHeader.TimeToBeReceived": 0xFFFFFFFF,
    "UserHeader.SentTime": 0x524F494C,  # the signature: an error in the dump
    "UserHeader.MessageID": 2286,
    **{f"UserHeader.Flags.{name}": 0 for name in ("RC", "DM", "AQ", "RQ", "X3", "X4")},
    **clear("UserHeader.Flags", "X1", "JN", "JP", "TH", "CQ", "MQ", "X2", "AH", "HH"),
    "UserHeader.Flags.DQ": 7,
    "UserHeader.Flags.SH": True,
    "UserHeader.Flags.MP": True,
    "UserHeader.DestinationQueue.Count": 26,
    "UserHeader.DestinationQueue.DirectFormatName": "OS:a04bm02\\q",
    "UserHeader.DestinationQueue.Padding": b"",
    "UserHeader.AdminQueue": None,
    "UserHeader.ResponseQueue": None,
    "UserHeader.ConnectorType": None,
    "TransactionHeader": None,
    "SecurityHeader.Flags.ST": 1,
    **{
        f"SecurityHeader.Flags.{name}": 0
        for name in ("AU", "EB", "DE", "AI", "AS", "X12", "X13", "X14", "X15")
    },
    "SecurityHeader.SenderIdSize": 28,
    "SecurityHeader.EncryptionKeySize": 0,
    "SecurityHeader.SignatureSize": 0,
    "SecurityHeader.SenderCertSize": 0,
    "SecurityHeader.ProviderInfoSize": 0,
    "SecurityHeader.SecurityData.SecurityID": SID,
    **{
        f"SecurityHeader.SecurityData.{name}": b""
        for name in (
            "SecurityIDPadding",
            "EncryptionKey",
            "EncryptionKeyPadding",
            "Signature",
            "SignaturePadding",
            "SenderCert",
            "SenderCertPadding",
            "ProviderInfoPadding",
        )
    },
    "SecurityHeader.SecurityData.ProviderInfo": None,
    **{f"MessagePropertiesHeader.Flags.{name}": True for name in ("PA", "PR", "NA", "NR")},
    **clear("MessagePropertiesHeader.Flags", "X4", "X5", "X6", "X7"),
    "MessagePropertiesHeader.LabelLength": 15,
    "MessagePropertiesHeader.MessageClass": 0,
    "MessagePropertiesHeader.CorrelationID": bytes(20),
    "MessagePropertiesHeader.BodyType": 8,
    "MessagePropertiesHeader.ApplicationTag": 0,
    "MessagePropertiesHeader.MessageSize": 2000,
    "MessagePropertiesHeader.AllocationBodySize": 2000,
    "MessagePropertiesHeader.PrivacyLevel": 0,
    "MessagePropertiesHeader.HashAlgorithm": 0x8004,
    "MessagePropertiesHeader.EncryptionAlgorithm": 0x6801,
    "MessagePropertiesHeader.ExtensionSize": 0,
    "MessagePropertiesHeader.Label": "mqsender label",
    "MessagePropertiesHeader.ExtensionData": b"",
    "MessagePropertiesHeader.MessageBody": b"a\0" * 1000,
    "MessagePropertiesHeader.MessageBodySlack": b"",
    "MessagePropertiesHeader.Padding": b"\0\0",
    **dict.fromkeys(
        (
            "DebugHeader",
            "SRMPEnvelopeHeader",
            "CompoundMessageHeader",
            "SoapHeader",
            "MultiQueueFormatHeader",
            "SessionHeader",
        )
    ),
    "TrailingData": b"",
}


@requirement(
    "MQQB-4.1.7-02",
    "MQQB-4.1.7-03",
    "MQQB-4.1.7-04",
    "MQQB-4.1.7-05",
    "MQQB-4.1.7-06",
    "MQQB-4.1.7-07",
    "MQMQ-2.2.19.1-25",
    "MQMQ-2.2.19.2-46",
    "MQMQ-2.2.19.3-48",
    "MQMQ-2.2.20.6-40",
)
def test_frame_7() -> None:
    data = frame(7)
    packet = assert_values(parsed(7).schema, data, MESSAGE)
    assert int(packet.BaseHeader.Flags) == 0x0003
    assert int(packet.UserHeader.Flags) == 0x00281C00
    assert int(packet.SecurityHeader.Flags) == 0x0001
    assert int(packet.MessagePropertiesHeader.Flags) == 0x0F
    assert data == (
        bytes.fromhex("10 00 03 00 4C 49 4F 52 B0 08 00 00 00 46 05 00")
        + CLIENT_BYTES
        + bytes(16)
        + bytes.fromhex("FF FF FF FF 4C 49 4F 52 EE 08 00 00 00 1C 28 00 1A 00")
        + "OS:a04bm02\\q\0".encode("utf-16-le")
        + bytes.fromhex("01 00 1C 00 00 00 00 00 00 00 00 00 00 00 00 00")
        + SID
        + bytes.fromhex("0F 0F 00 00" + "00" * 20 + "08 00 00 00 00 00 00 00 D0 07 00 00 D0 07 00 00")
        + bytes.fromhex("00 00 00 00 04 80 00 00 01 68 00 00 00 00 00 00")
        + "mqsender label\0".encode("utf-16-le")
        + b"a\0" * 1000
        + bytes(2)
    )


@requirement(
    "MQQB-4.1.7-02", "MQQB-4.1.7-04", "MQQB-4.1.7-05", "MQQB-4.1.7-06", "MQQB-4.1.7-07", "MQMQ-2.2.20-13"
)
def test_places_in_frame_7() -> None:
    places = {field.path: (field.offset, field.size) for field in layout(parsed(7))}
    assert places["BaseHeader.VersionNumber"] == (0, 1)
    assert places["UserHeader.SourceQueueManager"] == (16, 16)
    assert places["UserHeader.SentTime"] == (52, 4)
    assert places["UserHeader.DestinationQueue.Count"] == (64, 2)
    assert places["UserHeader.DestinationQueue.DirectFormatName"] == (66, 26)
    assert places["SecurityHeader.Flags"] == (92, 2)
    assert places["SecurityHeader.SecurityData.SecurityID"] == (108, 28)
    assert places["MessagePropertiesHeader.Flags"] == (136, 1)
    assert places["MessagePropertiesHeader.Label"] == (192, 30)
    assert places["MessagePropertiesHeader.MessageBody"] == (222, 2000)
    assert places["MessagePropertiesHeader.Padding"] == (2222, 2)


@requirement("MQQB-4.1.7-03", "MQQB-4.1.7-04", "MQQB-4.1.7-05", "MQQB-4.1.7-06", "MQQB-4.1.7-07")
def test_frame_7_built_from_its_values() -> None:
    """Built without sizes, counts, flags and padding. AI stays clear for a SecurityID alone."""
    fields = {
        "BaseHeader": {"TimeToReachQueue": 345600},
        "UserHeader": {
            "SourceQueueManager": str(CLIENT),
            "SentTime": 0x524F494C,
            "MessageID": 2286,
            "DestinationQueue": {"DirectFormatName": "OS:a04bm02\\q"},
        },
        "SecurityHeader": {"SecurityData": {"SecurityID": SID.hex()}},
        "MessagePropertiesHeader": {
            "Flags": {"PA": True, "PR": True, "NA": True, "NR": True},
            "BodyType": 8,
            "HashAlgorithm": 0x8004,
            "EncryptionAlgorithm": 0x6801,
            "Label": "mqsender label",
            "MessageBody": "6100" * 1000,
        },
    }
    assert msmqwire.build({"packet": "UserMessage", "fields": fields}) == frame(7)


@requirement("MQQB-4.1.7-01")
def test_the_dump_of_frame_7_breaks_off() -> None:
    printed = bytes.fromhex((VECTORS / "MS-MQQB-4.1.7-UserMessage.printed.hex").read_text())
    assert len(printed) == 1650 == 222 + 1428
    assert int.from_bytes(printed[8:12], "little") == 2224 == 222 + 2000 + 2
    assert printed[222:] == b"a\0" * 714
    assert_refused(msmqwire.parse, printed, "MessagePropertiesHeader.MessageBody", 1650)
    assert frame(7) == printed + b"a\0" * (1000 - 714) + bytes(2)
    assert msmqwire.parse(frame(7)).MessagePropertiesHeader.MessageBody == b"a\0" * 1000


@requirement("MQQB-4.1.7-08")
def test_frame_7_asks_for_acknowledgements_without_a_queue() -> None:
    """It is read although all four bits are set and there is no administration queue."""
    packet = parsed(7)
    assert int(packet.MessagePropertiesHeader.Flags) == 0x0F
    assert (packet.UserHeader.Flags.AQ, packet.UserHeader.AdminQueue) == (0, None)


@requirement("MQQB-4.1.8-01", "MQQB-4.1.8-02", "MQMQ-2.2.19.1-20", "MQMQ-2.2.19.1-25", "MQMQ-2.2.20.4-20")
def test_frame_8() -> None:
    data = bytes.fromhex(
        "10 CD 1B 00 4C 49 4F 52 24 00 00 00 FF FF FF FF 00 00 01 00"
        "01 00 00 00 00 00 00 00 00 00 00 00 40 00 00 00"
    )
    assert frame(8) == data
    expected = {
        "SessionHeader.AckSequenceNumber": 1,
        "SessionHeader.RecoverableMsgAckSeqNumber": 0,
        "SessionHeader.RecoverableMsgAckFlags": 0,
        "SessionHeader.UserMsgSequenceNumber": 0,
        "SessionHeader.RecoverableMsgSeqNumber": 0,
        "SessionHeader.WindowSize": 64,
        "SessionHeader.Reserved": 0,
    }
    packet = assert_values(
        parsed(8).schema, data, base(0xCD, 36, 0xFFFFFFFF, "IN", "SH") | internal(1) | expected
    )
    assert (int(packet.BaseHeader.Flags), int(packet.InternalHeader.Flags)) == (0x001B, 0x0001)
    fields = {"BaseHeader": {"Reserved": 0xCD}, "SessionHeader": {"AckSequenceNumber": 1}}
    assert msmqwire.build({"packet": "SessionAck", "fields": fields}) == data
    # the documented example
    bits = (
        dict.fromkeys(("SH", "IN"), True) | {"PR": 3} | dict.fromkeys(set(BASE_FLAGS) - {"SH", "IN"}, False)
    )
    as_json = msmqwire.to_json(packet)
    assert (as_json["packet"], as_json["size"]) == ("SessionAck", 36)
    assert as_json["fields"]["BaseHeader"] == {
        "VersionNumber": 16,
        "Reserved": 205,
        "Flags": bits,
        "Signature": 1380927820,
        "PacketSize": 36,
        "TimeToReachQueue": 4294967295,
    }
