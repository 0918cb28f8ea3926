"""NetWare's queue services as layers: NCP over TCP and UDP, its headers, and the calls that msmqwire reads.

A call is its headers and ``Ncp..._Request`` or ``Ncp..._Reply`` with the name of the call, whose fields are
those of its data. A shorter form of a request is ``Ncp..._ShortRequest``, a longer form of a reply
``Ncp..._LongReply``. A reply does not name its call: its data are bytes until its request is known.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from scapy.config import conf
from scapy.layers.inet import TCP, UDP
from scapy.packet import Packet as ScapyPacket
from scapy.packet import bind_layers

from msmqwire.errors import MalformedPacket
from msmqwire.ncp import headers
from msmqwire.ncp.calls import FUNCTION_23, WITH_SUBFUNCTIONS, Call
from msmqwire.ncp.framing import unit_size
from msmqwire.ncp.packets import CALLS, connection_number, parse_reply
from msmqwire.ncp.queue_calls import EMPTY
from msmqwire.plugins.scapy.fields import NAMES
from msmqwire.plugins.scapy.netware_names import NUMBERS
from msmqwire.plugins.scapy.structure import LAYERS, OWNERS, Structure, owner_of, partial, with_raw_values
from msmqwire.schema import Header, head_size

UNITS_MAX: Final = 16
"""Limit of units shown in one segment, since scapy handles payloads recursively. Bytes after them are raw."""
REQUESTS_MAX: Final = 256
"""Limit of the latest requests remembered for one stream."""
_REMEMBERED: Final = "ncp requests"

OWNERS.update(dict.fromkeys(("Ncp", "NW"), __name__))
NAMES.update(NUMBERS)


class _NcpHeader(Structure):
    """A header of a request or reply."""

    def data_layer(self, data: bytes) -> type[Structure] | None:
        """Return the layer of the bytes after this header; None if they are shown as they are."""
        raise NotImplementedError

    def do_dissect_payload(self, s: bytes) -> None:
        """Add the following bytes as their layer, which may be empty, or as raw bytes if they don't fit
        it.
        """
        stop = self.stop_dissection_after
        cls = None if stop is not None and isinstance(self, stop) else self.data_layer(s)
        if cls is not None:
            try:
                if not s:
                    cls.schema.read(s)  # scapy would treat no bytes as a layer to build
                self.add_payload(cls(s, stop_dissection_after=stop, _internal=1, _underlayer=self))
            except MalformedPacket:
                pass
            else:
                return
        if s:
            self.add_payload(conf.raw_layer(s, _internal=1, _underlayer=self))


class _Numbered(_NcpHeader):
    """A header with the numbers that pair requests and replies."""

    @property
    def connection(self) -> int:
        """The number of the connection."""
        return connection_number(self)

    def hashret(self) -> bytes:
        return int(self.SequenceNumber & 0xFF).to_bytes()

    def _summary(self, kind: str, more: str = "") -> Any:
        text = f"NCP {kind} connection={self.connection} sequence={self.SequenceNumber}{more}"
        return text, [TCP, UDP, NcpRequestHeader, NcpReplyHeader]


def _dispatch_datagram(
    cls: type[ScapyPacket], _pkt: bytes = b"", *args: Any, **kargs: Any
) -> type[ScapyPacket]:
    """Return the layer of the header at the start of a datagram; raw bytes if it has none."""
    return _in_datagram(_pkt) if isinstance(kargs.get("_underlayer"), UDP) else cls


class NcpRequestHeader(_Numbered):
    schema = headers.NCP_REQUEST_HEADER
    dispatch_hook = classmethod(_dispatch_datagram)

    @property
    def call(self) -> Call | None:
        """The call of the layers after this header; None for other layers."""
        data = self.payload.payload if isinstance(self.payload, NcpSubfunctionHeader) else self.payload
        return data.call if isinstance(data, _Data) else None

    def data_layer(self, data: bytes) -> type[Structure] | None:
        if self.RequestType != headers.SERVICE_REQUEST:
            return None
        if self.FunctionCode in WITH_SUBFUNCTIONS:
            return NcpSubfunctionHeader
        return _request_layer(self.FunctionCode, self.FunctionCode, data)

    def answers(self, other: ScapyPacket) -> int:
        """Return 0: a request is not an answer."""
        return 0

    def mysummary(self) -> Any:
        if self.RequestType == headers.SERVICE_REQUEST:
            kind = self.call.name if self.call else f"function {self.FunctionCode}"
        else:
            kind = self.sprintf("%RequestType%")
        return self._summary(f"{kind} request")


class NcpRequestHeaderShort(_Numbered):
    schema = headers.NCP_SHORT_DESTROY_HEADER

    def data_layer(self, data: bytes) -> type[Structure] | None:
        return None

    def answers(self, other: ScapyPacket) -> int:
        """Return 0: a request is not an answer."""
        return 0

    def mysummary(self) -> Any:
        return self._summary("DestroyConnection request")


class NcpSubfunctionHeader(_NcpHeader):
    schema = headers.NCP_SUBFUNCTION_HEADER
    StructureLength = None

    @property
    def function(self) -> int:
        """The function in the header before this; without one, that of the call after this."""
        below = self.underlayer
        return below.FunctionCode if isinstance(below, NcpRequestHeader) else self._function_of_call()

    def data_layer(self, data: bytes) -> type[Structure] | None:
        return _request_layer(self.function, self.SubFunctionCode, data)

    def add_underlayer(self, underlayer: ScapyPacket) -> None:
        self.overload_fields = {NcpRequestHeader: {"FunctionCode": self._function_of_call()}}
        super().add_underlayer(underlayer)

    def add_payload(self, payload: ScapyPacket | bytes) -> None:
        super().add_payload(payload)
        self._renew_function()

    def remove_payload(self) -> None:
        super().remove_payload()
        self._renew_function()

    def _function_of_call(self) -> int:
        data = self.payload
        return data.call.function if isinstance(data, _Data) and data.call.has_subfunction else FUNCTION_23

    def _renew_function(self) -> None:
        """Renew the default FunctionCode of the header before this, which may have been added first.

        A copy of this layer alone still refers to the header of its original, which keeps its own.
        """
        below = self.underlayer
        if isinstance(below, NcpRequestHeader) and below.payload is self:
            below.overloaded_fields = {"FunctionCode": self._function_of_call()}

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Return all bytes, their StructureLength set if it was left out. Raises InvalidValue."""
        if self.StructureLength is None:
            size = len(pkt) + len(pay) - self.get_field("StructureLength").sz
            pkt = _built_with(self, {"StructureLength": size})
        return pkt + pay


