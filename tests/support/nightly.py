"""Long tests of a kind that shorter ones of the CI share: `make nightly` runs them.

@pytest.mark.parametrize("scheme", ["dark", pytest.param("light", marks=nightly)])
"""

from __future__ import annotations

import os
from typing import Final

import pytest

NIGHTLY: Final = os.environ.get("MSMQWIRE_HYPOTHESIS") == "nightly"
"""Whether this is the nightly run."""

STRIDE: Final = 1 if NIGHTLY else 3
"""Steps from one at which a process is killed to the next."""

nightly: Final = pytest.mark.skipif(
    not NIGHTLY, reason="takes long beside others of its kind: make nightly runs it"
)
"""Marks a test, or one of its cases, of the nightly run."""
