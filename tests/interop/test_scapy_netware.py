"""The layers of NCP as users of scapy meet them: found, shown, built, paired, answered."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from itertools import pairwise
from threading import Thread

import pytest
from scapy.config import conf
from scapy.fields import RawVal
from scapy.layers.inet import IP, TCP, UDP
from scapy.packet import Packet as ScapyPacket
from scapy.packet import Padding, Raw, fuzz
from scapy.plist import PacketList
from scapy.sendrecv import sniff
from scapy.sessions import TCPSession
from scapy.supersocket import StreamSocket
from scapy.volatile import RandByte

from msmqwire.errors import InvalidValue
from msmqwire.ncp.headers import BUSY, CREATE_CONNECTION, NCP_PORT
from msmqwire.ncp.packets import parse_request
from msmqwire.plugins.scapy import (
    NcpChangeQueueJobEntryOld_ShortRequest,
    NcpCreateQueue_Request,
    NcpDirectoryServices_Request,
    NcpGetQueueJobList_Reply,
    NcpGetQueueJobList_Request,
    NcpGetVolumeNumber_Request,
    NcpJobNumber,
    NcpLogout_Request,
    NcpReadQueueCurrentStatusOld_LongReply,
    NcpReadQueueCurrentStatusOld_Reply,
    NcpReadQueueCurrentStatusOld_Request,
    NcpReplyHeader,
    NcpRequestHeader,
    NcpRequestHeaderShort,
    NcpRestoreQueueServerRights_Request,
    NcpSubfunctionHeader,
    NcpTcpReply,
    NcpTcpRequest,
    NcpWriteFile_Request,
    netware,
)
from msmqwire.plugins.scapy.netware import UNITS_MAX
from tests.support.patience import limit

LIST = (
    NcpRequestHeader(SequenceNumber=9, ConnectionNumberLow=3)
    / NcpSubfunctionHeader()
    / NcpGetQueueJobList_Request()
)
NUMBERS = NcpReplyHeader(SequenceNumber=9, ConnectionNumberLow=3)
LISTED = NUMBERS / NcpGetQueueJobList_Reply(JobNumbers=[NcpJobNumber(JobNumber=7)])
WAIT = NcpReplyHeader(ReplyType=BUSY, SequenceNumber=9, ConnectionNumberLow=3)
TO_SERVER, FROM_SERVER = {"sport": 1024, "dport": NCP_PORT}, {"sport": NCP_PORT, "dport": 1024}


@pytest.fixture(autouse=True)
def _no_error_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "debug_dissector", True)


def segments(data: bytes, *cuts: int, flags: str = "A", **ports: int) -> list[ScapyPacket]:
    """The segments of a stream that is cut at these places."""
    places = [0, *cuts, len(data)]
    return [
        IP(
            bytes(
                IP(src="127.0.0.1", dst="127.0.0.1")
                / TCP(**ports, flags=flags, seq=1 + start)
                / data[start:end]
            )
        )
        for start, end in pairwise(places)
    ]


# -- building -------------------------------------------------------------------------------------------


def test_what_follows_from_the_rest_is_filled_in() -> None:
    stack = NcpTcpRequest(PacketSignature=b"8 bytes.") / LIST
    unit = NcpTcpRequest(bytes(stack))
    assert (unit.Size, unit.Signed, unit.FunctionCode) == (len(bytes(stack)), 1, 23)
    assert (unit.StructureLength, unit.SubFunctionCode) == (9, 129)
    assert (IP() / TCP() / stack)[TCP].dport == NCP_PORT
    assert (IP() / UDP() / LISTED)[UDP].sport == NCP_PORT
    data = NcpRequestHeader(bytes(NcpRequestHeader() / NcpWriteFile_Request(Data=b"12345")))
    assert (data.FunctionCode, data.ByteCount) == (73, 5)


@pytest.mark.parametrize(
    "layer",
    [layer for forms in netware.REQUESTS.values() for layer in forms.values()],
    ids=lambda layer: layer.__name__,
)
def test_the_function_is_that_of_the_call(layer: type[netware._Data]) -> None:
    head, data = NcpRequestHeader(SequenceNumber=9), layer()
    if layer.call.has_subfunction:
        below = NcpSubfunctionHeader()
        stacks = [head / below / data, head / (below / data), (head / below / data).copy()]
    else:
        stacks = [head / data]
    for stack in stacks:
        assert stack.FunctionCode == layer.call.function
        assert parse_request(bytes(stack)).call is layer.call
        assert (NcpTcpRequest() / stack).FunctionCode == layer.call.function
        assert bytes(NcpTcpRequest() / stack).endswith(bytes(stack))


def test_the_function_follows_the_call_that_is_there() -> None:
    volume = NcpRequestHeader() / NcpSubfunctionHeader() / NcpGetVolumeNumber_Request(VolumeName="SYS")
    assert bytes(volume).hex() == "222200000000160005050353" + b"YS".hex()
    below = volume[NcpSubfunctionHeader]
    below.remove_payload()
    assert (volume.FunctionCode, below.SubFunctionCode) == (23, 0)
    assert bytes(below / NcpGetVolumeNumber_Request())[2] == 5
    assert volume.FunctionCode == 23
    volume = volume / NcpGetVolumeNumber_Request()
    assert (volume.FunctionCode, volume.SubFunctionCode) == (22, 5)
    assert NcpRequestHeader(bytes(volume)).summary() == "NCP GetVolumeNumber request connection=0 sequence=0"
    given = NcpRequestHeader(FunctionCode=23) / NcpSubfunctionHeader() / NcpGetVolumeNumber_Request()
    assert bytes(given)[6] == 23


def test_what_is_given_stays() -> None:
    stack = NcpTcpRequest(Size=5, Signed=1) / NcpRequestHeader(FunctionCode=1)
    stack = stack / NcpSubfunctionHeader(StructureLength=0xFFFF, SubFunctionCode=2) / NcpLogout_Request()
    assert bytes(stack)[4:8].hex() == "80000005"
    assert bytes(stack)[-4:].hex() == "01ffff02"
    assert bytes(NcpTcpReply(Signed=1) / NUMBERS)[4:8].hex() == "80000010"
    small = NcpTcpReply(bytes(NcpTcpReply(Size=3) / NUMBERS))
    assert small.payload == Padding(bytes(NUMBERS))
    assert bytes(NcpTcpReply(Signature=RawVal(b"xyz")) / NUMBERS)[:7] == b"xyz\0\0\0\x0f"


def test_each_unit_of_a_segment_has_its_own_size() -> None:
    stack = NcpTcpReply() / WAIT / NcpTcpReply() / LISTED / NcpTcpReply() / NUMBERS
    data = bytes(stack)
    assert data == b"".join(bytes(NcpTcpReply() / packet) for packet in (WAIT, LISTED, NUMBERS))
    segment = TCP(bytes(TCP(**FROM_SERVER) / stack))
    assert "reply connection=3 sequence=9 / NCP reply connection=3 sequence=9" in segment.summary()
    assert [layer.Size for layer in segment.iterpayloads() if isinstance(layer, NcpTcpReply)] == [16, 28, 16]
    assert bytes(segment.payload) == data


def test_data_that_no_length_can_count() -> None:
    with pytest.raises(InvalidValue):
        bytes(NcpSubfunctionHeader() / Raw(bytes(0x10000)))


def test_drawn_packets_are_built() -> None:
    drawn = fuzz(NcpTcpRequest() / NcpRequestHeader() / NcpSubfunctionHeader() / NcpCreateQueue_Request())
    first, second = bytes(drawn), bytes(drawn)
    assert first != second
    size = int.from_bytes(first[4:8], "big") & 0x7FFFFFFF
    assert size == len(first)


# -- dissecting -----------------------------------------------------------------------------------------


def test_requests_without_data_have_their_layer() -> None:
    restore = NcpRequestHeader() / NcpSubfunctionHeader() / NcpRestoreQueueServerRights_Request()
    assert parse_request(bytes(restore)).kind == "RestoreQueueServerRights request"
    assert NcpRestoreQueueServerRights_Request in NcpRequestHeader(bytes(restore))
    logout = UDP(bytes(UDP(**TO_SERVER) / NcpRequestHeader() / NcpLogout_Request()))
    assert NcpLogout_Request in logout
    assert "NCP Logout request connection=0 sequence=0" in logout.summary()
    create = NcpRequestHeader(bytes(NcpRequestHeader(RequestType="CreateConnection", FunctionCode=25)))
    assert NcpLogout_Request not in create
    assert create.summary() == "NCP CreateConnection request connection=0 sequence=0"


@pytest.mark.parametrize(
    ("function", "number", "name"),
    [(22, 5, "GetVolumeNumber"), (23, 5, "5"), (22, 17, "17"), (23, 17, "GetFileServerInformation")],
)
def test_a_subfunction_has_its_name_in_its_function(function: int, number: int, name: str) -> None:
    stack = NcpRequestHeader(FunctionCode=function) / NcpSubfunctionHeader(SubFunctionCode=number) / b"\0"
    for packet in (stack, NcpRequestHeader(bytes(stack))):
        assert packet.sprintf("%NcpSubfunctionHeader.SubFunctionCode%") == name


def test_names_of_subfunctions_where_no_header_is() -> None:
    alone = NcpSubfunctionHeader() / NcpGetVolumeNumber_Request()
    assert alone.sprintf("%SubFunctionCode%") == "GetVolumeNumber"
    assert NcpSubfunctionHeader(SubFunctionCode="GetVolumeNumber").SubFunctionCode == 5
    assert NcpDirectoryServices_Request(SubFunctionCode=17).sprintf("%SubFunctionCode%") == "17"
    drawn = NcpRequestHeader(FunctionCode=RandByte()) / NcpSubfunctionHeader(SubFunctionCode=RandByte())
    assert "RandByte" in drawn.show(dump=True)


def test_the_size_tells_one_form_of_a_request_from_another() -> None:
    short = NcpRequestHeader() / NcpSubfunctionHeader() / NcpChangeQueueJobEntryOld_ShortRequest()
    assert NcpChangeQueueJobEntryOld_ShortRequest in NcpRequestHeader(bytes(short))


def test_replies_in_their_longer_form() -> None:
    asked = NcpRequestHeader() / NcpSubfunctionHeader() / NcpReadQueueCurrentStatusOld_Request()
    for layer in (NcpReadQueueCurrentStatusOld_Reply, NcpReadQueueCurrentStatusOld_LongReply):
        reply = NcpReplyHeader(bytes(NcpReplyHeader() / layer(JobCount=2)))
        assert reply.answers(asked)
        assert reply[layer].JobCount == 2


def test_a_connection_is_ended_without_a_function() -> None:
    ended = UDP(bytes(UDP(**TO_SERVER) / NcpRequestHeaderShort(SequenceNumber=4, ConnectionNumberLow=3)))
    assert len(ended.payload) == 6
    assert "NCP DestroyConnection request connection=3 sequence=4" in ended.summary()
    assert NcpReplyHeader(SequenceNumber=4, ConnectionNumberLow=3).answers(ended.payload)
    assert not NcpReplyHeader(SequenceNumber=4).answers(ended.payload)
    assert not ended.payload.answers(ended.payload)
    assert isinstance(UDP(bytes(UDP(**TO_SERVER) / Raw(bytes(LIST)[:6]))).payload, Raw)
    unit = TCP(bytes(TCP(**TO_SERVER) / NcpTcpRequest() / NcpRequestHeaderShort()))
    assert NcpRequestHeaderShort in unit


def test_data_that_are_cut_or_too_long_stay() -> None:
    whole = bytes(LIST)
    for data in (whole[:-1], whole[:8], whole + b"more"):
        datagram = UDP(bytes(UDP(**TO_SERVER) / Raw(data)))
        assert isinstance(datagram.lastlayer(), Raw)
        assert bytes(datagram.payload) == data
    assert NcpGetQueueJobList_Request in UDP(bytes(UDP(**TO_SERVER) / Raw(whole + b"more")))


@pytest.mark.parametrize("ports", [TO_SERVER, FROM_SERVER, {"sport": 4711, "dport": 4712}])
def test_units_are_known_by_their_signature(ports: dict[str, int]) -> None:
    for stack in (NcpTcpRequest() / LIST, NcpTcpReply() / LISTED):
        assert type(TCP(bytes(TCP(**ports) / Raw(bytes(stack)))).payload) is type(stack)
    for data in (b"DmdT", b"tNcP\0\0\0\0\0\0\0\0", b"tNcP\0\2\0\0", bytes(NcpTcpRequest())[:15]):
        segment = TCP(bytes(TCP(**ports) / Raw(data)))
        assert isinstance(segment.payload, Raw | Padding)
        assert bytes(segment.payload) == data or segment.load == data


def test_many_units_in_one_segment() -> None:
    data = bytes(NcpTcpReply() / NUMBERS) * (UNITS_MAX + 50)
    segment = TCP(bytes(TCP(**FROM_SERVER) / Raw(data)))
    units = [layer for layer in segment.iterpayloads() if isinstance(layer, NcpTcpReply)]
    assert len(units) == UNITS_MAX
    assert segment.lastlayer().load == bytes(NcpTcpReply() / NUMBERS) * 50
    assert bytes(segment.payload) == data
    found = sniff(offline=segments(data, **FROM_SERVER), session=TCPSession, quiet=True)
    units = [layer for frame in found for layer in frame.iterpayloads() if isinstance(layer, NcpTcpReply)]
    assert len(units) == UNITS_MAX + 50


# -- requests and replies -------------------------------------------------------------------------------


def test_a_stream_shows_what_its_replies_answer() -> None:
    create = NcpRequestHeader(SequenceNumber=10, ConnectionNumberLow=3) / NcpSubfunctionHeader()
    asked = bytes(NcpTcpRequest() / LIST) + bytes(NcpTcpRequest() / create / NcpCreateQueue_Request())
    told = bytes(NcpTcpReply() / WAIT / NcpTcpReply() / LISTED)
    refused = NcpReplyHeader(SequenceNumber=10, ConnectionNumberLow=3, CompletionCode=0xD3)
    told += bytes(NcpTcpReply() / refused) * 2
    frames = [*segments(asked, 3, 30, **TO_SERVER), *segments(told, 20, 21, 40, **FROM_SERVER)]
    found = sniff(offline=frames, session=TCPSession, quiet=True)
    replies = [
        layer for frame in found for layer in frame.iterpayloads() if isinstance(layer, NcpReplyHeader)
    ]
    assert [reply.mysummary()[0] for reply in replies[:3]] == [
        "NCP GetQueueJobList reply connection=3 sequence=9",
        "NCP GetQueueJobList reply connection=3 sequence=9",
        "NCP CreateQueue reply connection=3 sequence=10 completion=ERR_NO_Q_RIGHTS",
    ]
    assert replies[3].call is replies[2].call
    assert replies[1][NcpGetQueueJobList_Reply].JobNumbers[0].JobNumber == 7
    assert replies[2].copy().call is replies[2].call


def test_an_unknown_request_replaces_one_of_the_same_number() -> None:
    """Its reply is not taken for one to the earlier request."""
    session: dict[str, object] = {}
    for request in (LIST, NcpRequestHeader(SequenceNumber=9, ConnectionNumberLow=3, FunctionCode=1)):
        # whichever direction scapy takes a stream for
        unit = NcpTcpReply.tcp_reassemble(bytes(NcpTcpRequest() / request), {}, session)
        assert isinstance(unit, NcpTcpRequest)
    reply = NcpTcpReply.tcp_reassemble(bytes(NcpTcpReply() / LISTED), {}, session)
    assert reply[NcpReplyHeader].call is None


def test_a_reply_whose_request_is_not_there_stays_bytes() -> None:
    (found,) = sniff(
        offline=segments(bytes(NcpTcpReply() / LISTED), **FROM_SERVER), session=TCPSession, quiet=True
    )
    assert found[NcpReplyHeader].call is None
    assert found[Raw].load == bytes(LISTED.payload)


def test_requests_that_are_remembered_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netware, "REQUESTS_MAX", 3)
    session: dict[str, dict[tuple[int, int], object]] = {}
    for number in range(7):
        unit = NcpTcpRequest() / NcpRequestHeader(SequenceNumber=number) / NcpLogout_Request()
        assert NcpTcpRequest.tcp_reassemble(bytes(unit), {}, session)
    (requests,) = session.values()
    assert [*requests] == [(0, 4), (0, 5), (0, 6)]


def test_a_stream_that_is_no_ncp_or_ends_early() -> None:
    whole = bytes(NcpTcpRequest() / LIST)
    for data, flags in ((b"GET /", "A"), (whole[:20], "FA"), (b"DmdT\x7f\xff\xff\xff" + whole[8:], "A")):
        (found,) = sniff(offline=segments(data, flags=flags, **TO_SERVER), session=TCPSession, quiet=True)
        assert bytes(found[TCP].payload) == data
    (found,) = sniff(offline=segments(whole + b"GET /", **TO_SERVER), session=TCPSession, quiet=True)
    assert bytes(found[NcpTcpRequest]) == whole + b"GET /"


def test_answers_of_datagrams() -> None:
    asked = IP(src="127.0.0.1", dst="127.0.0.2") / UDP(**TO_SERVER) / LIST
    told = IP(src="127.0.0.2", dst="127.0.0.1") / UDP(**FROM_SERVER)
    wrong = [
        WAIT,
        NcpReplyHeader(SequenceNumber=8, ConnectionNumberLow=3),
        NcpReplyHeader(SequenceNumber=9, ConnectionNumberHigh=3),
        LIST,
    ]
    assert not any((told / packet).answers(asked) for packet in wrong)
    answer = IP(bytes(told / LISTED))
    assert answer[NcpReplyHeader].call is None
    assert answer.hashret() == asked.hashret() != (told / wrong[1]).hashret()
    (pairs, rest) = PacketList([asked, answer]).sr()
    assert ([*pairs[0]], len(rest)) == ([asked, answer], 0)
    assert answer[NcpGetQueueJobList_Reply].JobCount == 1
    attach = NcpRequestHeader(
        RequestType=CREATE_CONNECTION, ConnectionNumberLow=0xFF, ConnectionNumberHigh=0xFF
    )
    assert NcpReplyHeader(ConnectionNumberLow=3).answers(attach)


@pytest.fixture
def server() -> Iterator[StreamSocket]:
    """A stream to a server that lets wait, answers what nobody has asked, and answers."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        connection = StreamSocket(theirs, NcpTcpRequest)
        request = connection.recv()
        assert request[NcpGetQueueJobList_Request].QueueID == 5
        noise = NcpReplyHeader(SequenceNumber=8, ConnectionNumberLow=3)
        theirs.sendall(b"".join(bytes(NcpTcpReply() / packet) for packet in (WAIT, noise, LISTED)))

    thread = Thread(target=serve, daemon=True)
    thread.start()
    yield StreamSocket(ours, NcpTcpReply)
    ours.close()
    thread.join(limit(5))
    theirs.close()
    assert not thread.is_alive()


def test_sr1_over_a_stream(server: StreamSocket) -> None:
    request = NcpTcpRequest() / LIST.copy()
    request.QueueID = 5
    answer = server.sr1(request, timeout=limit(5), verbose=False)
    assert answer is not None
    assert answer[NcpGetQueueJobList_Reply].JobNumbers[0].JobNumber == 7
