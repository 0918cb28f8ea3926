"""The RemoteRead interface: calls as values, and as stubs in NDR and NDR64: [MS-MQRR] 1.9, 2.2 and 3.1.4.

The arguments of a call are a value with an attribute for each parameter, under its name in the IDL; the
results too, with the return value as ``status``. Besides such values, building takes mappings.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.remote_read.procedures import PROCEDURES, Procedure
from msmqwire.rpc.constants import SyntaxId
from msmqwire.rpc.ndr import Syntax, build_stub, parse_stub

INTERFACE: Final = SyntaxId(UUID("1a9134dd-7b39-45ba-ad88-44d01ca47f28"), 1, 0)  # MQRR-6-01
"""UUID and version, by which a bind and the endpoint mapper name it: MQRR-1.9-01."""


def parse_request(opnum: int, stub: bytes, syntax: Syntax) -> Any:
    """Return the arguments of a call.

    Raises MalformedPacket with path and offset, also for an opnum that the interface has not.
    """
    return parse_stub(_known(opnum).request, stub, syntax)


def parse_response(opnum: int, stub: bytes, syntax: Syntax) -> Any:
    """Return the results of a call.

    Raises MalformedPacket with path and offset, also for an opnum that the interface has not.
    """
    return parse_stub(_known(opnum).response, stub, syntax)


def build_request(opnum: int, arguments: Any, syntax: Syntax) -> bytes:
    """Return the stub of a call. Raises InvalidValue with the path of the value that does not fit."""
    return build_stub(_procedure(opnum).request, arguments, syntax)


def build_response(opnum: int, results: Any, syntax: Syntax) -> bytes:
    """Return the stub of an answer. Raises InvalidValue with the path of the value that does not fit."""
    return build_stub(_procedure(opnum).response, results, syntax)


def _known(opnum: int) -> Procedure:
    if opnum not in PROCEDURES:
        raise MalformedPacket(f"there is no procedure {opnum}", path="opnum", requirement="MQRR-3.1.4-03")
    return PROCEDURES[opnum]


def _procedure(opnum: int) -> Procedure:
    if opnum not in PROCEDURES:
        raise InvalidValue(f"there is no procedure {opnum}", path="opnum")
    return PROCEDURES[opnum]
