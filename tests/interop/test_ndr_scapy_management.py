"""Values in answers of R_QMMgmtGetInfo against the NDR of scapy, where each arm of a union is aligned alone.

The structures are those of `test_ndr_scapy`, which has a PROPVARIANT that stands by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import pack
from typing import Any

import pytest
from hypothesis import given

pytest.importorskip("scapy")

from scapy.config import conf

from msmqwire.management.interface import build_response, parse_response
from msmqwire.management.variants import DEPTH_MAX
from msmqwire.rpc.ndr import NDR20
from tests.interop import test_ndr_scapy as theirs

ALIGNMENTS = {
    "Empty": 1, "Null": 1, "I1": 1, "UI1": 1, "I2": 2, "UI2": 2, "Bool": 2, "I4": 4, "UI4": 4, "I8": 8,
    "UI8": 8, "Clsid": 4, "Counted": 4, "Lpwstr": 4,
}  # fmt: skip
VARIANTS, BYTES = 0x100C, 0x1011


@pytest.fixture(autouse=True, scope="module")
def ndr32() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conf, "ndr64", False)
        yield


@pytest.fixture(scope="module")
def propvariant() -> Any:
    def member(name: str, *fields: Any) -> Any:
        return theirs.structure(name, ALIGNMENTS[name], *fields)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(theirs, "member", member)
        return theirs.propvariant(DEPTH_MAX)


def value_of(read: Any) -> theirs.Value:
    """A PROPVARIANT that was read, as the tests of scapy have it."""
    content = read.value
    if hasattr(content, "cbSize"):
        assert content.cbSize == len(content.pBlobData or ())
        content = content.pBlobData
    elif hasattr(content, "cElems"):
        assert content.cElems == len(content.pElems or ())
        content = content.pElems
        if content is not None and read.vt != BYTES:
            content = [value_of(one) if read.vt == VARIANTS else one for one in content]
    if read.vt == 11 and content >= 0x8000:  # scapy's boolVal has a sign
        content -= 0x10000
    return read.vt, (read.wReserved1, read.wReserved2, read.wReserved3), content


@pytest.mark.requirement(
    "MQMR-2.2.3-01", "MQMR-2.2.3-02", "MQMR-2.2.3-04", "MQMR-2.2.3-07", "MQMR-2.2.3-08", "MQMR-3.1.4.1-02"
)
@given(theirs.variants(DEPTH_MAX))
def test_values_of_scapy_are_read(propvariant: Any, value: theirs.Value) -> None:
    built = bytes(theirs.theirs(value, propvariant))
    stub = pack("<I4x", 1) + built + bytes(-len(built) % 4) + pack("<I", 0)
    read = parse_response(0, stub, NDR20)
    assert value_of(read.apVar[0]) == value
    assert not any(map(any, read.wire.paddings))
    assert build_response(0, read, NDR20) == stub
