"""The server's end of an association against clients that keep the rules, and against those that do not."""

from __future__ import annotations

import struct
from itertools import pairwise
from uuid import UUID

import pytest

from msmqwire.errors import AuthenticationFailed, InvalidValue, MalformedPacket, RpcRefused
from msmqwire.rpc.constants import (
    NDR20,
    NDR64,
    AuthLevel,
    AuthType,
    ContextResult,
    FaultStatus,
    PduType,
    PfcFlags,
    RejectReason,
    SyntaxId,
    bind_time_features,
)
from msmqwire.rpc.events import Bound, Called, Cancelled, Closed, Denied, Orphaned
from msmqwire.rpc.groups import AssociationGroups
from msmqwire.rpc.pdu import PduFramer, parse_pdu
from msmqwire.rpc.pdus import syntax_fields
from tests.support.installed import library
from tests.support.rpc.rpc_pair import PASSWORD, USER, Pair, login, pdu
from tests.support.rpc.rpc_server import ECHO, METHODS, REMOTE_READ

FIRST, LAST, WHOLE = 1, 2, 3
NTLM, SPNEGO = AuthType.WINNT, AuthType.GSS_NEGOTIATE
INTEGRITY, PRIVACY = AuthLevel.PKT_INTEGRITY, AuthLevel.PKT_PRIVACY


def request(stub=b"abcd", *, call_id=7, flags=WHOLE, opnum=ECHO, context=0, **more):
    fields = {"stub_data": stub, "opnum": opnum, "p_cont_id": context, **more}
    return pdu(PduType.REQUEST, fields, call_id=call_id, pfc_flags=flags)


def contexts(*elements, kind=PduType.BIND, **more):
    """A bind that proposes interfaces, each with transfer syntaxes."""
    proposed = [
        {
            "p_cont_id": number,
            "abstract_syntax": syntax_fields(interface),
            "transfer_syntaxes": [syntax_fields(transfer) for transfer in transfers],
        }
        for number, (interface, *transfers) in enumerate(elements)
    ]
    return pdu(kind, {"p_context_elem": proposed, **more}, call_id=1)


def answers(pair):
    """The PDUs that the server has sent."""
    return [parse_pdu(frame.data).record for frame in PduFramer().feed(pair.server.data_to_send())]


def server(**options):
    pair = Pair(bind=False, **options)
    pair.server.received(contexts((REMOTE_READ, NDR20)))
    pair.server.data_to_send()
    return pair


def check_that_the_next_is_served(pair):
    after = Pair(groups=pair.groups)
    call = after.client.call(ECHO, b"again")
    after.exchange()
    assert after.called[-1].stub == b"again"
    after.server.answer(call, b"niaga")
    after.exchange()
    assert after.told[-1].stub == b"niaga"


# -- binding ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("MQRR-1.9-01", "MQRR-2.2-01")
@pytest.mark.parametrize(
    "elements, results",
    [
        ([(REMOTE_READ, NDR20)], [(0, 0, NDR20)]),
        ([(REMOTE_READ, NDR64)], [(0, 0, NDR64)]),
        ([(REMOTE_READ, NDR20, NDR64)], [(0, 0, NDR64)]),
        ([(REMOTE_READ, NDR20), (REMOTE_READ, NDR64)], [(2, 2, None), (0, 0, NDR64)]),
        ([(REMOTE_READ, NDR20), (REMOTE_READ, bind_time_features(0xFF))], [(0, 0, NDR20), (3, 3, None)]),
        ([(REMOTE_READ, bind_time_features(2))], [(3, 2, None)]),
        ([(REMOTE_READ, SyntaxId(REMOTE_READ.uuid, 1))], [(2, 2, None)]),
        ([(REMOTE_READ._replace(major=2), NDR20), (REMOTE_READ, NDR20)], [(2, 1, None), (0, 0, NDR20)]),
        ([(REMOTE_READ._replace(minor=1), NDR20)], [(2, 1, None)]),
        ([(NDR20, NDR20)], [(2, 1, None)]),
        ([], []),
    ],
)
def test_presentation_contexts(elements, results):
    pair = Pair(bind=False)
    (bound,) = pair.server.received(contexts(*elements))
    (ack,) = answers(pair)
    none = SyntaxId(UUID(int=0), 0)
    said = [
        (r.result, r.reason, SyntaxId(*(r.transfer_syntax[n] for n in r.transfer_syntax)))
        for r in ack.p_results
    ]
    assert said == [(result, reason, syntax or none) for result, reason, syntax in results]
    accepted = [syntax for result, _, syntax in results if result == ContextResult.ACCEPTANCE]
    assert bound == Bound(1, dict.fromkeys([REMOTE_READ] if accepted else [], *accepted))


