"""The procedures of the qmmgmt interface, each declared once: [MS-MQMR] 3.1.4 and 6."""

from __future__ import annotations

from typing import Final

from msmqwire.management.constants import PROPERTIES_MAX, Opnum
from msmqwire.management.objects import MGMT_OBJECT
from msmqwire.management.variants import PROPVARIANT
from msmqwire.rpc.interface import Procedure, by_opnum
from msmqwire.rpc.ndr import ConformantArray, Integer, Member, Reference, WideString

_OBJECT: Final = Member("pObjectFormat", Reference(MGMT_OBJECT), "The machine or queue.")
_STATUS: Final = Member("status", Integer(32), "HRESULT.", default=0, req=("MQMR-3-05",))

PROCEDURES: Final = by_opnum(  # MQMR-6-01
    (
        Procedure(
            Opnum.R_QMMgmtGetInfo,
            "[MS-MQMR] 3.1.4.1",
            "The values of properties.",
            (
                _OBJECT,
                Member(
                    "cp",
                    Integer(32, values=range(1, PROPERTIES_MAX + 1)),
                    "The number of properties.",
                    req=("MQMR-3.1.4.1-03",),
                ),
                Member(
                    "aProp",
                    ConformantArray(Integer(32), "cp"),
                    "The property identifiers.",
                    req=("MQMR-3.1.4.1-04", "MQMR-3.1.4.1-05"),
                ),
                Member(
                    "apVar",
                    ConformantArray(PROPVARIANT, "cp"),
                    "VT_NULL for each property.",
                    req=("MQMR-3.1.4.1-04", "MQMR-3.1.4.1-06"),
                ),
            ),
            (Member("apVar", ConformantArray(PROPVARIANT), "The values, in the order of aProp."),),
            _STATUS,
            req=("MQMR-3.1.4.1-01", "MQMR-3.1.4.1-02"),
        ),
        Procedure(
            Opnum.R_QMMgmtAction,
            "[MS-MQMR] 3.1.4.2",
            "An action on the machine or queue.",
            (
                _OBJECT,
                Member(
                    "lpwszAction",
                    Reference(WideString()),  # [string] is missing in the IDL: MQMR-3.1.4.2-01
                    "The action, without regard to case.",
                    req=("MQMR-3.1.4.2-03", "MQMR-3.1.4.2-05"),
                ),
            ),
            status=_STATUS,
            req=("MQMR-3.1.4.2-01", "MQMR-3.1.4.2-02"),
        ),
    )
)
