"""Fields of NCP packets are those that tshark finds in them: over TCP and UDP, requests and replies.

tshark's table of calls differs from the descriptions that these schemas follow in some places; every one of
them is listed here with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle, groupby
from typing import Any
from xml.etree import ElementTree

import pytest

from msmqwire.ncp.calls import Call
from msmqwire.ncp.headers import (
    BUSY,
    CREATE_CONNECTION,
    DESTROY_CONNECTION,
    NCP_PORT,
    NCP_SHORT_DESTROY_HEADER,
    NCP_TCP_REPLY,
    NCP_TCP_REQUEST,
)
from msmqwire.ncp.packets import (
    CALLS,
    CALLS_BY_NAME,
    NcpReply,
    NcpRequest,
    connection_number,
    make_reply,
    make_request,
    parse_reply,
    parse_request,
)
from msmqwire.ncp.queue_calls import OLD_JOB_ALONE, OLD_JOB_IN_QUEUE, OLD_SHORT_CHARGE, OLD_STATUS
from msmqwire.ncp.readings import PROPOSED, Readings
from msmqwire.schema import Header, Record
from msmqwire.schema.layout import Field, layout
from tests.support import captures as c
from tests.support.capture.ncp_tshark_names import BITS, NAMES, OTHER_NAMES
from tests.support.capture.netware_captures import (
    attached_reply,
    connection_request,
    reply_unit,
    request_unit,
)
from tests.support.capture.tshark import tshark
from tests.support.netware.netware_values import DistinctValues

REVERSED, HIDDEN = "the other byte order", "not shown"
TOKEN = "little-endian in NCP's reference for 23/129 and 23/137; clients only copy it"
NO_FUNCTION = "clients send a 0, which means nothing in these packets"
OTHER_READER = "tshark reads requests to NDS by a reader of its own, which knows fragments only"
DIFFERENCES: dict[str, tuple[str, str]] = {
    "QueueID/4": (REVERSED, "clients that worked against servers send ids of queues big-endian"),
    "23/53 reply.ObjectID/4": (REVERSED, "the id that 23/54 takes, where tshark, too, has it big-endian"),
    "23/136 request.DestinationQueueID/4": (REVERSED, "an id of a queue like the other, so it has its order"),
    "JobNumber/4": (REVERSED, TOKEN),
    "jobNumber/4": (REVERSED, TOKEN),
    "23/124 request.ServiceType/2": (REVERSED, "big-endian in 23/113, and in clients that use this call"),
    "23/129 request.StartPosition/4": (
        f"called job_number_long, {REVERSED}",
        "tshark takes it for a job's number; clients send 1 to begin, little-endian",
    ),
    "23/131 request.Charge/4": (REVERSED, "big-endian in clients that use this call"),
    "23/134 request.ServerStation/4": (REVERSED, "stations are little-endian in all other newer calls"),
    "23/125 reply.QueueStatus/4": (HIDDEN, "tshark shows the first byte as the status, three as reserved"),
    "104 request.FunctionCode/1": (HIDDEN, OTHER_READER),
    "104 request.SubFunctionCode/1": (HIDDEN, OTHER_READER),
    "23/26 request.TargetConnectionNumber/4": (HIDDEN, "two bytes in tshark; clients send four"),
    **{
        f"23/26 reply.{field}": (HIDDEN, "tshark shows nothing of this reply, that of 23/19 it does")
        for field in ("NetworkAddress/4", "NetworkNodeAddress/6", "NetworkSocket/2", "ConnectionType/1")
    },
    "create request.FunctionCode/1": (HIDDEN, NO_FUNCTION),
    "destroy request.FunctionCode/1": (HIDDEN, NO_FUNCTION),
    "Data/7": (HIDDEN, "tshark does not show what is in files"),
}
"""How tshark shows a field in another way, and why it is ours that is kept.