@pytest.mark.parametrize("rest", [bytes(4), b"\1" * 44, bytes(1)])
def test_bytes_after_the_list_of_contexts_are_ignored(rest):
    pair = Pair(bind=False)
    (bound,) = pair.server.received(contexts((REMOTE_READ, NDR20), rest=rest))
    assert isinstance(bound, Bound)
    (again,) = pair.server.received(contexts((REMOTE_READ, NDR20), kind=PduType.ALTER_CONTEXT, rest=rest))
    assert isinstance(again, Bound)
    ack, response = answers(pair)
    assert [one.result for one in (*ack.p_results, *response.p_results)] == [ContextResult.ACCEPTANCE] * 2
    check_that_the_next_is_served(pair)


def test_fragment_sizes_are_the_smaller_ones():
    pair = Pair(bind=False)
    pair.server.received(contexts((REMOTE_READ, NDR20), max_xmit_frag=1432, max_recv_frag=2000))
    (ack,) = answers(pair)
    assert (ack.max_xmit_frag, ack.max_recv_frag) == (2000, 1432)
    pair.server.received(request())
    pair.server.answer(7, b"x" * 5000)
    sizes = [record.header.frag_length for record in answers(pair)]
    assert max(sizes) <= 2000
    assert len(sizes) == 3
    (closed,) = pair.server.received(request(b"x" * 1409))
    assert isinstance(closed.error, MalformedPacket)


def test_association_groups():
    groups = AssociationGroups()
    first, second = Pair(groups=groups, origin="a"), Pair(groups=groups, group=1, origin="a")
    assert (first.client.group, second.client.group, len(groups)) == (1, 1, 1)
    for wrong in (Pair(groups=groups, group=2, origin="a"), Pair(groups=groups, group=1, origin="b")):
        assert isinstance(wrong.told[-1].error, RpcRefused)
        assert isinstance(wrong.called[-1].error, RpcRefused)
        assert not wrong.server.connection_lost()
    assert not first.server.connection_lost()
    assert second.server.connection_lost()
    assert len(groups) == 0


@pytest.mark.parametrize(
    "bind, reason",
    [
        ({"max_recv_frag": 1431}, RejectReason.PROTOCOL_VERSION_NOT_SUPPORTED),
        ({"assoc_group_id": 5}, RejectReason.REASON_NOT_SPECIFIED),
        ({"auth_type": 68}, RejectReason.AUTHENTICATION_TYPE_NOT_RECOGNIZED),
        ({"auth_type": 16}, RejectReason.AUTHENTICATION_TYPE_NOT_RECOGNIZED),
        ({"auth_type": 10, "auth_value": b"NTLMSSP\0\1\0\0\0"}, RejectReason.INVALID_CHECKSUM),
        ({"auth_type": 9, "auth_value": b"\x60\x05\x06\x01\x01\x01\x01"}, RejectReason.INVALID_CHECKSUM),
        ({"auth_type": 10, "auth_level": 1}, RejectReason.AUTHENTICATION_TYPE_NOT_RECOGNIZED),
        ({"auth_type": 10, "auth_level": 7}, RejectReason.AUTHENTICATION_TYPE_NOT_RECOGNIZED),
    ],
)
def test_binds_that_are_refused(bind, reason):
    verifier = {name: bind.pop(name) for name in list(bind) if name.startswith("auth")}
    sec_trailer = {"auth_value": b"1234", **verifier} if verifier else None
    pair = Pair(bind=False)
    (closed,) = pair.server.received(pdu(PduType.BIND, bind, call_id=3, sec_trailer=sec_trailer))
    assert isinstance(closed, Closed)
    (nak,) = answers(pair)
    assert (nak.provider_reject_reason, nak.header.call_id, len(nak.p_protocols)) == (reason, 3, 1)
    assert pair.server.received(contexts((REMOTE_READ, NDR20))) == []
    check_that_the_next_is_served(pair)


