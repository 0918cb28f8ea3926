"""Byte orders on which public descriptions of the queue calls disagree.

The schemas read such a field one way. A different reading changes the numbers of a parsed record, and changes
them back before it is built: each change is its own inverse and loses nothing, so that the bytes are restored
with any reading.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, NamedTuple, TypeAlias

from msmqwire.names.switches import Switches
from msmqwire.ncp.job_structures import NEW_JOB, NEW_JOB_HEAD
from msmqwire.ncp.queue_calls import (
    CHARGE,
    FILE_SIZE,
    FORMS,
    JOB_NUMBERS,
    JOB_OF_QUEUE,
    MOVE,
    MOVED,
    NEW_POSITION,
    PRIORITY,
    QUEUE_CALLS,
    SERVER,
    SERVICE,
    START,
)
from msmqwire.schema import Header, Record, UInt
from msmqwire.schema.nodes import inner_headers

ByteOrder: TypeAlias = Literal["little", "big"]
JobNumberForm: TypeAlias = Literal["little", "big", "high-low"]
"""``high-low`` is a number of 16 bits, big-endian, and two zeros after it."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Readings(Switches):
    """One reading of each disputed field. The defaults are confirmed by real servers and clients.

    Attributes:
        queue_id: QueueID of every call.
        job_number: job numbers of 32 bits, those in the newer job structure among them.
        position_job_number: the job number of 16 bits in ChangeQueueJobPosition.
        service_type: ServiceType of ServiceQueueJob; that of ServiceQueueJobOld is undisputed.
        charge: Charge of FinishServicingQueueJob.
        start_position: StartPosition of GetQueueJobList and of the calls with forms.
        server_station: ServerStation of ReadQueueServerCurrentStatus.
        destination_queue_id: DestinationQueueID of MoveQueueJobFromSrcQToDstQ.
    """

    queue_id: ByteOrder = "big"
    job_number: JobNumberForm = "little"
    position_job_number: ByteOrder = "big"
    service_type: ByteOrder = "big"
    charge: ByteOrder = "big"
    start_position: ByteOrder = "little"
    server_station: ByteOrder = "little"
    destination_queue_id: ByteOrder = "big"

    @property
    def differences(self) -> dict[str, str]:
        """The values that are not the defaults, by field."""
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        }


PROPOSED: Final = Readings()
"""The readings of the schemas."""


def _queue_ids() -> Iterator[Header]:
    """The structures of the queue calls that hold a QueueID."""
    seen = dict.fromkeys(layout for call in QUEUE_CALLS for layout in (*call.requests, *call.replies))
    yield from (layout for layout in seen if "QueueID" in layout.fields)


PLACES: Final[Mapping[str, tuple[tuple[Header, str], ...]]] = {
    "queue_id": tuple((structure, "QueueID") for structure in _queue_ids()),
    "job_number": (
        *((structure, "JobNumber") for structure in (JOB_OF_QUEUE, PRIORITY, CHARGE, FILE_SIZE)),
        *((structure, "JobNumber") for structure in (MOVE, MOVED, JOB_NUMBERS)),
        *((structure, "jobNumber") for structure in (NEW_JOB, NEW_JOB_HEAD)),
    ),
    "position_job_number": ((NEW_POSITION, "JobNumber"),),
    "service_type": ((SERVICE, "ServiceType"),),
    "charge": ((CHARGE, "Charge"),),
    "start_position": ((START, "StartPosition"), (FORMS, "StartPosition")),
    "server_station": ((SERVER, "ServerStation"),),
    "destination_queue_id": ((MOVE, "DestinationQueueID"),),
}
"""The fields that each field of the readings affects, by structure."""


class _Change(NamedTuple):
    name: str
    bits: int
    change: Callable[[int, int], int]


def _reversed(value: int, bits: int) -> int:
    return int.from_bytes(value.to_bytes(bits // 8, "little"), "big")


def _low_half_reversed(value: int, bits: int) -> int:
    """Exchange the two bytes that come first on the wire; the bytes that should be zero keep their place."""
    return value & ~0xFFFF | _reversed(value & 0xFFFF, 16)


@cache
def _changes(readings: Readings) -> dict[Header, list[_Change]]:
    changes: dict[Header, list[_Change]] = {}
    for option, form in readings.differences.items():
        change = _low_half_reversed if form == "high-low" else _reversed
        for structure, name in PLACES[option]:
            part = structure.part(name)
            assert isinstance(part, UInt)
            changes.setdefault(structure, []).append(_Change(name, part.bits, change))
    return changes


def reread(record: Record, readings: Readings) -> Record:
    """Return a value of the schemas in another reading, or the reverse.

    The record itself is unchanged. Building refuses values that don't fit a field of that size.
    """
    if readings == PROPOSED:
        return record
    record = copy.deepcopy(record)
    _apply(record, _changes(readings))
    return record


def _apply(record: Record, changes: Mapping[Header, list[_Change]]) -> None:
    for name, bits, change in changes.get(record.schema, ()):
        value = record[name]
        if isinstance(value, int) and 0 <= value < 1 << bits:
            setattr(record, name, change(value, bits))
    for part in record.schema.parts:
        if not inner_headers(part):
            continue
        inner = record.get(part.name)
        for item in inner if isinstance(inner, list) else [inner]:
            if isinstance(item, Record):
                _apply(item, changes)
