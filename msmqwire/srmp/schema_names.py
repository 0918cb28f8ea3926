"""Names in envelopes of SRMP: the XML namespaces, compared as exact strings, [MC-MQSRM] 2.2.3 and 2.2.7."""

from __future__ import annotations

from typing import Final

# Sections 2.2.2 and 2.2.4 print two of them without the last slash; on the wire it is there: SRMP-2.2.3-08.
SOAP: Final = "http://schemas.xmlsoap.org/soap/envelope/"  # SRMP-2.2.3-01, SRMP-3.1.7.2.4-01
ROUTING: Final = "http://schemas.xmlsoap.org/rp/"  # SRMP-2.2.3-02
SRMP: Final = "http://schemas.xmlsoap.org/srmp/"  # SRMP-2.2.3-03, SRMP-3.1.7.2.4-01
MSMQ: Final = "msmq.namespace.xml"  # SRMP-2.2.3-04
SIGNATURE: Final = "http://www.w3.org/2000/02/xmldsig#"  # SRMP-2.2.7-02: not 2000/09

HTTP: Final = ("http://", "https://")
"""Beginnings of the URIs of queues."""
MUST_UNDERSTAND: Final = f"{{{SOAP}}}mustUnderstand"
