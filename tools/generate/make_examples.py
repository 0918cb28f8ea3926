"""Generate the captures in examples/: ``python tools/generate/make_examples.py``; ``--check`` only compares.

session.pcap contains the eight frames of [MS-MQQB] chapter 4, from tests/vectors, exchanged between two
hosts. hostile.pcapng contains traffic that an analyst may encounter: disorder, gaps, malformed packets, known
shapes of attack, and traffic that is not MSMQ. protected.pcap contains signed and encrypted messages; the
keys for it are in keys/. netware.pcap contains the life of a print job in a queue of NetWare.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import msmqwire  # noqa: E402
from tests.support import captures as net  # noqa: E402
from tests.support.captures import Frame, TcpConversation  # noqa: E402
from tools.generate import netware_example, protected_example  # noqa: E402

START_NS = 1_772_366_400_000_001_000  # 2026-03-01T12:00:00.000001Z
STEP_NS = 187_000
CLIENT, SERVER, UNKNOWN = "10.0.0.1", "10.0.0.2", "10.0.0.66"
QM_CLIENT = UUID("557358d1-9150-9595-4997-b6e611ea26c6")
QM_SERVER = UUID("43cd8907-394c-8f11-4445-9078909ea0fc")


def vector(number: int) -> bytes:
    """Return frame 1 to 8 of [MS-MQQB] chapter 4."""
    paths = ROOT.glob(f"tests/vectors/MS-MQQB-4.1.{number}-*.hex")
    path = next(p for p in paths if ".printed" not in p.name)
    return bytes.fromhex(path.read_text(encoding="ascii"))


def session() -> bytes:
    """Return the captured session: pings over UDP, then a session with one express message."""
    ping = [
        Frame(START_NS, net.ethernet(net.udp_packet(vector(1), CLIENT, 4057, SERVER, 3527))),
        Frame(START_NS + STEP_NS, net.ethernet(net.udp_packet(vector(2), SERVER, 3527, CLIENT, 4057))),
    ]
    conversation = TcpConversation(
        (CLIENT, 49759), (SERVER, 1801), start_ns=START_NS + 2 * STEP_NS, step_ns=STEP_NS
    )
    conversation.handshake().send(vector(3)).send(vector(4), by_client=False)
    conversation.send(vector(5)).send(vector(6), by_client=False)
    conversation.send(vector(7)).send(vector(8), by_client=False)
    conversation.close()
    return net.pcap_bytes([*ping, *conversation.frames], nanoseconds=True)


def build(kind: str, **fields: Any) -> bytes:
    """Build a packet from the fields that matter."""
    return msmqwire.build({"packet": kind, "fields": fields})


def greeting() -> tuple[bytes, bytes, bytes, bytes]:
    """Return a handshake: request and response of EstablishConnection and ConnectionParameters."""
    guids = {"ClientGuid": QM_CLIENT, "ServerGuid": QM_SERVER, "TimeStamp": 501140046}
    establish = build("EstablishConnection", EstablishConnectionHeader=guids)
    parameters = build("ConnectionParameters", ConnectionParametersHeader={"RecoverableAckTimeout": 1496})
    return establish, establish, parameters, parameters


def message(number: int, body: bytes, label: str, **more: Any) -> bytes:
    """Build a message to a private queue of the server."""
    user = {
        "SourceQueueManager": QM_CLIENT,
        "SentTime": START_NS // 1_000_000_000,
        "MessageID": number,
        "DestinationQueue": {"DirectFormatName": "TCP:10.0.0.2\\private$\\orders"},
        **more.pop("UserHeader", {}),
    }
    properties = {"Label": label, "MessageBody": body, "BodyType": 8}
    return build("UserMessage", UserHeader=user, MessagePropertiesHeader=properties, **more)


def text(content: str) -> bytes:
    return content.encode("utf-16-le")


def connection(port: int, at: float, *, client: str = CLIENT, server_port: int = 1801) -> TcpConversation:
    """Return a connection that begins `at` seconds after the start."""
    start = START_NS + round(at * 1e9)
    return TcpConversation((client, port), (SERVER, server_port), start_ns=start, step_ns=STEP_NS)


def opened(conversation: TcpConversation) -> TcpConversation:
    ec, ec_response, cp, cp_response = greeting()
    conversation.handshake().send(ec).send(ec_response, by_client=False)
    return conversation.send(cp).send(cp_response, by_client=False)


def orderly(rng: random.Random) -> list[Frame]:
    """Return messages of several kinds, delivered out of order."""
    conversation = opened(connection(50001, 1.0))
    conversation.send(message(1, text("express"), "plain"))
    sequence = {"TxSequenceID": {"Ordinal": 1, "TimeStamp": 1772366400}}
    for n in (1, 2, 3):
        header = {**sequence, "TxSequenceNumber": n, "PreviousTxSequenceNumber": n - 1}
        header["Flags"] = {"FM": n == 1, "LM": n == 3, "ID": 7}
        conversation.send(
            message(1 + n, text(f"step {n} ") * 300, f"transaction {n}", TransactionHeader=header)
        )
    conversation.send(
        message(
            5,
            b'<?xml version="1.0"?>\r\n<string>for two</string>',
            "two queues",
            MultiQueueFormatHeader={
                "Destination": {
                    "FormatNameList": [
                        {"FormatName": {"DirectFormatName": "TCP:10.0.0.2\\private$\\orders"}},
                        {"FormatName": {"PublicQueueIdentifier": QM_SERVER}},
                    ]
                }
            },
        )
    )
    stored = {"AckSequenceNumber": 5, "RecoverableMsgAckSeqNumber": 1, "RecoverableMsgAckFlags": 0b111}
    conversation.send(build("SessionAck", SessionHeader=stored), by_client=False)
    body = {"TxSequenceNumber": 3, "TxPreviousSequenceNumber": 2, **sequence}
    user = {"SourceQueueManager": QM_SERVER, "QueueManagerAddress": QM_CLIENT}
    conversation.send(build("OrderAck", UserHeader=user, OrderAckBody=body), by_client=False)
    conversation.close()
    return net.disorder(conversation.frames, rng, reorder=0.3, duplicate=0.2, overlap=0.2, resegment=0.3)


def attacked() -> list[Frame]:
    """Return shapes of attack: sizes that exceed the packet or wrap around."""
    conversation = opened(connection(50666, 2.0, client=UNKNOWN))
    srmp = {
        "SRMPEnvelopeHeader": {"Data": "<se:Envelope/>"},
        "CompoundMessageHeader": {"Data": b"POST /msmq"},
    }
    jump = {**srmp, "SRMPEnvelopeHeader": {"DataLength": 0x80000000, "Data": "<se:Envelope/>"}}
    conversation.send(message(1, b"", "jump", **jump))
    huge = {**srmp, "CompoundMessageHeader": {"HTTPBodySize": 0xFFFFFFF0, "Data": b"POST /msmq"}}
    conversation.send(message(2, b"", "compound", **huge))
    conversation.send(
        message(3, b"", "count", MultiQueueFormatHeader={"Destination": {"ElementCount": 0x10000000}})
    )
    conversation.send(message(4, b"", "id", MultiQueueFormatHeader={"Response": {"HeaderID": 0x4141}}))
    conversation.send(message(5, b"", "label")[:-4] + b"\xff" * 4)
    impossible = build("SessionAck", BaseHeader={"PacketSize": 0xFFFFFFFF})
    conversation.send(impossible).send(message(6, text("after it"), "still found"))
    conversation.reset()
    return conversation.frames


def broken() -> list[Frame]:
    """Return connections with missing parts, and one on an unusual port."""
    late = connection(50002, 3.0)
    late.send(message(7, text("x") * 900, "its start is not captured")[700:])
    late.send(message(8, text("found again"), "resumed"))
    lossy = opened(connection(50003, 4.0))
    lossy.send(message(1, text("y") * 3000, "has a hole")).send(message(2, text("z"), "after the hole"))
    lossy.close()
    data = [i for i, f in enumerate(lossy.frames) if f.segment and len(f.segment.payload) == 1460]
    del lossy.frames[data[1]]
    other = opened(connection(50004, 5.0, server_port=18010))
    other.send(message(1, text("elsewhere"), "on another port")).close()
    end = opened(connection(50005, 6.0))
    end.send(message(1, text("cut") * 500, "the capture ends here")[:1200])
    return net.merged(late.frames, lossy.frames, other.frames, end.frames)


def unrelated() -> list[Frame]:
    """Return other traffic: HTTP, DNS, ARP, a ping in a VLAN, and pings without signature or cut short."""
    web = connection(50080, 0.5, server_port=80)
    web.handshake().send(b"GET / HTTP/1.1\r\nHost: example.test\r\n\r\n")
    web.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", by_client=False).close()
    dns = bytes.fromhex("1a2b01000001000000000000076578616d706c6504746573740000010001")
    ping = vector(1)
    frames = [
        (0.1, net.ethernet(net.udp_packet(dns, CLIENT, 5353, SERVER, 53))),
        (0.2, net.ethernet(net.udp_packet(ping, CLIENT, 4057, SERVER, 3527), vlan=(100,))),
        (0.3, net.ethernet(net.udp_packet(ping[:2] + b"\0\0" + ping[4:], UNKNOWN, 4058, SERVER, 3527))),
        (0.4, net.ethernet(net.udp_packet(ping[:20], UNKNOWN, 4059, SERVER, 3527))),
        (0.6, b"\xff" * 6 + bytes.fromhex("020000000001 0806 0001080006040001")),
    ]
    return net.merged(web.frames, [Frame(START_NS + round(at * 1e9), data) for at, data in frames])


def hostile() -> bytes:
    """Return everything above in one pcapng file."""
    rng = random.Random(1801)
    frames = net.merged(orderly(rng), attacked(), broken(), unrelated())
    return net.pcapng_bytes(frames, tsresol=9)


def protected() -> dict[str, bytes]:
    """Return the capture of protected messages, and the certificate of their sender."""
    keys = protected_example.private_keys(ROOT / "examples" / "keys")
    conversation = protected_example.protected(keys, opened, connection(50010, 0.0))
    return {
        "protected.pcap": net.pcap_bytes(conversation.frames, nanoseconds=True),
        "keys/alice.crt": protected_example.certificate_file(keys, "alice"),
    }


def main() -> int:
    netware = net.pcap_bytes(netware_example.frames(), nanoseconds=True)
    files = {"session.pcap": session(), "hostile.pcapng": hostile(), "netware.pcap": netware, **protected()}
    for name, data in files.items():
        path = ROOT / "examples" / name
        if "--check" not in sys.argv[1:]:
            path.write_bytes(data)
        elif not path.exists() or path.read_bytes() != data:
            print(f"{path} is not what tools/generate/make_examples.py makes", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
