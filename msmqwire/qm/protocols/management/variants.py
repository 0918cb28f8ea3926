"""Values of properties as PROPVARIANTs: [MS-MQMR] 2.2.3."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msmqwire.constants import VarEnum
from msmqwire.management.reports import SequencePosition
from msmqwire.management.variants import NULL, variant
from msmqwire.qm.model.elements import SequenceInfo

COUNT_MAX: Final = 0xFFFFFFFF
_TIMES: Final = 1 << 32
_LATE: Final = 1 << 31
_VECTOR: Final = int(VarEnum.VT_VECTOR)
TEXTS: Final = _VECTOR | int(VarEnum.VT_LPWSTR)
VARIANTS: Final = _VECTOR | int(VarEnum.VT_VARIANT)


def text(value: str | None) -> Any:
    """Return VT_LPWSTR; VT_NULL for None: MQMR-3.1.4.1-47."""
    return NULL if value is None else variant(VarEnum.VT_LPWSTR, value)


def texts(values: Iterable[str]) -> Any:
    """Return a vector of VT_LPWSTR."""
    return variant(TEXTS, tuple(values))


def vector(vt: int, values: Sequence[Any]) -> Any:
    """Return a vector of another type."""
    return variant(vt, values)


def count(value: int) -> Any:
    """Return VT_UI4; a count that does not fit is the greatest, never the rest of a division."""
    return variant(VarEnum.VT_UI4, min(value, COUNT_MAX))


def signed(value: int) -> int:
    """Return a number of 32 bits as VT_I4 has it: a time from 2038 on, or an HRESULT, is negative."""
    return (value + _LATE) % _TIMES - _LATE


def time(value: int) -> Any:
    """Return VT_I4 of seconds since 1970-01-01 UTC, modulo 2^32; 0 means never."""
    return variant(VarEnum.VT_I4, signed(value))


def sequence(info: SequenceInfo | None) -> Any:
    """Return VT_BLOB of a position in a sequence: MQMR-2.2.3-10; VT_NULL for no message."""
    if info is None:
        return NULL
    whole = sequence_number(info)
    number, previous = info.number & COUNT_MAX, info.previous & COUNT_MAX
    signed_whole = whole - (1 << 64) if whole >> 63 else whole
    return variant(VarEnum.VT_BLOB, SequencePosition(signed_whole, number, previous).to_bytes())


def sequence_number(info: SequenceInfo) -> int:
    """Return TxSequenceID as a number: [MS-MQMQ] 2.2.18.1.2."""
    return info.sequence.time_stamp << 32 | info.sequence.ordinal
