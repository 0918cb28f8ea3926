"""The switches for questions that specifications leave open, of message security and of protocols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.analysis.protocols.readings import NcpReadings
from msmqwire.crypto.readings import Readings
from msmqwire.names.nearest import unknown_name

_SEE: Final = "docs/message-security.md and docs/netware-captures.md list all"


def readings_of(values: Mapping[str, str]) -> tuple[Readings, NcpReadings]:
    """Return the readings of message security and of NCP with these switches. Raises InvalidArgument."""
    of_security, of_protocol = Readings.fields(), NcpReadings.fields()
    known = (*of_security, *of_protocol)
    for name in values:
        if name not in known:
            raise unknown_name(name, known, "reading", path="Readings", see=_SEE)
    rest = {name: value for name, value in values.items() if name not in of_protocol}
    return Readings.of(rest), NcpReadings.of({name: values[name] for name in of_protocol if name in values})