class NcpReplyHeader(_Numbered):
    """The header of a reply. `call` is the call that it answers, None while it is not known."""

    __slots__ = ["call"]
    schema = headers.NCP_REPLY_HEADER
    dispatch_hook = classmethod(_dispatch_datagram)

    def __init__(self, *args: Any, **kargs: Any) -> None:
        self.call: Call | None = None
        super().__init__(*args, **kargs)

    def data_layer(self, data: bytes) -> type[Structure] | None:
        return None

    def read_as(self, call: Call) -> None:
        """Treat this as a reply to a call, and parse its data as such if they fit."""
        self.call = call
        data = self.payload
        if not isinstance(data, conf.raw_layer) or isinstance(data, conf.padding_layer):
            return
        try:
            found = parse_reply(self.self_build() + data.load, call=call).data
        except MalformedPacket:
            return
        cls = REPLIES[call.function, call.number].get("" if found is None else found.schema.key)
        if cls is None:
            return
        shown = cls(data.load, _internal=1, _underlayer=self)
        following = data.payload
        self.remove_payload()
        self.add_payload(shown)
        if following:
            shown.lastlayer().add_payload(following)

    def answers(self, other: ScapyPacket) -> int:
        """Whether this has the numbers of a request and answers it; its data are then parsed."""
        is_request = isinstance(other, NcpRequestHeader | NcpRequestHeaderShort)
        if not is_request or self.ReplyType != headers.REPLY or self.SequenceNumber != other.SequenceNumber:
            return 0
        if other.RequestType != headers.CREATE_CONNECTION and self.connection != other.connection:
            return 0
        if isinstance(other, NcpRequestHeader) and other.call is not None:
            self.read_as(other.call)
        return 1

    def copy(self) -> Any:
        """Return a deep copy."""
        clone = super().copy()
        clone.call = self.call
        return clone

    def clone_with(self, *args: Any, **kargs: Any) -> Any:
        """Return a copy with other fields."""
        clone = super().clone_with(*args, **kargs)
        clone.call = self.call
        return clone

    def mysummary(self) -> Any:
        data = self.payload
        call = data.call if isinstance(data, _Data) else self.call
        refused = self.sprintf(" completion=%CompletionCode%") if self.CompletionCode else ""
        return self._summary(f"{call.name} reply" if call else "reply", refused)


_HEADERS: Final[dict[int, type[_Numbered]]] = {
    headers.CREATE_CONNECTION: NcpRequestHeader,
    headers.SERVICE_REQUEST: NcpRequestHeader,
    headers.DESTROY_CONNECTION: NcpRequestHeader,
    headers.REPLY: NcpReplyHeader,
    headers.BUSY: NcpReplyHeader,
}
"""The layers of headers by their leading types."""


