"""What is known of a certificate is what judging it anew would say, whatever was judged before."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from msmqwire.analysis.dissection.message_security import SignatureStatus
from msmqwire.tables.arrow import signature_codes
from msmqwire.tables.arrow.buffers import Bitmaps
from msmqwire.tables.arrow.signature_codes import STATUSES, SignatureCodes
from msmqwire.tables.compiled import certificates
from msmqwire.tables.compiled.certificates import JUDGED_MAX, NOT_VERIFIED, SIZE_MAX
from msmqwire.tables.compiled.generated import SLOTS as FIELDS
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.compiled.state import R_START, ROW

UNKNOWN, UNSUPPORTED = (
    STATUSES.index(status) for status in (SignatureStatus.UNKNOWN_SENDER, SignatureStatus.UNSUPPORTED)
)
UNTOUCHED = 99


def block_of(certificates_: Sequence[bytes]) -> RowBlock:
    """Rows with just these certificates, one behind the other."""
    (slot, distance, end_slot, end_distance), (of_lists, *_) = signature_codes._BOUNDS.tolist()
    assert len({slot, end_slot, of_lists}) == 3
    rows, offsets = (
        np.zeros((len(certificates_), ROW), np.int64),
        np.zeros((len(certificates_), FIELDS), np.int32),
    )
    at = 0
    for i, certificate in enumerate(certificates_):
        rows[i, R_START] = at
        offsets[i, slot], offsets[i, end_slot] = -distance, len(certificate) - end_distance
        at += len(certificate)
    return RowBlock(rows, offsets, np.frombuffer(b"".join(certificates_) + bytes(8), np.uint8))


def codes_of(found: SignatureCodes, certificates_: Sequence[bytes]) -> list[int]:
    block, wanted = block_of(certificates_), np.ones(len(certificates_), np.bool_)
    codes = np.full(len(certificates_), UNTOUCHED, np.int32)
    with_a_key = found.write(block, wanted, wanted, codes)
    assert with_a_key == np.flatnonzero(codes == NOT_VERIFIED).tolist()
    return codes.tolist()


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The certificates that are judged; those that begin with a K have a key."""
    calls: list[bytes] = []

    def key_of(certificate: bytes) -> object:
        calls.append(certificate)
        return object() if certificate[:1] == b"K" else None

    monkeypatch.setattr(signature_codes, "key_of", key_of)
    return calls


def test_a_certificate_is_judged_once(judged: list[bytes]) -> None:
    found = SignatureCodes()
    good, bad = b"K" + bytes(700), b"B" + bytes(699) + b"x"
    assert codes_of(found, [good, bad, b""]) == [NOT_VERIFIED, UNSUPPORTED, UNKNOWN]
    assert judged == [good, bad]
    assert codes_of(found, [bad, good, b"", bad]) == [UNSUPPORTED, NOT_VERIFIED, UNKNOWN, UNSUPPORTED]
    assert judged == [good, bad]


def test_one_with_the_same_size_and_end_is_distinguished(judged: list[bytes]) -> None:
    found = SignatureCodes()
    for at in range(93):
        good = b"K" + bytes(100)
        other = bytearray(good)
        other[0], other[at] = (0x4B, 1) if at else (0x42, 0)
        assert codes_of(found, [good]) == [NOT_VERIFIED]
        assert codes_of(found, [bytes(other)]) == [NOT_VERIFIED if at else UNSUPPORTED]
        assert codes_of(found, [good]) == [NOT_VERIFIED]


def test_as_many_as_come_and_of_any_size(judged: list[bytes]) -> None:
    found, rng = SignatureCodes(), random.Random(5)
    some = [
        rng.choice([b"K", b"B"]) + rng.randbytes(rng.choice([0, 3, 7, 8, 300])) for _ in range(3 * JUDGED_MAX)
    ]
    some += [b"K" + bytes(SIZE_MAX - 1), b"K" + bytes(SIZE_MAX), b"B" + bytes(SIZE_MAX)]
    for _ in range(10):
        chosen = rng.choices(some, k=1000)
        assert codes_of(found, chosen) == [NOT_VERIFIED if c[:1] == b"K" else UNSUPPORTED for c in chosen]
    assert len(judged) > JUDGED_MAX


def test_rows_that_are_not_wanted_or_not_signed_keep_their_codes(judged: list[bytes]) -> None:
    block, codes = block_of([b"B"] * 3), np.full(3, UNTOUCHED, np.int32)
    signed, secured = np.array([True, False, True]), np.array([True, True, False])
    of_lists, distance, end_slot, end_distance = signature_codes._BOUNDS[1].tolist()
    block.field_offsets[1, of_lists] = block.field_offsets[1, end_slot] + end_distance - distance
    assert SignatureCodes().write(block, signed, secured, codes) == []
    assert codes.tolist() == [UNSUPPORTED, UNTOUCHED, UNTOUCHED]
    block.field_offsets[1, of_lists] -= 1  # a signature over several names
    SignatureCodes().write(block, signed, secured, codes)
    assert codes.tolist() == [UNSUPPORTED, UNSUPPORTED, UNTOUCHED]


def test_codes_that_are_not_valid_become_0() -> None:
    codes = np.zeros(3, np.int32)
    certificates.codes_if(np.array([2, 3, 1, 7], np.int32), np.array([True, False, True, True]), codes)
    assert codes.tolist() == [2, 0, 1]


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 63, 64, 1000])
def test_bitmaps_are_those_of_numpy_whatever_else_the_bytes_have(n: int) -> None:
    rng = np.random.default_rng(n)
    values = rng.integers(0, 2, (4, 1003)).astype(np.uint8)
    values[2] = 1
    garbage = values | (rng.integers(0, 128, values.shape) << 1).astype(np.uint8)
    found = Bitmaps(garbage.view(np.bool_), n)
    for row in range(4):
        expected = np.packbits(values[row, :n], bitorder="little").tobytes()
        assert found.values(row).to_pybytes() == expected
        validity = found.validity(row)
        assert (None if values[row, :n].all() else expected) == (validity and validity.to_pybytes())
