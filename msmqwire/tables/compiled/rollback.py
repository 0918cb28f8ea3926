"""A flow and the state of the scan as they were, for what takes all bytes of a segment or none, compiled."""

from __future__ import annotations

from typing import Any

from msmqwire.tables.compiled.decorators import jit
from msmqwire.tables.compiled.flow_table import FLOW_FIELDS
from msmqwire.tables.compiled.state import NEED, STATE


@jit
def remember(rollback: Any, flow: Any, state: Any) -> None:
    """Copy a flow and the state."""
    for i in range(FLOW_FIELDS):
        rollback[i] = flow[i]
    for i in range(STATE):
        rollback[FLOW_FIELDS + i] = state[i]


@jit
def go_back(rollback: Any, flow: Any, state: Any) -> None:
    """Restore a flow and the state, but for what a stop code asks for."""
    needed = state[NEED]
    for i in range(FLOW_FIELDS):
        flow[i] = rollback[i]
    for i in range(STATE):
        state[i] = rollback[FLOW_FIELDS + i]
    state[NEED] = needed
