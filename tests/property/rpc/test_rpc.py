"""DCE/RPC: PDUs come back whole, stubs of any size arrive, and any bytes raise our errors only."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from msmqwire.errors import MalformedPacket
from msmqwire.rpc.constants import AuthLevel, AuthType, PduType, PfcFlags
from msmqwire.rpc.events import Called
from msmqwire.rpc.pdu import build_pdu, make_pdu, parse_pdu, pdu_from_json
from tests.support.rpc.rpc_pair import Pair, in_pieces, pdu
from tests.support.rpc.rpc_server import ECHO

octet, half, word = st.integers(0, 0xFF), st.integers(0, 0xFFFF), st.integers(0, 2**32 - 1)
some = st.binary(max_size=40)
syntaxes = st.fixed_dictionaries({"if_uuid": st.uuids(), "major": half, "minor": half})
elements = st.fixed_dictionaries(
    {"p_cont_id": half, "abstract_syntax": syntaxes, "transfer_syntaxes": st.lists(syntaxes, max_size=3)}
)
results = st.fixed_dictionaries({"result": half, "reason": half, "transfer_syntax": syntaxes})
sizes = {"max_xmit_frag": half, "max_recv_frag": half, "assoc_group_id": word}
call = {"alloc_hint": word, "p_cont_id": half, "stub_data": some}
binds = st.fixed_dictionaries({**sizes, "p_context_elem": st.lists(elements, max_size=3)})
acks = st.fixed_dictionaries({**sizes, "port_spec": some, "p_results": st.lists(results, max_size=3)})
bodies = {
    PduType.REQUEST: st.fixed_dictionaries({**call, "opnum": half}, optional={"object": st.uuids()}),
    PduType.RESPONSE: st.fixed_dictionaries({**call, "cancel_count": octet}),
    PduType.FAULT: st.fixed_dictionaries({**call, "status": word}),
    PduType.BIND: binds,
    PduType.ALTER_CONTEXT: binds,
    PduType.BIND_ACK: acks,
    PduType.ALTER_CONTEXT_RESP: acks,
    PduType.BIND_NAK: st.fixed_dictionaries({"provider_reject_reason": half, "rest": some}),
    PduType.AUTH3: st.fixed_dictionaries({"pad": some}),
    PduType.SHUTDOWN: st.just({}),
    PduType.CO_CANCEL: st.just({}),
    PduType.ORPHANED: st.just({}),
}
verifiers = st.none() | st.fixed_dictionaries(
    {
        "auth_type": st.sampled_from([9, 10, 16, 68]),
        "auth_level": st.integers(0, 7),
        "auth_context_id": st.integers(0, 2),
        "auth_value": st.binary(min_size=1, max_size=40),
    }
)
headers = st.fixed_dictionaries({"call_id": st.integers(0, 4)}, optional={"pfc_flags": st.integers(0, 0x7F)})


def _flagged(fields, header):
    """Flags that are given say nothing wrong of the object: a reader could not know better."""
    if "pfc_flags" in header and fields.get("object") is not None:
        return header | {"pfc_flags": header["pfc_flags"] | PfcFlags.OBJECT_UUID}
    return header


pdus = st.sampled_from(sorted(bodies)).flatmap(
    lambda kind: st.builds(
        lambda fields, header, verifier: make_pdu(
            kind, fields, header=_flagged(fields, header), sec_trailer=verifier
        ),
        bodies[kind],
        headers,
        verifiers,
    )
)
streams = st.lists(pdus.map(build_pdu) | st.binary(max_size=30), max_size=6)


@given(pdus)
def test_pdus_come_back_whole(value):
    data = build_pdu(value)
    again = parse_pdu(data)
    assert (again, build_pdu(again)) == (value, data)
    assert build_pdu(pdu_from_json(value.to_json())) == data


@given(st.binary(max_size=200), pdus.map(build_pdu), st.integers(0, 200), st.binary(max_size=4))
def test_any_bytes_are_a_pdu_or_malformed(anything, good, at, patch):
    for data in (anything, good[:at] + patch + good[at + len(patch) :]):
        try:
            value = parse_pdu(data)
        except MalformedPacket:
            continue
        assert build_pdu(value) == data


@given(streams, st.booleans(), st.integers(1, 60))
def test_any_stream_ends_in_events_on_both_sides(stream, bound, step):
    for level in (AuthLevel.NONE, AuthLevel.PKT_PRIVACY):
        pair = Pair(level, bind=bound)
        data = b"".join(stream)
        in_pieces(pair.server, data, step)
        in_pieces(pair.client, data, step)
        pair.server.data_to_send()
        assert pair.server.outstanding <= 6


@given(
    st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 20_000)), min_size=1, max_size=4),
    st.sampled_from([AuthLevel.NONE, AuthLevel.PKT_INTEGRITY, AuthLevel.PKT_PRIVACY]),
    st.sampled_from([AuthType.WINNT, AuthType.GSS_NEGOTIATE]),
    st.integers(1, 7000),
    st.randoms(use_true_random=False),
)
@example([(5816, 5816), (5776, 5776), (5777, 5777), (0, 0)], AuthLevel.PKT_PRIVACY, AuthType.WINNT, 16, None)
def test_stubs_of_any_size_arrive_wherever_the_stream_is_cut(sizes, level, auth_type, step, rng):
    pair = Pair(level, auth_type)
    stubs = [
        (bytes([n + 1]) * asked, bytes([n + 101]) * answered) for n, (asked, answered) in enumerate(sizes)
    ]
    calls = {pair.client.call(ECHO, asked): answered for asked, answered in stubs}
    pair.exchange(step)
    made = [event for event in pair.called if isinstance(event, Called)]
    assert [(event.call, event.stub) for event in made] == list(
        zip(calls, (asked for asked, _ in stubs), strict=True)
    )
    if rng is not None:
        rng.shuffle(made)
    for event in made:
        pair.server.answer(event.call, calls[event.call])
    pair.exchange(step)
    answers = pair.told[-len(calls) :]
    assert [(event.call, event.stub) for event in answers] == [
        (event.call, calls[event.call]) for event in made
    ]


@pytest.mark.parametrize("auth_type", [9, 10])
@given(tokens=st.lists(st.binary(max_size=120), min_size=1, max_size=3), data=st.data())
def test_any_tokens_are_refused(auth_type, tokens, data):
    real = Pair(AuthLevel.PKT_PRIVACY, AuthType(auth_type)).pdus
    token = parse_pdu(real[0][1]).sec_trailer.auth_value
    at = data.draw(st.integers(0, len(token)))
    pair = Pair(bind=False)
    kind = PduType.BIND
    for value in (token[:at] + tokens[0], *tokens[1:]):
        sec_trailer = {"auth_type": auth_type, "auth_level": 6, "auth_context_id": 1, "auth_value": value}
        pair.server.received(pdu(kind, sec_trailer=sec_trailer, call_id=1))
        kind = PduType.AUTH3
    events = pair.server.received(pdu(PduType.REQUEST, {"stub_data": b"x"}, call_id=2))
    assert not any(isinstance(event, Called) for event in events)