def _in_datagram(data: bytes) -> type[ScapyPacket]:
    """Return the layer of the header at the start of bytes; raw bytes if there is no complete one."""
    kind = int.from_bytes(data[:2], "big")
    if kind == headers.DESTROY_CONNECTION and len(data) == head_size(NcpRequestHeaderShort.schema):
        return NcpRequestHeaderShort
    cls = _HEADERS.get(kind)
    return conf.raw_layer if cls is None or len(data) < head_size(cls.schema) else cls


# -- data of calls ------------------------------------------------------------------------------------------


class _Data(Structure, is_layer_of_schema=False):
    """The data of a call, which several calls may have."""

    call: ClassVar[Call]


def _make(call: Call, schema: Header, direction: str) -> type[_Data]:
    number = f"{call.function}/{call.number}" if call.has_subfunction else str(call.function)
    key = "SubFunctionCode" if call.has_subfunction else "FunctionCode"
    space: dict[str, Any] = {
        "name": f"NCP {call.name} {direction}",
        "schema": schema,
        "call": call,
        "__doc__": f"NCP {number}, {direction}. {schema.meaning}".strip(),
        "__module__": __name__,
    }
    if direction.endswith("request"):
        below = NcpSubfunctionHeader if call.has_subfunction else NcpRequestHeader
        space["overload_fields"] = {below: {key: call.number}}
    name = f"Ncp{call.name}_{''.join(word.capitalize() for word in direction.split())}"
    metaclass: Any = type(_Data)
    made: type[_Data] = metaclass(name, (_Data,), space, is_layer_of_schema=False)
    globals()[name] = made
    return made


def _forms(call: Call, schemas: tuple[Header, ...], *directions: str) -> dict[str, type[_Data]]:
    """The layers of the forms of a call's data, by the keys of their structures."""
    return {schema.key: _make(call, schema, directions[number > 0]) for number, schema in enumerate(schemas)}


REQUESTS: Final = {
    number: _forms(call, call.requests, "request", "short request") for number, call in CALLS.items()
}
"""The layers of the requests of a call, by the keys of their structures."""
REPLIES: Final = {
    number: _forms(call, () if call.reply is EMPTY else call.replies, "reply", "long reply")
    for number, call in CALLS.items()
}
"""The layers of the replies of a call; none for calls without data in replies."""
globals().update({cls.__name__: cls for cls in LAYERS.values() if owner_of(cls.schema) == __name__})


def _request_layer(function: int, number: int, data: bytes) -> type[Structure] | None:
    call = CALLS.get((function, number))
    return None if call is None else REQUESTS[function, number][call.request_of_size(len(data)).key]


# -- NCP over TCP -------------------------------------------------------------------------------------------


