"""Rules between the groups of a header: [MC-MQSRM] 2.2."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from msmqwire.srmp.content import Content, Departure


class Weight(Enum):
    """The consequence of a broken rule."""

    MALFORMED = "neither read nor built"
    DEPARTURE = "read, and noted; not built"
    NOTE = "noted"


def broken(header: Content) -> Iterator[tuple[Weight, Departure]]:
    """Yield the rules that a header with all its required elements breaks."""
    path, msmq, stream = header["path"], header.get("Msmq"), header.get("stream")
    action, identifier = path["action"], path["id"]
    if action and not action.startswith("MSMQ:"):  # 4.3; note 5
        yield _rule(Weight.DEPARTURE, "SRMP-2.2.4.1-02", "path.action", "text without MSMQ: before it")
    if msmq and isinstance(identifier, str):
        yield _rule(Weight.MALFORMED, "SRMP-2.2.4.3-07", "path.id", "not uuid:NUMBER@GUID, beside Msmq")
    elif msmq and identifier.lineage != msmq["SourceQmGuid"]:
        yield _rule(Weight.NOTE, "SRMP-2.2.4.3-04", "path.id", "another GUID than SourceQmGuid")
    if stream and not msmq:
        yield _rule(Weight.MALFORMED, "SRMP-2.2.5.3-03", "stream", "stream without Msmq")
    if stream and not (header.services and header.services.durable):  # 4.4
        yield _rule(Weight.DEPARTURE, "SRMP-2.2.5.2.1-02", "stream", "stream without durable in services")


def _rule(weight: Weight, requirement: str, path: str, why: str) -> tuple[Weight, Departure]:
    return weight, Departure(requirement, f"Envelope.Header.{path}", why)
