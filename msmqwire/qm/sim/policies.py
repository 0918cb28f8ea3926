"""Policies in the simulation: poison messages, and full queues that move their oldest messages away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msmqwire.names.printable import counted
from msmqwire.qm.core import Core
from msmqwire.qm.model.enumerations import MoveReason, PositionState, QueueType
from msmqwire.qm.model.hand_outs import HandOuts
from msmqwire.qm.model.policies import DEAD_LETTERS, OLDEST, SUBQUEUE, Policy, is_governed
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules.own_moves import POISON, OwnMoves
from msmqwire.qm.sim.violation import Invariant
from msmqwire.service.virtual.mistake import Mistake, false
from msmqwire.service.virtual.violation import Violation


class KeptHandOuts(HandOuts):
    """Notes that survive a crash, as those in a file do: a note that has ended is not cleared."""

    def __init__(self, kept: dict[int, int]) -> None:
        super().__init__()
        self._kept = kept

    def note(self, lookup_identifier: int, deliveries: int, *, lasting: bool) -> None:
        """Note a message; see `HandOuts.note`."""
        super().note(lookup_identifier, deliveries, lasting=lasting)
        if lasting:
            self._kept[lookup_identifier] = deliveries

    def left(self) -> Mapping[int, int]:
        """Return the notes of all runs."""
        return dict(self._kept)


def set_policies(core: Core, seed: int) -> None:
    """Give all queues of a node the policies of a run."""
    poison = SUBQUEUE if seed // 10 % 2 else DEAD_LETTERS
    limits = {"delivery_limit": 1 + seed // 5 % 2, "poison": poison, "when_full": OLDEST}
    core.queues.policies.put(Policy("limits", "*", 0, limits))


def check_moves(node: str, core: Core) -> None:
    """Check that messages are where the policies want them, and say why.

    Raises:
        Violation: a message that has reached its limit can be read in its queue, or one says that it was
            moved where none are moved to.
    """
    for queue in core.queue_manager.queues.values():
        dead = queue.queue_type is QueueType.SYSTEM
        poison = queue.pathname.lower().endswith(f";{POISON}")
        for position in queue.positions:
            deliveries, reason = position.history.deliveries, position.history.reason
            if reason and not (dead or (poison and reason is MoveReason.DELIVERY_LIMIT)):
                raise Violation(
                    Invariant.MOVED, f"{position} of {queue.pathname} at {node} has {reason.name}"
                )
            limit = queue.delivery_limit if is_governed(queue) else 0
            over = limit and deliveries >= limit and position.state is PositionState.AVAILABLE
            if over and not poison:
                told = f"{position} of {queue.pathname} at {node} has {counted(deliveries, 'delivery')}"
                raise Violation(Invariant.MOVED, told)
            if reason is MoveReason.DELIVERY_LIMIT and not deliveries:
                told = f"{position} of {queue.pathname} at {node} is poison without a delivery"
                raise Violation(Invariant.MOVED, told)


def _dropped(_original: Any) -> Any:
    def move(self: OwnMoves, position: MessagePosition, reason: MoveReason) -> bool:
        self._messages.discard(position)
        return True

    return move


_MOVED: Final = frozenset({Invariant.MOVED})
POLICY_MISTAKES: Final[Mapping[str, Mistake]] = {
    "poison messages stay in their queue": Mistake(OwnMoves, "at_limit", false, _MOVED),
    "messages that a policy moves are dropped": Mistake(
        OwnMoves, "_to_dead_letters", _dropped, frozenset({Invariant.HELD})
    ),
}
