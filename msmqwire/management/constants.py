"""The values that parameters of the qmmgmt interface take: [MS-MQMR] 2.2.2 and 3.1.4."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final

PROPERTIES_MAX: Final = 128  # MQMR-3.1.4.1-03
"""The most properties of a call: range(1, 128)."""
REQUEST_MAX: Final = 0x4000
"""Bytes of the longest stub of a call that a server takes: 128 properties and a name need about 3,000."""


class ObjectType(IntEnum):
    """MgmtObjectType, the kind of object that a call is about: [MS-MQMR] 2.2.2.1."""

    MGMT_MACHINE = 1  # MQMR-2.2.2.1-01
    MGMT_QUEUE = 2
    MGMT_SESSION = 3


class Opnum(IntEnum):
    """The procedures of the interface: [MS-MQMR] 3.1.4."""

    R_QMMgmtGetInfo = 0  # MQMR-3.1.4-04, MQMR-3.1.4.1-11
    R_QMMgmtAction = 1  # MQMR-3.1.4.2-11


class Action(StrEnum):
    """lpwszAction of R_QMMgmtAction, compared without regard to case: [MS-MQMR] 3.1.4.2."""

    CONNECT = "CONNECT"  # MQMR-3.1.4.2-03
    DISCONNECT = "DISCONNECT"
    TIDY = "TIDY"
    PAUSE = "PAUSE"
    RESUME = "RESUME"
    EOD_RESEND = "EOD_RESEND"


MACHINE_ACTIONS: Final = frozenset({Action.CONNECT, Action.DISCONNECT, Action.TIDY})  # MQMR-3.1.4.2-13
QUEUE_ACTIONS: Final = frozenset({Action.PAUSE, Action.RESUME, Action.EOD_RESEND})  # MQMR-3.1.4.2-13


def action_of(text: object) -> Action | None:
    """Return the action that a text names, None for another text: MQMR-3.1.4.2-04, MQMR-3.1.4.2-09."""
    try:
        return Action(text.upper()) if isinstance(text, str) and text.isascii() else None
    except ValueError:
        return None
