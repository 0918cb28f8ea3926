"""The headers of packets as layers: [MS-MQMQ] 2.2.19 and 2.2.20, [MS-MQQB] 2.2, [MS-MQRR] 2.2.5.

A layer is named after its structure, with ``MSMQ`` before it, and so are the structures inside headers:
`msmqwire.plugins.scapy.structure.LAYERS` has them all. Layers that answer one another are written out here.
"""

from __future__ import annotations

from typing import Any, Final

from scapy.config import conf
from scapy.layers.inet import UDP
from scapy.packet import Packet as ScapyPacket

from msmqwire import headers
from msmqwire.headers import propvariant
from msmqwire.ping import PING, is_ping
from msmqwire.plugins.scapy.structure import LAYERS, Structure, layer
from msmqwire.schema import Header


class MSMQSessionHeader(Structure):
    schema = headers.SESSION_HEADER


class MSMQInternalHeader(Structure):
    schema = headers.INTERNAL_HEADER

    def answers(self, other: ScapyPacket) -> int:
        """Whether this answers a packet of its kind, or, as a SessionAck, acknowledges a message."""
        if not isinstance(self.payload, MSMQSessionHeader):
            return self.payload.answers(other.payload) if isinstance(other, MSMQInternalHeader) else 0
        message = other.getlayer(MSMQSessionHeader)
        if message is None or isinstance(other, MSMQInternalHeader):
            return 0
        return int(self.payload.AckSequenceNumber >= message.UserMsgSequenceNumber)


class MSMQEstablishConnectionHeader(Structure):
    schema = headers.ESTABLISH_CONNECTION_HEADER

    def hashret(self) -> bytes:
        return bytes(self.ClientGuid.bytes_le)

    def answers(self, other: ScapyPacket) -> int:
        """Whether ClientGuid and TimeStamp equal those of the request: MQQB-2.2.3.1-02, MQQB-2.2.3.1-07."""
        return int(
            isinstance(other, MSMQEstablishConnectionHeader)
            and self.ClientGuid == other.ClientGuid
            and self.TimeStamp == other.TimeStamp
        )


class MSMQConnectionParametersHeader(Structure):
    schema = headers.CONNECTION_PARAMETERS_HEADER

    def hashret(self) -> bytes:
        return b"ConnectionParameters"

    def answers(self, other: ScapyPacket) -> int:
        """Whether both are ConnectionParameters, in which request and response look alike."""
        return int(isinstance(other, MSMQConnectionParametersHeader))


class MSMQPing(Structure):
    schema = PING

    @classmethod
    def dispatch_hook(cls, _pkt: bytes = b"", *args: Any, **kargs: Any) -> type[ScapyPacket]:
        """Return this layer; raw bytes for a datagram that is not a ping."""
        is_other = isinstance(kargs.get("_underlayer"), UDP) and not is_ping(_pkt)
        return conf.raw_layer if is_other else cls

    def hashret(self) -> bytes:
        return int(self.Cookie).to_bytes(4, "little")

    def answers(self, other: ScapyPacket) -> int:
        """Whether the Cookie equals that of the request: MQQB-2.2.7-11."""
        return int(isinstance(other, MSMQPing) and self.Cookie == other.Cookie)

    def mysummary(self) -> Any:
        refused = " refused" if self.RF else ""
        return f"MSMQ Ping Cookie={self.Cookie:#010x} QMGuid={self.QMGuid}{refused}", [UDP]


# Structures of remote calls to the directory, which no packet has, are left out.
_ELSEWHERE: Final = frozenset(id(value) for value in vars(propvariant).values())
for _schema in map(vars(headers).get, headers.__all__):
    if isinstance(_schema, Header) and id(_schema) not in _ELSEWHERE:
        layer(_schema)
globals().update({cls.__name__: cls for cls in LAYERS.values()})
