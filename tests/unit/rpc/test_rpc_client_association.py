"""The client's end of an association against servers that keep the rules, and against those that do not."""

from __future__ import annotations

import pytest

from msmqwire.errors import AuthenticationFailed, InvalidValue, MalformedPacket, RpcRefused
from msmqwire.rpc.client_association import ClientAssociation
from msmqwire.rpc.constants import NDR20, NDR64, WHOLE, AuthLevel, AuthType, PduType, PfcFlags
from msmqwire.rpc.events import Answered, Bound, Closed, Faulted, ShutdownAsked
from msmqwire.rpc.pdu import PduFramer, parse_pdu
from msmqwire.rpc.pdus import syntax_fields
from tests.support.rpc.rpc_pair import PASSWORD, USER, Pair, login, pdu
from tests.support.rpc.rpc_server import ECHO, REMOTE_READ

ACCEPTED, REJECTED = {"result": 0}, {"result": 2, "reason": 2}
FEATURES = {"result": 3, "reason": 3}


def results(*kinds, flags=WHOLE | PfcFlags.CONC_MPX, kind=PduType.BIND_ACK, sec_trailer=None, **more):
    """A bind_ack: the client proposes NDR64, NDR20 and features."""
    given = [dict(result) for result in kinds]
    for result, syntax in zip(given, (NDR64, NDR20, None), strict=False):
        if syntax and result["result"] == 0:
            result.setdefault("transfer_syntax", syntax_fields(syntax))
    fields = {"p_results": given, "assoc_group_id": 9, **more}
    return pdu(kind, fields, call_id=1, pfc_flags=flags, sec_trailer=sec_trailer)


def client(ack=None, **options):
    association = ClientAssociation(REMOTE_READ, **options)
    association.bind()
    association.data_to_send()
    if ack is not None:
        assert association.received(ack) == [Bound(9, {REMOTE_READ: association.transfer_syntax})]
    return association


def bound(**more):
    return client(results(ACCEPTED, REJECTED, FEATURES, **more))


def response(call, stub=b"", *, flags=WHOLE, **more):
    return pdu(PduType.RESPONSE, {"stub_data": stub, **more}, call_id=call, pfc_flags=flags)


def sent(association):
    return [parse_pdu(frame.data).record for frame in PduFramer().feed(association.data_to_send())]


@pytest.mark.requirement("MQRR-2.2-01")
@pytest.mark.parametrize(
    "ack, syntax, context",
    [
        ((ACCEPTED, REJECTED, FEATURES), NDR64, 0),
        ((REJECTED, ACCEPTED, REJECTED), NDR20, 1),
        ((ACCEPTED, ACCEPTED, FEATURES), NDR64, 0),
    ],
)
def test_the_transfer_syntax_is_that_of_the_server(ack, syntax, context):
    association = client(results(*ack, max_recv_frag=1432))
    assert (association.transfer_syntax, association.group, association.multiplexed) == (syntax, 9, True)
    call = association.call(4, b"x" * 2000)
    first, second = sent(association)
    assert (first.p_cont_id, first.opnum, first.header.call_id, first.alloc_hint) == (context, 4, call, 2000)
    assert (first.header.pfc_flags, second.header.pfc_flags) == (PfcFlags.FIRST_FRAG, PfcFlags.LAST_FRAG)
    assert len(first.stub_data) + len(second.stub_data) == 2000
    assert first.header.frag_length <= 1432
    assert association.received(response(call, b"r", p_cont_id=context)) == [Answered(call, syntax, b"r")]


def test_fragments_of_several_answers_may_mix():
    association = bound()
    one, two = association.call(1, b""), association.call(2, b"")
    events = association.received(
        response(two, b"a", flags=PfcFlags.FIRST_FRAG)
        + response(one, b"x")
        + response(two, b"b", flags=PfcFlags.LAST_FRAG)
    )
    assert events == [Answered(one, NDR64, b"x"), Answered(two, NDR64, b"ab")]
    assert association.outstanding == 0


def test_a_server_that_takes_one_call_at_a_time():
    association = client(results(ACCEPTED, REJECTED, FEATURES, flags=WHOLE))
    calls = [association.call(number, b"") for number in range(4)]
    assert [record.header.call_id for record in sent(association)] == calls[:1]
    association.orphan(calls[1])
    association.cancel(calls[2])
    assert sent(association) == []
    association.received(response(calls[0]))
    assert [record.header.call_id for record in sent(association)] == [calls[2]]
    association.received(pdu(PduType.FAULT, {"status": 5}, call_id=calls[2]))
    assert [record.header.call_id for record in sent(association)] == [calls[3]]


def test_faults_shutdown_cancel_and_orphaned_calls():
    association = bound()
    one, two, three = (association.call(number, b"") for number in range(3))
    sent(association)
    association.cancel(one)
    association.orphan(two)
    assert [(r.header.PTYPE, r.header.call_id) for r in sent(association)] == [(18, one), (19, two)]
    not_executed = WHOLE | PfcFlags.DID_NOT_EXECUTE
    events = association.received(
        response(two, b"too late")
        + pdu(PduType.FAULT, {"status": 0xC00E0003}, call_id=one)
        + pdu(PduType.FAULT, {"status": 0x1C010002}, call_id=three, pfc_flags=not_executed)
        + pdu(PduType.SHUTDOWN)
    )
    assert events == [Faulted(one, 0xC00E0003, True), Faulted(three, 0x1C010002, False), ShutdownAsked()]
    association.cancel(one)
    association.orphan(one)
    assert sent(association) == []


