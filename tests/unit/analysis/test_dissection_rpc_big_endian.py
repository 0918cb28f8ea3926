"""Remote read of big-endian clients in captures."""

from __future__ import annotations

import io
import json

import pytest

from msmqwire.analysis.dissection import dissect
from msmqwire.analysis.dissection.placed_fields import placed_fields
from msmqwire.analysis.dissection.rpc_finder import begins_bind, begins_pdu
from msmqwire.remote_read.constants import Opnum
from msmqwire.remote_read.interface import build_request
from msmqwire.rpc.constants import AuthLevel, PduType
from msmqwire.rpc.ndr import NDR20
from msmqwire.rpc.pdu import build_pdu, make_pdu, parse_pdu, pdu_from_json
from tests.support import captures as c
from tests.support.capture import rpc_captures as r
from tests.support.rpc.rpc_pair import as_big_endian


def items(frames, **options):
    found = list(dissect(io.BytesIO(c.pcap_bytes(frames)), **options))
    for item in found:
        json.dumps(item.to_json())
    return found


def fields_of(found):
    """The fields of all packets but the label of the byte order, which alone may differ."""
    shown = []
    for item in found:
        fields = item.to_json()["fields"]
        fields["header"].pop("packed_drep")
        shown.append((item.kind, item.exchange, item.to_json().get("queue"), fields))
    return shown


@pytest.mark.parametrize("port", [2103, 49_321])
@pytest.mark.parametrize("mss", [1460, 7])
@pytest.mark.parametrize("syntax", r.SYNTAXES.values(), ids=r.SYNTAXES)
def test_calls_are_those_of_a_little_endian_client(syntax, mss, port):
    big = items(r.session(syntax, mss=mss, port=port, big_endian=True).close().frames)
    little = items(r.session(syntax, mss=mss, port=port).close().frames)
    assert fields_of(big) == fields_of(little)
    assert [item.findings for item in big] == [item.findings for item in little]
    labels = {item.src == c.CLIENT: item.to_json()["fields"]["header"]["packed_drep"] for item in big}
    assert labels == {True: 0, False: 0x10}


def test_the_user_of_a_big_endian_handshake():
    talk = r.Talk(level=AuthLevel.CONNECT, big_endian=True)
    talk.open()
    opened = items(talk.close().frames)[-2].to_json()
    assert (opened["packet"], opened["queue"]) == (
        "R_OpenQueue request", "DIRECT=OS:server\\PRIVATE$\\orders"
    )  # fmt: skip
    assert opened["security"]["user"] == "LAB\\alice"


def test_fields_stand_beside_their_bytes():
    talk = r.Talk(big_endian=True)
    talk.open()
    item = items(talk.close().frames)[2]
    by_path = {field.path: field for field in placed_fields(item)}
    length = next(field for path, field in by_path.items() if path.endswith("frag_length"))
    assert item.raw[length.offset : length.offset + 2] == len(item.raw).to_bytes(2, "big")
    build = by_path["BuildNumber"]
    assert item.raw[build.offset : build.offset + 2] == (7601).to_bytes(2, "big")
    assert build.text == "7601"


def test_versions_stand_beside_their_bytes():
    """A version is one number of 32 bits: big-endian, its minor half stands first."""
    item = items(r.Talk(big_endian=True).close().frames)[0]
    places = {
        field.path.rpartition(".")[2]: item.raw[field.offset : field.offset + field.size]
        for field in placed_fields(item)
        if "abstract_syntax" in field.path
    }
    assert (places["major"], places["minor"]) == (b"\0\1", b"\0\0")
    assert [field.offset for field in placed_fields(item)] == sorted(
        field.offset for field in placed_fields(item)
    )


def test_a_pdu_comes_back_from_its_json():
    talk = r.Talk(big_endian=True)
    for by_client, data in talk.pdus:
        assert build_pdu(pdu_from_json(parse_pdu(data).to_json())) == data
        assert parse_pdu(data).big_endian == by_client


def test_what_begins_a_stream():
    bind = r.Talk(big_endian=True).pdus[0][1]
    assert begins_bind(bind) is True
    assert begins_bind(bind[:40]) is None
    uuid = r.REMOTE_READ.identifier.uuid
    little_inside = bind.replace(uuid.bytes, uuid.bytes_le)
    assert begins_bind(little_inside) is False
    assert begins_pdu(bind[:16]) is True
    assert begins_pdu(bind[:4] + b"\x20" + bind[5:16]) is False


def test_a_stream_is_found_again_after_a_gap():
    """In the middle of a stream the next header is looked for."""
    talk = r.Talk(big_endian=True)
    for number in range(1, 5):
        talk.receive(dwRequestId=number)
    frames = [frame for frame in talk.close().frames if frame]
    found = items(frames[4:])  # begins after the handshake of TCP
    kinds = [item.kind for item in found]
    assert "Malformed" not in kinds
    assert kinds.count("request") + kinds.count("R_StartReceive request") >= 3


def test_numbers_of_a_little_endian_stub_are_no_header():
    """05 00 00 00 and zeroes after it are numbers as a rule: no search stops there."""
    from msmqwire.analysis.dissection.rpc_finder import RpcFinder

    numbers = (5).to_bytes(4, "little") + bytes(4) + bytes([0, 40, 0, 0, 0, 0, 0, 1])
    co_cancel = build_pdu(make_pdu(PduType.CO_CANCEL, {}, header={"call_id": 7}))
    finder = RpcFinder(midstream=True)
    ranges = [*finder.feed(numbers + co_cancel, 1, 0)]
    assert [found.message.record.schema.name for found in ranges if found.message] == ["co_cancel"]


def test_fragments_in_both_orders_are_malformed():
    talk = r.Talk(big_endian=True)
    stub = build_request(Opnum.R_StartReceive, r.receive_arguments(), NDR20)
    for flags, piece in ((1, stub[:32]), (2, stub[32:])):
        data = build_pdu(
            make_pdu(
                PduType.REQUEST,
                {"stub_data": piece, "opnum": int(Opnum.R_StartReceive)},
                header={"call_id": 9, "pfc_flags": flags},
            )
        )
        talk.conversation.send(as_big_endian(data) if flags == 1 else data, by_client=True)
    last = items(talk.close().frames)[-1]
    assert (last.kind, last.error.path) == ("Malformed", "rpcconn_common_hdr_t.packed_drep")


@pytest.mark.parametrize("value", [0xFFFF_FFFF, 0x7FFF_FFFF, 0x0100_0000])
def test_hostile_counts_in_a_stub(value):
    """A count is compared with the bytes that are left before anything is made of it."""
    talk = r.Talk(big_endian=True)
    arguments = {
        "pTransactionId": {"rgb": bytes(16)},
        "cbPropagationToken": 3,
        "pbPropagationToken": b"abc",
        "pQueueFormat": r.open_arguments()["pQueueFormat"],
    }
    stub = bytearray(
        build_request(Opnum.R_QMEnlistRemoteTransaction, arguments, NDR20.ordered(big_endian=True))
    )
    assert stub[20:24] == (3).to_bytes(4, "big")
    stub[20:24] = value.to_bytes(4, "big")
    talk.client.call(Opnum.R_QMEnlistRemoteTransaction, bytes(stub))
    talk.exchange()
    last = items(talk.close().frames)[-1]
    assert (last.kind, last.error.path) == (
        "Malformed", "R_QMEnlistRemoteTransaction.pbPropagationToken"
    )  # fmt: skip
