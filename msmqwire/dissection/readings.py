"""The switches of what specifications leave open, of message security and of NCP, as one list of names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.crypto.readings import Readings
from msmqwire.errors import InvalidValue
from msmqwire.netware.readings import Readings as NcpReadings

NCP_NAMES: Final = frozenset(NcpReadings.fields())


def readings_of(values: Mapping[str, str]) -> tuple[Readings, NcpReadings]:
    """Return the readings of message security and of NCP with these switches. Raises InvalidValue."""
    known = (*Readings.fields(), *NcpReadings.fields())
    for name in values:
        if name not in known:
            raise InvalidValue(f"{name!r} is none of {', '.join(known)}", path="Readings")
    rest = {name: value for name, value in values.items() if name not in NCP_NAMES}
    of_ncp = {name: value for name, value in values.items() if name in NCP_NAMES}
    return Readings.of(rest), NcpReadings.of(of_ncp)
