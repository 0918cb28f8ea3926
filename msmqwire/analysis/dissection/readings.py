"""The switches for questions that specifications leave open, of message security and of NCP, as one list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.crypto.readings import Readings
from msmqwire.names.nearest import unknown_name
from msmqwire.ncp.readings import Readings as NcpReadings

_SEE: Final = "docs/message-security.md and docs/netware-captures.md list all"
NCP_NAMES: Final = frozenset(NcpReadings.fields())


def readings_of(values: Mapping[str, str]) -> tuple[Readings, NcpReadings]:
    """Return the readings of message security and of NCP with these switches. Raises InvalidArgument."""
    known = (*Readings.fields(), *NcpReadings.fields())
    for name in values:
        if name not in known:
            raise unknown_name(name, known, "reading", path="Readings", see=_SEE)
    rest = {name: value for name, value in values.items() if name not in NCP_NAMES}
    of_ncp = {name: value for name, value in values.items() if name in NCP_NAMES}
    return Readings.of(rest), NcpReadings.of(of_ncp)
