"""The steps of remote read cases: queues opened, messages sent, read and ended."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import Any, Final

from fuzz.peer.binary import messages
from fuzz.peer.remote_read import pdus
from fuzz.peer.remote_read.queue_model import PATIENT_MS
from fuzz.peer.remote_read.rpc_checks import BIND
from fuzz.peer.steps import IDENTITY, Step
from fuzz.peer.target import Target
from msmqwire.remote_read.constants import Acknowledge, Action, Opnum
from msmqwire.rpc.handles import ContextHandle

H: Final = pdus.handle(2)
"""The handle that the opening of `opened` gives."""
LONG_MS: Final = 6_000
"""The time-out of reads that are to end before it."""
FIND_MS: Final = 2 * PATIENT_MS
"""The time-out of reads that find something."""
LASTING_S: Final = 0x0FFF_FFFF
"""TimeToReachQueue of messages: years."""

OPEN_TO_PEEK: Final = "R_OpenQueue to peek"

RECEIVE: Final = Action.MQ_ACTION_RECEIVE
PEEK: Final = Action.MQ_ACTION_PEEK_CURRENT
NEXT: Final = Action.MQ_ACTION_PEEK_NEXT


def call(data: bytes, note: str, **more: Any) -> Step:
    """Return a call whose answer is judged by the known state."""
    return Step("call", data=data, note=note, **more)


def opened(target: Target, *, connection: int = 0, slot: int = 2, **how: Any) -> tuple[Step, ...]:
    """Return the steps that open a queue on a new connection; `slot` is the call id, and names the handle."""
    return (
        Step("connect", connection),
        Step("bind", connection, BIND.data, note="bind"),
        Step("persist", connection, pdus.open_queue(slot, target, **how), note="R_OpenQueue"),
    )


def emptied(target: Target, **how: Any) -> tuple[Step, ...]:
    """Return the steps that open the usual queue, and empty it."""
    return (*opened(target, **how), call(pdus.of_handle(3, Opnum.R_PurgeQueue, H), "R_PurgeQueue"))


def message(target: Target, number: int, body: bytes = b"") -> Step:
    """Return the step that sends a message to the usual queue; its MessageID is `number`, below 256."""
    fields = {
        "BaseHeader": {"TimeToReachQueue": LASTING_S},
        "UserHeader": {"SentTime": int(time.time())},
        "MessagePropertiesHeader": {
            "Label": f"message {number}",
            "MessageBody": str(IDENTITY).encode() + body,
        },
    }
    data = messages.message(target, number, fields, recoverable=True).to_bytes()
    return Step("deliver", data=data, note=f"message {number}")


def filled(target: Target, count: int, source: random.Random) -> tuple[Step, ...]:
    """Return the steps that put messages into the emptied queue, and await the arrival of the last one."""
    sent = [
        message(target, number, source.randbytes(source.randrange(400))) for number in range(1, count + 1)
    ]
    return (*emptied(target), *sent)


def receive(slot: int, request: int, action: int = RECEIVE, of: ContextHandle = H, **how: Any) -> Step:
    """Return R_StartReceive."""
    name = Action(action).name if action in {*Action} else f"the action {action:#x}"
    return call(pdus.start_receive(slot, of, request, action, **how), f"R_StartReceive, {name}")


def found(slot: int, request: int, action: int = RECEIVE, of: ContextHandle = H, **how: Any) -> Step:
    """Return R_StartReceive that waits for a message which may still be on its way into the queue."""
    return replace(receive(slot, request, action, of, timeout=FIND_MS, **how), expects="message")


def end(slot: int, request: int, ack: int = Acknowledge.RR_ACK, of: ContextHandle = H) -> Step:
    """Return R_EndReceive."""
    return call(pdus.end_receive(slot, of, request, ack), f"R_EndReceive, {Acknowledge(ack).name}")


def drain(slot: int) -> Step:
    """Return the step that receives all messages, whoever has sent them."""
    data = pdus.start_receive(slot, H, 77) + pdus.end_receive(slot + 1, H, 77)
    return Step("drain", data=data, note="R_StartReceive and R_EndReceive of all that is left")
