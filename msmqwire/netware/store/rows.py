"""The content of rows: JSON objects, bytes in them as hexadecimal digits.

Writing and reading are inverse. Reading raises KeyError, TypeError or ValueError for a malformed row, for
`msmqwire.service.restoring` to report.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from msmqwire.netware.model.bindery import BinderyObject, Property
from msmqwire.netware.model.files import Trustee, VolumeEntry
from msmqwire.netware.model.job import Job
from msmqwire.netware.model.queue import QueueRow

_FIELDS_OF_JOBS = tuple(field.name for field in fields(Job) if field.name != "job_position")
_BYTES_OF_JOBS = ("target_execution_time", "job_entry_time", "job_description", "queue_record")


def _written(row: Mapping[str, Any] | Sequence[int]) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode()


def _read(row: bytes) -> dict[str, Any]:
    content = json.loads(row)
    if not isinstance(content, dict):
        raise TypeError("a row that is not an object")
    return content


def write_object(found: BinderyObject) -> bytes:
    """Return the row of a bindery object."""
    return _written(
        {
            "name": found.name,
            "type": found.type,
            "security": found.security,
            "dynamic": found.dynamic,
            "properties": [_property(held) for held in found.properties.values()],
        }
    )


def _property(held: Property) -> dict[str, Any]:
    return {
        "name": held.name,
        "set": held.is_set,
        "security": held.security,
        "dynamic": held.dynamic,
        "segments": [segment.hex() for segment in held.segments],
        "members": sorted(held.members),
    }


def read_object(object_id: int, row: bytes) -> BinderyObject:
    """Return the bindery object of a row."""
    content = _read(row)
    held = [
        Property(
            name=item["name"],
            is_set=item["set"],
            security=item["security"],
            dynamic=item["dynamic"],
            segments=tuple(map(bytes.fromhex, item["segments"])),
            members=frozenset(item["members"]),
        )
        for item in content["properties"]
    ]
    return BinderyObject(
        object_id,
        content["name"],
        content["type"],
        content["security"],
        content["dynamic"],
        {item.name: item for item in held},
    )


def write_queue(queue: QueueRow) -> bytes:
    """Return the row of a queue."""
    return _written(
        {"directory": queue.directory, "status": queue.status, "next_number": queue.next_number},
    )


def read_queue(queue_id: int, row: bytes) -> QueueRow:
    """Return the queue of a row."""
    return QueueRow(queue_id, **_read(row))


def write_job(job: Job) -> bytes:
    """Return the row of a job."""
    content = {name: getattr(job, name) for name in _FIELDS_OF_JOBS}
    return _written(content | {name: content[name].hex() for name in _BYTES_OF_JOBS})


def read_job(row: bytes) -> Job:
    """Return the job of a row."""
    content = _read(row)
    return Job(**content | {name: bytes.fromhex(content[name]) for name in _BYTES_OF_JOBS})


def write_order(job_numbers: Sequence[int]) -> bytes:
    """Return the row with the numbers of all jobs of a queue, in order."""
    return _written(job_numbers)


def read_order(row: bytes) -> tuple[int, ...]:
    """Return the numbers of the jobs of a queue, in order."""
    return tuple(map(int, json.loads(row)))


def write_entry(entry: VolumeEntry) -> bytes:
    """Return the row of a directory or file of a volume."""
    return _written({"owner_id": entry.owner_id, "is_directory": entry.is_directory})


def read_entry(path: bytes, row: bytes) -> VolumeEntry:
    """Return the directory or file of a row."""
    return VolumeEntry(path.decode(), **_read(row))


def write_trustee(trustee: Trustee) -> bytes:
    """Return the row of a trustee."""
    return _written({"path": trustee.path, "object_id": trustee.object_id, "rights": trustee.rights})


def read_trustee(row: bytes) -> Trustee:
    """Return the trustee of a row."""
    return Trustee(**_read(row))


def write_number(number: int) -> bytes:
    """Return the row of a counter."""
    return b"%d" % number


def read_number(row: bytes) -> int:
    """Return the value of a counter."""
    return int(row)
