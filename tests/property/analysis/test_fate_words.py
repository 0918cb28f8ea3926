"""States and words of fates: over all histories none contradicts the other."""

from __future__ import annotations

import itertools
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.analysis.fate import judging, message
from msmqwire.analysis.fate.message import NAMESAKES_MAX, Namesakes
from msmqwire.analysis.fate.model import NEGATIVE, EventKind, MessageFate, Missing, State
from msmqwire.analysis.fate.observations import Attributes, Observation, Where
from msmqwire.analysis.fate.words import OPEN, is_stuck

SENDER, RECEIVER, ROUTER = "10.0.0.1", "10.0.0.2", "10.0.0.3"
KEY = "557358d1-9150-9595-4997-b6e611ea26c6\\1"
WAYS = [(SENDER, RECEIVER), (SENDER, ROUTER), (ROUTER, RECEIVER)]
"""The ends of three connections, by their number."""
OF_A_HOP = [
    EventKind.RECEIVED, EventKind.STORED, EventKind.UNACKNOWLEDGED, EventKind.NOT_STORED,
    EventKind.ACCEPTED, EventKind.NOT_ACCEPTED,
]  # fmt: skip
BEGINNINGS = {
    State.SENT: ("sent to ", "the server at "),
    State.RECEIVED: tuple(
        f"{receiver} has received it{ends}"
        for receiver in (RECEIVER, ROUTER)
        for ends in ("; ", ", and not acknowledged its storing: ")
    ),
    State.STORED: (f"{RECEIVER} has stored it; ", f"{ROUTER} has stored it; "),
    State.DELIVERED: ("it is in its queue; ",),
    State.READ: (
        "an application has read it: ",
        *(f"{reader} has received it by remote read" for reader in (SENDER, ROUTER)),
    ),
    State.REFUSED: ("the server at ", "the queue manager at "),
    State.EXPIRED: ("the queue manager at ",),
    State.DELETED: ("the queue manager at ",),
    State.REJECTED: ("the queue manager at ",),
    State.DEAD_LETTERED: ("it is in a dead-letter queue, ",),
}
ATTRIBUTES = st.builds(
    Attributes, label=st.just("order"), destination=st.just("DIRECT=OS:b\\q"), destination_qm=st.none(),
    admin_queue=st.sampled_from([None, "DIRECT=OS:a\\admin"]), transport=st.sampled_from(["tcp", "http"]),
    message_class=st.just(0), class_name=st.just("NORMAL"), body_size=st.just(5), recoverable=st.booleans(),
    transactional=st.booleans(), ack_flags=st.integers(0, 15), journal_negative=st.booleans(),
    sent_time=st.just(0), time_to_reach_queue=st.sampled_from([None, 1]),
    time_to_be_received=st.sampled_from([None, 1]), hop_count=st.just(0), beginning=st.just(b"first"),
)  # fmt: skip


