"""The default limits of a server."""

from __future__ import annotations

from typing import Final

STUB_MAX: Final = 0x40000
"""The bytes of the arguments of a call: twice the longest propagation token."""
CALLS_MAX: Final = 256
"""The calls of an association that may be outstanding."""
