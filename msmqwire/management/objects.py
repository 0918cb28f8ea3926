"""MGMT_OBJECT, the machine or queue that a call is about: [MS-MQMR] 2.2.1.2."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.management.constants import ObjectType
from msmqwire.names import FormatName
from msmqwire.rpc.ndr import Enum, Integer, Member, Pointer, Structure, Union
from msmqwire.rpc.queue_format import QUEUE_FORMAT, queue_format_of

MGMT_OBJECT: Final = Structure(
    "MGMT_OBJECT",
    "[MS-MQMR] 2.2.1.2",
    (
        Member("type", Enum(), "The kind of object, an MgmtObjectType.", req=("MQMR-2.2.1.2-04",)),
        Member(
            "arm",
            Union(
                Enum(),
                "type",
                {
                    int(ObjectType.MGMT_MACHINE): Member("Reserved1", Integer(32), "Not used.", default=0),
                    int(ObjectType.MGMT_QUEUE): Member("pQueueFormat", Pointer(QUEUE_FORMAT), "The queue."),
                    int(ObjectType.MGMT_SESSION): Member("Reserved2", Integer(32), "Not used.", default=0),
                },
                unequal="MQMR-2.2.1.2-05",
                unknown="MQMR-2.2.1.2-04",
            ),
            "The queue, or a number that is not used: by type.",
            default=None,
            req=("MQMR-2.2.1.2-01", "MQMR-2.2.1.2-02", "MQMR-2.2.1.2-03", "MQMR-2.2.1.2-05"),
        ),
    ),
    "The object of a call.",
)


def machine_object() -> Any:
    """Return the MGMT_OBJECT of the queue manager that is asked."""
    return MGMT_OBJECT.value(type=int(ObjectType.MGMT_MACHINE), arm=0)


def queue_object(name: FormatName | None) -> Any:
    """Return the MGMT_OBJECT of a queue; None stands for QUEUE_FORMAT_TYPE_UNKNOWN: MQMR-2.2.1.2-08.

    Raises:
        InvalidName: for several elements, and for a machine name without suffix.
    """
    return MGMT_OBJECT.value(type=int(ObjectType.MGMT_QUEUE), arm=queue_format_of(name))
