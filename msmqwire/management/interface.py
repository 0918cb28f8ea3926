"""The qmmgmt interface: calls as values, and as stubs in NDR and NDR64: [MS-MQMR] 1.9, 2.2 and 3.1.4.

Peers speak NDR alone (2.2); NDR64 is read in captures.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from msmqwire.management.procedures import PROCEDURES
from msmqwire.rpc.constants import SyntaxId
from msmqwire.rpc.interface import Interface

INTERFACE: Final = SyntaxId(UUID("41208ee0-e970-11d1-9b9e-00e02c064c39"), 1, 0)  # MQMR-1.9-01, MQMR-2.1-03
"""UUID and version, by which a bind and the endpoint mapper name it."""

MANAGEMENT: Final = Interface("qmmgmt", INTERFACE, PROCEDURES, "MQMR-3.1.4-04")

parse_request = MANAGEMENT.parse_request
parse_response = MANAGEMENT.parse_response
build_request = MANAGEMENT.build_request
build_response = MANAGEMENT.build_response
