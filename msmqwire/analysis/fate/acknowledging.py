"""The classes of acknowledgement messages."""

from __future__ import annotations

from typing import Final

from msmqwire.constants import MessageClass

ACKNOWLEDGING: Final = frozenset(MessageClass) - {
    MessageClass.MQMSG_CLASS_NORMAL,
    MessageClass.MQMSG_CLASS_REPORT,
}
