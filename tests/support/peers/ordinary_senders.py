"""Captures of the traffic of ordinary programs, assembled field by field from public descriptions of each.

No code of the library is used: headers are written by `struct` from the figures of [MS-MQMQ] 2.2.18 to 2.2.20
and [MS-MQQB] 2.2, in the order of the frames of [MS-MQQB] 4.1; the content of a program's messages is from
its own documentation or source, named in ``tests/vectors/README.md``.

``python -m tests.support.peers.ordinary_senders`` writes the files anew.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from tests.support.captures import START_NS, Frame, TcpConversation, ethernet, pcap_bytes, udp_packet
from tests.support.paths import VECTORS

FOLDER = VECTORS / "cases" / "ordinary_senders"
SENDER, RECEIVER = "192.168.10.21", "192.168.10.40"
SENDER_QM = UUID("2b6c3f0a-61c4-4d0e-9b5e-0f6f7a3c1d11")
RECEIVER_QM = UUID("8f6a4a52-7c3f-49a4-8d0c-5b8b3f2f9e22")
SENT = 1_772_366_400
FOUR_DAYS, FOREVER = 345_600, 0xFFFF_FFFF
SHA_1, SHA_512, RC4, AES_256 = 0x8004, 0x800E, 0x6801, 0x6610
SID = struct.pack("<BB6sIIIII", 1, 5, b"\0\0\0\0\0\5", 21, 0xBD9E4AAD, 0x3DFAD936, 0xDA56A663, 1000)

# UserHeader.Flags, [MS-MQMQ] 2.2.19.2
RECOVERABLE, DEAD_LETTER, JOURNAL, DIRECT = 1 << 5, 1 << 8, 1 << 9, 7
SECURITY, TRANSACTION, PROPERTIES = 1 << 19, 1 << 20, 1 << 21


def base(size: int, *, flags: int = 3, reach: int = FOREVER, reserved: int = 0) -> bytes:
    """BaseHeader: version, a byte of anything, flags with priority 3, "LIOR", size, TimeToReachQueue."""
    return struct.pack("<BBH4sII", 0x10, reserved, flags, b"LIOR", size, reach)


def aligned(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def direct(name: str) -> bytes:
    """DirectQueueFormatName: its bytes with the null, UTF-16, padded to 4."""
    text = f"{name}\0".encode("utf-16-le")
    return aligned(struct.pack("<H", len(text)) + text)


@dataclass
class Message:
    """A message of a program.

    `ack` are acknowledgements asked for, `transaction` the number in the sequence, `tail` bytes at the end.
    """

    to: str
    body: bytes = b""
    body_type: int = 0
    label: str = ""
    recoverable: bool = False
    flags: int = 0
    response: str = ""
    admin: str = ""
    ack: int = 0
    sid: bool = True
    transaction: int = 0
    extension: bytes = b""
    application: int = 0
    correlation: bytes = bytes(20)
    message_class: int = 0
    reach: int = FOUR_DAYS
    receive: int = FOREVER
    algorithms: tuple[int, int] = (SHA_512, AES_256)
    tail: bytes = b""
    priority: int = 3
    source: UUID = SENDER_QM

    def to_bytes(self, identifier: int, sent: int) -> bytes:
        flags = PROPERTIES | DIRECT << 10 | self.flags
        flags |= RECOVERABLE * (self.recoverable or bool(self.transaction)) | SECURITY * self.sid
        flags |= (DIRECT << 13) * bool(self.admin) | (DIRECT << 16) * bool(self.response)
        flags |= TRANSACTION * bool(self.transaction)
        names = [direct(name) for name in (self.to, self.admin, self.response) if name]
        user = struct.pack(
            "<16s16sIIII", self.source.bytes_le, bytes(16), self.receive, sent, identifier, flags
        )
        parts = [user, *names]
        if self.transaction:  # alone in its transaction; a final acknowledgement if its loss is to be known
            final = 2 * bool(self.flags & (DEAD_LETTER | JOURNAL))
            bits = final | 1 << 2 | 1 << 3 | self.transaction << 4
            parts.append(struct.pack("<IIIII", bits, 1, SENT - 60, self.transaction, self.transaction - 1))
        if self.sid:  # a SID of the user, nothing signed
            parts.append(struct.pack("<HHHHII", 1, len(SID), 0, 0, 0, 0) + SID)
        label = f"{self.label}\0".encode("utf-16-le") if self.label else b""
        properties = struct.pack(
            "<BBH20sIIIIIIII", self.ack, len(label) // 2, self.message_class, self.correlation,
            self.body_type, self.application, len(self.body), len(self.body), 0, *self.algorithms,
            len(self.extension),
        )  # fmt: skip
        parts.append(aligned(properties + label + self.extension + self.body))
        data = b"".join(parts) + self.tail
        priority = 0 if self.transaction else self.priority
        return base(16 + len(data), flags=priority, reach=self.reach) + data


def establish(*, answer: bool = False, known: UUID = RECEIVER_QM) -> bytes:
    """EstablishConnection: a request has anything as its padding, an answer 512 times 0x5A."""
    padding = b"\x5a" * 512 if answer else bytes(range(256)) * 2
    header = struct.pack("<16s16sIHH", SENDER_QM.bytes_le, known.bytes_le, 501_140_046, 0x0310, 0)
    flags = struct.pack("<HH", 0, 2)
    return base(572, flags=0x0B, reserved=0x5A if answer else 0xC0) + flags + header + padding


def parameters() -> bytes:
    header = struct.pack("<HHIIHH", 0, 3, 1_496, 120_000, 0, 64)
    return base(32, flags=0x0B, reserved=0xC0) + header


def session_ack(received: int, recoverable: int = 0, first: int = 1, sent: tuple[int, int] = (0, 0)) -> bytes:
    """SessionAck of a number of messages, and of a number of recoverable ones from `first` on."""
    bits = (1 << recoverable) - 1
    header = struct.pack("<HHIHHHH", received, first if recoverable else 0, bits, *sent, 64, 0)
    return base(36, flags=0x1B, reserved=0xCD) + struct.pack("<HH", 0, 1) + header


def acknowledgement(kind: int, identifier: int, numbers: tuple[int, int], message: int = 0) -> bytes:
    """OrderAck (0x00FF) or FinalAck (0x4000) of a message of the sequence, sent back by the receiver."""
    final = kind != 0x00FF
    body = struct.pack("<IIII", 1, SENT - 60, *numbers)
    body += SENDER_QM.bytes_le + struct.pack("<I", message) if final else bytes(20)
    flags = PROPERTIES | DIRECT << 10 | RECOVERABLE * final
    user = struct.pack("<16s16sIIII", RECEIVER_QM.bytes_le, bytes(16), FOREVER, SENT + 1, identifier, flags)
    label = "QM Ordering Ack\0".encode("utf-16-le")
    properties = struct.pack(
        "<BBH20sIIIIIIII", 0, len(label) // 2, kind, bytes(20), 0, 0, 36, 36, 0, SHA_512, AES_256, 0
    )
    data = user + direct(rf"TCP:{SENDER}\PRIVATE$\order_queue$") + aligned(properties + label + body)
    return base(16 + len(data), flags=0) + data


def ping(cookie: int, manager: UUID) -> bytes:
    return struct.pack("<HHI16s", 0, 0x5548, cookie, manager.bytes_le)


@dataclass
class Session:
    """A ping, the opening of a session, messages and their answers, in the order of [MS-MQQB] 4.1."""

    talk: TcpConversation = field(
        default_factory=lambda: TcpConversation(
            (SENDER, 49_759), (RECEIVER, 1801), start_ns=START_NS + 1_000_000, step_ns=250_000
        )
    )

    def __post_init__(self) -> None:
        ask = udp_packet(ping(4, SENDER_QM), SENDER, 4_057, RECEIVER, 3_527)
        tell = udp_packet(ping(4, RECEIVER_QM), RECEIVER, 3_527, SENDER, 4_057)
        self.frames = [Frame(START_NS, ethernet(ask)), Frame(START_NS + 180_000, ethernet(tell))]
        self.talk.handshake()
        self.talk.send(establish(known=UUID(int=0))).send(establish(answer=True), by_client=False)
        self.talk.send(parameters()).send(parameters(), by_client=False)

    def send(self, *messages: Message, first: int = 2_286) -> None:
        """Send messages; the receiver acknowledges them, and transactional ones in order."""
        recoverable = 0
        for number, message in enumerate(messages, 1):
            self.talk.send(message.to_bytes(first + number, SENT + number))
            recoverable += message.recoverable or bool(message.transaction)
        self.talk.wait(500_000_000).send(session_ack(len(messages), recoverable), by_client=False)
        last = max(message.transaction for message in messages)
        if not last:
            return
        self.talk.send(acknowledgement(0x00FF, 501, (last, last - 1)), by_client=False)
        self.talk.wait(500_000_000).send(session_ack(1, sent=(len(messages), recoverable)))
        finals = [
            (first + number, message.transaction)
            for number, message in enumerate(messages, 1)
            if message.transaction and message.flags & (DEAD_LETTER | JOURNAL)
        ]
        for identifier, number in finals:  # an application has received it
            data = acknowledgement(0x4000, 501 + number, (number, number - 1), identifier)
            self.talk.send(data, by_client=False)
        if finals:
            data = session_ack(1 + len(finals), len(finals), sent=(len(messages), recoverable))
            self.talk.wait(500_000_000).send(data)

    def to_bytes(self) -> bytes:
        self.talk.wait(5_000_000_000).close()
        return pcap_bytes([*self.frames, *self.talk.frames])


# --- programs ----------------------------------------------------------------------------------------------


def com() -> bytes:
    """MSMQMessage of the COM components: the type of the Variant is the type of the body."""
    queue, old = r"OS:accounts01\private$\orders", (SHA_1, RC4)
    answer = r"OS:DESK21\private$\replies"
    text = "<order id='17'/>".encode("utf-16-le")  # a BSTR without its null
    extension_header = struct.pack("<III", 12, 0, 0)
    session = Session()
    session.send(
        Message(queue, text, 8, "order 17", response=answer, admin=answer, ack=0x01, algorithms=old),
        Message(queue, bytes(range(64)), 0x2011, "bytes", tail=extension_header),  # VT_ARRAY | VT_UI1
        Message(queue, struct.pack("<i", -5), 3, "a Long", recoverable=True, flags=DEAD_LETTER),
        Message(queue, struct.pack("<d", 2.5), 5, "a Double", priority=7),
        Message(queue, struct.pack("<q", 125_000), 6, "a Currency"),
        Message(queue, struct.pack("<d", 46_082.5), 7, "a Date"),
        Message(queue, struct.pack("<h", -1), 11, "a Boolean", flags=JOURNAL),
        Message(queue, UUID(int=5).bytes_le + b"persisted", 68, "IPersistStream"),
        Message(queue, UUID(int=6).bytes_le + b"persisted", 69, "IPersistStorage"),
        Message(queue, "Ärger".encode("utf-16-le"), 8, "", application=17, receive=3_600),
    )
    identifier = SENDER_QM.bytes_le + struct.pack("<I", 2_287)  # the first of them
    report = Message(
        r"OS:DESK21\private$\replies", b"", 8, "order 17", correlation=identifier, message_class=0x0002,
        sid=False, source=RECEIVER_QM, algorithms=old,
    )  # fmt: skip
    session.talk.send(report.to_bytes(77, SENT + 30), by_client=False)
    session.talk.wait(500_000_000).send(session_ack(1, sent=(10, 1)))
    return session.to_bytes()


def nrbf_string(text: str) -> bytes:
    """A string by BinaryFormatter, [MS-NRBF]: header record, BinaryObjectString, MessageEnd."""
    data = text.encode()
    return struct.pack("<Biiii", 0, 1, -1, 1, 0) + struct.pack("<BiB", 6, 1, len(data)) + data + b"\x0b"


def system_messaging() -> bytes:
    """MessageQueue.Send with the three formatters of System.Messaging."""
    queue = r"OS:accounts01\private$\orders"
    xml = (
        '<?xml version="1.0"?>\r\n<Order xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        'xmlns:xsd="http://www.w3.org/2001/XMLSchema">\r\n  <Id>17</Id>\r\n  <Total>12.50</Total>\r\n</Order>'
    )
    session = Session()
    session.send(
        Message(queue, xml.encode(), 0, "XmlMessageFormatter"),
        Message(queue, nrbf_string("order 17"), 0x300, "BinaryMessageFormatter", recoverable=True),
        Message(queue, "order 17".encode("utf-16-le"), 0x1F, "ActiveX: String"),
        Message(queue, "order 17".encode("utf-16-le"), 0x1F, "ActiveX: Char()"),
        Message(queue, bytes(range(32)), 0x1011, "ActiveX: Byte()"),
        Message(queue, b"\xff", 11, "ActiveX: Boolean"),
        Message(queue, struct.pack("<H", ord("x")), 18, "ActiveX: Char"),
        Message(queue, struct.pack("<q", 125_000), 6, "ActiveX: Decimal"),
        Message(queue, struct.pack("<q", 639_078_000_000_000_000), 7, "ActiveX: DateTime"),  # ticks
        Message(queue, struct.pack("<q", 1 << 40), 20, "ActiveX: Int64"),
        Message(queue, struct.pack("<f", 1.5), 4, "ActiveX: Single"),
        Message(queue, UUID(int=5).bytes_le + b"persisted", 68, "ActiveX: IPersistStream"),
        Message(queue, b"", 1, "ActiveX: Nothing"),
        Message(queue, b"order 17", 0x1E, "BodyStream, BodyType 30"),
        Message(queue, b"BodyStream", 0, "BodyStream", response=r"OS:DESK21\private$\replies"),
    )
    return session.to_bytes()


def nservicebus() -> bytes:
    """NServiceBus: headers as XML in Extension, transactional, CorrelationId with number 0."""
    conversation = UUID("5a9b5d0e-2f7f-4b3a-9c0e-b2c300f1a001")
    headers = {
        "NServiceBus.MessageId": str(conversation),
        "NServiceBus.MessageIntent": "Send",
        "NServiceBus.ConversationId": str(conversation),
        "NServiceBus.CorrelationId": str(conversation),
        "NServiceBus.ReplyToAddress": "sales@DESK21",
        "NServiceBus.OriginatingMachine": "DESK21",
        "NServiceBus.OriginatingEndpoint": "Sales",
        "NServiceBus.ContentType": "text/xml",
        "NServiceBus.EnclosedMessageTypes": "Sales.PlaceOrder, Sales.Messages, Version=1.0.0.0",
        "NServiceBus.TimeSent": "2026-03-01 12:00:00:123456 Z",
        "CorrId": rf"{conversation}\0",
    }
    items = "".join(
        f"<HeaderInfo><Key>{key}</Key><Value>{value}</Value></HeaderInfo>" for key, value in headers.items()
    )
    extension = (
        '\ufeff<?xml version="1.0" encoding="utf-8"?><ArrayOfHeaderInfo '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xmlns:xsd="http://www.w3.org/2001/XMLSchema">{items}</ArrayOfHeaderInfo>'
    ).encode()
    body = b'<?xml version="1.0"?><PlaceOrder xmlns="http://tempuri.net/Sales"><Id>17</Id></PlaceOrder>'
    correlation = conversation.bytes_le + bytes(4)
    session = Session()
    session.send(
        *(
            Message(
                r"OS:accounts01\private$\billing",
                body,
                0,
                transaction=number,
                flags=DEAD_LETTER,
                response=r"OS:DESK21\private$\sales",
                extension=extension,
                correlation=correlation,
                application=1,
                reach=FOREVER,
            )
            for number in (1, 2, 3)
        )
    )
    return session.to_bytes()


def rebus() -> bytes:
    """Rebus: headers as a JSON object in Extension, the body as it is, one transaction a message."""
    headers = {
        "rbs2-intent": "p2p",
        "rbs2-msg-id": "0f4a1b7e-3d6c-4f9e-8d6b-0a7f6d2c9e01",
        "rbs2-return-address": "sales@DESK21",
        "rbs2-senttime": "2026-03-01T12:00:00.1234567+00:00",
        "rbs2-msg-type": "Sales.PlaceOrder, Sales.Messages",
        "rbs2-content-type": "application/json;charset=utf-8",
    }
    extension = json.dumps(headers, separators=(",", ":")).encode()
    body = b'{"$type":"Sales.PlaceOrder, Sales.Messages","Id":17}'
    label = "Sales.PlaceOrder/0f4a1b7e-3d6c-4f9e-8d6b-0a7f6d2c9e01"
    queue = r"OS:accounts01\private$\billing"
    session = Session()
    session.send(
        Message(queue, body, 0, label, transaction=1, flags=DEAD_LETTER, extension=extension),
        Message(
            queue, body, 0, label, transaction=2, receive=600, extension=extension
        ),  # rbs2-time-to-be-received
    )
    return session.to_bytes()


def wcf() -> bytes:
    """NetMsmqBinding: the body is .NET message framing, VT_VECTOR | VT_UI1; no SID without security."""
    body = bytes.fromhex((VECTORS / "bodies" / "wcf_body_netmsmq.hex").read_text())
    session = Session()
    session.send(
        *(
            Message(
                r"OS:accounts01\private$\wcfqueue",
                body,
                0x1011,
                transaction=number,
                flags=DEAD_LETTER,
                sid=False,
                reach=86_400,
                receive=86_400,
            )
            for number in (1, 2)
        )
    )
    return session.to_bytes()


PROGRAMS: dict[str, Callable[[], bytes]] = {
    "com": com,
    "nservicebus": nservicebus,
    "rebus": rebus,
    "system_messaging": system_messaging,
    "wcf": wcf,
}


def main() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, make in PROGRAMS.items():
        (FOLDER / f"{name}.pcap").write_bytes(make())
    return 0


if __name__ == "__main__":
    sys.exit(main())
