"""QUEUE_FORMAT, the queue that a call is about, and format names: [MS-MQMQ] 2.2.7 to 2.2.11, [MS-MQRR] 2.2.3.

`msmqwire.headers` has the same structure as a schema of its own, for one that stands by itself in NDR.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.constants import QUEUE_FORMAT_TYPE
from msmqwire.names import FormatName, from_queue_format, to_queue_format
from msmqwire.rpc.ndr import Guid, Integer, Member, Pointer, Structure, Union, WideString

_T: Final = QUEUE_FORMAT_TYPE
_BYTE: Final = Integer(8)
_ULONG: Final = Integer(32)

OBJECTID: Final = Structure(
    "OBJECTID",
    "[MS-MQMQ] 2.2.8",
    (
        Member("Lineage", Guid(), "GUID of the queue manager.", req=("MQMQ-2.2.8-01", "MQRR-2.2.3-07")),
        Member("Uniquifier", _ULONG, "Number of the queue on it.", req=("MQMQ-2.2.8-02",)),
    ),
    "A private queue.",
)

DL_ID: Final = Structure(
    "DL_ID",
    "[MS-MQMQ] 2.2.9",
    (
        Member("m_DlGuid", Guid(), "GUID of the distribution list.", req=("MQMQ-2.2.9-01",)),
        Member(
            "m_pwzDomain",
            Pointer(WideString()),
            "Active Directory domain of the list.",
            default=None,
            req=("MQMQ-2.2.9-02",),
        ),
    ),
    "A distribution list.",
)

MULTICAST_ID: Final = Structure(
    "MULTICAST_ID",
    "[MS-MQMQ] 2.2.10",
    (
        Member("m_address", _ULONG, "IPv4 address: its octets in network order.", req=("MQMQ-2.2.10-01",)),
        Member("m_port", _ULONG, meaning="Port.", req=("MQMQ-2.2.10-02",)),
    ),
    "A multicast address.",
)

ARMS: Final[dict[int, Member | None]] = {
    _T.QUEUE_FORMAT_TYPE_UNKNOWN: None,
    _T.QUEUE_FORMAT_TYPE_PUBLIC: Member(
        "m_gPublicID", Guid(), "GUID of a public queue.", req=("MQRR-2.2.3-07",)
    ),
    _T.QUEUE_FORMAT_TYPE_PRIVATE: Member(
        "m_oPrivateID", OBJECTID, "A private queue.", req=("MQRR-2.2.3-07",)
    ),
    _T.QUEUE_FORMAT_TYPE_DIRECT: Member(
        "m_pDirectID",
        Pointer(WideString()),
        "Direct format name without DIRECT=.",
        req=("MQRR-2.2.3-02", "MQRR-2.2.3-06"),
    ),
    _T.QUEUE_FORMAT_TYPE_MACHINE: Member(
        "m_gMachineID", Guid(), "GUID of a machine.", req=("MQRR-2.2.3-07",)
    ),
    _T.QUEUE_FORMAT_TYPE_CONNECTOR: Member("m_GConnectorID", Guid(), "GUID of a connector queue."),
    _T.QUEUE_FORMAT_TYPE_DL: Member("m_DlID", DL_ID, "A distribution list."),
    _T.QUEUE_FORMAT_TYPE_MULTICAST: Member("m_MulticastID", MULTICAST_ID, "A multicast address."),
    _T.QUEUE_FORMAT_TYPE_SUBQUEUE: Member(
        "m_pDirectSubqueueID",
        Pointer(WideString()),
        "Direct name with a subqueue.",
        req=("MQRR-2.2.3-06",),
    ),
}

QUEUE_FORMAT: Final = Structure(
    "QUEUE_FORMAT",
    "[MS-MQMQ] 2.2.7",
    (
        Member("m_qft", _BYTE, "Kind of the name, QUEUE_FORMAT_TYPE_*.", req=("MQRR-2.2.3-03",)),
        Member(
            "m_SuffixAndFlags",
            _BYTE,
            "QUEUE_SUFFIX_TYPE_* in the low nibble, 0x80 for a system queue.",
            default=0,
            req=("MQRR-2.2.3-03",),
        ),
        Member("m_reserved", Integer(16), "0; not used.", default=0, req=("MQRR-2.2.3-03",)),
        Member(
            "arm",
            Union(_BYTE, "m_qft", ARMS),
            "The name, by m_qft.",
            default=None,
            req=("MQRR-2.2.3-04", "MQRR-2.2.3-05"),
        ),
    ),
    "A queue in a remote call.",
)


def queue_format_of(name: FormatName | None, *, subqueue_prefix: bool = True) -> Any:
    """Return the QUEUE_FORMAT of a format name; None stands for QUEUE_FORMAT_TYPE_UNKNOWN.

    `subqueue_prefix` as in `msmqwire.names.to_queue_format`.

    Raises:
        InvalidName: for several elements, and for a machine name without suffix.
    """
    form = to_queue_format(name, subqueue_prefix=subqueue_prefix)
    arm, kept = ARMS[form["m_qft"]], form["m_SuffixAndFlags"]
    content = None if arm is None else form[arm.name]
    if arm is not None and isinstance(arm.type, Structure):
        content = arm.type.value(**form[arm.name])
    return QUEUE_FORMAT.value(
        m_qft=form["m_qft"],
        m_SuffixAndFlags=kept["SuffixType"] | kept["Flags"] << 4,
        m_reserved=0,
        arm=content,
    )


def name_of(queue_format: Any) -> FormatName | None:
    """Return the format name of a QUEUE_FORMAT, None for QUEUE_FORMAT_TYPE_UNKNOWN.

    Raises:
        InvalidName: for a suffix or flags that do not go with the type, a null pointer, and a name that
            breaks the grammar.
    """
    form = {"m_qft": queue_format.m_qft, "m_SuffixAndFlags": queue_format.m_SuffixAndFlags}
    arm = ARMS.get(queue_format.m_qft)
    return from_queue_format(form if arm is None else {**form, arm.name: queue_format.arm})
