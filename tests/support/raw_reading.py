"""Packets that the hand-written peer gets, taken apart by `struct` alone: [MS-MQMQ] 2.2.19, 2.2.20."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from tests.support import handmade as h


@dataclass(frozen=True)
class Got:
    """A packet that has come: its kind, bytes, and fields by the names of the specifications."""

    kind: str
    data: bytes
    fields: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(name) from None


_INTERNAL = {1: "SessionAck", 2: "EstablishConnection", 3: "ConnectionParameters"}
_NAME_SIZES = {0: 0, 2: 4, 3: 4, 4: 4, 5: 16, 6: 20}


def read(data: bytes) -> Got:
    """The fields of a packet; asserts what holds for all packets."""
    version, _, flags, signature, size, reach = struct.unpack_from("<BBHLLL", data)
    assert (version, signature) == (0x10, 0x524F494C)
    if flags & h.IN:
        assert (size, reach) == (len(data), h.INFINITE)
        kind = _INTERNAL[data[18] & 0x0F]
        return Got(kind, data, {"CS": bool(data[18] & 0x10), **_internal_fields(kind, data)})
    assert size == len(data) - (16 if flags & h.BASE_SH else 0)
    fields = _message_fields(data, size, flags)
    fields["TimeToReachQueue"], fields["PR"] = reach, flags & 7
    fields.update(_session_header(data[size:]) if flags & h.BASE_SH else {})
    kind = "UserMessage"
    if fields["Label"] == "QM Ordering Ack" and flags == 0:
        kind = "OrderAck" if fields["MessageClass"] == 0xFF else "FinalAck"
    return Got(kind, data, fields)


def _internal_fields(kind: str, data: bytes) -> dict[str, Any]:
    if kind == "SessionAck":
        assert len(data) == 36
        return _session_header(data[20:])
    if kind == "EstablishConnection":
        assert len(data) == 572
        names = ("ClientGuid", "ServerGuid", "TimeStamp", "OperatingSystem", "Reserved")
        return dict(zip(names, struct.unpack_from("<16s16sLHH", data, 20), strict=True))
    assert len(data) == 32
    names = ("RecoverableAckTimeout", "AckTimeout", "Reserved", "WindowSize")
    return dict(zip(names, struct.unpack_from("<LLHH", data, 20), strict=True))


def _session_header(data: bytes) -> dict[str, Any]:
    names = (
        "AckSequenceNumber", "RecoverableMsgAckSeqNumber", "RecoverableMsgAckFlags", "UserMsgSequenceNumber",
        "RecoverableMsgSeqNumber", "WindowSize", "Reserved",
    )  # fmt: skip
    return dict(zip(names, struct.unpack("<HHLHHHH", data), strict=True))


def _message_fields(data: bytes, size: int, base_flags: int) -> dict[str, Any]:
    names = ("SourceQueueManager", "QueueManagerAddress", "TimeToBeReceived", "SentTime", "MessageID")
    *values, flags = struct.unpack_from("<16s16sLLLL", data, 16)
    fields: dict[str, Any] = dict(zip(names, values, strict=True)) | {"Flags": flags}
    at = 64
    for name, shift in (("DestinationQueue", 10), ("AdminQueue", 13), ("ResponseQueue", 16)):
        form = flags >> shift & 7
        if form == 7:
            length = struct.unpack_from("<H", data, at)[0]
            fields[name] = data[at + 2 : at + 2 + length].decode("utf-16-le").rstrip("\0")
            at += 2 + length + (-(2 + length) % 4)
        else:
            taken = 0 if name == "ResponseQueue" and form == 1 else _NAME_SIZES[form]
            fields[name] = data[at : at + taken]
            at += taken
    at += 16 if flags & h.CQ else 0
    fields["tx"] = None
    if flags & h.TH:
        told, ordinal, stamp, number, previous = struct.unpack_from("<LLLLL", data, at)
        fields["tx"] = stamp, ordinal, number, previous
        at += 36 if told & 1 else 20
    if flags & h.SH:
        sizes = struct.unpack_from("<HHHHLL", data, at)[1:]
        at += 16 + sum(one + (-one % 4) for one in sizes)
    names = (
        "wants", "LabelLength", "MessageClass", "CorrelationID", "BodyType", "ApplicationTag", "MessageSize",
        "AllocationBodySize", "PrivacyLevel", "HashAlgorithm", "EncryptionAlgorithm", "ExtensionSize",
    )  # fmt: skip
    fields |= dict(zip(names, struct.unpack_from("<BBH20sLLLLLLLL", data, at), strict=True))
    at += 56
    end = at + 2 * fields["LabelLength"]
    fields["Label"] = data[at:end].decode("utf-16-le").rstrip("\0")
    at = end + fields["ExtensionSize"]
    fields["body"] = data[at : at + fields["MessageSize"]]
    end = at + fields["AllocationBodySize"]
    if not flags & (h.MQ | h.HH) and not base_flags & h.DH:
        assert end + (-end % 4) == size
    return fields
