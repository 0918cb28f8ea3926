"""NDR and NDR64, the transfer syntaxes of remote calls, from one declaration of the parameters.

[C706] chapter 14, [MS-RPCE] 2.2.4 and 2.2.5.
"""

from msmqwire.rpc.ndr.building import build_stub
from msmqwire.rpc.ndr.jsonform import from_json, to_json
from msmqwire.rpc.ndr.parsing import parse_stub
from msmqwire.rpc.ndr.types import (
    REQUIRED,
    ConformantArray,
    ConformantBytes,
    ConformantVaryingArray,
    Declaration,
    Enum,
    FixedBytes,
    Guid,
    Handle,
    Integer,
    Member,
    Pointer,
    Reference,
    Structure,
    Stub,
    Type,
    Union,
    WideString,
)
from msmqwire.rpc.ndr.wire import NDR20, NDR64, SYNTAXES, Syntax, Wire

__all__ = [
    "NDR20",
    "NDR64",
    "REQUIRED",
    "SYNTAXES",
    "ConformantArray",
    "ConformantBytes",
    "ConformantVaryingArray",
    "Declaration",
    "Enum",
    "FixedBytes",
    "Guid",
    "Handle",
    "Integer",
    "Member",
    "Pointer",
    "Reference",
    "Structure",
    "Stub",
    "Syntax",
    "Type",
    "Union",
    "WideString",
    "Wire",
    "build_stub",
    "from_json",
    "parse_stub",
    "to_json",
]