A key is a field and its size, with the packet or structure before it if that matters.
"""
ONLY_TSHARK = {
    "23/125 reply.QueueStatus/4": {("queue_status", 12, 1), ("reserved3", 13, 3)},
    "23/26 request.TargetConnectionNumber/4": {("target_connection_number", 10, 2)},
}
"""What tshark shows in the place of a field that it does not: names, offsets and sizes."""
READ_AS: dict[str, tuple[Header, str]] = {
    "23/109 request": (OLD_JOB_ALONE, "only tshark has no QueueID here; its own table has one in 23/123"),
    "23/114 request": (OLD_SHORT_CHARGE, "four bytes of charge in the interrupt list, two here"),
    "23/123 request": (OLD_JOB_IN_QUEUE, "clients send the newer structure"),
    "23/126 request": (OLD_STATUS, "32 bits in NetWare's header; servers read the first byte"),
}
"""Requests of which tshark has the layout of our other form, and why that is the other form."""


# -- what is sent ------------------------------------------------------------------------------------------

CONNECTION = 0x0203
CODES = (0x7E, 0x96, 0x99, *range(0xD0, 0xDC), 0xFB, 0xFC, 0xFF)
SIGNATURE = {"PacketSignature": bytes(range(0xC1, 0xC9))}


@dataclass(frozen=True)
class Sent:
    """A packet in the capture: a name, its bytes, of its unit if it goes over TCP, and what it answers."""

    name: str
    data: bytes
    over_tcp: bool = True
    answered: NcpRequest | None = None

    def structures(self, readings: Readings = PROPOSED) -> Iterator[Record]:
        """Yield the structures of the packet in the order of its bytes."""
        data = self.data
        if self.over_tcp:
            preamble, end = (NCP_TCP_REPLY if self.answered else NCP_TCP_REQUEST).read(data)
            yield preamble
            data = data[end:]
        if self.answered:
            packet: NcpRequest | NcpReply = parse_reply(data, self.answered, readings=readings)
        else:
            packet = parse_request(data, readings)
        yield packet.header
        if isinstance(packet, NcpRequest) and packet.subfunction is not None:
            yield packet.subfunction
        if packet.data is not None:
            yield packet.data
        assert not packet.trailing


class Talk:
    """What one client and its file server say."""

    def __init__(self, *, over_tcp: bool = True) -> None:
        self.sent: list[Sent] = []
        self.values = DistinctValues()
        self._over_tcp, self._sequence = over_tcp, 0

    def attach(self) -> None:
        request = connection_request(CREATE_CONNECTION)
        self.pair("create", request, attached_reply(request, CONNECTION))

    def destroy(self) -> None:
        request = connection_request(DESTROY_CONNECTION, CONNECTION, self.next())
        self.pair("destroy", request, make_reply(request))

    def destroy_without_function(self) -> None:
        """The end of a connection as clients send it that leave out the function."""
        numbers = {"ConnectionNumberLow": CONNECTION & 0xFF, "ConnectionNumberHigh": CONNECTION >> 8}
        header = NCP_SHORT_DESTROY_HEADER.make(SequenceNumber=self.next(), **numbers)
        request = NcpRequest(header)
        self.pair("destroy short", request, make_reply(request))

    def request(self, call: Call, schema: Header | None = None) -> NcpRequest:
        """A request whose fields have distinct values, in one of the forms of its call."""
        shape = replace(call, request=schema or call.request)
        fields = self.values.fields(shape.request)
        return make_request(shape, fields, sequence=self.next(), connection=CONNECTION, task=7)

    def pair(self, name: str, request: NcpRequest, *replies: NcpReply, **fields: Any) -> None:
        """A request and its replies; `fields` are those of the preambles."""
        over_tcp = self._over_tcp
        data = request_unit(request, **fields) if over_tcp else request.to_bytes()
        self.sent.append(Sent(f"{name} request", data, over_tcp))
        for reply in replies:
            data = reply_unit(reply, **fields) if over_tcp else reply.to_bytes()
            self.sent.append(Sent(f"{name} reply", data, over_tcp, request))

    def next(self) -> int:
        self._sequence = (self._sequence + 1) & 0xFF
        return self._sequence


def number_of(call: Call) -> str:
    return f"{call.function}/{call.number}" if call.has_subfunction else str(call.function)


def all_calls() -> Talk:
    """All calls, in all forms of their requests, and what they return."""
    talk = Talk()
    talk.attach()
    for call in CALLS.values():
        for form, schema in enumerate(call.requests):
            request = talk.request(call, schema)
            reply = make_reply(request, talk.values.fields(call.reply))
            talk.pair(number_of(call) + " short" * form, request, reply)
    talk.destroy()
    return talk


def all_refused() -> Talk:
    """All calls without success, over UDP; the first reply tells that there will be another."""
    talk = Talk(over_tcp=False)
    talk.attach()
    for call, code in zip(CALLS.values(), cycle(CODES)):
        request = talk.request(call)
        refused = make_reply(request, completion=code)
        waiting = [] if call.number % 9 else [busy(request)]
        talk.pair(number_of(call), request, *waiting, refused)
    talk.destroy_without_function()
    return talk


def busy(request: NcpRequest) -> NcpReply:
    """The reply to a request that is still processed."""
    header = make_reply(request, completion=1).header.replace(ReplyType=BUSY, CompletionCode=0)
    return NcpReply(header, request.kind)


def signed() -> Talk:
    """Packets behind their signatures."""
    talk = Talk()
    for name in ("CreateQueueJobAndFile", "ReadQueueJobEntry", "GetQueueJobList", "RestoreQueueServerRights"):
        request = talk.request(CALLS_BY_NAME[name])
        reply = make_reply(request, talk.values.fields(request.call.reply))
        talk.pair(number_of(request.call), request, busy(request), reply, **SIGNATURE)
    return talk


def frames_of(talk: Talk, port: int, *, mss: int = 1460) -> list[c.Frame]:
    """The frames of a talk over TCP, in segments of at most `mss` bytes; replies to one request together."""
    conversation = c.TcpConversation((c.CLIENT, port), (c.SERVER, NCP_PORT), mss=mss).handshake()
    for by_client, run in groupby(talk.sent, key=lambda sent: sent.answered is None):
        conversation.send(b"".join(sent.data for sent in run), by_client=by_client)
    return conversation.frames


def datagrams_of(talk: Talk, port: int) -> list[c.Frame]:
    """The frames of a talk over UDP."""
    client, server = (c.CLIENT, port), (c.SERVER, NCP_PORT)
    packets = [
        c.udp_packet(sent.data, *(client + server if sent.answered is None else server + client))
        for sent in talk.sent
    ]
    return list(c.timed(c.ethernet(packet) for packet in packets))


FORMS = {number_of(call): len(call.requests) for call in CALLS.values()}
TALKS = all_calls(), all_refused(), signed(), signed()
SENT = [sent for talk in TALKS for sent in talk.sent]


# -- what tshark finds -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """A field that tshark shows: its name without ``ncp.``, value as text, bytes in hex, and bits by name."""

    name: str
    shown: str
    data: str
    bits: dict[str, str]


Places = dict[tuple[int, int], Seen]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Places]:
    """By the number of a packet in `SENT` what tshark shows of it, by offset and size."""
    path = tmp_path_factory.mktemp("ncp") / "a.pcap"
    calls, refused, whole, spread = TALKS
    frames = [
        *frames_of(calls, 50_001), *datagrams_of(refused, 50_002), *frames_of(whole, 50_003),
        *frames_of(spread, 50_004, mss=60),
    ]  # fmt: skip
    path.write_bytes(c.pcap_bytes(frame.data for frame in frames))
    text = tshark(path, "-o", "tcp.desegment_tcp_streams:TRUE", "-Y", "ncp", "-T", "pdml", "-J", "ncp")
    assert "malformed" not in text.lower()
    protocols = [node for node in ElementTree.fromstring(text).iter("proto") if node.get("name") == "ncp"]
    assert len(protocols) == len(SENT)
    return {number: dict(_places(node)) for number, node in enumerate(protocols)}


def _places(protocol: ElementTree.Element) -> Iterator[tuple[tuple[int, int], Seen]]:
    start = int(protocol.get("pos", ""))
    bits = {id(bit) for field in protocol.iter("field") for bit in field if bit.get("unmaskedvalue")}
    for field in protocol.iter("field"):
        name, size = field.get("name", ""), int(field.get("size", "0"))
        if size and name.startswith("ncp.") and id(field) not in bits:
            inner = {bit.get("name", "")[4:]: bit.get("show", "") for bit in field if id(bit) in bits}
            seen = Seen(name[4:], field.get("show", ""), field.get("value", ""), inner)
            yield (int(field.get("pos", "")) - start, size), seen


# -- what is expected --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expected:
    """A field of ours, or several that tshark shows as one."""

    keys: tuple[str, ...]
    name: str
    offset: int
    size: int
    value: Any
    data: bytes


def expected(sent: Sent, read_as: Header | None = None, readings: Readings = PROPOSED) -> Iterator[Expected]:
    """Yield the fields of a packet; a text has its length before it, a connection number is one."""
    start = 0
    *headers, last = sent.structures(readings)
    for record in (*headers, last if read_as is None else read_as.read(last.to_bytes())[0]):
        data, fields = record.to_bytes(), list(layout(record))
        for before, field, after in zip([None, *fields], fields, [*fields[1:], None], strict=False):
            offset, size, value, name = field.offset, field.size, field.value, field.node.name
            if name == "ConnectionNumberHigh" or _is_length(field, after) or _is_rest_of_time(field):
                continue
            if before is not None and _is_length(before, field):
                offset, size = before.offset, size + 1
            if name == "ConnectionNumberLow":
                name, size, value = "ConnectionNumber", 3, connection_number(record)
            if ".targetExecutionTime." in field.path:
                name, size, value = "targetExecutionTime", 6, b""
            if name == "Length":
                value = value.Size
            owners = f"{sent.name}.", f"{field.header.name}.", ""
            names = next(filter(None, (OTHER_NAMES.get(owner + name) for owner in owners)), NAMES[name])
            shown = names if isinstance(names, str) else names[size]
            keys = tuple(f"{owner}{name}/{size}" for owner in owners)
            yield Expected(keys, shown, start + offset, size, value, data[offset : offset + size])
        start += len(data)


def _is_length(field: Field, after: Field | None) -> bool:
    return after is not None and field.node.name == f"{after.node.name}Length"


def _is_rest_of_time(field: Field) -> bool:
    return ".targetExecutionTime." in field.path and field.node.name != "Year"


def outcome(field: Expected, seen: Seen | None) -> str:
    """How what tshark shows of a field differs; empty if it does not."""
    if seen is None:
        return HIDDEN
    found = [] if seen.name == field.name else [f"called {seen.name}"]
    if seen.data != field.data.hex():
        found.append(f"bytes {seen.data}")
    if isinstance(field.value, int) and ":" not in seen.shown:  # a number, not a string of bytes
        shown = int(seen.shown, 0)
        if shown == int.from_bytes(field.value.to_bytes(field.size, "big"), "little") != field.value:
            found.append(REVERSED)
        elif shown != field.value:
            found.append(f"shown as {shown:#x}")
    bits = BITS.get(seen.name, {})
    if {name: str(int(getattr(field.value, bit))) for bit, name in bits.items()} != seen.bits and bits:
        found.append(f"bits {seen.bits}")
    return ", ".join(found)


def listed(field: Expected) -> str:
    """The key of the known difference of a field; empty if it has none."""
    return next((key for key in field.keys if key in DIFFERENCES), "")


def differences(sent: Sent, places: Places, read_as: Header | None = None) -> list[str]:
    """What is not as it is listed."""
    fields = list(expected(sent, read_as))
    base = next(field.offset for field in fields if field.name == "type")
    wrong = []
    for field in fields:
        known, _ = DIFFERENCES.get(listed(field), ("", ""))
        if (is_now := outcome(field, places.get((field.offset, field.size)))) != known:
            wrong.append(f"{field.keys[0]} at {field.offset}: {is_now or 'no difference'}")
    ours = {(field.offset, field.size) for field in fields}
    more = {(seen.name, at - base, size) for (at, size), seen in places.items() if (at, size) not in ours}
    known_more = set[Any]().union(*(ONLY_TSHARK.get(listed(field), set()) for field in fields))
    return wrong + [f"only tshark: {field}" for field in more ^ known_more]


# -- tests -------------------------------------------------------------------------------------------------

PACKETS: dict[str, list[int]] = {}
for _number, _sent in enumerate(SENT):
    PACKETS.setdefault(_sent.name, []).append(_number)


@pytest.mark.parametrize("name", PACKETS)
def test_fields(found: dict[int, Places], name: str) -> None:
    for number in PACKETS[name]:
        other, _ = READ_AS.get(name, (None, ""))
        assert differences(SENT[number], found[number], other) == []
        assert other is None or differences(SENT[number], found[number])


def test_every_difference_that_is_listed_is_in_a_packet() -> None:
    shown = {listed(field) for sent in SENT if sent.name not in READ_AS for field in expected(sent)}
    assert shown - {""} == DIFFERENCES.keys()
    assert PACKETS.keys() >= READ_AS.keys()
    assert DIFFERENCES.keys() >= ONLY_TSHARK.keys()


def test_the_other_readings_are_those_of_tshark(found: dict[int, Places]) -> None:
    readings = Readings(
        queue_id="little", job_number="big", service_type="little", charge="little", start_position="big",
        server_station="big", destination_queue_id="little",
    )  # fmt: skip
    left = {
        field.keys[0]
        for number, sent in enumerate(SENT)
        if sent.name not in READ_AS
        for field in expected(sent, readings=readings)
        if REVERSED in outcome(field, found[number].get((field.offset, field.size)))
    }
    start = "request.StartPosition/4"  # where tshark has another name and order than in 23/129
    assert left == {"23/53 reply.ObjectID/4", f"23/137 {start}", f"23/138 {start}"}


def test_the_capture_has_all_of_it() -> None:
    assert {call.number for call in CALLS.values() if call.function == 23} >= {*range(100, 139)}
    assert PACKETS.keys() == {
        f"{name}{form} {direction}"
        for name, forms in {"create": 1, "destroy": 2, **FORMS}.items()
        for form in ("", " short")[:forms]
        for direction in ("request", "reply")
    }
    codes = {list(sent.structures())[-1].get("CompletionCode") for sent in TALKS[1].sent if sent.answered}
    assert codes >= set(CODES)


@pytest.mark.requirement(*(f"QMS-jobfields-{number:02}" for number in range(1, 19)))
def test_the_job_structure_as_tshark_reads_it(found: dict[int, Places]) -> None:
    first = PACKETS["23/108 reply"][0]
    assert differences(SENT[first], found[first]) == [], "each field of ours is at one of these places"
    places = {seen.name: (at - 16, size) for (at, size), seen in found[first].items() if at >= 16}
    assert list(places.items()) == [
        ("client_station", (0, 1)),
        ("client_task_number", (1, 1)),
        ("client_id_number", (2, 4)),
        ("target_server_id_number", (6, 4)),
        ("target_execution_time", (10, 6)),
        *[
            (name, (16 + at, 1))
            for at, name in enumerate(("year", "s_month", "s_day", "s_hour", "s_minute", "s_second"))
        ],
        ("job_number", (22, 2)),
        ("job_type", (24, 2)),
        ("job_position", (26, 1)),
        ("job_control_flags", (27, 1)),
        ("job_file_name", (28, 14)),
        ("job_file_handle", (42, 6)),
        ("server_station", (48, 1)),
        ("server_task_number", (49, 1)),
        ("server_id_number", (50, 4)),
        ("text_job_description", (54, 50)),
        ("client_record_area", (104, 152)),
    ]
