"""QUEUE_FORMAT, a queue in a remote call, and its parts: [MS-MQMQ] 2.2.6 to 2.2.11."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.headers.directory_structures import OBJECTID
from msmqwire.headers.ndr import NDR_STRING, ndr_align, pointee, referent
from msmqwire.names import FormatName, from_queue_format, to_queue_format
from msmqwire.schema import Header, Record, bit, choice, flags, guid, sub, uint

DL_ID: Final = Header(
    "DL_ID",
    "[MS-MQMQ] 2.2.9",
    (
        guid("m_DlGuid", "GUID of the distribution list.", req="MQMQ-2.2.9-01"),
        referent("m_pwzDomain", "Active Directory domain of the list.", req="MQMQ-2.2.9-02"),
        pointee("m_pwzDomain", sub(NDR_STRING, "Domain", meaning="The domain.")),
    ),
    "A distribution list.",
)

MULTICAST_ID: Final = Header(
    "MULTICAST_ID",
    "[MS-MQMQ] 2.2.10",
    (
        uint(32, "m_address", "IPv4 address: its octets in network order.", req="MQMQ-2.2.10-01"),
        uint(32, "m_port", meaning="Port.", req="MQMQ-2.2.10-02"),
    ),
    "A multicast address.",
    size=8,
)


def _guid_arm(name: str, meaning: str, req: str) -> Header:
    return Header(
        f"QUEUE_FORMAT {name}", "[MS-MQMQ] 2.2.7", (ndr_align(4), guid(name, meaning, req=req)), meaning
    )


def _string_arm(name: str, meaning: str, req: str) -> Header:
    return Header(
        f"QUEUE_FORMAT {name}",
        "[MS-MQMQ] 2.2.7",
        (
            ndr_align(4),
            referent(name, meaning, req=req),
            pointee(name, sub(NDR_STRING, "Name", meaning=meaning)),
        ),
        meaning,
    )


def _structure_arm(name: str, structure: Header, req: str) -> Header:
    return Header(
        f"QUEUE_FORMAT {name}",
        "[MS-MQMQ] 2.2.7",
        (ndr_align(4), sub(structure, name, req=req)),
        structure.meaning,
    )


QUEUE_FORMAT: Final = Header(
    "QUEUE_FORMAT",
    "[MS-MQMQ] 2.2.7",
    (
        # MQMQ-5-03
        uint(8, "m_qft", "Kind of the name, QUEUE_FORMAT_TYPE_*.", must=range(9), req="MQMQ-2.2.7-01"),
        flags(
            8,
            "m_SuffixAndFlags",
            bit("SuffixType", 0, "QUEUE_SUFFIX_TYPE_*.", width=4),
            bit("Flags", 4, "8 (0x80 in place) for a system queue, else 0.", width=4, req="MQMQ-2.2.7-03"),
            req="MQMQ-2.2.7-02",
        ),
        uint(16, "m_reserved", "0; not used.", req=("MQMQ-2.2.7-10", "MQMQ-2.2.7-11")),
        uint(8, "m_qft_", "Discriminant of the union: m_qft again.", same_as="m_qft"),  # MQMQ-5-02, MQMQ-5-03
        choice(
            "_varUnion",
            "m_qft",
            {
                0: None,  # MQMQ-5-02
                1: _guid_arm("m_gPublicID", "GUID of a public queue.", "MQMQ-2.2.7-13"),
                2: _structure_arm("m_oPrivateID", OBJECTID, "MQMQ-2.2.7-14"),
                3: _string_arm("m_pDirectID", "Direct format name without DIRECT=.", "MQMQ-2.2.7-15"),
                4: _guid_arm("m_gMachineID", "GUID of a machine.", "MQMQ-2.2.7-16"),
                5: _guid_arm("m_GConnectorID", "GUID of a connector queue.", "MQMQ-2.2.7-17"),
                6: _structure_arm("m_DlID", DL_ID, "MQMQ-2.2.7-18"),
                7: _structure_arm("m_MulticastID", MULTICAST_ID, "MQMQ-2.2.7-19"),
                8: _string_arm("m_pDirectSubqueueID", "Direct name with a subqueue.", "MQMQ-2.2.7-20"),
            },
            "The name, by m_qft.",
            req="MQMQ-2.2.7-12",
        ),
    ),
    "A queue in a remote call.",
)

_STRINGS: Final = ("m_pDirectID", "m_pDirectSubqueueID")


def queue_format_of(name: FormatName | None, *, subqueue_prefix: bool = True) -> Record:
    """Return the QUEUE_FORMAT of a format name, ready to be built. Raises InvalidName.

    `subqueue_prefix` as in `msmqwire.names.to_queue_format`.
    """
    form = to_queue_format(name, subqueue_prefix=subqueue_prefix)
    head = {field: form.pop(field) for field in ("m_qft", "m_SuffixAndFlags", "m_reserved")}
    for member, value in form.items():
        if member in _STRINGS:
            union: Any = {"Name": {"String": value}}
        elif member == "m_DlID":
            domain = {} if value["m_pwzDomain"] is None else {"Domain": {"String": value["m_pwzDomain"]}}
            union = {member: {"m_DlGuid": value["m_DlGuid"], **domain}}
        else:
            union = {member: value}
        head["_varUnion"] = union
    return QUEUE_FORMAT.make(head)  # type: ignore[no-any-return]


def name_of(record: Record) -> FormatName | None:
    """Return the format name of a QUEUE_FORMAT; None for QUEUE_FORMAT_TYPE_UNKNOWN. Raises InvalidName."""
    form: dict[str, Any] = {"m_qft": record.m_qft, "m_SuffixAndFlags": int(record.m_SuffixAndFlags)}
    for member, value in dict(record._varUnion or {}).items():
        if member in _STRINGS:
            text = record._varUnion.Name
            form[member] = None if text is None else text.String
        elif member == "m_DlID":
            domain = None if value.Domain is None else value.Domain.String
            form[member] = {"m_DlGuid": value.m_DlGuid, "m_pwzDomain": domain}
        else:
            form[member] = value
    return from_queue_format(form)