def test_no_call_is_orphaned_unless_the_server_supports_it():
    association = client(results(ACCEPTED, REJECTED, REJECTED))
    call = association.call(0, b"")
    with pytest.raises(InvalidValue):
        association.orphan(call)


@pytest.mark.parametrize(
    "answer, error",
    [
        (pdu(PduType.BIND_NAK, {"provider_reject_reason": 8}), RpcRefused),
        (pdu(PduType.FAULT, {"status": 5}), RpcRefused),
        (results(REJECTED, REJECTED, FEATURES), RpcRefused),
        (results(ACCEPTED), MalformedPacket),
        (results(ACCEPTED, ACCEPTED, ACCEPTED, ACCEPTED), MalformedPacket),
        (results({**ACCEPTED, "transfer_syntax": syntax_fields(NDR20)}, REJECTED, FEATURES), MalformedPacket),
        (results(ACCEPTED, REJECTED, FEATURES, max_recv_frag=1431), MalformedPacket),
        (results(ACCEPTED, REJECTED, FEATURES, kind=PduType.ALTER_CONTEXT_RESP), MalformedPacket),
        (response(1), MalformedPacket),
        (pdu(PduType.SHUTDOWN), MalformedPacket),
        (pdu(PduType.BIND_NAK).replace(b"\x10\0\0\0", b"\x20\0\0\0", 1), MalformedPacket),
    ],
)
def test_answers_to_a_bind_that_end_the_association(answer, error):
    association = client()
    (closed,) = association.received(answer)
    assert isinstance(closed, Closed)
    assert isinstance(closed.error, error)
    with pytest.raises(InvalidValue):
        association.call(0, b"")
    assert (association.received(answer), association.data_to_send()) == ([], b"")


def test_what_comes_wrong_later_ends_the_association():
    wrong = {
        "an unknown call": response(99),
        "no first fragment": response(2, flags=PfcFlags.LAST_FRAG),
        "two first fragments": response(2, flags=PfcFlags.FIRST_FRAG) * 2,
        "another context": response(2, p_cont_id=1),
        "more bytes than allowed": response(2, b"x" * 11),
        "a request": pdu(PduType.REQUEST, {"stub_data": b""}, call_id=2),
        "a second bind_ack": results(ACCEPTED, REJECTED, FEATURES),
        "a bad header": b"\4" + response(2)[1:],
    }
    for name, data in wrong.items():
        association = client(results(ACCEPTED, REJECTED, FEATURES), stub_max=10)
        assert association.call(0, b"") == 2
        *_, closed = association.received(data)
        assert isinstance(closed.error, MalformedPacket), name
        assert (association.closed, association.outstanding) == (True, 0)


@pytest.mark.parametrize(
    "level", [AuthLevel.PKT_INTEGRITY, AuthLevel.PKT_PRIVACY], ids=lambda level: level.name
)
def test_answers_that_the_server_did_not_sign_are_not_believed(level):
    def answered():
        pair = Pair(level)
        call = pair.client.call(ECHO, b"")
        pair.server.received(pair.client.data_to_send())
        pair.server.answer(call, b"results")
        return pair, pair.server.data_to_send()

    _, data = answered()
    for at in range(16, len(data)):
        pair, data = answered()
        (closed,) = pair.client.received(data[:at] + bytes([data[at] ^ 0x80]) + data[at + 1 :])
        assert isinstance(closed, Closed), at
    for forged in (response(2, b"results"), data):  # not signed; signed in another association
        pair, _ = answered()
        (closed,) = pair.client.received(forged)
        assert isinstance(closed.error, AuthenticationFailed)
    pair, data = answered()
    assert pair.client.received(data) == [Answered(2, pair.client.transfer_syntax, b"results")]


@pytest.mark.parametrize("auth_type", [AuthType.WINNT, AuthType.GSS_NEGOTIATE], ids=lambda kind: kind.name)
def test_handshakes_that_a_server_does_not_lead_to_an_end(auth_type):
    for sec_trailer in (
        None,
        {"auth_value": b"NTLMSSP\0\2\0\0\0", "auth_type": auth_type, "auth_level": 5, "auth_context_id": 1},
        {"auth_value": b"x", "auth_type": auth_type, "auth_level": 5, "auth_context_id": 2},
        {"auth_value": b"x", "auth_type": auth_type, "auth_level": 2, "auth_context_id": 1},
    ):
        security = login(auth_type, AuthLevel.PKT_INTEGRITY, user=USER, password=PASSWORD)
        association = client(security=security, auth_type=auth_type, level=AuthLevel.PKT_INTEGRITY)
        (closed,) = association.received(results(ACCEPTED, REJECTED, FEATURES, sec_trailer=sec_trailer))
        assert isinstance(closed.error, AuthenticationFailed)


def test_values_of_the_caller():
    with pytest.raises(InvalidValue):
        ClientAssociation(REMOTE_READ, level=AuthLevel.PKT_PRIVACY)
    with pytest.raises(InvalidValue):
        ClientAssociation(REMOTE_READ).call(0, b"")
    with pytest.raises(InvalidValue):
        bound().call(0x10000, b"")
    with pytest.raises(InvalidValue):
        bound().bind()
    with pytest.raises(InvalidValue):
        login(AuthType.NONE, AuthLevel.CONNECT, user=USER, password=PASSWORD)
