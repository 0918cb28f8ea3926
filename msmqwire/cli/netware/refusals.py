"""Refusals of a file server as the command line shows them."""

from __future__ import annotations

from typing import Final

from msmqwire.errors import NcpLoginRefused, NcpRefused
from msmqwire.ncp.constants import CompletionCode

_NAMES: Final = {int(code): code.name for code in CompletionCode}
_MISSING: Final = (CompletionCode.ERR_NO_QUEUE, CompletionCode.ERR_NO_Q_JOB, CompletionCode.NO_SUCH_OBJECT)


def is_missing(refusal: NcpRefused) -> bool:
    """Return whether a call was refused because its object does not exist."""
    return refusal.code in _MISSING and not isinstance(refusal, NcpLoginRefused)


def shown(refusal: NcpRefused) -> dict[str, object]:
    """Return a refusal as a JSON object."""
    code = {"code": f"0x{refusal.code:02X}", "name": refusal.name or _NAMES.get(refusal.code, "")}
    return {"error": refusal.why, "path": "", "offset": None, **code}
