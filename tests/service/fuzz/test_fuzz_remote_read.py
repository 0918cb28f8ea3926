"""Tests of peers in remote read: our own server is right, and one with a mistake is found by its rule."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import pytest

from fuzz.peer.failure import PeerFailure
from fuzz.peer.performing import Stage
from fuzz.peer.registry import FUZZED
from fuzz.peer.running import fuzz_peer
from fuzz.peer.steps import Case, Step
from fuzz.peer.target import Ports, RunOptions, Target
from fuzz.peer.walks import walk
from msmqwire.constants import HResult
from msmqwire.errors import InvalidValue
from msmqwire.qm.protocols.remote_read import contexts, message_sections, receiving
from msmqwire.qm.protocols.remote_read.calls import Refused
from msmqwire.qm.protocols.remote_read.opening import Opening
from msmqwire.qm.protocols.remote_read.receiving import RemoteReceiving
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.runtime.rpc.network import RpcOptions
from msmqwire.remote_read.constants import Action
from msmqwire.rpc import presentation, server_association
from msmqwire.rpc.constants import AuthLevel, FaultStatus
from msmqwire.rpc.server_association import ServerAssociation
from tests.support.broken_remote_read import MISTAKES as MISTAKES_OF_PEERS
from tests.support.running import ADDRESS, LEDGER, ORDERS, options, served

NAME = "remote-read"
PROTOCOL = FUZZED[NAME]


@pytest.fixture(scope="module")
def target(tmp_path_factory) -> Iterator[Target]:
    """A server that everybody may read."""
    rpc = RpcOptions((ADDRESS, 0), level=AuthLevel.NONE)
    data = tmp_path_factory.mktemp("fuzzed") / "data"
    with served(options(data, ORDERS, f"{LEDGER};transactional", rpc=rpc)) as server:
        port = server.do(lambda running: running.rpc_network.listen[1])
        yield Target(ADDRESS, Ports(server.port, remote_read=port), ORDERS, LEDGER, bound=10.0)


def stage_of(target: Target) -> Stage:
    """A stage with identities that no other has."""
    return Stage(target, {NAME: PROTOCOL}, time.time_ns())


@pytest.fixture
def stage(target) -> Stage:
    return stage_of(target)


def cases(target: Target, *rules: str) -> list[Case]:
    """The directed cases, of these requirements if any are told."""
    found = PROTOCOL.checks(target, random.Random(14))
    return [case for case in found if not rules or set(rules) & set(case.requirements)]


def first_failure(stage: Stage, performed: list[Case]) -> PeerFailure | None:
    """What is wrong with the peer in the first case that shows something."""
    return next((failure for case in performed if (failure := stage.perform(case).failure)), None)


@pytest.mark.parametrize("field", ["queue", "transactional_queue"])
def test_a_queue_that_the_server_does_not_have(target, tmp_path, field):
    lacking = replace(target, **{field: "private$\\none"})
    assert stage_of(target).perform(PROTOCOL.has_queue(target)).failure is None
    with pytest.raises(InvalidValue, match=r"does not have the queue: private\$.none can't be opened"):
        fuzz_peer(lacking, RunOptions((NAME,), 60.0, out=tmp_path))


def test_our_own_server_is_right_in_every_directed_case(stage, target):
    performed = cases(target)
    wrong = [(case.text, failed) for case in performed if (failed := stage.perform(case).failure)]
    assert wrong == []
    assert stage.packets > 1000
    assert {rule for case in performed for rule in case.requirements} <= set(stage.tested)


def test_our_own_server_is_right_on_walks(stage):
    judged = []

    def judge(outcome):
        judged.append(outcome)
        return outcome.failure is not None

    walk(stage, NAME, 14, 6, time.monotonic() + 20, judge)
    assert [outcome.failure for outcome in judged if outcome.failure is not None] == []
    assert sum(len(outcome.case.steps) for outcome in judged) > 50


def refusing(instead: dict[int, int]):
    """A function that refuses with other statuses."""

    def replaced(original):
        def function(*args, **more):
            try:
                return original(*args, **more)
            except Refused as refused:
                raise Refused(instead.get(refused.status, refused.status), fault=refused.fault) from None

        return function

    return replaced


def on_refusal(result):
    """A function that does not refuse."""

    def replaced(original):
        def function(*args, **more):
            try:
                return original(*args, **more)
            except Refused:
                return result

        return function

    return replaced


def twice(original):
    def answer(self, call, stub):
        before = len(self._out)
        original(self, call, stub)
        self._out += self._out[before:]

    return answer


def unknown_interface_for_unknown_method(original):
    def refusal(self, request, security):
        status = original(self, request, security)
        return FaultStatus.NCA_S_UNK_IF if status == FaultStatus.NCA_S_OP_RNG_ERROR else status

    return refusal


def stopping_by_number(original):
    def stop(self, request, status):
        for context in self._contexts:
            waiting = context.waiting.get(request.request_id)
            if waiting is not None:
                original(self, waiting, status)

    return stop


def of_one_context(original):
    def stub_fragments(schema, fields, *args, **more):
        return original(schema, {**fields, "p_cont_id": 0}, *args, **more)

    return stub_fragments


def impatient(original):
    def read(self, request, arguments, action, cursor):
        return original(self, request, replace(arguments, ulTimeout=0), action, cursor)

    return read


MISTAKES = {
    "any handle is good for anybody": (
        contexts,
        "_owns",
        lambda _: lambda call, context: True,
        "MQRR-3.1.4.4-03",
    ),
    "another interface is accepted": (
        presentation,
        "_serves",
        lambda _: lambda known, asked: known.uuid == asked.uuid,
        "MQRR-1.9-01",
    ),
    "an unknown method is an unknown interface": (
        ServerAssociation,
        "_refusal",
        unknown_interface_for_unknown_method,
        "MQRR-3.1.4-03",
    ),
    "a queue that is not there has another error": (
        Opening,
        "_open",
        refusing({HResult.MQ_ERROR_QUEUE_NOT_FOUND: HResult.MQ_ERROR}),
        "MQRR-3.1.4.2-25",
    ),
    "a queue is never open exclusively": (
        Opening,
        "_open",
        lambda original: lambda self, call, name, wanted, share: original(self, call, name, wanted, 0),
        "MQRR-3.1.4.2-27",
    ),
    "all cursors are one": (Opening, "_number", lambda _: lambda self, context: 1, "MQRR-3.1.4.4-04"),
    "a purge leaves everything": (
        MessageEvents,
        "purge",
        lambda _: lambda self, queue: None,
        "MQRR-3.1.4.6-04",
    ),
    "who peeks may receive": (
        receiving,
        "_check_access",
        lambda _: lambda context, action: None,
        "MQRR-3.1.4.7-12",
    ),
    "arguments are not checked": (
        receiving,
        "_checked",
        on_refusal(Action.MQ_ACTION_PEEK_CURRENT),
        "MQRR-3.1.4.7-40",
    ),
    "an accepted message comes again": (
        RemoteReceiving,
        "_end_dequeue",
        lambda original: lambda self, request, delete: original(self, request, delete=False),
        "MQRR-3.1.4.9-05",
    ),
    "a rejected message is lost": (
        RemoteReceiving,
        "_end_dequeue",
        lambda original: lambda self, request, delete: original(self, request, delete=True),
        "MQRR-3.1.4.9-06",
        "MQRR-3.1.4.7-45",
    ),
    "the rundown gives nothing back": (
        RemoteReceiving,
        "release_all",
        lambda _: lambda self, context: None,
        "MQRR-3.1.6.2-04",
    ),
    "a body is cut one byte later": (
        message_sections,
        "sections_of",
        lambda original: lambda packet, body, compound: original(packet, min(body + 1, 1 << 31), compound),
        "MQRR-3.1.4.7-33",
    ),
    "a read of another handle is cancelled too": (
        RemoteReceiving,
        "_stop",
        stopping_by_number,
        "MQRR-3.1.4.8-05",
    ),
    "a PDU is answered before its last byte": (
        ServerAssociation,
        "received",
        MISTAKES_OF_PEERS["answers_a_byte_early"].replace,
        "MQRR-2.1-01",
    ),
    "a time-out of a read is not waited for": (RemoteReceiving, "_read", impatient, "MQRR-3.1.2.1-03"),
    "a response is always in the first context": (
        server_association,
        "stub_fragments",
        of_one_context,
        "MQRR-2.2-01",
        "MQRR-2.1-01",
    ),
    "an answer comes twice": (ServerAssociation, "answer", twice, "MQRR-3.1.4.1-02", "MQRR-2.1-01"),
}
"""Where the mistake is, what is there instead, a requirement whose cases show it, one told too."""


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_of_a_server_is_found_by_its_requirement(target, name):
    owner, attribute, replaced, rule, *shown = MISTAKES[name]
    with mock.patch.object(owner, attribute, replaced(getattr(owner, attribute))):
        found = first_failure(stage_of(replace(target, bound=1.0)), cases(target, rule))
    assert found is not None
    assert {rule, *shown} & {*found.requirements}, found


def test_a_step_that_has_lost_its_sense_does_nothing(stage, target):
    """What shrinking leaves of a case is not a reason to accuse a peer."""
    source = random.Random(14)
    for case in source.sample(cases(target), 40):
        kept = tuple(s for s in case.steps if source.random() < 0.6 and s.action != "answers")
        assert stage.perform(Case(NAME, kept)).failure is None, kept


def test_a_peer_that_is_not_there_is_gone(target):
    gone = Target(ADDRESS, Ports(9, remote_read=9))
    failure = stage_of(gone).fresh(NAME)
    assert failure is not None
    assert failure.what == "gone"


def test_bytes_that_are_no_pdu_are_a_failure(stage, target):
    """An answer that can't be read, here of the binary protocol, is told and never an exception."""
    wrong = Target(ADDRESS, Ports(target.ports.binary, remote_read=target.ports.binary), bound=0.3)
    failure = (
        stage_of(wrong)
        .perform(Case(NAME, (Step("connect"), Step("bind", data=PROTOCOL.fresh(wrong).steps[1].data))))
        .failure
    )
    assert failure is not None
    assert failure.requirements == ("MQRR-2.1-01",)
