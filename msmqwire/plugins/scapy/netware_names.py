"""Names of the numbers of NCP: functions, subfunctions, types and codes."""

from __future__ import annotations

from typing import Any, Final

from scapy.config import conf
from scapy.fields import ByteEnumField
from scapy.packet import Packet as ScapyPacket

from msmqwire.ncp import headers
from msmqwire.ncp.calls import FUNCTION_23, WITH_SUBFUNCTIONS
from msmqwire.ncp.constants import CompletionCode, ObjectType
from msmqwire.ncp.packets import CALLS

_WITH_SUBFUNCTION: Final = {key: call.name for key, call in CALLS.items() if call.has_subfunction}
"""The names of calls by their function and subfunction."""


class SubfunctionField(ByteEnumField):
    """A subfunction: the same number is another call in another function."""

    def __init__(self, name: str, default: int | None) -> None:
        super().__init__(name, default, {called: number for (_, number), called in _WITH_SUBFUNCTION.items()})

    def i2repr_one(self, pkt: ScapyPacket | None, x: Any) -> str:
        function = FUNCTION_23 if pkt is None else pkt.function
        drawn = not isinstance(function, int) or not isinstance(x, int)
        return repr(x) if drawn or self in conf.noenum else _WITH_SUBFUNCTION.get((function, x), repr(x))


NUMBERS: Final[dict[str, Any]] = {
    "CompletionCode": CompletionCode,
    "MemberType": ObjectType,
    "ObjectType": ObjectType,
    "QueueType": ObjectType,
    "RequestType": {
        headers.CREATE_CONNECTION: "CreateConnection",
        headers.SERVICE_REQUEST: "Request",
        headers.DESTROY_CONNECTION: "DestroyConnection",
    },
    "ReplyType": {headers.REPLY: "Reply", headers.BUSY: "Busy"},
    "FunctionCode": {
        **dict.fromkeys(WITH_SUBFUNCTIONS, "Subfunction"),
        **{call.function: call.name for call in CALLS.values() if not call.has_subfunction},
    },
    f"{headers.NCP_SUBFUNCTION_HEADER.name}.SubFunctionCode": SubfunctionField,
}
"""Integers whose values have names."""