@pytest.mark.parametrize("big_endian", [b"\x20\0\0\0", b"\x01\0\0\0", b"\x10\1\0\0"])
def test_another_data_representation_is_refused(big_endian):
    for first in (contexts((REMOTE_READ, NDR20)), request()):
        pair = Pair(bind=False) if first[2] == PduType.BIND else server()
        call_id = b"\0\0\0\x09" if big_endian[0] < 0x10 else b"\x09\0\0\0"
        (closed,) = pair.server.received(first[:4] + big_endian + first[8:12] + call_id + first[16:])
        assert closed.error.path == "rpcconn_common_hdr_t.packed_drep"
        (refusal,) = answers(pair)
        assert refusal.header.call_id == 9
        if first[2] == PduType.BIND:
            assert refusal.provider_reject_reason == RejectReason.PROTOCOL_VERSION_NOT_SUPPORTED
        else:
            assert refusal.status == FaultStatus.NCA_S_PROTO_ERROR


# -- calls --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("MQRR-1.5-01")
def test_calls_are_answered_in_any_order_and_each_once():
    pair = server()
    events = pair.server.received(b"".join(request(bytes([n]), call_id=n) for n in range(1, 5)))
    assert {(event.identity, event.level) for event in events} == {("", AuthLevel.NONE)}, (
        "no security context"
    )
    assert [(event.call, event.stub, event.opnum) for event in events] == [
        (n, bytes([n]), ECHO) for n in range(1, 5)
    ]
    assert pair.server.received(pdu(PduType.CO_CANCEL, call_id=3)) == [Cancelled(3)]
    assert pair.server.received(pdu(PduType.CO_CANCEL, call_id=99)) == []
    assert pair.server.received(pdu(PduType.ORPHANED, call_id=1)) == [Orphaned(1)]
    for call in (4, 1, 2):
        pair.server.answer(call, b"r")
        pair.server.answer(call, b"twice")
    pair.server.fault(3, 0xC00E0003)
    assert pair.server.outstanding == 0
    sent = answers(pair)
    assert [(record.header.PTYPE, record.header.call_id) for record in sent] == [(2, 4), (2, 2), (3, 3)]
    assert (sent[-1].status, sent[-1].alloc_hint, sent[-1].header.pfc_flags) == (0xC00E0003, 32, WHOLE)


def test_a_request_in_fragments_with_its_object():
    pair, identifier = server(), NDR20.uuid
    object_flag = PfcFlags.OBJECT_UUID
    assert pair.server.received(request(b"ab", flags=FIRST | object_flag, object=identifier)) == []
    assert pair.server.received(request(b"", flags=object_flag, object=identifier)) == []
    (called,) = pair.server.received(request(b"cd", flags=LAST | object_flag, object=identifier))
    assert called == Called(7, REMOTE_READ, ECHO, NDR20, b"abcd", identifier, AuthLevel.NONE, "")


def test_a_request_that_is_orphaned_half_way():
    pair = server()
    assert pair.server.received(request(b"ab", flags=FIRST) + pdu(PduType.ORPHANED, call_id=7)) == []
    (called,) = pair.server.received(request(b"whole", call_id=8))
    assert (called.call, called.stub) == (8, b"whole")