class _NcpUnit(Structure):
    """A preamble; the NCP packet is its payload, and the next unit of the segment the payload of that."""

    def do_build(self) -> bytes:
        """Return the bytes of this unit and of the layers after it. Raises InvalidValue."""
        fixed = self if self.explicit else next(iter(self))
        layers: list[ScapyPacket] = [fixed]
        following = fixed.payload
        while following and not isinstance(following, _NcpUnit | conf.padding_layer):
            layers.append(following)
            following = following.payload
        data = b""
        for layer in reversed(layers):
            own = (layer if layer.explicit else next(iter(layer))).self_build()
            for transform in layer.post_transforms:
                own = transform(own)
            data = layer.post_build(own, data)
        return data + bytes(following.do_build())

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Return all bytes, with their number if the Size was left out. Raises InvalidValue."""
        if self.Size is None:
            signed = {} if self.Signed is None else {"Signed": self.Signed}
            pkt = _built_with(self, {"Length": {"Size": len(pkt) + len(pay), **signed}})
        return pkt + pay

    def dissect(self, s: bytes) -> None:
        """Take the packet of this unit; other units may follow in the same bytes.

        Raises MalformedPacket if the preamble is wrong or incomplete.
        """
        rest = self._dissect_one(s)
        last = self.lastlayer()
        for _ in range(UNITS_MAX - 1):
            following = unit_layer(rest)
            if following is None:
                break
            unit = following(_internal=1)
            rest = unit._dissect_one(rest)
            last.add_payload(unit)
            last = unit.lastlayer()
        if rest and unit_layer(rest):
            last.add_payload(conf.raw_layer(rest, _internal=1))
        elif rest and conf.padding:
            last.add_payload(conf.padding_layer(rest))

    def _dissect_one(self, s: bytes) -> bytes:
        """Take the packet of this unit, and return the bytes after it."""
        inside = self.do_dissect(s)
        size = max(0, self.Size - (len(s) - len(inside)))
        self.do_dissect_payload(inside[:size])
        return inside[size:]

    def guess_payload_class(self, payload: bytes) -> type[ScapyPacket]:
        return _in_datagram(payload)

    @classmethod
    def tcp_reassemble(
        cls, data: bytes, metadata: dict[str, Any], session: dict[str, Any]
    ) -> ScapyPacket | None:
        """Return the complete units, the bytes after them as padding; None for part of one.

        Bytes in which no unit begins are raw. Requests are remembered in `session`, and replies to them are
        parsed.
        """
        for layer in (cls, *(other for other in UNITS if other is not cls)):
            try:
                sizes = _sizes(layer, data)
            except MalformedPacket:
                continue
            break
        else:
            return conf.raw_layer(data)
        if not sizes:
            if "tcp_end" in metadata:
                return conf.raw_layer(data)
            # scapy loses the identity of a stream once it has returned a packet of it
            metadata.update(pay_class=layer, tcp_reassemble=layer.tcp_reassemble)
            return None
        # TCPSession misplaces bytes after a third packet in its buffer, so it gets all at once. StreamSocket
        # passes no `metadata`, and takes one unit at a time.
        end = sum(sizes if "original" in metadata else sizes[:1])
        packet = layer(data[:end])
        _pair(packet, session.setdefault(_REMEMBERED, {}))
        return packet / conf.padding_layer(data[end:]) if data[end:] else packet


def _dispatch_segment(
    cls: type[ScapyPacket], _pkt: bytes = b"", *args: Any, **kargs: Any
) -> type[ScapyPacket]:
    """Return the layer of the unit at the start of a segment; raw bytes if there is none."""
    return (unit_layer(_pkt) or conf.raw_layer) if isinstance(kargs.get("_underlayer"), TCP) else cls


class NcpTcpRequest(_NcpUnit):
    schema = headers.NCP_TCP_REQUEST
    dispatch_hook = classmethod(_dispatch_segment)
    Size = None


class NcpTcpReply(_NcpUnit):
    schema = headers.NCP_TCP_REPLY
    dispatch_hook = classmethod(_dispatch_segment)
    Size = None

    def answers(self, other: ScapyPacket) -> int:
        """Whether the reply in this answers the request in another unit."""
        return int(isinstance(other, NcpTcpRequest) and self.payload.answers(other.payload))


UNITS: Final = (NcpTcpRequest, NcpTcpReply)


def unit_layer(data: bytes) -> type[_NcpUnit] | None:
    """Return the layer of the unit that begins in these bytes, with all of its preamble."""
    for cls in UNITS:
        try:
            unit_size(cls.schema, data)
            cls.schema.read(data)
        except MalformedPacket:
            continue
        return cls
    return None


def _sizes(layer: type[_NcpUnit], data: bytes) -> list[int]:
    """The sizes of the complete units at the start of bytes. Raises MalformedPacket if there can't be any."""
    sizes: list[int] = []
    end = 0
    while len(sizes) < UNITS_MAX:
        try:
            size = unit_size(layer.schema, data, end)
        except MalformedPacket:
            if not sizes:
                raise
            break
        if not size or end + size > len(data):
            break
        sizes.append(size)
        end += size
    return sizes


def _pair(packet: ScapyPacket, requests: dict[tuple[int, int], Call]) -> None:
    """Remember the requests in a packet, and parse its replies by them.

    A server may send the reply to the same request again.
    """
    for layer in packet.iterpayloads():
        if not isinstance(layer, _Numbered):
            continue
        numbers = layer.connection, layer.SequenceNumber
        if isinstance(layer, NcpReplyHeader):
            if numbers in requests:
                layer.read_as(requests[numbers])
            continue
        requests.pop(numbers, None)
        if isinstance(layer, NcpRequestHeader) and layer.call is not None:
            while len(requests) >= REQUESTS_MAX:
                del requests[next(iter(requests))]
            requests[numbers] = layer.call


def _built_with(layer: Structure, computed: dict[str, Any]) -> bytes:
    """The bytes of one layer with fields that its payload decides. Raises InvalidValue."""
    record = partial(layer)
    for name, value in computed.items():
        setattr(record, name, value)
    return with_raw_values(layer, layer.schema.make(record))


def stream_layer(data: bytes) -> type[ScapyPacket] | None:
    """Return the layer of a stream that begins with these bytes; None if it is not NCP."""
    return unit_layer(data)


def bind() -> None:
    """Bind the layers to port 524."""
    port = headers.NCP_PORT
    for below, request, reply in (
        (TCP, NcpTcpRequest, NcpTcpReply),
        (UDP, NcpRequestHeader, NcpReplyHeader),
    ):
        bind_layers(below, reply, sport=port)
        bind_layers(below, request, dport=port)
