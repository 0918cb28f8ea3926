"""The actions: [MS-MQMR] 3.1.4.2."""

from __future__ import annotations

from typing import Any

from msmqwire.constants import HResult
from msmqwire.management.constants import MACHINE_ACTIONS, Action, ObjectType, action_of
from msmqwire.qm.model.effects import TidyStore
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.enumerations import OutgoingQueueState
from msmqwire.qm.protocols.management.names import find_queue
from msmqwire.qm.protocols.management.needs import ManagementNeeds
from msmqwire.qm.protocols.management.refused import ManagementRefused


class Actions:
    """The actions on a queue manager and its outgoing queues."""

    def __init__(self, core: ManagementNeeds) -> None:
        self._core = core

    def perform(self, managed: Any, text: object) -> None:
        """Perform an action by its name. Raises ManagementRefused, and nothing has changed then."""
        action = action_of(text)
        wanted = ObjectType.MGMT_MACHINE if action in MACHINE_ACTIONS else ObjectType.MGMT_QUEUE
        # MQMR-3.1.4.2-08, MQMR-3.1.4.2-09, MQMR-3.1.4.2-13
        if action is None or managed.type != wanted:
            raise ManagementRefused(HResult.MQ_ERROR_INVALID_PARAMETER)  # MQMR-3.1.4.2-10
        if wanted == ObjectType.MGMT_MACHINE:
            self._on_machine(action)
            return
        queue = find_queue(self._core.queues.lookup, managed.arm)
        if not isinstance(queue, OutgoingQueue):  # MQMR-3.1.4.2-21
            raise ManagementRefused(HResult.MQ_ERROR_INVALID_PARAMETER)
        self._on_queue(action, queue)

    def _on_machine(self, action: Action) -> None:
        core = self._core
        match action:
            case Action.CONNECT:
                core.queues.bring_online()  # MQMR-3.1.4.2-14
            case Action.DISCONNECT:
                core.queues.take_offline()  # MQMR-3.1.4.2-15
            case _:
                self._tidy()

    def _tidy(self) -> None:
        """Free what is not used; no message is deleted: MQMR-3.1.4.2-17, MQMR-3.1.4.2-18, MQMR-1.3-02."""
        for protocol in self._core.protocols:
            protocol.forget_unused()
        self._core.context.effects.append(TidyStore())

    def _on_queue(self, action: Action, queue: OutgoingQueue) -> None:
        core, held = self._core, queue.state is OutgoingQueueState.ON_HOLD
        match action:
            case Action.PAUSE:
                if not held:  # MQMR-3.1.4.2-24
                    core.queues.pause(queue)  # MQMR-3.1.4.2-20
            case Action.RESUME:
                if held:  # MQMR-3.1.4.2-23
                    core.queues.resume(queue)  # MQMR-3.1.4.2-22
            case _:
                for protocol in core.protocols:
                    protocol.resend(queue)  # MQMR-3.1.4.2-25
