"""The server of [MS-MQMR] 3.1: the values of a call go in, its results come out.

No call leaves anything behind for the next one, and nothing is kept here: MQMR-1.3-01, MQMR-3.1.1.1-01.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msmqwire.constants import MQ_OK, HResult
from msmqwire.management.constants import ObjectType
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import ManageAccess
from msmqwire.qm.protocols.management.actions import Actions
from msmqwire.qm.protocols.management.answer_size import ANSWER_MAX, size_of_all
from msmqwire.qm.protocols.management.machine_values import MACHINE_PROPERTIES, machine_value
from msmqwire.qm.protocols.management.names import find_queue
from msmqwire.qm.protocols.management.needs import ManagementNeeds
from msmqwire.qm.protocols.management.queue_values import QUEUE_PROPERTIES, queue_value
from msmqwire.qm.protocols.management.refused import ManagementRefused
from msmqwire.qm.protocols.management.standing import Standing, admits

Results = Mapping[str, Any]
"""Out parameters by their names in the IDL, and the return value as ``status``."""


class ManagementEngine:
    """Answers calls about the queue manager and its queues, and performs actions.

    Attributes:
        access: which callers may ask and act.
    """

    def __init__(self, core: ManagementNeeds) -> None:
        self._core = core
        self._actions = Actions(core)
        self.access = ManageAccess.NONE

    def get_info(self, standing: Standing, arguments: Any) -> Results:
        """R_QMMgmtGetInfo: [MS-MQMR] 3.1.4.1. Nothing changes."""
        try:
            self._check(standing)
            values = self._values(arguments.pObjectFormat, arguments.aProp)
        except ManagementRefused as refused:
            # MQMR-3.1.4.1-09: the values go back as they came.
            return {"apVar": arguments.apVar, "status": refused.status}
        return {"apVar": values, "status": MQ_OK}  # MQMR-3.1.4.1-08

    def act(self, standing: Standing, arguments: Any) -> Results:
        """R_QMMgmtAction: [MS-MQMR] 3.1.4.2."""
        try:
            self._check(standing)  # MQMR-3.1.4.2-28
            self._actions.perform(arguments.pObjectFormat, arguments.lpwszAction)
        except ManagementRefused as refused:
            return {"status": refused.status}  # MQMR-3.1.4.2-07
        return {"status": MQ_OK}  # MQMR-3.1.4.2-06

    def _check(self, standing: Standing) -> None:
        """Refuse a caller without rights before anything else is looked at: MQMR-3-04."""
        if not admits(self.access, standing):
            raise ManagementRefused(HResult.MQ_ERROR_ACCESS_DENIED)

    def _values(self, managed: Any, identifiers: Sequence[int]) -> list[Any]:
        machine = managed.type == ObjectType.MGMT_MACHINE
        if not machine and managed.type != ObjectType.MGMT_QUEUE:  # MQMR-3.1.4.1-14, MQMR-3.1.4.1-15
            raise ManagementRefused(HResult.MQ_ERROR_INVALID_PARAMETER)
        known = MACHINE_PROPERTIES if machine else QUEUE_PROPERTIES  # MQMR-3.1.4.1-12, MQMR-3.1.4.1-13
        if not known.issuperset(identifiers):  # MQMR-3.1.4.1-16, MQMR-3.1.4.1-17
            raise ManagementRefused(HResult.MQ_ERROR_ILLEGAL_PROPID)
        context = self._core.context
        queue: Queue | None = None if machine else find_queue(self._core.queues.lookup, managed.arm)
        values: dict[int, Any] = {}
        for identifier in identifiers:
            if identifier not in values:
                if queue is None:
                    values[identifier] = machine_value(context, identifier)
                else:
                    values[identifier] = queue_value(context, queue, identifier)
        answer = [values[identifier] for identifier in identifiers]  # MQMR-3.1.4.1-64
        if size_of_all(answer) > ANSWER_MAX:
            raise ManagementRefused(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)
        return answer
