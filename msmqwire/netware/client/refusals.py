"""The errors of a client when a file server refuses a request."""

from __future__ import annotations

from typing import Final

from msmqwire.errors import NcpLoginRefused, NcpRefused
from msmqwire.ncp.bindery_calls import BINDERY_CALLS
from msmqwire.ncp.calls import Call
from msmqwire.ncp.constants import CompletionCode

_NAMES: Final = {int(code): code.name for code in CompletionCode}
_LOGIN: Final = "LoginObject"
_OTHER_AT_LOGIN: Final = range(CompletionCode.ERR_Q_IO_FAILURE, CompletionCode.ERR_Q_MAX_SERVERS + 1)
"""Codes with another meaning, about passwords and accounts, when a login is refused."""


def code_name(code: int, call: Call | None) -> str:
    """Return the name of a completion code in a reply to this call, or to the request for a connection.

    It is empty for a code without a name.
    """
    if call is None and code == CompletionCode.NO_FREE_CONNECTION_SLOTS:
        return "NO_FREE_CONNECTION_SLOTS"
    if code == CompletionCode.NCP_NOT_SUPPORTED and not _is_of_bindery(call):
        return "NCP_NOT_SUPPORTED"
    if call is not None and call.name == _LOGIN and code in _OTHER_AT_LOGIN:
        return ""
    return _NAMES.get(code, "")


def refusal(code: int, call: Call | None) -> NcpRefused:
    """Return the error for a completion code in a reply to this call, or to the request for a connection."""
    name = code_name(code, call)
    shown = f"{name} (0x{code:02X})" if name else f"completion code 0x{code:02X}"
    if call is None:
        return NcpLoginRefused(f"the server gives no connection: {shown}", code, name)
    if call.name == _LOGIN:
        return NcpLoginRefused(f"the server refuses the login: {shown}", code, name)
    return NcpRefused(f"the server refuses {call.name}: {shown}", code, name)


def _is_of_bindery(call: Call | None) -> bool:
    return call in BINDERY_CALLS
