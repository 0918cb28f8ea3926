"""Who may call: [MS-MQMR] 3 and 5.1."""

from __future__ import annotations

from typing import NamedTuple

from msmqwire.qm.model.enumerations import ManageAccess


class Standing(NamedTuple):
    """What is known of a caller: MQMR-3-03.

    Attributes:
        may_call: whether the server takes calls of this caller at all.
        is_user: whether the caller has proved to be one of the users that the administrator lists.
    """

    may_call: bool
    is_user: bool


def admits(access: ManageAccess, standing: Standing) -> bool:
    """Return whether a caller may ask and act: MQMR-3-02, MQMR-5.1-01.

    There is no part of the rights for other callers: MQMR-5.1-02.
    """
    match access:
        case ManageAccess.CALLERS:
            return standing.may_call
        case ManageAccess.USERS:
            return standing.may_call and standing.is_user
        case _:
            return False
