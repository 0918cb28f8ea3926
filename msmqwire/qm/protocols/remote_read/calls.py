"""Calls and their answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from msmqwire.constants import MQ_OK
from msmqwire.qm.model.caller import Caller
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.effects import RpcAnswer, RpcFault
from msmqwire.remote_read.constants import Opnum

STATUS: Final = "status"
"""The name of the return value among the results."""

Results = Mapping[str, Any]

_VOID: Final = (
    Opnum.R_OpenQueue,  # MQRR-3.1.4.2-22
    Opnum.R_OpenQueueForMove,  # MQRR-3.1.4.11-18
)
"""The methods without a return value, whose HRESULT is the status of a fault."""


class Refused(Exception):
    """A call fails: `status` is its return value, or the status of a fault if it has none."""

    def __init__(self, status: int, *, fault: bool = False) -> None:
        super().__init__(f"{status:#010x}")
        self.status, self.fault = int(status), fault


class Call(NamedTuple):
    """A call that is to be answered.

    Attributes:
        number: its number, from the owner.
        association: the association that it came over.
        kept: the out parameters without a default that it returns besides the return value if it fails.
    """

    number: int
    association: int
    caller: Caller
    opnum: int
    kept: Results


def answer(context: Context, call: Call, results: Results, status: int = MQ_OK) -> None:
    """Answer a call, once all its changes are durable."""
    named = results if call.opnum in _VOID else {STATUS: int(status), **results}
    context.effects.append(RpcAnswer(call.number, named))


def refuse(context: Context, call: Call, refused: Refused) -> None:
    """Fail a call."""
    if refused.fault or call.opnum in _VOID:
        context.effects.append(RpcFault(call.number, refused.status))
    else:
        answer(context, call, call.kept, refused.status)