@st.composite
def histories(draw: st.DrawFn) -> list[Observation]:
    """What is seen of one message, in the order of a capture."""
    attributes = draw(ATTRIBUTES)
    steps = draw(
        st.lists(
            st.tuples(st.sampled_from([*EventKind]), st.integers(0, 2), st.booleans(), st.booleans()),
            max_size=12,
        )
    )
    history = []
    for position, (seen, stream, is_certain, refused) in enumerate([(EventKind.SENT, 0, True, True), *steps]):
        # The message itself finds out what a sending is.
        what = EventKind.SENT if seen in (EventKind.SENT_AGAIN, EventKind.FORWARDED) else seen
        src, dst = WAYS[stream] if what is EventKind.SENT else WAYS[stream][::-1]
        message = attributes._replace(hop_count=stream // 2) if what is EventKind.SENT else None
        message_class, detail = None, "why"
        if what is EventKind.NOT_ACCEPTED:
            detail = f"HTTP status {400 if refused else 500}"
        if what in (EventKind.PEEKED, EventKind.HANDED_OUT):
            detail = draw(st.sampled_from(["", ";JOURNAL", ";DEADLETTER"]))
        if "acknowledgement" in what or "receipt" in what:
            message_class = draw(st.sampled_from([0x0002, 0x4000, 0x8000, 0x8001, 0x8002, 0xC004]))
        where = Where(position, position * 10**9, stream, "a.pcap", position + 1, src, dst)
        history.append(
            Observation(
                KEY, where, what, message_class=message_class, is_certain=is_certain, detail=detail,
                message=message,
            )
        )  # fmt: skip
    return history


def fates_of(history: list[Observation]) -> list[MessageFate]:
    namesakes = Namesakes()
    for observation in history:
        namesakes.add(observation)
    return [namesakes.fate(message, KEY) for message in namesakes.messages]


@given(histories())
def test_no_state_contradicts_its_words(history: list[Observation]) -> None:
    (fate,) = fates_of(history)
    words, _, _ = fate.explanation.partition("; it was sent again")
    assert words.startswith(BEGINNINGS[fate.state]), (fate.state, words)
    assert fate.stuck is (fate.state is State.SENT and fate.missing != "")
    if fate.missing:
        assert (fate.state, Missing(fate.missing)) in OPEN
    if fate.state is State.SENT and not fate.stuck:
        assert "no acknowledgement came" not in words
    if fate.state not in NEGATIVE:
        assert (fate.reason, "refused" in fate.latencies) == ("", False)


@given(histories())
def test_an_acceptance_is_not_undone_by_an_attempt_after_it(history: list[Observation]) -> None:
    accepted = Observation(
        KEY,
        Where(50, 50 * 10**9, 0, "a.pcap", 51, RECEIVER, SENDER),
        EventKind.ACCEPTED,
        detail="HTTP status 202",
    )
    again = history[0]._replace(where=history[0].where._replace(position=49, time_ns=49 * 10**9))
    refused = accepted._replace(
        where=accepted.where._replace(position=52), what=EventKind.NOT_ACCEPTED, detail="HTTP status 400"
    )
    later = again._replace(where=again.where._replace(position=51))
    (fate,) = fates_of([*history, again, accepted, later, refused])
    assert fate.state is not State.SENT
    assert fate.reason != "HTTP status 400"


@pytest.mark.parametrize(("state", "missing"), [*itertools.product(State, Missing)])
def test_what_is_missing_goes_with_its_state(state: State, missing: Missing) -> None:
    """What has been received is never stuck; nothing is missing of what has ended."""
    assert not is_stuck(state, missing) or state is State.SENT
    if missing and state not in (State.SENT, State.RECEIVED, State.STORED):
        assert (state, missing) not in OPEN
    if (state, missing) in OPEN:
        words = OPEN[state, missing]
        assert ("has received it" in words) is (state is State.RECEIVED)
        assert ("has stored it" in words) is (state is State.STORED)
        assert ("sent to" in words or "has not accepted" in words) is (state is State.SENT)


def test_messages_of_one_identity_are_limited() -> None:
    attributes = Attributes(
        "", None, None, None, "tcp", 0, "NORMAL", 0, False, False, 0, False, 0, None, None, 0, None
    )
    namesakes = Namesakes()
    for number in range(10 * NAMESAKES_MAX):
        where = Where(number, 0, number, "a.pcap", number, SENDER, RECEIVER)
        namesakes.add(Observation(KEY, where, EventKind.SENT, message=attributes._replace(sent_time=number)))
    assert len(namesakes.messages) == NAMESAKES_MAX
    explanations = [namesakes.fate(one, KEY).explanation for one in namesakes.messages]
    assert all(f"and {NAMESAKES_MAX - 2} more" in words for words in explanations)


@given(histories(), st.lists(ATTRIBUTES, min_size=1, max_size=5))
def test_an_outcome_that_is_known_is_the_same(history: list[Observation], others: list[Attributes]) -> None:
    """Outcomes of one attempt to send are remembered; worked out by themselves they are no others."""
    first = history[0]
    answers = [one for one in history[1:] if one.what in OF_A_HOP and one.where.stream == 0]
    opposite = [one._replace(is_certain=not one.is_certain) for one in answers]
    attempts = [[first, *answers], [first], [first, *opposite], [first, *reversed(answers)]]
    attempts += [[first._replace(message=one), *answers] for one in others]
    judging._OUTCOMES.clear()
    remembered = [fates_of(attempt) for attempt in attempts]
    with mock.patch.object(message, "judge_of_hop", return_value=None):
        alone = [fates_of(attempt) for attempt in attempts]
    assert remembered == alone
