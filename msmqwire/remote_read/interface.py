"""The RemoteRead interface: calls as values, and as stubs in NDR and NDR64: [MS-MQRR] 1.9, 2.2 and 3.1.4."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from msmqwire.remote_read.procedures import PROCEDURES
from msmqwire.rpc.constants import SyntaxId
from msmqwire.rpc.interface import Interface

INTERFACE: Final = SyntaxId(UUID("1a9134dd-7b39-45ba-ad88-44d01ca47f28"), 1, 0)  # MQRR-6-01
"""UUID and version, by which a bind and the endpoint mapper name it: MQRR-1.9-01."""

REMOTE_READ: Final = Interface("RemoteRead", INTERFACE, PROCEDURES, "MQRR-3.1.4-03")

parse_request = REMOTE_READ.parse_request
parse_response = REMOTE_READ.parse_response
build_request = REMOTE_READ.build_request
build_response = REMOTE_READ.build_response
