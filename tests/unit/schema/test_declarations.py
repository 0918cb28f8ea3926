"""Declarations that can't be meant are refused where they are made."""

from __future__ import annotations

import pytest

from msmqwire.schema import uint


@pytest.mark.parametrize("bits", [8, 16, 24, 64])
def test_integers_are_of_whole_bytes(bits: int) -> None:
    assert uint(bits, "Count").size == bits // 8
    with pytest.raises(ValueError, match=f"Count: {bits + 1} bits are not whole bytes"):
        uint(bits + 1, "Count")
