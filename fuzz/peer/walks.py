"""Walks of a state machine before a peer, drawn by Hypothesis."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from fuzz.peer.performing import Outcome, Performance, Stage
from fuzz.peer.steps import Step

STEPS: Final = 25
"""The most steps of one walk."""


def walk(
    stage: Stage, protocol: str, number: int, walks: int, end: float, judge: Callable[[Outcome], bool]
) -> None:
    """Do some walks, until `judge` reports a failure of the peer.

    Args:
        stage: the stage to perform on.
        protocol: its name.
        number: the same number draws the same walk.
        walks: their number.
        end: the time after which no more steps are done, by the monotonic clock.
        judge: takes the result of each, and returns whether to stop.
    """
    current: Performance | None = None
    over = False

    def perform(step: Step) -> None:
        if current is not None and not over and time.monotonic() < end:
            current.perform(step)

    machine = stage.protocols[protocol].walk(stage.target, perform)

    @seed(number)
    class Walk(machine):  # type: ignore[misc, valid-type]  # a class that is made at run time
        def __init__(self) -> None:
            nonlocal current
            current = None if over else Performance(stage, protocol)
            super().__init__()

        def teardown(self) -> None:
            nonlocal over
            if current is not None:
                over = judge(current.end()) or over

    run_state_machine_as_test(
        Walk,
        settings=settings(
            max_examples=walks,
            stateful_step_count=STEPS,
            phases=(Phase.generate,),
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
