"""The job structure at the head of a queue file: QMS-files-07."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from msmqwire.ncp.job_structures import OLD_JOB
from msmqwire.netware.model.job import Job
from msmqwire.netware.model.job_fields import old_head, tail
from msmqwire.schema.layout import layout

SIZE: Final = len(OLD_JOB.make({}).to_bytes())
_POSITION: Final = next(
    field.offset for field in layout(OLD_JOB.make({})) if field.path.endswith(".jobPosition")
)
_POSITION_MAX: Final = 255


def job_structure(job: Job) -> bytes:
    """Return the 256 bytes of a job with position 0: `at_position` gives it one.

    The handle, which only one connection can use, is 0.
    """
    lasting = replace(job, job_file_handle=0, job_position=0)
    structure: bytes = OLD_JOB.make(old_head(lasting) | tail(lasting)).to_bytes()
    return structure


def at_position(structure: bytes, position: int) -> bytes:
    """Return a job structure with the place of the job in the queue; from 255 on it is 255."""
    return structure[:_POSITION] + bytes((min(position, _POSITION_MAX),)) + structure[_POSITION + 1 :]