@pytest.mark.requirement("MQRR-1.7-01", "MQRR-3.1.4-04")
@pytest.mark.parametrize(
    "wrong, status",
    [
        ({"opnum": METHODS}, FaultStatus.NCA_S_OP_RNG_ERROR),
        ({"opnum": 0xFFFF}, FaultStatus.NCA_S_OP_RNG_ERROR),
        ({"context": 1}, FaultStatus.NCA_S_UNK_IF),
    ],
)
def test_invalid_calls_are_answered_and_the_association_goes_on(wrong, status):
    pair = server()
    assert pair.server.received(request(b"ab", flags=FIRST, **wrong)) == []
    assert pair.server.received(request(b"cd", flags=LAST, **wrong)) == [Denied(7, status)]
    (fault,) = answers(pair)
    assert (fault.status, fault.header.call_id) == (status, 7)
    assert fault.header.pfc_flags & PfcFlags.DID_NOT_EXECUTE
    (called,) = pair.server.received(request(b"next", call_id=8))
    assert called.stub == b"next"


def test_arguments_and_outstanding_calls_are_bounded():
    pair = server(stub_max=1000, calls_max=2)
    (called,) = pair.server.received(request(bytes(1000), call_id=1))
    assert len(called.stub) == 1000
    many = request(bytes(600), call_id=2, flags=FIRST) + request(bytes(401), call_id=2, flags=LAST)
    assert pair.server.received(many) == [Denied(2, FaultStatus.NCA_S_FAULT_REMOTE_NO_MEMORY)]
    assert isinstance(pair.server.received(request(call_id=3))[0], Called)
    assert pair.server.received(request(call_id=4)) == [Denied(4, FaultStatus.NCA_S_SERVER_TOO_BUSY)]
    pair.server.answer(1, b"")
    assert isinstance(pair.server.received(request(call_id=5))[0], Called)


