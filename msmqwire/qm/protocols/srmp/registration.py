"""The registration of SRMP."""

from __future__ import annotations

from typing import Final

from msmqwire.qm.protocols.interface import Registration

PROTOCOL: Final = Registration(
    name="srmp",
    order=10,
    engine="msmqwire.qm.protocols.srmp.engine:SrmpEngine",
    stand_in="msmqwire.qm.protocols.srmp.on_demand:SrmpOnDemand",
    effects=(
        "msmqwire.qm.protocols.srmp.effects:HttpRequest",
        "msmqwire.qm.protocols.srmp.effects:HttpResponse",
    ),
    transport="msmqwire.qm.runtime.http.transport:HttpTransport",
    client_options="msmqwire.qm.runtime.http.options:client_options",
    simulated="msmqwire.qm.sim.srmp.simulated:SIMULATED",
)
