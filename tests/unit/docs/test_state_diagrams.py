"""The page of state diagrams agrees with the tables of the engine."""

from __future__ import annotations

import re

from msmqwire.qm.protocols.binary.states import MESSAGES, PING, SESSION, SessionRole, SessionState
from msmqwire.qm.protocols.srmp.states import MESSAGES as SRMP_MESSAGES
from tests.support.installed import installed
from tools.pages.state_diagrams import drawn, page


def test_every_transition_is_in_a_table_and_in_a_diagram() -> None:
    text = page()
    for (role, state, event), following in SESSION.items():
        if role is SessionRole.ACCEPTOR and state in (
            SessionState.WAITING_ECR_MSG, SessionState.WAITING_CPR_MSG, SessionState.WAITING_RECONNECT
        ):  # fmt: skip
            continue  # states that an acceptor never enters
        if role is SessionRole.INITIATOR and state in (
            SessionState.WAITING_EC_MSG,
            SessionState.WAITING_CP_MSG,
        ):
            continue
        if state is following and state is SessionState.CLOSED:
            continue
        part = text.partition(f"## Session, {role.value}\n")[2].partition("\n## ")[0]
        assert f"| {state.value} | {event.value} | {following.value} |" in part
        assert f"    {state.name} -> {following.name} [" in part
    for transitions in (*MESSAGES.values(), *SRMP_MESSAGES.values()):
        for (message_state, message_event), following_state in transitions.items():
            assert f"| {message_state.value} | {message_event.value} | {following_state.value} |" in text
            assert f"    {message_state.name} -> {following_state.name} [" in text
    for (ping_state, ping_event), result in PING.items():
        assert f"| {ping_state.value} | {ping_event} | {result.value} |" in text


def test_no_other_transition_is_on_the_page() -> None:
    allowed = {f"| {state.value} | {event.value} | {to.value} |" for (_, state, event), to in SESSION.items()}
    for transitions in (*MESSAGES.values(), *SRMP_MESSAGES.values()):
        allowed |= {
            f"| {state.value} | {event.value} | {to.value} |" for (state, event), to in transitions.items()
        }
    allowed |= {f"| {state.value} | {event} | {to.value} |" for (state, event), to in PING.items()}
    rows = [line for line in page().splitlines() if line.startswith("| ") and "---" not in line]
    heads = [row for row in rows if row == "| state | event | next state |"]
    assert len(heads) == 7
    assert set(rows) - set(heads) <= allowed


def test_diagrams_are_drawn() -> None:
    installed("dot")
    text = drawn(page())
    assert text.count("<svg") == page().count("```dot") == 7
    assert "```" not in text
    assert "WAITING_ECR_MSG" in re.findall(r"<text[^>]*>([^<]*)</text>", text)