WRONG = {
    "a second bind": contexts((REMOTE_READ, NDR20)),
    "no first fragment": request(flags=LAST),
    "a first fragment inside another call": request(flags=FIRST) + request(call_id=8),
    "a first fragment twice": request(flags=FIRST) + request(flags=FIRST),
    "a fragment of another call": request(flags=FIRST) + request(call_id=8, flags=LAST),
    "a fragment for another method": request(flags=FIRST) + request(opnum=2, flags=LAST),
    "a fragment in another context": request(flags=FIRST) + request(context=2, flags=LAST),
    "an alter_context inside a request": request(flags=FIRST) + contexts(kind=PduType.ALTER_CONTEXT),
    "a call id that is outstanding": request() + request(),
    "a response": pdu(PduType.RESPONSE, {"stub_data": b"x"}, call_id=7),
    "a fault": pdu(PduType.FAULT, {"status": 5}, call_id=7),
    "a bind_ack": pdu(PduType.BIND_ACK, call_id=7),
    "a shutdown": pdu(PduType.SHUTDOWN, call_id=7),
    "an auth3 without a handshake": pdu(PduType.AUTH3, sec_trailer={"auth_value": b"1"}, call_id=7),
    "an auth3 without a token": pdu(PduType.AUTH3, call_id=7),
    "an unknown type": request().replace(b"\x05\0\0", b"\x05\0\x14", 1),
    "a request cut inside its header": request()[:8] + b"\x14\0" + request()[10:20],
    "a frag_length below the header": request()[:8] + b"\x0f\0" + request()[10:],
    "an auth_length beyond the PDU": request()[:10] + b"\x40\0" + request()[12:],
    "a PDU larger than negotiated": request(bytes(5840)),
    "a verifier that pads more than there is": pdu(
        PduType.ORPHANED, sec_trailer={"auth_value": b"1", "auth_pad_length": 9}, call_id=7
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_protocol_errors_end_the_association(name):
    pair = server()
    *_, closed = pair.server.received(WRONG[name])
    assert isinstance(closed, Closed)
    assert pair.server.closed
    *_, fault = answers(pair)
    expected = FaultStatus.ACCESS_DENIED if "verifier" in name else FaultStatus.NCA_S_PROTO_ERROR
    assert fault.status == expected
    assert (pair.server.received(request(call_id=99)), pair.server.data_to_send()) == ([], b"")
    check_that_the_next_is_served(pair)


@pytest.mark.parametrize(
    "kind", [kind for kind in PduType if kind != PduType.BIND], ids=lambda kind: kind.name
)
def test_nothing_comes_before_a_bind(kind):
    pair = Pair(bind=False)
    (closed,) = pair.server.received(pdu(kind, call_id=7))
    assert isinstance(closed.error, MalformedPacket)
    assert answers(pair)[0].status == FaultStatus.NCA_S_PROTO_ERROR


# -- security -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("MQRR-1.7-03")
def test_the_numbers_of_security_providers():
    numbers = {kind.name: int(kind) for kind in AuthType}
    assert numbers == {"NONE": 0, "GSS_NEGOTIATE": 0x09, "WINNT": 0x0A, "GSS_KERBEROS": 0x10}


@pytest.mark.requirement("MQRR-1.5-01", "MQRR-1.7-03", "MQRR-2.1-06")
@pytest.mark.parametrize("auth_type", [NTLM, SPNEGO], ids=lambda value: value.name)
@pytest.mark.parametrize("level", [*AuthLevel][1:], ids=lambda level: level.name)
def test_both_ends_at_every_level(level, auth_type):
    pair = Pair(level, auth_type)
    stub = bytes(range(256)) * 50
    calls = [pair.client.call(ECHO, stub[:size]) for size in (12_800, 0, 1, 16)]
    pair.exchange(step=1000)
    made = [event for event in pair.called if isinstance(event, Called)]
    assert [(event.stub, event.identity, event.level) for event in made] == [
        (stub[:size], "LAB\\alice", level) for size in (12_800, 0, 1, 16)
    ]
    for call in reversed(calls):
        pair.server.answer(call, stub)
    pair.exchange(step=1000)
    assert [(event.call, event.stub) for event in pair.told[-4:]] == [
        (call, stub) for call in reversed(calls)
    ]
    data = b"".join(data for _, data in pair.pdus)
    assert (stub[:64] in data) == (level < PRIVACY)
    assert all(len(data) <= 5840 for _, data in pair.pdus)


@pytest.mark.parametrize("auth_type", [NTLM, SPNEGO], ids=lambda value: value.name)
def test_a_wrong_password(auth_type):
    pair = Pair(PRIVACY, auth_type, password="wrong")
    if pair.client.bound:  # an auth3 has no answer: the first request has
        pair.client.call(ECHO, b"secret")
        pair.exchange()
        assert pair.told[-1].status == FaultStatus.ACCESS_DENIED
    else:
        assert "ACCESS_DENIED" in str(pair.told[-1].error)
    assert isinstance(pair.called[-1].error, AuthenticationFailed)
    assert not any(isinstance(event, Called) for event in pair.called)
    check_that_the_next_is_served(pair)


def protected(level):
    """A bound pair, and a request of two fragments that is yet to be sent."""
    pair = Pair(level)
    pair.client.call(ECHO, b"abcd" * 1500)
    return pair, [frame.data for frame in PduFramer().feed(pair.client.data_to_send())]


@pytest.mark.parametrize("level", [INTEGRITY, PRIVACY], ids=lambda level: level.name)
def test_no_bit_of_a_protected_request_can_be_changed(level):
    _, pdus = protected(level)
    small = len(pdus[1])
    for at in [*range(3, 4), *range(8, 40), *range(small - 40, small)]:
        pair, (first, second) = protected(level)
        assert pair.server.received(first) == []
        changed = second[:at] + bytes([second[at] ^ 1]) + second[at + 1 :]
        events = pair.server.received(changed)
        assert not any(isinstance(event, Called) for event in events), at
        # A PDU that now says that it is longer is waited for.
        assert pair.server.closed or (at in (8, 9) and not events), at


@pytest.mark.parametrize("level", [INTEGRITY, PRIVACY], ids=lambda level: level.name)
def test_requests_replayed_swapped_or_without_their_verifier(level):
    for order in ((0, 0), (1, 0), (0, 1, 0)):
        pair, pdus = protected(level)
        *_, closed = pair.server.received(b"".join(pdus[number] for number in order))
        assert isinstance(closed.error, AuthenticationFailed), order
        assert answers(pair)[-1].status == FaultStatus.ACCESS_DENIED
    pair, _ = protected(level)
    (closed,) = pair.server.received(request())
    assert isinstance(closed.error, AuthenticationFailed)
    other, (first, _) = protected(level)
    (closed,) = Pair(level).server.received(first)
    assert isinstance(closed.error, AuthenticationFailed)
    check_that_the_next_is_served(other)


@pytest.mark.parametrize(
    "change", [{"auth_level": 2}, {"auth_level": 5}, {"auth_type": 9}, {"auth_context_id": 2}], ids=str
)
def test_a_verifier_for_another_security_context(change):
    pair = Pair(PRIVACY)
    sec_trailer = {"auth_type": 10, "auth_level": 6, "auth_context_id": 1, "auth_value": bytes(16), **change}
    fields = {"stub_data": bytes(16)}
    (closed,) = pair.server.received(pdu(PduType.REQUEST, fields, sec_trailer=sec_trailer, call_id=7))
    assert isinstance(closed.error, AuthenticationFailed)


@pytest.mark.parametrize("level", [AuthLevel.CONNECT, INTEGRITY], ids=lambda level: level.name)
def test_a_handshake_that_is_not_over(level):
    verifier = {"auth_type": 10, "auth_level": level, "auth_context_id": 1, "auth_value": bytes(16)}
    for sec_trailer in (None, verifier):
        pair = Pair(level, bind=False)
        pair.client.bind()
        pair.server.received(pair.client.data_to_send())
        fields = {"stub_data": b"abcd"}
        (closed,) = pair.server.received(pdu(PduType.REQUEST, fields, sec_trailer=sec_trailer, call_id=7))
        assert isinstance(closed.error, AuthenticationFailed)


def test_a_user_known_at_connect_does_not_claim_a_higher_level():
    for level, called in ((2, True), (5, False), (6, False)):
        pair = Pair(AuthLevel.CONNECT)
        sec_trailer = {"auth_type": 10, "auth_level": level, "auth_context_id": 1, "auth_value": bytes(16)}
        fields = {"stub_data": b"abcd"}
        (event,) = pair.server.received(pdu(PduType.REQUEST, fields, sec_trailer=sec_trailer, call_id=7))
        assert isinstance(event, Called if called else Closed)


def check_refused(pair, change=lambda data: data):
    pair.client.bind()
    pair.exchange(change=change)
    pair.client.call(ECHO, b"")
    pair.exchange()
    assert isinstance(pair.called[-1].error, AuthenticationFailed)
    assert pair.told[-1].status == FaultStatus.ACCESS_DENIED


def test_an_unknown_user_has_no_password_at_all():
    for password in ("$NT$" + "0" * 32, "", PASSWORD):
        check_refused(Pair(INTEGRITY, user="LAB\\nobody", password=password, bind=False))


def test_a_changed_token_of_the_right_user():
    """Nothing but the MIC covers the version and the workstation in it."""
    for at in (60, 64, 71, 72, 90):

        def change(data, at=at):
            start = data.find(b"NTLMSSP\0\3\0\0\0") + at
            return data if start < at else data[:start] + bytes([data[start] ^ 1]) + data[start + 1 :]

        check_refused(Pair(INTEGRITY, bind=False), change)


def test_handshakes_without_the_keys_that_the_level_needs():
    """A signature without a key is the same for whoever sends it."""
    unsigned = login(NTLM, AuthLevel.CONNECT, user=USER, password=PASSWORD)
    check_refused(Pair(INTEGRITY, security=unsigned, bind=False))
    weak = login(NTLM, INTEGRITY, user=USER, password=PASSWORD)
    flags = library("spnego._ntlm_raw.messages").NegotiateFlags
    weak._context._context_req &= ~flags.key_128
    weak._check_strength = lambda: None  # our client would not go on with them itself
    check_refused(Pair(INTEGRITY, security=weak, bind=False))


SIGNATURE = bytes.fromhex("8ae3137102f43671")
HEADER_SIGNING, END, MUST = bytes.fromhex("01000400 01000000"), 0x4000, 0x8000


def header_command(call_id=2, context=0, opnum=ECHO, kind=0, bits=END | 3):
    return struct.pack("<HHB3xIIHH", bits, 16, kind, 0x10, call_id, context, opnum)


def context_command(interface=REMOTE_READ, transfer=NDR64):
    identifiers = (s.uuid.bytes_le + struct.pack("<HH", s.major, s.minor) for s in (interface, transfer))
    return struct.pack("<HH", 2, 40) + b"".join(identifiers)


GOOD = HEADER_SIGNING + context_command() + header_command()


@pytest.mark.parametrize("level", [AuthLevel.CONNECT, INTEGRITY, PRIVACY], ids=lambda level: level.name)
def test_a_protected_stub_excludes_the_verification_trailer(level):
    for stub in (b"abcd", b"abc\0", b"ab" * 5000):
        pair = Pair(level)
        pair.client.call(ECHO, stub + SIGNATURE + GOOD)
        pair.exchange()
        trailer = b"" if level > AuthLevel.CONNECT else SIGNATURE + GOOD
        assert pair.called[-1].stub == stub + trailer


@pytest.mark.parametrize(
    "commands",
    [
        context_command(interface=NDR20) + header_command(),
        context_command(transfer=NDR20) + header_command(),
        header_command(call_id=3),
        header_command(context=1),
        header_command(opnum=1),
        header_command(kind=1),
        struct.pack("<HHI", MUST | END | 77, 4, 0),
        struct.pack("<HHI", END | 3, 4, 0),
        GOOD[:-1],
        HEADER_SIGNING + context_command(),
        b"",
        GOOD + b"\0\0\0\0",
    ],
)
def test_a_verification_trailer_that_tells_of_another_request(commands):
    pair = Pair(INTEGRITY)
    pair.client.call(ECHO, b"abcd" + SIGNATURE + commands)
    pair.exchange()
    assert isinstance(pair.called[-1], Closed)
    assert pair.told[-1].executed is False


def test_the_verification_trailer_reveals_lost_header_signing():
    pair = Pair(INTEGRITY, bind=False)
    pair.client.bind()
    pair.exchange(change=lambda data: data[:3] + bytes([data[3] & ~4]) + data[4:])
    pair.client.call(ECHO, b"abcd" + SIGNATURE + GOOD)
    pair.exchange()
    assert isinstance(pair.called[-1].error, AuthenticationFailed)
    assert "rpc_sec_vt_bitmask" in str(pair.called[-1].error)


def test_security_contexts_are_bounded():
    pair = server()
    _, bind = Pair(INTEGRITY).pdus[0]
    token = parse_pdu(bind).sec_trailer.auth_value
    closed = None
    for number in range(17):
        sec_trailer = {"auth_level": 5, "auth_context_id": number, "auth_value": token}
        *_, closed = pair.server.received(pdu(PduType.ALTER_CONTEXT, sec_trailer=sec_trailer, call_id=1))
        assert isinstance(closed, Closed) == (number == 16)
    assert "16 security contexts" in str(closed.error)


def test_the_least_level():
    for level, other in pairwise([*AuthLevel]):
        pair = Pair(level, minimum_level=other)
        pair.client.call(ECHO, b"")
        pair.exchange()
        assert pair.told[-1].status == FaultStatus.ACCESS_DENIED
        assert not pair.server.closed


@pytest.mark.parametrize(
    "users",
    [{"\\alice": "x"}, {"LAB\\": "x"}, {"": "x"}, {"LAB\\a": "x", "lab\\A": "y"}, {"LAB\\a": "$NT$12"}],
    ids=str,
)
def test_users_that_are_none(users):
    library("spnego")
    from msmqwire.qm.runtime.rpc.ntlm import RpcUsers

    with pytest.raises(InvalidValue):
        RpcUsers(users)
