"""The readings of disputed fields that callers may choose, for those who pass them on to a dissector.

Only NCP has any today. Without that protocol there is one reading, which is nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msmqwire.analysis.protocols import protocols

if TYPE_CHECKING:
    from msmqwire.ncp.readings import PROPOSED
    from msmqwire.ncp.readings import Readings as NcpReadings
else:

    class _NoReadings:
        """Readings without a field."""

        @classmethod
        def fields(cls) -> Mapping[str, tuple[str, ...]]:
            """Return no fields."""
            return {}

        @classmethod
        def of(cls, values: Mapping[str, str]) -> _NoReadings:
            """Return the readings."""
            return cls()

    NcpReadings = next(filter(None, (one.traffic.readings for one in protocols())), _NoReadings)
    PROPOSED = NcpReadings.of({})

__all__ = ["PROPOSED", "NcpReadings"]
