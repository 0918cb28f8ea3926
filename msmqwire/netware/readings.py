"""Byte orders on which public descriptions of the queue calls disagree, and how a packet is read by each.

The schemas read such a field one way. A reading that differs changes the numbers of a parsed record, and
changes them back before it is built: each change is its own inverse and loses nothing, so that bytes come
back whatever the reading.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache
from typing import Any, Final, NamedTuple

from msmqwire.errors import InvalidValue
from msmqwire.netware.job_structures import NEW_JOB, NEW_JOB_HEAD
from msmqwire.netware.queue_calls import (
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


class ByteOrder(StrEnum):
    """The order of the bytes of a number."""

    LITTLE = "little"
    BIG = "big"


class JobNumberForm(StrEnum):
    """The form of the job number of four bytes; `HIGH_LOW` is 16 bits, big-endian, and two zeros."""

    LITTLE = "little"
    BIG = "big"
    HIGH_LOW = "high-low"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the disputed fields are read. The defaults are what real servers and clients bear out.

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

    queue_id: ByteOrder = ByteOrder.BIG
    job_number: JobNumberForm = JobNumberForm.LITTLE
    position_job_number: ByteOrder = ByteOrder.BIG
    service_type: ByteOrder = ByteOrder.BIG
    charge: ByteOrder = ByteOrder.BIG
    start_position: ByteOrder = ByteOrder.LITTLE
    server_station: ByteOrder = ByteOrder.LITTLE
    destination_queue_id: ByteOrder = ByteOrder.BIG

    @classmethod
    def of(cls, differences: Mapping[str, str]) -> Reading:
        """Return the reading with these values, by field: ``{"job_number": "big"}``. Raises InvalidValue."""
        values: dict[str, Any] = {}
        for name, text in differences.items():
            if name not in _FORMS:
                raise InvalidValue(f"not one of {', '.join(_FORMS)}", path=name)
            try:
                values[name] = _FORMS[name](text)
            except ValueError:
                raise InvalidValue(f"{text!r} is not {' or '.join(_FORMS[name])}", path=name) from None
        return cls(**values)

    @staticmethod
    def options() -> tuple[str, ...]:
        """Return the names of the fields."""
        return tuple(_FORMS)

    @property
    def differences(self) -> dict[str, str]:
        """The values that are not the defaults, by field."""
        return {
            field.name: str(getattr(self, field.name))
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }


_FORMS: Final[Mapping[str, type[StrEnum]]] = {
    field.name: JobNumberForm if field.name == "job_number" else ByteOrder for field in fields(Reading)
}
"""What each field of a reading may be."""
PROPOSED: Final = Reading()
"""The reading of the schemas."""


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
"""The fields that each field of a reading is about, by structure."""


class _Change(NamedTuple):
    name: str
    bits: int
    change: Callable[[int, int], int]


def _reversed(value: int, bits: int) -> int:
    return int.from_bytes(value.to_bytes(bits // 8, "little"), "big")


def _low_half_reversed(value: int, bits: int) -> int:
    """Exchange the two bytes that come first on the wire; what should be zeros stays where it is."""
    return value & ~0xFFFF | _reversed(value & 0xFFFF, 16)


@cache
def _changes(reading: Reading) -> dict[Header, list[_Change]]:
    changes: dict[Header, list[_Change]] = {}
    for option, form in reading.differences.items():
        change = _low_half_reversed if form == JobNumberForm.HIGH_LOW else _reversed
        for structure, name in PLACES[option]:
            part = structure.part(name)
            assert isinstance(part, UInt)
            changes.setdefault(structure, []).append(_Change(name, part.bits, change))
    return changes


def reread(record: Record, reading: Reading) -> Record:
    """Return what the schemas have read, read in another way; and the reverse.

    The record itself stays as it is. Values that no field of that size can have are left to building, which
    refuses them.
    """
    if reading == PROPOSED:
        return record
    record = copy.deepcopy(record)
    _apply(record, _changes(reading))
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
